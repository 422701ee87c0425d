"""The IDX format: its specification, and the only code that knows it.

An IDX file is one tensor. All numbers are written with the most significant byte first.

    offset          size            value
    0               2               zero
    2               1               element type: 08 uint8, 09 int8, 0B int16, 0C int32,
                                    0D float32, 0E float64 (IEEE 754)
    3               1               ndim, the number of dimensions, 0 to 255
    4               4 x ndim        the dimensions, unsigned 32-bit
    4 + 4 x ndim    product x size  the elements in C order: the last index varies fastest

There is no padding, no alignment, no checksum, and nothing behind the elements. ndim 0 is one
scalar (the product of no dimensions is 1); a dimension of 0 makes an empty array. Any header fits
in 4 + 4 x 255 = 1,024 bytes. The first four bytes, read as one number, are the *magic number* of
the MNIST page: 2051 (00 00 08 03) is uint8 with three dimensions, 2049 (00 00 08 01) uint8 with
one. Source: Y. LeCun, C. Cortes, C. J. C. Burges, "The MNIST database of handwritten digits",
section "File formats".

The sibling, which is read and never written, is the binary matrix of Lush and EBLearn (NORB):

    0               4               magic: 1E 3D 4C and the type byte of the table below
    4               4               ndim, signed 32-bit; -1 is an empty array without dimensions
    8               4 x max(3,ndim) the dimensions, padded with 1 to at least three
    ...                             the elements

All of it stands in the byte order of the machine that wrote it: nearly always the least
significant byte first, so that such a file begins with xx 4C 3D 1E. Type 52 (packed) and 58
(C long) are refused by name: their size or scale is not in the file. Source: Lush 2,
src/index.c; EBLearn, idxIO.hpp.

One file of over 400 lines, so that the format stands on one page: specification, table, judge.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from . import signatures
from .errors import UnsupportedError, figure, sides
from .problems import Problem

if TYPE_CHECKING:
    import numpy as np

__all__ = ["Header", "examine"]

ByteOrder = Literal["big", "little"]

MAX_NDIM = 255
MAX_DIMENSION = 2**32 - 1
COUNT_OFFSET = 4
"""Where the first dimension stands: the number of items."""

MAX_HEADER_NBYTES = 4 + 4 * MAX_NDIM
MAX_ARRAY_NDIM = 64
"""What a NumPy array can have (NumPy 2)."""

_LUSH_MAGIC = 0x1E3D4C00
_LUSH_REFUSED = {
    0x52: "packed elements: one byte that stands for its sixteenth",
    0x58: "C long elements, 4 or 8 bytes as on the machine that wrote it",
}
_LUSH_MAX_NDIM = (MAX_HEADER_NBYTES - 8) // 4


@dataclass(frozen=True, slots=True)
class ElementType:
    """A row of the table of element types: one meaning, and its name in every house."""

    name: str
    """NumPy's name, which is the name used everywhere here."""
    code: int | None
    """Third byte of an IDX header; None for what only a Lush matrix can hold."""
    nbytes: int
    """Bytes of one element."""
    lush: int
    """Last byte of the Lush magic."""
    c: str
    """C's name (stdint.h)."""
    dotnet: str
    """.NET's name (System)."""

    @property
    def dtype(self) -> np.dtype[Any]:
        """The NumPy dtype, in native byte order."""
        import numpy as np

        return np.dtype(self.name)

    def stored_dtype(self, byteorder: ByteOrder) -> np.dtype[Any]:
        """The NumPy dtype of elements that lie in the given byte order."""
        return self.dtype.newbyteorder(">" if byteorder == "big" else "<")


ELEMENT_TYPES: tuple[ElementType, ...] = (
    ElementType("uint8", 0x08, 1, 0x55, "uint8_t", "Byte"),
    ElementType("int8", 0x09, 1, 0x57, "int8_t", "SByte"),
    ElementType("int16", 0x0B, 2, 0x56, "int16_t", "Int16"),
    ElementType("int32", 0x0C, 4, 0x54, "int32_t", "Int32"),
    ElementType("float32", 0x0D, 4, 0x51, "float", "Single"),
    ElementType("float64", 0x0E, 8, 0x53, "double", "Double"),
    ElementType("uint32", None, 4, 0x59, "uint32_t", "UInt32"),
    ElementType("uint64", None, 8, 0x5A, "uint64_t", "UInt64"),
    ElementType("int64", None, 8, 0x5B, "int64_t", "Int64"),
)

_BY_CODE = {row.code: row for row in ELEMENT_TYPES if row.code is not None}
_BY_LUSH = {row.lush: row for row in ELEMENT_TYPES}
_BY_NAME = {row.name: row for row in ELEMENT_TYPES}

