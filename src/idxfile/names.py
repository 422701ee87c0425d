"""What the name of a file promises: its role in a pair, its shape, type and compression.

A name like `train-images-idx3-ubyte.gz` is read as a role (images), what both files of a pair
share (`train-*`), and decoration: the number of dimensions, the element type, the compression. The
content decides about a file; a name only finds its partner, and is held against the content.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any, Literal, NamedTuple

from .codecs import CODECS, codec_named, codec_of_name
from .errors import PairError, printable
from .header import ELEMENT_TYPES, Header
from .problems import Problem
from .shards import MANIFEST_SUFFIX, without_number

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

_LUSH_ENDS: dict[str, Role] = {"-dat.mat": "images", "-cat.mat": "labels"}
"""What NORB calls them; by themselves these words are too common."""

JOURNAL_SUFFIX = ".journal.jsonl"
"""Behind the name of a file of labels: changes to them, which are no part of any pair."""

INDEX_SUFFIX = ".gzi"
"""Behind the name of a blocked gzip file: where its members begin."""

_SUFFIXES = tuple(suffix for row in CODECS for suffix in row.suffixes)
_DECORATION = re.compile(r"[-_.]idx\d+[-_.][a-z]+\d*$|\.idx\d*$|\.bin$", re.IGNORECASE)


class FileName(NamedTuple):
    """What the name of a file tells about its place in a pair."""

    role: Role
    shared: str
    """What both names of the pair have in common, lower case."""


def file_name(path: str) -> FileName | None:
    """Read the name of a file, or None where it names no role."""
    base = without_number(os.path.basename(path).lower())
    if base.endswith((JOURNAL_SUFFIX, MANIFEST_SUFFIX, INDEX_SUFFIX)):
        return None
    while base.endswith(_SUFFIXES):
        base = base.rpartition(".")[0]
    for end, role in _LUSH_ENDS.items():
        if base.endswith(end):
            return FileName(role, f"{base.removesuffix(end)}-*")
    base = _DECORATION.sub("", base)
    words = re.split(r"([-_.])", base)
    for place, word in enumerate(words):
        if word in _ROLE_WORDS:
            return FileName(_ROLE_WORDS[word], "".join([*words[:place], "*", *words[place + 1 :]]))
    return None


_TYPE_WORDS = {
    "ubyte": "uint8",
    "byte": "int8",
    "sbyte": "int8",
    "short": "int16",
    "int": "int32",
    "float": "float32",
    "double": "float64",
} | {row.name: row.name for row in ELEMENT_TYPES}

_WORD_OF_TYPE = {
    "uint8": "ubyte",
    "int8": "byte",
    "int16": "short",
    "int32": "int",
    "float32": "float",
    "float64": "double",
}

SPLIT_WORDS: dict[str, tuple[str, ...]] = {
    "train": ("train", "training"),
    "test": ("test", "t10k", "testing"),
    "validation": ("validation", "valid", "val", "dev"),
}
"""What the makers of data sets call the parts of one."""


def split_of(shared: str) -> str | None:
    """The split that a name says: train, test or validation; None where it says none."""
    words = re.split(r"[^a-z0-9]+", shared.lower())
    return next((split for split, names in SPLIT_WORDS.items() if set(names) & set(words)), None)


def pair_names(
    split: str, images: tuple[int, str], labels: tuple[int, str], codec: str | None
) -> tuple[str, str]:
    """The names of a pair as MNIST has them: `train-images-idx3-ubyte`, `train-labels-idx1-ubyte`.

    Args:
        split: train, test …
        images: the number of dimensions and the element type of the images.
        labels: the same of the labels.
        codec: the compression, whose suffix is added.
    """
    suffix = "" if codec is None else codec_named(codec).suffixes[0]
    return (
        f"{split}-images-idx{images[0]}-{_WORD_OF_TYPE[images[1]]}{suffix}",
        f"{split}-labels-idx{labels[0]}-{_WORD_OF_TYPE[labels[1]]}{suffix}",
    )


def refuse_rivals(folder: str, there: Iterable[str], written: Sequence[str]) -> None:
    """Make sure that what is written will be the only one of its role and split in its folder.

    Args:
        folder: what errors call it.
        there: the names of the files in it.
        written: the names of all files that will be written: of a pair, or of one half of it.

    Raises:
        PairError: when a file there has a role in the same split and is none of them: a reader
            could not tell the pairs apart. Beside one half, the other may be there.
    """
    mine = [each for name in written if (each := file_name(name)) is not None]
    roles = {each.role for each in mine}
    for name in sorted(there):
        other = file_name(name)
        if other is None or name in written or (len(roles) == 1 and other.role not in roles):
            continue
        for each in mine:
            split = split_of(each.shared)
            if other.shared == each.shared or (split and split_of(other.shared) == split):
                raise PairError(
                    f"{printable(name)} is there and belongs to {split or 'a pair of this name'}, "
                    "too: nobody could tell the pairs apart",
                    file=folder,
                    found=name,
                    hint="save into another folder",
                )


_NAMED_SHAPE = re.compile(r"idx(\d{1,3})[-_.]([a-z]+\d*)", re.IGNORECASE)


def name_problems(name: str, codecs: tuple[str, ...], header: Header) -> list[Problem]:
    """What the name of a file promises and its content does not hold.

    The content decides; this is only told. Names like `train-images-idx3-ubyte.gz` promise a
    number of dimensions, an element type and a compression.
    """
    base = os.path.basename(name)
    problems = []
    promised = codec_of_name(base)
    outer = codecs[0] if codecs else None
    if (promised.name if promised else None) != outer and not base.startswith("<"):
        suggests = f"suggests {promised.name}" if promised else "suggests no compression"
        problems.append(
            Problem(
                "name-codec",
                f"the name {suggests} and the content is {outer or 'raw'}",
                found=outer,
                expected=promised.name if promised else None,
            )
        )
    match = _NAMED_SHAPE.search(base)
    if match:
        ndim, element = int(match[1]), _TYPE_WORDS.get(match[2].lower())
        there = (header.ndim, header.element.name)
        if there != (ndim, element or header.element.name):
            problems.append(
                Problem(
                    "name-shape",
                    f"the name says {match[0]}, the header says {header}",
                    found=list(there),
                    expected=[ndim, element],
                )
            )
    return problems


_DIGITS = re.compile(r"([0-9]+)")


def natural(path: str) -> list[list[Any]]:
    """The key that sorts paths as people count: img2 before img10."""
    folder, _, name = path.rpartition("/")
    return [*_natural_folder(folder), _natural_part(name)]


@lru_cache
def _natural_folder(path: str) -> list[list[Any]]:
    return [_natural_part(part) for part in path.split("/")] if path else []


def _natural_part(text: str) -> list[Any]:
    parts: list[Any] = _DIGITS.split(text)
    for at in range(1, len(parts), 2):
        digits = parts[at].lstrip("0")
        parts[at] = (len(digits), digits)
    return [*parts, text]
