"""Writes the pages that come from the tables of the code: `make docs`. A test holds them to it."""

from __future__ import annotations

from pathlib import Path

from idxfile import PROBLEMS

PAGE = Path(__file__).with_name("problems.md")

HEAD = """# Problems

Everything that can be wrong with a file. `idx check` lists problems by these codes, also with
`--json`; opening a file raises the exception of the row, whose `code` attribute is the code.
*Readable* problems are passed over by `problems="warn"`, since nothing would have to be invented;
*mendable* ones are mended by `idx repair`; of a *salvageable* file, `idx repair --salvage` keeps
the whole items.

| code | level | exception | what it means | |
|---|---|---|---|---|
"""


def problems_page() -> str:
    """The page of all problems, from PROBLEMS."""
    rows = []
    for row in PROBLEMS.values():
        marks = ("readable", "mendable", "salvageable")
        said = ", ".join(mark for mark in marks if getattr(row, mark) and row.level != "note")
        rows.append(
            f"| `{row.code}` | {row.level} | `{row.error.__name__}` | {row.meaning} | {said} |\n"
        )
    return HEAD + "".join(rows)


if __name__ == "__main__":
    PAGE.write_text(problems_page(), encoding="utf-8")
