"""Where bytes go: a file that appears whole or not at all, a file object, or memory.

A file is written under a temporary name beside its own, made durable, and renamed: write, fsync,
rename, fsync of the folder. Whoever has the old file open or mapped keeps it whole.
"""

from __future__ import annotations

import contextlib
import errno
import io
import os
import secrets
import stat
import sys
import warnings
from array import array
from collections.abc import Iterable, Iterator
from itertools import accumulate
from typing import Any, Protocol

from .codecs import BLOCK_NBYTES, Codec, blocked_member, codec_named, codec_of_name
from .errors import IdxWarning
from .names import INDEX_SUFFIX
from .sending import committed, open_upload_sink
from .source.local import write_exactly
from .source.places import file_of, is_url, local_path, public, refuse_folder

__all__ = ["Sink", "open_sink"]

_PIECE_NBYTES = 1 << 20


class Sink(Protocol):
    """Bytes in order; nothing counts before `commit`."""

    @property
    def name(self) -> str:
        """What errors call it."""

    @property
    def patchable(self) -> bool:
        """Whether `patch` works."""

    def write(self, data: Any) -> None:
        """Write all of `data` behind what was written before."""

    def patch(self, offset: int, data: bytes) -> None:
        """Write over bytes that were written before."""

    def commit(self) -> None:
        """Make it complete and durable, and give it its name."""

    def abort(self) -> None:
        """Leave nothing of it. After `commit` this does nothing."""


def open_sink(
    target: Any,
    *,
    codec: str | None = "auto",
    blocked: bool = False,
    patched: bool = False,
    nbytes: int = 0,
) -> Sink:
    """Open whatever the user wants to write to, with the compression that was chosen.

    Args:
        target: a path, an address, or a writable binary file object (written from its position,
            not closed).
        codec: gz, bz2, xz, zst; None for raw; "auto" goes by the suffix of the name.
        blocked: gz only: many small members, for random access. In a store, a `.gzi` beside the
            object tells where they are.
        patched: whether `patch` will be called. What is written to an address waits in a temporary
            file then, since no part of an object is changed once it was sent.
        nbytes: how many bytes will be written; 0 where that is not known. The parts of a large
            object depend on it.

    Raises:
        ValueError: for an unknown codec, or `blocked` with another codec than gz.
        TypeError: for a target that is neither.
        OSError: as the system gives it.
    """
    path = local_path(os.fsdecode(target)) if isinstance(target, (str, os.PathLike)) else None
    if codec == "auto":
        row = codec_of_name(file_of(path)) if path is not None else None
    else:
        row = None if codec is None else codec_named(codec)
    if blocked and (row is None or row.name != "gz"):
        raise ValueError("blocked=True is a way of writing gz: give a name in .gz, or codec='gz'")
    sink: Sink
    if path is not None:
        refuse_folder(path)
    if path is not None and is_url(path):
        most = nbytes + nbytes // 64  # what is no smaller for being compressed grows a little
        sink = open_upload_sink(path, patched=patched and row is None, nbytes=most)
    elif path is not None:
        sink = _open_path(path)
    elif hasattr(target, "write") and not isinstance(target, io.TextIOBase):
        sink = ObjectSink(target)
    else:
        raise TypeError(
            f"file must be a path or a writable binary file object, not {type(target).__name__}"
        )
    if blocked:
        # Near members are found by hopping from one to the next; in a store a hop is a request.
        return BlockedSink(sink, path + INDEX_SUFFIX if path and is_url(path) else None)
    return sink if row is None else PackedSink(sink, row)


def _open_path(path: str) -> Sink:
    try:
        status = os.stat(path)
    except FileNotFoundError:
        return FileSink(path, os.path.realpath(path), None)
    if stat.S_ISDIR(status.st_mode):
        raise IsADirectoryError(21, "Is a folder; give a file name in it", path)
    if stat.S_ISREG(status.st_mode):
        return FileSink(path, os.path.realpath(path), stat.S_IMODE(status.st_mode))
    # A pipe or a device is written as it stands: there is nothing to replace.
    return ObjectSink(open(path, "wb", buffering=0), path, owned=True)


