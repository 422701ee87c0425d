"""Bytes that come only in order: as they pass by, or kept."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, Protocol

from ..codecs import Inflater
from ..errors import IdxError
from ..header import MAX_HEADER_NBYTES
from ..problems import Problem
from .fileobject import Pipe
from .local import map_private, scratch_named
from .locking import Lock
from .telling import telling

__all__ = ["Spool"]

_PIECE_NBYTES = 1 << 20


class Sequential(Protocol):
    """Bytes in order, and what was found wrong with them."""

    @property
    def problems(self) -> list[Problem]: ...
    def readinto(self, buffer: Any) -> int: ...
    def read(self, limit: int) -> bytes: ...


def problems_of(stream: Sequential) -> list[Problem]:
    """What was found wrong so far with a stream, and with what lies below, which comes first."""
    below = getattr(stream, "below", None)
    return [*(() if below is None else below.problems), *stream.problems]


class Passing:
    """The bytes of a spool from the first on, for one reader.

    Its stream is its own as soon as it reads beyond the head: no other reader disturbs it.
    """

    def __init__(self, spool: Spool, head: bytes) -> None:
        self._spool = spool
        self._head = memoryview(head)
        self._stream: Sequential | None = None

    @property
    def problems(self) -> list[Problem]:
        """What was found wrong on its way so far."""
        return self._spool.problems if self._stream is None else problems_of(self._stream)

    def readinto(self, buffer: Any) -> int:
        """Fill `buffer` with the next bytes; fewer only at the end."""
        view = memoryview(buffer).cast("B")
        count = min(len(self._head), len(view))
        view[:count] = self._head[:count]
        self._head = self._head[count:]
        return count if count == len(view) else count + self._behind().readinto(view[count:])

    def read(self, limit: int) -> bytes:
        """The next bytes, at least one and at most `limit`, without a copy; b"" at the end."""
        if not self._head:
            return self._behind().read(limit)
        piece, self._head = bytes(self._head[:limit]), self._head[limit:]
        return piece

    def _behind(self) -> Sequential:
        """What comes behind the head."""
        if self._stream is None:
            self._stream = self._spool.hand_over()
        return self._stream


class Spool:
    """Bytes that come only in order (inflated, or from a pipe), asked for by range.

    The first kilobyte, which holds any header, is read alone. The rest passes by, for a reader that
    takes it in order; or it is read once, when it is first asked for, into memory or a temporary
    file. That stops one byte after `limit`, which is what the header promised: that one byte proves
    that there is more.

    Reading may begin and not end: by Ctrl-C, a full disk, a fork. Whoever reads next begins anew,
    with a fresh stream.
    """

    def __init__(
        self,
        stream: Sequential,
        name: str,
        codecs: tuple[str, ...],
        spool_nbytes: int,
        close: Callable[[], None],
        again: Callable[[], Sequential] | None,
    ) -> None:
        self.name = name
        self.codecs = codecs
        self.stream = stream
        self._limit: int | None = None
        self._outer: Any = None
        self._identity: Any = None
        self._spool_nbytes = spool_nbytes
        self._close = close
        self._again = again
        self._lock = Lock()
        self._used = False
        """Whether the stream may stand elsewhere than at the start, or behind the head if read."""
        self._head = bytearray()
        self._head_done = False
        self._memory: memoryview | None = None
        self._found: list[Problem] = []
        """What was wrong with the stream that was kept."""
        self._size: int | None = None

    @classmethod
    def of_stream(
        cls,
        file: Any,
        name: str,
        spool_nbytes: int,
        owned: bool = False,
        again: Callable[[], Any] | None = None,
    ) -> Spool:
        """The rest of a non-seekable stream.

        Args:
            file: the stream.
            name: what errors call it.
            spool_nbytes: up to here it is kept in memory.
            owned: whether it is ours, and closed at the end.
            again: gives the same stream once more, where that is possible.
        """
        close = file.close if owned else lambda: None
        fresh = None if again is None else lambda: Pipe(again())
        return cls(Pipe(file), name, (), spool_nbytes, close, fresh)

    @classmethod
    def of_inflater(cls, inflate: Callable[[], Inflater], outer: Any, spool_nbytes: int) -> Spool:
        """What an inflater makes of an outer source; closing closes that too.

        Args:
            inflate: gives an inflater that stands at the start of the outer source.
            outer: the compressed source.
            spool_nbytes: up to here it is kept in memory.
        """
        inflater = inflate()
        codecs = (*outer.codecs, inflater.codec.name)
        spool = cls(inflater, outer.name, codecs, spool_nbytes, outer.close, inflate)
        spool._outer = outer
        return spool

    def closes(self, close: Callable[[], None]) -> None:
        """Say what else is closed with it."""
        self._close = close

    @property
    def problems(self) -> list[Problem]:
        """What was found wrong so far, of the outermost compression first."""
        return problems_of(self.stream) if self._memory is None else self._found

    @property
    def at_hand(self) -> bool:
        """Whether all of it was read, and is kept or no longer than the head."""
        return self._size is not None

    @property
    def repeatable(self) -> bool:
        """Whether it can be read from its beginning more than once without being kept."""
        return self._again is not None and getattr(self._outer, "repeatable", True)

    @property
    def identity(self) -> Any:
        """What tells that the file below is still the one that was opened; None where nothing."""
        return self._identity or getattr(self._outer, "identity", None)

    @identity.setter
    def identity(self, identity: Any) -> None:
        self._identity = identity

    @property
    def size(self) -> int | None:
        """Known once all was read. One more than `limit` means: at least one byte too many."""
        return self._size

    @property
    def fits_memory(self) -> bool:
        """Whether all of it would be kept in memory."""
        return self._limit is not None and self._limit < self._spool_nbytes

    @property
    def limit(self) -> int | None:
        """The bytes that the header promises; set by whoever has read it."""
        return self._limit

    @limit.setter
    def limit(self, nbytes: int) -> None:
        self._limit = nbytes
        self._tell_limit()

    @property
    def buffer(self) -> memoryview | None:
        """All bytes (one beyond the limit at most), read now if they were not."""
        self.load()
        return self._memory

    def by_blocks(self) -> Any:
        """The content as a source of which only the blocks asked for are inflated, or None.

        There is one where the file is made of blocks, or an index of it is there, or it is so
        large that an index is worth its making; and `limit` is known.
        """
        if self._limit is None or len(self.codecs) != 1 or self._outer is None:
            return None
        from .seeking import BlockedContent, blocks_of

        blocks = blocks_of(self._outer, self.codecs[0], self._limit)
        if blocks is not None:
            return BlockedContent(self._outer, self.codecs, blocks, self._limit)
        from .indexed import indexed

        return indexed(self._outer, self.codecs, self._limit, worth=not self.fits_memory)

    def in_order(self) -> Passing:
        """All bytes from the first on, for one reader that takes them in order; none is kept."""
        with self._lock:
            return Passing(self, bytes(self._read_head()))

    def hand_over(self) -> Sequential:
        """The stream, as it stands behind the head, for good: who comes next begins anew."""
        with self._lock:
            self._from_start()
            self._used = True
            return self.stream

    def read_at(self, start: int, stop: int) -> bytes:
        """The bytes from `start` to `stop`; beyond the first kilobyte all are read for it."""
        if stop <= MAX_HEADER_NBYTES and self._memory is None:
            with self._lock:
                return bytes(self._read_head()[start:stop])
        return bytes(self._loaded()[start:stop])

    def readinto_at(self, start: int, buffer: Any) -> int:
        """Fill `buffer` from byte `start` on; all bytes are read for it."""
        view = memoryview(buffer).cast("B")
        piece = self._loaded()[start : start + len(view)]
        view[: len(piece)] = piece
        return len(piece)

    def check_same(self) -> None:
        """Make sure, before it is read anew, that what lies below is what was opened."""
        check = getattr(self._outer, "check_same", None)
        if check is not None:
            check()

    def close(self) -> None:
        """Let go of the bytes, and close what lies below if it is ours."""
        self._memory = None
        self._close()

    def load(self) -> None:
        """Read all there is, but not more than one byte beyond the limit; once."""
        with self._lock:
            if self._memory is not None:
                return
            head = self._from_start()
            bound = None if self._limit is None else self._limit + 1
            if len(head) < MAX_HEADER_NBYTES or (bound is not None and bound <= len(head)):
                memory = memoryview(bytes(head if bound is None else head[:bound]))
            elif bound is not None and bound <= self._spool_nbytes:
                buffer = bytearray(bound)
                buffer[: len(head)] = head
                count = len(head) + self._next_into(memoryview(buffer)[len(head) :])
                memory = memoryview(buffer)[:count]
            else:
                memory = self._load_into_file(bound)
            self._size = len(memory)
            self._found = problems_of(self.stream)
            self._memory = memory

    # Inside

    def _loaded(self) -> memoryview:
        self.load()
        assert self._memory is not None
        return self._memory

    def _tell_limit(self) -> None:
        if isinstance(self.stream, Inflater):
            self.stream.expected_nbytes = self._limit

    def _next_into(self, view: memoryview) -> int:
        """Fill `view` with what comes next in the stream, behind the head."""
        if not len(view):
            return 0
        self._used = True
        return self.stream.readinto(view)

    def _read_head(self) -> bytearray:
        """The first kilobyte, wherever the stream stands."""
        return self._head if self._head_done else self._from_start()

    def _from_start(self) -> bytearray:
        """The first kilobyte, with the stream behind it.

        Raises:
            IdxError: where reading had begun, and the stream cannot be had once more.
        """
        if self._used:
            self._begin_anew()
        if not self._head_done:
            self._used = True
            head = bytearray(MAX_HEADER_NBYTES)
            count = self.stream.readinto(head)
            del head[count:]
            if count < MAX_HEADER_NBYTES:
                self._size = count
            self._head, self._head_done = head, True
            self._used = False
        return self._head

    def _begin_anew(self) -> None:
        if self._again is None:
            raise IdxError(
                "reading was interrupted, and a stream gives its bytes only once",
                file=self.name,
                hint="open it again",
            )
        self.check_same()
        self._head_done = False
        self.stream = self._again()
        self._tell_limit()
        self._used = False

    def _load_into_file(self, bound: int | None) -> memoryview:
        """Spool into an unnamed temporary file, and map it."""
        import tempfile

        what = f"{'inflate' if self.codecs else 'read'} {os.path.basename(self.name)}"
        with (
            telling(what, bound) as tell,
            scratch_named(),
            tempfile.TemporaryFile(prefix="idxfile-") as file,
        ):
            file.write(self._head)
            count = len(self._head)
            piece = memoryview(bytearray(_PIECE_NBYTES))
            while bound is None or count < bound:
                want = _PIECE_NBYTES if bound is None else min(_PIECE_NBYTES, bound - count)
                got = self._next_into(piece[:want])
                file.write(piece[:got])
                count += got
                if got < want:
                    break
                tell(count)
            file.flush()
            return memoryview(map_private(file.fileno(), count))
