"""Where bytes come from: every kind of `file` gives the same bytes, by range, to many at once."""

from __future__ import annotations

import contextlib
import gzip
import io
import os
import random
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from conftest import (
    COMPRESS,
    KINDS,
    PACKINGS,
    SEEKABLE,
    SOURCE,
    STREAMS,
    OnlyRead,
    Places,
    ShortReads,
)
from idxfile.codecs import blocked_member
from idxfile.errors import FormatError, IdxError, UnsupportedError
from idxfile.source import InOrder, Spool, header_prefix, open_outer_source, open_source, pieces
from idxfile.source.local import reserve
from idxfile.source.locking import Lock
from idxfile.source.places import beside, public
from idxfile.source.seeking import GzipMembers

NOISE = random.Random(3).randbytes(5000)
RANGES = [(0, 0), (0, 1), (5, 9), (0, 1024), (1000, 1100), (4990, 5000), (4990, 6000), (6000, 7000)]


@pytest.fixture(params=["in memory", "in a file"])
def spool_nbytes(request: pytest.FixtureRequest) -> int:
    """How much of a stream stays in memory: all of it, or nothing."""
    return 1 << 28 if request.param == "in memory" else 0


# Addresses

ADDRESSES = {
    "https://me:pw@h/d/x?sig=1#f": ("https://h/d/x", "https://me:pw@h/d/z?sig=1#f"),
    "simplecache::https://me:pw@h/x?sig=1": (
        "simplecache::https://h/x",
        "simplecache::https://me:pw@h/z?sig=1",
    ),
    "simplecache::s3://b/x#1": ("simplecache::s3://b/x#1", "simplecache::s3://b/z"),
    "s3://b/a?1/x?2\n": ("s3://b/a?1/x?2\n", "s3://b/a?1/z"),
    "s3://b/x?sig=abc": ("s3://b/x?…", "s3://b/z"),
    "abfs://c:pw@host/x?1": ("abfs://c@host/x?1", "abfs://c:pw@host/z"),
    "memory:///d/x": ("memory:///d/x", "memory:///d/z"),
    "s3://b": ("s3://b", "s3://b/z"),
}


@pytest.mark.parametrize("url", ADDRESSES)
def test_an_address_is_shown_without_secrets_and_has_neighbours(url: str) -> None:
    assert (public(url), beside(url, "z")) == ADDRESSES[url]


# The same bytes of everything


@pytest.mark.parametrize("mmap", [True, False])
def test_any_range_of_any_kind_of_file(file_of: Callable[[bytes], Any], mmap: bool) -> None:
    source = open_source(file_of(NOISE), mmap=mmap)
    for start, stop in RANGES:
        assert source.read_at(start, stop) == NOISE[start:stop]
        buffer = bytearray(b"?" * (stop - start))
        count = source.readinto_at(start, buffer)
        assert buffer[:count] == NOISE[start:stop]
        assert buffer[count:] == b"?" * (stop - start - count)
    assert source.size == len(NOISE)
    assert source.problems == []
    assert source.buffer is None or bytes(source.buffer) == NOISE
    source.close()


def test_the_first_kilobyte_alone(file_of: Callable[[bytes], Any]) -> None:
    source = open_source(file_of(NOISE))
    assert header_prefix(source) == NOISE[:1024]
    source.close()


@pytest.mark.parametrize("data", [b"", b"7", NOISE[:1023], NOISE[:1024], NOISE[:1025]])
def test_files_about_as_long_as_a_header(file_of: Callable[[bytes], Any], data: bytes) -> None:
    source = open_source(file_of(data))
    assert header_prefix(source) == data[:1024]
    assert source.read_at(0, 5000) == data
    assert source.size == len(data)
    source.close()


def test_all_bytes_in_order(file_of: Callable[[bytes], Any]) -> None:
    source = open_source(file_of(NOISE))
    header_prefix(source)
    found = [bytes(piece) for piece in pieces(source, 700)]
    assert all(0 < len(piece) <= 700 for piece in found)
    assert b"".join(found) == NOISE
    source.close()


