"""HDF5: named datasets, through h5py."""

from __future__ import annotations

import io
import os
from collections.abc import Callable
from typing import Any, Literal

import h5py
import numpy as np

from ..errors import FormatError, UnsupportedError
from .columns import Columns, Sliced, in_chunks
from .layout import chunk_items
from .roles import in_roles, is_label, of_split
from .stored import stored_of, write_elements

__all__ = ["point_columns", "read_columns", "write_columns"]

_CHUNK_NBYTES = 1 << 18

_CLASSES = "classes"
"""The attribute that holds the names of the classes."""


def read_columns(path: str, *, dataset: str | None = None, split: str | None = None) -> Columns:
    """Open the datasets of numbers in a file; nothing is read before it is asked for.

    Args:
        path: the file.
        dataset: the one that is meant, by its path (`train/images`); by default all.
        split: train, test …, where names or groups say so (`x_train`, `test/labels`); or all.

    Raises:
        FormatError: for a file that is damaged.
        UnsupportedError: when there is no such dataset.
    """
    try:
        file = h5py.File(path, "r")
    except OSError as error:
        if not os.path.isfile(path):
            raise
        raise FormatError(f"the HDF5 file cannot be read: {error}", file=path) from error
    try:
        found = _datasets(file)
        if dataset is not None and dataset.strip("/") not in found:
            there = ", ".join(found) or "none"
            raise UnsupportedError(f"there is no dataset {dataset!r} of numbers", hint=there)
        if dataset is not None:
            found = {"images": found[dataset.strip("/")]}
        if not found:
            raise UnsupportedError("the file holds no dataset of numbers", file=path)
        chosen, split = of_split(found, split)
        names = next((d.attrs[_CLASSES] for d in chosen.values() if _CLASSES in d.attrs), None)
        classes = None if names is None else tuple(str(name) or None for name in names)
        columns = {name: _column(each) for name, each in chosen.items()}
        return Columns(in_roles(columns), classes, split, file.close)
    except BaseException:
        file.close()
        raise


def _datasets(file: Any) -> dict[str, Any]:
    """Path → dataset of numbers, of the file's own hierarchy."""
    found = {}

    def look(name: str, thing: Any) -> None:
        numbers = isinstance(thing, h5py.Dataset) and thing.shape is not None
        if numbers and thing.dtype.kind in "biuf" and not name.startswith("#"):
            found[name] = thing

    file.visititems(look)
    return found


def _column(dataset: Any) -> Sliced:
    return Sliced(dataset, align=dataset.chunks[0] if dataset.chunks else 1)


def write_columns(
    path: str,
    columns: Columns,
    *,
    dataset: str = "images",
    byteorder: Literal["native", "big"] = "native",
    compression: Literal["gzip", "lzf"] | None = None,
) -> None:
    """Write all columns as datasets.

    Args:
        path: the file.
        columns: what to write.
        dataset: what the first is called; the others keep their names.
        byteorder: "big" keeps IDX's own order, so that the elements are copied as they lie; HDF5
            reads both.
        compression: none is the fastest to read, and lies in one piece.
    """
    order: Literal[">", "="] = ">" if byteorder == "big" else "="
    places: dict[str, int] = {}
    with _Plain(path, "w+") as plain, h5py.File(plain, "w") as file:
        for name, column in columns.arrays.items():
            where = dataset if name == "images" else name
            dtype = column.dtype.newbyteorder(order)
            if 0 in column.shape or not column.shape:
                target = file.create_dataset(where, column.shape, dtype)
                target[()] = next(column.blocks(), np.empty(column.shape, dtype))
            elif compression is not None:
                target = _chunked(file, where, column.shape, dtype, compression)
                for start, block in in_chunks(column, target.chunks[0]):
                    target[start : start + len(block)] = block
                    plain.check()
            else:
                target = _laid_out(file, where, column.shape, dtype)
                places[name] = target.id.get_offset()
            _describe(target, name, columns)
    plain.check()
    with open(path, "r+b") as file:
        for name, offset in places.items():
            file.seek(offset)
            column = columns.arrays[name]
            write_elements(file, column, column.dtype.newbyteorder(order))


class _Plain(io.FileIO):
    """The file that HDF5 writes to; after a first failure it takes everything and keeps nothing.

    HDF5 cannot give a file up that cannot be written: it tries again when it is closed, and again
    at the end of the process, where it crashes. So it is not told.
    """

    error: OSError | None = None

    def check(self) -> None:
        """Raise what went wrong."""
        if self.error is not None:
            raise self.error

    def write(self, data: Any) -> int:
        """Write all of `data`."""
        view = memoryview(data).cast("B")
        while view and self.error is None:
            view = view[self._tried(super().write, view) :]
        return len(data)

    def truncate(self, size: int | None = None) -> int:
        """Give the file a length."""
        return self._tried(super().truncate, size)

    def _tried(self, work: Callable[[Any], int], argument: Any) -> int:
        try:
            return 0 if self.error else work(argument)
        except OSError as error:
            self.error = error
            return 0


def _laid_out(file: Any, name: str, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Any:
    """A dataset whose place in the file is settled, so that its elements can be written there."""
    early = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    early.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
    early.set_fill_time(h5py.h5d.FILL_TIME_NEVER)
    return file.create_dataset(name, shape, dtype, dcpl=early)


def _chunked(file: Any, name: str, shape: tuple[int, ...], dtype: np.dtype[Any], how: str) -> Any:
    """A compressed dataset, in chunks of whole items."""
    items = chunk_items(shape, dtype.itemsize, _CHUNK_NBYTES, even=False)
    return file.create_dataset(name, shape, dtype, chunks=(items, *shape[1:]), compression=how)


def point_columns(path: str, columns: Columns, *, relative: bool = False) -> None:
    """Write a file of a few bytes whose datasets are the elements of the source, where they lie.

    Args:
        path: the file.
        columns: what to point to.
        relative: name the source relative to the new file; who reads it must set
            HDF5_EXTFILE_PREFIX to ${ORIGIN} then.

    Raises:
        UnsupportedError: for a scalar.
    """
    folder = os.path.dirname(os.path.realpath(path))
    with h5py.File(path, "w") as file:
        for name, column in columns.arrays.items():
            stored = stored_of(column)
            assert stored is not None  # the pump has looked
            if not column.shape:
                raise UnsupportedError("HDF5 does not point to a scalar", file=path)
            place = os.path.realpath(stored.source.name)
            place = os.path.relpath(place, folder) if relative else place
            target = file.create_dataset(
                name,
                column.shape,
                stored.stored_dtype,
                external=[(place, stored.offset, stored.nbytes)] if stored.nbytes else None,
            )
            _describe(target, name, columns)


def _describe(target: Any, name: str, columns: Columns) -> None:
    if columns.classes and is_label(name):
        target.attrs[_CLASSES] = [name or "" for name in columns.classes]