KNOWN_CODES = ", ".join(f"{row.code:02X} {row.name}" for row in _BY_CODE.values())
IDX_TYPE_NAMES = tuple(row.name for row in _BY_CODE.values())


@dataclass(frozen=True, slots=True)
class Header:
    """What an IDX header says, and all that follows from it. A value: it never changes.

    Example:
        >>> header = Header.of("uint8", (60000, 28, 28))
        >>> header.encode().hex(" ", 4)
        '00000803 0000ea60 0000001c 0000001c'
        >>> header.data_offset, header.nbytes
        (16, 47040000)
    """

    element: ElementType
    """The row of ELEMENT_TYPES."""
    shape: tuple[int, ...]
    """The dimensions, outermost first."""
    data_offset: int
    """Byte at which the elements begin."""
    byteorder: ByteOrder = "big"
    """Byte order of the elements in the file."""
    dialect: Literal["idx", "lush"] = "idx"
    """`lush` for a Lush / EBLearn binary matrix."""

    @classmethod
    def of(cls, name: str, shape: tuple[int, ...]) -> Header:
        """The header of a standard file of these elements.

        Args:
            name: an element type by NumPy's name.
            shape: the dimensions, outermost first.

        Raises:
            UnsupportedError: when IDX has no such element type, or the shape has more than 255
                dimensions or a dimension outside 0 to 2^32 - 1.
        """
        element = _BY_NAME.get(name)
        if element is None or element.code is None:
            raise UnsupportedError(
                f"IDX has no element type {name}",
                found=name,
                expected=IDX_TYPE_NAMES,
                hint=f"the element types of IDX are {', '.join(IDX_TYPE_NAMES)}",
            )
        if len(shape) > MAX_NDIM:
            raise UnsupportedError(
                f"{len(shape)} dimensions; an IDX file holds {MAX_NDIM}",
                found=len(shape),
                expected=MAX_NDIM,
            )
        for axis, dimension in enumerate(shape):
            if not 0 <= dimension <= MAX_DIMENSION:
                raise UnsupportedError(
                    f"dimension {axis} is {dimension:,}; an IDX file holds 0 to {MAX_DIMENSION:,}",
                    found=dimension,
                    expected=MAX_DIMENSION,
                )
        return cls(element, tuple(int(n) for n in shape), 4 + 4 * len(shape))

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements, exact."""
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        """The bytes of all elements, exact."""
        return self.size * self.element.nbytes

    @property
    def file_nbytes(self) -> int:
        """The bytes of the whole (decompressed) file: header and elements."""
        return self.data_offset + self.nbytes

    @property
    def item_shape(self) -> tuple[int, ...]:
        """The shape of one entry along dimension 0; of a scalar, the scalar itself."""
        return self.shape[1:]

    @property
    def item_nbytes(self) -> int:
        """The bytes of one entry along dimension 0."""
        return math.prod(self.item_shape) * self.element.nbytes

    def offset_of(self, item: int) -> int:
        """The byte of the file at which an item begins."""
        return self.data_offset + item * self.item_nbytes

    @property
    def dtype(self) -> np.dtype[Any]:
        """The NumPy dtype of the elements once read: native byte order."""
        return self.element.dtype

    @property
    def stored_dtype(self) -> np.dtype[Any]:
        """The NumPy dtype of the elements as they lie in the file."""
        return self.element.stored_dtype(self.byteorder)

    def encode(self) -> bytes:
        """The header as the bytes of a standard IDX file, whatever dialect it was read from.

        Raises:
            UnsupportedError: for an element type that only a Lush matrix can hold.
        """
        standard = Header.of(self.element.name, self.shape)
        assert standard.element.code is not None
        dimensions = b"".join(n.to_bytes(4, "big") for n in standard.shape)
        return bytes((0, 0, standard.element.code, standard.ndim)) + dimensions

    def __str__(self) -> str:
        return f"{self.element.name} {sides(self.shape)}"


def examine(prefix: bytes, size: int | None = None) -> tuple[Header | None, list[Problem]]:
    """Judge the first bytes of a file, and its size when that is known.

    This is the one judge: opening, checking and mending all ask it.

    Args:
        prefix: the first 1,024 bytes of the decompressed file, or all of them if it is shorter.
        size: the bytes of the whole decompressed file, or None while that is unknown.

    Returns:
        The header, or None where none can be made out, and the problems found. A header is also
        returned beside a problem, when it can be read all the same.

    Example:
        >>> header, problems = examine(bytes.fromhex("00000801 00000002 07"), 9)
        >>> str(header), problems[0].code, problems[0].message
        ('uint8 2', 'truncated', 'needs 10 bytes, has 9: 1 missing (item 1 of 2 incomplete)')
    """
    if not prefix:
        return None, [
            Problem(
                "empty",
                "file is empty (0 bytes), an IDX header needs at least 4",
                offset=0,
                found=0,
                expected=4,
                hint="nothing was written, or nothing was downloaded: make or fetch it again",
            )
        ]
    if (order := _lush_order(prefix)) is not None:
        return _examine_lush(prefix, size, order)
    if prefix[:2] != b"\0\0"[: len(prefix)] or (len(prefix) > 2 and prefix[2] not in _BY_CODE):
        return None, [_not_idx(prefix, size)]
    if len(prefix) < 4:
        return None, [
            _short_header(f"a header needs at least 4 bytes, file has {len(prefix)}", 4, prefix)
        ]
    ndim = prefix[3]
    data_offset = 4 + 4 * ndim
    if len(prefix) < data_offset:
        text = (
            f"{ndim} dimensions declared, header needs {data_offset} bytes, file has {len(prefix)}"
        )
        return None, [_short_header(text, data_offset, prefix)]
    header = Header(_BY_CODE[prefix[2]], _dimensions(prefix, 4, ndim, "big"), data_offset)
    return header, _judge_header(header, prefix, size)


def _dimensions(prefix: bytes, start: int, count: int, order: ByteOrder) -> tuple[int, ...]:
    return tuple(
        int.from_bytes(prefix[at : at + 4], order) for at in range(start, start + 4 * count, 4)
    )


def _short_header(text: str, needed: int, prefix: bytes) -> Problem:
    return Problem(
        "short-header",
        text,
        offset=len(prefix),
        found=len(prefix),
        expected=needed,
        hint="the file was cut: make or fetch it again",
    )


def _judge_header(header: Header, prefix: bytes, size: int | None) -> list[Problem]:
    problems = []
    if header.ndim > MAX_ARRAY_NDIM:
        problems.append(
            Problem(
                "many-dimensions",
                f"{header.ndim} dimensions; NumPy holds {MAX_ARRAY_NDIM}",
                offset=3,
                found=header.ndim,
                expected=MAX_ARRAY_NDIM,
            )
        )
    if size is not None and size != header.file_nbytes:
        swapped = swapped_header(prefix, size)
        problems.insert(0, _swapped(swapped, 4, size) if swapped else _wrong_length(header, size))
    return problems


def _wrong_length(header: Header, size: int) -> Problem:
    needed = header.file_nbytes
    facts: dict[str, Any] = {"found": max(0, size - header.data_offset), "expected": header.nbytes}
    declared = (
        f"the header declares {header}: {figure(header.nbytes)} byte{'s'[: header.nbytes != 1]} "
        f"from byte {header.data_offset:,} on"
    )
    if size > needed:
        extra = size - needed
        return Problem(
            "trailing-data",
            f"{extra:,} byte{'s'[: extra > 1]} after the data at offset {needed:,}",
            offset=needed,
            **facts,
            hint=f'{declared}; problems="warn" passes over the rest, `idx repair` trims it off',
        )
    missing = needed - size
    item = saved = ""
    cut = True
    if header.ndim and header.item_nbytes:
        whole, rest = divmod(facts["found"], header.item_nbytes)
        cut = not whole or rest > 0
        item = f" (item {whole:,} of {header.shape[0]:,} incomplete)"
        if whole:
            items = f"{whole:,} whole item{'s'[: whole != 1]}"
            saved = f", or keep its {items} with `idx repair{' --salvage' if rest else ''}`"
    return Problem(
        "truncated",
        f"needs {figure(needed)} bytes, has {size:,}: {figure(missing)} missing{item}",
        offset=size,
        **facts,
        hint=f"{declared}; fetch the file again{saved}",
        repair=None if cut else "idx repair",
    )


def swapped_header(prefix: bytes, size: int | None) -> Header | None:
    """The header that stands there with its least significant byte first, if that is certain.

    It is certain when the dimensions, reversed, fit the length of the file, whether the magic
    stands right or is reversed, too (`03 08 00 00`). While the length is unknown, a reversed
    magic is enough.
    """
    if len(prefix) < 4:
        return None
    reversed_magic = prefix[2:4] == b"\0\0" and prefix[1] in _BY_CODE
    code, ndim = (prefix[1], prefix[0]) if reversed_magic else (prefix[2], prefix[3])
    data_offset = 4 + 4 * ndim
    if code not in _BY_CODE or len(prefix) < data_offset:
        return None
    shape = _dimensions(prefix, 4, ndim, "little")
    header = Header(_BY_CODE[code], shape, data_offset, "little")
    fits = size == header.file_nbytes
    return header if fits or (reversed_magic and size is None) else None


def _swapped(header: Header, offset: int, size: int | None) -> Problem:
    dimensions = ",".join(map(str, header.shape)) or "none"
    fit = "" if size is None else " and fit the file's length"
    return Problem(
        "swapped-header",
        f"the header is written with the least significant byte first: "
        f"the dimensions read little-endian are {dimensions}{fit}",
        offset=offset,
        found="little-endian",
        expected="big-endian",
        hint="`idx repair` writes the standard file; its writer forgot to turn the byte order",
    )


def _not_idx(prefix: bytes, size: int | None) -> Problem:
    """Say what a file is that does not begin as IDX does."""
    swapped = swapped_header(prefix, size)
    if swapped:
        return _swapped(swapped, 0, size)
    kind = signatures.recognise(prefix)
    length = "" if size is None else f" of {size:,} bytes"
    if kind:
        return Problem(
            "foreign",
            f"this is {signatures.describe(prefix)}{length}, not an IDX file",
            offset=0,
            found=kind.name,
            expected="an IDX file",
            hint=kind.hint,
        )
    start = prefix[:4].hex(" ")
    if prefix[:2] != b"\0\0":
        turned = _BY_CODE.get(prefix[1]) if prefix[2:4] == b"\0\0" else None
        return Problem(
            "bad-magic",
            f"found {start} at byte 0, expected 00 00, an element type and a number of dimensions",
            offset=0,
            found=prefix[:4].hex(),
            expected="0000",
            hint=f"backwards it is the magic of {turned.name}, but the dimensions do not fit the "
            "file's length: was it written little-endian, and cut?"
            if turned
            else "no known format begins so",
        )
    return Problem(
        "unknown-type",
        f"found element type {prefix[2]:02x} at byte 2 (of {start}), expected one of {KNOWN_CODES}",
        offset=2,
        found=prefix[2],
        expected=[row.code for row in _BY_CODE.values()],
        hint="IDX has these six types only; another program may have invented its own",
    )


def _lush_order(prefix: bytes) -> ByteOrder | None:
    """The byte order of a Lush matrix, or None where the magic is not Lush's."""
    for order in ("little", "big"):
        magic = int.from_bytes(prefix[:4], order)
        known = magic & 0xFF in _BY_LUSH or magic & 0xFF in _LUSH_REFUSED
        if magic & ~0xFF == _LUSH_MAGIC and known and len(prefix) >= 4:
            return order
    return None


