"""Slabs: planned small, run in order anywhere, written by position, the same bytes as alone."""

from __future__ import annotations

import contextlib
import os
import pickle
import signal
import subprocess
import sys
import time
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import idxfile
from idxfile import Dataset, FormatError, IdxError, Processes, Slab
from idxfile.items import Items
from idxfile.opening import ShardRecipe
from idxfile.slabs import choosing
from idxfile.slabs import planning as slabs_planning
from idxfile.slabs.choosing import write_items
from idxfile.slabs.filling import filled, laid_out
from idxfile.slabs.planning import Plan
from idxfile.source.local import FileIdentity
from idxfile.source.members import Shard


@pytest.fixture(scope="module")
def processes():
    with Processes(2) as executor:
        yield executor


def total(slab: Slab) -> tuple[int, int]:
    return slab.first, int(slab.read().sum())


def make(path, count=1000, dtype="int32"):
    values = np.arange(count * 3, dtype=dtype).reshape(count, 3)
    idxfile.write(path, values)
    return values


# Planning


@given(count=st.integers(0, 50), nbytes=st.integers(1, 100), align=st.integers(1, 7))
def test_slabs_cover_every_item_once(count, nbytes, align):
    data = idxfile.encode(np.arange(count, dtype="uint8"))
    plan = idxfile.plan(idxfile.open(data), slab_nbytes=nbytes, align=align)
    assert [n for slab in plan for n in range(slab.first, slab.first + len(slab))] == list(
        range(count)
    )
    assert all(slab.start % align == 0 and len(slab) <= max(nbytes, align) for slab in plan)
    assert plan[:] == list(plan)
    assert plan.items == count
    with pytest.raises(IndexError):
        plan[len(plan)]


def test_a_slab_travels_in_under_a_kilobyte(tmp_path):
    values = make(tmp_path / ("long name " * 10 + ".idx"))
    with idxfile.open(tmp_path / ("long name " * 10 + ".idx")) as x:
        slab = idxfile.plan(x, slab_nbytes=1200)[3]
        data = pickle.dumps(slab)
    assert len(data) < 1000
    again = pickle.loads(data)
    assert np.array_equal(again.read(), values[300:400])
    assert np.array_equal(np.concatenate([*again.blocks(block_nbytes=100)]), values[300:400])


