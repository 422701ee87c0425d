"""Tiles: what is drawn of an array, item by item, and the captions.

A tile is what can be drawn as one thing: a number, a vector, a picture in grey `(rows, columns)`
or in colour `(rows, columns, 3)`. An item of more dimensions is several tiles, its slices. Items
are read one by one as they are asked for, so that of a large file only what is drawn is read.
"""

from __future__ import annotations

import contextlib
import math
import operator
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from ..elements import Array
from ..errors import PairError, printable
from ..selection import in_bounds
from .pixels import BYTES, Window

__all__ = ["CAPTION", "Classes", "Shelf", "Tile", "key_of", "text"]

CAPTION = 24
"""A caption makes its tile wider up to so many characters; what is longer may be cut."""

_HUGE_NBYTES = 1 << 26

Classes = Sequence[str] | Mapping[int, str]
"""The names of the classes by their labels."""


@dataclass(frozen=True, slots=True)
class Tile:
    """A number, a vector or a picture, with what is written over it."""

    number: str
    """Which item it is, and of several slices which one: `12`, `12[0]`."""
    label: str
    """What is known of it, or nothing."""
    values: Array
    """Shape `()`, `(columns,)`, `(rows, columns)` or `(rows, columns, 3)`."""
    items: int = 1
    """How many items it shows: of vectors, which may be the rows of one matrix."""


class Shelf:
    """The tiles of an array, and where they stand.

    Args:
        images: an array-like `(items, ...)`; one that has a shape is read item by item.
        labels: an array-like with one label for each item, or None.
        items: an int, a slice, integers, or a mask; None is all of them.
        classes: the names that stand for the labels, or None.
        against: other labels to compare with; where they differ, a caption tells both.

    Raises:
        PairError: when there are not as many labels as items.
        IndexError: for an item that is not there.
    """

    def __init__(
        self,
        images: Any,
        labels: Any,
        items: Any,
        classes: Classes | None,
        against: Any = None,
    ) -> None:
        self._images: Any = images if hasattr(images, "shape") else np.asarray(images)
        self._labels = labels
        self._against = against
        self._classes = classes if isinstance(classes, Mapping) else dict(enumerate(classes or ()))
        shape: tuple[int, ...] = tuple(self._images.shape)
        self.scalar: Array | None = None if shape else np.asarray(self._images)
        """The value of an array without items."""
        self.items = _numbers(items, shape[0]) if shape else range(0)
        """The numbers of the items that are drawn."""
        self.dtype = np.dtype(getattr(self._images, "dtype", np.float64))
        """The type of the items."""
        self._item_nbytes = math.prod(shape[1:]) * self.dtype.itemsize
        self.tile_shape = shape[1:]
        """The shape of every tile."""
        self.slices_shape: tuple[int, ...] = ()
        """The dimensions of an item that are left to count its slices."""
        if len(self.tile_shape) > 2:
            ndim = 3 if self.tile_shape[-1] in (1, 3) else 2
            self.slices_shape, self.tile_shape = self.tile_shape[:-ndim], self.tile_shape[-ndim:]
            if self.tile_shape[-1] == 1:
                self.tile_shape = self.tile_shape[:2]
        for given in (labels, against):
            if shape and given is not None and len(given) != shape[0]:
                raise PairError(
                    f"{shape[0]:,} items and {len(given):,} labels: they do not belong together",
                    found=len(given),
                    expected=shape[0],
                )

    @property
    def window(self) -> Window | None:
        """The window of the items' type: bytes have one, also where their mean is drawn."""
        return BYTES if self.dtype == np.uint8 else None

    @property
    def slices(self) -> int:
        """The number of tiles that one item makes."""
        return math.prod(self.slices_shape)

    def label(self, item: int) -> str:
        """The label of an item as text, or the name of its class."""
        told = [self.class_name(given[item]) for given in self._given()]
        return f"{told[0]}, said {told[1]}" if len(set(told)) > 1 else "".join(told[:1])

    def _given(self) -> list[Any]:
        return [given for given in (self._labels, self._against) if given is not None]

    def class_name(self, label: Any) -> str:
        """The name of a class, or where there is none the label."""
        try:
            return printable(self._classes[operator.index(label)])
        except (KeyError, TypeError):
            return text(label)

    def __iter__(self) -> Iterator[Tile]:
        for item in self.items:
            values = self._values(item)
            label = self.label(item)
            for index in np.ndindex(self.slices_shape):
                part = f"[{','.join(map(str, index))}]" if index else ""
                yield Tile(f"{item}{part}", label, values[index].reshape(self.tile_shape))

    def _values(self, item: int) -> Array:
        """The values of an item; a huge one as it lies in its file, whatever its byte order."""
        if self._item_nbytes > _HUGE_NBYTES:
            with contextlib.suppress(AttributeError, ValueError):  # not every array has it
                stored: Array = self._images.raw[item]
                return stored
        return np.asarray(self._images[item])

    def stacks(self, count: int) -> Iterator[Tile]:
        """Vectors as the rows of matrices, `count` of them in each."""
        for start in range(0, len(self.items), count):
            part = self.items[start : start + count]
            values = np.stack([np.asarray(self._images[item]) for item in part])
            number = f"{part[0]} to {part[-1]}" if len(part) > 1 else f"{part[0]}"
            yield Tile(number, "", values, len(part))

    def blocks(self, count: int) -> Iterator[Array]:
        """The values of the chosen items, `count` items at once."""
        for start in range(0, len(self.items), count):
            yield np.asarray(self._images[key_of(self.items[start : start + count])])

    def mean(self) -> Iterator[Tile]:
        """The mean item of each class, by ascending label, as float64."""
        if self._labels is None:
            raise ValueError("the mean item of each class needs labels")
        sums: dict[Any, Array] = {}
        counts: dict[Any, int] = {}
        for item in self.items:
            label = np.asarray(self._labels[item]).item()
            counts[label] = counts.get(label, 0) + 1
            if label not in sums:
                sums[label] = np.zeros(self._images.shape[1:])
            with np.errstate(over="ignore", invalid="ignore"):
                sums[label] += np.asarray(self._images[item])
        for label in sorted(sums):
            values = sums[label] / counts[label]
            for index in np.ndindex(self.slices_shape):
                part = values[index].reshape(self.tile_shape)
                yield Tile("", self.class_name(label), part)


def key_of(items: Sequence[int]) -> Any:
    """Item numbers as a key of NumPy: a slice where they are a range that goes up."""
    if not isinstance(items, range):
        return np.asarray(items)
    if items.step > 0:
        return slice(items.start, items.stop, items.step)
    return np.arange(items.start, items.stop, items.step)


def text(value: Any) -> str:
    """A value as it stands in a caption: numbers short, nothing that steers a terminal."""
    array = np.asarray(value)
    if array.ndim:
        return " ".join(map(text, array))
    if array.dtype.kind == "f":
        return f"{array:.4g}"
    return printable(str(array.item()))


def _numbers(items: Any, count: int) -> Sequence[int]:
    """The numbers of the chosen items, counted from the front."""
    if items is None:
        return range(count)
    if isinstance(items, slice):
        return range(count)[items]
    if isinstance(items, range):  # as it is: it may be long
        in_bounds(np.array([items[0], items[-1]] if items else [], np.intp), count)
        return items
    picked = np.atleast_1d(np.asarray(items))
    if picked.dtype == bool:
        if picked.shape != (count,):
            raise IndexError(f"a mask of shape {picked.shape} for {count:,} items")
        picked = picked.nonzero()[0]
    return cast(Sequence[int], in_bounds(picked, count).reshape(-1))