def put_in_place(temporary: str, final: str) -> None:
    """Make a finished file durable and give it its name, beside which it was written."""
    sync_file(temporary)
    os.replace(temporary, final)
    sync_folder(os.path.dirname(final))


def sync_file(path: str) -> None:
    """Make a file durable that somebody else has written."""
    fd = os.open(path, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def sync_folder(path: str) -> None:
    """Make a rename in a folder durable, where the system has such a thing.

    The file stands whole under its name by now. A folder that may be written and not read, or a
    file system that syncs no folders, is no reason to say that it was not.
    """
    try:
        fd = os.open(path, os.O_RDONLY)
    except PermissionError:
        return
    try:
        os.fsync(fd)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP, errno.EBADF):
            raise
    finally:
        os.close(fd)


@contextlib.contextmanager
def errors_named(name: str) -> Iterator[None]:
    """Errors of the system carry the name that the user gave, not the temporary one, or none."""
    try:
        yield
    except OSError as error:
        error.filename = name
        del error.filename2  # None would be shown: 'name' -> None
        raise


class FileSink:
    """A regular file, written aside and renamed at the end."""

    patchable = True

    def __init__(self, name: str, final: str, mode: int | None) -> None:
        self.name = name
        self._final = final
        self._folder, base = os.path.split(final)
        # A name has 255 bytes at most, a character up to four.
        self._temporary = os.path.join(self._folder, f".{base[:50]}.{secrets.token_hex(4)}.tmp")
        self._position = 0
        self._owner = os.getpid()
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        with errors_named(name):
            self._fd = os.open(self._temporary, flags, 0o666)
        try:
            if mode is not None:
                os.fchmod(self._fd, mode)
        except BaseException:
            self.abort()
            raise

    def write(self, data: Any) -> None:
        view = memoryview(data).cast("B")
        with errors_named(self.name):
            write_exactly(self._fd, view, self._position)
        self._position += len(view)

    def patch(self, offset: int, data: bytes) -> None:
        with errors_named(self.name):
            write_exactly(self._fd, data, offset)

    def commit(self) -> None:
        with errors_named(self.name):
            os.fsync(self._fd)
            os.replace(self._temporary, self._final)
            fd, self._fd = self._fd, -1
            os.close(fd)
            sync_folder(self._folder)

    def abort(self) -> None:
        if self._fd >= 0:
            fd, self._fd = self._fd, -1
            with contextlib.suppress(OSError):
                os.close(fd)
            with contextlib.suppress(OSError):
                if self._owner == os.getpid():  # a forked child leaves its parent's file alone
                    os.unlink(self._temporary)


class ObjectSink:
    """A binary file object, written from its position; ours to close only if we opened it."""

    def __init__(self, file: Any, name: str | None = None, owned: bool = False) -> None:
        given = name or getattr(file, "name", None)
        self.name = given if isinstance(given, str) else f"<{type(file).__name__}>"
        self._file = file
        self._owned = owned
        self.patchable = bool(getattr(file, "seekable", lambda: False)()) and not owned
        self._origin = file.tell() if self.patchable else 0

    def write(self, data: Any) -> None:
        view = memoryview(data).cast("B")
        with errors_named(self.name) if self._owned else contextlib.nullcontext():
            while view:
                view = view[self._write_some(view[: 1 << 30]) :]

    def _write_some(self, piece: memoryview) -> int:
        count = self._file.write(piece)
        if count is None and isinstance(self._file, io.RawIOBase):
            raise BlockingIOError(errno.EAGAIN, "It does not block and takes no more", self.name)
        # Some writers do not say how much they took: all of it.
        return len(piece) if count is None or isinstance(count, str) else int(count)

    def patch(self, offset: int, data: bytes) -> None:
        end = self._file.tell()
        self._file.seek(self._origin + offset)
        self._file.write(data)
        self._file.seek(end)

    def commit(self) -> None:
        flush = getattr(self._file, "flush", None)
        if flush is not None:
            flush()
        self.abort()

    def abort(self) -> None:
        """What a stream was given cannot be taken back; only our own handle is closed."""
        if self._owned:
            self._file.close()


