"""What files and magic numbers are: `identify`."""

from __future__ import annotations

import csv
import gzip
import io
import json
import lzma
import pickle
import sqlite3
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import idxfile
from conftest import COMPRESS, DATA, H, idx_bytes
from idxfile.errors import FormatError, UnsupportedError

LABELS = H(8, 3) + b"\x01\x02\x03"

# Numbers that people meet in error messages

STARTS = {
    "1f8b0808": "a gzip file",
    "1f8b0800": "a gzip file",
    "425a6839": "a bzip2 file",
    "fd377a58": "an xz file",
    "28b52ffd": "a Zstandard file",
    "504b0304": "a zip archive",
    "934e554d": "a NumPy .npy file",
    "89504e47": "a PNG picture",
    "ffd8ffe0": "a JPEG picture",
    "89484446": "an HDF5 file",
    "50415231": "a Parquet file",
    "3c21444f": "an HTML page",
    "3c68746d": "an HTML page",
    "3c3f786d": "an XML document",
    "ff744f63": "a Git pack index",
    "2320566f": "a VobSub subtitle index",
    "28766572": "an OpenVisus index",
    "1e3d4c55": "a Lush / EBLearn matrix",
    "554c3d1e": "a Lush / EBLearn matrix",
}
"""The first four bytes of files."""


@pytest.mark.parametrize("start", STARTS)
def test_a_number_is_named_however_the_four_bytes_were_read(start: str) -> None:
    first = bytes.fromhex(start)
    numbers = {
        int.from_bytes(first, order, signed=signed)  # type: ignore[arg-type]
        for order in ("big", "little")
        for signed in (False, True)
    }
    for number in numbers:
        found = idxfile.identify(number)
        assert found.subject == str(number)
        assert found.what.startswith(f"the first four bytes of {STARTS[start]} (")
        assert found.is_idx == (STARTS[start] in {f"a{n} file" for n in _CODECS} | {_LUSH})


_CODECS = (" gzip", " bzip2", "n xz", " Zstandard")
_LUSH = "a Lush / EBLearn matrix"
TURNED = ", read with the bytes turned around"
MAGIC = "the magic number of IDX files of"
NUMBERS = {
    2051: f"{MAGIC} uint8, 3 dimensions",
    2049: f"{MAGIC} uint8, 1 dimension",
    2048: f"{MAGIC} uint8, 0 dimensions",
    3074: f"{MAGIC} int32, 2 dimensions",
    3331: f"{MAGIC} float32, 3 dimensions",
    50855936: f"{MAGIC} uint8, 3 dimensions{TURNED}",
    17301504: f"{MAGIC} uint8, 1 dimension{TURNED}",
    529205256: "the first four bytes of a gzip file (1f 8b 08 08)",
    1008813135: "the first four bytes of an HTML page (3c 21 44 4f)",
    1010792557: "the first four bytes of an XML document (3c 3f 78 6d)",
    0: "the bytes 00 00 00 00, which begin no known format",
    -1: "the bytes ff ff ff ff, which begin no known format",
    2**32: "a number that four bytes do not hold",
    -(2**31) - 1: "a number that four bytes do not hold",
    10**5000: "a number that four bytes do not hold",
}


@pytest.mark.parametrize("number", NUMBERS, ids=lambda number: f"{number:#x}"[:12])
def test_numbers_that_people_ask_about(number: int) -> None:
    found = idxfile.identify(number)
    assert found.what == NUMBERS[number]
    assert found.is_idx == ("IDX" in found.what or "gzip" in found.what)
    assert (found.hint is not None) == (TURNED in found.what or "four bytes of" in found.what)


# Files of other formats, made by other programs where there is one


def _zip(path: Path) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("train-images-idx3-ubyte", LABELS)


def _tar(path: Path) -> None:
    with tarfile.open(path, "w") as archive:
        info = tarfile.TarInfo("train-images-idx3-ubyte")
        info.size = len(LABELS)
        archive.addfile(info, io.BytesIO(LABELS))


def _npy(path: Path) -> None:
    with path.open("wb") as file:  # numpy.save would add a suffix
        np.save(file, np.arange(784.0).reshape(28, 28))


