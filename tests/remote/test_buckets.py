"""Objects of a bucket, by obstore and by fsspec: the same items, few requests, no wrong ones."""

from __future__ import annotations

import os
import pickle
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bucket_server import BucketServer
from buckets import bucket_fixture, shared_fixture  # noqa: F401
from shelf import BIG, IMAGES, LABELS, WIDE

import idxfile
from conftest import idx_bytes
from idxfile import FetchError, FormatError, UnsupportedError
from idxfile.cli import main

OBJECTS = {
    "images.idx": idx_bytes(IMAGES),
    "wide.idx": idx_bytes(WIDE),
    "images.idx.gz": idxfile.encode(IMAGES, codec="gz"),
    "small.idx": idx_bytes(LABELS),
    "empty.idx": b"",
    "mnist/train-images-idx3-ubyte": idx_bytes(IMAGES),
    "mnist/train-labels-idx1-ubyte.gz": idxfile.encode(LABELS, codec="gz"),
}
EXPECTED = {"images.idx": IMAGES, "wide.idx": WIDE, "images.idx.gz": IMAGES, "small.idx": LABELS}


@pytest.fixture(autouse=True)
def _objects(bucket: BucketServer) -> None:
    for name, data in OBJECTS.items():
        bucket.client.put_object(Bucket="shelf", Key=name, Body=data)
    bucket.requests.clear()


def at(name: str) -> str:
    return f"s3://shelf/{name}"


@pytest.mark.parametrize("name", EXPECTED)
def test_everything_is_read(bucket: BucketServer, name: str) -> None:
    expected = EXPECTED[name]
    assert np.array_equal(idxfile.read(at(name)), expected)
    with idxfile.open(at(name)) as x:
        assert np.array_equal(x[7], expected[7])
        assert np.array_equal(x[::-3], expected[::-3])
        assert np.array_equal(x.take([9, 250, 9]), expected[[9, 250, 9]])
    assert idxfile.check(at(name)).ok
    assert idxfile.info(at(name)).file_nbytes == len(OBJECTS[name])


def test_a_header_costs_one_small_request(bucket: BucketServer) -> None:
    with idxfile.open(at("wide.idx")) as x:
        assert x.shape == WIDE.shape
    assert bucket.asked() == [("/shelf/wide.idx", "bytes=0-1023")]
    # fsspec asks how long it is by a request of its own
    assert len(bucket.asked("HEAD")) == (bucket.package == "fsspec")


def test_scattered_items_cost_few_requests(bucket: BucketServer) -> None:
    bucket.client.put_object(Bucket="shelf", Key="big.idx", Body=idx_bytes(BIG))
    items = np.random.default_rng(2).integers(0, 60_000, 100)
    with idxfile.open(at("big.idx")) as x:
        bucket.requests.clear()
        assert np.array_equal(x[items], BIG[items])
        assert 1 < len(bucket.requests) <= 10
    bucket.client.delete_object(Bucket="shelf", Key="big.idx")


def test_a_replaced_object_is_noticed(bucket: BucketServer) -> None:
    with idxfile.open(at("images.idx")) as x:
        travelling = pickle.dumps(x)
        assert np.array_equal(x[5], IMAGES[5])
        other = idx_bytes(255 - IMAGES)
        bucket.client.put_object(Bucket="shelf", Key="images.idx", Body=other)
        with pytest.raises(FormatError, match="changed while it was being read"):
            x[6]
    with pytest.raises(FormatError, match="has changed since it was pickled") as caught:
        pickle.loads(travelling)
    assert caught.value.code == "changed"


def test_a_pickle_is_a_recipe(bucket: BucketServer) -> None:
    with idxfile.open(at("images.idx")) as x:
        travelling = pickle.dumps(x)
    assert len(travelling) < 1000
    assert b"secret-word" not in travelling
    with pickle.loads(travelling) as y:
        assert np.array_equal(y[5], IMAGES[5])


def test_faults_that_pass_are_waited_for(bucket: BucketServer) -> None:
    with idxfile.open(at("images.idx")) as x:
        turns = iter([503, 500, None])
        bucket.before = lambda method, path: next(turns, None)
        assert np.array_equal(x[6], IMAGES[6])


