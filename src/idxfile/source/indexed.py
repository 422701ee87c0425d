"""Random access in any gzip file, by an index that rapidgzip makes once.

The index lies in the cache folder, under a name that tells of which file it is, how long the
content is and what the index itself should be. rapidgzip is quick and not strict: so our own reader
goes through the file beside it, and an index is kept only where both found the same content.
"""

from __future__ import annotations

import atexit
import contextlib
import hashlib
import os
import shutil
import tempfile
import threading
import time
import weakref
from collections.abc import Callable, Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from ..codecs import Inflater, codec_named, crc32
from ..problems import Problem
from .blocked import HEADER_NBYTES, member_nbytes
from .content import ContentByRanges, UnfitError
from .local import LocalFile
from .locking import Lock
from .places import home
from .pool import Pool
from .telling import telling

__all__ = ["IndexedContent", "indexed"]

SPACING_NBYTES = 1 << 21
"""From one point of entry to the next: for an item as much is inflated, half of it as a rule."""

_PIECE_NBYTES = 1 << 20

_END_NBYTES = 1 << 10

_LEFT_SECONDS = 3600
"""A folder that nobody has written into for so long belongs to nobody."""

_DEFLATE_MOST = 1032
"""No deflate stream holds more than so many bytes in one of its own."""


def indexed(outer: Any, codecs: tuple[str, ...], nbytes: int, worth: bool) -> IndexedContent | None:
    """The content of a plain gzip file by ranges; None where there is no index and none is made.

    Args:
        outer: the compressed file.
        codecs: its compressions.
        nbytes: what its content should come to.
        worth: whether an index is made, when the first item is asked for.
    """
    if codecs != ("gz",) or not isinstance(outer, LocalFile) or not find_spec("rapidgzip"):
        return None
    if nbytes > outer.size * _DEFLATE_MOST:  # a header that promises what cannot be there
        return None
    if member_nbytes(outer.read_at(0, HEADER_NBYTES)):  # of blocks that are not as they should be
        return None
    content = IndexedContent(outer, codecs, nbytes)
    return content if worth or content.find() else None


