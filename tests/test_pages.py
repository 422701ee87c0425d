"""The pages that come from tables are as `make docs` writes them."""

import runpy
from pathlib import Path

DOCS = Path(__file__).parent.parent / "docs"


def test_the_page_of_problems_is_that_of_the_table():
    page = runpy.run_path(str(DOCS / "generate.py"))["problems_page"]()
    assert (DOCS / "problems.md").read_text(encoding="utf-8") == page, "run `make docs`"
