"""NumPy's .npy: one array."""

from __future__ import annotations

import io
import math
from typing import Any, Literal

import numpy as np

from ..elements import Array
from ..errors import FormatError, TrailingDataError, TruncatedError, UnsupportedError
from ..slabs.filling import Layout
from ..source import LocalFile
from .columns import Columns, Sliced
from .stored import Stored, write_elements

__all__ = ["lay_columns", "read_columns", "write_columns"]


def read_columns(path: str) -> Columns:
    """Open a .npy file: nothing is read before it is asked for.

    Raises:
        FormatError: for a file that is damaged.
        UnsupportedError: for an array of Python objects, or of anything else but numbers.
    """
    with open(path, "rb") as file:
        shape, fortran, dtype = read_header(file, path)
        offset = file.tell()
    source = LocalFile(path, mapped=False)
    try:
        check_length(source.size - offset, shape, dtype, path)
        if fortran and len(shape) > 1:
            mapped: Array = np.memmap(path, dtype, "r", offset, shape, "F")
            return Columns({"images": Sliced(mapped)}, close=source.close)
        return Columns({"images": Stored(source, offset, dtype, shape)}, close=source.close)
    except BaseException:
        source.close()
        raise


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
    ((_, _, layout),) = lay_columns(path, columns, byteorder=byteorder)
    with open(path, "wb") as file:
        file.write(layout.head)
        write_elements(file, columns.first, layout.stored_dtype)


def lay_columns(
    path: str, columns: Columns, *, byteorder: Literal["native", "big"] = "native"
) -> list[tuple[str, str, Layout]]:
    """How the first column lies in its file; arguments as for `write_columns`."""
    name, column = next(iter(columns.arrays.items()))
    dtype = column.dtype.newbyteorder(">" if byteorder == "big" else "=")
    head = io.BytesIO()
    write_header(head, column.shape, dtype)
    return [(path, name, Layout(head.getvalue(), column.shape, dtype))]


def read_header(file: Any, name: str) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Read the header of a .npy file (NumPy Enhancement Proposal 1), and nothing behind it.

    Returns:
        The shape, whether the first index varies fastest, and the dtype.

    Raises:
        FormatError: for a header that is damaged.
        UnsupportedError: for elements that are no numbers: objects are pickled, and not read.
    """
    try:
        version = np.lib.format.read_magic(file)
        if version == (1, 0):
            shape, fortran, dtype = np.lib.format.read_array_header_1_0(file)
        else:  # 2.0 has longer headers, 3.0 names of fields in UTF-8
            shape, fortran, dtype = np.lib.format.read_array_header_2_0(file)
    except MemoryError:
        raise
    except Exception as error:  # the parser of literals raises whatever it stumbles over
        text = str(error).partition("\n")[0]
        raise FormatError(f"the .npy header cannot be read: {text}", file=name) from None
    if dtype.hasobject:
        raise UnsupportedError("the array holds Python objects, which are not unpickled", file=name)
    if dtype.kind not in "biufU":
        raise UnsupportedError(f"the array holds {dtype}, which is no number", file=name)
    return shape, fortran, dtype


def check_length(found: int, shape: tuple[int, ...], dtype: np.dtype[Any], name: str) -> None:
    """Hold the number of bytes behind a header against what it declares.

    Raises:
        TruncatedError: when bytes are missing.
        TrailingDataError: when bytes are left over.
    """
    expected = math.prod(shape) * dtype.itemsize
    if found != expected:
        kind = TruncatedError if found < expected else TrailingDataError
        raise kind(
            f"{found:,} data bytes found, {expected:,} expected",
            file=name,
            found=found,
            expected=expected,
            hint="make or fetch the file again",
        )


def write_header(file: Any, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
    """Write the header of a .npy file (NumPy Enhancement Proposal 1) in C order."""
    header = {"descr": np.lib.format.dtype_to_descr(dtype), "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(file, header)
