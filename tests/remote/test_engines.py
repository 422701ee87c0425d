"""Engines and what is far away: files of stores and web servers, read and written by workers."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
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


def end_once(flag: str) -> None:
    """Whoever comes first is lost."""
    with contextlib.suppress(FileExistsError):
        os.close(os.open(flag, os.O_CREAT | os.O_EXCL))
        os.kill(os.getpid(), signal.SIGKILL)


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

        # Workers find the functions of these tests, wherever they look for modules.
        ray.cloudpickle.register_pickle_by_value(sys.modules[__name__])

        ray.data.DataContext.get_current().enable_progress_bars = False
        yield pool


def test_ray_reads_a_store_and_a_web_server(ray_workers: Any, shelf: BucketServer) -> None:
    from idxfile.adapters.ray import read_idx

    with RangeServer({"x.idx": idx_bytes(IMAGES)}) as web:
        for place in [*(f"s3://shelf/{name}" for name in PLACES), web.at("ok", "x.idx")]:
            rows = read_idx(place, override_num_blocks=3).take_all()
            rows.sort(key=lambda row: row["item"])
            np.testing.assert_array_equal(np.stack([row["image"] for row in rows]), IMAGES)


def mixed(ray_workers: Any) -> Any:
    """All rows, wherever they come."""
    from idxfile.adapters.ray import dataset

    ds = idxfile.Dataset(IMAGES, LABELS)
    return dataset(ds, override_num_blocks=4).random_shuffle(seed=1)


CUTS: list[dict[str, int]] = [{}, {"shards": 3}, {"shard_nbytes": 12_000}]


@pytest.mark.parametrize("item", ["item", None])
@pytest.mark.parametrize("cut", CUTS, ids=str)
@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_ray_writes_to_a_store(
    ray_workers: Any,
    bucket: BucketServer,
    suffix: str,
    cut: dict[str, int],
    item: str | None,
    tmp_path: Path,
) -> None:
    from idxfile.adapters.ray import write_idx

    if suffix and (not cut or bucket.package == "fsspec"):
        return  # one file is compressed by one; it is the workers who have the other package
    ds = mixed(ray_workers) if item else mixed(ray_workers).sort("item")
    names = [f"train-{word}{suffix}" for word in ("images-idx3-ubyte", "labels-idx1-ubyte")]
    write_idx(ds, *(f"s3://shelf/new/{name}" for name in names), item=item, **cut)
    idxfile.Dataset(IMAGES, LABELS).save(tmp_path, codec=suffix[1:] or None, **cut)
    assert bucket.objects() == {
        f"new/{path.name}": path.read_bytes() for path in tmp_path.iterdir()
    }
    assert bucket.unfinished() == []
    if cut:
        with pytest.raises(FileExistsError, match="choose another name"):
            write_idx(ds, f"s3://shelf/new/{names[0]}", item=item, **cut)


def test_rows_that_were_filtered_out_leave_no_hole_in_a_store(
    ray_workers: Any, bucket: BucketServer
) -> None:
    from idxfile.adapters.ray import write_idx

    few = mixed(ray_workers).map_batches(_odd, batch_format="numpy")
    write_idx(few, "s3://shelf/new/x.idx", shards=2)
    found = idxfile.read("s3://shelf/new/x.manifest.json")
    np.testing.assert_array_equal(found, IMAGES[LABELS % 2 == 1])


def _odd(batch: dict[str, Any]) -> dict[str, Any]:
    chosen = batch["label"] % 2 == 1
    return {name: column[chosen] for name, column in batch.items()}


def _failing(batch: dict[str, Any]) -> dict[str, Any]:
    if 700 in batch["item"]:
        raise ArithmeticError("a wrong row")
    return batch


def _ending_once(flag: str, batch: dict[str, Any]) -> dict[str, Any]:
    if 700 in batch["item"]:
        end_once(flag)
    return batch


@pytest.mark.parametrize("cut", [{}, {"shards": 3}], ids=str)
def test_nothing_is_left_of_what_ray_gives_up(
    ray_workers: Any, bucket: BucketServer, cut: dict[str, int]
) -> None:
    from ray.exceptions import RayTaskError

    from idxfile.adapters.ray import write_idx

    places = ("s3://shelf/new/x.idx", "s3://shelf/new/y.idx")
    bucket.client.put_object(Bucket="shelf", Key="old", Body=b"mine")
    failing = mixed(ray_workers).map_batches(_failing, batch_format="numpy", batch_size=50)
    with pytest.raises(RayTaskError, match="a wrong row"):
        write_idx(failing, *places, **cut)
    with pytest.raises(idxfile.UnsupportedError, match="is there twice"):
        write_idx(mixed(ray_workers).union(mixed(ray_workers)), *places, **cut)
    for word in ("new/y", ".tmp/"):  # the labels, when the images are there; and what comes first
        bucket.before = lambda method, path, word=word: (
            403 if method in ("PUT", "POST") and word in path else None
        )
        with pytest.raises(idxfile.FetchError, match="the store refuses"):
            write_idx(mixed(ray_workers), *places, **cut)
        bucket.before = lambda method, path: None
        if cut or word == ".tmp/":
            assert bucket.objects().keys() == {"old"}
        bucket.client.delete_object(Bucket="shelf", Key="new/x.idx")
    assert bucket.objects() == {"old": b"mine"}
    assert bucket.unfinished() == []


def test_a_worker_of_ray_that_is_lost_costs_its_rows_once(
    ray_workers: Any, bucket: BucketServer, tmp_path: Path
) -> None:
    from idxfile.adapters.ray import write_idx

    ending = partial(_ending_once, str(tmp_path / "flag"))
    fragile = mixed(ray_workers).map_batches(ending, batch_format="numpy")
    write_idx(fragile, "s3://shelf/new/x.idx", shards=3)
    assert (tmp_path / "flag").exists()
    assert len(bucket.objects()) == 4
    np.testing.assert_array_equal(idxfile.read("s3://shelf/new/x.manifest.json"), IMAGES)


@pytest.mark.parametrize(
    ("place", "word"),
    [
        ("gs://shelf/x.idx", "cannot be written by many"),
        ("s3://shelf/x.idx.gz", "a gz file cannot be written by many"),
        ("http://127.0.0.1:9/x.idx", "never written"),
    ],
)
def test_what_no_worker_of_ray_can_write_is_told_at_once(
    ray_workers: Any, bucket: BucketServer, place: str, word: str
) -> None:
    from idxfile.adapters.ray import write_idx

    with pytest.raises(idxfile.UnsupportedError, match=word):
        write_idx(mixed(ray_workers), place)
    assert bucket.requests == []


@pytest.mark.parametrize("cut", CUTS, ids=str)
@pytest.mark.parametrize("name", ["y.idx", "y.idx.gz"])
def test_dask_writes_to_a_store(shelf: BucketServer, name: str, cut: dict[str, int]) -> None:
    if name.endswith("gz") and not cut:
        return  # one file is compressed by one
    to_idx(da.from_array(IMAGES, chunks=(250, 8, 6)), f"s3://shelf/new/{name}", **cut)
    place = "new/y.manifest.json" if cut else f"new/{name}"
    np.testing.assert_array_equal(idxfile.read(f"s3://shelf/{place}"), IMAGES)
    assert idxfile.check(f"s3://shelf/{place}").ok
    assert shelf.unfinished() == []


SMALL_RUNS = """
import sys
from idxfile.slabs import choosing
choosing._RUN_NBYTES = 10_000
from idxfile.cli import main
sys.exit(main())
"""
"""The command line for which a set of 43 kB is more than is put in order at once."""


def idx(*words: str, code: int = 0, how: tuple[str, ...] = ("-m", "idxfile")) -> str:
    """What a command prints."""
    done = subprocess.run(
        [sys.executable, *how, *words], capture_output=True, text=True, timeout=120
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
    shuffled = ("select", pair, "s3://shelf/out/", "--shuffle", "--seed=1", "--shards=3", there)
    idx(*shuffled, how=("-c", SMALL_RUNS))
    assert any(".tmp/x-00004-of-00005.idx" in path for path, _ in shelf.asked("PUT"))
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
