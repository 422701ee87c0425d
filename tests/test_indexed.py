"""Random access in foreign gzip files, by an index that is made once and kept."""

from __future__ import annotations

import gzip
import lzma
import os
import pickle
import pty
import subprocess
import sys
import time
import zlib
from contextlib import closing, suppress
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import idxfile
from conftest import blocked_gz, idx_bytes
from idxfile import ChecksumError, FormatError, Header, TruncatedError
from idxfile.source import indexed, open_source
from idxfile.source.access import access_of
from idxfile.source.telling import told

ARRAY = np.random.default_rng(3).integers(0, 40, (20_000, 10, 10), np.uint8)
DATA = idx_bytes(ARRAY)


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file whose index has many points of entry."""
    monkeypatch.setenv("IDXFILE_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(indexed, "SPACING_NBYTES", 1 << 17)
    path = tmp_path / "x.idx.gz"
    path.write_bytes(gzip.compress(DATA, mtime=0))
    return path


def indexes(path: Path) -> list[Path]:
    return sorted((path.parent / "home").rglob("*.gzidx"))


def opened(path: Path, spool_nbytes: int = 1000) -> Any:
    """Beyond 1,000 bytes it is worth an index."""
    return idxfile.open(path, spool_nbytes=spool_nbytes)


def test_items_come_by_an_index_that_is_made_once(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(path) as x:
        assert not x.random_access  # the first item costs a pass over the file
        assert np.array_equal(x[[19_999, 7]], ARRAY[[19_999, 7]])
        assert x.random_access
        assert np.array_equal(x[...], ARRAY)
    (index,) = indexes(path)
    monkeypatch.setattr(indexed.IndexedContent, "_make", lambda *_: pytest.fail("made again"))
    for spool_nbytes in (1000, 1 << 28):  # once it is there, it serves small files too
        with opened(path, spool_nbytes) as x:
            assert x.random_access
            assert np.array_equal(x[12_345], ARRAY[12_345])
            with pickle.loads(pickle.dumps(x)) as y:
                assert np.array_equal(y[3], ARRAY[3])
    assert indexes(path) == [index]


def test_whoever_waits_is_told_how_far_an_index_is(path: Path) -> None:
    told_of: list[tuple[int, int]] = []
    with told(lambda _, *how_far: told_of.append(how_far)), opened(path) as x:
        assert np.array_equal(x[7], ARRAY[7])
        size = path.stat().st_size
        assert len(told_of) > 1
        assert sorted(told_of) == told_of  # each time more
        assert [done for done, total in told_of if done == total] == [size]
        x[19_999]
        assert told_of[-1] == (size, size)
        count = len(told_of)
        assert np.array_equal(x[5], ARRAY[5])
        assert len(told_of) == count  # it is made once


def test_the_end_is_told_also_where_no_index_comes_of_it(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[-6] ^= 1
    path.write_bytes(data)
    told_of: list[Any] = []
    tell = told(lambda *how_far: told_of.append(how_far))
    with tell, opened(path) as x, pytest.raises(ChecksumError):
        x[7]
    ended = [what for what, done, total in told_of if done == total]
    assert ended == ["index x.idx.gz", "inflate x.idx.gz"]


def test_whoever_waits_is_told_how_far_all_is_inflated(tmp_path: Path) -> None:
    """Where it goes into a file; what fits into memory is there before anybody asks."""
    told_of: list[Any] = []
    array = np.zeros((5_000, 28, 28), "uint8")
    data = lzma.compress(idx_bytes(array), preset=0)
    (tmp_path / "x.xz").write_bytes(data)
    with told(lambda *how_far: told_of.append(how_far)), opened(tmp_path / "x.xz") as x:
        assert not x[4_999].any()
    total = 16 + array.nbytes + 1  # one byte more, which must not be there
    assert {(what, of) for what, _, of in told_of} == {("inflate x.xz", total)}
    assert sorted(told_of) == told_of
    assert [done == total for _, done, _ in told_of] == [False] * (len(told_of) - 1) + [True]
    assert len(told_of) > 2


def test_a_terminal_sees_a_bar_while_an_index_is_made(path: Path) -> None:
    """Beyond 256 MiB of content; the items come behind the bar, and without one the next time."""
    header = Header.of("uint8", ((1 << 28) // 784 + 10, 28, 28))
    with gzip.open(path, "wb", compresslevel=1) as file:
        file.write(header.encode())
        for start in range(0, header.shape[0], 1000):
            file.write(bytes(784 * min(1000, header.shape[0] - start)))
    shown = []
    for _ in range(2):
        ours, theirs = pty.openpty()
        words = [sys.executable, "-m", "idxfile", "show", path, "300000", "--graphics", "ascii"]
        with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=theirs) as process:
            os.close(theirs)
            shown.append(b"")
            with suppress(OSError):  # the other end is closed
                while piece := os.read(ours, 4096):
                    shown[-1] += piece
            os.close(ours)
            assert process.communicate()[0].split() == [b"300000"]
        assert process.returncode == 0
    assert b"index x.idx.gz" in shown[0]
    assert shown[0].endswith(b"\r\n")
    assert b"100%" in shown[0]
    assert shown[1] == b""


def test_info_tells_of_an_index(path: Path) -> None:
    with closing(open_source(path, spool_nbytes=1000)) as source:
        assert access_of(source, len(DATA)) == "index-on-use"
    assert idxfile.info(path).access == "whole"  # as open() has it: so small a file is kept
    with opened(path) as x:
        x[3]
    assert idxfile.info(path).access == "index"
    path.write_bytes(gzip.compress(DATA, 1))
    assert idxfile.info(path).access == "whole"


def test_members_and_padding(path: Path) -> None:
    half = len(DATA) // 2
    packed = gzip.compress(DATA[:half]) + gzip.compress(DATA[half:])
    for data in (packed, packed + bytes(100)):
        path.write_bytes(data)
        with opened(path) as x:
            assert np.array_equal(x[[19_999, 7]], ARRAY[[19_999, 7]])


def test_who_wants_all_makes_no_index(path: Path) -> None:
    with opened(path) as x:
        assert np.array_equal(np.concatenate(list(x.blocks())), ARRAY)
    with opened(path) as x:
        assert np.array_equal(x[...], ARRAY)
    assert indexes(path) == []


def test_another_file_under_the_name_gets_an_index_of_its_own(path: Path) -> None:
    with opened(path) as x:
        assert np.array_equal(x[5], ARRAY[5])
    path.write_bytes(gzip.compress(idx_bytes(99 - ARRAY)))
    with opened(path) as x:
        assert np.array_equal(x[5], 99 - ARRAY[5])
    assert len(indexes(path)) == 2


def test_a_damaged_index_is_not_used(path: Path) -> None:
    with opened(path) as x:
        assert np.array_equal(x[5], ARRAY[5])
    (index,) = indexes(path)
    data = bytearray(index.read_bytes())
    data[len(data) // 2] ^= 1
    index.write_bytes(data)
    with opened(path) as x:
        assert not x.random_access
        assert np.array_equal(x[5], ARRAY[5])


def renamed(index: Path, name: str) -> None:
    index.rename(index.with_name(name))


def shown(path: Path, array: Any = ARRAY) -> None:
    """Whatever lies in the cache folder, the items are those of the file."""
    with opened(path) as x:
        assert np.array_equal(x[[19_999, 11_111, 5]], array[[19_999, 11_111, 5]])


def test_no_index_in_the_cache_makes_a_wrong_item(path: Path, tmp_path: Path) -> None:
    shown(path)
    (index,) = indexes(path)
    right = index.read_bytes()
    other = tmp_path / "other.idx.gz"
    other.write_bytes(gzip.compress(idx_bytes(39 - ARRAY)))
    shown(other, 39 - ARRAY)
    (theirs,) = {*indexes(path)} - {index}
    key = index.name.partition("-")[0]
    lies = [right[:cut] for cut in (0, 7, len(right) // 2, len(right) - 1)]
    lies += [right + b"\0", theirs.read_bytes()]
    for lie in lies:
        index.write_bytes(lie)
        shown(path)
    for lie in lies:  # under the name that would be right by its own checksum alone
        for left in {*indexes(path)} - {theirs}:
            left.unlink()
        (index.parent / f"{key}-{zlib.crc32(lie):08x}.gzidx").write_bytes(lie)
        shown(path)
    renamed(theirs, f"{key}-{theirs.name.partition('-')[2]}")
    shown(path)


def test_an_index_that_the_package_no_longer_reads_is_made_anew(path: Path) -> None:
    shown(path)
    (index,) = indexes(path)
    with opened(path) as x:
        x[0]
        mark = x._ranges._mark
    old = index.with_name("old")
    old.write_bytes(b"of an older version")
    index.unlink()
    renamed(old, f"{index.name.partition('-')[0]}-{mark(str(old))}.gzidx")
    shown(path)
    assert indexes(path) == [index]


def test_an_index_that_is_neither_read_nor_removed_is_no_reason_to_fail(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The cache belongs to somebody else."""

    def refused(name: str) -> Any:
        real = getattr(os, name)

        def call(*places: Any, **options: Any) -> Any:
            if str(places[-1]).endswith(".gzidx"):
                raise PermissionError(13, "Permission denied")
            return real(*places, **options)

        return call

    with opened(path) as x:
        x[0]
        key, mark = x._ranges._key, x._ranges._mark
    (index,) = indexes(path)
    index.write_bytes(b"of an older version")
    renamed(index, f"{key}-{mark(str(index))}.gzidx")
    for name in ("replace", "unlink"):
        monkeypatch.setattr(os, name, refused(name))
    shown(path)


