"""The ways to draw: pixels and text put into character cells, with colour and without.

A picture is drawn in half blocks: one cell is two pixels, `▀` in the colour of the upper one on
the colour of the lower one. Without colour a cell is the character that looks most like its two
pixels. Every line is complete in itself: it begins and ends without colour.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from itertools import accumulate, pairwise, zip_longest

import numpy as np

from ..elements import Array
from ..sheets.pixels import Window, area_mean, as_pixels
from . import graphics

__all__ = ["MODES", "Mode"]

_RESET = "\x1b[0m"
_DEFAULT = "9"
"""What stands behind `3` or `4` for the terminal's own colour."""
_FAINT, _BOLD = "2", "1"
_LUMA = np.array([0.299, 0.587, 0.114])
"""How much red, green and blue weigh in grey. Source: ITU-R BT.601."""

Ink = tuple[str, float, float]
"""A character, and how much of its upper and of its lower half it fills."""

_BLOCKS: tuple[Ink, ...] = (
    (" ", 0.0, 0.0),
    ("░", 0.25, 0.25),
    ("▒", 0.5, 0.5),
    ("▓", 0.75, 0.75),
    ("█", 1.0, 1.0),
    ("▀", 1.0, 0.0),
    ("▄", 0.0, 1.0),
)
_ASCII: tuple[Ink, ...] = (
    (" ", 0.0, 0.0),
    (".", 0.0, 0.25),
    ("'", 0.25, 0.0),
    (":", 0.25, 0.25),
    ("-", 0.35, 0.35),
    ("=", 0.45, 0.45),
    ("+", 0.55, 0.55),
    ("*", 0.65, 0.65),
    ("#", 0.8, 0.8),
    ("@", 1.0, 1.0),
    ('"', 0.8, 0.0),
    ("_", 0.0, 0.8),
)


def _truecolour(pixels: Array) -> list[list[str]]:
    if pixels.ndim == 2:
        return [[f"8;2;{v};{v};{v}" for v in row] for row in pixels.tolist()]
    return [[f"8;2;{r};{g};{b}" for r, g, b in row] for row in pixels.tolist()]


_LEVELS = np.array([0, 95, 135, 175, 215, 255])
"""The levels of red, green and blue in the colours 16 to 231 of the usual 256."""
_NEAREST_LEVEL = np.abs(np.arange(256)[:, None] - _LEVELS).argmin(axis=1)


def _palette(pixels: Array) -> list[list[str]]:
    """The nearest of the 256 colours: of the cube from 16 on, or of the greys from 232 on."""
    colours = np.stack([pixels] * 3, axis=-1) if pixels.ndim == 2 else pixels
    colours = colours.astype(int)
    levels = _NEAREST_LEVEL[colours]
    greys = np.rint((colours.mean(axis=-1) - 8) / 10).clip(0, 23).astype(int)
    cube_error = ((_LEVELS[levels] - colours) ** 2).sum(axis=-1)
    grey_error = ((8 + 10 * greys[..., None] - colours) ** 2).sum(axis=-1)
    cube = 16 + levels @ np.array([36, 6, 1])
    numbers = np.where(cube_error <= grey_error, cube, 232 + greys)
    return [[f"8;5;{n}" for n in row] for row in numbers.tolist()]


