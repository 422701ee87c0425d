"""Compressed files that pass by: blocks come as they are inflated, and nothing is kept."""

from __future__ import annotations

import contextlib
import gzip
import io
import lzma
import os
import pickle
import subprocess
import sys
import tempfile
import threading
import tracemalloc
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import idxfile
from conftest import COMPRESS, MEASURE
from idxfile.codecs import Inflater
from idxfile.errors import FormatError, IdxWarning, TrailingDataError, TruncatedError
from idxfile.spooled import Spooled

ITEMS = np.random.default_rng(1).integers(0, 256, (3000, 20, 20), np.uint8)
ITEMS[:, ::2] = 0
WIDE = ITEMS.astype("int16") - 1000
STEP = 1 << 17
"""Bytes of a block: there are about ten of them."""

PACKED: dict[str, Callable[[bytes], bytes]] = {
    **COMPRESS,
    "gz in gz": lambda data: gzip.compress(gzip.compress(data, 1), 1),
    "gz in xz": lambda data: lzma.compress(gzip.compress(data, 1), preset=0),
    "members": lambda data: gzip.compress(data[:5000], 1) + gzip.compress(data[5000:], 1) + b"\0\0",
}


@pytest.fixture
def inflated(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How much is inflated, piece by piece."""
    found: list[int] = []
    read = Inflater.read

    def counted(self: Inflater, limit: int) -> bytes:
        piece = read(self, limit)
        found.append(len(piece))
        return piece

    monkeypatch.setattr(Inflater, "read", counted)
    return found


def joined(array: Any) -> np.ndarray:
    return np.concatenate(list(array.blocks(block_nbytes=STEP)))


@pytest.mark.parametrize("values", [ITEMS, WIDE], ids=["uint8", "int16"])
@pytest.mark.parametrize("packing", list(PACKED))
def test_blocks_are_the_items_however_often(packing: str, values: np.ndarray) -> None:
    file = PACKED[packing](idxfile.encode(values))
    with idxfile.open(file) as x:
        for _ in range(3):
            blocks = list(x.blocks(block_nbytes=STEP))
            assert len(blocks) > 5
            assert all(block.flags.writeable and block.dtype.isnative for block in blocks)
            np.testing.assert_array_equal(np.concatenate(blocks), values)
        np.testing.assert_array_equal(x[...], values)


@pytest.mark.parametrize("between", ["nothing", "an item", "a look at it", "a part", "pickling"])
def test_what_is_asked_for_meanwhile_disturbs_nobody(between: str) -> None:
    with idxfile.open(gzip.compress(idxfile.encode(WIDE), 1)) as x:
        blocks = x.blocks(block_nbytes=STEP)
        found = [next(blocks)]
        if between == "an item":
            np.testing.assert_array_equal(x[2999], WIDE[2999])
        elif between == "a look at it":
            np.testing.assert_array_equal(x.peek([1, 0]), WIDE[[1, 0]])
        elif between == "a part":
            np.testing.assert_array_equal(x[10:20], WIDE[10:20])
        elif between == "pickling":
            np.testing.assert_array_equal(joined(pickle.loads(pickle.dumps(x))), WIDE)
        np.testing.assert_array_equal(np.concatenate([*found, *blocks]), WIDE)


def test_the_first_time_nothing_is_kept_and_the_second_time_all(
    monkeypatch: pytest.MonkeyPatch, inflated: list[int]
) -> None:
    file = gzip.compress(idxfile.encode(ITEMS), 1)

    def refused(**_: Any) -> Any:
        raise AssertionError("no file is needed")

    with idxfile.open(file, spool_nbytes=0) as x:
        with monkeypatch.context() as patch:
            patch.setattr(tempfile, "TemporaryFile", refused)
            np.testing.assert_array_equal(joined(x), ITEMS)
        for _ in range(3):
            np.testing.assert_array_equal(joined(x), ITEMS)
        np.testing.assert_array_equal(x[::7], ITEMS[::7])
    assert sum(inflated) < 2.1 * ITEMS.nbytes


def test_memory_is_that_of_a_block() -> None:
    items = np.concatenate([ITEMS] * 6)
    with idxfile.open(gzip.compress(idxfile.encode(items), 1)) as x:
        tracemalloc.start()
        try:
            assert sum(len(block) for block in x.blocks(block_nbytes=STEP)) == len(items)
            now, peak = tracemalloc.get_traced_memory()
            assert now < 1_000_000
            assert peak < 2_000_000 < items.nbytes // 3
            assert sum(len(block) for block in x.blocks(block_nbytes=STEP)) == len(items)
            assert tracemalloc.get_traced_memory()[0] > items.nbytes
        finally:
            tracemalloc.stop()


def test_all_items_at_once_are_read_into_their_place(inflated: list[int]) -> None:
    data = gzip.compress(idxfile.encode(WIDE), 1)
    for read in (
        lambda x: idxfile.plan(x)[0].read(),
        lambda x: np.asarray(idxfile.Dataset(x, np.zeros(len(x), int)).images),
    ):
        with idxfile.open(data) as x:
            inflated.clear()
            tracemalloc.start()
            try:
                found = read(x)
                assert tracemalloc.get_traced_memory()[1] < 1.8 * WIDE.nbytes
            finally:
                tracemalloc.stop()
            np.testing.assert_array_equal(found, WIDE)
            np.testing.assert_array_equal(read(x), WIDE)
            np.testing.assert_array_equal(read(x), WIDE)
            np.testing.assert_array_equal(x[0], WIDE[0])
            assert sum(inflated) < 2.1 * WIDE.nbytes
    with idxfile.open(data[:-9]) as x, pytest.raises(TruncatedError):
        idxfile.plan(x)[0].read()


def test_who_looks_at_the_beginning_may_do_so_often(inflated: list[int]) -> None:
    with idxfile.open(gzip.compress(idxfile.encode(ITEMS), 1)) as x:
        for _ in range(5):
            np.testing.assert_array_equal(next(x.blocks(block_nbytes=8000)), ITEMS[:20])
    assert sum(inflated) < ITEMS.nbytes // 2


def test_what_is_known_to_be_read_twice_is_inflated_once(inflated: list[int]) -> None:
    floats = ITEMS.astype("float32")
    s = idxfile.stats(gzip.compress(idxfile.encode(floats), 1))
    assert s.total == ITEMS.sum()
    assert sum(inflated) < 1.1 * floats.nbytes
    inflated.clear()
    assert idxfile.stats(gzip.compress(idxfile.encode(ITEMS), 1)).total == ITEMS.sum()
    assert sum(inflated) < 1.1 * ITEMS.nbytes


def test_a_compressed_shard_passes_by_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, inflated: list[int]
) -> None:
    monkeypatch.setattr("idxfile.summary.SLAB_NBYTES", 100_000)
    items = np.concatenate([ITEMS] * 6)
    for number, part in enumerate(np.split(items, 3)):
        path = tmp_path / f"x-{number:05d}-of-00003.idx.gz"
        path.write_bytes(gzip.compress(idxfile.encode(part), 1))
    tracemalloc.start()
    try:
        with ThreadPoolExecutor(1) as alone:
            found = idxfile.stats(tmp_path / "x-*.idx.gz", executor=alone)
        assert tracemalloc.get_traced_memory()[0] < items.nbytes // 3
    finally:
        tracemalloc.stop()
    assert found.total == items.sum()
    assert sum(inflated) < 1.1 * items.nbytes


def test_compressed_shards_pass_by_as_one(tmp_path: Path, inflated: list[int]) -> None:
    items = np.concatenate([ITEMS] * 6)
    for number, part in enumerate(np.split(items, 3)):
        path = tmp_path / f"x-{number:05d}-of-00003.idx.gz"
        path.write_bytes(gzip.compress(idxfile.encode(part), 1))
    with idxfile.open(tmp_path / "x-*.idx.gz") as x:
        inflated.clear()
        tracemalloc.start()
        try:
            for _ in range(2):
                next(x.blocks(block_nbytes=STEP))
            assert sum(len(block) for block in x.blocks(block_nbytes=STEP)) == len(items)
            assert tracemalloc.get_traced_memory()[1] < 2_000_000 < items.nbytes // 3
        finally:
            tracemalloc.stop()
        for _ in range(3):
            np.testing.assert_array_equal(joined(x), items)
        np.testing.assert_array_equal(x[::700], items[::700])
        assert sum(inflated) < 2.2 * items.nbytes
    path.write_bytes(path.read_bytes()[:-9])
    with idxfile.open(tmp_path / "x-*.idx.gz") as x, pytest.raises(TruncatedError):
        joined(x)


# What is wrong

DATA = idxfile.encode(ITEMS)
GOOD = gzip.compress(DATA, 1)
WRONG = {
    "cut": GOOD[:-9],
    "cut in the middle": GOOD[: len(GOOD) // 2],
    "no trailer": GOOD[:-8],
    "wrong checksum": GOOD[:-8] + bytes([GOOD[-8] ^ 1]) + GOOD[-7:],
    "wrong length": GOOD[:-4] + bytes([GOOD[-4] ^ 1]) + GOOD[-3:],
    "damaged": GOOD[:400_000] + bytes(64) + GOOD[400_064:],
    "a byte missing": gzip.compress(DATA[:-1], 1),
    "a byte too many": gzip.compress(DATA + b"\0", 1),
    "cut in a layer": gzip.compress(GOOD[:-9], 1),
    "outer layer cut": lzma.compress(GOOD, preset=0)[:-20],
    "outer layer wrong": gzip.compress(GOOD, 1)[:-8] + bytes(8),
}


def told(work: Callable[[], Any]) -> tuple[type[FormatError], str]:
    with pytest.raises(FormatError) as found:
        work()
    return type(found.value), str(found.value)


@pytest.mark.parametrize("wrong", list(WRONG))
def test_a_file_that_is_wrong_is_told_as_by_everybody_else(wrong: str) -> None:
    expected = told(lambda: idxfile.read(WRONG[wrong]))
    with idxfile.open(WRONG[wrong]) as x:
        blocks = []

        def all_blocks() -> None:
            blocks.extend(x.blocks(block_nbytes=STEP))
            blocks.extend(x.blocks(block_nbytes=STEP))

        for _ in range(3):
            assert told(all_blocks) == expected
        assert sum(map(len, blocks)) < 3 * len(ITEMS)
        assert told(lambda: x[0]) == expected
        for _ in range(2):
            blocks.clear()
            assert told(lambda: blocks.extend(x.blocks(block_nbytes=STEP))) == expected
            assert sum(map(len, blocks)) < len(ITEMS)
    assert told(lambda: idxfile.stats(WRONG[wrong])) == expected


def test_the_last_block_of_a_wrong_file_is_not_given_out() -> None:
    for wrong in ("cut", "wrong checksum", "a byte too many"):
        seen = 0
        with idxfile.open(WRONG[wrong]) as x, pytest.raises(FormatError):
            for block in x.blocks(block_nbytes=STEP):
                seen += len(block)
        assert len(ITEMS) - STEP // 400 <= seen < len(ITEMS)


@pytest.mark.parametrize("count", [0, 5])
def test_items_without_elements_are_judged_too(count: int) -> None:
    none = np.zeros((count, 0), "uint8")
    with idxfile.open(gzip.compress(idxfile.encode(none))) as x:
        assert sum(map(len, x.blocks())) == count
    with (
        idxfile.open(gzip.compress(idxfile.encode(none) + bytes(5000)), problems="raise") as x,
        pytest.raises(FormatError, match="after the data"),
    ):
        list(x.blocks())


def test_whoever_is_overtaken_judges_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    passes_by = Spooled.passes_by

    def overtaken(self: Spooled) -> bool:
        found = passes_by(self)
        with contextlib.suppress(FormatError):
            self.load()  # as another thread does, which is told that there is too much
        return found

    monkeypatch.setattr(Spooled, "passes_by", overtaken)
    array = idxfile.open(gzip.compress(idxfile.encode(ITEMS) + b"more", 1))
    with pytest.raises(TrailingDataError):
        joined(array)


@pytest.mark.parametrize("side", [1 << 24, (1 << 32) - 1])  # no memory, and no NumPy, has them
def test_an_item_that_no_memory_holds_is_judged_first(side: int) -> None:
    head = bytes.fromhex("00000803 00000001") + side.to_bytes(4, "big") * 2
    array = idxfile.open(gzip.compress(head + bytes(5000), 1))
    with pytest.raises(TruncatedError, match="5,016"):
        joined(array)


def test_junk_behind_the_stream_warns() -> None:
    with idxfile.open(GOOD + b"junk") as x, pytest.warns(IdxWarning, match="4 bytes of junk"):
        np.testing.assert_array_equal(joined(x), ITEMS)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with idxfile.open(GOOD + b"junk", problems="ignore") as x:
            np.testing.assert_array_equal(joined(x), ITEMS)


def test_what_may_be_passed_over_is_passed_over() -> None:
    with (
        idxfile.open(WRONG["a byte too many"], problems="warn") as x,
        pytest.warns(IdxWarning, match="at least 1 byte after the data"),
    ):
        np.testing.assert_array_equal(joined(x), ITEMS)
    with idxfile.open(WRONG["cut"], problems="ignore") as x, pytest.raises(TruncatedError):
        joined(x)


# What comes between


def test_who_stops_early_leaves_the_array_as_it_was() -> None:
    with idxfile.open(GOOD) as x:
        for _ in range(3):
            for block in x.blocks(block_nbytes=STEP):
                assert len(block)
                break
        np.testing.assert_array_equal(joined(x), ITEMS)
        np.testing.assert_array_equal(x[5], ITEMS[5])


@pytest.mark.parametrize("pack", [gzip.compress, lambda data: gzip.compress(gzip.compress(data))])
def test_what_was_written_over_is_not_mixed_with_what_is_there_now(
    pack: Callable[[bytes], bytes], tmp_path: Path
) -> None:
    path = tmp_path / "x.idx.gz"
    path.write_bytes(pack(idxfile.encode(ITEMS)))
    with idxfile.open(path) as x:
        next(x.blocks(block_nbytes=STEP))
        path.write_bytes(pack(idxfile.encode(ITEMS[::-1])))
        os.utime(path, (1, 1))
        for read in (lambda: joined(x), lambda: x[5], lambda: x.raw):
            with pytest.raises(FormatError, match="changed while it was open") as caught:
                read()
            assert caught.value.code == "changed"


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="a disk that is full is one of Linux")
@pytest.mark.parametrize("files", [1, 2])
def test_a_full_disk_is_told_by_name(files: int, monkeypatch: pytest.MonkeyPatch) -> None:
    full = Path("/dev/full")
    monkeypatch.setattr(tempfile, "TemporaryFile", lambda **_: full.open("r+b", 0))
    monkeypatch.setattr(tempfile, "tempdir", "/scratch")
    with (
        idxfile.open([GOOD] * files if files > 1 else GOOD, spool_nbytes=0) as x,
        pytest.raises(OSError, match=r"No space left on device: '/scratch'$"),
    ):
        x[5:7]


class Interrupted(io.BytesIO):
    """A file whose reading is interrupted, once."""

    calls_left = 0

    def readinto(self, buffer: Any) -> int:
        self.calls_left -= 1
        if not self.calls_left:
            raise KeyboardInterrupt
        return super().readinto(buffer)


def test_what_was_interrupted_is_read_anew() -> None:
    file = Interrupted(GOOD)
    with idxfile.open(file) as x:
        file.calls_left = 2
        with pytest.raises(KeyboardInterrupt):
            joined(x)
        for _ in range(3):
            np.testing.assert_array_equal(joined(x), ITEMS)


def test_a_closed_array_gives_no_more_blocks() -> None:
    x = idxfile.open(GOOD)
    blocks = x.blocks(block_nbytes=STEP)
    next(blocks)
    x.close()
    with pytest.raises(ValueError, match="is closed"):
        next(blocks)
    with pytest.raises(ValueError, match="is closed"):
        next(x.blocks())


@pytest.mark.parametrize("packing", ["gz", "gz in gz", "zst"])
def test_threads_share_an_array(packing: str) -> None:
    gate = threading.Barrier(4)
    with idxfile.open(PACKED[packing](DATA)) as x, ThreadPoolExecutor(4) as threads:

        def work(number: int) -> bool:
            gate.wait()
            if number == 3:
                return np.array_equal(x[7], ITEMS[7])
            return np.array_equal(joined(x), ITEMS)

        assert all(threads.map(work, range(4)))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_forked_process_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "x.idx.gz"
    path.write_bytes(GOOD)
    with idxfile.open(path) as x:
        blocks = x.blocks(block_nbytes=STEP)
        found = [next(blocks), next(blocks)]
        child = os.fork()
        if not child:
            try:
                good = np.array_equal(np.concatenate([*found, *blocks]), ITEMS)
                good = good and np.array_equal(joined(x), ITEMS)
                os._exit(0 if good else 1)
            finally:
                os._exit(2)
        np.testing.assert_array_equal(np.concatenate([*found, *blocks]), ITEMS)
        np.testing.assert_array_equal(x[...], ITEMS)
        assert os.waitpid(child, 0)[1] == 0


class Pipe(io.BytesIO):
    """It comes once, and in order."""

    def seekable(self) -> bool:
        return False


@pytest.mark.parametrize("packing", ["raw", "gz", "gz in gz"])
def test_a_stream_is_kept_since_it_comes_once(packing: str) -> None:
    with idxfile.open(Pipe(PACKED.get(packing, bytes)(DATA))) as x:
        for _ in range(3):
            np.testing.assert_array_equal(joined(x), ITEMS)
        np.testing.assert_array_equal(x[1], ITEMS[1])


@pytest.mark.parametrize("packing", ["raw", "gz", "gz in gz"])
def test_a_stream_of_bytes_that_is_counted_passes_by(
    packing: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pack = PACKED.get(packing, bytes)
    assert idxfile.stats(Pipe(pack(idxfile.encode(WIDE)))).total == WIDE.sum()

    def refused(_: Any) -> None:
        raise AssertionError("nothing is kept")

    monkeypatch.setattr("idxfile.source.stream.Spool.load", refused)
    assert idxfile.stats(Pipe(pack(DATA))).total == ITEMS.sum()
    with pytest.raises(TruncatedError):
        idxfile.stats(Pipe(pack(DATA[:-1])))
    with pytest.raises(FormatError, match="after the data"):
        idxfile.stats(Pipe(pack(DATA + b"1")))


def test_what_was_changed_in_memory_is_in_the_blocks() -> None:
    with idxfile.open(GOOD, mode="c") as x:
        blocks = x.blocks(block_nbytes=STEP)
        next(blocks)
        x[2999] = 7
        assert (np.concatenate(list(blocks))[-1] == 7).all()
        assert (joined(x)[-1] == 7).all()


# Size

MEMORY = """
import sys, idxfile
from idxfile.cli import main
tests, path, verb = sys.argv[1:]
exec(tests)
works = {
    "stats": lambda: idxfile.stats(path).total,
    "blocks": lambda: sum(len(block) for block in idxfile.open(path).blocks()),
    "idx stats": lambda: main(["stats", path]),
    "idx stats -": lambda: main(["stats", "-"]),
    "in": lambda: 77 in idxfile.open(path),
}
idxfile.stats(bytes.fromhex("00000801 00000001 07"))
print(peak_of(works[verb]), file=sys.stderr)
"""


@pytest.fixture(scope="module")
def long(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """300 MB of content."""
    path = tmp_path_factory.mktemp("long") / "x.idx.gz"
    header = idxfile.Header.of("uint8", (300_000, 1000))
    with gzip.open(path, "wb", compresslevel=1) as file:
        file.write(header.encode())
        for _ in range(300):
            file.write(bytes(1_000_000))
    yield path
    path.unlink()


@pytest.mark.skipif(sys.platform != "linux", reason="the peak of a process is read from /proc")
@pytest.mark.parametrize("verb", ["stats", "blocks", "idx stats", "idx stats -", "in"])
def test_memory_is_constant_whatever_the_size(verb: str, long: Path, tmp_path: Path) -> None:
    home = {**os.environ, "IDXFILE_HOME": str(tmp_path), "TMPDIR": "/nowhere"}
    with subprocess.Popen(["cat", str(long)], stdout=subprocess.PIPE) as cat:
        done = subprocess.run(
            [sys.executable, "-c", MEMORY, MEASURE, str(long), verb],
            stdin=cat.stdout,
            capture_output=True,
            text=True,
            check=False,
            env=home,
        )
        cat.kill()
    assert done.returncode == 0, done.stderr
    assert int(done.stderr.split()[-1]) < 60_000_000
    assert not list(tmp_path.iterdir())  # no index is made for it
