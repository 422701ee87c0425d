"""Statistics of arrays in one pass and constant memory: `stats`."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np

from .array import IdxArray, open
from .elements import Array, as_bytes
from .lazyarray import DEFAULT_BLOCK_NBYTES as BLOCK_NBYTES
from .slabs.planning import SLAB_NBYTES, Slab, plan
from .slabs.running import run
from .source.threads import WORKERS, threads

__all__ = ["Stats", "stats"]

T = TypeVar("T")

BINS = 64


@dataclass(frozen=True)
class Stats:
    """What the values of an array are like.

    For integers of one byte every figure is exact; for others the sums are kept in float64.
    """

    shape: tuple[int, ...]
    dtype: str
    count: int
    """The elements that are numbers: all but NaN and infinities."""
    not_finite: int
    """NaN and infinities."""
    zeros: int
    minimum: float | int | None
    maximum: float | int | None
    total: float | int
    """The sum."""
    mean: float | None
    std: float | None
    """The standard deviation over all elements (of the population)."""
    histogram: tuple[int, ...]
    """For uint8 the count of each value from 0; for others counts in 64 equal bins from `minimum`
    to `maximum`."""

    @property
    def unit_mean(self) -> float | None:
        """The mean of integers as a fraction of their type's maximum, as normalisations use it."""
        return None if self.mean is None else self.mean / _unit(self.dtype)

    @property
    def unit_std(self) -> float | None:
        """The standard deviation, likewise."""
        return None if self.std is None else self.std / _unit(self.dtype)

    def as_dict(self) -> dict[str, Any]:
        """The figures as plain values, for JSON."""
        return {
            "shape": list(self.shape),
            "dtype": self.dtype,
            "count": self.count,
            "not_finite": self.not_finite,
            "zeros": self.zeros,
            "minimum": self.minimum,
            "maximum": self.maximum,
            "total": self.total,
            "mean": self.mean,
            "std": self.std,
            "unit_mean": self.unit_mean,
            "unit_std": self.unit_std,
            "histogram": list(self.histogram),
        }


def _unit(dtype: str) -> float:
    return float(np.iinfo(dtype).max) if np.dtype(dtype).kind in "iu" else 1.0


def stats(file: Any, *, executor: Executor | None = None) -> Stats:
    """The statistics of a file or an array: range, mean, standard deviation, histogram.

    Args:
        file: anything that `open` takes, or an array-like with `blocks` (an `IdxArray`, `Items`),
            or an ndarray.
        executor: who reads a file, slab by slab: any `concurrent.futures.Executor`. The figures
            are the same to the last digit. None: this thread.

    Returns:
        A `Stats`. Of an empty array the range and the mean are None.

    Raises:
        FormatError: for a file that is not right.

    Example:
        >>> import idxfile, numpy as np
        >>> s = idxfile.stats(np.array([[0, 255], [255, 0]], "uint8"))
        >>> s.mean, s.std, s.minimum, s.maximum, s.unit_mean
        (127.5, 127.5, 0, 255, 0.5)
    """
    if isinstance(file, (np.ndarray, IdxArray)) or hasattr(file, "blocks"):
        return _summarise(file, executor)
    with open(file, mmap=False) as array:
        if array.dtype == np.uint8:  # one pass is enough, and nobody else has the array
            array.read_once()
        return _summarise(array, executor)


class _Blocks(Protocol):
    """A slab, or an array that is read as one."""

    def blocks(self, *, block_nbytes: int) -> Iterator[Array]:
        """Its items in order."""


