"""Compressed streams laid out byte by byte: the same on every machine, whatever its libraries."""

from __future__ import annotations

import hashlib
import zlib

# DEFLATE (RFC 1951)


def stored(data: bytes) -> bytes:
    """A DEFLATE stream of one stored block."""
    size = len(data)
    return b"\1" + size.to_bytes(2, "little") + (size ^ 0xFFFF).to_bytes(2, "little") + data


class _Bits:
    """Bits, the first one lowest in its byte."""

    def __init__(self) -> None:
        self.value = self.count = 0

    def number(self, value: int, count: int) -> None:
        """Append a number, lowest bit first."""
        self.value |= value << self.count
        self.count += count

    def code(self, value: int, count: int) -> None:
        """Append a Huffman code, highest bit first."""
        self.number(int(f"{value:0{count}b}"[::-1], 2), count)

    def symbol(self, symbol: int) -> None:
        """Append a literal or length symbol in the fixed code."""
        if symbol < 144:
            self.code(0x30 + symbol, 8)
        elif symbol < 256:
            self.code(0x190 + symbol - 144, 9)
        elif symbol < 280:
            self.code(symbol - 256, 7)
        else:
            self.code(0xC0 + symbol - 280, 8)

    def bytes(self) -> bytes:
        return self.value.to_bytes((self.count + 7) // 8, "little")


def fixed(data: bytes, repeats: int = 0, distance_code: int = 0) -> bytes:
    """A DEFLATE stream of one block in the fixed Huffman code.

    Args:
        data: literals.
        repeats: so many times 258 bytes more, copied from `distance_code + 1` bytes before.
        distance_code: 0 to 3.
    """
    parts = [_Bits()]
    parts[0].number(0b011, 3)  # the last block, fixed
    for byte in data:
        parts[0].symbol(byte)
    for _ in range(repeats):
        parts[0].symbol(285)
        parts[0].code(distance_code, 5)
    parts[0].symbol(256)
    return parts[0].bytes()


# gzip (RFC 1952)


def gz(
    content: bytes,
    deflate: bytes | None = None,
    *,
    start: bytes = b"\x1f\x8b\x08",
    text: bool = False,
    header_crc: int | bool = False,
    extra: bytes | None = None,
    name: bytes | None = None,
    comment: bytes | None = None,
    reserved: int = 0,
    mtime: int = 0,
    crc: int | None = None,
    size: int | None = None,
) -> bytes:
    """One gzip member; each field of its header and trailer can be set, and set wrong."""
    flags = text | bool(header_crc) << 1 | (extra is not None) << 2
    flags |= (name is not None) << 3 | (comment is not None) << 4 | reserved
    head = start + bytes((flags,)) + mtime.to_bytes(4, "little") + b"\0\xff"
    if extra is not None:
        head += len(extra).to_bytes(2, "little") + extra
    for field in (name, comment):
        if field is not None:
            head += field + b"\0"
    if header_crc is not False:
        right = zlib.crc32(head) & 0xFFFF
        head += (right if header_crc is True else header_crc).to_bytes(2, "little")
    body = stored(content) if deflate is None else deflate
    crc = zlib.crc32(content) if crc is None else crc
    size = len(content) if size is None else size
    return head + body + crc.to_bytes(4, "little") + (size % 2**32).to_bytes(4, "little")


def bgzf(content: bytes) -> bytes:
    """One member of blocked gzip: its extra field BC holds its own length less one."""
    nbytes = 18 + len(stored(content)) + 8
    return gz(content, extra=b"BC\2\0" + (nbytes - 1).to_bytes(2, "little"))


BGZF_END = bytes.fromhex("1f8b0804 00000000 00ff 0600 42430200 1b00 0300 00000000 00000000")
"""The empty member that ends a blocked gzip file."""

# xz ("The .xz File Format", version 1.2)


def _padded(data: bytes) -> bytes:
    return data + bytes(-len(data) % 4)


def _crc32(data: bytes) -> bytes:
    return zlib.crc32(data).to_bytes(4, "little")


def _crc64(data: bytes) -> bytes:
    crc = 2**64 - 1
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0xC96C5795D7870F42 if crc & 1 else 0)
    return (crc ^ 2**64 - 1).to_bytes(8, "little")


CHECKS = {0: lambda data: b"", 1: _crc32, 4: _crc64, 10: lambda data: hashlib.sha256(data).digest()}
"""How an xz block is checked, by its number."""


def xz(content: bytes, check: int = 4) -> bytes:
    """One xz stream of one block (at most 127 bytes), stored; `check` is a key of CHECKS."""
    flags = bytes((0, check))
    start = b"\xfd7zXZ\0" + flags + _crc32(flags)
    block_header = bytes.fromhex("02 00 21 01 00 000000")
    block_header += _crc32(block_header)
    chunk = b"\1" + (len(content) - 1).to_bytes(2, "big") + content + b"\0"
    checked = CHECKS[check](content)
    block = block_header + _padded(chunk) + checked
    nbytes = len(block_header) + len(chunk) + len(checked)
    index = _padded(bytes((0, 1, nbytes, len(content))))
    index += _crc32(index)
    end = (len(index) // 4 - 1).to_bytes(4, "little") + flags
    return start + block + index + _crc32(end) + end + b"YZ"


# Zstandard (RFC 8878)

_P1, _P2, _P3 = 11400714785074694791, 14029467366897019727, 1609587929392839161
_P4, _P5 = 9650029242287828579, 2870177450012600261


def _xxh64(data: bytes) -> int:
    """XXH64 of fewer than 32 bytes, seed 0."""
    assert len(data) < 32

    def rotated(value: int, count: int) -> int:
        value %= 2**64
        return (value << count | value >> 64 - count) % 2**64

    number, at = _P5 + len(data), 0
    while at + 8 <= len(data):
        lane = int.from_bytes(data[at : at + 8], "little")
        number = rotated(number ^ rotated(lane * _P2, 31) * _P1 % 2**64, 27) * _P1 + _P4
        at += 8
    if at + 4 <= len(data):
        lane = int.from_bytes(data[at : at + 4], "little")
        number = rotated(number % 2**64 ^ lane * _P1 % 2**64, 23) * _P2 + _P3
        at += 4
    for byte in data[at:]:
        number = rotated(number % 2**64 ^ byte * _P5 % 2**64, 11) * _P1
    number %= 2**64
    for shift, factor in ((33, _P2), (29, _P3), (32, 1)):
        number = (number ^ number >> shift) * factor % 2**64
    return number


def zst_block(content: bytes, *, last: bool = True, kind: int = 0) -> bytes:
    """One block: kind 0 is raw, 1 one byte many times, 3 reserved."""
    start = (last | kind << 1 | len(content) << 3).to_bytes(3, "little")
    return start + (content[:1] if kind == 1 else content)


def zst(content: bytes, blocks: bytes | None = None, *, sized: bool = True) -> bytes:
    """One frame with a checksum, fewer than 32 bytes; `sized` tells the length of its content."""
    head = bytes((0x24, len(content))) if sized else bytes((0x04, 0x00))
    body = zst_block(content) if blocks is None else blocks
    check = (_xxh64(content) & 0xFFFFFFFF).to_bytes(4, "little")
    return b"\x28\xb5\x2f\xfd" + head + body + check


def zst_skippable(content: bytes, number: int = 0) -> bytes:
    """A frame of something else, which every decoder skips."""
    return bytes((0x50 + number, 0x2A, 0x4D, 0x18)) + len(content).to_bytes(4, "little") + content
