"""HDF5, Zarr, safetensors and MATLAB: their own libraries read ours, and we read theirs."""

from __future__ import annotations

import json
import os
import struct
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from trials import TYPES, mnist, values

import idxfile
from idxfile import FormatError, PairError, UnsupportedError, convert
from idxfile.formats.row import NUMBERS


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = mnist(tmp_path, 200)
    (folder / "classes.txt").write_text("".join(f"digit {n}\n" for n in range(10)))
    return folder


@pytest.fixture
def arrays() -> dict[str, np.ndarray]:
    """An array of every type."""
    return {name: (np.arange(24).reshape(4, 3, 2) % 2).astype(name) for name in NUMBERS}


def check_all(arrays: dict[str, np.ndarray], path: Path) -> None:
    """Every array of a file comes out as the same values, type and shape."""
    for name, array in arrays.items():
        convert(path, path.parent / "out.npy", column=name)
        found = np.load(path.parent / "out.npy")
        assert found.dtype == array.dtype.newbyteorder("=")
        assert (found == array).all()
        assert found.shape == array.shape


# HDF5


@pytest.mark.parametrize("options", [{}, {"byteorder": "big"}, {"compression": "gzip"}], ids=str)
def test_h5py_reads_ours(options: dict[str, Any], folder: Path) -> None:
    h5py = import_module("h5py")
    ds = idxfile.open_dataset(folder)
    convert(folder, folder / "a.h5", target_options=options)
    with h5py.File(folder / "a.h5") as file:
        assert sorted(file) == ["images", "labels"]
        assert (file["images"][()] == ds.images[...]).all()
        assert file["labels"][()].tolist() == ds.labels.tolist()
        assert list(file["labels"].attrs["classes"]) == list(ds.classes or ())
    convert(folder, folder / "a.h5", target_options={"dataset": "train/x", **options})
    with h5py.File(folder / "a.h5") as file:
        assert (file["train/x"][5] == ds.images[5]).all()


def test_h5py_keeps_every_type(arrays: dict[str, np.ndarray], tmp_path: Path) -> None:
    h5py = import_module("h5py")
    for order in ("<", ">"):
        with h5py.File(tmp_path / "a.h5", "w") as file:
            for name, array in arrays.items():
                file.create_dataset(name, data=array.astype(array.dtype.newbyteorder(order)))
        check_all(arrays, tmp_path / "a.h5")


def test_hdf5_of_others(tmp_path: Path) -> None:
    h5py = import_module("h5py")
    array = values("int32", (50, 6, 7), finite=True)
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("train/images", data=array, chunks=(7, 6, 7), compression="gzip")
        file.create_dataset("train/labels", data=np.arange(50))
        file.create_dataset("test/images", data=array[:9])
        file.create_dataset("test/labels", data=np.arange(9))
        file["notes"] = "a text"
        file.create_dataset("nothing", dtype="f4")
    with pytest.raises(PairError, match="several splits"):
        convert(tmp_path / "a.h5", f"{tmp_path}/out/")
    convert(tmp_path / "a.h5", f"{tmp_path}/out/", split="train")
    ds = idxfile.open_dataset(tmp_path / "out")
    assert (ds.images[...] == array).all()
    options = {"dataset": "/test/images"}
    convert(tmp_path / "a.h5", tmp_path / "b.idx", source_options=options)
    assert (idxfile.read(tmp_path / "b.idx") == array[:9]).all()
    with pytest.raises(UnsupportedError, match="no dataset 'nix' of numbers"):
        convert(tmp_path / "a.h5", tmp_path / "b.idx", source_options={"dataset": "nix"})


@pytest.mark.parametrize("damage", ["cut", "empty"])
def test_hdf5_that_is_damaged_or_holds_nothing(damage: str, tmp_path: Path) -> None:
    h5py = import_module("h5py")
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["text"] = "nothing but a text"
    if damage == "cut":
        (tmp_path / "a.h5").write_bytes((tmp_path / "a.h5").read_bytes()[:300])
    with pytest.raises((FormatError, UnsupportedError), match=r"cannot be read|holds no dataset"):
        convert(tmp_path / "a.h5", tmp_path / "b.idx")
    assert os.listdir(tmp_path) == ["a.h5"]


# Zarr


