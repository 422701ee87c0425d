"""Lush / EBLearn binary matrices (NORB), the sibling of IDX: right and wrong ones."""

from __future__ import annotations

import struct
from typing import Literal

from .row import CODES, Answer, Problem, Row, problem

Order = Literal["little", "big"]

LETTERS: tuple[tuple[Order, str], ...] = (("little", "<"), ("big", ">"))

KINDS = {
    "float32": (0x51, [1.5, -0.0]),
    "float64": (0x53, [-2.5, 0.1]),
    "int32": (0x54, [-1, 70000]),
    "uint8": (0x55, [7, 255]),
    "int16": (0x56, [-2, 256]),
    "int8": (0x57, [-128, 127]),
    "uint32": (0x59, [1, 2**32 - 1]),
    "uint64": (0x5A, [1, 2**64 - 1]),
    "int64": (0x5B, [-1, 2**53 + 1]),
}
"""Element type → last byte of the magic, and two values."""


def start(kind: int, order: Order, ndim: int, dims: tuple[int, ...]) -> bytes:
    """Magic, number of dimensions and dimensions, in the order of the writing machine."""
    numbers = (0x1E3D4C00 | kind, ndim % 2**32, *dims)
    return b"".join(number.to_bytes(4, order) for number in numbers)


def lush(name: str, why: str, data: bytes | str, answer: Answer) -> Row:
    """A right matrix."""
    file = bytes.fromhex(data) if isinstance(data, str) else data
    return Row(f"lush-{name}", why, file, ("lush",), answer, suffix=".mat")


def wrong(name: str, why: str, data: bytes | str, *refusals: Problem) -> Row:
    """A wrong matrix, or one whose values are not certain."""
    file = bytes.fromhex(data) if isinstance(data, str) else data
    return Row(f"lush-{name}", why, file, ("lush",), refusals=refusals, suffix=".mat")


def _typed(type_: str, order: Order, letter: str) -> Row:
    kind, values = KINDS[type_]
    letters = f"2{CODES[type_][1]}"
    return lush(
        f"{order}-{type_}",
        f"Two elements of {type_}, {order}-endian; one dimension, padded with 1 to three.",
        start(kind, order, 1, (2, 1, 1)) + struct.pack(letter + letters, *values),
        Answer(type_, (2,), struct.pack(">" + letters, *values)),
    )


TYPES = tuple(_typed(type_, order, letter) for order, letter in LETTERS for type_ in KINDS)

LITTLE = (
    lush("scalar-padded", "No dimensions, and three of 1 all the same: as EBLearn writes it.",
         start(0x55, "little", 0, (1, 1, 1)) + b"\7", Answer("uint8", (), b"\7")),
    lush("scalar-bare", "No dimensions and none written: as Lush writes it.",
         start(0x54, "little", 0, ()) + b"\7\0\0\0", Answer("int32", (), b"\0\0\0\7")),
    lush("scalar-bare-big", "No dimensions and none written, big-endian.",
         start(0x56, "big", 0, ()) + b"\1\2", Answer("int16", (), b"\1\2")),
    lush("undimensioned", "-1 dimensions: a matrix that was never given any, and has no elements.",
         start(0x51, "little", -1, ()), Answer("float32", (0,), b"")),
    lush("ndim-2", "Two dimensions, padded with one 1.",
         start(0x56, "little", 2, (2, 2, 1)) + bytes.fromhex("0100 0200 0001 ffff"),
         Answer("int16", (2, 2), bytes.fromhex("0001 0002 0100 ffff"))),
    lush("ndim-3", "Three dimensions, no padding.",
         start(0x55, "little", 3, (1, 2, 3)) + bytes(range(6)),
         Answer("uint8", (1, 2, 3), bytes(range(6)))),
    lush("ndim-3-big", "Three dimensions, big-endian.",
         start(0x55, "big", 3, (1, 2, 3)) + bytes(range(6)),
         Answer("uint8", (1, 2, 3), bytes(range(6)))),
    lush("ndim-4", "Four dimensions, as the stereo pairs of NORB: items, cameras, rows, columns.",
         start(0x55, "little", 4, (2, 2, 3, 3)) + bytes(range(36)),
         Answer("uint8", (2, 2, 3, 3), bytes(range(36)))),
    lush("ndim-4-big", "Four dimensions of int32, big-endian.",
         start(0x54, "big", 4, (1, 1, 1, 2)) + bytes.fromhex("00000001 00011170"),
         Answer("int32", (1, 1, 1, 2), bytes.fromhex("00000001 00011170"))),
    lush("nan", "The payload of a NaN is kept.",
         start(0x51, "little", 1, (1, 1, 1)) + bytes.fromhex("010080ff"),
         Answer("float32", (1,), bytes.fromhex("ff800001"))),
)  # fmt: skip

