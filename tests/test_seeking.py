"""Random access in compressed files: one block is inflated, or all of it; never a wrong item."""

from __future__ import annotations

import gzip
import pickle
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import idxfile
from conftest import assert_same, blocked_gz, idx_bytes, seekable_zst
from idxfile import ChecksumError, FormatError, TrailingDataError, TruncatedError
from idxfile.codecs import INPUT_NBYTES, Inflater, codec_named
from idxfile.source import blocked, seeking, threads
from idxfile.source.blocked import BlockedInflater

ARRAY = np.random.default_rng(3).integers(0, 40, (9000, 10, 10), np.uint8)
WIDE = np.random.default_rng(4).integers(-(2**31), 2**31, (5000, 30), np.int32)


def table_of(data: bytes) -> bytes:
    """The `.gzi` that bgzip would write beside a blocked gzip file."""
    at, content, pairs = 0, 0, []
    while at < len(data):
        length = blocked.member_nbytes(data, at)
        assert length is not None
        content += int.from_bytes(data[at + length - 4 : at + length], "little")
        at += length
        pairs.append(struct.pack("<QQ", at, content))
    pairs = pairs[:-2]  # neither the end nor the empty member is listed
    return struct.pack("<Q", len(pairs)) + b"".join(pairs)


PACK: dict[str, Callable[[bytes], bytes]] = {
    "gz": lambda data: idxfile.encode(idxfile.read(data), codec="gz", blocked=True),
    "small gz": blocked_gz,
    "zst": seekable_zst,
    "zst without checksums": lambda data: seekable_zst(data, checksums=False),
}


@pytest.fixture(params=PACK)
def packed(request: pytest.FixtureRequest) -> Callable[[Any], bytes]:
    return lambda array: PACK[request.param](idx_bytes(array))


