"""Judging, mending and comparing whole files: every kind of fault, and what becomes of it.

Long because it is tables: a row is a case, and one place holds all faults, mendings, differences.
"""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest.mock import ANY, patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import idxfile
from conftest import (
    COMPRESS,
    DATA,
    LAYOUTS,
    MNIST,
    PACKINGS,
    TYPES,
    H,
    OnlyRead,
    bits,
    blocked_gz,
    idx_bytes,
    seekable_zst,
    zstd,
)
from idxfile.errors import (
    ChecksumError,
    FormatError,
    TrailingDataError,
    TruncatedError,
    UnsupportedError,
)
from idxfile.problems import PROBLEMS
from idxfile.report import difference, judgement, mending
from idxfile.report.pairing import judge_pairs
from idxfile.source import LocalFile, Memory, threads

LABELS = H(8, 3) + b"\x01\x02\x03"
IMAGES = H(8, 2, 2, 2) + bytes(range(8))
NOISE = H(8, 100, 10, 10) + np.random.default_rng(7).bytes(10_000)
"""A file that does not shrink: a cut stream still gives its beginning."""
GZ = gzip.compress(NOISE, mtime=0)
CRC = int.from_bytes(GZ[-8:-4], "little")


@pytest.fixture(autouse=True, scope="module")
def _no_waiting_for_the_disk() -> Iterator[None]:
    """What reaches the disk when is tested elsewhere."""
    with pytest.MonkeyPatch.context() as quick:
        quick.setattr(os, "fsync", lambda _: None)
        yield


def codes(report: idxfile.Report) -> list[str]:
    return [problem.code for problem in report.problems]


def flipped(data: bytes, at: int) -> bytes:
    return data[:at] + bytes([data[at] ^ 0xFF]) + data[at:][1:]


def nested(data: bytes, layers: int) -> bytes:
    for _ in range(layers):
        data = gzip.compress(data, mtime=0)
    return data


# Right files


def test_a_right_file_is_ok_whatever_kind_of_file_it_is(file_of: Callable[[bytes], Any]) -> None:
    report = idxfile.check(file_of(NOISE))
    assert report.ok or codes(report)[0] == "compressed-twice"
    assert report.header == idxfile.Header.of("uint8", (100, 10, 10))
    assert report.data_nbytes == 10_000


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", TYPES)
def test_every_shape_and_type_is_ok(dtype: str, layout: str) -> None:
    report = idxfile.check(idx_bytes(LAYOUTS[layout](dtype)))
    assert (report.ok, report.problems) == (True, [])


REAL = sorted(p for p in DATA.rglob("*") if p.is_file() and p.suffix not in (".md", ".json"))
WRONG = {
    "empty.idx": ["empty"],
    "labels-idx-ubyte": ["truncated"],
    "labels-11-idx-ubyte": ["truncated"],
}


@pytest.mark.parametrize("path", REAL, ids=lambda path: path.name)
def test_real_files_are_judged_rightly(path: Path) -> None:
    report = idxfile.check(path)
    assert [p.code for p in report.problems if p.level != "note"] == WRONG.get(path.name, [])
    assert report.file_nbytes == path.stat().st_size


@pytest.mark.parametrize("ndim", [65, 255])
def test_more_dimensions_than_numpy_has_are_a_note(ndim: int) -> None:
    report = idxfile.check(H(8, *[1] * ndim) + b"\x07")
    assert report.ok
    assert report.problems[0].message == f"{ndim} dimensions; NumPy holds 64"


# Wrong files: name → the bytes, the codes found, the first message and its offset

LITTLE = bytes.fromhex("03080000 02000000 02000000 02000000") + bytes(range(8))
LITTLE_DIMENSIONS = H(8)[:3] + b"\x03" + LITTLE[4:]
LITTLE_DATA = H(12, 3) + bytes.fromhex("01000000 02000000 03000000")
FITS = (
    "the header is written with the least significant byte first: "
    "the dimensions read little-endian are 2,2,2 and fit the file's length"
)
FOUND_BYTES = "at byte 0, expected 00 00, an element type and a number of dimensions"

