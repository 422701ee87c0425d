"""Blocked gzip (BGZF): many small members, each of which says how long it is.

So they can be found without being inflated, and inflated side by side. Source: "Sequence
Alignment/Map Format Specification", section 4.1. Whatever is not as it should be is left to the
ordinary reader, which tells what is wrong.
"""

from __future__ import annotations

import os
import struct
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from ..codecs import INPUT_NBYTES, Codec, Inflater, crc32, inflated

if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor

__all__ = ["BlockedInflater", "member_nbytes"]

WORKERS = min(4, os.cpu_count() or 1)

_GROUP_NBYTES = 1 << 17
"""As much of the compressed stream is one piece of work."""

_START = bytes.fromhex("1f8b0804")
_EXTRA = bytes.fromhex("0600 4243 0200")
HEADER_NBYTES = 18
_SIZE = struct.Struct("<H")
_TRAILER = struct.Struct("<II")


def member_nbytes(data: Any, at: int = 0) -> int | None:
    """The length of the member that begins here, if it says so in the usual place; else None."""
    head = bytes(data[at : at + HEADER_NBYTES])
    if len(head) < HEADER_NBYTES or head[:4] != _START or head[10:16] != _EXTRA:
        return None
    length = int(_SIZE.unpack_from(head, 16)[0]) + 1
    return length if length >= HEADER_NBYTES + _TRAILER.size else None


def inflate_member(data: memoryview) -> bytes | None:
    """The content of a whole member; None where anything about it is wrong."""
    crc, length = _TRAILER.unpack_from(data, len(data) - _TRAILER.size)
    content = inflated(data[HEADER_NBYTES : -_TRAILER.size], length)
    if content is None or len(content) != length or crc32(content, 0) != crc:
        return None
    return content


class _Group(NamedTuple):
    """Members that lie side by side, as one piece of work."""

    data: bytes
    bounds: list[int]
    """Where each of them begins, and where the last one ends."""

    def inflate(self) -> list[bytes]:
        """Their contents, up to the first that is not right."""
        view = memoryview(self.data)
        contents = []
        for low, high in zip(self.bounds, self.bounds[1:], strict=False):
            content = inflate_member(view[low:high])
            if content is None:
                break
            contents.append(content)
        return contents


class BlockedInflater(Inflater):
    """Inflates the members of a blocked stream side by side, and gives them out in order.

    It goes over into an ordinary `Inflater` at the first member that does not say its length, or
    is damaged.
    """

    def __init__(self, codec: Codec, read: Callable[[int], bytes]) -> None:
        super().__init__(codec, read)
        self._blocked = True
        self._waiting: deque[tuple[_Group, Future[list[bytes]] | None]] = deque()
        self._contents: deque[bytes] = deque()
        self._rest = b""
        self._pool: ThreadPoolExecutor | None = None
        self._process = 0

    def read(self, limit: int) -> bytes:
        """The next inflated bytes, at least one and at most `limit`; b"" at the end."""
        while not self._rest:
            if self._contents:
                self._rest = self._contents.popleft()
            elif self._blocked:
                self._next_group()
            else:
                return super().read(limit)
        piece, self._rest = self._rest[:limit], self._rest[limit:]
        self.nbytes += len(piece)
        return piece

    def _next_group(self) -> None:
        """Take the contents of the next group, and have others inflated meanwhile."""
        # The first group is inflated here: who only wants a header starts no threads.
        ahead = WORKERS + 1 if self.members else 1
        while len(self._waiting) < ahead and (group := self._cut_group()) is not None:
            work = self._begun(group) if self.members else None
            self._waiting.append((group, work))
        if not self._waiting:
            self._blocked = False
            return
        group, work = self._waiting.popleft()
        # Work of the process that this one was forked from is never done.
        mine = work is not None and self._process == os.getpid()
        contents = work.result() if work is not None and mine else group.inflate()
        self._contents.extend(contents)
        self.members += len(contents)
        self._consumed += group.bounds[len(contents)]
        if len(contents) < len(group.bounds) - 1:
            self._blocked = False
            parts = [group.data[group.bounds[len(contents)] :]]
            parts += [waiting.data for waiting, _ in self._waiting]
            self._waiting.clear()
            self._input_buffer = b"".join([*parts, self._input_buffer[self._at :]])
            self._at = 0

    def _begun(self, group: _Group) -> Future[list[bytes]] | None:
        if WORKERS == 1:
            return None
        if self._pool is None or self._process != os.getpid():
            from concurrent.futures import ThreadPoolExecutor

            self._waiting = deque((group, None) for group, _ in self._waiting)
            self._pool, self._process = ThreadPoolExecutor(WORKERS), os.getpid()
        return self._pool.submit(group.inflate)

    def _cut_group(self) -> _Group | None:
        """The next whole members of the compressed stream; None where none says its length."""
        bounds = [0]
        while bounds[-1] < _GROUP_NBYTES:
            at = self._at + bounds[-1]
            length = member_nbytes(self._input_buffer, at)
            if length is None or at + length > len(self._input_buffer):
                if length is None and len(self._input_buffer) - at >= HEADER_NBYTES:
                    break
                more = self._read(INPUT_NBYTES)
                if not more:
                    break
                self._input_buffer = self._input_buffer[self._at :] + more
                self._at = 0
                continue
            bounds.append(bounds[-1] + length)
        if len(bounds) == 1:
            return None
        data = self._input_buffer[self._at : self._at + bounds[-1]]
        self._at += bounds[-1]
        return _Group(data, bounds)
