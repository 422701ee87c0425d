"""An object that many write: the same bytes, there when all of it is, nothing left of a failure."""

from __future__ import annotations

import datetime
import os
import pickle
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import s3fs
from bucket_server import BucketServer
from buckets import There, bucket_fixture, shared_fixture  # noqa: F401
from shelf import executor_of

import idxfile
from idxfile import FetchError, IdxError, IdxWarning, MissingExtraError, UnsupportedError
from idxfile.header import Header
from idxfile.items import Items
from idxfile.slabs.choosing import write_items
from idxfile.slabs.filling import Ground, ObjectGround, filled, laid_out, part_items
from idxfile.slabs.running import Processes, run
from idxfile.source.remote import object
from idxfile.source.remote.parts import PartedUpload

URL = "s3://shelf/new.idx"
LEAST = 5 << 20
"""S3 takes no smaller part, but for the last."""
BIG = np.random.default_rng(9).integers(0, 256, (30_000, 28, 28), np.uint8)

pytestmark = pytest.mark.parametrize("bucket", ["fsspec"], indirect=True)


@pytest.fixture(autouse=True)
def _small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(object, "PART_NBYTES", LEAST)


executor = executor_of(
    {
        "alone": None,
        "threads": lambda: ThreadPoolExecutor(3),
        "processes": lambda: There(Processes(2)),
    }
)


def asked(bucket: BucketServer, method: str, word: str) -> list[str]:
    return [path for path, _ in bucket.asked(method) if word in path]


# Written


def test_chosen_items_are_the_same_object_by_whomever(
    bucket: BucketServer, executor: Any, tmp_path: Path
) -> None:
    idxfile.write(tmp_path / "all.idx", BIG)
    bucket.client.put_object(Bucket="shelf", Key="new.idx", Body=b"old")
    with idxfile.open(tmp_path / "all.idx") as x:
        order = np.random.default_rng(1).permutation(len(BIG))
        write_items(Items([x]).choose(order), URL, executor=executor)
    assert bucket.objects() == {"new.idx": idxfile.encode(BIG[order])}
    assert bucket.unfinished() == []
    assert len(asked(bucket, "PUT", "partNumber")) in (4, 5)


def test_a_set_is_saved_into_a_bucket(bucket: BucketServer, tmp_path: Path) -> None:
    idxfile.write(tmp_path / "train-images-idx3-ubyte", BIG)
    labels = (np.arange(len(BIG)) % 10).astype("uint8")
    idxfile.write(tmp_path / "train-labels-idx1-ubyte", labels)
    with idxfile.open_dataset(tmp_path) as ds, ThreadPoolExecutor(2) as executor:
        ds.select(labels=[3, 7]).save("s3://shelf/few/", executor=executor)
    chosen = np.isin(labels, [3, 7])
    assert bucket.objects() == {
        "few/train-images-idx3-ubyte": idxfile.encode(BIG[chosen]),
        "few/train-labels-idx1-ubyte": idxfile.encode(labels[chosen]),
    }
    assert bucket.unfinished() == []


@pytest.mark.parametrize("shape", [(0, 3), (5, 0), (3,), (2, 2)], ids=str)
def test_what_is_small_goes_up_as_one(bucket: BucketServer, shape: tuple[int, ...]) -> None:
    values = np.arange(np.prod(shape), dtype="int32").reshape(shape)
    with laid_out(URL, "int32", shape) as ground:
        assert len(list(ground.cut(1))) == (1 if shape[0] else 0)
        filled(ground, run(partial(send, ground, values), ground.cut(1)))
    assert bucket.objects() == {"new.idx": idxfile.encode(values)}


def test_a_part_is_sent_twice_and_in_any_order(bucket: BucketServer) -> None:
    with laid_out(URL, "uint8", BIG.shape) as ground:
        for low, high in [*reversed(list(ground.cut(1))), *ground.cut(2 * ground.step)]:
            ground.write(low, BIG[low:high])
            assert bucket.objects() == {}
    assert bucket.objects() == {"new.idx": idxfile.encode(BIG)}
    assert bucket.unfinished() == []


