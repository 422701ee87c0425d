"""Pictures: what becomes of every kind of file, tree, table and archive, and the way back."""

from __future__ import annotations

import gzip
import io
import json
import os
import struct
import sys
import tarfile
import zipfile
import zlib
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from PIL import Image

import idxfile
from conftest import MNIST, idx_bytes
from idxfile import png
from idxfile.cli import main
from idxfile.errors import FormatError, IdxError, MissingExtraError, PairError, UnsupportedError
from idxfile.formats import pictures
from idxfile.formats.columns import Columns, Sliced
from idxfile.formats.conversion import convert
from idxfile.formats.pictures import shelves, workers, writing
from idxfile.formats.pictures.choices import ASKS, Choices
from idxfile.formats.pictures.decoding import KINDS as FORMATS_OF_PILLOW
from idxfile.formats.pictures.decoding import decode, pillow
from idxfile.formats.pictures.labels import folder_name
from idxfile.formats.table import PICTURES
from idxfile.names import natural

GREY = np.arange(6, dtype=np.uint8).reshape(2, 3) * 40
COLOUR = np.random.default_rng(0).integers(0, 256, (6, 8, 3), np.uint8)
PLAIN = np.random.default_rng(1).integers(0, 256, (6, 8), np.uint8)
ALPHA = np.random.default_rng(2).integers(0, 256, (6, 8), np.uint8)


def saved(image: Any, kind: str, **options: Any) -> bytes:
    """The bytes of a picture file, by Pillow."""
    file = io.BytesIO()
    image = Image.fromarray(image) if isinstance(image, np.ndarray) else image
    image.save(file, kind, **options)
    return file.getvalue()


def put(root: Path, files: dict[str, Any]) -> Path:
    """A tree of files: bytes as they are, arrays as PNG, None as an empty folder."""
    for name, content in files.items():
        path = root / name
        if content is None:
            path.mkdir(parents=True)
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        data = content.encode() if isinstance(content, str) else content
        path.write_bytes(data if isinstance(data, bytes) else png.encode(data))
    return root


def shade(value: int) -> np.ndarray:
    """A picture that tells which it is."""
    return np.full((1, 1), value, np.uint8)


class Read(NamedTuple):
    images: np.ndarray
    labels: list[int] | None
    classes: Any
    notes: list[str]

    @property
    def shades(self) -> list[int]:
        """The values of pictures made by `shade`."""
        return self.images.reshape(-1).tolist()


def read(path: Path, **options: Any) -> Read:
    """All that a place holds."""
    columns = pictures.read_columns(str(path), **options)
    try:
        images = columns.arrays["images"]
        blocks = [np.empty((0, *images.shape[1:]), images.dtype), *images.blocks()]
        whole = np.concatenate(blocks)
        assert whole.shape == images.shape
        labels = columns.arrays.get("labels")
        numbers = None if labels is None else np.concatenate([*labels.blocks()]).tolist()
        return Read(whole, numbers, columns.classes, columns.notes)
    finally:
        columns.close()


def written(path: Path, images: np.ndarray, labels: Any = None, classes: Any = None) -> list[str]:
    """Write items as pictures to a folder (made here) or an archive."""
    if not path.suffix:
        path.mkdir()
    arrays = {"images": Sliced(images)} | ({} if labels is None else {"labels": Sliced(labels)})
    columns = Columns(arrays, classes)
    pictures.write_columns(str(path), columns)
    return columns.notes


# The case that the whole is about


def test_a_tree_of_two_classes_becomes_a_pair(tmp_path: Path) -> None:
    tree = put(tmp_path / "tree", {"a/0.png": GREY, "b/1.png": GREY[::-1]})
    done = convert(tree, f"{tmp_path}/out/")
    data = (tmp_path / "out/train-images-idx3-ubyte").read_bytes()
    assert data == bytes.fromhex("00000803 00000002 00000002 00000003") + bytes(
        (*range(0, 240, 40), 120, 160, 200, 0, 40, 80)
    )
    labels = (tmp_path / "out/train-labels-idx1-ubyte").read_bytes()
    assert labels == bytes.fromhex("00000801 00000002 00 01")
    assert (tmp_path / "out/classes.txt").read_text() == "a\nb\n"
    assert done.classes == ("a", "b")
    assert done.source_format == "pictures"
    ds = idxfile.open_dataset(tmp_path / "out")
    assert ds.classes == ("a", "b")


@pytest.mark.parametrize("kind", ["PNG", "BMP", "TIFF", "PPM", "GIF", "WEBP", "JPEG"])
def test_every_format_is_read(kind: str, tmp_path: Path) -> None:
    suffix = {"PNG": "png", "TIFF": "tif", "PPM": "pgm", "JPEG": "JPG"}.get(kind, kind.lower())
    flat = np.full((4, 4), 200, np.uint8)
    options = {"lossless": True} if kind == "WEBP" else {}
    tree = put(tmp_path, {f"c/x.{suffix}": saved(flat, kind, **options)})
    found = read(tree, grey=kind in ("WEBP", "GIF"))
    assert np.array_equal(found.images, flat[None])
    assert kind in FORMATS_OF_PILLOW
    assert f".{suffix.lower()}" in PICTURES


# Order and classes


def test_numbers_in_names_count(tmp_path: Path) -> None:
    names = ["img10", "img2", "img1", "img02", "b", "a10x2", "a10x10", "a9"]
    tree = put(tmp_path, {f"c/{n}.png": shade(i) for i, n in enumerate(names)})
    order = ["a9", "a10x2", "a10x10", "b", "img1", "img02", "img2", "img10"]
    assert read(tree).shades == [names.index(n) for n in order]
    assert sorted(["c10", "c9/x", "c9"], key=natural) == ["c9", "c9/x", "c10"]
    assert natural("9" * 5000) > natural("8" * 5000)


def test_classes_are_sorted_as_people_count(tmp_path: Path) -> None:
    tree = put(tmp_path, {"c10/x.png": shade(1), "c9/x.png": shade(2), "B/x.png": shade(3)})
    found = read(tree)
    assert found.classes == ("B", "c9", "c10")
    assert (found.labels, found.shades) == ([0, 1, 2], [3, 2, 1])


def test_classes_may_be_given(tmp_path: Path) -> None:
    tree = put(tmp_path, {f"{c}/x.png": shade(i) for i, c in enumerate("abc")})
    found = read(tree, classes="c, z,a,b")
    assert found.classes == ("c", "z", "a", "b")
    assert (found.labels, found.shades) == ([0, 2, 3], [2, 0, 1])
    with pytest.raises(PairError, match="b: not among the classes") as error:
        read(tree, classes="a,c")
    assert "classes=" in str(error.value.hint)
    for wrong in ("a,,b", "a,a,b", ""):
        with pytest.raises(ValueError, match="different names"):
            read(tree, classes=wrong)


def test_classes_lie_in_a_file(tmp_path: Path) -> None:
    files = {"b/x.png": shade(1), "a/x.png": shade(2), "classes.txt": "b\n\na\n"}
    found = read(put(tmp_path, files))
    assert found.classes == ("b", None, "a")
    assert (found.labels, found.shades) == ([0, 2], [1, 2])


def test_folders_that_are_numbers_are_the_labels(tmp_path: Path) -> None:
    tree = put(tmp_path, {"7/x.png": shade(1), "10/x.png": shade(2), "3/x.png": shade(3)})
    found = read(tree)
    assert (found.labels, found.shades) == ([3, 7, 10], [3, 1, 2])
    assert found.classes == (*[None] * 3, "3", *[None] * 3, "7", None, None, "10")
    assert read(tree, classes="10,7,3").labels == [0, 1, 2]
    put(tmp_path, {"007/x.png": shade(4)})
    assert read(tree).classes == ("3", "007", "7", "10")


def test_large_and_negative_numbers_are_labels_without_names(tmp_path: Path) -> None:
    tree = put(tmp_path, {"-1/x.png": shade(1), "1000000/x.png": shade(2)})
    assert read(tree)[1:3] == ([-1, 1000000], None)


def test_an_empty_folder_is_a_class_and_told(tmp_path: Path) -> None:
    files = {"a/x.png": shade(1), "b": None, "c/x.png": shade(2), "docs/readme.md": "hello"}
    found = read(put(tmp_path, files))
    assert (found.labels, found.classes) == ([0, 2], ("a", "b", "c"))
    assert found.notes == [
        "no pictures in class b",
        "left out 1 file (docs/readme.md) that are no pictures by name",
    ]


def test_folders_in_a_class_belong_to_it(tmp_path: Path) -> None:
    files = {"a/deep/er/2.png": shade(2), "a/1.png": shade(1), "b/x/1.png": shade(3)}
    found = read(put(tmp_path, files))
    assert (found.labels, found.shades) == ([0, 0, 1], [1, 2, 3])


