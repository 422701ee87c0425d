"""The screen: what has room on it and where, and which way of drawing its terminal knows."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple

from ..sheets.pixels import Window
from ..sheets.tiles import Tile
from .cells import MODES, Mode, cells

__all__ = ["CELL", "GAP", "Screen", "Strip", "View", "graphics_mode", "pixel_mode"]

GAP = 2
"""Cells between neighbours."""
CELL = (10, 20)
"""The pixels of a cell where nobody tells: those of the VT340."""
_HALF_BLOCKS = (1, 2)
"""The pixels of a cell without pixels."""
_AHEAD, _AHEAD_NBYTES = 1000, 1 << 26
"""The first tiles tell widths and window for all: a thousand of them, or 64 MiB."""
_LEAST_LINES, _MOST_LINES = 8, 1000
"""A picture of more lines than this may be made smaller; of more than that it must be."""
_TILE_COLUMNS = 8
"""Where there are pixels, small pictures are made about so many cells wide."""


class Strip(NamedTuple):
    """Some lines of what is drawn."""

    text: str
    height: int
    """How many lines it takes on the screen; pictures made of pixels cover more than they write."""
    items: int = 0
    """How many items (of several slices: tiles) it shows."""
    apart: bool = False
    """Whether an empty line stands between it and the strip above."""


class View(NamedTuple):
    """How things are to be drawn: arguments of `show`."""

    columns: int | None = None
    scale: int | None = None
    style: str = "auto"
    window: Window | None = None
    colours: str | None = None
    invert: bool = False
    mean: bool = False


@dataclass(frozen=True, slots=True)
class Screen:
    """What is drawn on."""

    width: int
    height: int
    """The lines."""
    mode: Mode
    limited: bool
    """Whether only as much is drawn as has room."""
    cell: tuple[int, int]
    """The pixels of a cell, width and height."""

    @classmethod
    def of(
        cls, width: int, height: int, graphics: str, limited: bool, cell: tuple[int, int] = CELL
    ) -> Screen:
        """A screen of so many cells and lines; `graphics` is a key of MODES, or "auto".

        Raises:
            ValueError: for a way of drawing that is not known, or a width below 1.
        """
        if width < 1 or min(cell) < 1:
            raise ValueError(f"width and cell are at least 1, not {width} and {cell}")
        if graphics == "auto":
            graphics = graphics_mode(os.environ, sys.stdout.isatty())
        if graphics not in MODES:
            raise ValueError(f"graphics must be auto, {', '.join(MODES)}, not {graphics!r}")
        mode = MODES[graphics]
        return cls(width, height, mode, limited, cell if mode.graphic else _HALF_BLOCKS)

    def rows(self, lines: int) -> int:
        """How many rows of so many lines have room above the last word; at least one."""
        return max(1, (self.height - 1) // lines) if self.limited else sys.maxsize

    @property
    def tallest(self) -> int:
        """The lines that a picture may have.

        One of pixels has to fit, since no cursor goes up beyond the top of the screen.
        """
        if self.mode.graphic:
            return max(1, self.height - 2)
        return max(_LEAST_LINES, self.height - 3) if self.limited else _MOST_LINES

    def per_row(self, wide: int, columns: int | None = None) -> int:
        """How many neighbours of so many cells have room; at least one."""
        return max(1, min(columns or sys.maxsize, (self.width + GAP) // (wide + GAP)))

    def scale_of(self, shape: tuple[int, ...]) -> int:
        """The side of the square that a pixel becomes where nothing is said."""
        wanted = _TILE_COLUMNS * self.cell[0] if self.mode.graphic else 1
        return max(1, round(wanted / max(1, *shape[:2])))

    def caption(self, tile: Tile, width: int, *, right: bool = False) -> str:
        """Number and label of a tile in exactly so many cells."""
        cut = self.mode.cut(self.caption_text(tile), width)
        blank = " " * (width - cells(cut))
        head = len(tile.number) + 1 if tile.number else 0
        styled = self.mode.faint(cut[:head]) + self.mode.bold(cut[head:])
        return blank + styled if right else styled + blank

    def caption_text(self, tile: Tile) -> str:
        """Number and label of a tile in the characters that the terminal has."""
        return self.mode.written(": ".join(filter(None, (tile.number, tile.label))))


def ahead(tiles: Iterator[Tile], most: int) -> list[Tile]:
    """The first tiles, which tell how wide and how bright all of them are."""
    first: list[Tile] = []
    nbytes = 0
    for tile in islice(tiles, min(most, _AHEAD)):
        first.append(tile)
        nbytes += tile.values.nbytes
        if nbytes >= _AHEAD_NBYTES:
            break
    return first


def widest(tiles: Iterable[Tile], screen: Screen) -> int:
    """The cells of the widest caption."""
    return max((cells(screen.caption_text(tile)) for tile in tiles), default=0)


def in_rows(tiles: Iterator[Tile], per_row: int, most: int) -> Iterator[list[Tile]]:
    """Tiles in rows, at most so many rows."""
    while most > 0 and (row := list(islice(tiles, per_row))):
        most -= 1
        yield row


def side_by_side(lines: list[list[str]], items: int) -> Strip:
    """A strip of blocks, given line by line, with an empty line behind the strip above."""
    whole = "\n".join((" " * GAP).join(line).rstrip(" ") for line in lines)
    return Strip(whole, len(lines), items, apart=True)


def pixel_mode(environ: Mapping[str, str]) -> str | None:
    """The protocol for pixels that a terminal is known to have, or None where nothing tells.

    tmux and screen stand between and pass no pictures on: within them nothing is known.

    Example:
        >>> pixel_mode({"TERM": "xterm-kitty"}), pixel_mode({"TERM": "xterm-256color"})
        ('kitty', None)
    """
    term, program = environ.get("TERM", ""), environ.get("TERM_PROGRAM", "").lower()
    konsole = environ.get("KONSOLE_VERSION", "0")
    if within_multiplexer(environ):
        return None
    if (
        "KITTY_WINDOW_ID" in environ
        or term in ("xterm-kitty", "xterm-ghostty")
        or program in ("ghostty", "wezterm")
        or (konsole.isdecimal() and int(konsole) >= 220400)
    ):
        return "kitty"
    if term.startswith(("foot", "mlterm", "yaft", "contour")) or program in ("mintty", "iterm.app"):
        return "sixel"
    return None


def within_multiplexer(environ: Mapping[str, str]) -> bool:
    """Whether tmux or screen stands between this process and the terminal."""
    inside = "TMUX" in environ or "STY" in environ
    return inside or environ.get("TERM", "").startswith(("screen", "tmux"))


def graphics_mode(environ: Mapping[str, str], isatty: bool) -> str:
    """How to draw, by what the environment says of the terminal.

    Pixels where it is a terminal that is known to show them; true colour where COLORTERM says so,
    else 256 colours; no colour where the output is no terminal, NO_COLOR is set, or the terminal
    is dumb: block characters, or only ASCII where the locale knows no others.

    Args:
        environ: the environment variables.
        isatty: whether the output is a terminal.

    Returns:
        A key of MODES.

    Example:
        >>> graphics_mode({"TERM": "xterm-256color", "COLORTERM": "truecolor"}, isatty=True)
        'truecolour'
    """
    if isatty and not environ.get("NO_COLOR") and environ.get("TERM", "dumb") != "dumb":
        colour = "truecolour" if environ.get("COLORTERM") in ("truecolor", "24bit") else "256"
        return pixel_mode(environ) or colour
    locale = next(filter(None, map(environ.get, ("LC_ALL", "LC_CTYPE", "LANG"))), "")
    return "unicode" if "utf" in locale.lower() else "ascii"
