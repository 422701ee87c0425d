"""Memory files for Verilog's `$readmemh`: words in hexadecimal, one a line. Written, not read.

The comment at the top says the shape, and declares the memory that the file fills. Negative
numbers stand as two's complement, floats as their IEEE 754 bits. Source: IEEE 1800, section 21.4.
"""

from __future__ import annotations

import math
import os
from typing import Literal

import numpy as np

from .columns import Columns

__all__ = ["write_columns"]


def write_columns(
    path: str, columns: Columns, *, word: Literal["element", "row", "item"] = "element"
) -> None:
    """Write the first column.

    Args:
        path: the file.
        columns: what to write.
        word: what a word of the memory is, and a line of the file: an element; a row (the last
            dimension) or an item as one wide word, the first element in its highest bits.
    """
    name, column = next(iter(columns.arrays.items()))
    shape, dtype = tuple(column.shape), column.dtype
    parts = {"element": (), "row": shape[1:][-1:], "item": shape[1:]}[word]
    nbytes = math.prod(parts) * dtype.itemsize
    count = math.prod(shape) // max(1, math.prod(parts))
    text = " x ".join(map(str, shape)) or "a scalar"
    label = "".join(c if c.isascii() and c.isalnum() else "_" for c in name)
    with open(path, "w", encoding="ascii") as file:
        file.write(
            f"// {label}: {dtype.name}, {text}; one {word} a word of {8 * nbytes} bits\n"
            f"// reg [{max(0, 8 * nbytes - 1)}:0] {label} [0:{max(0, count - 1)}];\n"
        )
        for block in column.blocks():
            data = np.ascontiguousarray(block, dtype.newbyteorder(">")).tobytes()
            if data:
                file.write(data.hex("\n", nbytes) + "\n")
        file.flush()
        os.fsync(file.fileno())
