"""The elements of a MATLAB file of version 5: matrices written, and those found that lie bare.

A file is a text of 116 bytes, 8 bytes of nothing, a version, and a mark of the byte order; then
elements: a type, a length, and that many bytes up to a multiple of 8 (an element of up to four
bytes has both in the first four). A matrix is an element of elements: flags, dimensions, name,
values. The first index varies fastest. Source: MathWorks, "MAT-File Format", chapter "Level 5
MAT-Files".
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ..elements import Array
from ..source import LocalFile
from .stored import Stored

__all__ = ["Bare", "bare_matrices", "cell", "head", "matrix_head"]

_HEADER_NBYTES = 128
_INT8, _INT32, _UINT32, _MATRIX, _COMPRESSED, _UTF8 = 1, 5, 6, 14, 15, 16
_CELL, _CHAR = 1, 4
_COMPLEX_OR_LOGICAL = 0x0A00
TYPES = {
    "float64": (6, 9),
    "float32": (7, 7),
    "int8": (8, 1),
    "uint8": (9, 2),
    "int16": (10, 3),
    "uint16": (11, 4),
    "int32": (12, 5),
    "uint32": (13, 6),
    "int64": (14, 12),
    "uint64": (15, 13),
}
"""Element type → the class of a matrix, and the type of its values."""

_NAMES = {pair: name for name, pair in TYPES.items()}


class Bare:
    """A matrix whose values lie in the file as they are, with its dimensions reversed.

    The first index varies slowest then, and slices along it are read by position; every other key
    is answered from a map.
    """

    def __init__(self, stored: Stored) -> None:
        self._stored = stored
        self.shape = stored.shape
        self.dtype = stored.dtype

    def __getitem__(self, key: Any) -> Array:
        stored = self._stored
        if isinstance(key, slice):
            return stored[key]
        whole: Array = np.empty(self.shape, self.dtype)
        if whole.size:
            name, dtype = stored.source.name, stored.stored_dtype
            whole = np.memmap(name, dtype, "r", stored.offset, self.shape)
        return np.asarray(whole[key])


def bare_matrices(source: LocalFile) -> tuple[dict[str, Bare], bool]:
    """The matrices of numbers that lie bare, and whether there is anything else in the file."""
    order = "<" if source.read_at(126, 128) == b"IM" else ">"
    found: dict[str, Bare] = {}
    complete, at = True, _HEADER_NBYTES
    while at + 8 <= source.size:
        kind, size = struct.unpack(f"{order}II", source.read_at(at, at + 8))
        if kind not in (_MATRIX, _COMPRESSED):  # a file of version 4, or a damaged one
            return {}, False
        named = _bare(source, order, at + 8, at + 8 + size) if kind == _MATRIX else None
        if named is None:
            complete = False
        else:
            found[named[0]] = named[1]
        at += 8 + size
    return found, complete and at == source.size


def _bare(source: LocalFile, order: str, start: int, stop: int) -> tuple[str, Bare] | None:
    """The name of a matrix and the matrix, if its values are of its own type and all there."""
    parts = list(_parts(source, order, start, stop))
    if len(parts) != 4 or stop > source.size or parts[0][2] - parts[0][1] != 8:
        return None
    (_, flags_at, _), (_, *dims_at), (_, *name_at), (kind, values_at, values_end) = parts
    (flags,) = struct.unpack(f"{order}I", source.read_at(flags_at, flags_at + 4))
    dtype = _NAMES.get((flags & 0xFF, kind))
    if dtype is None or flags & _COMPLEX_OR_LOGICAL:
        return None
    dims = np.frombuffer(source.read_at(*dims_at), f"{order}i4").tolist()
    stored = np.dtype(dtype).newbyteorder("<" if order == "<" else ">")
    if not dims or min(dims) < 0 or math.prod(dims) * stored.itemsize != values_end - values_at:
        return None
    name = source.read_at(*name_at).decode("ascii", errors="replace")
    return name, Bare(Stored(source, values_at, stored, tuple(reversed(dims))))


def _parts(source: LocalFile, order: str, start: int, stop: int) -> Iterator[tuple[int, int, int]]:
    """The elements of an element: the type of each, and where its bytes begin and end."""
    at = start
    while at + 8 <= stop:
        kind, size = struct.unpack(f"{order}II", source.read_at(at, at + 8))
        if kind >> 16:  # a small element: the length stands in the upper half
            yield kind & 0xFFFF, at + 4, at + 4 + (kind >> 16)
            at += 8
        else:
            yield kind, at + 8, at + 8 + size
            at += 8 + size + -size % 8


def head(title: str) -> bytes:
    """How a file begins that is least significant byte first."""
    return title.encode().ljust(116)[:116] + bytes(8) + b"\x00\x01IM"


def matrix_head(dtype: str, dims: Sequence[int], name: str) -> tuple[bytes, int]:
    """What stands before the values of a matrix, and the bytes of the whole element."""
    kind, values = TYPES[dtype]
    size = math.prod(dims) * np.dtype(dtype).itemsize
    front = _matrix_front(kind, dims, name) + struct.pack("<II", values, size & 0xFFFFFFFF)
    total = len(front) + size + -size % 8
    return struct.pack("<II", _MATRIX, total & 0xFFFFFFFF) + front, total


def _matrix_front(kind: int, dims: Sequence[int], name: str) -> bytes:
    return (
        struct.pack("<IIII", _UINT32, 8, kind, 0)
        + _element(_INT32, struct.pack(f"<{len(dims)}i", *dims))
        + _element(_INT8, name.encode())
    )


def _element(kind: int, data: bytes) -> bytes:
    return struct.pack("<II", kind, len(data)) + data + bytes(-len(data) % 8)


def cell(name: str, texts: Sequence[str]) -> bytes:
    """A column of texts."""
    cells = b"".join(
        _element(
            _MATRIX,
            _matrix_front(_CHAR, (1 if text else 0, len(text)), "")
            + _element(_UTF8, text.encode()),
        )
        for text in texts
    )
    return _element(_MATRIX, _matrix_front(_CELL, (len(texts), 1), name) + cells)
