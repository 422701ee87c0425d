"""The format: golden headers, and what the judge says of every wrong one."""

from __future__ import annotations

import math
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from conftest import CODES, H
from idxfile.errors import UnsupportedError
from idxfile.header import (
    ELEMENT_TYPES,
    IDX_TYPE_NAMES,
    MAX_DIMENSION,
    MAX_HEADER_NBYTES,
    MAX_NDIM,
    Header,
    examine,
    swapped_header,
)

DIMENSIONS = st.integers(0, MAX_DIMENSION)
SHAPES = st.one_of(st.lists(DIMENSIONS, max_size=4), st.lists(DIMENSIONS, max_size=MAX_NDIM))
HEADERS = st.builds(
    lambda name, shape: Header.of(name, tuple(shape)), st.sampled_from(IDX_TYPE_NAMES), SHAPES
)

# The table of element types


def test_the_table_holds_the_six_types_of_the_format() -> None:
    assert {row.name: row.code for row in ELEMENT_TYPES if row.code is not None} == CODES
    assert tuple(CODES) == IDX_TYPE_NAMES


def test_the_table_holds_the_types_of_lush() -> None:
    assert {row.lush: row.name for row in ELEMENT_TYPES} == {
        0x51: "float32",
        0x53: "float64",
        0x54: "int32",
        0x55: "uint8",
        0x56: "int16",
        0x57: "int8",
        0x59: "uint32",
        0x5A: "uint64",
        0x5B: "int64",
    }


@pytest.mark.parametrize("row", ELEMENT_TYPES, ids=lambda row: row.name)
def test_every_house_has_its_name_for_a_type(row: object) -> None:
    assert row.dtype == np.dtype(row.name)
    assert row.dtype.isnative
    assert row.dtype.itemsize == row.nbytes
    assert row.stored_dtype("big") == np.dtype(row.name).newbyteorder(">")
    assert row.stored_dtype("little") == np.dtype(row.name).newbyteorder("<")
    floats = {"float32": ("float", "Single"), "float64": ("double", "Double")}
    bits = {1: "Byte" if row.name == "uint8" else "SByte"}
    dotnet = bits.get(row.nbytes, row.name.replace("int", "Int").replace("u", "U"))
    assert (row.c, row.dotnet) == floats.get(row.name, (f"{row.name}_t", dotnet))


# Headers as values

GOLDEN = [
    ("uint8", (60000, 28, 28), "00000803 0000ea60 0000001c 0000001c"),
    ("uint8", (60000,), "00000801 0000ea60"),
    ("int8", (1,), "00000901 00000001"),
    ("int16", (2, 3), "00000b02 00000002 00000003"),
    ("int32", (120000, 8), "00000c02 0001d4c0 00000008"),
    ("float32", (), "00000d00"),
    ("float64", (0, 28, 28), "00000e03 00000000 0000001c 0000001c"),
    ("uint8", (2**32 - 1,), "00000801 ffffffff"),
]


@pytest.mark.parametrize(("name", "shape", "written"), GOLDEN)
def test_golden_headers(name: str, shape: tuple[int, ...], written: str) -> None:
    header = Header.of(name, shape)
    assert header.encode() == bytes.fromhex(written)
    assert examine(header.encode(), header.file_nbytes) == (header, [])


def test_the_magic_numbers_of_the_mnist_page() -> None:
    assert int.from_bytes(Header.of("uint8", (60000, 28, 28)).encode()[:4]) == 2051
    assert int.from_bytes(Header.of("uint8", (60000,)).encode()[:4]) == 2049


def test_what_follows_from_a_header() -> None:
    header = Header.of("int32", (5, 2, 3))
    assert header.ndim == 3
    assert header.size == 30
    assert header.nbytes == 120
    assert header.data_offset == 16
    assert header.file_nbytes == 136
    assert header.item_shape == (2, 3)
    assert header.item_nbytes == 24
    assert header.dtype == np.dtype("int32")
    assert header.stored_dtype == np.dtype(">i4")
    assert (header.byteorder, header.dialect) == ("big", "idx")
    assert str(header) == "int32 5 × 2 × 3"


def test_a_scalar_is_its_own_item() -> None:
    header = Header.of("float64", ())
    assert (header.ndim, header.size, header.item_shape, header.item_nbytes) == (0, 1, (), 8)
    assert str(header) == "float64 scalar"


