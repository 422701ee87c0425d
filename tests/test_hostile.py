"""Files that mean harm: time and memory stay bounded, and nothing but an answer comes out.

Long because it is tables of harm, and of the places where it comes from.
"""

from __future__ import annotations

import contextlib
import gzip
import io
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import idxfile
from conftest import COMPRESS, H, idx_bytes
from idxfile.cli import main
from idxfile.source import LocalFile


@pytest.fixture(autouse=True, scope="module")
def _no_waiting_for_the_disk() -> Iterator[None]:
    """What reaches the disk when is tested elsewhere."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda _: None)
        yield


MOST_NBYTES = 100 << 20
"""What the whole process may take, Python and NumPy included."""
MOST_SECONDS = 30
"""A bound for a busy machine; each of these takes far less than a second."""

WATCHED = """
import re, sys
from idxfile.cli import main
codes = [main(words.split()) for words in sys.argv[1:]]
with open("/proc/self/status") as file:
    most = re.search(r"VmHWM:\\s+(\\d+)", file.read())[1]
print(most, *codes, file=sys.stderr)
"""


class Watched(NamedTuple):
    codes: list[int]
    out: str
    err: str


def watch(*commands: str, **options: Any) -> Watched:
    """Run commands in one process of their own, in bounded time and memory."""
    started = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-c", WATCHED, *commands],
        capture_output=True,
        text=True,
        timeout=2 * MOST_SECONDS,
        **options,
    )
    assert time.monotonic() - started < MOST_SECONDS
    assert "Traceback" not in done.stderr
    err, _, last = done.stderr.rstrip("\n").rpartition("\n")
    kib, *codes = map(int, last.split())
    assert kib << 10 < MOST_NBYTES
    return Watched(codes, done.stdout, err)


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The path of a file in a folder of its own, which is the current one."""
    monkeypatch.chdir(tmp_path)
    return tmp_path / "file"


LITTLE = H(8, 3, 28, 28)
MUCH = H(8, 0xFFFFFFFF, 28, 28)
LABEL = H(8, 1) + b"\x07"
ZEROS = bytes(1 << 24)

# Bombs


@cache
def packed_zeros(codec: str) -> bytes:
    return COMPRESS[codec](ZEROS)


@pytest.fixture(params=COMPRESS)
def zeros(request: pytest.FixtureRequest) -> Callable[[bytes, int], bytes]:
    """Packs a header and many times 16 MiB of zeros with one of the codecs."""
    codec = request.param
    return lambda header, times: COMPRESS[codec](header) + packed_zeros(codec) * times


def test_a_bomb_that_promises_little_is_not_inflated(zeros: Any, file: Path) -> None:
    file.write_bytes(zeros(LITTLE, 64))
    found = watch("info file", "check file", "head file", "identify file", "repair file new.idx")
    assert found.codes == [0, 1, 3, 0, 0]
    assert "error trailing-data: over 67,108,864 bytes after the data at offset 2,368" in found.out
    assert "trimmed over 67,108,864 bytes after the data at offset 2,368" in found.out
    assert Path("new.idx").stat().st_size == 2368


def test_a_bomb_that_promises_terabytes_takes_no_memory(zeros: Any, file: Path) -> None:
    file.write_bytes(zeros(MUCH, 4))
    found = watch("info file", "check file", "head file", "head file --allow-partial -n 1")
    assert found.codes == [0, 1, 3, 0]
    assert "needs 3,367,254,359,296 bytes, has 67,108,880" in found.out
    assert "85,598 of 4,294,967,295 declared items are whole" in found.err


@pytest.mark.parametrize("layers", [2, 4, 5])
def test_a_bomb_in_a_bomb(layers: int, file: Path) -> None:
    data = gzip.compress(LITTLE) + packed_zeros("gz") * 64
    for _ in range(layers - 1):
        data = gzip.compress(data)
    assert len(data) < 10_000
    file.write_bytes(data)
    found = watch("check file", "head file", "repair file new.idx", "identify file")
    if layers == 5:
        assert found.codes == [1, 3, 3, 0]
        assert "compressed more than 4 times" in found.out
    else:
        assert found.codes == [1, 3, 0, 0]
        assert f"compressed {layers} times: gz in gz" in found.out
        assert "over 67,108,864 bytes after the data" in found.out


