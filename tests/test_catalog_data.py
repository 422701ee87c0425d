"""The catalogue: the table is whole and consistent, and real files are known by their content."""

import gzip
import json
import lzma
from pathlib import Path

import numpy as np
import pytest

import idxfile
from conftest import DATA, MNIST, zstd
from idxfile import identify
from idxfile.catalog.digests import digests, file_fits
from idxfile.catalog.table import Fingerprint, dataset_named, datasets
from idxfile.header import ELEMENT_TYPES, Header
from idxfile.names import file_name

NBYTES = {row.name: row.nbytes for row in ELEMENT_TYPES}
HEX_DIGITS = {"sha256": 64, "git": 40, "sha1": 40, "md5": 32}
EVERY = {facts.name: facts for facts in datasets()}
FILES = [(facts, file) for facts in datasets() for file in facts.files]


def every_file():
    return pytest.mark.parametrize(
        ("facts", "file"), FILES, ids=[f"{facts.name} {file.name}" for facts, file in FILES]
    )


# The table


def test_every_data_set_is_there():
    emnist = ("byclass", "bymerge", "balanced", "letters", "digits", "mnist")
    assert {*EVERY} == {
        *("mnist", "fashion-mnist", "kmnist", *(f"emnist-{split}" for split in emnist), "qmnist"),
        *("kannada-mnist", "oracle-mnist", "notmnist-to-mnist", "overhead-mnist", "morpho-mnist"),
        *("infimnist", "ustc-tfc2016", "mnist-pca-course", "small-norb", "norb"),
    }
    assert len(EVERY) == len(datasets()) == 20


@pytest.mark.parametrize("facts", datasets(), ids=list(EVERY))
def test_a_row_is_consistent(facts):
    assert facts.title
    assert facts.summary
    assert facts.licence
    assert facts.classes
    assert all(url.endswith("/") and "://" in url for url in facts.mirrors)
    assert len({file.name for file in facts.files}) == len(facts.files)
    assert facts.fetchable or not facts.mirrors
    for split, items in facts.splits.items():
        files = facts.files_of(split)
        assert sum(file.shape[0] for file in files["labels"]) in (items, 0)
        assert len(files["info"]) in (0, len(files["images"]))
        item_shapes = {file.shape[1:] for file in files["images"]}
        assert len(item_shapes) == 1
    for part in facts.parts:
        first, end = part.items
        assert 0 <= first < end <= facts.splits[part.split]
    for release in facts.releases:
        assert {*release.files} <= {file.name for file in facts.files}
    labels = facts.files_of("test")["labels"]
    if labels and len(labels[0].shape) == 2:
        assert len(facts.columns) == labels[0].shape[1]
    json.dumps(facts.as_dict())


@every_file()
def test_a_file_is_consistent(facts, file):
    for known in (file.published, file.raw):
        for name, digits in HEX_DIGITS.items():
            digest = getattr(known, name)
            assert digest is None or (len(digest) == digits and int(digest, 16) >= 0)
            assert digest is None or digest == digest.lower()
    nbytes = int(np.prod(file.shape, dtype=object)) * NBYTES[file.dtype]
    dimensions = max(3, len(file.shape)) if facts.dialect == "lush" else len(file.shape)
    offset = 4 + 4 * dimensions + (4 if facts.dialect == "lush" else 0)
    assert file.raw.size == offset + nbytes
    if facts.dialect == "idx":
        assert file.raw.size == Header.of(file.dtype, file.shape).file_nbytes
        name = file_name(file.name)
        assert name is None or file.role == "extra" or name.role == file.role
    if file.counts:
        assert sum(file.counts) == file.shape[0]
        assert len(file.counts) == len(facts.classes)
        named = [name is not None for name in facts.classes]
        assert all(count == 0 for count, has in zip(file.counts, named, strict=True) if not has)


