"""The compressions that a file may come in, as one table, and the one reader of them all.

Content decides, never the name: a codec is recognised by its magic. `Inflater` reads a compressed
stream in order, member after member, and never raises for what stands in it: it stops and keeps
what it found as problems, so that a strict read can raise, `check` can list and `repair` can save
what came before.

gzip is framed here (RFC 1952) around a bare DEFLATE decoder, so that a wrong checksum can be told
with both values and a member can be recognised by its extra field. The decoder is ISA-L's, three
times as fast as zlib; zlib stands behind it.

One file of over 400 lines: a codec is a row, and what a row needs stands beside the table.
"""

from __future__ import annotations

import contextlib
import functools
import re
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Protocol

from .errors import MissingExtraError
from .problems import Problem

__all__ = ["CODECS", "Codec", "Inflater"]

CHUNK_NBYTES = 1 << 17
"""How much is inflated at once: it stays in the processor's second cache, and below the size at
which memory is taken from the system anew for each piece."""

INPUT_NBYTES = 1 << 18
FIRST_NBYTES = 1 << 12
"""How much a decoder gets first: a file of many small members is not copied for each of them."""
_NOT_ZERO = re.compile(rb"[^\0]")
_MAX_GZIP_HEADER_NBYTES = 1 << 17
_GZIP_TRAILER_NBYTES = 8
_XZ_MEMORY_NBYTES = 1 << 28

igzip_lib: Any = None
crc32: Callable[[Any, int], int] = zlib.crc32
with contextlib.suppress(ImportError):  # the standard library stands behind it
    from isal import igzip_lib, isal_zlib

    crc32 = isal_zlib.crc32


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
    except _decoding_errors():
        return None
    return content if decoder.eof and not decoder.unused_data else None


class ChecksumMismatch(Exception):  # noqa: N818
    """A member whose stored check is not the computed one: both, and where it stands.

    The third argument is how many bytes of what was fed lie from the stored check on.
    """


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


def _bz2_decoder() -> Decoder:
    import bz2

    return bz2.BZ2Decompressor()


def _xz_decoder() -> Decoder:
    import lzma

    return lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=_XZ_MEMORY_NBYTES)


def _zstd() -> Any:
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


def _gz_encoder() -> Encoder:
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


def _bz2_encoder() -> Encoder:
    import bz2

    return bz2.BZ2Compressor()


def _xz_encoder() -> Encoder:
    import lzma

    return lzma.LZMACompressor()


def _zstd_encoder() -> Encoder:
    zstd = _zstd()
    options = {zstd.CompressionParameter.checksum_flag: 1}
    return zstd.ZstdCompressor(options=options)  # type: ignore[no-any-return]


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
                if data.startswith(_ZSTD_SKIPPABLE):
                    self._skip = 8 + int.from_bytes(data[4:8], "little")
            if self._skip:
                self.unused_data = data[self._skip :]
                self._skip -= min(self._skip, len(data))
                self.eof = not self._skip
                return self._told(b"")
            self._decoder = _zstd().ZstdDecompressor()
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
    decoder = _zstd().ZstdDecompressor()
    try:
        content: bytes = decoder.decompress(data, most + 1)
    except _decoding_errors():
        return None
    whole = decoder.eof and not decoder.unused_data and len(content) <= most
    return content if whole else None


_ZSTD_SKIPPABLE = tuple(bytes((n, 0x2A, 0x4D, 0x18)) for n in range(0x50, 0x60))

