"""Conversions, against `cp` where bytes stay as they are, and else against the library itself.

The library has the array in memory already and writes it at once; idxfile reads the file, turns
the byte order and hands over block by block. All do what `convert` promises beside: the new file is
written under another name, made durable, and renamed over the old one.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from typing import Any

import h5py
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import zarr

import idxfile
from idxfile.sink import sync_folder

from . import rivals
from .cases import Case, Ready
from .files import Files
from .harness import Run

Array = np.ndarray[Any, Any]

COPY = 1.3
"""The most that a copy in the kernel may take, as a multiple of `cp`."""

LIBRARY = 1 / 0.7
"""The most that other conversions may take, as a multiple of the library's own time."""


def converting(kind: str, dtype: str, name: str, **options: Any) -> Ready:
    """Our own conversion of the images into a format, over what the last run left."""

    def ready(files: Files) -> Run:
        source = big_npy(files, dtype) if kind == "npy" else files("idx", dtype)
        target = str(files.path(f"ours-{dtype}{name}"))
        return lambda: idxfile.convert(source, target, overwrite=True, target_options=options)

    return ready


def big_npy(files: Files, dtype: str) -> str:
    """The images as a .npy file in big-endian order."""
    path = str(files.path(f"big-{dtype}.npy"))
    if not os.path.exists(path):
        np.save(path, files.values(dtype).astype(np.dtype(dtype).newbyteorder(">")))
        os.sync()
    return path


def copying(kind: str, dtype: str) -> Ready:
    """`cp`."""

    def ready(files: Files) -> Run:
        source = big_npy(files, dtype) if kind == "npy" else files("idx", dtype)
        target = str(files.path(f"copy-{kind}-{dtype}"))
        command = ("cp", source, f"{target}.tmp")

        def run() -> None:
            subprocess.run(command, check=True)
            settle(target)

        return run

    return ready


def settle(path: str) -> None:
    """Make what was written beside a path durable, and give it its name."""
    fd = os.open(f"{path}.tmp", os.O_RDONLY)
    os.fsync(fd)
    os.close(fd)
    os.replace(f"{path}.tmp", path)
    sync_folder(os.path.dirname(path))


def library(writer: Callable[[str, Array], object], name: str, dtype: str) -> Ready:
    """`writer(path, array)` of an array in memory."""

    def ready(files: Files) -> Run:
        path, array = str(files.path(f"theirs-{dtype}{name}")), files.values(dtype)
        return lambda: writer(path, array)

    return ready


def save_hdf5(path: str, array: Array) -> None:
    with h5py.File(f"{path}.tmp", "w") as file:
        file["images"] = array
    settle(path)


def save_zarr(path: str, array: Array) -> None:
    """An array with the chunks that ours has."""
    chunks = (max(1, (1 << 20) // array[0].nbytes), *array.shape[1:])
    zarr.create_array(path, data=array, chunks=chunks, overwrite=True)


def save_parquet(path: str, array: Array) -> None:
    """Binary items, without a dictionary: what somebody who knows pyarrow would write."""
    kind = pa.binary(array[0].nbytes)
    items = pa.Array.from_buffers(kind, len(array), [None, pa.py_buffer(array)])
    table = pa.table({"image": items})
    pq.write_table(table, f"{path}.tmp", use_dictionary=False, row_group_size=10_000)
    settle(path)


CASES: tuple[Case, ...] = (
    *(
        Case(
            "convert",
            f"idx to npy, {dtype}, big-endian",
            converting("idx", dtype, ".npy", byteorder="big"),
            "cp",
            copying("idx", dtype),
            COPY,
        )
        for dtype in ("uint8", "int32")
    ),
    *(
        Case(
            "convert",
            f"npy to idx, {dtype}, big-endian",
            converting("npy", dtype, ".idx"),
            "cp",
            copying("npy", dtype),
            COPY,
        )
        for dtype in ("uint8", "int32")
    ),
    *(
        Case(
            "convert",
            f"idx to {title}, {dtype}",
            converting("idx", dtype, suffix, **options),
            f"{rival} of an array in memory",
            library(writer, suffix, dtype),
            LIBRARY,
        )
        for title, suffix, options, rival, writer in (
            ("npy", ".npy", {}, "np.save", rivals.save_atomically),
            ("HDF5", ".h5", {}, "h5py", save_hdf5),
            ("Zarr", ".zarr", {}, "zarr", save_zarr),
            ("Parquet", ".parquet", {"encoding": "binary"}, "pyarrow", save_parquet),
        )
        for dtype in ("uint8", "int32")
    ),
)
