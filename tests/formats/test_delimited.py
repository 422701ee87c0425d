"""CSV and its relatives: what headers say, what is never guessed, and numbers to the last bit."""

from __future__ import annotations

import csv
import gzip
import os
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from trials import mnist, values

import idxfile
from conftest import COMPRESS, idx_bytes
from idxfile import Conversion, FormatError, UnsupportedError, convert
from idxfile.formats import tabular


def read(path: Path, text: str | bytes, **options: Any) -> tuple[np.ndarray, Any, Conversion]:
    """The images and labels of a table, and the report."""
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    out = path.parent / "read.npz"
    done = convert(path, out, source_format="csv", source_options=options)
    found = np.load(out)
    return found["images"], found.get("labels"), done


@pytest.fixture
def table(tmp_path: Path) -> Any:
    """Reads a text as a table."""
    return lambda text, **options: read(tmp_path / "a.csv", text, **options)


# Headers


def test_kaggles_table_is_labels_and_vectors(table: Any) -> None:
    images, labels, done = table("label,pixel0,pixel1,pixel2,pixel3\n7,0,1,2,255\n2,3,4,5,6\n")
    assert images.tolist() == [[0, 1, 2, 255], [3, 4, 5, 6]]
    assert images.dtype == labels.dtype == "uint8"
    assert labels.tolist() == [7, 2]
    assert done.notes == [
        "the first row is a header",
        "images are read as uint8, the smallest for whole numbers from 0 to 255",
        "labels are read as uint8, the smallest for whole numbers from 2 to 7",
    ]


@pytest.mark.parametrize(
    ("names", "shape"),
    [
        ("pixel_0_0,pixel_0_1,pixel_0_2,pixel_1_0,pixel_1_1,pixel_1_2", (2, 3)),
        ("1x1,1x2,1x3,2x1,2x2,2x3", (2, 3)),
        ("pixel1x1,pixel1x2,pixel2x1,pixel2x2,pixel3x1,pixel3x2", (3, 2)),
        ("p0_0_0,p0_0_1,p0_0_2,p1_0_0,p1_0_1,p1_0_2", (2, 1, 3)),
        ("pixel0,pixel1,pixel2,pixel3,pixel4,pixel5", (6,)),
        ("1,2,3,4,5,6", (6,)),
        ("a,b,c,d,e,f", (6,)),
        ("1x1,2x1,3x1,1x2,2x2,3x2", (6,)),  # columns first: not in our order
        ("2x1,2x2,2x3,3x1,3x2,3x3", (6,)),
        ("1x1,1x2,1x3,1x4,2x1,2x2", (6,)),
        ("r0_0,r0_1,r0_2,r0_3,r0_4,r1", (6,)),
    ],
)
def test_names_tell_the_shape_only_where_they_count_through_it(
    names: str, shape: tuple[int, ...], table: Any
) -> None:
    images, labels, _ = table(f"{names}\n0,1,2,3,4,5\n6,7,8,9,10,11\n", header="yes")
    assert images.shape == (2, *shape)
    assert images.reshape(-1).tolist() == list(range(12))
    assert labels is None


def test_a_square_is_never_guessed_and_can_be_given(table: Any) -> None:
    text = "label,pixel0,pixel1,pixel2,pixel3\n7,0,1,2,3\n"
    assert table(text)[0].shape == (1, 4)
    assert table(text, shape=(2, 2))[0].tolist() == [[[0, 1], [2, 3]]]
    with pytest.raises(UnsupportedError, match="items of 4 values do not have the shape 2x3"):
        table(text, shape=(2, 3))


def test_without_a_header_no_column_is_taken_for_labels(table: Any) -> None:
    text = "5,0,1\n6,2,3\n"
    images, labels, done = table(text)
    assert images.tolist() == [[5, 0, 1], [6, 2, 3]]
    assert labels is None
    assert done.notes == [
        "no header: all 3 columns are the item (label=first takes one out)",
        "the first row is an item",
        "images are read as uint8, the smallest for whole numbers from 0 to 6",
    ]
    images, labels, _ = table(text, label="first")
    assert (images.tolist(), labels.tolist()) == ([[0, 1], [2, 3]], [5, 6])
    images, labels, _ = table(text, label="last")
    assert (images.tolist(), labels.tolist()) == ([[5, 0], [6, 2]], [1, 3])
    assert table(text, label="none")[1] is None