@pytest.mark.parametrize("packing", PACKINGS)
def test_the_compressions_are_named_from_the_outermost_on(packing: str) -> None:
    source = open_source(PACKINGS[packing](NOISE))
    words = [word for word in packing.split() if word in COMPRESS]
    assert source.codecs == tuple(reversed(words))


@pytest.mark.parametrize("kind", [*SEEKABLE, *STREAMS])
def test_what_is_not_compressed_has_no_codecs(kind: str, places: Places) -> None:
    source = open_source(KINDS[kind](places, NOISE))
    assert source.codecs == ()
    source.close()


def test_a_length_is_known_at_once_where_it_can_be(file_of: Callable[[bytes], Any]) -> None:
    source = open_source(file_of(NOISE))
    assert source.size == (None if isinstance(source, Spool) else len(NOISE))
    source.close()


# Names


@pytest.mark.parametrize("packing", ["raw", "gz", "gz in gz"])
def test_a_source_has_the_name_that_the_user_gave(packing: str, places: Places) -> None:
    data = NOISE if packing == "raw" else PACKINGS[packing](NOISE)
    path = places.path(data)
    opened = places.file(data)
    for file, name in ((path, path), (Path(path), path), (opened, opened.name)):
        source = open_source(file)
        assert source.name == name
        source.close()


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (lambda: b"7", "<bytes>"),
        (lambda: io.BytesIO(b"7"), "<BytesIO>"),
        (lambda: OnlyRead(b"7"), "<OnlyRead>"),
    ],
)
def test_what_has_no_name_is_called_by_its_kind(make: Callable[[], Any], name: str) -> None:
    assert open_source(make()).name == name


def test_a_file_object_may_be_named_by_its_number(places: Places) -> None:
    with os.fdopen(os.open(places.path(NOISE), os.O_RDONLY), "rb") as file:
        assert open_source(file).name == "<BufferedReader>"


def test_a_name_may_be_any_bytes(tmp_path: Path) -> None:
    path = os.path.join(os.fsencode(tmp_path), b"gr\xfc\xdfe.idx")
    with open(path, "wb") as file:
        file.write(NOISE)
    with_surrogates = os.fsdecode(path)
    source = open_source(with_surrogates)
    assert source.read_at(0, 9) == NOISE[:9]
    source.close()


# What is none


@pytest.mark.parametrize("file", [None, 5, True, 1.5, {}, print, [5], [None]])
def test_what_is_no_file_is_a_type_error(file: Any) -> None:
    with pytest.raises(TypeError):
        open_source(file)


class TextWithoutBase:
    def read(self, count: int = -1) -> str:
        return "text"


def test_text_mode_is_named(places: Places) -> None:
    opened = places.opened(io.TextIOWrapper(places.file(b"text")))
    with tempfile.NamedTemporaryFile("w+", dir=places.folder) as wrapped:
        wrapped.write("text")
        wrapped.seek(0)
        for file in (opened, io.StringIO("text"), TextWithoutBase(), wrapped):
            with pytest.raises(TypeError, match="open it with 'rb'"):
                open_source(file).read_at(0, 1)


def test_a_missing_file_and_a_folder_are_the_systems_errors(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError) as missing:
        open_source(tmp_path / "none.idx")
    assert missing.value.filename == str(tmp_path / "none.idx")
    with pytest.raises(IsADirectoryError, match="give one of the files in it") as folder:
        open_source(tmp_path)
    assert folder.value.filename == str(tmp_path)


@pytest.mark.parametrize("url", ["nosuch://example.org/a.gz", "no.such://b/a"])
def test_a_place_that_cannot_be_opened_is_named(url: str) -> None:
    with pytest.raises(UnsupportedError, match=f"{url[:3]}.*:// is not among the places"):
        open_source(url)


