"""One file that many write at once: the bytes of one that is written alone, or nothing at all."""

from __future__ import annotations

import contextlib
import gzip
import os
import pickle
import resource
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import idxfile
from idxfile import FormatError, IdxError, Processes, UnsupportedError, convert
from idxfile.formats import parting
from idxfile.formats.columns import Columns, Elsewhere, Sliced, View
from idxfile.formats.filling import fill
from idxfile.formats.parting import by_position, part_of
from idxfile.formats.results import Target
from idxfile.formats.table import FORMATS

COUNT = 500
IMAGES = np.random.default_rng(3).integers(0, 250, (COUNT, 6, 5)).astype("int16")
LABELS = (np.arange(COUNT) % 7).astype("uint8")


@pytest.fixture(scope="module")
def processes() -> Iterator[Executor]:
    with Processes(2) as executor:
        yield executor


@pytest.fixture(scope="module")
def threads() -> Iterator[Executor]:
    with ThreadPoolExecutor(2) as executor:
        yield executor


@pytest.fixture(autouse=True)
def short_slabs(monkeypatch: pytest.MonkeyPatch) -> None:
    """So short that there are many of them."""
    monkeypatch.setattr(parting, "LEAST_NBYTES", 1 << 11)


@pytest.fixture(scope="module")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same pair in many formats."""
    folder = tmp_path_factory.mktemp("shelf")
    (folder / "pair").mkdir()
    idxfile.write(folder / "pair" / "train-images-idx3-short", IMAGES)
    idxfile.write(folder / "pair" / "train-labels-idx1-ubyte", LABELS)
    names = ["zero", "one", "two", None, "four", "five", "six"]
    idxfile.Dataset(IMAGES, LABELS, classes=names).save(folder / "named")
    for name in ("d.npz", "d.parquet", "d.h5", "d.zarr", "d.mat", "d.safetensors", "d.jsonl"):
        convert(folder / "pair", folder / name)
    idxfile.write(folder / "bytes.idx", IMAGES.astype("uint8"))
    for name in ("d.tar", "d.zip", "d.tar.gz", "pictures"):
        convert(
            folder / "bytes.idx",
            folder / name,
            labels=folder / "pair" / "train-labels-idx1-ubyte",
            target_format="pictures" if name == "pictures" else None,
        )
    np.save(folder / "d.npy", IMAGES.astype("float64"))
    (folder / "d.npy.gz").write_bytes(gzip.compress((folder / "d.npy").read_bytes()))
    np.save(folder / "fortran.npy", np.asfortranarray(IMAGES))
    idxfile.write(folder / "blocked.idx.gz", IMAGES, blocked=True)
    idxfile.write(folder / "d.idx.gz", IMAGES)
    with idxfile.create(
        folder / "s.idx", dtype="int16", item_shape=(6, 5), count=COUNT, shards=3
    ) as writer:
        writer.append(IMAGES)
    return folder


CASES: list[tuple[str, str, dict[str, Any]]] = [
    ("pair/train-images-idx3-short", "x.idx", {"column": "images"}),
    ("pair", "out/", {}),
    ("pair", "out/", {"split": "all"}),
    ("named", "out/", {}),
    ("pair", "x.npy", {"items": slice(450, 3, -3)}),
    ("pair", "x.npy", {"target_options": {"byteorder": "big"}}),
    ("d.npy", "x.idx", {"dtype": "auto"}),
    ("pair", "out/", {"dtype": "auto", "items": slice(490, 9, -9)}),
    ("d.npy", "x.idx", {"scale": (0, 250), "dtype": "int32", "items": slice(7, None)}),
    ("d.npy", "out/", {"dtype": "int16", "labels": "LABELS", "split": "test"}),
    ("fortran.npy", "x.idx", {}),
    ("d.npy.gz", "x.idx", {"dtype": "int16"}),
    ("d.npz", "out/", {"items": slice(3, 400, 7)}),
    ("d.parquet", "out/", {}),
    ("d.h5", "out/", {"dtype": "int32"}),
    ("d.zarr", "x.npy", {"items": slice(None, None, -1)}),
    ("d.mat", "x.idx", {}),
    ("d.safetensors", "out/", {}),
    ("d.jsonl", "out/", {}),
    ("blocked.idx.gz", "x.idx", {}),
    ("d.idx.gz", "x.idx", {}),
    ("s-*-of-00003.idx", "x.idx", {"items": slice(100, 450)}),
    ("pictures", "out/", {"split": "train"}),
    ("pictures", "x.npy", {"items": slice(480, 9, -5)}),
    ("d.tar", "x.idx", {"dtype": "float32"}),
    ("d.zip", "out/", {"source_options": {"invert": True}}),
    ("d.tar.gz", "x.idx", {}),
    ("pictures", "out/", {"source_options": {"skip_bad": True}}),
]


def written(shelf: Path, case: Any, folder: Path, executor: Any) -> tuple[Any, Any]:
    """What a conversion writes, and what it tells; it says truly how far it is."""
    source, target, options = case
    if "labels" in options:
        options = {**options, "labels": shelf / "pair" / "train-labels-idx1-ubyte"}
    folder.mkdir()
    told: list[tuple[int, int]] = []
    done = convert(
        shelf / source,
        f"{folder}/{target}",
        executor=executor,
        progress=lambda *numbers: told.append(numbers),
        **options,
    )
    assert told == sorted(told)
    assert told[-1][0] == told[-1][1] > 0
    files = {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}
    return files, {**done.as_dict(), "target": target}


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case[0]} {case[1]} {[*case[2]]}")
def test_the_same_bytes_as_alone(
    shelf: Path, tmp_path: Path, case: Any, threads: Executor, processes: Executor
) -> None:
    alone = written(shelf, case, tmp_path / "alone", None)
    assert alone[0]
    assert written(shelf, case, tmp_path / "threads", threads) == alone
    assert written(shelf, case, tmp_path / "processes", processes) == alone


@pytest.mark.parametrize(
    "source", ["d.npy.gz", "d.parquet", "d.h5", "d.tar.gz", "d.zip", "d.idx.gz"]
)
def test_the_same_shards_as_alone(
    shelf: Path, tmp_path: Path, source: str, threads: Executor, processes: Executor
) -> None:
    case = (source, "x.parquet", {"shards": 3, "items": slice(7, 480)})
    alone = written(shelf, case, tmp_path / "alone", None)
    assert len(alone[0]) == 3
    assert written(shelf, case, tmp_path / "threads", threads) == alone
    assert written(shelf, case, tmp_path / "processes", processes) == alone


@pytest.mark.parametrize("shape", [(), (0, 3), (4, 0), (1,)])
def test_odd_shapes(tmp_path: Path, shape: tuple[int, ...], processes: Executor) -> None:
    np.save(tmp_path / "a.npy", np.ones(shape, "int32"))
    for executor in (None, processes):
        convert(tmp_path / "a.npy", tmp_path / f"{executor is None}.idx", executor=executor)
    assert (tmp_path / "True.idx").read_bytes() == (tmp_path / "False.idx").read_bytes()


@pytest.mark.parametrize(
    ("target", "options"),
    [
        ("a.parquet", {}),
        ("a.npz", {}),
        ("a.idx.gz", {}),
        ("a.idx", {"target_options": {"codec": "zst"}}),
        ("pictures/", {"target_format": "pictures"}),
    ],
)
def test_what_is_written_from_front_to_back_is_refused(
    tmp_path: Path, shelf: Path, target: str, options: dict[str, Any], threads: Executor
) -> None:
    with pytest.raises(UnsupportedError) as caught:
        convert(shelf / "bytes.idx", f"{tmp_path}/{target}", executor=threads, **options)
    assert "shards=" in str(caught.value.hint)
    assert os.listdir(tmp_path) == []


def test_an_error_is_told_as_alone_and_leaves_what_was_there(
    tmp_path: Path, processes: Executor
) -> None:
    values = np.arange(3000, dtype="float64").reshape(1000, 3)
    values[777, 1] = 0.5
    np.save(tmp_path / "a.npy", values)
    idxfile.write(tmp_path / "x.idx", np.array([1], "uint8"))
    told = []
    for executor in (None, processes):
        with pytest.raises(UnsupportedError) as caught:
            convert(tmp_path / "a.npy", tmp_path / "x.idx", dtype="int16", executor=executor)
        told.append((str(caught.value), caught.value.file, caught.value.hint))
    assert told[0] == told[1]
    assert "at index (777, 1)" in told[0][0]
    assert sorted(os.listdir(tmp_path)) == ["a.npy", "x.idx"]
    assert idxfile.read(tmp_path / "x.idx").tolist() == [1]


def test_no_type_that_holds_all(tmp_path: Path, processes: Executor) -> None:
    values = np.arange(2000, dtype="int64")
    values[1500] = 1 << 60
    values[1700] = (1 << 60) + 1
    np.save(tmp_path / "a.npy", values)
    told = []
    for executor in (None, processes):
        with pytest.raises(UnsupportedError) as caught:
            convert(tmp_path / "a.npy", tmp_path / "x.idx", dtype="auto", executor=executor)
        told.append(str(caught.value))
    assert told[0] == told[1]
    assert "no element type of the target holds every value" in told[0]
    assert os.listdir(tmp_path) == ["a.npy"]


def test_a_picture_that_cannot_be_read_is_named(
    tmp_path: Path, shelf: Path, processes: Executor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    convert(shelf / "pictures", "few", target_format="pictures", items=slice(20))
    bad = sorted(Path("few").rglob("*.png"))[-1]
    bad.write_bytes(bad.read_bytes()[:40])
    names = []
    for executor in (None, processes):
        with pytest.raises(FormatError) as caught:
            convert("few", "x.idx", executor=executor)
        names.append((caught.value.file, str(caught.value)))
    assert names[0] == names[1]
    assert names[0][0] == str(bad)
    assert os.listdir() == ["few"]


@pytest.mark.parametrize("source", ["d.npy", "d.zip", "d.tar"])
def test_a_source_that_changed_meanwhile(tmp_path: Path, shelf: Path, source: str) -> None:
    place = tmp_path / source
    place.write_bytes((shelf / source).read_bytes())
    row = FORMATS["npy" if source == "d.npy" else "pictures"]
    columns = row.load().read_columns(str(place))
    data = pickle.dumps(part_of(View(columns.first), 3, 9))
    expected = np.concatenate([*part_of(View(columns.first), 3, 9).blocks()])
    columns.close()
    assert np.array_equal(np.concatenate([*pickle.loads(data).blocks()]), expected)
    os.utime(place, ns=(1, 1))
    with pytest.raises(FormatError, match="has changed"):
        pickle.loads(data)


def test_a_part_travels_as_a_recipe(shelf: Path) -> None:
    for name, most in (("pair/train-images-idx3-short", 1000), ("pictures", 5000)):
        row = FORMATS["idx" if "idx" in name else "pictures"]
        columns = row.load().read_columns(str(shelf / name))
        view = View(View(columns.first), change=lost_once, dtype="int16")
        assert by_position(view)
        assert len(pickle.dumps(part_of(view, 100, 110))) < most
        columns.close()


def lost_once(block: Any, first: int, *, flag: str = "") -> Any:
    """No worker survives the middle, where the flag was not raised; then all goes on."""
    if first <= COUNT // 2 < first + len(block) and not os.path.exists(flag):
        Path(flag).touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return block + 1


@contextlib.contextmanager
def opened() -> Iterator[Columns]:
    """A source that is opened by whoever reads it."""
    yield Columns({"images": Sliced(IMAGES)})


def test_a_lost_worker_is_survived(tmp_path: Path, processes: Executor) -> None:
    origin = Elsewhere(opened, "images", IMAGES.shape, IMAGES.dtype, alone=False)
    change = partial(lost_once, flag=str(tmp_path / "flag"))
    view = View(View(Sliced(IMAGES), origin=origin), change=change, dtype="int16")
    target = Target(str(tmp_path / "x.idx"), FORMATS["idx"], "file", False, {})
    fill(Columns({"images": view}), target, processes, lambda _: None, {})
    assert sorted(os.listdir(tmp_path)) == ["flag", "x.idx"]
    assert np.array_equal(idxfile.read(tmp_path / "x.idx"), IMAGES + 1)


def lost_always(block: Any, _: int) -> Any:
    os.kill(os.getpid(), signal.SIGKILL)
    return block


def test_workers_that_are_lost_again_and_again_leave_nothing(tmp_path: Path) -> None:
    view = View(View(Sliced(IMAGES)), change=lost_always, dtype="int16")
    target = Target(str(tmp_path / "x.idx"), FORMATS["idx"], "file", False, {})
    with Processes(1) as executor, pytest.raises(Exception, match="terminated abruptly"):
        fill(Columns({"images": view}), target, executor, lambda _: None, {})
    assert os.listdir(tmp_path) == []


def some_missing(view: View, *, block_nbytes: int = 0) -> Iterator[Any]:
    yield from [IMAGES[:1]] if view.first else [IMAGES[:1], IMAGES[:1]]


def test_items_that_do_not_come_are_missed(
    tmp_path: Path, threads: Executor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(View, "blocks", some_missing)
    target = Target(str(tmp_path / "x.idx"), FORMATS["idx"], "file", False, {})
    with pytest.raises(IdxError, match="of 500 items were written"):
        fill(Columns({"images": View(Sliced(IMAGES))}), target, threads, lambda _: None, {})
    assert os.listdir(tmp_path) == []


def idx(*words: Any, limit: int | None = None) -> tuple[int, str]:
    """`idx convert` in a process of its own: how it ends, and what it says."""
    limits = partial(resource.setrlimit, resource.RLIMIT_FSIZE, (limit or -1, limit or -1))
    command = [sys.executable, "-m", "idxfile", "convert", *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, preexec_fn=limits)
    return done.returncode, done.stderr


def test_the_command(tmp_path: Path, shelf: Path) -> None:
    code, told = idx(shelf / "pictures", f"{tmp_path}/out/", "--engine=processes=2")
    assert code == 0, told
    assert f"{tmp_path}/out/: images uint8 500 × 6 × 5" in told
    with idxfile.open_dataset(tmp_path / "out") as ds:
        assert np.array_equal(ds.images[...], IMAGES)
        assert np.array_equal(ds.labels, LABELS)


def test_no_room(tmp_path: Path, shelf: Path) -> None:
    for target in ("x.idx", "out/"):
        code, told = idx(shelf / "pair", f"{tmp_path}/{target}", "--engine=threads", limit=5000)
        assert code == 5, told
        assert told.startswith(f"error: {tmp_path}/{target.rstrip('/')}")
        assert os.listdir(tmp_path) == []
