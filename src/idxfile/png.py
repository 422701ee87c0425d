"""The PNG file, as far as pictures of 8-bit grey and 8-bit RGB need it.

A PNG is a signature and chunks: length, name, data, CRC of name and data. The header chunk says
size and colour, the data chunk is one zlib stream of rows, each behind the number of its filter.
Rows are stored as they are: that makes sheets of digits 10 % smaller than differences to the row
above would. Nothing else is written, no time and no name, so that equal pixels give equal bytes
(for one version of zlib). Source: W3C, "Portable Network Graphics (PNG) Specification".

The way back is for many small pictures, where taking the file apart here is several times as fast
as opening it with a library. It knows the plainest files alone and says None to every other.
"""

from __future__ import annotations

import math
import struct
import zlib
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from .elements import Array

__all__ = ["Plain", "encode", "is_whole", "lines", "plain", "unfiltered"]

SIGNATURE = b"\x89PNG\r\n\x1a\n"
_GREY, _RGB = 0, 2
_UNFILTERED, _LEFT, _UP = 0, 1, 2
"""Filters of rows: what was subtracted from each byte; there are two more."""

_LEVEL = 6
"""Of zlib: level 9 makes sheets 5 % smaller and takes seven times as long."""

_HEADER = struct.Struct(">I4sIIBBBBB")
_CHUNK = struct.Struct(">I4s")
_TELLING_NOTHING = {b"pHYs", b"gAMA", b"cHRM", b"sRGB", b"sBIT", b"tIME", b"bKGD", b"hIST"}
"""Chunks that change no pixel: no palette, no transparency, no turn, no second frame."""

_SAMPLES = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}
"""Colour type → samples of a pixel."""

_PASSES = (
    *((0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4)),
    *((0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2)),
)
"""Of interlaced files: the first column and row of each pass, and the steps to the next."""

_PIECE_NBYTES = 1 << 18
_MAX_PIXELS = 1 << 24
"""Larger pictures are left to others, who know what a decompression bomb is."""


def encode(pixels: Array, *, level: int = _LEVEL) -> bytes:
    r"""The PNG file of a picture.

    Args:
        pixels: uint8 `(rows, columns)` grey or `(rows, columns, 3)` RGB, at least one pixel.
        level: how hard zlib tries, 0 to 9.

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
        + _chunk(b"IDAT", zlib.compress(lines.data, level))
        + _chunk(b"IEND", b"")
    )


def _chunk(name: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


class Plain(NamedTuple):
    """A PNG of 8-bit grey or RGB that is not interlaced and holds nothing but pixels."""

    shape: tuple[int, ...]
    """`(rows, columns)` or `(rows, columns, 3)`."""
    stream: bytes
    """The rows, each behind its filter, compressed by zlib."""


def plain(data: bytes) -> Plain | None:
    """Take a PNG file apart, or None where it is not of the plainest kind, or damaged."""
    if not data.startswith(SIGNATURE) or len(data) < 45:
        return None
    length, name, columns, rows, depth, colour, *methods = _HEADER.unpack_from(data, 8)
    if (length, name, depth, methods) != (13, b"IHDR", 8, [0, 0, 0]) or colour not in (_GREY, _RGB):
        return None
    if not 0 < rows * columns <= _MAX_PIXELS:
        return None
    stream = b""
    for name, body in _chunks(data):
        if name == b"IDAT":
            stream += body
        elif name == b"IEND":
            return Plain((rows, columns) if colour == _GREY else (rows, columns, 3), stream)
        elif name != b"IHDR" and name not in _TELLING_NOTHING:
            return None
    return None


def _chunks(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Name and data of each chunk whose CRC is right, up to the first whose is not."""
    at = len(SIGNATURE)
    while at + 12 <= len(data):
        length, name = _CHUNK.unpack_from(data, at)
        end = at + 8 + length
        if zlib.crc32(data[at + 4 : end]) != int.from_bytes(data[end : end + 4], "big"):
            return
        yield name, data[at + 8 : end]
        at = end + 4


def lines(picture: Plain) -> Array | None:
    """The rows, each behind its filter, as fresh bytes; None where they are damaged."""
    rows, *rest = picture.shape
    width = 1 + math.prod(rest)
    decoder = zlib.decompressobj()
    try:
        data = decoder.decompress(picture.stream, rows * width + 1)
    except zlib.error:
        return None
    if len(data) != rows * width or not decoder.eof:
        return None
    return np.frombuffer(bytearray(data), np.uint8).reshape(rows, width)


def unfiltered(picture: Plain, filtered: Array) -> Array | None:
    """The pixels, made of the rows in place; None where filters need each pixel by itself.

    Rows without a filter are there already; differences to the left and to the row above are
    added up at once.
    """
    kinds = filtered[:, 0]
    pixels = filtered[:, 1:].reshape(picture.shape)
    if not kinds.any():
        return pixels
    if kinds.max() > _UP:
        return None
    for row in np.flatnonzero(kinds).tolist():
        if kinds[row] == _LEFT:
            np.add.accumulate(pixels[row], axis=0, out=pixels[row])
        elif row:
            pixels[row] += pixels[row - 1]
    return pixels


def is_whole(data: bytes) -> bool:
    """Whether a PNG file of any kind holds as many rows as its header says.

    Readers built like Pillow's fill missing rows with zeros, and say nothing.
    """
    columns, rows, depth, colour, _, _, interlaced = struct.unpack_from(">IIBBBBB", data, 16)
    bits = depth * _SAMPLES.get(colour, 1)
    missing = 0
    for left, top, right, down in _PASSES if interlaced else ((0, 0, 1, 1),):
        width, height = -((left - columns) // right), -((top - rows) // down)
        missing += height * (1 + (width * bits + 7) // 8) if min(width, height) > 0 else 0
    decoder = zlib.decompressobj()
    for name, body in _chunks(data):
        if name != b"IDAT":
            continue
        while body and missing > 0:
            try:
                missing -= len(decoder.decompress(body, _PIECE_NBYTES))
            except zlib.error:
                return False
            body = decoder.unconsumed_tail
        if decoder.eof:
            break
    return missing <= 0