def test_a_file_that_was_replaced_with_its_time_gets_another_index(path: Path) -> None:
    packed = [gzip.compress(idx_bytes(a), compresslevel=0, mtime=0) for a in (ARRAY, 39 - ARRAY)]
    assert len(packed[0]) == len(packed[1])
    for data, array in zip(packed, (ARRAY, 39 - ARRAY), strict=True):
        path.write_bytes(data)
        os.utime(path, (10**9, 10**9))
        shown(path, array)
    assert len(indexes(path)) == 2


def _made(path: Path, queue: Any) -> None:
    try:
        shown(path)
        queue.put("right")
    except BaseException as error:
        queue.put(repr(error))


def test_two_processes_that_make_it_at_once(path: Path) -> None:
    context = get_context("fork")
    queue = context.SimpleQueue()
    children = [context.Process(target=_made, args=(path, queue)) for _ in range(3)]
    for child in children:
        child.start()
    assert [queue.get() for _ in children] == ["right"] * 3
    for child in children:
        child.join(30)
    shown(path)
    assert indexes(path)
    assert not [p for p in (path.parent / "home" / "indexes").iterdir() if p.suffix != ".gzidx"]


def test_a_folder_that_cannot_be_made(path: Path) -> None:
    home = path.parent / "home"
    home.mkdir()
    (home / "indexes").write_bytes(b"no folder")
    shown(path)


