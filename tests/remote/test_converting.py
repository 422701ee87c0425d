"""Conversions into sets of shards in a store: a pair is there as a whole, or nothing of it."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from bucket_server import BucketServer
from buckets import There, bucket_fixture, shared_fixture  # noqa: F401

import idxfile
from idxfile import FetchError, Processes, UnsupportedError, convert
from idxfile.cli import main
from idxfile.source.remote import object

IMAGES = np.random.default_rng(2).integers(0, 256, (53, 4, 5), "uint8")
LABELS = (np.arange(53) % 3).astype("uint8")
BIG = np.random.default_rng(9).integers(0, 256, (21_000, 28, 28), np.uint8)
"""Of more parts than one: S3 takes none below 5 MiB but the last."""

OUT = "s3://shelf/out/"
MANIFESTS = [
    "out/train-images-idx3-ubyte.manifest.json",
    "out/train-labels-idx1-ubyte.manifest.json",
]


@pytest.fixture(name="pair")
def pair_fixture(tmp_path: Path) -> Path:
    """A pair that knows the names of its classes."""
    ds = idxfile.Dataset(IMAGES, LABELS, classes=["a", "b", "c"])
    ds.save(tmp_path / "pair")
    return tmp_path / "pair"


@pytest.fixture(name="_small_parts")
def small_parts_fixture(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(object, "PART_NBYTES", 5 << 20)


def here(folder: Path) -> dict[str, bytes]:
    """What lies in a folder, as it would in the bucket."""
    return {f"out/{path.name}": path.read_bytes() for path in folder.iterdir()}


@pytest.mark.parametrize("kind", ["alone", "threads"])
def test_a_pair_of_sets(bucket: BucketServer, pair: Path, tmp_path: Path, kind: str) -> None:
    convert(pair, f"{tmp_path}/there/", shards=3)
    expected = here(tmp_path / "there")
    assert len(expected) == 9
    with ThreadPoolExecutor(2) as threads:
        done = convert(pair, OUT, shards=3, executor=None if kind == "alone" else threads)
    assert done.columns["images"] == ("uint8", IMAGES.shape)
    assert bucket.objects() == expected
    assert bucket.unfinished() == []
    sent = [path.removeprefix("/shelf/") for path, _ in bucket.asked("PUT")]
    assert [path.partition("?")[0] for path in sent[-2:]] == MANIFESTS
    with idxfile.open_dataset(OUT) as ds:
        assert np.array_equal(ds.images[...], IMAGES)
        assert np.array_equal(ds.labels, LABELS)
        assert ds.classes == ("a", "b", "c")
    with pytest.raises(FileExistsError, match="choose another name"):
        convert(pair, OUT, shards=3)
    with pytest.raises(FileExistsError, match="choose another name"):
        convert(pair, OUT, shards=4)
    assert bucket.objects() == expected


def test_the_command_line(
    bucket: BucketServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = str(tmp_path / "both.npz")
    np.savez(source, x_train=IMAGES, y_train=LABELS, x_test=IMAGES[:7], y_test=LABELS[:7])
    assert main(["convert", source, OUT, "--split", "all", "--shards", "2", "-O", "codec=gz"]) == 0
    capsys.readouterr()
    assert len(bucket.objects()) == 12
    for split, count in (("train", 53), ("test", 7)):
        with idxfile.open_dataset(OUT, split=split) as ds:
            assert np.array_equal(ds.images[...], IMAGES[:count])
            assert np.array_equal(ds.labels, LABELS[:count])
    assert main(["check", OUT]) == 0
    assert main(["convert", source, OUT, "--split", "train", "--shards", "2", "--force"]) == 2
    assert "2 shards of the same name" in capsys.readouterr().err
    assert len(bucket.objects()) == 12


def test_splits_that_share_their_classes(bucket: BucketServer, pair: Path) -> None:
    ds = idxfile.Dataset(IMAGES[:9], LABELS[:9], classes=["a", "b", "c"])
    ds.split = "test"
    ds.save(pair)
    convert(pair, OUT, split="all", shards=2, overwrite=False)
    assert len(bucket.objects()) == 13
    assert bucket.objects()["out/classes.txt"] == b"a\nb\nc\n"


@pytest.mark.parametrize(
    "word",
    ["train-images-idx3-ubyte-00001", "labels-idx1-ubyte-00002", "classes", *MANIFESTS],
)
def test_a_failure_leaves_nothing(bucket: BucketServer, pair: Path, word: str) -> None:
    bucket.client.put_object(Bucket="shelf", Key="out/mine", Body=b"mine")
    bucket.before = lambda method, path: 403 if method in ("PUT", "POST") and word in path else None
    with pytest.raises(FetchError, match="the store refuses"), ThreadPoolExecutor(2) as threads:
        convert(pair, OUT, shards=3, executor=threads)
    assert bucket.objects() == {"out/mine": b"mine"}
    assert bucket.unfinished() == []


def test_a_source_that_fails_in_the_middle(bucket: BucketServer, tmp_path: Path) -> None:
    values = np.zeros((9, 2, 2))
    values[5] = 0.1
    np.savez(tmp_path / "x.npz", x_train=values, y_train=LABELS[:9])
    with pytest.raises(UnsupportedError):
        convert(tmp_path / "x.npz", OUT, split="train", dtype="float32", shards=3)
    assert bucket.objects() == {}


def test_other_names_of_classes_are_not_written_over_unasked(
    bucket: BucketServer, pair: Path
) -> None:
    bucket.client.put_object(Bucket="shelf", Key="out/classes.txt", Body=b"x\n")
    with pytest.raises(FileExistsError, match="would be replaced"):
        convert(pair, OUT, shards=2, overwrite=False)
    assert bucket.objects() == {"out/classes.txt": b"x\n"}
    convert(pair, OUT, shards=2)
    assert bucket.objects()["out/classes.txt"] == b"a\nb\nc\n"


@pytest.mark.usefixtures("_small_parts")
def test_a_file_is_written_by_many(bucket: BucketServer, tmp_path: Path) -> None:
    idxfile.write(tmp_path / "all.idx", BIG)
    with ThreadPoolExecutor(2) as threads:
        convert(tmp_path / "all.idx", "s3://shelf/x.npy", executor=threads)
        convert("s3://shelf/x.npy", "s3://shelf/x.idx", executor=threads)
    convert(tmp_path / "all.idx", tmp_path / "x.npy")
    expected = {name: (tmp_path / name).read_bytes() for name in ("x.npy",)}
    assert bucket.objects() == {**expected, "x.idx": idxfile.encode(BIG)}
    assert bucket.unfinished() == []
    parts = [path for path, _ in bucket.asked("PUT") if "partNumber" in path]
    assert len(parts) >= 6


def test_a_pair_is_written_by_many(bucket: BucketServer, pair: Path, tmp_path: Path) -> None:
    convert(pair, f"{tmp_path}/there/")
    with ThreadPoolExecutor(2) as threads:
        convert(pair, OUT, executor=threads)
        assert bucket.objects() == here(tmp_path / "there")
        with pytest.raises(FileExistsError):
            convert(pair, OUT, executor=threads, overwrite=False)
        convert(pair, OUT, executor=threads)
    assert bucket.objects() == here(tmp_path / "there")
    assert bucket.unfinished() == []


@pytest.mark.parametrize("word", ["train-images-idx3-ubyte", "train-labels-idx1-ubyte", "classes"])
def test_a_pair_that_fails_leaves_nothing(bucket: BucketServer, pair: Path, word: str) -> None:
    bucket.client.put_object(Bucket="shelf", Key="out/mine", Body=b"mine")
    bucket.before = lambda method, path: 403 if method in ("PUT", "POST") and word in path else None
    with pytest.raises(FetchError, match="the store refuses"), ThreadPoolExecutor(2) as threads:
        convert(pair, OUT, executor=threads)
    assert bucket.objects() == {"out/mine": b"mine"}
    assert bucket.unfinished() == []


@pytest.mark.slow
def test_processes_do_the_same(bucket: BucketServer, pair: Path, tmp_path: Path) -> None:
    convert(pair, f"{tmp_path}/there/", shards=3)
    with There(Processes(2)) as executor:
        convert(pair, OUT, shards=3, executor=executor)
    assert bucket.objects() == here(tmp_path / "there")
    assert bucket.unfinished() == []
