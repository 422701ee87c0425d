"""Columns whose elements lie in a plain file as they are: copied in the kernel, or pointed to."""

from __future__ import annotations

import errno
import math
import mmap
import os
from collections.abc import Callable, Iterator
from typing import Any, Protocol

import numpy as np

from ..elements import Array, as_bytes, read_elements, stored_pieces
from ..errors import TruncatedError
from ..lazyarray import DEFAULT_BLOCK_NBYTES
from ..opening import check_identity
from ..source import LocalFile
from ..source.local import FileIdentity, write_exactly
from ..source.places import from_anywhere
from ..source.pool import Pool
from .blocks import steps
from .columns import Column, View

__all__ = ["Stored", "stored_of", "write_elements"]

_COPIED_NBYTES = 1 << 24
"""What one call to the kernel copies: as often progress is told."""

_BUFFER_NBYTES = 1 << 20
"""What is copied, or turned, at once: as much as a processor's cache holds."""

_NOT_COPIED = {errno.EXDEV, errno.ENOSYS, errno.EINVAL, errno.EOPNOTSUPP, errno.EPERM, errno.EBADF}
"""What the kernel says where it does not copy between two files: then we do."""


class Stored:
    """A column whose elements lie in C order in a plain file; read by position.

    Args:
        source: the file.
        offset: the byte at which the elements begin.
        dtype: of the elements, in the byte order of the file.
        shape: of all items.
    """

    def __init__(
        self, source: LocalFile, offset: int, dtype: np.dtype[Any], shape: tuple[int, ...]
    ) -> None:
        self.source = source
        self.offset = offset
        self.stored_dtype = dtype
        self.dtype: np.dtype[Any] = dtype.newbyteorder("=")
        self.shape = shape

    def __len__(self) -> int:
        return self.shape[0]

    @property
    def nbytes(self) -> int:
        """The bytes of all elements, exact."""
        return math.prod(self.shape) * self.dtype.itemsize

    def __getitem__(self, key: slice) -> Array:
        """A fresh native array of the items of a slice."""
        items = range(len(self))[key]
        if not items:
            return np.empty((0, *self.shape[1:]), self.dtype)
        low, high = min(items[0], items[-1]), max(items[0], items[-1]) + 1
        block = self._read(self.part(low, high))
        return block[:: items.step] if items.step > 0 else block[::-1][:: -items.step]

    def blocks(self, *, block_nbytes: int = DEFAULT_BLOCK_NBYTES) -> Iterator[Array]:
        """All items in order, as fresh native arrays of about `block_nbytes`."""
        if not self.shape:
            yield self._read(self)
            return
        for low, high in steps(self.shape, self.dtype, block_nbytes):
            yield self._read(self.part(low, high))

    def part(self, low: int, high: int) -> Stored:
        """The items from `low` to `high`, in their place."""
        item_nbytes = math.prod(self.shape[1:]) * self.dtype.itemsize
        shape = (high - low, *self.shape[1:])
        return Stored(self.source, self.offset + low * item_nbytes, self.stored_dtype, shape)

    def __reduce__(self) -> tuple[Any, ...]:
        """Where it lies, and not the data."""
        place = from_anywhere(self.source.name)
        return _found, (place, self.source.identity, self.offset, self.stored_dtype, self.shape)

    @staticmethod
    def _read(part: Stored) -> Array:
        target = np.empty(part.shape, part.dtype)
        read_elements(part.source, part.offset, target, part.stored_dtype)
        return target


def _found(path: str, identity: FileIdentity, *layout: Any) -> Stored:
    """A column in a file that is opened again.

    Raises:
        FormatError: when that has changed meanwhile.
    """
    source = LocalFile(path, mapped=False)
    try:
        check_identity(path, source, identity)
        return Stored(source, *layout)
    except BaseException:
        source.close()
        raise


class _File(Protocol):
    """A binary file that is written from its position on."""

    def write(self, data: Any, /) -> Any: ...
    def flush(self) -> None: ...
    def fileno(self) -> int: ...
    def tell(self) -> int: ...
    def seek(self, offset: int, whence: int = 0, /) -> int: ...


def stored_of(column: Any) -> Stored | None:
    """Where the elements of a column lie, if they lie in a plain file one after another."""
    if not isinstance(column, View):
        return column if isinstance(column, Stored) else None
    inner = stored_of(column.column)
    if inner is None or column.change is not None:
        return None
    items = column.items
    if items is None or items == range(len(inner)):
        return inner
    if items.step != 1:
        return None
    return inner.part(items.start, max(items.start, items.stop))


