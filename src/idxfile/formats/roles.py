"""What columns are for, by their names: images, labels, or something else."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

__all__: list[str] = []

IMAGE_NAMES = frozenset("images image imgs img pictures picture pixels pixel patterns data x".split())
LABEL_NAMES = frozenset("labels label target targets class classes y".split())
"""What people call the two columns, in lower case."""

SINGULAR = {"images": "image", "labels": "label"}
"""What the two are called where a row is one item: in tables."""


def is_label(name: str) -> bool:
    """Whether a column of this name holds labels."""
    return name.lower() in LABEL_NAMES


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
