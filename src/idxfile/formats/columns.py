"""Columns: what every format is read as and written from.

A source is a few named arrays of equal length along dimension 0 (`images` and `labels`, or whatever
the file calls them), each read block by block. N formats need N readers and N writers, never N².
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from ..elements import Array
from ..errors import PairError, UnsupportedError
from ..lazyarray import DEFAULT_BLOCK_NBYTES
from .blocks import in_groups, item_nbytes, steps

__all__ = ["Column", "Columns", "Elsewhere", "Sliced", "Streamed", "View", "in_chunks"]

_CHUNKS = 16
"""So many are written at once, where an array is kept in chunks."""


class Column(Protocol):
    """An array-like along dimension 0. An `IdxArray` and `Items` are columns."""

    @property
    def shape(self) -> tuple[int, ...]:
        """The dimensions, items first."""

    @property
    def dtype(self) -> np.dtype[Any]:
        """The element type, in native byte order."""

    def __len__(self) -> int:
        """The number of items."""

    def blocks(self, *, block_nbytes: int = ...) -> Iterator[Array]:
        """All items in order, in blocks of about so many bytes; as often as it is asked."""


def _nothing() -> None:
    """Close what needs no closing."""


@dataclass
class Columns:
    """The columns of one source."""

    arrays: dict[str, Any]
    """Name → column; the first is the one that matters where only one can be written.

    Of several splits the names say which: `train/images`.
    """
    classes: tuple[str | None, ...] | None = None
    """The names of the classes by label, where they are known."""
    split: str | None = None
    """Which part of a data set it is, where that is known."""
    close: Callable[[], None] = field(default=_nothing)
    """Drops the files behind the columns."""
    notes: list[str] = field(default_factory=list)
    """What people should be told: what was left out, and why."""

    def check_lengths(self) -> None:
        """Refuse columns of unequal length: they do not belong together.

        Raises:
            PairError: it names the lengths.
        """
        counts = {name: len(array) for name, array in self.arrays.items() if array.shape}
        if len(set(counts.values())) > 1:
            text = ", ".join(f"{name}: {count:,} items" for name, count in counts.items())
            raise PairError(text, found=counts, hint="the columns do not belong together")

    @property
    def first(self) -> Any:
        """The column that matters where only one can be written."""
        return next(iter(self.arrays.values()))

    @property
    def labels(self) -> Any:
        """The column of labels, of a source that is read for them."""
        return self.arrays.get("labels", self.first)

    def __len__(self) -> int:
        return len(self.first)

    def rows(self, *, block_nbytes: int = DEFAULT_BLOCK_NBYTES) -> Iterator[list[Array]]:
        """All columns in step: lists of blocks with equal numbers of items.

        Args:
            block_nbytes: the bytes of the blocks of one list together, about.
        """
        row_nbytes = sum(item_nbytes(array) for array in self.arrays.values())
        count = max(1, block_nbytes // max(1, row_nbytes))
        streams = (
            in_groups(array.blocks(block_nbytes=max(1, count * item_nbytes(array))), count)
            for array in self.arrays.values()
        )
        return map(list, zip(*streams, strict=True))


class Sliced:
    """Anything with shape, dtype and slices along dimension 0, as a column.

    Args:
        array: what is sliced.
        align: blocks begin at multiples of so many items: the chunks of a chunked array.
    """

    def __init__(self, array: Any, *, align: int = 1) -> None:
        self._array = array
        self.align = max(1, align)
        self.shape: tuple[int, ...] = tuple(array.shape)
        self.dtype: np.dtype[Any] = np.dtype(array.dtype).newbyteorder("=")

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, key: Any) -> Array:
        return np.asarray(self._array[key]).astype(self.dtype, copy=False)

    def blocks(self, *, block_nbytes: int = DEFAULT_BLOCK_NBYTES) -> Iterator[Array]:
        """All items in order, in blocks of about `block_nbytes`."""
        if not self.shape:
            yield self[()]
            return
        for low, high in steps(self.shape, self.dtype, block_nbytes, self.align):
            yield self[low:high]

    def part(self, low: int, high: int) -> Sliced | None:
        """The items from `low` to `high` by themselves, where they are in memory."""
        inside = isinstance(self._array, np.ndarray) and not isinstance(self._array, np.memmap)
        return Sliced(self._array[low:high]) if inside else None


class Streamed:
    """A column that comes only in order, from its beginning, as often as it is asked for.

    Args:
        shape: of all items.
        dtype: of the blocks.
        blocks: called with `block_nbytes`; gives all blocks in order.
    """

    def __init__(
        self, shape: Sequence[int], dtype: Any, blocks: Callable[[int], Iterable[Array]]
    ) -> None:
        self.shape = tuple(shape)
        self.dtype: np.dtype[Any] = np.dtype(dtype)
        self._blocks = blocks

    def __len__(self) -> int:
        return self.shape[0]

    def blocks(self, *, block_nbytes: int = DEFAULT_BLOCK_NBYTES) -> Iterator[Array]:
        """All items in order, in blocks of about `block_nbytes`."""
        yield from self._blocks(block_nbytes)


def in_chunks(column: Column, items: int) -> Iterator[tuple[int, Array]]:
    """All items in blocks of several whole chunks, which libraries pack side by side.

    Args:
        column: the column.
        items: how many are one chunk.

    Yields:
        The number of the first item of a block, and the block.
    """
    count = _CHUNKS * items
    blocks = column.blocks(block_nbytes=max(1, count * item_nbytes(column)))
    for number, block in enumerate(in_groups(blocks, count)):
        yield number * count, block


@dataclass(frozen=True)
class Elsewhere:
    """A column of a source that is opened for as long as its items are read. It pickles."""

    open: Callable[[], contextlib.AbstractContextManager[Columns]]
    """Opens the source."""
    name: str
    """Which of its columns is meant; empty for the labels of a file that is read for them."""
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    alone: bool = False
    """Whether this is the only way to it: what was opened here, nobody else sees."""

    def __len__(self) -> int:
        return self.shape[0]

    @contextlib.contextmanager
    def opened(self) -> Iterator[Any]:
        """The column itself."""
        with self.open() as columns:
            yield columns.arrays[self.name] if self.name else columns.labels


class View:
    """Some items of a column, each block changed by a function, or looked at by another.

    Args:
        column: the column.
        items: which of its items.
        change: makes of each block another; it is told the number of the first item in it.
        dtype: of the changed blocks.
        tell: called with the bytes of the column that went by, as they go.
        first: the number of its first item in the whole, of which it may be a part.
        origin: where the column is opened anew, for whom it cannot be sent to.
    """

    def __init__(
        self,
        column: Any,
        *,
        items: slice | range | None = None,
        change: Callable[[Array, int], Array] | None = None,
        dtype: Any = None,
        tell: Callable[[int], None] | None = None,
        first: int = 0,
        origin: Elsewhere | None = None,
    ) -> None:
        if items is not None and not column.shape:
            raise UnsupportedError("a scalar has no items to choose from")
        self.column = column
        self.change = change
        self.dtype: np.dtype[Any] = np.dtype(column.dtype if dtype is None else dtype)
        if not isinstance(items, range) and column.shape:
            items = range(len(column))[items or slice(None)]
        self.items: Any = items
        """The numbers of the items; None of a scalar."""
        self.first = first
        self.origin = origin
        self._tell = tell

    @property
    def shape(self) -> tuple[int, ...]:
        """The dimensions of the chosen items."""
        return () if self.items is None else (len(self.items), *self.column.shape[1:])

    def __len__(self) -> int:
        return self.shape[0]

    def tell(self, nbytes: int) -> None:
        """So many bytes of the column were dealt with."""
        if self._tell is not None:
            self._tell(nbytes)

    def blocks(self, *, block_nbytes: int = DEFAULT_BLOCK_NBYTES) -> Iterator[Array]:
        """The chosen items in order."""
        start = self.first
        with _opened(self.column) as column:
            for block in self._chosen(column, block_nbytes):
                yield self.change(block, start) if self.change else block
                start += len(block) if block.shape else 0
                self.tell(block.nbytes)

    def _chosen(self, column: Any, block_nbytes: int) -> Iterator[Array]:
        items = self.items
        if items is None or items == range(len(column)):
            yield from column.blocks(block_nbytes=block_nbytes)
        elif hasattr(column, "__getitem__"):
            for low, high in steps(self.shape, column.dtype, block_nbytes):
                part = items[low:high]  # not every library goes backwards
                block = column[_as_slice(part if part.step > 0 else part[::-1])]
                yield block if part.step > 0 else block[::-1]
        elif items.step < 0:
            raise UnsupportedError(
                "this source is read in order, and cannot be turned round",
                hint="convert it to IDX first",
            )
        else:
            yield from _passing(column.blocks(block_nbytes=block_nbytes), items)


@contextlib.contextmanager
def _opened(column: Any) -> Iterator[Any]:
    if isinstance(column, Elsewhere):
        with column.opened() as column:
            yield column
    else:
        yield column


def _as_slice(items: range) -> slice:
    """A range that goes forward, as a slice."""
    return slice(items.start, items.stop, items.step) if items else slice(0, 0)


def _passing(blocks: Iterable[Array], items: range) -> Iterator[Array]:
    """The items of a range, out of blocks that pass by."""
    start = 0
    for block in blocks:
        inside = range(start, start + len(block))
        first = max(items.start, start + (items.start - start) % items.step)
        part = block[first - start : max(0, min(items.stop, inside.stop) - start) : items.step]
        if len(part):
            yield part
        start = inside.stop
        if start >= items.stop:
            return
