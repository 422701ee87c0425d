"""The table of the report that idxfile comes from, measured anew."""

from __future__ import annotations

import json
import statistics
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np

import idxfile

from . import rivals
from .files import OFFSET, Files
from .harness import Run, amount, interleave

COLUMNS = ("Python struct + NumPy", "C reader", "NumPy .npy", "HDF5", "idxfile")

CLAIMED: dict[str, tuple[float | None, ...]] = {
    "load 60k images": (0.240, 0.090, 0.190, 0.310),
    "memory mapping": (None, 0.001, 0.001, 0.150),
    "random access per image": (2.1e-6, 0.4e-6, 1.2e-6, 8.5e-6),
}
"""Row → what the report claims for each column but the last, in seconds."""

_C_READER = Path(__file__).parents[1] / "conformance/readers/c"
_ITEMS = 4096
_SECONDS = 3.0


def c_reader(files: Files) -> dict[str, float]:
    """Row → seconds of the C reader, as its own `bench` tells; nothing where it cannot be made.

    It is a program of its own, so it runs right before its row and not in turn with the others.
    """
    program = str(files.path("c-reader"))
    sources = [str(_C_READER / name) for name in ("bench.c", "idx.c")]
    try:
        subprocess.run(["cc", "-O3", "-o", program, *sources], check=True, capture_output=True)
        done = subprocess.run([program, files("idx")], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        return {}
    told = json.loads(done.stdout)
    seconds = (told["load_ms"] / 1e3, told["map_ms"] / 1e3, told["random_us"] / 1e6)
    return dict(zip(CLAIMED, seconds, strict=True))


def _access(get: Callable[[int], object], numbers: list[int]) -> Run:
    def run() -> None:
        for number in numbers:
            get(number)

    return run


def _access_struct(path: str, numbers: list[int]) -> Run:
    def run() -> None:
        with open(path, "rb") as file:
            for number in numbers:
                file.seek(OFFSET + number * 784)
                np.frombuffer(file.read(784), np.uint8).reshape(28, 28)

    return run


def _contestants(row: str, files: Files, numbers: list[int]) -> list[Run | None]:
    """What is timed for each column; None where there is no such work, and for the C reader."""
    idx, npy, h5 = files("idx"), files("npy"), files("h5")
    if row == "load 60k images":
        return [
            lambda: rivals.load_struct(idx),
            None,
            lambda: np.load(npy),
            lambda: rivals.load_hdf5(h5),
            lambda: idxfile.read(idx),
        ]
    if row == "memory mapping":
        return [
            None,
            None,
            lambda: rivals.map_npy(npy),
            lambda: rivals.open_hdf5(h5),
            lambda: idxfile.open(idx),
        ]
    return [
        _access_struct(idx, numbers),
        None,
        _access(rivals.map_npy(npy).__getitem__, numbers),
        _access(rivals.open_hdf5(h5).__getitem__, numbers),
        _access(idxfile.open(idx).__getitem__, numbers),
    ]


def measure(files: Files) -> dict[str, list[float | None]]:
    """Row → the median seconds of each column; None where there is nothing to measure."""
    numbers = np.random.default_rng(0).integers(0, 60000, _ITEMS).tolist()
    table = {}
    for row in CLAIMED:
        by_c = c_reader(files).get(row)
        contestants = _contestants(row, files, numbers)
        samples = iter(interleave([run for run in contestants if run], _SECONDS))
        calls = _ITEMS if row == "random access per image" else 1
        times = [run and statistics.median(next(samples)) / calls for run in contestants]
        times[COLUMNS.index("C reader")] = by_c
        table[row] = times
    return table


def render(table: dict[str, list[float | None]]) -> str:
    """The table in Markdown, what the report claims in parentheses."""
    lines = [f"| | {' | '.join(COLUMNS)} |", f"|---|{'---:|' * len(COLUMNS)}"]
    for row, measured in table.items():
        cells = []
        for column, ours, claimed in zip(COLUMNS, measured, (*CLAIMED[row], None), strict=True):
            cell = "–" if ours is None else amount(ours)
            if column == "C reader" and ours is None:
                cell = "no C compiler"
            cells.append(cell if claimed is None else f"{cell} ({amount(claimed)})")
        lines.append(f"| {row} | {' | '.join(cells)} |")
    return "\n".join(lines)
