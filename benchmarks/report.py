"""The table of the report that idxfile comes from, measured anew."""

from __future__ import annotations

import statistics
from collections.abc import Callable

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

_ITEMS = 4096
_SECONDS = 3.0


def c_reader() -> dict[str, Callable[[str, list[int]], Run]] | None:
    """The column of the C reader: for each row of CLAIMED a function that prepares the work.

    Each is called with the path of the IDX file and with item numbers (only the last row uses
    them), and returns what is timed: once for the first two rows, over all item numbers for the
    third. None while there is no C reader.
    """
    return None


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
    idx, npy, h5 = files("idx"), files("npy"), files("h5")
    c = c_reader()
    by_c = c[row](idx, numbers) if c else None
    if row == "load 60k images":
        return [
            lambda: rivals.load_struct(idx),
            by_c,
            lambda: np.load(npy),
            lambda: rivals.load_hdf5(h5),
            lambda: idxfile.read(idx),
        ]
    if row == "memory mapping":
        return [
            None,
            by_c,
            lambda: rivals.map_npy(npy),
            lambda: rivals.open_hdf5(h5),
            lambda: idxfile.open(idx),
        ]
    return [
        _access_struct(idx, numbers),
        by_c,
        _access(rivals.map_npy(npy).__getitem__, numbers),
        _access(rivals.open_hdf5(h5).__getitem__, numbers),
        _access(idxfile.open(idx).__getitem__, numbers),
    ]


def measure(files: Files) -> dict[str, list[float | None]]:
    """Row → the median seconds of each column; None where there is nothing to measure."""
    numbers = np.random.default_rng(0).integers(0, 60000, _ITEMS).tolist()
    table = {}
    for row in CLAIMED:
        contestants = _contestants(row, files, numbers)
        samples = iter(interleave([run for run in contestants if run], _SECONDS))
        calls = _ITEMS if row == "random access per image" else 1
        table[row] = [run and statistics.median(next(samples)) / calls for run in contestants]
    return table


def render(table: dict[str, list[float | None]]) -> str:
    """The table in Markdown, what the report claims in parentheses."""
    lines = [f"| | {' | '.join(COLUMNS)} |", f"|---|{'---:|' * len(COLUMNS)}"]
    for row, measured in table.items():
        cells = []
        for column, ours, claimed in zip(COLUMNS, measured, (*CLAIMED[row], None), strict=True):
            cell = "–" if ours is None else amount(ours)
            if column == "C reader" and ours is None:
                cell = "comes with the C reader"
            cells.append(cell if claimed is None else f"{cell} ({amount(claimed)})")
        lines.append(f"| {row} | {' | '.join(cells)} |")
    return "\n".join(lines)
