"""The contact sheet: items side by side on one page, as a PNG."""

from __future__ import annotations

import math
from itertools import islice
from typing import Any

import numpy as np

from ..elements import Array
from ..errors import UnsupportedError
from . import font, png
from .pixels import Window, as_pixels, enlarged, window_of
from .tiles import Classes, Shelf, Tile

__all__ = ["sheet"]

FIRST = 100
"""How many tiles are drawn where nothing is said."""

_MARGIN = 12
_GAP = 8
_LEADING = 3
"""Pixels between a caption and its picture."""
_CAPTION = 24
"""Characters after which a caption is cut."""


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
        (208, 166)
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
    pictures = [enlarged(as_pixels(tile.values, window), scale) for tile in tiles]
    captions = [_caption(tile) for tile in tiles]
    if columns is None:
        columns = _columns(len(tiles), shelf.slices)
    return png.encode(_page(pictures, captions, columns, background))


def _caption(tile: Tile) -> Array:
    cut = tile.label if len(tile.label) <= _CAPTION else tile.label[: _CAPTION - 3] + "..."
    return font.drawn(cut)


def _columns(count: int, slices: int) -> int:
    """Side by side so many that the sheet is about square, and its last row about full."""
    if slices > 1:
        return slices * max(1, math.isqrt(count) // slices)
    side = math.isqrt(max(count - 1, 0)) + 1
    return min(range(side, max(side + 1, 2 * side - 1)), key=lambda n: (-count % n, n))


def _page(pictures: list[Array], captions: list[Array], columns: int, background: int) -> Array:
    """The sheet as pixels: a grid of equal cells, a caption above each picture."""
    rows = math.ceil(len(pictures) / columns)
    columns = min(columns, len(pictures))
    height, width = (max((p.shape[axis] for p in pictures), default=0) for axis in (0, 1))
    wide = max((caption.shape[1] for caption in captions), default=0)
    head = font.HEIGHT + _LEADING if wide else 0
    down, across = head + height + _GAP, max(width, wide) + _GAP
    shape = (
        2 * _MARGIN + max(0, rows * down - _GAP),
        2 * _MARGIN + max(0, columns * across - _GAP),
    )
    colour = any(picture.ndim == 3 for picture in pictures)
    page = np.full((*shape, 3) if colour else shape, background, np.uint8)
    ink = 64 if background > 127 else 192
    for number, (picture, caption) in enumerate(zip(pictures, captions, strict=True)):
        row, column = divmod(number, columns)
        top, left = _MARGIN + row * down, _MARGIN + column * across
        page[top : top + caption.shape[0], left : left + caption.shape[1]][caption] = ink
        top += head
        page[top : top + picture.shape[0], left : left + picture.shape[1]] = picture
    return page
