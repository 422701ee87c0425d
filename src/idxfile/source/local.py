"""A plain file of this machine, mapped or read by position."""

from __future__ import annotations

import contextlib
import errno
import functools
import mmap
import os
import sys
from collections.abc import Iterator
from typing import Any, NamedTuple

from ..problems import Problem

__all__ = ["FileIdentity", "LocalFile", "read_exactly", "write_exactly"]

# Python 3.11 and 3.12 lack the name; Linux has this value on every machine but Alpha, MIPS, SPARC.
_NORESERVE: int = getattr(mmap, "MAP_NORESERVE", 0x4000 if sys.platform == "linux" else 0)


class FileIdentity(NamedTuple):
    """What tells that a file is still the one that was opened."""

    size: int
    mtime_ns: int

    @classmethod
    def of(cls, status: os.stat_result) -> FileIdentity:
        """What the system says of a file."""
        return cls(status.st_size, status.st_mtime_ns)


@functools.cache
def memory_nbytes() -> int:
    """The memory of this machine; where the system does not say, 4 GiB."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return 1 << 32


def digest_of(path: str) -> str:
    """The SHA-256 of a file as it lies there, in hexadecimal."""
    import hashlib

    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def map_private(fd: int, size: int) -> mmap.mmap:
    """A map that reads the file, and whose writes stay in this process.

    It is writeable even where nobody is meant to write, so that a stray write through a tensor
    neither kills the process nor reaches the file; and unreserved, so that a file larger than
    memory maps.
    """
    if sys.platform == "win32":  # pragma: no cover
        return mmap.mmap(fd, size, access=mmap.ACCESS_COPY)
    return mmap.mmap(fd, size, mmap.MAP_PRIVATE | _NORESERVE, prot=mmap.PROT_READ | mmap.PROT_WRITE)


def reserve(nbytes: int) -> mmap.mmap:
    """Fresh zeroed memory that only costs what is written into it, whatever its size.

    Raises:
        MemoryError: when the address space does not hold so much.
    """
    try:
        memory = mmap.mmap(-1, max(1, nbytes), mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _NORESERVE)
    except (OSError, OverflowError, ValueError) as error:
        raise MemoryError(f"{nbytes:,} bytes do not fit into this machine's memory") from error
    if hasattr(mmap, "MADV_HUGEPAGE"):  # a page at a time would take a third of the whole
        with contextlib.suppress(OSError):  # a kernel that has none
            memory.madvise(mmap.MADV_HUGEPAGE)
    return memory


@contextlib.contextmanager
def scratch_named() -> Iterator[None]:
    """A full disk is told with the folder of temporary files, which nobody has named."""
    try:
        yield
    except OSError as error:
        if error.filename is None and error.errno in (errno.ENOSPC, errno.EDQUOT):
            import tempfile

            error.filename = tempfile.gettempdir()
            del error.filename2  # None would be shown: 'name' -> None
        raise


def read_exactly(fd: int, buffer: Any, start: int) -> int:
    """Fill `buffer` from position `start`; fewer only at the end of the file."""
    view = memoryview(buffer).cast("B")
    done = 0
    while done < len(view):
        count = os.preadv(fd, [view[done : done + (1 << 30)]], start + done)
        if count == 0:
            break
        done += count
    return done


def write_exactly(fd: int, data: Any, start: int) -> None:
    """Write all of `data` at position `start`."""
    view = memoryview(data).cast("B")
    while view:
        count = os.pwrite(fd, view[: 1 << 30], start)
        view = view[count:]
        start += count


class LocalFile:
    """A regular file, open for reading, and for writing in place where that is wanted."""

    codecs: tuple[str, ...] = ()

    def __init__(self, path: str, *, mapped: bool = True, writeable: bool = False) -> None:
        self.name = path
        self.mapped = mapped
        self.problems: list[Problem] = []
        access = os.O_RDWR if writeable else os.O_RDONLY
        self.fd = os.open(path, access | getattr(os, "O_BINARY", 0) | os.O_CLOEXEC)
        status = os.fstat(self.fd)
        self.size = status.st_size
        self.identity = FileIdentity.of(status)
        self._buffer: memoryview | None = None

    @property
    def buffer(self) -> memoryview | None:
        """The map, made when it is first asked for; None for an empty file too.

        Where the system allows no map of that size (`ulimit -d`, no overcommitment), there is none,
        and the file is read by position.
        """
        if self._buffer is None and self.mapped and self.size:
            try:
                self._buffer = memoryview(map_private(self.fd, self.size))
            except (OSError, OverflowError, ValueError) as error:
                if getattr(error, "errno", errno.ENOMEM) != errno.ENOMEM:
                    raise
                self.mapped = False
        return self._buffer

    def read_at(self, start: int, stop: int) -> bytes:
        """The bytes from `start` to `stop`; fewer only at the end of the file."""
        stop = min(stop, self.size)
        data = os.pread(self._open(), max(0, stop - start), start)
        if data and len(data) < stop - start:  # beyond 2 GiB, and where a signal came between
            data += self.read_at(start + len(data), stop)
        return data

    def readinto_at(self, start: int, buffer: Any) -> int:
        """Fill `buffer` from byte `start` on; fewer only at the end of the file."""
        return read_exactly(self._open(), buffer, start)

    def check_same(self) -> None:
        """Make sure that nobody has written into the file since it was opened.

        Raises:
            FormatError: when somebody has.
        """
        now = FileIdentity.of(os.fstat(self._open()))
        if now != self.identity:
            problem = Problem(
                "changed",
                f"the file changed while it was open: {now.size:,} bytes now, "
                f"{self.identity.size:,} then",
                found=now,
                expected=self.identity,
                hint="open it again when it has been written",
            )
            raise problem.error(self.name)

    def will_need(self, start: int, nbytes: int) -> None:
        """Have the system begin to read a range that will be asked for soon."""
        if nbytes and hasattr(os, "posix_fadvise"):
            os.posix_fadvise(self._open(), start, nbytes, os.POSIX_FADV_WILLNEED)

    def write_at(self, start: int, data: Any) -> None:
        """Write over the bytes from `start` on, in the file itself."""
        write_exactly(self._open(), data, start)

    def sync(self) -> None:
        """Make what was written durable."""
        os.fsync(self._open())

    def close(self) -> None:
        """Close the file; a map lives as long as somebody has a view of it."""
        self._buffer = None
        if self.fd >= 0:
            fd, self.fd = self.fd, -1
            os.close(fd)

    def _open(self) -> int:
        if self.fd < 0:
            raise ValueError(f"{self.name} is closed")
        return self.fd

    def __del__(self) -> None:
        with contextlib.suppress(Exception):
            self.close()
