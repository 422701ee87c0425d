"""Zstandard, by the package that the Python at hand has for it."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable
from importlib import import_module
from typing import Any

from ..errors import MissingExtraError
from .decoding import ChecksumMismatch, Decoder, Encoder

__all__: list[str] = []

SKIPPABLE = tuple(bytes((n, 0x2A, 0x4D, 0x18)) for n in range(0x50, 0x60))


def _package() -> Any:
    try:
        from compression import zstd  # Python 3.14
    except ImportError:
        try:
            from backports import zstd
        except ImportError:
            raise MissingExtraError(
                "Zstandard needs the package backports.zstd",
                hint="pip install backports.zstd",
            ) from None
    return zstd


def zstd_errors() -> tuple[type[Exception], ...]:
    """What the package raises for a damaged frame; nothing where there is none."""
    with contextlib.suppress(MissingExtraError):
        return (_package().ZstdError,)
    return ()


class ZstdDecoder:
    """One zstd frame; or one to be skipped, which a decoder would take much longer to do."""

    def __init__(self) -> None:
        self.eof = False
        self.unused_data = b""
        self.checksum: int | None = None
        """What a table has as the checksum of the content, for a frame that has none itself."""
        self.ended: Callable[[int], None] | None = None
        """Called with the length of the content, when all of it was right."""
        self._nbytes = 0
        self._decoder: Decoder | None = None
        self._start = b""
        self._skip = 0
        self._hash: Any = None

    @property
    def needs_input(self) -> bool:
        return not self.eof and (self._decoder is None or self._decoder.needs_input)

    def decompress(self, data: bytes, max_length: int = -1) -> bytes:
        if self._decoder is None:
            if not self._skip:
                data = self._start + data
                if len(data) < 8:
                    self._start = data
                    return b""
                if data.startswith(SKIPPABLE):
                    self._skip = 8 + int.from_bytes(data[4:8], "little")
            if self._skip:
                self.unused_data = data[self._skip :]
                self._skip -= min(self._skip, len(data))
                self.eof = not self._skip
                return self._told(b"")
            self._decoder = _package().ZstdDecompressor()
            if self.checksum is not None and not data[4] & 4 and _xxhash() is not None:
                self._hash = _xxhash().xxh64()
        content = self._decoder.decompress(data, max_length)
        if self._hash is not None:
            self._hash.update(content)
            computed = self._hash.intdigest() & 0xFFFFFFFF
            if self._decoder.eof and computed != self.checksum:
                unread = len(self._decoder.unused_data)
                raise ChecksumMismatch(f"XXH64 {self.checksum:08x}", f"{computed:08x}", unread)
        self.eof, self.unused_data = self._decoder.eof, self._decoder.unused_data
        return self._told(content)

    def _told(self, content: bytes) -> bytes:
        self._nbytes += len(content)
        if self.eof and self.ended is not None:
            self.ended(self._nbytes)
        return content


@functools.cache
def _xxhash() -> Any:
    """The package, for checksums that the tables of seekable zstd files hold; None without it."""
    try:
        return import_module("xxhash")
    except ImportError:
        return None


def xxh64(content: Any) -> int | None:
    """The lower half of the XXH64 of some content; None where nothing computes it."""
    return None if _xxhash() is None else _xxhash().xxh64_intdigest(content) & 0xFFFFFFFF


def decompressed_zstd(data: Any, most: int) -> bytes | None:
    """The content of a whole frame; None where it is damaged, or longer than that."""
    decoder = _package().ZstdDecompressor()
    try:
        content: bytes = decoder.decompress(data, most + 1)
    except (ValueError, _package().ZstdError):
        return None
    whole = decoder.eof and not decoder.unused_data and len(content) <= most
    return content if whole else None


def zstd_encoder() -> Encoder:
    zstd = _package()
    options = {zstd.CompressionParameter.checksum_flag: 1}
    return zstd.ZstdCompressor(options=options)  # type: ignore[no-any-return]
