"""Reading: every kind of `file` and of array gives what NumPy has, and lives as promised.

Keys and assignments are in `test_array_keys.py`; wrong, huge and hostile files in
`test_array_limits.py`.
"""

from __future__ import annotations

import gzip
import io
import os
import pickle
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import idxfile
from conftest import (
    CODES,
    COMPRESS,
    KINDS,
    KNOWN,
    NANS,
    PACKINGS,
    TYPES,
    H,
    Places,
    ShortReads,
    assert_same,
    bits,
    idx_bytes,
)
from idxfile import array as array_room
from idxfile.codecs import blocked_member
from idxfile.errors import FormatError, IdxWarning, TrailingDataError, UnsupportedError
from idxfile.source import LocalFile

SMALL = bits("int16", 6, 3, 2)
LARGE = bits("int32", 900, 2)
"""More than the first kilobyte, so that a stream's length is not known at once."""


SOME = {
    "small": SMALL,
    "large": LARGE,
    "bytes": bits("uint8", 500, 3),
    "scalar": bits("float64", 1).reshape(()),
    "no items": SMALL[:0],
}


@pytest.fixture(params=["raw", "by position", "gz", "bytes", "file object"])
def opened(request: pytest.FixtureRequest, places: Places) -> Callable[..., idxfile.IdxArray]:
    """Every road to a lazy array: opens one over an array."""
    road = request.param

    def open_over(array: np.ndarray, **options: Any) -> idxfile.IdxArray:
        data = idx_bytes(array)
        file: Any = {
            "raw": lambda: places.path(data),
            "by position": lambda: places.path(data),
            "gz": lambda: places.path(gzip.compress(data)),
            "bytes": lambda: data,
            "file object": lambda: io.BytesIO(data),
        }[road]()
        options = {"mmap": False, **options} if road == "by position" else options
        return places.opened(idxfile.open(file, **options))

    return open_over


# Values


def test_every_array_is_read_as_numpy_has_it(array: np.ndarray) -> None:
    data = idx_bytes(array)
    assert_same(idxfile.read(data), np.asarray(array))
    with idxfile.open(data) as x:
        assert x.shape == array.shape
        assert_same(np.asarray(x), np.asarray(array))
        assert_same(np.asarray(x[...]), np.asarray(array))


@pytest.mark.parametrize("array", SOME.values(), ids=SOME)
def test_every_kind_of_file_is_read(file_of: Callable[[bytes], Any], array: np.ndarray) -> None:
    data = idx_bytes(array)
    assert_same(idxfile.read(file_of(data)), array)
    with idxfile.open(file_of(data)) as x:
        assert_same(np.asarray(x), array)
    if array.ndim:
        assert_same(idxfile.read(file_of(data), slice(1, -1)), array[1:-1])


@pytest.mark.parametrize("suffix", ["", ".idx", ".gz", ".bz2", ".xz", ".zst", ".npy"])
@pytest.mark.parametrize("packing", [None, *COMPRESS])
def test_content_decides_and_never_the_name(
    packing: str | None, suffix: str, tmp_path: Path
) -> None:
    data = H(0x08, 1) + b"\7"
    path = tmp_path / f"train-images-idx3-ubyte{suffix}"
    path.write_bytes(PACKINGS[packing](data) if packing else data)
    assert idxfile.read(path).tolist() == [7]
    with idxfile.open(path) as x:
        assert x.codecs == ((packing,) if packing else ())


@pytest.mark.parametrize("dtype", KNOWN)
def test_known_answers(dtype: str) -> None:
    written, values = KNOWN[dtype]
    data = H(CODES[dtype], len(values)) + bytes.fromhex(written)
    for found in (idxfile.read(data), idxfile.open(data)[...], idxfile.open(data).take(range(5))):
        assert found.tolist() == values
        assert found.dtype == np.dtype(dtype)
        assert found.dtype.isnative
        if dtype.startswith("float"):
            assert np.signbit(found).tolist() == [str(v).startswith("-") for v in values]


@pytest.mark.parametrize("dtype", NANS)
def test_every_bit_of_a_nan_is_kept(dtype: str) -> None:
    elements = bytes.fromhex(NANS[dtype])
    count = len(elements) // np.dtype(dtype).itemsize
    data = H(CODES[dtype], count) + elements
    with idxfile.open(data) as x:
        for found in (idxfile.read(data), x[...], x.take(range(count)), next(x.blocks())):
            assert found.astype(found.dtype.newbyteorder(">")).tobytes() == elements
    assert idxfile.encode(idxfile.read(data)) == data


@pytest.mark.parametrize("dtype", TYPES)
def test_what_read_gives_belongs_to_the_caller(dtype: str, places: Places) -> None:
    array = bits(dtype, 5, 3)
    data = bytearray(idx_bytes(array))
    path = places.path(bytes(data))
    for file in (data, path, io.BytesIO(data), gzip.compress(data)):
        for items in (None, slice(None), slice(None, None, -1), [3, 1], 2):
            found = idxfile.read(file, items)
            assert found.flags.c_contiguous
            assert found.flags.writeable
            assert found.dtype.isnative
            found[...] = 0
            if isinstance(file, io.BytesIO):
                file.seek(0)
    assert data == idx_bytes(array)
    assert Path(path).read_bytes() == data


