"""What says of which class a picture is: tables of labels, names of folders, lists of names."""

from __future__ import annotations

import csv
import io
import json
import posixpath
import re
from collections.abc import Collection, Sequence
from types import NoneType
from typing import NamedTuple

import numpy as np

from ...elements import Array
from ...errors import FormatError, PairError, UnsupportedError, printable
from ...names import natural

__all__ = [
    "TABLES",
    "Classes",
    "Label",
    "class_names",
    "folder_name",
    "numbered",
    "parsed_classes",
    "read_table",
]

Label = str | int | None
Classes = tuple[str | None, ...] | None

TABLES = ("metadata.jsonl", "metadata.csv", "labels.csv")
"""Files at the top of a place that say the labels, the one that is looked for first."""

_FILE_KEYS = ("file_name", "filename", "file", "path", "image")
_LABEL_KEYS = ("label", "class", "category", "target")
"""What the makers of data sets call the two columns."""

_NUMBER = re.compile(r"0|-?[1-9][0-9]{0,18}")
_MAX_NAMED = 1 << 16


# Tables of labels


class Table(NamedTuple):
    """What a table of labels says."""

    rows: list[tuple[str, Label]]
    """File and label, in the order of the table."""
    labelled: bool
    """Whether it has labels at all (each of them may be missing)."""


def read_table(name: str, data: bytes, files: Collection[str]) -> Table:
    """Read a table of labels.

    Args:
        name: the name of the table, for errors; .jsonl is JSON lines, all else is CSV.
        data: its bytes.
        files: the files there are, which tell whether a CSV has a line of headings.

    Raises:
        FormatError: for a table that cannot be read.
        PairError: for a row without a file name, or a label that is none.
    """
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise FormatError(f"the table is not UTF-8: {error}", file=name) from error
    if name.endswith(".jsonl"):
        return _json_table(name, text)
    return _csv_table(name, text, files)


def _json_table(name: str, text: str) -> Table:
    rows: list[tuple[str, Label]] = []
    labelled = False
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except ValueError as error:
            raise FormatError(f"line {number:,} is no JSON: {error}", file=name) from error
        keys = row if isinstance(row, dict) else {}
        file = next((row[key] for key in _FILE_KEYS if key in keys), None)
        if not isinstance(file, str):
            raise PairError(f"line {number:,} has no file_name", file=name)
        key = next((key for key in _LABEL_KEYS if key in keys), None)
        label = row[key] if key else None
        if isinstance(label, bool) or not isinstance(label, (str, int, NoneType)):
            raise PairError(
                f"line {number:,}: the label {label!r} is no class",
                file=name,
                hint="a label is a whole number, or the name of a class",
            )
        labelled |= key is not None
        rows.append((posixpath.normpath(file), None if label == "" else label))
    return Table(rows, labelled)


def _csv_table(name: str, text: str, files: Collection[str]) -> Table:
    lines = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        numbered_rows = [(lines.line_num, row) for row in lines if any(row)]
    except csv.Error as error:
        raise FormatError(f"line {lines.line_num:,}: {error}", file=name) from error
    first = numbered_rows[0][1] if numbered_rows else []
    keys = [cell.strip().lower() for cell in first]
    file_at = next((keys.index(key) for key in _FILE_KEYS if key in keys), None)
    label_at = next((keys.index(key) for key in _LABEL_KEYS if key in keys), None)
    if file_at is not None:
        del numbered_rows[0]
    elif first and posixpath.normpath(first[0]) in files:
        file_at, label_at = 0, 1 if len(first) > 1 else None
    else:
        raise PairError(
            f"no column of file names among {', '.join(map(printable, first)) or 'none'}",
            file=name,
            hint="the first line is: file_name,label",
        )
    rows: list[tuple[str, Label]] = []
    for number, row in numbered_rows:
        if len(row) <= max(file_at, label_at or 0):
            raise PairError(f"line {number:,} is too short", file=name)
        label = None if label_at is None else row[label_at].strip() or None
        rows.append((posixpath.normpath(row[file_at]), label))
    return Table(rows, label_at is not None)


