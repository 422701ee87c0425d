"""Datasets of Ray Data as files: `write_idx`."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import ray.data
from ray.data.block import BlockAccessor
from ray.data.datasource import Datasink
from ray.exceptions import RayTaskError

from ...array import open as open_idx
from ...cutting import shard_count
from ...elements import Array, exactly
from ...errors import IdxError, UnsupportedError
from ...gathering import scatter
from ...header import IDX_TYPE_NAMES, MAX_DIMENSION, Header
from ...items import Items
from ...slabs.choosing import write_items
from ...slabs.filling import writable_by_many
from ...source import LocalFile
from ...source.local import read_exactly, write_exactly
from ...source.places import is_url, public
from ...staging import atomic_file, hidden_folder
from ...writer import IdxWriter, create
from .workers import workers_at_hand

__all__ = ["IdxDatasink", "write_idx"]

_COPY_NBYTES = 1 << 23


def write_idx(
    ds: ray.data.Dataset,
    file: Any,
    labels_file: Any = None,
    *,
    image: str = "image",
    label: str = "label",
    item: str | None = "item",
    dtype: Any = None,
    label_dtype: Any = None,
    shards: int | None = None,
    shard_nbytes: int | None = None,
    **options: Any,
) -> None:
    """Write a dataset of Ray Data into one raw IDX file, and its labels into another; or as shards.

    Every worker writes its rows by position, in the order of the column of item numbers; numbers
    that are missing (rows were filtered out) leave no hole. The files get their names at the end,
    and workers see them under the same paths.

    How many rows come is known at the end: shards are made then, of a raw file beside them, each by
    one worker.

    Args:
        ds: a dataset.
        file: the path for the column `image`.
        labels_file: the path for the column `label`; None leaves the labels out.
        image: the name of that column: tensors of one shape, or numbers.
        label: the name of that column.
        item: the name of the column of item numbers, each of which stands there once. None takes
            the rows in their order, through this process, where there is no such column.
        dtype: the element type to write, where every value survives in it; None is the column's.
        label_dtype: that of the labels. Ray makes int64 of numbers that go through Python.
        shards: write so many files instead of one, `x-00000-of-00042.idx` … for `x.idx`, with a
            manifest; their suffix may be that of a codec. Labels have as many.
        shard_nbytes: likewise, as many as keep files of images at about so many bytes.
        options: what `ray.data.Dataset.write_datasink` takes: `concurrency` …

    Raises:
        UnsupportedError: for a column that is missing, that has rows of several shapes or types,
            or a type that IDX has not; for a value that would not survive; for an item that is
            there twice; for a file that cannot be written by position (compressed, or remote).
        OSError: as the system gives it.
    """
    columns = [Column(image, os.fsdecode(file), dtype)]
    if labels_file is not None:
        columns.append(Column(label, os.fsdecode(labels_file), label_dtype))
    with contextlib.ExitStack() as stack:
        if shards is not None or shard_nbytes is not None:
            aside = stack.enter_context(hidden_folder(_folder_of(columns[0])))
            paths = [os.path.join(aside, str(number)) for number in range(len(columns))]
            if item is not None:
                for path in paths:
                    _begin(path)
        elif item is not None:
            paths = [stack.enter_context(_unsized(column.file)) for column in columns]
        else:
            paths = [column.file for column in columns]
        with _own_errors():
            if item is None:
                _stream(ds, columns, paths)
            else:
                ds.write_datasink(IdxDatasink(columns, paths, item), **options)
        if shards is not None or shard_nbytes is not None:
            _cut(columns, paths, shards, shard_nbytes)


def _folder_of(column: Column) -> str:
    """The folder that shards are made in."""
    if is_url(column.file):
        raise UnsupportedError(
            "how many rows come is known at the end: shards are made beside the file then",
            file=public(column.file),
            hint="write shards on a disk that all share, and copy them, the manifest last",
        )
    return os.path.dirname(os.path.realpath(column.file))


def _cut(
    columns: Sequence[Column], paths: Sequence[str], shards: int | None, shard_nbytes: int | None
) -> None:
    """Cut raw files into shards, as many for each."""
    workers = workers_at_hand()
    for column, path in zip(columns, paths, strict=True):
        with open_idx(path) as array:
            shards = shard_count(array.header, shards, shard_nbytes)
            shard_nbytes = None
            write_items(Items([array]), column.file, shards=shards, executor=workers)


@dataclass(frozen=True)
class Column:
    """A column of a dataset that becomes a file."""

    name: str
    file: str
    """The final name."""
    dtype: Any
    """The element type; None for the column's own."""

    def of(self, batch: dict[str, Array]) -> tuple[Array, Header]:
        """Its values in a batch, and the header of a file with items like these and none in it.

        Raises:
            UnsupportedError: where there is none, and for values that IDX does not hold.
        """
        values = _column(batch, self.name, "image= and label= name other columns")
        name = np.dtype(self.dtype or values.dtype).name
        if values.dtype.name != name and values.dtype.kind in "biuf":
            values = exactly(values, np.dtype(name))
        if values.dtype.name not in IDX_TYPE_NAMES:
            raise UnsupportedError(
                f"column {self.name!r} is {values.dtype.name}, which an IDX file cannot hold",
                file=self.file,
                found=values.dtype.name,
                expected=IDX_TYPE_NAMES,
                hint="tensors of several shapes are made one in map_batches"
                if values.dtype == object
                else "dtype= and label_dtype= take the type that holds all values",
            )
        return values, Header.of(name, (0, *values.shape[1:]))


