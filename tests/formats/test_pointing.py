"""Pointing instead of copying: HDF5, kerchunk, a Zarr store, VirtualiZarr and xarray over IDX."""

from __future__ import annotations

import asyncio
import gzip
import json
import os
import pickle
import shutil
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from trials import TYPES, mnist, values

import idxfile
from conftest import idx_bytes
from idxfile import UnsupportedError, convert
from idxfile.formats.layout import chunk_items

SHAPES = [(), (7,), (0, 3), (3, 0, 2), (103, 5, 4), (100, 5, 4), (2, 3, 4, 5), (2, 1, 3, 1, 2)]


@pytest.fixture(params=TYPES)
def dtype(request: pytest.FixtureRequest) -> str:
    """Every element type."""
    return str(request.param)


@pytest.fixture(params=SHAPES, ids=str)
def array(request: pytest.FixtureRequest, dtype: str) -> np.ndarray:
    """Arrays of every type and many shapes."""
    return values(dtype, request.param, finite=True)


@pytest.fixture
def file(array: np.ndarray, tmp_path: Path) -> Path:
    """The array as an IDX file."""
    path = tmp_path / "source.idx"
    path.write_bytes(idx_bytes(array))
    return path


# HDF5


def test_hdf5_shows_the_elements_where_they_lie(file: Path, array: np.ndarray) -> None:
    h5py = import_module("h5py")
    target = file.parent / "a.h5"
    if not array.shape:
        with pytest.raises(UnsupportedError, match="does not point to a scalar"):
            convert(file, target, point=True)
        assert os.listdir(file.parent) == ["source.idx"]
        return
    convert(file, target, point=True)
    assert target.stat().st_size < 10_000
    with h5py.File(target) as opened:
        assert opened["images"].dtype == array.dtype.newbyteorder(">")
        assert (opened["images"][()] == array).all()
    # What is changed there is seen here.
    if array.size:
        with open(file, "r+b") as source:
            source.seek(-1, os.SEEK_END)
            source.write(b"\x01")
        with h5py.File(target) as opened:
            assert (opened["images"][()] == idxfile.read(file)).all()


RELATIVE = """
import sys, h5py
with h5py.File(sys.argv[1]) as file:
    print(file["images"][()].sum())
"""


def test_hdf5_may_name_the_source_beside_it(tmp_path: Path) -> None:
    import_module("h5py")
    (tmp_path / "one").mkdir()
    array = np.arange(1000, dtype="int32").reshape(10, 100)
    idxfile.write(tmp_path / "one" / "a.idx", array)
    convert(
        tmp_path / "one" / "a.idx",
        tmp_path / "one" / "a.h5",
        point=True,
        target_options={"relative": True},
    )
    shutil.move(tmp_path / "one", tmp_path / "moved")
    done = subprocess.run(
        [sys.executable, "-c", RELATIVE, str(tmp_path / "moved" / "a.h5")],
        capture_output=True,
        text=True,
        cwd="/",
        env={**os.environ, "HDF5_EXTFILE_PREFIX": "${ORIGIN}"},
    )
    assert done.stdout.split() == [str(array.sum())], done.stderr


def test_some_items_and_other_files_are_pointed_to(tmp_path: Path) -> None:
    h5py = import_module("h5py")
    array = np.arange(60, dtype="int16").reshape(10, 6)
    idxfile.write(tmp_path / "a.idx", array)
    np.save(tmp_path / "a.npy", array.astype("int64"))
    np.savez(tmp_path / "pair.npz", images=array, labels=array[:, 0])
    convert(tmp_path / "pair.npz", tmp_path / "a.safetensors")
    for name in ("a.idx", "a.npy", "a.safetensors"):
        convert(tmp_path / name, tmp_path / "b.h5", point=True, items=slice(3, 8))
        with h5py.File(tmp_path / "b.h5") as opened:
            assert (opened["images"][()] == array[3:8]).all()
    with h5py.File(tmp_path / "b.h5") as opened:
        assert (opened["labels"][()] == array[3:8, 0]).all()


def test_a_pair_is_pointed_to_with_its_names(tmp_path: Path) -> None:
    h5py = import_module("h5py")
    folder = mnist(tmp_path, 50)
    (folder / "classes.txt").write_text("".join(f"digit {n}\n" for n in range(10)))
    with pytest.raises(UnsupportedError, match="labels: the elements do not lie"):
        convert(folder, folder / "a.h5", point=True)
    convert(folder, folder / "a.h5", point=True, column="images")
    with h5py.File(folder / "a.h5") as opened:
        assert (opened["images"][()] == idxfile.open_dataset(folder).images[...]).all()


