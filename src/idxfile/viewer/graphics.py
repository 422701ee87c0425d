r"""Pictures for terminals that show pixels: the protocols of kitty and of sixel.

kitty takes a PNG file in base64, in pieces of 4,096 characters, and scales it to the cells that
it is told. Source: "Terminal graphics protocol", https://sw.kovidgoyal.net/kitty/graphics-protocol/

A sixel is a column of six pixels in one colour. A picture is told in bands of six rows; for each
colour of a band its sixels from left to right, as characters from `?` (none) to `~` (all six),
runs as `!count character`. Source: DEC, "VT330/VT340 Programmer Reference Manual", chapter 14.
"""

from __future__ import annotations

import base64

import numpy as np

from .. import png
from ..elements import Array

__all__ = ["kitty", "sixel"]

_PIECE = 4096
_COLOURS = 256
"""The colour registers of a terminal that knows sixel."""
_BAND = 6


def kitty(pixels: Array, columns: int, lines: int, cell: tuple[int, int]) -> str:
    """The sequence that shows a picture in so many cells from the cursor on, which stays.

    The terminal stretches the file over the cells, so that the file is as large as they are, and
    transparent where the picture is not.

    Args:
        pixels: uint8 `(rows, columns)` or `(rows, columns, 3)`.
        columns: the cells of its width.
        lines: the lines of its height.
        cell: the pixels of a cell, width and height.
    """
    rows, wide, *rgb = pixels.shape
    shape = (max(rows, lines * cell[1]), max(wide, columns * cell[0]), 1 + (rgb or [1])[0])
    page = np.zeros(shape, np.uint8)
    page[:rows, :wide, :-1] = pixels.reshape(rows, wide, -1)
    page[:rows, :wide, -1] = 255
    data = base64.standard_b64encode(png.encode(page)).decode()
    pieces = [data[start : start + _PIECE] for start in range(0, len(data), _PIECE)]
    head = f"a=T,f=100,q=2,C=1,c={columns},r={lines},"
    return "".join(
        f"\x1b_G{head * (n == 0)}m={int(n < len(pieces) - 1)};{piece}\x1b\\"
        for n, piece in enumerate(pieces)
    )


def sixel(pixels: Array, *_: object) -> str:
    """The sequence that shows a picture from the cursor on, a pixel for a pixel.

    Up to 256 colours are kept, as near as the percents of the protocol come; of more, red and
    blue keep 6 levels and green 7.

    Args:
        pixels: uint8 `(rows, columns)` or `(rows, columns, 3)`.
        _: what `kitty` takes; pixels have a size of their own here.
    """
    numbers, palette = _indexed(pixels)
    rows, wide = numbers.shape
    percents = np.rint(palette.astype(float) / 255 * 100).astype(int).tolist()
    registers = "".join(f"#{n};2;{r};{g};{b}" for n, (r, g, b) in enumerate(percents))
    bands = [_band(numbers[top : top + _BAND]) for top in range(0, rows, _BAND)]
    return f'\x1bP0;1q"1;1;{wide};{rows}{registers}{"-".join(bands)}\x1b\\'


def _indexed(pixels: Array) -> tuple[Array, Array]:
    """Pixels as numbers of colours, and the colours `(colours, 3)`."""
    rgb = np.stack([pixels] * 3, axis=-1) if pixels.ndim == 2 else pixels
    for levels in (None, np.array([6, 7, 6]) - 1):
        if levels is not None:
            rgb = np.rint(np.rint(rgb / 255 * levels) * 255 / levels).astype(np.uint8)
        packed = rgb.astype(np.uint32) @ np.array([1 << 16, 1 << 8, 1], np.uint32)
        colours, numbers = np.unique(packed, return_inverse=True)
        if len(colours) <= _COLOURS:
            break
    palette = np.stack([colours >> 16, colours >> 8 & 255, colours & 255], axis=-1)
    return numbers.reshape(packed.shape), palette


def _band(numbers: Array) -> str:
    """Six rows, or the fewer last ones: the sixels of each colour, all from the left margin."""
    weights = 1 << np.arange(len(numbers))
    return "$".join(
        f"#{colour}{_runs((weights @ (numbers == colour)) + 63)}"
        for colour in np.unique(numbers).tolist()
    )


def _runs(characters: Array) -> str:
    """Characters by their codes, those that repeat as runs; none behind the last sixel."""
    starts = np.flatnonzero(np.diff(characters, prepend=-1))
    codes = characters[starts].tolist()
    counts = np.diff(starts, append=len(characters)).tolist()
    if codes and chr(codes[-1]) == "?":
        codes.pop()
    return "".join(
        chr(code) * count if count < 4 else f"!{count}{chr(code)}"
        for code, count in zip(codes, counts, strict=False)
    )
