"""JSON lines: an object for every item, its elements as nested lists.

The text does not say element types: whole numbers become the smallest integer type of IDX that
holds them all, others float32 where that is exact and else float64.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from ..elements import Array
from ..errors import FormatError, UnsupportedError
from .columns import Columns, Streamed
from .lines import line_blocks, text_sink
from .roles import SINGULAR, in_roles, roles
from .tabular import EXACT, KEPT_NBYTES, Findings

__all__ = ["read_columns", "write_columns"]


def read_columns(path: str, *, dtype: str | None = None) -> Columns:
    """Read a file of JSON lines: once to see its values, and once for each column that is used.

    Args:
        path: the file, compressed or not.
        dtype: float32 or float16, where the decimals mean values of that type.

    Raises:
        FormatError: for lines that are no objects, or do not have the fields of the first.
        UnsupportedError: for items of different shapes.
    """
    found: dict[str, Findings] = {}
    shapes: dict[str, tuple[int, ...]] = {}
    texts: dict[str, bool] = {}
    for start, rows in _rows(path):
        if not found:
            # Single values of items, as labels are, stay in memory.
            single = {name: not isinstance(value, list) for name, value in rows[0].items()}
            found = {name: Findings(math.inf if s else KEPT_NBYTES) for name, s in single.items()}
        for name, findings in found.items():
            block = _block(rows, name, start, path)
            shape = shapes.setdefault(name, block.shape[1:])
            if block.shape[1:] != shape:
                raise _differs(name, shape, block.shape[1:], path)
            if texts.setdefault(name, block.dtype.kind == "U") != (block.dtype.kind == "U"):
                raise UnsupportedError(f"field {name!r} holds texts and numbers", file=path)
            findings.add(block)
    if not found:
        raise FormatError("there is not one line", file=path)
    arrays: dict[str, Any] = {}
    notes: list[str] = []
    called = roles(found)
    for name, findings in found.items():
        kind = np.dtype("U") if texts[name] else findings.dtype(path, dtype)
        if not texts[name]:
            notes.append(findings.told(called.get(name, name), kind, dtype))
        arrays[name] = _column(path, name, findings, shapes[name], kind)
    return Columns(in_roles(arrays), notes=notes)


def _column(
    path: str, name: str, found: Findings, item_shape: tuple[int, ...], dtype: np.dtype[Any]
) -> Streamed:
    def blocks(block_nbytes: int) -> Iterator[Array]:
        parsed = (_block(rows, name, start, path) for start, rows in _rows(path))
        for block in parsed if found.kept is None else found.kept:
            yield block.astype(dtype)

    return Streamed((found.count, *item_shape), dtype, blocks)


def _rows(path: str) -> Iterator[tuple[int, list[dict[str, Any]]]]:
    """Blocks of objects, each with the number of its first."""
    start = 0
    for text in line_blocks(path, 1 << 20):
        rows: list[dict[str, Any]] = []
        for line in filter(None, map(str.strip, text.split("\n"))):
            try:
                row = json.loads(line)
            except (ValueError, RecursionError) as error:
                place = f"line {start + len(rows) + 1:,}"
                raise FormatError(f"{place} is no JSON: {error}", file=path) from None
            rows.append(row if isinstance(row, dict) else {"images": row})
        if rows:
            yield start, rows
            start += len(rows)


def _block(rows: list[dict[str, Any]], name: str, start: int, path: str) -> Array:
    """One field of some objects as an array: of numbers or of texts."""
    missing = next((n for n, row in enumerate(rows) if name not in row), None)
    if missing is not None:
        raise FormatError(f"line {start + missing + 1:,} has no field {name!r}", file=path)
    values = [row[name] for row in rows]
    try:
        block = np.array(values)
    except ValueError:
        raise UnsupportedError(
            f"field {name!r}: items of different shapes, or rows of different lengths",
            file=path,
            hint=f"in lines {start + 1:,} to {start + len(rows):,}",
        ) from None
    if block.dtype.kind not in "biuU" and block.dtype != np.float64:
        raise UnsupportedError(f"field {name!r} holds other things than numbers", file=path)
    if block.dtype.kind == "U" and not all(isinstance(value, str) for value in values):
        raise UnsupportedError(f"field {name!r} holds texts and numbers", file=path)
    if block.dtype.kind == "f" and (np.abs(block[np.isfinite(block)]) >= EXACT).any():
        _refuse_rounded(values, name, path)
    return block


def _refuse_rounded(values: Any, name: str, path: str) -> None:
    """Refuse integers among fractions that a float64 has rounded."""
    pending = [values]
    while pending:
        value = pending.pop()
        if isinstance(value, list):
            pending += value
        elif isinstance(value, int) and float(value) != value:
            raise UnsupportedError(f"field {name!r}: no type holds {value}", file=path)


def _differs(name: str, first: Any, other: Any, path: str) -> UnsupportedError:
    return UnsupportedError(
        f"field {name!r}: items of shape {list(first)} and {list(other)}",
        file=path,
        found=list(other),
        expected=list(first),
    )


def write_columns(path: str, columns: Columns) -> None:
    """Write an object for every item, with the fields `image` and `label`.

    Args:
        path: the file; compressed where its suffix says so.
        columns: what to write.

    Raises:
        UnsupportedError: for NaN and infinities, which JSON does not have.
    """
    names = [SINGULAR.get(name, name) for name in columns.arrays]
    encoder = json.JSONEncoder(allow_nan=False, separators=(",", ":"))
    with text_sink(path) as write:
        for blocks in columns.rows(block_nbytes=1 << 19):
            for name, block in zip(names, blocks, strict=True):
                if block.dtype.kind == "f" and not np.isfinite(block).all():
                    raise UnsupportedError(f"{name}: JSON has no NaN and no infinities")
            rows = zip(*(block.tolist() for block in blocks), strict=True)
            objects = (dict(zip(names, row, strict=True)) for row in rows)
            write("".join([encoder.encode(row) + "\n" for row in objects]))
