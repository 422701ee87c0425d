"""The names of classes, in a file beside a pair: `classes.txt`, a line for each label from 0.

An empty line is a label without a class, as 0 is among the letters of EMNIST.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Mapping, Sequence

from .errors import FetchError, FormatError
from .source import open_source
from .source.places import beside, is_url
from .staging import write_whole

__all__: list[str] = []

CLASSES_FILE = "classes.txt"
_MOST_NBYTES = 1 << 20
_MOST_CLASSES = 1 << 16
"""Labels beyond are no numbers of classes."""


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
    if is_url(folder):
        return _read_remote(beside(folder, CLASSES_FILE))
    try:
        with open(os.path.join(folder, CLASSES_FILE), encoding="utf-8") as file:
            return tuple(line.rstrip("\n") or None for line in file)
    except FileNotFoundError:
        return None


def renumbered(
    classes: Sequence[str | None], mapping: Mapping[int, int]
) -> tuple[str | None, ...] | None:
    """The names of classes after their labels were changed, as far as they are certain.

    Args:
        classes: the names by their labels of before.
        mapping: the new label for an old one; who is not in it keeps the label, and the name.

    Returns:
        The names by the new labels: None for a label that several old ones have become.
    """
    olds = {label for label, name in enumerate(classes) if name is not None}.union(mapping)
    became: dict[int, list[str | None]] = defaultdict(list)
    for old in olds:
        name = classes[old] if 0 <= old < len(classes) else None
        became[mapping.get(old, old)].append(name)
    certain = {new: names[0] for new, names in became.items() if len(names) == 1 and new >= 0}
    if not any(certain.values()) or max(certain) >= _MOST_CLASSES:
        return None
    return tuple(certain.get(label) for label in range(max(certain) + 1))


def _read_remote(url: str) -> tuple[str | None, ...] | None:
    """The same of an address; whatever comes instead of a short text is none."""
    try:
        source = open_source(url)
    except (FetchError, FileNotFoundError, FormatError):
        return None
    try:
        text = source.read_at(0, _MOST_NBYTES)
        if text.startswith(b"<"):  # a page that says there is no such page
            return None
        return tuple(line or None for line in text.decode("utf-8").splitlines())
    except (FetchError, UnicodeDecodeError):
        return None
    finally:
        source.close()
