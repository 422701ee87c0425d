"""Small pairs of files for the tests of the adapters."""

import os
import subprocess
import sys

import numpy as np

import idxfile

COUNT = 103
DTYPES = ("uint8", "int8", "int16", "int32", "float32", "float64")


def arrays(dtype="uint8", item_shape=(6, 5), count=COUNT):
    """Random images and labels of four classes."""
    random = np.random.default_rng(7)
    info = np.iinfo(dtype) if np.dtype(dtype).kind in "iu" else np.iinfo("int16")
    images = random.integers(info.min, info.max, (count, *item_shape), endpoint=True)
    return images.astype(dtype), random.integers(0, 4, count).astype("uint8")


def pair(folder, dtype="uint8", item_shape=(6, 5), *, codec=None, count=COUNT):
    """The same as a pair of files, opened."""
    idxfile.Dataset(*arrays(dtype, item_shape, count), split="train").save(folder, codec=codec)
    return idxfile.open_dataset(folder, split="train")


def run(code, *arguments, **environment):
    """Run Python with warnings as errors in a process of its own, and give what it prints."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code, *map(str, arguments)],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)} | environment,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
