"""What is read from front to back is on its way before it is asked for.

Nothing here goes by the clock: the server answers a request when those that were to be on their way
with it have come, and tells when it waited for them in vain.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from range_server import RangeServer

import idxfile
from conftest import idx_bytes
from idxfile import FetchError, FormatError, batching
from idxfile.items import Items
from idxfile.source import ahead
from idxfile.source.ahead import Ahead
from idxfile.source.remote import faults, object, ranges

PIECE = 1 << 14
IMAGES = np.random.default_rng(7).integers(0, 256, (600, 28, 28), np.uint8)
LABELS = np.arange(600, dtype=np.uint8) % 10
FILES = {
    "images.idx": idx_bytes(IMAGES),
    "images.idx.gz": idxfile.encode(IMAGES, codec="gz"),
    "mnist/train-images-idx3-ubyte": idx_bytes(IMAGES),
    "mnist/train-labels-idx1-ubyte": idx_bytes(LABELS),
}


class Gate:
    """Answers the piece of a number when as many have come as were to be on their way by then."""

    def __init__(self, nbytes: int, wanted: Callable[[int], int]) -> None:
        self._count = -(-(nbytes - 1024) // PIECE)
        self._wanted = wanted
        self._arrived: set[int] = set()
        self._changed = threading.Condition()
        self.late: list[int] = []
        """Pieces whose companions did not come."""

    def __call__(self, start: int) -> None:
        number = (start - 1024) // PIECE
        with self._changed:
            self._arrived.add(start)
            self._changed.notify_all()
            wanted = min(self._count, self._wanted(number))
            if not self._changed.wait_for(lambda: self.late or len(self._arrived) >= wanted, 5):
                self.late.append(number)
                self._changed.notify_all()


def several(number: int) -> int:
    """How many pieces were sent for when the piece of a number is taken, from front to back."""
    return number + min(2 + number, ahead.AT_ONCE)


@pytest.fixture(autouse=True)
def _small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("FIRST_NBYTES", "PIECE_NBYTES"):
        monkeypatch.setattr(ahead, name, PIECE)
    limits = faults.Limits(connect_seconds=2, stall_seconds=9, attempts=3, first_pause_seconds=0.01)
    monkeypatch.setattr(faults, "LIMITS", limits)


@pytest.fixture(name="server")
def server_fixture() -> Iterator[RangeServer]:
    with RangeServer(FILES) as server:
        yield server
    assert not [t for t in threading.enumerate() if t.name.startswith("idxfile-waiting")]


def blocks_of_items(url: str, _: Path) -> None:
    """A data set's view, of all and of the items from the third on."""
    with idxfile.open(url) as x:
        assert np.array_equal(np.concatenate(list(Items([x]).blocks(block_nbytes=9000))), IMAGES)


def chosen_items(url: str, _: Path) -> None:
    """Most of the items of a file, and a run of them."""
    with idxfile.open(url) as x:
        for index in (np.flatnonzero(LABELS % 5), np.arange(100, 500)):
            blocks = Items([x]).choose(index).blocks(block_nbytes=PIECE)
            assert np.array_equal(np.concatenate(list(blocks)), IMAGES[index])


def blocks_of_a_slab(url: str, _: Path) -> None:
    with idxfile.open(url) as x:
        (slab,) = idxfile.plan(x)
        assert np.array_equal(np.concatenate(list(slab.blocks(block_nbytes=9000))), IMAGES)


def joined(url: str, folder: Path) -> None:
    idxfile.concat(folder / "joined.idx", [url])
    assert (folder / "joined.idx").read_bytes() == FILES["images.idx"]


def converted(url: str, folder: Path) -> None:
    idxfile.convert(url, folder / "images.npy")
    assert np.array_equal(np.load(folder / "images.npy"), IMAGES)


READERS: dict[str, Callable[[str, Path], Any]] = {
    "check": lambda url, _: idxfile.check(url).problems == [] or pytest.fail("a problem"),
    "diff": lambda url, _: idxfile.diff(url, FILES["images.idx"]).equal or pytest.fail("differs"),
    "stats": lambda url, _: idxfile.stats(url),
    "concat": joined,
    "convert": converted,
    "items": blocks_of_items,
    "slab": blocks_of_a_slab,
}


@pytest.mark.parametrize("reader", READERS)
def test_whoever_reads_on_does_not_wait_for_each_request(
    server: RangeServer, reader: str, tmp_path: Path
) -> None:
    server.gate = gate = Gate(len(FILES["images.idx"]), several)
    READERS[reader](server.at("gated"), tmp_path)
    assert gate.late == []


