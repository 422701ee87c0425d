"""Reading what is wrong, huge or hostile: told at once, at little cost, and nothing invented."""

from __future__ import annotations

import contextlib
import gzip
import os
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import idxfile
from conftest import (
    COMPRESS,
    KINDS,
    MEASURE,
    PACKINGS,
    SEEKABLE,
    STREAMS,
    H,
    OnlyRead,
    Places,
    assert_same,
    bits,
    idx_bytes,
)
from idxfile.batching import random_order
from idxfile.codecs import codec_of_content
from idxfile.errors import FormatError, IdxError, TruncatedError, UnsupportedError

MIB = 1 << 20


def read_lazily(file: Any) -> Any:
    """All of a file through a lazy array."""
    with idxfile.open(file) as x:
        return np.asarray(x)


ROADS = {"read": idxfile.read, "open": read_lazily, "items": lambda f: idxfile.read(f, slice(None))}


# Every file cut at every byte

CUT = bits("int16", 2, 3)


@pytest.mark.parametrize("road", ROADS)
@pytest.mark.parametrize("kind", [*SEEKABLE, *STREAMS])
def test_a_file_cut_at_any_byte_is_truncated(kind: str, road: str, places: Places) -> None:
    data = idx_bytes(CUT)
    for length in range(len(data)):
        file = KINDS[kind](places, data[:length])
        with pytest.raises(TruncatedError) as caught:
            ROADS[road](file)
        assert caught.value.offset == length
        assert caught.value.hint
        places.stack.close()


def whole_already(packing: str, packed: bytes) -> int:
    """From how many bytes on a compressed file holds all: what may follow is padding."""
    if "padded" in packing:
        return len(packed) - 512
    if packing == "gz blocked":
        return len(packed) - len(gzip.compress(b"", mtime=0)) - 8  # the empty member at the end
    if packing == "zst skippable":
        return len(packed) - 13
    return len(packed)


@pytest.mark.parametrize("road", ROADS)
@pytest.mark.parametrize("packing", PACKINGS)
def test_a_compressed_file_cut_at_any_byte_is_truncated(packing: str, road: str) -> None:
    packed = PACKINGS[packing](idx_bytes(CUT))
    enough = whole_already(packing, packed)
    for length in range(len(packed)):
        if length == enough or ("padded" in packing and length > enough):
            assert_same(ROADS[road](packed[:length]), CUT)
            continue
        if length > enough:  # cut inside what follows the data: a member, or junk of a few bytes
            with pytest.raises((TruncatedError, idxfile.IdxWarning)):
                ROADS[road](packed[:length])
            continue
        with pytest.raises(FormatError) as caught:
            ROADS[road](packed[:length])
        begins = codec_of_content(packed[:length])
        assert not begins or isinstance(caught.value, TruncatedError)


@pytest.mark.parametrize("name", COMPRESS)
def test_a_cut_stream_is_told_by_bytes_of_bytes(name: str) -> None:
    array = bits("uint8", 3000)
    packed = COMPRESS[name](idx_bytes(array))
    for road in ROADS.values():
        with pytest.raises(TruncatedError) as caught:
            road(packed[:-9])
        assert f"the {name} stream is cut: " in str(caught.value)
        assert " of 3,008 bytes inflated" in str(caught.value)
        assert caught.value.expected == 3008


@pytest.mark.parametrize("name", COMPRESS)
def test_no_flipped_byte_of_a_compressed_file_goes_unnoticed(name: str) -> None:
    packed = COMPRESS[name](idx_bytes(CUT))
    for at in range(len(packed)):
        for flip in (0x01, 0x80):
            flipped = bytearray(packed)
            flipped[at] ^= flip
            for road in ROADS.values():
                with contextlib.suppress(IdxError, idxfile.IdxWarning):
                    assert_same(road(bytes(flipped)), CUT)


def test_a_wrong_checksum_is_told_with_both(places: Places) -> None:
    packed = bytearray(gzip.compress(idx_bytes(CUT)))
    packed[-8:-4] = bytes(4)
    for road in ROADS.values():
        with pytest.raises(
            idxfile.ChecksumError, match="stores CRC-32 00000000, its content gives"
        ):
            road(places.path(bytes(packed)))


