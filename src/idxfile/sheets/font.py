"""A bitmap font for captions: the printable characters of ASCII, 5 × 7 with room for descenders.

A glyph is five columns of eight pixels, a byte a column, the lowest bit on top; the eighth row
is for descenders. `7E 11 11 11 7E` is

    . # # # .
    # . . . #
    # . . . #
    # . . . #
    # # # # #
    # . . . #
    # . . . #
    . . . . .

Empty columns at the sides of a glyph are not drawn, so that text is evenly spaced.
"""

from __future__ import annotations

import numpy as np

from ..elements import Array

__all__ = ["HEIGHT", "drawn"]

HEIGHT = 8
_FIRST = " "
_SPACE = 3
_BETWEEN = 1

_COLUMNS = bytes.fromhex("""
    0000000000 00005F0000 0007000700 147F147F14 242A7F2A12 2313086462 3649562050 0000070000
    001C224100 0041221C00 2A1C7F1C2A 08083E0808 0080703000 0808080808 0060600000 2010080402
    3E5149453E 00427F4000 4261514946 2141454B31 1814127F10 2745454539 3C4A494930 0171090503
    3649494936 064949291E 0036360000 0080763600 0008142241 1414141414 4122140800 0201510906
    324979413E 7E1111117E 7F49494936 3E41414122 7F4141221C 7F49494941 7F09090901 3E41415132
    7F0808087F 00417F4100 2040413F01 7F08142241 7F40404040 7F020C027F 7F0408107F 3E4141413E
    7F09090906 3E4151215E 7F09192946 4649494931 01017F0101 3F4040403F 1F2040201F 7F2018207F
    6314081463 0304780403 6151494543 007F414100 0204081020 0041417F00 0402010204 4040404040
    0001020400 2054545478 7F48444438 3844444428 384444487F 3854545418 087E090102 18A4A4A47C
    7F08040478 00447D4000 4080847D00 7F10284400 00417F4000 7C04780478 7C08040478 3844444438
    FC24242418 18242424FC 7C08040408 4854545424 043F444020 3C4040207C 1C2040201C 3C4030403C
    4428102844 1CA0A0A07C 4464544C44 0008364100 00007F0000 0041360800 0804081008 7F4141417F
""")
"""From the space to the tilde; last, the box that stands for every other character."""

_BITS = np.unpackbits(
    np.frombuffer(_COLUMNS, np.uint8).reshape(-1, 5, 1), axis=2, bitorder="little"
).swapaxes(1, 2)
"""The glyphs, `(96, 8, 5)`."""


def drawn(text: str) -> Array:
    """A line of text as bool `(8, columns)`, True where there is ink.

    Example:
        >>> for row in drawn("10")[:7].tolist():
        ...     print("".join(".#"[ink] for ink in row))
        .#...###.
        ##..#...#
        .#..#..##
        .#..#.#.#
        .#..##..#
        .#..#...#
        ###..###.
    """
    blank = np.zeros((HEIGHT, _BETWEEN), bool)
    columns = [part for character in text for part in (blank, _glyph(character))]
    return np.hstack(columns[1:] or [blank[:, :0]])


def _glyph(character: str) -> Array:
    number = ord(character) - ord(_FIRST)
    glyph: Array = _BITS[number if 0 <= number < len(_BITS) else -1].astype(bool)
    inked = np.flatnonzero(glyph.any(axis=0))
    return glyph[:, inked[0] : inked[-1] + 1] if inked.size else glyph[:, :_SPACE]