@pytest.mark.parametrize(
    "options",
    [
        {"dtype": "float32"},
        {"dtype": "auto"},
        {"items": slice(None, None, 2)},
        {"items": slice(None, None, -1)},
        {"scale": (0, 100)},
    ],
    ids=str,
)
def test_what_is_changed_cannot_be_pointed_to(options: dict[str, Any], tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.arange(20, dtype="int64").reshape(10, 2))
    with pytest.raises(UnsupportedError, match="do not lie in the file as they are meant"):
        convert(tmp_path / "a.npy", tmp_path / "a.json", point=True, **options)
    assert os.listdir(tmp_path) == ["a.npy"]


@pytest.mark.parametrize("target", ["a.idx", "link.idx"])
def test_the_elements_that_are_pointed_to_are_not_written_over(target: str, tmp_path: Path) -> None:
    idxfile.write(tmp_path / "a.idx", np.arange(6, dtype="uint8"))
    os.symlink("a.idx", tmp_path / "link.idx")
    with pytest.raises(UnsupportedError, match="the target is the file that would be pointed to"):
        convert(
            tmp_path / "a.idx", tmp_path / target, target_format="hdf5", point=True, overwrite=True
        )
    assert idxfile.read(tmp_path / "a.idx").tolist() == list(range(6))


def test_what_is_compressed_cannot_be_pointed_to(tmp_path: Path) -> None:
    data = idx_bytes(np.zeros((10, 3), "uint8"))
    (tmp_path / "a.idx.gz").write_bytes(gzip.compress(data))
    np.savez(tmp_path / "a.npz", images=np.zeros((10, 3)))
    for name in ("a.idx.gz", "a.npz"):
        with pytest.raises(UnsupportedError, match="do not lie in the file"):
            convert(tmp_path / name, tmp_path / "a.json")
    with pytest.raises(UnsupportedError, match="CSV table is not used to point"):
        convert(tmp_path / "a.npz", tmp_path / "a.csv", point=True)


# Kerchunk


def open_references(path: Path) -> Any:
    fsspec, zarr = import_module("fsspec"), import_module("zarr")
    files = fsspec.filesystem(
        "reference",
        fo=str(path),
        remote_protocol="file",
        asynchronous=True,
        remote_options={"asynchronous": True},
    )
    store = zarr.storage.FsspecStore(files, read_only=True, path="")
    return zarr.open_group(store, mode="r")


@pytest.mark.parametrize("chunk_nbytes", [1 << 24, 100, 1])
def test_references_are_a_zarr_group(file: Path, array: np.ndarray, chunk_nbytes: int) -> None:
    target = file.parent / "a.json"
    convert(file, target, target_options={"chunk_nbytes": chunk_nbytes})
    found = open_references(target)["images"]
    assert found.dtype == array.dtype
    assert found.shape == array.shape
    assert (np.asarray(found[...]) == array).all()
    references = json.loads(target.read_text())
    assert references["version"] == 1
    for key, value in references["refs"].items():
        if not key.endswith("zarr.json"):
            url, offset, length = value
            assert url == f"file://{file}"
            assert 0 < offset < offset + length <= file.stat().st_size


def test_references_may_name_another_place(tmp_path: Path) -> None:
    idxfile.write(tmp_path / "a.idx", np.zeros((10, 3), "uint8"))
    url = "https://example.org/a.idx"
    convert(tmp_path / "a.idx", tmp_path / "a.json", target_options={"url": url})
    references = json.loads((tmp_path / "a.json").read_text())["refs"]
    assert references["images/c/0/0"] == [url, 12, 30]


def test_xarray_masks_nothing_of_the_references(tmp_path: Path) -> None:
    xr = import_module("xarray")
    array = values("uint8", (20, 5), finite=True)
    array[3] = 0
    idxfile.write(tmp_path / "a.idx", array)
    convert(tmp_path / "a.idx", tmp_path / "a.json")
    opened = xr.open_zarr(open_references(tmp_path / "a.json").store, consolidated=False)
    assert opened.images.dtype == "uint8"
    assert (opened.images.values == array).all()