# Any bytes at all


def looked_at(data: bytes) -> None:
    for file in (data, OnlyRead(data), gzip.compress(data, 1)):
        for road in ROADS.values():
            try:
                found = road(file)
            except (IdxError, idxfile.IdxWarning, MemoryError):
                continue
            except IndexError:
                assert road is ROADS["items"]  # a scalar has no items
                continue
            assert isinstance(found, np.ndarray)
            assert found.nbytes <= len(data)


@given(st.binary(max_size=64))
def test_no_bytes_break_a_reader(data: bytes) -> None:
    looked_at(data)


@given(
    st.sampled_from([8, 9, 11, 12, 13, 14]),
    st.lists(st.sampled_from([0, 1, 2, 3, 255, 65536, 2**31, 2**32 - 1]), max_size=70),
    st.binary(max_size=40),
)
def test_no_header_breaks_a_reader(code: int, dimensions: list[int], data: bytes) -> None:
    looked_at(H(code, *dimensions) + data)


@given(st.sampled_from([0x51, 0x52, 0x55, 0x58]), st.binary(max_size=48), st.booleans())
def test_no_lush_header_breaks_a_reader(kind: int, data: bytes, big: bool) -> None:
    magic = bytes([0x1E, 0x3D, 0x4C, kind])
    looked_at((magic if big else magic[::-1]) + data)


# Sizes

BOMBS = {
    "3 TB": (H(0x08, 2**32 - 1, 28, 28), "3,367,254,359,280 missing"),
    "over 64 bits": (H(0x08, *(65536,) * 4), "18,446,744,073,709,551,616 missing"),
    "in 9 dimensions": (H(0x0E, *(2**32 - 1,) * 9), "missing"),
    "in 60 dimensions": (H(0x0C, *(2**32 - 1,) * 60), "missing"),
    "1 GB": (H(0x0C, 2**28), "1,073,741,824 missing"),
}


@pytest.mark.parametrize("road", ROADS)
@pytest.mark.parametrize(
    ("bomb", "kind"),
    [(bomb, kind) for bomb in BOMBS for kind in ("str", "pipe", "gz", "zst")]
    + [("in 9 dimensions", kind) for kind in KINDS],
)
def test_a_header_is_not_believed(bomb: str, kind: str, road: str, places: Places) -> None:
    data, message = BOMBS[bomb]
    file = KINDS[kind](places, data)
    tracemalloc.start()
    try:
        start = time.process_time()
        with pytest.raises(TruncatedError, match=message):
            ROADS[road](file)
        assert time.process_time() - start < 0.1
        assert tracemalloc.get_traced_memory()[1] < 9 * MIB  # xz has a dictionary of 8 MiB
    finally:
        tracemalloc.stop()


BOMB = """
import gzip, idxfile
small = gzip.compress(bytes.fromhex("00000801 00000001 07") + bytes(1 << 27), 9)
large = gzip.compress(bytes.fromhex("00000801 3b9aca00"), 9)
def refused(work, error):
    try:
        work()
    except error:
        return
    raise AssertionError("not refused")
"""
REFUSED = {
    "idxfile.read(small)": "TrailingDataError",
    "idxfile.open(small)[0]": "TrailingDataError",
    "idxfile.read(large)": "TruncatedError",
    "idxfile.open(large)[0]": "TruncatedError",
    "idxfile.open(large, spool_nbytes=1 << 40)[0]": "TruncatedError",
    "idxfile.read(large, [1, 2])": "TruncatedError",
}


def test_a_small_file_never_takes_much_memory() -> None:
    refuse = [
        f"print(peak_of(lambda: refused(lambda: {work}, idxfile.{error})))\n"
        for work, error in REFUSED.items()
    ]
    loaded = [line.replace("print", "") for line in refuse]  # modules are not what is measured
    peaks = in_a_child(BOMB + "".join([*loaded, *refuse]))
    assert max(peaks) < 4 * MIB


