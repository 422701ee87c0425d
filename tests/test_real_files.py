"""Files that others wrote: each is read to its known values, or refused for the right reason.

`data/README.md` says where they come from; `data/official/facts.json` what they hold.
"""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import json
import lzma
import struct
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import idxfile
from conftest import DATA, MNIST

FACTS: dict[str, dict[str, Any]] = json.loads((DATA / "official" / "facts.json").read_text("utf-8"))
PUBLISHED = {
    name: path
    for name in FACTS
    if (path := (MNIST.parent if name.startswith("mnist/") else DATA / "official") / name).exists()
}
FILES = sorted(p for p in DATA.rglob("*") if p.is_file() and p.suffix not in (".json", ".md"))


# Published data sets


def test_the_published_files_are_there() -> None:
    assert len(PUBLISHED) == 18
    assert set(PUBLISHED.values()) == {p for p in FILES if "real" not in p.parts}


@pytest.mark.parametrize("name", PUBLISHED)
def test_a_published_file_is_read_to_its_known_values(name: str) -> None:
    facts = FACTS[name]
    path = PUBLISHED[name]
    assert hashlib.sha256(path.read_bytes()).hexdigest() == facts["file"]["sha256"]
    array = idxfile.read(path)
    assert array.shape == tuple(facts["shape"])
    assert array.dtype == np.dtype(facts["dtype"]).newbyteorder("=")
    assert array.dtype.isnative
    for fact, found in VALUES.items():
        if fact in facts:
            assert found(array) == pytest.approx(facts[fact], rel=1e-12), fact
    assert hashlib.sha256(idxfile.encode(array)).hexdigest() == facts["raw"]["sha256"]


VALUES: dict[str, Callable[[np.ndarray], Any]] = {
    "sum": lambda a: int(a.sum(dtype="int64")),
    "sumsq": lambda a: int(np.square(a, dtype="int64").sum()),
    "min": lambda a: int(a.min()),
    "max": lambda a: int(a.max()),
    "mean": lambda a: float(a.mean(dtype="float64")) / 255,
    "std": lambda a: float(a.std(dtype="float64")) / 255,
    "first10": lambda a: a[:10].tolist(),
    "last10": lambda a: a[-10:].tolist(),
    "class_counts": lambda a: np.bincount(a if a.ndim == 1 else a[:, 0]).tolist(),
    "row0": lambda a: a[0].tolist(),
    "col_min": lambda a: a.min(axis=0).tolist(),
    "col_max": lambda a: a.max(axis=0).tolist(),
    "hsf_counts": lambda a: {str(k): int((a[:, 1] == k).sum()) for k in np.unique(a[:, 1])},
}


def test_every_fact_about_values_is_compared() -> None:
    about_files = {"file", "gzip", "raw", "shape", "dtype", "sorted", "exact_duplicate_images"}
    facts = {fact for name in PUBLISHED for fact in FACTS[name]}
    assert facts - about_files == set(VALUES)


@pytest.mark.parametrize("name", [n for n in PUBLISHED if n.startswith(("mnist/t10k", "qmnist/"))])
def test_a_published_file_opens_lazily(name: str) -> None:
    facts = FACTS[name]
    with idxfile.open(PUBLISHED[name]) as x:
        assert x.shape == tuple(facts["shape"])
        assert x.codecs == ("xz" if name.endswith("xz") else "gz",)
        if "first10" in facts:
            assert [int(x[n]) for n in range(10)] == facts["first10"]
            assert x.take(range(-10, 0)).tolist() == facts["last10"]
        blocks = [int(block.sum(dtype="int64")) for block in x.blocks()]
        assert sum(blocks) == int(np.asarray(x).sum(dtype="int64"))


def test_mnist_as_everybody_knows_it() -> None:
    images = idxfile.read(MNIST / "train-images-idx3-ubyte.gz")
    labels = idxfile.read(MNIST / "train-labels-idx1-ubyte.gz")
    assert images.shape == (60000, 28, 28)
    assert int(images.sum(dtype="int64")) == 1_567_298_545
    assert labels[:10].tolist() == [5, 0, 4, 1, 9, 2, 1, 3, 1, 4]


# Small files of other programs

