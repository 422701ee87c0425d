"""The one reader of all compressions.

It reads a compressed stream in order, member after member, and never raises for what stands in it:
it stops and keeps what it found as problems, so that a strict read can raise, `check` can list and
`repair` can save what came before.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, NamedTuple

from ..problems import Problem
from .decoding import ChecksumMismatch, Decoder
from .gzip import DEFLATE_ERRORS, GzipDecoder
from .table import Codec
from .zstd import zstd_errors

__all__: list[str] = []

CHUNK_NBYTES = 1 << 17
"""How much is inflated at once: it stays in the processor's second cache, and below the size at
which memory is taken from the system anew for each piece."""

INPUT_NBYTES = 1 << 18
FIRST_NBYTES = 1 << 12
"""How much a decoder gets first: a file of many small members is not copied for each of them."""
_NOT_ZERO = re.compile(rb"[^\0]")


class _Beyond(NamedTuple):
    """What a stream may ask for that no reader here gives."""

    said: str
    """How the library says so."""
    needs: str
    hint: str


_BEYOND = (
    _Beyond(
        "Dictionary mismatch",
        "the dictionary that it was compressed with",
        "decompress it with `zstd -d -D DICTIONARY`",
    ),
    _Beyond(
        "too much memory",
        "a window of more than 128 MiB",
        "decompress it with `zstd -d --long=31`",
    ),
    _Beyond("Memory usage limit", "more than 256 MiB of memory", "decompress it with `xz -d`"),
)


def _decoding_errors() -> tuple[type[Exception], ...]:
    """What the libraries raise for a damaged stream."""
    import lzma

    return (*DEFLATE_ERRORS, lzma.LZMAError, OSError, *zstd_errors())


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
        self.below: Any = None
        """Where the compressed stream comes from, with problems of its own."""
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
            filled += self._straight(view[filled:])
            piece = self.read(min(CHUNK_NBYTES, len(view) - filled)) if filled < len(view) else b""
            if not piece:
                break
            view[filled : filled + len(piece)] = piece
            filled += len(piece)
        return filled

    def _straight(self, view: memoryview) -> int:
        """What comes next without a copy, put where it goes; how much that was, or 0."""
        return 0

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
                self._end(self._beyond(error) or self._damaged(error))
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

    def _beyond(self, error: Exception) -> Problem | None:
        """What the stream asks for; None where it is damaged."""
        for row in _BEYOND:
            if row.said in str(error):
                return Problem(
                    "stream-unsupported",
                    f"the {self.codec.name} stream needs {row.needs}: {self._of_expected()}",
                    offset=self._consumed,
                    found=self.nbytes,
                    expected=self.expected_nbytes,
                    hint=row.hint,
                )
        return None

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