def test_a_bomb_that_holds_nothing_known(file: Path) -> None:
    file.write_bytes(gzip.compress(b"nothing known") + packed_zeros("gz") * 64)
    found = watch("check file", "info file", "identify file")
    assert found.codes == [1, 3, 0]
    assert "found 6e 6f 74 68 at byte 0" in found.out


def test_a_bomb_that_calls_itself_a_known_data_set(file: Path) -> None:
    file.write_bytes(gzip.compress(H(8, 60000, 28, 28)) + packed_zeros("gz") * 64)
    found = watch("identify file", "check file")
    assert found.codes == [0, 1]
    assert "MNIST" not in found.out


def test_a_name_without_end(file: Path) -> None:
    start = gzip.compress(b"")[:3] + b"\x08" + bytes(6)
    file.write_bytes(start + b"A" * 10_000_000)
    found = watch("check file", "info file", "head file", "identify file")
    assert found.codes == [1, 3, 3, 0]
    assert "a member header of more than 128 KiB" in found.out
    file.write_bytes(start + b"A" * 100_000 + b"\0" + gzip.compress(LABEL)[10:])
    found = watch("info file", "check file")
    assert found.codes == [0, 0]
    assert len(found.out) < 2000


# Headers

HEADERS = {
    "2^32 images": (MUCH, 3, "3,367,254,359,296 bytes, has 16"),
    "a product of 2^64": (
        H(8, 65536, 65536, 65536, 65536),
        3,
        "18,446,744,073,709,551,616 missing",
    ),
    "a product of 2^64 and 8 bytes": (
        H(14, 65536, 65536, 65536, 65536) + bytes(8),
        3,
        f"needs {(8 << 64) + 20:,} bytes, has 28",
    ),
    "a product of 2^32": (H(8, 65536, 65536), 3, "needs 4,294,967,308 bytes, has 12"),
    "255 large dimensions": (
        H(8, *[0xFFFFFFFF] * 255),
        3,
        "needs about 10^2456 bytes, has 1,024",
    ),
    "255 dimensions of 1": (H(8, *[1] * 255) + b"\x07", 4, "255 dimensions; NumPy holds 64"),
    "255 dimensions, empty": (H(8, 0, *[0xFFFFFFFF] * 254), 4, "255 dimensions; NumPy holds 64"),
    "nothing of much": (H(8, 0, *[0xFFFFFFFF] * 3), 4, "uint8 0 × 4294967295 × 4294967295"),
    "much of nothing": (H(8, 0xFFFFFFFF, 0), 0, "uint8 4294967295 × 0"),
    "Lush of many dimensions": (
        bytes.fromhex("554c3d1e ffffff7f") + bytes(2000),
        3,
        "2,147,483,647 dimensions",
    ),
    "Lush of few dimensions": (
        bytes.fromhex("554c3d1e fbffffff") + bytes(2000),
        3,
        "-5 dimensions",
    ),
    "Lush of large dimensions": (
        bytes.fromhex("554c3d1e 03000000") + b"\xff" * 12,
        3,
        "needs about 10^28 bytes, has 20",
    ),
}


@pytest.mark.parametrize("name", HEADERS)
def test_a_header_is_not_believed(name: str, file: Path) -> None:
    data, code, told = HEADERS[name]
    file.write_bytes(data)
    for packed in (False, True):
        if packed:
            file.write_bytes(gzip.compress(data))
        found = watch("check file", "info file", "head file", "diff file file", "show file")
        checked, shown, *read = found.codes
        assert checked == (code == 3)
        assert shown in ({0} if code == 4 else {code, 0 if packed else code})
        assert set(read) <= {code, 4} or (code == 4 and set(read) == {0, 4})
        assert told in found.out + found.err


# Places that are no files


def feed(path: Path, pieces: Callable[[], Iterator[bytes]]) -> threading.Thread:
    """Write into a pipe for as long as somebody reads it."""

    def run() -> None:
        with contextlib.suppress(BrokenPipeError), open(path, "wb", buffering=0) as pipe:
            for piece in pieces():
                pipe.write(piece)

    thread = threading.Thread(target=run)
    thread.start()
    return thread


def for_ever(start: bytes, more: bytes) -> Callable[[], Iterator[bytes]]:
    def pieces() -> Iterator[bytes]:
        yield start
        while True:
            yield more

    return pieces


ENDLESS = {
    "items": (LABEL, bytes(1 << 16), "over 67,108,864 bytes after the data at offset 9"),
    "members": (
        gzip.compress(LABEL),
        packed_zeros("gz"),
        "over 67,108,864 bytes after the data at offset 9",
    ),
    "a name": (b"\x1f\x8b\x08\x08" + bytes(6), b"A" * 4096, "a member header of more than 128 KiB"),
    "text": (b"no end", b" and no end" * 100, "this is a text file, not an IDX file"),
}