BYTE = start(0x55, "little", 1, (2, 1, 1)) + b"\7\x08"
"""20 bytes of header, two of data."""


def _header(nbytes: int) -> tuple[Problem, ...]:
    return problem("short-header", nbytes), Problem("dimension", offset=nbytes)


WRONG = (
    wrong("packed", "Packed elements: one byte that stands for its sixteenth, in some versions.",
          start(0x52, "little", 1, (1, 1, 1)) + b"\7", problem("unsupported-dialect", 0)),
    wrong("packed-big", "Packed elements, big-endian.", start(0x52, "big", 1, (1, 1, 1)) + b"\7",
          problem("unsupported-dialect", 3)),
    wrong("long", "Elements of C's long: 4 or 8 bytes, as on the machine that wrote it.",
          start(0x58, "little", 1, (1, 1, 1)) + bytes(8), problem("unsupported-dialect", 0)),
    wrong("long-big", "Elements of C's long, big-endian.",
          start(0x58, "big", 1, (1, 1, 1)) + bytes(8), problem("unsupported-dialect", 3)),
    wrong("unknown-kind", "A magic number beyond the table: 1E3D4C5F.",
          start(0x5F, "little", 1, (1, 1, 1)) + b"\7", problem("bad-magic", 0),
          problem("unsupported-dialect", 0)),
    wrong("unknown-kind-big", "A magic number beyond the table, big-endian.",
          start(0x5F, "big", 1, (1, 1, 1)) + b"\7", problem("bad-magic", 0),
          problem("unsupported-dialect", 3)),
    wrong("ndim-negative", "-2 dimensions.", start(0x55, "little", -2, (1, 1, 1)),
          problem("bad-magic", 4, "dimension")),
    wrong("ndim-bomb", "2^31 - 1 dimensions: nothing is allocated for them.",
          start(0x55, "little", 2**31 - 1, (1, 1, 1)), problem("bad-magic", 4, "dimension"),
          *_header(20)),
    wrong("cut-magic", "The magic alone.", BYTE[:4], problem("short-header", 4)),
    wrong("cut-ndim", "Cut inside the number of dimensions.", BYTE[:6],
          problem("short-header", 6)),
    wrong("cut-dimensions", "The padding of the dimensions is missing.", BYTE[:12], *_header(12)),
    wrong("cut-dimensions-last", "The last byte of the header is missing.", BYTE[:19],
          *_header(19)),
    wrong("cut-data", "The last byte is missing.", BYTE[:-1], problem("truncated", 21)),
    wrong("cut-data-all", "A whole header and no data.", BYTE[:20], problem("truncated", 20)),
    wrong("trailing", "One byte too many.", BYTE + b"\0", problem("trailing-data", 22)),
    wrong("trailing-undimensioned", "-1 dimensions, and data all the same.",
          start(0x55, "little", -1, ()) + b"\7", problem("trailing-data", 8)),
    wrong("bomb", "(2^31 - 1)^3 elements of eight bytes, and none there.",
          start(0x53, "little", 3, (2**31 - 1,) * 3), problem("truncated", 20),
          Problem("dimension")),
    wrong("dimension-negative", "A dimension of -1: read without a sign it is far too large.",
          start(0x55, "little", 1, (2**32 - 1, 1, 1)) + b"\7", problem("truncated", 21),
          Problem("dimension")),
    wrong("text", "A matrix in Lush's text form, which is another format.", b".MAT 1 2\n7 8\n",
          problem("foreign", 0), problem("bad-magic", 0)),
)  # fmt: skip

ROWS = (*TYPES, *LITTLE, *WRONG)
