"""Conversions take constant memory, whatever the size: each in a process of its own."""

from __future__ import annotations

import gzip
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import idxfile

MOST = 200 * 1_000_000
"""What a process may hold at most, with NumPy and the library of the format in it."""

CHILD = """
import re, sys, idxfile
from concurrent.futures import ThreadPoolExecutor
source, target, *options = sys.argv[1:]
options = dict(option.split("=") for option in options)
many = ThreadPoolExecutor(int(options.pop("threads"))) if "threads" in options else None
idxfile.convert(source, target, target_options=options, executor=many)
with open("/proc/self/status") as file:
    print(int(re.search(r"VmHWM:\\s+(\\d+)", file.read())[1]) * 1024)
"""

TARGETS = {
    "npy": ("npy",),
    "npz": ("npz",),
    "idx": ("idx",),
    "safetensors": ("safetensors",),
    "mat": ("mat",),
    "hdf5": ("h5",),
    "zarr": ("zarr",),
    "parquet": ("parquet",),
    "parquet, binary": ("parquet", "encoding=binary"),
    "arrow": ("arrow",),
    "arrow, binary": ("arrow", "encoding=binary"),
}
"""Format → suffix, and options."""

pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="the peak of a process is read from /proc"
)


def peak(*words: str) -> int:
    done = subprocess.run(
        [sys.executable, "-c", CHILD, *words], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return int(done.stdout)


def sparse(path: Path, nbytes: int, dtype: str = "uint8") -> Path:
    """An IDX file of zeros that takes no room."""
    size = {"uint8": 784, "float32": 4 * 784}[dtype]
    header = idxfile.Header.of(dtype, (nbytes // size, 28, 28))
    with open(path, "wb") as file:
        file.write(header.encode())
        file.truncate(header.file_nbytes)
    return path


@pytest.fixture
def room(tmp_path: Path) -> Iterator[Path]:
    """A folder that is emptied at once: these files are large."""
    yield tmp_path
    shutil.rmtree(tmp_path, ignore_errors=True)


def sizes() -> Iterator[object]:
    """Small ones for the formats whose way through the library differs, large ones for all."""
    for name in ("npy", "hdf5", "zarr", "parquet"):
        yield pytest.param(name, "uint8", 300_000_000, id=f"{name}-300 MB")
    for dtype in ("uint8", "float32"):
        for name in TARGETS if dtype == "uint8" else ("npy", "hdf5", "parquet"):
            test = f"{name}-{dtype}-2 GB"
            yield pytest.param(name, dtype, 2_000_000_000, marks=pytest.mark.slow, id=test)


@pytest.mark.parametrize(("name", "dtype", "nbytes"), list(sizes()))
def test_there_and_back(name: str, dtype: str, nbytes: int, room: Path) -> None:
    suffix, *options = TARGETS[name]
    source = sparse(room / "a.idx", nbytes, dtype)
    assert peak(str(source), f"{room}/b.{suffix}", *options) < MOST
    assert peak(f"{room}/b.{suffix}", f"{room}/c.idx") < MOST


def test_by_many_at_once(room: Path) -> None:
    source = sparse(room / "a.idx", 600_000_000, "float32")
    assert peak(str(source), f"{room}/b.npy", "threads=3") < MOST


def test_a_compressed_file_is_inflated_on_the_way(room: Path) -> None:
    source = sparse(room / "a.idx", 250_000_000)
    with open(source, "rb") as raw, gzip.open(room / "a.idx.gz", "wb", compresslevel=1) as packed:
        shutil.copyfileobj(raw, packed, 1 << 20)
    assert peak(f"{room}/a.idx.gz", f"{room}/b.npy") < MOST
    assert peak(str(source), f"{room}/b.idx.gz") < MOST


def test_a_bomb_in_an_archive_takes_no_memory(room: Path) -> None:
    source = sparse(room / "a.idx", 250_000_000)
    idxfile.convert(source, room / "a.npz", target_options={"compressed": True})
    assert (room / "a.npz").stat().st_size < 1_000_000
    assert peak(f"{room}/a.npz", f"{room}/b.idx") < MOST


@pytest.mark.slow
@pytest.mark.parametrize("suffix", ["csv", "jsonl"])
def test_texts_are_written_and_parsed_in_blocks(suffix: str, room: Path) -> None:
    source = sparse(room / "a.idx", 70_000_000)
    assert peak(str(source), f"{room}/b.{suffix}") < MOST
    assert peak(f"{room}/b.{suffix}", f"{room}/c.idx") < MOST
