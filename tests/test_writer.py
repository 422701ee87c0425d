"""Writing: exactly the bytes of the format, whole or not at all, and nothing lost on the way.

What happens when the system fails or the process dies is in `test_durability.py`.
"""

from __future__ import annotations

import gc
import gzip
import io
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

import idxfile
from conftest import (
    CODES,
    COMPRESS,
    KINDS,
    KNOWN,
    NANS,
    PACKINGS,
    SEEKABLE,
    TYPES,
    H,
    Places,
    ShortReads,
    assert_same,
    bits,
    idx_bytes,
)
from idxfile.errors import FormatError, TrailingDataError, TruncatedError, UnsupportedError
from idxfile.header import MAX_DIMENSION

SMALL = bits("int16", 6, 3, 2)
LARGE = bits("int32", 900, 2)

SOME = {"small": SMALL, "large": LARGE, "1-D": bits("float64", 9), "no items": SMALL[:0]}
CODECS: list[dict[str, Any]] = [
    {},
    *({"codec": name} for name in COMPRESS),
    {"codec": "gz", "blocked": True},
]
ANY_ARRAY = st.sampled_from(TYPES).flatmap(
    lambda t: arrays(
        st.sampled_from((">", "<")).map(np.dtype(t).newbyteorder),
        st.one_of(st.just(()), array_shapes(min_side=0, max_dims=5)),
    )
)


# The bytes


@pytest.mark.parametrize("dtype", KNOWN)
def test_known_answers(dtype: str) -> None:
    written, values = KNOWN[dtype]
    golden = H(CODES[dtype], len(values)) + bytes.fromhex(written)
    assert idxfile.encode(np.array(values, dtype)) == golden
    assert idxfile.encode(np.array(values, np.dtype(dtype).newbyteorder(">"))) == golden


def test_the_files_of_the_books() -> None:
    assert idxfile.encode(np.arange(8, dtype="uint8").reshape(2, 2, 2)) == bytes.fromhex(
        "00000803 00000002 00000002 00000002 0001020304050607"
    )
    assert idxfile.encode(np.uint8(7)) == bytes.fromhex("00000800 07")
    assert idxfile.encode(np.zeros((0, 28, 28), "uint8")) == bytes.fromhex(
        "00000803 00000000 0000001c 0000001c"
    )
    assert idxfile.encode(np.array([1], "int32")) == bytes.fromhex("00000c01 00000001 00000001")


def test_every_array_is_written_as_the_format_says(array: np.ndarray, tmp_path: Path) -> None:
    golden = idx_bytes(array)
    assert idxfile.encode(array) == golden
    path = tmp_path / "a.idx"
    idxfile.write(path, array)
    assert path.read_bytes() == golden
    file = io.BytesIO()
    idxfile.write(file, array)
    assert file.getvalue() == golden


def test_what_was_read_is_written_as_it_was(array: np.ndarray) -> None:
    data = idx_bytes(array)
    read = idxfile.read(data)
    assert idxfile.encode(read) == data
    assert idxfile.encode(read.copy(order="F")) == data
    assert idxfile.encode(read.astype(read.dtype.newbyteorder())) == data
    with idxfile.open(data) as x:
        assert idxfile.encode(x) == data
        assert idxfile.encode(x.raw) == data


@pytest.mark.parametrize("dtype", NANS)
def test_every_bit_of_a_nan_is_written(dtype: str) -> None:
    elements = bytes.fromhex(NANS[dtype])
    stored = np.frombuffer(elements, np.dtype(dtype).newbyteorder(">"))
    for array in (stored, stored.astype(dtype), np.asfortranarray(np.stack([stored] * 2))[0]):
        assert idxfile.encode(array).endswith(elements)


@given(ANY_ARRAY)
def test_read_gives_what_was_encoded(array: np.ndarray) -> None:
    assert_same(idxfile.read(idxfile.encode(array)), array)


@given(ANY_ARRAY, st.sampled_from(CODECS))
def test_read_gives_what_was_compressed(array: np.ndarray, options: dict[str, Any]) -> None:
    assert_same(idxfile.read(idxfile.encode(array, **options)), array)


