"""The same work as other libraries do it, each in the way its own documentation shows."""

from __future__ import annotations

import gzip
import os
import struct
from typing import Any

import deflate
import h5py
import mnist
import numpy as np

from .files import OFFSET, SHAPE

Array = np.ndarray[Any, Any]


def load_struct(path: str) -> Array:
    """The thirty lines that everybody writes, shortened."""
    with open(path, "rb") as file:
        _, count, rows, columns = struct.unpack(">IIII", file.read(OFFSET))
        return np.frombuffer(file.read(), np.uint8).reshape(count, rows, columns)


def load_gzip(path: str) -> Array:
    """The standard library's gzip; reading all at once is faster than the header first."""
    with gzip.open(path, "rb") as file:
        return np.frombuffer(file.read(), np.uint8, offset=OFFSET).reshape(-1, *SHAPE[1:])


def load_libdeflate(path: str) -> Array:
    """One shot of libdeflate: as fast as it gets, and silent about a second member."""
    with open(path, "rb") as file:
        data = deflate.gzip_decompress(file.read())
    return np.frombuffer(data, np.uint8, offset=OFFSET).reshape(-1, *SHAPE[1:])


def load_hdf5(path: str) -> Array:
    """The whole dataset, stored contiguously."""
    with h5py.File(path, "r") as file:
        return file["images"][()]


def load_python_mnist(folder: str) -> object:
    """Images and labels as lists, which is what it gives."""
    return mnist.MNIST(folder).load_training()


def map_npy(path: str) -> Array:
    """A .npy file as `np.memmap`."""
    return np.load(path, mmap_mode="r")


def map_idx(path: str) -> Array:
    """`np.memmap` over the IDX file itself, by somebody who knows the offset."""
    return np.memmap(path, np.uint8, "r", OFFSET, SHAPE)


def open_hdf5(path: str) -> h5py.Dataset:
    """The dataset, open; it holds its file open."""
    return h5py.File(path, "r")["images"]


def save(path: str, array: Array) -> None:
    """np.save, durable."""
    with open(path, "wb") as file:
        np.save(file, array)
        file.flush()
        os.fsync(file.fileno())


def save_atomically(path: str, array: Array) -> None:
    """np.save with everything that `idxfile.write` promises."""
    save(f"{path}.tmp", array)
    os.replace(f"{path}.tmp", path)
    folder = os.open(os.path.dirname(path), os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
