"""Objects that are written: there when they are complete, or not at all."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bucket_server import BucketServer
from buckets import bucket_fixture, shared_fixture  # noqa: F401
from shelf import WAYS, give_up

import idxfile
from conftest import idx_bytes
from idxfile import FetchError, UnsupportedError
from idxfile.cli import main
from idxfile.formats.results import result
from idxfile.sending import send
from idxfile.source.remote import fsspec, object, obstore
from idxfile.staging import atomic_file

IMAGES = np.random.default_rng(7).integers(0, 256, (300, 28, 28), np.uint8)
BIG = np.random.default_rng(9).integers(0, 256, (20_000, 28, 28), np.uint8)


def at(name: str) -> str:
    return f"s3://shelf/{name}"


@pytest.fixture(autouse=True)
def _small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """The least that S3 takes: 5 MiB."""
    monkeypatch.setattr(object, "PART_NBYTES", 5 << 20)


@pytest.mark.parametrize("store", [fsspec, obstore])
def test_the_parts_of_a_large_object_are_longer(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, store: Any
) -> None:
    """S3 takes 10,000 of them: of 32 MiB they make 312 GiB, and no more."""
    parts: list[int] = []

    def begun(url: str, part: int) -> Any:
        parts.append(part)
        raise ZeroDivisionError

    monkeypatch.setattr(object, "PART_NBYTES", 1 << 25)
    monkeypatch.setenv("IDXFILE_REMOTE", "fsspec" if store is fsspec else "obstore")
    monkeypatch.setattr(store, "open_upload", begun)
    for count in (100, 10**9, 2**32 - 1):
        for name in ("a.idx", "a.idx.gz"):
            with pytest.raises(ZeroDivisionError):
                idxfile.create(at(name), dtype="uint8", item_shape=(28, 28), count=count)
    with open(tmp_path / "sparse", "w+b") as file:
        file.truncate(10**12)
        with pytest.raises(ZeroDivisionError):
            send(file, at("a.bin"))
    sizes = [78_400, 78_400, 784e9, 784e9, 784 * 2**32, 784 * 2**32, 10**12]
    for part, whole in zip(parts, sizes, strict=True):
        assert part == 1 << 25 if whole < 1 << 38 else whole <= part * 10_000 <= 1.02 * whole


@pytest.mark.parametrize("array", [IMAGES, BIG], ids=["small", "in parts"])
def test_an_object_is_written(bucket: BucketServer, array: Any) -> None:
    idxfile.write(at("new.idx"), array)
    idxfile.write(at("d/new.idx.gz"), array, blocked=True)
    objects = bucket.objects()
    assert objects["new.idx"] == idx_bytes(array)
    assert np.array_equal(idxfile.read(objects["d/new.idx.gz"]), array)
    assert np.array_equal(idxfile.read(at("d/new.idx.gz")), array)
    assert bucket.unfinished() == []


def test_it_is_not_there_before_it_is_complete(bucket: BucketServer) -> None:
    bucket.client.put_object(Bucket="shelf", Key="new.idx", Body=b"old")
    for count in (len(BIG), None):
        with idxfile.create(at("new.idx"), dtype="uint8", item_shape=(28, 28), count=count) as w:
            for start in range(0, len(BIG), 2000):
                w.append(BIG[start : start + 2000])
                assert bucket.objects() == {"new.idx": b"old"}
        assert bucket.objects() == {"new.idx": idx_bytes(BIG)}
        bucket.client.put_object(Bucket="shelf", Key="new.idx", Body=b"old")
    assert bucket.unfinished() == []


@pytest.mark.parametrize("count", [len(BIG), None])
@pytest.mark.parametrize("way", WAYS)
def test_nothing_is_left_of_what_is_given_up(
    bucket: BucketServer, count: int | None, way: str
) -> None:
    if way == "too few" and count is None:
        count = 2 * len(BIG)
    new: dict[str, Any] = {"dtype": "uint8", "item_shape": (28, 28), "count": count}
    give_up(way, lambda: idxfile.create(at("new.idx"), **new))
    assert bucket.objects() == {}
    assert bucket.unfinished() == []


@pytest.mark.parametrize("count", [len(BIG), None])
def test_a_store_that_refuses_is_told(bucket: BucketServer, count: int | None) -> None:
    def refuse(method: str, path: str) -> int | None:
        return 403 if method in ("PUT", "POST") else None

    bucket.before = refuse
    with (
        pytest.raises(FetchError) as caught,
        idxfile.create(at("new.idx"), dtype="uint8", item_shape=(28, 28), count=count) as w,
    ):
        w.append(BIG)
    assert isinstance(caught.value, PermissionError)
    assert str(caught.value).startswith("s3://shelf/new.idx: the store refuses it")
    bucket.before = lambda method, path: None
    assert bucket.objects() == {}


def test_a_part_that_fails_is_sent_again(bucket: BucketServer) -> None:
    turns = iter([None, 503, None])
    bucket.before = lambda method, path: next(turns, None) if method == "PUT" else None
    idxfile.write(at("new.idx"), BIG)
    assert bucket.objects() == {"new.idx": idx_bytes(BIG)}


def test_the_other_verbs(bucket: BucketServer, tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", IMAGES)
    idxfile.convert(tmp_path / "a.npy", at("a.idx"))
    idxfile.convert(at("a.idx"), at("b.npy"))
    idxfile.convert(at("b.npy"), tmp_path / "b.idx")
    assert (tmp_path / "b.idx").read_bytes() == idx_bytes(IMAGES)
    idxfile.concat(at("c.idx"), [at("a.idx"), at("a.idx")])
    assert np.array_equal(idxfile.read(at("c.idx")), np.concatenate([IMAGES, IMAGES]))
    with pytest.raises(FileExistsError, match="would be replaced"):
        idxfile.convert(tmp_path / "a.npy", at("a.idx"), overwrite=False)
    with pytest.raises(UnsupportedError, match="not changed in place") as caught:
        idxfile.append(at("a.idx"), IMAGES)
    assert caught.value.hint
    with pytest.raises(ValueError, match="needs a raw local file"):
        idxfile.open(at("a.idx"), mode="r+")
    with idxfile.open(at("a.idx"), mode="c") as x:
        x[3] = 9
        assert x[3].max() == 9
        assert np.array_equal(x[4], IMAGES[4])
    assert np.array_equal(idxfile.read(at("a.idx")), IMAGES)


def test_the_command_line(
    bucket: BucketServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "a.idx"
    idxfile.write(path, IMAGES)
    assert main(["convert", str(path), at("a.idx")]) == 0
    assert main(["convert", str(path), at("a.idx")]) == 2
    assert main(["convert", "--force", str(path), at("a.idx")]) == 0
    assert main(["concat", at("b.idx"), str(path), at("a.idx")]) == 0
    assert main(["concat", at("b.idx"), str(path), at("a.idx")]) == 2
    assert idxfile.read(at("b.idx")).shape == (600, 28, 28)
    assert main(["append", at("a.idx"), str(path)]) == 4
    capsys.readouterr()
    assert main(["convert", "--force", str(path), "http://127.0.0.1:9/a.idx"]) == 4
    assert "a web server is read, and never written" in capsys.readouterr().err


def test_what_may_not_be_read_is_not_written_over_by_chance(
    bucket: BucketServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Who may only write does not learn whether there is an object."""
    path = tmp_path / "a.idx"
    idxfile.write(path, IMAGES)
    refused = {("GET", "/shelf/a.idx"), ("HEAD", "/shelf/a.idx")}
    for command in (["convert", str(path), at("a.idx")], ["concat", at("a.idx"), str(path)]):
        bucket.client.put_object(Bucket="shelf", Key="a.idx", Body=b"mine")
        bucket.before = lambda *request: 403 if request in refused else None
        assert main(command) == 2
        error = capsys.readouterr().err
        assert "error: s3://shelf/a.idx: it cannot be told whether it is there: " in error
        assert "public bucket; --force writes over it" in error
        with pytest.raises(PermissionError, match="cannot be told"):
            idxfile.convert(path, at("a.idx"), overwrite=False)
        bucket.before = lambda *_: None
        assert bucket.objects() == {"a.idx": b"mine"}
        bucket.before = lambda *request: 403 if request in refused else None
        assert main([*command, "--force"]) == 0
        bucket.before = lambda *_: None
        assert bucket.objects() == {"a.idx": idx_bytes(IMAGES)}


