"""Ray: files as datasets of Ray Data and back, and its workers as an executor."""

from __future__ import annotations

import os
import pickle
import re
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import BrokenExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
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
from idxfile import PairError, UnsupportedError
from idxfile.adapters.ray import IdxDatasource, dataset, executor, read_idx, write_idx

pytestmark = [
    pytest.mark.slow,
    # Ray Data warns of its own defaults.
    pytest.mark.filterwarnings(r"ignore::DeprecationWarning:ray\.data\.context"),
]

DTYPES = ("uint8", "int8", "int16", "int32", "float32", "float64")


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str, Any, Any]:
    return files(tmp_path_factory.mktemp("pair"))


def executor_of(patch: pytest.MonkeyPatch) -> Any:
    """An executor whose workers find the functions of these tests."""
    patch.setenv("PYTHONPATH", str(Path(__file__).parent))
    return executor(workers=2)


@pytest.fixture(scope="module")
def workers() -> Iterator[Any]:
    """A Ray of two workers, and its executor."""
    import ray.data

    with pytest.MonkeyPatch.context() as patch, executor_of(patch) as pool:
        ray.data.DataContext.get_current().enable_progress_bars = False
        yield pool


def rows(ds: Any) -> dict[str, Any]:
    """All rows of a dataset, in the order of their items."""
    columns = {}
    batches = list(ds.iter_batches(batch_size=None, batch_format="numpy"))
    for name in batches[0]:
        columns[name] = np.concatenate([batch[name] for batch in batches])
    order = np.argsort(columns["item"])
    return {name: column[order] for name, column in columns.items()}


# Files as datasets, as Ray plans them


def test_tasks_are_small_and_say_what_they_will_read(pair: Any) -> None:
    import ray

    source = IdxDatasource(pair[0], pair[1])
    tasks = source.get_read_tasks(8)
    assert len(tasks) >= 8
    assert max(len(ray.cloudpickle.dumps(task)) for task in tasks) < 4000
    assert sum(task.metadata.num_rows for task in tasks) == 3000
    for task in tasks[:2]:
        (table,) = task()
        assert table.schema == task.schema
        assert table.num_rows == task.metadata.num_rows
        assert table.nbytes == task.metadata.size_bytes
    sizes = [task.metadata.size_bytes for task in tasks]
    assert sum(sizes) == source.estimate_inmemory_data_size() == 3000 * (8 + 240 + 1)


def test_a_large_file_is_cut_into_slabs(tmp_path: Path) -> None:
    path = tmp_path / "large.idx"
    with open(path, "wb") as file:
        file.write(idxfile.Header.of("uint8", (1 << 24, 28, 28)).encode())
        file.truncate(16 + 784 * (1 << 24))
    tasks = IdxDatasource(path).get_read_tasks(2)
    assert len(tasks) == 197
    assert max(task.metadata.num_rows for task in tasks) * 784 <= 1 << 26


def test_what_is_no_pair_is_refused(pair: Any, tmp_path: Path) -> None:
    idxfile.write(tmp_path / "few.idx", pair[3][:10])
    with pytest.raises(PairError, match="3,000 items"):
        IdxDatasource(pair[0], tmp_path / "few.idx")
    with pytest.raises(UnsupportedError, match="a scalar has no items"):
        IdxDatasource(idxfile.encode(np.uint8(1)))
    with open(pair[0], "rb") as file, pytest.raises(TypeError, match="open it by its path"):
        IdxDatasource(file)


# Files as datasets


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_file_is_a_dataset(tmp_path: Path, workers: Any, dtype: str) -> None:
    images, labels, values, numbers = files(tmp_path, 200, dtype)
    ds = read_idx(images, labels, override_num_blocks=3)
    assert ds.count() == 200
    assert ds.columns() == ["item", "image", "label"]
    found = rows(ds)
    assert found["item"].tolist() == list(range(200))
    assert found["image"].dtype == values.dtype
    np.testing.assert_array_equal(found["image"], values)
    np.testing.assert_array_equal(found["label"], numbers)


@pytest.mark.parametrize("shape", [(50,), (50, 3), (50, 2, 3, 2)])
def test_items_of_any_shape_compressed_or_in_memory(workers: Any, shape: tuple[int, ...]) -> None:
    values = np.arange(np.prod(shape), dtype="int32").reshape(shape)
    found = rows(read_idx(idxfile.encode(values, codec="gz")))
    np.testing.assert_array_equal(found["image"], values)


def test_no_items_are_no_rows(workers: Any) -> None:
    ds = read_idx(idxfile.encode(np.empty((0, 3, 2), "float32")))
    assert ds.count() == 0
    assert ds.columns() == ["item", "image"]