FAULTS: dict[str, tuple[bytes, list[str], str, Any]] = {
    "nothing": (b"", ["empty"], "file is empty (0 bytes), an IDX header needs at least 4", 0),
    "one byte": (b"\0", ["short-header"], "a header needs at least 4 bytes, file has 1", 1),
    "cut header": (
        bytes.fromhex("00000803 00000002 0000"),
        ["short-header"],
        "3 dimensions declared, header needs 16 bytes, file has 10",
        10,
    ),
    "text": (b"\x61\0\x08\x01", ["bad-magic"], f"found 61 00 08 01 {FOUND_BYTES}", 0),
    "first bytes": (
        bytes.fromhex("ffff0801 00000001 07"),
        ["bad-magic"],
        f"found ff ff 08 01 {FOUND_BYTES}",
        0,
    ),
    "unknown type": (
        bytes.fromhex("00000a01 00000002 0102"),
        ["unknown-type"],
        "found element type 0a at byte 2 (of 00 00 0a 01), expected one of 08 uint8, 09 int8, "
        "0B int16, 0C int32, 0D float32, 0E float64",
        2,
    ),
    "a byte missing": (
        IMAGES[:-1],
        ["truncated"],
        "needs 24 bytes, has 23: 1 missing (item 1 of 2 incomplete)",
        23,
    ),
    "a scalar missing": (H(8), ["truncated"], "needs 5 bytes, has 4: 1 missing", 4),
    "a byte too many": (
        H(8, 1) + b"\x07\x0a",
        ["trailing-data"],
        "1 byte after the data at offset 9",
        9,
    ),
    "many bytes too many": (
        IMAGES + bytes(5000),
        ["trailing-data"],
        "5,000 bytes after the data at offset 24",
        24,
    ),
    "2^32 images": (
        H(8, 0xFFFFFFFF, 28, 28),
        ["truncated"],
        "needs 3,367,254,359,296 bytes, has 16: 3,367,254,359,280 missing "
        "(item 0 of 4,294,967,295 incomplete)",
        16,
    ),
    "a product of 2^64": (
        H(8, 65536, 65536, 65536, 65536),
        ["truncated"],
        "needs 18,446,744,073,709,551,636 bytes, has 20: 18,446,744,073,709,551,616 missing "
        "(item 0 of 65,536 incomplete)",
        20,
    ),
    "little-endian": (LITTLE, ["swapped-header"], FITS, 0),
    "little-endian dimensions": (LITTLE_DIMENSIONS, ["swapped-header"], FITS, 4),
    "little-endian in gz": (nested(LITTLE, 1), ["swapped-header"], FITS, 0),
    "little-endian dimensions in gz": (
        nested(LITTLE_DIMENSIONS, 1),
        ["swapped-header"],
        FITS,
        4,
    ),
    "little-endian, perhaps": (
        LITTLE[:-1],
        ["bad-magic"],
        f"found 03 08 00 00 {FOUND_BYTES}",
        0,
    ),
    "little-endian in gz, perhaps": (
        nested(LITTLE + b"x", 1),
        ["bad-magic"],
        f"found 03 08 00 00 {FOUND_BYTES}",
        0,
    ),
    "little-endian data": (
        LITTLE_DATA,
        ["swapped-data"],
        "the elements look little-endian: 3 of them run from 16,777,216 to 50,331,648, "
        "and with bytes swapped from 1 to 3",
        8,
    ),
    "Lush, packed": (
        bytes.fromhex("524c3d1e 01000000 02000000 01000000 01000000 0708"),
        ["unsupported-dialect"],
        "a Lush matrix of packed elements: one byte that stands for its sixteenth: "
        "its values are not certain",
        0,
    ),
    "Lush, cut": (
        bytes.fromhex("554c3d1e 01000000 02000000 01000000 01000000 07"),
        ["truncated"],
        "needs 22 bytes, has 21: 1 missing (item 1 of 2 incomplete)",
        21,
    ),
    "a page": (
        b"<!DOCTYPE html><title>Not found</title>",
        ["foreign"],
        "this is an HTML page titled “Not found” of 39 bytes, not an IDX file",
        0,
    ),
    "a page in gz": (
        nested(b"<html><title>Not found</title>", 1),
        ["foreign"],
        "this is an HTML page titled “Not found” of 30 bytes, not an IDX file",
        0,
    ),
    "gz of nothing": (
        nested(b"", 1),
        ["empty"],
        "file is empty (0 bytes), an IDX header needs at least 4",
        0,
    ),
    "gz, 9 bytes short": (
        GZ[:-9],
        ["stream-truncated", "truncated"],
        "the gz stream is cut: 10,015 of 10,016 bytes inflated",
        len(GZ) - 9,
    ),
    "gz without its trailer": (
        GZ[:-8],
        ["stream-truncated"],
        "the gz stream is cut: 10,016 of 10,016 bytes inflated",
        len(GZ) - 8,
    ),
    "gz cut at once": (
        GZ[:30],
        ["stream-truncated"],
        "the gz stream is cut: 15 bytes inflated",
        30,
    ),
    "gz with another checksum": (
        flipped(GZ, -8),
        ["stream-checksum"],
        f"the gz stream stores CRC-32 {CRC ^ 0xFF:08x}, its content gives {CRC:08x} "
        "(10,016 of 10,016 bytes inflated)",
        len(GZ) - 8,
    ),
    "gz with another length": (
        flipped(GZ, -4),
        ["stream-checksum"],
        "the gz stream stores length 10,207, its content gives 10,016 "
        "(10,016 of 10,016 bytes inflated)",
        len(GZ) - 4,
    ),
    "gz followed by junk": (
        GZ + b"junk",
        ["stream-junk"],
        "4 bytes of junk after the gz stream, ignored",
        len(GZ),
    ),
    "gz with reserved flags": (
        flipped(GZ, 3),
        ["stream-damaged"],
        "the gz stream is damaged: 0 bytes inflated, then reserved flags are set",
        ANY,  # as far as it was read
    ),
    "gz of too little": (
        nested(NOISE[:-50], 1),
        ["truncated"],
        "needs 10,016 bytes, has 9,966: 50 missing (item 99 of 100 incomplete)",
        9966,
    ),
    "gz of too much": (
        nested(NOISE + b"12", 1),
        ["trailing-data"],
        "2 bytes after the data at offset 10,016",
        10_016,
    ),
    "twice": (nested(LABELS, 2), ["compressed-twice"], "compressed 2 times: gz in gz", None),
    "xz in gz": (
        gzip.compress(lzma.compress(LABELS)),
        ["compressed-twice"],
        "compressed 2 times: xz in gz",
        None,
    ),
    "five times": (
        nested(LABELS, 5),
        ["unreadable"],
        "compressed more than 4 times: gz in gz in gz in gz",
        None,
    ),
}


@pytest.mark.parametrize("name", FAULTS)
def test_every_fault_is_found_and_told(name: str) -> None:
    data, expected, message, offset = FAULTS[name]
    report = idxfile.check(data)
    assert not report.ok
    assert codes(report) == expected
    assert (report.problems[0].message, report.problems[0].offset) == (message, offset)
    json.dumps(report.as_dict())


@pytest.mark.parametrize("name", FAULTS)
def test_what_is_told_reads_well(name: str) -> None:
    for problem in idxfile.check(FAULTS[name][0]).problems:
        for text in filter(None, (problem.message, problem.hint)):
            assert not text.endswith((".", " ")), text
            assert text.isprintable()
        assert problem.level == "note" or problem.hint, problem


@pytest.mark.parametrize("data", [LABELS, IMAGES, idx_bytes(np.arange(6, dtype=">i4"))])
def test_a_file_cut_anywhere_is_not_ok(data: bytes) -> None:
    for length in range(len(data)):
        report = idxfile.check(data[:length])
        assert not report.ok
        assert codes(report)[0] in ("empty", "short-header", "truncated")


@pytest.mark.parametrize("codec", COMPRESS)
def test_a_stream_cut_anywhere_is_not_ok(codec: str) -> None:
    packed = COMPRESS[codec](IMAGES)
    magic = {"gz": 2, "bz2": 3, "xz": 6, "zst": 4}[codec]
    for length in range(magic, len(packed)):
        report = idxfile.check(packed[:length])
        assert not report.ok
        assert codes(report)[0] == "stream-truncated"
        assert "empty" not in codes(report)  # nothing is said of a file that was not seen


@pytest.mark.parametrize("codec", COMPRESS)
def test_a_stream_with_one_byte_changed_is_not_taken_for_right(codec: str) -> None:
    packed = COMPRESS[codec](NOISE)
    for at in range(200, len(packed), 1000):
        report = idxfile.check(flipped(packed, at))
        assert not report.ok
        assert codes(report)[0].startswith("stream-")


def test_a_damaged_stream_is_told_before_the_nonsense_that_it_gives() -> None:
    damaged = flipped(bz2.compress(NOISE), 3000)
    for report in (idxfile.check(damaged), idxfile.check(gzip.compress(b"<html>" * 999)[:-9])):
        assert codes(report)[0] in ("stream-damaged", "stream-truncated")


@given(st.binary(max_size=60))
def test_no_bytes_make_the_judge_stumble(data: bytes) -> None:
    for file in (data, H(8, 2) + data, gzip.compress(data), GZ[:20] + data):
        report = idxfile.check(file)
        assert report.ok == (not {p.level for p in report.problems} & {"error", "warning"})
        json.dumps(report.as_dict())


def test_progress_is_told_up_to_what_was_promised() -> None:
    told: list[tuple[int, int]] = []
    data = H(8, 1 << 20) + bytes((1 << 20) + 5)
    idxfile.check(data, progress=lambda done, total: told.append((done, total)))
    assert len(told) > 2
    assert told == sorted(told)
    assert told[-1] == ((1 << 20) + 8,) * 2


def test_what_cannot_be_opened_is_an_error(tmp_path: Path) -> None:
    for file, error in ((tmp_path, IsADirectoryError), (tmp_path / "nix", FileNotFoundError)):
        with pytest.raises(error):
            idxfile.check(file)
    with pytest.raises(UnsupportedError, match="nosuch:// is not among the places"):
        idxfile.check("nosuch://example.org/train-images-idx3-ubyte")
    with pytest.raises(TypeError, match="not an int"):
        idxfile.check(7)