@pytest.fixture
def inflations(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How much each block that was inflated by itself came to."""
    found: list[int] = []
    original = seeking.BlockedContent._content

    def counted(self: Any, block: Any, data: Any) -> bytes:
        content = original(self, block, data)
        found.append(len(content))
        return content

    monkeypatch.setattr(seeking.BlockedContent, "_content", counted)
    return found


@pytest.mark.parametrize("array", [ARRAY, WIDE], ids=["bytes", "wide"])
@pytest.mark.parametrize("kind", ["path", "bytes", "not mapped"])
def test_items_are_those_of_the_array(
    packed: Callable[[Any], bytes], array: Any, kind: str, tmp_path: Path
) -> None:
    data: Any = packed(array)
    if kind != "bytes":
        (tmp_path / "x").write_bytes(data)
        data = tmp_path / "x"
    with idxfile.open(data, mmap=kind != "not mapped") as x:
        assert x.random_access
        for key in (7, -1, slice(5, 30), slice(None, 9, 3), [4000, 3, 4000], (slice(2), 0)):
            assert_same(np.asarray(x[key]), np.asarray(array[key]))
        assert_same(x.take([[4999, 0], [1, 1]]), array[[[4999, 0], [1, 1]]])
        assert_same(np.concatenate(list(x.blocks(block_nbytes=70_000))), array)
        assert_same(x[...], array)
        assert_same(x[3], array[3])
    assert_same(idxfile.read(data), array)
    assert_same(idxfile.read(data, items=slice(100, 200)), array[100:200])
    assert idxfile.check(data).ok


def test_one_item_inflates_one_block(inflations: list[int]) -> None:
    data = idxfile.encode(ARRAY, codec="gz", blocked=True)
    with idxfile.open(data) as x:
        assert np.array_equal(x[4000], ARRAY[4000])
        assert sum(inflations) <= 2 * 0xFF00
        before = len(inflations)
        assert np.array_equal(x[4001], ARRAY[4001])
        assert len(inflations) == before  # the block is still there


def test_what_is_read_again_and_again_is_inflated_once(inflations: list[int]) -> None:
    data = idxfile.encode(ARRAY, codec="gz", blocked=True)
    items = np.random.default_rng(0).permutation(9000)
    with idxfile.open(data) as x:
        for item in items:
            assert np.array_equal(x[item], ARRAY[item])
    assert sum(inflations) < 3 * ARRAY.nbytes


def test_a_file_beyond_the_spool_stays_in_blocks(inflations: list[int]) -> None:
    data = idxfile.encode(ARRAY, codec="gz", blocked=True)
    with idxfile.open(data, spool_nbytes=1000) as x:
        assert np.array_equal(x[...], ARRAY)
        assert sum(inflations) >= ARRAY.nbytes
        assert np.array_equal(x[5], ARRAY[5])


def test_mode_c_is_writeable(packed: Callable[[Any], bytes]) -> None:
    with idxfile.open(packed(ARRAY), mode="c") as x:
        x[3] = 9
        assert x[3].min() == 9
    with idxfile.open(packed(ARRAY)) as x:
        assert np.array_equal(x.raw, ARRAY)


def test_a_pickle_travels(tmp_path: Path) -> None:
    path = tmp_path / "x.idx.gz"
    idxfile.write(path, ARRAY, blocked=True)
    with idxfile.open(path) as x, pickle.loads(pickle.dumps(x)) as y:
        assert np.array_equal(y[8999], ARRAY[8999])


# What is wrong is told as by anybody who inflates all of it


def damaged(at: float) -> Callable[[bytes], bytes]:
    def damage(data: bytes) -> bytes:
        place = int(len(data) * at)
        return data[:place] + bytes([data[place] ^ 0x55]) + data[place + 1 :]

    return damage


def _wrong_length(data: bytes) -> bytes:
    """The third member says that it holds less than it does."""
    at = 0
    for _ in range(3):
        at += blocked.member_nbytes(data, at) or 0
    return data[: at - 4] + struct.pack("<I", 1000) + data[at:]


FAULTS: dict[str, Any] = {
    "cut": (lambda data: data[: len(data) // 2], TruncatedError),
    "cut in a header": (
        lambda data: data[: (blocked.member_nbytes(data) or 0) + 5],
        TruncatedError,
    ),
    "flipped": (damaged(0.4), FormatError),
    "wrong length": (_wrong_length, ChecksumError),
    "more": (lambda data: data[:-28] + gzip.compress(b"more", mtime=0), TrailingDataError),
}


@pytest.mark.parametrize("limit", [seeking.COUNTED_NBYTES, 0], ids=["counted", "by hops"])
@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_told(fault: str, limit: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seeking, "COUNTED_NBYTES", limit)
    damage, error = FAULTS[fault]
    data = damage(idxfile.encode(ARRAY, codec="gz", blocked=True))
    with pytest.raises(error), idxfile.open(data) as x:
        for item in (0, 4000, 8999):
            assert np.array_equal(x[item], ARRAY[item])
        for block in x.blocks():
            assert len(block)
    with pytest.raises(error):
        idxfile.read(data)
    report = idxfile.check(data)
    assert not report.ok
    plain = idxfile.check(gzip.compress(b""))
    assert plain.problems


@pytest.mark.parametrize("at", [0.1, 0.5, 0.9, 0.9999])
def test_a_damaged_zstd_file_is_told(at: float) -> None:
    data = damaged(at)(seekable_zst(idx_bytes(ARRAY)))
    try:
        with idxfile.open(data) as x:
            assert np.array_equal(np.stack([x[n] for n in range(0, 9000, 77)]), ARRAY[::77])
    except FormatError:
        pass
    else:
        assert at > 0.9, "the table alone"


# An index beside the file


@pytest.fixture
def large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file that is held to be so large that its members are not counted."""
    monkeypatch.setattr(seeking, "COUNTED_NBYTES", 0)
    path = tmp_path / "x.idx.gz"
    idxfile.write(path, ARRAY, blocked=True)
    return path


def test_a_table_beside_is_used_if_it_is_right(large: Path) -> None:
    table = table_of(large.read_bytes())
    for wrong, right in ((table[:-8], False), (table[:8], False), (table, True)):
        Path(f"{large}.gzi").write_bytes(wrong)
        with idxfile.open(large) as x:
            assert x.random_access
            assert np.array_equal(x[[8999, 4000]], ARRAY[[8999, 4000]])
            members = x._ranges._blocks
            assert (members._counted and len(members._packed) > 10) == right or not right


def test_a_small_file_needs_no_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seeking, "_table_beside", lambda *_: pytest.fail("it was read"))
    path = tmp_path / "x.idx.gz"
    idxfile.write(path, ARRAY, blocked=True)
    with idxfile.open(path) as x:
        assert np.array_equal(x[[8999, 4000]], ARRAY[[8999, 4000]])


def same_or_told(path: Path, items: Any = range(0, 9000, 499)) -> None:
    """Every answer is that of the file inflated, or an error."""
    for item in items:
        with idxfile.open(path, spool_nbytes=1000) as x:
            try:
                found = x[item]
            except FormatError:
                continue
            assert np.array_equal(found, ARRAY[item])


