"""Items added to a file that is there, in place: `append`."""

from __future__ import annotations

import contextlib
import fcntl
import os
import stat
from collections.abc import Iterator
from typing import Any

from .array import open
from .elements import Array, Cast, stored_pieces
from .errors import UnsupportedError
from .header import COUNT_OFFSET, MAX_DIMENSION, Header
from .opening import open_header
from .source import LocalFile
from .source.finding import find_shards, manifest_listing
from .source.local import write_exactly
from .source.places import is_url, local_path, public
from .writer import as_block, create

__all__ = ["append"]


def append(file: Any, block: Any, *, cast: Cast = None) -> None:
    """Add a block of items to the end of an IDX file, in place.

    The data are written and made durable first, then the four bytes of the count. A crash in
    between leaves the old count and the old items intact, with bytes behind them that a strict
    read names and `repair` trims. Appenders exclude each other by a lock on the file. A
    compressed file is rewritten, atomically.

    Args:
        file: the path of an existing file.
        block: the items, `(items, *item_shape)`.
        cast: None, or "safe" as for `write`.

    Raises:
        ValueError: for a block of another shape.
        UnsupportedError: for a scalar file, another element type, or over 2^32 - 1 items; for a
            shard that a manifest lists.
        FormatError: for a file that is not right as it is.
        OSError: as the system gives it; the old items are intact then.
    """
    if not isinstance(file, (str, os.PathLike)):
        raise TypeError(f"append needs the path of a file, not {type(file).__name__}")
    path = local_path(os.fsdecode(file))
    if is_url(path):
        raise UnsupportedError(
            "an object in a store is not changed in place, and appenders cannot exclude each other",
            file=public(path),
            hint="write a new one: idxfile.concat(new, [old, more])",
        )
    if not os.path.isfile(path) and find_shards(path) is not None:
        raise UnsupportedError(
            "a set of shards is not added to: how many there are stands in every name",
            file=path,
            hint="write a new one: idxfile.concat(new, [old, more], shards=…)",
        )
    if (manifest := manifest_listing(path)) is not None:
        raise UnsupportedError(
            f"{manifest} says how many items this shard has: with more, its set could not be read",
            file=path,
            hint="write a new set of another name, and remove the old one: "
            "idxfile.concat(new, [old, more], shards=…)",
        )
    with _locked(path) as fd:
        source, header = open_header(path, mmap=False)
        with contextlib.closing(source):
            grown = _grown(header, block, cast, path)
            if not isinstance(source, LocalFile):
                _append_compressed(path, grown[0], grown[1])
                return
        _append_raw(fd, path, header, *grown)


def _grown(header: Header, block: Any, cast: Cast, path: str) -> tuple[Header, Array]:
    """The header with the block's items counted in, and the block as it will be written."""
    if header.dialect != "idx":
        raise UnsupportedError(
            "a Lush matrix is read, and never written",
            file=path,
            hint="write it as IDX first: idxfile.write(new, idxfile.read(old))",
        )
    if not header.shape:
        raise UnsupportedError("a scalar has no items to append to", file=path)
    values = as_block(block, header, cast, path)
    count = header.shape[0] + len(values)
    if count > MAX_DIMENSION:
        raise UnsupportedError(
            f"{count:,} items; an IDX file holds {MAX_DIMENSION:,}",
            file=path,
            found=count,
            expected=MAX_DIMENSION,
            hint="write several files",
        )
    return Header.of(header.element.name, (count, *header.item_shape)), values


def _append_raw(fd: int, path: str, old: Header, new: Header, values: Array) -> None:
    position = old.file_nbytes
    counted = False
    try:
        for piece in stored_pieces(values, new.stored_dtype):
            write_exactly(fd, piece, position)
            position += len(piece)
        os.fsync(fd)
        counted = True
        write_exactly(fd, new.shape[0].to_bytes(4, "big"), COUNT_OFFSET)
        os.fsync(fd)
    except BaseException as error:
        # Go back to the old file as far as the system lets us. The items may go only when the
        # disk is certain not to count them any more.
        with contextlib.suppress(OSError):
            if counted:
                write_exactly(fd, old.shape[0].to_bytes(4, "big"), COUNT_OFFSET)
                os.fsync(fd)
            os.ftruncate(fd, old.file_nbytes)
        if isinstance(error, OSError):
            error.filename = path
        raise


def _append_compressed(path: str, new: Header, values: Array) -> None:
    with open(path) as old:
        codec = old.codecs[-1]
        with create(
            path, dtype=old.dtype, item_shape=new.item_shape, count=new.shape[0], codec=codec
        ) as writer:
            for block in old.blocks():
                writer.append(block)
            writer.append(values)


@contextlib.contextmanager
def _locked(path: str) -> Iterator[int]:
    """The file, open for writing and locked against other appenders."""
    while True:
        fd = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX)
            mine, named = os.fstat(fd), os.stat(path)
            if not stat.S_ISREG(mine.st_mode):
                raise UnsupportedError("a pipe or a device has no items to append to", file=path)
            # Whoever held the lock may have put another file in this place.
            if (mine.st_dev, mine.st_ino) == (named.st_dev, named.st_ino):
                yield fd
                return
        finally:
            os.close(fd)
