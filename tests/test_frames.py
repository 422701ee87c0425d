"""Zstandard frames: found by what they say, never by what a table says, and held to checksums."""

from __future__ import annotations

import struct
import sys
import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import idxfile
from conftest import checked_zst, idx_bytes, seekable_zst, zst_table, zstd
from idxfile import ChecksumError, FormatError, IdxWarning
from idxfile.codecs import INPUT_NBYTES, Inflater, codec_named
from idxfile.codecs import zstd as zstd_codec
from idxfile.source import frames, threads
from idxfile.source.frames import FramesInflater

ARRAY = np.random.default_rng(8).integers(0, 40, (60, 10, 10), np.uint8)
DATA = idx_bytes(ARRAY)


def plain(content: bytes) -> bytes:
    """A frame that says how much it holds, without a checksum."""
    return zstd.compress(content, options={zstd.CompressionParameter.checksum_flag: 0})


def silent(content: bytes) -> bytes:
    """A frame that says nothing of itself, as streams are written."""
    packer = zstd.ZstdCompressor()
    return packer.compress(content[:1]) + packer.compress(content[1:]) + packer.flush()


def packed(
    sizes: list[int], frame: Callable[[bytes], bytes], extra: tuple[int, ...] = ()
) -> tuple[bytes, list[tuple[int, ...]]]:
    """DATA in frames of these contents, and the right table."""
    stops = np.cumsum(sizes).tolist()
    parts = [DATA[stop - size : stop] for stop, size in zip(stops, sizes, strict=True)]
    made = [frame(part) for part in parts]
    entries = [(len(f), len(p), *extra) for f, p in zip(made, parts, strict=True)]
    return b"".join(made), entries


def sizes_of(cuts: list[int]) -> list[int]:
    places = sorted({0, len(DATA), *cuts})
    return [high - low for low, high in pairwise(places)]


ALIKE = sizes_of(list(range(1000, len(DATA), 1000)))
UNLIKE = sizes_of([500, 1500, 2000, 3500, 3501, 5000])
FRAMES = {"sized": plain, "checked": checked_zst, "silent": silent}


def same_or_told(data: bytes, items: Any = range(60)) -> None:
    """Every answer is that of the file inflated, or an error."""
    for item in items:
        try:
            with idxfile.open(data, spool_nbytes=1000) as x:
                found = x[item]
        except (FormatError, IdxWarning):  # what is left of a table may be junk
            continue
        assert np.array_equal(found, ARRAY[item])


@pytest.mark.parametrize("sizes", [ALIKE, UNLIKE], ids=["alike", "unlike"])
@pytest.mark.parametrize("kind", FRAMES)
def test_a_right_table_serves_if_it_can_be_held_against_the_frames(
    kind: str, sizes: list[int]
) -> None:
    body, entries = packed(sizes, FRAMES[kind])
    with idxfile.open(body + zst_table(entries), spool_nbytes=1000) as x:
        assert x.random_access == (kind != "silent" or sizes is ALIKE)
        assert np.array_equal(x[[59, 3]], ARRAY[[59, 3]])
    assert idxfile.check(body + zst_table(entries)).ok