@pytest.mark.parametrize("options", [{}, {"compression": "none"}, {"chunk_nbytes": 5000}], ids=str)
def test_zarr_reads_ours(options: dict[str, Any], folder: Path) -> None:
    zarr = import_module("zarr")
    ds = idxfile.open_dataset(folder)
    convert(folder, folder / "a.zarr", target_options=options)
    group = zarr.open_group(folder / "a.zarr", mode="r")
    assert group.metadata.zarr_format == 3
    assert sorted(group) == ["images", "labels"]
    assert (group["images"][:] == ds.images[...]).all()
    assert group["labels"][:].tolist() == ds.labels.tolist()
    assert group.attrs["classes"] == list(ds.classes or ())
    assert group["images"].metadata.dimension_names == ("item", "row", "column")
    assert group["images"].chunks == ((6 if "chunk_nbytes" in options else 200), 28, 28)
    xr = import_module("xarray")
    opened = xr.open_zarr(folder / "a.zarr", consolidated=False)
    assert (opened.images.values == ds.images[...]).all()


@pytest.mark.parametrize("version", [2, 3])
def test_zarr_of_others(version: Any, arrays: dict[str, np.ndarray], tmp_path: Path) -> None:
    zarr = import_module("zarr")
    group = zarr.open_group(tmp_path / "a.zarr", mode="w", zarr_format=version)
    for name, array in arrays.items():
        group.create_array(name, shape=array.shape, dtype=array.dtype, chunks=(3, 2, 1))[:] = array
    check_all(arrays, tmp_path / "a.zarr")
    one = np.arange(70, dtype="int16").reshape(10, 7)
    zarr.create_array(tmp_path / "one.zarr", data=one, chunks=(4, 7), zarr_format=version)
    (tmp_path / "one.zarr").rename(tmp_path / "renamed")  # found by what lies in it
    convert(tmp_path / "renamed", tmp_path / "b.idx")
    assert (idxfile.read(tmp_path / "b.idx") == one).all()
    options = {"array": "int16"}
    convert(tmp_path / "a.zarr", tmp_path / "b.idx", source_options=options)
    assert (idxfile.read(tmp_path / "b.idx") == arrays["int16"]).all()


def test_zarr_that_is_none(tmp_path: Path) -> None:
    import_module("zarr")
    (tmp_path / "a.zarr").mkdir()
    (tmp_path / "a.zarr" / "zarr.json").write_text("{}")
    with pytest.raises(UnsupportedError, match="the group holds no array") as caught:
        convert(tmp_path / "a.zarr", tmp_path / "b.idx")
    (tmp_path / "a.zarr" / "zarr.json").write_text("{nope")
    with pytest.raises(FormatError, match="cannot be read"):
        convert(tmp_path / "a.zarr", tmp_path / "b.idx")
    assert caught.value.file == str(tmp_path / "a.zarr")


# Safetensors


def test_safetensors_reads_ours(folder: Path) -> None:
    library = import_module("safetensors.numpy")
    ds = idxfile.open_dataset(folder)
    convert(folder, folder / "a.safetensors")
    found = library.load_file(folder / "a.safetensors")
    assert (found["images"] == ds.images[...]).all()
    assert found["labels"].tolist() == ds.labels.tolist()
    with import_module("safetensors").safe_open(folder / "a.safetensors", "numpy") as file:
        assert json.loads(file.metadata()["classes"]) == list(ds.classes or ())


def test_safetensors_are_read(arrays: dict[str, np.ndarray], tmp_path: Path) -> None:
    library = import_module("safetensors.numpy")
    library.save_file(arrays, tmp_path / "a.safetensors", metadata={"made": "by them"})
    check_all(arrays, tmp_path / "a.safetensors")


@pytest.mark.parametrize("dtype", TYPES)
def test_the_elements_are_aligned(dtype: str, tmp_path: Path) -> None:
    labels = np.zeros(3, "uint8")
    np.savez(tmp_path / "a.npz", labels=labels, images=values(dtype, (3, 5), finite=True))
    convert(tmp_path / "a.npz", tmp_path / "a.safetensors")
    data = (tmp_path / "a.safetensors").read_bytes()
    length = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + length])
    assert (8 + length) % 8 == 0
    for name, size in (("images", np.dtype(dtype).itemsize), ("labels", 1)):
        assert header[name]["data_offsets"][0] % size == 0


def tensors(header: Any, data: bytes = b"") -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


ROW = {"dtype": "U8", "shape": [2, 3], "data_offsets": [0, 6]}


