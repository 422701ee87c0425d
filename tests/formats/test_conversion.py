"""The pump: what is chosen, cast, refused, replaced, and what is left when something fails."""

from __future__ import annotations

import gzip
import inspect
import json
import os
import sys
import threading
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from trials import FORMATS, OURS, TYPES, mnist, values

import idxfile
from conftest import COMPRESS, H, idx_bytes
from idxfile import (
    FormatError,
    IdxWarning,
    MissingExtraError,
    PairError,
    UnsupportedError,
    convert,
)
from idxfile.formats import conversion, npy, table
from idxfile.formats.blocks import in_groups
from idxfile.formats.columns import Columns, Sliced, Streamed, View
from idxfile.formats.options import described, options_of, parsed
from idxfile.formats.row import NUMBERS
from idxfile.formats.table import all_formats


def npz(path: Path, **arrays: Any) -> Path:
    np.savez(path, **arrays)
    return path


@pytest.fixture
def pair(tmp_path: Path) -> Path:
    """Ten pictures with labels, in an archive."""
    images = np.arange(10 * 6, dtype="uint8").reshape(10, 2, 3)
    return npz(tmp_path / "pair.npz", images=images, labels=np.arange(10, dtype="int64") % 3)


# What is chosen


def test_the_result_says_what_was_done(pair: Path, tmp_path: Path) -> None:
    done = convert(pair, tmp_path / "out.npy")
    assert done.as_dict() == {
        "source": str(pair),
        "target": str(tmp_path / "out.npy"),
        "source_format": "npz",
        "target_format": "npy",
        "columns": {"images": {"dtype": "uint8", "shape": [10, 2, 3]}},
        "classes": None,
        "notes": ["left out labels: NumPy array holds one array (column= chooses another)"],
    }
    json.dumps(done.as_dict())


def test_one_column_is_chosen_by_name(pair: Path, tmp_path: Path) -> None:
    done = convert(pair, tmp_path / "labels.idx", column="labels")
    assert idxfile.read(tmp_path / "labels.idx").tolist() == [0, 1, 2, 0, 1, 2, 0, 1, 2, 0]
    assert done.columns == {"labels": ("uint8", (10,))}
    with pytest.raises(UnsupportedError, match="no column 'nix'") as caught:
        convert(pair, tmp_path / "x.idx", column="nix")
    assert caught.value.hint == "there are images, labels"


@pytest.mark.parametrize(
    "items", [slice(2, 5), slice(-3, None), slice(None, None, 4), slice(20, 30), slice(7, 2, -2)]
)
@pytest.mark.parametrize("suffix", ["npz", "npy", "idx", "idx.gz", "csv", "jsonl", "safetensors"])
def test_items_are_those_of_a_slice(items: slice, suffix: str, pair: Path, tmp_path: Path) -> None:
    source = tmp_path / f"source.{suffix}"
    convert(pair, source)
    backwards = items.step is not None and items.step < 0
    if backwards and suffix in ("npz", "idx.gz", "csv", "jsonl"):
        with pytest.raises(UnsupportedError, match="read in order"):
            convert(source, tmp_path / "end.idx", items=items)
        return
    convert(source, tmp_path / "end.idx", items=items)
    assert (idxfile.read(tmp_path / "end.idx") == np.load(pair)["images"][items]).all()


def test_a_scalar_has_no_items(tmp_path: Path) -> None:
    idxfile.write(tmp_path / "a.idx", np.uint8(3))
    with pytest.raises(UnsupportedError, match="a scalar has no items"):
        convert(tmp_path / "a.idx", tmp_path / "a.npy", items=slice(0, 1))


def test_labels_come_from_another_file(pair: Path, tmp_path: Path) -> None:
    for name, data in {
        "l.idx": idx_bytes(np.arange(10, dtype="uint8")),
        "l.csv": b"label\n" + b"".join(b"%d\n" % n for n in range(10)),
        "l.txt": b"".join(b"%d\n" % n for n in range(10)),
        "l.idx.gz": gzip.compress(idx_bytes(np.arange(10, dtype="uint8"))),
    }.items():
        (tmp_path / name).write_bytes(data)
        out = tmp_path / f"out-{name}"
        convert(pair, f"{out}/", labels=tmp_path / name)
        assert idxfile.open_dataset(out).labels.tolist() == list(range(10))
    (tmp_path / "l.idx").write_bytes(idx_bytes(np.arange(9, dtype="uint8")))
    with pytest.raises(PairError, match="images: 10 items, labels: 9 items") as caught:
        convert(pair, f"{tmp_path}/out/", labels=tmp_path / "l.idx")
    assert caught.value.file == str(pair)
    assert not (tmp_path / "out").exists()


