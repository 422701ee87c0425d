"""How often values occur: bars for all numbers of a file, a line of bars for one item."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import pairwise
from typing import Any

import numpy as np

from ..elements import Array
from ..sheets.pixels import Window, spread
from ..sheets.tiles import text
from .cells import Mode, cells

__all__ = ["bars", "counted", "histogram"]

_VALUES = 40
"""Up to so many different integers have a bar each; more are put into ranges."""
_RANGES = 20
_MOST_COLUMNS = 64

Counts = list[tuple[str, int]]
"""What a bar stands for, and how many values it counts."""


def histogram(values: Array, window: Window, mode: Mode, columns: int) -> str:
    """How often the values of an item occur, from the low to the high end of a window.

    Values beyond the window are counted at its ends, NaN and the infinities not at all.
    """
    low, high = (text(np.float64(end)) for end in window)
    size = min(columns - len(low) - len(high) - 2, _MOST_COLUMNS)
    if size < 1:
        return mode.cut(f"{low} {high}", columns)
    counts = _binned(values, window, size)
    tallest = max(counts.max(), 1)
    steps = -(-counts * len(mode.bars) // tallest)
    line = "".join(mode.bars[step - 1] if step else " " for step in steps.tolist())
    return f"{low} {line} {high}"


def _binned(values: Array, window: Window, size: int) -> Array:
    """The counts of finite values in `size` equal ranges of a window, both ends in it."""
    finite = values[np.isfinite(values)] if values.dtype.kind == "f" else values.reshape(-1)
    low, high = (end / 2 for end in window)  # by halves: the full range of float64 overflows
    with np.errstate(over="ignore"):
        places = (finite / 2 - low) / ((high - low) or 1.0) * size
    return np.bincount(places.clip(0, size - 1).astype(np.intp), minlength=size)


def counted(
    blocks: Callable[[], Iterable[Array]], window: Window | None, name: Callable[[Any], str]
) -> Counts:
    """How often numbers occur: each integer by itself where they are few, else by ranges.

    Args:
        blocks: gives all numbers in order, as often as it is called.
        window: the least and the greatest value to count, or None for all.
        name: the name of a value.
    """
    found: dict[Any, int] = {}
    low, high = np.inf, -np.inf
    for block in blocks():
        if block.size and (block.dtype.kind != "f" or np.isfinite(block).any()):
            least, greatest = spread([block])
            low, high = min(low, least), max(high, greatest)
        if len(found) <= _VALUES and block.dtype.kind in "iu":
            for value, count in _each(block):
                found[value] = found.get(value, 0) + count
    if found and len(found) <= _VALUES and window is None:
        return [(name(value), found[value]) for value in sorted(found)]
    low, high = window or ((low, high) if low <= high else (0.0, 0.0))
    counts = sum(
        (_binned(block, (low, high), _RANGES) for block in blocks()), np.zeros(_RANGES, int)
    )
    if low == high:
        return [(text(np.float64(low)), int(counts.sum()))]
    ends = [text(end * 2) for end in np.linspace(low / 2, high / 2, _RANGES + 1)]
    ranges = (f"{start} to {stop}" for start, stop in pairwise(ends))
    return list(zip(ranges, counts.tolist(), strict=True))


def _each(block: Array) -> Iterable[tuple[int, int]]:
    """How often each integer occurs; where there are few that can, without sorting them."""
    if block.dtype.itemsize > 2 or not block.size:
        values, counts = np.unique(block, return_counts=True)
    else:
        low = int(block.min())
        every = np.bincount(block.astype(np.intp) - low)
        (values,) = every.nonzero()
        values, counts = values + low, every[values]
    return zip(values.tolist(), counts.tolist(), strict=True)


def bars(counts: Counts, mode: Mode, width: int) -> list[str]:
    """A line for each count: what it counts, the count, and a bar as long as its share."""
    most = max((count for _, count in counts), default=0) or 1
    names = [mode.written(name) for name, _ in counts]
    widest = max(map(cells, names), default=0)
    digits = len(f"{most:,}")
    room = max(0, width - widest - digits - 4)
    return [
        mode.cut(
            f"{' ' * (widest - cells(name))}{name}  {count:>{digits},}  "
            f"{mode.bars[-1] * -(-count * room // most)}".rstrip(" "),
            width,
        )
        for name, (_, count) in zip(names, counts, strict=True)
    ]