@pytest.mark.parametrize(
    ("shape", "nbytes", "even", "odd"),
    [
        ((60000, 28, 28), 1 << 24, 20000, 21399),
        ((103, 10), 200, 1, 20),
        ((100, 10), 333, 25, 33),
        ((103, 10), 5000, 103, 103),
        ((4, 1000), 10, 1, 1),
        ((0, 3), 10, 1, 1),
        ((), 10, 1, 1),
    ],
)
def test_chunks_are_as_large_as_they_may_be(
    shape: tuple[int, ...], nbytes: int, even: int, odd: int
) -> None:
    assert chunk_items(shape, 1, nbytes, even=True) == even
    assert chunk_items(shape, 1, nbytes, even=False) == odd


# A Zarr store


@pytest.mark.parametrize("chunk_nbytes", [1 << 20, 100, 1])
def test_a_file_is_a_zarr_array(file: Path, array: np.ndarray, chunk_nbytes: int) -> None:
    import_module("zarr")
    from idxfile.formats.views import open_zarr

    for source in (file, file.read_bytes(), gzip.compress(file.read_bytes()), idxfile.open(file)):
        found = open_zarr(source, chunk_nbytes=chunk_nbytes)
        assert found.dtype == array.dtype
        assert (np.asarray(found[...]) == array).all()
        if array.size and array.ndim > 1:
            assert (found[1:2] == array[1:2]).all()
            assert (found[-1] == array[-1]).all()


def test_the_store_is_one_and_cannot_be_written(tmp_path: Path) -> None:
    zarr = import_module("zarr")
    from idxfile.formats.views import IdxStore, open_zarr

    array = np.arange(30, dtype="int16").reshape(10, 3)
    idxfile.write(tmp_path / "a.idx", array)
    store = IdxStore(idxfile.open(tmp_path / "a.idx"), chunk_nbytes=24)
    assert store == IdxStore(idxfile.open(tmp_path / "a.idx"), chunk_nbytes=24)
    assert store != IdxStore(idxfile.open(tmp_path / "a.idx"), chunk_nbytes=6)
    assert len({store, IdxStore(idxfile.open(tmp_path / "a.idx"), chunk_nbytes=24)}) == 1

    async def ask() -> Any:
        prototype = zarr.core.buffer.default_buffer_prototype()
        keys = [key async for key in store.list()]
        below = [name async for name in store.list_dir("c")]
        part = await store.get("c/1/0", prototype, zarr.abc.store.RangeByteRequest(2, 6))
        tail = await store.get("c/2/0", prototype, zarr.abc.store.SuffixByteRequest(2))
        rest = await store.get("c/0/0", prototype, zarr.abc.store.OffsetByteRequest(22))
        none = await store.get("c/3/0", prototype)
        exists = [await store.exists(key) for key in ("zarr.json", "c/0/0", "c/3/0")]
        return keys, below, [x.to_bytes().hex() for x in (part, tail, rest)], none, exists

    keys, below, parts, none, exists = asyncio.run(ask())
    assert keys == ["zarr.json", "c/0/0", "c/1/0", "c/2/0"]
    assert below == ["0", "1", "2"]
    assert parts == ["000d000e", "0000", "000b"]  # the last chunk is padded
    assert none is None
    assert exists == [True, True, False]
    opened = open_zarr(tmp_path / "a.idx")
    with pytest.raises((ValueError, PermissionError)):
        opened[0] = 1
    da = import_module("dask.array")
    assert da.from_zarr(open_zarr(tmp_path / "a.idx", chunk_nbytes=24)).sum().compute() == 435


# VirtualiZarr


@pytest.fixture(scope="module")
def registry() -> Any:
    """The files of this machine."""
    import_module("virtualizarr")
    stores = import_module("obstore.store")
    registries = import_module("obspec_utils.registry")
    return registries.ObjectStoreRegistry({"file://": stores.LocalStore()})


@pytest.mark.filterwarnings("ignore::UserWarning", "ignore::DeprecationWarning")
@pytest.mark.parametrize("chunk_nbytes", [1 << 24, 400])
def test_virtualizarr_parses_idx(
    file: Path, array: np.ndarray, registry: Any, chunk_nbytes: int
) -> None:
    from idxfile.formats.virtual import IdxParser

    xr = import_module("xarray")
    store = IdxParser(name="pixels", chunk_nbytes=chunk_nbytes)(f"file://{file}", registry)
    if not array.size:
        return
    opened = xr.open_zarr(store, consolidated=False, zarr_format=3)
    assert opened.pixels.dtype == array.dtype
    assert (opened.pixels.values == array).all()


