"""Members inflated side by side: the same bytes and the same faults as one after the other."""

from __future__ import annotations

import gzip
import subprocess
import sys
from collections.abc import Callable
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import idxfile
from conftest import blocked_gz, idx_bytes, seekable_zst
from idxfile.codecs import Inflater, codec_named
from idxfile.source import sidebyside, threads
from idxfile.source.blocked import BlockedInflater
from idxfile.source.frames import FramesInflater

ARRAY = np.random.default_rng(2).integers(0, 40, (30_000, 10, 10), np.uint8)
DATA = idx_bytes(ARRAY)
BLOCKED = idxfile.encode(ARRAY, codec="gz", blocked=True)
FILES: dict[str, tuple[str, type[Inflater], bytes, bytes]] = {
    "gz": ("gz", BlockedInflater, BLOCKED, DATA),
    "gz between others": (
        "gz",
        BlockedInflater,
        BLOCKED + gzip.compress(b"a" * 99) + BLOCKED + bytes(9),
        DATA + b"a" * 99 + DATA,
    ),
    "small gz": ("gz", BlockedInflater, blocked_gz(DATA[:100_000]), DATA[:100_000]),
    "zst": ("zst", FramesInflater, seekable_zst(DATA), DATA),
    "zst of long frames": ("zst", FramesInflater, seekable_zst(DATA, 1 << 20), DATA),
}


@pytest.fixture(autouse=True, params=[1, 2, 3])
def workers(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(threads, "WORKERS", request.param)
    monkeypatch.setattr(sidebyside, "WORKERS", request.param)
    return int(request.param)


def fed(kind: type[Inflater], codec: str, data: bytes) -> Inflater:
    position = 0

    def read(limit: int) -> bytes:
        nonlocal position
        piece = data[position : position + limit]
        position += len(piece)
        return piece

    return kind(codec_named(codec), read)


def all_of(inflater: Inflater, size: int) -> tuple[bytes, Any, int, int]:
    """What comes by `readinto` in buffers of one size."""
    found = []
    buffer = bytearray(size)
    while count := inflater.readinto(buffer):
        found.append(bytes(buffer[:count]))
        if count < size:
            break
    return b"".join(found), inflater.problems, inflater.members, inflater.nbytes


@pytest.mark.parametrize("size", [1024, 70_000, 1 << 20, 1 << 23])
@pytest.mark.parametrize("kind", FILES)
def test_buffers_of_any_size_are_filled(kind: str, size: int) -> None:
    codec, inflater, data, content = FILES[kind]
    found, problems, _, nbytes = all_of(fed(inflater, codec, data), size)
    assert found == content
    assert problems == []
    assert nbytes == len(content)


@pytest.mark.parametrize("at", [0.02, 0.31, 0.77, 0.998])
@pytest.mark.parametrize("kind", ["gz", "zst", "zst of long frames"])
def test_a_fault_amid_them_is_the_same(kind: str, at: float) -> None:
    codec, inflater, data, _ = FILES[kind]
    place = int(len(data) * at)
    for lie in (data[:place], data[:place] + bytes([data[place] ^ 0x55]) + data[place + 1 :]):
        expected = all_of(fed(Inflater, codec, lie), 1 << 23)
        for size in (1 << 23, 300_000):
            found = all_of(fed(inflater, codec, lie), size)
            common = min(len(found[0]), len(expected[0]))  # of the damaged one some may come
            assert found[0][:common] == expected[0][:common]
            assert [p.code for p in found[1]] == [p.code for p in expected[1]]
            assert found[2] == expected[2]
            assert found[3] == len(found[0])


def _rest(inflater: Inflater, queue: Any) -> None:
    queue.put(all_of(inflater, 1 << 23)[0] == DATA[1_000_000:])


@pytest.mark.parametrize("kind", ["gz", "zst"])
def test_a_forked_process_goes_on(kind: str) -> None:
    codec, inflater, data, _ = FILES[kind]
    half_read = fed(inflater, codec, data)
    assert half_read.readinto(bytearray(1_000_000)) == 1_000_000
    context = get_context("fork")
    queue = context.SimpleQueue()
    child = context.Process(target=_rest, args=(half_read, queue))
    child.start()
    assert queue.get()
    child.join(30)
    assert child.exitcode == 0
    assert all_of(half_read, 1 << 23)[0] == DATA[1_000_000:]


@pytest.mark.usefixtures("workers")
def test_what_is_read_while_the_interpreter_ends(tmp_path: Path) -> None:
    (tmp_path / "x.idx.gz").write_bytes(BLOCKED)
    code = """
import atexit, idxfile, sys
from idxfile.source import threads
threads.WORKERS = 2
path = sys.argv[1]
def last():
    with idxfile.open(path, spool_nbytes=1000) as x:
        print(idxfile.read(path).sum(), x[...].sum(), idxfile.stats(path).total)
atexit.register(last)
last()
"""
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "x.idx.gz")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr == ""
    assert done.stdout.split() == [str(ARRAY.sum())] * 6


def test_a_thread_of_the_set_hands_out_nothing(workers: int) -> None:
    """They would wait for each other: eight files at once, each inflated side by side."""
    pool = threads.threads()
    assert (pool is None) == (workers == 1)
    if pool is not None:
        assert pool.submit(threads.threads).result() is None
        works: list[Callable[[], Any]] = [lambda: idxfile.read(BLOCKED)] * 8
        for future in [pool.submit(work) for work in works]:
            assert np.array_equal(future.result(30), ARRAY)
