"""A file of known shape that many write at once, each its own items: `Ground`."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..codecs import codec_of_name
from ..elements import Array, stored_pieces
from ..errors import IdxError, UnsupportedError
from ..gathering import read_items
from ..header import Header
from ..sink import errors_named
from ..source import LocalFile
from ..source.local import write_exactly
from ..source.places import is_url, local_path
from ..staging import atomic_file

__all__ = ["Ground", "laid_out"]


@dataclass(frozen=True)
class Ground:
    """Where the items of a file go, by their number. It pickles, and is used from any process.

    Writing the same items twice does no harm; nobody writes another's.
    """

    name: str
    """What errors call it: the final name."""
    path: str
    """Where it is written meanwhile."""
    header: Header

    def write(self, first: int, block: Array) -> int:
        """Write a block of items from number `first` on, and close the file again.

        Over a network file system, what was written is seen elsewhere when it was closed.

        Returns:
            The number of items.
        """
        offset = self.header.offset_of(first)
        with errors_named(self.name):
            fd = os.open(self.path, os.O_WRONLY | os.O_CLOEXEC)
            try:
                for piece in stored_pieces(block, self.header.stored_dtype):
                    write_exactly(fd, piece, offset)
                    offset += len(piece)
            finally:
                os.close(fd)
        return len(block)

    def read(self, low: int, high: int) -> Array:
        """The items from `low` to `high`, as they were written; a fresh native array."""
        items = np.empty((high - low, *self.header.item_shape), self.header.dtype)
        source = LocalFile(self.path, mapped=False)
        try:
            read_items(source, self.header, low, items)
        finally:
            source.close()
        return items


@contextlib.contextmanager
def laid_out(file: Any, dtype: Any, shape: Sequence[int]) -> Iterator[Ground]:
    """A raw IDX file of this shape, to be filled by position; renamed to its name at the end.

    Its room on the disk is taken at once. After an exception nothing of it is left.

    Raises:
        UnsupportedError: for a type or a shape that IDX has not, and for a name that promises a
            compressed or a remote file, which are written from front to back alone.
        OSError: as the system gives it, a full disk at the beginning.
    """
    name = by_position(file)
    header = Header.of(np.dtype(dtype).name, tuple(shape))
    path = name
    try:
        with atomic_file(name) as path:
            yield lay(path, name, header)
    except OSError as error:
        if error.filename in (None, path):  # and not a file that was read meanwhile
            error.filename = name
            del error.filename2
        raise


def by_position(file: Any) -> str:
    """The path of a file that many are to write at once.

    Raises:
        UnsupportedError: for a name that promises what is written from front to back alone.
    """
    name = local_path(os.fsdecode(file))
    codec = codec_of_name(name)
    if codec is not None or is_url(name):
        kind = f"a {codec.name} file" if codec is not None else "a remote object"
        raise UnsupportedError(
            f"{kind} cannot be written by many at once",
            file=name,
            hint="write a raw file on a disk that all share, and convert it",
        )
    return name


def lay(path: str, name: str, header: Header) -> Ground:
    """Make a file of this header at once in its whole length; its items are zero as yet."""
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
    try:
        if hasattr(os, "posix_fallocate"):
            os.posix_fallocate(fd, 0, header.file_nbytes)
        write_exactly(fd, header.encode(), 0)
    finally:
        os.close(fd)
    return Ground(name, path, header)


def filled(ground: Ground, counts: Iterator[int]) -> None:
    """Make sure that every item was written.

    Raises:
        IdxError: when some are missing: a slab was lost.
    """
    done, wanted = sum(counts), ground.header.shape[0]
    if done != wanted:
        raise IdxError(f"{done:,} of {wanted:,} items were written", file=ground.name)