# Files that change or fail while they are read


@pytest.fixture
def troubled(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], object]], None]:
    """Lets every source do something when its second piece is read."""

    def arrange(trouble: Callable[[], object]) -> None:
        for kind in (LocalFile, Memory):
            original = kind.readinto_at

            def readinto_at(self: Any, start: int, buffer: Any, original: Any = original) -> int:
                if start == 1 << 18:
                    trouble()
                count: int = original(self, start, buffer)
                return count

            monkeypatch.setattr(kind, "readinto_at", readinto_at)

    return arrange


LONG = H(8, 1 << 20) + bytes(1 << 20)


@pytest.mark.parametrize("change", [-1000, +1000], ids=["shrinks", "grows"])
def test_a_file_that_changes_while_it_is_read_is_a_finding(
    change: int, troubled: Any, tmp_path: Path
) -> None:
    path = tmp_path / "a.idx"
    path.write_bytes(LONG)
    troubled(lambda: os.truncate(path, len(LONG) + change))
    report = idxfile.check(path)
    assert codes(report) == ["changed"]
    now = len(LONG) + change
    assert report.problems[0].message == (
        f"the file had 1,048,584 bytes and then {now:,}, while it was being read"
    )
    assert (report.problems[0].expected, report.problems[0].found) == (len(LONG), now)


def test_a_file_that_grows_behind_its_end_is_a_finding(tmp_path: Path) -> None:
    path = tmp_path / "a.idx"
    path.write_bytes(LABELS)

    def grow(done: int, total: int) -> None:
        os.truncate(path, 20)

    assert codes(idxfile.check(path, progress=grow)) == ["changed"]


def test_a_file_that_grows_for_ever_is_left_in_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(judgement, "EXCESS_NBYTES", 1 << 20)
    path = tmp_path / "a.idx"
    path.write_bytes(LABELS)

    def grow(done: int, total: int) -> None:
        with path.open("ab") as file:
            file.write(bytes(1 << 18))

    assert codes(idxfile.check(path, progress=grow)) == ["changed"]
    assert path.stat().st_size < 1 << 21


def test_an_error_of_the_system_is_a_finding(troubled: Any, tmp_path: Path) -> None:
    def fail() -> None:
        raise OSError(5, "Input/output error")

    troubled(fail)
    path = tmp_path / "a.idx"
    path.write_bytes(LONG)
    report = idxfile.check(path)
    assert codes(report) == ["unreadable"]
    assert report.problems[0].message == (
        "the system gives an error at byte 262,144: Input/output error"
    )
    assert not report.ok


