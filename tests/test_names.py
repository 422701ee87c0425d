"""What the names of files promise: their place in a pair, and what the content must be."""

from __future__ import annotations

from pathlib import Path

import pytest

from conftest import COMPRESS, MNIST
from idxfile.errors import PairError
from idxfile.header import Header
from idxfile.names import file_name, name_problems
from idxfile.source.places import find_partner

# The place in a pair

NAMES = {
    "train-images-idx3-ubyte": ("images", "train-*"),
    "train-labels-idx1-ubyte": ("labels", "train-*"),
    "train-images.idx3-ubyte": ("images", "train-*"),
    "train_labels.idx1.ubyte": ("labels", "train_*"),
    "t10k-images-idx3-ubyte.gz": ("images", "t10k-*"),
    "T10K-LABELS-IDX1-UBYTE.GZ": ("labels", "t10k-*"),
    "emnist-letters-train-images-idx3-ubyte.gz": ("images", "emnist-letters-train-*"),
    "qmnist-train-labels-idx2-int.gz": ("labels", "qmnist-train-*"),
    "train-images-0_3-idx3-ubyte.gz": ("images", "train-*-0_3"),
    "labels-idx-ubyte": ("labels", "*-idx-ubyte"),
    "train-images.idx": ("images", "train-*"),
    "test-patterns.idx3": ("images", "test-*"),
    "images": ("images", "*"),
    "labels.bin": ("labels", "*"),
    "x.idx.zst": ("images", "*"),
    "data-y.idx.xz": ("labels", "data-*"),
    "smallnorb-5x46789x9x18x6x2x96x96-training-dat.mat.gz": (
        "images",
        "smallnorb-5x46789x9x18x6x2x96x96-training-*",
    ),
    "norb-training-02-cat.mat": ("labels", "norb-training-02-*"),
    "folder/of/images/train-labels-idx1-ubyte": ("labels", "train-*"),
}


@pytest.mark.parametrize("name", NAMES)
def test_a_name_tells_the_place_in_a_pair(name: str) -> None:
    assert file_name(name) == NAMES[name]


@pytest.mark.parametrize(
    "name",
    [
        "",
        "data.idx",
        "train.gz",
        "cat.mat",
        "my-cat.png",
        "norb-info.mat",
        "relabelled.idx",
        "imagesque-idx3-ubyte",
        "<stdin>",
        ".gz",
    ],
)
def test_other_names_tell_no_place(name: str) -> None:
    assert file_name(name) is None


# The partner

STYLES = [
    ("train-images-idx3-ubyte", "train-labels-idx1-ubyte"),
    ("train-images.idx3-ubyte", "train-labels.idx1-ubyte"),
    ("train-images-idx3-ubyte", "train-labels.idx1-ubyte"),
    ("emnist-letters-train-images-idx3-ubyte", "emnist-letters-train-labels-idx1-ubyte"),
    ("qmnist-train-images-idx3-ubyte", "qmnist-train-labels-idx2-int"),
    ("images", "labels"),
]
SUFFIXES = ["", *(f".{codec}" for codec in COMPRESS)]


@pytest.mark.parametrize("suffixes", [(one, other) for one in SUFFIXES for other in SUFFIXES])
@pytest.mark.parametrize("names", STYLES)
def test_the_partner_is_found_under_every_usual_name(
    names: tuple[str, str], suffixes: tuple[str, str], tmp_path: Path
) -> None:
    images, labels = (str(tmp_path / f"{n}{s}") for n, s in zip(names, suffixes, strict=True))
    for path in (images, labels, tmp_path / "t10k-images-idx3-ubyte", tmp_path / "notes.txt"):
        Path(path).touch()
    assert find_partner(images) == labels
    assert find_partner(labels) == images


def test_the_partner_in_the_folder_where_one_stands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("images.idx", "labels.idx"):
        (tmp_path / name).touch()
    monkeypatch.chdir(tmp_path)
    assert find_partner("images.idx") == "./labels.idx"