class PackedSink:
    """Compresses on the way to another sink, as one member.

    What comes is cut anew, so that the same content is the same file, in whatever blocks it came.
    """

    patchable = False

    def __init__(self, outer: Sink, codec: Codec) -> None:
        self.name = outer.name
        self._outer = outer
        self._waiting = bytearray()
        """The beginning of a piece."""
        try:
            self._encoder = codec.encoder()
        except BaseException:
            outer.abort()
            raise

    def write(self, data: Any) -> None:
        view = memoryview(data).cast("B")
        while len(view):
            if not self._waiting and len(view) >= _PIECE_NBYTES:
                self._compress(view[:_PIECE_NBYTES])
                view = view[_PIECE_NBYTES:]
                continue
            room = _PIECE_NBYTES - len(self._waiting)
            self._waiting += view[:room]
            view = view[room:]
            if len(self._waiting) == _PIECE_NBYTES:
                self._compress(self._waiting)
                self._waiting = bytearray()

    def _compress(self, piece: Any) -> None:
        packed = self._encoder.compress(piece)
        if packed:
            self._outer.write(packed)

    def patch(self, offset: int, data: bytes) -> None:
        raise ValueError(f"{self.name} is compressed: what was written cannot be changed")

    def commit(self) -> None:
        self._compress(self._waiting)
        self._outer.write(self._encoder.flush())
        self._outer.commit()

    def abort(self) -> None:
        self._outer.abort()


class BlockedSink:
    """Compresses on the way as many small gzip members, in the layout called BGZF.

    Every member holds up to 65,280 bytes and says its own compressed length in an extra field
    (`BC`), so that a reader can hop from member to member; an empty member ends the file.
    `bgzip` and its relatives read and index it, and every gzip reader that reads on behind the
    first member. Source: "Sequence Alignment/Map Format Specification", section 4.1.
    """

    patchable = False

    def __init__(self, outer: Sink, index: str | None = None) -> None:
        """Begin.

        Args:
            outer: where the members go.
            index: the address at which to tell where each begins, as `bgzip` does in a `.gzi` file.
        """
        self.name = outer.name
        self._outer = outer
        self._pending = bytearray()
        self._index = index
        self._lengths = array("I")
        """Of the members, for the index."""

    def write(self, data: Any) -> None:
        view = memoryview(data).cast("B")
        for start in range(0, len(view), _PIECE_NBYTES):
            self._pending += view[start : start + _PIECE_NBYTES]
            whole = len(self._pending) // BLOCK_NBYTES * BLOCK_NBYTES
            self._put(self._pending[at : at + BLOCK_NBYTES] for at in range(0, whole, BLOCK_NBYTES))
            del self._pending[:whole]

    def _put(self, contents: Iterable[bytearray]) -> None:
        members = [blocked_member(content) for content in contents]
        self._outer.write(b"".join(members))
        if self._index is not None:
            self._lengths.extend(map(len, members))

    def patch(self, offset: int, data: bytes) -> None:
        raise ValueError(f"{self.name} is compressed: what was written cannot be changed")

    def commit(self) -> None:
        if self._pending:
            self._put([self._pending])
        self._outer.write(blocked_member(b""))
        self._outer.commit()
        if self._index is not None:
            self._write_index(self._index)

    def _write_index(self, place: str) -> None:
        """Tell where each member begins but the first; the file is whole without it."""
        table = array("Q", [max(0, len(self._lengths) - 1)])
        for number, begin in enumerate(accumulate(self._lengths[:-1]), 1):
            table.extend((begin, number * BLOCK_NBYTES))
        if sys.byteorder == "big":
            table.byteswap()
        try:
            with committed(open_upload_sink(place, patched=False)) as sink:
                sink.write(table.tobytes())
        except OSError as error:
            text = f"{public(place)}: {error.args[0]}; without it, no item can be read alone"
            warnings.warn(text, IdxWarning, stacklevel=2)

    def abort(self) -> None:
        self._outer.abort()
