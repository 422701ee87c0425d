"""A C header: arrays as constants that are compiled into a program. Written, not read.

Every column is one `static const` array in the shape that it has, with macros for its dimensions,
so that the program needs nothing but `#include`. Numbers are written in decimal: integers as they
are, floats with as many digits as bring the same bits back.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import Any, TextIO

import numpy as np

from ..elements import Array
from ..errors import UnsupportedError
from .columns import Columns

__all__ = ["write_columns"]

_TYPES = {
    **{f"{kind}{bits}": f"{kind}{bits}_t" for kind in ("uint", "int") for bits in (8, 16, 32, 64)},
    "float32": "float",
    "float64": "double",
}
TYPES = tuple(_TYPES)
"""The element types that C has a name for."""

_NAMED = {
    1: ("ITEMS",),
    3: ("ITEMS", "ROWS", "COLUMNS"),
    4: ("ITEMS", "ROWS", "COLUMNS", "CHANNELS"),
}
"""What dimensions are called, by their number; others are DIM_0, DIM_1, …"""

_SUFFIXES = {"float32": "f", "uint32": "u", "int64": "LL", "uint64": "ULL"}
"""What makes a number a constant of its type, where C would take another."""

_LINE = 16
"""Numbers on a line, where an item's last dimension is longer."""


def write_columns(path: str, columns: Columns, *, prefix: str | None = None) -> None:
    """Write every column as a constant array, and the names of the classes.

    Args:
        path: the file.
        columns: what to write.
        prefix: what the names of arrays and macros begin with: `digits` makes `digits_images` and
            DIGITS_IMAGES_ROWS. By default they are called as the columns are.

    Raises:
        UnsupportedError: for NaN and infinity, and for an array without elements, which C lacks.
        ValueError: for a prefix that makes no name in C.
    """
    if prefix is not None and not re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", prefix):
        raise ValueError(f"prefix must begin a name in C, not {prefix!r}")
    start = f"{prefix}_" if prefix else ""
    guard = f"{start or 'idx_'}{_identifier(next(iter(columns.arrays)))}_h".upper()
    with open(path, "w", encoding="ascii") as file:
        file.write(f"#ifndef {guard}\n#define {guard}\n\n#include <stdint.h>\n")
        for column_name, column in columns.arrays.items():
            _write_array(file, start + _identifier(column_name), column)
        if columns.classes:
            _write_classes(file, f"{start}classes", columns.classes)
        file.write(f"\n#endif /* {guard} */\n")
        file.flush()
        os.fsync(file.fileno())


def _identifier(name: str) -> str:
    """A column's name as one in C."""
    text = re.sub(r"[^A-Za-z0-9_]", "_", name)
    return text if re.match(r"[A-Za-z]", text) else f"array_{text}"


def _write_array(file: TextIO, name: str, column: Any) -> None:
    shape, dtype = tuple(column.shape), column.dtype.name
    if 0 in shape:
        raise UnsupportedError(f"{name} has no elements, and C has no arrays without", found=shape)
    size = " × ".join(f"{side:,}" for side in shape) or "a scalar"
    file.write(f"\n/* {name}: {dtype}, {size.replace('×', 'x')} */\n")
    names = _NAMED.get(len(shape), tuple(f"DIM_{axis}" for axis in range(len(shape))))
    for dimension, side in zip(names, shape, strict=True):
        file.write(f"#define {name.upper()}_{dimension} {side}\n")
    sides = "".join(f"[{side}]" for side in shape)
    file.write(f"static const {_TYPES[dtype]} {name}{sides} =")
    if not shape:
        block = next(iter(column.blocks()))
        file.write(f" {_texts(block.reshape(1))[0]};\n")
        return
    file.write(" {\n")
    for block in column.blocks():
        file.writelines(_lines(block))
    file.write("};\n")


def _lines(block: Array, depth: int = 1) -> Iterator[str]:
    """The lines of some rows: of numbers, or of braces with lines in them."""
    indent = "  " * depth
    if block.ndim == 1:
        texts = _texts(block)
        for low in range(0, len(texts), _LINE):
            yield f"{indent}{', '.join(texts[low : low + _LINE])},\n"
        return
    for row in block:
        if row.ndim == 1 and len(row) <= 2 * _LINE:
            yield f"{indent}{{{', '.join(_texts(row))}}},\n"
        else:
            yield f"{indent}{{\n"
            yield from _lines(row, depth + 1)
            yield f"{indent}}},\n"


def _texts(row: Array) -> list[str]:
    """Numbers as constants of their type."""
    if row.dtype.kind == "f" and not np.isfinite(row).all():
        raise UnsupportedError(
            f"{row[~np.isfinite(row)][0]}: a C header holds finite numbers",
            found=str(row[~np.isfinite(row)][0]),
        )
    suffix = _SUFFIXES.get(row.dtype.name, "")
    texts = map(repr, row.tolist()) if row.dtype != np.float32 else map(str, row)
    least = np.iinfo(np.int64).min
    if row.dtype == np.int64 and (row == least).any():  # C has no such constant
        return ["INT64_MIN" if v == least else f"{v}{suffix}" for v in row.tolist()]
    return [text + suffix for text in texts] if suffix else list(texts)


def _write_classes(file: TextIO, name: str, classes: tuple[str | None, ...]) -> None:
    file.write(f"\n#define {name.upper()}_ITEMS {len(classes)}\n")
    file.write(f"static const char *const {name}[{len(classes)}] = {{\n")
    for text in classes:
        file.write(f"  {_string(text or '')},\n")
    file.write("};\n")


def _string(text: str) -> str:
    """A text as a string of C: all but plain characters in octal, as bytes of UTF-8."""
    plain = set(map(ord, "".join(map(chr, range(32, 127))))) - set(map(ord, '"\\?'))
    return '"' + "".join(chr(b) if b in plain else f"\\{b:03o}" for b in text.encode()) + '"'
