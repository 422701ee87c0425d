"""The names of classes, in a file beside a pair: `classes.txt`, a line for each label from 0.

An empty line is a label without a class, as 0 is among the letters of EMNIST.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from .sink import write_whole

__all__: list[str] = []

CLASSES_FILE = "classes.txt"


def write_classes(folder: str, classes: Sequence[str | None]) -> None:
    """Write class names beside a pair, a line for each label."""
    bad = next((name for name in classes if name and "\n" in name), None)
    if bad is not None:
        raise ValueError(f"a class name is one line, not {bad!r}")
    write_whole(
        os.path.join(folder, CLASSES_FILE), "".join(f"{name or ''}\n" for name in classes).encode()
    )


def read_classes(folder: str) -> tuple[str | None, ...] | None:
    """The class names that lie beside a pair, a line for each label; None without the file."""
    try:
        with open(os.path.join(folder, CLASSES_FILE), encoding="utf-8") as file:
            return tuple(line.rstrip("\n") or None for line in file)
    except FileNotFoundError:
        return None