@pytest.mark.parametrize(
    ("status", "kind"), [(404, FileNotFoundError), (403, PermissionError), (400, FetchError)]
)
def test_faults_that_stay_are_told(bucket: BucketServer, status: int, kind: Any) -> None:
    bucket.before = lambda method, path: status
    with pytest.raises(kind) as caught:
        idxfile.open(at("images.idx"))
    assert isinstance(caught.value, FetchError)
    assert str(caught.value).startswith("s3://shelf/images.idx: ")
    assert "hint: " in str(caught.value)
    assert "secret-word" not in str(caught.value)


def test_what_is_not_there(bucket: BucketServer, capsys: pytest.CaptureFixture[str]) -> None:
    for place in (at("none.idx"), "s3://no-such-shelf/a.idx"):
        with pytest.raises(FetchError):
            idxfile.open(place)
    assert main(["info", at("none.idx")]) == 5
    assert capsys.readouterr().err.startswith(
        "error: s3://shelf/none.idx: there is no such object\nhint: "
    )
    with pytest.raises(FormatError, match="file is empty"):
        idxfile.open(at("empty.idx"))


def test_pairs_are_found_beside_and_in_folders(bucket: BucketServer) -> None:
    for place in (
        at("mnist/train-images-idx3-ubyte"),
        at("mnist/train-labels-idx1-ubyte.gz"),
        at("mnist"),
        at("mnist/"),
    ):
        with idxfile.open_dataset(place) as ds:
            assert np.array_equal(ds.labels, LABELS)
            assert np.array_equal(ds[7][0], IMAGES[7])
            assert ds.split == "train"
    with pytest.raises(FileNotFoundError, match=r"nothing of the kind is there|no such object"):
        idxfile.open_dataset(at("nowhere/"))


@pytest.mark.parametrize("folder", ["run#5", "100%", "a%20b", "ü ö", "q?1"])
def test_a_name_is_taken_as_it_is_written(bucket: BucketServer, folder: str) -> None:
    idxfile.write(at(f"{folder}/train-images-idx3-ubyte"), IMAGES)
    idxfile.write(at(f"{folder}/train-labels-idx1-ubyte"), LABELS)
    assert {f"{folder}/train-images-idx3-ubyte", f"{folder}/train-labels-idx1-ubyte"} <= set(
        bucket.objects()
    )
    with idxfile.open_dataset(at(f"{folder}/")) as ds:
        assert np.array_equal(ds.images[:], IMAGES)
        assert np.array_equal(ds.labels, LABELS)
    assert idxfile.open_dataset(at(f"{folder}/train-images-idx3-ubyte")).labels[0] == LABELS[0]
    with idxfile.create(at(f"{folder}/x.idx"), dtype="uint8", count=300, shards=3) as writer:
        writer.append(LABELS)
    for name in ("x.manifest.json", "x-*-of-00003.idx", "x-*.idx"):
        with idxfile.open(at(f"{folder}/{name}")) as x:
            assert np.array_equal(x[:], LABELS)
    with pytest.raises(FileNotFoundError, match=re.escape(f"s3://shelf/{folder}/no.idx: ")):
        idxfile.open(at(f"{folder}/no.idx"))


def test_an_address_in_a_store_names_no_version(bucket: BucketServer) -> None:
    secret = f"{at('small.idx')}?versionId=abc"
    with pytest.raises(UnsupportedError, match=r"small\.idx\?…: an address .* names no version"):
        idxfile.open(secret)
    assert not bucket.requests


def test_what_stands_behind_a_number_sign_is_no_other_object(bucket: BucketServer) -> None:
    bucket.client.put_object(Bucket="shelf", Key="h", Body=OBJECTS["wide.idx"])
    for name in ("h#1.idx", "h?1.idx"):
        with pytest.raises(FileNotFoundError):
            idxfile.open(at(name))


def test_a_folder_and_a_missing_bucket_are_told(
    bucket: BucketServer, capsys: pytest.CaptureFixture[str]
) -> None:
    bucket.client.put_object(Bucket="shelf", Key="deep/er/x.idx", Body=OBJECTS["small.idx"])
    for name in ("mnist", "mnist/", "deep", "deep/"):
        with pytest.raises(IsADirectoryError, match=f"s3://shelf/{name}: is a folder"):
            idxfile.open(at(name))
        assert main(["info", at(name)]) == 5
        assert "hint: give one of the files in it" in capsys.readouterr().err
    for name in ("mni", "mnist/train"):
        with pytest.raises(FileNotFoundError, match="there is no such object"):
            idxfile.open(at(name))
    with pytest.raises(FileNotFoundError, match=r"s3://none/x\.idx: there is no such bucket"):
        idxfile.open("s3://none/x.idx")
    for place in ("s3://none/", "s3://none/x-*"):
        with pytest.raises(FileNotFoundError, match="there is no such bucket"):
            idxfile.open(place)
    with pytest.raises(FileNotFoundError, match=r"s3://none/x\S+: there is no such bucket"):
        idxfile.concat("s3://none/x.idx", [OBJECTS["small.idx"]], shards=2)


