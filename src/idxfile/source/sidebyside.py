"""Members of a compressed stream that are inflated side by side, and given out in order.

That takes members whose length is known before they are inflated. Whatever is not as it should be
is left to the ordinary reader, which tells what is wrong.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

from ..codecs import INPUT_NBYTES, Codec, Inflater
from .threads import WORKERS, threads

if TYPE_CHECKING:
    from concurrent.futures import Future

__all__ = ["SideBySide"]

_GROUP_NBYTES = 1 << 17
"""As much of the compressed stream is one piece of work, or one member."""


class _Group(NamedTuple):
    """Members that lie side by side, as one piece of work."""

    inflater: SideBySide
    data: bytes
    bounds: list[int]
    """Where each of them begins, and where the last one ends."""
    at: int
    """Where the first of them begins in the stream."""

    @property
    def nbytes(self) -> int | None:
        """How much content they promise; None where one does not say."""
        known = [self.inflater.promised(self.data, *bounds) for bounds in pairwise(self.bounds)]
        return None if None in known else sum(filter(None, known))

    def inflate(self, target: memoryview | None) -> list[bytes]:
        """Their contents, up to the first that is not right.

        Args:
            target: where they go as well, if they have just its length.
        """
        view, contents, filled = memoryview(self.data), [], 0
        for low, high in pairwise(self.bounds):
            content = self.inflater.inflated(view[low:high], self.at + low)
            if content is None:
                break
            if target is not None:
                target[filled : filled + len(content)] = content
                filled += len(content)
                content = b""
            contents.append(content)
        return contents


class _Work(NamedTuple):
    """A group that is being inflated, or will be when its turn comes."""

    group: _Group
    target: memoryview | None
    future: Future[list[bytes]] | None
    process: int

    def done(self) -> list[bytes]:
        """What came of it. Threads do not come along with a fork: what they left is done here."""
        if self.future is None or self.process != os.getpid():
            return self.group.inflate(self.target)
        return self.future.result()


class SideBySide(Inflater):
    """Inflates members side by side, as far as they say of themselves how long they are.

    Between any two members it may go over into an ordinary `Inflater`: for one that does not say
    its length, is too long, or is damaged.
    """

    most_nbytes = 1 << 16
    """No member of the compressed stream that is longer is held whole."""

    def __init__(self, codec: Codec, read: Callable[[int], bytes]) -> None:
        super().__init__(codec, read)
        self._waiting: deque[_Work] = deque()
        self._contents: deque[bytes] = deque()
        self._rest = b""

    # What the members of a codec are like

    @staticmethod
    def span(data: Any, at: int) -> int | None:
        """How long the member is that begins here, or at least; None where it does not say."""
        raise NotImplementedError

    @staticmethod
    def promised(data: Any, start: int, stop: int) -> int | None:
        """How much content a member says that it has; None where it does not."""
        raise NotImplementedError

    def inflated(self, data: memoryview, at: int) -> bytes | None:
        """The content of a member that begins there in the stream; None if anything is wrong."""
        raise NotImplementedError

    # Reading

    def read(self, limit: int) -> bytes:
        """The next inflated bytes, at least one and at most `limit`; b"" at the end."""
        while not self._rest:
            if self._contents:
                self._rest = self._contents.popleft()
            elif not self._between or not self._next_group():
                return super().read(limit)
        piece, self._rest = self._rest[:limit], self._rest[limit:]
        self.nbytes += len(piece)
        return piece

    @property
    def _between(self) -> bool:
        """Whether no member is half read by the ordinary reader."""
        return self._decoder is None and not self.ended

    def _next_group(self) -> bool:
        """Take the contents of the next group, and have others inflated meanwhile."""
        # The first group is inflated here: who only wants a header starts no threads.
        ahead = WORKERS + 1 if self.members else 1
        while len(self._waiting) < ahead and (group := self._cut_group()) is not None:
            self._waiting.append(self._begun(group))
        if not self._waiting:
            return False
        self._contents.extend(self._take())
        return True

    def _straight(self, view: memoryview) -> int:
        """Have the threads put whole groups where they go: they get fresh memory side by side."""
        if self._rest or self._contents or not self._between:
            return 0
        if not self.members or threads() is None:
            return 0
        filled, placed, room = 0, 0, not self._waiting
        while True:
            while room and len(self._waiting) <= WORKERS and (group := self._cut_group()):
                nbytes = group.nbytes
                room = nbytes is not None and placed + nbytes <= len(view)
                target = view[placed : placed + (nbytes or 0)] if room else None
                self._waiting.append(self._begun(group, target))
                placed += nbytes or 0
            if not self._waiting or self._waiting[0].target is None:
                return filled
            work = self._waiting[0]
            good = len(self._take())
            bounds = pairwise(work.group.bounds[: good + 1])
            nbytes = sum(self.promised(work.group.data, *pair) or 0 for pair in bounds)
            self.nbytes += nbytes
            filled += nbytes
            if good < len(work.group.bounds) - 1:
                return filled

    def _begun(self, group: _Group, target: memoryview | None = None) -> _Work:
        pool = threads() if self.members else None
        future = None if pool is None else pool.submit(group.inflate, target)
        return _Work(group, target, future, os.getpid())

    def _take(self) -> list[bytes]:
        """The contents of the group whose turn it is, as far as they are right.

        Beyond, the ordinary reader goes on: it gets back all that was cut off.
        """
        work = self._waiting.popleft()
        group, contents = work.group, work.done()
        self.members += len(contents)
        self._consumed += group.bounds[len(contents)]
        if len(contents) < len(group.bounds) - 1:
            parts = [group.data[group.bounds[len(contents)] :]]
            for other in self._waiting:
                other.done()  # nobody writes where the ordinary reader will
                parts.append(other.group.data)
            self._waiting.clear()
            self._input_buffer = b"".join([*parts, self._input_buffer[self._at :]])
            self._at = 0
            self._begin_member()
        return contents

    def _cut_group(self) -> _Group | None:
        """The next whole members of the compressed stream; None where there are none to be had."""
        bounds = [0]
        first = not self.members
        while bounds[-1] < _GROUP_NBYTES:
            at = self._at + bounds[-1]
            length = self.span(self._input_buffer, at)
            if length is None or length > self.most_nbytes:
                break
            if at + length > len(self._input_buffer):
                # Of the beginning no more is read than is there: it may be all that is asked for.
                more = b"" if first and self._input_buffer else self._read(INPUT_NBYTES)
                if not more:
                    break
                self._input_buffer = self._input_buffer[self._at :] + more
                self._at = 0
                continue
            bounds.append(bounds[-1] + length)
        if len(bounds) == 1:
            return None
        data = self._input_buffer[self._at : self._at + bounds[-1]]
        at = self._consumed + sum(len(work.group.data) for work in self._waiting)
        self._at += bounds[-1]
        return _Group(self, data, bounds, at)