CODECS: tuple[Codec, ...] = (
    Codec("gz", (".gz", ".gzip"), (b"\x1f\x8b",), GzipDecoder, _gz_encoder),
    Codec("bz2", (".bz2",), (b"BZh",), _bz2_decoder, _bz2_encoder),
    Codec("xz", (".xz",), (b"\xfd7zXZ\x00",), _xz_decoder, _xz_encoder),
    Codec(
        "zst",
        (".zst", ".zstd"),
        (b"\x28\xb5\x2f\xfd", *_ZSTD_SKIPPABLE),
        ZstdDecoder,
        _zstd_encoder,
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


def _decoding_errors() -> tuple[type[Exception], ...]:
    """What the libraries raise for a damaged stream."""
    import lzma

    errors: list[Any] = [zlib.error, lzma.LZMAError, OSError, EOFError, ValueError]
    if igzip_lib is not None:
        errors.append(igzip_lib.IsalError)
    with contextlib.suppress(MissingExtraError):
        errors.append(_zstd().ZstdError)
    return tuple(errors)


class Inflater:
    """Reads the content of a compressed stream in order, through all its members.

    Zero bytes behind a member are padding; anything else that begins no member is junk, and is
    counted. What is wrong is kept in `problems`, and reading ends there.

    Args:
        codec: the row of CODECS.
        read: gives the next bytes of the compressed stream, at most as many as asked; b"" at the
            end. Its errors pass through.
    """

    def __init__(self, codec: Codec, read: Callable[[int], bytes]) -> None:
        self.codec = codec
        self.members = 0
        self.nbytes = 0
        """Bytes inflated so far."""
        self.expected_nbytes: int | None = None
        """What the header inside promises, once somebody has read it; for the messages."""
        self.problems: list[Problem] = []
        self.ended = False
        self.stored_name: str | None = None
        """The name inside the first gzip member."""
        self._read = read
        self._decoder: Decoder | None = None
        self._input_buffer = b""
        self._at = 0
        self._feed = FIRST_NBYTES
        self._consumed = 0

    def readinto(self, buffer: Any) -> int:
        """Fill `buffer` with the next inflated bytes; fewer only at the end.

        Returns:
            The number of bytes written.
        """
        view = memoryview(buffer).cast("B")
        filled = 0
        while filled < len(view):
            piece = self.read(min(CHUNK_NBYTES, len(view) - filled))
            if not piece:
                break
            view[filled : filled + len(piece)] = piece
            filled += len(piece)
        return filled

    def _input(self) -> bytes:
        """The next bytes for the decoder: few at first, since it copies what it does not use."""
        if self._at == len(self._input_buffer):
            self._input_buffer, self._at = self._read(INPUT_NBYTES), 0
        data = self._input_buffer[self._at : self._at + self._feed]
        self._go(len(data))
        self._feed = min(4 * self._feed, INPUT_NBYTES)
        return data

    def _go(self, nbytes: int) -> None:
        self._at += nbytes
        self._consumed += nbytes

    def read(self, limit: int) -> bytes:
        """The next inflated bytes, at least one and at most `limit`; b"" at the end."""
        while not self.ended:
            if self._decoder is None and not self._begin_member():
                break
            decoder = self._decoder
            assert decoder is not None
            data = self._input() if decoder.needs_input else b""
            if decoder.needs_input and not data:
                self._end(self._truncated())
                break
            try:
                piece = decoder.decompress(data, limit)
            except ChecksumMismatch as mismatch:
                self._end(self._wrong_checksum(*mismatch.args))
                break
            except _decoding_errors() as error:
                self._end(self._damaged(error))
                break
            if self.members == 0 and isinstance(decoder, GzipDecoder):
                self.stored_name = decoder.name
            if decoder.eof:
                self.members += 1
                self._go(-len(decoder.unused_data))
                self._decoder = None
            if piece:
                self.nbytes += len(piece)
                return piece
        return b""

    def _begin_member(self) -> bool:
        """Go to the next member; False at the end of the stream."""
        while True:
            if self.members:
                begin = _NOT_ZERO.search(self._input_buffer, self._at)
                self._go((begin.start() if begin else len(self._input_buffer)) - self._at)
            if len(self._input_buffer) - self._at >= 8:
                break
            more = self._read(INPUT_NBYTES)
            if not more:
                break
            self._input_buffer, self._at = self._input_buffer[self._at :] + more, 0
        start = self._input_buffer[self._at : self._at + 8]
        if not start:
            self.ended = True
            return False
        if not self.codec.begins(start):
            self._end(self._junk())
            return False
        self._decoder = self.codec.decoder()
        self._feed = FIRST_NBYTES
        return True

    def _end(self, problem: Problem) -> None:
        self.ended = True
        self.problems.append(problem)

    def _of_expected(self) -> str:
        promised = "" if self.expected_nbytes is None else f" of {self.expected_nbytes:,}"
        return f"{self.nbytes:,}{promised} bytes inflated"

    def _truncated(self) -> Problem:
        return Problem(
            "stream-truncated",
            f"the {self.codec.name} stream is cut: {self._of_expected()}",
            offset=self._consumed,
            found=self.nbytes,
            expected=self.expected_nbytes,
            hint="fetch the file again; `idx repair --salvage` keeps the whole items",
        )

    def _wrong_checksum(self, stored: str, computed: str, unread: int) -> Problem:
        return Problem(
            "stream-checksum",
            f"the {self.codec.name} stream stores {stored}, its content gives {computed} "
            f"({self._of_expected()})",
            offset=self._consumed - unread,
            found=computed,
            expected=stored,
            hint="the file was damaged on its way: fetch it again",
        )

    def _damaged(self, error: Exception) -> Problem:
        return Problem(
            "stream-damaged",
            f"the {self.codec.name} stream is damaged: {self._of_expected()}, then "
            f"{str(error) or type(error).__name__}",
            offset=self._consumed,
            found=self.nbytes,
            expected=self.expected_nbytes,
            hint="fetch the file again; `idx repair --salvage` keeps the whole items",
        )

    def _junk(self) -> Problem:
        count = len(self._input_buffer) - self._at
        while more := self._read(INPUT_NBYTES):
            count += len(more)
        return Problem(
            "stream-junk",
            f"{count:,} byte{'s'[: count > 1]} of junk after the {self.codec.name} stream, ignored",
            offset=self._consumed,
            found=count,
            expected=0,
            hint="`idx repair` writes the file without them",
        )
