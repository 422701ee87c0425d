"""Zarr: a folder with an array for each column, through zarr-python. Version 3 is written."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import zarr

from ..errors import FormatError, UnsupportedError
from .columns import Columns, Sliced, in_chunks
from .layout import axes, chunk_items
from .roles import in_roles, of_split

__all__ = ["read_columns", "write_columns"]

_CHUNK_NBYTES = 1 << 20
_CLASSES = "classes"
"""The attribute of the group that holds the names of the classes."""


def read_columns(path: str, *, array: str | None = None, split: str | None = None) -> Columns:
    """Open a Zarr array, or the arrays of a group, version 2 or 3.

    Args:
        path: the folder.
        array: the one that is meant, by its path; by default all.
        split: train, test …, where names or groups say so (`x_train`, `test/labels`); or all.

    Raises:
        FormatError: for a folder that zarr does not open.
        UnsupportedError: when there is no such array.
    """
    try:
        opened = zarr.open(path, mode="r", path=array)
    except (ValueError, KeyError, OSError, TypeError) as error:
        raise FormatError(f"the Zarr folder cannot be read: {error}", file=path) from error
    if isinstance(opened, zarr.Array):
        return Columns(in_roles({(array or "images").rpartition("/")[2]: _column(opened)}))
    members = sorted(opened.members(max_depth=None))
    arrays = {
        name: _column(member)
        for name, member in members
        if isinstance(member, zarr.Array) and np.dtype(member.dtype).kind in "biuf"
    }
    if not arrays:
        raise UnsupportedError("the group holds no array of numbers", file=path)
    chosen, split = of_split(arrays, split)
    names = opened.attrs.get(_CLASSES)
    classes = tuple(str(n) or None for n in names) if isinstance(names, list) else None
    return Columns(in_roles(chosen), classes, split)


def _column(array: Any) -> Sliced:
    chunks = (getattr(array, "shards", None) or array.chunks) if array.ndim else ()
    return Sliced(array, align=chunks[0] if chunks else 1)


def write_columns(
    path: str,
    columns: Columns,
    *,
    compression: Literal["auto", "none"] = "auto",
    chunk_nbytes: int = _CHUNK_NBYTES,
) -> None:
    """Write a group with an array for each column, cut into chunks of whole items.

    Args:
        path: the folder.
        columns: what to write.
        compression: "auto" is zarr's own choice (Zstandard); "none" is the fastest to read.
        chunk_nbytes: the bytes of a chunk, about; a whole chunk is read for one item.
    """
    group = zarr.open_group(path, mode="w", zarr_format=3)
    if columns.classes:
        group.attrs[_CLASSES] = [name or "" for name in columns.classes]
    for name, column in columns.arrays.items():
        shape: tuple[int, ...] = column.shape
        items = chunk_items(shape, column.dtype.itemsize, chunk_nbytes, even=False)
        array = group.create_array(
            name,
            shape=shape,
            dtype=column.dtype,
            chunks=(items, *(max(1, n) for n in shape[1:])) if shape else (),
            compressors="auto" if compression == "auto" else None,
            dimension_names=axes(len(shape)),
        )
        if not shape:
            array[()] = next(column.blocks())
            continue
        for start, block in in_chunks(column, items):
            array[start : start + len(block)] = block