def test_labels_beside_images_are_found_or_left(tmp_path: Path) -> None:
    images = mnist(tmp_path, 30) / "t10k-images-idx3-ubyte"
    assert list(convert(images, tmp_path / "a.npz").columns) == ["images", "labels"]
    alone = convert(images, tmp_path / "a.npz", source_options={"labels": "none"})
    assert list(alone.columns) == ["images"]
    (tmp_path / "t10k-labels-idx1-ubyte").write_bytes(H(8, 3) + b"abc")
    with pytest.raises(PairError, match="30 items, labels: 3 items"):
        convert(images, tmp_path / "a.npz")
    convert(images, tmp_path / "a.npz", source_options={"labels": "none"})


def test_texts_are_numbered_in_natural_order(tmp_path: Path) -> None:
    names = np.array(["img10", "img2", "dog", "img2"])
    source = npz(tmp_path / "a.npz", images=np.zeros((4, 2), "uint8"), labels=names)
    done = convert(source, f"{tmp_path}/out/")
    ds = idxfile.open_dataset(tmp_path / "out")
    assert ds.classes == done.classes == ("dog", "img2", "img10")
    assert ds.labels.tolist() == [2, 1, 0, 1]
    assert "labels are numbers now: 0 dog, 1 img2, 2 img10" in done.notes
    source = npz(
        tmp_path / "a.npz",
        images=np.zeros((4, 2), "uint8"),
        labels=names,
        classes=["img2", "cat", "img10", "dog"],
    )
    convert(source, f"{tmp_path}/out/", overwrite=True)
    assert idxfile.open_dataset(tmp_path / "out").labels.tolist() == [2, 0, 3, 0]


def test_texts_beside_numbers_are_left_out_and_told(tmp_path: Path) -> None:
    source = npz(tmp_path / "a.npz", images=np.zeros((2, 3), "uint8"), place=["a", "b"])
    done = convert(source, tmp_path / "b.npz")
    assert list(done.columns) == ["images"]
    assert done.notes == ["left out place: text"]


def test_columns_that_are_no_pair_are_not_guessed(tmp_path: Path) -> None:
    source = npz(tmp_path / "a.npz", left=np.zeros((2, 3), "uint8"), right=np.zeros(2, "uint8"))
    with pytest.raises(UnsupportedError, match="left, right are no pair of images and labels"):
        convert(source, f"{tmp_path}/out/")
    convert(source, f"{tmp_path}/out/", column="left")
    assert os.listdir(tmp_path / "out") == ["train-images-idx2-ubyte"]


# Element types


@pytest.mark.parametrize(
    ("array", "dtype"),
    [
        (np.array([0, 255], "int64"), "uint8"),
        (np.array([-1, 127], "int64"), "int8"),
        (np.array([-1, 128], "int64"), "int16"),
        (np.array([0, 256], "uint64"), "int16"),
        (np.array([0, 65535], "uint16"), "int32"),
        (np.array([True, False]), "uint8"),
        (np.array([0.0, 255.0]), "uint8"),
        (np.array([0.5, 2.0]), "float32"),
        (np.array([0.1]), "float64"),
        (np.array([2.0**31]), "float32"),
        (np.array([2**31], "int64"), "float32"),
        (np.array([2**31 + 1], "int64"), "float64"),
        (np.array([np.nan, 1.0]), "float32"),
        (np.array([70000.0, -1.0], "float32"), "float32"),
        (np.array([0.1], "float16"), "float32"),
        (np.array([], "int64"), "uint8"),
    ],
    ids=repr,
)
def test_auto_takes_the_smallest_type_that_keeps_every_value(
    array: np.ndarray, dtype: str, tmp_path: Path
) -> None:
    np.save(tmp_path / "a.npy", array)
    if array.dtype.name not in TYPES:
        with pytest.raises(UnsupportedError, match=f"cannot hold {array.dtype.name}") as caught:
            convert(tmp_path / "a.npy", tmp_path / "a.idx")
        assert caught.value.hint is not None
        assert caught.value.hint.startswith(f"{dtype} would hold every value")
        assert caught.value.file == str(tmp_path / "a.npy")
    convert(tmp_path / "a.npy", tmp_path / "a.idx", dtype="auto")
    found = idxfile.read(tmp_path / "a.idx")
    assert found.dtype == dtype
    assert np.array_equal(found, array, equal_nan=array.dtype.kind == "f")