def test_a_scalar_is_a_0d_array() -> None:
    data = bytes.fromhex("00000800 07")
    found = idxfile.read(data)
    assert isinstance(found, np.ndarray)
    assert (found.shape, found.item()) == ((), 7)
    with idxfile.open(data) as x:
        assert x.shape == ()
        assert_same(x[()], np.uint8(7))
        assert_same(x[...], np.array(7, "uint8"))
        for wrong in (lambda: len(x), lambda: iter(x).__next__(), lambda: x.take([0])):
            with pytest.raises(TypeError, match=r"scalar: its value is x\[\(\)\]"):
                wrong()
        with pytest.raises(IndexError):
            x[0]


# Arguments of read


@pytest.mark.parametrize("packing", [None, *COMPRESS])
@pytest.mark.parametrize("dtype", TYPES)
def test_read_into_memory_of_the_caller(dtype: str, packing: str | None) -> None:
    array = bits(dtype, 300, 3)
    file = PACKINGS[packing](idx_bytes(array)) if packing else idx_bytes(array)
    out = np.empty_like(array)
    assert idxfile.read(file, out=out) is out
    assert_same(out, array)
    part = np.empty((2, 3), dtype)
    assert idxfile.read(file, [7, -1], out=part) is part
    assert_same(part, array[[7, -1]])
    one = np.empty(3, dtype)
    assert idxfile.read(file, -1, out=one) is one
    assert_same(one, array[-1])


