"""gzip, framed here (RFC 1952) around a bare DEFLATE decoder.

So a wrong checksum can be told with both values, and a member can be recognised by its extra field.
The decoder is ISA-L's, three times as fast as zlib; zlib stands behind it.
"""

from __future__ import annotations

import contextlib
import zlib
from collections.abc import Callable
from typing import Any

from .decoding import ChecksumMismatch, Decoder, Encoder

__all__: list[str] = []

_MAX_GZIP_HEADER_NBYTES = 1 << 17
_GZIP_TRAILER_NBYTES = 8

DEFLATE_ERRORS: tuple[type[Exception], ...] = (zlib.error, EOFError, ValueError)
"""What the libraries raise for a damaged stream."""

igzip_lib: Any = None
crc32: Callable[[Any, int], int] = zlib.crc32
with contextlib.suppress(ImportError):  # the standard library stands behind it
    from isal import igzip_lib, isal_zlib

    crc32 = isal_zlib.crc32
    DEFLATE_ERRORS += (igzip_lib.IsalError,)


class ZlibDecoder:
    """zlib's bare DEFLATE decoder in the shape of `Decoder`."""

    def __init__(self) -> None:
        self._decoder = zlib.decompressobj(wbits=-15)

    @property
    def eof(self) -> bool:
        return self._decoder.eof

    @property
    def needs_input(self) -> bool:
        return not self.eof and not self._decoder.unconsumed_tail

    @property
    def unused_data(self) -> bytes:
        return self._decoder.unused_data

    def decompress(self, data: bytes, max_length: int = -1) -> bytes:
        return self._decoder.decompress(self._decoder.unconsumed_tail + data, max(0, max_length))


def _deflate_decoder() -> Decoder:
    if igzip_lib is None:  # pragma: no cover
        return ZlibDecoder()
    return igzip_lib.IgzipDecompressor(flag=igzip_lib.DECOMP_DEFLATE)  # type: ignore[no-any-return]


def inflated(data: Any, nbytes: int) -> bytes | None:
    """The content of a whole DEFLATE stream; None where it is damaged, or longer than that."""
    decoder = _deflate_decoder()
    try:
        content = decoder.decompress(data, nbytes + 1)
    except DEFLATE_ERRORS:
        return None
    return content if decoder.eof and not decoder.unused_data else None


class GzipDecoder:
    """One gzip member: header, DEFLATE stream, CRC-32 and length (RFC 1952)."""

    def __init__(self) -> None:
        self.name: str | None = None
        """The file name that the member stores, or None."""
        self.extra = b""
        """The extra field of the member."""
        self.eof = False
        self.unused_data = b""
        self._deflate: Decoder | None = None
        self._pending = b""
        self._crc = 0
        self._length = 0

    @property
    def needs_input(self) -> bool:
        if self.eof:
            return False
        if self._deflate is None:
            return True
        if self._deflate.eof:
            return len(self._pending) < _GZIP_TRAILER_NBYTES
        return self._deflate.needs_input

    def decompress(self, data: bytes, max_length: int = -1) -> bytes:
        if self._deflate is None:
            self._pending += data
            end = self._parse_header(self._pending)
            if end is None:
                if len(self._pending) > _MAX_GZIP_HEADER_NBYTES:
                    raise ValueError("a member header of more than 128 KiB")
                return b""
            data, self._pending = self._pending[end:], b""
            self._deflate = _deflate_decoder()
        if not self._deflate.eof:
            inflated = self._deflate.decompress(data, max_length)
            self._crc = crc32(inflated, self._crc)
            self._length += len(inflated)
            if self._deflate.eof:
                self._pending = self._deflate.unused_data
            return inflated
        # The trailer is judged by a call of its own, so that a wrong one takes no content along.
        self._pending += data
        if len(self._pending) >= _GZIP_TRAILER_NBYTES:
            self._check_trailer()
        return b""

    def _parse_header(self, data: bytes) -> int | None:
        """The length of the member's header, or None while it is incomplete."""
        if len(data) < 10:
            return None
        method, flags, at = data[2], data[3], 10
        if method != 8:
            raise ValueError(f"compression method {method}, expected 8 (DEFLATE)")
        if flags & 0xE0:
            raise ValueError("reserved flags are set")
        if flags & 4:
            at += 2 + int.from_bytes(data[at : at + 2], "little")
            self.extra = data[12:at]
        for flag in (8, 16):  # a file name, a comment: both end with a zero byte
            if flags & flag:
                end = data.find(b"\0", at)
                if end < 0:
                    return None
                if flag == 8:
                    self.name = data[at:end].decode("latin-1")
                at = end + 1
        if flags & 2:
            at += 2
        return at if at <= len(data) else None

    def _check_trailer(self) -> None:
        stored_crc = int.from_bytes(self._pending[:4], "little")
        stored_length = int.from_bytes(self._pending[4:8], "little")
        if stored_crc != self._crc:
            unread = len(self._pending)
            raise ChecksumMismatch(f"CRC-32 {stored_crc:08x}", f"{self._crc:08x}", unread)
        if stored_length != self._length & 0xFFFFFFFF:
            unread = len(self._pending) - 4
            raise ChecksumMismatch(f"length {stored_length:,}", f"{self._length:,}", unread)
        self.eof = True
        self.unused_data, self._pending = self._pending[_GZIP_TRAILER_NBYTES:], b""


def gz_encoder() -> Encoder:
    if igzip_lib is None:  # pragma: no cover
        return zlib.compressobj(level=6, wbits=31)
    return isal_zlib.compressobj(level=1, wbits=31)


def blocked_member(data: bytes | bytearray) -> bytes:
    """One small gzip member in the layout called BGZF: at most 65,280 bytes of content.

    Its extra field `BC` holds the member's own length less one. Source: "Sequence Alignment/Map
    Format Specification", section 4.1.
    """
    packed = _deflate(data)
    length = 18 + len(packed) + 8
    trailer = crc32(data, 0).to_bytes(4, "little") + len(data).to_bytes(4, "little")
    return _BGZF_START + (length - 1).to_bytes(2, "little") + packed + trailer


_BGZF_START = bytes.fromhex("1f8b0804 00000000 00ff 0600 4243 0200")
BLOCK_NBYTES = 0xFF00
"""Content of one member: even where it does not shrink at all, the member stays below 64 KiB."""


def _deflate(data: bytes | bytearray) -> bytes:
    if igzip_lib is not None and data:
        packed: bytes = isal_zlib.compress(data, 1, -15)
        if len(packed) < len(data):
            return packed
    encoder = zlib.compressobj(level=6 if igzip_lib is None else 0 if data else 6, wbits=-15)
    return encoder.compress(data) + encoder.flush()
