"""Writing: the header first, items after it, the first dimension settled last.

Every verb here either finishes a whole file or leaves what was there before.
"""

from __future__ import annotations

import contextlib
import io
import operator
import weakref
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from .array import IdxArray, open
from .cutting import open_shards_sink
from .elements import Array, Cast, fitted, idx_type_name, stored_pieces
from .errors import FormatError, UnsupportedError
from .header import COUNT_OFFSET, MAX_DIMENSION, Header
from .sending import committed
from .sink import Sink, open_sink

__all__ = ["IdxWriter", "concat", "create", "encode", "write"]


def write(
    file: Any,
    array: Any,
    *,
    dtype: Any = None,
    cast: Cast = None,
    codec: str | None = "auto",
    blocked: bool = False,
) -> None:
    """Write an array as an IDX file, atomically and durably.

    The file appears whole under its name or not at all; an old file of that name, and every map
    of it, stays whole until then. Peak memory is the array and a few MiB.

    Args:
        file: a path, or a writable binary file object.
        array: anything `np.asarray` takes: any byte order, strides and memory order. Written in C
            order, most significant byte first.
        dtype: the element type wanted; None is the array's own.
        cast: None writes the six types of IDX exactly and refuses others; "safe" changes the type
            where every value survives (bool to uint8, int64 labels to the smallest that holds
            them).
        codec: "auto" goes by the suffix of the name (.gz, .bz2, .xz, .zst); or gz, bz2, xz, zst;
            None for raw.
        blocked: gz only: many small members, for random access. Most readers read on behind the
            first member; some in browsers do not.

    Raises:
        UnsupportedError: when IDX cannot hold the values without loss; the hint names a type that
            could.
        OSError: as the system gives it; nothing is left behind.

    Example:
        >>> import idxfile, io
        >>> file = io.BytesIO()
        >>> idxfile.write(file, [[1, 2], [3, 300]], cast="safe")
        >>> file.getvalue().hex(" ", 2)
        '0000 0b02 0000 0002 0000 0002 0001 0002 0003 012c'
    """
    values = fitted(array, dtype, cast)
    header = Header.of(values.dtype.name, values.shape)
    opened = open_sink(file, codec=codec, blocked=blocked, nbytes=header.file_nbytes)
    with committed(opened) as sink:
        sink.write(header.encode())
        for piece in stored_pieces(values, header.stored_dtype):
            sink.write(piece)


def encode(
    array: Any,
    *,
    dtype: Any = None,
    cast: Cast = None,
    codec: str | None = None,
    blocked: bool = False,
) -> bytes:
    """The bytes of the IDX file that `write` would make of an array.

    Args:
        array: as for `write`.
        dtype: as for `write`.
        cast: as for `write`.
        codec: None for raw; or gz, bz2, xz, zst.
        blocked: as for `write`.

    Raises:
        UnsupportedError: as for `write`.

    Example:
        >>> import idxfile, numpy as np
        >>> idxfile.encode(np.array([1, -1], "int16")).hex(" ")
        '00 00 0b 01 00 00 00 02 00 01 ff ff'
    """
    file = io.BytesIO()
    write(file, array, dtype=dtype, cast=cast, codec=codec, blocked=blocked)
    return file.getvalue()


def create(
    file: Any,
    *,
    dtype: Any,
    item_shape: Sequence[int] | int = (),
    count: int | None = None,
    cast: Cast = None,
    codec: str | None = "auto",
    blocked: bool = False,
    shards: int | None = None,
    shard_nbytes: int | None = None,
) -> IdxWriter:
    """Start a new IDX file whose items come block by block.

    Args:
        file: a path, or a writable binary file object.
        dtype: the element type.
        item_shape: the shape of one item, without dimension 0; a number for one dimension.
        count: how many items will come; None settles it at `close`, which needs a raw file that
            can be written over. Pipes and codecs need the count.
        cast: as for `write`, for each block.
        codec: as for `write`.
        blocked: as for `write`.
        shards: write so many files instead of one, `x-00000-of-00042.idx` … for `x.idx`, the items
            spread evenly over them in order, and a manifest beside them; needs `count`.
        shard_nbytes: likewise, files of about so many bytes each before compression; their number
            is settled at `close`.

    Returns:
        An `IdxWriter`, to be used in a `with` statement: nothing stands under the final name
        before it ends, and nothing is left if it ends by an exception.

    Raises:
        UnsupportedError: for an element type or a shape that IDX cannot hold.
        ValueError: without `count` where it is needed.
        OSError: as the system gives it.

    Example:
        >>> import idxfile, io, numpy as np
        >>> file = io.BytesIO()
        >>> with idxfile.create(file, dtype="uint8", item_shape=(2,)) as w:
        ...     w.append(np.array([[1, 2]], "uint8"))
        ...     w.append(np.array([[3, 4], [5, 6]], "uint8"))
        >>> idxfile.read(file.getvalue()).shape
        (3, 2)
    """
    header = Header.of(idx_type_name(dtype), (count or 0, *_as_shape(item_shape)))
    sink: Sink
    if shards is not None or shard_nbytes is not None:
        sink = open_shards_sink(
            file,
            header,
            count=count,
            shards=shards,
            shard_nbytes=shard_nbytes,
            codec=codec,
            blocked=blocked,
        )
    else:
        sink = open_sink(
            file, codec=codec, blocked=blocked, patched=count is None, nbytes=header.file_nbytes
        )
    if count is None and not sink.patchable:
        sink.abort()
        raise ValueError(
            f"{sink.name}: the number of items stands at the front, and cannot be written there "
            "later: give count="
        )
    return IdxWriter(sink, header, count=count, cast=cast)


