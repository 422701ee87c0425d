"""Tiles: what is drawn of an array, item by item, and the captions.

A tile is what can be drawn as one thing: a number, a vector, a picture in grey `(rows, columns)`
or in colour `(rows, columns, 3)`. An item of more dimensions is several tiles, its slices. Items
are read one by one as they are asked for, so that of a large file only what is drawn is read.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..elements import Array
from ..errors import PairError, printable
from ..selection import in_bounds

__all__ = ["CAPTION", "Classes", "Shelf", "Tile", "text"]

CAPTION = 24
"""A caption makes its tile wider up to so many characters; what is longer may be cut."""

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


class Shelf:
    """The tiles of an array, and where they stand.

    Args:
        images: an array-like `(items, ...)`; one that has a shape is read item by item.
        labels: an array-like with one label for each item, or None.
        items: an int, a slice, integers, or a mask; None is all of them.
        classes: the names that stand for the labels, or None.

    Raises:
        PairError: when there are not as many labels as items.
        IndexError: for an item that is not there.
    """

    def __init__(self, images: Any, labels: Any, items: Any, classes: Classes | None) -> None:
        self._images = images if hasattr(images, "shape") else np.asarray(images)
        self._labels = labels
        self._classes = classes if isinstance(classes, Mapping) else dict(enumerate(classes or ()))
        shape: tuple[int, ...] = tuple(self._images.shape)
        self.items = _numbers(items, shape[0]) if shape else range(0)
        """The numbers of the items that are drawn."""
        self.tile_shape = shape[1:]
        """The shape of every tile."""
        self.slices_shape: tuple[int, ...] = ()
        """The dimensions of an item that are left to count its slices."""
        if len(self.tile_shape) > 2:
            ndim = 3 if self.tile_shape[-1] in (1, 3) else 2
            self.slices_shape, self.tile_shape = self.tile_shape[:-ndim], self.tile_shape[-ndim:]
            if self.tile_shape[-1] == 1:
                self.tile_shape = self.tile_shape[:2]
        if shape and labels is not None and len(labels) != shape[0]:
            raise PairError(
                f"{shape[0]:,} items and {len(labels):,} labels: they do not belong together",
                found=len(labels),
                expected=shape[0],
            )

    @property
    def slices(self) -> int:
        """The number of tiles that one item makes."""
        return math.prod(self.slices_shape)

    def label(self, item: int) -> str:
        """The label of an item as text, or the name of its class."""
        return "" if self._labels is None else self.class_name(self._labels[item])

    def class_name(self, label: Any) -> str:
        """The name of a class, or where there is none the label."""
        try:
            return printable(self._classes[operator.index(label)])
        except (KeyError, TypeError):
            return text(label)

    def __iter__(self) -> Iterator[Tile]:
        for item in self.items:
            values = np.asarray(self._images[item])
            label = self.label(item)
            for index in np.ndindex(self.slices_shape):
                part = f"[{','.join(map(str, index))}]" if index else ""
                yield Tile(f"{item}{part}", label, values[index].reshape(self.tile_shape))

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
    picked = np.atleast_1d(np.asarray(items))
    if picked.dtype == bool:
        if picked.shape != (count,):
            raise IndexError(f"a mask of shape {picked.shape} for {count:,} items")
        picked = picked.nonzero()[0]
    numbers: list[int] = in_bounds(picked, count).reshape(-1).tolist()
    return numbers
