"""The PNG file, as far as pictures of 8-bit grey and RGB need it, transparent ones too.

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
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from .elements import Array

__all__ = ["Plain", "encode", "encode_all", "is_whole", "plain", "together"]

SIGNATURE = b"\x89PNG\r\n\x1a\n"
_GREY, _RGB, _GREY_ALPHA, _RGBA = 0, 2, 4, 6
_COLOUR_OF = {1: _GREY, 2: _GREY_ALPHA, 3: _RGB, 4: _RGBA}
"""Samples of a pixel → colour type, of what is written."""
_UNFILTERED = 0
_FILTERS = bytes(range(5))
_LEVEL = 6
"""Of zlib: level 9 makes sheets 5 % smaller and takes seven times as long."""

_BEGIN = SIGNATURE + b"\0\0\0\rIHDR"
_HEADER = struct.Struct(">IIBBBBB")
_LEAST_NBYTES = 57
"""Signature, and three chunks of 13, 0 and 0 bytes."""

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
_SAFE_NBYTES = 1 << 16
"""So much becomes 67 MB at most, which is what zlib can do."""

_MAX_PIXELS = 1 << 24
"""Larger pictures are left to others, who know what a decompression bomb is."""


def encode(pixels: Array, *, level: int = _LEVEL) -> bytes:
    r"""The PNG file of a picture.

    Args:
        pixels: uint8 `(rows, columns)` grey or `(rows, columns, 3)` RGB, at least one pixel; with
            2 or 4 samples the last one is how opaque it is.
        level: how hard zlib tries, 0 to 9.

    Raises:
        ValueError: for a picture without pixels, which PNG does not have.

    Example:
        >>> encode(np.zeros((2, 3), np.uint8))[:8]
        b'\x89PNG\r\n\x1a\n'
    """
    return encode_all(pixels[None], level=level)[0]


def encode_all(pictures: Array, *, level: int = _LEVEL) -> list[bytes]:
    """The PNG files of pictures of one shape, uint8 `(pictures, rows, columns[, samples])`.

    Raises:
        ValueError: for pictures without pixels.
    """
    count, rows, columns, *samples = pictures.shape
    if not rows * columns:
        raise ValueError(f"a PNG needs at least one pixel, not shape {pictures.shape[1:]}")
    lines = np.empty((count, rows, 1 + math.prod(pictures.shape[2:])), np.uint8)
    lines[..., 0] = _UNFILTERED
    lines[..., 1:] = pictures.reshape(count, rows, -1)
    header = _HEADER.pack(columns, rows, 8, _COLOUR_OF[math.prod(samples)], 0, 0, 0)
    begin, end = SIGNATURE + _chunk(b"IHDR", header), _chunk(b"IEND", b"")
    return [
        b"".join((begin, _chunk(b"IDAT", zlib.compress(picture.data, level)), end))
        for picture in lines
    ]


def _chunk(name: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


class Plain(NamedTuple):
    """The rows of a PNG of 8-bit grey or RGB that is not interlaced and holds nothing else."""

    shape: tuple[int, ...]
    """`(rows, columns)` or `(rows, columns, 3)`."""
    lines: bytes
    """The rows, each behind the number of its filter."""


def plain(data: bytes) -> Plain | None:
    """Take a PNG file apart, or None where it is not of the plainest kind, or damaged."""
    if len(data) < _LEAST_NBYTES or not data.startswith(_BEGIN):
        return None
    columns, rows, depth, colour, *methods = _HEADER.unpack_from(data, len(_BEGIN))
    if depth != 8 or colour not in (_GREY, _RGB) or methods != [0, 0, 0]:
        return None
    if not 0 < rows * columns <= _MAX_PIXELS:
        return None
    stream = b""
    for name, body in _chunks(data):
        if name == b"IDAT":
            stream += body
        elif name == b"IEND":
            break
        elif name != b"IHDR" and name not in _TELLING_NOTHING:
            return None
    else:
        return None
    shape = (rows, columns) if colour == _GREY else (rows, columns, 3)
    width = 1 + math.prod(shape[1:])
    lines = _inflated(stream, rows * width)
    if lines is None or lines[::width].strip(_FILTERS):
        return None
    return Plain(shape, lines)


def _chunks(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Name and data of each chunk whose CRC is right, up to the first whose is not."""
    at, last = len(SIGNATURE), len(data) - 12
    while at <= last:
        end = at + 8 + int.from_bytes(data[at : at + 4], "big")
        body = data[at + 4 : end]
        if zlib.crc32(body) != int.from_bytes(data[end : end + 4], "big"):
            return
        yield body[:4], body[4:]
        at = end + 4


def _inflated(stream: bytes, nbytes: int) -> bytes | None:
    """The bytes of a zlib stream, or None where they are damaged, or not so many."""
    try:
        if len(stream) <= _SAFE_NBYTES:
            data = zlib.decompress(stream, bufsize=nbytes)
        else:
            data = zlib.decompressobj().decompress(stream, nbytes + 1)
    except zlib.error:
        return None
    return data if len(data) == nbytes else None


def together(pictures: Sequence[Plain]) -> tuple[int, bytes] | Array:
    """Many pictures of one shape as one.

    Returns:
        Where no row is filtered, the pixels, as a view `(pictures, *shape)`. Else the number of
        rows and the zlib stream of one tall picture, in which a row of zeros stands behind each:
        so the first row of the next is filtered as it was, against nothing.
    """
    shape = pictures[0].shape
    width = 1 + math.prod(shape[1:])
    if not any(picture.lines[::width].strip(b"\0") for picture in pictures):
        lines = np.frombuffer(b"".join(picture.lines for picture in pictures), np.uint8)
        return lines.reshape(len(pictures), shape[0], width)[..., 1:].reshape(-1, *shape)
    between = bytes(width)
    whole = b"".join(part for picture in pictures for part in (picture.lines, between))
    return len(whole) // width, zlib.compress(whole, 0)


def is_whole(data: bytes) -> bool:
    """Whether a PNG file of any kind holds as many rows as its header says.

    Readers built like Pillow's fill missing rows with zeros, and say nothing.
    """
    columns, rows, depth, colour, _, _, interlaced = _HEADER.unpack_from(data, len(_BEGIN))
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