REAL = DATA / "real"
TENSOR = np.arange(24).reshape(2, 3, 4)
LUSH_UBYTE = bytes.fromhex("101c2834131f2b3716222e3a")
READ: dict[str, tuple[str, Any]] = {
    "ivanyu__idx2numpy/correct.idx": ("uint8", [10, 11, 12]),
    "jspaaks__libidx/uint8.1d.idx": ("uint8", [0, 1, 15, 16, 127, 255]),
    "jspaaks__libidx/uint8.2d.idx": ("uint8", [[0, 1], [15, 16], [127, 255]]),
    "jspaaks__libidx/int8.2d.idx": ("int8", [[-128, -1], [0, 0], [1, 127]]),
    "jspaaks__libidx/int16.2d.idx": ("int16", [[-32768, -1], [0, 0], [1, 32767]]),
    "jspaaks__libidx/int32.2d.idx": ("int32", [[-(2**31), -1], [0, 0], [1, 2**31 - 1]]),
    "jspaaks__libidx/float.2d.idx": (
        "float32",
        [[float(np.finfo("f4").min), -1], [-0.0, 0.0], [1, float(np.finfo("f4").max)]],
    ),
    "jspaaks__libidx/double.2d.idx": (
        "float64",
        [[float(np.finfo("f8").min), -1], [-0.0, 0.0], [1, float(np.finfo("f8").max)]],
    ),
    "lisa-lab__pylearn2/ubyte_scalar.lushbin": ("uint8", [[12]]),
}


@pytest.mark.parametrize("name", READ)
def test_a_small_file_is_read_to_its_values(name: str) -> None:
    dtype, values = READ[name]
    array = idxfile.read(REAL / name)
    assert array.dtype == dtype
    expected = np.array(values, dtype).reshape(array.shape)
    assert array.size == expected.size
    assert array.tobytes() == expected.tobytes()  # signed zeros too


LUSH = {"ubyte": "<u1", "int": "<i4", "float": "<f4", "double": "<f8"}


@pytest.mark.parametrize("kind", LUSH)
def test_a_lush_tensor_is_read_as_it_was_written(kind: str) -> None:
    path = REAL / "lisa-lab__pylearn2" / f"{kind}_3tensor.lushbin"
    data = path.read_bytes()
    ndim, *shape = struct.unpack_from("<4i", data, 4)
    assert ndim == 3
    array = idxfile.read(path)
    assert array.shape == tuple(shape)
    assert array.tobytes() == np.frombuffer(data, LUSH[kind], offset=20).tobytes()
    with idxfile.open(path) as x:
        assert x.header.dialect == "lush"
        assert (x[1] == array[1]).all()
        with pytest.raises(idxfile.UnsupportedError, match="is read, and never written"):
            idxfile.append(path, array)
    assert path.read_bytes() == data


def test_morpho_mnist_is_a_pair_of_gzips_with_names_inside() -> None:
    folder = REAL / "dccastro__Morpho-MNIST"
    images = idxfile.read(folder / "train-images-0_3-idx3-ubyte.gz")
    labels = idxfile.read(folder / "train-labels-0_3-idx1-ubyte.gz")
    for array, path in zip((images, labels), sorted(folder.iterdir()), strict=True):
        assert idxfile.encode(array) == gzip.decompress(path.read_bytes())
    assert images.shape == (len(labels), 28, 28)


def test_ten_images_are_read_and_their_labels_refused() -> None:
    folder = REAL / "jorgecasas__php-ml"
    assert idxfile.read(folder / "images-idx-ubyte").shape == (10, 28, 28)
    for name, missing in (("labels-idx-ubyte", 9990), ("labels-11-idx-ubyte", 9989)):
        with pytest.raises(idxfile.TruncatedError) as caught:
            idxfile.read(folder / name)
        assert f"needs 10,008 bytes, has {10_008 - missing:,}: {missing:,} missing" in str(
            caught.value
        )
        assert (caught.value.found, caught.value.expected) == (10_000 - missing, 10_000)


def test_an_empty_file_is_called_empty() -> None:
    with pytest.raises(idxfile.TruncatedError, match="file is empty"):
        idxfile.read(REAL / "ivanyu__idx2numpy" / "empty.idx")


# Whatever the file


def plain(path: Path) -> bytes:
    """The decompressed bytes of a file, by the standard library."""
    data = path.read_bytes()
    return {".gz": gzip.decompress, ".xz": lzma.decompress}.get(path.suffix, bytes)(data)


SMALL = [path for path in FILES if path.stat().st_size < 600_000]


@pytest.mark.parametrize("path", SMALL, ids=lambda path: str(path.relative_to(DATA)))
def test_every_valid_file_is_written_as_it_was(path: Path) -> None:
    try:
        array = idxfile.read(path)
    except idxfile.TruncatedError:
        assert path.parent.name in ("ivanyu__idx2numpy", "jorgecasas__php-ml")
        return
    data = plain(path)
    if path.suffix == ".lushbin":
        assert idxfile.read(idxfile.encode(array)).tobytes() == array.tobytes()
    else:
        assert idxfile.encode(array) == data
        assert idxfile.encode(np.asfortranarray(array)) == data
    assert idxfile.read(data).tobytes() == array.tobytes()


@pytest.mark.parametrize("path", SMALL, ids=lambda path: str(path.relative_to(DATA)))
def test_reading_warns_of_nothing(path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with contextlib.suppress(idxfile.TruncatedError), idxfile.open(path) as x:
            np.asarray(x)