def in_a_child(source: str) -> list[int]:
    """The numbers that this source prints, in a process of its own that can measure itself."""
    code = f"import numpy\n{MEASURE}{source}"
    child = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert child.returncode == 0, child.stderr
    return [int(line) for line in child.stdout.split()]


PREPARE = """
import os, pathlib, tempfile, gzip
import idxfile, idxfile.array, idxfile.writer
from idxfile.codecs import codec_named
folder = pathlib.Path(tempfile.mkdtemp(dir=FOLDER))
def place(name, dtype, codec=None):
    path = str(folder / name)
    idxfile.write(path, numpy.frombuffer(NOISE, dtype).reshape(1024, -1), codec=codec)
    return path
NOISE = numpy.random.default_rng(6).bytes(1 << 16) * 512
path8, path32 = place("8", "uint8"), place("32", "int32")
packed, packed32 = place("8.gz", "uint8", "gz"), place("32.gz", "int32", "gz")
zst = place("8.zst", "uint8", "zst")
data = open(path8, "rb").read()
target = str(folder / "new")
out = numpy.frombuffer(bytearray(NOISE), "int32").reshape(1024, -1)
array = out.copy()
wide = array[::2].astype("int64")
file = open(path32, "rb", buffering=0)
"""
WORKS = {
    # what is done, on files of 32 MiB that do not shrink when compressed, and the MiB it may take
    "idxfile.read(path8)": 32 + 8,
    "idxfile.read(path32)": 32 + 8,
    "idxfile.read(data)": 32 + 8,
    "idxfile.read(file)": 32 + 8,
    "idxfile.read(packed)": 32 + 32 + 16,
    "idxfile.read(packed32)": 32 + 32 + 16,
    "idxfile.read(zst)": 32 + 32 + 16,
    "idxfile.read(path32, out=out)": 8,
    "idxfile.read(packed32, out=out)": 32 + 16,
    "idxfile.read(path32, slice(1, None))": 32 + 8,
    "idxfile.read(path32, [1, 500, 9])": 8,
    "idxfile.read(path32, slice(None, None, 2))": 16 + 16,
    "idxfile.open(path32)[77]": 4,
    "idxfile.open(packed)[77]": 32 + 32 + 16,
    "idxfile.open(path32, mmap=False).take([5, 7], out=out[:2])": 8,
    "[None for block in idxfile.open(path32, mmap=False).blocks()]": 24,
    "idxfile.open(path32, mode='r+', mmap=False).__setitem__(..., 7)": 32,
    "idxfile.write(target, array)": 16,
    "idxfile.write(target, array[::-1, ::-1])": 16,
    "idxfile.write(target, array.T)": 16,
    "idxfile.write(target, array[:, ::2])": 16,
    "idxfile.write(target, array.view('>i4'))": 16,
    "idxfile.write(target + '.gz', array)": 16,
    "idxfile.write(target + '.zst', array)": 16,
    "idxfile.write(target + '.gz', array, blocked=True)": 16,
    "idxfile.write(target, wide, dtype='int32', cast='safe')": 16 + 16,
    "idxfile.append(path32, array[:4])": 16,
    "idxfile.append(packed32, array[:4])": 32 + 32 + 32,
    "idxfile.concat(target, [path8, path8])": 32,
}


@pytest.mark.parametrize("half", [0, 1])
def test_peak_memory(half: int, tmp_path: Path) -> None:
    works = list(WORKS)[half::2]
    run = "".join(f"print(peak_of(lambda: {work}))\n" for work in works)
    peaks = in_a_child(f"FOLDER = {str(tmp_path)!r}\n{PREPARE}\nidxfile.open(path8)[1]\n{run}")
    taken = dict(zip(works, peaks, strict=True))
    assert {work: peak / MIB for work, peak in taken.items() if peak > WORKS[work] * MIB} == {}


# The largest file that there can be