class IdxDatasink(Datasink[Any]):
    """Where Ray Data writes items to; `write_idx` makes it, and gives the files their names.

    Args:
        columns: what is written.
        paths: for each column, where it is written meanwhile.
        item: the name of the column of item numbers.
    """

    def __init__(self, columns: Sequence[Column], paths: Sequence[str], item: str) -> None:
        self._columns = columns
        self._paths = paths
        self._item = item

    def write(self, blocks: Iterable[Any], ctx: Any) -> list[tuple[Array, list[Header]]]:
        """Write the rows of some blocks to their places.

        Returns:
            For each block the numbers of its items as runs, and the headers of its columns.
        """
        return [
            self._write(_numpy(block))
            for block in blocks
            if BlockAccessor.for_block(block).num_rows()
        ]

    def _write(self, batch: dict[str, Array]) -> tuple[Array, list[Header]]:
        numbers = _column(batch, self._item, "item=None takes the rows in their order")
        whole = numbers.dtype.kind in "iu" and numbers.ndim == 1
        if not (whole and numbers.min() >= 0 and numbers.max() < MAX_DIMENSION):
            raise UnsupportedError(f"column {self._item!r} holds no item numbers")
        order = np.argsort(numbers, kind="stable")
        numbers = numbers[order].astype(np.int64)
        headers = []
        for column, path in zip(self._columns, self._paths, strict=True):
            values, header = column.of(batch)
            file = LocalFile(path, mapped=False, writeable=True)
            try:
                scatter(file, header, numbers, values[order])
            finally:
                file.close()
            headers.append(header)
        return _runs_of(numbers), headers

    def on_write_complete(self, write_result: Any) -> None:
        """Join what the workers tell, close the gaps, and write the headers."""
        written = [block for blocks in write_result.write_returns for block in blocks]
        runs = np.concatenate([block[0] for block in written] or [np.empty((0, 2), np.int64)])
        runs = runs[np.argsort(runs[:, 0], kind="stable")]
        twice = np.flatnonzero(runs[1:, 0] < runs[:-1, 1])
        if twice.size:
            raise UnsupportedError(
                f"item {runs[twice[0] + 1, 0]:,} is there twice",
                file=self._columns[0].file,
                hint=f"number the rows anew in column {self._item!r}",
            )
        if not written:
            raise _no_rows(self._columns[0])
        kinds = zip(*(headers for _, headers in written), strict=True)
        for column, path, found in zip(self._columns, self._paths, kinds, strict=True):
            header, *others = set(found)
            if others:
                raise UnsupportedError(
                    f"column {column.name!r} has items of {header} and of {others[0]}",
                    file=column.file,
                )
            _settle(path, header, runs)