@pytest.mark.parametrize("name", ENDLESS)
def test_a_pipe_without_end_is_left(name: str, file: Path) -> None:
    start, more, told = ENDLESS[name]
    os.mkfifo(file)
    thread = feed(file, for_ever(start, more))
    found = watch("check file")
    thread.join()
    assert found.codes == [1]
    assert told in found.out


def test_a_pipe_that_ends_is_judged(file: Path) -> None:
    os.mkfifo(file)
    for data, code in ((LABEL, 0), (LABEL[:-1], 1), (b"", 1), (gzip.compress(LABEL)[:-3], 1)):
        thread = feed(file, lambda data=data: iter([data]))
        assert watch("check file").codes == [code]
        thread.join()


def test_devices(file: Path) -> None:
    found = watch("check /dev/zero", "check /dev/null", "info /dev/zero", "head /dev/null")
    assert found.codes == [1, 1, 3, 3]
    assert "found element type 00 at byte 2" in found.out
    assert "file is empty (0 bytes)" in found.out
    assert watch("check /dev/urandom", "identify /dev/zero").codes == [1, 0]
    assert watch("repair /dev/zero new.idx").codes == [4]


def test_folders_and_links(file: Path) -> None:
    file.write_bytes(LABEL)
    Path("loop").symlink_to("pool")
    Path("pool").symlink_to("loop")
    Path("folder.idx").mkdir()
    Path("gone").symlink_to("nowhere")
    commands = ("info", "head", "check", "repair --in-place", "identify", "diff file", "show")
    found = watch(*(f"{c} {name}" for c in commands for name in ("loop", "gone")))
    assert set(found.codes) == {5}
    assert found.err.count("loop: Too many levels of symbolic links") == len(commands)
    found = watch(*(f"{c} {name}" for c in commands for name in ("folder.idx", ".")))
    assert found.codes == [5, 5, 5, 5, 2, 2, 5, 5, 5, 5, 5, 5, 5, 5]
    assert found.err.count("Is a folder; give one of the files in it") == 10


@contextlib.contextmanager
def without_rights() -> Iterator[None]:
    """As somebody to whom nothing belongs, where we are root."""
    root = os.geteuid() == 0
    if root:
        os.seteuid(65534)
    try:
        yield
    finally:
        if root:
            os.seteuid(0)


