"""HDF5: named datasets, through h5py."""

from __future__ import annotations

import os
from typing import Any, Literal

import h5py
import numpy as np

from ..errors import FormatError, UnsupportedError
from .columns import Columns, Sliced
from .roles import in_roles, of_split
from .stored import stored_of

__all__ = ["point_columns", "read_columns", "write_columns"]

_CLASSES = "classes"
"""The attribute that holds the names of the classes."""


def read_columns(path: str, *, dataset: str | None = None, split: str | None = None) -> Columns:
    """Open the datasets of numbers in a file; nothing is read before it is asked for.

    Args:
        path: the file.
        dataset: the one that is meant, by its path (`train/images`); by default all.
        split: train, test …, where names or groups say so (`x_train`, `test/labels`).

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
    compression: Literal["gzip", "lzf"] | None = None,
) -> None:
    """Write all columns as datasets.

    Args:
        path: the file.
        columns: what to write.
        dataset: what the first is called; the others keep their names.
        compression: none is the fastest to read, and lies in one piece.
    """
    with h5py.File(path, "w") as file:
        for number, (name, column) in enumerate(columns.arrays.items()):
            where = name if number or name != "images" else dataset
            packed = compression if column.shape and 0 not in column.shape else None
            target = file.create_dataset(
                where,
                column.shape,
                column.dtype,
                chunks=True if packed else None,
                compression=packed,
            )
            _describe(target, name, columns)
            start = 0
            for block in column.blocks():
                if not column.shape:
                    target[()] = block
                elif block.size:
                    target.write_direct(
                        np.ascontiguousarray(block), dest_sel=np.s_[start : start + len(block)]
                    )
                start += len(block) if block.shape else 1


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
    if columns.classes and name == "labels":
        target.attrs[_CLASSES] = [name or "" for name in columns.classes]