def test_no_two_files_have_one_digest():
    """But for small NORB, whose labels of train and test are the same."""
    seen = {}
    for facts, file in FILES:
        for known in (file.published, file.raw):
            if known.strongest:
                seen.setdefault(known.strongest, []).append((facts.name, file.name))
    twice = [rows for rows in seen.values() if len(rows) > 1]
    assert [{name for name, _ in rows} for rows in twice] == [{"small-norb"}]


@pytest.mark.parametrize(
    ("name", "count", "first", "last"),
    [
        ("mnist", 10, "0", "9"),
        ("fashion-mnist", 10, "T-shirt/top", "Ankle boot"),
        ("kmnist", 10, "お o", "を wo"),
        ("emnist-byclass", 62, "0", "z"),
        ("emnist-bymerge", 47, "0", "t"),
        ("emnist-balanced", 47, "0", "t"),
        ("emnist-letters", 27, None, "Z/z"),
        ("emnist-digits", 10, "0", "9"),
        ("emnist-mnist", 10, "0", "9"),
        ("kannada-mnist", 10, "೦", "೯"),
        ("notmnist-to-mnist", 10, "A", "J"),
        ("small-norb", 5, "animal", "car"),
        ("norb", 6, "animal", "blank"),
        ("ustc-tfc2016", 20, "BitTorrent", "Zeus"),
    ],
)
def test_classes_stand_at_their_labels(name, count, first, last):
    classes = EVERY[name].classes
    assert (len(classes), classes[0], classes[-1]) == (count, first, last)


def test_orientation():
    assert {name for name, facts in EVERY.items() if facts.transposed} == {
        name for name in EVERY if name.startswith("emnist-")
    }


def test_published_facts():
    mnist = {file.name: file for file in EVERY["mnist"].files}
    images = mnist["train-images-idx3-ubyte.gz"]
    assert images.published.md5 == "f68b3c2dcbeaaa9fbdd348bbdeb94873"
    assert (images.shape, images.dtype, images.raw.size) == ((60_000, 28, 28), "uint8", 47_040_016)
    assert EVERY["qmnist"].splits == {"train": 60_000, "test": 60_000, "nist": 402_953}
    assert EVERY["emnist-letters"].archive.name == "gzip.zip"
    assert EVERY["fashion-mnist"].licence_checked
    assert EVERY["mnist"].licence_checked is None
    assert dataset_named("Fashion_MNIST") is EVERY["fashion-mnist"]


def test_the_table_as_plain_values_says_only_what_is_known():
    facts = EVERY["notmnist-to-mnist"].as_dict()
    assert "columns" not in facts
    assert "sha256" not in facts["files"][0]["published"]
    assert EVERY["emnist-letters"].as_dict()["classes"][0] is None


def test_table_is_small_and_of_the_package():
    path = Path(idxfile.__file__).parent / "catalog" / "datasets.toml"
    assert path.stat().st_size < 90_000


# Digests


def test_digests_of_pieces():
    # `printf hello | git hash-object --stdin`, and the like of the other three.
    assert digests([b"hel", b"lo"], 5, HEX_DIGITS) == {
        "sha256": "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824",
        "git": "b6fc4c620b67d95f953a5c1c1230aaab5db5a1b0",
        "sha1": "aaf4c61ddcc5e8a2dabede0f3b482cd9aea9434d",
        "md5": "5d41402abc4b2a76b9719d911017c592",
    }


def test_nothing_is_read_where_the_size_tells(tmp_path, monkeypatch):
    path = tmp_path / "hello"
    path.write_bytes(b"hello")
    known = {"md5": "5d41402abc4b2a76b9719d911017c592"}
    assert file_fits(path, Fingerprint(5, **known))
    assert file_fits(path, Fingerprint(**known))
    assert not file_fits(path, Fingerprint(5))
    monkeypatch.setattr("builtins.open", None)
    assert not file_fits(path, Fingerprint(6, **known))


# Real files

