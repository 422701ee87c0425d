"""What lies far away, from front to back: what comes next is on its way already."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

from .waiting import AT_ONCE, done_ahead

__all__ = ["AT_ONCE", "Ahead"]

PIECE_NBYTES = 1 << 23
"""Six pieces of 8 MiB are on their way, while one is being read: 56 MiB of memory."""

FIRST_NBYTES = 1 << 20
"""The first piece: 1 MiB. Each is twice as long as the one before it, and with each there is one
more on its way, from two on: many readers end soon."""


class Ahead:
    """The bytes from one position to another, in order, for one reader.

    Args:
        name: what errors call it.
        fill: fills a buffer with the bytes from a position on, or raises; called in any thread.
        start: the first byte.
        stop: behind the last one.
        head: what is there of them already.
    """

    def __init__(
        self,
        name: str,
        fill: Callable[[int, memoryview], None],
        start: int,
        stop: int,
        head: bytes = b"",
    ) -> None:
        self.name = name
        self._fill = fill
        self._left = stop - start - len(head)
        self._piece = memoryview(head)
        self._pieces = done_ahead(self._fetch, _cut(start + len(head), stop))
        self._broken: BaseException | None = None

    def readinto(self, buffer: Any) -> int:
        """Fill `buffer` with the next bytes; fewer only at the end."""
        view = memoryview(buffer).cast("B")
        done = 0
        while done < len(view) and self._more():
            count = min(len(self._piece), len(view) - done)
            view[done : done + count] = self._piece[:count]
            self._piece = self._piece[count:]
            done += count
        return done

    def read(self, limit: int) -> bytes:
        """The next bytes, at least one and at most `limit`; b"" at the end."""
        if not self._more():
            return b""
        piece = bytes(self._piece[:limit])
        self._piece = self._piece[limit:]
        return piece

    def close(self) -> None:
        """Fetch no more. Reading on is an error, unless all was fetched."""
        if self._left:
            self._broken = self._broken or ValueError(f"{self.name} is closed")
        with contextlib.suppress(ValueError):  # a thread that waits for a piece ends it then
            self._pieces.close()

    def _more(self) -> bool:
        """Whether there is another byte; it is at hand then."""
        if self._piece or not self._left:
            return bool(self._piece)
        if self._broken is not None:
            raise self._broken
        try:
            piece = next(self._pieces)
            if self._broken is not None:  # it was closed meanwhile
                raise self._broken
        except BaseException as error:
            self._broken = self._broken or error
            self._pieces.close()
            raise
        self._piece = piece
        self._left -= len(piece)
        return True

    def _fetch(self, bounds: tuple[int, int]) -> memoryview:
        start, stop = bounds
        piece = memoryview(bytearray(stop - start))
        self._fill(start, piece)
        return piece


def _cut(start: int, stop: int) -> Iterator[tuple[int, int]]:
    length = FIRST_NBYTES
    while start < stop:
        yield start, min(start + length, stop)
        start, length = start + length, min(2 * length, PIECE_NBYTES)