def test_sizes_are_exact() -> None:
    assert Header.of("uint8", (65536,) * 4).nbytes == 18446744073709551616
    assert Header.of("uint8", (2**32 - 1, 28, 28)).nbytes == 3367254359280
    assert Header.of("float64", (2**32 - 1,) * 255).nbytes == 8 * (2**32 - 1) ** 255


@given(HEADERS)
def test_every_header_reads_as_it_was_written(header: Header) -> None:
    data = header.encode()
    assert len(data) == header.data_offset <= MAX_HEADER_NBYTES
    assert header.size == math.prod(header.shape)
    read, problems = examine(data, header.file_nbytes)
    assert read == header
    assert [p.code for p in problems] == ["many-dimensions"] * (header.ndim > 64)


@given(HEADERS, st.binary(min_size=1))
def test_what_follows_the_header_is_not_looked_at(header: Header, data: bytes) -> None:
    assert examine(header.encode() + data)[0] == header


def test_a_header_is_a_value() -> None:
    header = Header.of("uint8", (2, 3))
    assert header == Header.of("uint8", (np.int64(2), 3))
    assert hash(header) == hash(Header.of("uint8", (2, 3)))
    assert pickle.loads(pickle.dumps(header)) == header
    with pytest.raises(AttributeError):
        header.shape = (3, 2)  # type: ignore[misc]


@pytest.mark.parametrize(
    ("name", "shape", "message"),
    [
        ("int64", (2,), "IDX has no element type int64"),
        ("uint32", (2,), "IDX has no element type uint32"),
        ("bool", (2,), "IDX has no element type bool"),
        ("uint8", (1,) * 256, "256 dimensions; an IDX file holds 255"),
        ("uint8", (3, 2**32), "dimension 1 is 4,294,967,296; an IDX file holds 0 to 4,294,967,295"),
        ("uint8", (-1,), "dimension 0 is -1; an IDX file holds 0 to 4,294,967,295"),
    ],
)
def test_a_header_that_cannot_be_is_refused(
    name: str, shape: tuple[int, ...], message: str
) -> None:
    with pytest.raises(UnsupportedError) as caught:
        Header.of(name, shape)
    assert str(caught.value).startswith(message)


# The judge

HTML = b"<html>".hex()
JUDGED = [
    # what it is, bytes, size of the file, code, offset, found, expected, part of the message
    ("nothing", "", 0, "empty", 0, 0, 4, "file is empty (0 bytes), an IDX header needs at least 4"),
    ("one byte", "00", 1, "short-header", 1, 1, 4, "needs at least 4 bytes, file has 1"),
    ("three bytes", "000008", 3, "short-header", 3, 3, 4, "needs at least 4 bytes, file has 3"),
    (
        "cut dimensions",
        "00000803 00000002 0000",
        10,
        "short-header",
        10,
        10,
        16,
        "3 dimensions declared, header needs 16 bytes, file has 10",
    ),
    (
        "one byte short",
        "00000803 00000002 00000002 00000002",
        23,
        "truncated",
        23,
        7,
        8,
        "needs 24 bytes, has 23: 1 missing (item 1 of 2 incomplete)",
    ),
    (
        "scalar without value",
        "00000800",
        4,
        "truncated",
        4,
        0,
        1,
        "needs 5 bytes, has 4: 1 missing",
    ),
    (
        "a bomb",
        "00000803 ffffffff 0000001c 0000001c",
        16,
        "truncated",
        16,
        0,
        3367254359280,
        "needs 3,367,254,359,296 bytes, has 16: 3,367,254,359,280 missing",
    ),
    (
        "over 64 bits",
        "00000804 00010000 00010000 00010000 00010000",
        20,
        "truncated",
        20,
        0,
        18446744073709551616,
        "18,446,744,073,709,551,616 missing",
    ),
    (
        "one byte more",
        "00000801 00000001 070a",
        10,
        "trailing-data",
        9,
        2,
        1,
        "1 byte after the data at offset 9",
    ),
    (
        "bytes after nothing",
        "00000803 00000000 0000001c 0000001c",
        1234567,
        "trailing-data",
        16,
        1234551,
        0,
        "1,234,551 bytes after the data at offset 16",
    ),
    (
        "another type",
        "00000a01 00000002 0102",
        10,
        "unknown-type",
        2,
        0x0A,
        [8, 9, 11, 12, 13, 14],
        "found element type 0a at byte 2 (of 00 00 0a 01), expected one of 08 uint8, 09 int8, "
        "0B int16, 0C int32, 0D float32, 0E float64",
    ),
    (
        "no zeros",
        "ffff0801 00000001 07",
        9,
        "bad-magic",
        0,
        "ffff0801",
        "0000",
        "found ff ff 08 01 at byte 0, expected 00 00",
    ),
    (
        "a letter",
        "61000801",
        4,
        "bad-magic",
        0,
        "61000801",
        "0000",
        "found 61 00 08 01 at byte 0, expected 00 00",
    ),
    ("one letter", "61", 1, "bad-magic", 0, "61", "0000", "found 61 at byte 0, expected 00 00"),
    (
        "a page",
        HTML,
        6,
        "foreign",
        0,
        "an HTML page",
        "an IDX file",
        "this is an HTML page of 6 bytes, not an IDX file",
    ),
    (
        "little-endian",
        "03080000 02000000 02000000 02000000 0102030405060708",
        24,
        "swapped-header",
        0,
        "little-endian",
        "big-endian",
        "the dimensions read little-endian are 2,2,2 and fit the file's length",
    ),
    (
        "little-endian dimensions",
        "00000803 02000000 02000000 02000000 0102030405060708",
        24,
        "swapped-header",
        4,
        "little-endian",
        "big-endian",
        "the dimensions read little-endian are 2,2,2 and fit the file's length",
    ),
]


