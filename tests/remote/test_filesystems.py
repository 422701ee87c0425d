"""What fsspec knows beside the clouds, and what is said where something is missing."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fsspec
import numpy as np
import pytest
from fsspec.implementations.memory import MemoryFileSystem
from fsspec.registry import _registry

import idxfile
from conftest import idx_bytes
from idxfile import FetchError, FormatError, MissingExtraError, UnsupportedError
from idxfile.formats import results
from idxfile.sending import send_file

IMAGES = np.random.default_rng(7).integers(0, 256, (300, 28, 28), np.uint8)


class Odd(MemoryFileSystem):
    """The same files under another scheme."""

    @classmethod
    def _strip_protocol(cls, path: str) -> str:
        return super()._strip_protocol(path.replace(f"{cls.protocol}://", "memory://"))


class NoRanges(Odd):
    """Gives all of a file, whatever was asked for."""

    protocol = "noranges"

    def cat_file(self, path: str, start: Any = None, end: Any = None, **options: Any) -> bytes:
        return super().cat_file(path, **options)


class Lengthless(Odd):
    """Does not know how long a file is."""

    protocol = "lengthless"

    def info(self, path: str, **options: Any) -> dict[str, Any]:
        return {**super().info(path, **options), "size": None}


@pytest.fixture
def memory() -> Iterator[Any]:
    for kind in (NoRanges, Lengthless):
        fsspec.register_implementation(kind.protocol, kind, clobber=True)
    fs = fsspec.filesystem("memory")
    fs.pipe("/d/images.idx", idx_bytes(IMAGES))
    fs.pipe("/d/images.idx.gz", idxfile.encode(IMAGES, codec="gz"))
    fs.pipe("/d/labels.idx", idx_bytes(np.arange(300, dtype=np.uint8) % 10))
    yield fs
    fs.store.clear()


@pytest.mark.parametrize("scheme", ["memory", "noranges", "lengthless"])
@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_everything_is_read(memory: Any, scheme: str, suffix: str) -> None:
    place = f"{scheme}://d/images.idx{suffix}"
    assert np.array_equal(idxfile.read(place), IMAGES)
    with idxfile.open(place) as x:
        assert np.array_equal(x[[200, 3]], IMAGES[[200, 3]])
    assert idxfile.check(place).ok


def test_a_pair_is_found(memory: Any) -> None:
    for place in ("memory://d/images.idx", "memory://d"):
        with idxfile.open_dataset(place) as ds:
            assert np.array_equal(ds[13][0], IMAGES[13])
            assert ds[13][1] == 3


def test_a_replaced_file_is_noticed(memory: Any) -> None:
    with idxfile.open("memory://d/images.idx") as x:
        memory.pipe("/d/images.idx", idx_bytes(255 - IMAGES))
        with pytest.raises(FormatError, match="changed while it was being read"):
            x[200]


def test_a_folder_is_no_file(memory: Any) -> None:
    with pytest.raises(FetchError, match="is a folder"):
        idxfile.open("memory://d")


def test_a_file_address_is_a_path(tmp_path: Path) -> None:
    path = tmp_path / "a b.idx"
    path.write_bytes(idx_bytes(IMAGES))
    with idxfile.open(path.as_uri()) as x:
        assert x.name == str(path)
        assert np.array_equal(x.raw, IMAGES)


def test_an_unknown_scheme_is_told() -> None:
    with pytest.raises(UnsupportedError, match="nosuch:// is not among the places"):
        idxfile.open("nosuch://a/b.idx")


@pytest.mark.parametrize(
    ("scheme", "absent", "word"),
    [
        ("s3", ("obstore", "fsspec"), "needs the package fsspec"),
        ("gs", ("obstore", "gcsfs"), "needs the package gcsfs"),
        ("hf", ("huggingface_hub",), "needs the package huggingface_hub"),
    ],
)
def test_a_missing_package_is_named(
    monkeypatch: pytest.MonkeyPatch, scheme: str, absent: tuple[str, ...], word: str
) -> None:
    for package in absent:
        for name in [n for n in sys.modules if n.partition(".")[0] == package]:
            monkeypatch.delitem(sys.modules, name)
        monkeypatch.setitem(sys.modules, package, None)
    # What another test has loaded is remembered here.
    monkeypatch.delitem(_registry, scheme, raising=False)
    monkeypatch.setenv("IDXFILE_REMOTE", "fsspec")
    with pytest.raises(MissingExtraError, match=word):
        idxfile.open(f"{scheme}://a/b/c.idx")


def test_a_pair_is_converted_into_a_store_and_back(memory: Any, tmp_path: Path) -> None:
    labels = np.arange(300) % 10
    np.savez(tmp_path / "d.npz", x_train=IMAGES, y_train=labels)
    done = idxfile.convert(tmp_path / "d.npz", "memory://shelf/out/", split="train")
    assert done.columns["images"] == ("uint8", (300, 28, 28))
    with idxfile.open_dataset("memory://shelf/out/", split="train") as ds:
        assert np.array_equal(ds.images[...], IMAGES)
        assert np.array_equal(ds.labels, labels)
    idxfile.convert("memory://shelf/out/", tmp_path / "again.npz")
    assert np.array_equal(np.load(tmp_path / "again.npz")["images"], IMAGES)
    with pytest.raises(FileExistsError, match="would be replaced"):
        idxfile.convert(tmp_path / "d.npz", "memory://shelf/out/", split="train", overwrite=False)
    with pytest.raises(UnsupportedError, match="written as a whole"):
        idxfile.convert("memory://shelf/out/", "memory://shelf/digits/", target_format="pictures")


def test_of_a_pair_that_does_not_go_up_whole_nothing_stays(
    memory: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    np.savez(tmp_path / "d.npz", x_train=IMAGES, y_train=np.arange(300) % 10)
    memory.pipe("/shelf/out/other.txt", b"other")

    def send_images_alone(path: str, url: str) -> None:
        if "labels" in url:
            raise FetchError("the store is full", file=url)
        send_file(path, url)

    monkeypatch.setattr(results, "send_file", send_images_alone)
    with pytest.raises(FetchError, match="full"):
        idxfile.convert(tmp_path / "d.npz", "memory://shelf/out/", split="train")
    assert memory.ls("/shelf/out", detail=False) == ["/shelf/out/other.txt"]
