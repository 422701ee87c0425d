"""Items chosen from arrays: a view that copies nothing until it is asked.

Every selection over a data set (a subset, a shuffle, a merge of two files) is the same thing: one
or more arrays laid end to end, and the numbers of the items that are meant, in order. `Items` is
that thing, as an array-like.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from .array import IdxArray
from .elements import Array
from .errors import sides
from .lazyarray import DEFAULT_BLOCK_NBYTES, checked_out
from .selection import in_bounds, select
from .source.waiting import done_ahead

__all__ = ["Items"]

ArrayLike = IdxArray | Array

_BLOCKS_AHEAD = 3
"""Blocks gathered from a store at once: each may take some requests of up to 16 MiB."""

_RUN_NBYTES = 1 << 18


class Items:
    """Items of one or more arrays, in any order, each as often as it is named.

    An array-like: `shape`, `dtype`, `ndim`, `size`, `nbytes`, `len`, every NumPy key in `[...]`,
    iteration, `take`, `blocks`, and `np.asarray(x)`. What it gives out is in native byte order.

    Args:
        sources: the arrays, laid end to end: IdxArrays or ndarrays of one dtype and item shape.
        index: which of their items, counted through all of them; None is all, in order.
        transposed: for each source, whether the rows and columns of its items are exchanged.
    """

    def __init__(
        self,
        sources: Sequence[ArrayLike],
        index: Array | None = None,
        transposed: Sequence[bool] | None = None,
    ) -> None:
        self._sources = tuple(sources)
        self._transposed = tuple(transposed or (False,) * len(self._sources))
        self._index = index
        self._starts = np.cumsum([0, *map(len, self._sources)])
        first = self._sources[0]
        self.dtype: np.dtype[Any] = np.dtype(first.dtype).newbyteorder("=")
        """The element type, in native byte order."""
        self.item_shape = _turned(first.shape[1:], self._transposed[0])
        """The shape of one item."""
        for source, turned in zip(self._sources, self._transposed, strict=True):
            shape = _turned(source.shape[1:], turned)
            if shape != self.item_shape or np.dtype(source.dtype).newbyteorder("=") != self.dtype:
                raise ValueError(
                    f"items of {source.dtype} {shape} and of {self.dtype} {self.item_shape} "
                    "make no one array"
                )

    @property
    def shape(self) -> tuple[int, ...]:
        """The dimensions: the number of items, then those of an item."""
        return (len(self), *self.item_shape)

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return 1 + len(self.item_shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        return len(self) * self.item_nbytes // self.dtype.itemsize

    @property
    def item_nbytes(self) -> int:
        """The bytes of one item."""
        return int(np.prod(self.item_shape, dtype=np.int64)) * self.dtype.itemsize

    @property
    def nbytes(self) -> int:
        """The bytes of all items."""
        return len(self) * self.item_nbytes

    @property
    def index(self) -> Array:
        """Which items of the arrays these are, counted through all of them."""
        return np.arange(len(self)) if self._index is None else self._index

    def numbers(self, low: int, high: int) -> Array:
        """The part of `index` from `low` to `high`."""
        return np.arange(low, high) if self._index is None else self._index[low:high]

    @property
    def hops(self) -> bool:
        """Whether one of them lies before the one that it comes after."""
        index = self._index
        return index is not None and bool((index[1:] < index[:-1]).any())

    @property
    def everything(self) -> Items:
        """All items of the arrays, in their order."""
        return self.renumbered(None)

    @property
    def name(self) -> str | None:
        """The file that the first of these arrays lies in; None where it lies in memory."""
        name: str | None = getattr(self._sources[0], "name", None)
        return name

    @property
    def far(self) -> bool:
        """Whether some of them come over a network."""
        return any(isinstance(source, IdxArray) and source.far for source in self._sources)

    @property
    def arrays(self) -> tuple[ArrayLike, ...]:
        """The arrays, where these are all their items as they lie; else none."""
        whole = self._index is None and not any(self._transposed)
        return self._sources if whole else ()

    def __len__(self) -> int:
        return int(self._starts[-1]) if self._index is None else len(self._index)

    def __repr__(self) -> str:
        return f"<Items: {self.dtype} {sides(self.shape)}>"

    def close(self) -> None:
        """Drop the files that these items lie in."""
        for source in self._sources:
            if isinstance(source, IdxArray):
                source.close()

    def choose(self, positions: Any) -> Items:
        """A view of some of these items, by their positions here."""
        chosen = in_bounds(np.asarray(positions), len(self))
        index = chosen if self._index is None else self._index[chosen]
        return Items(self._sources, index, self._transposed)

    def renumbered(self, index: Array | None) -> Items:
        """Other items of the arrays, by numbers that nobody looks at; None is all, in order."""
        return Items(self._sources, index, self._transposed)

    def transpose(self) -> Items:
        """A view whose items have their rows and columns exchanged.

        Raises:
            ValueError: for items of fewer than two dimensions.
        """
        if len(self.item_shape) < 2:
            raise ValueError(f"items of shape {self.item_shape} have no rows and columns")
        return Items(self._sources, self._index, [not turned for turned in self._transposed])

    def join(self, *others: Items) -> Items:
        """A view of these items and then the others'.

        Raises:
            ValueError: for items of another dtype or shape.
        """
        everyone = (self, *others)
        index = None  # all of all of them, which takes no memory
        if any(view._index is not None for view in everyone):
            starts = np.cumsum([0, *(view._starts[-1] for view in everyone)])
            pairs = zip(everyone, starts, strict=False)
            index = np.concatenate([view.index + start for view, start in pairs])
        return Items(
            [source for view in everyone for source in view._sources],
            index,
            [turned for view in everyone for turned in view._transposed],
        )

    def take(self, items: Any, *, out: Array | None = None) -> Array:
        """A batch of items by their positions here, gathered at once.

        Args:
            items: integers of any shape; negative ones count from the end.
            out: where the items go: shape `(*items.shape, *item_shape)`, this dtype, C order.

        Returns:
            `out`, or a fresh array.
        """
        chosen = in_bounds(np.asarray(items), len(self))
        places = chosen if self._index is None else self._index[chosen]
        shape = (*places.shape, *self.item_shape)
        if out is not None:
            checked_out(out, shape, self.dtype, "items")
        if len(self._sources) == 1:
            return self._take_from(0, places, out)
        owner = np.searchsorted(self._starts, places, side="right") - 1
        owners = np.unique(owner)
        if len(owners) == 1:
            return self._take_from(int(owners[0]), places - self._starts[owners[0]], out)
        target = np.empty(shape, self.dtype) if out is None else out
        for number in owners:
            mine = owner == number
            target[mine] = self._take_from(int(number), places[mine] - self._starts[number], None)
        return target

    def peek(self, count: int) -> Array | None:
        """The first items as a fresh array, if they are at hand as in `IdxArray.peek`; or None."""
        few = self.choose(np.arange(min(count, len(self))))
        places = few.index
        owner = np.searchsorted(self._starts, places, side="right") - 1
        target = np.empty((len(places), *self.item_shape), self.dtype)
        for number in np.unique(owner).tolist():
            mine, source = owner == number, self._sources[number]
            wanted = places[mine] - self._starts[number]
            block = source.peek(wanted) if isinstance(source, IdxArray) else source[wanted]
            if block is None:
                return None
            target[mine] = block.swapaxes(1, 2) if self._transposed[number] else block
        return target

    def read_runs(self, runs: Sequence[range], out: Array) -> None:
        """Fill `out`, native and C-contiguous, with runs of neighbours, one behind the other."""
        (source, *others), (turned, *_) = self._sources, self._transposed
        if self._index is None and not others and not turned and isinstance(source, IdxArray):
            source.read_runs(runs, out)
            return
        done = 0
        for run in runs:
            self.take(np.arange(run.start, run.stop), out=out[done : done + len(run)])
            done += len(run)

    def blocks(self, *, block_nbytes: int = DEFAULT_BLOCK_NBYTES) -> Iterator[Array]:
        """All items in order, as fresh arrays of about `block_nbytes`."""
        (source, *others), (turned, *_) = self._sources, self._transposed
        if self._index is None and not others and not turned and isinstance(source, IdxArray):
            yield from source.blocks(block_nbytes=block_nbytes)
            return
        step = max(1, block_nbytes // max(1, self.item_nbytes))
        places = (
            np.arange(start, min(start + step, len(self))) for start in range(0, len(self), step)
        )
        if self.far:
            yield from done_ahead(self.take, places, _BLOCKS_AHEAD)
        else:
            yield from map(self.take, places)

    def __getitem__(self, key: Any) -> Any:
        selection = select(key, self.shape)
        return self.take(np.asarray(selection.items, np.intp))[selection.key]

    def __iter__(self) -> Iterator[Array]:
        for block in self.blocks():
            yield from block

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        if copy is False:
            raise ValueError("items are gathered: a copy is needed")
        array = self.take(np.arange(len(self)))
        return array if dtype is None else array.astype(dtype, copy=False)

    def _is_run(self, places: Array) -> bool:
        """Whether so many neighbours are meant, in order, that they are read in one piece."""
        return (
            places.ndim == 1
            and len(places) * self.item_nbytes >= _RUN_NBYTES
            and bool((np.diff(places) == 1).all())
        )

    def _take_from(self, number: int, places: Array, out: Array | None) -> Array:
        """Gather from one source, and turn the items if that is how they are meant."""
        source, turned = self._sources[number], self._transposed[number]
        target = None if turned else out
        if isinstance(source, IdxArray):
            if self._is_run(places):
                shape = (len(places), *source.shape[1:])
                block = np.empty(shape, self.dtype) if target is None else target
                source.read_runs([range(places[0], places[-1] + 1)], block)
            else:
                block = source.take(places, out=target)
        else:
            block = np.take(source, places, axis=0, out=target, mode="clip")
            block = block.astype(self.dtype, copy=False)
        if not turned:
            return block
        axes = places.ndim, places.ndim + 1
        upright = np.ascontiguousarray(block.swapaxes(*axes))
        if out is None:
            return upright
        out[...] = upright
        return out


def _turned(shape: tuple[int, ...], turned: bool) -> tuple[int, ...]:
    return (shape[1], shape[0], *shape[2:]) if turned else tuple(shape)
