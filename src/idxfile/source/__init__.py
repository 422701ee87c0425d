"""Where bytes come from.

`open_source` is the one place that sorts out what the user passed: a path, bytes-like data, a
binary file object, a stream. After it nobody asks again. What it returns is asked for ranges of
the *decompressed* file: a range has no position that must be restored, so any number of threads
may ask. Nothing here imports NumPy.
"""

from __future__ import annotations

import io
import os
import stat
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from ..codecs import Codec, Inflater, codec_of_content
from ..errors import FormatError
from ..header import MAX_HEADER_NBYTES, Header, examine
from ..problems import Handling, Problem, settle
from ..signatures import recognise
from .blocked import HEADER_NBYTES, BlockedInflater, member_nbytes
from .fileobject import FileObject
from .frames import FramesInflater, frame_table
from .local import LocalFile
from .memory import Memory
from .places import is_archive, is_url, local_path, may_be_several
from .stream import Spool

if TYPE_CHECKING:
    from .archive import Member
    from .remote import RemoteFile
    from .shards import Shards

__all__ = ["FileObject", "LocalFile", "Memory", "Source", "Spool", "open_source"]

SPOOL_NBYTES = 1 << 28
"""Up to here what is inflated stays in memory, beyond in a temporary file: 256 MiB."""

_MAX_LAYERS = 4


class Source(Protocol):
    """Bytes by range. Every source has these and nothing more is asked of one."""

    @property
    def name(self) -> str:
        """What errors call it."""

    @property
    def size(self) -> int | None:
        """The number of bytes; None while only reading to the end would tell."""

    @property
    def codecs(self) -> tuple[str, ...]:
        """The names of the compressions taken off, the outermost first."""

    @property
    def problems(self) -> list[Problem]:
        """What was found wrong with the way the bytes came, so far."""

    @property
    def buffer(self) -> memoryview | None:
        """All bytes at once without a copy, where that is possible."""

    def read_at(self, start: int, stop: int) -> bytes:
        """The bytes from `start` to `stop`; fewer only where the source ends."""

    def readinto_at(self, start: int, buffer: Any) -> int:
        """Fill `buffer` with the bytes from `start` on; fewer only where the source ends."""

    def close(self) -> None:
        """Drop what idxfile opened. Views of `buffer` that still live stay valid."""


def open_source(
    file: Any,
    *,
    mmap: bool = True,
    spool_nbytes: int = SPOOL_NBYTES,
    writeable: bool = False,
) -> LocalFile | Memory | FileObject | Spool | RemoteFile | Shards | Member:
    """Open whatever the user calls a file, and take the compressions off.

    Args:
        file: a path (str or PathLike), an address (`https://…`, `s3://…`), bytes-like data, or a
            binary file object or stream, which is read from its current position and never closed.
            A list of such, a pattern (`x-*.idx`) or a folder with a set of shards is one file.
        mmap: whether a plain local file is mapped; if not, it is read by position.
        spool_nbytes: what is inflated, or comes from a pipe, is kept in memory up to this size
            and in a temporary file beyond it.
        writeable: open a plain local file for writing in place too.

    Raises:
        TypeError: for anything else, and for a file object opened in text mode.
        OSError: as the system gives it; a folder is an IsADirectoryError.
        FormatError: for a file that is compressed more than four times.
    """
    source = _open_outermost(file, mmap, spool_nbytes, writeable)
    try:
        while codec := codec_of_content(source.read_at(0, 8)):
            if len(source.codecs) == _MAX_LAYERS:
                layers = " in ".join(reversed(source.codecs))
                raise FormatError(
                    f"compressed more than {_MAX_LAYERS} times: {layers}",
                    file=source.name,
                    hint="this is no data file that anybody meant to publish",
                )
            source = Spool.of_inflater(partial(_inflater, codec, source), source, spool_nbytes)
    except BaseException:
        source.close()
        raise
    return source


def _inflater(codec: Codec, source: Source) -> Inflater:
    """What inflates a source in order: side by side, where it is made so."""
    below = InOrder(source)
    inflater: Inflater
    if codec.name == "zst":
        near = isinstance(source, (LocalFile, Memory, FileObject))
        table = frame_table(source) if near else None
        inflater = FramesInflater(codec, below.read, table)
    else:
        kind = BlockedInflater if member_nbytes(source.read_at(0, HEADER_NBYTES)) else Inflater
        inflater = kind(codec, below.read)
    inflater.below = below
    return inflater


