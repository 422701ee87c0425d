"""Members of zip archives as sources: `zip://MEMBER::ARCHIVE`, of an archive here or in a store.

A member that is stored is a range of the archive, and has random access; one that is deflated comes
in order. Of an archive in a store only its directory and the member are fetched.
"""

from __future__ import annotations

import contextlib
import io
import os
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from ..errors import FormatError, printable
from ..problems import Problem
from .places import public, split_archive
from .remote.object import RemoteIdentity
from .stream import Spool

__all__ = ["Member", "member_names", "open_member", "with_members"]

_LOCAL_HEADER_NBYTES = 30
_SHOWN = 5


def open_member(place: str, open_outer: Any, spool_nbytes: int) -> Member | Spool:
    """Open a member of an archive.

    Args:
        place: `zip://MEMBER::ARCHIVE`.
        open_outer: opens the archive as a source.
        spool_nbytes: as for `open_source`.

    Raises:
        FileNotFoundError: for a member that is not there.
        FormatError: for an archive that is none, or a member that cannot be read.
    """
    name, where = split_archive(place)
    outer = open_outer(where)
    try:
        with _faults(place):
            archive = zipfile.ZipFile(_Seekable(outer))
            try:
                info = archive.getinfo(name)
            except KeyError:
                there = _shown(archive)
                text = f"No member {name} in it; there are {there}"
                raise FileNotFoundError(2, text, public(where)) from None
            if info.flag_bits & 1:
                raise FormatError("the member is encrypted", file=public(place), hint="unpack it")
            version = f"{info.CRC:08x} in {outer.identity!r}" if _identity(outer) else None
            identity = RemoteIdentity(info.compress_size, version) if version else None
            if info.compress_type == zipfile.ZIP_STORED:
                return Member(outer, archive, info, public(place), identity)

            def stream() -> _InOrder:
                return _InOrder(archive.open(info), public(place))

            first = stream()
    except BaseException:
        outer.close()
        raise
    spool = Spool.of_stream(first, public(place), spool_nbytes, again=stream)
    spool.identity = identity
    spool.closes(outer.close)
    return spool


def member_names(place: str, open_outer: Any) -> list[str]:
    """The members of an archive, as places."""
    _, where = split_archive(place)
    outer = open_outer(where)
    try:
        with _faults(place), zipfile.ZipFile(_Seekable(outer)) as archive:
            return [f"zip://{n}::{where}" for n in sorted(_files(archive))]
    finally:
        outer.close()


def with_members(problems: Iterable[Problem], source: Any) -> list[Problem]:
    """The problems of a source; of a bare archive the hint tells what is in it."""
    found = list(problems)
    if not any(problem.code == "foreign" for problem in found) or source.size is None:
        return found
    if source.codecs or source.read_at(0, 4) != b"PK\x03\x04":
        return found
    with contextlib.suppress(zipfile.BadZipFile, NotImplementedError, OSError, ValueError):
        with zipfile.ZipFile(_Seekable(source)) as archive:
            hint = f"give one of its members, as zip://NAME::{source.name}: {_shown(archive)}"
        return [replace(p, hint=hint) if p.code == "foreign" else p for p in found]
    return found


def _identity(outer: Any) -> Any:
    return getattr(outer, "identity", None)


def _files(archive: zipfile.ZipFile) -> list[str]:
    return [name for name in archive.namelist() if not name.endswith("/")]


def _shown(archive: zipfile.ZipFile) -> str:
    names = _files(archive)
    more = f" and {len(names) - _SHOWN:,} more" if len(names) > _SHOWN else ""
    return ", ".join(map(printable, names[:_SHOWN])) + more if names else "none"


@contextlib.contextmanager
def _faults(place: str) -> Iterator[None]:
    """What zipfile raises, as ours."""
    try:
        yield
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as error:
        hint = "fetch the archive again, or unpack it by another program"
        raise FormatError(
            f"cannot be read: {printable(str(error))}", file=public(place), hint=hint
        ) from error


