"""The contact sheet: items side by side on one page, as a PNG."""

from __future__ import annotations

import math
from itertools import islice, product
from typing import Any

import numpy as np

from .. import png
from ..elements import Array
from ..errors import UnsupportedError
from . import font
from .pixels import Window, as_pixels, enlarged, window_of
from .tiles import CAPTION, Classes, Shelf, Tile

__all__ = ["sheet"]

FIRST = 100
"""How many tiles are drawn where nothing is said."""

_MARGIN, _GAP, _LEADING = 12, 10, 3
"""Pixels around the page, between neighbours, and between a caption and its picture."""


def sheet(
    images: Any,
    labels: Any = None,
    items: Any = None,
    *,
    columns: int | None = None,
    scale: int = 2,
    window: Window | None = None,
    classes: Classes | None = None,
    mean: bool = False,
    background: int = 255,
) -> bytes:
    """A contact sheet of items, with their labels above them, as the bytes of a PNG file.

    Equal arguments give equal bytes (for one version of zlib).

    Args:
        images: an array-like of pictures: `(items, rows, columns)` in grey, `(items, rows,
            columns, 3)` in colour; other items of more dimensions are drawn as their slices.
            Any of the element types. Of an `IdxArray` only the items drawn are read.
        labels: an array-like with one label for each item, or None for no captions.
        items: what to draw along dimension 0: an int, a slice, integers, or a mask; None draws
            the first 100 pictures (with `mean`: takes all items).
        columns: how many pictures stand side by side; None makes the sheet about square.
        scale: the side of the square that a pixel becomes.
        window: the values that become black and white; None keeps uint8 as it is and stretches
            other types from their least to their greatest value on the sheet.
        classes: the names that stand for the labels.
        mean: draw the mean item of each class instead of the items.
        background: the grey of the page, 0 to 255.

    Raises:
        UnsupportedError: for numbers or vectors, which are no pictures.
        PairError: when there are not as many labels as items.
        IndexError: for an item that is not there.

    Example:
        >>> import struct, numpy
        >>> page = sheet(numpy.zeros((6, 28, 28), "uint8"), labels=[5, 0, 4, 1, 9, 2])
        >>> struct.unpack(">II", page[16:24])  # width and height
        (212, 168)
    """
    if scale < 1 or (columns is not None and columns < 1):
        raise ValueError(f"scale and columns are at least 1, not {scale} and {columns}")
    shelf = Shelf(images, labels, items, classes)
    if len(shelf.tile_shape) < 2:
        raise UnsupportedError(
            f"a sheet shows pictures, and items of shape {shelf.tile_shape} are none",
            found=shelf.tile_shape,
            expected="(items, rows, columns)",
            hint="`idx show` draws numbers and vectors as text",
        )
    tiles = list(shelf.mean() if mean else islice(shelf, FIRST if items is None else None))
    if window is None:
        window = window_of([tile.values for tile in tiles])
    unit = max(1, scale // 2)
    high, wide, *colour = shelf.tile_shape
    captions = [_caption(tile, unit) for tile in tiles]
    pictures = (enlarged(as_pixels(tile.values, window), scale) for tile in tiles)
    columns = min(columns or _about_square(len(tiles), shelf.slices), len(tiles))
    rows = math.ceil(len(tiles) / columns) if tiles else 0
    head = (font.HEIGHT + _LEADING) * unit if any(tile.label for tile in tiles) else 0
    wide = max([wide * scale, *(caption.shape[1] for caption in captions)])
    down, across = _places(rows, head + high * scale, unit), _places(columns, wide, unit)
    page = np.full((down[-1], across[-1], *colour), background, np.uint8)
    ink = 64 if background > 127 else 192
    for (top, left), caption, picture in zip(
        product(down[:-1], across[:-1]), captions, pictures, strict=False
    ):
        _region(page, top, left, caption)[caption] = ink
        _region(page, top + head, left, picture)[...] = picture
    return png.encode(page)


def _caption(tile: Tile, unit: int) -> Array:
    cut = tile.label if len(tile.label) <= CAPTION else tile.label[: CAPTION - 3] + "..."
    return enlarged(font.drawn(cut), unit)


def _about_square(count: int, slices: int) -> int:
    """Side by side so many that the sheet is about square, and its last row about full."""
    if slices > 1:
        return slices * max(1, math.isqrt(count) // slices)
    side = math.isqrt(max(count - 1, 0)) + 1
    return min(range(side, max(side + 1, 2 * side - 1)), key=lambda n: (-count % n, n))


def _places(count: int, size: int, unit: int) -> list[int]:
    """Where `count` neighbours of this size begin between two margins; last, where all ends."""
    margin, step = _MARGIN * unit, size + _GAP * unit
    end = 2 * margin + (count * step - _GAP * unit if count else 0)
    return [*(margin + n * step for n in range(count)), end]


def _region(page: Array, top: int, left: int, part: Array) -> Array:
    """Where on the page a part lies, as a view."""
    return page[top : top + part.shape[0], left : left + part.shape[1]]
