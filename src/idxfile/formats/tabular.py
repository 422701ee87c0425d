"""Tables with a column for every pixel: which columns are what, and what values they hold.

Names decide, and nothing is guessed: names like `pixel_3_7`, `pixel3x7` or `3x7` that count through
all rows and columns in order tell the shape of an item; every other row of numbers stays a vector
unless a shape is given.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..elements import Array, first_lossy
from ..errors import FormatError, UnsupportedError
from .roles import LABEL_NAMES, is_label, roles

__all__: list[str] = []

PIXEL = re.compile(r"(?:[a-z]+[_-]?)?(\d+(?:[_x.,-]\d+)*)", re.IGNORECASE)
_MORE_LABELS = re.compile(rf"(?:{'|'.join(sorted(LABEL_NAMES))})[_ ]?\d+", re.IGNORECASE)
EXACT = 1 << 53
"""Up to here a float64 is every whole number."""


_NUMBER = re.compile(
    r"\s*[+-]?(\d+\.?\d*([e][+-]?\d+)?|\.\d+([e][+-]?\d+)?|nan|inf|infinity)\s*", re.IGNORECASE
)


@dataclass(frozen=True)
class Layout:
    """Which columns of a table are what."""

    pixels: list[int]
    """Numbers of the columns that make an item, in order."""
    labels: list[int]
    """Numbers of the columns of labels: none, one, or more."""
    item_shape: tuple[int, ...]
    notes: list[str] = field(default_factory=list)


def is_header(first: Sequence[str], second: Sequence[str]) -> bool:
    """Whether the first row is no row of values: texts over numbers, or texts alone."""
    texts = [not _NUMBER.fullmatch(field) for field in first]
    if not second:
        return all(texts) and any(roles([name]) or PIXEL.fullmatch(name) for name in first)
    numbers = [bool(_NUMBER.fullmatch(field)) for field in second]
    return all(texts) or any(a and b for a, b in zip(texts, numbers, strict=False))


def lay_out(
    names: Sequence[str] | None, width: int, label: str, shape: tuple[int, ...] | None, file: str
) -> Layout:
    """Sort the columns of a table.

    Args:
        names: their names, where the table has any.
        width: how many there are.
        label: auto (by name), first, last, none, or the name of one.
        shape: of an item; None goes by the names.
        file: the name that errors begin with.

    Raises:
        UnsupportedError: when there is no such column, or the shape is not that of an item.
    """
    notes: list[str] = []
    labels = _labels(names, width, label, file)
    rest = [column for column in range(width) if column not in labels]
    if names is not None:
        pixels = [column for column in rest if PIXEL.fullmatch(names[column].strip())] or rest
        if pixels[:1] == [0] and len(pixels) > 1 and not names[0].strip():
            pixels = pixels[1:]  # the index that pandas writes has no name
        left = [names[column].strip() or "the index" for column in rest if column not in pixels]
        if left:
            notes.append(f"left out {', '.join(left[:10])}{', …' if len(left) > 10 else ''}")
        rest = pixels
    elif label == "auto" and width > 1:
        notes.append(f"no header: all {width} columns are the item (label=first takes one out)")
    given = _shape_of_names([names[column] for column in rest]) if names is not None else None
    if shape is not None and math.prod(shape) != len(rest):
        raise UnsupportedError(
            f"items of {len(rest):,} values do not have the shape {'x'.join(map(str, shape))}",
            file=file,
            found=len(rest),
            expected=math.prod(shape),
        )
    one = names is not None and len(rest) == 1 and not PIXEL.fullmatch(names[rest[0]].strip())
    item_shape = shape or given or (() if one or len(rest) == 1 else (len(rest),))
    return Layout(rest, labels, item_shape, notes)


def _labels(names: Sequence[str] | None, width: int, label: str, file: str) -> list[int]:
    if label in ("none", "first", "last"):
        return {"none": [], "first": [0], "last": [width - 1]}[label]
    known = [name.strip() for name in names or ()]
    if label == "auto":
        found = [column for column, name in enumerate(known) if is_label(name)]
        more = [column for column, name in enumerate(known) if _MORE_LABELS.fullmatch(name)]
        return found + more if len(found) == 1 else []
    if label not in known:
        raise UnsupportedError(
            f"there is no column {label!r}",
            file=file,
            hint=f"there are {', '.join(known[:10])}" if known else "the table has no header",
        )
    return [known.index(label)]


def _shape_of_names(names: Sequence[str]) -> tuple[int, ...] | None:
    """The shape of an item, if the names of its columns count through it in order."""
    matches = [PIXEL.fullmatch(name.strip()) for name in names]
    if not names or not all(matches):
        return None
    places = [tuple(map(int, re.findall(r"\d+", m[1]))) for m in matches if m is not None]
    first, last = places[0], places[-1]
    if len(set(map(len, places))) > 1 or set(first) not in ({0}, {1}):
        return None
    shape = tuple(high - low + 1 for low, high in zip(first, last, strict=True))
    if math.prod(shape) != len(places):
        return None
    counted = (tuple(n + first[0] for n in place) for place in np.ndindex(shape))
    return shape if all(a == b for a, b in zip(places, counted, strict=True)) else None


def names_of(name: str, item_shape: tuple[int, ...], *, grid: bool) -> list[str]:
    """What the columns of a table are called that hold the items of one column of ours.

    Args:
        name: what all names begin with; alone it is the name of a column of single values.
        item_shape: the shape of an item.
        grid: whether the names say rows and columns, from 0 on; or else count through the item.
    """
    if not item_shape:
        return [name]
    if len(item_shape) == 1 or not grid:
        return [f"{name}{number}" for number in range(math.prod(item_shape))]
    return [f"{name}_{'_'.join(map(str, place))}" for place in np.ndindex(item_shape)]


KEPT_NBYTES = 1 << 26
"""Up to here values are kept when they are looked at, and not parsed twice."""


class Findings:
    """What element type the values of a text need, as far as they were seen.

    Args:
        keep_nbytes: up to here the values are kept, whole numbers in the smallest type.
    """

    def __init__(self, keep_nbytes: float = KEPT_NBYTES) -> None:
        self.count = 0
        self.kept: list[Array] | None = []
        """The values, as long as they are few; else None."""
        self._left = keep_nbytes
        self._whole = True
        self._low: int | None = None
        self._high: int | None = None
        self._rounded: Any = None
        """A value that float32 would round."""

    def add(self, block: Array) -> None:
        """Look at some more items: bool, int64 or float64; or at texts, which are not kept."""
        self.count += len(block)
        if block.dtype.kind == "U":
            self.kept = None
        elif block.dtype.kind == "f":
            self._whole = False
            if self._rounded is None and (lossy := first_lossy(block, np.dtype("float32"))):
                self._rounded = block[lossy].item()
            self._keep(block)
        elif block.size:
            low, high = int(block.min()), int(block.max())
            self._low = low if self._low is None else min(self._low, low)
            self._high = high if self._high is None else max(self._high, high)
            self._keep(block.astype(_integer(low, high)))

    def _keep(self, block: Array) -> None:
        self._left -= block.nbytes
        if self.kept is not None and self._left >= 0:
            self.kept.append(block)
        else:
            self.kept = None

    def dtype(self, file: str, meant: str | None = None) -> np.dtype[Any]:
        """The smallest type that holds all values: integers stay integers, floats stay floats.

        Args:
            file: the name that errors begin with.
            meant: the type of floats that decimals stand for.

        Raises:
            UnsupportedError: when whole numbers stand among fractions that no float holds.
        """
        low, high = self._low or 0, self._high or 0
        if self._whole:
            return _integer(low, high)
        if max(-low, high) > EXACT:
            raise UnsupportedError(
                f"{max(-low, high)} stands among fractions: no float holds it exactly", file=file
            )
        if self._rounded is None and max(-low, high) > 1 << 24:
            self._rounded = high if high > -low else low
        return np.dtype(meant or ("float32" if self._rounded is None else "float64"))

    def told(self, name: str, dtype: np.dtype[Any], meant: str | None = None) -> str:
        """Which type a column has, and why, for people."""
        if self._whole:
            why = f"the smallest for whole numbers from {self._low or 0:,} to {self._high or 0:,}"
        elif meant is not None:
            why = "as it was asked for"
        elif self._rounded is None:
            why = "which keeps every value"
        else:
            why = f"as float32 would round {self._rounded}"
        return f"{name} are read as {dtype}, {why}"


def _integer(low: int, high: int) -> np.dtype[Any]:
    """The smallest integer type for a range: one of IDX if there is one."""
    names = ("uint8", "int8", "int16", "int32", "int64", "uint64")
    ranges = {name: np.iinfo(name) for name in names}
    return np.dtype(next(n for n, r in ranges.items() if r.min <= low and high <= r.max))


def refuse_rounded(texts: Sequence[str], values: Array, file: str) -> None:
    """Refuse whole numbers that a float64 has rounded.

    Raises:
        UnsupportedError: for the first.
    """
    for text, value in zip(texts, values.tolist(), strict=True):
        if re.fullmatch(r"\s*[+-]?\d+\s*", text) and int(text) != value:
            raise UnsupportedError(f"{text.strip()} is a number that no type holds", file=file)


def damaged(error: Exception, start: int, file: str) -> FormatError:
    """The error for a table that NumPy could not read; its rows count from the block's first."""
    text = re.sub(r";.*|\.$", "", str(error))
    text = re.sub(r"at row (\d+)", lambda m: f"in row {int(m[1]) + start + 1:,}", text)
    return FormatError(text, file=file, hint="rows are counted without the header, from 1 on")