def _examine_lush(
    prefix: bytes, size: int | None, order: ByteOrder
) -> tuple[Header | None, list[Problem]]:
    kind = int.from_bytes(prefix[:4], order) & 0xFF
    if kind in _LUSH_REFUSED:
        return None, [
            Problem(
                "unsupported-dialect",
                f"a Lush matrix of {_LUSH_REFUSED[kind]}: its values are not certain",
                offset=0 if order == "little" else 3,
                found=kind,
                expected=sorted(_BY_LUSH),
                hint="save it as int32 or float32 with the program that wrote it",
            )
        ]
    if len(prefix) < 8:
        return None, [
            _short_header(
                f"a Lush header needs at least 8 bytes, file has {len(prefix)}", 8, prefix
            )
        ]
    ndim = int.from_bytes(prefix[4:8], order, signed=True)
    if ndim == -1:
        header = Header(_BY_LUSH[kind], (0,), 8, order, "lush")
        return header, _judge_header(header, b"", size)
    if not 0 <= ndim <= _LUSH_MAX_NDIM:
        return None, [
            Problem(
                "bad-magic",
                f"a Lush matrix of {ndim:,} dimensions at byte 4, expected 0 to {_LUSH_MAX_NDIM}",
                offset=4,
                found=ndim,
                expected=_LUSH_MAX_NDIM,
                hint="the file is damaged, or only begins as a Lush matrix does",
            )
        ]
    # A scalar is padded by EBLearn and not by Lush: the length of the file tells which wrote it.
    bare_scalar = ndim == 0 and size == 8 + _BY_LUSH[kind].nbytes
    data_offset = 8 if bare_scalar else 8 + 4 * max(3, ndim)
    if len(prefix) < data_offset:
        text = (
            f"{ndim} dimensions declared, a Lush header needs {data_offset} bytes, "
            f"file has {len(prefix)}"
        )
        return None, [_short_header(text, data_offset, prefix)]
    shape = _dimensions(prefix, 8, ndim, order)
    header = Header(_BY_LUSH[kind], shape, data_offset, order, "lush")
    return header, _judge_header(header, b"", size)
