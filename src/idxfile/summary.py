"""Statistics of arrays in one pass and constant memory: `stats`."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from .array import DEFAULT_BLOCK_NBYTES, IdxArray, open
from .elements import Array, as_bytes

__all__ = ["Stats", "stats"]

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


def stats(file: Any) -> Stats:
    """The statistics of a file or an array: range, mean, standard deviation, histogram.

    Args:
        file: anything that `open` takes, or an array-like with `blocks` (an `IdxArray`, `Items`),
            or an ndarray.

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
    if isinstance(file, np.ndarray):
        return _summarise(file, lambda: _array_blocks(file))
    if hasattr(file, "blocks"):
        return _summarise(file, file.blocks)
    with open(file, mmap=False) as array:
        return _summarise(array, array.blocks)


def _array_blocks(array: Array) -> Any:
    flat = array.reshape(-1)
    step = max(1, DEFAULT_BLOCK_NBYTES // array.dtype.itemsize)
    return (flat[start : start + step] for start in range(0, flat.size, step))


def _summarise(array: IdxArray | Any, blocks: Any) -> Stats:
    dtype = np.dtype(array.dtype)
    if dtype.name == "uint8":
        return _of_counts(array.shape, value_counts(blocks()))
    return _of_blocks(array.shape, dtype, blocks)


def value_counts(blocks: Any) -> Array:
    """How often each of the 256 values of uint8 stands in some blocks."""
    counts = np.zeros(256, np.int64)
    for block in blocks:
        flat = block.reshape(-1)
        for start in range(0, flat.size, 1 << 16):  # bincount widens: keep that in the cache
            counts += np.bincount(flat[start : start + (1 << 16)], minlength=256)
    return counts


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


def _of_blocks(shape: tuple[int, ...], dtype: np.dtype[Any], blocks: Any) -> Stats:
    """Two passes: range and moments, then the histogram over the range."""
    whole = dtype.kind in "iu"
    # The squares of float64 leave its own range: where there is a wider type, it holds them.
    wide = np.longdouble if dtype.name == "float64" else np.float64
    count = zeros = not_finite = 0
    total: Any = 0 if whole else 0.0
    mean: Any = wide(0)
    deviation: Any = wide(0)
    low: Any = None
    high: Any = None
    for block in blocks():
        values = block.reshape(-1)
        if not whole:
            finite = np.isfinite(values)
            not_finite += values.size - int(np.count_nonzero(finite))
            values = values[finite]
        if not values.size:
            continue
        # Blocks are joined by their means and deviations (Chan, Golub and LeVeque, 1979): sums
        # of squares of large values would lose the digits that matter.
        size = values.size
        block_mean = values.mean(dtype=wide)
        gap = block_mean - mean
        deviation += values.var(dtype=wide) * size + gap * gap * count * size / (count + size)
        mean += gap * size / (count + size)
        count += size
        zeros += size - int(np.count_nonzero(values))
        total += int(values.sum(dtype=np.int64)) if whole else float(values.sum(dtype=wide))
        low = values.min() if low is None else min(low, values.min())
        high = values.max() if high is None else max(high, values.max())
    histogram = np.zeros(BINS, np.int64)
    for block in blocks() if count else ():
        histogram += _histogram(block.reshape(-1), low, high)
    return Stats(
        tuple(shape),
        dtype.name,
        count,
        not_finite,
        zeros,
        None if low is None else low.item(),
        None if high is None else high.item(),
        total,
        float(mean) if count else None,
        float(np.sqrt(deviation / count)) if count else None,
        tuple(histogram.tolist()),
    )


def _histogram(values: Array, low: Any, high: Any) -> Array:
    """Counts in equal bins. Halves are taken first: the range of float64 itself has no width."""
    start, width = float(low) / 2, float(high) / 2 - float(low) / 2
    halves = values.astype(np.float64) / 2
    halves = halves[np.isfinite(halves)]
    places = (halves - start) / width * BINS if width else np.zeros(halves.size)
    return np.bincount(np.minimum(places.astype(np.intp), BINS - 1), minlength=BINS)


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
