"""Chosen items written as one file by many, also in an order that no memory holds.

Items are gathered straight from where they lie, slab by slab of the new file. An order that hops
all over files larger than memory would read every page many times so: there the items are first
put into buckets. Each slab of the old files is read once, from front to back, and every item
written to the bucket of its new place; then every bucket, which fits into memory, is put in order.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import tempfile
from collections.abc import Iterator
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import pairwise

import numpy as np

from ..elements import Array
from ..errors import UnsupportedError
from ..header import Header
from ..items import Items
from ..source.local import memory_nbytes
from ..source.places import is_url, public
from .filling import FileGround, Ground, filled, laid_out, lay
from .planning import SLAB_NBYTES
from .running import run

__all__ = ["write_items"]

_BUCKET_NBYTES = 1 << 28
"""Items put in order at once: 256 MiB."""


def write_items(
    items: Items,
    file: str,
    *,
    executor: Executor | None = None,
    slab_nbytes: int = SLAB_NBYTES,
    most: int | None = None,
) -> None:
    """Write items as one raw IDX file, the same bytes however it is done.

    Args:
        items: which, in their order.
        file: the path or address; it appears when it is whole.
        executor: who does it; None: this thread. The folder is one that all of them see.
        slab_nbytes: the bytes that one of them gathers at once.
        most: the bytes beyond which scattered items go through buckets; None: half of this
            machine's memory. They lie beside the file, so that an object has none.

    Raises:
        UnsupportedError: for an object that would need them, and what `laid_out` refuses.
        OSError: as the system gives it.
    """
    buckets, step = through_buckets(items, most), slab_nbytes // max(1, items.item_nbytes)
    if buckets and is_url(file):
        raise UnsupportedError(
            "items in an order that no memory holds are put in order beside the file",
            file=public(file),
            hint="write a file on a disk, and convert it",
        )
    with contextlib.ExitStack() as stack:
        ground = stack.enter_context(laid_out(file, items.dtype, items.shape))
        if is_url(file):
            work = partial(_gather_these, pickle.dumps(items.everything), ground)
            places = ((low, items.index[low:high]) for low, high in ground.cut(step))
            counts = run(work, places, executor=executor)
        else:
            choice = stack.enter_context(_laid_aside(items, file))
            if buckets:
                counts = _in_two_passes(choice, ground, executor, slab_nbytes)
            else:
                counts = run(partial(_gather, choice, ground), ground.cut(step), executor=executor)
        filled(ground, counts)


def through_buckets(items: Items, most: int | None = None) -> bool:
    """Whether items lie so scattered, and are so many, that buckets are the quicker way."""
    if most is None:
        most = memory_nbytes() // 2
    return items.nbytes > most and bool((np.diff(items.index) < 0).any())


@dataclass(frozen=True)
class _Choice:
    """Chosen items as a recipe of under a kilobyte: what it takes lies in a folder."""

    folder: str

    @property
    def everything(self) -> Items:
        """All items of the files that was chosen from."""
        return _everything(self.folder)

    def numbers(self, name: str) -> Array:
        """An array that was laid aside, mapped: "index" tells which item comes to each place."""
        return _mapped(os.path.join(self.folder, name))

    def lay_aside(self, name: str, numbers: Array) -> Array:
        """Keep an array for all who work on the choice."""
        np.save(os.path.join(self.folder, f"{name}.npy"), numbers)
        return numbers


@lru_cache(16)
def _everything(folder: str) -> Items:
    with open(os.path.join(folder, "everything"), "rb") as file:
        return _arrived(file.read())


@lru_cache(16)
def _arrived(recipe: bytes) -> Items:
    items: Items = pickle.loads(recipe)  # noqa: S301  of our own making
    return items


@lru_cache(16)
def _mapped(path: str) -> Array:
    array: Array = np.load(f"{path}.npy", mmap_mode="r")
    return array


@contextlib.contextmanager
def _laid_aside(items: Items, file: str) -> Iterator[_Choice]:
    """The choice, its numbers in a folder beside the file that is to be written."""
    folder = os.path.dirname(os.path.realpath(file))
    with tempfile.TemporaryDirectory(prefix=".idx-", dir=folder) as aside:
        choice = _Choice(aside)
        with open(os.path.join(aside, "everything"), "wb") as recipe:
            pickle.dump(items.everything, recipe)
        choice.lay_aside("index", items.index)
        yield choice


def _cut(count: int, step: int) -> Iterator[tuple[int, int]]:
    return ((low, min(low + step, count)) for low in range(0, count, step))


def _gather(choice: _Choice, ground: Ground, bounds: tuple[int, int]) -> int:
    """Gather the items of some places, and write them there."""
    low, high = bounds
    return ground.write(low, choice.everything.take(choice.numbers("index")[low:high]))


def _gather_these(recipe: bytes, ground: Ground, task: tuple[int, Array]) -> int:
    """Gather items by numbers that come along, where no folder is beside the file."""
    first, index = task
    return ground.write(first, _arrived(recipe).take(index))


def _in_two_passes(
    choice: _Choice, ground: Ground, executor: Executor | None, slab_nbytes: int
) -> Iterator[int]:
    """Slabs of the old files into buckets, then every bucket in order into the new one."""
    index, one = choice.numbers("index"), max(1, ground.header.item_nbytes)
    size = max(1, _BUCKET_NBYTES // one)
    places = choice.lay_aside("places", np.argsort(index, kind="stable"))
    ascending = choice.lay_aside("ascending", index[places])
    slabs = [*_cut(len(choice.everything), max(1, slab_nbytes // one))]
    # How many of each bucket lie in the slabs before: where each slab writes into it.
    bounds = np.searchsorted(ascending, [*(low for low, _ in slabs), len(choice.everything)])
    buckets = -(-len(index) // size)
    counts = [
        np.bincount(places[low:high] // size, minlength=buckets) for low, high in pairwise(bounds)
    ]
    choice.lay_aside("begins", np.cumsum([np.zeros(buckets, np.intp), *counts], axis=0))
    buckets_of = _Buckets(
        lay(os.path.join(choice.folder, "items"), ground.name, ground.header),
        lay(os.path.join(choice.folder, "ranks"), ground.name, Header.of("int32", index.shape)),
        size,
    )
    tasks = [(number, *slab, *bounds[number : number + 2]) for number, slab in enumerate(slabs)]
    for _ in run(partial(_into_buckets, choice, buckets_of), tasks, executor=executor):
        pass
    yield from run(partial(_in_order, buckets_of, ground), ground.cut(size), executor=executor)


@dataclass(frozen=True)
class _Buckets:
    """Items by the bucket of their new place, and which rank in it each will have."""

    items: FileGround
    ranks: FileGround
    size: int
    """The items of a bucket."""


def _into_buckets(choice: _Choice, buckets: _Buckets, task: tuple[int, int, int, int, int]) -> None:
    """Read a slab of the old files; write each item into its bucket, behind the slabs before."""
    number, start, stop, low, high = task
    if low == high:
        return
    everything = choice.everything
    block = np.empty((stop - start, *everything.item_shape), everything.dtype)
    everything.read_runs([range(start, stop)], block)
    places = choice.numbers("places")[low:high]
    order = np.argsort(places // buckets.size, kind="stable")
    places = places[order]
    block = block[choice.numbers("ascending")[low:high][order] - start]
    ranks = (places % buckets.size).astype(np.int32)
    begins = choice.numbers("begins")[number]
    done = 0
    for bucket, count in zip(*np.unique(places // buckets.size, return_counts=True), strict=True):
        at = int(bucket) * buckets.size + int(begins[bucket])
        buckets.items.write(at, block[done : done + count])
        buckets.ranks.write(at, ranks[done : done + count])
        done += count


def _in_order(buckets: _Buckets, ground: Ground, bounds: tuple[int, int]) -> int:
    """Put a bucket in order, and write it to its place."""
    low, high = bounds
    stored = buckets.items.read(low, high)
    block = np.empty_like(stored)
    block[buckets.ranks.read(low, high)] = stored
    return ground.write(low, block)
