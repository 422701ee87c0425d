"""docs/formats.md: its table is the table of the library, and its blocks run."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from trials import mnist

from idxfile.formats.row import NUMBERS, Format
from idxfile.formats.table import FORMATS
from idxfile.header import IDX_TYPE_NAMES

PAGE = (Path(__file__).parents[2] / "docs" / "formats.md").read_text(encoding="utf-8")

HEADINGS = (
    "format",
    "suffix",
    "read",
    "written",
    "pointed",
    "labels",
    "class names",
    "element types",
    "type kept",
    "dimensions",
    "empty arrays",
    "also compressed",
    "extra",
)


def types_of(row: Format) -> str:
    """The element types of a row, as few words as possible."""
    if row.types == NUMBERS:
        return "all"
    if row.types == IDX_TYPE_NAMES:
        return "IDX's"
    missing = [name for name in NUMBERS if name not in row.types]
    if len(missing) < len(row.types):
        return f"all but {', '.join(missing)}"
    return ", ".join(row.types)


def cells(row: Format) -> tuple[str, ...]:
    """A row of the table as the page has it."""
    fewest, most = row.ndim
    yes = {True: "yes", False: "–"}
    return (
        f"`{row.name}`: {row.title}",
        " ".join(f"`{suffix}`" for suffix in row.suffixes) or "–",
        yes[row.reads],
        yes[row.writes],
        yes[row.points],
        labels_of(row),
        yes[row.classes],
        types_of(row),
        yes[row.typed],
        f"{fewest} to {most}",
        row.empty,
        yes[row.packs],
        f"`{row.extra}`" if row.extra else "–",
    )


def labels_of(row: Format) -> str:
    """Whether a format holds labels, and of which types where those are others than the images'."""
    held = "every split" if row.separate else "yes" if row.several else "–"
    return f"{held}, whole numbers" if row.label_types else held


def table() -> str:
    """The table of FORMATS in Markdown."""
    lines = [HEADINGS, ("---",) * len(HEADINGS), *map(cells, FORMATS.values())]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def test_the_table_is_that_of_the_library() -> None:
    assert table() in PAGE, f"the table in docs/formats.md must be\n\n{table()}\n"


def test_every_option_of_a_format_is_on_the_page() -> None:
    for name, row in FORMATS.items():
        if row.module in (".pictures", ".webdataset", ".cheader", ".readmemh"):
            continue  # they are told where they are described
        assert f"`{name}`" in PAGE


BLOCKS = re.findall(r"```(python|console)\n(.*?)```", PAGE, re.DOTALL)


@pytest.mark.parametrize("number", range(len(BLOCKS)))
def test_every_block_runs(number: int, tmp_path: Path) -> None:
    kind, text = BLOCKS[number]
    (tmp_path / "mnist").mkdir()
    mnist(tmp_path / "mnist", 100)
    (tmp_path / "train.csv").write_text(
        "label," + ",".join(f"pixel{n}" for n in range(784)) + "\n" + ("5" + ",0" * 784 + "\n") * 3
    )
    if kind == "python":
        commands = [[sys.executable, "-W", "error", "-c", text]]
    else:
        lines = [line.removeprefix("$ ").split("  #")[0] for line in text.splitlines()]
        commands = [[sys.executable, "-m", *shlex.split(line)] for line in lines if line]
        commands = [[*c[:2], c[2].replace("idx", "idxfile"), *c[3:]] for c in commands]
    for command in commands:
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, env=os.environ)
        assert done.returncode == 0, (command, done.stderr)
