"""Downloads: every fault of a mirror, two processes, a killed one, caches, files by hand."""

import gzip
import io
import json
import lzma
import math
import os
import shutil
import signal
import socket
import struct
import subprocess
import sys
import time
import zipfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

import idxfile
import idxfile.cli.datasets  # not first while a test has changed the table
from conftest import DATA, MNIST, idx_bytes
from faulty_server import FaultyServer
from idxfile import FetchError, Header, IdxWarning, MissingExtraError, fetch
from idxfile.catalog import download, recognition, storage, table
from idxfile.catalog.decoration import recognise_dataset
from idxfile.catalog.digests import digests
from idxfile.catalog.locking import locked
from idxfile.catalog.table import FileFacts, Fingerprint, Release
from idxfile.cli import main

PAIR = ("t10k-images-idx3-ubyte.gz", "t10k-labels-idx1-ubyte.gz")
IMAGES, LABELS = PAIR
COUNTS = [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009]


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    """A cache of this test's own, and no other folder of the user's."""
    monkeypatch.setenv("IDXFILE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("KERAS_HOME", str(tmp_path / "keras"))
    monkeypatch.delenv("IDXFILE_MIRROR", raising=False)
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(download, "STALL_SECONDS", 1.0)
    return tmp_path / "cache"


@pytest.fixture
def server():
    """Serves the real files of MNIST's test split, whose checksums are the published ones."""
    with FaultyServer({f"mnist/{name}": (MNIST / name).read_bytes() for name in PAIR}) as server:
        yield server


@pytest.fixture
def no_network(monkeypatch):
    def refuse(*_):
        raise AssertionError("a socket was opened")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)


def know(monkeypatch, *rows):
    """Make these data sets the known ones, for `fetch` and for telling what a file is."""
    monkeypatch.setattr(table, "datasets", lambda: rows)


@pytest.fixture
def mirrors(monkeypatch, server):
    """Makes MNIST be had from mirrors that behave like this, and from nowhere else."""

    def choose(*behaviours):
        urls = tuple(b if "://" in b else server.url(b, "mnist") for b in behaviours)
        know(monkeypatch, replace(table.datasets()[0], mirrors=urls))
        return server

    return choose


def is_mnist(ds):
    assert (ds.name, ds.split, len(ds)) == ("mnist", "test", 10_000)
    assert list(ds.class_counts().values()) == COUNTS
    assert ds.classes == tuple("0123456789")
    assert ds.images[0].sum() == 18_454
    return True


def left_in(folder):
    """The files in a folder, but for the lock."""
    return sorted(name for name in os.listdir(folder) if name != ".lock")


# Mirrors

