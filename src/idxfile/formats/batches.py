"""Record batches of Arrow as columns: what Parquet and Arrow files have in common."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from typing import Any

import numpy as np
import pyarrow as pa

from ..elements import Array, first_lossy
from ..errors import UnsupportedError
from .blocks import item_nbytes
from .columns import Columns, Streamed
from .pictures.choices import Choices
from .roles import in_roles, is_label
from .tabular import lay_out
from .tensors import Decoder, classes_of, decoder_of, is_item, is_text

__all__: list[str] = []

_BLOCK_NBYTES = 1 << 20
"""What is decoded at once, at most: pyarrow takes ten times as much for it meanwhile."""

Batches = Callable[[Sequence[str], int], Generator[Any]]
"""Gives all rows in order, of some columns, so many at once, as record batches."""


def columns_of(
    schema: Any,
    count: int,
    batches: Batches,
    file: str,
    choices: Choices,
    label: str = "auto",
    shape: tuple[int, ...] | None = None,
) -> Columns:
    """The columns of a file of record batches.

    Args:
        schema: its schema.
        count: how many rows it has.
        batches: reads the rows.
        file: the name that errors begin with.
        choices: how pictures are read.
        label: where every pixel has a column of its own: as for CSV.
        shape: of an item, likewise.
    """
    readable: dict[str, Any] = {}
    left: list[str] = []
    for field in schema:
        try:
            readable[field.name] = (field, decoder_of(field, choices, file))
        except UnsupportedError:
            left.append(field.name)
    numbers = [n for n, (f, _) in readable.items() if not (is_item(f.type) or is_text(f.type))]
    items = any(is_item(field.type) for field, _ in readable.values())
    if not items and sum(not is_label(name) for name in numbers) > 1:
        names = [name for name in readable if name in numbers or is_label(name)]
        left += [name for name in readable if name not in names]
        table = _Table({name: readable[name] for name in names}, count, batches, file)
        columns = table.columns(label, shape)
    else:
        arrays = {
            name: _column(field, count, batches, decode, file)
            for name, (field, decode) in readable.items()
        }
        columns = Columns(in_roles(arrays))
    columns.classes = classes_of(schema)
    if left:
        columns.notes.insert(0, f"left out {', '.join(left)}: no numbers")
    return columns


def _column(field: Any, count: int, batches: Batches, decode: Decoder, file: str) -> Streamed:
    """One field as a column; where its type does not say what the items are, the first does."""
    first = decode(_nothing(field.type))
    if 0 in first.shape[1:] and count:
        with closing(batches([field.name], 1)) as rows:
            first = decode(next(batch.column(0) for batch in rows if len(batch)))

    def blocks(block_nbytes: int) -> Iterator[Array]:
        for batch in batches([field.name], _rows_of(block_nbytes, item_nbytes(first))):
            block = decode(batch.column(0))
            if block.shape[1:] != first.shape[1:]:
                found, expected = list(block.shape[1:]), list(first.shape[1:])
                text = f"{field.name}: items of shape {expected} and {found}"
                raise UnsupportedError(text, file=file, found=found, expected=expected)
            yield block

    return Streamed((count, *first.shape[1:]), first.dtype, blocks)


def _rows_of(block_nbytes: int, row_nbytes: int) -> int:
    """How many rows are read at once for a block."""
    return max(1, min(block_nbytes, _BLOCK_NBYTES) // max(1, row_nbytes))


def _nothing(kind: Any) -> Any:
    """No items of a type. `pa.array` would load pandas for them: 50 MB of memory."""
    if isinstance(kind, pa.BaseExtensionType):
        return pa.ExtensionArray.from_storage(kind, pa.nulls(0, kind.storage_type))
    return pa.nulls(0, kind)


class _Table:
    """A table with a column for every pixel."""

    def __init__(self, fields: dict[str, Any], count: int, batches: Batches, file: str) -> None:
        self._fields = fields
        self._count = count
        self._batches = batches
        self._file = file

    def columns(self, label: str, shape: tuple[int, ...] | None) -> Columns:
        """The pixels as items, and the labels."""
        names = list(self._fields)
        layout = lay_out(names, len(names), label, shape, self._file)
        arrays = {"images": self._stacked([names[n] for n in layout.pixels], layout.item_shape)}
        if layout.labels:
            found = [names[n] for n in layout.labels]
            arrays["labels"] = self._stacked(found, (len(found),) if len(found) > 1 else ())
        return Columns(arrays, notes=layout.notes)

    def _stacked(self, names: list[str], item_shape: tuple[int, ...]) -> Streamed:
        """Some columns side by side, as a type that holds them all."""
        empty = [self._decoded(name, _nothing(self._fields[name][0].type)) for name in names]
        dtype = np.result_type(*empty)

        def blocks(block_nbytes: int) -> Iterator[Array]:
            row_nbytes = len(names) * dtype.itemsize
            for batch in self._batches(names, _rows_of(block_nbytes, row_nbytes)):
                parts = [self._decoded(name, batch.column(name)) for name in names]
                for name, part in zip(names, parts, strict=True):
                    if dtype.kind == "f" and first_lossy(part, dtype) is not None:
                        text = f"{name} stands among fractions: no float holds it exactly"
                        raise UnsupportedError(text, file=self._file)
                block = np.stack(parts, axis=1)
                block = block if dtype.kind == "U" else block.astype(dtype, copy=False)
                yield block.reshape(len(block), *item_shape)

        return Streamed((self._count, *item_shape), dtype, blocks)

    def _decoded(self, name: str, chunk: Any) -> Array:
        values: Array = self._fields[name][1](chunk)
        return values