@pytest.mark.parametrize("options", CODECS, ids=str)
def test_a_compressed_file_is_the_compressed_bytes_and_always_the_same(
    options: dict[str, Any], tmp_path: Path
) -> None:
    array = bits("int32", 100_000)
    packed = idxfile.encode(array, **options)
    suffix = options.get("codec", "idx")
    path = tmp_path / f"a.{suffix}"
    idxfile.write(path, array, blocked="blocked" in options)
    assert path.read_bytes() == packed
    assert idxfile.encode(array[::-1][::-1], **options) == packed
    with idxfile.open(path) as x:
        assert x.codecs == ((suffix,) if options else ())
        assert_same(np.asarray(x), array)


def test_a_name_decides_unless_a_codec_is_given(tmp_path: Path) -> None:
    idxfile.write(tmp_path / "a.gz", SMALL, codec=None)
    assert (tmp_path / "a.gz").read_bytes() == idx_bytes(SMALL)
    idxfile.write(tmp_path / "a.idx", SMALL, codec="gz")
    assert gzip.decompress((tmp_path / "a.idx").read_bytes()) == idx_bytes(SMALL)


def test_lists_and_scalars_are_arrays_too() -> None:
    assert idxfile.encode([[1, 2], [3, 4]], cast="safe") == H(8, 2, 2) + b"\1\2\3\4"
    assert idxfile.encode([0.5], dtype="float32", cast="safe") == H(13, 1) + b"\x3f\0\0\0"
    assert idxfile.encode(True, cast="safe") == H(8) + b"\1"
    assert idxfile.encode([], dtype="uint8", cast="safe") == H(8, 0)
    with pytest.raises(ValueError, match="inhomogeneous"):
        idxfile.encode([[1], [2, 3]], cast="safe")


def test_as_many_dimensions_as_numpy_has() -> None:
    array = np.zeros((1,) * 64, "uint8")
    assert idxfile.read(idxfile.encode(array)).shape == (1,) * 64


def test_a_dimension_that_does_not_fit_is_refused(tmp_path: Path) -> None:
    huge = np.broadcast_to(np.uint8(0), (2**32,))
    with pytest.raises(UnsupportedError, match="dimension 0 is 4,294,967,296; an IDX file holds"):
        idxfile.write(tmp_path / "a.idx", huge)
    assert os.listdir(tmp_path) == []


# Casts


@pytest.mark.parametrize(
    ("values", "options", "message"),
    [
        (np.array([5, 0, 4]), {}, "an IDX file cannot hold int64"),
        (np.array([5, 0, 4]), {"dtype": "uint8"}, "an IDX file of uint8 cannot hold int64"),
        (np.array([5], "uint8"), {"dtype": "int16"}, "an IDX file of int16 cannot hold uint8"),
        (np.array([300]), {"dtype": "uint8", "cast": "safe"}, "300 at index (0) does not survive"),
        (np.array([1], "int8"), {"dtype": "int64"}, "IDX has no element type int64"),
        (np.array(["a"]), {"cast": "safe"}, "an IDX file cannot hold <U1"),
    ],
)
def test_what_would_be_lost_is_refused_and_nothing_is_left(
    values: np.ndarray, options: dict[str, Any], message: str, tmp_path: Path
) -> None:
    (tmp_path / "a.idx").write_bytes(b"old")
    with pytest.raises(UnsupportedError) as caught:
        idxfile.write(tmp_path / "a.idx", values, **options)
    assert str(caught.value).startswith(message)
    with pytest.raises(UnsupportedError):
        idxfile.encode(values, **options)
    assert (tmp_path / "a.idx").read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["a.idx"]


@pytest.mark.parametrize(
    ("values", "dtype", "element"),
    [
        (np.array([True, False]), None, "uint8"),
        (np.array([0, 255]), None, "uint8"),
        (np.array([-1, 127]), None, "int8"),
        (np.array([-1, 128]), None, "int16"),
        (np.array([0, 70000]), None, "int32"),
        (np.array([0, 9]), "float64", "float64"),
        (np.array([1.0, 2.0]), "int8", "int8"),
        (np.array([0.5], "float16"), None, "float32"),
    ],
)
def test_a_safe_cast_keeps_every_value(values: np.ndarray, dtype: Any, element: str) -> None:
    read = idxfile.read(idxfile.encode(values, dtype=dtype, cast="safe"))
    assert read.dtype == element
    assert (read == values).all()


