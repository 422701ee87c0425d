"""Chosen items written as one file or as shards, also in an order that no memory holds.

Items are gathered straight from where they lie, slab by slab of the new file. An order that hops
all over files larger than memory would read every page many times so, and one that hops all over
an object would fetch it many times: there the items are written twice. At first as they lie, each
slab of the old files by itself put into the new order, beside what is to be written: on the disk
as one file, in a store as shards that nobody sees. What comes next to each other in the end then
lies in one run of each slab, and is read from there.
"""

from __future__ import annotations

import contextlib
import os
import pickle
from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, Protocol

import numpy as np

from ..array import open as open_idx
from ..elements import Array
from ..header import Header
from ..items import Items
from ..placing import hidden_place
from ..shards import MANIFEST_SUFFIX, ShardFacts
from ..source.local import memory_nbytes
from ..source.places import beside, is_url
from ..staging import hidden_folder
from ..writer import create
from .filling import Ground, filled, laid_out
from .planning import SLAB_NBYTES
from .running import run
from .spreading import Part, spread_out

__all__ = ["write_items"]

_RUN_NBYTES = 1 << 28
"""Items put in order at once: 256 MiB."""

_PIECE_NBYTES = 1 << 23
"""Items gathered at once for who takes them one after the other."""

_CACHED_NBYTES = 1 << 20
"""Likewise by one thread, so that they stay in the cache of the processor."""

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
    """Write items as one IDX file or as shards, the same bytes however it is done.

    Args:
        items: which, in their order.
        file: the path or address; it appears when it is whole.
        shards: write so many files instead of one; with an executor, each of them by one worker.
        shard_nbytes: likewise, files of about so many bytes.
        codec: "auto" goes by the name. One file that many write is raw.
        blocked: gz only: many small members, for random access.
        executor: who does it; None: this thread. The folder is one that all of them see.
        slab_nbytes: the bytes of one file that one of them gathers at once.
        most: the bytes beyond which scattered items are written twice; None: half of this
            machine's memory, or 256 MiB of what lies in a store.

    Raises:
        UnsupportedError: for what `laid_out` and `spread_out` refuse.
        OSError: as the system gives it. After an exception nothing is left.
    """
    packing: dict[str, Any] = {"codec": codec, "blocked": blocked}
    packing |= {"shards": shards, "shard_nbytes": shard_nbytes}
    if most is None:
        most = _RUN_NBYTES if items.far else memory_nbytes() // 2
    if items.nbytes > most and items.hops:
        with _sorted_runs(items, file, executor) as (runs, way):
            _write(runs, file, way, executor, packing)
        return
    piece_nbytes = _CACHED_NBYTES if executor is None and not items.far else _PIECE_NBYTES
    way = _Way(slab_nbytes, piece_nbytes)
    if items.far and items.hops:
        way = _Way(max(slab_nbytes, _RUN_NBYTES), _RUN_NBYTES)
    _write(items, file, way, executor, packing)


@dataclass(frozen=True)
class _Way:
    """How items are gathered."""

    slab_nbytes: int
    """At once, for one file."""
    piece_nbytes: int
    """At once, for who takes them one after the other."""
    sorts: bool = False
    """Whether they are read as they lie, and put in order in memory."""
    keeps: bool = True
    """Whether what they lie in stays open; what will be removed does not."""

    def read(self, items: Items, numbers: Array, out: Array | None = None) -> Array:
        """Items by their numbers."""
        if not self.sorts:
            return items.take(numbers, out=out)
        order = np.argsort(numbers)
        stored = items.take(numbers[order])
        block = np.empty_like(stored) if out is None else out
        block[order] = stored
        return block