def test_byte_order_is_turned(bucket: BucketServer) -> None:
    values = np.arange(4_000_000, dtype=">i4").reshape(-1, 10)
    with laid_out(URL, "int32", values.shape) as ground:
        for low, high in ground.cut(1):
            ground.write(low, values[low:high].astype("<i4"))
    assert bucket.objects() == {"new.idx": idxfile.encode(values)}


# What travels


def send(ground: Ground, values: Any, bounds: tuple[int, int]) -> int:
    """Send some items."""
    low, high = bounds
    return ground.write(low, values[low:high])


def send_lines(ground: Ground, bounds: tuple[int, int]) -> int:
    """Items that everybody can make."""
    low, high = bounds
    return ground.write(low, lines(low, high))


def lines(low: int, high: int) -> Any:
    return (np.arange(low, high, dtype="int32")[:, None] + np.arange(500, dtype="int32")).copy()


def send_or_die(mark: str, ground: Ground, bounds: tuple[int, int]) -> int:
    """The worker that comes to the second part first is lost, when it has sent it."""
    count = send_lines(ground, bounds)
    return int(_die_once(mark, count)) if bounds[0] == ground.step else count


@pytest.mark.slow
def test_a_lost_worker_leaves_no_hole(bucket: BucketServer, tmp_path: Path) -> None:
    with There(Processes(2)) as executor, laid_out(URL, "int32", (9000, 500)) as ground:
        work = partial(send_or_die, str(tmp_path / "mark"), ground)
        filled(ground, run(work, ground.cut(1), executor=executor))
        assert bucket.objects() == {}
    assert (tmp_path / "mark").exists()
    assert bucket.objects() == {"new.idx": idxfile.encode(lines(0, 9000))}
    assert bucket.unfinished() == []


def test_what_travels_is_small_and_has_no_secret(bucket: BucketServer) -> None:
    with laid_out(URL, "uint8", BIG.shape) as ground:
        recipe = pickle.dumps(ground)
        assert len(recipe) < 1000
        assert b"secret-word" not in recipe
        arrived = pickle.loads(recipe)
        for low, high in arrived.cut(1):
            arrived.write(low, BIG[low:high])
    assert bucket.objects() == {"new.idx": idxfile.encode(BIG)}


# Given up


@pytest.mark.parametrize("error", [ZeroDivisionError, KeyboardInterrupt])
def test_nothing_is_left_of_what_is_given_up(bucket: BucketServer, error: Any) -> None:
    bucket.client.put_object(Bucket="shelf", Key="new.idx", Body=b"old")
    with pytest.raises(error), laid_out(URL, "uint8", BIG.shape) as ground:
        ground.write(0, BIG[: ground.step])
        assert bucket.unfinished() == ["new.idx"]
        raise error
    assert bucket.objects() == {"new.idx": b"old"}
    assert bucket.unfinished() == []
    # As S3 says it; moto does not know what to say.
    bucket.before = lambda method, path: 404 if method == "PUT" else None
    with pytest.raises(FetchError, match=r"new\.idx: it is not being written any more") as caught:
        ground.write(0, BIG[: ground.step])  # by somebody who has not heard of it
    assert "given it up" in str(caught.value.hint)
    assert bucket.unfinished() == []


def test_what_cannot_be_given_up_is_told_beside_the_error(bucket: BucketServer) -> None:
    with (
        pytest.warns(IdxWarning, match=r"new\.idx: the store refuses .* may be left there"),
        pytest.raises(ZeroDivisionError),
        laid_out(URL, "uint8", BIG.shape),
    ):
        bucket.before = lambda method, path: 403
        raise ZeroDivisionError


def fail_later(ground: Ground, bounds: tuple[int, int]) -> int:
    """All but the last part is sent."""
    if bounds[1] == ground.header.shape[0]:
        raise ArithmeticError("no")
    return send_lines(ground, bounds)


