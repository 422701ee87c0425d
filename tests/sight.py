"""What tests of pictures see: PNG files taken apart, text without colours, widths of lines."""

import re
import struct
import unicodedata
import zlib

import numpy as np

ESC = "\x1b["


def decoded(data):
    """The pixels of a PNG, by a decoder that shares nothing with the encoder."""
    assert data[:8] == bytes((137, 80, 78, 71, 13, 10, 26, 10))
    chunks, at = {}, 8
    while at < len(data):
        (length,) = struct.unpack_from(">I", data, at)
        name, body = data[at + 4 : at + 8], data[at + 8 : at + 8 + length]
        (crc,) = struct.unpack_from(">I", data, at + 8 + length)
        assert crc == zlib.crc32(data[at + 4 : at + 8 + length])
        assert name not in chunks
        chunks[name] = body
        at += 12 + length
    assert list(chunks) == [b"IHDR", b"IDAT", b"IEND"]
    assert chunks[b"IEND"] == b""
    columns, rows, depth, colour, *zeros = struct.unpack(">IIBBBBB", chunks[b"IHDR"])
    assert depth == 8
    assert zeros == [0, 0, 0]
    shape = (rows, columns, *{0: (), 2: (3,), 4: (2,), 6: (4,)}[colour])
    stream = zlib.decompressobj()
    lines = np.frombuffer(stream.decompress(chunks[b"IDAT"]), np.uint8).reshape(rows, -1)
    assert stream.eof
    assert not stream.unused_data
    assert not lines[:, 0].any()
    return lines[:, 1:].reshape(shape)


def bare(text):
    """Text without its escape sequences, which are all colours and styles."""
    without = re.sub(r"\x1b\[[0-9;]*m", "", text)
    assert without.replace("\n", "").isprintable()
    return without


def width_of(line):
    wide = sum(unicodedata.east_asian_width(c) in "WF" for c in bare(line))
    return len(bare(line)) + wide - sum(bool(unicodedata.combining(c)) for c in line)


def digits(count=3, shape=(28, 28), dtype="uint8", seed=0):
    return np.random.default_rng(seed).integers(0, 128, (count, *shape)).astype(dtype)