def test_what_is_hidden_does_not_exist(tmp_path: Path) -> None:
    files = {
        "a/1.png": shade(1),
        "a/.2.png": b"",
        ".git/3.png": b"",
        "a/.cache/4.png": b"",
        ".labels.csv": "",
    }
    found = read(put(tmp_path, files))
    assert (found.shades, found.classes, found.notes) == ([1], ("a",), [])


def test_pictures_beside_classes_are_refused(tmp_path: Path) -> None:
    with pytest.raises(PairError, match=r"1 picture \(x.png\) lie beside"):
        read(put(tmp_path, {"x.png": shade(1), "a/x.png": shade(2)}))


def test_splits_are_no_classes(tmp_path: Path) -> None:
    files = {f"{s}/{c}/x.png": shade(i) for i, (s, c) in enumerate(["ta", "tb", "va", "vb"])}
    files = {k.replace("t/", "train/").replace("v/", "val/"): v for k, v in files.items()}
    tree = put(tmp_path, files)
    with pytest.raises(PairError, match="train, val are splits") as error:
        read(tree)
    assert "split=" in str(error.value.hint)
    assert read(tree, split="train").shades == [0, 1]
    assert read(tree, split="validation").shades == [2, 3]
    assert read(tree, classes="train,val").labels == [0, 0, 1, 1]
    with pytest.raises(PairError, match="no split 'test'"):
        read(tree, split="test")
    done = convert(tree, f"{tmp_path}/out/", split="val")
    assert done.columns["labels"] == ("uint8", (2,))


def test_nothing_there(tmp_path: Path) -> None:
    for number, files in enumerate(({"a": None}, {"a/x.txt": "hello"})):
        with pytest.raises(FormatError, match="no pictures in it"):
            read(put(tmp_path / str(number), files))
    with pytest.raises(FileNotFoundError):
        read(tmp_path / "nowhere")


def test_more_classes_than_bytes(tmp_path: Path) -> None:
    tree = put(tmp_path / "tree", {f"c{i}/x.png": shade(i % 256) for i in range(300)})
    done = convert(tree, f"{tmp_path}/out/")
    assert done.columns["labels"] == ("int16", (300,))
    assert read(tree).labels == list(range(300))
    back = convert(tmp_path / "out", tmp_path / "again", target_format="pictures")
    assert back.columns["images"] == ("uint8", (300, 1, 1))
    assert read(tmp_path / "again")[1:3] == read(tree)[1:3]


# Tables of labels

TWO = '{"file_name":"b.png","label":%s}\n\n{"file_name":"a.png","label":%s}\n'

TABLES: dict[str, tuple[str, str, list[int], Any]] = {
    "csv": ("labels.csv", "file_name,label\nb.png,cat\na.png,dog\n", [0, 1], ("cat", "dog")),
    "csv of numbers": ("labels.csv", "file_name,label\nb.png,7\na.png,3\n", [7, 3], None),
    "csv without heads": ("labels.csv", "b.png,cat\r\na.png,dog\r\n", [0, 1], ("cat", "dog")),
    "csv, other words": (
        "metadata.csv",
        "x,Class,Filename\n1,u,b.png\n2,v,./a.png\n",
        [0, 1],
        ("u", "v"),
    ),
    "csv with a mark": ("labels.csv", "\ufefffile_name,label\nb.png,1\n\na.png,0\n", [1, 0], None),
    "csv, quoted": (
        "labels.csv",
        'file,label\n"b.png","a, b"\na.png,"c\nd"\n',
        [0, 1],
        ("a, b", r"c\nd"),
    ),
    "jsonl": ("metadata.jsonl", TWO % (1, 0), [1, 0], None),
    "jsonl of names": ("metadata.jsonl", TWO % ('"y"', '"x"'), [1, 0], ("x", "y")),
    "jsonl, mixed": ("metadata.jsonl", TWO % (1, '"x"'), [0, 1], ("1", "x")),
}
"""Name and content of a table, the labels of b.png and a.png, and the classes."""


@pytest.mark.parametrize("case", TABLES)
def test_a_table_says_order_and_labels(case: str, tmp_path: Path) -> None:
    name, text, labels, classes = TABLES[case]
    found = read(put(tmp_path, {"a.png": shade(1), "b.png": shade(2), name: text}))
    assert (found.shades, found.labels, found.classes) == ([2, 1], labels, classes)


def test_large_labels_keep_their_value(tmp_path: Path) -> None:
    files = {"a.png": shade(1), "b.png": shade(2), CSV: f"{HEAD}b.png,{10**18 + 1}\n"}
    assert read(put(tmp_path, files)).labels == [1, 10**18 + 1]


def test_a_table_may_lie_elsewhere_or_have_another_name(tmp_path: Path) -> None:
    tree = put(tmp_path / "tree", {"a.png": shade(1), "my.csv": "a.png,5\n"})
    put(tmp_path, {"other.csv": "file_name,label\na.png,6\n"})
    assert read(tree).labels is None
    assert read(tree, labels="my.csv").labels == [5]
    assert read(tree, labels=str(tmp_path / "other.csv")).labels == [6]
    assert read(tree, labels=None).labels is None
    with pytest.raises(FileNotFoundError):
        read(tree, labels="nowhere.csv")


def test_folders_can_be_taken_instead_of_a_table(tmp_path: Path) -> None:
    files = {"a/1.png": shade(1), "b/2.png": shade(2), "labels.csv": "b/2.png,0\na/1.png,0\n"}
    tree = put(tmp_path, files)
    assert (read(tree).shades, read(tree).labels) == ([2, 1], [0, 0])
    assert read(tree, labels="folders").labels == [0, 1]


def test_a_table_without_labels_is_told(tmp_path: Path) -> None:
    files = {"a/1.png": shade(1), "metadata.csv": "file_name,caption\na/1.png,hello\n"}
    found = read(put(tmp_path, files))
    assert found.labels == [0]
    assert found.notes == ["left out metadata.csv: it has no column of labels"]


CSV, JSONL = "labels.csv", "metadata.jsonl"
HEAD = "file_name,label\na.png,1\n"

WRONG_TABLES: dict[str, tuple[str, Any, type[Exception], str]] = {
    "no file names": (CSV, "picture,label\na.png,1\n", PairError, "no column of file names"),
    "empty": (CSV, "", PairError, "no column of file names"),
    "short row": (CSV, "file_name,label\na.png\n", PairError, "line 2 is too short"),
    "no label": (CSV, f"{HEAD}b.png,\n", PairError, "1 of 2 pictures have no label"),
    "not there": (
        CSV,
        f"{HEAD}b.png,1\n../c.png,1\n",
        PairError,
        r"names 1 picture \(\.\./c\.png\) that are not there",
    ),
    "twice": (CSV, f"{HEAD}b.png,1\na.png,2\n", PairError, r"\(a\.png\) more than once"),
    "forgotten": (CSV, HEAD, PairError, r"does not name 1 picture \(b\.png\)"),
    "beyond 64 bits": (JSONL, TWO % (2**70, 1), PairError, "more than 64 bits"),
    "an open quote": (CSV, f'{HEAD}b.png,"1\n', FormatError, "line 3"),
    "not UTF-8": (CSV, b"file_name,label\na.png,\xff\n", FormatError, "not UTF-8"),
    "not JSON": (JSONL, '{"file_name":"a.png"\n', FormatError, "line 1 is no JSON"),
    "not a row": (JSONL, "[1]\n", PairError, "line 1 has no file_name"),
    "a truth": (JSONL, TWO % ("true", 1), PairError, "the label True is no class"),
    "a fraction": (JSONL, TWO % ("1", 1.5), PairError, r"line 3: the label 1\.5 is no class"),
    "a list": (JSONL, TWO % ([1], 1), PairError, r"\[1\] is no class"),
}


@pytest.mark.parametrize("case", WRONG_TABLES)
def test_a_wrong_table_says_what_is_wrong(case: str, tmp_path: Path) -> None:
    name, text, kind, message = WRONG_TABLES[case]
    tree = put(tmp_path, {"a.png": shade(1), "b.png": shade(2), name: text})
    with pytest.raises(kind, match=message) as error:
        read(tree)
    assert str(tree) in str(error.value.file)


def test_numbers_are_held_against_given_classes(tmp_path: Path) -> None:
    tree = put(tmp_path, {"a.png": shade(1), "labels.csv": "a.png,2\n"})
    assert read(tree, classes="x,y,z")[1:3] == ([2], ("x", "y", "z"))
    with pytest.raises(PairError, match="labels run from 2 to 2, and there are 2 classes"):
        read(tree, classes="x,y")


def test_rows_of_pictures_that_are_missing_may_be_skipped(tmp_path: Path) -> None:
    table = "file_name,label\nb.png,4\na.png,5\n"
    found = read(put(tmp_path, {"a.png": shade(1), "labels.csv": table}), skip_bad=True)
    assert (found.shades, found.labels) == ([1], [5])
    assert found.notes == ["left out 1 picture (b.png) that are not there"]