@pytest.mark.parametrize("name", ["label", "Label", "class", "TARGET", "y", "labels"])
@pytest.mark.parametrize("place", [0, 1, 2])
def test_the_labels_are_found_by_their_name_wherever_they_stand(
    name: str, place: int, table: Any
) -> None:
    names, row = ["a", "b"], ["1", "2"]
    names.insert(place, name)
    row.insert(place, "9")
    images, labels, _ = table(f"{','.join(names)}\n{','.join(row)}\n")
    assert (images.tolist(), labels.tolist()) == ([[1, 2]], [9])
    images, labels, _ = table(f"{','.join(names)}\n{','.join(row)}\n", label="b")
    assert labels.tolist() == [2]
    images, labels, _ = table(f"{','.join(names)}\n{','.join(row)}\n", label="none")
    assert images.shape == (1, 3)


def test_a_label_that_is_not_there_is_refused(table: Any) -> None:
    with pytest.raises(UnsupportedError, match="no column 'nix'") as caught:
        table("a,b\n1,2\n", label="nix")
    assert caught.value.hint == "there are a, b"
    with pytest.raises(UnsupportedError) as caught:
        table("1,2\n", label="nix")
    assert caught.value.hint == "the table has no header"


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("a,b\n1,2\n", True),
        ("label,0,1\n5,0,0\n", True),  # numbers as names, and one text over a number
        ("cat,0,1\ndog,1,0\n", False),  # texts over texts are labels
        ("1,2\n3,4\n", False),
        ("1.5,nan\n3,4\n", False),
        ("label,p0\n", True),
        ("1,2\n", False),
        (",0,1\n0,5,6\n", True),
    ],
)
def test_a_header_is_seen_and_told(text: str, named: bool, table: Any) -> None:
    options = {"label": "first"} if text.startswith("cat") else {}
    *_, done = table(text, **options)
    assert f"the first row is {'a header' if named else 'an item'}" in done.notes


def test_what_is_no_pixel_is_left_out_and_told(table: Any) -> None:
    images, labels, done = table("id,label,pixel0,pixel1,usage\n900,3,1,2,train\n901,4,5,6,test\n")
    assert images.tolist() == [[1, 2], [5, 6]]
    assert labels.tolist() == [3, 4]
    assert "left out id, usage" in done.notes


def test_class_names_become_classes(table: Any, tmp_path: Path) -> None:
    text = 'class,p0,p1\ncat,1,2\n"dog, big",3,4\ncat,5,6\n'
    _, labels, done = table(text)
    assert labels.tolist() == [0, 1, 0]
    assert done.classes == ("cat", "dog, big")
    convert(tmp_path / "a.csv", f"{tmp_path}/out/")
    assert idxfile.open_dataset(tmp_path / "out").classes == ("cat", "dog, big")