@pytest.mark.parametrize("array", [np.array([2**53 + 1]), np.array([2**64 - 1], "uint64")])
def test_what_no_type_holds_is_refused(array: np.ndarray, tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", array)
    for dtype in (None, "auto", "float64"):
        with pytest.raises(UnsupportedError):
            convert(tmp_path / "a.npy", tmp_path / "a.idx", dtype=dtype)
    assert os.listdir(tmp_path) == ["a.npy"]


@given(st.lists(st.integers(-(2**40), 2**40), max_size=6), st.sampled_from(NUMBERS))
def test_a_cast_keeps_every_value_or_is_refused(numbers: list[int], dtype: str) -> None:
    array = np.array(numbers, "int64")
    column = conversion.settle(
        Columns({"images": Sliced(array)}), FORMATS["npy"], dtype=dtype
    ).first
    with np.errstate(all="ignore"):
        survives = array.astype(dtype).astype(object).tolist() == numbers
    try:
        blocks = list(column.blocks())
    except UnsupportedError:
        assert not survives
    else:
        assert [value for block in blocks for value in block.tolist()] == numbers
        assert all(block.dtype == dtype for block in blocks)


def test_the_first_value_that_does_not_survive_is_named(tmp_path: Path) -> None:
    array = np.zeros((3000, 1000), "int32")
    array[2900, 7] = 300
    np.save(tmp_path / "a.npy", array)
    with pytest.raises(UnsupportedError) as caught:
        convert(tmp_path / "a.npy", tmp_path / "a.idx", dtype="uint8")
    assert str(caught.value).startswith(
        f"{tmp_path}/a.npy: 300 at index (2900, 7) does not survive as uint8\nhint: "
    )
    assert caught.value.found == 300
    assert os.listdir(tmp_path) == ["a.npy"]


@pytest.mark.parametrize("dtype", ["nix", "complex128", "U3", object(), "datetime64[s]"])
def test_other_types_are_no_element_types(dtype: Any, pair: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="dtype must be auto or one of bool, uint8"):
        convert(pair, tmp_path / "a.idx", dtype=dtype)


def test_other_formats_hold_other_types(pair: Path, tmp_path: Path) -> None:
    for dtype in NUMBERS:
        if dtype not in ("bool", "float16"):
            convert(pair, tmp_path / "a.npy", dtype=dtype)
            assert np.load(tmp_path / "a.npy").dtype == dtype


@pytest.mark.parametrize(
    ("numbers", "dtype", "scale", "expected"),
    [
        ([0.0, 0.5, 1.0], None, (0, 1), [0, 128, 255]),
        ([0.0, 1 / 255, 254.4 / 255], "uint8", (0, 1), [0, 1, 254]),
        ([-1.0, 0.0, 1.0], "uint8", (-1, 1), [0, 128, 255]),
        ([-1.0, 0.0, 1.0], "int8", (-1, 1), [-128, 0, 127]),
        ([0.0, 1.0], "int16", (0, 1), [-32768, 32767]),
        ([0.0, 10.0], "int32", (0, 10), [-(2**31), 2**31 - 1]),
    ],
)
def test_scale_says_how_floats_become_integers(
    numbers: list[float], dtype: str | None, scale: Any, expected: list[int], tmp_path: Path
) -> None:
    for kind in ("float32", "float64"):
        np.save(tmp_path / "a.npy", np.array(numbers, kind))
        convert(tmp_path / "a.npy", tmp_path / "a.idx", dtype=dtype, scale=scale)
        found = idxfile.read(tmp_path / "a.idx")
        assert found.tolist() == expected
        assert found.dtype == (dtype or "uint8")


def test_every_byte_survives_the_way_over_the_unit_interval(tmp_path: Path) -> None:
    every = np.arange(256, dtype="uint8")
    np.save(tmp_path / "a.npy", every.astype("float32") / np.float32(255))
    convert(tmp_path / "a.npy", tmp_path / "a.idx", dtype="uint8", scale=(0, 1))
    assert (idxfile.read(tmp_path / "a.idx") == every).all()


@pytest.mark.parametrize("value", [-0.001, 1.001, np.nan, np.inf])
def test_what_lies_outside_a_scale_is_no_guess(value: float, tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.array([0.5, value]))
    with pytest.raises(UnsupportedError, match="lies outside the scale 0:1"):
        convert(tmp_path / "a.npy", tmp_path / "a.idx", scale=(0, 1))


@pytest.mark.parametrize(
    ("dtype", "scale"),
    [("float32", (0, 1)), ("auto", (0, 1)), ("uint8", (1, 0)), (None, (0, np.inf)), (None, (1, 1))],
)
def test_a_scale_that_says_nothing_is_wrong(dtype: Any, scale: Any, tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.array([0.5]))
    with pytest.raises(ValueError, match="scale"):
        convert(tmp_path / "a.npy", tmp_path / "a.idx", dtype=dtype, scale=scale)


@pytest.mark.parametrize(
    ("labels", "kind"),
    [
        (np.array([1, 2], "int64"), "uint8"),
        (np.array([1, -2], "int64"), "int8"),
        (np.array([1, 300], "uint16"), "int16"),
        (np.array([1.0, 2.0]), "uint8"),
        (np.array([True, False]), "uint8"),
        (np.array([1, 2], "int32"), "int32"),
    ],
)
def test_labels_of_a_pair_are_integers_of_idx(
    labels: np.ndarray, kind: str, tmp_path: Path
) -> None:
    source = npz(tmp_path / "a.npz", images=np.zeros((2, 3), "uint8"), labels=labels)
    convert(source, f"{tmp_path}/out/")
    found = idxfile.open_dataset(tmp_path / "out").labels
    assert found.dtype == kind
    assert found.tolist() == labels.tolist()


def test_labels_that_are_no_integers_make_no_pair(tmp_path: Path) -> None:
    source = npz(tmp_path / "a.npz", images=np.zeros((2, 3), "uint8"), labels=[0.5, 1.0])
    with pytest.raises(UnsupportedError, match="no element type"):
        convert(source, f"{tmp_path}/out/")
    convert(source, tmp_path / "b.npz")
    assert np.load(tmp_path / "b.npz")["labels"].tolist() == [0.5, 1.0]


# Where it goes


def listing(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def test_the_name_says_the_format(pair: Path, tmp_path: Path) -> None:
    for name, kind in {
        "a.npy": "npy",
        "A.NPY": "npy",
        "a.idx": "idx",
        "a.idx.gz": "idx",
        "train-images-idx3-ubyte": "idx",
        "train-images.idx3-ubyte": "idx",
        "images": "idx",
        "images.gz": "idx",
        "a.csv.gz": "csv",
        "a.jsonl.xz": "jsonl",
        "new/": "idx",
    }.items():
        assert convert(pair, f"{tmp_path}/{name}").target_format == kind
    for name in ("a", "a.foo", "x.png", "a.gz", "labels.foo"):
        with pytest.raises(UnsupportedError, match="does not say what format"):
            convert(pair, tmp_path / name)
    for name in ("a.npy.gz", "a.npz.bz2", "a.safetensors.zst"):
        with pytest.raises(UnsupportedError, match="is not compressed with"):
            convert(pair, tmp_path / name)
    convert(pair, tmp_path / "a.foo", target_format="npy")
    assert np.load(tmp_path / "a.foo").shape == (10, 2, 3)


@pytest.mark.parametrize("codec", COMPRESS)
def test_compression_is_taken_off_by_content(codec: str, pair: Path, tmp_path: Path) -> None:
    for kind in ("npy", "npz", "csv", "safetensors", "idx"):
        convert(pair, tmp_path / f"a.{kind}", column="images")
        packed = tmp_path / f"packed-{kind}"
        packed.write_bytes(COMPRESS[codec]((tmp_path / f"a.{kind}").read_bytes()))
        source = packed.rename(f"{packed}.{kind}") if kind == "safetensors" else packed
        done = convert(source, tmp_path / "b.npy")
        assert (done.source_format, done.source) == (kind, str(source))
        assert (np.load(tmp_path / "b.npy").reshape(10, 2, 3) == np.load(pair)["images"]).all()
        source.write_bytes(COMPRESS[codec]((tmp_path / f"a.{kind}").read_bytes())[:-9])
        with pytest.raises((FormatError, UnsupportedError)) as caught:
            convert(source, tmp_path / "c.npy")
        assert caught.value.file == str(source)
        assert not (tmp_path / "c.npy").exists()


def test_a_compressed_file_with_too_much_or_too_little_is_refused(tmp_path: Path) -> None:
    whole = idx_bytes(values("int16", (3000, 9), finite=True))
    for data, message in ((whole + b"x" * 9, "at least 1 byte after"), (whole[:-1], "missing")):
        (tmp_path / "a.idx.gz").write_bytes(gzip.compress(data))
        with pytest.raises(FormatError, match=message):
            convert(tmp_path / "a.idx.gz", tmp_path / "a.npy")
        assert os.listdir(tmp_path) == ["a.idx.gz"]


def test_overwriting_is_as_it_was_chosen(pair: Path, tmp_path: Path) -> None:
    target = tmp_path / "out.npy"
    target.write_bytes(b"old")
    os.chmod(target, 0o640)
    with pytest.raises(FileExistsError) as caught:
        convert(pair, target, overwrite=False)
    assert caught.value.filename == str(target)
    assert target.read_bytes() == b"old"
    convert(pair, target)
    assert np.load(target).shape == (10, 2, 3)
    assert target.stat().st_mode & 0o777 == 0o640


def test_a_link_stays_one(pair: Path, tmp_path: Path) -> None:
    (tmp_path / "real.npy").write_bytes(b"old")
    (tmp_path / "link.npy").symlink_to("real.npy")
    convert(pair, tmp_path / "link.npy")
    assert (tmp_path / "link.npy").is_symlink()
    assert np.load(tmp_path / "real.npy").shape == (10, 2, 3)


def test_a_device_and_a_wrong_kind_of_place_are_refused(pair: Path, tmp_path: Path) -> None:
    with pytest.raises(FileExistsError, match="a pipe or a device"):
        convert(pair, "/dev/null", target_format="npy")
    assert not os.path.isfile("/dev/null")
    (tmp_path / "folder.npy").mkdir()
    with pytest.raises(IsADirectoryError):
        convert(pair, tmp_path / "folder.npy")
    (tmp_path / "file").write_bytes(b"old")
    with pytest.raises(NotADirectoryError):
        convert(pair, f"{tmp_path}/file/")
    with pytest.raises(FileNotFoundError):
        convert(tmp_path / "nix.npy", tmp_path / "a.idx")
    with pytest.raises(FileNotFoundError) as caught:
        convert(pair, tmp_path / "nix" / "a.npy")
    assert caught.value.filename == str(tmp_path / "nix" / "a.npy")


def test_a_pair_is_added_to_a_folder_and_nothing_else_is_touched(
    pair: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / "thesis.tex").write_bytes(b"years of work")
    for split in ("train", "test"):
        convert(pair, out, split=split, overwrite=False)
    before = listing(out)
    assert len(before) == 5
    convert(pair, out, split="test", overwrite=False)  # the same once more is no conflict
    with pytest.raises(FileExistsError):
        convert(pair, out, split="test", items=slice(3), overwrite=False)
    assert listing(out) == before
    convert(pair, out, split="test", items=slice(3))
    assert len(idxfile.open_dataset(out, split="test")) == 3
    assert listing(out)["thesis.tex"] == b"years of work"


@pytest.fixture
def broken(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reading .npy fails in the middle."""
    real = npy.read_columns

    def read(path: str) -> Columns:
        columns = real(path)
        inner = columns.first

        def blocks(block_nbytes: int) -> Iterator[Any]:
            for number, block in enumerate(inner.blocks(block_nbytes=100)):
                if number == 3:
                    raise KeyboardInterrupt
                yield block

        return Columns({"images": Streamed(inner.shape, inner.dtype, blocks)})

    monkeypatch.setattr(npy, "read_columns", read)


@pytest.mark.usefixtures("broken")
@pytest.mark.parametrize("name", [*OURS, "folder"])
@pytest.mark.parametrize("old", [False, True])
def test_a_failure_leaves_what_was_there(name: str, old: bool, tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.zeros((200, 9), "uint8"))
    place = f"{tmp_path}/out/" if name == "folder" else f"{tmp_path}/out{FORMATS[name].suffixes[0]}"
    if old and (name == "folder" or FORMATS[name].folder):
        os.mkdir(place)
        Path(place, "old").write_bytes(b"old")
    elif old:
        Path(place).write_bytes(b"old")
    before = listing(tmp_path)
    with pytest.raises(KeyboardInterrupt):
        convert(tmp_path / "a.npy", place, overwrite=True)
    assert listing(tmp_path) == before
    assert sorted(os.listdir(tmp_path)) == ["a.npy", *([Path(place).name] if old else [])]


PACKED = {"target_options": {"codec": "gz"}}


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ({}, {"shards": 2}),
        ({"shards": 2}, {}),
        ({}, PACKED),
        (PACKED, {"column": "labels"}),
        ({"column": "images"}, {"column": "images", "dtype": "int32"}),
    ],
)
def test_a_folder_has_one_pair_of_a_split(
    first: dict[str, Any], second: dict[str, Any], pair: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out/"
    out.mkdir()
    convert(pair, out, **first)
    before = {path.name: path.read_bytes() for path in out.iterdir()}
    with pytest.raises(PairError, match="nobody could tell the pairs apart"):
        convert(pair, out, overwrite=True, **second)
    assert {path.name: path.read_bytes() for path in out.iterdir()} == before
    convert(pair, out, split="test", **second)
    convert(pair, out, **first)


def test_a_folder_is_replaced_only_when_asked_and_put_back(
    pair: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import_module("zarr")
    target = tmp_path / "out.zarr"
    target.mkdir()
    convert(pair, target)  # an empty one is nothing that could be lost
    (target / "old").write_bytes(b"old")
    for overwrite in ("files", False):
        with pytest.raises(FileExistsError, match="would be replaced"):
            convert(pair, target, overwrite=overwrite)
    before = listing(tmp_path)
    real = os.rename

    def fail(source: str, goal: str) -> None:
        if ".new." in os.path.basename(source):
            raise PermissionError(13, "no", goal)
        real(source, goal)

    monkeypatch.setattr(os, "rename", fail)
    with pytest.raises(PermissionError):
        convert(pair, target, overwrite=True)
    assert listing(tmp_path) == before
    monkeypatch.undo()
    convert(pair, target, overwrite=True)
    assert "out.zarr/old" not in listing(tmp_path)
    assert sorted(os.listdir(tmp_path)) == ["out.zarr", "pair.npz"]


@pytest.mark.parametrize("suffix", ["idx", "npy", "csv", "idx.gz", "npz", "jsonl"])
@pytest.mark.parametrize(("dtype", "total"), [(None, 60), ("auto", 120)])
def test_progress_counts_every_byte_once_or_twice(
    suffix: str, dtype: str | None, total: int, pair: Path, tmp_path: Path
) -> None:
    told: list[tuple[int, int]] = []
    target = tmp_path / f"a.{suffix}"
    convert(pair, target, column="images", dtype=dtype, progress=lambda *now: told.append(now))
    assert told[-1] == (total, total)


# Options


def test_options_are_those_of_the_signatures(pair: Path, tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="npy has no option 'nix'; it has byteorder"):
        convert(pair, tmp_path / "a.npy", target_options={"nix": 1})
    with pytest.raises(ValueError, match="byteorder of npy must be one of native, big, not 'up'"):
        convert(pair, tmp_path / "a.npy", target_options={"byteorder": "up"})
    with pytest.raises(TypeError, match="npz has no option 'byteorder'; it has split"):
        convert(pair, tmp_path / "a.npy", source_options={"byteorder": "big"})
    with pytest.raises(ValueError, match="format must be one of idx, npy"):
        convert(pair, tmp_path / "a.npy", target_format="nix")
    with pytest.raises(UnsupportedError, match="is not read here"):
        convert(pair, tmp_path / "a.npy", source_format="c")
    assert os.listdir(tmp_path) == ["pair.npz"]


@pytest.mark.parametrize("name", FORMATS)
def test_every_option_can_be_given_as_text_and_is_documented(name: str) -> None:
    row = FORMATS[name]
    module = row.load()
    verbs = {"reads": "read_columns", "writes": "write_columns", "points": "point_columns"}
    for verb, function in verbs.items():
        assert hasattr(module, function) or not getattr(row, verb)
        if not getattr(row, verb):
            continue
        work = getattr(module, function)
        for option, annotation in options_of(work).items():
            assert described(annotation)
            told = f"{option}: " in inspect.getdoc(work)
            assert told or row.module in (".pictures", ".webdataset")
            default = inspect.signature(work).parameters[option].default
            text = "none" if default is None else str(default).lower()
            if not isinstance(default, tuple):
                assert parsed(text, annotation) == default


@pytest.mark.parametrize(
    ("text", "annotation", "value"),
    [
        ("yes", bool, True),
        ("False", bool, False),
        ("7", int, 7),
        ("-7", int | None, -7),
        ("none", int | None, None),
        ("none", str | None, None),
        ("none", str, "none"),
        ("28x28", tuple[int, ...] | None, (28, 28)),
        ("784", tuple[int, ...], (784,)),
        ("28", str, "28"),
    ],
)
def test_texts_become_values_by_the_annotation(text: str, annotation: Any, value: Any) -> None:
    assert parsed(text, annotation) == value


@pytest.mark.parametrize(
    ("text", "annotation"), [("x", int), ("2", bool), ("28*28", tuple[int, ...]), ("", int | None)]
)
def test_texts_that_mean_nothing_are_refused(text: str, annotation: Any) -> None:
    with pytest.raises(ValueError, match="is not"):
        parsed(text, annotation)


# The table


def test_a_missing_package_is_told_with_the_line_that_brings_it(
    pair: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for package, module, suffix, extra in (
        ("h5py", "hdf5", "h5", "hdf5"),
        ("pyarrow", "parquet", "parquet", "parquet"),
        ("pyarrow", "feather", "arrow", "parquet"),
        ("zarr", "zarr", "zarr", "zarr"),
    ):
        monkeypatch.setitem(sys.modules, package, None)
        for room in (module, "tensors", "batches"):
            monkeypatch.delitem(sys.modules, f"idxfile.formats.{room}", raising=False)
        with pytest.raises(MissingExtraError, match=f"needs the package {package}") as caught:
            convert(pair, tmp_path / f"a.{suffix}")
        assert caught.value.hint == f"pip install 'idxfile[{extra}]'"
        monkeypatch.undo()


def test_another_package_adds_a_format(
    tmp_path: Path, pair: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = tmp_path / "site"
    facts = site / "pixels-1.0.dist-info"
    facts.mkdir(parents=True)
    (facts / "METADATA").write_text("Metadata-Version: 2.1\nName: pixels\nVersion: 1.0\n")
    (facts / "entry_points.txt").write_text(
        "[idxfile.formats]\npixels = pixels_format:ROW\nbroken = nix:ROW\nnpy = pixels_format:NPY\n"
    )
    (site / "pixels_format.py").write_text(
        "from idxfile.formats.row import Format\n"
        "from idxfile.formats.columns import Columns, Sliced\n"
        "import numpy as np\n"
        "ROW = Format('pixels', ('.pixels',), 'pixels_format.work', 'Pixels', types=('uint8',))\n"
        "NPY = Format('npy', ('.npy',), 'nix.nix', 'Not ours')\n"
    )
    package = site / "pixels_format"
    package.mkdir()
    (site / "pixels_format.py").rename(package / "__init__.py")
    (package / "work.py").write_text(
        "from idxfile.formats.columns import Columns, Sliced\n"
        "import numpy as np\n"
        "def write_columns(path, columns, *, mark: str = 'P'):\n"
        "    with open(path, 'wb') as file:\n"
        "        file.write(mark.encode())\n"
        "        for block in columns.first.blocks():\n"
        "            file.write(block.tobytes())\n"
        "def read_columns(path):\n"
        "    return Columns({'images': Sliced(np.fromfile(path, 'uint8', offset=1))})\n"
    )
    monkeypatch.syspath_prepend(site)
    all_formats.cache_clear()
    try:
        with pytest.warns(IdxWarning, match="the format broken of nix:ROW cannot be loaded"):
            done = convert(pair, tmp_path / "a.pixels", target_options={"mark": "Q"})
        assert done.target_format == "pixels"
        assert (tmp_path / "a.pixels").read_bytes() == b"Q" + bytes(range(60))
        convert(tmp_path / "a.pixels", tmp_path / "a.npy", source_format="pixels")
        assert np.load(tmp_path / "a.npy").tolist() == list(range(60))
        assert table.format_named("npy") is FORMATS["npy"]
    finally:
        all_formats.cache_clear()


def test_content_decides_what_a_source_is(pair: Path, tmp_path: Path) -> None:
    images = np.load(pair)["images"]
    for kind in ("npy", "npz", "csv", "jsonl", "idx"):
        convert(pair, tmp_path / f"a.{kind}", column="images")
        wrong = (tmp_path / f"a.{kind}").rename(tmp_path / f"{kind}.safetensors")
        done = convert(wrong, tmp_path / "b.npy")
        assert done.source_format == kind
        assert np.load(tmp_path / "b.npy").size == images.size


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "file is empty"),
        (b"<html><title>404</title>", "an HTML page"),
        (b"%PDF-1.4 and so on", "a PDF document"),
        (bytes(100), "not an IDX file|element type"),
        (b"\x7fELF" + bytes(50), "an ELF program, which cannot be converted from"),
        (b"SQLite format 3\x00" + bytes(50), "an SQLite database"),
    ],
)
def test_what_nobody_reads_is_named(data: bytes, message: str, tmp_path: Path) -> None:
    for name in ("a.idx", "a.bin"):
        (tmp_path / name).write_bytes(data)
        with pytest.raises(FormatError, match=message) as caught:
            convert(tmp_path / name, tmp_path / "b.npy")
        assert caught.value.file == str(tmp_path / name)


def test_an_empty_folder_is_nothing(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(FormatError, match="holds nothing that can be converted from"):
        convert(tmp_path / "empty", tmp_path / "a.npy")


@pytest.mark.parametrize("column", ["images", "labels"])
def test_a_folder_with_a_single_file_is_read(column: str, pair: Path, tmp_path: Path) -> None:
    convert(pair, f"{tmp_path}/out/", column=column)
    assert list(convert(tmp_path / "out", tmp_path / "a.npz").columns) == [column]
    with pytest.raises(FileNotFoundError, match="No pair"):
        convert(tmp_path / "out", tmp_path / "a.npz", split="test")


def test_lush_matrices_are_read(tmp_path: Path) -> None:
    header = bytes.fromhex("554c3d1e 01000000 03000000 01000000 01000000")
    (tmp_path / "a.mat").write_bytes(header + b"\x07\x08\x09")
    done = convert(tmp_path / "a.mat", tmp_path / "a.npy")
    assert done.source_format == "idx"
    assert np.load(tmp_path / "a.npy").tolist() == [7, 8, 9]


# Columns


def test_columns_of_unequal_length_are_no_columns() -> None:
    columns = Columns({"images": Sliced(np.zeros((3, 2))), "labels": Sliced(np.zeros(2))})
    with pytest.raises(PairError, match="images: 3 items, labels: 2 items"):
        columns.check_lengths()


@given(st.lists(st.integers(0, 7), max_size=8), st.integers(1, 9))
def test_groups_are_the_same_items_in_other_blocks(sizes: list[int], count: int) -> None:
    whole = np.arange(sum(sizes))
    blocks = np.split(whole, np.cumsum(sizes)[:-1]) if sizes else []
    groups = list(in_groups(blocks, count))
    assert [n for group in groups for n in group] == whole.tolist()
    assert all(len(group) == count for group in groups[:-1])
    assert all(0 < len(group) <= count for group in groups)


@given(st.slices(12), st.integers(1, 5), st.booleans())
def test_a_view_is_what_a_slice_is(items: slice, step: int, streamed: bool) -> None:
    whole = np.arange(24).reshape(12, 2)
    column: Any = Sliced(whole)
    if streamed:
        parts = [whole[n : n + step] for n in range(0, 12, step)]
        column = Streamed(whole.shape, whole.dtype, lambda _: iter(parts))
    view = View(column, items=items, change=lambda block, _: block * 2, dtype="float32")
    expected = whole[items] * 2
    assert view.shape == expected.shape
    try:
        found = list(view.blocks(block_nbytes=16 * step))
    except UnsupportedError:
        assert streamed
        assert items.step < 0
    else:
        assert np.concatenate([np.empty((0, 2)), *found]).tolist() == expected.tolist()


def test_rows_keep_columns_in_step() -> None:
    images = np.arange(600, dtype="int32").reshape(100, 6)
    columns = Columns({"images": Sliced(images), "labels": Sliced(np.arange(100, dtype="uint8"))})
    for nbytes in (1, 100, 1000, 10**6):
        rows = list(columns.rows(block_nbytes=nbytes))
        assert all(len(one) == len(other) for one, other in rows)
        assert np.concatenate([one for one, _ in rows]).tolist() == images.tolist()
        assert np.concatenate([other for _, other in rows]).tolist() == list(range(100))


# Several splits


def test_all_splits_go_from_folder_to_archive_and_back(tmp_path: Path) -> None:
    out = tmp_path / "first"
    out.mkdir()
    for split, count in (("train", 30), ("test", 10)):
        images = np.arange(count * 4, dtype="uint8").reshape(count, 2, 2)
        source = npz(tmp_path / "a.npz", images=images, labels=np.arange(count) % 7)
        convert(source, out, split=split)
    (out / "classes.txt").write_text("".join(f"class {n}\n" for n in range(7)))
    before = listing(out)
    for suffix, package in (
        ("npz", "numpy"),
        ("safetensors", "numpy"),
        ("h5", "h5py"),
        ("zarr", "zarr"),
        ("mat", "scipy"),
    ):
        try:
            __import__(package)
        except ImportError:
            continue
        done = convert(out, tmp_path / f"all.{suffix}", split="all")
        names = ["test/images", "test/labels", "train/images", "train/labels"]
        assert sorted(done.columns) == names
        convert(tmp_path / f"all.{suffix}", f"{tmp_path}/{suffix}/", split="all")
        assert listing(tmp_path / suffix) == before
        convert(tmp_path / f"all.{suffix}", f"{tmp_path}/{suffix}-test/", split="test")
        assert set(listing(tmp_path / f"{suffix}-test")) == {
            name for name in before if not name.startswith("train")
        }


def test_keras_own_archive_is_written(tmp_path: Path) -> None:
    out = tmp_path / "first"
    out.mkdir()
    for split, count in (("train", 30), ("test", 10)):
        source = npz(tmp_path / "a.npz", images=np.zeros((count, 2), "uint8"), labels=[1] * count)
        convert(source, out, split=split)
    convert(out, tmp_path / "mnist.npz", split="all", target_options={"names": "keras"})
    found = np.load(tmp_path / "mnist.npz")
    assert {name: found[name].shape for name in found} == {
        "x_train": (30, 2),
        "y_train": (30,),
        "x_test": (10, 2),
        "y_test": (10,),
    }


def test_a_table_holds_one_split(tmp_path: Path) -> None:
    source = npz(tmp_path / "a.npz", x_train=np.zeros((3, 2)), x_test=np.zeros((2, 2)))
    for name in ("a.csv", "a.jsonl"):
        with pytest.raises(UnsupportedError, match="holds one split, not test, train"):
            convert(source, tmp_path / name, split="all")
    done = convert(source, tmp_path / "a.npy", split="all")
    assert done.columns == {"train/images": ("float64", (3, 2))}


def test_classes_are_the_same_in_all_splits(tmp_path: Path) -> None:
    source = npz(
        tmp_path / "a.npz",
        x_train=np.zeros((2, 2), "uint8"),
        y_train=["b", "c"],
        x_test=np.zeros((2, 2), "uint8"),
        y_test=["c", "a"],
    )
    convert(source, f"{tmp_path}/out/", split="all")
    for split, labels in (("train", [1, 2]), ("test", [2, 0])):
        ds = idxfile.open_dataset(tmp_path / "out", split=split)
        assert ds.labels.tolist() == labels
        assert ds.classes == ("a", "b", "c")


def test_other_arrays_may_have_any_lengths(tmp_path: Path) -> None:
    source = npz(tmp_path / "a.npz", weights=np.zeros((3, 2)), bias=np.ones(5))
    convert(source, tmp_path / "a.safetensors")
    convert(tmp_path / "a.safetensors", tmp_path / "b.idx", column="bias")
    assert idxfile.read(tmp_path / "b.idx").tolist() == [1] * 5
    with pytest.raises(PairError, match="weights: 3 items, bias: 5 items"):
        convert(source, tmp_path / "a.csv")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes with names are of Unix")
def test_a_pipe_is_read_once(tmp_path):
    array, pipe = np.arange(90_000, dtype="int32"), tmp_path / "pipe"
    os.mkfifo(pipe)
    feeder = threading.Thread(target=pipe.write_bytes, args=(gzip.compress(idxfile.encode(array)),))
    feeder.start()
    idxfile.convert(pipe, tmp_path / "x.npy")
    feeder.join()
    assert np.array_equal(np.load(tmp_path / "x.npy"), array)
