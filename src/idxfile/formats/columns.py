"""Columns: what every format is read as and written from.

A source is a few named arrays of equal length along dimension 0 (`images` and `labels`, or whatever
the file calls them), each read block by block. N formats need N readers and N writers, never N².
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from ..array import DEFAULT_BLOCK_NBYTES
from ..elements import Array
from ..errors import PairError

__all__ = ["Column", "Columns", "Sliced", "View"]


class Column(Protocol):
    """An array-like along dimension 0. An `IdxArray` and `Items` are columns."""

    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def dtype(self) -> np.dtype[Any]: ...
    def __len__(self) -> int: ...
    def blocks(self, *, block_nbytes: int = ...) -> Iterator[Array]: ...


def _nothing() -> None:
    """Close what needs no closing."""


@dataclass
class Columns:
    """The columns of one source."""

    arrays: dict[str, Any]
    """Name → column; the first is the one that matters where only one can be written."""
    classes: tuple[str | None, ...] | None = None
    """The names of the classes by label, where they are known."""
    split: str | None = None
    """Which part of a data set it is, where that is known."""
    close: Callable[[], None] = field(default=_nothing)
    """Drops the files behind the columns."""
    notes: list[str] = field(default_factory=list)
    """What people should be told: what was left out, and why."""

    def __post_init__(self) -> None:
        counts = {name: len(array) for name, array in self.arrays.items() if array.shape}
        if len(set(counts.values())) > 1:
            text = ", ".join(f"{name}: {count:,} items" for name, count in counts.items())
            raise PairError(text, found=counts, hint="the columns do not belong together")

    @property
    def first(self) -> Any:
        """The column that matters where only one can be written."""
        return next(iter(self.arrays.values()))

    def __len__(self) -> int:
        return len(self.first)


class Sliced:
    """Anything with shape, dtype and slices along dimension 0, as a column."""

    def __init__(self, array: Any) -> None:
        self._array = array
        self.shape: tuple[int, ...] = tuple(array.shape)
        self.dtype: np.dtype[Any] = np.dtype(array.dtype)

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, key: Any) -> Any:
        return self._array[key]

    def blocks(self, *, block_nbytes: int = DEFAULT_BLOCK_NBYTES) -> Iterator[Array]:
        """All items in order, in blocks of about `block_nbytes`."""
        if not self.shape:
            yield np.asarray(self._array)
            return
        for low, high in steps(self.shape, self.dtype, block_nbytes):
            yield np.asarray(self._array[low:high])


class View:
    """Some items of a column, each block changed by a function."""

    def __init__(
        self,
        column: Any,
        *,
        items: slice | None = None,
        change: Callable[[Array], Array] | None = None,
        dtype: Any = None,
    ) -> None:
        self._column = column
        count = len(column) if column.shape else 1
        self._range = range(count)[items or slice(None)]
        self._change = change
        self.dtype: np.dtype[Any] = np.dtype(dtype or column.dtype)
        self.shape: tuple[int, ...] = (len(self._range), *column.shape[1:])

    def __len__(self) -> int:
        return len(self._range)

    def blocks(self, *, block_nbytes: int = DEFAULT_BLOCK_NBYTES) -> Iterator[Array]:
        """The chosen items in order."""
        whole = self._range == range(len(self._column))
        for block in (
            self._column.blocks(block_nbytes=block_nbytes) if whole else self._chosen(block_nbytes)
        ):
            yield self._change(block) if self._change else block

    def _chosen(self, block_nbytes: int) -> Iterator[Array]:
        for low, high in steps(self.shape, self.dtype, block_nbytes):
            part = self._range[low:high]
            stop = part.stop if part.stop >= 0 else None
            yield np.asarray(self._column[part.start : stop : part.step])


def steps(
    shape: Sequence[int], dtype: np.dtype[Any], block_nbytes: int
) -> Iterator[tuple[int, int]]:
    """The bounds of blocks of about `block_nbytes` along dimension 0; at least one item each."""
    item_nbytes = int(np.prod(shape[1:], dtype=np.float64)) * dtype.itemsize
    step = max(1, block_nbytes // max(1, item_nbytes))
    for low in range(0, shape[0], step):
        yield low, min(low + step, shape[0])