@pytest.fixture(scope="session")
def three_terabytes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """2^32 - 1 images, of which a few are not empty."""
    path = tmp_path_factory.mktemp("sparse") / "train-images-idx3-ubyte"
    with open(path, "wb") as file:
        file.write(H(0x08, 2**32 - 1, 28, 28))
        file.truncate(16 + (2**32 - 1) * 784)
        file.seek(-784, os.SEEK_END)
        file.write(b"\7" * 784)
    return path


@pytest.mark.parametrize(("mode", "mmap"), [("r", True), ("c", True), ("r+", True), ("r", False)])
def test_a_file_of_three_terabytes(mode: str, mmap: bool, three_terabytes: Path) -> None:
    (taken,) = in_a_child(
        f"""
import idxfile, pickle, time
x = idxfile.open(idxfile.encode(numpy.zeros((2, 2), "uint8")))
x[-1], x.take([0])
def work():
    start = time.perf_counter()
    with idxfile.open({str(three_terabytes)!r}, mode={mode!r}, mmap={mmap}) as x:
        last = 2**32 - 2
        assert x.shape == (2**32 - 1, 28, 28) and x.nbytes == 3367254359280
        assert len(x) == 2**32 - 1
        assert (x[-1] == 7).all() and (x[last] == 7).all()
        assert not x[last // 2].any() and not x[1_000_000_000:1_000_000_003].any()
        assert x[-3:, 5, ::2].tolist() == [[0] * 14, [0] * 14, [7] * 14]
        assert x[:: 2**30].shape == (4, 28, 28)
        assert x.take([0, last, -2]).sum(axis=(1, 2)).tolist() == [0, 7 * 784, 0]
        assert x[[last, 5], 0, 0].tolist() == [7, 0]
        assert next(x.blocks(block_nbytes=784 * 9)).shape == (9, 28, 28)
        assert not next(iter(x)).any()
        assert pickle.loads(pickle.dumps(x)).shape == x.shape
        if {mode!r} != "r":
            x[3_000_000_000, 1] = 9
            x[last - 5 : last - 3, :, 27] = 8
            assert x[3_000_000_000].sum() == 9 * 28 and x[-6:-4].sum() == 8 * 56
            x[3_000_000_000] = 0
            x[last - 5 : last - 3] = 0
    assert time.perf_counter() - start < 1
print(peak_of(work))
"""
    )
    assert taken < 12 * MIB
    assert three_terabytes.stat().st_blocks * 512 < MIB


@pytest.fixture(scope="session")
def pair_of_three_terabytes(three_terabytes: Path) -> Path:
    path = three_terabytes.with_name("train-labels-idx1-ubyte")
    with open(path, "wb") as file:
        file.write(H(0x08, 2**32 - 1))
        file.truncate(8 + 2**32 - 1)
        file.seek(8 + 5_000_000)
        file.write(b"\3\3\3")
    return path.parent


def test_a_data_set_of_three_terabytes(pair_of_three_terabytes: Path) -> None:
    few, pools = in_a_child(
        f"""
import idxfile, time
from itertools import islice
ds = idxfile.open_dataset({str(pair_of_three_terabytes)!r})
count = 2**32 - 1
def work():
    assert ds[-1][0].max() == 7 and ds[count - 3 :][0].shape == (3, 28, 28)
    assert len(ds.select()) == count
    assert ds.select(items=[count - 1, 5, -2]).images[0].max() == 7
    assert len(ds.select(items=slice(None, None, 2**30))) == 4
    assert len(ds.select(limit=9)) == 9
    assert ds.select(labels=3, limit=2).labels.tolist() == [3, 3]
    images, labels = next(iter(ds.batches(256)))
    assert images.shape == (256, 28, 28) and labels.shape == (256,)
    assert len(next(iter(ds.batches(256, start=count // 256)))[0]) == 255
def pools():
    for images, labels in islice(ds.batches(256, shuffle="blocks", seed=1), 400):
        assert images.shape == (256, 28, 28)
print(peak_of(work))
print(peak_of(pools))
"""
    )
    assert few < 64 * MIB
    assert pools < 240 * MIB


