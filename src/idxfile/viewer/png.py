"""The PNG file, as far as pictures of 8-bit grey and 8-bit RGB need it.

A PNG is a signature and chunks: length, name, data, CRC of name and data. The header chunk says
size and colour, the data chunk is one zlib stream of rows, each behind the number of its filter.
Rows are stored as they are: that makes sheets of digits 10 % smaller than differences to the row
above would. Nothing else is written, no time and no name, so that equal pixels give equal bytes
(for one version of zlib). Source: W3C, "Portable Network Graphics (PNG) Specification".
"""

from __future__ import annotations

import struct
import zlib

import numpy as np

from ..elements import Array

__all__ = ["encode"]

SIGNATURE = b"\x89PNG\r\n\x1a\n"
_GREY, _RGB = 0, 2
_UNFILTERED = 0
_LEVEL = 6
"""Of zlib: level 9 makes sheets 5 % smaller and takes seven times as long."""


def encode(pixels: Array) -> bytes:
    r"""The PNG file of a picture.

    Args:
        pixels: uint8 `(rows, columns)` grey or `(rows, columns, 3)` RGB, at least one pixel.

    Raises:
        ValueError: for a picture without pixels, which PNG does not have.

    Example:
        >>> encode(np.zeros((2, 3), np.uint8))[:8]
        b'\x89PNG\r\n\x1a\n'
    """
    if not pixels.size:
        raise ValueError(f"a PNG needs at least one pixel, not shape {pixels.shape}")
    rows, columns = pixels.shape[:2]
    flat = pixels.reshape(rows, -1)
    lines = np.empty((rows, 1 + flat.shape[1]), np.uint8)
    lines[:, 0] = _UNFILTERED
    lines[:, 1:] = flat
    colour = _GREY if pixels.ndim == 2 else _RGB
    return (
        SIGNATURE
        + _chunk(b"IHDR", struct.pack(">IIBBBBB", columns, rows, 8, colour, 0, 0, 0))
        + _chunk(b"IDAT", zlib.compress(lines.data, _LEVEL))
        + _chunk(b"IEND", b"")
    )


def _chunk(name: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