def test_there_may_be_no_partner(tmp_path: Path) -> None:
    (tmp_path / "train-labels-idx1-ubyte").mkdir()  # a folder is none
    assert find_partner(str(tmp_path / "train-images-idx3-ubyte")) is None
    assert find_partner(str(tmp_path / "data.idx")) is None


def test_of_two_partners_the_one_that_is_packed_alike_is_meant(tmp_path: Path) -> None:
    for name in ("train-images.idx", "train-labels.idx", "train-labels.idx.GZ"):
        (tmp_path / name).touch()
    for suffix, meant in (("", ""), (".gz", ".GZ")):
        partner = find_partner(str(tmp_path / f"train-images.idx{suffix}"))
        assert partner == str(tmp_path / f"train-labels.idx{meant}")


def test_between_two_partners_nothing_is_guessed(tmp_path: Path) -> None:
    for name in ("train-labels.idx", "train-labels-idx1-ubyte", "train-labels\n.idx"):
        (tmp_path / name).touch()
    with pytest.raises(PairError) as caught:
        find_partner(str(tmp_path / "train-images.idx"))
    assert "train-labels-idx1-ubyte and train-labels.idx could both be its labels" in str(
        caught.value
    )
    assert "hint: name the one that is meant" in str(caught.value)


def test_names_in_errors_cannot_steer_a_terminal(tmp_path: Path) -> None:
    for name in ("\x1b[31m-labels.idx", "\x1b[31m-labels-idx1-ubyte"):
        (tmp_path / name).touch()
    with pytest.raises(PairError) as caught:
        find_partner(str(tmp_path / "\x1b[31m-images.idx"))
    assert str(caught.value).replace("\nhint", "").isprintable()
    assert r"\x1b[31m-labels.idx" in str(caught.value)


# The name against the content

PROMISES = [
    ("train-images-idx3-ubyte.gz", ("gz",), "uint8", 3, []),
    ("train-images-idx3-ubyte", (), "uint8", 3, []),
    ("train-images.idx3.gz", ("gz",), "uint8", 3, []),
    ("labels-idx2-int.gz", ("gz",), "int32", 2, []),
    ("a-idx1-float", (), "float32", 1, []),
    ("a-idx1-double", (), "float64", 1, []),
    ("a-idx1-short", (), "int16", 1, []),
    ("a-idx1-int8", (), "int8", 1, []),
    ("a-idx1-whatever", (), "int8", 1, []),
    ("anything", (), "float64", 7, []),
    ("<stdin>", ("gz",), "uint8", 3, []),
    ("<bytes>", ("xz",), "uint8", 3, []),
    ("a.gz", (), "uint8", 1, ["the name suggests gz and the content is raw"]),
    ("a.idx", ("gz",), "uint8", 1, ["the name suggests no compression and the content is gz"]),
    ("a.bz2", ("zst",), "uint8", 1, ["the name suggests bz2 and the content is zst"]),
    ("a-idx3-ubyte", (), "uint8", 1, ["the name says idx3-ubyte, the header says uint8 2"]),
    ("a-idx2-int", (), "int16", 2, ["the name says idx2-int, the header says int16 2 × 2"]),
    (
        "t10k-labels-idx1-ubyte.gz",
        (),
        "int32",
        2,
        [
            "the name suggests gz and the content is raw",
            "the name says idx1-ubyte, the header says int32 2 × 2",
        ],
    ),
]


@pytest.mark.parametrize(("name", "codecs", "dtype", "ndim", "messages"), PROMISES)
def test_what_a_name_promises_is_held_against_the_content(
    name: str, codecs: tuple[str, ...], dtype: str, ndim: int, messages: list[str]
) -> None:
    problems = name_problems(name, codecs, Header.of(dtype, (2,) * ndim))
    assert [problem.message for problem in problems] == messages
    assert all(problem.level == "note" for problem in problems)


@pytest.mark.parametrize("path", sorted(MNIST.iterdir()), ids=lambda path: path.name)
def test_the_published_files_have_partners(path: Path) -> None:
    partner = find_partner(str(path))
    assert partner is not None
    assert find_partner(partner) == str(path)
