"""The terminal: items as text, in colour where there is colour.

Pictures stand side by side, as many as fit the width, each under its number and label; vectors
have a line each; numbers stand in rows. No line is wider than asked.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import numpy as np

from .cells import MODES, Mode, cells
from .pixels import Window, area_mean, as_pixels, enlarged, spread, window_of
from .tiles import CAPTION, Classes, Shelf, Tile, text

__all__ = ["colour_mode", "show"]

_GAP = 2
"""Cells between neighbours."""
_FEW = 16
"""Vectors of up to so many elements are written as numbers, where the width allows."""


def colour_mode(environ: Mapping[str, str], isatty: bool) -> str:
    """How to draw, by what the environment says of the terminal.

    True colour where COLORTERM says so, else 256 colours; no colour where the output is no
    terminal, NO_COLOR is set, or the terminal is dumb: block characters, or only ASCII where the
    locale knows no others.

    Args:
        environ: the environment variables.
        isatty: whether the output is a terminal.

    Returns:
        A key of MODES.

    Example:
        >>> colour_mode({"TERM": "xterm-256color", "COLORTERM": "truecolor"}, isatty=True)
        'truecolour'
    """
    if isatty and not environ.get("NO_COLOR") and environ.get("TERM", "dumb") != "dumb":
        return "truecolour" if environ.get("COLORTERM") in ("truecolor", "24bit") else "256"
    locale = next(filter(None, map(environ.get, ("LC_ALL", "LC_CTYPE", "LANG"))), "")
    return "unicode" if "utf" in locale.lower() else "ascii"


def show(
    images: Any,
    labels: Any = None,
    items: Any = None,
    *,
    width: int = 80,
    height: int = 50,
    columns: int | None = None,
    scale: int = 1,
    colour: str = "auto",
    window: Window | None = None,
    classes: Classes | None = None,
) -> str:
    """Items as text for a terminal: pictures, vectors or numbers, each with its caption.

    Pictures are drawn in half blocks, side by side, with number and label above; those that are
    wider than the width are made smaller by the mean of areas. Vectors are written as numbers if
    they are short and drawn as a sparkline if they are long, a line each.

    Args:
        images: an array-like: `(items,)` numbers, `(items, columns)` vectors, `(items, rows,
            columns)` pictures in grey, `(items, rows, columns, 3)` in colour; other items of more
            dimensions are drawn as their slices. Any of the element types. Of an `IdxArray` only
            the items drawn are read.
        labels: an array-like with one label for each item, or None.
        items: what to draw along dimension 0: an int, a slice, integers, or a mask; None draws
            the first ones, as far as the height allows, and says how many there are more.
        width: the cells of a line.
        height: the lines for `items=None`; one row of items is drawn in any case.
        columns: how many pictures stand side by side, smaller if need be; None takes as many as
            have room in their own size.
        scale: the side of the square that a pixel becomes.
        colour: "truecolour", "256", "unicode" (block characters without colour), "ascii", or
            "auto": what `colour_mode` says of this process and its standard output.
        window: the values that become black and white; None keeps uint8 as it is and stretches
            other types from their least to their greatest value in what is drawn.
        classes: the names that stand for the labels.

    Returns:
        Lines joined by line feeds, none behind the last; none is wider than `width`, and each
        ends without colour.

    Raises:
        PairError: when there are not as many labels as items.
        IndexError: for an item that is not there.

    Example:
        >>> print(show([[[0, 9], [9, 0]], [[9, 9], [0, 0]]], labels=[3, 7], colour="unicode"))
        0: 3  1: 7
        ▄▀    ▀▀
    """
    if width < 1 or scale < 1 or (columns is not None and columns < 1):
        raise ValueError("width, scale and columns are at least 1")
    if colour == "auto":
        colour = colour_mode(os.environ, sys.stdout.isatty())
    if colour not in MODES:
        raise ValueError(f"colour must be auto, {', '.join(MODES)}, not {colour!r}")
    screen = _Screen(width, height if items is None else None, MODES[colour])
    if np.shape(images) == ():
        return screen.mode.cut(text(np.asarray(images)), width)
    shelf = Shelf(images, labels, items, classes)
    if len(shelf.tile_shape) == 0:
        lines, count = _numbers(shelf, screen)
    elif len(shelf.tile_shape) == 1:
        lines, count = _vectors(shelf, screen, window)
    else:
        lines, count = _pictures(shelf, screen, columns, scale, window)
    if not count:
        return screen.mode.cut("nothing to show", width)
    rest = len(shelf.items) - count // shelf.slices if items is None else 0
    if rest:
        lines += ["", screen.mode.faint(screen.mode.cut(f"{rest:,} more", width))]
    return "\n".join(line.rstrip(" ") for line in lines)


@dataclass(frozen=True, slots=True)
class _Screen:
    """What is drawn on."""

    width: int
    height: int | None
    """The lines, or None for as many as it takes."""
    mode: Mode

    def rows(self, lines: int) -> int:
        """How many rows of so many lines have room above the last word; at least one."""
        return sys.maxsize if self.height is None else max(1, (self.height - 1) // lines)

    def per_row(self, cell: int, columns: int | None = None) -> int:
        """How many neighbours of so many cells have room; at least one."""
        return max(1, min(columns or sys.maxsize, (self.width + _GAP) // (cell + _GAP)))

    def first(self, shelf: Shelf, limit: int) -> list[Tile]:
        """The tiles to draw, `limit` of them where the height counts."""
        return list(shelf if self.height is None else islice(shelf, limit))

    def widest(self, tiles: list[Tile]) -> int:
        """The cells of the widest caption."""
        return max((cells(self._caption(tile)) for tile in tiles), default=0)

    def caption(self, tile: Tile, width: int, *, right: bool = False) -> str:
        """Number and label of a tile in exactly so many cells."""
        cut = self.mode.cut(self._caption(tile), width)
        blank = " " * (width - cells(cut))
        head = len(tile.number) + 1
        styled = self.mode.faint(cut[:head]) + self.mode.bold(cut[head:])
        return blank + styled if right else styled + blank

    def _caption(self, tile: Tile) -> str:
        return self.mode.written(f"{tile.number}: {tile.label}" if tile.label else tile.number)


def _numbers(shelf: Shelf, screen: _Screen) -> tuple[list[str], int]:
    """Numbers side by side, and how many they are."""
    rows = screen.rows(3)
    tiles = screen.first(shelf, rows * screen.per_row(1))
    values = [screen.mode.cut(text(tile.values), screen.width) for tile in tiles]
    cell = min(max([screen.widest(tiles), *map(cells, values)]), screen.width)
    per_row = screen.per_row(cell)
    blocks = [
        [
            screen.caption(tile, cell, right=True),
            " " * (cell - cells(value)) + screen.mode.bold(value),
        ]
        for tile, value in zip(tiles[: rows * per_row], values, strict=False)
    ]
    return _side_by_side(blocks, per_row), len(blocks)


def _vectors(shelf: Shelf, screen: _Screen, window: Window | None) -> tuple[list[str], int]:
    """Vectors, a line each, and how many they are."""
    tiles = screen.first(shelf, screen.rows(1) - 1 or 1)
    digits = max((len(tile.number) for tile in tiles), default=0)
    tiles = [replace(tile, number=tile.number.rjust(digits)) for tile in tiles]
    head = min(screen.widest(tiles), CAPTION, max(0, screen.width - _GAP) // 2)
    gap = " " * _GAP * bool(head)
    room = screen.width - head - len(gap)
    bodies = _columns_of_numbers(tiles, room) if shelf.tile_shape[0] <= _FEW else None
    if bodies is None:
        reach = window or spread([tile.values for tile in tiles])
        bodies = [screen.mode.sparkline(tile.values, reach, room) for tile in tiles]
    pairs = zip(tiles, bodies, strict=True)
    return [screen.caption(tile, head) + gap + body for tile, body in pairs], len(tiles)


def _columns_of_numbers(tiles: list[Tile], room: int) -> list[str] | None:
    """Vectors as numbers in columns, or None where they have no room."""
    table = [[text(value) for value in tile.values] for tile in tiles]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    if sum(widths) + _GAP * (len(widths) - 1) > room:
        return None
    gap = " " * _GAP
    return [gap.join(map(str.rjust, row, widths)) for row in table]


def _pictures(
    shelf: Shelf, screen: _Screen, columns: int | None, scale: int, window: Window | None
) -> tuple[list[str], int]:
    """Pictures side by side under their captions, and how many they are."""
    high, wide = (side * scale for side in shelf.tile_shape[:2])
    most = screen.width if columns is None else max(1, (screen.width + _GAP) // columns - _GAP)
    across = min(wide, most)
    down = max(1, round(high * across / wide)) if high and wide else 0
    rows = screen.rows((down + 1) // 2 + 2)
    tiles = screen.first(shelf, rows * screen.per_row(across, columns))
    cell = min(max(across, min(screen.widest(tiles), CAPTION)), most)
    per_row = screen.per_row(cell, columns)
    if per_row > shelf.slices > 1:
        per_row -= per_row % shelf.slices  # the slices of an item stay together
    tiles = tiles[: rows * per_row]
    reach = window or window_of([tile.values for tile in tiles])
    blank = " " * (cell - across)
    blocks = []
    for tile in tiles:
        pixels = area_mean(enlarged(as_pixels(tile.values, reach), scale), down, across)
        picture = (line + blank for line in screen.mode.picture(pixels))
        blocks.append([screen.caption(tile, cell), *picture])
    return _side_by_side(blocks, per_row), len(blocks)


def _side_by_side(blocks: list[list[str]], per_row: int) -> list[str]:
    """The lines of blocks of equal height in rows, with an empty line between the rows."""
    lines: list[str] = []
    for start in range(0, len(blocks), per_row):
        row = blocks[start : start + per_row]
        lines += [""] * bool(lines)
        lines += map((" " * _GAP).join, zip(*row, strict=True))
    return lines