@pytest.mark.parametrize("case", JUDGED, ids=[case[0] for case in JUDGED])
def test_the_judge_says_what_is_where_and_what_was_expected(case: tuple) -> None:
    _, written, size, code, offset, found, expected, message = case
    _, problems = examine(bytes.fromhex(written), size)
    assert [problem.code for problem in problems] == [code]
    (problem,) = problems
    assert (problem.offset, problem.found, problem.expected) == (offset, found, expected)
    assert message in problem.message
    assert problem.hint


def test_a_header_is_returned_beside_a_wrong_length() -> None:
    header = Header.of("uint8", (2, 2, 2))
    for size in (16, 23, 25):
        assert examine(header.encode(), size)[0] == header


@pytest.mark.parametrize("written", [case[1] for case in JUDGED if case[3] == "truncated"])
def test_a_length_that_nobody_knows_is_not_judged(written: str) -> None:
    header, problems = examine(bytes.fromhex(written), None)
    assert header is not None
    assert problems == []


@given(st.binary(max_size=40), st.one_of(st.none(), st.integers(0, 100)))
def test_any_bytes_are_judged_and_none_break_the_judge(data: bytes, size: int | None) -> None:
    header, problems = examine(data, None if size is None else len(data) + size)
    assert header is not None or any(problem.level == "error" for problem in problems)


@given(st.binary(max_size=1024))
def test_a_right_file_is_only_what_begins_right(data: bytes) -> None:
    header, problems = examine(data, len(data))
    if header is not None and not problems and header.dialect == "idx":
        assert header.encode() == data[: header.data_offset]
        assert header.file_nbytes == len(data)


@pytest.mark.parametrize(
    ("written", "size", "shape"),
    [
        ("03080000 02000000 02000000 02000000", 24, (2, 2, 2)),
        ("03080000 02000000 02000000 02000000", None, (2, 2, 2)),
        ("03080000 02000000 02000000 02000000", 25, None),  # it does not fit: not certain
        ("00000803 02000000 02000000 02000000", 24, (2, 2, 2)),
        ("00000803 02000000 02000000 02000000", None, None),
        ("010c0000 03000000", 20, (3,)),
        ("000c0000", 8, ()),
        ("03070000 02000000 02000000 02000000", 24, None),
        ("03080000 02000000", 24, None),
        ("0308", 2, None),
    ],
)
def test_a_swapped_header_is_named_when_it_is_certain(
    written: str, size: int | None, shape: tuple[int, ...] | None
) -> None:
    header = swapped_header(bytes.fromhex(written), size)
    assert (header and header.shape) == shape


def test_dimensions_that_read_the_same_both_ways_are_no_swap() -> None:
    data = H(0x08, 0x02000002)
    assert examine(data, len(data))[1][0].code == "truncated"


# The sibling: Lush and EBLearn

