"""A file of known shape that many write at once, each its own items: `Ground`.

On a disk it has its whole length from the beginning, and is written by position; in a store it is
made of parts. Who writes it need not know which: `cut` tells the ranges to hand out.
"""

from __future__ import annotations

import contextlib
import io
import math
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..codecs import codec_of_name
from ..elements import Array, stored_pieces
from ..errors import IdxError, UnsupportedError
from ..gathering import read_items
from ..header import Header
from ..placing import warn_of_rest
from ..sink import errors_named
from ..source import LocalFile
from ..source.local import write_exactly
from ..source.places import file_of, is_url, local_path, public
from ..staging import atomic_file

if TYPE_CHECKING:
    from ..source.remote.parts import PartedUpload

__all__ = ["Ground", "Layout", "laid", "laid_out"]


@dataclass(frozen=True)
class Layout:
    """Items one after another behind a head, in a file of any format; a `Header` tells as much."""

    head: bytes
    """What stands before the items."""
    shape: tuple[int, ...]
    """The dimensions, items first."""
    stored_dtype: np.dtype[Any]
    """Of the elements as they lie in the file."""

    @property
    def dtype(self) -> np.dtype[Any]:
        """Of the elements once read: native byte order."""
        return self.stored_dtype.newbyteorder("=")

    @property
    def data_offset(self) -> int:
        """The byte at which the items begin."""
        return len(self.head)

    @property
    def item_nbytes(self) -> int:
        """The bytes of one item."""
        return math.prod(self.shape[1:]) * self.stored_dtype.itemsize

    @property
    def nbytes(self) -> int:
        """The bytes of all items."""
        return math.prod(self.shape) * self.stored_dtype.itemsize

    @property
    def file_nbytes(self) -> int:
        """The bytes of the file."""
        return self.data_offset + self.nbytes

    def offset_of(self, item: int) -> int:
        """The byte at which an item begins."""
        return self.data_offset + item * self.item_nbytes

    def encode(self) -> bytes:
        """What stands before the items."""
        return self.head