def test_numbers_before_texts_are_texts_too(table: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("idxfile.formats.delimited.line_blocks", _line_by_line)
    _, labels, done = table("class,p0\n07,1\n7,2\ncat,3\n")
    assert done.classes == ("07", "7", "cat")
    assert labels.tolist() == [0, 1, 2]


def _line_by_line(path: str) -> Any:
    with open(path) as file:
        yield from file


# Numbers


@pytest.mark.parametrize(
    ("numbers", "options", "note"),
    [
        ("0.5,1", {}, "images are read as float32, which keeps every value"),
        ("0.1,1", {}, "images are read as float64, as float32 would round 0.1"),
        ("0.1,1", {"dtype": "float32"}, "images are read as float32, as it was asked for"),
        ("0.5,16777217", {}, "images are read as float64, as float32 would round 16777217"),
        ("-3,300", {}, "images are read as int16, the smallest for whole numbers from -3 to 300"),
    ],
)
def test_the_type_is_told_with_its_reason(
    numbers: str, options: dict[str, str], note: str, table: Any
) -> None:
    assert note in table(f"a,b\n{numbers}\n", **options)[2].notes[1].replace(".0", "")


@pytest.mark.parametrize(
    ("numbers", "dtype"),
    [
        ("0,255", "uint8"),
        ("-1,127", "int8"),
        ("-1,128", "int16"),
        ("0,256", "int16"),
        ("0,65536", "int32"),
        ("0,4294967296", "int64"),
        ("0,9223372036854775807", "int64"),
        ("0.5,2", "float32"),
        ("0.1,2", "float64"),
        ("1e300,1", "float64"),
        ("nan,-inf", "float32"),
        ("2.0,16777217", "float64"),
        ('"1"," 2 "', "uint8"),
        ("+1,-0", "uint8"),
    ],
)
def test_values_get_the_smallest_type(numbers: str, dtype: str, table: Any) -> None:
    images, _, _ = table(f"a,b\n{numbers}\n")
    expected = [float(n.strip('"')) for n in numbers.split(",")]
    assert images.dtype == dtype
    assert np.array_equal(images, [expected], equal_nan=True)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a,b\n1,2\n3,x\n", r"could not convert string 'x' to float64 in row 2, column 2"),
        ("a,b\n1,2\n3\n", r"the number of columns changed from 2 to 1|column"),
        ("a,b\n1,\n", r"could not convert string '' to float64 in row 1, column 2"),
        ("a,b\n1,0x10\n", "could not convert"),
        ("a,b\n1,٣\n", "could not convert"),
        (b"a,b\n1,\xff\n", "byte 0xff is no UTF-8"),
        ("\n\n", "the table is empty"),
    ],
)
def test_what_is_no_table_of_numbers_is_told_with_its_place(
    text: Any, message: str, table: Any, tmp_path: Path
) -> None:
    with pytest.raises(FormatError, match=message) as caught:
        table(text)
    assert caught.value.file == str(tmp_path / "a.csv")
    assert os.listdir(tmp_path) == ["a.csv"]


@pytest.mark.parametrize(
    "text", ["0.5,9007199254740993", "0,99999999999999999999", "1e3,2\n1,-9007199254740993"]
)
def test_numbers_that_no_type_holds_are_refused(text: str, table: Any) -> None:
    with pytest.raises(UnsupportedError, match=r"no type holds|no float holds"):
        table(f"a,b\n{text}\n")


@settings(max_examples=50)
@given(
    arrays(
        st.sampled_from(("float64", "float32")),
        array_shapes(min_dims=2, max_dims=2, max_side=4),
        elements={"allow_subnormal": True},
    )
)
def test_floats_come_back_to_the_bit(tmp_path_factory: Any, array: np.ndarray) -> None:
    folder = tmp_path_factory.mktemp("floats")
    np.save(folder / "a.npy", array)
    convert(folder / "a.npy", folder / "a.csv")
    convert(folder / "a.csv", folder / "b.npy", dtype=array.dtype.name)
    found = np.load(folder / "b.npy")
    assert np.array_equal(found, array, equal_nan=True)
    assert (np.signbit(found) == np.signbit(array)).all() or np.isnan(array).any()
    with open(folder / "a.csv") as file:
        rows = list(csv.reader(file))[1:]
    assert np.array_equal(np.array(rows, float), array, equal_nan=True)


def test_short_decimals_may_be_meant_as_float32(table: Any, tmp_path: Path) -> None:
    table("a,b\n0.1,0.7\n")
    convert(tmp_path / "a.csv", tmp_path / "a.idx", dtype="float32")
    assert (idxfile.read(tmp_path / "a.idx") == np.array([[0.1, 0.7]], "float32")).all()
    convert(tmp_path / "a.csv", tmp_path / "a.idx")
    assert idxfile.read(tmp_path / "a.idx").tolist() == [[0.1, 0.7]]


