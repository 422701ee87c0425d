"""Shards that are held open, and shards that pass by in order."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Sequence
from typing import Any

from ..errors import UnsupportedError
from ..header import Header, examine
from ..problems import settle
from . import header_prefix
from .local import read_exactly, scratch_named, write_exactly
from .locking import Lock
from .passing import Elements

__all__: list[str] = []

COPIED_NBYTES = 1 << 18
"""Up to here bytes are copied from a map; more come faster by position."""

_PIECE_NBYTES = 1 << 20
_MOST_HELD = 1024


def most_held() -> int:
    """How many shards may be open at once: a part of the files that the system allows us."""
    try:
        import resource

        soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    except (ImportError, OSError):
        return 64
    return _MOST_HELD if soft < 0 else max(2, min(_MOST_HELD, soft // 8))


class Held:
    """The elements of one shard, at hand; its file is closed when the last reader lets go."""

    __slots__ = ("_source", "_start", "counts", "memory", "near", "rows", "used")

    def __init__(
        self, source: Any, start: int, memory: memoryview | None, *, owned: bool = True
    ) -> None:
        """Hold a shard.

        Args:
            source: where its elements are read from; None where all are in memory.
            start: the byte of the source at which they begin.
            memory: the elements, where they are in memory or mapped.
            owned: whether the source is closed with it.
        """
        self._source = source
        self._start = start
        self.memory = memory
        self.rows: Any = None
        """The items, as whoever reads them has laid them over the memory."""
        self.counts = owned
        """Whether a file is open for it."""
        self.near = not hasattr(source, "readinto_many")
        """Whether its bytes come at once."""
        self.used = True

    def copy(self, offset: int, view: memoryview) -> bool:
        """Fill `view` from byte `offset` of the elements, if a copy from memory does it."""
        count = len(view)
        if self.memory is None or count > COPIED_NBYTES or offset + count > len(self.memory):
            return False
        view[:] = self.memory[offset : offset + count]
        self.used = True
        return True

    def fill(self, parts: Sequence[tuple[int, memoryview]]) -> bool:
        """Fill buffers, each from its own byte of the elements.

        Returns:
            Whether all of them were there.
        """
        if not self.near:
            self._source.readinto_many([(self._start + at, view) for at, view in parts])
            return True
        for offset, view in parts:
            if self._source is None:
                assert self.memory is not None
                view[:] = self.memory[offset : offset + len(view)]
                continue
            if self.copy(offset, view):
                continue
            if self._source.readinto_at(self._start + offset, view) < len(view):
                return False
        return True

    def __del__(self) -> None:
        if self.counts:
            self._source.close()


class Overflow:
    """One temporary file for the elements of many shards."""

    def __init__(self) -> None:
        self._file: Any = None
        self._nbytes = 0
        self._lock = Lock()
        self.process = os.getpid()
        """Who writes it. A forked process only reads what stood in it."""

    def add(self, nbytes: int, elements: Elements) -> int:
        """Write all elements of a shard to a place of its own; where that begins."""
        with self._lock:
            if self._file is None:
                self._file = tempfile.TemporaryFile(prefix="idxfile-")  # noqa: SIM115
            place = start = self._nbytes
            self._nbytes += nbytes
        piece = memoryview(bytearray(_PIECE_NBYTES))
        with scratch_named():
            while count := elements.readinto(piece):
                write_exactly(self._file.fileno(), piece[:count], start)
                start += count
        return place

    def readinto_at(self, start: int, view: Any) -> int:
        """Fill `view` from byte `start` on."""
        return read_exactly(self._file.fileno(), view, start)

    def close(self) -> None:
        """Remove the file."""
        with self._lock:
            if self._file is not None:
                self._file.close()
                self._file = None

    def __del__(self) -> None:
        self.close()


def header_of(source: Any) -> Header:
    """The header of one shard, judged.

    Raises:
        FormatError: when it is not right.
        UnsupportedError: for a scalar or a Lush matrix.
    """
    header, found = examine(header_prefix(source), source.size)
    settle([*source.problems, *found], "raise", source.name)
    assert header is not None  # settle has raised
    if not header.shape:
        raise UnsupportedError("a scalar has no items to put behind others", file=source.name)
    if header.dialect != "idx":
        raise UnsupportedError(
            "a Lush matrix is no shard of an IDX file",
            file=source.name,
            hint="write it as IDX first: idxfile.write(new, idxfile.read(old))",
        )
    return header


class HeldInOrder:
    """The elements of a shard that is held, in order."""

    def __init__(self, held: Held, nbytes: int) -> None:
        self._held = held
        self._nbytes = nbytes
        self._position = 0

    def readinto(self, view: memoryview) -> int:
        """Fill `view` with the next bytes of the elements; 0 at their end."""
        view = view[: self._nbytes - self._position]
        self._held.fill([(self._position, view)])
        self._position += len(view)
        return len(view)

    def close(self) -> None:
        """It stays held."""


class ShardsInOrder:
    """All bytes of some shards as one file, from the first on."""

    def __init__(self, head: bytes, shards: Iterator[Elements | HeldInOrder]) -> None:
        self._head = memoryview(head)
        self._shards = shards
        self._now: Elements | HeldInOrder | None = None

    def readinto(self, buffer: Any) -> int:
        """Fill `buffer` with the next bytes; fewer only at the end."""
        view = memoryview(buffer).cast("B")
        done = min(len(self._head), len(view))
        view[:done] = self._head[:done]
        self._head = self._head[done:]
        while done < len(view):
            if self._now is None:
                self._now = next(self._shards, None)
                if self._now is None:
                    break
            try:
                count = self._now.readinto(view[done:])
            except BaseException:
                self._now.close()
                raise
            if not count:
                self._now.close()
                self._now = None
            done += count
        return done

    def read(self, limit: int) -> bytes:
        """The next bytes, at least one and at most `limit`; b"" at the end."""
        buffer = bytearray(limit)
        return bytes(memoryview(buffer)[: self.readinto(buffer)])

    def close(self) -> None:
        """Close the shard that is being read."""
        if self._now is not None:
            self._now.close()
