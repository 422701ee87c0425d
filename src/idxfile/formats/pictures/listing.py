"""Which files of a place are the items, in which order, with which labels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

import numpy as np

from ...elements import Array
from ...errors import FormatError, PairError, UnsupportedError, printable
from ...names import natural, split_of
from ..table import PICTURES
from .labels import (
    TABLES,
    Classes,
    Label,
    Table,
    class_names,
    numbered,
    parsed_classes,
    read_table,
)
from .places import Place

__all__ = ["Listing", "list_pictures"]

CLASSES_FILE = "classes.txt"
_SHOWN = 3


@dataclass
class Listing:
    """The items of a place."""

    files: list[str]
    labels: Array | None = None
    """int64, one for each file; None where nothing tells them."""
    classes: Classes = None
    notes: list[str] = field(default_factory=list)


def list_pictures(
    place: Place,
    *,
    classes: str | None = None,
    labels: str | None = "auto",
    skip_missing: bool = False,
) -> Listing:
    """Find the pictures of a place, their order and their labels.

    Args:
        place: where to look.
        classes: the names of the classes in the order of their labels, with commas between.
        labels: the table of labels: a name in the place, or a path; "auto" takes one of TABLES
            where there is one; "folders" takes the folders for the classes; None looks for none.
        skip_missing: leave out rows of the table whose pictures are not there.

    Raises:
        FormatError: when there are no pictures, or the table cannot be read.
        PairError: when pictures and labels do not belong together.
        UnsupportedError: for a WebDataset.
    """
    pictures = place.pictures
    if not pictures:
        raise FormatError(
            "there are no pictures in it",
            file=place.name,
            hint=f"the names of pictures end in {', '.join(PICTURES)}",
        )
    if labels == "auto" and any(file.endswith(".cls") for file in place.files):
        raise UnsupportedError(
            "this is a WebDataset: labels lie in .cls files",
            file=place.name,
            hint='source_format="webdataset" (--from webdataset)',
        )
    given = parsed_classes(classes) or _read_classes(place)
    name, table = _table(place, labels)
    called = place.called(name) if name in place.files else name
    if table and table.labelled:
        listing = _by_table(place, called, table, given, pictures, skip_missing)
    else:
        pictures.sort(key=natural)
        listing = _by_folders(place, pictures, given) if labels else Listing(pictures)
        if table:
            listing.notes.append(f"left out {name}: it has no column of labels")
    known = {*pictures, *listing.files, *TABLES, CLASSES_FILE, name}
    others = sorted((file for file in place.files if file not in known), key=natural)
    listing.notes = [*place.notes, *listing.notes]
    if others:
        listing.notes.append(f"left out {_few(others, 'files')} that are no pictures by name")
    return listing


def _table(place: Place, labels: str | None) -> tuple[str, Table | None]:
    """The table of labels with its name; "" and None where there is none."""
    if labels is None or labels == "folders":
        return "", None
    files = set(place.files)
    if labels == "auto":
        name = next((name for name in TABLES if name in files), None)
        if name is None:
            return "", None
    else:
        name = labels
    if name in files:
        return name, read_table(place.called(name), place.read(name), files)
    with open(name, "rb") as file:
        return name, read_table(name, file.read(), files)


def _by_table(
    place: Place,
    name: str,
    table: Table,
    given: Classes,
    pictures: Collection[str],
    skip_missing: bool,
) -> Listing:
    """The items in the order of a table, which must name every picture once."""
    there = set(place.files)
    missing = [file for file, _ in table.rows if file not in there]
    if missing and not skip_missing:
        raise PairError(
            f"it names {_few(missing, 'pictures')} that are not there",
            file=name,
            found=missing,
            hint="--skip-bad (skip_bad=True) leaves such rows out",
        )
    rows = [(file, label) for file, label in table.rows if file in there]
    files = [file for file, _ in rows]
    if len(set(files)) < len(files):
        twice = [file for file, count in Counter(files).items() if count > 1]
        raise PairError(f"it names {_few(twice, 'pictures')} more than once", file=name)
    forgotten = sorted(set(pictures) - set(files), key=natural)
    if forgotten:
        raise PairError(
            f"it does not name {_few(forgotten, 'pictures')}",
            file=name,
            found=forgotten,
            hint="a table of labels names every picture; -O labels=folders does without it",
        )
    notes = [f"left out {_few(missing, 'pictures')} that are not there"] if missing else []
    labels: list[Label] = [label for _, label in rows]
    if all(label is None for label in labels):
        return Listing(files, None, None, notes)
    numbers, classes = numbered(labels, given, name)
    return Listing(files, numbers, _written(classes, notes), notes)


def _by_folders(place: Place, pictures: list[str], given: Classes) -> Listing:
    """The items by class, and in each class in natural order of their names."""
    flat = [file for file in pictures if "/" not in file]
    if len(flat) == len(pictures):
        return Listing(pictures, None, given)
    if flat:
        raise PairError(
            f"{_few(flat, 'pictures')} lie beside the folders of the classes",
            file=place.name,
            found=flat,
            hint="move them into a class, or write a labels.csv: file_name,label",
        )
    tops: list[Label] = [file.partition("/")[0] for file in pictures]
    filled = {file.partition("/")[0] for file in place.files if "/" in file}
    folders = {str(top) for top in tops} | (set(place.folders) - filled)
    if given is None and all(map(split_of, folders)):
        raise PairError(
            f"the folders {', '.join(sorted(folders))} are splits, not classes",
            file=place.name,
            hint=f"--split (split=) names one; or say --classes {','.join(sorted(folders))}",
        )
    numbers, classes = numbered(tops, given, place.name, candidates=folders)
    order = np.argsort(numbers, kind="stable")
    files = [pictures[at] for at in order]
    empty = sorted(folders - set(tops), key=natural)
    notes = [f"no pictures in class {printable(folder)}" for folder in empty]
    classes = classes or class_names(folders)
    return Listing(files, numbers[order], _written(classes, notes), notes)


def _read_classes(place: Place) -> Classes:
    """The names of the classes that lie beside the pictures, a line for each label."""
    if CLASSES_FILE not in place.files:
        return None
    text = place.read(CLASSES_FILE).decode("utf-8", errors="replace")
    return tuple(line.rstrip("\r") or None for line in text.removesuffix("\n").split("\n"))


def _written(classes: Classes, notes: list[str]) -> Classes:
    """The names as one line each, with escapes where they are more."""
    names = None if classes is None else tuple(name and printable(name) for name in classes)
    if names != classes:
        notes.append("the names of some classes are written with escapes")
    return names


def _few(files: Sequence[str], what: str) -> str:
    """How many files, and the first of them by name."""
    shown = ", ".join(printable(file) for file in files[:_SHOWN])
    more = ", …" if len(files) > _SHOWN else ""
    return f"{len(files):,} {what if len(files) > 1 else what.rstrip('s')} ({shown}{more})"
