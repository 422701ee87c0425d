"""What the tests of formats share: arrays to be carried through them, and how that is done."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import numpy as np

from conftest import MNIST, TYPES, bits, idx_bytes
from idxfile import FORMATS, convert
from idxfile.formats.row import Format

OURS = (
    "idx",
    "npy",
    "npz",
    "csv",
    "tsv",
    "jsonl",
    "parquet",
    "arrow",
    "hdf5",
    "zarr",
    "safetensors",
    "mat",
)
"""The formats of arrays that are read and written."""

SHAPES = {
    "scalar": (),
    "nothing": (0,),
    "vector": (7,),
    "one": (1,),
    "matrix": (5, 3),
    "row": (1, 4),
    "column": (4, 1),
    "no items": (0, 3, 2),
    "empty items": (3, 0, 2),
    "3-D": (4, 3, 5),
    "4-D": (3, 4, 5, 3),
    "5-D": (2, 1, 3, 2, 2),
    "32-D": (*(1,) * 29, 2, 3, 2),
    "64-D": (*(1,) * 61, 2, 3, 2),
}


def path_of(folder: Path, row: Format, name: str = "carried") -> str:
    """A name in a folder that asks for a format."""
    return str(folder / f"{name}{row.suffixes[0]}")


def values(dtype: str, shape: tuple[int, ...], *, finite: bool) -> np.ndarray:
    """An array of random bits, without NaN and infinity where those are not wanted."""
    array = bits(dtype, *shape).reshape(shape)
    if finite and array.dtype.kind == "f":
        array[~np.isfinite(array)] = 0.1
    return array


def holds(row: Format, dtype: str, shape: tuple[int, ...]) -> bool:
    """Whether a row of the table says that it holds such an array."""
    fewest, most = row.ndim
    if not (fewest <= len(shape) <= most and dtype in row.types):
        return False
    if 0 in shape[1:]:
        return row.empty == "yes"
    return 0 not in shape or row.empty != "no"


def carried(array: np.ndarray, row: Format, folder: Path, **options: Any) -> bytes:
    """The IDX file that comes back when an array goes as IDX into a format and out of it."""
    start, end = folder / "start.idx", folder / "end.idx"
    start.write_bytes(idx_bytes(array))
    between = path_of(folder, row)
    convert(start, between, **options)
    convert(between, end, dtype=None if row.typed else array.dtype.name)
    return end.read_bytes()


def mnist(folder: Path, items: int = 10_000) -> Path:
    """A folder with the first test items of MNIST, as a pair."""
    for name in ("t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"):
        data = gzip.decompress((MNIST / f"{name}.gz").read_bytes())
        ndim = data[3]
        item = 784 if ndim == 3 else 1
        header = data[:4] + items.to_bytes(4, "big") + data[8 : 4 + 4 * ndim]
        start = 4 + 4 * ndim
        (folder / name).write_bytes(header + data[start : start + items * item])
    return folder


__all__ = ["FORMATS", "OURS", "SHAPES", "TYPES", "carried", "holds", "mnist", "path_of", "values"]