# Places


def test_writing_onto_the_file_that_is_mapped_keeps_the_view_whole(tmp_path: Path) -> None:
    path = tmp_path / "a.idx"
    array = bits("uint8", 1000, 28)
    idxfile.write(path, array)
    with idxfile.open(path) as x:
        view = x[...]
        idxfile.write(path, view[::-1])
        assert_same(view, array)
        idxfile.write(path, idxfile.open(path)[::2])
    assert_same(idxfile.read(path), array[::-1][::2])


def test_a_file_object_is_written_from_its_position(tmp_path: Path) -> None:
    with open(tmp_path / "a.bin", "w+b") as file:
        file.write(b"before")
        idxfile.write(file, SMALL)
        idxfile.write(file, LARGE)
        file.seek(6)
        assert_same(idxfile.read(io.BytesIO(file.read(len(idx_bytes(SMALL))))), SMALL)
        assert_same(idxfile.read(file), LARGE)
        assert not file.closed


@pytest.mark.parametrize("target", [None, 5, b"data", io.StringIO()])
def test_what_cannot_be_written_to(target: Any) -> None:
    with pytest.raises(TypeError, match="a path or a writable binary file object"):
        idxfile.write(target, SMALL)


def test_an_error_while_the_elements_are_fetched_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> Any:
        yield b"some"
        raise KeyboardInterrupt

    monkeypatch.setattr("idxfile.writer.stored_pieces", fail)
    with pytest.raises(KeyboardInterrupt):
        idxfile.write(tmp_path / "a.idx", SMALL)
    assert os.listdir(tmp_path) == []


# A writer, block by block


@pytest.mark.parametrize("options", [*CODECS, {"codec": None}], ids=str)
@pytest.mark.parametrize("array", SOME.values(), ids=SOME)
def test_blocks_make_the_same_file_as_the_whole(
    array: np.ndarray, options: dict[str, Any], tmp_path: Path
) -> None:
    path = tmp_path / "a.idx"
    counts = [len(array)] if options.get("codec") else [len(array), None]
    for count in counts:
        writer = idxfile.create(
            path, dtype=array.dtype, item_shape=array.shape[1:], count=count, **options
        )
        with writer as w:
            assert not w.closed
            w.append(array[:2])
            w.append(array[2:2])
            w.append(np.asfortranarray(array[2:].astype(array.dtype.newbyteorder(">"))))
            assert len(w) == len(array)
            assert w.shape == array.shape
            assert w.dtype == array.dtype
        assert w.closed
        assert path.read_bytes() == idxfile.encode(array, **options)


def test_a_writer_says_what_it_is(tmp_path: Path) -> None:
    path = tmp_path / "a.idx"
    with idxfile.create(path, dtype="uint8", item_shape=(28, 28)) as w:
        assert w.name == str(path)
        assert repr(w) == f"<IdxWriter {str(path)!r}: uint8 (0, 28, 28)>"
    assert repr(w) == f"<IdxWriter {str(path)!r}: uint8 (0, 28, 28), closed>"


def test_nothing_stands_under_the_name_before_the_end(tmp_path: Path) -> None:
    path = tmp_path / "a.idx"
    w = idxfile.create(path, dtype="int16", item_shape=(3, 2))
    w.append(SMALL)
    assert not path.exists()
    w.close()
    w.close()
    assert path.read_bytes() == idx_bytes(SMALL)
    assert os.listdir(tmp_path) == ["a.idx"]
    for late in (lambda: w.append(SMALL), lambda: w.__enter__()):
        with pytest.raises(ValueError, match="is closed"):
            late()