def _open_outermost(
    file: Any, mmap: bool, spool_nbytes: int, writeable: bool
) -> LocalFile | Memory | FileObject | Spool | RemoteFile | Shards | Member:
    if isinstance(file, (list, tuple)):
        return _open_several(file, mmap, spool_nbytes)  # type: ignore[return-value]
    if isinstance(file, (str, os.PathLike)):
        place = local_path(os.fsdecode(file))
        if may_be_several(place):
            several = _open_several(place, mmap, spool_nbytes)
            if several is not None:
                return several
        if is_archive(place):
            from .archive import open_member

            return open_member(
                place, lambda where: open_outer_source(where, mmap, spool_nbytes), spool_nbytes
            )
        if is_url(place):
            from .remote import folder_told, open_remote

            with folder_told(place):
                return open_remote(place, spool_nbytes)
        return _open_path(place, mmap, spool_nbytes, writeable)
    if isinstance(file, int):
        raise TypeError("file must be a path, bytes or a file object, not an int")
    array = getattr(file, "__array_interface__", None)
    if array and (len(array["shape"]) != 1 or array["typestr"][1:] != "u1"):
        raise TypeError("an array is no file: idxfile.encode(array) makes the bytes of one")
    try:
        return Memory(memoryview(file).cast("B"), "<bytes>")
    except TypeError:
        pass
    if isinstance(file, io.TextIOBase):
        raise TypeError(f"{file!r} is open in text mode: open it with 'rb'")
    if not hasattr(file, "read"):
        raise TypeError(
            f"file must be a path, bytes-like data or a binary file object, "
            f"not {type(file).__name__}"
        )
    name = getattr(file, "name", None)
    name = name if isinstance(name, str) else f"<{type(file).__name__}>"
    if getattr(file, "seekable", lambda: False)():
        return FileObject(file, name)
    return Spool.of_stream(file, name, spool_nbytes)


def open_outer_source(place: Any, mmap: bool = False, spool_nbytes: int = SPOOL_NBYTES) -> Any:
    """Open a place as it lies there, without taking compressions off."""
    return _open_outermost(place, mmap, spool_nbytes, False)


def _open_several(file: Any, mmap: bool, spool_nbytes: int) -> Shards | None:
    """Open what stands for several files; None where it stands for one."""
    from .finding import absent_told, find_shards
    from .shards import Shards

    found = find_shards(file)
    if found is None:
        return None
    with absent_told(lambda: found):
        return Shards(found, mmap=mmap, spool_nbytes=spool_nbytes)


def _open_path(
    path: str, mmap: bool, spool_nbytes: int, writeable: bool
) -> LocalFile | Spool | Shards:
    mode = os.stat(path).st_mode
    if stat.S_ISDIR(mode):
        several = _open_several(path, mmap, spool_nbytes)
        if several is not None:
            return several
        raise IsADirectoryError(21, "Is a folder; give one of the files in it", path)
    if stat.S_ISREG(mode):
        return LocalFile(path, mapped=mmap, writeable=writeable)
    # A pipe or a device has no size and no positions: it is a stream, and ours to close.
    return Spool.of_stream(open(path, "rb", buffering=0), path, spool_nbytes, owned=True)


class InOrder:
    """The bytes of a source from its first on, for one reader that takes them all."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._position = 0
        in_order = getattr(source, "in_order", None)
        self._stream = in_order() if in_order is not None else None

    @property
    def problems(self) -> list[Problem]:
        """What was found wrong on the way so far."""
        found: list[Problem] = getattr(self._stream, "problems", self._source.problems)
        return found

    def readinto(self, buffer: Any) -> int:
        """Fill `buffer` with the next bytes; fewer only at the end."""
        if self._stream is not None:
            return int(self._stream.readinto(buffer))
        count = self._source.readinto_at(self._position, buffer)
        self._position += count
        return count

    def read(self, limit: int) -> bytes:
        """The next bytes, at least one and at most `limit`; b"" at the end."""
        if self._stream is not None:
            return bytes(self._stream.read(limit))
        buffer = bytearray(limit)
        return bytes(memoryview(buffer)[: self.readinto(buffer)])


def pieces(source: Source, piece_nbytes: int = 1 << 18) -> Iterator[memoryview]:
    """All bytes of a source in order, in constant memory.

    Yields:
        A view of at most `piece_nbytes` bytes, valid until the next is asked for.
    """
    stream = InOrder(source)
    if isinstance(source, Spool):
        # It has made its pieces already. One is read ahead: with the last piece, the end has been
        # seen, and what is wrong there is known.
        piece = stream.read(piece_nbytes)
        while piece:
            following = stream.read(piece_nbytes)
            yield memoryview(piece)
            piece = following
        return
    buffer = memoryview(bytearray(piece_nbytes))
    while count := stream.readinto(buffer):
        yield buffer[:count]


def kind_of(file: Any) -> str | None:
    """What a file is instead of IDX, by its first kilobyte: the name of a row of SIGNATURES."""
    source = open_source(file, mmap=False)
    try:
        row = recognise(header_prefix(source))
    finally:
        source.close()
    return None if row is None else row.name


def header_prefix(source: Source) -> bytes:
    """The first bytes of a source: as many as any header can have, or all there are."""
    return source.read_at(0, MAX_HEADER_NBYTES)


def judge_spooled(
    source: Spool, header: Header, size: int | None, found: list[Problem], problems: Handling
) -> None:
    """Judge a source whose length is known only now that all of it was read.

    Args:
        source: the source.
        header: what its header says.
        size: how many bytes came, at most one more than the header promises.
        found: what was found wrong on the way.
        problems: how to handle that.
    """
    found = list(found)
    if size != header.file_nbytes:
        for problem in examine(header_prefix(source), size)[1]:
            if problem.code == "trailing-data":  # it was read no further than one byte
                problem = replace(problem, message=f"at least {problem.message}")
            found.append(problem)
    settle(found, problems, source.name)