class NoRoom:
    """A generator on a machine without 32 GiB."""

    def permutation(self, count: int) -> Any:
        raise MemoryError


def test_an_order_that_has_no_room_says_so() -> None:
    with pytest.raises(MemoryError, match=r"4,294,967,295 items takes 32 GiB; batches\(shuffle="):
        random_order(NoRoom(), 2**32 - 1)  # type: ignore[arg-type]


def test_commands_on_three_terabytes(pair_of_three_terabytes: Path, tmp_path: Path) -> None:
    images = str(pair_of_three_terabytes / "train-images-idx3-ubyte")
    for command, said in (
        (("info", images), "4294967295 × 28 × 28"),
        (("head", "-n", "1", images), "0 0 0"),
        (("show", images, "-1", "0"), ""),
        (("select", pair_of_three_terabytes, tmp_path / "a", "--items", "-1,5"), "2 items"),
        (("select", pair_of_three_terabytes, tmp_path / "b", "--limit", "4"), "4 items"),
        (("select", pair_of_three_terabytes, tmp_path / "c", "--labels=3", "--limit=2"), "2 items"),
    ):
        done = subprocess.run(
            [sys.executable, "-m", "idxfile", *map(str, command)],
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
            stdin=subprocess.DEVNULL,
        )
        assert done.returncode == 0, done.stderr
        assert said in done.stdout + done.stderr
    assert idxfile.read(tmp_path / "a" / "train-images-idx3-ubyte")[0].max() == 7


def test_no_file_grows_beyond_what_a_header_holds(tmp_path: Path, three_terabytes: Path) -> None:
    block = np.zeros((1, 28, 28), np.uint8)
    before = three_terabytes.stat()
    with pytest.raises(UnsupportedError, match=r"4,294,967,296 items; an IDX file holds 4,294,967"):
        idxfile.append(three_terabytes, block)
    assert three_terabytes.stat().st_mtime_ns == before.st_mtime_ns
    with pytest.raises(UnsupportedError, match="dimension 0 is 8,589,934,590"):
        idxfile.concat(tmp_path / "x", [three_terabytes, three_terabytes])
    with pytest.raises(UnsupportedError, match="dimension 0 is 4,294,967,296"):
        idxfile.create(tmp_path / "x", dtype="uint8", item_shape=(28, 28), count=2**32)
    assert list(tmp_path.iterdir()) == []
    near = tmp_path / "near"
    with open(near, "wb") as file:
        file.write(H(0x08, 2**32 - 2, 28, 28))
        file.truncate(16 + (2**32 - 2) * 784)
    idxfile.append(near, block + 9)
    with idxfile.open(near) as x:
        assert len(x) == 2**32 - 1
        assert x[np.uint64(2**32 - 2)].min() == 9
    with pytest.raises(UnsupportedError, match="4,294,967,296 items"):
        idxfile.append(near, block)


@pytest.mark.parametrize("dtype", [np.uint64, np.int64, np.uint32])
def test_numbers_of_any_type_on_three_terabytes(dtype: Any, three_terabytes: Path) -> None:
    last = 2**32 - 2
    for mmap in (True, False):
        with idxfile.open(three_terabytes, mmap=mmap) as x:
            assert x[dtype(last)].min() == 7
            numbers = np.array([last, 0, last], dtype)
            assert x.take(numbers)[:, 0, 0].tolist() == [7, 0, 7]
            assert x[numbers].max(axis=(1, 2)).tolist() == [7, 0, 7]
            assert x[:: -(2**30)].shape == (4, 28, 28)
            for beyond in (2**32 - 1, 2**32, -(2**32)):
                with pytest.raises(IndexError, match="out of bounds"):
                    x[beyond]


@pytest.mark.skipif(sys.platform != "linux", reason="private maps count as data there")
def test_a_file_that_may_not_be_mapped_is_read_by_position(three_terabytes: Path) -> None:
    in_a_child(
        f"""
import idxfile, resource
resource.setrlimit(resource.RLIMIT_DATA, (2 << 30, 2 << 30))
with idxfile.open({str(three_terabytes)!r}) as x:
    assert x[-1].min() == 7 and not x[2**31].any()
    assert x.take([5, -1]).max(axis=(1, 2)).tolist() == [0, 7]
    try:
        x.raw
    except ValueError:
        print(1)
"""
    )


