"""Datasets of Ray Data as files: `write_idx`."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator, Sequence
from typing import Any

import ray.data
from ray.exceptions import RayTaskError

from ...array import open as open_idx
from ...cutting import shard_count
from ...errors import IdxError
from ...items import Items
from ...placing import hidden_place, new_together, refuse_other_sets
from ...shards import named_shards
from ...slabs.choosing import write_items
from ...slabs.filling import writable_by_many
from ...source.places import beside, file_of, is_url
from ...staging import atomic_file
from ...writer import IdxWriter, create
from .datasink import Column, IdxDatasink, no_rows
from .workers import workers_at_hand

__all__ = ["write_idx"]


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

    The order is that of the column of item numbers; numbers that are missing (rows were filtered
    out) leave no hole. On a disk every worker writes its rows by position, under a path that all of
    them see; in a store as an object that nobody sees, its rows in order. The files get their
    names at the end.

    How many rows come is known at the end: shards are made then, each by one worker; and so is an
    object, of which each sends parts, as S3 takes them.

    Args:
        ds: a dataset.
        file: the path or the address for the column `image`.
        labels_file: the same for the column `label`; None leaves the labels out.
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
            there twice; for a single file that is compressed, or an object of a store that takes
            no parts from many.
        FileExistsError: for another set of shards of this name; in a store, for any.
        OSError: as the system gives it.
    """
    columns = [Column(image, os.fsdecode(file), dtype)]
    if labels_file is not None:
        columns.append(Column(label, os.fsdecode(labels_file), label_dtype))
    several = shards is not None or shard_nbytes is not None
    with contextlib.ExitStack() as stack:
        places = [
            stack.enter_context(_place_for(column.file, item is not None, several))
            for column in columns
        ]
        with _own_errors():
            sink = IdxDatasink(columns, places, item or "")
            if item is None:
                _stream(ds, columns, places)
            else:
                ds.write_datasink(sink, **options)
        found = [objects or place for objects, place in zip(sink.objects, places, strict=True)]
        if several:
            with open_idx(found[0], mmap=False) as array:
                shards = shard_count(array.header, shards, shard_nbytes)
            stack.enter_context(new_together([column.file for column in columns], shards))
        for column, there in zip(columns, found, strict=True):
            if several or isinstance(there, list):
                with open_idx(there, mmap=False) as array:
                    items = Items([array], sink.index if isinstance(there, list) else None)
                    _gather(items, column.file, shards)


def _gather(items: Items, file: str, shards: int | None) -> None:
    """Have all workers write a file or shards; where items hop, they lie in runs already."""
    write_items(items, file, shards=shards, executor=workers_at_hand(), most=sys.maxsize)


@contextlib.contextmanager
def _place_for(file: str, by_many: bool, several: bool) -> Iterator[str]:
    """Where the rows of a column are written, until all of them are there.

    Args:
        file: the final name.
        by_many: whether all workers write them, as they come; else one in order.
        several: whether shards are made of them.
    """
    with contextlib.ExitStack() as stack:
        place = file
        if several and is_url(file):  # to be told early
            names = named_shards(os.path.basename(file_of(file)), 1)
            refuse_other_sets(beside(file, ""), names)
        elif by_many and not several:
            file = writable_by_many(file)
        if several or (by_many and is_url(file)):
            place = stack.enter_context(hidden_place(file))
        elif by_many:
            place = stack.enter_context(atomic_file(file))
        if by_many and not is_url(place):
            os.close(os.open(place, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o666))
        yield place


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
                raise no_rows(columns[0])
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