def test_a_data_set_is_a_dataset(pair: Any, workers: Any) -> None:
    with idxfile.open_dataset(pair[0]) as opened:
        in_memory = idxfile.Dataset(
            pair[2], np.stack([pair[3], pair[3] + 1], 1), columns=("a", "b")
        )
        for ds in (opened, opened.shuffle(3), opened.select(labels=[1]), in_memory):
            found = rows(dataset(ds, override_num_blocks=3))
            np.testing.assert_array_equal(found["image"], ds.images[...])
            np.testing.assert_array_equal(found["label"], ds.labels)
    assert (found["b"] == found["label"] + 1).all()


# Datasets as files


def test_rows_are_written_to_their_places(pair: Any, workers: Any, tmp_path: Path) -> None:
    ds = read_idx(pair[0], pair[1], override_num_blocks=5).random_shuffle(seed=1)
    write_idx(ds, tmp_path / "images.idx", tmp_path / "labels.idx")
    assert (tmp_path / "images.idx").read_bytes() == Path(pair[0]).read_bytes()
    assert (tmp_path / "labels.idx").read_bytes() == Path(pair[1]).read_bytes()
    nothing_left(tmp_path, "images.idx", "labels.idx")


def test_rows_that_were_filtered_out_leave_no_hole(pair: Any, workers: Any, tmp_path: Path) -> None:
    ds = read_idx(pair[0], pair[1], override_num_blocks=5)
    chosen = ds.map_batches(_only_threes, batch_format="numpy")
    write_idx(chosen, tmp_path / "images.idx", tmp_path / "labels.idx")
    threes = idxfile.encode(pair[2][pair[3] == 3])
    assert (tmp_path / "images.idx").read_bytes() == threes
    assert set(idxfile.read(tmp_path / "labels.idx").tolist()) == {3}


def _only_threes(batch: dict[str, Any]) -> dict[str, Any]:
    wanted = batch["label"] == 3
    return {name: column[wanted] for name, column in batch.items()}


@pytest.mark.parametrize("suffix", ["", ".gz"])
@pytest.mark.parametrize("item", ["item", None])
@pytest.mark.parametrize("cut", [{"shards": 3}, {"shard_nbytes": 100_000}])
def test_rows_are_written_as_shards(
    pair: Any, workers: Any, tmp_path: Path, suffix: str, item: str | None, cut: dict[str, int]
) -> None:
    ds = read_idx(pair[0], pair[1], override_num_blocks=5)
    there = tmp_path / "there"
    there.mkdir()
    write_idx(
        ds.random_shuffle(seed=1) if item else ds,
        there / f"train-images-idx3-short{suffix}",
        there / f"train-labels-idx1-ubyte{suffix}",
        item=item,
        **cut,
    )
    with idxfile.open_dataset(pair[0]) as opened:
        opened.save(tmp_path / "alone", codec=suffix[1:] or None, **cut)
    assert contents(there) == contents(tmp_path / "alone")


def test_a_type_is_narrowed_where_every_value_survives(
    pair: Any, workers: Any, tmp_path: Path
) -> None:
    ds = read_idx(pair[0], pair[1], override_num_blocks=2).map(_row)  # int64 on its way
    write_idx(ds, tmp_path / "images.idx", tmp_path / "labels.idx", label_dtype="uint8")
    assert (tmp_path / "labels.idx").read_bytes() == Path(pair[1]).read_bytes()
    with pytest.raises(UnsupportedError, match="does not survive as uint8"):
        write_idx(ds, tmp_path / "images.idx", dtype="uint8")


def _row(row: dict[str, Any]) -> dict[str, Any]:
    return row


def test_without_item_numbers_rows_are_taken_in_their_order(
    pair: Any, workers: Any, tmp_path: Path
) -> None:
    import ray

    ds = ray.data.from_numpy(list(pair[2].reshape(10, 300, 12, 10)))
    write_idx(ds, tmp_path / "new.idx", image="data", item=None)
    assert (tmp_path / "new.idx").read_bytes() == Path(pair[0]).read_bytes()
    nothing_left(tmp_path, "new.idx")


def _as_int64(batch: dict[str, Any]) -> dict[str, Any]:
    return batch | {"image": batch["image"].astype("int64")}


def _ragged(batch: dict[str, Any]) -> dict[str, Any]:
    return batch | {"image": batch["image"][:, : 4 if batch["item"][0] else 3]}


REFUSED = {
    "there is no column 'item'(.|\n)*return the column of item numbers as well": (
        lambda ds: ds.drop_columns(["item"]),
        {},
    ),
    "there is no column 'item', but": (lambda ds: ds.drop_columns(["item"]), {}),
    "there is no column 'picture'": (lambda ds: ds, {"image": "picture"}),
    "holds no item numbers": (lambda ds: ds, {"item": "image"}),
    r"item [\d,]+ is there twice": (lambda ds: ds.union(ds), {}),
    "column 'image' is int64": (lambda ds: ds.map_batches(_as_int64), {}),
    "has items of": (lambda ds: ds.map_batches(_ragged), {}),
    "no rows": (lambda ds: ds.limit(0), {}),
}


