"""Azure, Google and the Hub: the same items by every package, few requests, no wrong ones."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from azure_server import ACCOUNT, KEY
from clouds import READERS, Cloud, cloud_fixture, fill, servers_fixture  # noqa: F401
from shelf import BIG, IMAGES, LABELS, WAYS, WIDE, give_up

import idxfile
from conftest import idx_bytes
from idxfile import FetchError, FormatError
from idxfile.cli import main
from idxfile.source.remote import object as remote_object

pytestmark = [
    pytest.mark.slow,
    # The packages of fsspec give aiohttp a part as it stands in memory.
    pytest.mark.filterwarnings("ignore:Sending a large body:ResourceWarning"),
]

OBJECTS = {
    "images.idx": idx_bytes(IMAGES),
    "wide.idx": idx_bytes(WIDE),
    "images.idx.gz": idxfile.encode(IMAGES, codec="gz"),
    "small.idx": idx_bytes(LABELS),
    "a b+c/ü.idx": idx_bytes(LABELS),
}
EXPECTED = {
    "images.idx": IMAGES,
    "wide.idx": WIDE,
    "images.idx.gz": IMAGES,
    "small.idx": LABELS,
    "a b+c/ü.idx": LABELS,
}
PAIR = {
    "mnist/train-images-idx3-ubyte": idx_bytes(IMAGES),
    "mnist/train-labels-idx1-ubyte.gz": idxfile.encode(LABELS, codec="gz"),
}

written = pytest.mark.parametrize("cloud", READERS, ids="-".join, indirect=True)
"""Of a test that writes: the Hub keeps commits, no objects."""


def idx(*words: str) -> subprocess.CompletedProcess[str]:
    """The command line in a process of its own, which has nothing but the environment."""
    command = [sys.executable, "-m", "idxfile", *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=60)


# Reading


@pytest.mark.parametrize("name", EXPECTED)
def test_everything_is_read(cloud: Cloud, name: str) -> None:
    fill(cloud, OBJECTS)
    expected = EXPECTED[name]
    assert np.array_equal(idxfile.read(cloud.at(name)), expected)
    with idxfile.open(cloud.at(name)) as x:
        assert np.array_equal(x[7], expected[7])
        assert np.array_equal(x[::-3], expected[::-3])
        assert np.array_equal(x.take([9, 250, 9]), expected[[9, 250, 9]])
    assert idxfile.check(cloud.at(name)).ok
    assert idxfile.info(cloud.at(name)).file_nbytes == len(OBJECTS[name])
    assert idxfile.diff(cloud.at(name), OBJECTS[name]).equal


def test_a_header_costs_one_small_request(cloud: Cloud) -> None:
    fill(cloud, {"wide.idx": idx_bytes(WIDE)})
    with idxfile.open(cloud.at("wide.idx")) as x:
        assert x.shape == WIDE.shape
    ranges = [r.wanted for r in cloud.server.requests if r.wanted]
    led = cloud.scheme == "hf"  # from the Hub to where the bytes lie
    assert ranges == ["bytes=0-1023"] * (1 + led)
    if cloud.package == "obstore":
        assert len(cloud.server.requests) == 1


def test_scattered_items_cost_few_requests(cloud: Cloud) -> None:
    fill(cloud, {"big.idx": idx_bytes(BIG)})
    items = np.random.default_rng(2).integers(0, 60_000, 100)
    with idxfile.open(cloud.at("big.idx")) as x:
        cloud.server.requests.clear()
        assert np.array_equal(x[items], BIG[items])
        asked = [r for r in cloud.server.requests if "/store/" not in r.path]
        assert 1 < len(asked) <= 10
        taken = [r.wanted.removeprefix("bytes=").split("-") for r in asked if r.wanted]
        assert sum(int(stop) - int(start) + 1 for start, stop in taken) < len(BIG) * 784


def test_pairs_are_found_beside_and_in_folders(cloud: Cloud) -> None:
    fill(cloud, PAIR)
    for place in (*PAIR, "mnist", "mnist/"):
        with idxfile.open_dataset(cloud.at(place)) as ds:
            assert np.array_equal(ds.labels, LABELS)
            assert np.array_equal(ds[7][0], IMAGES[7])
            assert ds.split == "train"
    with pytest.raises(FileNotFoundError, match=r"nothing of the kind is there|no such object"):
        idxfile.open_dataset(cloud.at("nowhere/"))


def test_a_replaced_object_is_noticed(cloud: Cloud) -> None:
    fill(cloud, {"images.idx": idx_bytes(IMAGES)})
    with idxfile.open(cloud.at("images.idx")) as x:
        travelling = pickle.dumps(x)
        assert np.array_equal(x[5], IMAGES[5])
        cloud.server.put("images.idx", idx_bytes(255 - IMAGES))
        with pytest.raises(FormatError, match="changed while it was being read"):
            x[6]
    with pytest.raises(FormatError, match="has changed since it was pickled"):
        pickle.loads(travelling)
    # What is opened now is the new one, whatever a package remembers of the folder.
    assert np.array_equal(idxfile.read(cloud.at("images.idx")), 255 - IMAGES)
    cloud.server.put("images.idx", idx_bytes(WIDE))
    assert np.array_equal(idxfile.read(cloud.at("images.idx")), WIDE)
    cloud.server.put("later.idx", idx_bytes(LABELS))
    assert np.array_equal(idxfile.read(cloud.at("later.idx")), LABELS)


def test_a_pickle_is_a_recipe(cloud: Cloud) -> None:
    fill(cloud, {"images.idx": idx_bytes(IMAGES)})
    with idxfile.open(cloud.at("images.idx")) as x:
        travelling = pickle.dumps(x)
    assert len(travelling) < 1000
    assert KEY.encode() not in travelling
    with pickle.loads(travelling) as y:
        assert np.array_equal(y[5], IMAGES[5])


def test_what_is_not_there(cloud: Cloud, capsys: pytest.CaptureFixture[str]) -> None:
    fill(cloud, {"empty.idx": b"", "small.idx": idx_bytes(LABELS)})
    with pytest.raises(FileNotFoundError):
        idxfile.open(cloud.at("none.idx"))
    elsewhere = cloud.at("none.idx").replace("shelf", "nowhere")
    with pytest.raises(FetchError):
        idxfile.open(elsewhere)
    assert main(["info", cloud.at("none.idx")]) == 5
    said = f"error: {cloud.at('none.idx')}: there is no such object\nhint: look at the address\n"
    assert capsys.readouterr().err == said
    with pytest.raises(FormatError, match="file is empty"):
        idxfile.open(cloud.at("empty.idx"))


def test_a_fault_that_passes_is_waited_for(cloud: Cloud) -> None:
    fill(cloud, {"images.idx": idx_bytes(IMAGES)})
    with idxfile.open(cloud.at("images.idx")) as x:
        turns = iter([503])
        cloud.server.before = lambda request: next(turns, None) if request.wanted else None
        assert np.array_equal(x[[6, 200]], IMAGES[[6, 200]])
        assert next(turns, None) is None


def test_access_that_ends_on_the_way_is_told(cloud: Cloud) -> None:
    fill(cloud, {"images.idx": idx_bytes(IMAGES)})
    with idxfile.open(cloud.at("images.idx")) as x:
        cloud.server.before = lambda request: 403 if request.wanted else None
        with pytest.raises(PermissionError, match="the store refuses it"):
            x[[6, 200]]


def test_a_folder_is_no_file(cloud: Cloud) -> None:
    fill(cloud, PAIR)
    with pytest.raises(FetchError):
        idxfile.open(cloud.at("mnist"))


def test_who_may_not_is_told_and_no_secret_with_it(
    cloud: Cloud, capsys: pytest.CaptureFixture[str]
) -> None:
    fill(cloud, {"images.idx": idx_bytes(IMAGES)})
    cloud.lock()
    with pytest.raises(PermissionError) as caught:
        idxfile.open(cloud.at("images.idx"))
    assert isinstance(caught.value, FetchError)
    assert str(caught.value).startswith(f"{cloud.at('images.idx')}: the store refuses it")
    hint = {
        "az": "AZURE_STORAGE_CONNECTION_STRING",
        "gs": "GOOGLE_APPLICATION_CREDENTIALS",
        "hf": "HF_TOKEN",
    }
    assert f"hint: credentials are taken from the environment: {hint[cloud.scheme]}" in str(
        caught.value
    )
    assert main(["info", cloud.at("images.idx")]) == 5
    for text in (str(caught.value), capsys.readouterr().err):
        for secret in ("secret-word", "c2VjcmV0LXdvcmQ", KEY, "Signature"):
            assert secret not in text
    if cloud.scheme != "hf":
        with pytest.raises(PermissionError):
            idxfile.write(cloud.at("new.idx"), IMAGES)
        assert set(cloud.server.objects()) == {"images.idx"}


@pytest.mark.parametrize("cloud", READERS[:2], ids="-".join, indirect=True)
def test_azures_own_addresses_name_the_container_before_the_host(cloud: Cloud) -> None:
    fill(cloud, PAIR)
    folder = f"abfss://shelf@{ACCOUNT}.dfs.core.windows.net/mnist"
    with idxfile.open(f"{folder}/train-images-idx3-ubyte") as x:
        assert x.name == f"{folder}/train-images-idx3-ubyte"
        assert np.array_equal(x[7], IMAGES[7])
    with idxfile.open_dataset(folder) as ds:
        assert np.array_equal(ds.labels, LABELS)
    assert np.array_equal(idxfile.read("AZ://shelf/mnist/train-images-idx3-ubyte"), IMAGES)


# Sets of shards


@pytest.mark.parametrize("place", ["d/x-*-of-00004.idx", "d/x-?????-of-00004.idx", "d/"])
def test_a_set_of_shards_is_one_array(cloud: Cloud, place: str) -> None:
    parts = np.array_split(IMAGES, 4)
    fill(cloud, {f"d/x-{n:05}-of-00004.idx": idx_bytes(part) for n, part in enumerate(parts)})
    with idxfile.open(cloud.at(place)) as x:
        assert x.shape == IMAGES.shape
        assert np.array_equal(x[[299, 3, 150]], IMAGES[[299, 3, 150]])
    assert idxfile.check(cloud.at(place)).ok
    cloud.server.put("d/x-00002-of-00004.idx", idx_bytes(255 - parts[2]))
    assert np.array_equal(idxfile.read(cloud.at(place))[150:225], 255 - parts[2])


@written
def test_a_set_of_shards_is_written(cloud: Cloud) -> None:
    with idxfile.create(
        cloud.at("d/x.idx"), dtype="uint8", item_shape=(28, 28), count=300, shards=4
    ) as writer:
        writer.append(IMAGES)
    names = [f"d/x-{n:05}-of-00004.idx" for n in range(4)]
    objects = cloud.server.objects()
    assert sorted(objects) == [*names, "d/x.manifest.json"]
    assert np.array_equal(np.concatenate([idxfile.read(objects[n]) for n in names]), IMAGES)
    assert idxfile.check(cloud.at("d/x.manifest.json")).ok
    with (
        pytest.raises(ZeroDivisionError),
        idxfile.create(
            cloud.at("e/x.idx"), dtype="uint8", item_shape=(28, 28), count=300, shards=4
        ) as writer,
    ):
        writer.append(IMAGES[:200])
        raise ZeroDivisionError
    assert cloud.server.objects() == objects


# The command line


def test_the_command_line(cloud: Cloud, tmp_path: Path) -> None:
    """In processes of their own, which take all from the environment."""
    fill(cloud, {**OBJECTS, **PAIR})
    done = idx("info", cloud.at("images.idx"))
    assert (done.returncode, done.stderr) == (0, "")
    assert "300 × 28 × 28" in done.stdout
    done = idx("check", cloud.at("images.idx.gz"), cloud.at("mnist/train-images-idx3-ubyte"))
    assert (done.returncode, done.stderr) == (0, "")
    done = idx("convert", cloud.at("images.idx"), str(tmp_path / "images.npy"))
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    assert np.array_equal(np.load(tmp_path / "images.npy"), IMAGES)
    done = idx("info", cloud.at("none.idx"))
    assert done.returncode == 5
    assert done.stderr.startswith(f"error: {cloud.at('none.idx')}: there is no such object\n")
    assert "Traceback" not in done.stderr


def test_the_page_starts(cloud: Cloud) -> None:
    fill(cloud, PAIR)
    command = [sys.executable, "-m", "idxfile", "view", "--no-browser", "--port", "0"]
    with subprocess.Popen(
        [*command, cloud.at("mnist/train-images-idx3-ubyte")],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            assert process.stdout is not None
            base, _, token = process.stdout.readline().strip().partition("/#token=")
            headers = {"X-Idx-Token": token}
            facts = httpx.get(f"{base}/api/facts", headers=headers, timeout=30).json()
            assert facts["count"] == 300
        finally:
            process.kill()


# Writing


@pytest.fixture
def _small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """The least that stores take: 5 MiB."""
    monkeypatch.setattr(remote_object, "PART_NBYTES", 5 << 20)


@written
@pytest.mark.usefixtures("_small_parts")
@pytest.mark.parametrize("array", [IMAGES, BIG[:20_000]], ids=["small", "in parts"])
def test_an_object_is_written(cloud: Cloud, array: Any) -> None:
    idxfile.write(cloud.at("new.idx"), array)
    idxfile.write(cloud.at("d/new.idx.gz"), array, blocked=True)
    objects = cloud.server.objects()
    assert set(objects) == {"new.idx", "d/new.idx.gz", "d/new.idx.gz.gzi"}
    assert objects["new.idx"] == idx_bytes(array)
    assert np.array_equal(idxfile.read(objects["d/new.idx.gz"]), array)
    assert np.array_equal(idxfile.read(cloud.at("d/new.idx.gz")), array)
    with idxfile.open(cloud.at("d/new.idx.gz")) as packed:
        assert packed.random_access
        assert np.array_equal(packed[len(array) - 1], array[-1])
    assert cloud.server.unfinished() == []


@written
@pytest.mark.usefixtures("_small_parts")
@pytest.mark.parametrize("count", [20_000, None])
def test_it_is_not_there_before_it_is_complete(cloud: Cloud, count: int | None) -> None:
    fill(cloud, {"new.idx": b"old"})
    with idxfile.create(
        cloud.at("new.idx"), dtype="uint8", item_shape=(28, 28), count=count
    ) as writer:
        for start in range(0, 20_000, 4000):
            writer.append(BIG[start : start + 4000])
            assert cloud.server.objects() == {"new.idx": b"old"}
    assert cloud.server.objects() == {"new.idx": idx_bytes(BIG[:20_000])}
    assert cloud.server.unfinished() == []


@written
@pytest.mark.usefixtures("_small_parts")
@pytest.mark.parametrize("way", WAYS)
def test_nothing_is_left_of_what_is_given_up(cloud: Cloud, way: str) -> None:
    fill(cloud, {"new.idx": b"old"})
    new: dict[str, Any] = {"dtype": "uint8", "item_shape": (28, 28), "count": 20_000}
    give_up(way, lambda: idxfile.create(cloud.at("new.idx"), **new))
    assert cloud.server.objects() == {"new.idx": b"old"}
    # Azure drops blocks of no blob by itself, after a week.
    assert cloud.scheme == "az" or cloud.server.unfinished() == []


@written
def test_the_other_verbs(cloud: Cloud, tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", IMAGES)
    idxfile.convert(tmp_path / "a.npy", cloud.at("a.idx"))
    idxfile.convert(cloud.at("a.idx"), cloud.at("b.npy"))
    idxfile.convert(cloud.at("b.npy"), tmp_path / "b.idx")
    assert (tmp_path / "b.idx").read_bytes() == idx_bytes(IMAGES)
    idxfile.concat(cloud.at("c.idx"), [cloud.at("a.idx"), cloud.at("a.idx")])
    assert np.array_equal(idxfile.read(cloud.at("c.idx")), np.concatenate([IMAGES, IMAGES]))
    with pytest.raises(FileExistsError, match="would be replaced"):
        idxfile.convert(tmp_path / "a.npy", cloud.at("a.idx"), overwrite=False)
    done = idx("convert", str(tmp_path / "b.idx"), cloud.at("d.idx.gz"))
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    assert idx("convert", str(tmp_path / "b.idx"), cloud.at("d.idx.gz")).returncode == 2
    assert np.array_equal(idxfile.read(cloud.at("d.idx.gz")), IMAGES)
    assert set(os.listdir(tmp_path)) == {"a.npy", "b.idx"}