def test_a_refusal_names_the_credentials(
    bucket: BucketServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    idxfile.write(tmp_path / "x.idx", LABELS)
    bucket.before = lambda method, path: 403
    words = ["concat", at("new.idx"), str(tmp_path / "x.idx")]
    assert main(words) == 2
    error = capsys.readouterr().err
    assert "the store refuses it" in error
    assert "AWS_ACCESS_KEY_ID" in error
    assert "--force writes over it" in error
    assert main([*words, "--force"]) == 5
    assert "hint: credentials are taken from the environment" in capsys.readouterr().err


@pytest.mark.parametrize("variable", ["AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3"])
def test_a_store_that_is_not_there_is_told_by_its_variable(
    bucket: BucketServer, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    monkeypatch.setenv(variable, "http://127.0.0.1:9")
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    with pytest.raises(FetchError, match=r"small\.idx: the store cannot be reached") as caught:
        idxfile.open(at("small.idx"))
    assert caught.value.hint is not None
    assert f"{variable}, which is http://127.0.0.1:9" in caught.value.hint


def test_a_busy_store_is_told(bucket: BucketServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    bucket.before = lambda method, path: 503
    with pytest.raises(FetchError, match="Service Unavailable") as caught:
        idxfile.open(at("small.idx"))
    assert caught.value.hint == "try again later"


def test_an_object_that_is_called_like_a_pattern(bucket: BucketServer) -> None:
    bucket.client.put_object(Bucket="shelf", Key="s*.idx", Body=OBJECTS["images.idx"])
    assert np.array_equal(idxfile.read(at("s*.idx")), IMAGES)


def test_a_name_with_an_empty_part(bucket: BucketServer) -> None:
    bucket.client.put_object(Bucket="shelf", Key="a//x.idx", Body=OBJECTS["small.idx"])
    if bucket.package == "fsspec":
        assert np.array_equal(idxfile.read(at("a//x.idx")), LABELS)
    else:
        for name in ("a//x.idx", "a\nb.idx"):
            with pytest.raises(FetchError, match="no empty part of a name"):
                idxfile.open(at(name))


def _in_a_fork(function: Callable[[], object]) -> str:
    """What a forked process tells: its error, or the value."""
    end, start = os.pipe()
    child = os.fork()
    if not child:
        try:
            text = str(function())
        except BaseException as error:
            text = f"{type(error).__name__}: {error}"
        os.write(start, text.encode())
        os._exit(0)
    os.close(start)
    with open(end) as told:
        text = told.read()
    os.waitpid(child, 0)
    return text


def test_a_forked_process_is_told_and_does_not_wait_for_ever(bucket: BucketServer) -> None:
    told = {"obstore": "before this process was forked", "fsspec": "not fork-safe"}
    with idxfile.open(at("images.idx")) as x:
        assert told[bucket.package] in _in_a_fork(lambda: x[250])
        assert np.array_equal(x[250], IMAGES[250])
    opened = _in_a_fork(lambda: idxfile.open(at("images.idx")).shape)
    assert (told["obstore"] if bucket.package == "obstore" else "(300, 28, 28)") in opened


def test_a_folder_that_may_not_be_listed_is_refused(bucket: BucketServer) -> None:
    bucket.before = lambda method, path: 403
    with pytest.raises(PermissionError, match="refuses it") as caught:
        idxfile.open_dataset(at("mnist/"))
    assert isinstance(caught.value, FetchError)


def test_a_store_that_cannot_is_asked_so_often_and_no_more(bucket: BucketServer) -> None:
    bucket.before = lambda method, path: 503
    with pytest.raises(FetchError):
        idxfile.open(at("images.idx"))
    if bucket.package == "obstore":  # fsspec counts for itself
        assert len(bucket.requests) == 3
