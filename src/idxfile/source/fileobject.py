"""File objects of the caller: with positions, or as streams."""

from __future__ import annotations

import errno
import os
from typing import Any

from ..problems import Problem
from .locking import Lock

__all__ = ["FileObject"]

_PIECE_NBYTES = 1 << 20


def _read_stream(file: Any, view: memoryview) -> int:
    """Fill `view` from a file object that may answer with fewer bytes than asked."""
    done = 0
    readinto = getattr(file, "readinto", None)
    while done < len(view):
        if readinto is not None:
            count = readinto(view[done:])
        else:
            piece = file.read(min(len(view) - done, _PIECE_NBYTES))
            if isinstance(piece, str):
                raise TypeError(f"{file!r} is open in text mode: open it with 'rb'")
            count = None if piece is None else len(piece)
            view[done : done + (count or 0)] = piece or b""
        if count is None:  # a stream that does not block: this is not its end
            raise BlockingIOError(errno.EAGAIN, "The stream has no bytes yet: let it block")
        if not count:
            break
        done += count
    return done


class FileObject:
    """A seekable binary file object of the caller; byte 0 is where it stood. Never closed."""

    codecs: tuple[str, ...] = ()
    buffer: memoryview | None = None

    def __init__(self, file: Any, name: str) -> None:
        self.name = name
        self.problems: list[Problem] = []
        self._file = file
        self._lock = Lock()
        self._origin = file.tell()
        end = file.seek(0, os.SEEK_END)
        self.size = max(0, (file.tell() if end is None else end) - self._origin)
        file.seek(self._origin)

    def read_at(self, start: int, stop: int) -> bytes:
        """The bytes from `start` to `stop`; fewer only at the end."""
        buffer = bytearray(max(0, min(stop, self.size) - start))
        count = self.readinto_at(start, buffer)
        return bytes(memoryview(buffer)[:count])

    def readinto_at(self, start: int, buffer: Any) -> int:
        """Fill `buffer` from byte `start` on; fewer only at the end."""
        with self._lock:  # the position of a file object belongs to everybody
            self._file.seek(self._origin + start)
            return _read_stream(self._file, memoryview(buffer).cast("B"))

    def close(self) -> None:
        """The file object is the caller's: it stays open."""


class Pipe:
    """A non-seekable stream as `Sequential`."""

    def __init__(self, file: Any) -> None:
        self.problems: list[Problem] = []
        self._file = file

    def readinto(self, buffer: Any) -> int:
        return _read_stream(self._file, memoryview(buffer).cast("B"))

    def read(self, limit: int) -> bytes:
        buffer = bytearray(limit)
        return bytes(memoryview(buffer)[: self.readinto(buffer)])
