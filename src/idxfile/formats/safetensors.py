"""Safetensors: a JSON header that names tensors, then their elements, least significant byte first.

    0       8    the length of the header, unsigned
    8       n    JSON: {name: {"dtype", "shape", "data_offsets": [start, stop]}, "__metadata__": …}
    8 + n   …    the elements; offsets count from here

It is simple enough to be read and written here, block by block. Source: the README of
github.com/huggingface/safetensors, section "Format".
"""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np

from ..errors import FormatError, UnsupportedError
from ..source import LocalFile
from .blocks import nbytes
from .columns import Columns
from .roles import in_roles, of_split
from .stored import Stored, write_elements

__all__ = ["read_columns", "write_columns"]

_NAMES = {
    "bool": "BOOL",
    **{f"uint{bits}": f"U{bits}" for bits in (8, 16, 32, 64)},
    **{f"int{bits}": f"I{bits}" for bits in (8, 16, 32, 64)},
    **{f"float{bits}": f"F{bits}" for bits in (16, 32, 64)},
}
_TYPES = {name: dtype for dtype, name in _NAMES.items()}
_MAX_HEADER_NBYTES = 100_000_000
_ALIGNMENT = 8


def read_columns(path: str, *, split: str | None = None) -> Columns:
    """Open the tensors of a file; nothing is read before it is asked for.

    Args:
        path: the file.
        split: train, test …, where names say so (`x_train`, `test_labels`); or all.

    Raises:
        FormatError: for a header that does not fit the file.
        UnsupportedError: for tensors of types that NumPy lacks.
    """
    source = LocalFile(path, mapped=False)
    try:
        length = int.from_bytes(source.read_at(0, 8), "little")
        start = 8 + length
        if length > _MAX_HEADER_NBYTES or start > source.size:
            raise FormatError(f"a header of {length:,} bytes", file=path, offset=0, found=length)
        header = _header(source.read_at(8, start), path)
        metadata = header.pop("__metadata__", {})
        arrays = {name: _column(source, start, name, row) for name, row in header.items()}
    except BaseException:
        source.close()
        raise
    chosen, split = of_split(arrays, split)
    return Columns(in_roles(chosen), _classes(metadata), split, source.close)


def _header(text: bytes, path: str) -> dict[str, Any]:
    try:
        header = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise FormatError(f"the header is no JSON: {error}", file=path, offset=8) from None
    if not isinstance(header, dict):
        raise FormatError("the header is no JSON object", file=path, offset=8)
    return header


def _column(source: LocalFile, start: int, name: str, row: Any) -> Stored:
    """A tensor as a column, if what the header says of it fits the file."""
    try:
        dtype, shape, (low, high) = row["dtype"], tuple(row["shape"]), row["data_offsets"]
        numbers = all(isinstance(n, int) and n >= 0 for n in (*shape, low, high))
        whole = numbers and isinstance(dtype, str)
    except (KeyError, TypeError, ValueError):
        whole = False
    if not whole:
        raise FormatError(f"tensor {name!r} is not described", file=source.name, found=row)
    if dtype not in _TYPES:
        raise UnsupportedError(
            f"tensor {name!r} holds {dtype}, which NumPy lacks",
            file=source.name,
            found=dtype,
            hint="cast it with the program that wrote it",
        )
    stored = np.dtype(_TYPES[dtype]).newbyteorder("<")
    if high - low != math.prod(shape) * stored.itemsize or start + high > source.size:
        raise FormatError(
            f"tensor {name!r} of {dtype} {list(shape)} does not lie at bytes {low:,} to {high:,}",
            file=source.name,
            offset=start + low,
            found=[low, high],
        )
    return Stored(source, start + low, stored, shape)


def _classes(metadata: Any) -> tuple[str | None, ...] | None:
    try:
        return tuple(json.loads(metadata["classes"]))
    except (KeyError, TypeError, ValueError):
        return None


def write_columns(path: str, columns: Columns) -> None:
    """Write all columns as tensors under their names; class names go into the metadata.

    Args:
        path: the file.
        columns: what to write.
    """
    header: dict[str, Any] = {}
    if columns.classes:
        header["__metadata__"] = {"classes": json.dumps(columns.classes)}
    position = 0
    # The largest elements first, so that all of them are aligned.
    order = sorted(columns.arrays, key=lambda name: -columns.arrays[name].dtype.itemsize)
    for name in order:
        column = columns.arrays[name]
        header[name] = {
            "dtype": _NAMES[column.dtype.name],
            "shape": column.shape,
            "data_offsets": [position, position + nbytes(column)],
        }
        position += nbytes(column)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % _ALIGNMENT)
    with open(path, "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for name in order:
            column = columns.arrays[name]
            write_elements(file, column, column.dtype.newbyteorder("<"))