@pytest.mark.parametrize("dtype", TYPES)
def test_a_large_compressed_file_takes_memory_as_it_arrives(
    dtype: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(array_room, "SPOOL_NBYTES", 100)
    array = bits(dtype, 500, 3)
    found = idxfile.read(gzip.compress(idx_bytes(array)))
    assert_same(found, array)
    found[...] = 0
    assert found.flags.writeable


def test_without_room_a_right_file_is_a_memory_error_and_a_lying_one_still_called_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(nbytes: int) -> Any:
        raise MemoryError(f"no room for {nbytes}")

    monkeypatch.setattr(array_room, "SPOOL_NBYTES", 100)
    monkeypatch.setattr(array_room, "reserve", refuse)
    with pytest.raises(MemoryError, match="no room for 7200"):
        idxfile.read(gzip.compress(idx_bytes(LARGE)))
    with pytest.raises(idxfile.TruncatedError):
        idxfile.read(gzip.compress(idx_bytes(LARGE)[:-1]))


@pytest.mark.parametrize(
    ("out", "message"),
    [
        (np.empty((2, 3), "int16"), "int16 of shape (3, 2), not int16 of shape (2, 3)"),
        (np.empty((3, 2), "int32"), "int16 of shape (3, 2), not int32 of shape (3, 2)"),
        (np.empty((3, 2), ">i2"), "int16 of shape (3, 2), not >i2 of shape (3, 2)"),
        (np.empty((2, 3), "int16").T, "writeable and C-contiguous"),
        (np.frombuffer(bytes(12), "int16").reshape(3, 2), "writeable and C-contiguous"),
        ([[0, 0]] * 3, "an ndarray, not list"),
    ],
)
@pytest.mark.parametrize("items", [None, slice(None)])
def test_memory_that_does_not_fit_is_refused(out: Any, message: str, items: Any) -> None:
    with pytest.raises(ValueError) as caught:
        idxfile.read(idx_bytes(bits("int16", 3, 2)), items, out=out)
    assert str(caught.value) == f"<bytes>: out must be {message}"


@pytest.mark.parametrize(
    "items",
    [
        *(0, -1, np.int64(2), slice(2, 5), slice(None, None, -2), slice(4, 2), ..., ()),
        *([5, 0, 5], [], [[0], [1]], np.array([2, -1], "int8"), range(1, 4), np.arange(6) % 2 == 0),
    ],
)
def test_some_items_of_a_file(items: Any, file_of: Callable[[bytes], Any]) -> None:
    if isinstance(items, tuple):
        with pytest.raises(TypeError, match="items selects along dimension 0"):
            idxfile.read(file_of(idx_bytes(SMALL)), items)
    else:
        assert_same(np.asarray(idxfile.read(file_of(idx_bytes(SMALL)), items)), SMALL[items])


@pytest.mark.parametrize("items", [6, -7, [0, 6], "a", 1.0])
def test_items_that_are_not_there(items: Any) -> None:
    with pytest.raises(IndexError):
        idxfile.read(idx_bytes(SMALL), items)
    with pytest.raises(IndexError):
        idxfile.read(idx_bytes(np.uint8(7)), items)


@pytest.mark.parametrize("dtype", TYPES)
def test_stray_little_endian_elements(dtype: str, places: Places) -> None:
    array = bits(dtype, 400, 2)
    data = H(CODES[dtype], 400, 2) + array.astype(array.dtype.newbyteorder("<")).tobytes()
    for file in (data, places.path(data), gzip.compress(data)):
        assert_same(idxfile.read(file, byteorder="little"), array)
        assert_same(idxfile.read(file, [3, 1], byteorder="little"), array[[3, 1]])
        with idxfile.open(file, byteorder="little") as x:
            assert_same(x[3], array[3])
            assert x.header.byteorder == "little"
    path = places.path(data)
    with idxfile.open(path, byteorder="little", mode="r+") as x:
        x[0] = array[1]
    assert_same(idxfile.read(path, byteorder="little")[0], array[1])


def test_a_known_file_with_little_endian_data() -> None:
    data = H(0x0C, 3) + bytes.fromhex("01000000 02000000 03000000")
    assert idxfile.read(data, byteorder="little").tolist() == [1, 2, 3]
    assert idxfile.read(data).tolist() == [1 << 24, 2 << 24, 3 << 24]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"byteorder": "native"}, 'byteorder must be "big" or "little", not \'native\''),
        ({"problems": "never"}, 'problems must be "raise", "warn" or "ignore"'),
        ({"problems": "salvage"}, 'problems must be "raise", "warn" or "ignore"'),
    ],
)
def test_options_that_do_not_exist(options: dict[str, Any], message: str) -> None:
    for verb in (idxfile.read, idxfile.open):
        with pytest.raises(ValueError, match=message):
            verb(idx_bytes(SMALL), **options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"mode": "w"}, 'mode must be "r", "c" or "r\\+", not \'w\''),
        ({"mode": "c", "mmap": False}, 'mode="c" is copy-on-write over a map: it needs mmap=True'),
    ],
)
def test_modes_that_do_not_exist(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        idxfile.open(idx_bytes(SMALL), **options)


@pytest.mark.parametrize("kind", ["bytes", "BytesIO", "pipe", "gz", "zst bytes", "fifo"])
def test_only_a_raw_local_file_is_changed(kind: str, places: Places) -> None:
    with pytest.raises(ValueError, match=r'mode="r\+" needs a raw local file'):
        idxfile.open(KINDS[kind](places, idx_bytes(SMALL)), mode="r+")


# Problems


def test_bytes_behind_the_data(file_of: Callable[[bytes], Any]) -> None:
    for array, count in ((SMALL, 1), (SMALL, 5000), (LARGE, 3)):
        data = idx_bytes(array) + b"\n" * count
        with pytest.raises(TrailingDataError, match="after the data at offset"):
            idxfile.read(file_of(data))
        with pytest.warns(IdxWarning, match="after the data at offset") as caught:
            assert_same(idxfile.read(file_of(data), problems="warn"), array)
        assert len(caught) == 1
        assert caught[0].filename == __file__
        assert_same(idxfile.read(file_of(data), problems="ignore"), array)


def test_bytes_behind_the_data_of_a_lazy_array(file_of: Callable[[bytes], Any]) -> None:
    for array in (SMALL, LARGE):
        data = idx_bytes(array) + b"\n\n"
        with (
            pytest.raises(TrailingDataError, match="after the data at offset"),
            idxfile.open(file_of(data)) as x,
        ):
            x[0]
        with (
            pytest.warns(IdxWarning, match="after the data at offset") as caught,
            idxfile.open(file_of(data), problems="warn") as x,
        ):
            assert_same(x[-1], array[-1])
            assert_same(np.asarray(x), array)
        assert len(caught) == 1
        assert caught[0].filename == __file__


def test_how_many_bytes_are_too_many_is_never_guessed() -> None:
    data = idx_bytes(LARGE) + bytes(500)
    with pytest.raises(TrailingDataError, match=r"^<bytes>: 500 bytes after the data"):
        idxfile.read(data)
    with pytest.raises(TrailingDataError, match=r"^<bytes>: at least 1 byte after the data"):
        idxfile.read(gzip.compress(data))


@pytest.mark.parametrize("name", COMPRESS)
@pytest.mark.parametrize("array", [SMALL, LARGE])
def test_junk_behind_a_compressed_file_is_told_once(name: str, array: np.ndarray) -> None:
    file = COMPRESS[name](idx_bytes(array)) + b"junk"
    with pytest.warns(IdxWarning, match=f"4 bytes of junk after the {name} stream") as caught:
        assert_same(idxfile.read(file), array)
    assert len(caught) == 1
    with pytest.warns(IdxWarning, match="4 bytes of junk") as caught, idxfile.open(file) as x:
        assert_same(x[2], array[2])
        assert_same(x[3], array[3])
    assert len(caught) == 1
    assert_same(idxfile.read(file, problems="ignore"), array)


def test_a_damaged_compressed_file_is_told_at_the_first_item(places: Places) -> None:
    packed = bytearray(gzip.compress(idx_bytes(LARGE)))
    packed[-6] ^= 1
    with idxfile.open(places.path(bytes(packed))) as x:
        assert x.shape == LARGE.shape
        for _ in range(2):
            with pytest.raises(idxfile.ChecksumError, match="stores CRC-32"):
                x[0]


# A lazy array


def test_what_a_lazy_array_is(opened: Callable[..., idxfile.IdxArray]) -> None:
    x = opened(SMALL)
    assert x.shape == (6, 3, 2)
    assert x.dtype == np.dtype("int16")
    assert x.dtype.isnative
    assert (x.ndim, x.size, x.nbytes, len(x)) == (3, 36, 72, 6)
    assert x.header == idxfile.Header.of("int16", (6, 3, 2))
    assert (x.mode, x.closed) == ("r", False)
    assert x.codecs in ((), ("gz",))
    assert repr(x) == f"<IdxArray {x.name!r}: int16 6 × 3 × 2, mode 'r'>"
    x.close()
    assert x.closed
    assert repr(x).endswith(", mode 'r', closed>")


@pytest.mark.parametrize("dtype", ["uint8", "int32"])
@pytest.mark.parametrize("shape", [(7,), (6, 3, 2), (0, 3), (3, 0)])
def test_iteration_gives_the_items(
    dtype: str, shape: tuple[int, ...], opened: Callable[..., idxfile.IdxArray]
) -> None:
    array = bits(dtype, *shape)
    found = list(opened(array))
    assert len(found) == len(array)
    for item, expected in zip(found, array, strict=True):
        assert_same(item, expected)
    assert [i.tolist() for i in reversed(opened(array))] == [i.tolist() for i in reversed(array)]


@pytest.mark.parametrize("dtype", ["uint8", "int32"])
@pytest.mark.parametrize("block_nbytes", [1, 24, 25, 48, 1 << 23])
def test_blocks_are_fresh_arrays_of_constant_size(
    dtype: str, block_nbytes: int, opened: Callable[..., idxfile.IdxArray]
) -> None:
    array = bits(dtype, 7, 3, 2)
    x = opened(array)
    step = max(1, block_nbytes // array[0].nbytes)
    found = list(x.blocks(block_nbytes=block_nbytes))
    assert [len(block) for block in found[:-1]] == [min(step, 7)] * (len(found) - 1)
    assert_same(np.concatenate(found), array)
    for block in found:
        block[...] = 0
    assert_same(x[...], array)


def test_blocks_of_nothing_and_of_a_scalar(opened: Callable[..., idxfile.IdxArray]) -> None:
    assert list(opened(SMALL[:0]).blocks()) == []
    (block,) = opened(np.array(7, "int16")).blocks()
    assert_same(block, np.array(7, "int16"))
    blocks = list(opened(SMALL[:, :0]).blocks(block_nbytes=1))
    assert_same(np.concatenate(blocks), SMALL[:, :0])


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize(
    "items", [[3, 1, 2], [], [-1, 0, -1], [[0, 1], [5, 5]], 4, -6, range(6), np.uint8(3)]
)
def test_take(dtype: str, items: Any, opened: Callable[..., idxfile.IdxArray]) -> None:
    array = bits(dtype, 6, 3)
    x = opened(array)
    expected = np.asarray(array[np.array(items, int)])
    found = x.take(items)
    assert_same(found, expected)
    found[...] = 0  # a copy
    out = np.empty(expected.shape, dtype)
    assert x.take(items, out=out) is out
    assert_same(out, expected)


@pytest.mark.parametrize("items", [6, [-7], [0, 6], [1.0], [True], "a"])
def test_items_that_cannot_be_taken(items: Any, opened: Callable[..., idxfile.IdxArray]) -> None:
    with pytest.raises(IndexError):
        opened(SMALL).take(items)


def test_nothing_is_taken_of_nothing(opened: Callable[..., idxfile.IdxArray]) -> None:
    assert_same(opened(SMALL[:0]).take([]), SMALL[:0])
    assert_same(opened(SMALL[:, :0]).take([5, 0]), SMALL[:2, :0])
    with pytest.raises(IndexError):
        opened(SMALL[:0]).take([0])


def test_take_needs_memory_that_fits(opened: Callable[..., idxfile.IdxArray]) -> None:
    x = opened(SMALL)
    with pytest.raises(ValueError, match="out must be int16 of shape \\(2, 3, 2\\)"):
        x.take([0, 1], out=np.empty((3, 3, 2), "int16"))


# As an array


def test_numpy_makes_an_array_of_it(opened: Callable[..., idxfile.IdxArray]) -> None:
    for array in (SMALL, bits("uint8", 4, 3)):
        x = opened(array)
        assert_same(np.asarray(x), array)
        assert_same(np.array(x), array)
        assert_same(np.asarray(x, dtype="float64"), array.astype("float64"))
        assert_same(np.array(x, dtype=array.dtype), array)
        assert_same(np.stack([x, x]), np.stack([array, array]))
        assert np.array_equal(x, array)
        fresh = np.array(x)
        fresh[...] = 0
        assert_same(np.asarray(x), array)


def test_numpy_is_never_given_a_copy_where_it_wants_none(
    opened: Callable[..., idxfile.IdxArray],
) -> None:
    for array in (SMALL, bits("uint8", 4, 3)):
        x = opened(array)
        x[0]
        if array.dtype == "uint8" and _has_raw(x):
            assert np.shares_memory(np.asarray(x, copy=False), x.raw)
        else:
            with pytest.raises(ValueError, match="a copy is needed to turn its byte order"):
                np.asarray(x, copy=False)
        with pytest.raises(ValueError, match="a copy is needed to make it float32"):
            np.asarray(x, dtype="float32", copy=False)


def _has_raw(x: idxfile.IdxArray) -> bool:
    try:
        return x.raw is not None
    except ValueError:
        return False


def test_raw_is_the_file_as_it_lies(opened: Callable[..., idxfile.IdxArray]) -> None:
    x = opened(SMALL)
    if not _has_raw(x):
        with pytest.raises(ValueError, match="is not mapped: it has no raw view"):
            _ = x.raw
        return
    assert x.raw.dtype == np.dtype(">i2")
    assert x.raw.tobytes() == idx_bytes(SMALL)[16:]
    assert np.shares_memory(x.raw, x.raw)
    assert not x.raw.flags.writeable


@pytest.mark.parametrize("dtype", ["uint8", "int8"])
def test_a_mapped_file_of_bytes_is_seen_without_a_copy(dtype: str, places: Places) -> None:
    array = bits(dtype, 6, 3)
    with idxfile.open(places.path(idx_bytes(array))) as x:
        for view in (x[2], x[1:4], x[..., 1], np.asarray(x)):
            assert np.shares_memory(view, x.raw)
            assert not view.flags.writeable


# Modes


@pytest.mark.parametrize("dtype", TYPES)
def test_mode_r_never_writes(dtype: str, opened: Callable[..., idxfile.IdxArray]) -> None:
    array = bits(dtype, 4, 3)
    x = opened(array)
    with pytest.raises(ValueError, match=r'is open for reading: open it with mode="r\+" or "c"'):
        x[0] = 0
    for found in (x[1:], x[1], np.asarray(x)):
        if found.flags.writeable:
            found[...] = 0
    assert_same(np.asarray(x), array)


@pytest.mark.parametrize("packing", [None, "gz", "xz in gz"])
@pytest.mark.parametrize("name", ["small", "large", "bytes"])
def test_mode_c_changes_memory_and_no_file(name: str, packing: str | None, places: Places) -> None:
    array = SOME[name]
    data = PACKINGS[packing](idx_bytes(array)) if packing else idx_bytes(array)
    path = places.path(data)
    given = bytearray(data)
    expected = array.copy()
    expected[1], expected[2] = 7, 9
    for file in (path, given, data):
        with idxfile.open(file, mode="c") as x:
            x[1] = 7
            x.raw[2] = 9
            view = x[...]
            assert view.flags.writeable
            assert_same(view, expected)
            with pytest.raises(UnsupportedError, match=r"0\.5 does not survive"):
                x[0] = 0.5
            assert_same(x[...], expected)
    assert Path(path).read_bytes() == data == given


def test_mode_c_gives_arrays_that_tensors_may_write_into(places: Places) -> None:
    with idxfile.open(places.path(idx_bytes(bits("uint8", 5, 3))), mode="c") as x:
        assert x[2].flags.writeable
        x[2][:] = 0
        assert not x[2].any()


def test_mode_c_without_a_map_refuses_to_write() -> None:
    with (
        idxfile.open(io.BytesIO(idx_bytes(SMALL)), mode="c") as x,
        pytest.raises(ValueError, match="is not mapped: nothing can be written into it"),
    ):
        x[0] = 0


@pytest.mark.parametrize("mmap", [True, False])
@pytest.mark.parametrize("dtype", TYPES)
def test_mode_r_plus_writes_by_assignment_alone(dtype: str, mmap: bool, places: Places) -> None:
    array = bits(dtype, 4, 3)
    path = places.path(idx_bytes(array))
    with idxfile.open(path, mode="r+", mmap=mmap) as x:
        for fresh in (x[...], x[1:3], x[2], np.asarray(x), x.take([0, 1]), next(x.blocks())):
            fresh[...] = 0
        assert Path(path).read_bytes() == idx_bytes(array)
        x[1] = 7
        expected = array.copy()
        expected[1] = 7
        assert Path(path).read_bytes() == idx_bytes(expected)
        assert_same(x[...], expected)
        if mmap:
            assert not x.raw.flags.writeable
        x.flush()
    assert_same(idxfile.read(path), expected)


def test_every_open_array_sees_what_mode_r_plus_wrote(places: Places) -> None:
    path = places.path(idx_bytes(SMALL))
    with idxfile.open(path, mode="r+") as x, idxfile.open(path, mmap=False) as y:
        x[0, 0, 0] = 77
        assert y[0, 0, 0] == 77


def test_a_scalar_is_changed_in_place(places: Places) -> None:
    path = places.path(idx_bytes(np.array(7, "int16")))
    with idxfile.open(path, mode="r+") as x:
        x[()] = 300
        assert x[()] == 300
        x[...] = -300
        with pytest.raises(IndexError):
            x[0] = 1
    assert Path(path).read_bytes() == idx_bytes(np.array(-300, "int16"))


def test_mode_r_plus_needs_the_right_to_write_from_the_start(
    places: Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = places.path(idx_bytes(SMALL))
    real = os.open

    def refuse(path: str, flags: int, *args: Any) -> int:
        if flags & (os.O_RDWR | os.O_WRONLY):
            raise PermissionError(13, "Permission denied", path)
        return real(path, flags, *args)

    monkeypatch.setattr(os, "open", refuse)
    with idxfile.open(path) as x:
        assert len(x) == 6
    with pytest.raises(PermissionError):
        idxfile.open(path, mode="r+")


def test_assignments_of_many_threads_all_arrive(places: Places) -> None:
    path = places.path(idx_bytes(np.zeros((4, 64), "int32")))
    with idxfile.open(path, mode="r+") as x, ThreadPoolExecutor(4) as pool:

        def fill(column: int) -> None:
            x[:, column] = column

        list(pool.map(fill, range(64)))
    assert_same(idxfile.read(path), np.tile(np.arange(64, dtype="int32"), (4, 1)))


# Life


READS: list[Callable[[idxfile.IdxArray], Any]] = [
    lambda x: x[0],
    lambda x: x[...],
    lambda x: x.take([0]),
    lambda x: next(x.blocks()),
    lambda x: next(iter(x)),
    lambda x: np.asarray(x),
    lambda x: x.raw,
    lambda x: x.flush(),
    lambda x: pickle.dumps(x),
    lambda x: x.__enter__(),
]


def test_after_close_a_read_is_an_error_and_views_live_on(
    opened: Callable[..., idxfile.IdxArray],
) -> None:
    for array in (bits("uint8", 6, 3), LARGE):
        x = opened(array)
        view = x[2:4]
        blocks = x.blocks()
        x.close()
        x.close()
        assert_same(view, array[2:4])
        with pytest.raises(ValueError, match="is closed"):
            next(blocks)
        for read in READS:
            with pytest.raises(ValueError, match="is closed"):
                read(x)
        assert x.shape == array.shape
        assert len(x) == len(array)


def test_after_close_an_assignment_is_an_error(places: Places) -> None:
    for mode in ("c", "r+"):
        x = idxfile.open(places.path(idx_bytes(SMALL)), mode=mode)
        x.close()
        with pytest.raises(ValueError, match="is closed"):
            x[0] = 0


def test_an_empty_array_closes_too(opened: Callable[..., idxfile.IdxArray]) -> None:
    x = opened(SMALL[:0])
    x.close()
    with pytest.raises(ValueError, match="is closed"):
        x[...]


def test_a_with_block_closes(places: Places) -> None:
    with idxfile.open(places.path(idx_bytes(SMALL))) as x:
        assert not x.closed
    assert x.closed


@pytest.mark.parametrize("kind", ["str", "gz", "xz in gz", "bytes", "file"])
def test_a_forgotten_array_leaves_no_file_open(kind: str, places: Places) -> None:
    file = KINDS[kind](places, idx_bytes(LARGE))
    before = len(os.listdir("/proc/self/fd"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        idxfile.open(file)[3]
        idxfile.open(file, spool_nbytes=0)[3] if kind != "file" else None
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_file_object_is_never_closed_and_the_stream_not_touched_after(places: Places) -> None:
    file = places.file(b"before" + idx_bytes(SMALL))
    file.seek(6)
    with idxfile.open(file) as x:
        assert_same(x[...], SMALL)
    assert not file.closed


def test_a_file_that_is_replaced_is_still_the_one_that_was_opened(places: Places) -> None:
    path = places.path(idx_bytes(SMALL))
    for mmap in (True, False):
        with idxfile.open(path, mmap=mmap) as x:
            idxfile.write(path, SMALL + 1)
            assert_same(x[...], SMALL)
        idxfile.write(path, SMALL)


def test_a_file_that_was_cut_meanwhile_is_an_error_without_a_map(places: Places) -> None:
    path = places.path(idx_bytes(LARGE))
    with idxfile.open(path, mmap=False) as x:
        os.truncate(path, 500)
        assert_same(x[0], LARGE[0])
        with pytest.raises(
            idxfile.TruncatedError, match="0 of 8 bytes at byte 6,412: the file is shorter"
        ):
            x[800]


# On the way to another process


def test_a_pickle_of_a_path_is_a_recipe(places: Places, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(places.folder)
    for packing in (None, "gz"):
        data = idx_bytes(LARGE)
        path = places.path(PACKINGS[packing](data) if packing else data)
        options = {"mmap": False, "problems": "ignore", "spool_nbytes": 0}
        with idxfile.open(os.path.basename(path), **options) as x:
            x[0]
            recipe = pickle.dumps(x)
        assert len(recipe) < 1000
        assert idx_bytes(LARGE)[100:200] not in recipe
        monkeypatch.chdir("/")
        with pickle.loads(recipe) as y:
            assert_same(np.asarray(y), LARGE)
            assert y.name == path
            assert pickle.dumps(y) == recipe
        monkeypatch.chdir(places.folder)


@pytest.mark.parametrize("mode", ["r", "c", "r+"])
def test_a_pickle_keeps_the_mode_and_the_byte_order(mode: str, places: Places) -> None:
    path = places.path(H(0x0C, 2) + bytes.fromhex("01000000 02000000"))
    with (
        idxfile.open(path, mode=mode, byteorder="little") as x,
        pickle.loads(pickle.dumps(x)) as y,
    ):
        assert y.mode == mode
        assert y[...].tolist() == [1, 2]


def test_a_pickle_opens_in_a_fresh_process(places: Places) -> None:
    with idxfile.open(places.path(idx_bytes(SMALL))) as x:
        recipe = pickle.dumps(x)
    code = "import pickle, sys; print(pickle.load(sys.stdin.buffer)[4].tolist())"
    child = subprocess.run(
        [sys.executable, "-c", code], input=recipe, capture_output=True, check=True
    )
    assert child.stdout.decode().strip() == str(SMALL[4].tolist())


@pytest.mark.parametrize("change", ["longer", "touched", "gone"])
def test_a_pickle_of_a_file_that_has_changed_is_refused(change: str, places: Places) -> None:
    path = places.path(idx_bytes(SMALL))
    with idxfile.open(path) as x:
        recipe = pickle.dumps(x)
    if change == "longer":
        idxfile.append(path, SMALL)
    elif change == "touched":
        os.utime(path, ns=(0, 0))
    else:
        os.unlink(path)
    expected = FileNotFoundError if change == "gone" else FormatError
    with pytest.raises(expected) as caught:
        pickle.loads(recipe)
    if change != "gone":
        assert "the file has changed since it was pickled" in str(caught.value)
        assert caught.value.code == "changed"


@pytest.mark.parametrize("kind", ["bytes", "bytearray", "memoryview", "NumPy bytes", "xz bytes"])
def test_bytes_travel_whole(kind: str, places: Places) -> None:
    x = idxfile.open(KINDS[kind](places, idx_bytes(SMALL)))
    y = pickle.loads(pickle.dumps(x))
    x.close()
    assert_same(np.asarray(y), SMALL)


def test_opening_bytes_copies_none_of_them() -> None:
    import tracemalloc

    data = idx_bytes(np.zeros((1000, 1000), "uint8"))
    tracemalloc.start()
    try:
        with idxfile.open(data) as x:
            x[500]
            assert tracemalloc.get_traced_memory()[1] < 100_000
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    "file",
    [lambda data: io.BytesIO(data), lambda data: ShortReads(data, seekable=False)],
)
def test_a_file_object_cannot_travel(file: Callable[[bytes], Any]) -> None:
    with (
        idxfile.open(file(idx_bytes(SMALL))) as x,
        pytest.raises(TypeError, match=f"{x.name} was opened from a file object"),
    ):
        pickle.dumps(x)


# Threads


@pytest.mark.parametrize("mmap", [True, False])
@pytest.mark.parametrize("kind", list(KINDS))
def test_many_threads_read_one_array(kind: str, mmap: bool, places: Places) -> None:
    array = bits("int16", 200, 3)
    start_together = threading.Barrier(4)

    def work(seed: int) -> bool:
        random = np.random.default_rng(seed)
        start_together.wait()
        for _ in range(25):
            item, items = int(random.integers(200)), random.integers(-200, 200, 7)
            if (
                (x[item] != array[item]).any()
                or (x.take(items) != array[items]).any()
                or (x[items] != array[items]).any()
                or (x[item:, 1] != array[item:, 1]).any()
            ):
                return False
        return True

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with (
            idxfile.open(KINDS[kind](places, idx_bytes(array)), mmap=mmap) as x,
            ThreadPoolExecutor(4) as pool,
        ):
            assert all(pool.map(work, range(4)))
    finally:
        sys.setswitchinterval(interval)


def test_a_compressed_file_is_inflated_once_by_many_threads(places: Places) -> None:
    with idxfile.open(places.path(gzip.compress(idx_bytes(LARGE)))) as x:
        with ThreadPoolExecutor(8) as pool:
            raws = list(pool.map(lambda _: x.raw, range(8)))
        assert all(raw is raws[0] for raw in raws)


# Lush


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("dtype", [*TYPES, "uint32", "uint64", "int64"])
def test_a_lush_matrix_is_read_in_both_byte_orders(dtype: str, order: str, places: Places) -> None:
    magic = {"uint8": 0x55, "int8": 0x57, "int16": 0x56, "int32": 0x54, "float32": 0x51}
    magic |= {"float64": 0x53, "uint32": 0x59, "uint64": 0x5A, "int64": 0x5B}
    array = bits(dtype, 3, 2)
    numbers = np.array([0x1E3D4C00 + magic[dtype], 2, 3, 2, 1], f"{order}i4")
    data = numbers.tobytes() + array.astype(np.dtype(dtype).newbyteorder(order)).tobytes()
    for file in (data, places.path(data), gzip.compress(data)):
        assert_same(idxfile.read(file), array)
        with idxfile.open(file) as x:
            assert_same(x[1], array[1])
            assert x.header.dialect == "lush"
        with idxfile.open(file, mode="c") as x:
            x[1] = 7
            with pytest.raises(UnsupportedError, match=f"does not survive as {dtype}"):
                x[0] = 0.5 if "int" in dtype else 2**53 + 1
            assert_same(x[:2], np.stack([array[0], np.full(2, 7, dtype)]))
    with pytest.raises(UnsupportedError, match="a Lush matrix is read, and never written"):
        idxfile.open(places.path(data), mode="r+")
    if dtype in CODES:
        assert idxfile.encode(idxfile.read(data)) == idx_bytes(array)
    else:
        with pytest.raises(UnsupportedError):
            idxfile.encode(idxfile.read(data))


def test_the_lush_file_of_the_books() -> None:
    data = bytes.fromhex("554c3d1e 01000000 02000000 01000000 01000000 0708")
    assert idxfile.read(data).tolist() == [7, 8]


# Whole items of a file that was cut


@pytest.mark.parametrize("packing", [None, *COMPRESS])
@pytest.mark.parametrize("array", [SMALL, LARGE], ids=["small", "large"])
def test_the_whole_items_of_a_cut_file(packing: str | None, array: np.ndarray) -> None:
    start, item_nbytes = len(idx_bytes(array[:0])), array[0].nbytes
    for missing in (0, 1, item_nbytes, item_nbytes + 1):
        data = idx_bytes(array)[: start + array.nbytes - missing]
        file = COMPRESS[packing](data) if packing else data
        whole = len(array) - -(-missing // item_nbytes)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", IdxWarning)  # it says how many are whole
            x = array_room.open_whole_items(file)
        assert_same(np.asarray(x), array[:whole])
        x.close()


@pytest.mark.parametrize("dtype", ["uint8", "int32"])
def test_items_of_a_file_beyond_memory_are_announced(tmp_path, monkeypatch, dtype):
    """One after the other through the map, each would wait for the disk."""
    monkeypatch.setattr("idxfile.lazyarray.memory_nbytes", lambda: 100)
    values = np.arange(60, dtype=dtype).reshape(20, 3)
    idxfile.write(tmp_path / "x.idx", values)
    announced = []
    with idxfile.open(tmp_path / "x.idx") as x:
        monkeypatch.setattr(x._source, "will_need", lambda *where: announced.append(where))
        assert np.array_equal(x.take([3, -1]), values[[3, -1]])
    one = values[0].nbytes
    assert announced == [(12 + 3 * one, one), (12 + 19 * one, one)]


def test_in_is_numpys(tmp_path):
    values = np.arange(12, dtype="int16").reshape(3, 4)
    idxfile.write(tmp_path / "x.idx.gz", values)
    with idxfile.open(tmp_path / "x.idx.gz") as x:
        assert 11 in x
        assert 12 not in x
        assert values[1] in x


@pytest.mark.parametrize("problems", ["raise", "ignore"])
@pytest.mark.parametrize("key", [..., slice(3, 39_000), 30_000])
@pytest.mark.parametrize("packing", ["gz", "blocked", "zst"])
def test_reading_that_was_interrupted_is_repeated(
    packing: str, key: Any, problems: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    array = np.random.default_rng(1).integers(-1000, 1000, (40_000, 10)).astype("int32")
    raw = idxfile.encode(array) + b"\0" * 500_000 * (problems == "ignore")
    cuts = [raw[at : at + 50_000] for at in range(0, len(raw), 50_000)]
    pack = blocked_member if packing == "blocked" else COMPRESS[packing]
    path = tmp_path / "x.idx"
    path.write_bytes(b"".join(map(pack, cuts)))
    calls = [0]
    read = LocalFile.readinto_at

    def interrupted(self: LocalFile, start: int, buffer: Any) -> int:
        calls[0] += 1
        if calls[0] == 2:
            raise KeyboardInterrupt
        return read(self, start, buffer)

    x = idxfile.open(path, problems=problems)
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(LocalFile, "readinto_at", interrupted)
        x[...]
    assert_same(x[key], array[key])
    assert_same(x[...], array)
