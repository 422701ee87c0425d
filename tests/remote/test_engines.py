"""Engines and what is far away: files of stores and web servers, read and written by workers."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
import pytest
from bucket_server import BucketServer
from buckets import bucket_fixture, shared_fixture  # noqa: F401
from range_server import RangeServer

import idxfile
from conftest import idx_bytes
from idxfile.adapters.dask import from_idx, to_idx

pytestmark = [
    pytest.mark.slow,
    # Ray Data warns of its own defaults.
    pytest.mark.filterwarnings(r"ignore::DeprecationWarning:ray\.data\.context"),
]

IMAGES = np.random.default_rng(7).integers(0, 256, (900, 8, 6), "uint8")
LABELS = (np.arange(900) % 10).astype("uint8")


@pytest.fixture
def shelf(bucket: BucketServer) -> BucketServer:
    """A pair, compressed images, and shards of both kinds."""
    idxfile.write("s3://shelf/pair/train-images-idx3-ubyte", IMAGES)
    idxfile.write("s3://shelf/pair/train-labels-idx1-ubyte", LABELS)
    idxfile.write("s3://shelf/packed/x.idx.gz", IMAGES)
    for folder, name in (("cut", "x.idx"), ("both", "x.idx.gz")):
        place = f"s3://shelf/{folder}/{name}"
        with idxfile.create(place, dtype="uint8", item_shape=(8, 6), count=900, shards=4) as writer:
            writer.append(IMAGES)
    return bucket


PLACES = [
    "pair/train-images-idx3-ubyte",
    "packed/x.idx.gz",
    "cut/x-*-of-00004.idx",
    "cut/x.manifest.json",
    "both/x-*-of-00004.idx.gz",
]


def test_dask_reads_a_store(shelf: BucketServer) -> None:
    for name in PLACES:
        array = from_idx(f"s3://shelf/{name}", slab_nbytes=5000)
        assert (array.numblocks[0] == 1) == name.startswith("packed")
        np.testing.assert_array_equal(array.compute(scheduler="sync"), IMAGES)
        np.testing.assert_array_equal(array[700:3:-9].compute(scheduler="sync"), IMAGES[700:3:-9])
    found = array.compute(scheduler="processes", num_workers=2)
    np.testing.assert_array_equal(found, IMAGES)


def test_dask_reads_a_web_server() -> None:
    with RangeServer({"x.idx": idx_bytes(IMAGES)}) as web:
        array = from_idx(web.at("ok", "x.idx"), slab_nbytes=5000)
        np.testing.assert_array_equal(array.compute(scheduler="threads"), IMAGES)


@pytest.fixture(scope="module")
def ray_workers(shared: Any) -> Iterator[Any]:
    """A Ray of two workers, begun with the credentials in the environment."""
    from idxfile.adapters.ray import executor

    with executor(workers=2) as pool:
        import ray.data

        ray.data.DataContext.get_current().enable_progress_bars = False
        yield pool


def test_ray_reads_a_store_and_a_web_server(ray_workers: Any, shelf: BucketServer) -> None:
    from idxfile.adapters.ray import read_idx

    with RangeServer({"x.idx": idx_bytes(IMAGES)}) as web:
        for place in [*(f"s3://shelf/{name}" for name in PLACES), web.at("ok", "x.idx")]:
            rows = read_idx(place, override_num_blocks=3).take_all()
            rows.sort(key=lambda row: row["item"])
            np.testing.assert_array_equal(np.stack([row["image"] for row in rows]), IMAGES)


@pytest.mark.parametrize("cut", [{}, {"shards": 3}, {"shard_nbytes": 12_000}])
@pytest.mark.parametrize("name", ["y.idx", "y.idx.gz"])
def test_dask_writes_to_a_store(shelf: BucketServer, name: str, cut: dict[str, int]) -> None:
    if name.endswith("gz") and not cut:
        return  # one file is compressed by one
    to_idx(da.from_array(IMAGES, chunks=(250, 8, 6)), f"s3://shelf/new/{name}", **cut)
    place = "new/y.manifest.json" if cut else f"new/{name}"
    np.testing.assert_array_equal(idxfile.read(f"s3://shelf/{place}"), IMAGES)
    assert idxfile.check(f"s3://shelf/{place}").ok
    assert shelf.unfinished() == []


def idx(*words: str, code: int = 0) -> str:
    """What a command prints."""
    done = subprocess.run(
        [sys.executable, "-m", "idxfile", *words], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == code, done.stderr
    return done.stdout


@pytest.mark.parametrize("engine", ["processes=2", "dask", "ray"])
def test_commands_do_the_same_with_a_store(
    shelf: BucketServer, ray_workers: Any, engine: str, tmp_path: Path
) -> None:
    if engine != "processes=2" and shelf.package == "fsspec":
        return  # workers that are slow to start, and do the same
    if engine == "ray":
        import ray

        engine = f"ray={ray.get_runtime_context().gcs_address}"
    pair, there = "s3://shelf/pair/", f"--engine={engine}"
    for words in (["stats", f"{pair}train-images-idx3-ubyte"], ["check", "s3://shelf/both/"]):
        assert idx(*words, there) == idx(*words)
    idx("select", pair, str(tmp_path / "alone"), "--shuffle", "--seed=1", "--shards=3")
    idx("select", pair, "s3://shelf/out/", "--shuffle", "--seed=1", "--shards=3", there)
    alone = {f"out/{name}": (tmp_path / "alone" / name) for name in os.listdir(tmp_path / "alone")}
    objects = shelf.objects()
    assert {name for name in objects if name.startswith("out/")} == {*alone}
    assert all(objects[name] == path.read_bytes() for name, path in alone.items())
    idx("select", pair, "s3://shelf/out/", "--shards=3", there, "--force", code=2)
    assert shelf.objects() == objects
    idx("convert", f"{pair}train-images-idx3-ubyte", "s3://shelf/c/x.idx.gz", "--shards=3", there)
    np.testing.assert_array_equal(idxfile.read("s3://shelf/c/x.manifest.json"), IMAGES)
    idx("check", "s3://shelf/c/", there)
    assert shelf.unfinished() == []
