"""What every codec has: a decoder of one member, and an encoder."""

from __future__ import annotations

from typing import Any, Protocol

__all__: list[str] = []


class Decoder(Protocol):
    """One compressed member, fed piece by piece; the shape of `bz2.BZ2Decompressor`."""

    @property
    def eof(self) -> bool: ...
    @property
    def needs_input(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...
    def decompress(self, data: bytes, max_length: int = -1) -> bytes: ...


class Encoder(Protocol):
    """One compressed member, written piece by piece; the shape of `bz2.BZ2Compressor`."""

    def compress(self, data: Any) -> bytes: ...
    def flush(self) -> bytes: ...


class ChecksumMismatch(Exception):  # noqa: N818
    """A member whose stored check is not the computed one: both, and where it stands.

    The third argument is how many bytes of what was fed lie from the stored check on.
    """
