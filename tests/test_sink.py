"""Where bytes go: whole under their name or not at all, compressed on the way as was chosen.

What happens when the system fails or the process dies is in `test_durability.py`.
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import random
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import idxfile
from conftest import COMPRESS, zstd
from idxfile.codecs import BLOCK_NBYTES, CODECS
from idxfile.sink import open_sink
from idxfile.source import open_source
from idxfile.staging import atomic_file, atomic_folder, write_whole

NOISE = random.Random(5).randbytes(300_000)
DECOMPRESS: dict[str | None, Callable[[bytes], bytes]] = {
    None: bytes,
    "gz": gzip.decompress,
    "bz2": bz2.decompress,
    "xz": lzma.decompress,
    "zst": zstd.decompress,
}
WAYS = [{"codec": name} for name in DECOMPRESS] + [{"codec": "gz", "blocked": True}]


def written(target: Any, data: bytes = NOISE, **options: Any) -> None:
    """Write some bytes through a sink, in three pieces of which one is empty."""
    sink = open_sink(target, **options)
    sink.write(data[:1000])
    sink.write(b"")
    sink.write(memoryview(data)[1000:])
    sink.commit()


# What the user passes


@pytest.mark.parametrize("options", WAYS, ids=str)
@pytest.mark.parametrize("data", [NOISE, b"", b"7"], ids=["noise", "nothing", "one byte"])
def test_a_path_and_a_file_object_get_the_same_bytes(
    options: dict[str, Any], data: bytes, tmp_path: Path
) -> None:
    path = tmp_path / "a.idx"
    written(str(path), data, **options)
    found = path.read_bytes()
    assert DECOMPRESS[options["codec"]](found) == data
    file = io.BytesIO()
    written(file, data, **options)
    assert file.getvalue() == found
    written(path, data, **options)
    assert path.read_bytes() == found
    assert os.listdir(tmp_path) == ["a.idx"]


@pytest.mark.parametrize(
    ("name", "codec"),
    [(f"a{suffix}", row.name) for row in CODECS for suffix in row.suffixes]
    + [("a.GZ", "gz"), ("a.idx", None), ("a.gz.idx", None), ("gz", None)],
)
def test_the_suffix_decides_unless_a_codec_is_given(
    name: str, codec: str | None, tmp_path: Path
) -> None:
    path = tmp_path / name
    written(path)
    assert open_source(path.read_bytes()).codecs == ((codec,) if codec else ())
    written(path, codec=None)
    assert path.read_bytes() == NOISE
    written(path, codec="bz2")
    assert bz2.decompress(path.read_bytes()) == NOISE


def test_a_file_object_has_no_suffix(tmp_path: Path) -> None:
    with open(tmp_path / "a.gz", "wb") as file:
        written(file)
    assert (tmp_path / "a.gz").read_bytes() == NOISE


@pytest.mark.parametrize("target", [None, 5, b"bytes", ["a"], {}, io.StringIO()])
def test_what_cannot_be_written_to_is_a_type_error(target: Any) -> None:
    with pytest.raises(TypeError, match="a path or a writable binary file object"):
        open_sink(target)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"codec": "rar"}, "codec must be one of gz, bz2, xz, zst, not 'rar'"),
        ({"blocked": True}, "blocked=True is a way of writing gz"),
        ({"codec": "zst", "blocked": True}, "blocked=True is a way of writing gz"),
        ({"codec": None, "blocked": True}, "blocked=True is a way of writing gz"),
    ],
)
def test_a_wrong_choice_leaves_nothing(
    options: dict[str, Any], message: str, tmp_path: Path
) -> None:
    with pytest.raises(ValueError, match=message):
        open_sink(tmp_path / "a.idx", **options)
    assert os.listdir(tmp_path) == []


def test_a_folder_and_a_missing_folder_are_the_systems_errors(tmp_path: Path) -> None:
    with pytest.raises(IsADirectoryError, match="give a file name in it"):
        open_sink(tmp_path)
    with pytest.raises(FileNotFoundError) as caught:
        open_sink(tmp_path / "none" / "a.idx")
    assert caught.value.filename == str(tmp_path / "none" / "a.idx")
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("folder", ["new/", "memory://b/new/", "s3://b/", "file:///new/"])
def test_what_ends_as_a_folder_does_is_no_file(
    folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for options in ({}, {"shards": 2}):
        with pytest.raises(IsADirectoryError, match="give a file name in it"):
            idxfile.concat(folder, [idxfile.encode([1, 2], cast="safe")], **options)
    assert os.listdir(tmp_path) == []


def test_a_device_is_written_as_it_stands() -> None:
    written("/dev/null")
    assert not os.path.isfile("/dev/null")


# Nothing before the end, nothing after giving up


@pytest.mark.parametrize("options", WAYS, ids=str)
def test_the_old_file_stands_until_the_end(options: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "a.idx"
    path.write_bytes(b"old")
    sink = open_sink(path, **options)
    sink.write(NOISE)
    assert path.read_bytes() == b"old"
    sink.commit()
    assert DECOMPRESS[options["codec"]](path.read_bytes()) == NOISE


@pytest.mark.parametrize("options", WAYS, ids=str)
@pytest.mark.parametrize("old", [None, b"old"])
def test_giving_up_leaves_what_was_there(
    options: dict[str, Any], old: bytes | None, tmp_path: Path
) -> None:
    path = tmp_path / "a.idx"
    if old is not None:
        path.write_bytes(old)
    sink = open_sink(path, **options)
    sink.write(NOISE)
    sink.abort()
    sink.abort()
    assert (path.read_bytes() if path.exists() else None) == old
    assert len(os.listdir(tmp_path)) == (old is not None)


def test_giving_up_after_the_end_takes_nothing_back(tmp_path: Path) -> None:
    sink = open_sink(tmp_path / "a.idx")
    sink.write(NOISE)
    sink.commit()
    sink.abort()
    assert (tmp_path / "a.idx").read_bytes() == NOISE


# Written over


@pytest.mark.parametrize("kind", ["path", "file", "object"])
def test_what_was_written_can_be_patched(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "a.idx"
    with open(tmp_path / "b.idx", "w+b") as file:
        target: Any = {"path": path, "file": file, "object": io.BytesIO()}[kind]
        sink = open_sink(target)
        assert sink.patchable
        sink.write(b"0123456789")
        sink.patch(4, b"four")
        sink.write(b"ab")
        sink.commit()
        if kind != "path":
            target.seek(0)
        assert (path.read_bytes() if kind == "path" else target.read()) == b"0123four89ab"


@pytest.mark.parametrize("options", WAYS[1:], ids=str)
def test_what_is_compressed_cannot(options: dict[str, Any], tmp_path: Path) -> None:
    sink = open_sink(tmp_path / "a.idx", **options)
    assert not sink.patchable
    with pytest.raises(ValueError, match="what was written cannot be changed"):
        sink.patch(4, b"four")
    sink.abort()


# File objects


def test_a_file_object_is_written_from_its_position_and_left_open() -> None:
    file = io.BytesIO(b"before and after")
    file.seek(7)
    sink = open_sink(file)
    sink.write(b"123")
    sink.patch(0, b"x")
    sink.write(b"45")
    sink.commit()
    assert file.getvalue() == b"before x2345fter"
    assert not file.closed


class Writer:
    """An object with nothing but `write`, which takes or tells what it likes."""

    def __init__(self, take: Callable[[int], int], tell: Callable[[int], Any]) -> None:
        self.data = bytearray()
        self._take, self._tell = take, tell

    def write(self, data: Any) -> Any:
        taken = self._take(len(data))
        self.data += data[:taken]
        return self._tell(taken)


@pytest.mark.parametrize(
    "writer",
    [
        Writer(lambda n: n, lambda taken: taken),
        Writer(lambda n: n, lambda taken: None),
        Writer(lambda n: (n + 1) // 2, lambda taken: taken),
        Writer(lambda n: min(n, 999), lambda taken: taken),
    ],
)
def test_a_writer_may_take_less_than_it_was_given_or_not_say(writer: Writer) -> None:
    written(writer)
    assert writer.data == NOISE
    assert not open_sink(writer).patchable


class Flushed(io.BytesIO):
    flushes = 0

    def flush(self) -> None:
        self.flushes += 1


def test_a_file_object_is_flushed_at_the_end() -> None:
    file = Flushed()
    written(file)
    assert file.flushes == 1


# Many small members


def members(data: bytes) -> list[bytes]:
    """A blocked gzip, cut by the length that each member says of itself."""
    found, at = [], 0
    while at < len(data):
        length = struct.unpack_from("<H", data, at + 16)[0] + 1
        found.append(data[at : at + length])
        at += length
    return found


@pytest.mark.parametrize("size", [0, 1, BLOCK_NBYTES - 1, BLOCK_NBYTES, BLOCK_NBYTES + 1, 300_000])
def test_a_blocked_file_is_members_of_one_size_and_an_empty_one(size: int) -> None:
    file = io.BytesIO()
    written(file, NOISE[:size], codec="gz", blocked=True)
    contents = [gzip.decompress(member) for member in members(file.getvalue())]
    assert [len(content) for content in contents[:-2]] == [BLOCK_NBYTES] * (len(contents) - 2)
    assert contents[-1] == b""
    assert all(contents[:-1])
    assert b"".join(contents) == NOISE[:size]


def test_the_pieces_that_come_do_not_show_in_a_blocked_file() -> None:
    whole, pieces = io.BytesIO(), io.BytesIO()
    written(whole, codec="gz", blocked=True)
    sink = open_sink(pieces, codec="gz", blocked=True)
    for start in range(0, len(NOISE), 7777):
        sink.write(NOISE[start : start + 7777])
    sink.commit()
    assert pieces.getvalue() == whole.getvalue()


@pytest.mark.parametrize("name", COMPRESS)
def test_a_compressed_file_is_one_member_and_the_same_every_time(name: str) -> None:
    files = [io.BytesIO(), io.BytesIO()]
    for file in files:
        written(file, codec=name)
    assert files[0].getvalue() == files[1].getvalue()
    source = open_source(files[0].getvalue())
    source.read_at(0, 400_000)
    assert source.stream.members == 1


# Other things that appear whole or not at all


def put(path: str) -> None:
    Path(path).write_bytes(NOISE)


def put_in(folder: str) -> None:
    put(os.path.join(folder, "inner"))


@pytest.mark.parametrize("old", [None, b"old"])
def test_a_writer_that_wants_a_name_gets_a_temporary_one(old: bytes | None, tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    if old is not None:
        path.write_bytes(old)
        path.chmod(0o640)
    with atomic_file(str(path)) as temporary:
        assert temporary.endswith(".npz")
        put(temporary)
        assert (path.read_bytes() if path.exists() else None) == old
    assert path.read_bytes() == NOISE
    assert old is None or path.stat().st_mode & 0o777 == 0o640
    assert os.listdir(tmp_path) == ["a.npz"]


@pytest.mark.parametrize("old", [False, True])
def test_a_folder_is_filled_aside_and_takes_its_place_at_the_end(old: bool, tmp_path: Path) -> None:
    folder = tmp_path / "new" / "pictures"
    if old:
        folder.mkdir(parents=True)
        (folder / "old").write_bytes(b"old")
    with atomic_folder(str(folder)) as temporary:
        put_in(temporary)
        assert folder.exists() == old
    assert os.listdir(folder) == ["inner"]
    assert os.listdir(folder.parent) == ["pictures"]


@pytest.mark.parametrize(("make", "work"), [(atomic_file, put), (atomic_folder, put_in)])
@pytest.mark.parametrize("written", [False, True])
def test_an_error_inside_leaves_what_was_there(
    make: Any, work: Callable[[str], None], written: bool, tmp_path: Path
) -> None:
    path = tmp_path / "a"
    if make is atomic_file:
        path.write_bytes(b"old")
    else:
        path.mkdir()
    with pytest.raises(ZeroDivisionError), make(str(path)) as temporary:
        if written:
            work(temporary)
        _ = 1 // 0
    assert os.listdir(tmp_path) == ["a"]
    assert (path.read_bytes() == b"old") if path.is_file() else (os.listdir(path) == [])


def test_a_small_file_is_written_as_it_is_whatever_its_name(tmp_path: Path) -> None:
    write_whole(str(tmp_path / "a.gz"), b"text")
    write_whole(str(tmp_path / "a.gz"), b"other")
    assert (tmp_path / "a.gz").read_bytes() == b"other"
    assert os.listdir(tmp_path) == ["a.gz"]