# What no array can be


def test_65_dimensions_are_read_as_far_as_can_be(file_of: Callable[[bytes], Any]) -> None:
    data = H(0x08, *(1,) * 65) + b"\7"
    for road in (ROADS["read"], ROADS["open"], ROADS["items"]):
        with pytest.raises(UnsupportedError, match="65 dimensions; NumPy holds 64"):
            road(file_of(data))
    with idxfile.open(file_of(data)) as x:
        assert (x.ndim, x.shape, x.size, len(x)) == (65, (1,) * 65, 1, 1)
        for read in (lambda: x[0], lambda: x.take([0]), lambda: x.raw, lambda: next(x.blocks())):
            with pytest.raises(UnsupportedError, match="65 dimensions; NumPy holds 64"):
                read()


@pytest.mark.parametrize("count", [64, 65, 255])
def test_as_many_dimensions_as_a_header_can_have(count: int) -> None:
    header, problems = idxfile.examine(H(0x08, *(1,) * count), 4 + 4 * count + 1)
    assert header is not None
    assert header.ndim == count
    assert [problem.level for problem in problems] == ["note"] * (count > 64)


@pytest.mark.parametrize("road", ROADS)
def test_an_empty_array_that_numpy_has_no_room_for(road: str, places: Places) -> None:
    data = H(0x0E, 0, *(2**32 - 1,) * 3)
    for file in (data, places.path(data), gzip.compress(data)):
        with pytest.raises(UnsupportedError, match="NumPy has no room for its other dimensions"):
            ROADS[road](file)
    with idxfile.open(data) as x:
        assert x.shape == (0, *(2**32 - 1,) * 3)


def test_an_empty_array_of_large_items() -> None:
    assert idxfile.read(H(0x08, 0, 2**31, 2**31)).shape == (0, 2**31, 2**31)


# Errors by name


@pytest.mark.parametrize(
    ("data", "error", "message"),
    [
        (b"", TruncatedError, "file is empty (0 bytes), an IDX header needs at least 4"),
        (H(8, 2, 2, 2) + bytes(7), TruncatedError, "needs 24 bytes, has 23: 1 missing"),
        (H(8, 1) + b"\7\n", idxfile.TrailingDataError, "1 byte after the data at offset 9"),
        (b"a\0\x08\1", FormatError, "found 61 00 08 01 at byte 0, expected 00 00"),
        (b"\xff\xff\x08\1\0\0\0\1\7", FormatError, "found ff ff 08 01 at byte 0"),
        (b"\0\0\x0a\1\0\0\0\2\1\2", FormatError, "found element type 0a at byte 2"),
        (b"\3\x08\0\0" + b"\2\0\0\0" * 3 + bytes(8), FormatError, "least significant byte first"),
        (
            H(8, *(0x02000000,) * 3) + bytes(8),
            FormatError,
            "dimensions read little-endian are 2,2,2",
        ),
        (b"\x1e\x3d\x4c\x52\0\0\0\1", UnsupportedError, "a Lush matrix of packed elements"),
        (b"\x52\x4c\x3d\x1e\1\0\0\0", UnsupportedError, "a Lush matrix of packed elements"),
        (b"\x58\x4c\x3d\x1e\1\0\0\0", UnsupportedError, "a Lush matrix of C long elements"),
    ],
)
def test_what_is_wrong_is_told_with_the_name(
    data: bytes, error: type[IdxError], message: str, file_of: Callable[[bytes], Any]
) -> None:
    file = file_of(data)
    with pytest.raises(error) as caught:
        idxfile.read(file)
    text = str(caught.value)
    assert message in text
    name = str(file) if isinstance(file, str | Path) else caught.value.file
    assert text.startswith(f"{name}: ")
    assert "\nhint: " in text