def test_a_path_with_slashes_is_no_url(tmp_path: Path) -> None:
    folder = tmp_path / "c:"
    folder.mkdir()
    (folder / "a").write_bytes(NOISE)
    source = open_source(f"{tmp_path}/c://a")
    assert source.size == len(NOISE)
    source.close()


def test_a_stream_that_does_not_block_is_not_taken_for_its_end() -> None:
    near, far = socket.socketpair()
    with near, far:
        near.setblocking(False)
        far.sendall(NOISE[:100])
        with near.makefile("rb", buffering=0) as stream, pytest.raises(BlockingIOError):
            open_source(stream)


def test_only_so_many_compressions_are_taken_off() -> None:
    data = NOISE
    for _ in range(4):
        data = gzip.compress(data)
    assert open_source(data).codecs == ("gz",) * 4
    with pytest.raises(FormatError, match="compressed more than 4 times: gz in gz in gz in gz"):
        open_source(gzip.compress(data))


# Nothing is read, kept or changed beyond need


class Counted(io.BytesIO):
    """Counts the bytes that were read."""

    count = 0

    def readinto(self, buffer: Any) -> int:
        count = super().readinto(buffer)
        self.count += count
        return count


def test_opening_reads_the_beginning_alone() -> None:
    raw = Counted(bytes(10_000_000))
    header_prefix(open_source(raw))
    assert raw.count < 3000
    packed = Counted(gzip.compress(random.Random(4).randbytes(3_000_000), 1))
    header_prefix(open_source(packed))
    assert packed.count < 600_000


def test_a_stream_is_read_no_further_than_one_byte_behind_the_limit(spool_nbytes: int) -> None:
    stream = ShortReads(NOISE, seekable=False)
    source = open_source(stream, spool_nbytes=spool_nbytes)
    source.limit = 3000
    assert source.buffer == NOISE[:3001]
    assert source.size == 3001
    assert stream.read(1) == NOISE[3001:3002]


@pytest.mark.parametrize("kind", list(KINDS))
def test_a_spool_in_a_file_gives_the_same(kind: str, places: Places) -> None:
    source = open_source(KINDS[kind](places, NOISE), spool_nbytes=0)
    assert source.read_at(1000, 5000) == NOISE[1000:]
    source.close()


def test_a_file_object_is_given_back_open_and_bytes_unchanged(places: Places) -> None:
    data = bytearray(NOISE)
    file = places.file(NOISE)
    stream = ShortReads(NOISE, seekable=False)
    for given in (data, file, stream, memoryview(data)):
        source = open_source(given)
        source.read_at(0, 5000)
        source.close()
    assert data == NOISE
    assert not file.closed
    assert not stream.closed
    del given, source
    data.clear()  # nobody holds it any more


@pytest.mark.parametrize("kind", ["str", "bytes", "gz", "gz in gz", "zst bytes"])
def test_after_close_there_is_nothing_to_read(kind: str, places: Places) -> None:
    source = open_source(KINDS[kind](places, NOISE), mmap=False)
    source.close()
    source.close()
    if not isinstance(source, Spool):
        with pytest.raises(ValueError, match="is closed"):
            source.read_at(0, 1)
        with pytest.raises(ValueError, match="is closed"):
            source.readinto_at(0, bytearray(1))


@pytest.mark.parametrize("kind", ["str", "gz", "gz in gz", "bz2", "fifo"])
def test_no_file_stays_open(kind: str, places: Places) -> None:
    path = KINDS[kind](places, NOISE)
    before = len(os.listdir("/proc/self/fd"))
    for spool_nbytes in (0, 1 << 28)[: 1 if kind == "fifo" else 2]:
        source = open_source(path, spool_nbytes=spool_nbytes)
        source.read_at(0, 5000)
        source.close()
    for wrong in (places.folder / "none", places.folder):
        with pytest.raises(OSError):
            open_source(wrong)
    with pytest.raises(FormatError):
        open_source(places.path(nested(5)))
    del source
    after = len(os.listdir("/proc/self/fd"))
    assert after <= before


