"""What is asked of a store: an object as ranges of bytes.

`RemoteObject` is the whole of it, so that a store is a module with few lines. `RemoteFile` makes
a source of one: reads become few requests, side by side, or some ahead of whoever reads it all.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

from ...problems import Problem
from ..ahead import Ahead
from ..stream import Spool
from ..waiting import done_together
from .ranges import Part, plan

__all__ = ["RemoteFile"]

REQUESTS_AT_ONCE = 8

PART_NBYTES = 1 << 25
"""What is written goes up in parts of 32 MiB, or longer ones: see `part_nbytes`."""

MOST_PARTS = 10_000
"""S3 takes no more parts of an object."""

UPLOAD_PIECE_NBYTES = 1 << 22


def part_nbytes(nbytes: int) -> int:
    """How long the parts are of an object that has so many bytes, which limits their number."""
    return max(PART_NBYTES, -(-nbytes // MOST_PARTS))


class RemoteIdentity(NamedTuple):
    """What tells that an object is still the one that was opened."""

    size: int | None
    version: str | None
    """The entity tag, or the time of the last change where a store gives no tag."""


class RemoteStream(Protocol):
    """All bytes of an object in order, of a store that gives no ranges."""

    name: str
    identity: RemoteIdentity

    def readinto(self, buffer: Any) -> int:
        """Fill `buffer` with the next bytes; fewer only at the end."""

    def close(self) -> None:
        """End the request."""


class Upload(Protocol):
    """An object that is being written. Until `finish` there is none of its name, or the old one."""

    name: str

    def write(self, data: memoryview) -> None:
        """Take the next bytes."""

    def finish(self) -> None:
        """Make it an object."""

    def cancel(self) -> None:
        """Leave nothing of it."""


class RemoteObject(Protocol):
    """An object of a store that answers with the ranges that it is asked for."""

    name: str
    """The address as it may be shown."""
    size: int
    identity: RemoteIdentity

    def fill(self, start: int, view: memoryview) -> None:
        """Fill `view` with the bytes from `start` on, of this very object, or raise."""

    def verify(self) -> None:
        """Make sure that what was read is of this very object, where requests did not."""

    def close(self) -> None:
        """Drop the connections."""


class RemoteFile:
    """An object as a source. Its first bytes came with the question how long it is."""

    codecs: tuple[str, ...] = ()
    buffer: memoryview | None = None
    far = True
    """What comes next is to be fetched ahead of whoever reads on."""

    def __init__(self, remote: RemoteObject, head: bytes) -> None:
        self.name = remote.name
        self.size = remote.size
        self.identity = remote.identity
        self.problems: list[Problem] = []
        self._remote: RemoteObject | None = remote
        self._head = head
        self._readers: weakref.WeakSet[Ahead] = weakref.WeakSet()

    def read_at(self, start: int, stop: int) -> bytes:
        """The bytes from `start` to `stop`; fewer only at the end of the object."""
        stop = min(stop, self.size)
        if stop <= len(self._head):
            return self._head[start:stop]
        buffer = bytearray(max(0, stop - start))
        self.readinto_at(start, buffer)
        return bytes(buffer)

    def readinto_at(self, start: int, buffer: Any) -> int:
        """Fill `buffer` from byte `start` on; fewer only at the end of the object."""
        view = memoryview(buffer).cast("B")
        view = view[: max(0, self.size - start)]
        self.readinto_many([(start, view)])
        return len(view)

    def readinto_many(self, parts: Sequence[Part]) -> None:
        """Fill many buffers, each from its own position, by few requests side by side.

        Args:
            parts: positions and buffers, ascending; all within the object.
        """
        remote = self._open()
        wanted = [(start, view) for start, view in parts if len(view)]
        requests = plan(wanted)

        def run(request: Sequence[Part]) -> None:
            (start, view), last = request[0], request[-1]
            if len(request) == 1:
                self._fill(remote, start, view)
                return
            block = memoryview(bytearray(last[0] + len(last[1]) - start))
            self._fill(remote, start, block)
            for at, part in request:
                part[:] = block[at - start : at - start + len(part)]

        if len(requests) == 1:  # no thread is needed
            run(requests[0])
        else:
            done_together(run, requests, REQUESTS_AT_ONCE)
        if requests:
            remote.verify()

    def _fill(self, remote: RemoteObject, start: int, view: memoryview) -> None:
        if start + len(view) <= len(self._head):
            view[:] = self._head[start : start + len(view)]
        else:
            remote.fill(start, view)

    def in_memory(self, spool_nbytes: int) -> Spool:
        """The same object as one that is fetched whole, once, when it is first read."""
        spool = Spool.of_stream(self.in_order(), self.name, spool_nbytes, again=self.in_order)
        spool.identity = self.identity
        spool.closes(self.close)
        return spool

    def in_order(self) -> Ahead:
        """All bytes from the first on, for one reader that takes them in order."""
        return self.ahead(0, self.size)

    def ahead(self, start: int, stop: int) -> Ahead:
        """The bytes from `start` to `stop`, for one reader that takes them in order."""
        remote = self._open()

        def fill(at: int, view: memoryview) -> None:
            remote.fill(at, view)
            remote.verify()

        reader = Ahead(self.name, fill, start, stop, self._head[start:stop])
        self._readers.add(reader)
        return reader

    def close(self) -> None:
        """Drop the connections."""
        if self._remote is not None:
            for reader in list(self._readers):
                reader.close()
            self._remote.close()
            self._remote = None

    def _open(self) -> RemoteObject:
        if self._remote is None:
            raise ValueError(f"{self.name} is closed")
        return self._remote
