"""What a job leaves that is ended in the middle, and a set of shards whose workers are lost."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

import jobs
import numpy as np
import pytest
from jobs import files, nothing_left, total, total_and_end

import idxfile
from idxfile.adapters.dask import from_idx
from idxfile.cli.engines import started
from idxfile.slabs.choosing import write_items

pytestmark = [
    pytest.mark.slow,
    # Ray Data warns of its own defaults.
    pytest.mark.filterwarnings(r"ignore::DeprecationWarning:ray\.data\.context"),
]

COUNT = 400_000
"""314 MB of images: nobody is done with them before the signal comes."""


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pair")
    header = idxfile.Header.of("uint8", (COUNT, 28, 28))
    with open(folder / "train-images-idx3-ubyte", "wb") as file:
        file.write(header.encode())
        file.truncate(header.file_nbytes)
    idxfile.write(folder / "train-labels-idx1-ubyte", np.zeros(COUNT, "uint8"))
    return folder


SELECT = ("select", "PAIR", "OUT", "--shuffle", "--seed=1")
CONVERT = ("convert", "PAIR/train-images-idx3-ubyte", "OUT/x.idx", "--dtype=int32")
CONVERT_PAIR = ("convert", "PAIR", "OUT/", "--dtype=int32")


def interrupted(
    pair: Path, out: Path, engine: str, number: int, *words: str, after: float = 0
) -> tuple[int, str]:
    """Send a signal to a command and all that it started, some seconds after it began to write."""
    if words[0] == "convert":
        out.mkdir()
    words = tuple(word.replace("PAIR", str(pair)).replace("OUT", str(out)) for word in words)
    job = subprocess.Popen(
        [sys.executable, "-m", "idxfile", *words, f"--engine={engine}"],
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    while not (out.is_dir() and os.listdir(out)):
        assert job.poll() is None, job.communicate()
        time.sleep(0.001)
    time.sleep(after)
    os.killpg(job.pid, number)
    return job.wait(60), job.communicate()[1]


@pytest.mark.parametrize(
    "words",
    [
        SELECT,
        (*SELECT, "--shards=4"),
        (*SELECT, "--shards=4", "--codec=gz"),
        CONVERT,
        (*CONVERT, "--shards=4"),
        CONVERT_PAIR,
    ],
    ids=" ".join,
)
@pytest.mark.parametrize("engine", ["processes=2", "threads=2", "dask", "ray"])
def test_ctrl_c_ends_a_job_in_peace(
    pair: Path, tmp_path: Path, engine: str, words: tuple[str, ...]
) -> None:
    code, told = interrupted(pair, tmp_path / "out", engine, signal.SIGINT, *words)
    assert code == 130, told
    assert told.strip() == "interrupted"
    nothing_left(tmp_path / "out")


@pytest.mark.parametrize("words", [SELECT, CONVERT, (*CONVERT, "--shards=4")], ids=" ".join)
@pytest.mark.parametrize("engine", ["processes=2", "threads=2", "dask"])
def test_a_job_that_is_terminated_leaves_nothing(
    pair: Path, tmp_path: Path, engine: str, words: tuple[str, ...]
) -> None:
    """As batch systems do it: every process of the job is told. Ray ends by itself then."""
    code, told = interrupted(pair, tmp_path / "out", engine, signal.SIGTERM, *words)
    assert code == -signal.SIGTERM, told
    nothing_left(tmp_path / "out")


@pytest.mark.parametrize("after", [0.02, 0.04, 0.1, 0.2, 0.3, 0.4, 0.6])
def test_ctrl_c_while_processes_begin_is_no_traceback(
    pair: Path, tmp_path: Path, after: float
) -> None:
    """Whatever they do just then: beginning, importing, waiting, working."""
    words = (*CONVERT, "--shards=4")
    out = tmp_path / "out"
    code, told = interrupted(pair, out, "processes=2", signal.SIGINT, *words, after=after)
    assert (code, told.strip()) == (130, "interrupted")
    nothing_left(out)


@pytest.mark.parametrize("engine", ["processes=2", "dask"])
def test_ctrl_c_while_an_engine_begins_is_no_traceback(pair: Path, engine: str) -> None:
    import psutil

    job = subprocess.Popen(
        [sys.executable, "-m", "idxfile", "stats", str(pair), f"--engine={engine}"],
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    while len(psutil.Process(job.pid).children()) < 2:  # the first is none that works
        assert job.poll() is None, job.communicate()
        time.sleep(0.001)
    os.killpg(job.pid, signal.SIGINT)
    assert job.communicate(timeout=60)[1].strip() == "interrupted"


@pytest.mark.parametrize(
    "words", [SELECT, (*SELECT, "--shards=4"), CONVERT, CONVERT_PAIR], ids=" ".join
)
def test_a_job_that_is_killed_leaves_nothing_under_a_final_name(
    pair: Path, tmp_path: Path, words: tuple[str, ...]
) -> None:
    code, _ = interrupted(pair, tmp_path / "out", "processes=2", signal.SIGKILL, *words)
    assert code == -signal.SIGKILL
    assert [name for name in os.listdir(tmp_path / "out") if not name.startswith(".")] == []


@pytest.mark.parametrize(
    "words",
    [
        ["stats", "PAIR"],
        ["check", "PAIR"],
        ["diff", "PAIR/train-images-idx3-ubyte", "PAIR/train-images-idx3-ubyte"],
        ["select", "PAIR", "OUT"],
        ["split", "PAIR", "OUT", "--shards=2"],
        ["convert", "PAIR/train-images-idx3-ubyte", "OUT.idx", "--shards=3"],
        ["convert", "PAIR", "OUT/"],
    ],
    ids=" ".join,
)
def test_a_terminal_is_told_how_far_it_is(pair: Path, tmp_path: Path, words: list[str]) -> None:
    near, far = os.openpty()
    command = [sys.executable, "-m", "idxfile", *words, "--engine=processes=2"]
    places = {"PAIR": str(pair), "OUT": str(tmp_path / "out")}
    for word, place in places.items():
        command = [part.replace(word, place) for part in command]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=far) as process:
        os.close(far)
        shown = b""
        with contextlib.suppress(OSError):  # the end of a terminal
            while piece := os.read(near, 1 << 16):
                shown += piece
    os.close(near)
    assert process.returncode == 0, shown
    assert b"#" in shown
    assert b"100%" in shown


def shards(folder: Path) -> tuple[str, Any]:
    """Some files that are one array, and what is in them."""
    _, _, images, _ = files(folder / "whole")
    for number in range(3):
        name = f"train-{number:05d}-of-00003.idx"
        idxfile.write(folder / name, images[number * 1000 : number * 1000 + 1000])
    return str(folder / "train-*.idx"), images


@pytest.mark.parametrize("engine", ["processes=2", "dask", "ray"])
def test_shards_a_lost_worker_and_a_shuffle_of_more_than_memory(
    tmp_path: Path, engine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent))
    if engine == "ray":
        from ray import cloudpickle

        cloudpickle.register_pickle_by_value(jobs)  # wherever the workers look for modules
    place, images = shards(tmp_path)
    work = partial(total_and_end, str(tmp_path / "flag"))
    with idxfile.open(place) as array, started(engine) as workers:
        slabs = idxfile.plan(array, slab_nbytes=1 << 14)
        assert list(idxfile.run(work, slabs, executor=workers)) == list(map(total, slabs))
        assert (tmp_path / "flag").exists()
        ds = idxfile.Dataset(array, np.zeros(len(array), "uint8")).shuffle(7)
        path = tmp_path / "mixed.idx"
        write_items(ds.images, str(path), executor=workers, slab_nbytes=1 << 16, most=1)
        np.testing.assert_array_equal(idxfile.read(path), ds.images[...])
        if engine == "ray":
            from idxfile.adapters.ray import read_idx

            found = read_idx(place).sort("item").take_batch(3000)["image"]
        else:
            found = from_idx(place, slab_nbytes=1 << 16).compute(scheduler="threads")
    np.testing.assert_array_equal(found, images)
