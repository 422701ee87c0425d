"""What is written down runs: the examples of every docstring, the Python of every page."""

from __future__ import annotations

import ast
import doctest
import re
import sys
from importlib import import_module
from pathlib import Path

import pytest

from conftest import SOURCE

ROOT = SOURCE.parent.parent
PAGES = [path for path in (ROOT / "README.md", ROOT / "CONTRIBUTING.md") if path.exists()]
PAGES += sorted((ROOT / "docs").glob("*.md"))
PAGES.remove(ROOT / "docs" / "formats.md")  # tests/formats/test_formats_page.py runs that one
PAGES.remove(ROOT / "docs" / "scale.md")  # and tests/engines/test_scale_page.py this one
BASE = {"numpy", "click", "isal", "backports", "compression", "idxfile"} | sys.stdlib_module_names


def needs_an_extra(path: Path) -> bool:
    """Whether a module cannot be imported with the base packages alone; it has its own tests."""
    body = ast.parse(path.read_text(encoding="utf-8")).body
    roots = {
        alias.name.partition(".")[0] for n in body if isinstance(n, ast.Import) for alias in n.names
    }
    roots |= {
        str(node.module).partition(".")[0]
        for node in body
        if isinstance(node, ast.ImportFrom) and not node.level
    }
    return not roots <= BASE or "adapters" in path.parts


MODULES = sorted(
    ".".join(("idxfile", *path.relative_to(SOURCE).with_suffix("").parts)).removesuffix(".__init__")
    for path in SOURCE.rglob("*.py")
    if path.name != "__main__.py" and not needs_an_extra(path)
)


def example_count(name: str) -> int:
    finder = doctest.DocTestFinder(exclude_empty=True)
    return sum(len(test.examples) for test in finder.find(import_module(name)))


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_of_a_module(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    result = doctest.testmod(import_module(name), report=True)
    assert result.failed == 0, "see the output above"


def test_the_verbs_have_examples() -> None:
    assert example_count("idxfile") >= 4
    for room in ("array", "writer", "header"):
        assert example_count(f"idxfile.{room}") >= 3


def python_of(page: Path) -> list[tuple[int, str]]:
    """The blocks of a page marked as Python, each with the number of its first line."""
    text = page.read_text(encoding="utf-8")
    found = re.finditer(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    return [(text[: block.start(1)].count("\n"), block[1]) for block in found]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_python_of_a_page(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Block after block, as a reader would who has just cloned.

    Of a page about packages that are not here, as much is run as they allow.
    """
    (tmp_path / "tests").symlink_to(ROOT / "tests")
    (tmp_path / "mnist").symlink_to(ROOT / "tests" / "data" / "mnist")
    monkeypatch.chdir(tmp_path)
    blocks = [compile("\n" * line + code, str(page), "exec") for line, code in python_of(page)]
    names: dict[str, object] = {"__name__": "__main__"}
    try:
        for block in blocks:
            exec(block, names)
    except ModuleNotFoundError as missing:
        if str(missing.name).partition(".")[0] in BASE:
            raise


def test_blocks_are_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("a\n```python\nx = 1\n```\n```sh\nidx\n```\n\n```python\nx += 1\nx\n```\n")
    assert python_of(page) == [(2, "x = 1\n"), (9, "x += 1\nx\n")]