def _numpy(block: Any) -> dict[str, Array]:
    columns: dict[str, Array] = BlockAccessor.for_block(block).to_batch_format("numpy")
    return columns


def _column(columns: dict[str, Array], name: str, hint: str) -> Array:
    if name not in columns:
        known = ", ".join(map(repr, columns))
        raise UnsupportedError(f"there is no column {name!r}, but {known}", hint=hint)
    return columns[name]


def _no_rows(column: Column) -> UnsupportedError:
    return UnsupportedError("no rows: what items they would be is not known", file=column.file)


def _runs_of(numbers: Array) -> Array:
    """Ascending numbers as runs `(first, behind the last)`."""
    ends = np.flatnonzero(np.diff(numbers) != 1)
    return np.stack([numbers[[0, *(ends + 1)]], numbers[[*ends, -1]] + 1], axis=1)


@contextlib.contextmanager
def _unsized(path: str) -> Iterator[str]:
    """A file that is written by position before its length is known."""
    if is_url(path):
        raise UnsupportedError(
            "an object cannot be written by many at once before its length is known",
            file=public(path),
            hint="item=None sends the rows in their order, through this process",
        )
    with atomic_file(writable_by_many(path)) as temporary:
        _begin(temporary)
        yield temporary


def _begin(path: str) -> None:
    """Make an empty file."""
    os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o666))


def _settle(path: str, header: Header, runs: Array) -> None:
    """Move every run to where the one before it ends, and write the header for so many items."""
    nbytes = header.item_nbytes
    file = LocalFile(path, mapped=False, writeable=True)
    try:
        done = 0
        for start, stop in runs.tolist():
            if start != done:
                here, there = header.offset_of(start), header.offset_of(done)
                _move(file, here, there, (stop - start) * nbytes)
            done += stop - start
        header = Header.of(header.element.name, (done, *header.item_shape))
        os.truncate(path, header.file_nbytes)
        file.write_at(0, header.encode())
    finally:
        file.close()


def _move(file: LocalFile, source: int, target: int, nbytes: int) -> None:
    """Move bytes towards the beginning of a file."""
    for done in range(0, nbytes, _COPY_NBYTES):
        piece = bytearray(min(_COPY_NBYTES, nbytes - done))
        read_exactly(file.fd, piece, source + done)
        write_exactly(file.fd, piece, target + done)


def _stream(ds: ray.data.Dataset, columns: Sequence[Column], paths: Sequence[str]) -> None:
    """Write the rows in their order, one batch after the other."""
    order = ds.context.execution_options
    before, order.preserve_order = order.preserve_order, True
    writers: dict[Column, IdxWriter] = {}
    try:
        with contextlib.ExitStack() as stack:
            for batch in ds.iter_batches(batch_size=None, batch_format="numpy"):
                for column, path in zip(columns, paths, strict=True):
                    values, header = column.of(batch)
                    if column not in writers:
                        kind, shape = header.element.name, header.item_shape
                        writer = create(path, dtype=kind, item_shape=shape)
                        writers[column] = stack.enter_context(writer)
                    writers[column].append(values)
            if not writers:
                raise _no_rows(columns[0])
    finally:
        order.preserve_order = before


@contextlib.contextmanager
def _own_errors() -> Iterator[None]:
    """An error of ours that Ray brings back from a worker is raised as the one that it was."""
    try:
        yield
    except Exception as error:
        cause: BaseException | None = error
        while cause is not None and not isinstance(cause, RayTaskError):
            cause = cause.__cause__
        inner = getattr(cause, "cause", None)
        while inner is not None and not isinstance(inner, IdxError):
            inner = inner.__cause__
        if inner is None:
            raise
        # Ray writes advice about retries behind the message.
        inner.args = (str(inner.args[0]).partition("\nFailed to apply")[0],)
        raise inner from None