# Sizes


def test_two_sizes_stop_with_path_and_both(tmp_path: Path) -> None:
    tree = put(tmp_path, {"a/0.png": GREY, "a/1.png": GREY, "b/2.png": GREY[:, :2]})
    with pytest.raises(
        UnsupportedError, match=r"2 × 2 pixels .* 3 × 2 pixels in .*a/0\.png"
    ) as error:
        read(tree)
    assert error.value.file == str(tree / "b/2.png")
    assert (error.value.found, error.value.expected) == ((2, 2), (2, 3))
    assert "--resize 3x2" in str(error.value.hint)


def test_pad_crop_and_both(tmp_path: Path) -> None:
    tree = put(tmp_path, {"a/0.png": GREY + 1, "a/1.png": GREY[:1, :1] + 1})
    padded = read(tree, pad=(4, 3)).images
    assert padded.shape == (2, 3, 4)
    assert padded[0].tolist() == [[1, 41, 81, 0], [121, 161, 201, 0], [0, 0, 0, 0]]
    assert padded[1].tolist() == [[0, 0, 0, 0], [0, 1, 0, 0], [0, 0, 0, 0]]
    assert read(tree, crop=(1, 1)).images.tolist() == [[[41]], [[1]]]
    both = read(tree, crop=(2, 1), pad=(2, 1)).images
    assert both.tolist() == [[[1, 41]], [[1, 0]]]
    with pytest.raises(UnsupportedError, match="1 × 1 pixels"):
        read(tree, crop=(2, 1))
    with pytest.raises(UnsupportedError, match="3 × 2 pixels"):
        read(put(tmp_path, {"a/9.png": GREY[:1, :1]}), pad=(2, 1), labels=None)


def test_resize_is_pillow_s_bicubic(tmp_path: Path) -> None:
    tree = put(tmp_path, {"a/0.png": PLAIN, "a/1.png": PLAIN[:3]})
    expected = [
        np.asarray(Image.fromarray(a).resize((5, 4), Image.Resampling.BICUBIC))
        for a in (PLAIN, PLAIN[:3])
    ]
    assert np.array_equal(read(tree, resize=(5, 4)).images, expected)
    deep = saved((PLAIN.astype(np.uint16) << 8), "PNG")
    values = read(put(tmp_path / "deep", {"a/0.png": deep}), depth=16, resize=(50, 40)).images
    assert values.dtype == np.int32
    assert (values.min(), values.max()) >= (0, 0)
    assert values.max() <= 65535


def test_invert_comes_before_pad_and_threshold_last(tmp_path: Path) -> None:
    tree = put(tmp_path, {"a/0.png": np.array([[255, 100, 99, 0]], np.uint8)})
    assert read(tree, invert=True).images.tolist() == [[[0, 155, 156, 255]]]
    assert read(tree, invert=True, pad=(6, 1)).images.tolist() == [[[0, 0, 155, 156, 255, 0]]]
    assert read(tree, threshold=100).images.tolist() == [[[255, 255, 0, 0]]]
    assert read(tree, threshold=156, invert=True).images.tolist() == [[[0, 0, 255, 255]]]
    assert read(tree, threshold=1).images.dtype == np.uint8


@pytest.mark.parametrize(
    "options",
    [
        {"resize": (28,)},
        {"pad": (0, 28)},
        {"crop": (1, 1 << 17)},
        {"depth": 12},
        {"threshold": 256},
        {"threshold": 0},
        {"grey": True, "rgb": True},
        {"rgb": True, "depth": 16},
    ],
    ids=str,
)
def test_options_that_make_no_sense(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"must be|exclude|goes with"):
        Choices(**options)


# What a picture can be


def luma(colour: np.ndarray) -> np.ndarray:
    """ITU-R 601-2, in Pillow's integers."""
    red, green, blue = (colour[..., n].astype(np.int64) for n in range(3))
    return ((red * 19595 + green * 38470 + blue * 7471 + 0x8000) >> 16).astype(np.uint8)


def over(colour: np.ndarray, alpha: np.ndarray, ground: int) -> np.ndarray:
    """Laid on a ground, to the nearest value."""
    share = alpha[..., None] / 255
    return np.rint(colour * share + ground * (1 - share)).astype(int)


def raw_png(
    depth: int,
    colour: int,
    lines: list[bytes],
    width: int,
    *more: bytes,
    height: int | None = None,
    interlaced: int = 0,
) -> bytes:
    """A PNG made by hand: rows with their filters, and chunks in front of them."""

    def chunk(name: bytes, data: bytes) -> bytes:
        crc = zlib.crc32(name + data)
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", crc)

    header = struct.pack(">IIBBBBB", width, height or len(lines), depth, colour, 0, 0, interlaced)
    return b"".join(
        (
            b"\x89PNG\r\n\x1a\n",
            chunk(b"IHDR", header),
            *(chunk(data[:4], data[4:]) for data in more),
            chunk(b"IDAT", zlib.compress(b"".join(lines))),
            chunk(b"IEND", b""),
        )
    )


def rows(values: np.ndarray) -> list[bytes]:
    """Rows as they stand in a PNG, without a filter."""
    return [b"\0" + row.tobytes() for row in values]


def palette(**options: Any) -> bytes:
    image = Image.frombytes("P", (8, 6), NUMBERS.tobytes())
    image.putpalette(PALETTE.tobytes())
    return saved(image, "PNG", **options)


def exif(number: int) -> Image.Exif:
    facts = Image.Exif()
    facts[0x0112] = number
    return facts


def frames(kind: str, mode: str = "L") -> bytes:
    first, second = (Image.fromarray(a).convert(mode) for a in (PLAIN, PLAIN[::-1]))
    options = {"lossless": True} if kind == "WEBP" else {}
    return saved(first, kind, save_all=True, append_images=[second], **options)


def by_pillow(data: bytes, mode: str) -> np.ndarray:
    return np.asarray(Image.open(io.BytesIO(data)).convert("RGB").convert(mode))


NUMBERS = PLAIN % 4
PALETTE = COLOUR.reshape(-1)[:12].reshape(4, 3)
DEEP = np.arange(48, dtype=np.uint16).reshape(6, 8) * 1365 + 7
DEEP_COLOUR = COLOUR.astype(np.uint16) * 256 + 77
WITH_ALPHA = np.dstack([COLOUR, ALPHA])
WHITE = np.full((6, 8), 255, np.uint8)
GREY_ALPHA = Image.merge("LA", [Image.fromarray(PLAIN), Image.fromarray(ALPHA)])
JPEG = saved(COLOUR, "JPEG", quality=95)
CMYK = saved(Image.frombytes("CMYK", (8, 6), WITH_ALPHA.tobytes()), "JPEG")
TURNS: dict[int, Callable[[np.ndarray], np.ndarray]] = {
    2: np.fliplr,
    3: lambda a: np.rot90(a, 2),
    4: np.flipud,
    5: np.transpose,
    6: lambda a: np.rot90(a, -1),
    7: lambda a: np.rot90(a, 2).T,
    8: np.rot90,
}
"""EXIF orientation → what makes it upright."""

COLOURS = "--rgb (rgb=True) keeps the colours"
TRANSPARENT = '--alpha drop (alpha="drop") leaves it out'
SIXTEEN = "--depth 8 (depth=8) takes the high byte, --depth 16 keeps the values"

