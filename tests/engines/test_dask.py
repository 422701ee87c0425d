"""Dask: arrays of files and files of arrays on every scheduler, and its workers as an executor."""

from __future__ import annotations

import doctest
import logging
import os
import pickle
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import BrokenExecutor, Future, ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import dask
import dask.array as da
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import basic_indices
from jobs import (
    LOOPBACK,
    contents,
    doubled,
    end_always,
    end_once,
    fail_in_the_middle,
    files,
    listening,
    noted,
    nothing_left,
    total,
    total_and_end,
)

import idxfile
from idxfile import UnsupportedError
from idxfile.adapters import dask as adapter
from idxfile.adapters.dask import dataset, executor, from_idx, to_idx

DTYPES = ("uint8", "int8", "int16", "int32", "float32", "float64")


# Arrays of files


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str, Any, Any]:
    return files(tmp_path_factory.mktemp("pair"))


@pytest.fixture
def keys_asked(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Every key that a file is asked for."""
    asked: list[Any] = []
    get = adapter._Lazy.__getitem__

    def noting(self: Any, key: Any) -> Any:
        asked.append(key)
        return get(self, key)

    monkeypatch.setattr(adapter._Lazy, "__getitem__", noting)
    return asked


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("codec", [None, "gz"])
def test_a_file_is_an_array(dtype: str, codec: str | None) -> None:
    values = np.arange(60).reshape(5, 4, 3).astype(dtype)
    array = from_idx(idxfile.encode(values, codec=codec), slab_nbytes=2 * values[0].nbytes)
    assert array.dtype == np.dtype(dtype)
    assert array._meta.dtype == np.dtype(dtype)
    assert array.chunks[0] == ((2, 2, 1) if codec is None else (5,))
    np.testing.assert_array_equal(array.compute(scheduler="sync"), values)


def test_scalars_and_empty_arrays() -> None:
    assert from_idx(idxfile.encode(np.float32(2.5))).compute(scheduler="sync") == 2.5
    empty = from_idx(idxfile.encode(np.empty((0, 3), "int16")))
    assert empty.chunks == ((0,), (3,))
    assert empty.compute(scheduler="sync").shape == (0, 3)


@given(key=basic_indices((20, 6, 5), allow_newaxis=True, allow_ellipsis=True))
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_slices_are_numpys(key: Any) -> None:
    values = np.arange(600, dtype="int32").reshape(20, 6, 5)
    array = from_idx(idxfile.encode(values), slab_nbytes=3 * values[0].nbytes)
    np.testing.assert_array_equal(array[key].compute(scheduler="sync"), values[key])


@given(key=st.lists(st.integers(-20, 19), max_size=8))
@settings(max_examples=30, deadline=None)
def test_chosen_items_are_numpys(key: list[int]) -> None:
    values = np.arange(600, dtype="float64").reshape(20, 6, 5)
    array = from_idx(idxfile.encode(values), chunks=(7, 6, 5))
    np.testing.assert_array_equal(array[key].compute(scheduler="sync"), values[key])


def test_a_slice_reads_only_what_it_touches(pair: Any, keys_asked: list[Any]) -> None:
    array = from_idx(pair[0], slab_nbytes=1 << 16)
    assert keys_asked == []
    found = array[500:503, ::2].compute(scheduler="sync")
    np.testing.assert_array_equal(found, pair[2][500:503, ::2])
    assert [(key[0].start, key[0].stop) for key in keys_asked] == [(500, 503)]


def test_an_array_is_known_by_the_identity_of_its_file(tmp_path: Path) -> None:
    images = files(tmp_path)[0]
    one, same, other = from_idx(images), from_idx(images), from_idx(images, chunks=(7, -1, -1))
    assert one.name == same.name != other.name
    assert from_idx(images, slab_nbytes=1000).name != one.name
    idxfile.append(images, idxfile.read(images, slice(0, 1)))
    assert from_idx(images).name != one.name
    with pytest.raises(idxfile.FormatError, match="changed since it was pickled"):
        pickle.loads(pickle.dumps(one)).compute(scheduler="sync")


def test_a_graph_is_as_small_as_a_recipe(tmp_path: Path) -> None:
    path = tmp_path / "large.idx"
    with open(path, "wb") as file:
        file.write(idxfile.Header.of("uint8", (1 << 26, 100)).encode())
        file.truncate(12 + 100 * (1 << 26))
    array = from_idx(path)
    assert array.npartitions == 101
    assert len(pickle.dumps(array)) < 5000


def test_a_file_object_cannot_travel(pair: Any) -> None:
    with open(pair[0], "rb") as file, pytest.raises(TypeError, match="open it by its path"):
        from_idx(file)


@pytest.mark.parametrize("scheduler", ["threads", "sync"])
def test_a_data_set_is_two_arrays_cut_alike(pair: Any, scheduler: str) -> None:
    with idxfile.open_dataset(pair[0]) as ds:
        for of in (ds, ds.shuffle(3), ds.select(labels=[3, 4]), ds.transpose()):
            images, labels = dataset(of, slab_nbytes=1 << 16)
            assert images.chunks[0] == labels.chunks[0]
            assert images.npartitions > 1
            found = dask.compute(images, labels, scheduler=scheduler)
            np.testing.assert_array_equal(found[0], of.images[...])
            np.testing.assert_array_equal(found[1], of.labels)
    in_memory = idxfile.Dataset(pair[2], pair[3])
    images, labels = dataset(in_memory, slab_nbytes=1 << 16)
    np.testing.assert_array_equal(images[::7].compute(scheduler="sync"), pair[2][::7])


def test_the_examples_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert doctest.testmod(adapter) == (0, 8)


# Files of arrays


@pytest.mark.parametrize("dtype", DTYPES)
def test_an_array_is_a_file(tmp_path: Path, dtype: str) -> None:
    values = np.arange(7 * 6 * 4).reshape(7, 6, 4).astype(dtype)
    to_idx(da.from_array(values, chunks=(3, 2, 4)), tmp_path / "new.idx")
    assert (tmp_path / "new.idx").read_bytes() == idxfile.encode(values)
    nothing_left(tmp_path, "new.idx")


@pytest.mark.parametrize("values", [np.float32(3), np.empty((0, 3), "int8"), np.arange(5.0)])
def test_small_arrays_are_files_too(tmp_path: Path, values: Any) -> None:
    to_idx(da.from_array(values), tmp_path / "new.idx")
    assert (tmp_path / "new.idx").read_bytes() == idxfile.encode(values)


def test_any_byte_order_is_written(tmp_path: Path) -> None:
    for dtype in (">i4", "<i4"):
        to_idx(da.arange(10, chunks=3, dtype=dtype), tmp_path / "new.idx")
        assert idxfile.read(tmp_path / "new.idx").tolist() == list(range(10))


REFUSED = {
    "its length is not known": lambda: (x := da.arange(9, dtype="uint8", chunks=4))[x > 3],
    "a mask has no place": lambda: da.ma.masked_equal(da.arange(9, dtype="uint8", chunks=4), 3),
    "cannot hold int64": lambda: da.arange(9, chunks=4),
    "a chunk is float16": lambda: da.zeros(9, dtype="uint8", chunks=4).map_blocks(
        np.sqrt, dtype="uint8", meta=np.empty(0, "uint8")
    ),
    r"a chunk is uint8 \(1,\)": lambda: da.zeros(9, dtype="uint8", chunks=4).map_blocks(
        lambda x: x[:1], dtype="uint8", meta=np.empty(0, "uint8")
    ),
}


@pytest.mark.parametrize("fault", REFUSED)
def test_what_would_not_survive_is_refused(tmp_path: Path, fault: str) -> None:
    path = tmp_path / "new.idx"
    path.write_bytes(b"what was there")
    with pytest.raises(UnsupportedError, match=fault) as caught:
        to_idx(REFUSED[fault](), path)
    assert caught.value.hint
    assert path.read_bytes() == b"what was there"
    nothing_left(tmp_path, "new.idx")


@pytest.mark.parametrize(
    ("name", "options"), [("x.idx", {}), ("x.idx", {"shards": 2}), ("x.idx.gz", {"shards": 2})]
)
def test_a_mask_that_only_the_chunk_has_is_refused(
    tmp_path: Path, name: str, options: dict[str, int]
) -> None:
    """Dask was told of plain arrays, and a chunk comes out masked."""
    array = da.arange(12, dtype="uint8", chunks=4).map_blocks(
        lambda block: np.ma.masked_equal(block, 3), dtype="uint8", meta=np.empty(0, "uint8")
    )
    for wrong in (array, array.rechunk(5)):
        with pytest.raises(UnsupportedError, match="a mask has no place") as caught:
            to_idx(wrong, tmp_path / name, **options)
        assert caught.value.hint
        nothing_left(tmp_path)


@pytest.mark.parametrize("name", ["new.idx.gz", "gs://bucket/new.idx"])
def test_what_cannot_be_written_by_position_is_refused(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UnsupportedError, match="cannot be written by many at once"):
        to_idx(da.zeros(9, dtype="uint8"), name)
    nothing_left(tmp_path)


@pytest.mark.parametrize("name", ["x.idx", "x.idx3-short.gz"])
@pytest.mark.parametrize("cut", [{"shards": 3}, {"shards": 9}, {"shard_nbytes": 200}])
def test_an_array_is_shards(tmp_path: Path, name: str, cut: dict[str, int]) -> None:
    values = np.arange(7 * 6 * 4).reshape(7, 6, 4).astype("int16")
    for folder in ("alone", "many"):
        (tmp_path / folder).mkdir()
    alone = tmp_path / "alone" / name
    with idxfile.create(alone, dtype="int16", item_shape=(6, 4), count=7, **cut) as writer:
        writer.append(values)
    to_idx(da.from_array(values, chunks=(3, 2, 4)), tmp_path / "many" / name, **cut)
    assert contents(tmp_path / "many") == contents(tmp_path / "alone")
    assert idxfile.check(tmp_path / "many" / "x.manifest.json").ok


@pytest.mark.parametrize("name", ["x.idx", "x.idx.gz"])
@pytest.mark.parametrize("fault", REFUSED)
def test_shards_that_fail_leave_what_was_there(tmp_path: Path, fault: str, name: str) -> None:
    to_idx(da.zeros(9, dtype="uint8"), tmp_path / name, shards=2)
    before = contents(tmp_path)
    with pytest.raises(UnsupportedError, match=fault.partition(r" \(")[0]):
        to_idx(REFUSED[fault](), tmp_path / name, shards=2)
    assert contents(tmp_path) == before


# Workers


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """Two worker processes, and a client that is not the scheduler of every other test."""
    from distributed import Client, LocalCluster

    with (
        LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            dashboard_address="127.0.0.1:0",
            silence_logs=logging.CRITICAL,
        ) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        yield client


@pytest.mark.slow
def test_workers_compute_and_write(pair: Any, cluster: Any, tmp_path: Path) -> None:
    array = from_idx(pair[0], slab_nbytes=1 << 16)
    assert array.npartitions > 8
    with cluster.as_current():
        assert int(array.sum().compute()) == int(pair[2].sum(dtype=np.int64))
        to_idx(array[::-1] * 2, tmp_path / "new.idx")
        with idxfile.open_dataset(pair[0]) as ds:
            images, labels = dataset(ds.shuffle(3), slab_nbytes=1 << 16)
            found = dask.compute(images, labels)
            np.testing.assert_array_equal(found[0], ds.shuffle(3).images[...])
            np.testing.assert_array_equal(found[1], ds.shuffle(3).labels)
    np.testing.assert_array_equal(idxfile.read(tmp_path / "new.idx"), pair[2][::-1] * 2)
    nothing_left(tmp_path, "new.idx")


def _ending_once(flag: str, block: Any) -> Any:
    end_once(flag)
    return block


@pytest.mark.slow
def test_a_lost_worker_leaves_no_hole_in_a_file(pair: Any, cluster: Any, tmp_path: Path) -> None:
    array = from_idx(pair[0], slab_nbytes=1 << 16)
    fragile = array.map_blocks(partial(_ending_once, str(tmp_path / "flag")), meta=array._meta)
    with cluster.as_current():
        to_idx(fragile, tmp_path / "new.idx")
    assert (tmp_path / "new.idx").read_bytes() == Path(pair[0]).read_bytes()
    nothing_left(tmp_path, "flag", "new.idx")


@pytest.mark.slow
def test_slabs_are_run_in_order(pair: Any, cluster: Any) -> None:
    with idxfile.open(pair[0]) as array, executor(cluster) as workers:
        slabs = idxfile.plan(array, slab_nbytes=1 << 14)
        assert len(slabs) > 40
        alone = [total(slab) for slab in slabs]
        assert list(idxfile.run(total, slabs, executor=workers)) == alone
        blocks = list(idxfile.run(doubled, slabs, executor=workers))
    np.testing.assert_array_equal(np.concatenate(blocks), pair[2] * 2)
    assert all(block.flags.writeable for block in blocks)


@pytest.mark.slow
def test_a_cluster_of_many_is_kept_busy() -> None:
    class Client:
        def get_executor(self, **_: Any) -> Any:
            return ThreadPoolExecutor(1)

        def nthreads(self) -> dict[str, int]:
            return dict.fromkeys(map(str, range(100)), 2)

    begun: list[int] = []
    done: Future[None] = Future()
    done.set_result(None)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("distributed.Client", Client)
        with executor(Client()) as many:
            patch.setattr(many, "submit", lambda fn, number: begun.append(number) or done)
            next(idxfile.run(abs, range(1000), executor=many))
    assert len(begun) == 401


@pytest.mark.slow
def test_a_lost_worker_is_survived(pair: Any, cluster: Any, tmp_path: Path) -> None:
    work = partial(total_and_end, str(tmp_path / "flag"))
    with idxfile.open(pair[0]) as array, executor(cluster) as workers:
        slabs = idxfile.plan(array, slab_nbytes=1 << 14)
        assert list(idxfile.run(work, slabs, executor=workers)) == list(map(total, slabs))
    assert os.listdir(tmp_path) == ["flag"]


@pytest.mark.slow
def test_an_error_is_the_one_that_was_raised(pair: Any, cluster: Any) -> None:
    with (
        idxfile.open(pair[0]) as array,
        pytest.raises(idxfile.FormatError, match="a wrong slab") as caught,
        executor(cluster) as workers,
    ):
        list(
            idxfile.run(
                fail_in_the_middle, idxfile.plan(array, slab_nbytes=1 << 14), executor=workers
            )
        )
    assert (caught.value.file, caught.value.hint) == ("here", "nothing")


@pytest.mark.slow
def test_what_is_queued_is_cancelled(cluster: Any, tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt), executor(cluster) as workers:
        for _ in idxfile.run(partial(noted, str(tmp_path)), range(1000), executor=workers):
            raise KeyboardInterrupt
    assert not _still_running(cluster, tmp_path)


@pytest.mark.slow
def test_workers_stand_in_another_folder(
    cluster: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    images = files(tmp_path / "in")[0]
    for words in (
        ["stats", "in"],
        ["check", "in/train-images-idx3-short"],
        ["diff", "in/train-images-idx3-short", "in/train-images-idx3-short"],
        ["select", "in", "out", "--shards=2"],
        ["convert", "in/", "pair/", "--shards=2"],
        ["convert", "in/train-images-idx3-short", "x.idx.gz", "--shards=2", "--column=images"],
    ):
        command = [sys.executable, "-m", "idxfile", *words]
        alone = subprocess.run(command, capture_output=True, text=True)
        engine = f"--engine=dask={cluster.scheduler.address}"
        force = ["--force"] if words[0] in ("select", "convert") else []
        there = subprocess.run([*command, engine, *force], capture_output=True, text=True)
        assert (there.returncode, there.stdout, there.stderr) == (0, alone.stdout, alone.stderr)
    found = idxfile.read(tmp_path / "x-*-of-00002.idx.gz")
    np.testing.assert_array_equal(found, idxfile.read(images))


def _still_running(client: Any, folder: Path) -> bool:
    """Whether the workers go on with what they were given, once they have answered a question."""
    client.submit(os.getpid, pure=False).result()
    return len(os.listdir(folder)) > 65


@pytest.mark.slow
def test_a_cluster_is_started_and_ended(pair: Any) -> None:
    with idxfile.open(pair[0]) as array, executor(workers=1) as workers:
        pid = workers.submit(os.getpid).result()
        slabs = idxfile.plan(array, slab_nbytes=1 << 16)
        assert sum(idxfile.run(total, slabs, executor=workers)) == pair[2].sum(dtype=np.int64)
    assert pid != os.getpid()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


@pytest.mark.slow
def test_what_is_started_here_listens_to_this_machine_alone() -> None:
    with executor(workers=2) as workers:
        workers.submit(pow, 2, 3).result()
        assert len(listening()) > 4
        assert set(listening()) <= LOOPBACK


@pytest.mark.slow
def test_a_slab_that_no_worker_survives_is_an_error(pair: Any) -> None:
    with (
        idxfile.open(pair[0]) as array,
        pytest.raises(BrokenExecutor, match="died while running it"),
        dask.config.set({"distributed.scheduler.allowed-failures": 0}),
        executor(workers=1) as workers,
    ):
        list(idxfile.run(end_always, idxfile.plan(array), executor=workers))


@pytest.mark.slow
def test_nobody_at_the_address_is_an_error_of_the_system() -> None:
    with (
        dask.config.set({"distributed.comm.timeouts.connect": "200ms"}),
        pytest.raises(OSError, match="Timed out"),
        executor("tcp://127.0.0.1:1"),
    ):
        pass


@pytest.mark.slow
@pytest.mark.parametrize("words", ["here", "tcp://127.0.0.1", "tcp://127.0.0.1:", "127.0.0.1:x"])
def test_what_is_no_address_is_told_at_once(words: str) -> None:
    with pytest.raises(ConnectionError, match="is no address of a Dask scheduler"), executor(words):
        pass
