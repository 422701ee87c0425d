"""A look: how the values of a picture become colours.

The maps themselves are the table COLOUR_MAPS of `palettes`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..elements import Array
from .palettes import COLOUR_MAPS, GREY
from .pixels import Window, area_mean, as_pixels, window_of

__all__ = ["Look", "look_at"]


def colour_table(name: str) -> Array:
    """The 256 colours of a map, uint8 `(256, 3)`.

    Raises:
        ValueError: for a name that is not in COLOUR_MAPS.
    """
    if name not in COLOUR_MAPS:
        raise ValueError(f"colours must be {', '.join(COLOUR_MAPS)}, not {name!r}")
    anchors = np.array([list(bytes.fromhex(word)) for word in COLOUR_MAPS[name].split()])
    places = np.linspace(0, 255, len(anchors))
    channels = [np.interp(np.arange(256), places, channel) for channel in anchors.T]
    table: Array = np.rint(np.stack(channels, axis=-1)).astype(np.uint8)
    return table


@dataclass(frozen=True, slots=True)
class Look:
    """How pictures are looked at: one window and one colour map for all of them."""

    window: Window
    """The values at the ends of the map."""
    table: Array | None
    """The colours of grey pictures, or None where they stay grey."""

    def pixels(self, values: Array, rows: int | None = None, columns: int | None = None) -> Array:
        """A picture as uint8 `(rows, columns)` or `(rows, columns, 3)`, made smaller if asked."""
        down = values.shape[0] if rows is None else rows
        across = values.shape[1] if columns is None else columns
        grey = area_mean(values, down, across, lambda part: as_pixels(part, self.window))
        return grey if self.table is None or grey.ndim == 3 else self.table[grey]


def look_at(
    pictures: Sequence[Array], window: Window | None, colours: str, invert: bool = False
) -> Look:
    """The look for pictures that are to be compared.

    Args:
        pictures: those that tell the window where none is given.
        window: the values at the ends of the map, or None.
        colours: a name of COLOUR_MAPS.
        invert: exchange the two ends.
    """
    low, high = window or window_of(pictures)
    table = None if colours == GREY else colour_table(colours)
    return Look((high, low) if invert else (low, high), table)