LUSH = [
    ("554c3d1e 01000000 02000000 01000000 01000000", "uint8", (2,), 20, "little"),
    ("1e3d4c55 00000001 00000002 00000001 00000001", "uint8", (2,), 20, "big"),
    ("544c3d1e 02000000 03000000 02000000 01000000", "int32", (3, 2), 20, "little"),
    ("1e3d4c56 00000003 00000002 00000003 00000004", "int16", (2, 3, 4), 20, "big"),
    ("534c3d1e 04000000" + "02000000" * 4, "float64", (2, 2, 2, 2), 24, "little"),
    ("5b4c3d1e 01000000 02000000 01000000 01000000", "int64", (2,), 20, "little"),
    ("594c3d1e 01000000 02000000 01000000 01000000", "uint32", (2,), 20, "little"),
    ("514c3d1e ffffffff", "float32", (0,), 8, "little"),
    ("514c3d1e 00000000 01000000 01000000 01000000", "float32", (), 20, "little"),
]


@pytest.mark.parametrize(("written", "name", "shape", "offset", "order"), LUSH)
def test_a_lush_matrix_is_read_in_both_byte_orders(
    written: str, name: str, shape: tuple[int, ...], offset: int, order: str
) -> None:
    prefix = bytes.fromhex(written)
    size = offset + math.prod(shape) * np.dtype(name).itemsize
    header, problems = examine(prefix + bytes(size - len(prefix)), size)
    assert header is not None
    assert problems == []
    assert (header.element.name, header.shape, header.data_offset) == (name, shape, offset)
    assert (header.byteorder, header.dialect) == (order, "lush")
    assert header.file_nbytes == size


def test_a_lush_scalar_may_come_without_dimensions() -> None:
    header, problems = examine(bytes.fromhex("554c3d1e 00000000 07"), 9)
    assert header is not None
    assert (header.shape, header.data_offset, problems) == ((), 8, [])


def test_a_lush_matrix_becomes_a_standard_header() -> None:
    header, _ = examine(bytes.fromhex(LUSH[3][0]))
    assert header is not None
    assert header.encode() == H(0x0B, 2, 3, 4)


def test_a_type_that_only_lush_has_cannot_be_written() -> None:
    header, _ = examine(bytes.fromhex(LUSH[5][0]))
    assert header is not None
    with pytest.raises(UnsupportedError, match="IDX has no element type int64"):
        header.encode()


@pytest.mark.parametrize(
    ("written", "size", "code", "message"),
    [
        ("524c3d1e 01000000", 8, "unsupported-dialect", "a Lush matrix of packed elements"),
        ("584c3d1e 01000000", 8, "unsupported-dialect", "a Lush matrix of C long elements"),
        ("1e3d4c58 00000001", 8, "unsupported-dialect", "a Lush matrix of C long elements"),
        ("554c3d1e 0100", 6, "short-header", "a Lush header needs at least 8 bytes, file has 6"),
        ("554c3d1e 01000000 02000000", 12, "short-header", "a Lush header needs 20 bytes"),
        ("554c3d1e 00010000", 8, "bad-magic", "a Lush matrix of 256 dimensions at byte 4"),
        ("554c3d1e feffffff", 8, "bad-magic", "a Lush matrix of -2 dimensions at byte 4"),
        ("5f4c3d1e 01000000", 8, "bad-magic", "found 5f 4c 3d 1e at byte 0"),
        (LUSH[0][0], 21, "truncated", "needs 22 bytes, has 21: 1 missing"),
        (LUSH[0][0], 23, "trailing-data", "1 byte after the data at offset 22"),
    ],
)
def test_a_wrong_lush_matrix_is_refused_by_name(
    written: str, size: int, code: str, message: str
) -> None:
    _, problems = examine(bytes.fromhex(written), size)
    assert [problem.code for problem in problems] == [code]
    assert message in problems[0].message


def test_very_many_dimensions_are_told_in_few_words():
    """A header of 255 dimensions would fill the screen with digits otherwise."""
    header, problems = examine(bytes((0, 0, 8, 255)) + b"\xff" * 1020, 1027)
    assert len(str(header)) < 250
    assert str(header).endswith("(255 dimensions)")
    assert problems[0].message.startswith("needs about 10^2456 bytes, has 1,027")
    assert len(problems[0].message + problems[0].hint) < 500