class Member:
    """A member that is stored as it is: a range of its archive."""

    codecs: tuple[str, ...] = ()

    def __init__(
        self,
        outer: Any,
        archive: zipfile.ZipFile,
        info: zipfile.ZipInfo,
        name: str,
        identity: RemoteIdentity | None,
    ) -> None:
        start = info.header_offset
        head = outer.read_at(start, start + _LOCAL_HEADER_NBYTES)
        lengths = (int.from_bytes(head[at : at + 2], "little") for at in (26, 28))
        self.name = name
        self.size = info.file_size
        self.problems: list[Problem] = []
        self.identity = identity
        self._outer = outer
        self._archive = archive
        self._info = info
        self._start = start + _LOCAL_HEADER_NBYTES + sum(lengths)
        if self._start + self.size > outer.size:
            raise zipfile.BadZipFile(f"{info.filename} ends behind the archive")

    @property
    def buffer(self) -> memoryview | None:
        """All bytes, where the archive is mapped or in memory."""
        whole: memoryview | None = self._outer.buffer
        return None if whole is None else whole[self._start : self._start + self.size]

    def read_at(self, start: int, stop: int) -> bytes:
        """The bytes from `start` to `stop`; fewer only at the end."""
        stop = min(stop, self.size)
        data: bytes = self._outer.read_at(self._start + start, self._start + max(start, stop))
        return data

    def readinto_at(self, start: int, buffer: Any) -> int:
        """Fill `buffer` from byte `start` on; fewer only at the end."""
        view = memoryview(buffer).cast("B")[: max(0, self.size - start)]
        return int(self._outer.readinto_at(self._start + start, view))

    def __getattr__(self, name: str) -> Any:
        # Many ranges at once are taken where the archive takes them.
        if name == "readinto_many" and hasattr(self._outer, name):
            outer, begin = self._outer, self._start
            return lambda parts: outer.readinto_many([(begin + at, view) for at, view in parts])
        raise AttributeError(name)

    def in_order(self) -> _InOrder:
        """All bytes from the first on; their checksum is verified at the end."""
        with _faults(self.name):
            return _InOrder(self._archive.open(self._info), self.name)

    def close(self) -> None:
        """Close the archive."""
        self._outer.close()


class _InOrder:
    """The content of a member in order, with its faults as ours."""

    def __init__(self, file: Any, name: str) -> None:
        self._file = file
        self._name = name

    def readinto(self, buffer: Any) -> int:
        view = memoryview(buffer).cast("B")
        done = 0
        while done < len(view):
            piece = self.read(min(len(view) - done, 1 << 20))
            if not piece:
                break
            view[done : done + len(piece)] = piece
            done += len(piece)
        return done

    def read(self, limit: int) -> bytes:
        with _faults(self._name):
            return bytes(self._file.read(limit))


class SourceFile(io.RawIOBase):
    """A source as a file object, which can only be read."""

    def __init__(self, source: Any) -> None:
        self._source = source
        self._position = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        base = (0, self._position, self._source.size or 0)[whence]
        self._position = max(0, base + offset)
        return self._position

    def readinto(self, buffer: Any) -> int:
        count: int = self._source.readinto_at(self._position, buffer)
        self._position += count
        return count


class _Seekable(SourceFile):
    """A source as a file object for zipfile, which asks for small pieces near the end."""

    def __init__(self, source: Any) -> None:
        if source.size is None:  # it comes in order, and its end is read first
            source.load()
        super().__init__(source)
        self._tail_start = max(0, source.size - (1 << 16))
        self._tail: bytes | None = None

    def read(self, size: int = -1) -> bytes:
        stop = self._source.size if size < 0 else min(self._source.size, self._position + size)
        if self._position >= self._tail_start:
            if self._tail is None:  # the directory of an archive, by one request
                self._tail = self._source.read_at(self._tail_start, self._source.size)
            low = self._position - self._tail_start
            data = self._tail[low : max(low, stop - self._tail_start)]
        else:
            data = self._source.read_at(self._position, max(self._position, stop))
        self._position += len(data)
        return data