# Labels as numbers, and the names of classes


def numbered(
    labels: Sequence[Label], given: Classes, name: str, *, candidates: Collection[str] = ()
) -> tuple[Array, Classes]:
    """Labels as numbers, with the names of the classes.

    Numbers stay what they are. Names are numbered as `given`, or in natural order.

    Args:
        labels: numbers, or names of classes; names that are numbers count as numbers.
        given: the names of the classes in order, where they are known.
        name: what errors call the place.
        candidates: names of classes that may have no pictures (empty folders).

    Returns:
        Labels as int64, and the names by label, or None.

    Raises:
        PairError: for a label that is missing, or has no place among the given classes.
    """
    missing = labels.count(None)
    if missing:
        raise PairError(f"{missing:,} of {len(labels):,} pictures have no label", file=name)
    words = {label for label in labels if isinstance(label, str)} | set(candidates)
    places = _places(given or ())
    if words and words <= places.keys():
        return _looked_up(labels, places, name), given
    if all(_NUMBER.fullmatch(word) for word in words):
        return _as_numbers(labels, given, name), given
    if given is None:
        given = tuple(sorted({str(label) for label in labels} | set(candidates), key=natural))
        places = {word: label for label, word in enumerate(given) if word is not None}
    return _looked_up(labels, places, name), given


def _as_numbers(labels: Sequence[Label], given: Classes, name: str) -> Array:
    try:
        numbers = np.array([int(label or 0) for label in labels], np.int64)
    except OverflowError:
        raise PairError("a label has more than 64 bits", file=name) from None
    if given and numbers.size and not 0 <= numbers.min() <= numbers.max() < len(given):
        raise PairError(
            f"labels run from {numbers.min()} to {numbers.max()}, and there are "
            f"{len(given)} classes",
            file=name,
        )
    return numbers


def _looked_up(labels: Sequence[Label], places: dict[str, int], name: str) -> Array:
    unknown = sorted({str(label) for label in labels} - places.keys(), key=natural)
    if unknown:
        raise PairError(
            f"{', '.join(map(printable, unknown[:5]))}: not among the classes",
            file=name,
            found=unknown,
            expected=list(places),
            hint="--classes (classes=) names all of them, in order",
        )
    return np.array([places[str(label)] for label in labels], np.int64)


def _places(names: Sequence[str | None]) -> dict[str, int]:
    """Name → label; a name also counts as the folder that is made of it."""
    safe = {folder_name(name): label for label, name in enumerate(names) if name is not None}
    return safe | {name: label for label, name in enumerate(names) if name is not None}


def class_names(folders: Collection[str]) -> Classes:
    """The names by label, of folders whose names are the labels."""
    labels = {int(folder): folder for folder in folders}
    if not labels or min(labels) < 0 or max(labels) >= _MAX_NAMED:
        return None
    return tuple(labels.get(label) for label in range(max(labels) + 1))


def parsed_classes(text: str | None) -> Classes:
    """The option `classes`: names in the order of their labels, with commas between.

    Raises:
        ValueError: for a name that is empty or stands twice.
    """
    if text is None:
        return None
    names = tuple(name.strip() for name in text.split(","))
    if len(set(names)) < len(names) or not all(names):
        raise ValueError(f"classes must be different names, not {text!r}")
    return names


_UNSAFE = re.compile(r'^\.|[\\/<>:"|?*%\x00-\x1f\x7f]|[. ]$')
_MAX_NAME_NBYTES = 200


def folder_name(name: str) -> str:
    """A class's name as the name of a folder on every system; escapes as in URLs."""
    safe = _UNSAFE.sub(lambda match: f"%{ord(match[0]):02X}", name)
    safe = "".join(c if c.isprintable() else f"%{ord(c):02X}" for c in safe)
    if not safe:
        raise UnsupportedError("a class without a name makes no folder")
    return safe.encode()[:_MAX_NAME_NBYTES].decode(errors="ignore")