ODD: dict[str, tuple[bytes, str, str, dict[str, Any]]] = {
    "RGB": (
        saved(COLOUR, "PNG"),
        "colours",
        COLOURS,
        {"grey=true": luma(COLOUR), "rgb=true": COLOUR},
    ),
    "RGB JPEG": (
        JPEG,
        "colours",
        COLOURS,
        {"grey=true": by_pillow(JPEG, "L"), "rgb=true": by_pillow(JPEG, "RGB")},
    ),
    "CMYK JPEG": (
        CMYK,
        "CMYK colours",
        COLOURS,
        {"grey=true": by_pillow(CMYK, "L"), "rgb=true": by_pillow(CMYK, "RGB")},
    ),
    "palette": (
        palette(),
        "the colours of a palette",
        COLOURS,
        {"grey=true": luma(PALETTE[NUMBERS]), "rgb=true": PALETTE[NUMBERS]},
    ),
    "palette with transparency": (
        palette(transparency=bytes((0, 100, 255, 255))),
        "the colours of a palette",
        COLOURS,
        {
            "rgb=true alpha=drop": PALETTE[NUMBERS],
            "rgb=true alpha=white": over(
                PALETTE[NUMBERS], np.array((0, 100, 255, 255))[NUMBERS], 255
            ),
            "rgb=true": TRANSPARENT,
        },
    ),
    "RGBA": (
        saved(WITH_ALPHA, "PNG"),
        "colours",
        COLOURS,
        {
            "rgb=true alpha=drop": COLOUR,
            "rgb=true alpha=black": over(COLOUR, ALPHA, 0),
            "rgb=true alpha=white": over(COLOUR, ALPHA, 255),
            "grey=true alpha=drop": luma(COLOUR),
            "grey=true": TRANSPARENT,
        },
    ),
    "grey with alpha": (
        saved(GREY_ALPHA, "PNG"),
        "transparency",
        TRANSPARENT,
        {
            "alpha=drop": PLAIN,
            "alpha=white": over(PLAIN[..., None], ALPHA, 255)[..., 0],
            "alpha=black rgb=true": np.repeat(over(PLAIN[..., None], ALPHA, 0), 3, axis=2),
        },
    ),
    "grey with a transparent value": (
        saved(PLAIN, "PNG", transparency=int(PLAIN[0, 0])),
        "transparency",
        TRANSPARENT,
        {"alpha=drop": PLAIN, "alpha=white": np.where(PLAIN[0, 0] == PLAIN, 255, PLAIN)},
    ),
    "1 bit": (
        saved(Image.fromarray(PLAIN > 99), "PNG"),
        "a white of 1",
        "--grey (grey=True) spreads its values over 0 to 255",
        {"grey=true": np.where(PLAIN > 99, 255, 0)},
    ),
    "2 bits": (
        raw_png(2, 0, rows(np.array([[0b00011011], [0b11100100]], np.uint8)), 4),
        "a white of 3",
        "--grey (grey=True)",
        {"grey=true": np.array([[0, 85, 170, 255], [255, 170, 85, 0]])},
    ),
    "PGM with another white": (
        b"P5 8 6 15\n" + (PLAIN % 16).tobytes(),
        "a white of 15",
        "--grey (grey=True)",
        {"grey=true": PLAIN % 16 * 17},
    ),
    "PPM with another white": (
        b"P6 8 6 15\n" + (COLOUR % 16).tobytes(),
        "colours",
        COLOURS,
        {"rgb=true": COLOUR % 16 * 17},
    ),
    "16 bits": (
        saved(DEEP, "PNG"),
        "16 bits a sample",
        SIXTEEN,
        {
            "depth=8": DEEP >> 8,
            "depth=16": DEEP,
            "depth=8 rgb=true": np.repeat((DEEP >> 8)[..., None], 3, axis=2),
        },
    ),
    "16 bits TIFF": (
        saved(DEEP, "TIFF"),
        "16 bits a sample",
        SIXTEEN,
        {"depth=8": DEEP >> 8, "depth=16": DEEP},
    ),
    "16 bits PGM": (
        b"P5 8 6 65535\n" + DEEP.astype(">u2").tobytes(),
        "16 bits a sample",
        SIXTEEN,
        {"depth=8": DEEP >> 8, "depth=16": DEEP},
    ),
    "16 bits with a transparent value": (
        raw_png(16, 0, rows(DEEP.astype(">u2")), 8, b"tRNS\0\7"),
        "16 bits a sample",
        SIXTEEN,
        {
            "depth=16 alpha=drop": DEEP,
            "depth=8": TRANSPARENT,
            "depth=8 alpha=white": np.where(DEEP == 7, 255, DEEP >> 8),
        },
    ),
    "16 bits in colour": (
        raw_png(16, 2, rows(DEEP_COLOUR.astype(">u2")), 8),
        "colours",
        COLOURS,
        {
            "rgb=true": SIXTEEN,
            "grey=true": SIXTEEN,
            "rgb=true depth=8": COLOUR,
            "grey=true depth=16": "--depth 8 (depth=8): colours are read with 8 bits",
        },
    ),
    "PGM with a white of 1000": (
        b"P5 8 6 1000\n" + (DEEP % 1001).astype(">u2").tobytes(),
        "16 bits a sample",
        SIXTEEN,
        {
            "depth=8": np.rint(DEEP % 1001 / 1000 * 65535).astype(int) >> 8,
            "depth=16": "--depth 8 (depth=8) spreads its values",
        },
    ),
    "8 bits where 16 are kept": (
        saved(PLAIN, "PNG"),
        "",
        "",
        {
            "": PLAIN,
            "depth=8": PLAIN,
            "depth=16": "--depth 8 (depth=8) brings all pictures to 8 bits",
        },
    ),
    **{
        f"animated {kind}": (
            frames(kind),
            "2 frames",
            '--frames first (frames="first") takes the first',
            {"frames=first": PLAIN},
        )
        for kind in ("PNG", "TIFF")
    },
    "animated GIF": (
        frames("GIF"),
        "the colours of a palette",
        COLOURS,
        {
            "grey=true frames=first": PLAIN,
            "rgb=true": '--frames first (frames="first") takes the first',
        },
    ),
    "animated WEBP": (
        frames("WEBP", "RGB"),
        "colours",
        COLOURS,
        {"grey=true frames=first": PLAIN, "grey=true": "--frames first"},
    ),
    **{
        f"{kind} turned {number}": (
            saved(PLAIN, kind, exif=exif(number)),
            f"EXIF orientation {number}",
            '--exif apply (exif="apply") turns it upright, ignore',
            {"exif=apply": turn(PLAIN), "exif=ignore": PLAIN},
        )
        for kind in ("PNG", "TIFF")
        for number, turn in TURNS.items()
    },
    "EXIF that says nothing": (saved(PLAIN, "PNG", exif=exif(77)), "", "", {"": PLAIN}),
}
"""A kind of file: its bytes, what asks for a choice, the hint; options → pixels, or the hint."""


def chosen(words: str) -> Choices:
    options: dict[str, Any] = dict(word.split("=") for word in words.split())
    for name, value in options.items():
        options[name] = True if value == "true" else int(value) if value.isdigit() else value
    return Choices(**options)


@pytest.mark.parametrize("kind", ODD)
def test_every_kind_of_picture_asks_for_a_choice_and_gets_it(kind: str) -> None:
    data, asks, hint, results = ODD[kind]
    if asks:
        with pytest.raises(UnsupportedError, match=f"a picture with {asks}: choose") as error:
            decode(data, "x.png", Choices())
        assert hint in str(error.value.hint)
        assert error.value.file == "x.png"
    for words, expected in results.items():
        if isinstance(expected, str):
            with pytest.raises(UnsupportedError) as error:
                decode(data, "x.png", chosen(words))
            assert expected in str(error.value.hint)
            continue
        found = decode(data, "x.png", chosen(words))
        assert found.dtype == (np.int32 if "depth=16" in words else np.uint8)
        assert found.shape == expected.shape
        tolerance = 1 if "alpha=" in words else 0  # Pillow rounds in its own way
        assert np.abs(found.astype(int) - expected.astype(int)).max() <= tolerance, words


def test_every_question_is_asked_of_some_picture() -> None:
    hints = [hint for _, _, hint, _ in ODD.values()]
    hints += [r for *_, results in ODD.values() for r in results.values() if isinstance(r, str)]
    for row in ASKS:
        assert any(hint and hint in row.hint for hint in hints), row.hint


@pytest.mark.parametrize(
    ("data", "what"),
    [
        (saved(Image.fromarray(PLAIN.astype(np.float32)), "TIFF"), "floats"),
        (saved(Image.fromarray(PLAIN.astype(np.int32)), "TIFF"), "32-bit integers"),
    ],
)
def test_pictures_without_a_white_are_refused(data: bytes, what: str) -> None:
    for words in ("", "grey=true depth=8", "depth=16"):
        with pytest.raises(UnsupportedError, match=f"a picture of {what} is not read"):
            decode(data, "x.tif", chosen(words))


@pytest.mark.filterwarnings("ignore:Corrupt EXIF data")
def test_exif_that_is_damaged_turns_nothing() -> None:
    plain = saved(PLAIN, "JPEG")
    damaged = plain[:2] + b"\xff\xe1\0\x12Exif\0\0MM\0*\0\0\0\x08\0\5" + plain[2:]
    expected = np.asarray(Image.open(io.BytesIO(plain)))
    assert np.array_equal(decode(damaged, "x.jpg", Choices()), expected)


# What cannot be read

WRONG_SUM = bytearray(saved(PLAIN, "PNG"))
WRONG_SUM[-20] ^= 1

