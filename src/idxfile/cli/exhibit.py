"""What `idx show` shows: a data set, or a file and the labels beside it; and how it is drawn."""

from __future__ import annotations

import contextlib
import os
import shutil
from dataclasses import dataclass
from typing import Any

from ..array import open
from ..catalog.decoration import recognise_dataset
from ..catalog.recognition import files_like
from ..classes import read_classes
from ..dataset import Dataset
from ..names import file_name
from ..pairs import is_lone_set, open_dataset
from ..sheets.tiles import Shelf
from ..source.places import file_of, find_partner, is_folder, is_url
from ..viewer.screen import Screen, View
from ..viewer.terminal import strips
from .asking import abilities
from .paging import print_strips
from .terms import place

__all__ = ["Exhibit", "draw", "open_exhibit"]


@dataclass(frozen=True, slots=True)
class Exhibit:
    """What is shown: images, and what is known of them."""

    images: Any
    labels: Any
    classes: dict[int, str]
    """The names of the classes by their labels."""

    @property
    def count(self) -> int:
        """The number of items."""
        return self.images.shape[0] if self.images.ndim else 1


def draw(exhibit: Exhibit, numbers: Any, known: Any, look: Any, wanted: Any) -> None:
    """Draw on standard output."""
    graphics, width, everything, paged = wanted
    size = shutil.get_terminal_size()
    mode, cell = abilities(os.environ, graphics)
    shelf = Shelf(exhibit.images, exhibit.labels, numbers, **known)
    height = max(1, size.lines - 2)
    screen = Screen.of(width or max(1, size.columns), height, mode, not everything, cell)
    drawn = strips(shelf, screen, View(**look))
    print_strips(drawn, size.lines, pixels=screen.mode.graphic is not None, paged=paged)


def open_exhibit(
    stack: contextlib.ExitStack,
    file: str,
    labels_file: str | None,
    split: str | None,
    name: str | None,
) -> Exhibit:
    """Open what is to be shown: a data set, or a file and the labels beside it."""
    if labels_file is None and _is_dataset(file, split, name):
        ds = open_dataset(file, split=split, name=name)
        stack.callback(ds.close)
        return _of_dataset(ds if is_url(file) else recognise_dataset(ds))
    images = stack.enter_context(open(place(file)))
    partner = labels_file or _labels_of(file)
    if partner is None:
        return Exhibit(images, None, {})
    labels = stack.enter_context(open(place(partner)))
    classes = _classes_beside(file)
    if not is_url(file) and _may_be_known(images, labels):
        ds = Dataset(images, labels[...], classes=classes)
        if "-" not in (file, partner):
            ds = open_dataset((file, partner))
            stack.callback(ds.close)
        return _of_dataset(recognise_dataset(ds))
    return Exhibit(images, labels, _named(classes))


def _is_dataset(file: str, split: str | None, name: str | None) -> bool:
    """Whether a place holds pairs, of which one is to be chosen."""
    if (split, name) != (None, None) or file.endswith(".zip"):
        return True
    return is_folder(file) and not is_lone_set(file)


def _may_be_known(images: Any, labels: Any) -> bool:
    """Whether the catalogue has data sets of this type and shape; then they are small."""
    integers = labels.ndim in (1, 2) and labels.dtype.kind in "iu"
    return bool(integers and images.shape[:1] == labels.shape[:1] and files_like(images.header))


def _of_dataset(ds: Any) -> Exhibit:
    return Exhibit(ds.images, ds.labels, _named(ds.classes))


def _named(classes: Any) -> dict[int, str]:
    return {label: name for label, name in enumerate(classes or ()) if name}


def _classes_beside(file: str) -> Any:
    """The names of classes in the folder of a file; none where they are no text."""
    if file == "-" or is_url(file):
        return None
    try:
        return read_classes(os.path.dirname(file) or os.curdir)
    except UnicodeDecodeError:
        return None


def _labels_of(file: str) -> str | None:
    """The file of labels that belongs to a file of images, or None."""
    named = file_name(file_of(file))
    if file == "-" or named is None or named.role != "images":
        return None
    return find_partner(file)