class IndexedContent(ContentByRanges):
    """The content of a gzip file, as a source."""

    def __init__(self, outer: LocalFile, codecs: tuple[str, ...], nbytes: int) -> None:
        self.name = outer.name
        self.size = nbytes
        self.codecs = codecs
        self.problems: list[Problem] = []
        self.inflated_nbytes = 0
        """How much was inflated so far, about."""
        identity = f"{os.path.realpath(outer.name)}\0{outer.identity}\0{SPACING_NBYTES}\0{nbytes}"
        # At the end stands the checksum of the content: of the file of today, whatever its time.
        end = outer.read_at(max(0, outer.size - _END_NBYTES), outer.size)
        self._key = hashlib.sha256(os.fsencode(identity) + end).hexdigest()[:40]
        self._outer = outer
        self._lock = Lock()
        self._reader: Any = None
        self._process = 0
        self._ready = False

    @property
    def ready(self) -> bool:
        """Whether there is an index, so that the first range costs no more than others."""
        self._ready = self._ready or self._reader is not None or self.find() is not None
        return self._ready

    def find(self) -> str | None:
        """The path of the index, if there is one and it is whole."""
        folder = _folder()
        with contextlib.suppress(OSError):
            for name in os.listdir(folder):
                key, _, crc = name.partition(".")[0].partition("-")
                if key == self._key:
                    path = os.path.join(folder, name)
                    if self._mark(path) == crc:
                        return path
        return None

    def readinto_many(self, parts: Sequence[tuple[int, memoryview]]) -> None:
        """Fill many buffers, each from its own position, ascending.

        Raises:
            UnfitError: where the file is not as it should be, or no index can be made.
        """
        with self._lock:
            reader = self._open()
            for start, view in parts:
                self.inflated_nbytes += len(view) + SPACING_NBYTES // 2
                done = 0
                try:
                    reader.seek(start)
                    while done < len(view):
                        count = reader.readinto(view[done:])
                        if not count:  # it says nothing of a file that is cut
                            raise UnfitError
                        done += count
                except (OSError, RuntimeError, ValueError) as error:
                    raise UnfitError from error

    def close(self) -> None:
        """Drop the reader; the file below belongs to another."""
        with self._lock:
            if self._reader is not None and self._process == os.getpid():
                self._reader.close()
            self._reader = None

    def _open(self) -> Any:
        # A reader has threads, and they do not come along when a process is forked.
        if self._reader is None or self._process != os.getpid():
            with _living:
                if _ended.is_set():
                    raise UnfitError
                _live.add(self)
            found = self.find()
            if found is None or not self._import(found):
                if found is not None:  # of another version of the package
                    with contextlib.suppress(OSError):
                        os.unlink(found)
                if not self._import(self._make()):
                    raise UnfitError
        return self._reader

    def _import(self, path: str) -> bool:
        """Begin a reader with an index; False where it does not read it."""
        try:
            reader = _reader_of(self._outer, 1)
        except (OSError, RuntimeError, ValueError) as error:
            raise UnfitError from error
        try:
            reader.import_index(path)
        except (OSError, RuntimeError, ValueError):
            reader.close()
            return False
        self._reader, self._process = reader, os.getpid()
        return True

    def _mark(self, path: str) -> str:
        """What an index file has in its name: no other is, by that name, one of this file."""
        crc = crc32(self._key.encode(), 0)
        with open(path, "rb") as file:
            while piece := file.read(_PIECE_NBYTES):
                crc = crc32(piece, crc)
        return f"{crc:08x}"

    def _make(self) -> str:
        """Make the index, and give it its name."""
        folder = _folder()
        try:
            os.makedirs(folder, exist_ok=True)
            _tidy(folder)
            with tempfile.TemporaryDirectory(prefix=".", dir=folder) as temporary:
                path = os.path.join(temporary, "index")
                with (
                    telling(f"index {os.path.basename(self.name)}", self._outer.size) as tell,
                    Pool(1) as pool,
                    contextlib.closing(_reader_of(self._outer, os.cpu_count() or 1)) as reader,
                ):
                    strict = pool.submit(self._inflate_all, tell)
                    found = _read_all(reader, self.size)
                    if found != strict.result():
                        raise UnfitError
                    reader.export_index(path)
                final = os.path.join(folder, f"{self._key}-{self._mark(path)}.gzidx")
                os.replace(path, final)
                return final
        except (OSError, RuntimeError, ValueError) as error:
            raise UnfitError from error

    def _inflate_all(self, tell: Callable[[int], None]) -> tuple[int, int]:
        """How long the content is, and its checksum, as our own reader finds it."""
        position = 0

        def read(limit: int) -> bytes:
            nonlocal position
            data = self._outer.read_at(position, position + limit)
            position += len(data)
            tell(position)
            return data

        inflater = Inflater(codec_named("gz"), read)
        found = _read_all(inflater, self.size)
        if inflater.problems:
            raise UnfitError
        return found


_live: weakref.WeakSet[IndexedContent] = weakref.WeakSet()
_living = Lock()
_ended = threading.Event()


@atexit.register
def _end() -> None:
    """Close all readers: one that is open when the interpreter ends makes it abort.

    Threads that nobody waits for may be reading still; they go on without an index.
    """
    with _living:
        _ended.set()
        live = [*_live]
    for content in live:
        content.close()


def _read_all(reader: Any, nbytes: int) -> tuple[int, int]:
    """How many bytes come, and their checksum; those of a content that is too long are not read.

    Raises:
        UnfitError: when they are not as many as they should be.
    """
    buffer = memoryview(bytearray(_PIECE_NBYTES))
    count = crc = 0
    while got := reader.readinto(buffer):
        count += got
        crc = crc32(buffer[:got], crc)
        if count > nbytes or _ended.is_set():
            break
    if count != nbytes:
        raise UnfitError
    return count, crc


def _reader_of(outer: LocalFile, parallel: int) -> Any:
    """A reader of the file that is open, whatever lies under its name by now."""
    rapidgzip = import_module("rapidgzip")
    place = f"/proc/self/fd/{outer.fd}"  # opened anew, for a position of its own
    if not os.path.exists(place):
        place = outer.name

    def is_it() -> bool:
        return os.path.samestat(os.stat(place), os.fstat(outer.fd))

    # Asked before as well: a reader that finds no file complains once more when it is freed.
    if not is_it():
        raise UnfitError
    reader = rapidgzip.RapidgzipFile(place, parallelization=parallel, chunk_size=SPACING_NBYTES)
    if not is_it():
        reader.close()
        raise UnfitError
    return reader


def _tidy(folder: str) -> None:
    """Remove what was left here by those who were killed over it."""
    for entry in os.scandir(folder):
        with contextlib.suppress(OSError):
            if entry.name.startswith(".") and time.time() - entry.stat().st_mtime > _LEFT_SECONDS:
                shutil.rmtree(entry.path)


def _folder() -> str:
    return os.path.join(home(), "indexes")
