"""Sets of shards in stores: written whole or not at all, opened as one, checked and attacked."""

from __future__ import annotations

import gc
import hashlib
import pickle
import struct
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bucket_server import BucketServer
from buckets import bucket_fixture, shared_fixture  # noqa: F401
from range_server import RangeServer

import idxfile
from conftest import idx_bytes
from idxfile import FetchError, FormatError
from idxfile.cli import main
from idxfile.shards import Manifest, ShardFacts, named_shards
from idxfile.source.remote import faults

ITEMS = np.random.default_rng(3).integers(-(2**15), 2**15, (20, 3), np.int16)
NAMES = [named_shards("x.idx", 4).numbered(number) for number in range(4)]
SET = [*NAMES, "x.manifest.json"]


def at(name: str) -> str:
    return f"s3://shelf/{name}"


# Written


@pytest.mark.parametrize("name", ["x.idx", "x.idx.gz"])
@pytest.mark.parametrize(
    ("options", "cuts"),
    [
        ({"shards": 4, "count": 20}, [5, 5, 5, 5]),
        ({"shards": 3, "count": 20}, [6, 7, 7]),
        ({"shard_nbytes": 12 + 8 * 6, "count": 20}, [8, 8, 4]),
        ({"shard_nbytes": 12 + 8 * 6}, [8, 8, 4]),
    ],
)
def test_a_set_is_written_to_a_store(
    bucket: BucketServer, name: str, options: dict[str, Any], cuts: list[int]
) -> None:
    with idxfile.create(at(f"d/{name}"), dtype="int16", item_shape=3, **options) as writer:
        for start in range(0, 20, 7):
            writer.append(ITEMS[start : start + 7])
    names = named_shards(f"d/{name}", len(cuts))
    wanted = [*map(names.numbered, range(len(cuts))), "d/x.manifest.json"]
    objects = bucket.objects()
    assert sorted(objects) == wanted
    parts = [idxfile.read(objects[key]) for key in wanted[:-1]]
    assert [len(part) for part in parts] == cuts
    assert np.array_equal(np.concatenate(parts), ITEMS)
    with idxfile.open(at("d/x.manifest.json")) as x:
        assert np.array_equal(x[...], ITEMS)
    assert idxfile.check(at("d/")).ok


def test_the_manifest_comes_last(bucket: BucketServer) -> None:
    seen = []
    with idxfile.create(at("x.idx"), dtype="int16", item_shape=3, count=20, shards=4) as writer:
        for item in ITEMS:
            writer.append(item[None])
            seen.append(sorted(bucket.objects()))
    assert seen[4] == [], "a shard is there when the next one is begun"
    assert seen[10] == NAMES[:2]
    assert seen[-1] == NAMES[:3]
    assert sorted(bucket.objects()) == SET


@pytest.mark.parametrize("way", ["exception", "too few", "forgotten", "refused", "last"])
@pytest.mark.parametrize("options", [{"shards": 4, "count": 20}, {"shard_nbytes": 12 + 5 * 6}])
def test_nothing_is_left_of_a_set_that_is_given_up(
    bucket: BucketServer, way: str, options: dict[str, Any]
) -> None:
    bucket.client.put_object(Bucket="shelf", Key="y.idx", Body=b"mine")
    if way == "too few" and "count" in options:
        options = {**options, "count": 40}

    def refuse(method: str, path: str) -> int | None:
        word = "manifest" if way == "last" else NAMES[2]
        return 403 if method in ("PUT", "POST") and word in path else None

    writer = idxfile.create(at("x.idx"), dtype="int16", item_shape=3, **options)
    if way in ("refused", "last"):
        bucket.before = refuse
        with pytest.raises(FetchError, match="refuses it"), writer:
            writer.append(ITEMS)
    elif way == "exception":
        with pytest.raises(ZeroDivisionError), writer:
            writer.append(ITEMS[:18])
            raise ZeroDivisionError
    elif way == "too few" and "count" in options:
        writer.append(ITEMS)
        with pytest.raises(ValueError, match="were promised: nothing was written"):
            writer.close()
    else:
        writer.append(ITEMS[:18])
        del writer
        gc.collect()
    bucket.before = lambda method, path: None
    assert list(bucket.objects()) == ["y.idx"]
    assert bucket.unfinished() == []


_ENDS = """
import sys, idxfile, numpy
writer = idxfile.create(sys.argv[1], dtype="int16", count=20, shards=4)
writer.append(numpy.arange(12, dtype="int16"))
print("written")
"""


