"""Every block of docs/frameworks.md runs."""

import re
from pathlib import Path

import pytest
from samples import run

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parent.parent.parent
PAGE = (ROOT / "docs" / "frameworks.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)


@pytest.mark.parametrize("number", range(len(BLOCKS)))
def test_block(tmp_path, number):
    (tmp_path / "mnist").symlink_to(ROOT / "tests" / "data" / "mnist")
    code = f"import os, warnings; os.chdir({str(tmp_path)!r}); warnings.simplefilter('default')\n"
    run(code + BLOCKS[number])
