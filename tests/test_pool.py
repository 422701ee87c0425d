"""Threads that take work: what no thread takes is done by whoever hands it out."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import wait
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import idxfile
from idxfile.source import threads
from idxfile.source.pool import Pool
from idxfile.source.waiting import done_ahead

ARRAY = np.random.default_rng(4).integers(0, 9, (30_000, 10, 10), np.uint8)


@pytest.fixture(params=[0, 1])
def refused(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """The system gives so many threads, and no more."""
    start, left = threading.Thread.start, [None] * request.param

    def limited(self: threading.Thread) -> None:
        if not left:
            raise RuntimeError("can't start new thread")
        left.pop()
        start(self)

    monkeypatch.setattr(threading.Thread, "start", limited)
    monkeypatch.setattr(threads, "WORKERS", 3)
    monkeypatch.setattr(threads, "_pool", None)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    folder = tmp_path_factory.mktemp("files")
    idxfile.write(folder / "x.idx", ARRAY)
    idxfile.write(folder / "x.idx.gz", ARRAY, blocked=True)
    with idxfile.create(
        folder / "s.idx.gz", dtype="uint8", item_shape=(10, 10), count=len(ARRAY), shards=3
    ) as writer:
        writer.append(ARRAY)
    return [str(folder / name) for name in ("x.idx", "x.idx.gz", "s-*.idx.gz")]


def opened(file: str, take: Callable[[Any], Any]) -> Any:
    with idxfile.open(file, spool_nbytes=1) as x:
        return take(x)


WAYS: dict[str, Callable[[Any], Any]] = {
    "read": lambda file: np.array_equal(idxfile.read(file), ARRAY),
    "items": lambda file: np.array_equal(opened(file, lambda x: x[::9]), ARRAY[::9]),
    "blocks": lambda file: opened(file, lambda x: sum(b.sum() for b in x.blocks())) == ARRAY.sum(),
    "stats": lambda file: idxfile.stats(file).total == ARRAY.sum(),
    "check": lambda file: idxfile.check(file).ok,
    "diff": lambda file: idxfile.diff(file, file).equal,
}


@pytest.mark.usefixtures("refused")
@pytest.mark.parametrize("way", WAYS)
def test_one_thread_can_do_everything(way: str, files: list[str]) -> None:
    for file in files:
        assert WAYS[way](file)


@pytest.mark.usefixtures("refused")
def test_what_was_refused_is_done_once() -> None:
    done: list[int] = []
    with Pool(4) as pool:
        futures = [pool.submit(done.append, number) for number in range(50)]
        wait(futures)
    assert sorted(done) == [*range(50)]


@pytest.mark.usefixtures("refused")
def test_an_error_is_told_to_who_wants_the_result() -> None:
    with Pool(1) as pool, pytest.raises(ZeroDivisionError):
        pool.submit(lambda: 1 // 0).result()
    assert list(done_ahead(lambda n: n + 1, range(9))) == [*range(1, 10)]


def test_what_the_pool_drops_is_cancelled() -> None:
    go = threading.Event()
    pool = Pool(1)
    first, second = pool.submit(go.wait), pool.submit(go.wait)
    threading.Timer(0.05, go.set).start()
    pool.shutdown(cancel_futures=True)
    assert first.result()
    assert second.cancelled()


@pytest.mark.parametrize("way", ["read", "stats", "blocks", "items", "convert"])
def test_a_thread_goes_on_when_the_main_one_has_ended(
    way: str, files: list[str], tmp_path: Path
) -> None:
    code = """
import sys, threading, numpy as np, idxfile
from idxfile.source import threads
threads.WORKERS = 2
way, *files = sys.argv[1:]
works = {
    "read": lambda file: idxfile.read(file).sum(),
    "items": lambda file: idxfile.open(file, spool_nbytes=1)[:].sum(),
    "blocks": lambda file: sum(block.sum() for block in idxfile.open(file).blocks()),
    "stats": lambda file: idxfile.stats(file).total,
    "convert": lambda file: (idxfile.convert(file, "out.npy"), np.load("out.npy").sum())[1],
}
def go_on():
    works[way](files[0])
    begun.set()
    threading.main_thread().join()
    for _ in range(3):
        for file in files:
            print(works[way](file))
begun = threading.Event()
threading.Thread(target=go_on).start()
begun.wait()
"""
    done = subprocess.run(
        [sys.executable, "-c", code, way, *files],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        check=False,
    )
    assert done.stderr == ""
    assert done.stdout.split() == [str(ARRAY.sum())] * 9
