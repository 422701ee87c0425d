"""Images with their labels: how the two files of a pair find each other.

A name like `train-images-idx3-ubyte.gz` is read as a role (images), what both files share
(`train`), and decoration: the number of dimensions, the element type, the compression.
"""

from __future__ import annotations

import os
import re
from typing import Literal, NamedTuple

from .codecs import CODECS
from .errors import PairError

__all__: list[str] = []

Role = Literal["images", "labels"]

_ROLE_WORDS: dict[str, Role] = {
    "images": "images",
    "image": "images",
    "imgs": "images",
    "patterns": "images",
    "x": "images",
    "labels": "labels",
    "label": "labels",
    "y": "labels",
}
"""What the makers of data sets call the two files."""

_SUFFIXES = tuple(suffix for row in CODECS for suffix in row.suffixes)
_DECORATION = re.compile(r"[-_.]idx\d+[-_.][a-z]+\d*$|\.idx\d*$|\.bin$", re.IGNORECASE)


class FileName(NamedTuple):
    """What the name of a file tells about its place in a pair."""

    role: Role
    shared: str
    """What both names of the pair have in common, lower case."""


def file_name(path: str) -> FileName | None:
    """Read the name of a file, or None where it names no role."""
    base = os.path.basename(path).lower()
    while base.endswith(_SUFFIXES):
        base = base.rpartition(".")[0]
    base = _DECORATION.sub("", base)
    words = re.split(r"([-_.])", base)
    for place, word in enumerate(words):
        if word in _ROLE_WORDS:
            return FileName(_ROLE_WORDS[word], "".join([*words[:place], "*", *words[place + 1 :]]))
    return None


def find_partner(path: str) -> str | None:
    """The other file of a pair, in the same folder, under any usual name; None where it is not.

    Raises:
        PairError: when several files could be it.
    """
    mine = file_name(path)
    if mine is None:
        return None
    folder = os.path.dirname(path) or os.curdir
    wanted = FileName("labels" if mine.role == "images" else "images", mine.shared)
    found = sorted(
        entry.path
        for entry in os.scandir(folder)
        if file_name(entry.name) == wanted and entry.is_file()
    )
    if len(found) > 1:
        # The one that is written as ours is ours: compressed or not, with the same decoration.
        same = [p for p in found if p.endswith(_SUFFIXES) == path.endswith(_SUFFIXES)]
        if len(same) != 1:
            names = " and ".join(os.path.basename(p) for p in found)
            raise PairError(
                f"{names} could both be its {wanted.role}",
                file=path,
                found=found,
                hint="name the one that is meant",
            )
        found = same
    return found[0] if found else None
