"""IDX into every format and back: the same bytes, or a refusal that the table of formats tells."""

from __future__ import annotations

import filecmp
import itertools
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from trials import FORMATS, OURS, SHAPES, TYPES, carried, holds, mnist, path_of, values

from idxfile import UnsupportedError, convert, open_dataset
from idxfile.formats.row import Format

NEEDS = {
    "parquet": "pyarrow",
    "arrow": "pyarrow",
    "hdf5": "h5py",
    "zarr": "zarr",
    "mat": "scipy",
}


@pytest.fixture(params=OURS)
def row(request: pytest.FixtureRequest) -> Format:
    """Every format of arrays, where its library is installed."""
    if request.param in NEEDS:
        import_module(NEEDS[request.param])
    return FORMATS[request.param]


@pytest.mark.parametrize("shape", SHAPES)
def test_every_array_comes_back_or_is_refused_as_the_table_says(
    row: Format, shape: str, tmp_path: Path
) -> None:
    for dtype in TYPES:
        array = values(dtype, SHAPES[shape], finite=not row.typed)
        if holds(row, dtype, array.shape):
            assert carried(array, row, tmp_path) == (tmp_path / "start.idx").read_bytes(), dtype
        else:
            with pytest.raises(UnsupportedError):
                carried(array, row, tmp_path)
        for path in list(tmp_path.iterdir()):
            if path.is_file():
                path.unlink()
            else:
                path.rename(tmp_path.parent / f"{tmp_path.name}-{dtype}")


def test_the_mnist_pair_comes_back_byte_for_byte(row: Format, tmp_path: Path) -> None:
    source = mnist(tmp_path)
    images = source / "t10k-images-idx3-ubyte"
    there = path_of(tmp_path, row)
    if row.several and row.name != "idx":
        done = convert(images, there)
        convert(there, f"{tmp_path}/back/", split="t10k")
        assert list(done.columns) == ["images", "labels"]
        names = [images.name, "t10k-labels-idx1-ubyte"]
    else:
        names = [images.name]
        convert(images, there)
        convert(there, f"{tmp_path}/back/", split="t10k")
    assert sorted(path.name for path in (tmp_path / "back").iterdir()) == names
    for name in names:
        assert filecmp.cmp(tmp_path / "back" / name, source / name, shallow=False)


@pytest.mark.parametrize("kind", ["uint8", "int32", "int8"])
def test_labels_keep_their_type_and_names(row: Format, kind: str, tmp_path: Path) -> None:
    if not row.several:
        return
    names = ("cat", "Ünï çode", "dog, or other", *map(str, range(3, 12)))
    npz = tmp_path / "start.npz"
    labels = np.array([1, 0, 11], kind)
    np.savez(npz, images=values("int16", (3, 2, 2), finite=True), labels=labels, classes=names)
    there = f"{tmp_path}/there/" if row.name == "idx" else path_of(tmp_path, row)
    convert(npz, there)
    done = convert(there, f"{tmp_path}/back/")
    ds = open_dataset(tmp_path / "back")
    assert ds.labels.tolist() == labels.tolist()
    assert done.columns["labels"][0] == (kind if row.typed else "uint8")
    assert ds.classes == (names if row.classes else None)
    assert done.classes == ds.classes


@pytest.mark.parametrize(("one", "other"), list(itertools.permutations(OURS, 2))[::5])
def test_formats_speak_to_each_other(one: str, other: str, tmp_path: Path) -> None:
    for name in (one, other):
        if name in NEEDS:
            import_module(NEEDS[name])
    start, end = tmp_path / "start.npy", tmp_path / "end.npy"
    array = np.arange(60, dtype="int16").reshape(4, 5, 3) * 500
    np.save(start, array)
    there = [path_of(tmp_path, FORMATS[name], name) for name in (one, other)]
    convert(start, there[0])
    convert(*there)
    convert(there[1], end)
    assert np.load(end).dtype == array.dtype
    assert (np.load(end) == array).all()


def test_every_type_of_the_table_comes_back(row: Format, tmp_path: Path) -> None:
    for dtype in row.types:
        for shape in ((6,), (4, 3, 2)):
            array = (np.arange(np.prod(shape)).reshape(shape) % 2).astype(dtype)
            np.save(tmp_path / "start.npy", array)
            convert(tmp_path / "start.npy", path_of(tmp_path, row), overwrite=True)
            convert(path_of(tmp_path, row), tmp_path / "end.npy")
            found = np.load(tmp_path / "end.npy")
            assert found.shape == shape
            assert (found == array).all()
            if row.typed:
                assert found.dtype == array.dtype
