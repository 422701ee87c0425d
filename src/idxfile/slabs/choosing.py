"""Chosen items written as one file or as shards by many, also in an order that no memory holds.

Items are gathered straight from where they lie, slab by slab of the new file. An order that hops
all over files larger than memory would read every page many times so: there the items are first
put into buckets. Each slab of the old files is read once, from front to back, and every item
written to the bucket of its new place; then every bucket, which fits into memory, is put in order.
"""

from __future__ import annotations

import contextlib
import os
import pickle
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import pairwise
from typing import Any, Protocol

import numpy as np

from ..elements import Array
from ..errors import UnsupportedError
from ..header import Header
from ..items import Items
from ..shards import ShardFacts
from ..source.local import memory_nbytes
from ..source.places import is_url, public
from ..staging import hidden_folder
from .filling import FileGround, Ground, filled, laid_out, lay
from .planning import SLAB_NBYTES
from .running import run
from .spreading import Part, spread_out

__all__ = ["write_items"]

_BUCKET_NBYTES = 1 << 28
"""Items put in order at once: 256 MiB."""

_PIECE_NBYTES = 1 << 23
"""Items gathered at once for a shard, which takes them one after the other."""

_NUMBER_NBYTES = 8

Bounds = tuple[int, int]


def write_items(
    items: Items,
    file: str,
    *,
    shards: int | None = None,
    shard_nbytes: int | None = None,
    codec: str | None = "auto",
    blocked: bool = False,
    executor: Executor | None = None,
    slab_nbytes: int = SLAB_NBYTES,
    most: int | None = None,
) -> None:
    """Write items as one raw IDX file or as shards, the same bytes however it is done.

    Args:
        items: which, in their order.
        file: the path or address; it appears when it is whole.
        shards: write so many files instead of one, each of them by one who does it.
        shard_nbytes: likewise, files of about so many bytes.
        codec: of shards; "auto" goes by the name.
        blocked: of shards in gz: many small members, for random access.
        executor: who does it; None: this thread. The folder is one that all of them see.
        slab_nbytes: the bytes that one of them gathers at once.
        most: the bytes beyond which scattered items go through buckets; None: half of this
            machine's memory. They lie beside the file, so that an object has none.

    Raises:
        UnsupportedError: for objects that would need them, and what `laid_out` and `spread_out`
            refuse.
        OSError: as the system gives it.
    """
    buckets, one = through_buckets(items, most), max(1, items.item_nbytes)
    if buckets and is_url(file):
        raise UnsupportedError(
            "items in an order that no memory holds are put in order beside the file",
            file=public(file),
            hint="write files on a disk, and convert them",
        )
    with contextlib.ExitStack() as stack:
        stack.callback(_everything.cache_clear)
        stack.callback(_arrived.cache_clear)
        parts: list[tuple[Any, Bounds]]
        order_of: Callable[[Bounds], _Order]
        spread = None
        if shards is not None or shard_nbytes is not None:
            options: dict[str, Any] = {"shards": shards, "shard_nbytes": shard_nbytes}
            options |= {"codec": codec, "blocked": blocked}
            spread = stack.enter_context(spread_out(file, items.dtype, items.shape, **options))
            parts = [(part, (part.first, part.stop)) for part in spread.parts]
        else:
            ground = stack.enter_context(laid_out(file, items.dtype, items.shape))
            step = max(1, _BUCKET_NBYTES // one) if buckets else slab_nbytes // one
            parts = [(ground, bounds) for bounds in ground.cut(step)]
        if is_url(file):
            order_of = partial(_sent, pickle.dumps(items.everything), items.index)
        else:
            choice = stack.enter_context(_laid_aside(items, file))
            order: _Order = choice
            if buckets:
                ranges = [bounds for _, bounds in parts]
                order = _in_buckets(choice, items.index, file, ranges, executor, slab_nbytes)
            order_of = partial(_same, order)
        tasks = ((order_of(bounds), part, bounds) for part, bounds in parts)
        if spread is not None:
            spread.written += run(_write_shard, tasks, executor=executor, total=len(parts))
        else:
            filled(ground, run(_write_range, tasks, executor=executor, total=len(parts)))


def through_buckets(items: Items, most: int | None = None) -> bool:
    """Whether items lie so scattered, and are so many, that buckets are the quicker way."""
    if most is None:
        most = memory_nbytes() // 2
    index = items.index
    return items.nbytes > most and bool((index[1:] < index[:-1]).any())


class _Order(Protocol):
    """Items by their new places."""

    def read(self, low: int, high: int) -> Array:
        """Those of the places from `low` to `high`, which may be any of a piece."""

    def pieces(self, low: int, high: int) -> Iterable[Bounds]:
        """The places from `low` to `high` as ranges that are read at once."""


def _write_range(task: tuple[_Order, Ground, Bounds]) -> int:
    """Gather the items of some places, and write them there."""
    order, ground, (low, high) = task
    return ground.write(low, order.read(low, high))


def _write_shard(task: tuple[_Order, Part, Bounds]) -> ShardFacts:
    """Gather the items of a shard, piece after piece, and write it."""
    order, part, bounds = task
    return part.write(order.read(low, high) for low, high in order.pieces(*bounds))


@dataclass(frozen=True)
class _Sent:
    """Chosen items whose numbers come along, where no folder is beside the file."""

    recipe: bytes
    first: int
    """The place of the first."""
    index: Array

    def read(self, low: int, high: int) -> Array:
        """Items by their new places."""
        return _arrived(self.recipe).take(self.index[low - self.first : high - self.first])

    def pieces(self, low: int, high: int) -> Iterable[Bounds]:
        """Ranges of about as many bytes."""
        return _pieces(low, high, _arrived(self.recipe).item_nbytes)


def _sent(recipe: bytes, index: Array, bounds: Bounds) -> _Sent:
    return _Sent(recipe, bounds[0], index[slice(*bounds)])


def _same(order: _Order, bounds: Bounds) -> _Order:
    return order


@dataclass(frozen=True)
class _Choice:
    """Chosen items as a recipe of under a kilobyte: what it takes lies in a folder."""

    folder: str

    @property
    def everything(self) -> Items:
        """All items of the files that was chosen from."""
        return _everything(self.folder)

    def path(self, name: str) -> str:
        """Where something lies: "index" tells which item comes to each place."""
        return os.path.join(self.folder, name)

    def numbers(self, name: str, low: int, high: int) -> Array:
        """Those from `low` to `high` of the numbers that were laid aside under a name."""
        return np.fromfile(self.path(name), np.int64, high - low, offset=low * _NUMBER_NBYTES)

    def read(self, low: int, high: int) -> Array:
        """Items by their new places."""
        return self.everything.take(self.numbers("index", low, high))

    def pieces(self, low: int, high: int) -> Iterable[Bounds]:
        """Ranges of about as many bytes."""
        return _pieces(low, high, self.everything.item_nbytes)


@lru_cache(1)  # of a worker that lives on, the files of its last work are open, and no others
def _everything(folder: str) -> Items:
    with open(os.path.join(folder, "everything"), "rb") as file:
        items: Items = pickle.load(file)  # noqa: S301  of our own making
    return items


@lru_cache(1)
def _arrived(recipe: bytes) -> Items:
    items: Items = pickle.loads(recipe)  # noqa: S301  of our own making
    return items


@contextlib.contextmanager
def _laid_aside(items: Items, file: str) -> Iterator[_Choice]:
    """The choice, its numbers in a folder beside the file that is to be written."""
    folder = os.path.dirname(os.path.realpath(file))
    with hidden_folder(folder) as aside:
        choice = _Choice(aside)
        with open(choice.path("everything"), "wb") as recipe:
            pickle.dump(items.everything, recipe)
        with open(choice.path("index"), "wb") as numbers:
            numbers.write(np.ascontiguousarray(items.index, np.int64).data)
        yield choice


def _pieces(low: int, high: int, item_nbytes: int) -> Iterator[Bounds]:
    return _cut(low, high, max(1, _PIECE_NBYTES // max(1, item_nbytes)))


def _cut(start: int, stop: int, step: int) -> Iterator[Bounds]:
    return ((low, min(low + step, stop)) for low in range(start, stop, step))


@dataclass(frozen=True)
class _Buckets:
    """Items by the bucket of their new place; within it, by their old numbers."""

    choice: _Choice
    items: FileGround
    count: int
    """How many buckets there are."""

    def read(self, low: int, high: int) -> Array:
        """The items of one bucket, put in order."""
        stored = self.items.read(low, high)
        block = np.empty_like(stored)
        block[np.argsort(self.choice.numbers("index", low, high))] = stored
        return block

    def pieces(self, low: int, high: int) -> Iterable[Bounds]:
        """The buckets of these places."""
        edges = self.choice.numbers("edges", 0, self.count + 1)
        first, last = np.searchsorted(edges, (low, high))
        return pairwise(edges[first : last + 1].tolist())


def _in_buckets(
    choice: _Choice,
    index: Array,
    file: str,
    ranges: Iterable[Bounds],
    executor: Executor | None,
    slab_nbytes: int,
) -> _Buckets:
    """Put slabs of the old files into buckets, none of which crosses from a range to the next."""
    everything = choice.everything
    one = max(1, everything.item_nbytes)
    size = max(1, _BUCKET_NBYTES // one)
    starts = [low for bounds in ranges for low, _ in _cut(*bounds, size)]
    edges = np.array([*starts, len(index)], np.int64)
    with open(choice.path("edges"), "wb") as numbers:
        numbers.write(edges.data)
    step = max(1, slab_nbytes // one)
    slabs = range(0, len(everything), step)
    with open(choice.path("moves"), "wb") as numbers:
        bounds = [0]
        for moves in _moves(index, edges, slabs):
            numbers.write(moves.data)
            bounds.append(bounds[-1] + len(moves))
    header = Header.of(everything.dtype.name, (len(index), *everything.item_shape))
    buckets = _Buckets(choice, lay(choice.path("items"), file, header), len(starts))
    tasks = (
        (start, min(start + step, len(everything)), low, high)
        for start, (low, high) in zip(slabs, pairwise(bounds), strict=True)
    )
    filled(buckets.items, run(partial(_into_buckets, buckets), tasks, executor=executor))
    return buckets


def _moves(index: Array, edges: Array, slabs: range) -> Iterator[Array]:
    """For each slab of the old files the items that were chosen from it, and where they are put.

    Args:
        index: the old number of each item, by its new place.
        edges: where buckets begin among the new places, and the number of these.
        slabs: the old number that each slab begins with.

    Yields:
        Pairs of an old number and its place in the buckets, by the latter.
    """
    places = np.argsort(index)
    bounds = np.searchsorted(index, slabs, sorter=places).tolist()
    free = edges[:-1].copy()  # where the next item of each bucket is put
    for low, high in pairwise([*bounds, len(index)]):
        mine = places[low:high]
        owners = np.searchsorted(edges, mine, side="right") - 1
        order = np.argsort(owners, kind="stable")
        owners = owners[order]
        nth = np.arange(len(owners)) - np.searchsorted(owners, owners)
        yield np.stack([index[mine[order]], free[owners] + nth], axis=1)
        np.add.at(free, owners, 1)


def _into_buckets(buckets: _Buckets, task: tuple[int, int, int, int]) -> int:
    """Read a slab of the old files, and write each item into its bucket."""
    start, stop, low, high = task
    if low == high:
        return 0
    everything = buckets.choice.everything
    block = np.empty((stop - start, *everything.item_shape), everything.dtype)
    everything.read_runs([range(start, stop)], block)
    numbers, spots = buckets.choice.numbers("moves", 2 * low, 2 * high).reshape(-1, 2).T
    block = block[numbers - start]
    gaps = np.flatnonzero(np.diff(spots) != 1) + 1
    for first, last in pairwise([0, *gaps.tolist(), len(spots)]):
        buckets.items.write(int(spots[first]), block[first:last])
    return len(spots)