@settings(max_examples=30)
@given(
    arrays(
        st.sampled_from(("uint8", "int8", "int16", "int32", "int64")),
        array_shapes(min_dims=1, max_dims=4, max_side=3),
    )
)
def test_integers_come_back_exactly(tmp_path_factory: Any, array: np.ndarray) -> None:
    folder = tmp_path_factory.mktemp("integers")
    np.save(folder / "a.npy", array)
    for suffix in ("csv", "tsv", "jsonl"):
        convert(folder / "a.npy", folder / f"a.{suffix}")
        convert(folder / f"a.{suffix}", folder / "b.npy", dtype=array.dtype.name)
        found = np.load(folder / "b.npy")
        assert found.dtype == array.dtype
        assert found.shape == array.shape
        assert (found == array).all()


# How it lies in the file


@pytest.mark.parametrize("end", ["\n", "\r\n", "\n\n"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
@pytest.mark.parametrize("last", [True, False])
@pytest.mark.parametrize("sep", [",", ";", "\t"])
def test_line_ends_marks_and_delimiters(
    end: str, mark: str, last: bool, sep: str, table: Any
) -> None:
    rows = [f"label{sep}p0{sep}p1", f"1{sep}2{sep}3", f"4{sep}5{sep}6"]
    images, labels, _ = table(mark + end.join(rows) + (end if last else ""))
    assert (images.tolist(), labels.tolist()) == ([[2, 3], [5, 6]], [1, 4])


@pytest.mark.parametrize("codec", COMPRESS)
def test_compressed_tables_are_read_and_written(codec: str, tmp_path: Path) -> None:
    text = b"label,p0\n" + b"".join(b"%d,%d\n" % (n % 10, n % 251) for n in range(3000))
    images, labels, _ = read(tmp_path / "a.csv", COMPRESS[codec](text))
    assert images.reshape(-1).tolist() == [n % 251 for n in range(3000)]
    assert labels.tolist() == [n % 10 for n in range(3000)]
    suffix = {"gz": "gz", "bz2": "bz2", "xz": "xz", "zst": "zst"}[codec]
    convert(tmp_path / "a.csv", tmp_path / f"b.csv.{suffix}")
    assert (tmp_path / f"b.csv.{suffix}").read_bytes()[:2] == COMPRESS[codec](b"")[:2]
    convert(tmp_path / f"b.csv.{suffix}", tmp_path / "c.csv")
    assert (tmp_path / "c.csv").read_bytes() == text.replace(b"p0", b"pixel0")


def test_what_is_written_can_be_chosen(tmp_path: Path) -> None:
    images = np.arange(8, dtype="uint8").reshape(2, 2, 2)
    np.savez(tmp_path / "a.npz", images=images, labels=[5, 6])
    for options, text in (
        ({}, "label,pixel_0_0,pixel_0_1,pixel_1_0,pixel_1_1\n5,0,1,2,3\n6,4,5,6,7\n"),
        ({"names": "count"}, "label,pixel0,pixel1,pixel2,pixel3\n5,0,1,2,3\n6,4,5,6,7\n"),
        ({"header": False, "label": "last"}, "0,1,2,3,5\n4,5,6,7,6\n"),
        ({"header": False, "delimiter": "semicolon"}, "5;0;1;2;3\n6;4;5;6;7\n"),
    ):
        convert(tmp_path / "a.npz", tmp_path / "a.csv", target_options=options)
        assert (tmp_path / "a.csv").read_text() == text
    convert(tmp_path / "a.npz", tmp_path / "a.tsv", target_options={"header": False})
    assert (tmp_path / "a.tsv").read_text() == "5\t0\t1\t2\t3\n6\t4\t5\t6\t7\n"


def test_a_matrix_of_labels_keeps_its_columns(tmp_path: Path) -> None:
    labels = np.array([[3, 0, 70000], [4, 1, 70001]], "int32")
    np.savez(tmp_path / "a.npz", images=np.zeros((2, 2, 2), "uint8"), labels=labels)
    convert(tmp_path / "a.npz", tmp_path / "a.csv")
    assert (tmp_path / "a.csv").read_text().startswith("label,label_1,label_2,pixel_0_0")
    convert(tmp_path / "a.csv", f"{tmp_path}/out/")
    assert (idxfile.open_dataset(tmp_path / "out").table == labels).all()


@pytest.mark.parametrize("kept", [True, False])
def test_values_are_kept_or_parsed_again(
    kept: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not kept:
        monkeypatch.setattr(tabular.Findings.__init__, "__defaults__", (100,))
    monkeypatch.setattr("idxfile.formats.delimited.line_blocks", _line_by_line)
    text = "label,p0,p1\n" + "".join(f"{n % 3},{n},{n / 4 if n > 50 else n}\n" for n in range(90))
    images, labels, _ = read(tmp_path / "a.csv", text)
    assert images.tolist() == [[n, n / 4 if n > 50 else n] for n in range(90)]
    assert labels.tolist() == [n % 3 for n in range(90)]


# Others


def test_pandas_reads_ours_and_we_read_pandas(tmp_path: Path) -> None:
    pd = import_module("pandas")
    folder = mnist(tmp_path, 300)
    ds = idxfile.open_dataset(folder)
    convert(folder, tmp_path / "a.csv.gz")
    frame = pd.read_csv(tmp_path / "a.csv.gz")
    assert frame["label"].tolist() == ds.labels.tolist()
    pixels = frame.drop(columns="label").to_numpy()
    assert (pixels.reshape(-1, 28, 28) == ds.images[...]).all()
    frame["pixel_0_0"] = values("float64", (300,), finite=True)
    for number, options in enumerate(({"index": False}, {}, {"index": False, "sep": ";"})):
        frame.to_csv(tmp_path / "b.csv", **options)
        done = convert(tmp_path / "b.csv", tmp_path / "b.npz")
        found = np.load(tmp_path / "b.npz")
        assert found["images"].shape == (300, 28, 28)
        assert (found["images"][:, 0, 0] == frame["pixel_0_0"]).all()
        assert found["labels"].tolist() == ds.labels.tolist()
        assert ("left out the index" in done.notes) == (number == 1)


@pytest.mark.parametrize("package", ["polars", "duckdb"])
def test_others_read_ours(package: str, tmp_path: Path) -> None:
    module = import_module(package)
    folder = mnist(tmp_path, 300)
    ds = idxfile.open_dataset(folder)
    for name in ("a.csv", "a.tsv"):
        convert(folder, tmp_path / name, target_options={"names": "count"})
        if package == "polars":
            sep = "\t" if name.endswith("tsv") else ","
            frame = module.read_csv(tmp_path / name, separator=sep)
            labels, pixels = frame["label"].to_list(), frame.drop("label").to_numpy()
        else:
            frame = module.sql(f"select * from read_csv('{tmp_path / name}')").fetchnumpy()
            labels = frame.pop("label").tolist()
            pixels = np.stack(list(frame.values()), axis=1)
        assert labels == ds.labels.tolist()
        assert (pixels.reshape(-1, 28, 28) == ds.images[...]).all()


def test_the_whole_training_table_of_kaggle(tmp_path: Path) -> None:
    """`label,pixel0,…`, 28 × 28 given: the same IDX files as published."""
    folder = mnist(tmp_path, 500)
    ds = idxfile.open_dataset(folder)
    lines = [",".join(["label", *(f"pixel{n}" for n in range(784))])]
    lines += [",".join(map(str, [label, *image.reshape(-1)])) for image, label in ds]
    (tmp_path / "train.csv.gz").write_bytes(gzip.compress("\n".join(lines).encode()))
    options = {"shape": (28, 28)}
    convert(tmp_path / "train.csv.gz", f"{tmp_path}/out/", split="t10k", source_options=options)
    for name in ("t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"):
        assert (tmp_path / "out" / name).read_bytes() == (folder / name).read_bytes()


def test_labels_alone_are_a_table_too(tmp_path: Path) -> None:
    (tmp_path / "labels.idx").write_bytes(idx_bytes(np.array([3, 1, 2], "uint8")))
    convert(tmp_path / "labels.idx", tmp_path / "a.csv")
    assert (tmp_path / "a.csv").read_text() == "label\n3\n1\n2\n"
    convert(tmp_path / "a.csv", tmp_path / "b.idx")
    assert (tmp_path / "b.idx").read_bytes() == (tmp_path / "labels.idx").read_bytes()
