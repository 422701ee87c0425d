"""Items in a terminal: as text, in colour where there is colour, as pixels where it shows them.

Pictures stand side by side, as many as fit the width, each under its number and label; vectors
have a line each; numbers stand in rows. No line is wider than asked. What is drawn comes in strips
(a row of pictures, a vector), so that a hundred thousand items need no more memory than a screen.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import chain, islice
from typing import Any

import numpy as np

from ..sheets.palettes import GREY
from ..sheets.pixels import Window, spread
from ..sheets.tiles import CAPTION, Classes, Shelf, Tile, text
from . import charts
from .cells import cells
from .mosaic import mosaic
from .screen import CELL, GAP, Screen, Strip, View, ahead, in_rows, side_by_side, widest
from .words import STYLES

__all__ = ["show"]

_FEW = 16
"""Vectors of up to so many elements are written as numbers, where the width allows."""
_STACKED = 64
"""So many vectors are the rows of one heat map."""
_AT_ONCE = 1 << 20
"""Numbers that are counted at once."""


def show(
    images: Any,
    labels: Any = None,
    items: Any = None,
    *,
    width: int = 80,
    height: int = 50,
    columns: int | None = None,
    scale: int | None = None,
    graphics: str = "auto",
    style: str = "auto",
    window: Window | None = None,
    colours: str | None = None,
    invert: bool = False,
    classes: Classes | None = None,
    against: Any = None,
    mean: bool = False,
    cell: tuple[int, int] = CELL,
) -> str:
    """Items as text for a terminal: pictures, vectors or numbers, each with its caption.

    Pictures stand side by side, with number and label above; those that are wider than the width
    are made smaller by the mean of areas. Vectors are written as numbers if they are short and
    drawn as a sparkline if they are long, a line each.

    Args:
        images: an array-like: `(items,)` numbers, `(items, columns)` vectors, `(items, rows,
            columns)` pictures, `(items, rows, columns, 3)` in colour; other items of more
            dimensions are drawn as their slices. Any of the element types. Of an `IdxArray` only
            the items drawn are read.
        labels: an array-like with one label for each item, or None.
        items: what to draw along dimension 0: an int, a slice, integers, or a mask; None draws
            the first ones, as far as the height allows, and says how many there are more.
        width: the cells of a line.
        height: the lines for `items=None`; one row of items is drawn in any case.
        columns: how many pictures stand side by side, smaller if need be; None takes as many as
            have room in their own size.
        scale: the side of the square that a pixel becomes; None is 1, and where there are pixels
            as many as make a small picture about 8 cells wide.
        graphics: "kitty", "sixel" (both: pixels), "truecolour", "256" (half blocks), "unicode"
            (block characters without colour), "ascii", or "auto": what the environment says of
            this process's standard output.
        style: "auto"; "histogram" draws how often the values of an item occur (of numbers: of all
            items); "heatmap" draws items in colours with a scale, and vectors as the rows of one.
        window: the values at the ends of the colour map; None keeps uint8 as it is and stretches
            other types from their least to their greatest value in what is drawn (of very many
            items: in the first thousand).
        colours: the colour map, a name of COLOUR_MAPS; None is grey for uint8 and viridis, with a
            scale, for all other types.
        invert: exchange the ends of the colour map.
        classes: the names that stand for the labels.
        against: other labels to compare with, as many; captions tell both where they differ.
        mean: draw the mean item of each class instead of the items.
        cell: the pixels of a cell, width and height, for kitty and sixel.

    Returns:
        Lines joined by line feeds, none behind the last; none is wider than `width`, and each
        ends without colour.

    Raises:
        PairError: when there are not as many labels as items.
        IndexError: for an item that is not there.

    Example:
        >>> print(show([[[0, 9], [9, 0]], [[9, 9], [0, 0]]], labels=[3, 7], graphics="unicode"))
        0: 3  1: 7
        ▄▀    ▀▀
    """
    screen = Screen.of(width, height, graphics, items is None and not mean, cell)
    shelf = Shelf(images, labels, items, classes, against)
    view = View(columns, scale, style, window, colours, invert, mean)
    return "\n".join(strip.text for strip in strips(shelf, screen, view))


def strips(shelf: Shelf, screen: Screen, view: View) -> Iterator[Strip]:
    """What `show` draws, strip by strip.

    Raises:
        ValueError: for a view that cannot be.
    """
    if any(number is not None and number < 1 for number in (view.scale, view.columns)):
        raise ValueError("scale and columns are at least 1")
    if view.style not in STYLES:
        raise ValueError(f"style must be {', '.join(STYLES)}, not {view.style!r}")
    return _strips(shelf, screen, view)


def _strips(shelf: Shelf, screen: Screen, view: View) -> Iterator[Strip]:
    if shelf.scalar is not None:
        yield Strip(screen.mode.cut(text(shelf.scalar), screen.width), 1)
        return
    count = 0
    for n, strip in enumerate(_drawn(shelf, screen, view)):
        count += strip.items
        yield (
            strip._replace(text=f"\n{strip.text}", height=strip.height + 1)
            if n and strip.apart
            else strip
        )
    rest = len(shelf.items) - count // max(1, shelf.slices)
    if not count:
        yield Strip(screen.mode.cut("nothing to show", screen.width), 1)
    elif screen.limited and rest > 0:
        word = screen.mode.cut(f"{rest:,} more", screen.width)
        yield Strip(f"\n{screen.mode.faint(word)}", 2)


def _drawn(shelf: Shelf, screen: Screen, view: View) -> Iterator[Strip]:
    tiles = shelf.mean() if view.mean else iter(shelf)
    ndim = len(shelf.tile_shape)
    if not ndim and view.style == "histogram":
        return _bars(shelf, screen, view)
    if not ndim:
        return _numbers(tiles, screen)
    if view.style == "histogram" or (ndim == 1 and view.style != "heatmap"):
        return _lines(tiles, shelf.tile_shape, screen, view)
    view = view._replace(window=view.window or shelf.window)
    if not screen.mode.coloured:
        view = view._replace(colours=GREY)
    elif view.colours is None:
        grey = shelf.dtype == np.uint8 and view.style != "heatmap"
        view = view._replace(colours=GREY if grey else "viridis")
    if ndim == 2 or ndim == 3:
        return mosaic(tiles, shelf.tile_shape, shelf.slices, screen, view)
    count = max(2, 2 * (screen.height - 6)) if screen.limited else _STACKED
    view = view._replace(columns=1)
    return mosaic(shelf.stacks(count), (count, *shelf.tile_shape), 1, screen, view)


def _bars(shelf: Shelf, screen: Screen, view: View) -> Iterator[Strip]:
    """The histogram of all numbers, a line for each value or range of values."""
    table = charts.counted(lambda: shelf.blocks(_AT_ONCE), view.window, shelf.class_name)
    for n, line in enumerate(charts.bars(table, screen.mode, screen.width)):
        yield Strip(line, 1, 0 if n else len(shelf.items))


def _numbers(tiles: Iterator[Tile], screen: Screen) -> Iterator[Strip]:
    """Numbers side by side under their captions."""
    rows = screen.rows(3)
    first = ahead(tiles, rows * screen.per_row(1))
    values = [cells(screen.mode.cut(text(tile.values), screen.width)) for tile in first]
    wide = min(max([widest(first, screen), *values]), screen.width)
    per_row = screen.per_row(wide)
    for row in in_rows(chain(first, tiles), per_row, rows):
        written = [screen.mode.cut(text(tile.values), wide) for tile in row]
        captions = [screen.caption(tile, wide, right=True) for tile in row]
        below = [" " * (wide - cells(value)) + screen.mode.bold(value) for value in written]
        yield side_by_side([captions, below], len(row))


def _lines(
    tiles: Iterator[Tile], shape: tuple[int, ...], screen: Screen, view: View
) -> Iterator[Strip]:
    """Vectors, or the histograms of items, a line each."""
    most = max(1, screen.rows(1) - 1)
    first = ahead(tiles, most)
    digits = max((len(tile.number) for tile in first), default=0)

    def aligned(tile: Tile) -> Tile:
        return replace(tile, number=tile.number.rjust(digits))

    head = min(widest(map(aligned, first), screen), CAPTION, max(0, screen.width - GAP) // 2)
    gap = " " * GAP * bool(head)
    room = screen.width - head - len(gap)
    few = len(shape) == 1 and shape[0] <= _FEW and view.style == "auto"
    widths = _columns_of_numbers(first, room) if few else None
    reach = view.window or spread(tile.values for tile in first)
    for tile in islice(chain(first, tiles), most):
        if widths is not None:
            numbers = map(str.rjust, map(text, tile.values), widths)
            body = screen.mode.cut((" " * GAP).join(numbers), room)
        elif view.style == "histogram":
            body = charts.histogram(tile.values, reach, screen.mode, room)
        else:
            body = screen.mode.sparkline(tile.values, reach, room)
        line = screen.caption(aligned(tile), head) + gap + body
        yield Strip(line.rstrip(" "), 1, 1)


def _columns_of_numbers(tiles: list[Tile], room: int) -> list[int] | None:
    """The widths of the columns of vectors written as numbers; None where they have no room."""
    table = [[text(value) for value in tile.values] for tile in tiles]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    return widths if sum(widths) + GAP * (len(widths) - 1) <= room else None
