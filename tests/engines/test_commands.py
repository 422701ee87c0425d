"""The heavy commands on every engine, with a set of 2 GB: the same answers and bytes as alone."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import idxfile

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("one set of 2 GB")]

COUNT, BLOCKS = 2_600_000, 40
"""2.04 GB of images. Twice as much is on the disk at most: what a test writes is removed by it."""

LITTLE_MEMORY = """
import sys
from idxfile.slabs import choosing
choosing.memory_nbytes = lambda: 1 << 30
from idxfile.cli import main
sys.exit(main())
"""
"""The command line on a machine whose memory a set of 2 GB does not fit into."""


def idx(*words: Any, code: int = 0, how: tuple[str, ...] = ("-m", "idxfile")) -> str:
    """What a command prints; it warns of nothing."""
    command = [sys.executable, *how, *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    assert "warning" not in done.stderr.lower()
    return done.stdout


@lru_cache
def alone(*words: Any, code: int = 0) -> str:
    """What a command prints without an engine."""
    return idx(*words, code=code)


def digests(out: Path) -> dict[str, str]:
    """Name and digest of every file of a folder, hidden ones too; the folder is removed."""
    found = {}
    for path in sorted(out.iterdir()):
        with path.open("rb") as file:
            found[path.name] = hashlib.file_digest(file, "sha256").hexdigest()
    shutil.rmtree(out)
    return found


@lru_cache
def written_alone(command: str, source: Path, out: Path, *options: str) -> dict[str, str]:
    """What a command writes without an engine; a name without a suffix is a folder."""
    idx(command, source, out if out.suffix else f"{out}/", *options)
    return digests(out if out.is_dir() else out.parent)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A pair of 2 GB, two small files that differ in one element, and compressed files."""
    folder = tmp_path_factory.mktemp("set")
    random = np.random.default_rng(5)
    images = random.integers(0, 256, (COUNT // BLOCKS, 28, 28), dtype="uint8")
    (folder / "pair").mkdir()
    with idxfile.create(
        folder / "pair" / "train-images-idx3-ubyte", dtype="uint8", item_shape=(28, 28)
    ) as writer:
        for number in range(BLOCKS):
            writer.append(images ^ np.uint8(number))
    labels = random.integers(0, 10, COUNT).astype("uint8")
    idxfile.write(folder / "pair" / "train-labels-idx1-ubyte", labels)
    (folder / "packed").mkdir()
    for number in range(4):
        idxfile.write(folder / "packed" / f"{number}-idx3-ubyte.gz", images[: 2000 + number])
    damaged = bytearray((folder / "packed" / "1-idx3-ubyte.gz").read_bytes())
    damaged[-6] ^= 255
    (folder / "packed" / "1-idx3-ubyte.gz").write_bytes(damaged)
    idxfile.write(folder / "one.idx", images)
    images[31_005, 3, 3] ^= 1
    idxfile.write(folder / "other.idx", images)
    yield folder
    shutil.rmtree(folder)


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
    expected = alone("stats", place / "pair", "--json")
    assert idx("stats", place / "pair", "--json", f"--engine={engine}") == expected
    assert json.loads(expected)["count"] == COUNT * 784 > 2e9


def test_check(place: Path, engine: str) -> None:
    places = (place / "packed", place / "pair")
    expected = alone("check", *places, code=1)
    assert idx("check", *places, f"--engine={engine}", code=1) == expected
    assert expected.count("NOT OK") == 1


def test_diff(place: Path, engine: str) -> None:
    files = (place / "one.idx", place / "other.idx")
    expected = alone("diff", *files, code=1)
    assert idx("diff", *files, f"--engine={engine}", code=1) == expected
    assert "1 element different, in 1 item" in expected


@pytest.mark.parametrize(
    ("target", "options", "count"),
    [
        ("x.idx", ("--shards=4",), 5),
        ("x.idx", ("--shard-nbytes=600M", "--items=0:1700000"), 4),
        ("x.idx", ("--dtype=int16", "--items=0:1500000:2"), 1),
        ("out/", (), 2),
    ],
)
def test_convert(
    place: Path, engine: str, tmp_path: Path, target: str, options: tuple[str, ...], count: int
) -> None:
    source = place / "pair" / ("" if target == "out/" else "train-images-idx3-ubyte")
    (place / "alone").mkdir(exist_ok=True)
    expected = written_alone("convert", source, place / "alone" / target, *options)
    (tmp_path / "there").mkdir()
    idx("convert", source, f"{tmp_path}/there/{target}", *options, f"--engine={engine}")
    there = tmp_path / "there"
    assert digests(there / "out" if target == "out/" else there) == expected
    assert len(expected) == count


@pytest.mark.parametrize(
    "options",
    [("--labels=3,7", "--shuffle", "--seed=1"), ("--labels=3,7", "--shards=3", "--codec=gz")],
)
def test_select(place: Path, engine: str, tmp_path: Path, options: tuple[str, ...]) -> None:
    expected = written_alone("select", place / "pair", place / "alone", *options)
    idx("select", place / "pair", tmp_path / "there", *options, f"--engine={engine}")
    assert digests(tmp_path / "there") == expected


def test_a_global_shuffle_of_more_than_memory(place: Path, engine: str, tmp_path: Path) -> None:
    words = ("--shuffle", "--seed=1", "--shards=4")
    expected = written_alone("select", place / "pair", place / "alone", *words)
    there = (place / "pair", tmp_path / "there", *words, f"--engine={engine}")
    idx("select", *there, how=("-c", LITTLE_MEMORY))
    assert digests(tmp_path / "there") == expected
    assert len(expected) == 10


def test_an_error_of_the_input_is_told_as_alone(place: Path, engine: str) -> None:
    broken = place / "packed" / "1-idx3-ubyte.gz"
    assert idx("stats", broken, code=3) == idx("stats", broken, f"--engine={engine}", code=3)