@pytest.mark.filterwarnings("ignore::UserWarning", "ignore::DeprecationWarning")
def test_virtual_files_are_joined_and_saved(tmp_path: Path, registry: Any) -> None:
    from idxfile.formats.virtual import IdxParser

    vz, xr = import_module("virtualizarr"), import_module("xarray")
    parts = [values("float32", (10, 4, 5), finite=True) for _ in range(2)]
    for number, part in enumerate(parts):
        idxfile.write(tmp_path / f"{number}.idx", part)
    opened = [
        vz.open_virtual_dataset(f"file://{tmp_path}/{n}.idx", registry=registry, parser=IdxParser())
        for n in range(2)
    ]
    joined = xr.concat(opened, dim="item", coords="minimal", compat="override")
    joined.vz.to_kerchunk(str(tmp_path / "joined.json"), format="json")
    again = xr.open_dataset(f"{tmp_path}/joined.json", engine="kerchunk", mask_and_scale=False)
    assert (again.images.values == np.concatenate(parts)).all()


def test_the_parser_judges_the_file(tmp_path: Path, registry: Any) -> None:
    from idxfile.formats.virtual import IdxParser

    whole = idx_bytes(np.zeros((10, 3), "uint8"))
    for data in (b"", whole[:-1], whole + b"x", b"<html>"):
        (tmp_path / "a.idx").write_bytes(data)
        with pytest.raises(idxfile.FormatError):
            IdxParser()(f"file://{tmp_path}/a.idx", registry)


# xarray


def test_xarray_opens_idx_by_its_content(file: Path, array: np.ndarray) -> None:
    xr = import_module("xarray")
    other = file.rename(file.parent / "without a name")
    for engine in ("idx", None):
        with xr.open_dataset(other, engine=engine) as opened:
            images = opened.images
            assert images.dtype == array.dtype
            assert (
                images.dims == ("item", "row", "column", "channel")[: array.ndim] or array.ndim > 4
            )
            assert (images.values == array).all()
    with xr.open_dataset(other, engine="idx", drop_variables="images") as opened:
        assert not opened.variables


def test_xarray_reads_what_it_needs(tmp_path: Path) -> None:
    xr = import_module("xarray")
    folder = mnist(tmp_path, 500)
    (folder / "classes.txt").write_text("".join(f"digit {n}\n" for n in range(10)))
    ds = idxfile.open_dataset(folder)
    for place in (folder, folder / "t10k-images-idx3-ubyte"):
        with xr.open_dataset(place, engine="idx") as opened:
            assert opened.labels.values.tolist() == ds.labels.tolist()
            assert opened.labels.attrs["classes"] == list(ds.classes or ())
            assert opened.attrs["split"] == "test"
            picked = opened.isel(item=[7, 3], row=slice(None, None, -2), column=[1, 5, 2])
            expected = ds.images[...][[7, 3]][:, ::-2][:, :, [1, 5, 2]]
            assert (picked.images.values == expected).all()
            fancy = opened.images.isel(item=xr.DataArray([1, 2]), row=xr.DataArray([5, 9]))
            assert (fancy.values == ds.images[...][[1, 2], [5, 9]]).all()
            assert opened.images[3, 4, 5] == ds.images[3][4, 5]
            again = pickle.loads(pickle.dumps(opened))
            assert (again.images[10].values == ds.images[10]).all()


def test_xarray_gives_dask_arrays(tmp_path: Path) -> None:
    xr = import_module("xarray")
    import_module("dask")
    array = np.arange(3000, dtype="int32").reshape(100, 30)
    idxfile.write(tmp_path / "a.idx", array)
    for chunks in ({}, {"item": 100}):
        with xr.open_dataset(tmp_path / "a.idx", engine="idx", chunks=chunks) as opened:
            assert opened.images.chunks is not None
            assert int(opened.images.sum()) == array.sum()


@pytest.mark.parametrize(
    "data",
    [b"", b"# VobSub index file, v7", b"\xfftOc\0\0\0\2", bytes(8), b"\0\0\x08\x01\0\0\0\x05abc"],
)
def test_other_files_called_idx_are_left_to_others(data: bytes, tmp_path: Path) -> None:
    import_module("xarray")
    from idxfile.adapters.xarray import IdxBackend

    (tmp_path / "a.idx").write_bytes(data)
    assert not IdxBackend().guess_can_open(tmp_path / "a.idx")
    assert not IdxBackend().guess_can_open(tmp_path / "nix.idx")
    assert not IdxBackend().guess_can_open("https://example.org/a.idx")
    assert not IdxBackend().guess_can_open(object())
