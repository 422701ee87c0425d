"""What is left when a conversion is killed, or the disk is full: what was there, or all of it."""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import idxfile

IMAGES = np.random.default_rng(5).integers(0, 256, (2, 300, 300)).astype("uint8")

TARGETS = {
    "a.idx": (),
    "a.idx.gz": (),
    "out/": (),
    "a.npy": (),
    "a.npz": (),
    "a.csv": (),
    "a.jsonl": (),
    "a.parquet": (),
    "a.arrow": (),
    "a.h5": (),
    "b.h5": ("-O", "compression=gzip"),
    "a.zarr": (),
    "a.safetensors": (),
    "a.mat": (),
    "a.h": (),
    "a.mem": (),
    "a.tar": (),
    "a.zip": (),
    "samples.tar": ("--to", "webdataset"),
    "pictures": ("--to", "pictures"),
}


@pytest.fixture
def room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a source, which is the current one."""
    monkeypatch.chdir(tmp_path)
    idxfile.write("start.idx", IMAGES)
    return tmp_path


@pytest.fixture
def pair(room: Path) -> Path:
    """A folder with a pair in it."""
    os.mkdir("pair")
    idxfile.write("pair/train-images-idx3-ubyte", IMAGES)
    idxfile.write("pair/train-labels-idx1-ubyte", np.array([7, 8], "uint8"))
    return room


def run(*words: str, before: tuple[str, ...] = (), limit: int | None = None) -> tuple[int, str]:
    """`idx convert` in a process of its own: how it ends, and what it says."""

    def limited() -> None:
        if limit is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    command = [*before, sys.executable, "-B", "-m", "idxfile", "convert", *words]
    done = subprocess.run(command, capture_output=True, text=True, preexec_fn=limited)
    return done.returncode, done.stderr


@pytest.mark.usefixtures("room")
@pytest.mark.parametrize("target", TARGETS)
def test_no_room(target: str) -> None:
    code, text = run("start.idx", target, *TARGETS[target], limit=50_000)
    assert code == 5, text
    assert text.startswith(f"error: {target}")
    assert "Traceback" not in text
    assert os.listdir() == ["start.idx"]


def held(path: str) -> object:
    """What stands under a name: the items of a folder or a file, or None."""
    if not os.path.exists(path):
        return None
    if path == "out/":  # files beside others are renamed one by one
        return idxfile.read(f"{path}train-images-idx3-ubyte").tolist()
    idxfile.convert(path, "check.npy", column="images")
    return np.load("check.npy").tolist()


@pytest.mark.slow
@pytest.mark.parametrize("target", ["pictures", "out/", "a.npy"])
def test_killed_at_every_step_it_is_the_old_or_the_new(target: str, pair: Path) -> None:
    words = ("--force", *TARGETS[target])
    old, new = IMAGES[:1].tolist(), IMAGES.tolist()
    said: set[str] = set()
    for call in ("fsync", "syncfs", "rename"):
        for number in range(1, 9):
            run("pair", target, "--items", "0:1", *words)
            trace = ("strace", "-f", "-qq", "-o", "/dev/null", "-e", f"trace={call}")
            fault = ("-e", f"inject={call}:signal=KILL:when={number}")
            code, text = run("pair", target, *words, before=(*trace, *fault))
            if code == 0:
                break
            found = held(target)
            left = [path for path in pair.iterdir() if path.name.startswith(".")]
            if found is None:  # between the two renames of a folder the old one stands aside
                (aside,) = (str(path) for path in left if ".old." in path.name)
                found = held(aside)
                said.add("aside")
            assert found in (old, new), (call, number, text)
            said.add("old" if found == old else "new")
            for path in left:
                shutil.rmtree(path) if path.is_dir() else path.unlink()
            shutil.rmtree(target, ignore_errors=True)
        assert code == 0
    assert said == {"old", "new", *(["aside"] if target == "pictures" else [])}


@pytest.mark.usefixtures("room")
def test_a_folder_is_durable_before_it_has_its_name() -> None:
    trace = ("strace", "-f", "-qq", "-o", "calls", "-e", "trace=syncfs,rename,fsync")
    assert run("start.idx", "pictures", "--to", "pictures", before=trace)[0] == 0
    calls = [line.split()[1].partition("(")[0] for line in Path("calls").read_text().splitlines()]
    assert calls == ["syncfs", "rename", "fsync"]