@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["raw", "gz"])
def test_what_stands_behind_the_data_is_not_read_for_ever(
    pack: Callable[[bytes], bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(judgement, "EXCESS_NBYTES", 1 << 20)
    [problem] = idxfile.check(pack(LABELS + bytes(3 << 20))).problems
    counted = {bytes: "3,145,728 bytes", gzip.compress: "over 1,048,576 bytes"}[pack]
    assert problem.message == f"{counted} after the data at offset 11"


# What a file is


@pytest.mark.parametrize(
    ("pack", "access"),
    [
        (bytes, "direct"),
        (blocked_gz, "blocks"),
        (gzip.compress, "whole"),
        (seekable_zst, "blocks"),
        (zstd.compress, "whole"),
        (lzma.compress, "whole"),
        (lambda data: gzip.compress(blocked_gz(data)), "whole"),
    ],
)
def test_info_tells_how_items_are_to_be_had(
    pack: Callable[[bytes], bytes], access: str, tmp_path: Path
) -> None:
    packed = pack(idx_bytes(np.zeros((300, 7), "uint8")))
    (tmp_path / "x").write_bytes(packed)
    assert idxfile.info(tmp_path / "x").access == access
    assert idxfile.info(packed).access == access
    assert idxfile.info(tmp_path / "x").as_dict()["access"] == access


@pytest.mark.parametrize("pack", [bytes, blocked_gz])
def test_what_a_pipe_gives_comes_once(pack: Callable[[bytes], bytes]) -> None:
    assert idxfile.info(OnlyRead(pack(NOISE))).access == "whole"


def test_info_tells_what_stands_in_the_header_and_the_name() -> None:
    facts = idxfile.info(MNIST / "t10k-images-idx3-ubyte.gz")
    assert str(facts.header) == "uint8 10000 × 28 × 28"
    assert (facts.codecs, facts.file_nbytes) == (("gz",), 1_648_877)
    assert facts.stored_name == "t10k-images.idx3-ubyte"
    assert facts.problems == []
    assert json.loads(json.dumps(facts.as_dict())) == {
        "file": str(MNIST / "t10k-images-idx3-ubyte.gz"),
        "codecs": ["gz"],
        "file_nbytes": 1_648_877,
        "stored_name": "t10k-images.idx3-ubyte",
        "access": "whole",
        "dialect": "idx",
        "dtype": "uint8",
        "shape": [10000, 28, 28],
        "byteorder": "big",
        "data_offset": 16,
        "data_nbytes": 7_840_000,
        "problems": [],
    }


def test_info_of_every_kind_of_file(file_of: Callable[[bytes], Any]) -> None:
    facts = idxfile.info(file_of(NOISE))
    assert str(facts.header) == "uint8 100 × 10 × 10"
    assert [p.code for p in facts.problems if p.level == "error"] == []


@pytest.mark.parametrize("name", FAULTS)
def test_info_tells_a_header_or_the_fault(name: str) -> None:
    data, expected, message, _ = FAULTS[name]
    if expected[0] in ("truncated", "trailing-data", "swapped-header", "swapped-data"):
        assert {problem.code for problem in idxfile.info(data).problems} <= set(expected)
    elif not name.startswith(("gz", "twice", "xz", "little-endian in gz")):
        with pytest.raises((FormatError, UnsupportedError)) as caught:
            idxfile.info(data)
        assert caught.value.args[0] == message


@pytest.mark.parametrize("data", [LITTLE, LITTLE_DIMENSIONS, nested(LITTLE, 1)])
def test_a_header_that_is_turned_around_is_shown_as_what_it_means(data: bytes) -> None:
    facts = idxfile.info(data)
    assert (facts.header.shape, facts.header.byteorder) == ((2, 2, 2), "little")
    assert [p.code for p in facts.problems] == ["swapped-header"]


def test_names_are_held_against_the_content(tmp_path: Path) -> None:
    path = tmp_path / "train-images-idx3-ubyte.gz"
    path.write_bytes(LABELS)
    expected = [
        "the name suggests gz and the content is raw",
        "the name says idx3-ubyte, the header says uint8 3",
    ]
    for problems in (idxfile.info(path).problems, idxfile.check(path).problems):
        assert [p.message for p in problems] == expected
        assert all(p.level == "note" for p in problems)
    assert idxfile.read(path).tolist() == [1, 2, 3]


# Mending: name → the wrong bytes, options, each change, the right bytes


def swap(data: bytes, nbytes: int) -> bytes:
    return b"".join(data[at : at + nbytes][::-1] for at in range(0, len(data), nbytes))


LITTLE_INT16 = bytes.fromhex("020b0000 02000000 03000000 010002000300040005000600")
RIGHT_INT16 = H(11, 2, 3) + bytes.fromhex("000100020003000400050006")
AS_RAW = "compression: gz before, raw now"

MENDED: dict[str, tuple[bytes, dict[str, Any], list[str], bytes]] = {
    "right": (IMAGES, {}, [], IMAGES),
    "a byte too many": (
        H(8, 1) + b"\x07\x0a",
        {},
        ["trimmed 1 byte after the data at offset 9"],
        H(8, 1) + b"\x07",
    ),
    "a scalar and more": (
        H(8) + b"\x07\x0a",
        {"take_trailing": True},
        ["trimmed 1 byte after the data at offset 5"],
        H(8) + b"\x07",
    ),
    "an interrupted append": (
        IMAGES + b"12341234123",
        {"take_trailing": True},
        [
            "set the count from 2 to 4, the whole items that are there",
            "trimmed 3 bytes after the last whole item",
        ],
        H(8, 4, 2, 2) + bytes(range(8)) + b"12341234",
    ),
    "less than an item behind": (
        IMAGES + b"123",
        {"take_trailing": True},
        ["trimmed 3 bytes after the data at offset 24"],
        IMAGES,
    ),
    "a count never settled": (
        H(8, 0, 2, 2) + IMAGES[16:],
        {"take_trailing": True},
        ["set the count from 0 to 2, the whole items that are there"],
        IMAGES,
    ),
    "a count too large": (
        H(8, 9) + b"\x01\x02\x03",
        {},
        ["set the count from 9 to 3, the whole items that are there"],
        LABELS,
    ),
    "a cut item": (
        IMAGES[:-1],
        {"salvage": True},
        [
            "set the count from 2 to 1, the whole items that are there",
            "dropped 3 bytes of an item that is cut",
        ],
        H(8, 1, 2, 2) + bytes(range(4)),
    ),
    "little-endian": (LITTLE, {}, ["turned the byte order of the header"], IMAGES),
    "little-endian dimensions": (
        LITTLE_DIMENSIONS,
        {},
        ["turned the byte order of the header"],
        IMAGES,
    ),
    "little-endian in gz": (
        nested(LITTLE, 1),
        {},
        ["turned the byte order of the header", AS_RAW],
        IMAGES,
    ),
    "little-endian int16": (
        LITTLE_INT16,
        {},
        ["turned the byte order of the header", "took the elements as little-endian, too"],
        RIGHT_INT16,
    ),
    "little-endian dimensions alone": (
        LITTLE_INT16[2:4] + b"\x0b\x02" + LITTLE_INT16[4:12] + RIGHT_INT16[12:],
        {"swap_data": True},
        [
            "turned the byte order of the header",
            "took the elements as little-endian, too",
            "took the elements as big-endian",
        ],
        RIGHT_INT16,
    ),
    "little-endian data": (
        LITTLE_DATA,
        {"swap_data": True},
        ["took the elements as little-endian"],
        H(12, 3) + bytes.fromhex("00000001 00000002 00000003"),
    ),
    "bytes have no order": (LABELS, {"swap_data": True}, [], LABELS),
    "transposed items": (
        H(8, 1, 2, 3) + b"abcdef",
        {"transpose": True},
        ["exchanged the rows and columns of every item"],
        H(8, 1, 3, 2) + b"adbecf",
    ),
    "transposed colours": (
        H(8, 1, 2, 2, 3) + b"RGBrgbXYZxyz",
        {"transpose": True},
        ["exchanged the rows and columns of every item"],
        H(8, 1, 2, 2, 3) + b"RGBXYZrgbxyz",
    ),
    "transposed nothing": (
        H(8, 0, 2, 3),
        {"transpose": True},
        ["exchanged the rows and columns of every item"],
        H(8, 0, 3, 2),
    ),
    "Lush": (
        bytes.fromhex("544c3d1e 01000000 02000000 01000000 01000000 0700000008000000"),
        {},
        ["wrote the Lush matrix as IDX"],
        H(12, 2) + bytes.fromhex("00000007 00000008"),
    ),
    "Lush scalar": (
        bytes.fromhex("1e3d4c55 00000000 00000001 00000001 00000001 07"),
        {},
        ["wrote the Lush matrix as IDX"],
        H(8) + b"\x07",
    ),
    "65 dimensions and a byte": (
        H(8, *[1] * 65) + b"\x07\x0a",
        {},
        ["trimmed 1 byte after the data at offset 265"],
        H(8, *[1] * 65) + b"\x07",
    ),
    "items of no bytes": (
        H(8, 3, 0) + b"x",
        {"take_trailing": True},
        ["trimmed 1 byte after the data at offset 12"],
        H(8, 3, 0),
    ),
    "twice": (nested(LABELS, 2), {}, ["compression: gz+gz before, raw now"], LABELS),
    "junk": (
        GZ + b"junk",
        {},
        ["dropped the junk after the compressed stream", AS_RAW],
        NOISE,
    ),
    "gz of too much": (
        nested(LABELS + b"x", 1),
        {},
        ["trimmed 1 byte after the data at offset 11", AS_RAW],
        LABELS,
    ),
    "gz, 9 bytes short": (
        GZ[:-9],
        {"salvage": True},
        [
            "took what the cut stream gives",
            "set the count from 100 to 99, the whole items that are there",
            "dropped 99 bytes of an item that is cut",
            AS_RAW,
        ],
        H(8, 99, 10, 10) + NOISE[16:-100],
    ),
    "gz without its trailer": (
        GZ[:-8],
        {"salvage": True},
        ["took what the cut stream gives", AS_RAW],
        NOISE,
    ),
    "gz with another checksum": (
        flipped(GZ, -8),
        {"salvage": True},
        ["took what the damaged stream gives: its values are not certain", AS_RAW],
        NOISE,
    ),
    "gz of too little": (
        nested(NOISE[:-50], 1),
        {"salvage": True},
        [
            "set the count from 100 to 99, the whole items that are there",
            "dropped 50 bytes of an item that is cut",
            AS_RAW,
        ],
        H(8, 99, 10, 10) + NOISE[16:-100],
    ),
}


@pytest.mark.parametrize("name", MENDED)
def test_what_can_be_mended_is_mended_and_told(name: str, tmp_path: Path) -> None:
    wrong, options, done, right = MENDED[name]
    out = tmp_path / "mended.idx"
    mended = idxfile.repair(wrong, out, **options)
    assert mended.done == done
    assert out.read_bytes() == right
    assert mended.after.ok
    assert (mended.file, mended.out, mended.backup) == ("<bytes>", str(out), None)
    json.dumps(mended.as_dict())
    assert [path.name for path in tmp_path.iterdir()] == ["mended.idx"]


def test_a_real_file_whose_count_is_wrong_is_mended(tmp_path: Path) -> None:
    wrong = DATA / "real" / "jorgecasas__php-ml" / "labels-idx-ubyte"
    mended = idxfile.repair(wrong, tmp_path / "labels.idx")
    assert mended.done == ["set the count from 10,000 to 10, the whole items that are there"]
    assert len(idxfile.read(tmp_path / "labels.idx")) == 10


@pytest.mark.parametrize("codec", COMPRESS)
def test_the_compression_that_a_name_promises_is_written(codec: str, tmp_path: Path) -> None:
    path = tmp_path / f"labels-idx1-ubyte.{codec}"
    path.write_bytes(LABELS)  # a raw file under the name of a packed one
    mended = idxfile.repair(path)
    assert mended.done == [f"compression: raw before, {codec} now"]
    assert idxfile.check(path).problems == []
    assert idxfile.info(path).codecs == (codec,)
    assert Path(mended.backup or "").read_bytes() == LABELS


def test_the_compression_can_be_chosen(tmp_path: Path) -> None:
    out = tmp_path / "a.idx"
    assert idxfile.repair(LABELS, out, codec="xz").done == ["compression: raw before, xz now"]
    assert lzma.decompress(out.read_bytes()) == LABELS
    assert idxfile.repair(out, tmp_path / "b.gz", codec=None).after.codecs == ()


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("block_nbytes", [1, 24, 1 << 23])
def test_mending_in_blocks_keeps_every_element(
    dtype: str, block_nbytes: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mending, "BLOCK_NBYTES", block_nbytes)
    array = bits(dtype, 5, 3, 2)
    little = (
        H(1)[:2] + idx_bytes(array)[2:16] + array.astype(array.dtype.newbyteorder("<")).tobytes()
    )
    out = tmp_path / "a.idx"
    idxfile.repair(little, out, swap_data=True)
    assert out.read_bytes() == idx_bytes(array)
    idxfile.repair(little, out, swap_data=True, transpose=True)
    assert out.read_bytes() == idx_bytes(array.swapaxes(1, 2))


def test_a_long_tail_in_a_stream_is_taken_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mending, "EXCESS_NBYTES", 10)
    wrong = gzip.compress(H(8, 1, 3) + b"abc" * 1000)
    mended = idxfile.repair(wrong, tmp_path / "a.idx", take_trailing=True)
    assert mended.done[0] == "set the count from 1 to 1,000, the whole items that are there"
    trimmed = idxfile.repair(wrong, tmp_path / "b.idx")
    assert trimmed.done[0] == "trimmed over 10 bytes after the data at offset 15"
    assert idxfile.read(tmp_path / "b.idx").tolist() == [[97, 98, 99]]


HOPELESS = "cannot be mended"
NOT_ONE = "cannot be mended: not one whole item is there"
UNMENDABLE: dict[str, tuple[bytes, dict[str, Any], type[Exception], str]] = {
    "nothing": (b"", {}, TruncatedError, f"{HOPELESS}; nothing was written"),
    "a page": (b"<html>", {}, FormatError, f"{HOPELESS}; a failed download?"),
    "text": (b"\x61\0\x08\x01", {"salvage": True}, FormatError, f"{HOPELESS}; no known format"),
    "a cut header": (
        IMAGES[:9],
        {"salvage": True},
        TruncatedError,
        f"{HOPELESS}; the file was cut",
    ),
    "a header alone": (IMAGES[:16], {"salvage": True}, TruncatedError, NOT_ONE),
    "a cut scalar": (H(14) + b"\0", {"salvage": True}, TruncatedError, NOT_ONE),
    "a cut item": (
        IMAGES[:-1],
        {},
        TruncatedError,
        f"{HOPELESS}; --salvage (salvage=True) keeps its 1 whole item",
    ),
    "gz, 9 bytes short": (
        GZ[:-9],
        {},
        TruncatedError,
        f"{HOPELESS}; --salvage (salvage=True) keeps its 99 whole items",
    ),
    "gz with another checksum": (
        flipped(GZ, -8),
        {"take_trailing": True},
        ChecksumError,
        f"{HOPELESS}; --salvage (salvage=True) keeps its 100 whole items",
    ),
    "gz cut at once": (GZ[:30], {"salvage": True}, TruncatedError, NOT_ONE),
    "gz with reserved flags": (flipped(GZ, 3), {"salvage": True}, FormatError, NOT_ONE),
    "five times": (nested(LABELS, 5), {}, FormatError, f"{HOPELESS}; this is no data file"),
    "Lush, packed": (
        FAULTS["Lush, packed"][0],
        {},
        UnsupportedError,
        f"{HOPELESS}; save it as int32",
    ),
    "Lush uint64": (
        bytes.fromhex("5a4c3d1e 01000000 01000000 01000000 01000000 0700000000000000"),
        {},
        UnsupportedError,
        "the element types of IDX are",
    ),
    "transposed labels": (
        LABELS,
        {"transpose": True},
        UnsupportedError,
        "only the rows and columns of items can be exchanged",
    ),
    "65 transposed dimensions": (
        H(8, *[1] * 65) + b"\x07",
        {"transpose": True},
        UnsupportedError,
        "only the rows and columns of items can be exchanged",
    ),
    "2^32 items": (
        H(8, 0xFFFFFFFF, 0) + b"x",
        {"transpose": True},
        UnsupportedError,
        "only the rows and columns of items can be exchanged",
    ),
}


@pytest.mark.parametrize("name", UNMENDABLE)
def test_what_cannot_be_mended_is_said(name: str, tmp_path: Path) -> None:
    wrong, options, error, hint = UNMENDABLE[name]
    path = tmp_path / "wrong.idx"
    path.write_bytes(wrong)
    for dst in (tmp_path / "mended.idx", None):
        with pytest.raises(error) as caught:
            idxfile.repair(path, dst, **options)
        assert caught.value.hint.startswith(hint)
        assert str(caught.value).startswith(f"{path}: ")
        assert [p.name for p in tmp_path.iterdir()] == ["wrong.idx"]
        assert path.read_bytes() == wrong


def test_a_result_that_is_not_right_is_told(tmp_path: Path) -> None:
    mended = idxfile.repair(LITTLE_DATA, tmp_path / "a.idx")
    assert (mended.done, mended.after.ok, codes(mended.after)) == ([], False, ["swapped-data"])
    turned_too_far = H(12, 3) + bytes.fromhex("00000001 00000002 00000003")
    mended = idxfile.repair(turned_too_far, tmp_path / "b.idx", swap_data=True)
    assert not mended.after.ok


@pytest.mark.parametrize("file", [open(os.devnull, "rb"), 7], ids=["file object", "int"])  # noqa: SIM115
def test_what_is_read_only_once_cannot_be_mended(file: Any, tmp_path: Path) -> None:
    with pytest.raises(TypeError):
        idxfile.repair(file, tmp_path / "a.idx")
    if hasattr(file, "close"):
        file.close()


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for src, dst in ((tmp_path / "pipe", tmp_path / "a.idx"), (LABELS, tmp_path / "pipe")):
        with pytest.raises(UnsupportedError, match="a pipe or device, and mending reads twice"):
            idxfile.repair(src, dst)
    with pytest.raises(TypeError):
        idxfile.repair(LABELS)


# Mending in place

TOO_MUCH = LABELS + b"x"


def test_in_place_the_old_file_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "a.idx"
    path.write_bytes(TOO_MUCH)
    path.chmod(0o640)
    mended = idxfile.repair(path)
    assert path.read_bytes() == LABELS
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert mended.backup == f"{path}.bak"
    assert Path(mended.backup).read_bytes() == TOO_MUCH
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.idx", "a.idx.bak"]


def test_in_place_nothing_happens_to_a_right_file(tmp_path: Path) -> None:
    path = tmp_path / "a.idx"
    path.write_bytes(LABELS)
    before = path.stat()
    mended = idxfile.repair(path)
    assert (mended.done, mended.backup, mended.after.ok) == ([], None, True)
    assert path.stat().st_ino == before.st_ino
    assert [p.name for p in tmp_path.iterdir()] == ["a.idx"]


def test_in_place_an_old_backup_is_never_written_over(tmp_path: Path) -> None:
    path, backup = tmp_path / "a.idx", tmp_path / "a.idx.bak"
    path.write_bytes(TOO_MUCH)
    backup.write_bytes(b"precious")
    with pytest.raises(FileExistsError, match="A backup exists already; move it away first"):
        idxfile.repair(path)
    assert (path.read_bytes(), backup.read_bytes()) == (TOO_MUCH, b"precious")
    backup.unlink()
    backup.symlink_to("nowhere")
    with pytest.raises(FileExistsError):
        idxfile.repair(path)


def test_in_place_through_a_link_the_link_stays_and_the_old_bytes_too(tmp_path: Path) -> None:
    (tmp_path / "store").mkdir()
    real, link = tmp_path / "store" / "real", tmp_path / "a.idx"
    real.write_bytes(TOO_MUCH)
    link.symlink_to(real)
    mended = idxfile.repair(link)
    assert link.is_symlink()
    assert real.read_bytes() == LABELS
    assert mended.backup == f"{link}.bak"
    assert Path(mended.backup).read_bytes() == TOO_MUCH


def test_in_place_without_hard_links_the_old_file_is_copied(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any) -> None:
        raise OSError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuse)
    path = tmp_path / "a.idx"
    path.write_bytes(TOO_MUCH)
    assert Path(idxfile.repair(path).backup or "").read_bytes() == TOO_MUCH
    assert path.read_bytes() == LABELS