def flipped(data: bytes) -> bytes:
    place = len(data) // 2
    return data[:place] + bytes([data[place] ^ 0x10]) + data[place + 1 :]


FAULTS: dict[str, tuple[Any, Any]] = {
    "cut": (lambda data: data[:-9], TruncatedError),
    "cut in the middle": (lambda data: data[: len(data) // 2], TruncatedError),
    "wrong checksum": (lambda data: data[:-8] + b"\1\2\3\4" + data[-4:], ChecksumError),
    "flipped": (flipped, FormatError),
    "longer": (lambda data: data + gzip.compress(b"more"), FormatError),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_told_as_without_an_index(path: Path, fault: str) -> None:
    damage, error = FAULTS[fault]
    path.write_bytes(damage(path.read_bytes()))
    with opened(path) as x, pytest.raises(error):
        x[5]
    assert indexes(path) == []


def test_without_the_package_it_is_spooled(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "rapidgzip", None)
    with opened(path) as x:
        assert np.array_equal(x[5], ARRAY[5])
    assert indexes(path) == []


def test_a_cache_that_cannot_be_written_is_no_reason_to_fail(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("IDXFILE_HOME", os.devnull)
    with opened(path) as x:
        assert np.array_equal(x[5], ARRAY[5])


def _item(x: Any, queue: Any) -> None:
    queue.put(np.array_equal(x[12_345], ARRAY[12_345]))


def test_a_forked_process_has_a_reader_of_its_own(path: Path) -> None:
    context = get_context("fork")
    with opened(path) as x:
        assert np.array_equal(x[7], ARRAY[7])
        queue = context.SimpleQueue()
        child = context.Process(target=_item, args=(x, queue))
        child.start()
        child.join(30)
        assert child.exitcode == 0
        assert queue.get()
        assert np.array_equal(x[8], ARRAY[8])


@pytest.mark.parametrize("fate", ["replaced", "removed"])
@pytest.mark.parametrize("proc", [True, False])
def test_the_file_that_was_opened_is_read_whatever_becomes_of_its_name(
    path: Path, fate: str, proc: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown(path)
    if not proc:  # as where the system has no such folder
        exists = os.path.exists
        monkeypatch.setattr(
            os.path, "exists", lambda p: not str(p).startswith("/proc") and exists(p)
        )
    with opened(path) as x:
        if fate == "replaced":
            other = path.with_name("other.idx.gz")
            other.write_bytes(gzip.compress(idx_bytes(39 - ARRAY)))
            os.replace(other, path)
        else:
            path.unlink()
        assert np.array_equal(x[12_345], ARRAY[12_345])


def test_what_was_left_by_one_who_was_killed_is_removed(path: Path) -> None:
    folder = path.parent / "home" / "indexes"
    for name, age in ((".old", 4000), (".new", 1000)):
        (folder / name).mkdir(parents=True)
        (folder / name / "index").write_bytes(b"half an index")
        os.utime(folder / name, (time.time() - age,) * 2)
    shown(path)
    assert not (folder / ".old").exists()
    assert (folder / ".new" / "index").exists()


@pytest.mark.parametrize("made", [True, False])
def test_a_program_may_end_while_a_daemon_reads(path: Path, made: bool) -> None:
    code = """
import sys, threading, idxfile
from idxfile.source import indexed
path, made = sys.argv[1], sys.argv[2] == "True"
x = idxfile.open(path, spool_nbytes=1000)
if made:
    x[5]
begun = threading.Event()
def read_on():
    while True:
        begun.set()
        x[7]
        idxfile.open(path, spool_nbytes=1000)[3]
threading.Thread(target=read_on, daemon=True).start()
begun.wait()
"""
    for _ in range(3):
        done = subprocess.run(
            [sys.executable, "-W", "ignore", "-c", code, str(path), str(made)],
            capture_output=True,
            text=True,
            check=False,
        )
        assert (done.returncode, done.stderr) == (0, "")


def test_blocks_that_are_not_as_they_should_be_are_no_matter_for_an_index(
    path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """rapidgzip would print what it thinks of them."""
    data = bytearray(blocked_gz(DATA))
    second = int.from_bytes(data[16:18], "little") + 1
    data[second + 16] ^= 1  # where the member says how long it is
    path.write_bytes(data)
    shown(path)
    assert capfd.readouterr() == ("", "")
    assert indexes(path) == []
