"""What columns are for, by their names: images, labels, or something else."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from ..errors import PairError
from ..names import split_of

__all__: list[str] = []

IMAGE_NAMES = {
    "images",
    "image",
    "imgs",
    "img",
    "pictures",
    "picture",
    "pixels",
    "pixel",
    "x",
    "data",
}
LABEL_NAMES = {"labels", "label", "target", "targets", "class", "classes", "y"}
"""What people call the two columns, in lower case."""

SINGULAR = {"images": "image", "labels": "label"}
"""What the two are called where a row is one item: in tables."""


ALL = "all"
"""The split that is all splits: columns are then called `train/images`."""


def role_of(name: str) -> str:
    """The name of a column without the split that stands before it."""
    return name.rpartition("/")[2]


def is_label(name: str) -> bool:
    """Whether a column of this name holds labels."""
    return role_of(name).lower() in LABEL_NAMES


def roles(names: Iterable[str]) -> dict[str, str]:
    """Name → `images` or `labels`, where that is certain; the images first.

    One name among those that people give to labels is the labels; one among those of images, or
    the only one beside the labels, is the images.
    """
    names = list(names)
    found = {}
    labels = [name for name in names if is_label(name)]
    rest = [name for name in names if not is_label(name)]
    images = [name for name in rest if name.lower() in IMAGE_NAMES]
    if len(images) == 1:
        found[images[0]] = "images"
    elif len(rest) == 1 and len(labels) == 1:
        found[rest[0]] = "images"
    if len(labels) == 1:
        found[labels[0]] = "labels"
    return found


def in_roles(arrays: dict[str, Any]) -> dict[str, Any]:
    """The same columns under the names of their roles, the images first."""
    known = roles(arrays)
    named = {role: arrays[name] for name, role in known.items()}
    return {**named, **{name: array for name, array in arrays.items() if name not in known}}


def of_split(arrays: dict[str, Any], split: str | None) -> tuple[dict[str, Any], str | None]:
    """The columns of one split, where their names say splits: `x_train`, `test_labels`.

    Args:
        arrays: name → column; of all splits.
        split: the one that is meant; ALL takes each.

    Returns:
        The columns under names without the split, and the split; all as it is where none is named.

    Raises:
        PairError: when several are there and none was chosen, or not the one that was.
    """
    groups: dict[str, dict[str, Any]] = {}
    for name, array in arrays.items():
        words = re.split(r"[_\-./ ]+", name)
        named = [word for word in words if split_of(word)]
        if len(named) == 1:
            rest = "_".join(word for word in words if word not in named)
            groups.setdefault(str(split_of(named[0])), {})[rest or "images"] = array
    if not groups:
        return arrays, split
    if split == ALL:
        parts = {part: in_roles(group) for part, group in groups.items()}
        return {f"{part}/{n}": a for part, group in parts.items() for n, a in group.items()}, None
    wanted = next(iter(groups)) if split is None and len(groups) == 1 else split
    chosen = (wanted and split_of(wanted)) or wanted
    if chosen not in groups:
        found = ", ".join(groups)
        text = f"several splits: {found}" if split is None else f"no split {split!r}: {found}"
        raise PairError(text, found=list(groups), hint=f"split= (--split) one of {found}")
    return groups[chosen], chosen
