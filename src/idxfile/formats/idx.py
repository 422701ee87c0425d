"""IDX itself as a format: a file, or a folder with a pair."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from ..array import open
from ..dataset import Dataset, write_classes
from ..names import file_name, find_partner, pair_names
from ..pairs import open_dataset
from ..writer import create, write
from .columns import Columns, Sliced

__all__ = ["read_columns", "write_columns"]


def read_columns(
    path: str, *, labels: str | None = "auto", split: str | None = None, name: str | None = None
) -> Columns:
    """Open an IDX file, or a pair.

    Args:
        path: a file, or a folder with a pair.
        labels: the file of labels; "auto" finds it by the name of the images; None leaves it.
        split: train, test …, where a folder holds several.
        name: words of the files' names, likewise.
    """
    if os.path.isdir(path):
        ds = open_dataset(path, split=split, name=name)
        return Columns({"images": ds.images, "labels": _as_column(ds)}, ds.classes, ds.split)
    named = file_name(path)
    if labels == "auto":
        labels = find_partner(path) if named and named.role == "images" else None
    if labels is not None:
        ds = open_dataset((path, labels))
        return Columns({"images": ds.images, "labels": _as_column(ds)}, ds.classes, split)
    array = open(path)
    role = named.role if named else "images"
    return Columns({role: array}, close=array.close, split=split)


def _as_column(ds: Dataset) -> Sliced:
    return Sliced(ds.table if ds.table.shape[1] > 1 else ds.labels)


def write_columns(
    path: str, columns: Columns, *, codec: str | None = "auto", blocked: bool = False
) -> None:
    """Write one column as a file, or images and labels as a pair into a folder.

    Args:
        path: a file for one column; a folder, which is filled, for a pair.
        columns: what to write.
        codec: as for `idxfile.write`; in a folder "auto" is raw.
        blocked: as for `idxfile.write`.
    """
    if not os.path.isdir(path):
        _write_column(path, columns.first, codec, blocked)
        return
    codec = None if codec == "auto" else codec
    images, labels = columns.arrays["images"], columns.arrays["labels"]
    names = pair_names(
        columns.split or "train",
        (len(images.shape), images.dtype.name),
        (len(labels.shape), labels.dtype.name),
        codec,
    )
    for name, column in zip(names, (images, labels), strict=True):
        _write_column(os.path.join(path, name), column, codec, blocked)
    if columns.classes:
        write_classes(path, columns.classes)


def _write_column(path: str, column: Any, codec: str | None, blocked: bool) -> None:
    if not column.shape:
        write(path, next(column.blocks()), codec=codec, blocked=blocked)
        return
    writer = create(
        path,
        dtype=column.dtype,
        item_shape=column.shape[1:],
        count=len(column),
        codec=codec,
        blocked=blocked,
    )
    with writer:
        for block in column.blocks():
            writer.append(np.asarray(block))