def test_what_may_not_be_read(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file.write_bytes(LABEL)
    Path("open.idx").write_bytes(LABEL + b"x")
    Path("closed").mkdir()
    assert main(["repair", "open.idx", "copy.idx"]) == 0  # everything is imported by now
    file.parent.chmod(0o555)
    file.chmod(0)
    Path("closed").chmod(0)
    capsys.readouterr()
    with without_rights():
        for words in ("check file", "info file", "head file", "check .", "repair open.idx -i"):
            assert main(words.replace("-i", "--in-place").split()) == 5
    out, err = capsys.readouterr()
    Path("closed").chmod(0o755)
    file.parent.chmod(0o755)
    assert err.count("error: file: Permission denied\n") == 3
    assert "error: ./closed: Permission denied\n" in err
    assert re.search("error: open.idx(.bak)?: Permission denied\n", err)
    assert "./copy.idx: ok (uint8 1)" in out
    assert sorted(os.listdir()) == ["closed", "copy.idx", "file", "open.idx"]


# Sizes of files


def test_a_sparse_file_of_a_terabyte(file: Path) -> None:
    with file.open("wb") as sparse:
        sparse.write(LABEL)
        sparse.truncate(1 << 40)
    found = watch("check file", "info file", "head file", "repair file new.idx")
    assert found.codes == [1, 3, 3, 0]
    assert "1,099,511,627,767 bytes after the data at offset 9" in found.out
    assert Path("new.idx").read_bytes() == LABEL


def test_a_right_file_of_three_terabytes(file: Path) -> None:
    with file.open("wb") as sparse:
        sparse.write(MUCH)
        sparse.truncate(len(MUCH) + 0xFFFFFFFF * 784)
    found = watch("info file", "head file -n 1", "show file -- -1", "identify file")
    assert found.codes == [0, 0, 0, 0]
    assert "3,367,254,359,280 bytes from byte 16" in found.out


def test_one_long_row_is_printed_in_pieces(file: Path) -> None:
    with file.open("wb") as sparse:
        sparse.write(H(8, 1, 1_000_000))
        sparse.truncate(12 + 1_000_000)
    found = watch("head file")
    assert (found.codes, found.out) == ([0], "0 " * 999_999 + "0\n")


@pytest.mark.parametrize("command", ["head -n 9999", "diff file", "repair new.idx"])
def test_a_file_that_shrinks_meanwhile_is_an_error(
    command: str, file: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    data = idx_bytes(np.zeros((4, 1 << 20), "uint8"))
    file.write_bytes(data)
    read = LocalFile.readinto_at

    def shrinking(self: LocalFile, start: int, buffer: Any) -> int:
        if start + len(buffer) > 1 << 20:
            os.truncate(file, 1000)
        return read(self, start, buffer)

    monkeypatch.setattr(LocalFile, "readinto_at", shrinking)
    name, *options = command.split()
    assert main([name, "file", *options]) == 3
    assert not Path("new.idx").exists()
    assert "Traceback" not in capsys.readouterr().err


@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["raw", "gz"])
def test_comparing_takes_no_more_memory_for_larger_files(pack: Any, file: Path) -> None:
    items = np.zeros((80_000, 784), "uint8")
    file.write_bytes(pack(idx_bytes(items)))
    items[-1, -1] = 1
    Path("other").write_bytes(pack(idx_bytes(items)))
    found = watch("diff file other", "check file other")
    assert found.codes == [1, 0]
    assert "first at (79999, 783): 0 and 1" in found.out


# Anything at all

SEEDS = [
    LABEL,
    idx_bytes(np.arange(24, dtype="int16").reshape(2, 3, 4)),
    idx_bytes(np.arange(6, dtype="float64")),
    bytes.fromhex("554c3d1e 02000000 02000000 03000000 01000000") + bytes(6),
    bytes.fromhex("03080000 01000000 02000000 01000000 0708"),
    *(pack(idx_bytes(np.arange(99, dtype="int32"))) for pack in COMPRESS.values()),
    gzip.compress(gzip.compress(LABEL)),
]
COMMANDS = (
    "info FILE",
    "info --json FILE",
    "head FILE",
    "head --allow-partial --json FILE",
    "check FILE",
    "check --json FILE FILE",
    "identify FILE",
    "diff FILE FILE",
    "diff --json FILE OTHER",
    "repair --force FILE NEW",
    "repair --force --salvage --swap-data FILE NEW",
    "repair --force --salvage --take-trailing FILE NEW",
    "show FILE",
    "append NEW FILE",
    "concat --force NEW FILE FILE",
)


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    """A file with some bytes changed, cut off, put in or put behind."""
    data = bytearray(draw(st.sampled_from(SEEDS)))
    for _ in range(draw(st.integers(0, 3))):
        at = draw(st.integers(0, len(data)))
        end = at + draw(st.sampled_from([0, 0, 1, 1, 4, 999]))
        data[at:end] = draw(st.binary(max_size=4))
    return bytes(data)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(damaged(), st.permutations(COMMANDS))
def test_no_file_makes_a_command_stumble(tmp_path: Path, data: bytes, commands: list[str]) -> None:
    paths = {name: str(tmp_path / name) for name in ("FILE", "OTHER", "NEW")}
    for name, content in (("FILE", data), ("OTHER", LABEL), ("NEW", LABEL)):
        Path(paths[name]).write_bytes(content)
    for command in commands:
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = main([paths.get(word, word) for word in command.split()])
        assert code in (0, 1, 3, 4), (command, code, err.getvalue())
        assert "Traceback" not in err.getvalue()
        if code in (3, 4) and "--json" not in command:
            assert "error: " in err.getvalue()


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(damaged())
def test_a_mended_file_is_right_and_holds_what_was_there(tmp_path: Path, data: bytes) -> None:
    out = tmp_path / "new.idx"
    before = idxfile.check(data)
    hopeful = before.header is not None and before.header.dialect == "idx"
    with (
        contextlib.nullcontext() if before.ok and hopeful else contextlib.suppress(idxfile.IdxError)
    ):
        out.unlink(missing_ok=True)
        mended = idxfile.repair(data, out, salvage=True)
    if not out.exists():
        return
    assert all(p.code in ("swapped-data", "many-dimensions") for p in mended.after.problems)
    if before.ok:
        assert idxfile.diff(data, out).equal