FAULTS = {
    "403": "403 Forbidden",
    "404": "404 Not Found",
    "503": "503 Service Unavailable",
    "html": "found: an HTML page titled “Moved away”",
    "text": "found: a text file",
    "empty": "found: file is empty",
    "cut": "cut after",
    "unannounced": "it is damaged",
    "wrong": "it is damaged",
    "other": "found: ",
    "long": "bytes came",
    "stall": "nothing came for 1.0 seconds, after",
    "silent": "nothing came for 1.0 seconds, after 0 bytes",
    "http://127.0.0.1:9/": "cannot be reached: ",
    "http://nowhere.invalid/": "cannot be reached: ",
    "no-scheme://here/": "cannot be reached: No connection adapters",
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_mirror_that_fails_is_passed_over(mirrors, fault, cache):
    server = mirrors(fault, "ok")
    assert is_mnist(fetch("mnist", "test"))
    assert server.asked("ok") == list(PAIR)
    assert server.asked(fault) == (list(PAIR) if "://" not in fault else [])
    assert left_in(cache / "mnist") == list(PAIR)


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_of_the_only_mirror_is_told(mirrors, fault, cache):
    mirrors(fault)
    with pytest.raises(FetchError) as caught:
        fetch("mnist", "test")
    [failure] = caught.value.found
    assert FAULTS[fault] in failure
    assert not cache.exists()


def test_the_failure_of_every_mirror_is_named(mirrors, capsys):
    server = mirrors("403", "html", "cut")
    with pytest.raises(FetchError, match=r"^t10k-images-idx3-ubyte.gz of MNIST could") as caught:
        fetch("mnist", "test")
    assert isinstance(caught.value, OSError)
    assert [failure.split(": ")[0] for failure in caught.value.found] == [
        server.url(behaviour, "mnist") + IMAGES for behaviour in ("403", "html", "cut")
    ]
    assert main(["fetch", "mnist", "--split", "test"]) == 5
    told = capsys.readouterr().err
    for url, reason in (("/403/", "403 Forbidden"), ("/html/", "“Moved away”"), ("/cut/", "cut")):
        assert url in told
        assert reason in told
    assert "hint: bring it by hand into" in told


@pytest.mark.parametrize("behaviour", ["ok", "redirect", "agent", "encoded", "slow"])
def test_a_mirror_that_is_only_strange_is_used(mirrors, behaviour, monkeypatch):
    monkeypatch.setattr(download, "STALL_SECONDS", 5)
    mirrors(behaviour)
    assert is_mnist(fetch("mnist", "test"))


def test_what_was_fetched_is_not_asked_for_again(mirrors, no_network_after):
    server = mirrors("ok")
    assert is_mnist(fetch("mnist", "test"))
    no_network_after()
    assert is_mnist(fetch("MNIST", "test"))
    assert is_mnist(fetch("mnist", "test", offline=True))
    assert len(server.log) == 2


@pytest.fixture
def no_network_after(request):
    return lambda: request.getfixturevalue("no_network")


def test_a_mirror_of_ones_own_comes_first(mirrors, monkeypatch, cache):
    server = mirrors("404")
    monkeypatch.setenv("IDXFILE_MIRROR", server.url("ok"))
    assert is_mnist(fetch("mnist", "test"))
    assert server.log == [f"/ok/mnist/{name}" for name in PAIR]


def test_progress(mirrors):
    mirrors("404", "ok")
    seen = []
    fetch("mnist", "test", progress=lambda done, total: seen.append((done, total)))
    total = sum((MNIST / name).stat().st_size for name in PAIR)
    assert seen == sorted(seen)
    assert {total for _, total in seen} == {total}
    assert seen[-1] == (total, total)


# Processes

CHILD = "import idxfile; print(len(idxfile.fetch('mnist', 'test')))"


def start(server, behaviour):
    """A process that fetches MNIST's test split."""
    return subprocess.Popen(
        [sys.executable, "-c", CHILD],
        env={**os.environ, "IDXFILE_MIRROR": server.url(behaviour)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_two_processes_download_once(server, cache):
    processes = [start(server, "slow") for _ in range(2)]
    for process in processes:
        out, error = process.communicate(timeout=30)
        assert (out, error, process.returncode) == ("10000\n", "", 0)
    assert sorted(server.asked()) == list(PAIR)
    assert left_in(cache / "mnist") == list(PAIR)


def test_a_killed_download_leaves_nothing_under_the_final_name(server, cache):
    process = start(server, "slow")
    part = cache / "mnist" / f".{IMAGES}.part"
    while not (part.exists() and part.stat().st_size):
        assert process.poll() is None
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert left_in(cache / "mnist") == [part.name]
    again = start(server, "ok")
    assert again.communicate(timeout=30) == ("10000\n", "")
    assert left_in(cache / "mnist") == list(PAIR)


def test_an_interrupted_download_leaves_nothing(mirrors, cache):
    mirrors("ok")

    def stop(done, total):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fetch("mnist", "test", progress=stop)
    assert not cache.exists()


# What lies there


def put(folder, *names, change=lambda data: data, rename=lambda name: name):
    """Copy files of MNIST into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in names or PAIR:
        (folder / rename(name)).write_bytes(change((MNIST / name).read_bytes()))


@pytest.mark.parametrize(
    "damage", [lambda d: d[:-1000], lambda d: b"", lambda d: d + b"!", lambda d: b"<html>" + d]
)
def test_a_damaged_cache_is_fetched_once_again(mirrors, cache, damage):
    server = mirrors("ok")
    put(cache / "mnist")
    put(cache / "mnist", IMAGES, change=damage)
    with pytest.warns(IdxWarning, match="fetched once again") as caught:
        assert is_mnist(fetch("mnist", "test"))
    assert len(caught) == 1
    assert caught[0].filename == __file__
    assert server.asked() == [IMAGES]
    assert is_mnist(fetch("mnist", "test"))
    assert server.asked() == [IMAGES]


def test_a_damaged_cache_stays_where_no_mirror_helps(mirrors, cache):
    mirrors("wrong")
    put(cache / "mnist", change=lambda data: data[:-100])
    with pytest.warns(IdxWarning), pytest.raises(FetchError):
        fetch("mnist", "test")
    assert left_in(cache / "mnist") == list(PAIR)


HAND = {
    "the cache's folder of the data set": ("cache/mnist", {}),
    "the cache": ("cache", {}),
    "Keras' folder": ("keras/datasets/mnist", {}),
    "a folder": ("given", {}),
    "a folder in it": ("given/mnist", {}),
    "torchvision's folder": ("given/MNIST/raw", {}),
    "raw": ("given", {"change": gzip.decompress, "rename": lambda name: name[:-3]}),
    "raw, named gz": ("given", {"change": gzip.decompress}),
    "raw, with dots": (
        "given",
        {
            "change": gzip.decompress,
            "rename": lambda name: name[:-3].replace("-idx", ".idx"),
        },
    ),
    "compressed anew": (
        "given",
        {"change": lambda data: gzip.compress(gzip.decompress(data), 1)},
    ),
    "xz": (
        "given",
        {
            "change": lambda data: lzma.compress(gzip.decompress(data), preset=0),
            "rename": lambda name: name.replace(".gz", ".xz"),
        },
    ),
}


def test_what_fails_leaves_what_was_there(mirrors, cache):
    mirrors("404")
    (cache / "mnist").mkdir(parents=True)
    (cache / "mnist" / "notes").touch()
    with pytest.raises(FetchError):
        fetch("mnist", "test")
    with pytest.raises(FetchError):
        fetch("mnist", "test", folder=cache / "given")
    assert sorted(cache.rglob("*")) == [cache / "mnist", cache / "mnist" / "notes"]


def test_a_file_in_place_of_the_folder_is_told(mirrors, cache):
    mirrors("ok")
    cache.mkdir()
    (cache / "mnist").touch()
    with pytest.raises(FileExistsError):
        fetch("mnist", "test")
    assert main(["fetch", "mnist"]) == 5


def test_a_lock_whose_file_is_removed_meanwhile_is_taken_anew(tmp_path):
    """Whoever waits for the one who leaves nothing makes a lock, and a folder, of its own."""
    folder = str(tmp_path / "a" / "b")
    inside, most = [], []

    def work():
        with locked(folder):
            inside.append(1)
            most.append(len(inside))
            time.sleep(0.001)
            inside.pop()

    with ThreadPoolExecutor(8) as pool:
        for done in [pool.submit(work) for _ in range(24)]:
            done.result()
    assert (len(most), max(most)) == (24, 1)
    assert [*tmp_path.rglob(".lock")] == []


@pytest.mark.parametrize("way", HAND)
def test_files_brought_by_hand_are_used(tmp_path, no_network, way, monkeypatch):
    folder, options = HAND[way]
    put(tmp_path / folder, **options)
    given = tmp_path / "given" if folder.startswith("given") else None
    before = sorted(tmp_path.rglob("*"))
    monkeypatch.setitem(sys.modules, "pooch", None)  # nor is pooch needed
    monkeypatch.setitem(sys.modules, "filelock", None)
    assert is_mnist(fetch("mnist", "test", folder=given))
    assert is_mnist(fetch("mnist", "test", folder=given, offline=True))
    assert sorted(tmp_path.rglob("*")) == before


def test_wrong_files_brought_by_hand_are_neither_used_nor_touched(mirrors, tmp_path):
    server = mirrors("ok")
    given = tmp_path / "given"
    put(given, IMAGES, change=lambda data: data[:-1000])
    fashion = (DATA / "official" / "fashion_mnist" / LABELS).read_bytes()
    (given / LABELS).write_bytes(fashion)
    assert is_mnist(fetch("mnist", "test", folder=given))
    assert server.asked() == list(PAIR)
    assert left_in(given / "mnist") == list(PAIR)
    assert (given / LABELS).read_bytes() == fashion


def test_offline_tells_what_is_missing_and_what_is_wrong(tmp_path, no_network, cache, capsys):
    put(cache / "mnist", IMAGES, change=lambda data: data[:-1000])
    fashion = DATA / "official" / "fashion_mnist" / LABELS
    put(cache / "mnist", LABELS, change=lambda data: fashion.read_bytes())
    with pytest.raises(FetchError) as caught:
        fetch("mnist", "test", offline=True)
    assert caught.value.expected == list(PAIR)
    message = str(caught.value)
    for place in (cache / "mnist", cache, cache / "MNIST" / "raw", tmp_path / "keras"):
        assert str(place) in message
    assert f"{IMAGES}: it is damaged: " in message
    assert f"{LABELS}: found: Fashion-MNIST test labels, not MNIST; " in message
    assert main(["fetch", "mnist", "--offline"]) == 5
    assert "train-images-idx3-ubyte.gz, train-labels" in capsys.readouterr().err


def test_a_cache_that_cannot_be_written_to_is_read(mirrors, cache, no_network):
    put(cache / "mnist")
    os.chmod(cache / "mnist", 0o500)
    try:
        assert is_mnist(fetch("mnist", "test"))
    finally:
        os.chmod(cache / "mnist", 0o700)


@pytest.mark.parametrize("package", ["pooch", "filelock"])
def test_a_package_that_is_not_installed(mirrors, monkeypatch, package, capsys):
    mirrors("ok")
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingExtraError, match=package) as caught:
        fetch("mnist", "test")
    assert caught.value.hint == "pip install 'idxfile[fetch]'"
    assert main(["fetch", "mnist"]) == 2
    assert "pip install 'idxfile[fetch]'" in capsys.readouterr().err


def test_the_cache_lies_where_pooch_would_put_it(monkeypatch):
    import pooch

    monkeypatch.delenv("IDXFILE_HOME")
    for folder in (None, "/elsewhere/caches"):
        if folder:
            monkeypatch.setenv("XDG_CACHE_HOME", folder)
        else:
            monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
        assert storage.home() == str(pooch.os_cache("idxfile"))


# What comes back


def made(monkeypatch, server, name, arrays, **changes):
    """Make a known data set consist of small arrays: role → array, in the split `test`."""
    files = []
    for role, array in arrays.items():
        raw = array if isinstance(array, bytes) else idx_bytes(array)
        shape, dtype = arrays[f"{role} header"] if isinstance(array, bytes) else (None, None)
        data = gzip.compress(raw, mtime=0)
        known = digests([data], len(data), ["sha256"])
        files.append(
            FileFacts(
                f"{name}-test-{role}-idx.gz",
                role,
                shape or array.shape,
                dtype or array.dtype.name,
                "test",
                Fingerprint(len(data), **known),
            )
        )
        server.files[f"{name}/{files[-1].name}"] = data
    facts = table.dataset_named(name)
    mirrors = (server.url("ok", name),)
    facts = replace(facts, files=tuple(files), mirrors=mirrors, archive=None, **changes)
    know(monkeypatch, facts)
    return facts


IMAGE = np.arange(6, dtype="uint8").reshape(2, 3)


def test_emnist_is_upright_and_its_letters_are_as_stored(monkeypatch, server):
    images = np.stack([IMAGE, IMAGE + 6])
    made(monkeypatch, server, "emnist-letters", {"images": images, "labels": np.uint8([1, 26])})
    ds = fetch("emnist-letters", "test")
    assert ds.images[...].tolist() == images.swapaxes(1, 2).tolist()
    assert ds.labels.tolist() == [1, 26]
    assert [ds.class_name(label) for label in ds.labels] == ["A/a", "Z/z"]
    assert (ds.classes[0], len(ds.classes)) == (None, 27)


def test_qmnist_keeps_its_columns(monkeypatch, server):
    path = DATA / "official" / "qmnist" / "qmnist-test-labels-idx2-int.gz"
    labels = idxfile.read(path)[:3]
    made(monkeypatch, server, "qmnist", {"images": np.stack([IMAGE] * 3), "labels": labels})
    ds = fetch("qmnist", "test")
    assert ds.labels.tolist() == [7, 2, 1]
    assert ds.table.tolist() == labels.tolist()
    assert ds.columns[:3] == ("class", "hsf", "writer")
    assert ds.table[0, ds.columns.index("writer")] == 2578


def lush(array):
    """A Lush matrix, least significant byte first."""
    magic = {"uint8": 0x1E3D4C55, "int32": 0x1E3D4C54}[array.dtype.name]
    shape = (*array.shape, 1, 1, 1)[: max(3, array.ndim)]
    return np.array([magic, array.ndim, *shape], "<u4").tobytes() + array.tobytes()


def test_norb_is_a_lush_matrix_with_more_columns(monkeypatch, server):
    arrays = {
        "images": np.arange(24, dtype="uint8").reshape(3, 2, 2, 2),
        "labels": np.int32([0, 1, 2]),
        "info": np.int32([[4, 0, 2, 1], [4, 0, 2, 3], [4, 1, 2, 5]]),
    }
    packed = {role: lush(array) for role, array in arrays.items()}
    headers = {f"{role} header": (a.shape, a.dtype.name) for role, a in arrays.items()}

    class Packed(dict):
        def items(self):
            return packed.items()

    made(monkeypatch, server, "small-norb", Packed(headers))
    ds = fetch("small-norb", "test")
    assert ds.images[...].tolist() == arrays["images"].tolist()
    assert ds.table[1].tolist() == [1, 4, 0, 2, 3]
    assert ds.columns == ("class", "instance", "elevation", "azimuth", "lighting")
    assert ds.class_name(ds.labels[2]) == "airplane"


def test_parts_of_a_split(monkeypatch, server, mirrors):
    mirrors("ok")
    first, second = (fetch("mnist", f"test-{half}-half") for half in ("first", "second"))
    whole = fetch("mnist", "test")
    assert first.split == "test-first-half"
    assert first.labels.tolist() + second.labels.tolist() == whole.labels.tolist()
    assert len(first) == len(second) == 5000


def test_several_files_make_one_split(monkeypatch, server):
    facts = made(
        monkeypatch, server, "norb", {"images": np.stack([IMAGE] * 2), "labels": np.uint8([3, 4])}
    )
    know(monkeypatch, replace(facts, files=facts.files * 2))
    ds = fetch("norb", "test")
    assert ds.labels.tolist() == [3, 4, 3, 4]
    assert [ds.class_name(n) for n in ds.labels] == ["truck", "car"] * 2


@pytest.fixture
def archived(monkeypatch, server):
    """EMNIST letters, whose mirror of single files is gone."""
    arrays = {"images": np.stack([IMAGE, IMAGE]), "labels": np.uint8([1, 2])}
    archive = table.dataset_named("emnist-letters").archive
    facts = made(monkeypatch, server, "emnist-letters", arrays)
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as made_zip:
        for known in facts.files:
            data = server.files.pop(f"emnist-letters/{known.name}")
            made_zip.writestr(f"gzip/{known.name}", data)
    data = server.files["emnist/gzip.zip"] = file.getvalue()
    known = Fingerprint(len(data), **digests([data], len(data), ["sha256", "md5"]))
    archive = replace(archive, published=known, mirrors=(server.url("ok") + "emnist/gzip.zip",))
    know(monkeypatch, replace(facts, archive=archive))
    return server


def test_members_come_out_of_the_archive(archived, cache, no_network_after):
    assert fetch("emnist-letters", "test").labels.tolist() == [1, 2]
    assert archived.asked().count("gzip.zip") == 1
    assert left_in(cache / "emnist") == ["gzip.zip"]
    assert len(left_in(cache / "emnist-letters")) == 2
    no_network_after()
    assert fetch("emnist-letters", "test").images.shape == (2, 3, 2)


@pytest.mark.parametrize("place", ["emnist", "emnist-letters", "EMNIST/raw", ""])
def test_an_archive_brought_by_hand_is_used(archived, cache, no_network, place):
    folder = cache / place
    folder.mkdir(parents=True)
    (folder / "gzip.zip").write_bytes(archived.files["emnist/gzip.zip"])
    assert len(fetch("emnist-letters", "test", offline=True)) == 2
    assert archived.log == []


def test_an_archive_that_is_damaged_or_no_archive(archived, cache, monkeypatch):
    (cache / "emnist").mkdir(parents=True)
    damaged = archived.files["emnist/gzip.zip"].replace(b"idx", b"IDX")
    (cache / "emnist" / "gzip.zip").write_bytes(damaged)
    with pytest.raises(FetchError, match="it has no member emnist-letters-test-images"):
        fetch("emnist-letters", "test", offline=True)
    assert len(fetch("emnist-letters", "test")) == 2
    facts = table.datasets()[0]
    page = replace(facts.archive, mirrors=(archived.url("html") + "emnist/gzip.zip",))
    know(monkeypatch, replace(facts, archive=page))
    with pytest.raises(
        FetchError, match=r"html/emnist/gzip.zip: found: an HTML page titled “Moved"
    ):
        fetch("emnist-letters", "test", folder=cache / "elsewhere")


def test_an_older_release_is_told_from_damage(mirrors, monkeypatch, cache):
    mirrors("ok")
    older = gzip.compress(idx_bytes(np.zeros((10_000, 28, 28), "uint8")), mtime=0)
    facts = table.datasets()[0]
    known = Fingerprint(**digests([older], len(older), ["sha256"]))
    release = Release("an earlier release, before 2000-01-01", False, {IMAGES: known})
    know(monkeypatch, replace(facts, releases=(release,)))
    monkeypatch.setattr(recognition, "datasets", table.datasets)
    recognition._by_header.cache_clear()
    put(cache / "mnist", change=lambda data: older)
    try:
        with pytest.raises(
            FetchError, match="found: MNIST test images, an earlier release, before"
        ):
            fetch("mnist", "test", offline=True)
    finally:
        recognition._by_header.cache_clear()


def test_other_content_of_a_set_that_was_issued_again(tmp_path, no_network):
    labels = np.arange(10_000, dtype="int64") // 1000
    (tmp_path / LABELS).write_bytes(gzip.compress(idx_bytes(labels.astype("uint8"))))
    with pytest.raises(FetchError, match=r"not the published one \(is it of an earlier release"):
        fetch("kmnist", "test", folder=tmp_path, offline=True)


def test_names_that_are_not_known(capsys):
    with pytest.raises(ValueError, match=r"there is emnist-byclass, .*emnist-letters"):
        fetch("EMNIST")
    with pytest.raises(ValueError, match="there is mnist"):
        fetch("mnits")
    with pytest.raises(ValueError, match="QMNIST has no split 'val'; there is train, test, nist"):
        fetch("qmnist", "val")
    with pytest.raises(FetchError, match="Morpho-MNIST cannot be fetched: no direct download"):
        fetch("morpho_mnist")
    assert main(["fetch", "mnits"]) == 2
    assert main(["fetch", "mnist", "--split", "val"]) == 2
    assert main(["fetch", "overhead-mnist"]) == 5
    assert "there is mnist" in capsys.readouterr().err


# A data set that was opened by its place


def test_recognising_a_data_set(tmp_path):
    ds = recognise_dataset(MNIST, split="test")
    assert is_mnist(ds)
    assert recognise_dataset(ds) is ds
    images, labels = ds.images[:100], ds.labels[:100]
    other = recognise_dataset(idxfile.Dataset(images, labels))
    assert (other.name, other.classes) == (None, None)
    # Labels of one set under the images of another are not its own.
    fashion = DATA / "official" / "fashion_mnist" / LABELS
    mixed = recognise_dataset((MNIST / IMAGES, fashion))
    assert (mixed.name, mixed.classes) == (None, None)


def sparse(path, shape, lush=False):
    """A file of zeros that takes no room: only its header is written."""
    header = Header.of("uint8", shape).encode()
    if lush:
        header = struct.pack(f"<II{len(shape)}I", 0x1E3D4C55, len(shape), *shape)
    path.write_bytes(header)
    os.truncate(path, len(header) + math.prod(shape))


LETTERS = ("emnist-letters-train-images-idx3-ubyte", "emnist-letters-train-labels-idx1-ubyte")


def letters(folder, labels=None, names=LETTERS, count=124_800):
    sparse(folder / names[0], (count, 28, 28))
    labels = np.arange(count) % 26 + 1 if labels is None else labels
    idxfile.write(folder / names[1], labels.astype("uint8"))
    return recognise_dataset((folder / names[0], folder / names[1]))


as_they_lie = partial(pytest.warns, IdxWarning, match="published transposed; no checksum tells")


def test_a_content_without_digest_is_known_by_its_name_and_shape(tmp_path, capsys):
    with as_they_lie():
        ds = letters(tmp_path)
    assert (ds.name, ds.split, ds.classes[:3]) == ("emnist-letters", "train", (None, "A/a", "B/b"))
    with as_they_lie():
        assert recognise_dataset(tmp_path).name == "emnist-letters"
    identity = idxfile.identify(tmp_path / LETTERS[0])
    assert identity.what.startswith("EMNIST letters train images, by its name and shape; an IDX")
    assert "published transposed; no checksum tells" in identity.hint
    assert (identity.dataset, identity.split) == ("emnist-letters", "train")
    assert main(["show", str(tmp_path / LETTERS[0]), "0"]) == 0
    told = capsys.readouterr()
    assert "0: A/a" in told.out
    assert "published transposed" in told.err


def test_what_is_known_by_its_name_alone_is_not_turned(tmp_path):
    """Somebody may have turned it and kept the name: no pixel changes its place by a guess."""
    with as_they_lie():
        letters(tmp_path)
    with open(tmp_path / LETTERS[0], "r+b") as file:
        file.seek(16 + 1)  # row 0, column 1 of the first image
        file.write(b"\xff")
    with as_they_lie():
        ds = recognise_dataset(tmp_path)
    assert (ds.images[0, 0, 1], ds.images[0, 1, 0]) == (255, 0)


@pytest.mark.parametrize(
    "change",
    [
        {"count": 124_799},
        {"labels": np.arange(124_800) % 27},  # no class has the label 0
        {"labels": np.arange(124_800) % 26 + 2},
        {"names": (LETTERS[0].replace("emnist-", ""), LETTERS[1].replace("emnist-", ""))},
        {"names": (LETTERS[0], LETTERS[1].replace("letters", "balanced"))},
        {"names": ("train-images-idx3-ubyte", "train-labels-idx1-ubyte")},
    ],
)
def test_what_is_not_as_the_known_one_stays_unnamed(change, tmp_path):
    ds = letters(tmp_path, **change)
    assert (ds.name, ds.classes) == (None, None)


def test_labels_of_another_set_under_a_known_name(tmp_path):
    """The images of byclass are those of bymerge: by the names of both files it is told apart."""
    shape = (116_323, 28, 28)
    for name, classes in (("byclass", 62), ("bymerge", 47)):
        sparse(tmp_path / f"emnist-{name}-test-images-idx3-ubyte", shape)
        labels = (np.arange(shape[0]) % classes).astype("uint8")
        idxfile.write(tmp_path / f"emnist-{name}-test-labels-idx1-ubyte", labels)
    for name in ("byclass", "bymerge"):
        images = tmp_path / f"emnist-{name}-test-images-idx3-ubyte"
        with as_they_lie():
            assert recognise_dataset(images).name == f"emnist-{name}"
        other = {"byclass": "bymerge", "bymerge": "byclass"}[name]
        mixed = tmp_path / f"emnist-{other}-test-labels-idx1-ubyte"
        assert recognise_dataset((images, mixed)).name is None


def test_what_has_a_digest_is_judged_by_it(tmp_path):
    """A gzip file of that name is the published one, or it is not; so are labels of QMNIST."""
    with as_they_lie():
        letters(tmp_path)
    for name in LETTERS:
        with idxfile.open(tmp_path / name) as x:
            idxfile.write(tmp_path / f"{name}.gz", x[...], codec="gz")
        os.unlink(tmp_path / name)
    assert recognise_dataset(tmp_path).name is None
    assert "checksum" in idxfile.identify(tmp_path / f"{LETTERS[0]}.gz").hint

    qmnist = tmp_path / "qmnist"
    qmnist.mkdir()
    real = DATA / "official" / "qmnist" / "qmnist-train-labels-idx2-int.gz"
    sparse(qmnist / "qmnist-train-images-idx3-ubyte", (60_000, 28, 28))
    shutil.copy(real, qmnist)
    ds = recognise_dataset(qmnist)
    assert (ds.name, ds.split, ds.columns[2]) == ("qmnist", "train", "writer")
    table = idxfile.read(real)
    table[0, 1] += 1
    idxfile.write(qmnist / "qmnist-train-labels-idx2-int", table)
    os.unlink(qmnist / real.name)
    assert recognise_dataset(qmnist).name is None


def test_a_part_of_norb(tmp_path):
    name = "norb-5x46789x9x18x6x2x108x108-training-{}-{}.mat"
    sparse(tmp_path / name.format("02", "dat"), (29_160, 2, 108, 108), lush=True)
    labels = np.arange(29_160, dtype="<i4") % 6
    header = struct.pack("<5I", 0x1E3D4C54, 1, 29_160, 1, 1)
    for part in ("02", "03"):
        (tmp_path / name.format(part, "cat")).write_bytes(header + labels.tobytes())
    pair = (tmp_path / name.format("02", "dat"), tmp_path / name.format("02", "cat"))
    ds = recognise_dataset(pair)
    assert (ds.name, ds.split, ds.classes[5]) == ("norb", "train", "blank")
    assert recognise_dataset((pair[0], tmp_path / name.format("03", "cat"))).name is None
    assert recognise_dataset(tmp_path, split="train").name == "norb"  # found by their names


# The commands


def test_idx_fetch(mirrors, tmp_path, capsys):
    server = mirrors("ok")
    assert main(["fetch", "mnist", "--split", "test", "--to", str(tmp_path / "data")]) == 0
    out, err = capsys.readouterr()
    paths = [str(tmp_path / "data" / "mnist" / name) for name in PAIR]
    assert out.splitlines() == paths
    assert err == ""
    assert main(["fetch", "mnist", "--split=test", "--json", "--to", str(tmp_path / "data")]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["splits"]["test"] == {"images": paths[:1], "labels": paths[1:], "info": []}
    assert len(server.log) == 2
    put(tmp_path / "data")
    for name in ("train-images-idx3-ubyte.gz", "train-labels-idx1-ubyte.gz"):
        put(tmp_path / "data", name)
    assert main(["fetch", "mnist", "--to", str(tmp_path / "data"), "--offline"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 4


def test_idx_datasets(capsys):
    assert main(["datasets"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 21
    assert lines[1].split()[:6] == ["mnist", "60,000", "+", "10,000", "10", "idx"]
    assert main(["datasets", "emnist-letters"]) == 0
    out = capsys.readouterr().out
    assert "classes    1 A/a, 2 B/b" in out
    assert "not checked" in out
    assert "@inproceedings{cohen2017emnist" in out
    assert main(["datasets", "--json"]) == 0
    assert [row["name"] for row in json.loads(capsys.readouterr().out)] == [
        row.name for row in table.datasets()
    ]
    assert main(["datasets", "kmnist", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["classes"][0] == "お o"
    assert facts["splits"] == {"train": 60_000, "test": 10_000}
    assert main(["datasets", "imagenet"]) == 2