def test_a_program_that_ends_leaves_nothing(bucket: BucketServer) -> None:
    program = [sys.executable, "-c", _ENDS, at("x.idx")]
    done = subprocess.run(program, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("written\n", "")
    assert bucket.objects() == {}
    assert bucket.unfinished() == []


_KILLED = """
import os, sys, idxfile, numpy
from idxfile import placing

def dies(*_):
    os.kill(os.getpid(), 9)

placing.write_whole = dies  # what writes the manifest
with idxfile.create(sys.argv[1], dtype="int16", count=20, shards=4) as writer:
    writer.append(numpy.arange(int(sys.argv[2]), dtype="int16"))
    if len(writer) < 20:
        dies()
"""


@pytest.mark.parametrize("items", [12, 20])
def test_a_kill_leaves_a_set_that_is_openly_incomplete(bucket: BucketServer, items: int) -> None:
    """Or whole, and without a manifest: of what is there every shard is complete."""
    put(bucket, {"other.idx": b"mine"})
    program = [sys.executable, "-c", _KILLED, at("x.idx"), str(items)]
    assert subprocess.run(program, check=False).returncode == -9
    there = bucket.objects()
    assert sorted(there) == ["other.idx", *NAMES[: items // 5]]
    if items == 20:
        assert idxfile.read(at("x-*-of-00004.idx")).tolist() == list(range(20))
    else:
        for place in ("x-*-of-00004.idx", "x-*"):
            with pytest.raises(
                FormatError, match=r"x-00002-of-00004\.idx, x-00003-of-00004\.idx: missing"
            ) as caught:
                idxfile.open(at(place))
            assert caught.value.code == "shard-missing"
    told = "are 4 shards without a manifest: remove" if items == 20 else "2 of 4 .* interrupted"
    with pytest.raises(FileExistsError, match=told) as refused:
        idxfile.create(at("x.idx"), dtype="int16", count=20, shards=4)
    assert refused.value.filename == at("x-*-of-00004.idx")
    assert bucket.objects() == there


def test_what_an_interrupted_writer_left_is_removed_by_force(
    bucket: BucketServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """And nothing else: no set that can be read, and nothing that is read for the new one."""
    idxfile.write(tmp_path / "a.idx", ITEMS)
    left = shards_of(ITEMS, "x.idx", 4)
    del left["x.manifest.json"], left[NAMES[3]]
    others = {"x-00000-of-00005.idx.npy": b"mine", "x-1.idx": b"mine"}
    command = ["concat", at("x.idx"), str(tmp_path / "a.idx"), "--shards", "4"]
    put(bucket, {**left, **others})
    assert main(command) == 2
    assert "x-*-of-00004.idx: There are 3 of 4 shards without a manif" in capsys.readouterr().err
    again = ["concat", at("x.idx"), at(NAMES[0]), at(NAMES[1]), "--shards", "4", "--force"]
    assert main(again) == 4
    assert "the set that would be removed" in capsys.readouterr().err
    assert bucket.objects() == {**left, **others}
    assert main([*command, "--force"]) == 0
    assert sorted(bucket.objects()) == sorted([*SET, *others])
    assert main(["check", at("x-*-of-00004.idx")]) == 0
    bucket.client.delete_object(Bucket="shelf", Key="x.manifest.json")
    assert main([*command, "--force"]) == 2
    assert sorted(bucket.objects()) == sorted([*NAMES, *others])


def test_an_interrupted_pair_is_written_by_force(
    bucket: BucketServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    idxfile.write(tmp_path / "train-images-idx3-ubyte", IMAGES)
    idxfile.write(tmp_path / "train-labels-idx1-ubyte", LABELS)
    left = "d/train-images-idx3-ubyte-00001-of-00003"
    for command in ("select", "convert"):
        put(bucket, {left: b"mine"})
        words = [command, str(tmp_path), at("d/"), "--shards", "3"]
        assert main(words) == 2
        assert "1 of 3 shards without a manifest" in capsys.readouterr().err
        assert bucket.objects() == {left: b"mine"}
        assert main([*words, "--force"]) == 0
        with idxfile.open_dataset(at("d/")) as ds:
            assert np.array_equal(ds.images[...], IMAGES)
        for name in bucket.objects():
            bucket.client.delete_object(Bucket="shelf", Key=name)


def test_what_cannot_be_removed_is_told(bucket: BucketServer) -> None:
    removals = {("DELETE", f"/shelf/{name}") for name in NAMES} | {("POST", "/shelf")}
    bucket.before = lambda method, path: 403 if (method, path) in removals else None
    with (
        pytest.warns(idxfile.IdxWarning, match=r"00000-of-00004\.idx: .*refuses.* may be left"),
        pytest.raises(ZeroDivisionError),
        idxfile.create(at("x.idx"), dtype="int16", item_shape=3, count=20, shards=4) as writer,
    ):
        writer.append(ITEMS[:8])
        raise ZeroDivisionError
    bucket.before = lambda method, path: None
    assert list(bucket.objects()) == NAMES[:1]


@pytest.mark.parametrize(
    "there", ["x-00002-of-00004.idx", "x.manifest.json", "x-00000-of-00009.idx.gz"]
)
@pytest.mark.parametrize("options", [{"shards": 4}, {"shard_nbytes": 12 + 5 * 6}])
def test_a_set_that_is_there_is_not_replaced(
    bucket: BucketServer, there: str, options: dict[str, Any]
) -> None:
    bucket.client.put_object(Bucket="shelf", Key=there, Body=b"mine")
    with pytest.raises(FileExistsError, match="remove them, or choose another name") as caught:
        idxfile.concat(at("x.idx"), [idx_bytes(ITEMS)], **options)
    assert caught.value.filename == at(there.replace("00002", "*").replace("00000", "*"))
    assert bucket.objects() == {there: b"mine"}


def test_a_web_server_takes_no_shards() -> None:
    for options in ({"count": 2, "shards": 2}, {"shard_nbytes": 9}):
        with pytest.raises(idxfile.UnsupportedError, match="never written"):
            idxfile.create("http://127.0.0.1:9/x.idx", dtype="uint8", **options)


def test_the_command_concat(
    bucket: BucketServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    idxfile.write(tmp_path / "a.idx", ITEMS[:8])
    idxfile.write(tmp_path / "b.idx", ITEMS[8:])
    files = [str(tmp_path / "a.idx"), str(tmp_path / "b.idx")]
    assert main(["concat", at("x.idx"), *files, "--shards", "4"]) == 0
    assert "s3://shelf/x-*-of-00004.idx: int16 20 × 3" in capsys.readouterr().err
    assert sorted(bucket.objects()) == SET
    for more in ([], ["--force"]):
        assert main(["concat", at("x.idx"), *files, "--shards", "4", *more]) == 2
        error = capsys.readouterr().err
        assert error.startswith(f"error: {at('x-*-of-00004.idx')}: There are 4 shards of the same")
    assert main(["check", at("x-*-of-00004.idx")]) == 0
    assert main(["check", at("x-?????-of-00004.idx")]) == 0
    for more in ([], ["--force"]):
        assert main(["convert", files[0], at("x.idx"), "--shards", "4", *more]) == 2
        assert "a set in a store is not replaced" in capsys.readouterr().err


# Opened


def put(bucket: BucketServer, objects: dict[str, bytes]) -> None:
    for name, data in objects.items():
        bucket.client.put_object(Bucket="shelf", Key=name, Body=data)
    bucket.requests.clear()


def shards_of(array: Any, name: str, count: int, codec: str | None = None) -> dict[str, bytes]:
    """A set as objects, with its manifest."""
    parts = np.array_split(array, count)
    names = named_shards(name, count)
    objects = {names.numbered(n): idxfile.encode(part, codec=codec) for n, part in enumerate(parts)}
    facts = [
        ShardFacts(key, len(part), len(data), hashlib.sha256(data).hexdigest())
        for (key, data), part in zip(objects.items(), parts, strict=True)
    ]
    manifest = Manifest(array.dtype.name, array.shape[1:], tuple(facts))
    return {**objects, names.manifest_name: manifest.encode()}


def in_folder(folder: str, objects: dict[str, bytes]) -> dict[str, bytes]:
    return {f"{folder}{name}": data for name, data in objects.items()}


PLACES = {
    "pattern": at("d/x-?????-of-00004.idx"),
    "star": at("d/x-*-of-00004.idx"),
    "any": at("d/x-*"),
    "list": [at(f"d/{name}") for name in NAMES],
    "folder": at("d/"),
    "manifest": at("d/x.manifest.json"),
}


@pytest.mark.parametrize("with_manifest", [True, False])
@pytest.mark.parametrize("way", PLACES)
def test_a_set_is_opened_as_one(bucket: BucketServer, way: str, with_manifest: bool) -> None:
    objects = shards_of(ITEMS, "x.idx", 4)
    if not with_manifest:
        del objects["x.manifest.json"]
        if way == "manifest":
            with pytest.raises(FileNotFoundError):
                idxfile.open(PLACES[way])
            return
    put(bucket, in_folder("d/", objects))
    with idxfile.open(PLACES[way]) as x:
        headers = [path for path, wanted in bucket.asked() if path.endswith(".idx")]
        looked_at = 0 if with_manifest and way != "list" else 4
        assert len(headers) == looked_at, "a manifest tells all of it"
        assert [shard.items for shard in x.shards] == [5, 5, 5, 5]
        for key in (7, -1, slice(3, 17, 4), [19, 0, 3], ..., slice(None, None, -1)):
            assert np.array_equal(x[key], ITEMS[key])
        travelling = pickle.dumps(x)
        assert np.array_equal(x.take([9, 9, 0]), ITEMS[[9, 9, 0]])
    assert b"secret-word" not in travelling
    with pickle.loads(travelling) as again:
        assert np.array_equal(again[...], ITEMS)
    report = idxfile.check(PLACES[way])
    assert report.ok, report.problems
    assert report.header is not None
    assert report.header.shape == (20, 3)
    assert idxfile.info(PLACES[way]).header.shape == (20, 3)
    assert idxfile.stats(PLACES[way]).count == 60


def test_scattered_items_cost_few_requests_of_each_shard_that_is_touched(
    bucket: BucketServer,
) -> None:
    many = np.random.default_rng(4).integers(0, 256, (16_000, 100), np.uint8)
    put(bucket, shards_of(many, "many.idx", 16))
    with idxfile.open(at("many-*-of-00016.idx")) as x:
        wanted = np.concatenate([np.arange(s * 1000, s * 1000 + 900, 90) for s in (2, 5, 11)])
        bucket.requests.clear()
        assert np.array_equal(x[wanted], many[wanted])
        touched = {path for path, _ in bucket.asked()}
        assert touched == {f"/shelf/many-{n:05d}-of-00016.idx" for n in (2, 5, 11)}
        assert len(bucket.asked()) <= 3 * 2, "its header, and all items at once"
        bucket.requests.clear()
        assert np.array_equal(x[wanted + 1], many[wanted + 1])
        assert len(bucket.asked()) <= 3


@pytest.mark.slow
def test_more_shards_than_a_store_lists_at_once(bucket: BucketServer) -> None:
    many = np.repeat(np.arange(1100, dtype="int16")[:, None], 600, axis=1)
    put(bucket, in_folder("many/", shards_of(many, "x.idx", 1100)))
    for place, most in ((at("many/"), 6), (at("many/x-*-of-01100.idx"), 4)):
        bucket.requests.clear()
        with idxfile.open(place) as x:
            assert len(bucket.requests) <= most
            assert x[[0, 555, 1099]][:, 0].tolist() == [0, 555, 1099]
            assert len(bucket.requests) <= most + 3 * 4
    bucket.client.delete_object(Bucket="shelf", Key="many/x-01042-of-01100.idx")
    with pytest.raises(FormatError, match=r"x-01042-of-01100\.idx: missing of 1,100 shards"):
        idxfile.open(at("many/"))


def test_shards_are_asked_side_by_side(bucket: BucketServer) -> None:
    """Eight requests wait at once: a barrier lets them go together."""
    put(bucket, shards_of(ITEMS, "x.idx", 10))
    with idxfile.open(at("x.manifest.json")) as x:
        together = threading.Barrier(8, timeout=20)

        def wait(method: str, path: str) -> int | None:
            if method == "GET" and path.endswith(".idx"):
                together.wait()
            return None

        bucket.before = wait
        assert np.array_equal(x[:16:2], ITEMS[:16:2])


@pytest.mark.parametrize("codec", ["gz", "zst"])
def test_compressed_shards(bucket: BucketServer, codec: str) -> None:
    put(bucket, shards_of(ITEMS, f"x.idx.{codec}", 4, codec))
    for place in (at("x.manifest.json"), at(f"x-*-of-00004.idx.{codec}"), at("")):
        with idxfile.open(place) as x:
            assert x.codecs == (codec,)
            assert np.array_equal(x[[19, 2]], ITEMS[[19, 2]])
            assert np.array_equal(x[...], ITEMS)
        assert idxfile.check(place).ok


# What is wrong


def test_a_shard_that_is_missing_is_named(
    bucket: BucketServer, capsys: pytest.CaptureFixture[str]
) -> None:
    objects = shards_of(ITEMS, "x.idx", 4)
    del objects[NAMES[2]]
    put(bucket, objects)
    for place in (at(""), at("x-*")):
        with pytest.raises(FormatError, match=r"x-00002-of-00004\.idx: missing of 4 shards"):
            idxfile.open(place)
        assert [p.code for p in idxfile.check(place).problems] == ["shard-missing"]
    for place in (at("x-*-of-00004.idx"), at("x.manifest.json")):
        with (
            pytest.raises(FormatError, match=r"x-00002-of-00004\.idx: missing of 4") as caught,
            idxfile.open(place) as x,
        ):
            x[...]
        assert caught.value.code == "shard-missing"
        assert main(["stats", place]) == 3  # who works by slabs opens each shard by itself
        assert "x-00002-of-00004.idx: missing of 4 shards" in capsys.readouterr().err
        assert [p.code for p in idxfile.check(place).problems] == ["shard-missing"]


def test_shards_that_do_not_fit_are_named(bucket: BucketServer) -> None:
    objects = shards_of(ITEMS, "x.idx", 4)
    manifest = objects.pop("x.manifest.json")
    put(bucket, {**objects, f"{NAMES[1]}.gz": b"the same number"})
    with pytest.raises(FormatError, match=r"00001-of-00004\.idx and x-00001-.*gz are the same"):
        idxfile.open(at(""))
    bucket.client.delete_object(Bucket="shelf", Key=f"{NAMES[1]}.gz")
    for wrong in (ITEMS[:5].astype("int32"), ITEMS[:5, :2]):
        put(bucket, {NAMES[3]: idx_bytes(wrong)})
        with pytest.raises(FormatError, match=r"x-00003-of-00004\.idx: items of .* as in s3://"):
            idxfile.open(at("x-*-of-00004.idx"))
        assert [p.code for p in idxfile.check(at("")).problems] == ["shard-differs"]
    put(bucket, {"x.manifest.json": manifest})
    with (
        idxfile.open(at("x-*-of-00004.idx")) as x,
        pytest.raises(FormatError, match=r"x-00003-of-00004\.idx: found .*, expected"),
    ):
        x[17]


@pytest.mark.parametrize("with_manifest", [True, False])
def test_a_shard_that_is_replaced_is_noticed(bucket: BucketServer, with_manifest: bool) -> None:
    wide = np.random.default_rng(6).integers(0, 256, (20, 5000), np.uint8)
    objects = shards_of(wide, "x.idx", 4)
    if not with_manifest:
        del objects["x.manifest.json"]
    put(bucket, objects)
    with idxfile.open(at("x-*-of-00004.idx")) as x:
        assert np.array_equal(x[6], wide[6])
        put(bucket, {NAMES[1]: idx_bytes(wide[10:15])})
        with pytest.raises(FormatError, match=r"x-00001-of-00004\.idx.*changed"):
            x[7]
        if with_manifest:  # nothing is known of a shard before it is touched but its size
            return
        put(bucket, {NAMES[2]: idx_bytes(wide[5:10])})
        with pytest.raises(FormatError, match=r"x-00002-of-00004\.idx: found another version"):
            x[11]


def test_a_cut_shard_is_noticed(bucket: BucketServer) -> None:
    objects = shards_of(ITEMS, "x.idx", 4)
    put(bucket, {**objects, NAMES[1]: objects[NAMES[1]][:-1]})
    with idxfile.open(at("x.manifest.json")) as x:
        assert np.array_equal(x[0], ITEMS[0])
        with pytest.raises(
            FormatError, match=r"x-00001-of-00004\.idx: found 41 bytes, expected 42"
        ):
            x[6]
    codes = [p.code for p in idxfile.check(at("")).problems]
    assert codes == ["truncated", "shard-changed"]
    bucket.client.delete_object(Bucket="shelf", Key="x.manifest.json")
    with pytest.raises(idxfile.TruncatedError, match=r"x-00001-of-00004\.idx: .* 1 missing"):
        idxfile.open(at(""))


@pytest.mark.parametrize("codec", [None, "gz"])
def test_check_holds_what_is_in_the_store_against_the_manifest(
    bucket: BucketServer, codec: str | None
) -> None:
    """Each object is fetched once, for the judgement and for its digest."""
    wide = np.random.default_rng(6).integers(0, 256, (20, 5000), np.uint8)
    objects = shards_of(wide, f"x.idx{'.gz' if codec else ''}", 4, codec)
    names = [name for name in objects if "-of-" in name]
    put(bucket, objects)
    assert idxfile.check(at("")).ok
    fetched = [path for path, _ in bucket.asked() if "-of-" in path]
    assert len(fetched) <= 2 * 4, "the first kilobyte, and the rest"
    data = bytearray(objects[names[2]])
    if codec is None:
        data[-1] ^= 1
    else:
        data[4] ^= 1  # the time, which nobody looks at
    put(bucket, {names[2]: bytes(data)})
    report = idxfile.check(at("x.manifest.json"))
    assert [(p.code, p.message.partition(" and")[0]) for p in report.problems] == [
        ("shard-changed", f"{names[2]}: SHA-256 {hashlib.sha256(data).hexdigest()},")
    ]
    assert report.file_nbytes == sum(len(objects[name]) for name in names)


# Pairs


IMAGES = np.random.default_rng(5).integers(0, 256, (20, 4, 4), np.uint8)
LABELS = np.arange(20, dtype=np.uint8) % 7


@pytest.mark.parametrize("labels", ["one", "shards", "packed"])
def test_labels_are_found_beside_shards(bucket: BucketServer, labels: str) -> None:
    objects = shards_of(IMAGES, "train-images-idx3-ubyte", 4)
    if labels == "shards":
        objects |= shards_of(LABELS, "train-labels-idx1-ubyte", 3)
    elif labels == "one":
        objects["train-labels-idx1-ubyte"] = idx_bytes(LABELS)
    else:
        objects["train-labels-idx1-ubyte.gz"] = idxfile.encode(LABELS, codec="gz")
    put(bucket, in_folder("d/", objects))
    places = [
        at("d/train-images-idx3-ubyte-*-of-00004"),
        at("d/train-images-idx3-ubyte-?????-of-00004"),
        at("d/"),
        at("d"),
    ]
    for place in places:
        with idxfile.open_dataset(place) as ds:
            assert np.array_equal(ds.labels, LABELS)
            assert np.array_equal(ds.images[...], IMAGES)
            assert ds.split == "train"
            with pickle.loads(pickle.dumps(ds)) as again:
                assert np.array_equal(again.labels, LABELS)


# The command line


def test_the_commands(
    bucket: BucketServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    objects = shards_of(IMAGES, "train-images-idx3-ubyte", 4)
    objects["train-labels-idx1-ubyte"] = idx_bytes(LABELS)
    put(bucket, in_folder("d/", objects))
    for pattern in ("*", "?????"):
        place = at(f"d/train-images-idx3-ubyte-{pattern}-of-00004")
        for command in ("info", "head", "stats", "check", "show"):
            assert main([command, place]) == 0, (command, capsys.readouterr().err)
            assert "20" in capsys.readouterr().out or command in ("check", "show", "head")
        assert main(["convert", "--force", place, str(tmp_path / "all.npy")]) == 0
        assert np.array_equal(np.load(tmp_path / "all.npy"), IMAGES)
    for place in (at("d/"), at("d/train-images-idx3-ubyte-*-of-00004")):
        assert main(["stats", place]) == 0
        assert "class  items\n0          3" in capsys.readouterr().out
    page = tmp_path / "page.html"
    assert main(["view", at("d/"), "--export", str(page)]) == 0
    assert "train-images-idx3-ubyte-*-of-00004" in page.read_text()
    assert main(["view", at("nothing/"), "--export", str(page), "--force"]) == 5
    capsys.readouterr()
    put(bucket, in_folder("alone/", shards_of(IMAGES, "x.idx", 4)))
    assert main(["show", at("alone/"), "19"]) == 0
    assert capsys.readouterr().out.startswith("19\n")
    assert main(["check", at("d/")]) == 0
    out = capsys.readouterr().out
    assert "a pair" in out
    bucket.client.delete_object(Bucket="shelf", Key="d/train-images-idx3-ubyte-00001-of-00004")
    assert main(["check", at("d/train-images-idx3-ubyte-*-of-00004")]) == 1
    assert "train-images-idx3-ubyte-00001-of-00004: missing of 4 shards" in capsys.readouterr().out
    assert main(["check", at("d/")]) == 1
    place = at("d/train-images-idx3-ubyte-*-of-00004")
    assert main(["convert", "--force", place, str(tmp_path / "all.npy")]) == 3
    assert "00001-of-00004: missing of 4 shards" in capsys.readouterr().err
    with pytest.raises(FileNotFoundError):  # what is not there at all is no set that lacks one
        idxfile.open(at("d/nothing-*-of-00004.idx"))


# Of a web server


@pytest.fixture
def web(monkeypatch: pytest.MonkeyPatch) -> Iterator[RangeServer]:
    """Shards of images, with a manifest and a page, and a file of labels."""
    limits = faults.Limits(connect_seconds=2, stall_seconds=1, attempts=3, first_pause_seconds=0.01)
    monkeypatch.setattr(faults, "LIMITS", limits)
    objects = shards_of(WIDE, "train-images-idx3-ubyte", 4)
    objects["train-labels-idx1-ubyte.gz"] = idxfile.encode(LABELS, codec="gz")
    page = "".join(f'<a href="{name}">{name}</a>' for name in objects)
    with RangeServer({**in_folder("d/", objects), "d/": page.encode()}) as server:
        yield server


WIDE = np.random.default_rng(11).integers(0, 256, (20, 50, 30), np.uint8)
IMAGE_SHARD = "train-images-idx3-ubyte-00001-of-00004"
WEB_PLACES = {
    "pattern": "d/train-images-idx3-ubyte-*-of-00004",
    "question marks": "d/train-images-idx3-ubyte-?????-of-00004",
    "manifest": "d/train-images-idx3-ubyte.manifest.json",
    "folder": "d/",
    "any": "d/train-images*",
}


@pytest.mark.parametrize("behaviour", ["ok", "listed", "no ranges", "no tag", "redirect", "busy"])
@pytest.mark.parametrize("way", WEB_PLACES)
def test_a_set_behind_http(web: RangeServer, way: str, behaviour: str) -> None:
    place = web.at(behaviour, WEB_PLACES[way])
    if way in ("folder", "any") and behaviour != "listed":
        with pytest.raises((FormatError, FetchError)):
            idxfile.open(place)
        return
    with idxfile.open(place) as x:
        assert web.requests
        assert not [path for path, _ in web.requests if "-of-" in path], "the manifest tells all"
        assert np.array_equal(x[[19, 0, 7]], WIDE[[19, 0, 7]])
        assert np.array_equal(x[6], WIDE[6])
        assert np.array_equal(x[...], WIDE)
    if way in ("manifest", "any"):  # they stand for one array
        return
    with idxfile.open_dataset(place) as ds:
        assert np.array_equal(ds.labels, LABELS)
        assert np.array_equal(ds[17][0], WIDE[17])


FAULTS = {
    "cut": None,
    "resets": None,
    "later all": "the whole of it",
    "wrong range": "the server answers bytes 5-1028/",
    "longer": "changed while it was being read",
    "replaced": "changed while it was being read",
    "replaced, matching": "changed while it was being read",
    "404": "00001-of-00004: missing of 4 shards",
    "503": "the store answers 503",
}


@pytest.mark.parametrize("with_manifest", [True, False])
@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_of_one_shard(web: RangeServer, fault: str, with_manifest: bool) -> None:
    """Items of the others are right, and those of this one too, or an error names it."""
    place = web.at("ok", WEB_PLACES["pattern"])
    if not with_manifest:
        del web.files["d/train-images-idx3-ubyte.manifest.json"]
    web.instead[f"/ok/d/{IMAGE_SHARD}"] = fault
    message = FAULTS[fault]
    if fault.isdigit() and not with_manifest:
        with pytest.raises((FormatError, FetchError), match=message) as caught:
            idxfile.open(place)
        assert IMAGE_SHARD in str(caught.value)
        return
    with idxfile.open(place) as x:
        assert np.array_equal(x[[0, 11, 19]], WIDE[[0, 11, 19]])
        if message is None:
            assert np.array_equal(x[...], WIDE)
            return
        with pytest.raises((FormatError, FetchError), match=message) as caught:
            x[[0, 9]]
        assert IMAGE_SHARD in str(caught.value)


def test_a_signature_goes_with_every_request(web: RangeServer) -> None:
    place = web.at("ok", WEB_PLACES["pattern"]) + "?X-Signature=deadbeef"
    with idxfile.open(place) as x:
        assert np.array_equal(x[7], WIDE[7])
        assert "deadbeef" not in repr(x)
    with idxfile.open_dataset(place) as ds:
        assert np.array_equal(ds.labels, LABELS)
    assert all(path.endswith("?X-Signature=deadbeef") for path, _ in web.requests)


def test_check_of_a_folder_behind_http(
    web: RangeServer, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["check", web.at("listed", "d/")]) == 0
    assert capsys.readouterr().out.count(": ok (") == 3, "a set, its labels, and the pair of both"
    assert main(["check", web.at("listed", "d/train-images*")]) == 0
    assert main(["check", web.at("listed", "d/nothing*")]) == 2
    web.instead[f"/listed/d/{IMAGE_SHARD}"] = "replaced"
    capsys.readouterr()
    assert main(["check", web.at("listed", "d/")]) == 1
    assert f"{IMAGE_SHARD}: the object changed" in capsys.readouterr().out


def test_a_list_of_addresses_is_taken_as_it_is(web: RangeServer) -> None:
    names = [f"train-images-idx3-ubyte-{n:05d}-of-00004" for n in (3, 0)]
    with idxfile.open([web.at("ok", f"d/{name}") for name in names]) as x:
        assert np.array_equal(x[...], np.concatenate([WIDE[15:], WIDE[:5]]))
    images = [web.at("ok", f"d/{name}") for name in reversed(names)]
    labels = idxfile.encode(LABELS[[*range(5), *range(15, 20)]])
    with idxfile.open_dataset((images, labels)) as ds:
        assert np.array_equal(ds[6][0], WIDE[16])


# Blocks


def gzi_of(data: bytes) -> bytes:
    """The table that `bgzip -i` writes: where each member but the first begins, here and there."""
    places, at, content = [], 0, 0
    while at < len(data):
        length = struct.unpack_from("<H", data, at + 16)[0] + 1
        size = struct.unpack_from("<I", data, at + length - 4)[0]
        at, content = at + length, content + size
        places.append((at, content))
    places = places[:-2]  # the last member is empty, and behind it there is none
    return struct.pack("<Q", len(places)) + b"".join(struct.pack("<QQ", *p) for p in places)


def test_blocks_are_found_by_the_table_beside_an_object(bucket: BucketServer) -> None:
    many = np.random.default_rng(4).integers(0, 256, (30_000, 100), np.uint8)
    data = idxfile.encode(many, codec="gz", blocked=True)
    put(bucket, {"many.idx.gz": data, "many.idx.gz.gzi": gzi_of(data)})
    with idxfile.open(at("many.idx.gz")) as x:
        bucket.requests.clear()
        assert np.array_equal(x[[7, 15_000, 29_000]], many[[7, 15_000, 29_000]])
        # What opening fetched ahead of the header may be on its way still: one long range.
        begun = [each for each in bucket.asked() if range_nbytes(each[1]) > 1 << 20]
        asked = [each for each in bucket.asked() if each not in begun[:1]]
        assert len(asked) <= 8, "the table, where it ends, and a range an item"
        fetched = [range_nbytes(wanted) for path, wanted in asked if "gzi" not in path]
        assert 0 < sum(fetched) < len(data) // 4
        bucket.requests.clear()
        assert np.array_equal(x[[900, 16_000]], many[[900, 16_000]])
        assert len(bucket.asked()) == 2
    put(bucket, {"many.idx.gz.gzi": gzi_of(data)[:-16] + struct.pack("<QQ", 5, 65_280)})
    with idxfile.open(at("many.idx.gz")) as x:
        assert np.array_equal(x[[7, 29_999]], many[[7, 29_999]])


@pytest.mark.parametrize("count", [1, 653, 30_000])
def test_blocked_gzip_is_written_with_its_table(bucket: BucketServer, count: int) -> None:
    many = np.random.default_rng(4).integers(0, 256, (count, 100), np.uint8)
    data = idxfile.encode(many, codec="gz", blocked=True)
    idxfile.write(at("many.idx.gz"), many, blocked=True)
    assert bucket.objects() == {"many.idx.gz": data, "many.idx.gz.gzi": gzi_of(data)}
    with idxfile.open(at("many.idx.gz")) as x:
        assert x.random_access
        assert np.array_equal(x[count - 1], many[count - 1])
    # Another object under this name, whose table is that of the old one: it is read all the same.
    for other in (data + data[-28:], idxfile.encode(many[::-1], codec="gz", blocked=True)):
        put(bucket, {"many.idx.gz": other})
        with idxfile.open(at("many.idx.gz")) as x:
            assert len(x[::-1]) == count
    put(bucket, {"many.idx.gz": idxfile.encode(many[: count // 2], codec="gz", blocked=True)})
    assert np.array_equal(idxfile.read(at("many.idx.gz")), many[: count // 2])
    with idxfile.open(at("many.idx.gz")) as x:
        assert np.array_equal(x[::-1][:9], many[: count // 2][::-1][:9])


def test_a_table_is_no_half_of_a_pair(bucket: BucketServer) -> None:
    idxfile.write(at("d/train-images-idx3-ubyte.gz"), IMAGES, blocked=True)
    idxfile.write(at("d/train-labels-idx1-ubyte.gz"), LABELS, blocked=True)
    with idxfile.open_dataset(at("d/")) as ds:
        assert np.array_equal(ds.labels, LABELS)
    assert idxfile.check(at("d/train-images-idx3-ubyte.gz")).ok


def test_without_its_table_blocked_gzip_is_whole(bucket: BucketServer) -> None:
    bucket.before = lambda method, path: 403 if path.endswith(".gzi") and method != "GET" else None
    with pytest.warns(idxfile.IdxWarning, match=r"s3://shelf/x\.idx\.gz\.gzi: .*refuses it"):
        idxfile.write(at("x.idx.gz"), ITEMS, blocked=True)
    assert list(bucket.objects()) == ["x.idx.gz"]
    assert np.array_equal(idxfile.read(at("x.idx.gz")), ITEMS)


def range_nbytes(wanted: str | None) -> int:
    assert wanted is not None
    low, _, high = wanted.removeprefix("bytes=").partition("-")
    return int(high) + 1 - int(low) if high else 1 << 40
