"""Pixels: any values of the element types as 8-bit grey or colour, and pictures in other sizes."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np

from ..elements import Array

__all__ = ["Window", "area_mean", "as_pixels", "enlarged", "spread", "window_of"]

Window = tuple[float, float]
"""The values that become 0 and 255."""

BYTES: Window = (0.0, 255.0)

_AT_ONCE = 1 << 22
"""Elements that are looked at together: a picture may be larger than memory would like."""


def window_of(arrays: Sequence[Array]) -> Window:
    """The window in which arrays are seen whole: 0 to 255 for uint8, else their spread."""
    return BYTES if all(array.dtype == np.uint8 for array in arrays) else spread(arrays)


def spread(arrays: Iterable[Array]) -> Window:
    """The least and the greatest value of arrays, NaN and the infinities not counted.

    Without any finite value it is (0, 0).
    """
    low, high = np.inf, -np.inf
    for array in (part for whole in arrays for part in _parts(whole)):
        finite = array[np.isfinite(array)] if array.dtype.kind == "f" else array
        if finite.size:
            low, high = min(low, float(finite.min())), max(high, float(finite.max()))
    return (low, high) if low <= high else (0.0, 0.0)


def _parts(array: Array) -> Iterator[Array]:
    """An array in parts of at most about four million elements."""
    if array.size <= _AT_ONCE:
        yield array
        return
    step = max(1, _AT_ONCE * len(array) // array.size)
    for start in range(0, len(array), step):
        yield from _parts(array[start] if step == 1 else array[start : start + step])


def as_pixels(values: Array, window: Window) -> Array:
    """Values as uint8: the low end of the window is 0, the high end 255, beyond is cut.

    NaN is 0, and so is everything in a window of one value; a window whose high end is below
    its low end inverts.

    Args:
        values: any shape, any type of real numbers.
        window: the values that become 0 and 255.

    Returns:
        uint8 of the same shape; `values` itself where nothing had to change.

    Example:
        >>> as_pixels(np.array([-1.0, 0.0, 1.0, np.nan, np.inf]), (-1, 1)).tolist()
        [0, 128, 255, 0, 255]
    """
    if values.dtype == np.uint8 and window == BYTES:
        return values
    low, high = (end / 2 for end in window)  # by halves: the full range of float64 overflows
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        scaled = (np.asarray(values, np.float64) / 2 - low) / ((high - low) or 1.0) * 255
    whole: Array = np.rint(np.nan_to_num(scaled).clip(0, 255)).astype(np.uint8)
    return whole


def enlarged(pixels: Array, scale: int) -> Array:
    """A picture `(rows, columns)` or `(rows, columns, 3)`, each pixel a square of `scale`."""
    if scale == 1:
        return pixels
    return pixels.repeat(scale, axis=0).repeat(scale, axis=1)


def area_mean(
    values: Array, rows: int, columns: int, seen: Callable[[Array], Array] = np.asarray
) -> Array:
    """A picture in a smaller size: each new pixel is the mean of the area that it covers.

    Args:
        values: `(old rows, old columns)`, or `(old rows, old columns, 3)`.
        rows: the new number of rows, 0 to the old one.
        columns: the new number of columns, 0 to the old one.
        seen: makes uint8 of values; called with parts, so that a huge picture stays as it lies.

    Example:
        >>> area_mean(np.array([[0, 10, 90], [20, 30, 90]], np.uint8), 1, 2).tolist()
        [[13, 67]]
    """
    if values.shape[:2] == (rows, columns):
        return seen(values)
    if values.shape[0] >= values.shape[1]:  # the longer side first: what is between is small
        narrow = _mean_rows(_mean_rows(values, rows, seen).swapaxes(0, 1), columns).swapaxes(0, 1)
    else:
        narrow = _mean_rows(_mean_rows(values.swapaxes(0, 1), columns, seen).swapaxes(0, 1), rows)
    return np.rint(narrow).astype(np.uint8)


def _mean_rows(values: Array, count: int, seen: Callable[[Array], Array] = np.asarray) -> Array:
    """`count` rows, each the mean of as many old ones as it covers, parts of rows in part."""
    old, width = len(values), math.prod(values.shape[1:])
    result = np.zeros((count, width))
    step = max(1, _AT_ONCE // max(1, width))
    for row in range(count):
        start, stop = row * old / count, (row + 1) * old / count
        first, last = int(start), math.ceil(stop)
        weights = np.ones(last - first)
        weights[0] -= start - first
        weights[-1] -= last - stop
        for low in range(first, last, step):
            part = seen(values[low : min(low + step, last)])
            result[row] += weights[low - first :][: len(part)] @ part.reshape(len(part), width)
        result[row] /= stop - start
    return result.reshape(count, *values.shape[1:])
