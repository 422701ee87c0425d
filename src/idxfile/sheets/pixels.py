"""Pixels: any values of the element types as 8-bit grey or colour, and pictures in other sizes."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np

from ..elements import Array

__all__ = ["Window", "area_mean", "as_pixels", "enlarged", "spread", "window_of"]

Window = tuple[float, float]
"""The values that become 0 and 255."""

BYTES: Window = (0.0, 255.0)


def window_of(arrays: Sequence[Array]) -> Window:
    """The window in which arrays are seen whole: 0 to 255 for uint8, else their spread."""
    return BYTES if all(array.dtype == np.uint8 for array in arrays) else spread(arrays)


def spread(arrays: Iterable[Array]) -> Window:
    """The least and the greatest value of arrays, NaN and the infinities not counted.

    Without any finite value it is (0, 0).
    """
    low, high = np.inf, -np.inf
    for array in arrays:
        finite = array[np.isfinite(array)] if array.dtype.kind == "f" else array
        if finite.size:
            low, high = min(low, float(finite.min())), max(high, float(finite.max()))
    return (low, high) if low <= high else (0.0, 0.0)


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


def area_mean(pixels: Array, rows: int, columns: int) -> Array:
    """A picture in a smaller size: each new pixel is the mean of the area that it covers.

    Args:
        pixels: uint8 `(old rows, old columns)`, or `(old rows, old columns, 3)`.
        rows: the new number of rows, 0 to the old one.
        columns: the new number of columns, 0 to the old one.

    Example:
        >>> area_mean(np.array([[0, 10, 90], [20, 30, 90]], np.uint8), 1, 2).tolist()
        [[13, 67]]
    """
    if pixels.shape[:2] == (rows, columns):
        return pixels
    narrow = _mean_rows(_mean_rows(pixels, rows).swapaxes(0, 1), columns).swapaxes(0, 1)
    return np.rint(narrow).astype(np.uint8)


def _mean_rows(values: Array, count: int) -> Array:
    """`count` rows, each the mean of as many old ones as it covers, parts of rows in part."""
    old = len(values)
    flat = values.reshape(old, math.prod(values.shape[1:]))
    result = np.empty((count, flat.shape[1]))
    for row in range(count):
        start, stop = row * old / count, (row + 1) * old / count
        first, last = int(start), math.ceil(stop)
        weights = np.ones(last - first)
        weights[0] -= start - first
        weights[-1] -= last - stop
        result[row] = weights @ flat[first:last] / (stop - start)
    return result.reshape(count, *values.shape[1:])