def _npz(path: Path) -> None:
    with path.open("wb") as file:
        np.savez_compressed(file, images=np.zeros((3, 28, 28)), labels=np.arange(3))


def _png(path: Path) -> None:
    def chunk(name: bytes, data: bytes) -> bytes:
        return (
            struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
        )

    rows = zlib.compress((b"\0" + bytes(28)) * 28)
    size = struct.pack(">IIBBBBB", 28, 28, 8, 0, 0, 0, 0)
    parts = chunk(b"IHDR", size) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + parts)


def _csv(path: Path) -> None:
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([["label", *range(784)], [5, *[0] * 784], [0, *[255] * 784]])


def _sqlite(path: Path) -> None:
    with sqlite3.connect(path) as database:
        database.execute("create table items (label integer)")
    database.close()


def written(data: bytes) -> Callable[[Path], Any]:
    return lambda path: path.write_bytes(data)


PAGE = b"<!DOCTYPE html>\n<html><head><title>403 Forbidden</title></head><body>no</body></html>\n"
S3 = b"<?xml version='1.0' encoding='UTF-8'?><Error><Code>AccessDenied</Code></Error>"
CONVERT = "`idx convert` makes an IDX file of it"
UNPACK = "unpack it, and give one of its members"
DOWNLOAD = "a failed download? Fetch the file again"

