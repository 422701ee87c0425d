"""MATLAB's .mat files: 5 is read here and through scipy, and written here; 7.3 through h5py.

MATLAB counts rows first and items last: pictures are `(rows, columns, items)`. Its elements lie
with the first index varying fastest, so that item follows item. All arrays here come with their
dimensions reversed, which is C order.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any, Literal

import numpy as np

from ..elements import Array
from ..errors import FormatError, UnsupportedError
from ..source import LocalFile
from . import matfile
from .blocks import nbytes
from .columns import Columns, Sliced
from .roles import in_roles, is_label, of_split
from .row import imported

__all__ = ["read_columns", "write_columns"]

_TITLE = "MATLAB 5.0 MAT-file, by idxfile, items last, dimensions:"
_CLASSES = "classes"
_MAX_NBYTES = 2**31 - 1


class _Items:
    """The items of an array of MATLAB's, as an array whose dimension 0 they are.

    Args:
        array: with MATLAB's dimensions reversed.
        last: whether the items are MATLAB's last dimension, or else the first.
    """

    def __init__(self, array: Any, *, last: bool) -> None:
        self._array = array
        self._last = last
        self.dtype = array.dtype
        shape = tuple(array.shape)[::-1]
        self.shape = (shape[-1], *shape[:-1]) if last else shape

    def __getitem__(self, items: slice) -> Array:
        part = np.asarray(self._array[items] if self._last else self._array[..., items]).T
        return np.moveaxis(part, -1, 0) if self._last else part


def read_columns(
    path: str, *, items: Literal["auto", "first", "last"] = "auto", split: str | None = None
) -> Columns:
    """Open the variables of a file that are arrays of numbers; compressed ones are read whole.

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
    variables, close = _of_version_7(path) if seven else _of_version_5(path)
    try:
        names = variables.pop(_CLASSES, None)
        classes = None if names is None else tuple(str(n) or None for n in names)
        ours = title.startswith(_TITLE)
        flat = {n: int(ndim) for n, ndim in re.findall(r"(\w+)=(\d)", title if ours else "")}
        chosen, split = of_split({n: (n, array) for n, array in variables.items()}, split)
        counts = {math.prod(array.shape) for n, (_, array) in chosen.items() if is_label(n)}
        columns: dict[str, Any] = {}
        notes: list[str] = []
        for name, (variable, array) in chosen.items():
            shape = tuple(array.shape)[::-1]
            if variable in flat or (is_label(name) and max(shape, default=0) == math.prod(shape)):
                vector = np.asarray(array[()]).reshape(-1)
                columns[name] = Sliced(vector.reshape(()) if flat.get(variable) == 0 else vector)
                continue
            last = ours or items == "last" or (items == "auto" and _is_last(shape, counts, path))
            columns[name] = Sliced(_Items(array, last=last))
            if not ours:
                where = "last" if last else "first"
                notes.append(f"{variable}: MATLAB's {where} dimension counts the items")
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


def _of_version_5(path: str) -> tuple[dict[str, Any], Callable[[], None]]:
    """The variables of a file of version 5 or 4: from where they lie bare, or through scipy."""
    source = LocalFile(path, mapped=False)
    try:
        numbers: dict[str, Any]
        numbers, complete = matfile.bare_matrices(source)
        if not complete:
            numbers = {**_through_scipy(path, numbers), **numbers}
    except BaseException:
        source.close()
        raise
    return numbers, source.close


def _through_scipy(path: str, known: dict[str, Any]) -> dict[str, Any]:
    scipy_io = imported("scipy.io", "mat")
    try:
        names = [name for name, _, _ in scipy_io.whosmat(path) if name not in known]
        found = scipy_io.loadmat(path, variable_names=names) if names else {}
    except MemoryError:
        raise
    except Exception as error:  # it raises whatever it stumbles over
        raise FormatError(f"the .mat file cannot be read: {error}", file=path) from error
    arrays = {n: a for n, a in found.items() if isinstance(a, np.ndarray)}
    numbers: dict[str, Any] = {n: a.T for n, a in arrays.items() if a.dtype.kind in "biuf"}
    if _CLASSES in arrays and arrays[_CLASSES].dtype == object:
        numbers[_CLASSES] = ["".join(cell.ravel()) for cell in arrays[_CLASSES].ravel()]
    return numbers


def _of_version_7(path: str) -> tuple[dict[str, Any], Callable[[], None]]:
    """The variables of a file of version 7.3."""
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
    with open(path, "wb") as file:
        file.write(matfile.head(" ".join([_TITLE, *flat])))
        for name, column in columns.arrays.items():
            shape: tuple[int, ...] = column.shape
            dims = (*shape[1:], *shape[:1]) if len(shape) > 1 else (*shape, 1, 1)[:2]
            head, total = matfile.matrix_head(column.dtype.name, dims, names[name])
            if total > _MAX_NBYTES:
                raise UnsupportedError(
                    f"{name}: {nbytes(column):,} bytes; a MATLAB 5 variable holds 2 GiB",
                    hint="write HDF5 (.h5), which MATLAB reads too",
                )
            file.write(head)
            for block in column.blocks():
                turned = block.transpose(0, *range(block.ndim - 1, 0, -1)) if block.ndim else block
                file.write(np.ascontiguousarray(turned, block.dtype.newbyteorder("<")).data)
            file.write(bytes(-nbytes(column) % 8))
        if columns.classes:
            file.write(matfile.cell(_CLASSES, [name or "" for name in columns.classes]))
