"""Orders that hop all over a store, or that no memory holds, written into stores."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import fsspec
import numpy as np
import pytest
from bucket_server import BucketServer
from buckets import There, bucket_fixture, shared_fixture  # noqa: F401
from shelf import executor_of

import idxfile
from idxfile import FetchError, IdxWarning
from idxfile.items import Items
from idxfile.slabs import choosing
from idxfile.slabs.choosing import write_items
from idxfile.slabs.running import Processes

COUNT = 1000
IMAGES = np.random.default_rng(3).integers(0, 256, (COUNT, 8, 6), "uint8")
ORDER = np.random.default_rng(1).permutation(COUNT)[:900]
URL = "s3://shelf/new/x.idx"

executor = executor_of(
    {
        "alone": None,
        "threads": lambda: ThreadPoolExecutor(3),
    }
)


@pytest.fixture(autouse=True)
def _small_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Four of them, each of 250 items or fewer."""
    monkeypatch.setattr(choosing, "_RUN_NBYTES", 250 * 48)


def expected(folder: Path, **cut: Any) -> dict[str, bytes]:
    """What lies in a folder when the same is written there."""
    name = "x.idx" if not cut.get("codec") else "x.idx.gz"
    options = {"dtype": "uint8", "item_shape": (8, 6), "count": len(ORDER)}
    with idxfile.create(folder / name, **options, **cut) as writer:
        writer.append(IMAGES[ORDER])
    return {f"new/{path.name}": path.read_bytes() for path in folder.iterdir()}


def hidden(bucket: BucketServer, method: str = "PUT") -> list[str]:
    """What was asked of a folder that nobody sees."""
    return [path for path, _ in bucket.asked(method) if ".tmp/x" in path]


@pytest.mark.parametrize(
    ("near", "cut"),
    [(True, {"shards": 3}), (False, {"shard_nbytes": 9000, "codec": "gz"})],
    ids=["from here", "from a store"],
)
def test_shards_in_an_order_that_no_memory_holds(
    bucket: BucketServer, executor: Any, tmp_path: Path, near: bool, cut: dict[str, Any]
) -> None:
    (tmp_path / "there").mkdir()
    alone = expected(tmp_path / "there", **cut)
    place = str(tmp_path / "all.idx") if near else "s3://shelf/all.idx"
    idxfile.write(place, IMAGES)
    url = f"{URL}.gz" if "codec" in cut else URL
    with idxfile.open(place) as x:
        assert Items([x]).far is not near
        write_items(Items([x]).choose(ORDER), url, executor=executor, most=0, **cut)
    there = bucket.objects()
    there.pop("all.idx", None)
    assert there == alone
    assert len(set(hidden(bucket))) == 5  # four runs, and what tells of them
    assert bucket.unfinished() == []


def test_one_object_alone(bucket: BucketServer, tmp_path: Path) -> None:
    for name, codec in (("x.idx", None), ("x.idx.gz", "gz")):
        items = Items([IMAGES]).choose(ORDER)
        write_items(items, f"s3://shelf/new/{name}", most=0)
        written = idxfile.encode(IMAGES[ORDER], codec=codec)
        assert bucket.objects()[f"new/{name}"] == written
    assert len(bucket.objects()) == 2
    assert hidden(bucket)


def test_one_object_by_many(bucket: BucketServer) -> None:
    with ThreadPoolExecutor(2) as executor:
        write_items(Items([IMAGES]).choose(ORDER), URL, executor=executor, most=0)
    assert bucket.objects() == {"new/x.idx": idxfile.encode(IMAGES[ORDER])}
    assert bucket.unfinished() == []


def test_a_set_of_a_store_is_read_twice_whatever_memory_holds(
    bucket: BucketServer, tmp_path: Path
) -> None:
    """Gathered piece by piece, an order that hops would fetch all of it for each."""
    idxfile.write("s3://shelf/all.idx", IMAGES)
    with idxfile.open("s3://shelf/all.idx") as x:
        bucket.requests.clear()
        write_items(Items([x]).choose(ORDER), str(tmp_path / "y.idx"))
    assert np.array_equal(idxfile.read(tmp_path / "y.idx"), IMAGES[ORDER])
    assert [path.name for path in tmp_path.iterdir()] == ["y.idx"]
    got = [tuple(map(int, w[6:].split("-"))) for _, w in bucket.asked() if w]
    assert sum(stop - start + 1 for start, stop in got) <= 1.1 * IMAGES.nbytes