def test_a_plan_is_as_small_as_its_shards():
    """100 TB in 2,000 shards: a million and a half slabs, none made before its time."""
    per_shard = 50_000_000_000 // 784
    identity = FileIdentity(50_000_000_000, 1_764_489_600_123_456_789)
    recipes = [
        ShardRecipe(Shard(f"x-{n:05}-of-02000.idx", per_shard, 50_000_000_000, identity), "", ())
        for n in range(2000)
    ]
    plan = Plan([(recipe, per_shard) for recipe in recipes], (1 << 26) // 784)
    assert len(plan) == 2000 * -(-per_shard // ((1 << 26) // 784))
    last = plan[-1]
    assert isinstance(last.file, ShardRecipe)
    assert (last.file.shard.place, last.stop) == ("x-01999-of-02000.idx", per_shard)
    assert last.first + len(last) == plan.items == 2000 * per_shard
    assert len(pickle.dumps(plan)) < 2000 * 100


def test_what_must_be_inflated_whole_is_one_slab(tmp_path):
    values = make(tmp_path / "x.idx.gz")
    with idxfile.open(tmp_path / "x.idx.gz") as x:
        plan = idxfile.plan(x, slab_nbytes=100)
        assert len(plan) == (1 if not x.random_access else 120)
        assert np.array_equal(np.concatenate([slab.read() for slab in plan]), values)


# Running


@pytest.mark.parametrize("kind", ["here", "threads", "processes"])
def test_results_come_in_order(tmp_path, kind, processes):
    values = make(tmp_path / "x.idx")
    with idxfile.open(tmp_path / "x.idx") as x, ThreadPoolExecutor(3) as threads:
        executor = {"here": None, "threads": threads, "processes": processes}[kind]
        got = list(idxfile.run(total, idxfile.plan(x, slab_nbytes=600), executor=executor, ahead=3))
    assert got == [(n, int(values[n : n + 50].sum())) for n in range(0, 1000, 50)]


def fail_at(first: int, slab: Slab) -> int:
    if slab.first == first:
        raise ValueError(f"at {first}")
    return slab.first


def test_an_error_comes_at_its_place(tmp_path, processes):
    make(tmp_path / "x.idx")
    with idxfile.open(tmp_path / "x.idx") as x:
        results = idxfile.run(
            partial(fail_at, 100), idxfile.plan(x, slab_nbytes=600), executor=processes
        )
        assert [next(results), next(results)] == [0, 50]
        with pytest.raises(ValueError, match="at 100"):
            next(results)


def test_no_more_than_a_few_slabs_are_handed_out():
    given = []
    with ThreadPoolExecutor(1) as executor:
        results = idxfile.run(str, map(given.append, range(100)), executor=executor, ahead=5)
        next(results)
        assert len(given) == 6
        results.close()
    assert len(given) == 6


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="counts on a timer of Unix")
def test_ctrl_c_leaves_no_lock_of_the_executor_taken():
    """In a child, which would hang: half a thousand interruptions between very short slabs."""
    code = (
        "import faulthandler, random, signal, time\n"
        "from concurrent.futures import ThreadPoolExecutor\n"
        "from idxfile import run\n"
        "faulthandler.dump_traceback_later(50, exit=True)\n"
        "signal.signal(signal.SIGALRM, lambda *_: signal.raise_signal(signal.SIGINT))\n"
        "def work(n): time.sleep(0.00005)\n"
        "for n in range(500):\n"
        "    with ThreadPoolExecutor(2) as threads:\n"
        "        try:\n"
        "            signal.setitimer(signal.ITIMER_REAL, random.uniform(0.0005, 0.004))\n"
        "            for _ in run(work, iter(range(100_000)), executor=threads): pass\n"
        "        except KeyboardInterrupt: pass\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def die_once(folder: str) -> str:
    """Dies when it is told to, the first time."""
    mark, go = Path(folder, "mark"), Path(folder, "go")
    if mark.exists():
        return "again"
    mark.touch()
    while not go.exists():
        time.sleep(0.005)
    os._exit(1)


def test_a_pool_that_breaks_with_slabs_that_were_cancelled_is_replaced(tmp_path):
    """The standard library's thread fails at the first of them, with a traceback."""
    with Processes(1) as pool:
        first = pool.submit(die_once, str(tmp_path))
        others = [pool.submit(abs, -number) for number in range(9)]
        assert others[4].cancel()
        (tmp_path / "go").touch()
        assert first.result(60) == "again"
        assert [other.result(60) for other in others if not other.cancelled()] == [
            *range(4),
            *range(5, 9),
        ]


def lose_a_worker(mark: str, slab: Slab) -> tuple[int, int]:
    """The first who comes by dies in the middle of it."""
    try:
        os.close(os.open(mark, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return total(slab)
    os.kill(os.getpid(), signal.SIGKILL)
    return total(slab)


def test_a_lost_worker_is_replaced(tmp_path):
    values = make(tmp_path / "x.idx")
    with idxfile.open(tmp_path / "x.idx") as x, Processes(2) as executor:
        work = partial(lose_a_worker, str(tmp_path / "mark"))
        got = list(idxfile.run(work, idxfile.plan(x, slab_nbytes=600), executor=executor))
    assert sum(part for _, part in got) == values.sum()
    assert len(got) == 20


def die(slab: object) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def test_work_that_kills_every_worker_ends():
    with Processes(1) as executor, pytest.raises(Exception, match="terminated abruptly"):
        list(idxfile.run(die, [1], executor=executor))


BUSY = """
import os, signal, time
from idxfile import Processes

if __name__ == "__main__":
    workers = Processes(2)
    print(workers.submit(os.getpid).result(), flush=True)
    busy = workers.submit(time.sleep, 600)
    os.kill(os.getpid(), signal.%s)
    time.sleep(600)
"""


@pytest.mark.parametrize("signal_name", ["SIGTERM", "SIGKILL"])
def test_workers_end_when_who_began_them_is_killed(tmp_path, signal_name):
    (tmp_path / "busy.py").write_text(BUSY % signal_name)
    # Whoever is left has the other end of the pipe, and the end would be waited for in vain.
    done = subprocess.run(
        [sys.executable, tmp_path / "busy.py"], capture_output=True, timeout=30, check=False
    )
    assert done.returncode == -getattr(signal, signal_name)
    assert int(done.stdout)


def test_a_file_that_went_meanwhile_is_an_error_and_no_lost_worker(tmp_path, processes, capfd):
    make(tmp_path / "x.idx")
    with idxfile.open(tmp_path / "x.idx") as array:
        slabs = list(idxfile.plan(array))
        (tmp_path / "x.idx").unlink()
        with pytest.raises(FileNotFoundError):
            list(idxfile.run(total, slabs, executor=processes))
    assert capfd.readouterr() == ("", "")


def wait_for_ctrl_c(folder: str, number: int) -> None:
    """Waits for Ctrl-C."""
    Path(folder, f"{number}.{os.getpid()}").touch()
    while True:
        time.sleep(0.005)


def pid_of(folder: Path, number: int) -> int:
    """The process in which a call waits."""
    while not (found := list(folder.glob(f"{number}.*"))):
        time.sleep(0.005)
    return int(found[0].suffix[1:])


def test_ctrl_c_ends_what_runs_and_what_is_queued_and_no_worker(tmp_path, capfd):
    with Processes(1) as executor:
        futures = [executor.submit(wait_for_ctrl_c, str(tmp_path), n) for n in range(3)]
        worker = pid_of(tmp_path, 0)
        os.kill(worker, signal.SIGINT)
        for future in futures:
            with pytest.raises(KeyboardInterrupt):
                future.result(60)
        os.kill(worker, signal.SIGINT)  # while it waits
        with contextlib.suppress(KeyboardInterrupt):  # or begins on this
            executor.submit(os.getpid).result(60)
        assert executor.submit(os.getpid).result(60) == worker
    assert len(os.listdir(tmp_path)) == 1
    assert "Traceback" not in capfd.readouterr().err


def test_where_ctrl_c_is_ignored_workers_ignore_it_too():
    """As where a shell has a command in the background; it must not be ended by halves."""
    code = (
        "import os, signal, idxfile\n"
        "from signal import SIGINT, SIG_IGN, raise_signal\n"
        "signal.signal(SIGINT, SIG_IGN)\n"
        "if __name__ == '__main__':\n"
        "    with idxfile.Processes(1) as pool:\n"
        "        print(pool.submit(raise_signal, SIGINT).result())\n"
    )
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.stderr) == ("None\n", "")


# Writing by position


def test_a_ground_is_filled_from_anywhere_in_any_order(tmp_path):
    values = np.arange(60, dtype="float64").reshape(20, 3)
    path = tmp_path / "x.idx"
    with laid_out(path, "float64", values.shape) as ground:
        assert not path.exists()
        ground = pickle.loads(pickle.dumps(ground))
        for first in (10, 0, 15, 5, 10):
            ground.write(first, values[first : first + 5])
    assert path.read_bytes() == idxfile.encode(values)


def sleep_in(folder: str, number: int) -> int:
    Path(folder, str(number)).touch()
    while not Path(folder, "on").exists():
        time.sleep(0.01)
    return number


def test_what_is_cancelled_is_never_begun_and_what_runs_is_awaited(tmp_path):
    with Processes(1) as executor:
        futures = [executor.submit(sleep_in, str(tmp_path), n) for n in range(9)]
        while not (tmp_path / "0").exists():
            time.sleep(0.01)
        assert not futures[0].cancel()
        assert all(future.cancel() for future in futures[5:])
        (tmp_path / "on").touch()
        assert [future.result() for future in futures[:5]] == [0, 1, 2, 3, 4]
    assert sorted(os.listdir(tmp_path)) == ["0", "1", "2", "3", "4", "on"]
    assert all(future.cancelled() for future in futures[5:])


def test_what_is_not_filled_leaves_nothing(tmp_path):
    path = tmp_path / "x.idx"
    path.write_bytes(b"before")
    with (
        pytest.raises(IdxError, match=r"x\.idx: 5 of 20 items were written"),
        laid_out(path, "uint8", (20,)) as ground,
    ):
        filled(ground, iter([ground.write(0, np.zeros(5, "uint8"))]))
    assert [entry.name for entry in tmp_path.iterdir()] == ["x.idx"]
    assert path.read_bytes() == b"before"


# Chosen items


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_chosen_items_are_the_same_bytes_however_they_are_written(tmp_path_factory, data):
    folder = tmp_path_factory.mktemp("chosen")
    counts = data.draw(st.lists(st.integers(0, 30), min_size=1, max_size=3))
    dtype = data.draw(st.sampled_from(["uint8", "int16", "float32"]))
    parts = [
        np.arange(1000 * n, 1000 * n + 2 * count).reshape(count, 2).astype(dtype)
        for n, count in enumerate(counts)
    ]
    for number, part in enumerate(parts):
        idxfile.write(folder / f"{number}.idx", part)
    arrays = [idxfile.open(folder / f"{number}.idx") for number in range(len(parts))]
    whole = np.concatenate(parts)
    index = data.draw(
        st.lists(st.integers(0, len(whole) - 1), max_size=80) if len(whole) else st.just([])
    )
    bucket = data.draw(st.integers(1, 100))
    most = data.draw(st.sampled_from([0, None]))
    before = choosing._RUN_NBYTES
    choosing._RUN_NBYTES = bucket
    try:
        items = Items(arrays, np.array(index, np.intp))
        write_items(items, str(folder / "out"), slab_nbytes=bucket, most=most)
    finally:
        choosing._RUN_NBYTES = before
    assert (folder / "out").read_bytes() == idxfile.encode(whole[index])
    assert sorted(os.listdir(folder)) == sorted([*(f"{n}.idx" for n in range(len(parts))), "out"])


def test_a_shuffle_is_the_same_on_processes(tmp_path, processes, monkeypatch):
    values = make(tmp_path / "x.idx", 5000, "uint8")
    labels = np.arange(5000) % 10
    with idxfile.open(tmp_path / "x.idx") as x:
        ds = Dataset(x, labels).shuffle(3)
        alone = ds.save(tmp_path / "alone")
        spread = ds.save(tmp_path / "spread", executor=processes)
        monkeypatch.setattr(choosing, "_RUN_NBYTES", 1000)
        write_items(
            ds.images,
            str(tmp_path / "twice"),
            executor=processes,
            slab_nbytes=2000,
            most=0,
        )
    for a, b in zip(alone, spread, strict=True):
        assert Path(a).read_bytes() == Path(b).read_bytes()
    assert (tmp_path / "twice").read_bytes() == Path(alone[0]).read_bytes()
    assert np.array_equal(idxfile.read(alone[0]), values[ds.images.index])


def test_the_driver_s_memory_does_not_grow_with_slabs_times_buckets(tmp_path, monkeypatch):
    """3,000 slabs and 3,000 buckets: eight bytes for each pair of them would be 72 MB."""
    values = make(tmp_path / "x.idx", 3000, "uint8")
    order = np.random.default_rng(1).permutation(3000)
    monkeypatch.setattr(choosing, "_RUN_NBYTES", 3)
    with idxfile.open(tmp_path / "x.idx") as x:
        tracemalloc.start()
        try:
            write_items(Items([x], order), str(tmp_path / "y.idx"), slab_nbytes=3, most=0)
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
    assert np.array_equal(idxfile.read(tmp_path / "y.idx"), values[order])
    assert peak < 4_000_000


@pytest.mark.parametrize("by", ["alone", "threads"])
def test_nothing_is_counted_where_all_items_are_meant(tmp_path, by):
    """The numbers of eight million items would be 64 MB."""
    with idxfile.create(tmp_path / "x.idx", dtype="uint8", count=1 << 23) as writer:
        writer.append(np.arange(1 << 23, dtype="uint32").astype("uint8"))
    with idxfile.open(tmp_path / "x.idx") as x, ThreadPoolExecutor(1) as threads:
        executor = threads if by == "threads" else None
        tracemalloc.start()
        try:
            write_items(
                Items([x]), str(tmp_path / "y.idx"), executor=executor, slab_nbytes=1 << 18, most=0
            )
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
    assert (tmp_path / "y.idx").read_bytes() == (tmp_path / "x.idx").read_bytes()
    assert peak < 1 << 25


def maps(_: object = None) -> str:
    return Path("/proc/self/maps").read_text()


@pytest.mark.skipif(sys.platform != "linux", reason="tells maps of files that are gone")
def test_nothing_that_was_laid_aside_stays_mapped(tmp_path, processes):
    make(tmp_path / "x.idx", 5000, "uint8")
    order = np.random.default_rng(1).permutation(5000)
    with idxfile.open(tmp_path / "x.idx") as x:
        for executor in (None, processes):
            for most in (None, 0):
                target = str(tmp_path / "y.idx")
                write_items(Items([x], order), target, executor=executor, most=most)
                everywhere = [maps(), *idxfile.run(maps, range(4), executor=executor)]
                assert not any(f"{tmp_path}/." in told for told in everywhere)


@pytest.mark.parametrize("most", [None, 0], ids=["at once", "twice"])
def test_slabs_that_write_nothing_are_told(tmp_path, monkeypatch, most):
    make(tmp_path / "x.idx", 100)
    monkeypatch.setattr(choosing, "_write_range", lambda task: 0)
    items = Items([idxfile.read(tmp_path / "x.idx")], np.arange(100)[::-1])
    with ThreadPoolExecutor(2) as threads, pytest.raises(IdxError, match="0 of 100 items"):
        write_items(items, str(tmp_path / "y.idx"), executor=threads, most=most)
    assert os.listdir(tmp_path) == ["x.idx"]


def test_an_executor_writes_no_single_compressed_file(tmp_path, processes):
    ds = Dataset(np.zeros((2, 2), "uint8"), np.zeros(2, "uint8"))
    with pytest.raises(ValueError, match="say how many shards"):
        ds.save(tmp_path, codec="gz", executor=processes)
    assert os.listdir(tmp_path) == []


# Shards


def written(folder):
    """Name and bytes of all files of a folder, and none of them is hidden."""
    return {entry.name: entry.read_bytes() for entry in sorted(folder.iterdir())}


@pytest.mark.parametrize("name", ["x.idx", "x-images-idx2-int.gz", "x.idx.zst"])
@pytest.mark.parametrize("cut", [{"shards": 7}, {"shards": 1}, {"shard_nbytes": 1000}])
@pytest.mark.parametrize("most", [None, 0], ids=["at once", "twice"])
def test_shards_are_the_same_bytes_by_whomever(tmp_path, processes, monkeypatch, name, cut, most):
    values = make(tmp_path / "x.idx")
    order = np.random.default_rng(1).permutation(1000)
    monkeypatch.setattr(choosing, "_RUN_NBYTES", 500)
    monkeypatch.setattr(choosing, "_PIECE_NBYTES", 700)
    for folder in ("alone", "one", "many"):
        (tmp_path / folder).mkdir()
    with idxfile.create(
        tmp_path / "alone" / name, dtype="int32", item_shape=3, count=1000, **cut
    ) as writer:
        writer.append(values[order])
    with idxfile.open(tmp_path / "x.idx") as x:
        items = Items([x], order)
        for folder, executor in (("one", None), ("many", processes)):
            target = str(tmp_path / folder / name)
            write_items(items, target, executor=executor, slab_nbytes=900, most=most, **cut)
            assert written(tmp_path / folder) == written(tmp_path / "alone")


@pytest.mark.parametrize("most", [None, 0])
def test_shards_without_items_are_written_too(tmp_path, most):
    values = make(tmp_path / "x.idx", 3)
    with idxfile.open(tmp_path / "x.idx") as x:
        write_items(Items([x], np.array([2, 0])), str(tmp_path / "y.idx"), shards=5, most=most)
    with idxfile.open(tmp_path / "y-*.idx") as y:
        assert [shard.items for shard in y.shards] == [0, 0, 1, 0, 1]
        assert np.array_equal(y[...], values[[2, 0]])
    assert idxfile.check(tmp_path / "y-*.idx").ok


@pytest.mark.parametrize("shards", [0, 100_000])
def test_a_number_of_shards_that_no_set_has_names_a_way_out(tmp_path, shards):
    make(tmp_path / "x.idx", 3)
    told = f"shards is 1 to 99,999, not {shards:,}: give another number, or none"
    with idxfile.open(tmp_path / "x.idx") as x, pytest.raises(ValueError, match=told):
        write_items(Items([x]), str(tmp_path / "y.idx"), shards=shards)
    with pytest.raises(ValueError, match=told):
        idxfile.convert(tmp_path / "x.idx", tmp_path / "y.npy", shards=shards)
    assert os.listdir(tmp_path) == ["x.idx"]


def test_a_data_set_is_saved_in_shards_by_many(tmp_path, processes):
    ds = Dataset(make(tmp_path / "x.idx"), np.arange(1000) % 10, classes=[*"abcdefghij"])
    for codec, cut in ((None, {"shards": 3}), ("gz", {"shard_nbytes": 5000})):
        alone = ds.shuffle(3).save(tmp_path / f"alone {codec}", codec=codec, **cut)
        spread = ds.shuffle(3).save(
            tmp_path / f"many {codec}", codec=codec, executor=processes, **cut
        )
        assert written(tmp_path / f"many {codec}") == written(tmp_path / f"alone {codec}")
        assert ds.saved_names(tmp_path / f"many {codec}", codec=codec, **cut) == spread
        assert [Path(place).name for place in alone] == [Path(place).name for place in spread]
        with idxfile.open_dataset(tmp_path / f"many {codec}") as again:
            assert np.array_equal(again.labels, ds.shuffle(3).labels)
            assert np.array_equal(again.images[...], ds.shuffle(3).images[...])
    with pytest.raises(ValueError, match="not both"):
        ds.save(tmp_path / "no", shards=2, shard_nbytes=100)


def test_shards_that_fail_leave_what_was_there(tmp_path, processes):
    values = make(tmp_path / "x.idx", 500)
    write_items(Items([values]), str(tmp_path / "y.idx"), shards=3)
    (tmp_path / "z.idx").write_bytes(idxfile.encode(values)[:-1])
    before = written(tmp_path)
    with idxfile.open(tmp_path / "x.idx", mmap=False) as x:
        os.truncate(tmp_path / "x.idx", 3000)
        before["x.idx"] = before["x.idx"][:3000]
        for executor in (None, processes):
            with pytest.raises(FormatError, match=r"x\.idx"):
                write_items(Items([x]), str(tmp_path / "y.idx"), shards=3, executor=executor)
            assert written(tmp_path) == before


def test_a_shard_whose_writer_is_lost_is_written_again(tmp_path, monkeypatch):
    values = make(tmp_path / "x.idx", 5000)
    script = tmp_path / "job.py"
    script.write_text(
        "import os, signal, numpy as np, idxfile\n"
        "from idxfile.slabs.spreading import Part\n"
        "write = Part.write\n"
        "def fragile(part, blocks):\n"
        "    def dying():\n"
        "        for block in blocks:\n"
        "            yield block\n"
        "            try: os.close(os.open('mark', os.O_CREAT | os.O_EXCL))\n"
        "            except FileExistsError: continue\n"
        "            os.kill(os.getpid(), signal.SIGKILL)\n"
        "    return write(part, dying())\n"
        "Part.write = fragile\n"
        "if __name__ == '__main__':\n"
        "    ds = idxfile.Dataset(idxfile.open('x.idx'), np.zeros(5000, 'uint8'))\n"
        "    with idxfile.Processes(2) as many:\n"
        "        ds.save('out', shards=5, codec='gz', executor=many)\n"
    )
    done = subprocess.run(
        [sys.executable, "job.py"], cwd=tmp_path, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "mark").exists()
    ds = Dataset(values, np.zeros(5000, "uint8"))
    ds.save(tmp_path / "alone", shards=5, codec="gz")
    assert written(tmp_path / "out") == written(tmp_path / "alone")


# Differences and commands


def test_differences_are_the_same_on_an_executor(tmp_path):
    values = make(tmp_path / "a.idx", 9000, "float32")
    other = values[:8500].copy()
    other[[0, 17, 18, 8499], [0, 1, 2, 0]] = [5, np.nan, -3, 1]
    other[3000:3020] += 1
    idxfile.write(tmp_path / "b.idx", other)
    idxfile.write(tmp_path / "b.idx.gz", other)
    alone = idxfile.diff(tmp_path / "a.idx", tmp_path / "b.idx").as_dict()
    with ThreadPoolExecutor(2) as threads:
        for b in ("b.idx", "b.idx.gz"):
            spread = idxfile.diff(tmp_path / "a.idx", tmp_path / b, executor=threads).as_dict()
            assert {**spread, "b": None} == {**alone, "b": None}
        same = idxfile.diff(tmp_path / "a.idx", tmp_path / "a.idx", executor=threads)
        assert same.equal
    assert alone["items"] == 24


def test_slabs_of_two_files_are_compared_in_their_places(tmp_path, monkeypatch):
    monkeypatch.setattr("idxfile.report.difference.plan", partial(idxfile.plan, slab_nbytes=120))
    values = make(tmp_path / "a.idx", 100)
    values[[9, 10, 99]] += 4
    idxfile.write(tmp_path / "b.idx", values[:, :])
    alone = idxfile.diff(tmp_path / "a.idx", tmp_path / "b.idx")
    with ThreadPoolExecutor(2) as threads:
        spread = idxfile.diff(tmp_path / "a.idx", tmp_path / "b.idx", executor=threads)
    assert spread.as_dict() == alone.as_dict()
    assert spread.differing_items == [(9, 3), (10, 3), (99, 3)]


@pytest.mark.parametrize("engine", ["threads=2", "processes=2"])
@pytest.mark.parametrize(
    "words",
    [
        ["stats", "train-images-idx3-ubyte", "--json"],
        ["check", "train-images-idx3-ubyte", "cut.idx", "missing.idx"],
        ["diff", "train-images-idx3-ubyte", "other.idx"],
    ],
    ids=lambda words: words[0],
)
def test_commands_say_the_same_on_an_engine(tmp_path, monkeypatch, engine, words):
    monkeypatch.chdir(tmp_path)
    images = np.random.default_rng(0).integers(0, 256, (500, 4, 4), dtype="uint8")
    idxfile.write("train-images-idx3-ubyte", images)
    idxfile.write("train-labels-idx1-ubyte", (np.arange(500) % 10).astype("uint8"))
    idxfile.write("other.idx", images[::-1].copy())
    Path("cut.idx").write_bytes(idxfile.encode(images)[:-7])

    def outcome(*more):
        child = subprocess.run(
            [sys.executable, "-m", "idxfile", *words, *more], capture_output=True, text=True
        )
        return child.returncode, child.stdout, child.stderr

    assert outcome("--engine", engine) == outcome()


def test_what_no_worker_can_have_is_read_here(tmp_path, processes):
    make(tmp_path / "x.idx")
    alone = idxfile.stats(tmp_path / "x.idx")
    with open(tmp_path / "x.idx", "rb") as file:
        assert idxfile.stats(file, executor=processes) == alone


def shards_of(folder, items, **options):
    with idxfile.create(folder / "x.idx", dtype=items.dtype, count=len(items), shards=3) as writer:
        writer.append(items)
    return idxfile.open(folder / "x-*-of-00003.idx", **options)


def test_slabs_of_shards_are_read_as_the_set_was_opened(tmp_path):
    with shards_of(tmp_path, np.arange(9, dtype="int32"), byteorder="little") as x:
        assert np.concatenate([slab.read() for slab in idxfile.plan(x)]).tolist() == x[:].tolist()
        assert x[1] == 1 << 24
        assert idxfile.stats(x).maximum == 8 << 24
        options = dict(idxfile.plan(x)[0].file.options)
    with shards_of(tmp_path, np.arange(9, dtype="int32"), mmap=False, spool_nbytes=5) as x:
        changed = dict(idxfile.plan(x)[0].file.options)
    assert (options["mmap"], changed["mmap"], changed["spool_nbytes"]) == (True, False, 5)


@pytest.mark.parametrize(
    "new", [np.full(9, 3, "uint8"), np.full(9, 3, "int16"), np.ones(6, "uint8")]
)
def test_a_set_that_was_written_anew_is_another_set(tmp_path, new):
    with shards_of(tmp_path, np.full(9, 1, "uint8")) as x:
        assert idxfile.stats(x).mean == 1
        planned = [pickle.loads(pickle.dumps(slab)) for slab in idxfile.plan(x)]
        with shards_of(tmp_path, new) as y:
            assert idxfile.stats(y).mean == new.mean()
        again = [pickle.loads(pickle.dumps(slab)) for slab in planned]
        slabs_planning._opened.cache_clear()  # as in a worker that has not seen the old set
        with pytest.raises(FormatError, match="not what it was said to be") as caught:
            again[0].read()
    assert caught.value.code == "shard-changed"


def test_a_program_that_its_workers_would_begin_again_is_told(tmp_path):
    make(tmp_path / "x.idx")
    program = tmp_path / "program.py"
    program.write_text(
        "import idxfile\n"
        "with idxfile.Processes(2) as workers:\n"
        "    print(idxfile.stats('x.idx', executor=workers).mean)\n"
    )
    done = subprocess.run(
        [sys.executable, program], cwd=tmp_path, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.count("Traceback") == 1
    assert done.stderr.splitlines()[-1].endswith('under `if __name__ == "__main__":`')
