"""Sets of shards in stores: written whole or not at all, opened as one, checked and attacked."""

from __future__ import annotations

import gc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bucket_server import BucketServer
from buckets import bucket_fixture, shared_fixture  # noqa: F401

import idxfile
from conftest import idx_bytes
from idxfile import FetchError
from idxfile.cli import main
from idxfile.shards import named_shards

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
    assert caught.value.filename == "s3://shelf/"
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
    assert "s3://shelf/x-?????-of-00004.idx: int16 20 × 3" in capsys.readouterr().err
    assert sorted(bucket.objects()) == SET
    for more in ([], ["--force"]):
        assert main(["concat", at("x.idx"), *files, "--shards", "4", *more]) == 2
        error = capsys.readouterr().err
        assert error.startswith("error: s3://shelf/: There are 4 shards of the same name")
    assert main(["check", at("x-*-of-00004.idx")]) == 0
    assert main(["check", at("x-?????-of-00004.idx")]) == 0