def nested(layers: int) -> bytes:
    data = NOISE
    for _ in range(layers):
        data = gzip.compress(data)
    return data


def test_a_forgotten_source_closes_its_file(places: Places) -> None:
    path = places.path(NOISE)
    before = len(os.listdir("/proc/self/fd"))
    open_source(path).read_at(0, 1)
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_view_outlives_its_source(places: Places) -> None:
    for file in (places.path(NOISE), places.path(gzip.compress(NOISE)), NOISE):
        source = open_source(file)
        view = source.buffer
        source.close()
        assert view == NOISE


def test_writing_into_a_map_changes_no_file(places: Places) -> None:
    path = places.path(NOISE)
    source = open_source(path)
    np.frombuffer(source.buffer, "uint8")[:] = 0
    assert Path(path).read_bytes() == NOISE
    source.close()


def test_a_file_is_written_in_place_only_when_that_was_asked_for(places: Places) -> None:
    path = places.path(NOISE)
    source = open_source(path)
    with pytest.raises(OSError):
        source.write_at(0, b"x")
    source.close()
    source = open_source(path, writeable=True)
    source.write_at(10, b"written")
    source.sync()
    assert source.read_at(8, 19) == NOISE[8:10] + b"written" + NOISE[17:19]
    source.close()
    assert Path(path).read_bytes() == NOISE[:10] + b"written" + NOISE[17:]


# What is found wrong on the way


def damaged(data: bytes) -> bytes:
    return data[:-7] + bytes([data[-7] ^ 1]) + data[-6:]


@pytest.mark.parametrize(
    ("file", "codes"),
    [
        (gzip.compress(NOISE) + b"junk", ["stream-junk"]),
        (gzip.compress(gzip.compress(NOISE) + b"junk") + b"junk", ["stream-junk", "stream-junk"]),
        (gzip.compress(NOISE)[:-1], ["stream-truncated"]),
        (damaged(gzip.compress(NOISE)), ["stream-checksum"]),
        (gzip.compress(NOISE)[:2000], ["stream-truncated"]),
        (gzip.compress(gzip.compress(NOISE)[:2000]), ["stream-truncated"]),
        (gzip.compress(gzip.compress(NOISE))[:2000], ["stream-truncated", "stream-truncated"]),
        (damaged(gzip.compress(gzip.compress(NOISE))), ["stream-checksum"]),
    ],
)
def test_what_is_wrong_in_any_layer_is_told(
    file: bytes, codes: list[str], spool_nbytes: int
) -> None:
    source = open_source(file, spool_nbytes=spool_nbytes)
    source.read_at(0, 6000)
    assert [problem.code for problem in source.problems] == codes


# Many at once


@pytest.mark.parametrize("mmap", [True, False])
def test_many_threads_read_one_source(file_of: Callable[[bytes], Any], mmap: bool) -> None:
    source = open_source(file_of(NOISE), mmap=mmap)
    start_together = threading.Barrier(4)

    def read(seed: int) -> bool:
        numbers = random.Random(seed)
        start_together.wait()
        for _ in range(60):
            start = numbers.randrange(5000)
            stop = start + numbers.randrange(300)
            if source.read_at(start, stop) != NOISE[start:stop]:
                return False
        return True

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(4) as pool:
            assert all(pool.map(read, range(4)))
    finally:
        sys.setswitchinterval(interval)
    source.close()


# In order


def test_the_bytes_in_order_are_not_disturbed_by_the_first_look() -> None:
    for file in (NOISE, gzip.compress(NOISE), ShortReads(NOISE, seekable=False)):
        source = open_source(file)
        header_prefix(source)
        stream = InOrder(source)
        assert stream.read(3) == NOISE[:3]
        assert b"".join(iter(lambda: stream.read(900), b"")) == NOISE[3:]  # noqa: B023