BAD: dict[str, tuple[bytes, str]] = {
    "empty": (b"", "the file is empty"),
    "text": (b"This is no picture whatever its name may say.\n", "it is a text file"),
    "HTML": (b"<!DOCTYPE html><html><title>404</title>", "it is an HTML page titled “404”"),
    "zeros": (bytes(100), "it is of no known format"),
    "truncated PNG": (saved(COLOUR, "PNG")[:100], "image file is truncated"),
    "truncated plain PNG": (png.encode(PLAIN)[:-30], "image file is truncated"),
    "PNG of a header": (saved(PLAIN, "PNG")[:20], "a PNG picture whose header is damaged"),
    "PNG with a wrong sum": (bytes(WRONG_SUM), "broken"),
    "PNG with too few rows": (raw_png(8, 0, rows(PLAIN[:5]), 8, height=6), "rows are missing"),
    "truncated JPEG": (JPEG[:-30], "truncated"),
    "truncated GIF": (saved(PLAIN, "GIF")[:-20], "truncated"),
    "PGM with too little": (b"P5 8 6 255\n" + bytes(40), "truncated"),
    "bomb": (
        raw_png(8, 0, [b"\0"], 100_000, height=100_000),
        "refused as a decompression bomb: Image size",
    ),
    "smaller bomb": (
        raw_png(8, 0, [b"\0"], 10_000, height=10_000),
        "refused as a decompression bomb: (10,000 × 10,000 pixels|Image size)",
    ),
}
"""What is no picture, or a damaged one: its bytes, and what is said of it."""


@pytest.mark.parametrize("kind", BAD)
def test_what_cannot_be_read_is_an_error_with_its_path(kind: str, tmp_path: Path) -> None:
    data, message = BAD[kind]
    options = {"grey": True} if kind.startswith("truncated") else {}
    tree = put(tmp_path, {"a/0.png": PLAIN, "a/1.png": data, "b/2.png": PLAIN})
    with pytest.raises(FormatError, match=message) as error:
        read(tree, **options)
    assert error.value.file == str(tree / "a/1.png")
    assert "--skip-bad (skip_bad=True)" in str(error.value.hint)
    found = read(tree, skip_bad=True, **options)
    assert np.array_equal(found.images, [PLAIN, PLAIN])
    assert (found.labels, found.classes) == ([0, 1], ("a", "b"))
    (note,) = found.notes
    assert note.startswith("left out 1 of 3 pictures, which cannot be read: ")
    assert str(tree / "a/1.png") in note


def test_the_first_in_order_is_the_one_that_is_told(tmp_path: Path) -> None:
    files = {f"a/{n:04}.png": shade(n % 256) for n in range(400)}
    tree = put(tmp_path, files | {"a/0111.png": b"", "a/0112.png": GREY, "a/0390.png": b"x"})
    for _ in range(5):
        with pytest.raises(FormatError, match="the file is empty") as error:
            read(tree)
        assert error.value.file == str(tree / "a/0111.png")


def test_skipping_drops_the_label_too(tmp_path: Path) -> None:
    files: dict[str, Any] = {f"{n}.png": shade(n) for n in range(40)}
    table = "file_name,label\n" + "".join(f"{n}.png,{n + 100}\n" for n in reversed(range(40)))
    bad = {39, 20, 19, 3}
    for n in bad:
        files[f"{n}.png"] = [b"", b"text", bytes(9), b"\x89PNG"][n % 4]
    found = read(put(tmp_path, files | {"labels.csv": table}), skip_bad=True)
    kept = [n for n in reversed(range(40)) if n not in bad]
    assert (found.shades, found.labels) == (kept, [n + 100 for n in kept])
    assert "left out 4 of 40 pictures" in found.notes[0]
    assert found.notes[0].endswith("; …")


def test_skipping_everything_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="none of 2 pictures can be read"):
        read(put(tmp_path, {"a/0.png": b"", "a/1.png": b""}), skip_bad=True)


def test_skipping_does_not_answer_questions(tmp_path: Path) -> None:
    tree = put(tmp_path, {"a/0.png": PLAIN, "a/1.png": saved(COLOUR, "PNG")})
    with pytest.raises(UnsupportedError, match="a picture with colours"):
        read(tree, skip_bad=True)
    with pytest.raises(UnsupportedError, match="3 × 2 pixels"):
        read(put(tmp_path, {"a/1.png": GREY}), skip_bad=True)