def test_a_pair_of_sets_is_shuffled_from_store_to_store(
    bucket: BucketServer, tmp_path: Path
) -> None:
    labels = (np.arange(COUNT) % 10).astype("uint8")
    idxfile.write("s3://shelf/pair/train-images-idx3-ubyte", IMAGES)
    idxfile.write("s3://shelf/pair/train-labels-idx1-ubyte", labels)
    with idxfile.open_dataset("s3://shelf/pair/") as ds, ThreadPoolExecutor(2) as executor:
        mixed = ds.shuffle(1)
        mixed.save(tmp_path / "alone", shards=4)
        mixed.save("s3://shelf/new/", shards=4, executor=executor)
    alone = {f"new/{path.name}": path.read_bytes() for path in (tmp_path / "alone").iterdir()}
    assert len(alone) == 10
    objects = bucket.objects()
    assert {name: objects[name] for name in objects if not name.startswith("pair/")} == alone
    assert len(set(hidden(bucket))) == 5


@pytest.mark.parametrize("fault", ["a run", "a shard"])
def test_nothing_is_left_of_a_failure(
    bucket: BucketServer, executor: Any, fault: str, tmp_path: Path
) -> None:
    word = "/x-00002-of-00004.idx" if fault == "a run" else "/shelf/new/x-00001-of-00003.idx"
    bucket.before = lambda method, path: 403 if method != "DELETE" and word in path else None
    with pytest.raises(FetchError, match="the store refuses"):
        write_items(Items([IMAGES]).choose(ORDER), URL, executor=executor, most=0, shards=3)
    assert hidden(bucket)
    assert bucket.objects() == {}
    assert bucket.unfinished() == []


@pytest.mark.parametrize("nth", [3, 6], ids=["a run", "a shard"])
def test_nothing_is_left_of_an_interruption(
    bucket: BucketServer, nth: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    read, calls = choosing._Way.read, []

    def interrupted(*arguments: Any) -> Any:
        calls.append(arguments)
        if len(calls) == nth:
            raise KeyboardInterrupt
        return read(*arguments)

    monkeypatch.setattr(choosing._Way, "read", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write_items(Items([IMAGES]).choose(ORDER), URL, most=0, shards=3)
    assert hidden(bucket)
    assert bucket.objects() == {}
    assert bucket.unfinished() == []


def test_what_cannot_be_removed_is_told_and_the_set_is_there(bucket: BucketServer) -> None:
    bucket.before = lambda method, path: (
        403 if method == "DELETE" or (method, path) == ("POST", "/shelf") else None
    )
    with pytest.warns(IdxWarning, match=r"tmp/x.* given up may be left there"):
        write_items(Items([IMAGES]).choose(ORDER), URL, most=0, shards=3)
    with idxfile.open("s3://shelf/new/x.manifest.json") as x:
        assert np.array_equal(x[...], IMAGES[ORDER])


def test_any_store_will_do() -> None:
    write_items(Items([IMAGES]).choose(ORDER), "memory://orders/x.idx", most=0, shards=3)
    with idxfile.open("memory://orders/x.manifest.json") as x:
        assert np.array_equal(x[...], IMAGES[ORDER])
    memory = fsspec.filesystem("memory")
    assert len(memory.find("/orders")) == 4
    memory.rm("/orders", recursive=True)


@pytest.mark.slow
def test_processes_do_the_same(bucket: BucketServer, tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    alone = expected(tmp_path / "there", shards=3)
    with There(Processes(2)) as executor:
        write_items(Items([IMAGES]).choose(ORDER), URL, executor=executor, most=0, shards=3)
    assert bucket.objects() == alone
    assert bucket.unfinished() == []
