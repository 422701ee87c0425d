"""A conversion into shards: the same items, whoever writes them, and nothing half-written."""

import gzip
import os
import pickle
import subprocess
import sys
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from itertools import pairwise

import numpy as np
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

import idxfile
from idxfile import Processes, UnsupportedError, convert
from idxfile.cli import cli
from idxfile.cli.sharding import SizeType
from idxfile.formats.columns import Sliced, View
from idxfile.formats.parting import part_of


@given(
    count=st.integers(0, 40),
    start=st.none() | st.integers(-50, 50),
    stop=st.none() | st.integers(-50, 50),
    step=st.none() | st.integers(-5, 5).filter(bool),
    parts=st.integers(1, 9),
)
def test_parts_are_all_items_in_order(count, start, stop, step, parts):
    view = View(Sliced(np.arange(count)), items=slice(start, stop, step))
    doubled = View(view, change=lambda block, first: block * 1000 + first, dtype="int64")
    bounds = [len(view) * number // parts for number in range(parts + 1)]
    found, numbers = [], []
    for low, high in pairwise(bounds):
        part = part_of(doubled, low, high)
        assert part.shape == (high - low,)
        for block in part.blocks(block_nbytes=8):
            found += (block // 1000).tolist()
            numbers += (block % 1000).tolist()
    assert found == list(range(count))[start:stop:step]
    assert numbers == list(range(len(view)))  # what is told of an item is its number in the whole


@pytest.fixture
def npz(tmp_path):
    images = np.random.default_rng(0).integers(0, 256, (103, 4, 5), dtype="uint8")
    labels = np.arange(103) % 10
    np.savez(tmp_path / "d.npz", x_train=images, y_train=labels)
    return tmp_path / "d.npz", images, labels


@pytest.mark.parametrize("kind", ["here", "threads", "processes"])
def test_a_pair_of_sets(npz, tmp_path, kind):
    source, images, labels = npz
    executors = {"threads": lambda: ThreadPoolExecutor(2), "processes": lambda: Processes(2)}
    with executors.get(kind, ThreadPoolExecutor)() as executor:
        executor = None if kind == "here" else executor
        done = convert(source, f"{tmp_path}/out/", split="train", shards=4, executor=executor)
    assert done.columns["images"] == ("uint8", (103, 4, 5))
    ds = idxfile.open_dataset(tmp_path / "out", split="train")
    assert np.array_equal(ds.images[...], images)
    assert np.array_equal(ds.labels, labels)
    names = sorted(os.listdir(tmp_path / "out"))
    assert len(names) == 10
    assert names[0] == "train-images-idx3-ubyte-00000-of-00004"
    assert all(idxfile.check(tmp_path / "out" / name).ok for name in names if "json" not in name)


def test_shards_of_other_formats(npz, tmp_path):
    source, images, _ = npz
    convert(source, tmp_path / "a.parquet", shards=2, items=slice(3, None, 2))
    names = sorted(name for name in os.listdir(tmp_path) if "parquet" in name)
    assert names == ["a-00000-of-00002.parquet", "a-00001-of-00002.parquet"]
    assert sum(pq.read_table(tmp_path / name).num_rows for name in names) == 50
    done = convert(source, tmp_path / "a.csv.gz", shards=2)
    assert done.target == str(tmp_path / "a-?????-of-00002.csv.gz")
    convert(tmp_path / "a-00001-of-00002.csv.gz", tmp_path / "back.idx", column="images")
    assert np.array_equal(idxfile.read(tmp_path / "back.idx").reshape(-1, 4, 5), images[51:])


def test_one_type_for_all_shards(tmp_path):
    np.save(tmp_path / "a.npy", np.arange(-3, 997, dtype="int64"))
    convert(tmp_path / "a.npy", tmp_path / "a.idx", dtype="auto", shards=3)
    assert idxfile.read(f"{tmp_path}/a-*-of-00003.idx").dtype == np.int16
    convert(f"{tmp_path}/a-*-of-00003.idx", tmp_path / "b.npy")
    assert np.load(tmp_path / "b.npy").tolist() == list(range(-3, 997))


class LosesWorkers(Executor):
    """The first who writes a shard is lost, and leaves what nobody has ended."""

    def __init__(self, folder):
        self.folder = folder

    def submit(self, function, *args):
        function(*args)
        for folder in self.folder.glob(".*/*/"):
            (folder / ".0123.new.x.idx").write_bytes(b"half")
        found = Future()
        found.set_result(function(*args))
        return found


def test_what_a_lost_worker_leaves_is_no_part_of_a_set(npz, tmp_path):
    source, images, labels = npz
    out = tmp_path / "out"
    for target in (f"{out}/", f"{out}/x.csv"):
        convert(source, target, split="train", shards=3, executor=LosesWorkers(out))
    ds = idxfile.open_dataset(out, split="train")
    assert np.array_equal(ds.images[...], images)
    assert np.array_equal(ds.labels, labels)
    assert len(os.listdir(out)) == 2 * 4 + 3
    assert not [name for name in os.listdir(out) if name.startswith(".")]


@pytest.mark.parametrize("kind", ["here", "processes"])
def test_names_of_classes_are_numbered_once_for_all_shards(tmp_path, kind):
    lines = [f'{{"images": [{n}], "label": "{name}"}}\n' for n, name in enumerate("zzbbccaa")]
    (tmp_path / "a.jsonl").write_text("".join(lines))
    with Processes(1) as executor:
        executor = executor if kind == "processes" else None
        convert(tmp_path / "a.jsonl", f"{tmp_path}/out/", shards=3, executor=executor)
    with idxfile.open_dataset(tmp_path / "out") as ds:
        assert ds.labels.tolist() == [3, 3, 1, 1, 2, 2, 0, 0]
        assert ds.classes == ("a", "b", "c", "z")


def test_shards_of_about_so_many_bytes(npz, tmp_path):
    source, images, labels = npz
    told = []
    done = convert(
        source, f"{tmp_path}/out/", shard_nbytes=1000, progress=lambda *both: told.append(both)
    )
    assert done.columns["images"][1] == (103, 4, 5)
    assert told[-1][0] == told[-1][1] > images.nbytes
    names = sorted(os.listdir(tmp_path / "out"))
    assert names[0] == "train-images-idx3-ubyte-00000-of-00003"  # 49 items fit into one
    assert len(names) == 8
    assert max((tmp_path / "out" / name).stat().st_size for name in names) <= 1000
    with idxfile.open_dataset(tmp_path / "out") as ds:
        assert np.array_equal(ds.labels, labels)
    convert(source, tmp_path / "a.parquet", shard_nbytes=28 * 30 + 12)  # an image and its label
    assert len([name for name in os.listdir(tmp_path) if "parquet" in name]) == 4
    for wrong in ({"shard_nbytes": 0}, {"shard_nbytes": 5, "shards": 2}):
        with pytest.raises(ValueError, match="shard"):
            convert(source, tmp_path / "b.idx", **wrong)


@pytest.mark.parametrize(
    ("text", "nbytes"),
    [
        ("300", 300),
        ("1k", 1024),
        ("0.5K", 512),
        ("2MiB", 1 << 21),
        ("2 MB", 2_000_000),
        ("1G", 1 << 30),
    ],
)
def test_sizes(text, nbytes):
    assert SizeType().convert(text, None, None) == nbytes


def test_every_command_cuts_by_size(npz, tmp_path, monkeypatch):
    _, images, labels = npz
    monkeypatch.chdir(tmp_path)
    os.remove("d.npz")
    os.mkdir("pair")
    idxfile.write("pair/train-images-idx3-ubyte", images)
    idxfile.write("pair/train-labels-idx1-ubyte", labels.astype("uint8"))
    first = "pair/train-images-idx3-ubyte"
    runner = CliRunner()
    for words, count in [
        (["select", "pair", "some", "--shard-nbytes", "1K"], 3),
        (["split", "pair", "halves", "--fractions", "0.5,0.5", "--shard-nbytes", "1K"], 2),
        (["convert", first, "c/", "--shard-nbytes", "1K"], 3),
        (["concat", "x.idx", first, first, "--shard-nbytes", "1K"], 5),
    ]:
        done = runner.invoke(cli, words)
        assert done.exit_code == 0, done.stderr
        where = {"some": "some", "halves": "halves", "c/": "c"}.get(words[2], ".")
        found = [n for n in os.listdir(where) if f"00000-of-{count:05d}" in n and "label" not in n]
        assert found, os.listdir(where)
        again = runner.invoke(cli, words)
        if words[0] != "convert":  # what is the same is not written over there
            assert again.exit_code == 2, words
            assert "--force writes over it" in again.stderr
        assert runner.invoke(cli, [*words, "--force"]).exit_code == 0
        both = runner.invoke(cli, [*words, "--shards", "2"])
        assert both.exit_code == 2
        assert "not both" in both.stderr
        assert "--shard-nbytes" in runner.invoke(cli, [words[0], "--help"]).stdout
    assert np.array_equal(idxfile.read("x-*-of-00005.idx"), np.concatenate([images, images]))
    piped = runner.invoke(cli, ["concat", "y.idx", "-", "--shard-nbytes", "1K"])
    assert piped.exit_code == 2
    assert "--shards" in piped.stderr


def test_what_is_there_is_not_replaced_unasked(npz, tmp_path):
    source, *_ = npz
    convert(source, tmp_path / "a.idx", column="images", shards=2)
    before = {name: (tmp_path / name).read_bytes() for name in os.listdir(tmp_path)}
    with pytest.raises(FileExistsError):
        convert(source, tmp_path / "a.idx", column="labels", shards=2, overwrite=False)
    with pytest.raises(FileExistsError, match="2 shards of the same name"):
        convert(source, tmp_path / "a.idx", column="images", shards=3)
    assert {name: (tmp_path / name).read_bytes() for name in os.listdir(tmp_path)} == before


def test_a_failure_leaves_nothing(tmp_path):
    np.save(tmp_path / "a.npy", np.array([0.5, 1, 2, 3, 1e300]))
    with pytest.raises(UnsupportedError), ThreadPoolExecutor(2) as executor:
        convert(
            tmp_path / "a.npy", tmp_path / "a.idx", dtype="float32", shards=3, executor=executor
        )
    assert os.listdir(tmp_path) == ["a.npy"]


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["a.parquet", "--engine", "threads"], "--shards"),
        (["a.idx.gz", "--engine", "threads"], "--shards"),
        (["a.idx", "-O", "codec=xz", "--engine", "threads"], "--shards"),
        (["a.zarr", "--shards", "2"], "shards are files"),
        (["a.idx", "--shards", "100000"], "99999"),
        (["a.idx", "--shards", "2", "--shard-nbytes", "1K"], "not both"),
        (["a.idx", "--shard-nbytes", "many"], "no number of bytes such as 256M"),
    ],
)
def test_what_cannot_be_is_told(npz, tmp_path, monkeypatch, words, text):
    monkeypatch.chdir(tmp_path)
    child = subprocess.run(
        [sys.executable, "-m", "idxfile", "convert", "d.npz", *words],
        capture_output=True,
        text=True,
    )
    assert child.returncode in (2, 4)
    assert text in child.stderr
    assert os.listdir(tmp_path) == ["d.npz"]