OFFICIAL = {
    **{("mnist", path.name): path for path in sorted(MNIST.iterdir())},
    **{
        (folder.name.replace("_", "-").replace("notmnist", "notmnist-to-mnist"), path.name): path
        for folder in sorted((DATA / "official").iterdir())
        if folder.is_dir()
        for path in sorted(folder.iterdir())
    },
}
OPEN = {".gz": gzip.open, ".xz": lzma.open}


@pytest.mark.parametrize(("name", "file"), OFFICIAL, ids=[" ".join(key) for key in OFFICIAL])
def test_a_published_file_is_known_by_its_content(name, file, tmp_path):
    path = OFFICIAL[name, file]
    facts = EVERY[name]
    [known] = [row for row in facts.files if row.name == file]
    # Every digest in the table is that of the real bytes, outside and inside.
    published = path.read_bytes()
    with OPEN[path.suffix](path) as opened:
        raw = opened.read()
    for fingerprint, data in ((known.published, published), (known.raw, raw)):
        assert fingerprint.size == len(data)
        for algorithm, digest in digests([data], len(data), HEX_DIGITS).items():
            assert getattr(fingerprint, algorithm) in (digest, None)
    # Under a misleading name, as it is, raw, and in another compression.
    copies = {"as published": published, "raw": raw, "zst": zstd.compress(raw, 1)}
    for what, data in copies.items():
        copy = tmp_path / "emnist-letters-train-images-idx3-ubyte.gz"
        copy.write_bytes(data)
        for subject in (copy, data):
            identity = identify(subject)
            assert (identity.dataset, identity.split, identity.role, identity.is_idx) == (
                *(name, known.split, known.role, True),
            )
            assert identity.what.startswith(facts.title)
            assert ("compressed anew" in identity.what) == (what == "zst")
    # One changed byte is another file.
    changed = bytearray(raw)
    changed[-1] ^= 1
    assert identify(bytes(changed)).dataset is None
    if known.counts and known.role == "labels":
        labels = idxfile.read(path)
        column = labels if labels.ndim == 1 else labels[:, 0]
        assert np.bincount(column).tolist() == list(known.counts)


def test_a_file_of_the_same_name_is_not_mnist():
    path = DATA / "official" / "fashion_mnist" / "train-labels-idx1-ubyte.gz"
    what = identify(path).what
    assert what == "Fashion-MNIST train labels, not MNIST; an IDX file: uint8 60000"
    assert identify(MNIST / path.name).what == "MNIST train labels; an IDX file: uint8 60000"


def test_a_stream_is_known_too():
    path = MNIST / "t10k-labels-idx1-ubyte.gz"
    with open(path, "rb") as file:
        assert identify(file).dataset == "mnist"
    with gzip.open(path) as file:
        assert identify(file).dataset == "mnist"


def test_files_of_the_same_content_are_all_named():
    """The labels of small NORB, rebuilt: 0, 1, 2, 3, 4, 0, 1 …, the same for train and test."""
    head = np.array([0x1E3D4C54, 1, 24_300, 1, 1], "<u4").tobytes()
    identity = identify(head + (np.arange(24_300, dtype="<i4") % 5).tobytes())
    assert identity.what.startswith("small NORB train labels or small NORB test labels; a Lush")
    assert (identity.dataset, identity.split, identity.role) == ("small-norb", None, "labels")


def test_what_cannot_be_told_by_its_content_is_only_supposed():
    """EMNIST letters, whose raw digests nobody has published."""
    identity = identify(Header.of("uint8", (124_800,)).encode() + bytes(124_800))
    assert identity.what == "an IDX file: uint8 124800"
    assert identity.hint == ("it may be EMNIST letters train labels: no checksum of that is known")
    assert identity.dataset is None


def test_nothing_is_hashed_of_a_file_of_unknown_shape(monkeypatch):
    monkeypatch.setattr("idxfile.catalog.recognition.digests", None)
    assert identify(Header.of("uint8", (3, 28, 28)).encode() + bytes(3 * 784)).dataset is None
