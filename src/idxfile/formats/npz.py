"""NumPy's .npz: named arrays in a zip archive, each a .npy file."""

from __future__ import annotations

import math
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Literal

import numpy as np

from ..elements import Array, as_bytes, stored_pieces
from ..errors import FormatError
from .blocks import steps
from .columns import Columns, Sliced, Streamed
from .npy import check_length, read_header, write_header
from .roles import in_roles, of_split

__all__ = ["read_columns", "write_columns"]

_KERAS = {"images": "x", "labels": "y"}
_NAMES_OF_CLASSES = "classes"


def read_columns(path: str, *, split: str | None = None) -> Columns:
    """Open the arrays of an archive; each is read in order, and its checksum is held.

    An array in Fortran order is read whole.

    Args:
        path: the file.
        split: train, test …, where names say so (`x_train`, `test_labels`); or all.

    Raises:
        FormatError: for an archive that is damaged.
        UnsupportedError: for arrays of Python objects.
    """
    arrays: dict[str, Any] = {}
    with _archive(path) as archive:
        members = [info for info in archive.infolist() if info.filename.endswith(".npy")]
        for info in members:
            arrays[info.filename.removesuffix(".npy")] = _column(archive, info, path)
    if not arrays:
        raise FormatError("this archive holds no .npy file", file=path)
    names = arrays.pop(_NAMES_OF_CLASSES, None) if len(arrays) > 1 else None
    if names is not None and names.dtype.kind != "U":
        arrays, names = {**arrays, _NAMES_OF_CLASSES: names}, None
    classes = names and tuple(str(n) or None for block in names.blocks() for n in block.tolist())
    arrays, split = of_split(arrays, split)
    return Columns(in_roles(arrays), classes, split)


def _column(archive: zipfile.ZipFile, info: zipfile.ZipInfo, path: str) -> Sliced | Streamed:
    """A member as a column; its declared sizes are held against each other first."""
    name = f"{path}: {info.filename}"
    with archive.open(info) as file:
        shape, fortran, dtype = read_header(file, name)
        offset = file.tell()
        check_length(info.file_size - offset, shape, dtype, name)
        if not shape or (fortran and len(shape) > 1):
            flat = np.empty(math.prod(shape), dtype)
            _fill(file, flat, name)
            return Sliced(flat.reshape(shape, order="F" if fortran else "C"))

    def blocks(block_nbytes: int) -> Iterator[Array]:
        with _archive(path) as archive, archive.open(info) as file:
            file.read(offset)
            for low, high in steps(shape, dtype, block_nbytes):
                block = np.empty((high - low, *shape[1:]), dtype)
                _fill(file, block, name)
                yield block.astype(dtype.newbyteorder("="), copy=False)
            file.read(1)  # its end: now the checksum is held

    return Streamed(shape, dtype.newbyteorder("="), blocks)


def _fill(file: Any, target: Array, name: str) -> None:
    view = as_bytes(target)
    done = 0
    while done < len(view):
        count = file.readinto(view[done:])
        if not count:
            raise FormatError("the archive ends too early", file=name)
        done += count


@contextmanager
def _archive(path: str) -> Iterator[zipfile.ZipFile]:
    """The archive, open; what is wrong with it is a FormatError."""
    try:
        with zipfile.ZipFile(path) as archive:
            yield archive
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as error:
        raise FormatError(f"the archive cannot be read: {error}", file=path) from error


def write_columns(
    path: str,
    columns: Columns,
    *,
    names: Literal["plain", "keras"] = "plain",
    compressed: bool = False,
) -> None:
    """Write all columns, each as a member; `np.load` reads them.

    Args:
        path: the file.
        columns: what to write.
        names: "plain" is images, labels, and classes for their names; "keras" is x_train and
            y_train, or after another split.
        compressed: deflate the members.
    """
    arrays = {name.replace("/", "_"): array for name, array in columns.arrays.items()}
    if names == "keras":
        arrays = {_keras(name, columns.split): array for name, array in columns.arrays.items()}
    elif columns.classes:
        arrays[_NAMES_OF_CLASSES] = Sliced(np.array([name or "" for name in columns.classes]))
    method = zipfile.ZIP_DEFLATED if compressed else zipfile.ZIP_STORED
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, column in arrays.items():
            member = zipfile.ZipInfo(f"{name}.npy")
            member.compress_type = method
            with archive.open(member, "w", force_zip64=True) as file:
                write_header(file, column.shape, column.dtype)
                for block in column.blocks():
                    for piece in stored_pieces(block, column.dtype):
                        file.write(piece)


def _keras(name: str, split: str | None) -> str:
    """What Keras calls a column: x_train."""
    part, _, role = name.rpartition("/")
    return f"{_KERAS.get(role, role)}_{part or split or 'train'}"