@dataclass(frozen=True)
class _InMemory:
    """An ndarray, read as a file is."""

    array: Array

    def blocks(self, *, block_nbytes: int) -> Iterator[Array]:
        flat = self.array.reshape(-1)
        step = max(1, block_nbytes // flat.dtype.itemsize)
        return (flat[start : start + step] for start in range(0, flat.size, step))


def _files(array: Any) -> Sequence[IdxArray]:
    """The files that an array lies in, end to end, if others could read them: slab by slab."""
    files = [array] if isinstance(array, IdxArray) else getattr(array, "arrays", ())
    return files if all(isinstance(file, IdxArray) and file.ndim for file in files) else ()


def _slabs(array: Any) -> Iterable[_Blocks]:
    """What is read of an array, part by part.

    Blocks are the same whoever reads them, and so are sums of floats that were rounded in them.
    """
    if isinstance(array, np.ndarray):
        return [_InMemory(array)]
    files = _files(array)
    if not files:
        return [array]
    plans = [
        plan(
            file,
            slab_nbytes=SLAB_NBYTES,
            align=max(1, BLOCK_NBYTES // max(1, file.header.item_nbytes)),
        )
        for file in files
    ]
    return plans[0] if len(plans) == 1 else chain.from_iterable(plans)


@dataclass(frozen=True)
class _Block:
    """A block that was read, counted as a slab is."""

    block: Array

    def blocks(self, *, block_nbytes: int) -> Iterator[Array]:
        yield self.block


def _summarise(array: Any, executor: Executor | None) -> Stats:
    files = _files(array)
    spread = executor if files and all(file.portable for file in files) else None
    dtype = np.dtype(array.dtype)
    if dtype.name == "uint8":
        counts = np.zeros(256, np.int64)
        for found in _counted(value_counts, array, spread):
            counts += found
        return _of_counts(array.shape, counts)
    moments = _Moments(dtype)
    for parts in _counted(_moments, array, spread, again=True):
        for part in parts:
            moments.add(part)
    histogram = np.zeros(BINS, np.int64)
    if moments.count:
        bins = partial(_histogram, moments.low, moments.high)
        for found in _counted(bins, array, spread):
            histogram += found
    return moments.stats(array.shape, histogram)


def _counted(
    count: Callable[[_Blocks], T], array: Any, executor: Executor | None, *, again: bool = False
) -> Iterator[T]:
    """What is found in an array, part by part and in order.

    An executor gets slabs. Without one this thread reads block after block, which others count.

    Args:
        count: finds it in a slab.
        array: the array.
        executor: who reads the slabs.
        again: whether the array will be read once more.
    """
    slabs, hands = _slabs(array), threads()
    nbytes = math.prod(array.shape) * np.dtype(array.dtype).itemsize
    if executor is not None or hands is None or nbytes < 2 * BLOCK_NBYTES:
        return run(count, slabs, executor=executor)
    blocks = (_Block(block) for slab in slabs for block in _blocks(slab, again=again))
    return run(count, blocks, executor=hands, ahead=WORKERS)


def _blocks(slab: _Blocks, *, again: bool) -> Iterator[Array]:
    """The blocks of a slab. What must be inflated for them is kept, if they are wanted again."""
    if again and isinstance(slab, Slab):
        slab.array.keep()
    return slab.blocks(block_nbytes=BLOCK_NBYTES)


def value_counts(slab: _Blocks) -> Array:
    """How often each of the 256 values of uint8 stands in a slab.

    They are counted in pairs, which takes half as many steps, and pairs are taken apart at the end.
    """
    pairs, counts = np.zeros(1 << 16, np.int64), np.zeros(256, np.int64)
    for block in slab.blocks(block_nbytes=BLOCK_NBYTES):
        flat = np.ascontiguousarray(block).reshape(-1)
        even = flat.size // 2 * 2
        both = flat[:even].view(np.uint16)
        for start in range(0, both.size, _COUNTED_AT_ONCE):
            pairs += np.bincount(both[start : start + _COUNTED_AT_ONCE], minlength=1 << 16)
        counts += np.bincount(flat[even:], minlength=256)
    square = pairs.reshape(256, 256)
    counts += square.sum(axis=0) + square.sum(axis=1)
    return counts


_COUNTED_AT_ONCE = 1 << 18
"""As numbers of eight bytes, which `bincount` makes of them, they are in the cache still."""


def _of_counts(shape: tuple[int, ...], counts: Array) -> Stats:
    """Everything of uint8 follows from its 256 counts, exactly."""
    each = [int(count) for count in counts]
    count = sum(each)
    present = [value for value, n in enumerate(each) if n]
    total = sum(value * n for value, n in enumerate(each))
    squares = sum(value * value * n for value, n in enumerate(each))
    mean = total / count if count else None
    std = math.sqrt(max(0, squares * count - total * total)) / count if count else None
    return Stats(
        tuple(shape),
        "uint8",
        count,
        0,
        each[0],
        present[0] if present else None,
        present[-1] if present else None,
        total,
        mean,
        std,
        tuple(each),
    )


class _Part(NamedTuple):
    """What is known of the finite values of a block."""

    size: int
    not_finite: int
    zeros: int
    total: Any
    mean: Any
    deviation: Any
    """The sum of the squares of their distances from the mean."""
    low: Any
    high: Any


def _moments(slab: _Blocks) -> list[_Part]:
    """A part for each block."""
    with np.errstate(invalid="ignore"):  # signalling NaNs are counted as all others
        return [_part(block.reshape(-1)) for block in _blocks(slab, again=True)]


def _part(values: Array) -> _Part:
    whole = values.dtype.kind in "iu"
    # The squares of float64 leave its own range: where there is a wider type, it holds them.
    wide = np.longdouble if values.dtype.name == "float64" else np.float64
    size = values.size
    if not whole:
        values = values[np.isfinite(values)]
    not_finite = size - values.size
    if not values.size:
        return _Part(0, not_finite, 0, 0, wide(0), wide(0), None, None)
    return _Part(
        values.size,
        not_finite,
        values.size - int(np.count_nonzero(values)),
        int(values.sum(dtype=np.int64)) if whole else values.sum(dtype=wide),
        values.mean(dtype=wide),
        values.var(dtype=wide) * values.size,
        values.min(),
        values.max(),
    )


class _Moments:
    """Parts joined, in the order of the blocks.

    They are joined by their means and deviations (Chan, Golub and LeVeque, 1979): sums of squares
    of large values would lose the digits that matter.
    """

    def __init__(self, dtype: np.dtype[Any]) -> None:
        self._dtype = dtype
        self.count = self._not_finite = self._zeros = 0
        self._total: Any = 0
        self._mean: Any = 0
        self._deviation: Any = 0
        self.low: Any = None
        self.high: Any = None

    def add(self, part: _Part) -> None:
        """Join what is known of the next block."""
        self._not_finite += part.not_finite
        if not part.size:
            return
        count, size = self.count, part.size
        gap = part.mean - self._mean
        self._deviation += part.deviation + gap * gap * count * size / (count + size)
        self._mean += gap * size / (count + size)
        self.count += size
        self._zeros += part.zeros
        self._total += part.total
        self.low = part.low if self.low is None else min(self.low, part.low)
        self.high = part.high if self.high is None else max(self.high, part.high)

    def stats(self, shape: tuple[int, ...], histogram: Array) -> Stats:
        """All of it together."""
        return Stats(
            tuple(shape),
            self._dtype.name,
            self.count,
            self._not_finite,
            self._zeros,
            None if self.low is None else self.low.item(),
            None if self.high is None else self.high.item(),
            self._total if self._dtype.kind in "iu" else float(self._total),
            float(self._mean) if self.count else None,
            float(np.sqrt(self._deviation / self.count)) if self.count else None,
            tuple(histogram.tolist()),
        )


def _histogram(low: Any, high: Any, slab: _Blocks) -> Array:
    """Counts in equal bins. Halves are taken first: the range of float64 itself has no width."""
    start, width = float(low) / 2, float(high) / 2 - float(low) / 2
    counts = np.zeros(BINS, np.int64)
    for block in slab.blocks(block_nbytes=BLOCK_NBYTES):
        halves = block.reshape(-1).astype(np.float64)
        halves = halves[np.isfinite(halves)] / 2
        places = (halves - start) / width * BINS if width else np.zeros(halves.size)
        counts += np.bincount(np.minimum(places.astype(np.intp), BINS - 1), minlength=BINS)
    return counts


def duplicate_items(array: Any, *others: Any) -> int:
    """How many items of an array equal an item before them, or one of the other arrays.

    Items are compared by a 128-bit digest of their bytes.
    """
    from hashlib import blake2b

    def digests(items: Any) -> Any:
        for block in items.blocks():
            rows = np.ascontiguousarray(block).reshape(len(block), -1)
            yield from (blake2b(as_bytes(row), digest_size=16).digest() for row in rows)

    seen = {digest for other in others for digest in digests(other)}
    found = 0
    for digest in digests(array):
        found += digest in seen
        seen.add(digest)
    return found
