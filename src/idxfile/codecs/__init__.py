"""The compressions that a file may come in, as one table, and the one reader of them all."""

from __future__ import annotations

from .gzip import BLOCK_NBYTES, blocked_member, crc32, inflated
from .inflater import CHUNK_NBYTES, INPUT_NBYTES, Inflater
from .table import (
    CODEC_NAMES,
    CODECS,
    Codec,
    codec_named,
    codec_of_content,
    codec_of_name,
)
from .zstd import ZstdDecoder, decompressed_zstd, xxh64

__all__ = [
    "BLOCK_NBYTES",
    "CHUNK_NBYTES",
    "CODECS",
    "CODEC_NAMES",
    "INPUT_NBYTES",
    "Codec",
    "Inflater",
    "ZstdDecoder",
    "blocked_member",
    "codec_named",
    "codec_of_content",
    "codec_of_name",
    "crc32",
    "decompressed_zstd",
    "inflated",
    "xxh64",
]