# Memory


def test_memory_is_reserved_without_being_taken() -> None:
    memory = reserve(1 << 40)
    memory[1 << 39] = 7
    assert memory[(1 << 39) - 1 : (1 << 39) + 2] == b"\0\7\0"
    memory.close()


@pytest.mark.parametrize("nbytes", [1 << 60, 1 << 70])
def test_more_memory_than_a_machine_can_address_is_a_memory_error(nbytes: int) -> None:
    with pytest.raises(MemoryError, match=f"{nbytes:,} bytes do not fit"):
        reserve(nbytes)


# Reading that began and did not end


MUCH = random.Random(5).randbytes(1_500_000)
PACKED: dict[str, Callable[[bytes], bytes]] = {
    **COMPRESS,
    "blocked": lambda data: b"".join(
        blocked_member(data[at : at + 50_000]) for at in range(0, len(data), 50_000)
    ),
    "frames": lambda data: b"".join(
        COMPRESS["zst"](data[at : at + 200_000]) for at in range(0, len(data), 200_000)
    ),
    "gz in gz": lambda data: gzip.compress(gzip.compress(data, 1), 1),
}


class Interrupted(io.BytesIO):
    """A file whose reading is interrupted, once."""

    calls_left = 0
    """The last of so many calls is; none for 0."""
    is_seekable = True

    def seekable(self) -> bool:
        return self.is_seekable

    def readinto(self, buffer: Any) -> int:
        self.calls_left -= 1
        if not self.calls_left:
            raise KeyboardInterrupt
        return super().readinto(buffer)


def take_by(verb: str, source: Spool) -> bytes:
    """All content, by one of the ways to have it."""
    if verb == "pieces":
        return b"".join(map(bytes, pieces(source)))
    if verb == "load":
        return bytes(source.buffer)
    buffer = bytearray(len(MUCH) + 1)
    return bytes(buffer[: InOrder(source).readinto(buffer)])


@pytest.mark.parametrize("verb", ["load", "in order", "pieces"])
@pytest.mark.parametrize("packing", list(PACKED))
def test_what_was_interrupted_is_read_anew(packing: str, verb: str, spool_nbytes: int) -> None:
    file = Interrupted(b"before" + PACKED[packing](MUCH))
    file.seek(6)
    source = open_source(file, spool_nbytes=spool_nbytes)
    source.limit = len(MUCH)
    header_prefix(source)
    file.calls_left = 2
    with pytest.raises(KeyboardInterrupt):
        take_by(verb, source)
    for _ in range(2):
        assert take_by(verb, source) == MUCH
        assert source.problems == []


@pytest.mark.parametrize("packing", list(PACKED))
def test_readers_in_order_do_not_disturb_each_other(packing: str) -> None:
    """Each of several, and whoever has all of it kept meanwhile, has a stream of its own."""
    source = open_source(PACKED[packing](MUCH))
    source.limit = len(MUCH)
    streams, found = [InOrder(source) for _ in range(3)], [bytearray() for _ in range(3)]
    for turn in range(9):
        for number, (stream, have) in enumerate(zip(streams, found, strict=True)):
            have += stream.read(500) if turn == number else stream.read(50_000)
        if turn == 4:
            assert source.read_at(5000, 5100) == MUCH[5000:5100]
    for stream, have in zip(streams, found, strict=True):
        while piece := stream.read(1 << 20):
            have += piece
        assert have == MUCH
        assert stream.problems == []


def test_what_is_wrong_is_told_to_the_reader_that_came_by_it() -> None:
    packed = gzip.compress(gzip.compress(MUCH)) + b"junk"
    source = open_source(packed)
    first, second = InOrder(source), InOrder(source)
    while first.read(1 << 20):
        pass
    second.read(5000)
    second.read(5000)
    assert [problem.code for problem in first.problems] == ["stream-junk"]
    assert second.problems == []


