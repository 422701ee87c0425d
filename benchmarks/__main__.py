"""Measure idxfile against what people use instead, and print the ratios.

python -m benchmarks                 all groups
python -m benchmarks read gz         these groups only
python -m benchmarks --json OUT      the rows as JSON as well
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import tempfile
from collections.abc import Iterator
from dataclasses import asdict

import numpy as np

import idxfile

from . import convert, pictures, report
from .cases import CASES, Case
from .files import Files
from .harness import NotMeasuredError, Row, heading, missing, render
from .memory import MEMORY_CASES, MemoryCase

ALL_CASES: tuple[Case | MemoryCase, ...] = (
    *CASES,
    *MEMORY_CASES,
    *convert.CASES,
    *pictures.CASES,
)
GROUPS = (*dict.fromkeys(case.group for case in ALL_CASES), "report")


def parse() -> argparse.Namespace:
    """What the command line asks for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Measure idxfile.")
    parser.add_argument("groups", nargs="*", metavar="GROUP", help=f"of {', '.join(GROUPS)}")
    parser.add_argument("--list", action="store_true", help="name the groups and their rows")
    parser.add_argument("--json", metavar="OUT", help="write the rows to this file as well")
    parser.add_argument("--folder", help="where the files to measure are made for the while")
    options = parser.parse_args()
    unknown = set(options.groups) - set(GROUPS)
    if unknown:
        parser.error(f"no group {', '.join(sorted(unknown))}; there are {', '.join(GROUPS)}")
    return options


def machine() -> dict[str, object]:
    """What the numbers were measured on."""
    return {
        "idxfile": idxfile.__version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "system": f"{platform.system()} {platform.machine()}",
        "processors": os.cpu_count(),
        "load": round(os.getloadavg()[0], 1),
    }


def measured(groups: list[str], files: Files) -> Iterator[Row]:
    """Measure the rows of these groups, printing each as it comes."""
    for case in ALL_CASES:
        if case.group not in groups:
            continue
        try:
            rows = case.measure(files)
        except NotMeasuredError as reason:
            print(missing(case.work, case.rival, str(reason)), flush=True)
            continue
        for row in rows:
            print(render(row), flush=True)
            yield row


def main() -> None:
    """Run what the command line asks for."""
    options = parse()
    if options.list:
        for case in ALL_CASES:
            print(f"{case.group:8} {case.work}, against {case.rival}")
        print(f"{'report':8} the table of the report that idxfile comes from")
        return
    groups = options.groups or list(GROUPS)
    facts = machine()
    print(", ".join(f"{name} {value}" for name, value in facts.items()))
    if os.getloadavg()[0] > 0.25 * (os.cpu_count() or 1):
        print("The machine is busy: what uses several processors is measured too slow.")
    print()
    rows: list[Row] = []
    table = {}
    with tempfile.TemporaryDirectory(prefix="idxfile-bench-", dir=options.folder) as folder:
        files = Files(folder)
        if set(groups) - {"report"}:
            print(heading())
            rows = list(measured(groups, files))
        if "report" in groups:
            table = report.measure(files)
            print(f"\nThe report's table measured anew (its claims)\n\n{report.render(table)}")
    goals = [row for row in rows if row.target is not None]
    if goals:
        missed = [row for row in goals if row.verdict == "missed"]
        print(f"\n{len(goals) - len(missed)} of {len(goals)} targets reached")
        for row in missed:
            print(f"missed: {row.work} against {row.rival}: {row.ratio:.2f}, not {row.target:.2f}")
    if options.json:
        told = [{**asdict(row), "ratio": row.ratio, "verdict": row.verdict} for row in rows]
        found = {"machine": facts, "rows": told, "report": table}
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(found, file, indent=1)


if __name__ == "__main__":
    main()