def test_a_task_that_fails_ends_it(bucket: BucketServer, executor: Any) -> None:
    with (
        pytest.raises(ArithmeticError, match="no"),
        laid_out(URL, "int32", (9000, 500)) as ground,
    ):
        filled(ground, run(partial(fail_later, ground), ground.cut(1), executor=executor))
    assert bucket.objects() == {}
    assert bucket.unfinished() == []


def test_a_part_that_is_missing_is_told(bucket: BucketServer) -> None:
    with (
        pytest.raises(IdxError, match=r"new\.idx: 4 of 5 parts were sent"),
        laid_out(URL, "uint8", BIG.shape) as ground,
    ):
        for low, high in [*ground.cut(1)][1:]:
            ground.write(low, BIG[low:high])
    assert bucket.objects() == {}
    assert bucket.unfinished() == []


def test_a_part_that_is_not_as_long_as_it_was_to_be_is_told(bucket: BucketServer) -> None:
    with pytest.raises(IdxError, match="1 of 2 parts"), laid_out(URL, "uint8", (2, LEAST)) as g:
        assert isinstance(g, ObjectGround)
        g.write(0, np.zeros((2, LEAST), "uint8"))
        g.upload.send(2, b"short")
    assert bucket.objects() == {}


def test_a_part_that_comes_while_all_is_given_up_is_not_left(
    bucket: BucketServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S3 may keep a part that was on its way: the store is asked what is left."""
    left = iter([[{"PartNumber": 1}], []])
    with pytest.raises(ZeroDivisionError), laid_out(URL, "uint8", BIG.shape):
        bucket.requests.clear()
        monkeypatch.setattr(PartedUpload, "_parts", lambda _: next(left))
        bucket.before = lambda method, path: 204 if method == "DELETE" else None
        raise ZeroDivisionError
    assert len(asked(bucket, "DELETE", "uploadId")) == 2


def test_a_store_that_refuses_is_told(bucket: BucketServer) -> None:
    bucket.before = lambda method, path: 403 if method in ("PUT", "POST") else None
    with (
        pytest.raises(FetchError, match=r"^s3://shelf/new\.idx: the store refuses it") as caught,
        laid_out(URL, "uint8", BIG.shape),
    ):
        pytest.fail("it was begun")
    assert isinstance(caught.value, PermissionError)


_KILLED = """
import os, sys
from idxfile.slabs.filling import laid_out
import numpy as np

with laid_out(sys.argv[1], "uint8", (1000, 1000, 60)) as ground:
    ground.write(0, np.zeros((ground.step, 1000, 60), "uint8"))
    os.kill(os.getpid(), 9)
"""


def test_parts_that_a_kill_leaves_are_found_and_cleared(bucket: BucketServer) -> None:
    """As docs/remote.md tells."""
    assert subprocess.run([sys.executable, "-c", _KILLED, URL], check=False).returncode == -9
    assert bucket.objects() == {}
    fs = s3fs.S3FileSystem()
    (upload,) = fs.list_multipart_uploads("shelf")
    assert upload["Key"] == "new.idx"
    assert upload["Initiated"] < datetime.datetime.now(datetime.UTC)
    which = {"Key": upload["Key"], "UploadId": upload["UploadId"]}
    fs.call_s3("abort_multipart_upload", Bucket="shelf", **which)
    assert bucket.unfinished() == []


# Refused


@pytest.mark.parametrize(
    ("place", "word", "hint"),
    [
        ("gs://shelf/new.idx", "cannot be written by many", "write shards"),
        ("az://shelf/new.idx", "cannot be written by many", "write shards"),
        ("memory://shelf/new.idx", "cannot be written by many", "write shards"),
        ("http://127.0.0.1:9/new.idx", "never written", "s3://"),
        ("s3://shelf/new.idx.gz", "a gz file cannot be written by many", "convert"),
    ],
)
def test_other_places_are_refused(bucket: BucketServer, place: str, word: str, hint: str) -> None:
    with pytest.raises(UnsupportedError, match=word) as caught, laid_out(place, "uint8", (3,)):
        pytest.fail("it was begun")
    assert hint in str(caught.value.hint)
    assert bucket.requests == []


def test_the_package_is_named(bucket: BucketServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "s3fs", None)
    monkeypatch.delitem(sys.modules["fsspec.registry"]._registry, "s3", raising=False)
    with (
        pytest.raises(MissingExtraError, match="needs the package s3fs"),
        laid_out(URL, "uint8", (3,)),
    ):
        pytest.fail("it was begun")


# Parts


@pytest.mark.parametrize("count", [1, 13_000, 10**6, 500 * 10**6, 2**32 - 1])
@pytest.mark.parametrize("item", [(), (28, 28), (3, 224, 224), (4096, 4096)], ids=str)
def test_parts_grow_with_the_object(
    bucket: BucketServer, count: int, item: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """S3 takes 10,000 parts, of 5 MiB to 5 GiB."""
    monkeypatch.undo()  # parts of 32 MiB
    header = Header.of("uint8", (count, *item))
    step = part_items(header)
    parts = -(-count // step)
    assert parts <= 10_000
    assert parts == 1 or step * header.item_nbytes >= 1 << 25
    assert step * header.item_nbytes < max(1 << 26, header.nbytes // 4000)


# By Dask


def test_a_dask_array_is_an_object(bucket: BucketServer) -> None:
    da = pytest.importorskip("dask.array")
    from idxfile.adapters.dask import to_idx

    for chunks in (1000, 29_999, -1):
        to_idx(da.from_array(BIG, (chunks, -1, 14)), URL)
        assert bucket.objects() == {"new.idx": idxfile.encode(BIG)}
    to_idx(da.zeros((0, 3), dtype="int32"), URL)
    assert idxfile.read(bucket.objects()["new.idx"]).shape == (0, 3)
    to_idx(da.zeros((), dtype="int32"), URL)
    assert idxfile.read(bucket.objects()["new.idx"]).shape == ()
    assert bucket.unfinished() == []


def _die_once(flag: str, block: Any) -> Any:
    try:
        os.close(os.open(flag, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return block
    os.kill(os.getpid(), signal.SIGKILL)
    return block


def _fail(block: Any) -> Any:
    """All but the last items are right."""
    if block.size and np.array_equal(block[-1], BIG[-1]):
        raise ArithmeticError("no")
    return block


@pytest.mark.slow
def test_a_cluster_writes_an_object(bucket: BucketServer, tmp_path: Path) -> None:
    from distributed import Client, LocalCluster

    from idxfile.adapters.dask import executor, from_idx, to_idx

    idxfile.write(tmp_path / "all.idx", BIG)
    whole = idxfile.encode(BIG)
    array = from_idx(tmp_path / "all.idx", slab_nbytes=1 << 20)
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        with client.as_current():
            fragile = partial(_die_once, str(tmp_path / "flag"))
            to_idx(array.map_blocks(fragile, meta=array._meta), URL)
            assert bucket.objects() == {"new.idx": whole}
            assert (tmp_path / "flag").exists()
            with pytest.raises(ArithmeticError, match="no"):
                to_idx(array.map_blocks(_fail, meta=array._meta), "s3://shelf/other.idx")
        assert bucket.objects() == {"new.idx": whole}
        assert bucket.unfinished() == []
        with idxfile.open(tmp_path / "all.idx") as x, executor(client) as workers:
            items = Items([x]).choose(np.arange(len(BIG))[::-1])
            write_items(items, "s3://shelf/back.idx", executor=workers)
    assert bucket.objects()["back.idx"] == idxfile.encode(BIG[::-1])
    assert bucket.unfinished() == []
    assert threading.active_count() < 100
