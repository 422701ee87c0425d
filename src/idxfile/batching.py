"""Batches: the order in which items are seen, and how they become what a network wants.

An order is drawn from a seed by NumPy's `Generator(PCG64(seed))`, and so is the same on every
machine. Items are gathered a batch at once and scaled while they are in the cache.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from .elements import Array
from .items import Items
from .source.pool import Pool

__all__: list[str] = []

Scale = Literal["unit"] | tuple[float, float] | None
Shuffle = bool | Literal["blocks"]

PIECE = 1 << 18
"""Elements that are scaled at once."""
RUN_NBYTES = 1 << 22
"""What is read in one piece under `shuffle="blocks"`: 4 MiB."""
POOL_RUNS = 16
"""How many of them are mixed in memory: 64 MiB."""


def generator(seed: int | None) -> np.random.Generator:
    """The source of every random order here: PCG64 from a seed; None is seeded by the system."""
    return np.random.Generator(np.random.PCG64(seed))


def random_order(random: np.random.Generator, count: int) -> Array:
    """All positions in a random order, which stands in memory as a whole.

    Raises:
        MemoryError: where that has no room.
    """
    try:
        return random.permutation(count)
    except MemoryError:
        raise MemoryError(
            f"a random order of {count:,} items takes {count * 8 / 2**30:,.0f} GiB; "
            'batches(shuffle="blocks") takes 64 MiB at a time'
        ) from None


class Scaling:
    """How stored values become the numbers of a batch: one multiplication and one addition.

    Args:
        dtype: the dtype of the items.
        scale: None leaves the values; "unit" divides integers by their type's maximum; a pair
            `(mean, std)` does that and then subtracts the mean and divides by the deviation, as
            normalisations are published. Floats are not divided by anything first.
        out_dtype: the dtype wanted; None is float32 for scaled values and else the items' own.

    Raises:
        ValueError: for a scale that is none of these.
    """

    def __init__(self, dtype: np.dtype[Any], scale: Scale, out_dtype: Any = None) -> None:
        self.dtype = np.dtype(out_dtype or (dtype if scale is None else np.float32))
        self._source = dtype
        self._factor: Any = None
        self._shift: Any = None
        if scale is None:
            return
        if self.dtype.kind != "f":
            raise ValueError(f"scaled values are floats: dtype cannot be {self.dtype}")
        unit = 1 / float(np.iinfo(dtype).max) if dtype.kind in "iu" else 1.0
        mean, std = (0.0, 1.0) if scale == "unit" else self._moments(scale)
        self._factor = self.dtype.type(unit / std)
        self._shift = self.dtype.type(-mean / std) if mean else None

    @staticmethod
    def _moments(scale: Any) -> tuple[float, float]:
        try:
            mean, std = (float(number) for number in scale)
        except (TypeError, ValueError):
            raise ValueError(
                f'scale must be None, "unit" or a pair (mean, std), not {scale!r}'
            ) from None
        if not std > 0:
            raise ValueError(f"the standard deviation must be above 0, not {std}")
        return mean, std

    @property
    def trivial(self) -> bool:
        """Whether the values stay as they are."""
        return self._factor is None and self.dtype == self._source

    def apply(self, block: Array, out: Array) -> None:
        """Write the scaled values of `block` into `out`."""
        if self._factor is None:
            np.copyto(out, block, casting="unsafe" if out.dtype.kind == "f" else "safe")
            return
        # Widened, then scaled in place, in pieces that are in the cache still: one step that does
        # both goes through a buffer of NumPy's and takes half as long again.
        source, target = block.reshape(-1), out.reshape(-1)
        for start in range(0, source.size, PIECE):
            piece = target[start : start + PIECE]
            np.copyto(piece, source[start : start + PIECE], casting="unsafe")
            np.multiply(piece, self._factor, out=piece)
            if self._shift is not None:
                np.add(piece, self._shift, out=piece)


def batches(
    images: Items,
    labels: Array,
    size: int,
    *,
    shuffle: Shuffle = False,
    seed: int | None = None,
    drop_last: bool = False,
    scale: Scale = None,
    dtype: Any = None,
    out: Array | None = None,
    start: int = 0,
) -> Iterator[tuple[Array, Array]]:
    """See `Dataset.batches`."""
    if size < 1:
        raise ValueError(f"a batch has at least one item, not {size}")
    if shuffle not in (True, False, "blocks"):
        raise ValueError(f'shuffle must be True, False or "blocks", not {shuffle!r}')
    scaling = Scaling(images.dtype, scale, dtype)
    if out is not None and (
        out.shape[1:] != images.item_shape or len(out) < size or out.dtype != scaling.dtype
    ):
        raise ValueError(
            f"out must be {scaling.dtype} of shape ({size}, "
            f"{', '.join(map(str, images.item_shape))}), not {out.dtype} of shape {out.shape}"
        )
    count = len(images) // size if drop_last else -(-len(images) // size)
    if shuffle == "blocks":
        return _block_batches(images, labels, size, count, seed, scaling, out, start)
    order = random_order(generator(seed), len(images)) if shuffle else None
    return _gathered(images, labels, order, size, count, scaling, out, start)


def _gathered(
    images: Items,
    labels: Array,
    order: Array | None,
    size: int,
    count: int,
    scaling: Scaling,
    out: Array | None,
    start: int,
) -> Iterator[tuple[Array, Array]]:
    scratch = None if scaling.trivial else np.empty((size, *images.item_shape), images.dtype)
    for number in range(start, count):
        low, high = number * size, min((number + 1) * size, len(images))
        positions = np.arange(low, high) if order is None else order[low:high]
        target = None if out is None else out[: len(positions)]
        if scratch is None:
            yield images.take(positions, out=target), labels[positions]
            continue
        stored = images.take(positions, out=scratch[: len(positions)])
        if target is None:
            target = np.empty(stored.shape, scaling.dtype)
        scaling.apply(stored, target)
        yield target, labels[positions]


def _block_batches(
    images: Items,
    labels: Array,
    size: int,
    count: int,
    seed: int | None,
    scaling: Scaling,
    out: Array | None,
    start: int,
) -> Iterator[tuple[Array, Array]]:
    """The next pool is read, in another thread, while the batches of this one are gathered."""

    def memory() -> Array:
        """Where the stored values of the next batch go."""
        if scratch is not None:
            return scratch
        return np.empty((size, *images.item_shape), images.dtype) if out is None else out

    scratch = None if scaling.trivial else np.empty((size, *images.item_shape), images.dtype)
    end = min(count * size, len(images))
    stored, chosen, have = memory(), np.empty(size, np.intp), 0
    for pool, items in _read_ahead(images, seed, start * size):
        mixed = pool.mixed[max(0, start * size - pool.start) : max(0, end - pool.start)]
        while len(mixed):
            part, mixed = mixed[: size - have], mixed[size - have :]
            more = have + len(part)
            items.take(part, 0, stored[have:more], "clip")
            pool.places.take(part, 0, chosen[have:more], "clip")
            have = more
            if have < size and pool.start + len(pool.mixed) < end:
                break
            batch = stored[:have]
            if scratch is not None:
                batch = np.empty(batch.shape, scaling.dtype) if out is None else out[:have]
                scaling.apply(stored[:have], batch)
            yield batch, labels[chosen[:have]]
            stored, have = memory(), 0


def _read_ahead(images: Items, seed: int | None, first: int) -> Iterator[tuple[_Pool, Array]]:
    """The pools from that of item `first` on, each with its items, while the next is being read.

    Two buffers are used in turn: the items are valid until the next pool is asked for.
    """
    longest = min(len(images), _run_items(images.item_nbytes) * POOL_RUNS)
    shape = (longest, *images.item_shape)
    free = [np.empty(shape, images.dtype), np.empty(shape, images.dtype)]

    def read(pool: _Pool, buffer: Array) -> tuple[_Pool, Array]:
        images.read_runs(pool.runs, buffer[: len(pool.mixed)])
        return pool, buffer

    with Pool(1) as reader:
        coming: Future[tuple[_Pool, Array]] | None = None
        for pool in _pools(len(images), images.item_nbytes, seed):
            if pool.start + len(pool.mixed) <= first:
                continue
            ready, coming = coming, reader.submit(read, pool, free.pop())
            if ready is not None:
                yield ready.result()
                free.append(ready.result()[1])
        if coming is not None:
            yield coming.result()


@dataclass(frozen=True)
class _Pool:
    """Runs of neighbours, one behind the other, and the order in which they are seen."""

    start: int
    """How many items come before it."""
    runs: list[range]
    mixed: Array

    @functools.cached_property
    def places(self) -> Array:
        """The position of each item, as they are read."""
        return np.concatenate([np.arange(run.start, run.stop) for run in self.runs])


def _pools(count: int, item_nbytes: int, seed: int | None) -> Iterator[_Pool]:
    random = generator(seed)
    length = _run_items(item_nbytes)
    starts = random.permutation(np.arange(0, count, length)).tolist()
    start = 0
    for low in range(0, len(starts), POOL_RUNS):
        runs = [range(at, min(at + length, count)) for at in starts[low : low + POOL_RUNS]]
        pool = _Pool(start, runs, random.permutation(sum(map(len, runs))))
        yield pool
        start += len(pool.mixed)


def _run_items(item_nbytes: int) -> int:
    return max(1, RUN_NBYTES // max(1, item_nbytes))


def block_order(count: int, item_nbytes: int, seed: int | None) -> Iterator[Array]:
    """The positions of all items in the order of `shuffle="blocks"`, a pool at a time.

    The items are cut into runs of 4 MiB; the runs are shuffled; and the items of every 16 runs in
    that order are shuffled among themselves.
    """
    for pool in _pools(count, item_nbytes, seed):
        yield pool.places[pool.mixed]