@pytest.mark.parametrize(
    ("data", "kind", "message"),
    [
        (b"", FormatError, "a header of 0 bytes"),
        (struct.pack("<Q", 2**63) + b"{}", FormatError, "a header of 9,223"),
        (struct.pack("<Q", 500) + b"{}", FormatError, "a header of 500 bytes"),
        (tensors(b"{nope"), FormatError, "is no JSON"),
        (tensors(b"[" * 100_000), FormatError, "is no JSON"),
        (tensors([1]), FormatError, "is no JSON object"),
        (tensors({"a": ROW}, bytes(5)), FormatError, "does not lie at bytes 0 to 6"),
        (tensors({"a": {**ROW, "shape": [2, 4]}}, bytes(6)), FormatError, "does not lie"),
        (tensors({"a": {**ROW, "shape": [-2, -3]}}, bytes(6)), FormatError, "is not described"),
        (tensors({"a": {**ROW, "shape": "23"}}, bytes(6)), FormatError, "is not described"),
        (tensors({"a": {**ROW, "data_offsets": [0]}}, bytes(6)), FormatError, "is not described"),
        (tensors({"a": {"dtype": "U8"}}, bytes(6)), FormatError, "is not described"),
        (tensors({"a": 7}, bytes(6)), FormatError, "is not described"),
        (
            tensors({"a": {"dtype": "U8", "shape": [2**40] * 2, "data_offsets": [0, 2**80]}}),
            FormatError,
            "does not lie",
        ),
        (tensors({"a": {**ROW, "dtype": "BF16"}}, bytes(12)), UnsupportedError, "holds BF16"),
        (tensors({"a": {**ROW, "dtype": []}}, bytes(12)), FormatError, "is not described"),
    ],
)
def test_headers_that_lie_are_refused(
    data: bytes, kind: type[Exception], message: str, tmp_path: Path
) -> None:
    path = tmp_path / "a.safetensors"
    path.write_bytes(data)
    with pytest.raises(kind, match=message) as caught:
        convert(path, tmp_path / "a.idx", source_format="safetensors")
    assert caught.value.file == str(path)
    assert os.listdir(tmp_path) == ["a.safetensors"]


# MATLAB


def test_scipy_reads_ours_as_matlab_would(folder: Path) -> None:
    scipy_io = import_module("scipy.io")
    ds = idxfile.open_dataset(folder)
    convert(folder, folder / "a.mat")
    found = scipy_io.loadmat(folder / "a.mat")
    assert found["images"].shape == (28, 28, 200)
    assert (found["images"][:, :, 7] == ds.images[7]).all()
    assert found["labels"].shape == (200, 1)
    assert found["labels"].ravel().tolist() == ds.labels.tolist()
    assert [cell[0][0] for cell in found["classes"]] == list(ds.classes or ())
    sizes = {name: shape for name, shape, _ in scipy_io.whosmat(folder / "a.mat")}
    assert sizes == {"images": (28, 28, 200), "labels": (200, 1), "classes": (10, 1)}


@pytest.mark.parametrize("compressed", [False, True])
def test_matlab_arrays_of_every_type(
    compressed: bool, arrays: dict[str, np.ndarray], tmp_path: Path
) -> None:
    scipy_io = import_module("scipy.io")
    held = {name: a for name, a in arrays.items() if name not in ("float16", "bool")}
    scipy_io.savemat(tmp_path / "a.mat", held, do_compression=compressed)
    check_all(held, tmp_path / "a.mat")


def test_the_labels_tell_which_dimension_counts_the_items(tmp_path: Path) -> None:
    scipy_io = import_module("scipy.io")
    images = np.arange(2 * 3 * 5, dtype="uint8").reshape(5, 2, 3)
    labels = np.arange(5.0)
    last = {"X": np.moveaxis(images, 0, -1), "y": labels[:, None]}
    first = {"X": images, "y": labels[None]}
    for variables, word in ((last, "last"), (first, "first")):
        scipy_io.savemat(tmp_path / "a.mat", variables)
        done = convert(tmp_path / "a.mat", f"{tmp_path}/out/")
        ds = idxfile.open_dataset(tmp_path / "out")
        assert (ds.images[...] == images).all()
        assert ds.labels.tolist() == [0, 1, 2, 3, 4]
        assert done.notes == [f"X: MATLAB's {word} dimension counts the items"]
    scipy_io.savemat(tmp_path / "a.mat", {"X": images[:2, :, :2], "y": labels[:2, None]})
    with pytest.raises(UnsupportedError, match="fit the first and the last dimension"):
        convert(tmp_path / "a.mat", f"{tmp_path}/out/")
    convert(
        tmp_path / "a.mat", tmp_path / "b.npy", column="images", source_options={"items": "last"}
    )
    assert (np.load(tmp_path / "b.npy") == np.moveaxis(images[:2, :, :2], -1, 0)).all()


