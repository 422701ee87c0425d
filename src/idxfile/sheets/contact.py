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
from .colours import Look, look_at
from .palettes import GREY
from .pixels import Window, area_mean, enlarged
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
    against: Any = None,
    colours: str = GREY,
    invert: bool = False,
    longest: int = 1024,
    background: int | None = 255,
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
        against: other labels to compare with, as many; captions tell both where they differ.
        colours: the colour map of grey pictures, a name of COLOUR_MAPS: "grey", "viridis" …
        invert: exchange the ends of the colour map.
        longest: the pixels of the longest side that a picture may have on the sheet; larger ones
            are made smaller by the mean of areas.
        background: the grey of the page, 0 to 255; None is a transparent page.

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
    if min(scale, longest, 1 if columns is None else columns) < 1:
        raise ValueError(
            f"scale, columns and longest are at least 1, not {scale}, {columns} and {longest}"
        )
    shelf = Shelf(images, labels, items, classes, against)
    if len(shelf.tile_shape) < 2:
        raise UnsupportedError(
            f"a sheet shows pictures, and items of shape {shelf.tile_shape} are none",
            found=shelf.tile_shape,
            expected="(items, rows, columns)",
            hint="`idx show` draws numbers and vectors as text",
        )
    tiles = list(shelf.mean() if mean else islice(shelf, FIRST if items is None else None))
    look = look_at([tile.values for tile in tiles], window or shelf.window, colours, invert)
    unit = max(1, scale // 2)
    high, wide = _size(shelf.tile_shape, scale, longest)
    captions = [_caption(tile, unit) for tile in tiles]
    pictures = (_picture(tile, look, high, wide) for tile in tiles)
    columns = min(columns or _about_square(len(tiles), shelf.slices), len(tiles))
    rows = math.ceil(len(tiles) / columns) if tiles else 0
    head = (font.HEIGHT + _LEADING) * unit if any(tile.label for tile in tiles) else 0
    room = max([wide, *(caption.shape[1] for caption in captions)])
    down, across = _places(rows, head + high, unit), _places(columns, room, unit)
    grey = look.table is None and len(shelf.tile_shape) == 2
    page = np.full((down[-1], across[-1], 1 if grey else 3), background or 0, np.uint8)
    opaque = np.zeros((*page.shape[:2], 1), np.uint8)
    ink = 128 if background is None else 64 if background > 127 else 192
    for (top, left), caption, picture in zip(
        product(down[:-1], across[:-1]), captions, pictures, strict=False
    ):
        _region(page, top, left, caption)[caption] = ink
        _region(opaque, top, left, caption)[caption] = 255
        _region(page, top + head, left, picture)[...] = picture
        _region(opaque, top + head, left, picture)[...] = 255
    if background is None:
        page = np.concatenate([page, opaque], axis=-1)
    return png.encode(page)


def _size(shape: tuple[int, ...], scale: int, longest: int) -> tuple[int, int]:
    """Rows and columns of a picture on the sheet."""
    high, wide = (side * scale for side in shape[:2])
    if (most := max(high, wide)) > longest:
        high, wide = (max(min(side, 1), round(side * longest / most)) for side in (high, wide))
    return high, wide


def _picture(tile: Tile, look: Look, high: int, wide: int) -> Array:
    """The pixels of a tile, `(high, wide, 1 or 3)`."""
    rows, columns = tile.values.shape[:2]
    pixels = look.pixels(tile.values, min(rows, high), min(columns, wide))
    sides = zip((high, wide), pixels.shape, strict=False)
    large = enlarged(pixels, max(1, *(math.ceil(side / max(1, old)) for side, old in sides)))
    return area_mean(large, high, wide).reshape(high, wide, *(pixels.shape[2:] or (1,)))


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
