"""WebDataset: out and back, as the real package reads it, and archives that others made."""

from __future__ import annotations

import gc
import io
import json
import tarfile
import warnings
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import idxfile
from conftest import MNIST
from idxfile import png
from idxfile.errors import FormatError, PairError, UnsupportedError
from idxfile.formats import pictures, webdataset
from idxfile.formats.columns import Columns, Sliced
from idxfile.formats.conversion import convert

wds = import_module("webdataset")

IMAGES = np.arange(4 * 6, dtype=np.uint8).reshape(4, 2, 3)
LABELS = np.array([2, 0, 2, 1])
CLASSES = ("zero", None, "two")


def written(path: Path, labels: Any = LABELS, classes: Any = None, **options: Any) -> Path:
    arrays = {"images": Sliced(IMAGES)} | ({} if labels is None else {"labels": Sliced(labels)})
    webdataset.write_columns(str(path), Columns(arrays, classes), **options)
    return path


def packed(path: Path, members: dict[str, Any]) -> Path:
    """A tar by the standard library; arrays as PNG."""
    with tarfile.open(path, "w") as tar:
        for name, content in members.items():
            data = content.encode() if isinstance(content, str) else content
            data = data if isinstance(data, bytes) else png.encode(data)
            member = tarfile.TarInfo(name)
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
    return path


def read(path: Path, **options: Any) -> tuple[np.ndarray, Any, Any, list[str]]:
    columns = webdataset.read_columns(str(path), **options)
    images = np.concatenate([*columns.arrays["images"].blocks()])
    labels = columns.arrays.get("labels")
    numbers = None if labels is None else np.concatenate([*labels.blocks()]).tolist()
    columns.close()
    return images, numbers, columns.classes, columns.notes


