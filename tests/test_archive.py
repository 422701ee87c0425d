"""Members of zip archives, here and in a store."""

from __future__ import annotations

import io
import pickle
import sys
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

import idxfile
from conftest import idx_bytes
from idxfile import FormatError, UnsupportedError
from idxfile.cli import main

sys.path.insert(0, str(Path(__file__).parent / "remote"))
from range_server import RangeServer

IMAGES = np.random.default_rng(7).integers(0, 40, (300, 28, 28), np.uint8)
LABELS = np.arange(300, dtype=np.uint8) % 10


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    path = tmp_path / "data.zip"
    with zipfile.ZipFile(path, "w") as made:
        made.writestr("stored.idx", idx_bytes(IMAGES), zipfile.ZIP_STORED)
        made.writestr("packed.idx", idx_bytes(IMAGES), zipfile.ZIP_DEFLATED)
        made.writestr("twice.idx.gz", idxfile.encode(IMAGES, codec="gz"), zipfile.ZIP_DEFLATED)
        made.writestr("d/train-images-idx3-ubyte", idx_bytes(IMAGES), zipfile.ZIP_DEFLATED)
        made.writestr("d/train-labels-idx1-ubyte", idx_bytes(LABELS), zipfile.ZIP_STORED)
    return path


@pytest.fixture(params=["here", "there"])
def at(request: pytest.FixtureRequest, archive: Path) -> Iterator[Callable[[str], str]]:
    """Makes a place of the name of a member."""
    if request.param == "here":
        yield lambda name: f"zip://{name}::{archive}"
        return
    with RangeServer({"data.zip": archive.read_bytes()}) as server:
        yield lambda name: f"zip://{name}::{server.at('ok', 'data.zip')}"


@pytest.mark.parametrize("name", ["stored.idx", "packed.idx", "twice.idx.gz"])
def test_a_member_is_read(at: Callable[[str], str], name: str) -> None:
    place = at(name)
    assert np.array_equal(idxfile.read(place), IMAGES)
    with idxfile.open(place) as x:
        assert x.name == place
        assert np.array_equal(x[[200, 3]], IMAGES[[200, 3]])
        with pickle.loads(pickle.dumps(x)) as y:
            assert np.array_equal(y[7], IMAGES[7])
    assert idxfile.check(place).ok
    assert idxfile.info(place).header.shape == IMAGES.shape
    assert idxfile.open(place, mode="c")[3].shape == (28, 28)


def test_pairs_in_an_archive(at: Callable[[str], str]) -> None:
    with idxfile.open_dataset(at("d/train-images-idx3-ubyte")) as ds:
        assert np.array_equal(ds.labels, LABELS)
        assert np.array_equal(ds[7][0], IMAGES[7])
    whole = at("").partition("::")[2]
    with idxfile.open_dataset(whole) as ds:
        assert np.array_equal(ds.labels, LABELS)


def test_what_is_not_there_is_told_with_what_is(at: Callable[[str], str]) -> None:
    with pytest.raises(FileNotFoundError, match=r"No member nix.idx in it; there are stored.idx,"):
        idxfile.open(at("nix.idx"))
    with pytest.raises(UnsupportedError, match="never written"):
        idxfile.write(at("new.idx"), IMAGES)


def test_a_bare_archive_lists_its_members(
    archive: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for open_it in (idxfile.open, idxfile.info, idxfile.read):
        with pytest.raises(FormatError, match="zip archive") as caught:
            open_it(archive)
        assert caught.value.hint is not None
        assert f"zip://NAME::{archive}: stored.idx, packed.idx" in caught.value.hint
    assert main(["info", str(archive)]) == 3
    assert main(["info", f"zip://stored.idx::{archive}"]) == 0
    assert "300 × 28 × 28" in capsys.readouterr().out


@pytest.mark.parametrize("name", ["stored.idx", "packed.idx"])
def test_a_damaged_member_is_told(archive: Path, name: str) -> None:
    data = bytearray(archive.read_bytes())
    with zipfile.ZipFile(archive) as opened:
        info = opened.getinfo(name)
    data[info.header_offset + 30 + len(name) + info.compress_size // 2] ^= 0x55
    archive.write_bytes(data)
    place = f"zip://{name}::{archive}"
    with pytest.raises(FormatError, match="cannot be read"):
        idxfile.check(place)


def test_a_changed_archive_is_noticed(archive: Path) -> None:
    with idxfile.open(f"zip://stored.idx::{archive}") as x:
        travelling = pickle.dumps(x)
    with zipfile.ZipFile(archive, "w") as made:
        made.writestr("stored.idx", idx_bytes(99 - IMAGES))
    with pytest.raises(FormatError, match="has changed since it was pickled"):
        pickle.loads(travelling)


def test_an_archive_that_no_library_knows_is_called_one() -> None:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        archive.writestr("a.idx", b"\0\0\x08\x01\0\0\0\0")
    damaged = bytearray(content.getvalue())
    damaged[damaged.index(b"PK\x01\x02") + 6] = 255  # the version that it takes to unpack it
    with pytest.raises(FormatError, match="a zip archive"):
        idxfile.read(bytes(damaged))


def test_items_of_blocked_gzip_in_an_archive_here(tmp_path: Path) -> None:
    items = np.random.default_rng(3).integers(0, 256, (5000, 100), np.uint8)
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("x.idx.gz", idxfile.encode(items, codec="gz", blocked=True))
    with idxfile.open(f"zip://x.idx.gz::{tmp_path}/a.zip", spool_nbytes=1000) as x:
        assert x.random_access
        assert np.array_equal(x[4321], items[4321])
