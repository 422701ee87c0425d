"""IDX itself as a format: a file, or a folder with a pair."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Iterator
from typing import Any, Literal

from ..array import IdxArray
from ..array import open as open_array
from ..classes import read_classes, write_classes
from ..codecs import codec_of_name
from ..dataset import Dataset
from ..elements import stored_pieces
from ..errors import PairError, UnsupportedError
from ..header import Header
from ..names import file_name, pair_names, split_of
from ..pairs import open_dataset
from ..sink import open_sink
from ..source import LocalFile
from ..source.places import beside, file_of, find_partner, is_url, public
from .columns import Columns, Sliced, Streamed, View
from .roles import ALL
from .stored import Stored, write_elements

__all__ = ["lay_columns", "read_columns", "write_columns"]


def read_columns(
    path: str,
    *,
    labels: Literal["auto", "none"] = "auto",
    split: str | None = None,
    name: str | None = None,
) -> Columns:
    """Open an IDX file, or a pair.

    Args:
        path: a file; a folder or a zip archive with a pair; a folder with a single file.
        labels: whether the labels of a file of images are taken, if they lie beside it.
        split: train, test …, where there are several; all takes every pair of a folder.
        name: words of the files' names, likewise.
    """
    if os.path.isdir(path) and split is None and name is None:
        path = _only_file(path) or path
    if os.path.isdir(path) and split == ALL:
        return _all_pairs(path, name)
    if os.path.isdir(path) or _is_zip(path) or (is_url(path) and path.endswith("/")):
        return _pair(open_dataset(path, split=split, name=name))
    named = file_name(file_of(path))
    partner = None
    if named is not None and named.role == "images" and labels == "auto":
        partner = find_partner(path)
    if named is not None and partner is not None:
        folder = beside(path, "") if is_url(path) else os.path.dirname(path)
        return _pair(open_dataset((path, partner)), folder, split_of(named.shared))
    array = open_array(path, mmap=False)
    return Columns(
        {named.role if named else "images": _column(array)},
        split=split_of(named.shared) if named else None,
        close=array.close,
    )


def _only_file(folder: str) -> str | None:
    """The IDX file of a folder that holds no other."""
    names = [name for name in os.listdir(folder) if file_name(name) and name[0] != "."]
    return os.path.join(folder, names[0]) if len(names) == 1 else None


def _is_zip(path: str) -> bool:
    if is_url(path) or not os.path.isfile(path):
        return False
    with open(path, "rb") as file:
        return file.read(4) == b"PK\x03\x04" and zipfile.is_zipfile(path)


def _all_pairs(folder: str, name: str | None) -> Columns:
    """Every pair of a folder, each under the name of its split."""
    found = (file_name(entry) for entry in sorted(os.listdir(folder)))
    splits = dict.fromkeys(split_of(each.shared) for each in found if each is not None)
    parts = {part: _pair(open_dataset(folder, split=part, name=name)) for part in splits if part}
    if not parts:
        raise PairError("no names of splits in this folder", file=folder)

    def close() -> None:
        for part in parts.values():
            part.close()

    arrays = {f"{s}/{role}": a for s, part in parts.items() for role, a in part.arrays.items()}
    return Columns(arrays, next(iter(parts.values())).classes, close=close)


def _pair(ds: Dataset, folder: str | None = None, split: str | None = None) -> Columns:
    (images,) = ds.images._sources
    assert isinstance(images, IdxArray)
    classes = ds.classes or (read_classes(folder) if folder is not None else None)
    table = Sliced(ds.table if ds.table.shape[1] > 1 else ds.labels)
    return Columns(
        {"images": _column(images), "labels": table}, classes, ds.split or split, images.close
    )


def _column(array: IdxArray) -> Any:
    """An array as a column of constant memory: read by position, or inflated in order."""
    header = array.header
    if isinstance(array._source, LocalFile):
        return Stored(array._source, header.data_offset, header.stored_dtype, array.shape)
    if array.codecs and array.ndim and os.path.isfile(array.name):
        return Inflated(array)
    return array


class Inflated(Streamed):
    """A compressed file: its items come in order, or by themselves where it can be read so."""

    def __init__(self, array: IdxArray) -> None:
        self._array = array
        super().__init__(
            array.shape, array.dtype, lambda nbytes: array.passing(block_nbytes=nbytes)
        )

    def part(self, low: int, high: int) -> View | None:
        """The items from `low` to `high` by themselves."""
        able = self._array.random_access and self._array.portable
        return View(self._array, items=range(low, high)) if able else None


def write_columns(
    path: str,
    columns: Columns,
    *,
    codec: Literal["auto", "gz", "bz2", "xz", "zst"] | None = "auto",
    blocked: bool = False,
) -> None:
    """Write one column as a file, or images and labels as a pair into a folder.

    Args:
        path: a file for one column; a folder, which is filled, for a pair.
        columns: what to write.
        codec: as for `idxfile.write`; in a folder "auto" is raw.
        blocked: as for `idxfile.write`.
    """
    packed = _codec_of(path, codec)
    for file, name in _files(path, columns, packed):
        _write_column(file, columns.arrays[name], packed, blocked)
    _write_classes(path, columns)


def lay_columns(
    path: str,
    columns: Columns,
    *,
    codec: Literal["auto", "gz", "bz2", "xz", "zst"] | None = "auto",
    blocked: bool = False,
) -> list[tuple[str, str, Header]]:
    """How raw files lie, and the names of the classes beside them; as for `write_columns`.

    Raises:
        UnsupportedError: for compressed ones.
    """
    packed = _codec_of(path, codec) or ("gz" if blocked else None)
    if packed:
        raise UnsupportedError(
            f"a {packed} file is written from front to back, and not by many at once",
            file=public(path),
            hint="--shards (shards=) has each write a file; or write a raw one",
        )
    _write_classes(path, columns)
    found = [(file, name, columns.arrays[name]) for file, name in _files(path, columns, None)]
    return [(file, name, Header.of(each.dtype.name, each.shape)) for file, name, each in found]


def _write_classes(path: str, columns: Columns) -> None:
    if columns.classes and os.path.isdir(path):
        write_classes(path, columns.classes)


def _codec_of(path: str, codec: str | None) -> str | None:
    """The codec that is meant: "auto" goes by the name of a file; in a folder it is raw."""
    if codec != "auto":
        return codec
    row = None if os.path.isdir(path) else codec_of_name(file_of(path))
    return row.name if row else None


def _files(path: str, columns: Columns, codec: str | None) -> Iterator[tuple[str, str]]:
    """The path of each file that is written, and the name of its column."""
    if not os.path.isdir(path):
        yield path, next(iter(columns.arrays))
        return
    for name, column in columns.arrays.items():
        split, _, role = name.rpartition("/")
        kind = (len(column.shape), column.dtype.name)
        names = pair_names(split or columns.split or "train", kind, kind, codec)
        yield os.path.join(path, names[role == "labels"]), name


def _write_column(path: str, column: Any, codec: str | None, blocked: bool) -> None:
    header = Header.of(column.dtype.name, column.shape)
    with open(path, "wb") as file:
        if codec is None and not blocked:
            file.write(header.encode())
            write_elements(file, column, header.stored_dtype)
            return
        sink = open_sink(file, codec=codec, blocked=blocked)
        sink.write(header.encode())
        for block in column.blocks():
            for piece in stored_pieces(block, header.stored_dtype):
                sink.write(piece)
        sink.commit()