def test_blocks_of_chosen_items_are_gathered_ahead(server: RangeServer, tmp_path: Path) -> None:
    server.gate = gate = Gate(len(FILES["images.idx"]), lambda _: 2)
    chosen_items(server.at("gated"), tmp_path)
    assert gate.late == []


def test_a_set_of_shards_is_read_on(server: RangeServer) -> None:
    server.files = {f"{n}.idx": idx_bytes(IMAGES[300 * n : 300 * n + 300]) for n in range(2)}
    server.gate = gate = Gate(len(FILES["images.idx"]), lambda _: 2)
    with idxfile.open([server.at("gated", f"{n}.idx") for n in range(2)]) as x:
        assert np.array_equal(np.concatenate(list(x.blocks(block_nbytes=9000))), IMAGES)
    assert gate.late == []


def test_so_is_what_is_inflated(server: RangeServer) -> None:
    server.gate = gate = Gate(len(FILES["images.idx.gz"]), several)
    assert np.array_equal(idxfile.read(server.at("gated", "images.idx.gz")), IMAGES)
    assert gate.late == []
    starts = sorted(int((asked or "=0-")[6:].partition("-")[0]) for _, asked in server.requests)
    assert len(set(starts)) == len(starts), "no byte is fetched twice"


def test_a_pool_of_runs_is_asked_for_at_once(
    server: RangeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`shuffle="blocks"`: the runs of a pool lie anywhere."""
    monkeypatch.setattr(batching, "RUN_NBYTES", PIECE)
    monkeypatch.setattr(ranges, "PIECE_NBYTES", PIECE)
    server.gate = gate = Gate(1 << 30, lambda _: object.REQUESTS_AT_ONCE)
    with idxfile.open_dataset(server.at("gated", "mnist/train-images-idx3-ubyte")) as ds:
        server.requests.clear()
        seen = np.concatenate([y for _, y in ds.batches(50, shuffle="blocks", seed=3)])
    assert np.array_equal(np.bincount(seen), np.bincount(LABELS))
    assert gate.late == []


# Ends


def test_no_more_is_asked_for_than_is_near(server: RangeServer) -> None:
    """Who ends early leaves neither threads nor many requests behind."""
    with idxfile.open(server.at("ok")) as x:
        blocks = x.blocks(block_nbytes=5000)
        assert np.array_equal(next(blocks), IMAGES[:6])
        blocks.close()
        assert len(server.requests) <= 1 + 1 + 3
        assert np.array_equal(x[599], IMAGES[599])


def test_to_close_the_array_ends_who_reads(server: RangeServer) -> None:
    x = idxfile.open(server.at("ok"))
    blocks = x.blocks(block_nbytes=5000)
    next(blocks)
    x.close()
    with pytest.raises(ValueError, match="closed"):
        list(blocks)


def test_to_close_the_array_while_another_thread_waits(server: RangeServer) -> None:
    asked, answer, errors = threading.Event(), threading.Event(), []

    def silent(start: int) -> None:
        asked.set()
        answer.wait(8)

    def read() -> None:
        try:
            list(x.blocks(block_nbytes=5000))
        except ValueError as error:
            errors.append(str(error))

    server.gate = silent
    x = idxfile.open(server.at("gated"))
    remote = x._source._remote
    thread = threading.Thread(target=read)
    thread.start()
    try:
        assert asked.wait(8)
        x.close()
        assert x._source._remote is None
        assert remote._client._idle == []
    finally:
        answer.set()
        thread.join()
    assert errors == [f"{server.at('gated')} is closed"]


def test_all_slabs_in_parts_of_blocks(server: RangeServer) -> None:
    with idxfile.open(server.at("ok")) as x:
        for slab in idxfile.plan(x, slab_nbytes=100_000):
            blocks = list(slab.blocks(block_nbytes=7000))
            assert np.array_equal(np.concatenate(blocks), IMAGES[slab.start : slab.stop])


def filled_from(data: bytes, log: list[int] | None = None) -> Callable[[int, memoryview], None]:
    def fill(start: int, view: memoryview) -> None:
        if log is not None:
            log.append(len(view))
        if start > 50_000:
            raise FetchError("cut", file="x")
        view[:] = data[start : start + len(view)]

    return fill


def test_an_error_stands_where_its_bytes_would() -> None:
    data = bytes(range(256)) * 400
    reader = Ahead("x", filled_from(data), 10, len(data), data[10:20])
    assert reader.read(100) == data[10:20]
    got = bytearray(30_000)
    assert reader.readinto(got) == 30_000
    assert got == data[20:30_020]
    for _ in range(2):  # and it is never taken for the end
        with pytest.raises(FetchError, match="cut"):
            reader.readinto(bytearray(100_000))
    assert not [t for t in threading.enumerate() if t.name.startswith("idxfile-waiting")]


def test_pieces_grow_to_a_bound() -> None:
    """What is on its way, and what is being read, is no more than is said."""
    data, log = bytes(1000), []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ahead, "FIRST_NBYTES", 10)
        patch.setattr(ahead, "PIECE_NBYTES", 100)
        reader = Ahead("x", filled_from(data, log), 0, 1000)
        assert log == [], "nothing is fetched before it is wanted"
        taken = 0
        while piece := reader.read(1000):
            taken += len(piece)
            assert sum(log) - taken <= ahead.AT_ONCE * 100
    assert sorted(log) == [10, 20, 40, 50, 80, *[100] * 8]
    reader.close()
    assert reader.read(9) == b"", "all was fetched: this is the end"


def shards_on(server: RangeServer, count: int, behaviour: str) -> list[str]:
    """The same items in shards, and their addresses."""
    parts = np.array_split(IMAGES, count)
    server.files = {f"{n}.idx": idx_bytes(part) for n, part in enumerate(parts)}
    return [server.at(behaviour, name) for name in server.files]


WAITING: dict[str, tuple[int, Callable[[RangeServer], Any]]] = {
    # how many requests are on their way when everything waits
    "blocks": (2, lambda server: list(idxfile.open(server.at("gated")).blocks())),
    "take": (5, lambda server: idxfile.open(server.at("gated"))[100:600:100]),
    "open a set": (3, lambda server: idxfile.open(shards_on(server, 3, "gated at once"))),
    "take of a set": (3, lambda server: idxfile.open(shards_on(server, 3, "gated"))[199::200]),
    "blocks of a set": (
        2,
        lambda server: list(idxfile.open(shards_on(server, 3, "gated")).blocks()),
    ),
}


@contextlib.contextmanager
def interrupted_soon(answer: threading.Event) -> Iterator[None]:
    """Ctrl-C ends this block before the server answers, which it does at the end."""
    began = time.monotonic()
    try:
        with pytest.raises(KeyboardInterrupt):
            yield
        assert time.monotonic() - began < 6, "it waited for the answers"
    finally:
        answer.set()
        for thread in threading.enumerate():
            if thread.name.startswith("idxfile-waiting"):
                thread.join()


@pytest.mark.parametrize("reader", WAITING)
def test_ctrl_c_does_not_wait_for_a_store_that_is_silent(
    server: RangeServer, reader: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    count, read = WAITING[reader]
    answer, expected = threading.Event(), iter(range(count, 0, -1))

    def interrupt(start: int) -> None:
        if next(expected, 0) == 1:  # all are on their way: the reader waits
            os.kill(os.getpid(), signal.SIGINT)
        answer.wait(8)

    server.gate = interrupt
    monkeypatch.setattr(ranges, "NEAR_NBYTES", 0)
    monkeypatch.setattr(ranges, "FAR_NBYTES", 0)
    with interrupted_soon(answer):
        read(server)


def test_a_reader_who_is_interrupted_between_two_blocks_waits_a_moment_only(
    server: RangeServer,
) -> None:
    answer = threading.Event()
    server.gate = lambda start: answer.wait(8) if start >= ahead.FIRST_NBYTES else None
    with interrupted_soon(answer):
        for _ in idxfile.open(server.at("gated")).blocks(block_nbytes=1600):
            raise KeyboardInterrupt


def test_a_set_is_read_on_by_no_more_requests_than_one_object(server: RangeServer) -> None:
    """However many shards a piece has: six requests are on their way, and their threads."""
    with idxfile.open(shards_on(server, 64, "gated")) as x:
        lock, now, most, most_threads = threading.Lock(), 0, 0, 0

        def count(start: int) -> None:
            nonlocal now, most, most_threads
            with lock:
                now += 1
                most = max(most, now)
                mine = [t for t in threading.enumerate() if t.name.startswith("idxfile-waiting")]
                most_threads = max(most_threads, len(mine))
            time.sleep(0.005)  # so that others come meanwhile
            with lock:
                now -= 1

        server.gate = count
        assert np.array_equal(np.concatenate(list(x.blocks(block_nbytes=9000))), IMAGES)
    assert most <= ahead.AT_ONCE
    assert most_threads <= ahead.AT_ONCE


def test_an_object_that_is_replaced_meanwhile_is_noticed(server: RangeServer) -> None:
    with idxfile.open(server.at("replaced")) as x, pytest.raises(FormatError, match="changed"):
        list(x.blocks(block_nbytes=5000))
