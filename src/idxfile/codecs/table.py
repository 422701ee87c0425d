"""The table of codecs. Content decides, never the name: a codec is recognised by its magic."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from .decoding import Decoder, Encoder
from .gzip import GzipDecoder, gz_encoder
from .zstd import SKIPPABLE, ZstdDecoder, zstd_encoder

__all__: list[str] = []

_XZ_MEMORY_NBYTES = 1 << 28


@dataclass(frozen=True, slots=True)
class Codec:
    """A row of the table of codecs."""

    name: str
    """The public name, which is also the usual suffix."""
    suffixes: tuple[str, ...]
    """Suffixes of file names, the one that is written first."""
    magics: tuple[bytes, ...]
    """How a member begins."""
    decoder: Callable[[], Decoder]
    """Makes a decoder of one member."""
    encoder: Callable[[], Encoder]
    """Makes an encoder of one member."""

    def begins(self, prefix: bytes) -> bool:
        """Whether these bytes begin a member."""
        return prefix.startswith(self.magics)


def _bz2_decoder() -> Decoder:
    import bz2

    return bz2.BZ2Decompressor()


def _xz_decoder() -> Decoder:
    import lzma

    return lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=_XZ_MEMORY_NBYTES)


def _bz2_encoder() -> Encoder:
    import bz2

    return bz2.BZ2Compressor()


def _xz_encoder() -> Encoder:
    import lzma

    return lzma.LZMACompressor()


CODECS: tuple[Codec, ...] = (
    Codec("gz", (".gz", ".gzip"), (b"\x1f\x8b",), GzipDecoder, gz_encoder),
    Codec("bz2", (".bz2",), (b"BZh",), _bz2_decoder, _bz2_encoder),
    Codec("xz", (".xz",), (b"\xfd7zXZ\x00",), _xz_decoder, _xz_encoder),
    Codec(
        "zst",
        (".zst", ".zstd"),
        (b"\x28\xb5\x2f\xfd", *SKIPPABLE),
        ZstdDecoder,
        zstd_encoder,
    ),
)

CODEC_NAMES = tuple(row.name for row in CODECS)


def codec_named(name: str) -> Codec:
    """The row of that name.

    Raises:
        ValueError: for a name that is not in the table.
    """
    for row in CODECS:
        if row.name == name:
            return row
    raise ValueError(f"codec must be one of {', '.join(CODEC_NAMES)}, not {name!r}")


def codec_of_name(file_name: str) -> Codec | None:
    """The codec that a file name promises by its suffix, or None."""
    lowered = file_name.lower()
    return next((row for row in CODECS if lowered.endswith(row.suffixes)), None)


def codec_of_content(prefix: bytes) -> Codec | None:
    """The codec that the first bytes of a file show, or None."""
    return next((row for row in CODECS if row.begins(prefix)), None)
