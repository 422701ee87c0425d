"""MATLAB's .mat files: 5 is read through scipy and written here, 7.3 is read through h5py.

MATLAB counts rows first and items last: pictures are `(rows, columns, items)`, its elements lie
with the first index varying fastest, so that item follows item. A file of version 5 is a text of
116 bytes, 8 bytes of nothing, a version, a mark of the byte order; then elements, each a type, a
length, and that many bytes up to a multiple of 8. A matrix is an element of elements: flags,
dimensions, name, values. Source: MathWorks, "MAT-File Format", chapter "Level 5 MAT-Files".
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np

from ..elements import Array
from ..errors import FormatError, UnsupportedError
from .columns import Columns, Sliced, nbytes
from .roles import in_roles, is_label, of_split
from .row import imported

__all__ = ["read_columns", "write_columns"]

_TITLE = "MATLAB 5.0 MAT-file, by idxfile, items last, dimensions:"
_CLASSES = "classes"
_INT8, _INT32, _UINT32, _MATRIX, _UTF8 = 1, 5, 6, 14, 16
_CELL, _CHAR = 1, 4
_TYPES = {
    "float64": (6, 9),
    "float32": (7, 7),
    "int8": (8, 1),
    "uint8": (9, 2),
    "int16": (10, 3),
    "uint16": (11, 4),
    "int32": (12, 5),
    "uint32": (13, 6),
    "int64": (14, 12),
    "uint64": (15, 13),
}
"""Element type → the class of a matrix, and the type of its values."""

_MAX_NBYTES = 2**31 - 1


class _Items:
    """The items of an array of MATLAB's, as an array whose dimension 0 they are.

    Args:
        array: in MATLAB's order of dimensions, or in the reverse, as HDF5 has it.
        last: whether the items are MATLAB's last dimension, or else the first.
        reverse: whether the dimensions are reversed.
    """

    def __init__(self, array: Any, *, last: bool, reverse: bool) -> None:
        self._array = array
        self._last = last
        self._reverse = reverse
        self.dtype = array.dtype
        shape = tuple(array.shape)[:: -1 if reverse else 1]
        self.shape = (shape[-1], *shape[:-1]) if last else shape

    def __getitem__(self, items: slice) -> Array:
        whole = self._array
        if self._reverse:
            part = np.asarray(whole[items] if self._last else whole[..., items]).T
        else:
            part = np.asarray(whole[..., items] if self._last else whole[items])
        return np.moveaxis(part, -1, 0) if self._last else part


def read_columns(
    path: str, *, items: Literal["auto", "first", "last"] = "auto", split: str | None = None
) -> Columns:
    """Read the variables of a file that are arrays of numbers; version 5 is read whole.

    Args:
        path: the file.
        items: which of MATLAB's dimensions counts the items. "auto" knows it of our own files, and
            where there are labels for as many items as one of the two has; else it is the first.
        split: train, test …, where names say so (`x_train`, `test_labels`); or all.

    Raises:
        FormatError: for a file that is damaged.
        UnsupportedError: when the labels fit both the first and the last dimension.
    """
    with open(path, "rb") as file:
        title = file.read(116).decode("latin-1")
    seven = title.startswith("MATLAB 7.3")
    variables, close = _of_hdf5(path) if seven else _of_scipy(path)
    try:
        names = variables.pop(_CLASSES, None)
        classes = None if names is None else tuple(str(n) or None for n in names)
        ours = title.startswith(_TITLE)
        flat = {n: int(ndim) for n, ndim in re.findall(r"(\w+)=(\d)", title if ours else "")}
        chosen, split = of_split(variables, split)
        counts = {math.prod(a.shape) for name, a in chosen.items() if is_label(name)}
        columns: dict[str, Any] = {}
        notes: list[str] = []
        for name, array in chosen.items():
            shape = tuple(array.shape)[:: -1 if seven else 1]
            if name in flat or (is_label(name) and max(shape, default=0) == math.prod(shape)):
                vector = np.asarray(array[()]).reshape(-1)
                columns[name] = Sliced(vector.reshape(()) if flat.get(name) == 0 else vector)
                continue
            last = ours or items == "last" or (items == "auto" and _is_last(shape, counts, path))
            columns[name] = Sliced(_Items(array, last=last, reverse=seven))
            if not ours:
                where = "last" if last else "first"
                notes.append(f"{name}: MATLAB's {where} dimension counts the items")
        return Columns(in_roles(columns), classes, split, close, notes)
    except BaseException:
        close()
        raise


def _is_last(shape: tuple[int, ...], counts: set[int], path: str) -> bool:
    """Whether the last dimension counts the items, as far as the labels tell."""
    first, last = (shape[place] in counts for place in (0, -1))
    if first and last and len(shape) > 1:
        raise UnsupportedError(
            f"the labels fit the first and the last dimension of {' × '.join(map(str, shape))}",
            file=path,
            hint="say which with the option items: first or last",
        )
    return last and not first


def _of_scipy(path: str) -> tuple[dict[str, Any], Callable[[], None]]:
    """The variables of a file of version 5 or 4, in memory, in MATLAB's order of dimensions."""
    scipy_io = imported("scipy.io", "mat")
    try:
        found = scipy_io.loadmat(path)
    except MemoryError:
        raise
    except Exception as error:  # it raises whatever it stumbles over
        raise FormatError(f"the .mat file cannot be read: {error}", file=path) from error
    arrays = {n: a for n, a in found.items() if isinstance(a, np.ndarray)}
    numbers: dict[str, Any] = {n: a for n, a in arrays.items() if a.dtype.kind in "biuf"}
    if _CLASSES in arrays and arrays[_CLASSES].dtype == object:
        numbers[_CLASSES] = ["".join(cell.ravel()) for cell in arrays[_CLASSES].ravel()]
    return numbers, lambda: None


