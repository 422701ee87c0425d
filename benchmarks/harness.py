"""Measure contestants in turn, and lay the results out as a table."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable
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
    """A measured line of the table. Amounts are seconds or bytes for one call."""

    group: str
    work: str
    ours: float
    ours_min: float
    rival: str
    theirs: float
    theirs_min: float
    ratio: float
    ratio_low: float
    """A quarter of the pairs lies below."""
    ratio_high: float
    """A quarter of the pairs lies above."""
    target: float | None = None
    """The ratio to reach."""
    unit: str = "s"

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


def interleave(contestants: Iterable[Run], seconds: float = SECONDS) -> list[list[float]]:
    """The seconds of each contestant, warm, measured in turn (A B A B …)."""
    contestants = list(contestants)
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


def compare(
    group: str,
    work: str,
    ours: list[float],
    rival: str,
    theirs: list[float],
    target: float | None = None,
    unit: str = "s",
) -> Row:
    """A row from amounts that were measured in pairs.

    The ratio is the median of the ratios of the pairs: what disturbs one of a pair disturbs the
    other as well.
    """
    ratios = [a / b for a, b in zip(ours, theirs, strict=True)]
    low, middle, high = statistics.quantiles(ratios, n=4, method="inclusive")
    return Row(
        group,
        work,
        statistics.median(ours),
        min(ours),
        rival,
        statistics.median(theirs),
        min(theirs),
        middle,
        low,
        high,
        target,
        unit,
    )


def amount(value: float, unit: str = "s") -> str:
    """A time or a size for people, three digits long."""
    if unit == "bytes":
        return f"{value / 2**20:.1f} MiB"
    name, factor = next(
        ((name, factor) for name, factor in _UNITS if value * factor >= 1), _UNITS[-1]
    )
    return f"{_digits(value * factor)} {name}"


_UNITS = (("s", 1.0), ("ms", 1e3), ("µs", 1e6), ("ns", 1e9))


def _digits(value: float) -> str:
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


HEADINGS = ("work", "idxfile", "min", "other", "its time", "min", "ratio", "half within", "target")
_WIDTHS = (36, 9, 9, 33, 9, 9, 5, 11, 14)


def line(cells: Iterable[str], widths: Iterable[int] = _WIDTHS) -> str:
    """One line of a Markdown table: the first and fourth cell are words, the others numbers."""
    padded = (
        cell.ljust(width) if at in (0, 3) else cell.rjust(width)
        for at, (cell, width) in enumerate(zip(cells, widths, strict=True))
    )
    return f"| {' | '.join(padded)} |"


def heading() -> str:
    """The head of the table."""
    rule = ("-" * width if at in (0, 3) else f"{'':-<{width - 1}}:" for at, width in _COLUMNS)
    return f"{line(HEADINGS)}\n| {' | '.join(rule)} |"


_COLUMNS = tuple(enumerate(_WIDTHS))


def render(row: Row) -> str:
    """A row as a line of the table."""
    target = "" if row.target is None else f"≤ {row.target:.2f} {row.verdict}"
    return line(
        (
            row.work,
            amount(row.ours, row.unit),
            amount(row.ours_min, row.unit),
            row.rival,
            amount(row.theirs, row.unit),
            amount(row.theirs_min, row.unit),
            f"{row.ratio:.2f}",
            f"{row.ratio_low:.2f}–{row.ratio_high:.2f}",
            target,
        )
    )


def missing(work: str, rival: str, reason: str) -> str:
    """A line of the table for what could not be measured."""
    return f"| {work:{_WIDTHS[0]}} | not measured, against {rival}: {reason} |"
