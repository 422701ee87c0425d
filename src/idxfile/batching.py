"""Batches: the order in which items are seen, and how they become what a network wants.

An order is drawn from a seed by NumPy's `Generator(PCG64(seed))`, and so is the same on every
machine. Items are gathered a batch at once and scaled while they are in the cache.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

import numpy as np

from .elements import Array
from .items import Items

__all__: list[str] = []

Scale = Literal["unit"] | tuple[float, float] | None
Shuffle = bool | Literal["blocks"]

PIECE = 1 << 18
"""Elements that are scaled at once."""
RUN_NBYTES = 1 << 22
"""What is read in one piece under `shuffle="blocks"`: 4 MiB."""
POOL_NBYTES = 1 << 26
"""What is mixed in memory under `shuffle="blocks"`: 64 MiB."""


def generator(seed: int | None) -> np.random.Generator:
    """The source of every random order here: PCG64 from a seed; None is seeded by the system."""
    return np.random.Generator(np.random.PCG64(seed))


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
    order = generator(seed).permutation(len(images)) if shuffle else np.arange(len(images))
    return _gathered(images, labels, order, size, count, scaling, out, start)


def _gathered(
    images: Items,
    labels: Array,
    order: Array,
    size: int,
    count: int,
    scaling: Scaling,
    out: Array | None,
    start: int,
) -> Iterator[tuple[Array, Array]]:
    scratch = None if scaling.trivial else np.empty((size, *images.item_shape), images.dtype)
    for number in range(start, count):
        positions = order[number * size : (number + 1) * size]
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
    """Runs of neighbours are read in one piece, in random order, and mixed a pool at a time."""
    item_shape = images.item_shape
    pool: Array = np.empty((0, *item_shape), images.dtype)
    batch: Array = np.empty((size, *item_shape), images.dtype)
    chosen: Array = np.empty(size, np.intp)
    number = have = 0
    for places in block_order(len(images), images.item_nbytes, seed):
        if len(pool) < len(places):
            pool = np.empty((len(places), *item_shape), images.dtype)
        ascending = np.sort(places)  # so that it is read from front to back
        images.take(ascending, out=pool[: len(places)])
        mixed = np.searchsorted(ascending, places)
        at = 0
        while at < len(places):
            more = min(size - have, len(places) - at)
            pool.take(mixed[at : at + more], 0, batch[have : have + more], "clip")
            chosen[have : have + more] = places[at : at + more]
            at, have = at + more, have + more
            if have == size:
                if number >= start:
                    yield _given(batch, scaling, out), labels[chosen]
                number, have = number + 1, 0
    if have and start <= number < count:
        yield _given(batch[:have], scaling, out), labels[chosen[:have]]


def _given(stored: Array, scaling: Scaling, out: Array | None) -> Array:
    """A batch as it is given out."""
    target = np.empty(stored.shape, scaling.dtype) if out is None else out[: len(stored)]
    scaling.apply(stored, target)
    return target


def block_order(count: int, item_nbytes: int, seed: int | None) -> Iterator[Array]:
    """The positions of all items in the order of `shuffle="blocks"`, a pool at a time.

    The items are cut into runs of 4 MiB; the runs are shuffled; and the items of every 16 runs in
    that order are shuffled among themselves.
    """
    random = generator(seed)
    run = max(1, RUN_NBYTES // max(1, item_nbytes))
    starts = random.permutation(np.arange(0, count, run))
    together = max(1, POOL_NBYTES // RUN_NBYTES)
    for low in range(0, len(starts), together):
        pool = [np.arange(start, min(start + run, count)) for start in starts[low : low + together]]
        yield random.permutation(np.concatenate(pool))
