"""The heavy commands on every engine: the same answers and the same bytes as alone."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import idxfile

pytestmark = pytest.mark.slow

COUNT, SHARDS = 240_000, 4
"""190 MB of images."""


def idx(*words: Any, code: int = 0) -> str:
    """What a command prints; its warnings are errors."""
    command = [sys.executable, "-W", "error::idxfile.IdxWarning", "-m", "idxfile", *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A pair, the same as other files that differ in one element, and compressed files."""
    folder = tmp_path_factory.mktemp("set")
    random = np.random.default_rng(5)
    images = random.integers(0, 256, (COUNT // SHARDS, 28, 28), dtype="uint8")
    (folder / "pair").mkdir()
    with idxfile.create(
        folder / "pair" / "train-images-idx3-ubyte", dtype="uint8", item_shape=(28, 28)
    ) as writer:
        for number in range(SHARDS):
            writer.append(images ^ np.uint8(number))
    labels = random.integers(0, 10, COUNT).astype("uint8")
    idxfile.write(folder / "pair" / "train-labels-idx1-ubyte", labels)
    (folder / "packed").mkdir()
    for number in range(SHARDS):
        idxfile.write(folder / "packed" / f"{number}-idx3-ubyte.gz", images[: 2000 + number])
    damaged = bytearray((folder / "packed" / "1-idx3-ubyte.gz").read_bytes())
    damaged[-6] ^= 255
    (folder / "packed" / "1-idx3-ubyte.gz").write_bytes(damaged)
    other = idxfile.open(folder / "pair" / "train-images-idx3-ubyte")
    with other, idxfile.create(folder / "other.idx", dtype="uint8", item_shape=(28, 28)) as writer:
        for number, block in enumerate(other.blocks()):
            if number == 9:
                block[5, 3, 3] ^= 1
            writer.append(block)
    return folder


@pytest.fixture(scope="module", params=["processes=2", "threads=2", "dask", "ray"])
def engine(request: pytest.FixtureRequest) -> Iterator[str]:
    """Every engine, running already where it is a cluster."""
    name = request.param
    if name == "dask":
        from distributed import LocalCluster

        with LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            dashboard_address="127.0.0.1:0",
            silence_logs="CRITICAL",
        ) as cluster:
            yield f"dask={cluster.scheduler_address}"
    elif name == "ray":
        from idxfile.adapters.ray import executor

        with executor(workers=2):
            import ray

            yield f"ray={ray.get_runtime_context().gcs_address}"
    else:
        yield name


def test_stats(place: Path, engine: str) -> None:
    alone = idx("stats", place / "pair", "--json")
    assert idx("stats", place / "pair", "--json", f"--engine={engine}") == alone
    assert json.loads(alone)["count"] == COUNT * 784


def test_check(place: Path, engine: str) -> None:
    places = (place / "packed", place / "pair")
    alone = idx("check", *places, code=1)
    assert idx("check", *places, f"--engine={engine}", code=1) == alone
    assert alone.count("NOT OK") == 1


def test_diff(place: Path, engine: str) -> None:
    files = (place / "pair" / "train-images-idx3-ubyte", place / "other.idx")
    alone = idx("diff", *files, code=1)
    assert idx("diff", *files, f"--engine={engine}", code=1) == alone
    assert "1 element different, in 1 item" in alone


def test_a_selection_and_a_global_shuffle(place: Path, engine: str, tmp_path: Path) -> None:
    options = ("--labels=3,7", "--shuffle", "--seed=1")
    idx("select", place / "pair", tmp_path / "alone", *options)
    idx("select", place / "pair", tmp_path / "there", *options, f"--engine={engine}")
    names = sorted(os.listdir(tmp_path / "alone"))
    assert sorted(os.listdir(tmp_path / "there")) == names
    for name in names:
        assert (tmp_path / "there" / name).read_bytes() == (tmp_path / "alone" / name).read_bytes()


def test_an_error_of_the_input_is_told_as_alone(place: Path, engine: str) -> None:
    broken = place / "packed" / "1-idx3-ubyte.gz"
    assert idx("stats", broken, code=3) == idx("stats", broken, f"--engine={engine}", code=3)