@pytest.mark.parametrize("how", ["exception", "abort", "forgotten"])
@pytest.mark.parametrize("old", [None, b"old"])
def test_a_writer_that_does_not_finish_leaves_what_was_there(
    how: str, old: bytes | None, tmp_path: Path
) -> None:
    path = tmp_path / "a.idx"
    if old is not None:
        path.write_bytes(old)
    w: Any = idxfile.create(path, dtype="int16", item_shape=(3, 2))
    w.append(SMALL)
    if how == "exception":
        with pytest.raises(ZeroDivisionError), w:
            _ = 1 // 0
    elif how == "abort":
        w.abort()
        w.abort()
    else:
        del w
        gc.collect()
    assert (path.read_bytes() if path.exists() else None) == old
    assert len(os.listdir(tmp_path)) == (old is not None)


@pytest.mark.parametrize("target", ["path", "file object"])
def test_an_unknown_count_is_settled_at_the_end(target: str, tmp_path: Path) -> None:
    file: Any = tmp_path / "a.idx" if target == "path" else io.BytesIO()
    with idxfile.create(file, dtype="int16", item_shape=(3, 2)) as w:
        for item in SMALL:
            w.append(item[None])
    found = file.read_bytes() if target == "path" else file.getvalue()
    assert found == idx_bytes(SMALL)


class Stream(io.RawIOBase):
    """A file object that cannot go back."""

    def __init__(self) -> None:
        self.data = bytearray()

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self.data += bytes(data)[:1000]
        return min(len(data), 1000)


def test_a_stream_needs_to_know_the_count(tmp_path: Path) -> None:
    stream = Stream()
    options: dict[str, Any] = {"dtype": "int32", "item_shape": (2,)}
    with pytest.raises(ValueError, match="give count="):
        idxfile.create(stream, **options)
    with pytest.raises(ValueError, match="give count="):
        idxfile.create(tmp_path / "a.gz", **options)
    assert os.listdir(tmp_path) == []
    assert not stream.data
    with idxfile.create(stream, count=900, **options) as w:
        w.append(LARGE)
    assert stream.data == idx_bytes(LARGE)


def test_the_count_that_was_promised_must_come(tmp_path: Path) -> None:
    path = tmp_path / "a.idx"
    with (
        pytest.raises(ValueError, match="5 items came, 6 were promised: nothing was written"),
        idxfile.create(path, dtype="int16", item_shape=(3, 2), count=6) as w,
    ):
        w.append(SMALL[:5])
    with (
        pytest.raises(ValueError, match="7 items, and there is room for 6"),
        idxfile.create(path, dtype="int16", item_shape=(3, 2), count=6) as w,
    ):
        w.append(SMALL)
        w.append(SMALL[:1])
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    ("block", "error", "message"),
    [
        (SMALL[0], ValueError, r"a block of shape \(3, 2\), expected \(items, 3, 2\)"),
        (SMALL[:, :2], ValueError, r"a block of shape \(6, 2, 2\), expected \(items, 3, 2\)"),
        (SMALL.astype("int32"), UnsupportedError, "an IDX file of int16 cannot hold int32"),
    ],
)
def test_a_block_that_does_not_fit_is_refused_and_the_next_may_come(
    block: Any, error: type[Exception], message: str, tmp_path: Path
) -> None:
    path = tmp_path / "a.idx"
    with idxfile.create(path, dtype="int16", item_shape=(3, 2)) as w:
        w.append(SMALL[:1])
        with pytest.raises(error, match=message):
            w.append(block)
        w.append(SMALL[1:])
    assert path.read_bytes() == idx_bytes(SMALL)


def test_blocks_are_cast_where_every_value_survives(tmp_path: Path) -> None:
    path = tmp_path / "a.idx"
    with idxfile.create(path, dtype="uint8", cast="safe") as w:
        w.append([1, 2, 3])
        with pytest.raises(UnsupportedError, match=r"256 at index \(1\)"):
            w.append([4, 256])
        w.append(np.array([True]))
        w.append(np.array([255.0]))
    assert path.read_bytes() == H(8, 5) + b"\1\2\3\1\xff"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"dtype": "int64"}, "IDX has no element type int64"),
        ({"dtype": "uint8", "item_shape": (2**32,)}, "dimension 1 is 4,294,967,296"),
        ({"dtype": "uint8", "item_shape": (1,) * 255}, "256 dimensions; an IDX file holds 255"),
        ({"dtype": "uint8", "count": 2**32}, "dimension 0 is 4,294,967,296"),
        ({"dtype": "uint8", "count": -1}, "dimension 0 is -1"),
    ],
)
def test_a_file_that_cannot_be_is_never_begun(
    options: dict[str, Any], message: str, tmp_path: Path
) -> None:
    with pytest.raises(UnsupportedError, match=message):
        idxfile.create(tmp_path / "a.idx", **options)
    assert os.listdir(tmp_path) == []


