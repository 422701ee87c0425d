"""NumPy's .npy: one array."""

from __future__ import annotations

import os
from typing import Any, Literal

import numpy as np

from ..errors import FormatError, UnsupportedError
from .columns import Columns, Sliced

__all__ = ["read_columns", "write_columns"]


def read_columns(path: str) -> Columns:
    """Map a .npy file: nothing is read before it is asked for.

    Raises:
        FormatError: for a file that is damaged.
        UnsupportedError: for an array of Python objects.
    """
    try:
        array = np.load(path, mmap_mode="r", allow_pickle=False)
    except ValueError as error:
        if "pickle" in str(error) or "Python objects" in str(error):
            raise UnsupportedError("an array of Python objects", file=path) from error
        raise FormatError(f"this .npy file cannot be read: {error}", file=path) from error
    return Columns({"images": Sliced(array)})


def write_columns(
    path: str, columns: Columns, *, byteorder: Literal["native", "big"] = "native"
) -> None:
    """Write the first column.

    Args:
        path: the file.
        columns: what to write.
        byteorder: "big" keeps IDX's own order, so that the elements are copied as they lie;
            `np.load` reads both.
    """
    column = columns.first
    dtype = column.dtype.newbyteorder(">" if byteorder == "big" else "=")
    with open(path, "wb") as file:
        write_header(file, column.shape, dtype)
        for block in column.blocks():
            np.ascontiguousarray(block, dtype).tofile(file)
        file.flush()
        os.fsync(file.fileno())


def write_header(file: Any, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
    """Write the header of a .npy file (NumPy Enhancement Proposal 1) in C order."""
    header = {"descr": np.lib.format.dtype_to_descr(dtype), "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(file, header)