@st.composite
def lies(draw: st.DrawFn, entries: list[tuple[int, ...]]) -> list[tuple[int, ...]]:
    """A table that still comes to the right sums, or nearly."""
    table = [list(entry) for entry in entries]
    numbers = st.integers(0, len(table) - 1)
    for _ in range(draw(st.integers(1, 3))):
        low, high, column = draw(numbers), draw(numbers), draw(st.integers(0, 1))
        match draw(st.sampled_from(["swap", "move", "empty", "join", "split", "alike"])):
            case "swap":
                table[low][column], table[high][column] = table[high][column], table[low][column]
            case "move":
                much = draw(st.integers(0, table[low][column]))
                table[low][column] -= much
                table[high][column] += much
            case "empty":
                table[high][1] += table[low][1] * (low != high)
                table[low][1] *= low == high
            case "join" if low + 1 < len(table):
                gone = table.pop(low + 1)
                table[low][0] += gone[0]
                table[low][1] += gone[1]
                numbers = st.integers(0, len(table) - 1)
            case "split":
                at = draw(st.integers(0, table[low][0])), draw(st.integers(0, table[low][1]))
                rest = [table[low][0] - at[0], table[low][1] - at[1], *table[low][2:]]
                table[low][:2] = at
                table.insert(low + 1, rest)
            case "alike":
                total, count = len(DATA), len(table)
                step = -(-total // count)
                for n, entry in enumerate(table):
                    entry[1] = max(0, min(step, total - n * step))
    return [tuple(entry) for entry in table]


@given(st.data(), st.sampled_from(["sized", "checked"]), st.sampled_from([ALIKE, UNLIKE]))
def test_no_table_makes_a_wrong_item(data: Any, kind: str, sizes: list[int]) -> None:
    body, entries = packed(sizes, FRAMES[kind])
    same_or_told(body + zst_table(data.draw(lies(entries))), range(0, 60, 7))


@given(st.data(), st.sampled_from(sorted(FRAMES)), st.booleans())
def test_no_table_of_frames_that_are_alike_makes_a_wrong_item(
    data: Any, kind: str, large: bool
) -> None:
    body, entries = packed(ALIKE, FRAMES[kind])
    with pytest.MonkeyPatch.context() as patch:
        if large:  # so large that the frames are not looked at
            patch.setattr(frames, "COUNTED_NBYTES", 0)
        same_or_told(body + zst_table(data.draw(lies(entries))), range(0, 60, 7))


def test_no_byte_of_a_table_makes_a_wrong_item() -> None:
    body, entries = packed(UNLIKE, plain)
    table = zst_table(entries)
    for place in range(len(table)):
        for flip in (0x01, 0x40, 0x80):
            lie = bytearray(table)
            lie[place] ^= flip
            same_or_told(body + bytes(lie), (0, 20, 59))
    for cut in range(len(table)):
        same_or_told(body + table[:cut], (0, 59))


@pytest.mark.parametrize("long", [False, True], ids=["of small frames", "of long frames"])
def test_a_check_holds_the_table_against_the_frames(
    long: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if long:  # they are not held whole
        monkeypatch.setattr(FramesInflater, "most_nbytes", 100)
    for kind in FRAMES.values():
        for sizes in (ALIKE, UNLIKE):
            body, entries = packed(sizes, kind)
            for low in range(len(entries) - 1):
                first, second = entries[low : low + 2]
                lie = [(first[0], first[1] + 1), (second[0], second[1] - 1)]
                data = body + zst_table([*entries[:low], *lie, *entries[low + 2 :]])
                (problem,) = idxfile.check(data).problems
                assert (problem.code, problem.level) == ("seek-table", "warning")
                assert problem.offset == sum(entry[0] for entry in entries[:low])
                with pytest.warns(IdxWarning, match="the table at the end"):
                    assert np.array_equal(idxfile.read(data), ARRAY)


# Checksums


def summed(content: bytes) -> int:
    from xxhash import xxh64_intdigest

    return xxh64_intdigest(content) & 0xFFFFFFFF


def raw_frame(content: bytes) -> bytes:
    """A frame whose content stands in it as it is, so that no damage to it is found."""
    block = (len(content) << 3 | 1).to_bytes(3, "little")
    return struct.pack("<IBI", 0xFD2FB528, 0xA0, len(content)) + block + content


ROADS: dict[str, Callable[[bytes], Any]] = {
    "item": lambda data: idxfile.open(data, spool_nbytes=1000)[20],
    "read": idxfile.read,
    "all by blocks": lambda data: idxfile.open(data, spool_nbytes=1000)[...],
    "stats": idxfile.stats,
}


@pytest.fixture(params=["of small frames", "of long frames"])
def damaged(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bytes:
    """A file whose damage only the checksums of its table show."""
    if request.param == "of long frames":  # they are not held whole
        monkeypatch.setattr(FramesInflater, "most_nbytes", 100)
    body, entries = packed(ALIKE, raw_frame)
    table = zst_table(
        [(*entry, summed(DATA[n * 1000 :][:1000])) for n, entry in enumerate(entries)]
    )
    assert np.array_equal(idxfile.read(body + table), ARRAY)
    place = body.index(ARRAY[20].tobytes()) + 7
    return body[:place] + bytes([body[place] ^ 1]) + body[place + 1 :] + table


@pytest.mark.parametrize("road", ROADS)
def test_the_checksums_of_a_table_are_held_against_the_content(road: str, damaged: bytes) -> None:
    with pytest.raises(ChecksumError, match="XXH64"):
        ROADS[road](damaged)
    problem = idxfile.check(damaged).problems[0]
    assert problem.code == "stream-checksum"


def test_without_the_package_there_are_no_checksums(
    damaged: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "xxhash", None)
    zstd_codec._xxhash.cache_clear()
    try:
        assert idxfile.read(damaged).shape == ARRAY.shape
    finally:
        zstd_codec._xxhash.cache_clear()


def test_a_frame_that_checks_itself_is_judged_by_itself() -> None:
    body, entries = packed(ALIKE, checked_zst, extra=(7,))
    assert np.array_equal(idxfile.read(body + zst_table(entries)), ARRAY)


# Side by side


def inflated(kind: type[Inflater], data: bytes, step: int) -> tuple[bytes, Any, int]:
    pieces = iter([data[at : at + step] for at in range(0, len(data), step)])
    inflater = kind(codec_named("zst"), lambda _: next(pieces, b""))
    content = b"".join(iter(lambda: inflater.read(7777), b""))
    return content, inflater.problems, inflater.members


@pytest.fixture(params=[1, 2])
def workers(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(threads, "WORKERS", request.param)
    return


@pytest.mark.usefixtures("workers")
@pytest.mark.parametrize("step", [97, 20_000, INPUT_NBYTES])
def test_frames_come_in_order(step: int) -> None:
    content = idx_bytes(np.random.default_rng(1).integers(0, 9, (900, 10, 10), np.uint8))
    skipped = struct.pack("<II", 0x184D2A53, 5) + b"12345"
    for frame in FRAMES.values():
        made = b"".join(frame(content[at : at + 7000]) for at in range(0, len(content), 7000))
        for data, expected in (
            (made, content),
            (made + skipped + made, content * 2),
            (skipped + made + bytes(100), content),
            (made + frame(content * 200) + made, content * 202),
            (seekable_zst(content), content),
        ):
            found, problems, _ = inflated(FramesInflater, data, step)
            assert found == expected
            assert problems == []


@pytest.mark.usefixtures("workers")
@pytest.mark.parametrize("kind", FRAMES)
def test_a_fault_is_found_where_the_plain_reader_finds_it(kind: str) -> None:
    body, _ = packed(ALIKE, FRAMES[kind])
    for place in range(0, len(body), 13):
        data = body[:place] + bytes([body[place] ^ 0x55]) + body[place + 1 :]
        for lie in (data, body[:place]):
            found, plain_found = (
                inflated(k, lie, INPUT_NBYTES) for k in (FramesInflater, Inflater)
            )
            assert found == plain_found


def test_a_bomb_is_not_held_whole() -> None:
    """Four bytes for 128 KiB: a hundred kilobytes would come to gigabytes."""
    block = (1 << 17 << 3 | 1 << 1).to_bytes(3, "little") + b"\0"
    frame = struct.pack("<IBB", 0xFD2FB528, 0, 0x50) + block * 20_000 + b"\1\0\0"
    assert FramesInflater.span(frame, 0) is None
    pieces = iter([frame * 2, b""])
    inflater = FramesInflater(codec_named("zst"), lambda _: next(pieces))
    assert inflater.read(10) == bytes(10)


def test_frames_to_be_skipped_cost_little() -> None:
    data = (struct.pack("<II", 0x184D2A50, 1) + b"x") * 50_000 + checked_zst(DATA)
    start = time.process_time()
    assert np.array_equal(idxfile.read(data), ARRAY)
    assert time.process_time() - start < 2.5
