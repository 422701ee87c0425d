"""Blocked gzip (BGZF): many small members, each of which says how long it is.

So they can be found without being inflated. Source: "Sequence Alignment/Map Format Specification",
section 4.1.
"""

from __future__ import annotations

import struct
from typing import Any

from ..codecs import crc32, inflated
from .sidebyside import SideBySide

__all__ = ["BlockedInflater", "member_nbytes"]

_START = bytes.fromhex("1f8b0804")
_EXTRA = bytes.fromhex("0600 4243 0200")
HEADER_NBYTES = 18
_SIZE = struct.Struct("<H")
_TRAILER = struct.Struct("<II")


def member_nbytes(data: Any, at: int = 0) -> int | None:
    """The length of the member that begins here, if it says so in the usual place; else None."""
    head = bytes(data[at : at + HEADER_NBYTES])
    if len(head) < HEADER_NBYTES or head[:4] != _START or head[10:16] != _EXTRA:
        return None
    length = int(_SIZE.unpack_from(head, 16)[0]) + 1
    return length if length >= HEADER_NBYTES + _TRAILER.size else None


def inflate_member(data: memoryview) -> bytes | None:
    """The content of a whole member; None where anything about it is wrong."""
    crc, length = _TRAILER.unpack_from(data, len(data) - _TRAILER.size)
    content = inflated(data[HEADER_NBYTES : -_TRAILER.size], length)
    if content is None or len(content) != length or crc32(content, 0) != crc:
        return None
    return content


class BlockedInflater(SideBySide):
    """Inflates the members of a blocked stream side by side."""

    @staticmethod
    def span(data: Any, at: int) -> int | None:
        """What its header says; of one that is not there whole, the length of a header."""
        return HEADER_NBYTES if len(data) - at < HEADER_NBYTES else member_nbytes(data, at)

    @staticmethod
    def promised(data: Any, start: int, stop: int) -> int:
        """The length at its end."""
        return int.from_bytes(data[stop - 4 : stop], "little")

    def inflated(self, data: memoryview, at: int) -> bytes | None:
        """The content, if its length and its checksum hold."""
        return inflate_member(data)
