"""Whether images and labels belong together: what a check of several files adds."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from ..errors import printable
from ..names import Role, file_name
from ..problems import Problem
from .facts import counted
from .judgement import Report

__all__: list[str] = []


@dataclass(frozen=True)
class PairReport:
    """The judgement over one pair."""

    images: str
    labels: str
    problems: list[Problem] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        """Whether nothing was found but notes."""
        return all(problem.level == "note" for problem in self.problems)

    def as_dict(self) -> dict[str, Any]:
        """The judgement as plain values, for JSON."""
        return {
            "images": self.images,
            "labels": self.labels,
            "ok": self.ok,
            "problems": [problem.as_dict() for problem in self.problems],
        }


def judge_pairs(reports: Sequence[Report]) -> list[PairReport]:
    """Find the pairs among checked files by their names, and judge each."""
    groups: dict[tuple[str, str], dict[Role, list[Report]]] = defaultdict(
        lambda: {"images": [], "labels": []}
    )
    for report in reports:
        name = file_name(report.file)
        if name is not None and report.header is not None:
            groups[os.path.dirname(report.file), name.shared][name.role].append(report)
    return [
        judge_pair(group["images"], group["labels"])
        for group in groups.values()
        if group["images"] and group["labels"]
    ]


def judge_pair(images: Sequence[Report], labels: Sequence[Report]) -> PairReport:
    """Judge the files that take the two roles of one pair; the first of each is the pair."""
    problems = [_twice(reports) for reports in (images, labels) if not _all_equal(reports)]
    picture, label = images[0], labels[0]
    shapes = [r.header.shape for r in (picture, label) if r.header is not None]
    swapped = len(shapes[0]) < 2 <= len(shapes[1])
    counts = [shape[0] if shape else 1 for shape in shapes]
    if swapped:
        problems.append(
            Problem(
                "pair-swapped",
                f"{_base(picture)} holds labels and {_base(label)} images",
                found=[list(shape) for shape in shapes],
                hint="exchange the names of the two files",
            )
        )
    if counts[0] != counts[1]:
        problems.append(
            Problem(
                "pair-count",
                f"images: {counted(counts[0], 'item')}, labels: {counted(counts[1], 'item')}",
                found=counts[1],
                expected=counts[0],
                hint="they come from different sets, or one was cut: fetch both again",
            )
        )
    if label.ok and not swapped:
        problems += _judge_labels(label)
    return PairReport(picture.file, label.file, problems)


def _base(report: Report) -> str:
    return printable(os.path.basename(report.file))


def _all_equal(reports: Sequence[Report]) -> bool:
    """Whether files that take the same place hold the same, as `x` and `x.gz` do."""
    first, *others = reports
    if not others:
        return True
    if not all(report.ok for report in reports):
        return False
    from .difference import diff

    return all(diff(first.file, other.file).equal for other in others)


def _twice(reports: Sequence[Report]) -> Problem:
    names = [os.path.basename(report.file) for report in reports]
    return Problem(
        "pair-twice",
        f"{' and '.join(map(_base, reports))} take the same place in the pair and differ",
        found=names,
        expected=1,
        hint="loaders choose by name and may choose another one than you: keep one",
    )


def _judge_labels(report: Report) -> list[Problem]:
    """What the labels run over, and whether that can be classes."""
    import numpy as np

    from ..array import open

    with open(report.file, mmap=False) as labels:
        if labels.ndim not in (1, 2) or not labels.size:
            return []
        low, high, whole = None, None, True
        for block in labels.blocks():
            column = block.reshape(len(block), -1)[:, 0]
            whole = whole and bool((column == np.floor(column)).all())
            low = column.min().item() if low is None else min(low, column.min().item())
            high = column.max().item() if high is None else max(high, column.max().item())
    if low is not None and (low < 0 or not whole):
        return [
            Problem(
                "label-values",
                f"labels run from {low} to {high}, which are no class numbers",
                found=[low, high],
                hint="labels are whole numbers from 0 on: was the right file taken?",
            )
        ]
    return [Problem("label-range", f"labels run from {low} to {high}", found=[low, high])]