def _of_hdf5(path: str) -> tuple[dict[str, Any], Callable[[], None]]:
    """The variables of a file of version 7.3, whose dimensions stand in the reverse order."""
    h5py = imported("h5py", "hdf5")
    try:
        file = h5py.File(path, "r")
    except OSError as error:
        raise FormatError(f"the .mat file cannot be read: {error}", file=path) from error
    datasets = {name: thing for name, thing in file.items() if isinstance(thing, h5py.Dataset)}
    numbers = {name: d for name, d in datasets.items() if d.dtype.kind in "biuf" and d.ndim}
    return {n: d for n, d in numbers.items() if d.attrs.get("MATLAB_class") != b"char"}, file.close


def write_columns(path: str, columns: Columns) -> None:
    """Write all columns as variables of a file of version 5, not compressed, items last.

    Args:
        path: the file.
        columns: what to write. A vector is one column, as MATLAB has labels.

    Raises:
        UnsupportedError: for more than 2 GiB in one variable.
    """
    names = {name: re.sub(r"\W", "_", name, flags=re.ASCII)[:31] for name in columns.arrays}
    flat = [f"{names[n]}={len(a.shape)}" for n, a in columns.arrays.items() if len(a.shape) < 2]
    title = " ".join([_TITLE, *flat])
    with open(path, "wb") as file:
        file.write(title.encode().ljust(116)[:116] + bytes(8) + b"\x00\x01IM")
        for name, column in columns.arrays.items():
            shape: tuple[int, ...] = column.shape
            dims = (*shape[1:], *shape[:1]) if len(shape) > 1 else (*shape, 1, 1)[:2]
            size = nbytes(column)
            kind, value = _TYPES[column.dtype.name]
            head = _matrix_head(kind, dims, names[name])
            total = len(head) + 8 + size + -size % 8
            if total > _MAX_NBYTES:
                raise UnsupportedError(
                    f"{name}: {size:,} bytes; a variable of a MATLAB 5 file holds 2 GiB",
                    hint="write HDF5 (.h5), which MATLAB reads too",
                )
            file.write(struct.pack("<II", _MATRIX, total) + head + struct.pack("<II", value, size))
            for block in column.blocks():
                turned = block.transpose(0, *range(block.ndim - 1, 0, -1)) if block.ndim else block
                file.write(np.ascontiguousarray(turned, block.dtype.newbyteorder("<")).data)
            file.write(bytes(-size % 8))
        if columns.classes:
            file.write(_cell(_CLASSES, [name or "" for name in columns.classes]))


def _matrix_head(kind: int, dims: Sequence[int], name: str) -> bytes:
    """What stands in a matrix before its values."""
    return (
        struct.pack("<IIII", _UINT32, 8, kind, 0)
        + _element(_INT32, struct.pack(f"<{len(dims)}i", *dims))
        + _element(_INT8, name.encode())
    )


def _element(kind: int, data: bytes) -> bytes:
    return struct.pack("<II", kind, len(data)) + data + bytes(-len(data) % 8)


def _cell(name: str, texts: Sequence[str]) -> bytes:
    """A column of texts."""
    cells = b"".join(
        _element(
            _MATRIX,
            _matrix_head(_CHAR, (1 if text else 0, len(text)), "") + _element(_UTF8, text.encode()),
        )
        for text in texts
    )
    return _element(_MATRIX, _matrix_head(_CELL, (len(texts), 1), name) + cells)