@pytest.mark.parametrize("fault", REFUSED)
def test_what_would_not_survive_is_refused(
    pair: Any, workers: Any, tmp_path: Path, fault: str
) -> None:
    change, options = REFUSED[fault]
    path = tmp_path / "new.idx"
    path.write_bytes(b"what was there")
    with pytest.raises(UnsupportedError, match=fault):
        write_idx(change(read_idx(pair[0], override_num_blocks=2)), path, **options)
    assert path.read_bytes() == b"what was there"
    nothing_left(tmp_path, "new.idx")


def test_what_cannot_be_written_by_position_is_refused(
    pair: Any, workers: Any, tmp_path: Path
) -> None:
    with pytest.raises(UnsupportedError, match="cannot be written by many at once"):
        write_idx(read_idx(pair[0]), tmp_path / "new.idx.gz")
    nothing_left(tmp_path)


def _ending_once(flag: str, batch: dict[str, Any]) -> dict[str, Any]:
    if 1500 in batch["item"]:
        end_once(flag)
    return batch


def test_a_lost_worker_leaves_no_hole_in_a_file(pair: Any, workers: Any, tmp_path: Path) -> None:
    ds = read_idx(pair[0], override_num_blocks=5)
    fragile = ds.map_batches(partial(_ending_once, str(tmp_path / "flag")), batch_format="numpy")
    write_idx(fragile, tmp_path / "new.idx")
    assert (tmp_path / "new.idx").read_bytes() == Path(pair[0]).read_bytes()
    nothing_left(tmp_path, "flag", "new.idx")


# Workers


def test_slabs_are_run_in_order(pair: Any, workers: Any) -> None:
    with idxfile.open(pair[0]) as array:
        slabs = idxfile.plan(array, slab_nbytes=1 << 14)
        alone = [total(slab) for slab in slabs]
        assert list(idxfile.run(total, slabs, executor=workers)) == alone
        blocks = list(idxfile.run(doubled, slabs, executor=workers))
    np.testing.assert_array_equal(np.concatenate(blocks), pair[2] * 2)
    assert all(block.flags.writeable for block in blocks)


def test_a_lost_worker_is_survived(pair: Any, workers: Any, tmp_path: Path) -> None:
    work = partial(total_and_end, str(tmp_path / "flag"))
    with idxfile.open(pair[0]) as array:
        slabs = idxfile.plan(array, slab_nbytes=1 << 14)
        assert list(idxfile.run(work, slabs, executor=workers)) == list(map(total, slabs))
    assert os.listdir(tmp_path) == ["flag"]


def test_an_error_is_the_one_that_was_raised(pair: Any, workers: Any) -> None:
    with idxfile.open(pair[0]) as array:
        slabs = idxfile.plan(array, slab_nbytes=1 << 14)
        with pytest.raises(idxfile.FormatError, match="a wrong slab") as caught:
            list(idxfile.run(fail_in_the_middle, slabs, executor=workers))
    assert (caught.value.file, caught.value.hint) == ("here", "nothing")
    assert type(caught.value) is idxfile.FormatError


def test_a_slab_that_no_worker_survives_is_an_error(pair: Any, workers: Any) -> None:
    with idxfile.open(pair[0]) as array, pytest.raises(BrokenExecutor):
        list(idxfile.run(end_always, idxfile.plan(array), executor=workers))


def test_what_is_queued_is_cancelled_and_a_ray_that_was_there_stays(
    workers: Any, tmp_path: Path
) -> None:
    import ray

    with pytest.raises(KeyboardInterrupt), executor() as second:
        for _ in idxfile.run(partial(noted, str(tmp_path)), range(1000), executor=second):
            raise KeyboardInterrupt
    assert ray.is_initialized()
    assert workers.submit(pow, 2, 3).result() == 8
    assert len(os.listdir(tmp_path)) <= 65
    with pytest.raises(RuntimeError, match="after shutdown"):
        second.submit(pow, 2, 3)


def test_results_are_what_was_returned(workers: Any) -> None:
    assert workers.submit(pickle.loads, pickle.dumps({"a": (1, None)})).result() == {"a": (1, None)}


# Where it is


@pytest.mark.parametrize(
    ("address", "told"),
    {
        "127.0.0.1:1": "no Ray answers at 127.0.0.1:1: .*refused",
        "ray://127.0.0.1:1": "no Ray answers at ray://127.0.0.1:1",
        "no-host.invalid:6379": "no Ray answers at no-host.invalid:6379",
        "127.0.0.1:99999999": "no Ray answers",
        "here": "'here' is no address of a Ray",
    }.items(),
)
def test_a_wrong_address_is_told_at_once(address: str, told: str) -> None:
    code = (
        "from idxfile.adapters.ray import executor\n"
        f"try:\n    with executor({address!r}): pass\n"
        "except ConnectionError as error: print(error)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert re.match(told, done.stdout), done


def test_what_is_started_here_listens_to_this_machine_alone(workers: Any) -> None:
    workers.submit(pow, 2, 3).result()
    assert len(listening()) > 4
    assert set(listening()) <= LOOPBACK