# Append, in place


@pytest.mark.parametrize("packing", [None, *COMPRESS, "gz members", "xz in gz"])
@pytest.mark.parametrize("array", SOME.values(), ids=SOME)
def test_appended_items_stand_behind_the_old_ones(
    array: np.ndarray, packing: str | None, places: Places
) -> None:
    data = idx_bytes(array[:4])
    path = places.path(PACKINGS[packing](data) if packing else data)
    idxfile.append(path, array[4:5])
    idxfile.append(path, array[5:5])
    idxfile.append(Path(path), np.asfortranarray(array[5:].astype(array.dtype.newbyteorder(">"))))
    assert_same(idxfile.read(path), array)
    with idxfile.open(path) as x:
        assert bool(x.codecs) == bool(packing)
    if packing is None:
        assert Path(path).read_bytes() == idx_bytes(array)
    assert os.listdir(places.folder) == [os.path.basename(path)]


def test_an_open_map_keeps_the_items_it_had(places: Places) -> None:
    path = places.path(idx_bytes(SMALL))
    with idxfile.open(path) as x:
        idxfile.append(path, SMALL)
        assert_same(x[...], SMALL)
    assert_same(idxfile.read(path), np.concatenate([SMALL, SMALL]))


def test_items_are_cast_where_every_value_survives(places: Places) -> None:
    path = places.path(H(8, 1) + b"\7")
    idxfile.append(path, [1, 2], cast="safe")
    assert Path(path).read_bytes() == H(8, 3) + b"\7\1\2"


REFUSED: list[tuple[bytes, Any, type[Exception], str]] = [
    (idx_bytes(SMALL), SMALL[0], ValueError, "a block of shape"),
    (idx_bytes(SMALL), SMALL[:, :2], ValueError, "a block of shape"),
    (idx_bytes(SMALL), SMALL.astype("int32"), UnsupportedError, "of int16 cannot hold int32"),
    (H(8) + b"\7", np.zeros(1, "uint8"), UnsupportedError, "a scalar has no items to append to"),
    (idx_bytes(SMALL) + b"\n", SMALL, TrailingDataError, "1 byte after the data"),
    (idx_bytes(SMALL)[:-1], SMALL, TruncatedError, "1 missing"),
    (b"", SMALL, TruncatedError, "file is empty"),
    (b"<html>", SMALL, FormatError, "this is an HTML page"),
    (gzip.compress(idx_bytes(SMALL))[:-1], SMALL, TruncatedError, "the gz stream is cut"),
    (gzip.compress(idx_bytes(LARGE) + b"\n"), LARGE, TrailingDataError, "after the data"),
    (
        b"\x55\x4c\x3d\x1e\1\0\0\0\2\0\0\0\1\0\0\0\1\0\0\0\7\x08",
        np.zeros(1, "uint8"),
        UnsupportedError,
        "a Lush matrix is read, and never written",
    ),
]


@pytest.mark.parametrize(("data", "block", "error", "message"), REFUSED)
def test_what_cannot_be_appended_to_stays_as_it_is(
    data: bytes, block: np.ndarray, error: type[Exception], message: str, places: Places
) -> None:
    path = places.path(data)
    with pytest.raises(error, match=message):
        idxfile.append(path, block)
    assert Path(path).read_bytes() == data
    assert os.listdir(places.folder) == [os.path.basename(path)]


