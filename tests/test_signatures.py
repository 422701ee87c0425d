"""What a file that is not IDX may be: every row of the table meets a file of its kind."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import pickle
import sqlite3
import struct
import tarfile
import zipfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import idxfile
from conftest import H, zstd
from idxfile.errors import FormatError
from idxfile.formats.table import FORMATS
from idxfile.header import IDX_TYPE_NAMES, Header
from idxfile.signatures import (
    CONVERT,
    SIGNATURES,
    Signature,
    beginning_with,
    describe,
    recognise,
)


def _npy() -> bytes:
    file = io.BytesIO()
    np.save(file, np.arange(6))
    return file.getvalue()


def _npz() -> bytes:
    file = io.BytesIO()
    np.savez(file, images=np.arange(6))
    return file.getvalue()


def _zip() -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("train-images-idx3-ubyte", H(8, 1, 1, 1) + b"7")
    return file.getvalue()


def _tar() -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as archive:
        archive.addfile(tarfile.TarInfo("train-images-idx3-ubyte"))
    return file.getvalue()


def _sqlite() -> bytes:
    with sqlite3.connect(":memory:") as database:
        database.execute("create table items (label integer)")
        data = database.serialize()
    database.close()
    return data


def _tfrecord() -> bytes:
    record = b"\x0a\x05hello"
    return struct.pack("<QI", len(record), 0x12345678) + record + b"\0\0\0\0"


FILES: list[tuple[str, bytes]] = [
    ("a gzip file", gzip.compress(b"x")),
    ("a bzip2 file", bz2.compress(b"x")),
    ("a bzip2 file", bz2.compress(b"")),
    ("an xz file", lzma.compress(b"x")),
    ("a Zstandard file", zstd.compress(b"x")),
    ("a Zstandard file", b"\x5f\x2a\x4d\x18\x01\0\0\0x"),
    ("an LZ4 file", b"\x04\x22\x4d\x18\x60\x40\x82"),
    ("a zip archive", _zip()),
    ("a zip archive", _npz()),
    ("a zip archive", b"PK\x05\x06" + bytes(18)),
    ("a 7-zip archive", b"7z\xbc\xaf\x27\x1c\0\4"),
    ("a RAR archive", b"Rar!\x1a\x07\x01\0"),
    ("a tar archive", _tar()),
    ("a NumPy .npy file", _npy()),
    ("a MATLAB 7.3 (HDF5) file", b"MATLAB 7.3 MAT-file, Platform: GLNXA64"),
    ("a MATLAB 5 file", b"MATLAB 5.0 MAT-file, Platform: GLNXA64"),
    ("an HDF5 file", b"\x89HDF\r\n\x1a\n\0\0\0\0\0\x08\x08\0"),
    ("a Parquet file", b"PAR1\x15\x04\x15"),
    ("an Arrow file", b"ARROW1\0\0"),
    ("a Feather (version 1) file", b"FEA1\0\0\0\0"),
    ("a PNG picture", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR"),
    ("a JPEG picture", b"\xff\xd8\xff\xe0\0\x10JFIF"),
    ("a GIF picture", b"GIF89a\1\0\1\0"),
    ("a TIFF picture", b"II*\0\x08\0\0\0"),
    ("a TIFF picture", b"MM\0*\0\0\0\x08"),
    ("a WebP picture", b"RIFF\x24\0\0\0WEBPVP8 "),
    ("a PGM or PPM picture", b"P5\n28 28\n255\n" + bytes(784)),
    ("a BMP picture", b"BM\x46\0\0\0\0\0\0\0\x36\0\0\0"),
    ("a PDF document", b"%PDF-1.7\n"),
    ("an SQLite database", _sqlite()),
    ("an ELF program", b"\x7fELF\x02\x01\x01\0"),
    ("a Git pack index", b"\xfftOc\0\0\0\x02"),
    ("a Git pack", b"PACK\0\0\0\x02"),
    ("a Git LFS pointer", b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\n"),
    ("a VobSub subtitle index", b"# VobSub index file, v7 (do not modify this line!)\n"),
    ("an OpenVisus index", b"(version)\n6\n(box)\n0 255 0 255\n"),
    ("a LaTeX index", b"\\indexentry{tensor}{12}\n"),
    ("a Lush text matrix", b".MAT 2 3 4\n"),
    ("a pickle", pickle.dumps({"images": [1, 2]}, protocol=2)),
    ("a pickle", pickle.dumps(np.arange(3), protocol=4)),
    ("a pickle", pickle.dumps([1, 2], protocol=5)),
    ("an HTML page", b"<!DOCTYPE html><html><head></head><body>gone</body></html>"),
    ("an HTML page", b"\xef\xbb\xbf\n <HTML lang='en'>"),
    ("an HTML page", b"<!-- saved -->\n<html><body>Not found</body></html>"),
    ("an XML document", b"<?xml version='1.0'?><Error><Code>AccessDenied</Code></Error>"),
    ("a TFRecord file", _tfrecord()),
    ("a JSON document", json.dumps({"message": "Not Found"}).encode()),
    ("a JSON document", json.dumps([[0, 1], [2, 3]], indent=1).encode()),
    ("a CSV table", b"label,pixel0,pixel1\n5,0,0\n0,0,12\n"),
    ("a CSV table", b"5\t0\t0\n"),
    ("a text file", b"Access denied. Sign in first.\n"),
    ("a text file", "grüße\n".encode() * 3),
]


def test_every_row_meets_a_file() -> None:
    assert {row.name for row in SIGNATURES} == {name for name, _ in FILES}


@pytest.mark.parametrize(("name", "data"), FILES, ids=[name for name, _ in FILES])
def test_a_file_is_recognised_by_its_first_bytes(name: str, data: bytes) -> None:
    row = recognise(data[:1024])
    assert row is not None
    assert row.name == name
    assert describe(data) == name


@pytest.mark.parametrize(
    ("first", "name"),
    [
        (b"\x1f\x8b\x08\0", "a gzip file"),
        (b"BZh9", "a bzip2 file"),
        (b"\x89PNG", "a PNG picture"),
        (b"\x93NUM", "a NumPy .npy file"),
        (b"\x89HDF", "an HDF5 file"),
        (b"\0\0\x08\3", None),
        (b"\0\0\0\0", None),
    ],
)
def test_four_bytes_may_be_enough(first: bytes, name: str | None) -> None:
    row = beginning_with(first)
    assert (row and row.name) == name


@pytest.mark.parametrize("row", SIGNATURES, ids=lambda row: row.name)
def test_what_a_row_begins_with_leads_to_it_or_to_a_namesake(row: Signature) -> None:
    for start in (row.fits[:4],) if isinstance(row.fits, bytes) else row.starts:
        found = beginning_with(start)
        assert found is not None
        assert found.name == row.name or "MATLAB" in row.name


NOT_PACKED = [
    (name, data)
    for name, data in FILES
    if name not in ("a gzip file", "a bzip2 file", "an xz file", "a Zstandard file")
]


@pytest.mark.parametrize(("name", "data"), NOT_PACKED, ids=[name for name, _ in NOT_PACKED])
def test_reading_it_names_it_and_says_what_to_do(name: str, data: bytes, tmp_path: Path) -> None:
    path = tmp_path / "train-images-idx3-ubyte.gz"
    path.write_bytes(data)
    with pytest.raises(FormatError) as caught:
        idxfile.read(path)
    assert f"this is {name} of {len(data):,} bytes, not an IDX file" in str(caught.value)
    row = recognise(data)
    assert row is not None
    listed = "hint: give one of its members, as zip://NAME::"  # where it can be looked into
    if not (name == "a zip archive" and listed in str(caught.value)):
        assert row.hint is None or f"hint: {row.hint}" in str(caught.value)
    assert (caught.value.offset, caught.value.found) == (0, name)


@pytest.mark.parametrize(("name", "data"), FILES, ids=[name for name, _ in FILES])
def test_a_longer_file_of_the_kind_is_recognised_too(name: str, data: bytes) -> None:
    text = b"\0" not in data and data.isascii()
    data += b"" if text or name == "a text file" else bytes(range(256)) * 3
    assert describe(data[:1024]) == name


@pytest.mark.parametrize(
    ("page", "described"),
    [
        (b"<html><title>404 Not\n Found</title>", "an HTML page titled “404 Not Found”"),
        (b"<!doctype html><title lang='de'> weg </title>", "an HTML page titled “weg”"),
        (b"<html><title>\x1b[31mred</title>", "an HTML page titled “[31mred”"),
        (b"<html><title></title>", "an HTML page"),
        (b"<html><title>" + b"long " * 50 + b"</title>", "an HTML page"),
    ],
)
def test_a_page_is_told_by_its_title_when_that_is_short(page: bytes, described: str) -> None:
    assert describe(page) == described
    with pytest.raises(FormatError, match="a failed download"):
        idxfile.read(page)


@pytest.mark.parametrize(
    "data", [b"", b"a", b"\x00\x01\x02\x03", b"\xff\xff\x08\x01\0\0\0\1", bytes(64), b"\x80abc"]
)
def test_what_is_nothing_known_is_nothing(data: bytes) -> None:
    assert recognise(data) is None
    assert describe(data) is None


@given(
    st.sampled_from(IDX_TYPE_NAMES),
    st.lists(st.integers(0, 2**32 - 1), max_size=255),
    st.binary(max_size=1020),
)
def test_no_row_fits_an_idx_file(name: str, shape: list[int], data: bytes) -> None:
    file = Header.of(name, tuple(shape)).encode() + data
    assert recognise(file[:1024]) is None


@given(st.sampled_from([0x01080000, 0x03080000]), st.binary(max_size=40))
def test_no_row_fits_what_begins_as_idx_does(start: int, data: bytes) -> None:
    assert recognise(start.to_bytes(8, "little") + b"\0\0\0\1\x0a\1" + data) is None


def test_an_idx_file_with_ustar_in_its_pixels_is_no_archive() -> None:
    data = bytearray(H(8, 300) + bytes(300))
    data[257:262] = b"ustar"
    assert recognise(bytes(data)) is None


def test_what_is_said_to_be_convertible_is() -> None:
    read = {kind for row in FORMATS.values() if row.reads for kind in row.signatures}
    assert {row.name for row in SIGNATURES if row.hint is CONVERT} <= read