def test_a_web_server_is_not_written() -> None:
    for write in (
        lambda url: idxfile.write(url, IMAGES),
        lambda url: idxfile.create(url, dtype="uint8"),
    ):
        with pytest.raises(UnsupportedError, match="never written"):
            write("http://127.0.0.1:9/a.idx")


def _fork_and_end() -> None:
    """A child that ends as a program does; what it has of its parent stays."""
    child = os.fork()
    if child == 0:
        sys.exit(0)
    assert os.waitpid(child, 0)[1] == 0


def a_set(name: str) -> None:
    with idxfile.create(at(name), dtype="uint8", shard_nbytes=1 << 10) as writer:
        writer.append(np.zeros(5000, "uint8"))
        _fork_and_end()


def a_file(name: str) -> None:
    with atomic_file(at(name)) as temporary:
        Path(temporary).write_bytes(b"all of it")
        _fork_and_end()


def files(name: str) -> None:
    with result(at(f"{name}/"), "files", False) as folder:
        (Path(folder) / name).write_bytes(b"all of it")
        _fork_and_end()


if __name__ == "__main__":
    globals()[sys.argv[1]]("new")


@pytest.mark.parametrize("writes", ["a_set", "a_file", "files"])
def test_a_forked_child_that_ends_leaves_what_is_being_written(
    bucket: BucketServer, writes: str, tmp_path: Path
) -> None:
    folders = [str(Path(__file__).parent), str(Path(__file__).parents[1])]
    path = os.pathsep.join([*folders, *sys.path])
    environment = {**os.environ, "PYTHONPATH": path, "TMPDIR": str(tmp_path)}
    program = [sys.executable, __file__, writes]
    done = subprocess.run(program, capture_output=True, text=True, check=False, env=environment)
    assert (done.returncode, done.stderr) == (0, "")
    assert bucket.objects()
    assert list(tmp_path.iterdir()) == []