class IdxWriter:
    """A new IDX file that takes items block by block. Made by `idxfile.create`."""

    def __init__(
        self, sink: Sink, header: Header, *, count: int | None = None, cast: Cast = None
    ) -> None:
        self._sink = sink
        self._header = header
        self._expected = count
        self._cast: Cast = cast
        self._count = 0
        # A writer that nobody closes leaves nothing: this runs when it is forgotten, and at exit.
        self._finalizer = weakref.finalize(self, sink.abort)
        try:
            sink.write(header.encode())
        except BaseException:
            self.abort()
            raise

    @property
    def name(self) -> str:
        """The name of the file, as errors show it."""
        return self._sink.name

    @property
    def dtype(self) -> np.dtype[Any]:
        """The element type, in native byte order."""
        return self._header.dtype

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape so far: the items appended, and the shape of an item."""
        return (self._count, *self._header.item_shape)

    @property
    def closed(self) -> bool:
        """Whether it was closed, or gave up."""
        return not self._finalizer.alive

    def __len__(self) -> int:
        return self._count

    def __repr__(self) -> str:
        state = ", closed" if self.closed else ""
        return f"<IdxWriter {self.name!r}: {self._header.element.name} {self.shape}{state}>"

    def append(self, block: Any) -> None:
        """Write a block of items `(items, *item_shape)` behind those before.

        Raises:
            ValueError: for a block of another shape, or more items than `count`.
            UnsupportedError: for values that the element type does not hold.
            OSError: as the system gives it. The writer has then given up: nothing is left.
        """
        self._check_open()
        values = as_block(block, self._header, self._cast, self.name)
        count = self._count + len(values)
        limit = MAX_DIMENSION if self._expected is None else self._expected
        if count > limit:
            raise ValueError(f"{self.name}: {count:,} items, and there is room for {limit:,}")
        try:
            for piece in stored_pieces(values, self._header.stored_dtype):
                self._sink.write(piece)
        except BaseException:
            self.abort()
            raise
        self._count = count

    def close(self) -> None:
        """Settle the number of items, make the file durable, and give it its name.

        Raises:
            ValueError: when fewer items came than `count` promised; nothing is left then.
            OSError: as the system gives it; nothing is left then.
        """
        if self.closed:
            return
        try:
            if self._expected is None:
                self._sink.patch(COUNT_OFFSET, self._count.to_bytes(4, "big"))
            elif self._count != self._expected:
                raise ValueError(
                    f"{self.name}: {self._count:,} items came, {self._expected:,} were promised: "
                    "nothing was written"
                )
            self._sink.commit()
        except BaseException:
            self.abort()
            raise
        self._finalizer.detach()

    def abort(self) -> None:
        """Give up: leave nothing of the new file."""
        self._finalizer()

    def _check_open(self) -> None:
        if self.closed:
            raise ValueError(f"{self.name} is closed")

    def __enter__(self) -> IdxWriter:
        self._check_open()
        return self

    def __exit__(self, kind: type[BaseException] | None, *exception: object) -> None:
        if kind is None:
            self.close()
        else:
            self.abort()


def as_block(block: Any, header: Header, cast: Cast, name: str) -> Array:
    """`block` as items of a file: the shape checked, the type kept or safely cast.

    Raises:
        ValueError: for another shape.
        UnsupportedError: for another type, or a value that would not survive.
    """
    values = fitted(block, header.element.name, cast)
    if values.ndim != header.ndim or values.shape[1:] != header.item_shape:
        expected = ", ".join(map(str, ("items", *header.item_shape)))
        raise ValueError(f"{name}: a block of shape {values.shape}, expected ({expected})")
    return values


def _as_shape(item_shape: Sequence[int] | int) -> tuple[int, ...]:
    """A shape as NumPy takes it: of one dimension, its length alone will do."""
    sides = (item_shape,) if hasattr(item_shape, "__index__") else item_shape
    return tuple(operator.index(side) for side in sides)


def concat(
    file: Any,
    files: Iterable[Any],
    *,
    codec: str | None = "auto",
    blocked: bool = False,
    shards: int | None = None,
    shard_nbytes: int | None = None,
) -> None:
    """Write the items of many files one after another into one new file, streaming.

    Args:
        file: where to: a path, or a writable binary file object.
        files: the files, in order; anything that `open` takes.
        codec: as for `write`.
        blocked: as for `write`.
        shards: as for `create`: so many files instead of one.
        shard_nbytes: likewise.

    Raises:
        FormatError: when the files do not fit together: the message names the one that differs.
        UnsupportedError: for scalars, and for over 2^32 - 1 items together.
        OSError: as the system gives it; nothing is left then.
    """
    with contextlib.ExitStack() as stack:
        arrays = [stack.enter_context(open(part, mmap=False)) for part in files]
        if not arrays:
            raise ValueError("concat needs at least one file")
        first = arrays[0]
        for array in arrays:
            _check_fits(array, first)
        count = sum(map(len, arrays))
        writer = create(
            file,
            dtype=first.dtype,
            item_shape=first.header.item_shape,
            count=count,
            codec=codec,
            blocked=blocked,
            shards=shards,
            shard_nbytes=shard_nbytes,
        )
        with writer:
            for array in arrays:
                for block in array.blocks():
                    writer.append(block)


def _check_fits(array: IdxArray, first: IdxArray) -> None:
    if not array.shape:
        raise UnsupportedError("a scalar has no items to concatenate", file=array.name)
    mine, wanted = array.header, first.header
    if (mine.element, mine.item_shape) != (wanted.element, wanted.item_shape):
        raise FormatError(
            f"items of {mine.element.name} {mine.item_shape}, "
            f"expected {wanted.element.name} {wanted.item_shape} as in {first.name}",
            file=array.name,
            found=str(mine),
            expected=str(wanted),
            hint="only files of equal items make one file",
        )
