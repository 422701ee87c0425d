"""Bytes that lie far away, from front to back: what comes next is on its way already."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

__all__ = ["Ahead"]

AT_ONCE = 6

PIECE_NBYTES = 1 << 23
"""Six pieces of 8 MiB are on their way, while one is being read: 56 MiB of memory."""

FIRST_NBYTES = 1 << 20
"""The first piece: 1 MiB. Each is twice as long as the one before it, and with each there is one
more on its way, from two on: many readers end soon."""


class Ahead:
    """The bytes from one position to another, in order, for one reader.

    Nothing is fetched before the first byte is wanted. When it is closed, or all is fetched, no
    thread is left: requests that are under way then are waited for.

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
        self._position = start + len(head)
        self._stop = stop
        self._piece = memoryview(head)
        self._length = FIRST_NBYTES
        self._at_once = 2
        self._coming: deque[Future[memoryview]] = deque()
        self._pool: ThreadPoolExecutor | None = None
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
        if self._coming or self._position < self._stop:
            self._end(ValueError(f"{self.name} is closed"))

    def _more(self) -> bool:
        """Whether there is another byte; it is at hand then."""
        if self._piece:
            return True
        if self._broken is not None:
            raise self._broken
        self._ask()
        if not self._coming:
            return False
        try:
            self._piece = self._coming.popleft().result()
            self._at_once = min(self._at_once + 1, AT_ONCE)
            self._ask()
        except BaseException as error:
            self._end(error)
            raise
        if not self._coming:
            self._end(None)
        return True

    def _ask(self) -> None:
        """Send for what comes next, as far as that may be."""
        while len(self._coming) < self._at_once and self._position < self._stop:
            if self._pool is None:
                self._pool = ThreadPoolExecutor(AT_ONCE, "idxfile-ahead")
            length = min(self._length, self._stop - self._position)
            self._coming.append(self._pool.submit(self._fetch, self._position, length))
            self._position += length
            self._length = min(2 * self._length, PIECE_NBYTES)

    def _fetch(self, start: int, length: int) -> memoryview:
        piece = memoryview(bytearray(length))
        self._fill(start, piece)
        return piece

    def _end(self, error: BaseException | None) -> None:
        self._broken = self._broken or error
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)
            self._pool = None
        self._coming.clear()