@dataclass(frozen=True)
class Ground:
    """Where the items of a file go, by their number. It pickles, and is used from any process.

    Writing the same items twice does no harm; nobody writes another's.
    """

    name: str
    """What errors call it: the final name."""
    header: Header | Layout
    step: int
    """What is written at once is a multiple of so many items, from a multiple on, or the rest."""

    def write(self, first: int, block: Array) -> int:
        """Write a block of items from number `first` on.

        Returns:
            The number of items.
        """
        raise NotImplementedError

    def cut(self, items: int) -> Iterator[tuple[int, int]]:
        """All items as ranges that can be written at once, of about so many."""
        count = self.header.shape[0] if self.header.shape else 1
        length = -(-max(1, items) // self.step) * self.step
        return ((low, min(low + length, count)) for low in range(0, count, length))


@dataclass(frozen=True)
class FileGround(Ground):
    """A file that is written by position."""

    path: str
    """Where it is written meanwhile."""

    def write(self, first: int, block: Array) -> int:
        """Write a block of items from number `first` on, and close the file again.

        Over a network file system, what was written is seen elsewhere when it was closed.
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
        assert isinstance(self.header, Header)
        items = np.empty((high - low, *self.header.item_shape), self.header.dtype)
        source = LocalFile(self.path, mapped=False)
        try:
            read_items(source, self.header, low, items)
        finally:
            source.close()
        return items


@dataclass(frozen=True)
class ObjectGround(Ground):
    """An object of a store that is written in parts; the header goes with the first items."""

    upload: PartedUpload

    def write(self, first: int, block: Array) -> int:
        """Send a block of items from number `first` on: one part, or some neighbours."""
        assert first % self.step == 0  # `cut` has told so
        for low in range(0, len(block), self.step):
            number = (first + low) // self.step
            data = io.BytesIO()
            if not number:
                data.write(self.header.encode())
            for piece in stored_pieces(block[low : low + self.step], self.header.stored_dtype):
                data.write(piece)
            self.upload.send(number + 1, data.getvalue())
        return len(block)

    def complete(self) -> None:
        """Make it an object, if every part is there.

        Raises:
            IdxError: when one is not.
        """
        head, nbytes = self.header.data_offset, self.header.item_nbytes
        sizes = [(high - low) * nbytes for low, high in self.cut(self.step)] or [0]
        if not self.header.nbytes:
            self.upload.send(1, self.header.encode())
        self.upload.complete([head + sizes[0], *sizes[1:]])


@contextlib.contextmanager
def laid_out(file: Any, dtype: Any, shape: Sequence[int]) -> Iterator[Ground]:
    """A raw IDX file of this shape, to be filled by many; it has its name at the end.

    Raises:
        UnsupportedError: for a type or a shape that IDX has not, and what `laid` refuses.
        IdxError: when not all of an object was written.
        OSError: as the system gives it, a full disk at the beginning.
    """
    with laid(file, Header.of(np.dtype(dtype).name, tuple(shape))) as ground:
        yield ground


@contextlib.contextmanager
def laid(file: Any, header: Header | Layout) -> Iterator[Ground]:
    """A raw file of this layout, to be filled by many; it has its name at the end.

    The room of a file on the disk is taken at once. After an exception nothing of it is left.

    Raises:
        UnsupportedError: for a name that promises a compressed file, which is written from front
            to back alone, and for a store that takes no parts from many.
        IdxError: when not all of an object was written.
        OSError: as the system gives it, a full disk at the beginning.
    """
    name = writable_by_many(file)
    if is_url(name):
        with _parted(name, header) as ground:
            yield ground
        return
    path = name
    try:
        with atomic_file(name) as path:
            yield lay(path, name, header)
    except OSError as error:
        if error.filename in (None, path):  # and not a file that was read meanwhile
            error.filename = name
            del error.filename2
        raise


@contextlib.contextmanager
def _parted(url: str, header: Header | Layout) -> Iterator[ObjectGround]:
    """An object to be filled by many; nothing of it is left after an exception."""
    from ..source.remote.parts import open_parts

    upload = open_parts(url)
    try:
        ground = ObjectGround(public(url), header, part_items(header), upload)
        yield ground
        ground.complete()
    except BaseException:
        try:
            upload.cancel()
        except OSError as error:  # the one for which it is given up is what matters
            warn_of_rest([f"{public(url)}: {error.args[0]}"])
        raise


def part_items(header: Header | Layout) -> int:
    """How many items go into a part of an object; all of them, where they are not enough for two.

    S3 takes 10,000 parts, each but the last one of 5 MiB at least.
    """
    from ..source.remote import part_nbytes

    count = header.shape[0] if header.shape else 1
    step = max(1, -(-part_nbytes(header.file_nbytes) // max(1, header.item_nbytes)))
    return step if count >= 2 * step and header.nbytes else max(1, count)


def writable_by_many(file: Any) -> str:
    """The path or address of a file that many are to write at once.

    Raises:
        UnsupportedError: for a name that promises what is written from front to back alone, and
            for a store that takes no parts from many.
    """
    name = local_path(os.fsdecode(file))
    if is_url(name):
        from ..source.remote import check_writes
        from ..source.remote.parts import check_parts

        check_writes(name)
        check_parts(name)
    if codec := codec_of_name(file_of(name)):
        raise UnsupportedError(
            f"a {codec.name} file cannot be written by many at once",
            file=public(name),
            hint="write a raw file, and convert it",
        )
    return name


def lay(path: str, name: str, header: Header | Layout) -> FileGround:
    """Make a file of this header at once in its whole length; its items are zero as yet."""
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
    try:
        if hasattr(os, "posix_fallocate"):
            os.posix_fallocate(fd, 0, header.file_nbytes)
        write_exactly(fd, header.encode(), 0)
    finally:
        os.close(fd)
    return FileGround(name, header, 1, path)


def filled(ground: Ground, counts: Iterator[int]) -> None:
    """Make sure that every item was written.

    Raises:
        IdxError: when some are missing: a slab was lost.
    """
    done, wanted = sum(counts), ground.header.shape[0]
    if done != wanted:
        raise IdxError(f"{done:,} of {wanted:,} items were written", file=ground.name)