@contextlib.contextmanager
def _sorted_runs(
    items: Items, file: str, executor: Executor | None
) -> Iterator[tuple[Items, _Way]]:
    """Items written beside a file in runs, each of which is in their order.

    Yields:
        The same items, from there, and how they are gathered best.
    """
    count, index = len(items), items.index
    step = max(1, _RUN_NBYTES // max(1, items.item_nbytes))
    by_number = np.argsort(index)
    numbers = np.empty(count, _kind(len(items.everything)))
    places = np.empty(count, _kind(count))
    for low, high in _cut(0, count, step):
        run = np.sort(by_number[low:high])
        numbers[low:high] = index[run]
        places[run] = np.arange(low, high)
    del by_number
    once = _Way(_RUN_NBYTES, _RUN_NBYTES, sorts=True)
    with hidden_place(file) as name:
        packing: dict[str, Any] = {"codec": None}
        if is_url(file):  # where no one may write another's
            header = Header.of(items.dtype.name, items.shape)
            packing["shard_nbytes"] = header.data_offset + step * items.item_nbytes
        _write(items.everything.renumbered(numbers), name, once, executor, packing)
        del numbers
        if is_url(file):
            name = beside(name, f"x{MANIFEST_SUFFIX}")
        with open_idx(name, mmap=False) as runs:
            yield (
                Items([runs]).renumbered(places),
                _Way(_RUN_NBYTES, _RUN_NBYTES, keeps=is_url(file)),
            )


def _kind(count: int) -> Any:
    """What the numbers of so many items take: half of the memory, where that will do."""
    return np.uint32 if count < 1 << 32 else np.int64


def _write(
    items: Items, file: str, way: _Way, executor: Executor | None, packing: dict[str, Any]
) -> None:
    """Write items straight from where they lie."""
    if executor is None:
        kind, shape = items.dtype, items.item_shape
        with create(file, dtype=kind, item_shape=shape, count=len(items), **packing) as writer:
            for block in _blocks(items, way):
                writer.append(block)
        return
    with contextlib.ExitStack() as stack:
        stack.callback(_kept.cache_clear)
        stack.callback(_arrived.cache_clear)
        parts: list[tuple[Any, Bounds]]
        spread = None
        if packing.get("shards") is not None or packing.get("shard_nbytes") is not None:
            spread = stack.enter_context(spread_out(file, items.dtype, items.shape, **packing))
            parts = [(part, (part.first, part.stop)) for part in spread.parts]
        else:
            ground = stack.enter_context(laid_out(file, items.dtype, items.shape))
            step = way.slab_nbytes // max(1, items.item_nbytes)
            parts = [(ground, bounds) for bounds in ground.cut(step)]
        choice_of: Callable[[Bounds], _Choice]
        if is_url(file):
            choice_of = partial(_sent, way, pickle.dumps(items.everything), items)
        else:
            laid = stack.enter_context(_laid_aside(way, items, file))
            choice_of = partial(_same, laid)
        tasks = ((choice_of(bounds), part, bounds) for part, bounds in parts)
        if spread is not None:
            spread.written += run(_write_shard, tasks, executor=executor, total=len(parts))
        else:
            filled(ground, run(_write_range, tasks, executor=executor, total=len(parts)))


def _blocks(items: Items, way: _Way) -> Iterator[Array]:
    """All items in order; a block is gone when the next one is asked for."""
    if items.far and way.piece_nbytes < _RUN_NBYTES:
        yield from items.blocks(block_nbytes=way.piece_nbytes)  # some are on their way meanwhile
        return
    everything = items.everything
    step = max(1, way.piece_nbytes // max(1, items.item_nbytes))
    memory = np.empty((min(step, len(items)), *items.item_shape), items.dtype)
    for low, high in _cut(0, len(items), step):
        yield way.read(everything, items.numbers(low, high), memory[: high - low])


class _Choice(Protocol):
    """Chosen items, as they travel to a worker."""

    @property
    def way(self) -> _Way:
        """How they are gathered."""

    def read(self, low: int, high: int) -> Array:
        """Those of the new places from `low` to `high`."""


def _write_range(task: tuple[_Choice, Ground, Bounds]) -> int:
    """Gather the items of some places, and write them there."""
    choice, ground, (low, high) = task
    return ground.write(low, choice.read(low, high))


def _write_shard(task: tuple[_Choice, Part, Bounds]) -> ShardFacts:
    """Gather the items of a shard, piece after piece, and write it."""
    choice, part, bounds = task
    step = max(1, choice.way.piece_nbytes // max(1, part.header.item_nbytes))
    return part.write(choice.read(low, high) for low, high in _cut(*bounds, step))


@dataclass(frozen=True)
class _Sent:
    """Items whose numbers come along, where no folder is beside the file."""

    way: _Way
    recipe: bytes
    first: int
    """The place of the first."""
    numbers: Array

    def read(self, low: int, high: int) -> Array:
        """Those of the new places from `low` to `high`."""
        return self.way.read(
            _arrived(self.recipe), self.numbers[low - self.first : high - self.first]
        )


def _sent(way: _Way, recipe: bytes, items: Items, bounds: Bounds) -> _Sent:
    return _Sent(way, recipe, bounds[0], items.numbers(*bounds))


@dataclass(frozen=True)
class _Laid:
    """Items as a recipe of under a kilobyte: what it takes lies in a folder."""

    way: _Way
    folder: str
    kind: np.dtype[Any]
    """Of the numbers of the items."""

    def read(self, low: int, high: int) -> Array:
        """Those of the new places from `low` to `high`."""
        path, offset = os.path.join(self.folder, _NUMBERS), low * self.kind.itemsize
        numbers = np.fromfile(path, self.kind, high - low, offset=offset)
        if self.way.keeps:
            return self.way.read(_kept(self.folder), numbers)
        with contextlib.closing(_loaded(self.folder)) as everything:
            return self.way.read(everything, numbers)


def _same(choice: _Laid, bounds: Bounds) -> _Laid:
    return choice


_EVERYTHING, _NUMBERS = "everything", "numbers"

_NUMBERS_AT_ONCE = 1 << 20


@contextlib.contextmanager
def _laid_aside(way: _Way, items: Items, file: str) -> Iterator[_Laid]:
    """The items, and which are meant, in a folder beside the file that is to be written."""
    folder = os.path.dirname(os.path.realpath(file))
    with hidden_folder(folder) as aside:
        with open(os.path.join(aside, _EVERYTHING), "wb") as recipe:
            pickle.dump(items.everything, recipe)
        with open(os.path.join(aside, _NUMBERS), "wb") as numbers:
            for bounds in _cut(0, len(items), _NUMBERS_AT_ONCE):
                numbers.write(np.ascontiguousarray(items.numbers(*bounds)).data)
        yield _Laid(way, aside, items.numbers(0, 0).dtype)


def _loaded(folder: str) -> Items:
    with open(os.path.join(folder, _EVERYTHING), "rb") as file:
        items: Items = pickle.load(file)  # noqa: S301  of our own making
    return items


# Of a worker that lives on, the files of its last work are open, and no others.
_kept = lru_cache(1)(_loaded)


@lru_cache(1)
def _arrived(recipe: bytes) -> Items:
    items: Items = pickle.loads(recipe)  # noqa: S301  of our own making
    return items


def _cut(start: int, stop: int, step: int) -> Iterator[Bounds]:
    return ((low, min(low + step, stop)) for low in range(start, stop, step))