def samples(path: Path, *steps: Any) -> list[Any]:
    """What the real package reads."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it leaves the file to the collector
        found = wds.WebDataset(str(path), shardshuffle=False)
        for name, *arguments in steps:
            found = getattr(found, name)(*arguments)
        result = list(found)
        del found
        gc.collect()
    return result


def test_members_are_samples_in_order(tmp_path: Path) -> None:
    with tarfile.open(written(tmp_path / "x.tar", classes=CLASSES)) as tar:
        names = tar.getnames()
        facts = [json.load(tar.extractfile(name)) for name in names if name.endswith(".json")]
    assert names[:4] == ["000000.png", "000000.cls", "000000.json", "000001.png"]
    assert len(names) == 12
    two = {"label": 2, "class": "two"}
    assert facts == [two, {"label": 0, "class": "zero"}, two, {"label": 1}]


@pytest.mark.parametrize("suffix", ["tar", "tar.gz"])
@pytest.mark.parametrize("classes", [None, CLASSES])
def test_out_and_back(suffix: str, classes: Any, tmp_path: Path) -> None:
    path = written(tmp_path / f"x.{suffix}", classes=classes)
    images, labels, found, notes = read(path)
    assert np.array_equal(images, IMAGES)
    assert (labels, found, notes) == (LABELS.tolist(), classes, [])


def test_the_real_package_reads_ours(tmp_path: Path) -> None:
    found = samples(written(tmp_path / "x.tar", json=True), ("decode", "l8"))
    assert [sample["__key__"] for sample in found] == [f"{n:06}" for n in range(4)]
    assert np.array_equal([sample["png"] for sample in found], IMAGES)
    assert [sample["cls"] for sample in found] == LABELS.tolist()
    assert [sample["json"] for sample in found] == [{"label": n} for n in LABELS.tolist()]


def test_we_read_what_the_real_package_writes(tmp_path: Path) -> None:
    with wds.TarWriter(str(tmp_path / "x.tar")) as sink:
        for number, (image, label) in enumerate(zip(IMAGES, LABELS.tolist(), strict=True)):
            sink.write({"__key__": f"s/{number}", "png": np.float32(image / 255), "cls": label})
    images, labels, *_ = read(tmp_path / "x.tar", grey=True)
    assert np.array_equal(images, IMAGES)
    assert labels == LABELS.tolist()


@pytest.mark.parametrize("count", [2000, pytest.param(60000, marks=pytest.mark.slow)])
def test_mnist(count: int, tmp_path: Path) -> None:
    images = idxfile.read(MNIST / "train-images-idx3-ubyte.gz")[:count]
    labels = idxfile.read(MNIST / "train-labels-idx1-ubyte.gz")[:count]
    pair = tmp_path / "mnist"
    pair.mkdir()
    idxfile.write(pair / "train-images-idx3-ubyte", images)
    idxfile.write(pair / "train-labels-idx1-ubyte", labels)
    convert(pair, tmp_path / "x.tar", target_format="webdataset")
    convert(tmp_path / "x.tar", f"{tmp_path}/back/", source_format="webdataset")
    for name in ("train-images-idx3-ubyte", "train-labels-idx1-ubyte"):
        assert (pair / name).read_bytes() == (tmp_path / "back" / name).read_bytes()
    theirs = samples(tmp_path / "x.tar", ("decode", "l8"), ("to_tuple", "png", "cls"))
    assert np.array_equal([image for image, _ in theirs], images)
    assert [label for _, label in theirs] == labels.tolist()


def test_without_labels(tmp_path: Path) -> None:
    images, labels, _, notes = read(written(tmp_path / "x.tar", labels=None))
    assert np.array_equal(images, IMAGES)
    assert labels is None
    assert notes == ["no labels: there is neither .cls nor .json"]
    assert read(written(tmp_path / "y.tar"), labels=None)[1] is None


def test_archives_of_others(tmp_path: Path) -> None:
    members = {
        "set/b.png": IMAGES[0],
        "set/b.json": '{"label": "dog", "more": [1]}',
        "set/a.CLS": "ignored",
        "set/a.PNG": IMAGES[1],
        "set/a.cls": " cat\n",
        ".hidden.png": b"",
    }
    images, labels, classes, _ = read(packed(tmp_path / "x.tar", members))
    assert np.array_equal(images, IMAGES[:2])
    assert (labels, classes) == ([1, 0], ("cat", "dog"))
    assert read(tmp_path / "x.tar", classes="dog,cat")[1] == [0, 1]


def test_samples_with_several_pictures(tmp_path: Path) -> None:
    members = {"1.image.png": IMAGES[0], "1.mask.png": IMAGES[1], "1.cls": "3"}
    path = packed(tmp_path / "x.tar", members)
    with pytest.raises(PairError, match=r"2 pictures \(image\.png, mask\.png\)") as error:
        read(path)
    assert "field=" in str(error.value.hint)
    assert error.value.file == f"{path}::1"
    assert np.array_equal(read(path, field="mask.png")[0], IMAGES[1:2])
    with pytest.raises(PairError, match="no picture"):
        read(path, field="jpg")


@pytest.mark.parametrize(
    ("members", "kind", "message"),
    [
        ({}, FormatError, "no samples"),
        ({"1.cls": "3"}, PairError, "the sample has no picture"),
        ({"1.png": IMAGES[0], "1.cls": "3", "2.png": IMAGES[0]}, PairError, "1 of 2 pictures have"),
        ({"1.png": IMAGES[0], "1.json": "{"}, FormatError, r"1\.json: this is no JSON"),
        ({"1.png": IMAGES[0], "1.json": '{"label": [1]}'}, PairError, r"\[1\] is no class"),
        ({"1.png": IMAGES[0], "1.json": '{"label": true}'}, PairError, "True is no class"),
        ({"1.png": b"text", "1.cls": "3"}, FormatError, "the picture cannot be read"),
    ],
)
def test_what_is_wrong(members: Any, kind: Any, message: str, tmp_path: Path) -> None:
    with pytest.raises(kind, match=message):
        read(packed(tmp_path / "x.tar", members))


def test_bad_pictures_may_be_skipped(tmp_path: Path) -> None:
    members = {"1.png": b"text", "1.cls": "3", "2.png": IMAGES[0], "2.cls": "4"}
    images, labels, _, notes = read(packed(tmp_path / "x.tar", members), skip_bad=True)
    assert np.array_equal(images, IMAGES[:1])
    assert labels == [4]
    assert "left out 1 of 2 pictures" in notes[0]


def test_a_webdataset_is_not_taken_for_a_tree(tmp_path: Path) -> None:
    path = written(tmp_path / "x.tar")
    with pytest.raises(UnsupportedError, match="this is a WebDataset") as error:
        pictures.read_columns(str(path))
    assert 'source_format="webdataset"' in str(error.value.hint)
    assert len(pictures.read_columns(str(path), labels=None)) == 4
    done = convert(path, tmp_path / "x.npz")  # its content says what it is
    assert (done.source_format, list(done.columns)) == ("webdataset", ["images", "labels"])


def test_what_is_no_picture_is_refused(tmp_path: Path) -> None:
    for images in (np.zeros((2, 3, 4), np.float32), np.zeros((2, 3), np.uint8)):
        with pytest.raises(UnsupportedError):
            webdataset.write_columns(str(tmp_path / "x.tar"), Columns({"images": Sliced(images)}))
    assert not (tmp_path / "x.tar").exists()