FOREIGN: dict[str, tuple[Callable[[Path], Any], str, str | None]] = {
    "page saved as .gz": (written(PAGE), "an HTML page titled “403 Forbidden”", DOWNLOAD),
    "page, packed": (
        written(gzip.compress(PAGE)),
        "an HTML page titled “403 Forbidden”",
        DOWNLOAD,
    ),
    "XML": (written(S3), "an XML document", DOWNLOAD),
    "npy": (_npy, "a NumPy .npy file", CONVERT),
    "npz": (_npz, "a zip archive", UNPACK),
    "zip": (_zip, "a zip archive", UNPACK),
    "tar": (_tar, "a tar archive", UNPACK),
    "PNG": (_png, "a PNG picture", CONVERT),
    "HDF5": (written(b"\x89HDF\r\n\x1a\n" + bytes(2000)), "an HDF5 file", CONVERT),
    "MATLAB": (
        written(b"MATLAB 5.0 MAT-file, Platform: GLNXA64".ljust(124) + b"\0\1IM"),
        "a MATLAB 5 file",
        CONVERT,
    ),
    "Parquet": (written(b"PAR1" + bytes(99) + b"PAR1"), "a Parquet file", CONVERT),
    "CSV": (_csv, "a CSV table", CONVERT),
    "JSON": (
        written(json.dumps({"images": [[0, 1], [2, 3]]}).encode()),
        "a JSON document",
        CONVERT,
    ),
    "pickle": (
        written(pickle.dumps((np.arange(9), [1, 2]))),
        "a pickle",
        "read it with what wrote it",
    ),
    "SQLite": (_sqlite, "an SQLite database", None),
    "Git pack index": (
        written(b"\xfftOc\0\0\0\x02" + bytes(1032)),
        "a Git pack index",
        "it lists the objects of a Git pack, not a tensor",
    ),
    "VobSub": (
        written(b"# VobSub index file, v7 (do not modify this line!)\nsize: 720x576\n"),
        "a VobSub subtitle index",
        "it lists subtitles, not a tensor",
    ),
    "OpenVisus": (
        written(b"(version)\n6\n(box)\n0 255 0 255\n(fields)\ndata uint8\n"),
        "an OpenVisus index",
        "read it with OpenVisus",
    ),
    "LaTeX": (
        written(b"\\indexentry{tensor}{12}\n\\indexentry{scalar}{13}\n"),
        "a LaTeX index",
        "it lists index entries, not a tensor",
    ),
    "Git LFS": (
        written(b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12\n"),
        "a Git LFS pointer",
        "fetch the file: `git lfs pull`",
    ),
    "text": (written(b"Sign in to download this file.\n"), "a text file", None),
}


@pytest.mark.parametrize("name", FOREIGN)
def test_a_file_of_another_format_is_named(name: str, tmp_path: Path) -> None:
    make, what, hint = FOREIGN[name]
    path = tmp_path / "train-images-idx3-ubyte.gz"
    make(path)
    found = idxfile.identify(path)
    assert (found.what, found.is_idx) == (what, False)
    assert found.codecs == (("gz",) if name.endswith("packed") else ())
    for told in (found.hint, idxfile.check(path).problems[0].hint):
        assert told is None if hint is None else str(told).startswith(hint)
    with pytest.raises(FormatError, match=f"this is {what} of [0-9,]+ bytes, not an IDX file"):
        idxfile.read(path)
    [problem] = [p for p in idxfile.check(path).problems if p.level == "error"]
    assert (problem.code, problem.mendable) == ("foreign", False)
    with pytest.raises(FormatError, match="cannot be mended"):
        idxfile.repair(path, tmp_path / "mended.idx")


# Files that are IDX, and those that nearly are

FILES = {
    "labels": (LABELS, "an IDX file: uint8 3", True),
    "scalar": (H(14) + bytes(8), "an IDX file: float64 scalar", True),
    "Lush": (
        bytes.fromhex("554c3d1e 01000000 02000000 01000000 01000000 0708"),
        "a Lush / EBLearn matrix: uint8 2",
        True,
    ),
    "too long": (LABELS + b"x", "an IDX file: uint8 3; 1 byte after the data at offset 11", True),
    "little-endian": (
        bytes.fromhex("03080000 01000000 02000000 01000000 0708"),
        "an IDX file: uint8 1 × 2 × 1; the header is written with the least significant byte "
        "first: the dimensions read little-endian are 1,2,1 and fit the file's length",
        True,
    ),
    "nothing": (b"", "file is empty (0 bytes), an IDX header needs at least 4", False),
    "cut": (LABELS[:6], "1 dimensions declared, header needs 8 bytes, file has 6", False),
    "noise": (
        bytes.fromhex("8a16b2c4 00"),
        "found 8a 16 b2 c4 at byte 0, expected 00 00, an element type and a number of dimensions",
        False,
    ),
    "cut at once": (gzip.compress(LABELS)[:15], "the gz stream is cut: 4 bytes inflated", False),
    "cut behind the header": (
        gzip.compress(H(8, 5000) + np.random.default_rng(1).bytes(5000))[:-99],
        "an IDX file: uint8 5000",
        True,
    ),
}


@pytest.mark.parametrize("name", FILES)
def test_a_file_is_told_by_its_beginning(name: str) -> None:
    data, what, is_idx = FILES[name]
    found = idxfile.identify(data)
    assert (found.subject, found.what, found.is_idx) == ("<bytes>", what, is_idx)


@pytest.mark.parametrize("codec", COMPRESS)
def test_the_compressions_are_told(codec: str) -> None:
    packed = COMPRESS[codec](LABELS)
    assert idxfile.identify(packed).codecs == (codec,)
    twice = idxfile.identify(lzma.compress(packed))
    assert (twice.what, twice.codecs) == ("an IDX file: uint8 3", ("xz", codec))


def test_what_is_packed_again_and_again_is_told() -> None:
    data = LABELS
    for _ in range(5):
        data = gzip.compress(data)
    found = idxfile.identify(data)
    assert found.what == "compressed more than 4 times: gz in gz in gz in gz"
    assert not found.is_idx


def test_every_kind_of_file_can_be_asked_about(file_of: Callable[[bytes], Any]) -> None:
    array = np.arange(60, dtype="int16").reshape(3, 4, 5)
    assert idxfile.identify(file_of(idx_bytes(array))).what == "an IDX file: int16 3 × 4 × 5"


def test_real_files_are_idx() -> None:
    for path in sorted(DATA.rglob("*")):
        if path.is_file() and path.suffix not in (".md", ".json"):
            found = idxfile.identify(path)
            assert found.is_idx == (path.name != "empty.idx"), path
            json.dumps(found.as_dict())


def test_what_is_no_file_is_an_error(tmp_path: Path) -> None:
    for file, error in (
        (tmp_path, IsADirectoryError),
        (tmp_path / "nix", FileNotFoundError),
        ("nosuch://example.org/a.idx", UnsupportedError),
        (io.StringIO("text"), TypeError),
    ):
        with pytest.raises(error):
            idxfile.identify(file)
