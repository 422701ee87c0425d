"""Items as PNG files: in folders of their classes, in a tar, or in a zip.

The name of a file is the number of its item, so that the order can be seen; `metadata.jsonl` says
it, with the labels, and `classes.txt` the names of the classes. The way back follows both.
"""

from __future__ import annotations

import itertools
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

import numpy as np

from ... import png
from ...elements import Array
from ...errors import UnsupportedError
from ..columns import Columns
from .labels import Classes, folder_name
from .shelves import open_shelf
from .workers import in_order

__all__ = ["encoded", "pictures_and_labels", "values", "write_columns"]

_CHUNK_NBYTES = 1 << 20
_MAX_IN_FOLDER = 100_000
_IN_SHARD = 10_000
_MIN_DIGITS = 5


def write_columns(path: str, columns: Columns, *, level: int = 6) -> None:
    """Write the images as PNG files.

    Args:
        path: a folder, which is filled; or an archive: .zip, or .tar and whatever compresses it.
        columns: images of uint8, `(items, rows, columns)` or `(items, rows, columns, 3)`, and
            labels, whose classes become folders.
        level: how hard zlib tries, 0 to 9.

    Raises:
        UnsupportedError: for what is no picture of bytes, and for no pictures at all.
    """
    images, labels = pictures_and_labels(columns)
    rows = _rows(len(images), labels, columns.classes)
    metadata = bytearray()

    def jobs() -> Iterator[tuple[list[str], Array]]:
        for block in images.blocks(block_nbytes=_CHUNK_NBYTES):
            part = list(itertools.islice(rows, len(block)))
            metadata.extend("".join(line for _, line in part).encode())
            yield [file for file, _ in part], block

    with open_shelf(path) as shelf:

        def save(job: tuple[list[str], Array]) -> list[tuple[str, bytes]]:
            names, block = job
            files = list(zip(names, png.encode_all(block, level=level), strict=True))
            if not shelf.sequential:
                for file in files:
                    shelf.put(*file)
                files = []
            return files

        for files in in_order(save, jobs()):
            for file in files:
                shelf.put(*file)
        shelf.put("metadata.jsonl", bytes(metadata))
        if columns.classes:
            shelf.put("classes.txt", _class_lines(columns.classes))


def _class_lines(classes: Sequence[str | None]) -> bytes:
    """The names of the classes, a line for each label."""
    bad = next((name for name in classes if name and not {"\n", "\r"}.isdisjoint(name)), None)
    if bad is not None:
        raise UnsupportedError(f"the name of a class is one line, not {bad!r}", found=bad)
    return "".join(f"{name or ''}\n" for name in classes).encode()


def pictures_and_labels(columns: Columns) -> tuple[Any, Any]:
    """The column of pictures, and that of labels or None; others are left out with a note.

    Raises:
        UnsupportedError: for what is no picture of bytes, for no pictures, for labels that are
            not one whole number each.
    """
    arrays = columns.arrays
    pictures = "images" if "images" in arrays else next(iter(arrays))
    images, labels = arrays[pictures], arrays.get("labels")
    shape, dtype = images.shape, images.dtype
    picture = len(shape) == 3 or (len(shape) == 4 and shape[3] == 3)
    if not picture:
        raise UnsupportedError(
            f"items of shape {tuple(shape[1:])} are no pictures",
            found=shape,
            expected=["(items, rows, columns)", "(items, rows, columns, 3)"],
            hint="pictures are (items, rows, columns) in grey or (items, rows, columns, 3) in RGB",
        )
    if dtype != np.uint8:
        raise UnsupportedError(
            f"pictures of {dtype.name} do not go into a PNG of 8 bits",
            found=dtype.name,
            expected="uint8",
            hint='dtype="uint8" where the values fit; scale=(low, high) with it spreads low to '
            "high over 0 to 255 (`idx convert --dtype uint8 --scale LOW:HIGH`)",
        )
    if not all(shape):
        raise UnsupportedError(
            f"{shape[0]:,} pictures of {shape[1]} × {shape[2]}: no file would keep their shape",
            found=shape,
        )
    if labels is not None and (len(labels.shape) != 1 or labels.dtype.kind not in "biu"):
        raise UnsupportedError(
            f"labels are {labels.dtype.name} of shape {tuple(labels.shape)}; "
            "a picture has one whole number",
            found=labels.shape,
            hint="choose one column of the matrix of labels, or leave them out",
        )
    others = [name for name in arrays if name not in (pictures, "labels")]
    if others:
        columns.notes.append(f"left out {', '.join(others)}: pictures have no place for it")
    return images, labels


def values(labels: Any) -> Iterator[int]:
    """A column of numbers, one after the other."""
    return itertools.chain.from_iterable(block.astype(int).tolist() for block in labels.blocks())


def encoded(images: Any, level: int) -> Iterator[bytes]:
    """The PNG file of each picture, in order, made on all cores."""

    def encode(block: Array) -> list[bytes]:
        return png.encode_all(block, level=level)

    blocks = images.blocks(block_nbytes=_CHUNK_NBYTES)
    return itertools.chain.from_iterable(in_order(encode, blocks))


def _rows(count: int, labels: Any, classes: Classes) -> Iterator[tuple[str, str]]:
    """The file name of each item, and the line that says it and the label."""

    @cache
    def folder_of(label: int | None) -> str:
        if label is None:
            return ""
        name = classes[label] if classes and 0 <= label < len(classes) else None
        return f"{folder_name(name) if name else label}/"

    escaped = cache(lambda text: json.dumps(text)[1:-1])
    totals: Counter[str] = Counter()
    if labels is None:
        totals[""] = count
        numbers: Iterator[int | None] = itertools.repeat(None, count)
    else:
        numbers = values(labels)
        for block in labels.blocks():
            for label, number in zip(*np.unique(block, return_counts=True), strict=True):
                totals[folder_of(int(label))] += int(number)
    digits = max(_MIN_DIGITS, len(str(count - 1)))
    seen: Counter[str] = Counter()
    for number, label in enumerate(numbers):
        folder = folder_of(label)
        shard = f"{seen[folder] // _IN_SHARD:04}/" if totals[folder] > _MAX_IN_FOLDER else ""
        seen[folder] += 1
        name = f"{shard}{number:0{digits}}.png"
        said = "null" if label is None else label
        line = f'{{"file_name": "{escaped(folder)}{name}", "label": {said}}}\n'
        yield f"{folder}{name}", line
