"""Slabs, and how a file is cut into them: `plan`."""

from __future__ import annotations

import math
import pickle
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from typing import Any, overload

import numpy as np

from ..array import IdxArray, open_shard
from ..elements import Array
from ..lazyarray import DEFAULT_BLOCK_NBYTES
from ..opening import ShardRecipe

__all__ = ["Plan", "Slab", "plan"]

SLAB_NBYTES = 1 << 26
"""A slab is about 64 MiB: long enough to lose its overhead in, short enough for any worker."""

_OPEN_FILES = 16
"""Files that a worker keeps open between one slab and the next."""


@dataclass(frozen=True)
class Slab:
    """Some neighbours of a file, as a unit of work. It pickles in under a kilobyte.

    Args:
        file: the open array, or one of several shards, opened when it is needed.
        start: the first item, counted in that file.
        stop: the item behind the last.
        first: the number of the first item in the whole, of which the file may be a part.
    """

    file: IdxArray | ShardRecipe
    start: int
    stop: int
    first: int

    def __len__(self) -> int:
        return self.stop - self.start

    @property
    def array(self) -> IdxArray:
        """The array that its items lie in, open. It is kept for the next slab of the same file.

        Raises:
            FormatError: for a shard that is not what it was when the work was planned.
        """
        return _opened(self.file) if isinstance(self.file, ShardRecipe) else self.file

    def blocks(self, *, block_nbytes: int = DEFAULT_BLOCK_NBYTES) -> Iterator[Array]:
        """Its items in order, as fresh native arrays of about `block_nbytes`."""
        return self.array.blocks_of(range(self.start, self.stop), block_nbytes=block_nbytes)

    def read(self) -> Array:
        """All its items, as one fresh native array."""
        array = self.array
        items = np.empty((len(self), *array.shape[1:]), array.dtype)
        array.read_runs([range(self.start, self.stop)], items)
        return items

    def __reduce__(self) -> tuple[Any, ...]:
        apart = isinstance(self.file, ShardRecipe)
        recipe = self.file if apart else pickle.dumps(self.file)
        return _arrived, (recipe, self.start, self.stop, self.first)


def _arrived(recipe: ShardRecipe | bytes, *numbers: int) -> Slab:
    return Slab(opened_once(recipe) if isinstance(recipe, bytes) else recipe, *numbers)


@lru_cache(_OPEN_FILES)
def opened_once(recipe: bytes) -> IdxArray:
    """An array of its pickle, kept open for the next piece of work on it."""
    array: IdxArray = pickle.loads(recipe)  # noqa: S301  of our own making
    return array


@lru_cache(_OPEN_FILES)
def _opened(recipe: ShardRecipe) -> IdxArray:
    return open_shard(recipe)


class Plan(Sequence[Slab]):
    """All slabs of an array, in order. Each is made when it is asked for.

    A set of a hundred terabytes in two thousand shards has more than a million slabs, and its plan
    is as small as the list of its shards.
    """

    def __init__(self, parts: Sequence[tuple[IdxArray | ShardRecipe, int]], step: int) -> None:
        self._parts = parts
        self._step = max(1, step)
        counts = [math.ceil(items / self._step) for _, items in parts]
        self._slabs = [0, *accumulate(counts)]
        self._items = [0, *accumulate(items for _, items in parts)]

    @property
    def items(self) -> int:
        """How many items there are in all."""
        return self._items[-1]

    def __len__(self) -> int:
        return self._slabs[-1]

    @overload
    def __getitem__(self, key: int) -> Slab: ...
    @overload
    def __getitem__(self, key: slice) -> list[Slab]: ...
    def __getitem__(self, key: int | slice) -> Slab | list[Slab]:
        if isinstance(key, slice):
            return [self[number] for number in range(*key.indices(len(self)))]
        number = range(len(self))[key]
        part = bisect_right(self._slabs, number) - 1
        file, items = self._parts[part]
        start = (number - self._slabs[part]) * self._step
        stop = min(start + self._step, items)
        return Slab(file, start, stop, self._items[part] + start)

    def __repr__(self) -> str:
        return f"<Plan: {len(self):,} slabs of {self.items:,} items in {len(self._parts):,} files>"


def plan(array: IdxArray, *, slab_nbytes: int = SLAB_NBYTES, align: int = 1) -> Plan:
    """Cut an array into slabs along dimension 0.

    No slab crosses from one shard into the next. What can only be read from its beginning (a
    compressed file without an index, a stream) is one slab.

    Args:
        array: an open array; not a scalar.
        slab_nbytes: the bytes of a slab, about; at least one item.
        align: slabs begin at a multiple of so many items of their file.

    Returns:
        A `Plan`, a sequence of `Slab`.

    Example:
        >>> import idxfile
        >>> x = idxfile.open(bytes.fromhex("00000801 00000005 0102030405"))
        >>> [(slab.start, slab.stop) for slab in idxfile.plan(x, slab_nbytes=2)]
        [(0, 2), (2, 4), (4, 5)]
    """
    step = slab_nbytes // max(1, array.header.item_nbytes) // align * align or align
    if not (array.shards and array.portable):
        return Plan([(array, len(array))], step if array.random_access else len(array))
    parts = [(recipe, recipe.shard.items) for recipe in array.shard_recipes()]
    if array.codecs and not _opened(parts[0][0]).random_access:
        step = max(count for _, count in parts)
    return Plan(parts, step)
