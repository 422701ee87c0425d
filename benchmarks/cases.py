"""The table of what is timed against what. A new comparison is a new row."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import idx2numpy
import numpy as np

import idxfile

from . import rivals
from .files import Files
from .harness import NotMeasuredError, Row, Run, interleave

Ready = Callable[[Files], Run]
"""Prepares all that is not to be timed and returns what is."""

OPENINGS, ITEMS, BATCH = 64, 4096, 256
BATCHES = 60000 // BATCH


@dataclass(frozen=True)
class Case:
    """A row: two ways to do the same work."""

    group: str
    work: str
    ours: Ready
    rival: str
    theirs: Ready
    target: float | None = None
    """The ratio of the times to reach, or None where it is only told."""
    calls: int = 1
    """How often one run does the work."""

    def measure(self, files: Files) -> list[Row]:
        """Time both in turn."""
        times = interleave((self.ours(files), self.theirs(files)))
        ours, theirs = ([seconds / self.calls for seconds in side] for side in times)
        return [Row(self.group, self.work, self.rival, ours, theirs, self.target)]


# What is prepared, and what is run


def load(reader: Callable[[str], object], kind: str, dtype: str = "uint8") -> Ready:
    """`reader(path)`, once."""

    def ready(files: Files) -> Run:
        path = files(kind, dtype)
        return lambda: reader(path)

    return ready


def opening(opener: Callable[[str], object], kind: str) -> Ready:
    """`opener(path)`, and what it returns dropped, many times."""

    def ready(files: Files) -> Run:
        path = files(kind)

        def run() -> None:
            for _ in range(OPENINGS):
                opener(path)

        return run

    return ready


def items(opener: Callable[[str], Any], kind: str) -> Ready:
    """`array[number]` for random numbers."""

    def ready(files: Files) -> Run:
        array = opener(files(kind))
        numbers = np.random.default_rng(0).integers(0, len(array), ITEMS).tolist()

        def run() -> None:
            for number in numbers:
                array[number]

        return run

    return ready


def batches(gather: Callable[[Files], Callable[[Any], object]]) -> Ready:
    """One epoch in shuffled batches; each is dropped before the next, as in a training loop."""

    def ready(files: Files) -> Run:
        gatherer = gather(files)
        order = np.random.default_rng(0).permutation(60000)[: BATCHES * BATCH]
        epoch = list(order.reshape(BATCHES, BATCH))

        def run() -> None:
            for numbers in epoch:
                gatherer(numbers)

        return run

    return ready


def take_ours(dtype: str) -> Ready:
    def gather(files: Files) -> Callable[[Any], object]:
        return idxfile.open(files("idx", dtype)).take

    return batches(gather)


def take_in_memory(files: Files) -> Callable[[Any], object]:
    array = files.pixels
    return lambda numbers: array.take(numbers, axis=0)


def take_mapped(files: Files) -> Callable[[Any], object]:
    array = idxfile.open(files("idx")).raw
    return lambda numbers: array.take(numbers, axis=0)


def take_and_turn(files: Files) -> Callable[[Any], object]:
    array = idxfile.open(files("idx", "int32")).raw
    return lambda numbers: array.take(numbers, axis=0).astype(np.int32)


def take_into_ours(files: Files) -> Callable[[Any], object]:
    array, out = idxfile.open(files("idx")), np.empty((BATCH, 28, 28), np.uint8)
    return lambda numbers: array.take(numbers, out=out)


def take_into(files: Files) -> Callable[[Any], object]:
    array, out = idxfile.open(files("idx")).raw, np.empty((BATCH, 28, 28), np.uint8)
    return lambda numbers: array.take(numbers, axis=0, out=out, mode="clip")


def saving(writer: Callable[[str, Any], object], name: str, dtype: str = "uint8") -> Ready:
    """`writer(path, array)` over the file that the last run left."""

    def ready(files: Files) -> Run:
        path, array = str(files.path(name)), files.values(dtype)
        return lambda: writer(path, array)

    return ready


def appending(appender: Callable[[str, Any], object], name: str) -> Ready:
    """Another batch at the end of a copy of the file."""

    def ready(files: Files) -> Run:
        path = shutil.copy(files("idx"), files.path(name))
        block = files.pixels[:BATCH]
        return lambda: appender(str(path), block)

    return ready


def rewrite(path: str, block: Any) -> None:
    idxfile.write(path, np.concatenate([idxfile.read(path), block]))


def process(*command: str) -> Ready:
    """A whole process, from its start to its end."""

    def ready(files: Files) -> Run:
        def run() -> None:
            subprocess.run(command, check=True, capture_output=True)

        return run

    return ready


def idx_info(files: Files) -> Run:
    command = Path(sys.executable).with_name("idx")
    run = process(str(command), "info", files("idx"))(files)
    try:
        run()
    except (OSError, subprocess.CalledProcessError) as error:
        raise NotMeasuredError(f"`idx info` does not run here: {error}") from None
    return run


# The table

read, open_ = idxfile.read, idxfile.open
from_idx = idx2numpy.convert_from_file
python = sys.executable

CASES: tuple[Case, ...] = (
    Case("read", "load uint8, 47 MB", load(read, "idx"), "np.load", load(np.load, "npy"), 0.8),
    Case("read", "load uint8, 47 MB", load(read, "idx"), "h5py", load(rivals.load_hdf5, "h5")),
    Case("read", "load uint8, 47 MB", load(read, "idx"), "idx2numpy", load(from_idx, "idx")),
    Case(
        "read",
        "load uint8, 47 MB",
        load(read, "idx"),
        "python-mnist (lists, and labels)",
        load(rivals.load_python_mnist, "folder"),
    ),
    Case(
        "read",
        "load int32 to native, 188 MB",
        load(read, "idx", "int32"),
        "np.load",
        load(np.load, "npy", "int32"),
        1.1,
    ),
    Case(
        "read",
        "load int32 to native, 188 MB",
        load(read, "idx", "int32"),
        "idx2numpy (stays big-endian)",
        load(from_idx, "idx", "int32"),
    ),
    Case(
        "read",
        "load float64 to native, 376 MB",
        load(read, "idx", "float64"),
        "np.load",
        load(np.load, "npy", "float64"),
        1.1,
    ),
    Case(
        "open",
        "open by map",
        opening(open_, "idx"),
        'np.load(mmap_mode="r")',
        opening(rivals.map_npy, "npy"),
        0.5,
        calls=OPENINGS,
    ),
    Case(
        "open",
        "open by map",
        opening(open_, "idx"),
        "np.memmap, offset known",
        opening(rivals.map_idx, "idx"),
        calls=OPENINGS,
    ),
    Case(
        "open",
        "open by map",
        opening(open_, "idx"),
        "h5py",
        opening(rivals.open_hdf5, "h5"),
        calls=OPENINGS,
    ),
    Case(
        "item",
        "one random item, uint8",
        items(open_, "idx"),
        "np.memmap",
        items(rivals.map_npy, "npy"),
        0.4,
        calls=ITEMS,
    ),
    Case(
        "item",
        "one random item, uint8",
        items(open_, "idx"),
        "h5py",
        items(rivals.open_hdf5, "h5"),
        calls=ITEMS,
    ),
    Case(
        "batch",
        "random batch of 256, uint8",
        take_ours("uint8"),
        "take of an array in memory",
        batches(take_in_memory),
        1.15,
        calls=BATCHES,
    ),
    Case(
        "batch",
        "random batch of 256, uint8",
        take_ours("uint8"),
        "take of a mapped array",
        batches(take_mapped),
        1.15,
        calls=BATCHES,
    ),
    Case(
        "batch",
        "random batch of 256, uint8, out=",
        batches(take_into_ours),
        "the same, out=, unchecked",
        batches(take_into),
        1.15,
        calls=BATCHES,
    ),
    Case(
        "batch",
        "random batch of 256, int32 to native",
        take_ours("int32"),
        "take of the map, then astype",
        batches(take_and_turn),
        1.15,
        calls=BATCHES,
    ),
    Case(
        "gz",
        "load the .gz, 9.9 MB to 47 MB",
        load(read, "gz"),
        "gzip and np.frombuffer",
        load(rivals.load_gzip, "gz"),
        0.35,
    ),
    Case(
        "gz",
        "load the .gz, 9.9 MB to 47 MB",
        load(read, "gz"),
        "libdeflate, one shot",
        load(rivals.load_libdeflate, "gz"),
    ),
    Case(
        "write",
        "write uint8, 47 MB",
        saving(idxfile.write, "written.idx"),
        "np.save, fsync",
        saving(rivals.save, "written.npy"),
        1.2,
    ),
    Case(
        "write",
        "write uint8, 47 MB",
        saving(idxfile.write, "written.idx"),
        "the same, rename, fsync of folder",
        saving(rivals.save_atomically, "written.npy"),
    ),
    Case(
        "write",
        "write int32, 188 MB",
        saving(idxfile.write, "written.idx", "int32"),
        "np.save, fsync",
        saving(rivals.save, "written.npy", "int32"),
        1.2,
    ),
    Case(
        "append",
        "append 256 items to 47 MB",
        appending(idxfile.append, "appended.idx"),
        "read, concatenate, write",
        appending(rewrite, "rewritten.idx"),
    ),
    Case("start", "idx info FILE", idx_info, "python -c pass", process(python, "-c", "pass"), 8.0),
    Case(
        "start",
        "idx info FILE",
        idx_info,
        'python -c "import numpy"',
        process(python, "-c", "import numpy"),
        1.2,
    ),
    Case(
        "start",
        'python -c "import idxfile"',
        process(python, "-c", "import idxfile"),
        "python -c pass",
        process(python, "-c", "pass"),
    ),
)
