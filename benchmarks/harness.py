"""Measure contestants in turn, and lay the results out as a table."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from time import perf_counter

Run = Callable[[], object]

SECONDS = 2.5
"""How long the contestants of one row are measured, about."""

MIN_ROUNDS, MAX_ROUNDS = 5, 1001


class NotMeasuredError(Exception):
    """A row cannot be measured here; the message says why."""


@dataclass(frozen=True)
class Row:
    """A measured line of the table: seconds (or bytes) for one call, pair by pair."""

    group: str
    work: str
    rival: str
    ours: list[float]
    theirs: list[float]
    target: float | None = None
    """The ratio to reach."""
    unit: str = "s"

    @property
    def ratios(self) -> tuple[float, float, float]:
        """The ratios of the pairs: a quarter lies below, half, three quarters.

        Pairs are compared, and not medians, because what disturbs one run disturbs its neighbour.
        """
        ratios = [a / b for a, b in zip(self.ours, self.theirs, strict=True)]
        low, middle, high = statistics.quantiles(ratios, n=4, method="inclusive")
        return low, middle, high

    @property
    def ratio(self) -> float:
        """The median of the ratios."""
        return self.ratios[1]

    @property
    def verdict(self) -> str:
        """Whether the target is reached; nothing where there is none."""
        if self.target is None:
            return ""
        return "reached" if self.ratio <= self.target else "missed"


def timed(run: Run) -> float:
    """The seconds of one run; what it returns is dropped after the clock was read."""
    start = perf_counter()
    result = run()
    seconds = perf_counter() - start
    del result
    return seconds


def interleave(contestants: Sequence[Run], seconds: float = SECONDS) -> list[list[float]]:
    """The seconds of each contestant, warm, measured in turn (A B A B …)."""
    for run in contestants:
        run()
    samples: list[list[float]] = [[] for _ in contestants]
    end = perf_counter() + seconds
    for number in range(MAX_ROUNDS):
        if number >= MIN_ROUNDS and perf_counter() > end:
            break
        for times, run in zip(samples, contestants, strict=True):
            times.append(timed(run))
    return samples


_UNITS = (("s", 1.0), ("ms", 1e3), ("µs", 1e6), ("ns", 1e9))


def amount(value: float, unit: str = "s") -> str:
    """A time or a size for people, three digits long."""
    if unit == "bytes":
        return f"{value / 2**20:.1f} MiB"
    name, factor = next((pair for pair in _UNITS if value * pair[1] >= 1), _UNITS[-1])
    number = value * factor
    return f"{number:.{0 if number >= 100 else 1 if number >= 10 else 2}f} {name}"


HEADINGS = ("work", "idxfile", "min", "other", "its time", "min", "ratio", "half within", "target")
_WIDTHS = (36, 9, 9, 33, 9, 9, 5, 11, 14)
_WORDS = (0, 3)
"""The columns that stand on the left; the others are numbers."""


def line(cells: Iterable[str]) -> str:
    """One line of a Markdown table."""
    columns = enumerate(zip(cells, _WIDTHS, strict=True))
    padded = (f"{cell:{'<' if at in _WORDS else '>'}{width}}" for at, (cell, width) in columns)
    return f"| {' | '.join(padded)} |"


def heading() -> str:
    """The head of the table."""
    rule = line(
        ("-" if at in _WORDS else ":").rjust(width, "-") for at, width in enumerate(_WIDTHS)
    )
    return f"{line(HEADINGS)}\n{rule}"


def render(row: Row) -> str:
    """A row as a line of the table."""
    low, ratio, high = row.ratios
    ours, ours_min, theirs, theirs_min = (
        amount(measure(side), row.unit)
        for side in (row.ours, row.theirs)
        for measure in (statistics.median, min)
    )
    spread = f"{low:.2f}–{high:.2f}"
    target = "" if row.target is None else f"≤ {row.target:.2f} {row.verdict}"
    return line(
        (row.work, ours, ours_min, row.rival, theirs, theirs_min, f"{ratio:.2f}", spread, target)
    )


def missing(work: str, rival: str, reason: str) -> str:
    """A line of the table for what could not be measured."""
    return line((work, "–", "–", rival, "–", "–", "–", "–", "not measured")) + f" {reason}"
