"""The files that are measured, made of the published MNIST when they are first asked for."""

from __future__ import annotations

import gzip
import os
import shutil
from pathlib import Path

import h5py
import numpy as np

import idxfile

MNIST = Path(__file__).parents[1] / "tests/data/mnist"
IMAGES = "train-images-idx3-ubyte"
LABELS = "train-labels-idx1-ubyte"
OFFSET = 16
"""Where the pixels begin in the file of images."""
SHAPE = (60000, 28, 28)


class Files:
    """The 60,000 training images in one folder, in every format and element type asked for."""

    def __init__(self, folder: str) -> None:
        self._folder = Path(folder)
        self._made: dict[tuple[str, str], str] = {}
        self._values: dict[str, np.ndarray] = {}
        for name in (IMAGES, LABELS):
            with gzip.open(MNIST / f"{name}.gz") as packed, self.path(name).open("wb") as file:
                shutil.copyfileobj(packed, file)
        self.pixels = np.fromfile(self.path(IMAGES), np.uint8, offset=OFFSET).reshape(SHAPE)
        """The images as an array in memory."""

    def path(self, name: str) -> Path:
        """A place in the folder."""
        return self._folder / name

    def __call__(self, kind: str, dtype: str = "uint8") -> str:
        """The path of the images as `kind` (idx, npy, h5, gz, folder), with this element type.

        `files("tiny", kind)` is ten images as that kind.
        """
        if (kind, dtype) not in self._made:
            self._made[kind, dtype] = self._make(kind, dtype)
            os.sync()  # so that nothing is still being written while something is measured
        return self._made[kind, dtype]

    def _make(self, kind: str, dtype: str) -> str:
        if kind == "folder":
            return str(self._folder)
        if kind == "tiny":
            return self._make_tiny(dtype)
        if kind == "gz":
            return str(MNIST / f"{IMAGES}.gz")
        if (kind, dtype) == ("idx", "uint8"):
            return str(self.path(IMAGES))
        path = str(self.path(f"{dtype}.{kind}"))
        images = self.values(dtype)
        if kind == "npy":
            np.save(path, images)
        elif kind == "h5":
            with h5py.File(path, "w") as file:
                file["images"] = images
        else:
            idxfile.write(path, images)
        return path

    def _make_tiny(self, kind: str) -> str:
        path = str(self.path(f"tiny.{kind}"))
        writer = np.save if kind == "npy" else idxfile.write
        writer(path, self.pixels[:10])
        return path

    def values(self, dtype: str) -> np.ndarray:
        """The images as an array in memory, with this element type."""
        if dtype not in self._values:
            self._values[dtype] = self.pixels.astype(dtype, copy=False)
        return self._values[dtype]