def test_no_damaged_table_makes_a_wrong_item(large: Path) -> None:
    table = table_of(large.read_bytes())
    random = np.random.default_rng(11)
    words = np.frombuffer(table, "<u8")
    lies: list[Any] = [table[:cut] for cut in (0, 4, 8, 17, len(table) - 16)]
    for word in range(words.size):
        for change in (1, -1, 65280, -65280, 2**40):
            lie = words.copy()
            lie[word] = (int(lie[word]) + change) % 2**64
            lies.append(lie.tobytes())
    for low, high in random.integers(1, words.size, (60, 2)):
        lie = words.copy()
        lie[[low, high]] = lie[[high, low]]
        lies.append(lie.tobytes())
        lie = words.copy()
        lie[low] = (int(lie[low]) + 100) % 2**64
        lie[high] = (int(lie[high]) - 100) % 2**64
        lies.append(lie.tobytes())
    pairs = words[1:].reshape(-1, 2)
    for gone in range(len(pairs)):
        lies.append(struct.pack("<Q", len(pairs) - 1) + np.delete(pairs, gone, 0).tobytes())
        twice = np.insert(pairs, gone, pairs[gone], 0)
        lies.append(struct.pack("<Q", len(twice)) + twice.tobytes())
    for lie in lies:
        Path(f"{large}.gzi").write_bytes(lie)
        same_or_told(large, (0, 700, 4500, 8999))


def test_a_table_of_another_file_makes_no_wrong_item(large: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.gz"
    for array in (ARRAY[::-1], 39 - ARRAY, np.roll(ARRAY, 50_000)):  # as long, packed otherwise
        idxfile.write(other, array, blocked=True)
        Path(f"{large}.gzi").write_bytes(table_of(other.read_bytes()))
        same_or_told(large)


@pytest.mark.parametrize("limit", [seeking.COUNTED_NBYTES, 0], ids=["counted", "by hops"])
def test_no_field_of_a_member_makes_a_wrong_item(
    limit: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(seeking, "COUNTED_NBYTES", limit)
    path = tmp_path / "x.idx.gz"
    data = idxfile.encode(ARRAY, codec="gz", blocked=True)
    begin = blocked.member_nbytes(data) or 0
    end = begin + (blocked.member_nbytes(data, begin) or 0)
    places = [*range(begin, begin + 18), *range(end - 8, end)]
    for place in places:
        for flip in (0x01, 0x10, 0x80):
            lie = bytearray(data)
            lie[place] ^= flip
            path.write_bytes(lie)
            same_or_told(path, (0, 700, 1000, 8999))


# The inflater that has many hands


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("step", [97, 20_000, INPUT_NBYTES])
def test_members_come_in_order(workers: int, step: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "WORKERS", workers)
    raw = idx_bytes(ARRAY[:3000])
    stored = idxfile.encode(ARRAY[:3000], codec="gz", blocked=True)
    for data, content in (
        (stored, raw),
        (stored + bytes(100), raw),
        (stored + gzip.compress(raw), raw + raw),
        (stored + gzip.compress(raw) + stored, raw * 3),
        (blocked_gz(raw[:3000]), raw[:3000]),
    ):
        inflater = BlockedInflater(codec_named("gz"), _reader(data, step))
        assert b"".join(iter(lambda i=inflater: i.read(7777), b"")) == content
        assert inflater.problems == []
        assert inflater.nbytes == len(content)


def _reader(data: bytes, step: int) -> Callable[[int], bytes]:
    position = 0

    def read(limit: int) -> bytes:
        nonlocal position
        piece = data[position : position + min(limit, step)]
        position += len(piece)
        return piece

    return read


@pytest.mark.parametrize("at", [0.01, 0.3, 0.6, 0.999])
def test_a_fault_is_found_where_the_plain_reader_finds_it(at: float) -> None:
    data = damaged(at)(idxfile.encode(ARRAY, codec="gz", blocked=True))
    found = []
    for kind in (BlockedInflater, Inflater):
        inflater = kind(codec_named("gz"), _reader(data, INPUT_NBYTES))
        content = b"".join(iter(lambda i=inflater: i.read(1 << 17), b""))
        found.append((content, inflater.problems, inflater.members))
    assert found[0] == found[1]
    assert found[0][1]


@pytest.mark.parametrize("name", ["x.idx.gz", "x.idx.zst"])
def test_a_file_that_is_cut_while_it_is_open_is_told(name: str, tmp_path: Path) -> None:
    """In a child: a map of it would end the process."""
    array = np.random.default_rng(5).integers(0, 250, (20_000, 10, 10), np.uint8)
    data = idx_bytes(array)
    path = tmp_path / name
    path.write_bytes(
        blocked_gz(data) if name.endswith("gz") else seekable_zst(data, checksums=False)
    )
    code = """
import os, sys, idxfile
with idxfile.open(sys.argv[1], spool_nbytes=1000) as x:
    x[0]
    os.truncate(sys.argv[1], os.path.getsize(sys.argv[1]) // 2)
    try:
        x[19_000]
    except idxfile.TruncatedError as error:
        print(error.code)
"""
    done = subprocess.run(
        [sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout.split()) == (0, ["stream-truncated"]), done.stderr