def test_every_split_is_a_set_of_its_own(npz, tmp_path):
    _, images, labels = npz
    source = tmp_path / "both.npz"
    np.savez(source, x_train=images, y_train=labels, x_test=images[:7], y_test=labels[:7])
    convert(source, f"{tmp_path}/out/", split="all", shards=3)
    for split, count in (("train", 103), ("test", 7)):
        with idxfile.open_dataset(tmp_path / "out", split=split) as ds:
            assert np.array_equal(ds.images[...], images[:count])
            assert np.array_equal(ds.labels, labels[:count])
    with pytest.raises(UnsupportedError, match="not equally long"):
        convert(source, tmp_path / "again.npz", split="all", shards=3)


def test_all_splits_of_what_has_none(tmp_path):
    np.save(tmp_path / "a.npy", np.arange(9, dtype="uint8"))
    convert(tmp_path / "a.npy", f"{tmp_path}/out/", split="all", shards=2)
    assert idxfile.open(tmp_path / "out").shape == (9,)


@pytest.mark.parametrize("cut", [{"shards": 2}, {"shard_nbytes": 1}])
def test_a_scalar_makes_no_shards(cut, tmp_path):
    idxfile.write(tmp_path / "one.idx", np.array(5, "int16"))
    with pytest.raises(UnsupportedError, match=r"one\.idx: a scalar has no items"):
        convert(tmp_path / "one.idx", tmp_path / "out/x.idx", **cut)
    assert os.listdir(tmp_path) == ["one.idx"]


def test_a_folder_that_was_made_for_shards_goes_with_them(tmp_path):
    (tmp_path / "x.idx.gz").write_bytes(gzip.compress(idxfile.encode(np.zeros(5000, "uint8")))[:-9])
    (tmp_path / "there").mkdir()
    for folder in ("there", "there/a/b", "new"):
        with pytest.raises(idxfile.FormatError):
            convert(tmp_path / "x.idx.gz", tmp_path / folder / "y.npy", shards=2)
    assert sorted(os.listdir(tmp_path)) == ["there", "x.idx.gz"]
    assert os.listdir(tmp_path / "there") == []


def test_a_source_that_was_replaced_meanwhile_is_an_error_of_its_part(tmp_path):
    path = tmp_path / "x.idx"
    idxfile.write(path, np.arange(9, dtype="int16"))
    with idxfile.open(path) as array:
        sent = pickle.dumps(part_of(View(array), 2, 5))
    idxfile.write(path, np.arange(8, dtype="int16"))
    part = pickle.loads(sent)  # an error here would end the worker, and be told as its loss
    with pytest.raises(idxfile.FormatError, match="has changed"):
        list(part.blocks())
