"""docs/scale.md: its blocks run, each in a process of its own."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

import idxfile

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "scale.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```(python|console)\n(.*?)```", PAGE, re.DOTALL)


@pytest.mark.parametrize("number", range(len(BLOCKS)))
def test_every_block_runs(number: int, tmp_path: Path) -> None:
    (tmp_path / "mnist").mkdir()
    for name in ("t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"):
        stored = idxfile.read(ROOT / "tests" / "data" / "mnist" / f"{name}.gz")
        idxfile.write(tmp_path / "mnist" / name, stored)
    kind, text = BLOCKS[number]
    if kind == "python":
        (tmp_path / "block.py").write_text(text)
        commands = [[sys.executable, "block.py"]]
    else:
        lines = [line.removeprefix("$ idx ").split("  #")[0] for line in text.splitlines()]
        commands = [[sys.executable, "-m", "idxfile", *shlex.split(line)] for line in lines]
    for command in commands:
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, (command, done.stderr)
        assert "Traceback" not in done.stderr