@dataclass(frozen=True, slots=True)
class Mode:
    """A row of the table of ways to draw."""

    colours: Callable[[Array], list[list[str]]] | None
    """Pixels → their colours, as escape sequences have them behind `3` and `4`; None: none."""
    inks: tuple[Ink, ...]
    """The characters that stand for two pixels where there is no colour."""
    bars: str
    """The characters of a sparkline, from low to high; a full block would touch the line above."""
    ellipsis: str
    """What tells that a text was cut."""
    graphic: Callable[[Array, int, int, tuple[int, int]], str] | None = None
    """Pixels, columns, lines, cell → the sequence that shows pixels; None: cells are drawn."""

    @property
    def coloured(self) -> bool:
        """Whether colours are seen."""
        return self.colours is not None

    def picture(self, pixels: Array) -> list[str]:
        """The lines of a picture, each as many cells as the picture has columns.

        Args:
            pixels: uint8 `(rows, columns)` or `(rows, columns, 3)`.
        """
        if self.colours is None:
            return self._inked(pixels)
        rows = self.colours(pixels)
        blank = [_DEFAULT] * pixels.shape[1]
        return [
            _coloured(upper, lower)
            for upper, lower in zip_longest(rows[::2], rows[1::2], fillvalue=blank)
        ]

    def _inked(self, pixels: Array) -> list[str]:
        grey = pixels if pixels.ndim == 2 else pixels @ _LUMA
        grey = np.pad(grey / 255, ((0, len(grey) % 2), (0, 0)))
        pairs = np.stack([grey[::2], grey[1::2]], axis=-1)
        inks = np.array([ink[1:] for ink in self.inks])
        nearest = ((pairs[:, :, None] - inks) ** 2).sum(axis=-1).argmin(axis=-1)
        return ["".join(self.inks[n][0] for n in row) for row in nearest.tolist()]

    def sparkline(self, values: Array, window: Window, columns: int) -> str:
        """A vector as a line of at most `columns` bars; NaN is a gap."""
        size = min(columns, values.size)
        heights = area_mean(values[None], 1, size, lambda part: as_pixels(part, window))[0]
        gaps = np.zeros(size, bool)
        if values.dtype.kind == "f":
            gaps = area_mean(values[None], 1, size, lambda part: np.isnan(part) * 255)[0] > 127
        bars = (heights.astype(int) * len(self.bars) // 256).tolist()
        return "".join(
            " " if gap else self.bars[bar] for bar, gap in zip(bars, gaps.tolist(), strict=True)
        )

    def written(self, text: str) -> str:
        """Text in the characters that this way of drawing has."""
        if self.bars.isascii():
            return text.encode("ascii", "backslashreplace").decode()
        return text

    def cut(self, text: str, width: int) -> str:
        """Text that is not wider than `width` cells, with an ellipsis where some is left out."""
        if cells(text) <= width:
            return text
        ends = accumulate(map(_cells_of, text), initial=0)
        fitting = sum(end <= width - 1 for end in ends) - 1
        return text[:fitting] + self.ellipsis if fitting >= 0 else ""

    def faint(self, text: str) -> str:
        """Text that stands back, where there is colour."""
        return self._styled(text, _FAINT)

    def bold(self, text: str) -> str:
        """Text that stands out, where there is colour."""
        return self._styled(text, _BOLD)

    def _styled(self, text: str, style: str) -> str:
        return f"\x1b[{style}m{text}{_RESET}" if text and self.colours else text


MODES = {
    "kitty": Mode(_truecolour, (), "▁▂▃▄▅▆▇", "…", graphics.kitty),
    "sixel": Mode(_palette, (), "▁▂▃▄▅▆▇", "…", graphics.sixel),
    "truecolour": Mode(_truecolour, (), "▁▂▃▄▅▆▇", "…"),
    "256": Mode(_palette, (), "▁▂▃▄▅▆▇", "…"),
    "unicode": Mode(None, _BLOCKS, "▁▂▃▄▅▆▇", "…"),
    "ascii": Mode(None, _ASCII, "_.-=+*#", "."),
}
"""What `graphics` may say, the best first."""


def cells(text: str) -> int:
    """The cells that text without escape sequences takes in a terminal.

    Example:
        >>> cells("cat"), cells("ねこ")
        (3, 4)
    """
    return sum(map(_cells_of, text))


def _cells_of(character: str) -> int:
    if unicodedata.category(character) in ("Mn", "Me"):  # marks on the character before
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def _coloured(upper: list[str], lower: list[str]) -> str:
    """A line of half blocks; colours are told where they change, and put back at the end."""
    pairs = list(zip(upper, lower, strict=True))
    line = []
    for (fore, back), (above, below) in pairwise([("", ""), *pairs]):
        codes = ["3" + above] * (above != fore) + ["4" + below] * (below != back)
        line.append(f"\x1b[{';'.join(codes)}m▀" if codes else "▀")
    return "".join(line) + _RESET if line else ""
