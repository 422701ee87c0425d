"""Pictures side by side under their captions, in cells or in pixels, with the scale of colours."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

import numpy as np

from ..elements import Array
from ..sheets.colours import Look, look_at
from ..sheets.palettes import GREY
from ..sheets.pixels import enlarged
from ..sheets.tiles import CAPTION, Tile, text
from .cells import cells
from .screen import GAP, Screen, Strip, View, ahead, in_rows, side_by_side, widest

__all__ = ["mosaic"]

_SCALE_COLUMNS = 32
"""Cells of the scale of colours."""


def mosaic(
    tiles: Iterator[Tile], shape: tuple[int, ...], slices: int, screen: Screen, view: View
) -> Iterator[Strip]:
    """Rows of pictures.

    Args:
        tiles: the pictures.
        shape: that of each; rows of matrices made of vectors may be fewer in the last.
        slices: how many pictures make one item; they stay together.
        screen: what is drawn on.
        view: how it is to be drawn.
    """
    columns = view.columns
    most = screen.width if columns is None else max(1, (screen.width + GAP) // columns - GAP)
    down, across = _size(shape, most, screen, view.scale or screen.scale_of(shape))
    lines, wide = _in_cells(down, across, screen)
    rows = screen.rows(lines + 2)
    first = ahead(tiles, rows * screen.per_row(wide, columns))
    cell = min(max(wide, min(widest(first, screen), CAPTION)), most)
    per_row = screen.per_row(cell, columns)
    if per_row > slices > 1:
        per_row -= per_row % slices
    seen = first[: rows * per_row] if screen.limited else first
    look = look_at([t.values for t in seen], view.window, view.colours or GREY, view.invert)
    shown = _shown_as_pixels if screen.mode.graphic else _shown_in_cells
    for row in in_rows(chain(first, tiles), per_row, rows):
        captions = [screen.caption(tile, cell) for tile in row]
        pictures = []
        for tile in row:
            part = len(tile.values) / shape[0] if shape[0] else 1
            high = down if part == 1 else max(1, round(down * part))
            pictures.append(_picture(look, tile.values, high, across))
        yield shown(captions, pictures, cell, screen)._replace(
            items=sum(tile.items for tile in row)
        )
    if look.table is not None and len(shape) == 2 and seen:
        yield _scale(look, screen)


def _size(shape: tuple[int, ...], most: int, screen: Screen, scale: int) -> tuple[int, int]:
    """The pixels of a picture, down and across, of at most so many cells in width."""
    (wide_cell, high_cell), (high, wide) = screen.cell, (side * scale for side in shape[:2])
    across = min(wide, most * wide_cell)
    if not (high and wide):
        return 0, across
    down = max(1, round(high * across / wide))
    room = screen.tallest * high_cell
    if down > room:
        down, across = room, max(1, round(across * room / down))
    return down, across


def _in_cells(down: int, across: int, screen: Screen) -> tuple[int, int]:
    """The lines and columns that so many pixels take."""
    return -(-down // screen.cell[1]), -(-across // screen.cell[0])


def _picture(look: Look, values: Array, down: int, across: int) -> Array:
    """A picture of about this size in pixels: smaller by the mean, larger by whole squares."""
    rows, columns = values.shape[:2]
    pixels = look.pixels(values, min(rows, down), min(columns, across))
    sides = zip((down, across), pixels.shape, strict=False)
    return enlarged(pixels, max(1, min(side // max(1, old) for side, old in sides)))


def _shown_in_cells(captions: list[str], pictures: list[Array], cell: int, screen: Screen) -> Strip:
    blocks = [screen.mode.picture(pixels) for pixels in pictures]
    blank = [" " * (cell - pixels.shape[1]) for pixels in pictures]
    below = [
        [line + end for line, end in zip(lines, blank, strict=True)]
        for lines in zip(*blocks, strict=True)
    ]
    return side_by_side([captions, *below], 0)


def _shown_as_pixels(
    captions: list[str], pictures: list[Array], cell: int, screen: Screen
) -> Strip:
    """Room is made first, by line feeds; then the cursor goes up and from picture to picture."""
    draw = screen.mode.graphic
    assert draw is not None  # this is why we are here
    sizes = [_in_cells(pixels.shape[0], pixels.shape[1], screen) for pixels in pictures]
    height = max(lines for lines, _ in sizes)
    if not all(pixels.size for pixels in pictures):
        return side_by_side([captions], 0)
    up, down = (f"\x1b[{height - 1}{way}" if height > 1 else "" for way in "AB")
    placed = []
    for n, (pixels, (lines, wide)) in enumerate(zip(pictures, sizes, strict=True)):
        right = f"\x1b[{n * (cell + GAP)}C" if n else ""
        placed.append(f"\r{right}\x1b7{draw(pixels, wide, lines, screen.cell)}\x1b8")
    text = (" " * GAP).join(captions).rstrip(" ")
    whole = f"{text}\n{chr(10) * (height - 1)}{up}{''.join(placed)}\r{down}"
    return Strip(whole, height + 1, apart=True)


def _scale(look: Look, screen: Screen) -> Strip:
    """What the colours mean: the values at their ends, and all colours between."""
    low, high = sorted(look.window)
    ends = [screen.mode.written(text(np.float64(end))) for end in (low, high)]
    room = min(_SCALE_COLUMNS, screen.width - sum(map(cells, ends)) - 2)
    if room < 2:
        return Strip("", 0)
    steps = np.linspace(low / 2, high / 2, room) * 2
    (bar,) = screen.mode.picture(look.pixels(np.stack([steps, steps])))
    return Strip(f"{ends[0]} {bar} {ends[1]}", 1, apart=True)