def write_elements(file: _File, column: Column, dtype: np.dtype[Any]) -> None:
    """Write all elements of a column in C order, from the position of a file on.

    Args:
        file: a file that has a descriptor.
        column: the column.
        dtype: of the elements as they shall lie in the file: the column's, in some byte order.
    """
    stored = stored_of(column)
    tell = column.tell if isinstance(column, View) else None
    if stored is None:
        for block in column.blocks():
            for piece in stored_pieces(block, dtype):
                file.write(piece)
    elif stored.stored_dtype == dtype:
        file.flush()
        copy_elements(stored, file.fileno(), file.tell(), tell)
        file.seek(stored.nbytes, os.SEEK_CUR)
    else:
        for elements in _turned(stored, dtype):
            file.write(as_bytes(elements))
            if tell is not None:
                tell(elements.nbytes)


def _turned(stored: Stored, dtype: np.dtype[Any]) -> Iterator[Array]:
    """All elements in another byte order, in pieces that fit into a processor's cache.

    Two buffers are used in turn: the next piece is read and turned while this one is written.
    """
    size, step = stored.nbytes // dtype.itemsize, _BUFFER_NBYTES // dtype.itemsize
    raw = np.empty(min(size, step), stored.stored_dtype)
    buffers = [np.empty(min(size, step), dtype) for _ in range(2)]

    def turn(start: int, target: Array) -> Array:
        count = min(step, size - start)
        offset = start * dtype.itemsize
        got = stored.source.readinto_at(stored.offset + offset, as_bytes(raw[:count]))
        if got < raw[:count].nbytes:
            raise _shorter(stored, offset + got)
        target[:count] = raw[:count]
        return target[:count]

    with Pool(1) as reader:
        coming = reader.submit(turn, 0, buffers[0])
        for number, start in enumerate(range(0, size, step), 1):
            elements = coming.result()
            if start + step < size:
                coming = reader.submit(turn, start + step, buffers[number % 2])
            yield elements


def _shorter(stored: Stored, done: int) -> TruncatedError:
    return TruncatedError(
        f"{done:,} of {stored.nbytes:,} bytes: the file is shorter than it was",
        file=stored.source.name,
        offset=stored.offset + done,
        found=done,
        expected=stored.nbytes,
        hint="another program shortened it meanwhile",
    )


def copy_elements(
    stored: Stored, target: int, offset: int, tell: Callable[[int], None] | None
) -> None:
    """Copy elements as they lie, in the kernel where that is possible and not slower.

    Args:
        stored: the elements.
        target: the descriptor of the file that they are copied to.
        offset: where in it.
        tell: called with the bytes of each piece.

    Raises:
        TruncatedError: when the source has become shorter than it was.
    """
    buffer = memoryview(bytearray(min(_BUFFER_NBYTES, stored.nbytes)))
    in_kernel = _is_kernel_faster(stored.offset, target, offset)
    done, total = 0, stored.nbytes
    while done < total:
        start, goal, left = stored.offset + done, offset + done, total - done
        count: int | None = None
        if in_kernel:
            count = _copy_in_kernel(
                stored.source.fd, target, min(_COPIED_NBYTES, left), start, goal
            )
            in_kernel = count is not None
        if count is None:
            # Pieces end where pages of the target do.
            piece = buffer[: min(left, len(buffer) - goal % mmap.PAGESIZE % len(buffer))]
            count = stored.source.readinto_at(start, piece)
            write_exactly(target, piece[:count], goal)
        if not count:
            raise _shorter(stored, done)
        done += count
        if tell is not None:
            tell(count)


def _is_kernel_faster(start: int, target: int, goal: int) -> bool:
    """Whether copying in the kernel pays.

    On a disk of this machine it does only for pages that lie alike in both files: 47 MB of others
    took 50 ms on ext4, and 38 through memory. In memory (tmpfs) it always does, and a network's
    file system may copy without sending: such have no device of their own.
    """
    alike = (start - goal) % mmap.PAGESIZE == 0
    return hasattr(os, "copy_file_range") and (alike or os.major(os.fstat(target).st_dev) == 0)


def _copy_in_kernel(source: int, target: int, count: int, start: int, goal: int) -> int | None:
    """Copy some bytes between two files; None where the kernel does not."""
    try:
        return os.copy_file_range(source, target, count, start, goal)
    except OSError as error:
        if error.errno not in _NOT_COPIED:
            raise
        return None