@pytest.mark.parametrize("last", [True, False])
def test_matlab_7_3_is_read(last: bool, tmp_path: Path) -> None:
    h5py = import_module("h5py")
    images = np.arange(2 * 3 * 5, dtype="uint8").reshape(5, 2, 3)
    matlab = np.moveaxis(images, 0, -1) if last else images
    with h5py.File(tmp_path / "a.mat", "w", userblock_size=512) as file:
        file["X"] = matlab.T  # MATLAB's first dimension varies fastest
        file["X"].attrs["MATLAB_class"] = np.bytes_("uint8")
        file["y"] = np.arange(5.0)[None]
        file["name"] = np.array([[104], [105]], "uint16")
        file["name"].attrs["MATLAB_class"] = np.bytes_("char")
    with open(tmp_path / "a.mat", "r+b") as block:
        block.write(b"MATLAB 7.3 MAT-file, Platform: GLNXA64".ljust(124) + b"\x00\x02IM")
    done = convert(tmp_path / "a.mat", f"{tmp_path}/out/")
    assert done.source_format == "mat"
    ds = idxfile.open_dataset(tmp_path / "out")
    assert (ds.images[...] == images).all()
    assert ds.labels.tolist() == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("at", [10, 130, 200, 300])
def test_damaged_matlab_files_are_told(at: int, folder: Path) -> None:
    import_module("scipy")
    convert(folder, folder / "a.mat")
    (folder / "b.mat").write_bytes((folder / "a.mat").read_bytes()[:at])
    with pytest.raises(FormatError) as caught:
        convert(folder / "b.mat", folder / "b.npz")
    assert caught.value.file == str(folder / "b.mat")
    assert not (folder / "b.npz").exists()


def test_a_variable_of_matlab_5_ends_at_two_gibibytes(tmp_path: Path) -> None:
    with open(tmp_path / "a.idx", "wb") as file:
        header = idxfile.Header.of("uint8", (1 << 16, 1 << 15))
        file.write(header.encode())
        file.truncate(header.file_nbytes)
    with pytest.raises(UnsupportedError, match="variable holds 2 GiB") as caught:
        convert(tmp_path / "a.idx", tmp_path / "a.mat")
    assert "HDF5" in str(caught.value.hint)
    assert os.listdir(tmp_path) == ["a.idx"]


@pytest.mark.parametrize("version", ["4", "5"])
def test_matlab_files_of_both_old_versions_are_read(version: str, tmp_path: Path) -> None:
    scipy_io = import_module("scipy.io")
    array = np.arange(12, dtype="float64").reshape(3, 4)
    scipy_io.savemat(tmp_path / "a.mat", {"data": array}, format=version)
    convert(tmp_path / "a.mat", tmp_path / "a.npy", source_format="mat")
    assert (np.load(tmp_path / "a.npy") == array).all()


def test_matlab_things_that_are_no_arrays_are_passed_over(tmp_path: Path) -> None:
    scipy_io, sparse = import_module("scipy.io"), import_module("scipy.sparse")
    images = np.arange(12, dtype="int16").reshape(3, 2, 2)
    things = {
        "images": images,
        "text": "hello",
        "record": {"a": 1},
        "cells": np.array([1, "x"], dtype=object),
        "sparse": sparse.eye(3),
        "complex": np.ones(2, complex),
    }
    for compressed in (False, True):
        scipy_io.savemat(tmp_path / "a.mat", things, do_compression=compressed)
        done = convert(tmp_path / "a.mat", tmp_path / "a.npy", column="images")
        assert (np.load(tmp_path / "a.npy") == images).all()
        assert done.notes == ["images: MATLAB's first dimension counts the items"]


def test_our_own_matlab_file_needs_no_scipy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    array = values("float32", (5, 3, 4), finite=False)
    np.savez(tmp_path / "a.npz", images=array, labels=np.arange(5))
    convert(tmp_path / "a.npz", tmp_path / "a.mat")
    monkeypatch.setitem(__import__("sys").modules, "scipy.io", None)
    convert(tmp_path / "a.mat", tmp_path / "b.npz")
    found = np.load(tmp_path / "b.npz")
    assert found["images"].tobytes() == array.tobytes()
    assert found["labels"].tolist() == [0, 1, 2, 3, 4]