def test_the_count_of_items_has_an_end(places: Places) -> None:
    path = places.path(H(8, MAX_DIMENSION, 0))
    with pytest.raises(UnsupportedError, match=r"4,294,967,296 items; an IDX file holds 4,294,96"):
        idxfile.append(path, np.zeros((1, 0), "uint8"))


@pytest.mark.parametrize("file", [io.BytesIO(), b"data", 5, None])
def test_append_needs_a_path(file: Any) -> None:
    with pytest.raises(TypeError, match="append needs the path of a file"):
        idxfile.append(file, SMALL)


def test_append_to_nothing(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        idxfile.append(tmp_path / "none.idx", SMALL)
    assert os.listdir(tmp_path) == []


# Many files into one


@pytest.mark.parametrize("options", CODECS, ids=str)
def test_many_files_make_one(options: dict[str, Any], places: Places) -> None:
    parts = [LARGE[:0], LARGE[:5], LARGE[5:700], LARGE[700:]]
    kinds = ["str", "gz", "BytesIO", "xz bytes"]
    files = [KINDS[kind](places, idx_bytes(p)) for kind, p in zip(kinds, parts, strict=True)]
    target = Path(places.path())
    idxfile.concat(target, files, **options)
    assert target.read_bytes() == idxfile.encode(LARGE, **options)


@pytest.mark.parametrize("kind", list(SEEKABLE))
def test_every_kind_of_file_is_concatenated(kind: str, places: Places) -> None:
    out = io.BytesIO()
    idxfile.concat(out, (KINDS[kind](places, idx_bytes(SMALL)) for _ in range(2)))
    assert out.getvalue() == idx_bytes(np.concatenate([SMALL, SMALL]))


def test_a_file_may_be_concatenated_onto_itself(places: Places) -> None:
    path = places.path(idx_bytes(SMALL))
    idxfile.concat(path, [path, path])
    assert_same(idxfile.read(path), np.concatenate([SMALL, SMALL]))


def test_little_and_big_lush_files_become_one_standard_file() -> None:
    little = bytes.fromhex("544c3d1e 01000000 01000000 01000000 01000000 07000000")
    big = bytes.fromhex("1e3d4c54 00000001 00000001 00000001 00000001 00000008")
    out = io.BytesIO()
    idxfile.concat(out, [little, big])
    assert out.getvalue() == H(0x0C, 2) + bytes.fromhex("00000007 00000008")


@pytest.mark.parametrize(
    ("files", "error", "message"),
    [
        ([], ValueError, "concat needs at least one file"),
        ([SMALL, SMALL[:, :2]], FormatError, r"items of int16 \(2, 2\), expected int16 \(3, 2\)"),
        ([SMALL, SMALL.astype("int32")], FormatError, "items of int32"),
        ([np.uint8(7)], UnsupportedError, "a scalar has no items to concatenate"),
        ([np.zeros((2**31, 0), "uint8")] * 2, UnsupportedError, "dimension 0 is 4,294,967,296"),
    ],
)
def test_files_that_do_not_fit_together(
    files: list[np.ndarray], error: type[Exception], message: str, tmp_path: Path
) -> None:
    with pytest.raises(error, match=message):
        idxfile.concat(tmp_path / "a.idx", [idx_bytes(array) for array in files])
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: gzip.compress(data)[:-1],
        lambda data: gzip.compress(data + b"\n"),
        lambda data: ShortReads(data[:-1], seekable=False),
    ],
)
def test_a_damaged_part_leaves_nothing(damage: Callable[[bytes], Any], tmp_path: Path) -> None:
    with pytest.raises(FormatError):
        idxfile.concat(tmp_path / "a.idx", [idx_bytes(LARGE), damage(idx_bytes(LARGE))])
    assert os.listdir(tmp_path) == []


def test_an_item_of_one_dimension_is_a_number(tmp_path):
    with idxfile.create(tmp_path / "x.idx", dtype="uint8", item_shape=3) as w:
        w.append(np.ones((2, 3), "uint8"))
    assert idxfile.read(tmp_path / "x.idx").shape == (2, 3)
    with pytest.raises(TypeError):
        idxfile.create(tmp_path / "y.idx", dtype="uint8", item_shape=(2.5,))