def test_in_place_a_failing_disk_leaves_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.idx"
    path.write_bytes(TOO_MUCH)

    def refuse(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", refuse)
        with pytest.raises(OSError, match="No space left on device"):
            idxfile.repair(path)
    assert path.read_bytes() == TOO_MUCH
    assert [p.name for p in tmp_path.iterdir()] == ["a.idx"]


def test_a_file_that_changes_before_it_is_written_anew_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.idx"
    path.write_bytes(TOO_MUCH)
    look = mending.check_far

    def look_and_cut(*arguments: Any) -> Any:
        report = look(*arguments)
        os.truncate(path, 9)
        return report

    monkeypatch.setattr(mending, "check_far", look_and_cut)
    with pytest.raises(FormatError, match="changed while it was being mended"):
        idxfile.repair(path, tmp_path / "b.idx")
    assert [p.name for p in tmp_path.iterdir()] == ["a.idx"]


def test_a_file_may_be_written_over_itself(tmp_path: Path) -> None:
    path = tmp_path / "a.idx"
    path.write_bytes(TOO_MUCH)
    assert idxfile.repair(path, path).after.ok
    assert path.read_bytes() == LABELS


# The byte order of elements

RANDOM = np.random.default_rng(3)


def _kinds() -> dict[str, Any]:
    """Arrays as people have them: proper data, which must never be suspected."""
    pictures = idxfile.read(MNIST / "t10k-images-idx3-ubyte.gz", slice(0, 100))
    kinds: dict[str, Any] = {}
    for dtype in ("int16", "int32"):
        low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
        kinds |= {
            f"{dtype} of all sizes": RANDOM.integers(low, high, 5000),
            f"{dtype} labels": RANDOM.integers(0, 10, 5000),
            f"{dtype} differences": RANDOM.integers(-5, 6, 5000),
            f"{dtype} pictures": pictures,
            f"{dtype} ramp": np.arange(5000),
            f"{dtype} extremes": np.array([low, -1, 0, 1, high]),
            f"{dtype} rare spikes": np.where(np.arange(5000) % 999, 1, high),
            f"{dtype} constant": np.full(5000, 256),
            f"{dtype} zeros": np.zeros(5000),
            f"{dtype} nothing": np.zeros((0, 3)),
        }
    for dtype in ("float32", "float64"):
        normal = RANDOM.normal(size=5000)
        kinds |= {
            f"{dtype} pictures in [0, 1]": pictures / 255,
            f"{dtype} pictures normalised": (pictures / 255 - 0.1307) / 0.3081,
            f"{dtype} normal": normal,
            f"{dtype} few normal": normal[:5],
            f"{dtype} uniform": RANDOM.random(5000),
            f"{dtype} labels": RANDOM.integers(0, 10, 5000),
            f"{dtype} halves": RANDOM.integers(-9, 9, 5000) / 2,
            f"{dtype} of 1e12": normal * 1e12,
            f"{dtype} of 1e30": normal * 1e30,
            f"{dtype} of 1e-30": normal * 1e-30,
            f"{dtype} powers": 2.0 ** RANDOM.integers(-100, 100, 5000),
            f"{dtype} with gaps": np.where(normal > 0, normal, np.nan),
            f"{dtype} without bounds": np.where(normal > 0, normal, np.inf),
            f"{dtype} constant": np.full(5000, 0.1),
            f"{dtype} zeros": np.zeros(5000),
        }
    return {name: array.astype(name.split()[0]) for name, array in kinds.items()}


PROPER = _kinds()
UNPROVABLE = (
    "sizes",
    "extremes",
    "spikes",
    "constant",
    "zeros",
    "nothing",
    "1e30",
    "1e-30",
    "powers",
    "gaps",
    "bounds",
)


def little_data(array: Any) -> bytes:
    """A right header, and elements with the least significant byte first."""
    elements = array.astype(array.dtype.newbyteorder("<")).tobytes()
    return (
        H({"int16": 11, "int32": 12, "float32": 13, "float64": 14}[array.dtype.name], *array.shape)
        + elements
    )


@pytest.mark.parametrize("name", PROPER)
def test_proper_data_are_never_suspected(name: str) -> None:
    assert idxfile.check(idx_bytes(PROPER[name])).problems == []
    assert idxfile.check(gzip.compress(idx_bytes(PROPER[name]))).problems == []


SUSPECTED = [n for n in PROPER if not any(w in n for w in UNPROVABLE) and n != "int16 ramp"]


@pytest.mark.parametrize("name", SUSPECTED)
def test_little_endian_data_are_suspected_with_evidence_and_mended_when_asked(
    name: str, tmp_path: Path
) -> None:
    array = PROPER[name]
    [problem] = idxfile.check(little_data(array)).problems
    assert (problem.code, problem.level) == ("swapped-data", "warning")
    assert problem.message.startswith("the elements look little-endian: ")
    assert "and with bytes swapped" in problem.message
    assert "it cannot be proven" in (problem.hint or "")
    assert np.array_equal(idxfile.read(little_data(array), byteorder="little"), array)
    out = tmp_path / "a.idx"
    assert idxfile.repair(little_data(array), out, swap_data=True).after.ok
    assert out.read_bytes() == idx_bytes(array)


def test_elements_that_were_right_under_a_turned_header_are_suspected() -> None:
    array = np.arange(1, 100, dtype="int32")
    data = H(12)[:3] + b"\x01" + (99).to_bytes(4, "little") + array.astype(">i4").tobytes()
    turned, suspected = idxfile.check(data).problems
    assert turned.code == "swapped-header"
    assert suspected.message.startswith("the elements look big-endian: ")
    assert "byteorder=" not in (suspected.hint or "")


def test_evidence_is_gathered_all_over_a_long_file(tmp_path: Path) -> None:
    array = np.zeros(1 << 20, "int32")
    array[-(1 << 16) :] = np.arange(1 << 16) % 100
    assert codes(idxfile.check(little_data(array))) == ["swapped-data"]
    assert codes(idxfile.check(gzip.compress(little_data(array)))) == ["swapped-data"]


# Comparing


def file_of_type(array: Any, dtype: str) -> bytes:
    return idx_bytes(np.asarray(array).astype(dtype))


def lush(dtype: str, *values: int) -> bytes:
    """A Lush vector of a type that IDX does not have."""
    code = {"uint32": 0x59, "uint64": 0x5A, "int64": 0x5B}[dtype]
    dimensions = np.array([1, len(values), 1, 1], "<i4").tobytes()
    return bytes([code, 0x4C, 0x3D, 0x1E]) + dimensions + np.array(values, dtype).tobytes()


BIG = 2**53
DIFFERENCES: dict[str, tuple[bytes, bytes, tuple[Any, ...]]] = {
    # equal, elements, items, first, values, largest
    "equal": (IMAGES, IMAGES, (True, 0, 0, None, None, 0)),
    "codecs": (NOISE, GZ, (True, 0, 0, None, None, 0)),
    "types": (LABELS, file_of_type([1, 2, 3], "float64"), (True, 0, 0, None, None, 0)),
    "signs of zero": (
        file_of_type([0.0], "float32"),
        file_of_type([-0.0], "float32"),
        (True, 0, 0, None, None, 0),
    ),
    "NaN": (
        file_of_type([np.nan, 1], "float32"),
        file_of_type([np.nan, 1], "float64"),
        (True, 0, 0, None, None, 0),
    ),
    "NaN and a number": (
        file_of_type([np.nan, 1], "float32"),
        file_of_type([2, 1], "int8"),
        (False, 1, 1, (0,), None, np.inf),
    ),
    "infinities": (
        file_of_type([np.inf, -np.inf], "float32"),
        file_of_type([np.inf, np.inf], "float32"),
        (False, 1, 1, (1,), (-np.inf, np.inf), np.inf),
    ),
    "one element": (
        IMAGES,
        flipped(IMAGES, -2),
        (False, 1, 1, (1, 1, 0), (6, 249), 243),
    ),
    "all elements": (
        file_of_type([[1, 2], [3, 4]], "uint8"),
        file_of_type([[-1, -2], [-3, -4]], "int8"),
        (False, 4, 2, (0, 0), (1, -1), 8),
    ),
    "extremes": (
        file_of_type([-128, 127], "int8"),
        file_of_type([127, -128], "int8"),
        (False, 2, 2, (0,), (-128, 127), 255),
    ),
    "scalars": (H(8) + b"\x07", H(8) + b"\x09", (False, 1, 1, (), (7, 9), 2)),
    "equal scalars": (H(8) + b"\x07", H(9) + b"\x07", (True, 0, 0, None, None, 0)),
    "empty": (H(8, 0, 28), H(14, 0, 28), (True, 0, 0, None, None, 0)),
    "items of nothing": (H(8, 3, 0), H(8, 3, 0), (True, 0, 0, None, None, 0)),
    "fewer items": (LABELS, file_of_type([1, 2], "uint8"), (False, 0, 0, None, None, 0)),
    "fewer and others": (
        LABELS,
        file_of_type([9, 2], "uint8"),
        (False, 1, 1, (0,), (1, 9), 8),
    ),
    "int64 beyond float64": (
        lush("int64", BIG, BIG + 1),
        lush("int64", BIG, BIG),
        (False, 1, 1, (1,), (BIG + 1, BIG), 1),
    ),
    "int64 and float64": (
        lush("int64", BIG, BIG + 1, 2**63 - 1),
        file_of_type([BIG, BIG, 2.0**63], "float64"),
        (False, 2, 2, (1,), (BIG + 1, BIG), 1),
    ),
    "float64 and uint64": (
        file_of_type([0.5, 2.0**64], "float64"),
        lush("uint64", 3, 2**64 - 1),
        (False, 2, 2, (0,), (0.5, 3), 2.5),
    ),
    "int64 and uint64": (
        lush("int64", -1, 5),
        lush("uint64", 2**64 - 1, 5),
        (False, 1, 1, (0,), (-1, 2**64 - 1), 2**64),
    ),
    "the whole of int64": (
        lush("int64", -(2**63)),
        lush("int64", 2**63 - 1),
        (False, 1, 1, (0,), (-(2**63), 2**63 - 1), 2**64 - 1),
    ),
    "uint32 and float32": (
        lush("uint32", 2**32 - 1),
        file_of_type([2.0**32], "float32"),
        (False, 1, 1, (0,), (2**32 - 1, 2.0**32), 1.0),
    ),
    "int64 and no number": (
        lush("int64", 1),
        file_of_type([np.nan], "float64"),
        (False, 1, 1, (0,), None, np.inf),
    ),
}


@pytest.mark.parametrize("name", DIFFERENCES)
def test_files_are_compared_by_value(name: str) -> None:
    a, b, (equal, elements, items, first, values, largest) = DIFFERENCES[name]
    found = idxfile.diff(a, b)
    assert found.compared
    assert (found.equal, found.elements, found.items) == (equal, elements, items)
    assert (found.first, found.largest) == (first, largest)
    if values is not None:
        assert found.first_values == values
    back = idxfile.diff(b, a)
    assert (back.equal, back.elements, back.largest) == (equal, elements, largest)


@pytest.mark.parametrize("other", [H(8, 3, 1) + b"abc", H(8) + b"a", H(8, 3, 2) + b"abcdef"])
def test_items_of_another_shape_are_not_compared(other: bytes) -> None:
    found = idxfile.diff(LABELS, other)
    assert (found.compared, found.equal, found.same_shape) == (False, False, False)


def test_a_difference_tells_the_first_items() -> None:
    one = np.zeros((50, 2, 2), "uint8")
    other = one.copy()
    other[5:, 0] = 1
    found = idxfile.diff(idx_bytes(one), idx_bytes(other))
    assert (found.elements, found.items) == (90, 45)
    assert found.differing_items == [(n, 2) for n in range(5, 15)]
    assert found.as_dict()["first"] == [5, 0, 0]


def test_any_number_of_dimensions_is_compared() -> None:
    one, other = (H(8, *[1] * 254, 2) + bytes([1, n]) for n in (2, 3))
    assert idxfile.diff(one, one).equal
    assert idxfile.diff(one, other).first == (0,) * 254 + (1,)
    nothing = H(8, 0, *[0xFFFFFFFF] * 254)
    assert idxfile.diff(nothing, nothing).equal


@given(
    st.sampled_from(TYPES),
    st.sampled_from(TYPES),
    hnp.arrays("int64", hnp.array_shapes(max_dims=3, max_side=4), elements=st.integers(0, 3)),
    st.data(),
)
def test_differences_are_those_that_numpy_finds(
    dtype: str, other_type: str, one: Any, data: st.DataObject
) -> None:
    other = data.draw(hnp.arrays("int64", one.shape, elements=st.integers(0, 3)))
    with patch.object(difference, "BLOCK_SIZE", data.draw(st.integers(1, 9))):
        found = idxfile.diff(file_of_type(one, dtype), file_of_type(other, other_type))
    differs = one != other
    counts = differs.reshape(len(one), -1).sum(axis=1)
    assert found.differing_items == [(n, count) for n, count in enumerate(counts) if count]
    assert found.equal == np.array_equal(one, other)
    assert found.elements == differs.sum()
    assert found.items == differs.reshape(len(one), -1).any(axis=1).sum()
    assert found.largest == np.abs(one - other).max()
    if not found.equal:
        assert found.first == tuple(np.argwhere(differs)[0])


@pytest.mark.parametrize("pack", PACKINGS.values(), ids=PACKINGS)
def test_files_of_many_blocks_are_compared_whatever_their_codecs(
    pack: Callable[[bytes], bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(difference, "BLOCK_SIZE", 70)
    assert idxfile.diff(NOISE, pack(NOISE)).equal
    found = idxfile.diff(file_of_type(idxfile.read(NOISE), "int16"), pack(flipped(NOISE, -1)))
    assert (found.elements, found.first) == (1, (99, 9, 9))


def test_a_wrong_file_is_not_compared() -> None:
    for error, data in ((TruncatedError, IMAGES[:-1]), (TrailingDataError, IMAGES + b"x")):
        with pytest.raises(error):
            idxfile.diff(IMAGES, data)
        with pytest.raises(error):
            idxfile.diff(gzip.compress(data), IMAGES)


@pytest.mark.parametrize("workers", [1, 2])
def test_two_compressed_files_are_read_in_step(
    workers: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(threads, "WORKERS", workers)
    values = np.random.default_rng(4).integers(0, 9, (3_000, 1000), np.uint8)
    packed = gzip.compress(idx_bytes(values), 1)
    other = values.copy()
    other[2_999, 999] = 99
    found = idxfile.diff(packed, gzip.compress(idx_bytes(other[:2_999]), 1))
    assert (found.elements, found.same_shape) == (0, False)
    found = idxfile.diff(packed, gzip.compress(idx_bytes(other), 1))
    assert (found.elements, found.first) == (1, (2_999, 999))
    for pair in ((packed, packed[:-100]), (packed[:-100], packed)):
        with pytest.raises(TruncatedError):
            idxfile.diff(*pair)


# Pairs


def pair_of(tmp_path: Path, **files: bytes) -> list[Any]:
    """What a check of these files, named by their stems, says about the pairs among them."""
    reports = []
    for name, data in files.items():
        path = tmp_path / name.replace("__", ".").replace("_", "-")
        path.write_bytes(data)
        reports.append(idxfile.check(path))
    return judge_pairs(reports)


THREE = H(8, 3, 2, 2) + bytes(12)


def test_a_right_pair_tells_the_range_of_its_labels(tmp_path: Path) -> None:
    [pair] = pair_of(tmp_path, train_images_idx3_ubyte=THREE, train_labels_idx1_ubyte=LABELS)
    assert pair.ok
    assert [p.message for p in pair.problems] == ["labels run from 1 to 3"]
    assert json.dumps(pair.as_dict())


PAIRS: dict[str, tuple[bytes, bytes, list[tuple[str, str]]]] = {
    "counts": (
        IMAGES,
        LABELS,
        [
            ("pair-count", "images: 2 items, labels: 3 items"),
            ("label-range", "labels run from 1 to 3"),
        ],
    ),
    "one": (
        H(8, 1, 1, 1) + b"a",
        LABELS,
        [
            ("pair-count", "images: 1 item, labels: 3 items"),
            ("label-range", "labels run from 1 to 3"),
        ],
    ),
    "roles": (
        LABELS,
        THREE,
        [
            (
                "pair-swapped",
                "a-images-idx3-ubyte holds labels and a-labels-idx1-ubyte images",
            )
        ],
    ),
    "flat roles": (
        LABELS,
        H(8, 3, 784) + bytes(3 * 784),
        [
            (
                "pair-swapped",
                "a-images-idx3-ubyte holds labels and a-labels-idx1-ubyte images",
            )
        ],
    ),
    "negative": (
        THREE,
        file_of_type([-1, 2, 3], "int8"),
        [("label-values", "labels run from -1 to 3, which are no class numbers")],
    ),
    "halves": (
        THREE,
        file_of_type([0.5, 2, 3], "float32"),
        [("label-values", "labels run from 0.5 to 3.0, which are no class numbers")],
    ),
    "columns": (
        THREE,
        file_of_type([[4, -9], [5, -9], [6, -9]], "int32"),
        [("label-range", "labels run from 4 to 6")],
    ),
    "no items": (H(8, 0, 2, 2), H(8, 0), []),
    "wrong labels": (THREE, LABELS + b"x", []),
}


@pytest.mark.parametrize("name", PAIRS)
def test_pairs_are_judged(name: str, tmp_path: Path) -> None:
    images, labels, expected = PAIRS[name]
    [pair] = pair_of(tmp_path, a_images_idx3_ubyte=images, a_labels_idx1_ubyte=labels)
    assert [(p.code, p.message) for p in pair.problems] == expected
    assert pair.ok == all(PROBLEMS[code].level == "note" for code, _ in expected)


def test_the_same_file_under_two_names_is_fine(tmp_path: Path) -> None:
    [pair] = pair_of(
        tmp_path,
        train_images_idx3_ubyte=THREE,
        train_images_idx3_ubyte__gz=gzip.compress(THREE),
        train_images__idx3_ubyte__bz2=bz2.compress(THREE),
        train_labels_idx1_ubyte__zst=zstd.compress(LABELS),
    )
    assert pair.ok


def test_two_files_that_take_the_same_place_and_differ_are_told(tmp_path: Path) -> None:
    [pair] = pair_of(
        tmp_path,
        train_images_idx3_ubyte=THREE,
        train_images__idx3_ubyte__gz=gzip.compress(H(8, 3, 2, 2) + b"x" * 12),
        train_labels_idx1_ubyte=LABELS,
    )
    assert not pair.ok
    assert pair.problems[0].message == (
        "train-images-idx3-ubyte and train-images.idx3-ubyte.gz "
        "take the same place in the pair and differ"
    )


def test_files_of_different_sets_are_no_pair(tmp_path: Path) -> None:
    assert pair_of(tmp_path, train_images=THREE, test_labels=LABELS, other__idx=IMAGES) == []
    assert pair_of(tmp_path, train_images=b"nothing", train_labels=LABELS) == []


def test_two_sets_in_one_folder_are_two_pairs(tmp_path: Path) -> None:
    pairs = pair_of(tmp_path, a_images=THREE, a_labels=LABELS, b_labels=LABELS, b_images=IMAGES)
    assert [pair.ok for pair in pairs] == [True, False]