def test_a_full_disk_is_no_fault_of_the_file(monkeypatch: pytest.MonkeyPatch) -> None:
    source = open_source(PACKED["blocked"](MUCH), spool_nbytes=0)
    source.limit = len(MUCH)

    def full(*_: Any) -> Any:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch, pytest.raises(OSError, match="No space left"):
        patch.setattr("idxfile.source.stream.map_private", full)
        source.load()
    assert bytes(source.buffer) == MUCH
    assert source.problems == []


@pytest.mark.parametrize("packing", ["none", "gz", "gz in gz"])
def test_a_stream_that_was_interrupted_is_to_be_opened_again(packing: str) -> None:
    file = Interrupted(PACKED.get(packing, bytes)(MUCH))
    file.is_seekable = False
    source = open_source(file)
    source.limit = len(MUCH)
    header_prefix(source)
    file.calls_left = 2
    with pytest.raises(KeyboardInterrupt):
        source.load()
    for _ in range(2):
        with pytest.raises(IdxError, match=r"reading was interrupted.*\nhint: open it again"):
            source.load()
    assert source.problems == []


def test_locks_of_sources_are_free_in_a_forked_process() -> None:
    told = {"locking.py", "pool.py"}  # the latter for a single call
    files = sorted((SOURCE / "source").rglob("*.py"))
    bare = {file.name for file in files if "threading.Lock" in file.read_text(encoding="utf-8")}
    assert bare == told
    lock = Lock()
    with lock:
        child = os.fork()
        if not child:
            taken = threading.Thread(target=lock.__enter__, daemon=True)
            taken.start()
            taken.join(10)
            os._exit(taken.is_alive())
        assert os.waitpid(child, 0)[1] == 0


FORKED = """
import io, os, sys, threading
import idxfile

class Slow(io.BytesIO):
    calls = 0
    def readinto(self, buffer):
        self.calls += 1
        if self.calls > 4 and os.getpid() == parent:
            reading.set()
            go_on.wait()
        return super().readinto(buffer)

parent, reading, go_on = os.getpid(), threading.Event(), threading.Event()
array = __import__("numpy").random.default_rng(0).integers(0, 256, (3000, 500), "uint8")
packing, several = sys.argv[1], sys.argv[2] == "shards"
if packing == "blocked":
    idxfile.write("x.idx.gz", array, blocked=True)
else:
    idxfile.write("x.idx." + packing, array)
data = open("x.idx." + packing.replace("blocked", "gz"), "rb").read()
x = idxfile.open([Slow(data), Slow(data)] if several else Slow(data))
thread = threading.Thread(target=lambda: x[7:2000])
thread.start()
reading.wait()
child = os.fork()
if not child:
    os._exit(0 if (x[5:2999] == array[5:2999]).all() else 3)
status = os.waitpid(child, 0)[1]
go_on.set()
thread.join()
assert (x[5:2999] == array[5:2999]).all()
sys.exit(os.waitstatus_to_exitcode(status))
"""


@pytest.mark.parametrize("kind", ["file", "shards"])
@pytest.mark.parametrize("packing", ["gz", "blocked", "zst"])
def test_a_forked_process_waits_for_no_thread_that_did_not_come_along(
    packing: str, kind: str, tmp_path: Path
) -> None:
    command = [sys.executable, "-c", FORKED, packing, kind]
    with subprocess.Popen(command, cwd=tmp_path, start_new_session=True) as process:
        try:
            assert process.wait(30) == 0
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


def test_a_hop_that_was_interrupted_leaves_no_member_behind() -> None:
    outer = open_outer_source(PACKED["blocked"](MUCH))
    members = GzipMembers(outer, len(MUCH))
    right = members.find(120_000)
    members = GzipMembers(outer, len(MUCH))
    first = members.find(0)
    members._packed.append(first.packed_stop + 50_000)  # what the member holds was not added
    assert members.find(120_000) == right