@pytest.mark.parametrize("place", ["t", "t/", "./t"])
def test_a_broken_link_is_named_whole(
    place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    put(tmp_path / "t", {"b/1.png": PLAIN})
    os.symlink("nowhere", "t/b/9.png")
    with pytest.raises(FileNotFoundError) as caught:
        convert(place, "out/")
    assert caught.value.filename == f"{place.rstrip('/')}/b/9.png"
    assert main(["convert", place, "out/"]) == 5
    assert f"error: {place.rstrip('/')}/b/9.png: No such file" in capsys.readouterr().err
    assert os.listdir() == ["t"]


def test_links_and_what_is_no_file(tmp_path: Path) -> None:
    tree = put(tmp_path / "tree", {"a/0.png": shade(1), "b/1.png": shade(2)})
    put(tmp_path / "else", {"2.png": shade(3)})
    (tree / "a/up").symlink_to(tree)
    (tree / "c").symlink_to(tmp_path / "else")
    (tree / "a/9.png").symlink_to(tree / "b/1.png")
    os.mkfifo(tree / "b/pipe.png")
    found = read(tree)
    assert (found.shades, found.labels, found.classes) == ([1, 2, 2, 3], [0, 0, 1, 2], tuple("abc"))
    assert sorted(found.notes) == [
        "left out a/up: a link to a folder above it",
        "left out b/pipe.png: neither a file nor a folder",
    ]
    (tree / "a/8.png").symlink_to(tree / "nowhere")
    with pytest.raises(FileNotFoundError, match=r"8\.png"):
        read(tree)
    assert "left out 1 of 5" in str(read(tree, skip_bad=True).notes)


def test_files_that_are_too_large_are_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree = put(tmp_path, {"a/0.png": PLAIN})
    monkeypatch.setattr("idxfile.formats.pictures.places.MAX_FILE_NBYTES", 50)
    with pytest.raises(FormatError, match="bytes: this is no picture"):
        read(tree)


# Three thousand odd pictures

NAMES = (
    "{}",
    "with space {}",
    "lines\n{}",
    "ünïcödé ✓ {}",
    "'quoted\" {}",
    "%41{}",
    "-{}",
    "a.b.{}",
)
CLASSES = ("plain", "with space", "two\nlines", "日本", "nested", "-1st", "%2F", "z.")


def test_three_thousand_odd_pictures(tmp_path: Path) -> None:
    """Every kind of file in classes of every name, with each outcome."""
    words = "alpha=white exif=apply frames=first grey=true depth=8"
    kinds: list[tuple[bytes, np.ndarray | None]] = [
        (data, decode(data, name, chosen(words))) for name, (data, *_) in ODD.items()
    ]
    kinds += [(data, None) for data, _ in BAD.values()]
    expected: dict[tuple[int, str], np.ndarray] = {}
    order = sorted(CLASSES, key=natural)
    bad = 0
    for number in range(3000):
        data, pixels = kinds[number % len(kinds)]
        kind = CLASSES[number % len(CLASSES)]
        name = NAMES[number % len(NAMES)].format(number) + PICTURES[number % len(PICTURES)]
        name = f"deep/{number % 5}/er/{name}" if kind == "nested" else name
        put(tmp_path, {f"{kind}/{name}": data})
        bad += pixels is None
        if pixels is not None:
            whole = np.zeros((8, 8), np.uint8)
            top, left = (8 - pixels.shape[0]) // 2, (8 - pixels.shape[1]) // 2
            whole[top : top + pixels.shape[0], left : left + pixels.shape[1]] = pixels
            expected[order.index(kind), name] = whole
    put(tmp_path, {"empty": None, "plain/notes.txt": "x", "plain/.hidden.png": b"x"})
    (tmp_path / "plain/loop").symlink_to(tmp_path)
    options = {"alpha": "white", "exif": "apply", "frames": "first", "grey": True, "depth": 8}
    found = read(tmp_path, skip_bad=True, pad=(8, 8), **options)
    labels = [str(name) for name in sorted({*CLASSES, "empty"}, key=natural)]
    keys = sorted(expected, key=lambda key: (labels.index(order[key[0]]), natural(key[1])))
    assert found.labels == [labels.index(order[kind]) for kind, _ in keys]
    assert np.array_equal(found.images, [expected[key] for key in keys])
    assert found.classes == tuple(name.replace("\n", "\\n") for name in labels)
    assert found.notes[:4] == [
        "left out plain/loop: a link to a folder above it",
        "no pictures in class empty",
        "the names of some classes are written with escapes",
        "left out 1 file (plain/notes.txt) that are no pictures by name",
    ]
    assert found.notes[4].startswith(f"left out {bad:,} of 3,000 pictures")
    with pytest.raises(IdxError):
        read(tmp_path, **options)


# Plain PNG files, taken apart here


def filtered(pixels: np.ndarray, filters: list[int]) -> list[bytes]:
    """Rows with the filters of the PNG specification, by its own formulas."""
    step = 1 if pixels.ndim == 2 else 3
    flat = pixels.reshape(len(pixels), -1).astype(int)
    lines = []
    for row, kind in enumerate(filters):
        here = flat[row]
        up = flat[row - 1] if row else np.zeros_like(here)
        left = np.concatenate([np.zeros(step, int), here[:-step]])
        corner = np.concatenate([np.zeros(step, int), up[:-step]])
        guess = left + up - corner
        near = [abs(guess - left), abs(guess - up), abs(guess - corner)]
        paeth = np.where(
            (near[0] <= near[1]) & (near[0] <= near[2]),
            left,
            np.where(near[1] <= near[2], up, corner),
        )
        taken = [0, left, up, (left + up) // 2, paeth][kind]
        lines.append(bytes([kind]) + ((here - taken) % 256).astype(np.uint8).tobytes())
    return lines


@given(
    pixels=st.one_of(
        arrays(np.uint8, st.tuples(st.integers(1, 6), st.integers(1, 6))),
        arrays(np.uint8, st.tuples(st.integers(1, 6), st.integers(1, 6), st.just(3))),
    ),
    data=st.data(),
)
def test_every_filter_gives_the_pixels(pixels: np.ndarray, data: st.DataObject) -> None:
    kinds = data.draw(st.lists(st.integers(0, 4), min_size=len(pixels), max_size=len(pixels)))
    file = raw_png(8, 0 if pixels.ndim == 2 else 2, filtered(pixels, kinds), pixels.shape[1])
    picture = png.plain(file)
    assert picture is not None
    assert isinstance(png.together([picture]), np.ndarray) != any(kinds)
    assert np.array_equal(decode(file, "x", Choices(rgb=pixels.ndim == 3)), pixels)


PASSES = ((0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2))


@given(
    pixels=arrays(np.uint8, st.tuples(st.integers(1, 11), st.integers(1, 11))),
    depth=st.sampled_from([1, 2, 4, 8]),
    cut=st.integers(0, 3),
)
def test_interlaced_and_shallow_files_are_read_whole_or_not(
    pixels: np.ndarray, depth: int, cut: int
) -> None:
    """As PNG, section 8, says: seven passes, of rows that are packed into bytes."""
    pixels = pixels & ((1 << depth) - 1)
    lines = []
    for left, top, right, down in (*PASSES, (0, 1, 1, 2)):
        for row in pixels[top::down, left::right]:
            if len(row):
                flat = np.unpackbits(row[:, None], axis=1)[:, 8 - depth :].reshape(-1)
                lines.append(b"\0" + np.packbits(flat).tobytes())
    cut = min(cut, len(lines))
    size = {"height": len(pixels), "interlaced": 1}
    file = raw_png(depth, 0, lines[: len(lines) - cut], pixels.shape[1], **size)
    assert png.plain(file) is None
    assert png.is_whole(file) == (cut == 0)
    if cut:
        with pytest.raises(FormatError, match="cannot be read"):
            decode(file, "x", Choices(grey=True))
    else:
        expected = pixels * (255 // ((1 << depth) - 1))
        assert np.array_equal(decode(file, "x", Choices(grey=True)), expected)


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_damage_is_never_read_otherwise_than_by_pillow(data: st.DataObject) -> None:
    """A plain PNG with a few bytes changed: the same pixels as by Pillow alone, or an error."""
    file = bytearray(data.draw(st.sampled_from([png.encode(PLAIN), saved(PLAIN, "PNG")])))
    for _ in range(data.draw(st.integers(1, 3))):
        file[data.draw(st.integers(0, len(file) - 1))] = data.draw(st.integers(0, 255))
    data_ = bytes(file)[: data.draw(st.integers(0, len(file)))]
    picture = png.plain(data_)
    if picture is not None:
        assert np.array_equal(decode(data_, "x", Choices()), Image.open(io.BytesIO(data_)))


def test_other_chunks_leave_it_to_pillow() -> None:
    harmless = raw_png(8, 0, rows(PLAIN), 8, b"pHYs" + bytes(9), b"gAMA" + bytes(4))
    assert png.plain(harmless) is not None
    for chunk in (
        b"tRNS\0\1",
        b"eXIf" + bytes(8),
        b"tEXta\0b",
        b"iCCP" + bytes(5),
        b"acTL" + bytes(8),
    ):
        assert png.plain(raw_png(8, 0, rows(PLAIN), 8, chunk)) is None
    for depth, colour in ((1, 0), (16, 0), (8, 3), (8, 4), (8, 6)):
        assert png.plain(raw_png(depth, colour, rows(PLAIN), 8)) is None
    assert png.plain(raw_png(8, 0, [b"\0"], 1 << 13, height=1 << 12)) is None
    split = saved(Image.effect_noise((200, 200), 99), "PNG")
    assert np.array_equal(decode(split, "x", Choices()), np.asarray(Image.open(io.BytesIO(split))))


def test_plain_pictures_need_no_pillow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pillow.cache_clear()
    monkeypatch.setitem(sys.modules, "PIL.PngImagePlugin", None)
    try:
        tree = put(tmp_path, {"a/0.png": PLAIN})
        assert np.array_equal(read(tree).images[0], PLAIN)
        with pytest.raises(MissingExtraError) as error:
            read(put(tmp_path, {"a/1.png": saved(COLOUR, "PNG")}))
        assert "idxfile[images]" in str(error.value.hint)
    finally:
        pillow.cache_clear()


# On all cores, in order, in bounded memory


def test_work_is_done_in_order_and_not_far_ahead() -> None:
    taken = []

    def jobs() -> Any:
        for number in range(100):
            taken.append(number)
            yield number

    results = workers.in_order(lambda number: number * 2, jobs())
    for number, result in enumerate(results):
        assert result == number * 2
        assert len(taken) <= number + 2 + (os.cpu_count() or 1)
    results = workers.in_order(lambda number: 1 // (number - 5), range(100))
    with pytest.raises(ZeroDivisionError):
        list(results)


def test_nothing_is_decoded_but_what_is_asked_for(tmp_path: Path) -> None:
    files: dict[str, Any] = {f"a/{n}.png": shade(n) for n in range(9)}
    tree = put(tmp_path, {**files, "a/4.png": b"", "a/8.png": b""})
    images = pictures.read_columns(str(tree)).arrays["images"]
    assert images.shape == (9, 1, 1)
    assert images[1:4].reshape(-1).tolist() == [1, 2, 3]
    assert images[7:4:-1].reshape(-1).tolist() == [7, 6, 5]
    assert images[3:3].shape == (0, 1, 1)
    done = convert(tree, tmp_path / "x.idx", items=slice(5, 8))
    assert idxfile.read(tmp_path / "x.idx").reshape(-1).tolist() == [5, 6, 7]
    assert done.columns["images"][1] == (3, 1, 1)


@pytest.mark.parametrize("shape", [(300, 400), (1, 70_000), (257, 300, 3)])
def test_sides_over_255(shape: tuple[int, ...], tmp_path: Path) -> None:
    picture = np.random.default_rng(0).integers(0, 256, shape, np.uint8)
    tree = put(tmp_path, {"a/0.png": saved(picture, "PNG"), "a/1.png": picture[::-1]})
    found = read(tree, rgb=len(shape) == 3).images
    assert np.array_equal(found, [picture, picture[::-1]])


# The way out and back


def items() -> st.SearchStrategy[np.ndarray]:
    sides = st.integers(1, 5)
    grey = st.tuples(st.integers(1, 7), sides, sides)
    return st.one_of(grey, grey.map(lambda shape: (*shape, 3))).flatmap(
        lambda shape: arrays(np.uint8, shape)
    )


WORDS = st.text(st.characters(codec="utf-8", exclude_characters="\r\n"), max_size=80)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(images=items(), suffix=st.sampled_from(["", ".tar", ".zip", ".tar.gz"]), data=st.data())
def test_out_and_back(
    images: np.ndarray, suffix: str, data: st.DataObject, tmp_path_factory: Any
) -> None:
    path = tmp_path_factory.mktemp("out") / f"x{suffix}"
    labels = data.draw(
        st.none() | arrays(np.int32, len(images), elements=st.integers(-3, 12)), label="labels"
    )
    classes = data.draw(st.none() | st.lists(WORDS, min_size=13, max_size=13), label="classes")
    if labels is not None and classes is not None:
        labels = abs(labels)
    names = classes and tuple(name or None for name in classes)
    written(path, images, labels, names)
    found = read(path, rgb=images.ndim == 4)
    assert np.array_equal(found.images, images)
    assert found.labels == (None if labels is None else labels.tolist())
    printed = names and tuple(name and idxfile.errors.printable(name) for name in names)
    assert found.classes == (printed if labels is not None and any(names or ()) else found.classes)
    if not suffix:
        folders = [p for p in path.iterdir() if p.is_dir()]
        assert all(p.resolve().parent == path.resolve() for p in folders)


def test_the_names_say_number_and_class(tmp_path: Path) -> None:
    images = np.arange(3, dtype=np.uint8).reshape(3, 1, 1)
    written(tmp_path / "out", images, np.array([1, 0, 1]), ("T-shirt/top", "."))
    files = sorted(str(p.relative_to(tmp_path / "out")) for p in (tmp_path / "out").rglob("*.*"))
    assert files == [
        "%2E/00000.png",
        "%2E/00002.png",
        "T-shirt%2Ftop/00001.png",
        "classes.txt",
        "metadata.jsonl",
    ]
    lines = (tmp_path / "out/metadata.jsonl").read_text().splitlines()
    assert [json.loads(line) for line in lines] == [
        {"file_name": "%2E/00000.png", "label": 1},
        {"file_name": "T-shirt%2Ftop/00001.png", "label": 0},
        {"file_name": "%2E/00002.png", "label": 1},
    ]
    (tmp_path / "out/metadata.jsonl").unlink()
    found = read(tmp_path / "out")
    assert (found.labels, found.shades) == ([0, 1, 1], [1, 0, 2])
    assert found.classes == ("T-shirt/top", ".")


@pytest.mark.parametrize(
    ("name", "folder"),
    [
        ("..", "%2E%2E"),
        (".hidden", "%2Ehidden"),
        ("a/b\\c", "a%2Fb%5Cc"),
        ("50%", "50%25"),
        ("dots.", "dots%2E"),
        ("\x1b[31m\u202e", "%1B[31m%202E"),
        ("日本 ", "日本%20"),
        ("CON?", "CON%3F"),
    ],
)
def test_names_of_classes_are_safe_as_folders(name: str, folder: str) -> None:
    assert folder_name(name) == folder
    assert len(folder_name("é" * 300).encode()) == 200


def test_many_files_are_sharded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writing, "_MAX_IN_FOLDER", 10)
    monkeypatch.setattr(writing, "_IN_SHARD", 4)
    images = np.arange(40, dtype=np.uint8).reshape(40, 1, 1)
    labels = np.array([1] * 12 + [0, 2] * 9 + [1] * 10)
    written(tmp_path / "out", images, labels)
    folders = sorted(str(p.relative_to(tmp_path / "out")) for p in (tmp_path / "out").glob("1/*"))
    assert folders == [f"1/{n:04}" for n in range(6)]
    assert all(len(os.listdir(tmp_path / "out" / f)) <= 4 for f in folders)
    assert len(os.listdir(tmp_path / "out/0")) == 9
    assert read(tmp_path / "out")[1:2] == (labels.tolist(),)
    written(tmp_path / "flat", images)
    assert sorted(os.listdir(tmp_path / "flat")) == [
        *(f"{n:04}" for n in range(10)),
        "metadata.jsonl",
    ]
    found = read(tmp_path / "flat")
    assert (found.shades, found.labels) == (list(range(40)), None)


WRONG_ITEMS: dict[str, tuple[np.ndarray, str, str]] = {
    "floats": (np.zeros((2, 3, 4), np.float32), "float32", "scale=(low, high)"),
    "int16": (np.zeros((2, 3, 4), np.int16), "int16", 'dtype="uint8"'),
    "vectors": (np.zeros((2, 784), np.uint8), r"items of shape \(784,\)", "(items, rows, columns)"),
    "four channels": (np.zeros((2, 3, 4, 4), np.uint8), "are no pictures", "RGB"),
    "channels first": (np.zeros((2, 3, 8, 8), np.uint8), "are no pictures", "RGB"),
    "no items": (np.zeros((0, 3, 4), np.uint8), "0 pictures of 3 × 4", ""),
    "no pixels": (np.zeros((2, 0, 4), np.uint8), "2 pictures of 0 × 4", ""),
}


@pytest.mark.parametrize("case", WRONG_ITEMS)
def test_what_is_no_picture_is_refused(case: str, tmp_path: Path) -> None:
    images, message, hint = WRONG_ITEMS[case]
    with pytest.raises(UnsupportedError, match=message) as error:
        written(tmp_path / "x.tar", images)
    assert hint in str(error.value.hint)
    assert os.listdir(tmp_path) == []


def test_labels_that_are_a_matrix_are_refused(tmp_path: Path) -> None:
    for labels in (np.zeros((2, 8), np.int32), np.zeros(2, np.float32)):
        with pytest.raises(UnsupportedError, match="a picture has one whole number"):
            written(tmp_path / "x.tar", np.zeros((2, 3, 4), np.uint8), labels)


def test_other_columns_are_left_out_and_told(tmp_path: Path) -> None:
    columns = {name: Sliced(np.zeros((2, 3, 4), np.uint8)) for name in ("images", "masks")}
    columns = Columns(columns)
    pictures.write_columns(str(tmp_path / "x.zip"), columns)
    assert columns.notes == ["left out masks: pictures have no place for it"]


def test_names_of_classes_of_two_lines_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedError, match="is one line"):
        written(tmp_path / "x.tar", np.zeros((1, 1, 1), np.uint8), np.array([0]), ("a\nb",))
    assert os.listdir(tmp_path) == []


def test_equal_items_make_equal_archives(tmp_path: Path) -> None:
    images, labels = np.arange(24, dtype=np.uint8).reshape(4, 2, 3), np.array([3, 1, 3, 2])
    for suffix in ("tar", "zip", "tar.gz", "tar.xz"):
        paths = [tmp_path / f"{n}.{suffix}" for n in range(2)]
        for path in paths:
            written(path, images, labels)
        assert paths[0].read_bytes() == paths[1].read_bytes()


def test_the_level_changes_the_size_alone(tmp_path: Path) -> None:
    images = np.zeros((1, 50, 50), np.uint8)
    sizes = []
    for level in (0, 9):
        (tmp_path / "x.idx").write_bytes(idx_bytes(images))
        convert(tmp_path / "x.idx", tmp_path / "x.zip", target_options={"level": level})
        assert np.array_equal(read(tmp_path / "x.zip").images, images)
        sizes.append((tmp_path / "x.zip").stat().st_size)
    assert sizes[0] > 2500 > 10 * (sizes[1] - 500)


# Archives


def packed(root: Path, path: Path, *, folders: bool = True, prefix: str = "") -> Path:
    """A tree as an archive, by the standard library."""
    names = sorted(p for p in root.rglob("*") if folders or p.is_file())
    if ".zip" in path.name:
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for name in names:
                archive.write(name, f"{prefix}{name.relative_to(root)}")
    else:
        mode: Any = {".gz": "w:gz", ".xz": "w:xz"}.get(path.suffix, "w")
        with tarfile.open(path, mode) as tar:
            for name in names:
                tar.add(name, f"{prefix}{name.relative_to(root)}", recursive=False)
    return path


@pytest.mark.parametrize("suffix", ["tar", "tar.gz", "tar.xz", "zip"])
@pytest.mark.parametrize("prefix", ["", "./", "set v1/"])
def test_an_archive_is_read_as_its_folder(suffix: str, prefix: str, tmp_path: Path) -> None:
    files = {
        "a/10.png": shade(1),
        "a/9.png": shade(2),
        "b/c/1.png": shade(3),
        "empty": None,
        "a/notes.txt": "x",
        ".hidden/0.png": b"",
    }
    tree = put(tmp_path / "tree", files)
    archive = packed(tree, tmp_path / f"x.{suffix}", prefix=prefix)
    expected, found = read(tree), read(archive)
    assert found[1:] == expected[1:]
    assert found.shades == expected.shades
    assert convert(archive, f"{tmp_path}/out/").source_format == suffix.partition(".")[0]


@pytest.mark.parametrize("suffix", ["tar", "zip"])
def test_a_wrapped_table_is_found(suffix: str, tmp_path: Path) -> None:
    files = {"1.png": shade(1), "2.png": shade(2), "labels.csv": "2.png,x\n1.png,y\n"}
    archive = packed(put(tmp_path / "tree", files), tmp_path / f"x.{suffix}", prefix="set/")
    assert read(archive)[1:3] == ([0, 1], ("x", "y"))
    archive = packed(tmp_path / "tree", tmp_path / f"y.{suffix}")
    assert read(archive)[1:3] == ([0, 1], ("x", "y"))


def test_one_class_in_an_archive_is_no_wrapper(tmp_path: Path) -> None:
    tree = put(tmp_path / "tree", {"cat/1.png": shade(1), "cat/2.png": shade(2)})
    assert read(packed(tree, tmp_path / "x.tar"))[1:3] == ([0, 0], ("cat",))


def test_splits_in_an_archive(tmp_path: Path) -> None:
    files = {f"{s}/{c}/1.png": shade(n) for n, (s, c) in enumerate((("train", "a"), ("test", "a")))}
    archive = packed(put(tmp_path / "tree", files), tmp_path / "x.zip")
    assert read(archive, split="test").shades == [1]


def test_links_in_a_tar(tmp_path: Path) -> None:
    tree = put(tmp_path / "tree", {"a/1.png": shade(1)})
    os.link(tree / "a/1.png", tree / "a/2.png")
    (tree / "a/3.png").symlink_to("1.png")
    found = read(packed(tree, tmp_path / "x.tar"))
    assert found.shades == [1, 1]
    assert found.notes == ["left out a/3.png: a link, or no plain file"]


def test_errors_name_the_member(tmp_path: Path) -> None:
    tree = put(tmp_path / "tree", {"a/1.png": shade(1), "a/2.png": b"text of some length"})
    for suffix in ("tar", "zip"):
        archive = packed(tree, tmp_path / f"x.{suffix}")
        with pytest.raises(FormatError, match="it is a text file") as error:
            read(archive)
        assert error.value.file == f"{archive}::a/2.png"
        assert read(archive, skip_bad=True).shades == [1]


def test_damaged_archives(tmp_path: Path) -> None:
    tree = put(tmp_path / "tree", {f"a/{n}.png": COLOUR for n in range(20)})
    for suffix, cut in (("tar", 700), ("tar", 5000), ("tar.gz", 300), ("zip", 2000)):
        data = packed(tree, tmp_path / f"x.{suffix}").read_bytes()
        (tmp_path / f"cut.{suffix}").write_bytes(data[:cut])
        with pytest.raises(FormatError, match=r"cannot be read|is cut"):
            read(tmp_path / f"cut.{suffix}", rgb=True)
    whole = bytearray(packed(tree, tmp_path / "x.zip").read_bytes())
    whole[60] ^= 0xFF
    (tmp_path / "bits.zip").write_bytes(whole)
    with pytest.raises(FormatError, match="damaged") as error:
        read(tmp_path / "bits.zip", rgb=True)
    assert error.value.file == f"{tmp_path}/bits.zip::a/0.png"
    assert len(read(tmp_path / "bits.zip", rgb=True, skip_bad=True).images) == 19
    whole = bytearray(packed(tree, tmp_path / "x.zip", folders=False).read_bytes())
    central = whole.index(b"PK\1\2")
    whole[6] |= 1
    whole[central + 8] |= 1
    (tmp_path / "locked.zip").write_bytes(whole)
    with pytest.raises(UnsupportedError, match=r"a/0\.png: it is encrypted"):
        read(tmp_path / "locked.zip", rgb=True)
    (tmp_path / "text.tar").write_text("nothing of the kind" * 99)
    with pytest.raises(FormatError, match="tar archive cannot be read"):
        read(tmp_path / "text.tar")


def test_zips_of_other_systems(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as archive:
        archive.writestr("a\\1.png", png.encode(shade(1)))
        archive.writestr("__MACOSX/a/._1.png", b"x")
        archive.writestr("__MACOSX/._a", b"x")
        archive.writestr("b/.DS_Store", b"x")
        archive.writestr("b/2.png", png.encode(shade(2)))
        archive.writestr("b/Thumbs.db", b"x")
        archive.writestr("../up.png", b"x")
    found = read(tmp_path / "x.zip")
    assert (found.shades, found.classes) == ([1, 2], ("a", "b"))
    assert found.notes == ["left out 1 file (b/Thumbs.db) that are no pictures by name"]


def test_our_tar_is_what_the_standard_library_writes(tmp_path: Path) -> None:
    names = ["0/1.png", "a" * 100, "a" * 101, "日本/1.png", "x" * 300]
    with shelves.open_shelf(str(tmp_path / "x.tar")) as shelf:
        for name in names:
            shelf.put(name, name.encode())
    with tarfile.open(tmp_path / "y.tar", "w", format=tarfile.PAX_FORMAT) as tar:
        for name in names:
            member = tarfile.TarInfo(name)
            member.size = len(name.encode())
            tar.addfile(member, io.BytesIO(name.encode()))
    assert (tmp_path / "x.tar").read_bytes() == (tmp_path / "y.tar").read_bytes()
    with pytest.raises(RuntimeError), shelves.open_shelf(str(tmp_path / "z.tar")) as shelf:
        shelf.put("a", b"x")
        raise RuntimeError
    assert sorted(os.listdir(tmp_path)) == ["x.tar", "y.tar"]


# MNIST


def mnist(folder: Path, count: int) -> Path:
    images = idxfile.read(MNIST / "train-images-idx3-ubyte.gz")[:count]
    labels = idxfile.read(MNIST / "train-labels-idx1-ubyte.gz")[:count]
    folder.mkdir()
    idxfile.write(folder / "train-images-idx3-ubyte", images)
    idxfile.write(folder / "train-labels-idx1-ubyte", labels)
    return folder


def same_files(one: Path, other: Path) -> None:
    assert sorted(os.listdir(one)) == sorted(os.listdir(other))
    for name in os.listdir(one):
        assert (one / name).read_bytes() == (other / name).read_bytes()


@pytest.mark.parametrize("count", [2000, pytest.param(60000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("kind", ["pictures", "tar", "zip"])
def test_mnist_out_and_back(count: int, kind: str, tmp_path: Path) -> None:
    pair = mnist(tmp_path / "mnist", count)
    path = tmp_path / f"out.{kind}"
    convert(pair, path, target_format=kind)
    done = convert(path, f"{tmp_path}/back/")
    assert done.source_format == kind
    same_files(pair, tmp_path / "back")


@pytest.mark.parametrize("count", [2000, pytest.param(60000, marks=pytest.mark.slow)])
def test_mnist_by_pillow(count: int, tmp_path: Path) -> None:
    """A tree that others wrote, without a table; and ours as others read it."""
    pair = mnist(tmp_path / "mnist", count)
    images = idxfile.read(pair / "train-images-idx3-ubyte")
    labels = idxfile.read(pair / "train-labels-idx1-ubyte")
    for label in range(10):
        (tmp_path / f"tree/{label}").mkdir(parents=True)
    for number, (image, label) in enumerate(zip(images, labels, strict=True)):
        Image.fromarray(image).save(tmp_path / f"tree/{label}/{number}.png")
    found = read(tmp_path / "tree")
    order = np.argsort(labels, kind="stable")
    assert np.array_equal(found.images, images[order])
    assert found.labels == labels[order].tolist()
    convert(pair, tmp_path / "ours", target_format="pictures")
    for number in range(0, count, 7):
        with Image.open(tmp_path / f"ours/{labels[number]}/{number:05}.png") as image:
            assert (image.mode, image.format) == ("L", "PNG")
            assert np.array_equal(image, images[number])


@pytest.mark.slow
def test_hugging_face_reads_ours(tmp_path: Path) -> None:
    datasets = import_module("datasets")
    images = np.random.default_rng(0).integers(0, 256, (20, 4, 5), np.uint8)
    labels = np.arange(20) * 7 % 3
    written(tmp_path / "out", images, labels, ("a", "b/c", "."))
    found = datasets.load_dataset(
        "imagefolder", data_dir=str(tmp_path / "out"), split="train", cache_dir=str(tmp_path / "hf")
    )
    assert found["label"][:] == labels.tolist()
    assert np.array_equal([np.asarray(image) for image in found["image"]], images)


@pytest.mark.slow
def test_over_65535_pictures(tmp_path: Path) -> None:
    images = np.random.default_rng(0).integers(0, 256, (70_000, 2, 2), np.uint8)
    labels = np.random.default_rng(1).integers(0, 3, 70_000)
    for name in ("x", "x.tar", "x.zip"):
        written(tmp_path / name, images, labels)
        found = read(tmp_path / name)
        assert np.array_equal(found.images, images)
        assert found.labels == labels.tolist()


@pytest.mark.slow
def test_over_100000_files_in_a_class(tmp_path: Path) -> None:
    images = np.zeros((100_001, 1, 1), np.uint8)
    images[-1] = 7
    written(tmp_path / "x", images, np.zeros(100_001, np.uint8))
    assert sorted(os.listdir(tmp_path / "x/0")) == [f"{n:04}" for n in range(11)]
    assert read(tmp_path / "x").images[-1] == 7


@pytest.mark.parametrize("name", ["digit.png", "digit.png.gz", "digit"])
def test_a_single_picture_is_one_item(tmp_path: Path, name: str) -> None:
    pixels = np.arange(6, dtype="uint8").reshape(2, 3)
    picture = io.BytesIO()
    Image.fromarray(pixels).save(picture, "png")
    content = picture.getvalue()
    (tmp_path / name).write_bytes(gzip.compress(content) if name.endswith("gz") else content)
    convert(tmp_path / name, tmp_path / "digit.idx")
    assert np.array_equal(idxfile.read(tmp_path / "digit.idx"), pixels[None])
