"""Writes the pages that come from the tables of the code: `make docs`. A test holds them to it."""

from __future__ import annotations

from pathlib import Path

from idxfile import PROBLEMS

PAGE = Path(__file__).with_name("problems.md")

HEAD = """# Problems

Everything that can be wrong with a file. `idx check` lists problems by these codes, also with
`--json`; opening a file raises the exception of the row, whose `code` attribute is the code.
*Readable* problems are passed over by `problems="warn"`, since nothing would have to be invented;
what the last column names makes a right file: `--salvage` keeps the whole items of a cut or damaged
file (where nothing but a whole number of items is missing, `idx repair` alone), `--swap-data` turns
the bytes of each element. In `--json` each problem tells its `repair`.

| code | level | exception | what it means | readable | mended by |
|---|---|---|---|---|---|
"""


def problems_page() -> str:
    """The page of all problems, from PROBLEMS."""
    rows = []
    for row in PROBLEMS.values():
        passed = "yes" if row.readable and row.level != "note" else ""
        repair = row.repair or ("idx repair --salvage" if row.salvageable else "")
        rows.append(
            f"| `{row.code}` | {row.level} | `{row.error.__name__}` | {row.meaning} | {passed} "
            f"| {f'`{repair}`' if repair else ''} |\n"
        )
    return HEAD + "".join(rows)


if __name__ == "__main__":
    PAGE.write_text(problems_page(), encoding="utf-8")
