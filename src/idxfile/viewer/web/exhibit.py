"""What is looked at: items with their labels, opened as far as the file allows, and its facts."""

from __future__ import annotations

import threading
import warnings
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ...array import IdxArray, open, open_whole_items
from ...elements import Array, as_bytes
from ...errors import FormatError, IdxError, IdxWarning, PairError, UnsupportedError
from ...header import Header, examine
from ...items import Items
from ...opening import no_array_error
from ...problems import Problem
from ...report.facts import make_out, outer_nbytes
from ...report.judgement import unopened
from ...sheets.pixels import Window, window_of
from ...source import LocalFile, header_prefix, open_source
from .figures import Figures
from .journal import Journal
from .places import Place

__all__ = ["Exhibit"]

SAMPLE = 256
"""The items that the first window of values is taken from, at most, and not above 8 MiB."""


@dataclass
class Opened:
    """A file as far as it could be opened."""

    name: str
    items: Items | None = None
    """None where there are none that could be shown."""
    header: Header | None = None
    """What it declares."""
    head: bytes = b""
    """Its first kilobyte, decompressed."""
    codecs: tuple[str, ...] = ()
    nbytes: int | None = None
    raw: LocalFile | None = None
    """The file itself, where it lies on this machine as the format has it."""
    problems: list[Problem] = field(default_factory=list)


class Exhibit:
    """One data set of the page. Opened when it is first asked for; closed with the server.

    Args:
        place: its files.
        rivals: files of labels that it may be compared with.
    """

    def __init__(self, place: Place, rivals: list[Place] | None = None) -> None:
        self.place = place
        self._rival_places = rivals or []
        self._lock = threading.RLock()
        self._file: Opened | None = None
        self._rivals: dict[int, Array] = {}
        self._labels: Array | None = None
        self._now: tuple[int, Array] | None = None

    @property
    def file(self) -> Opened:
        """The items' file, opened now if it was not yet."""
        with self._lock:
            if self._file is None:
                self._file = self._open()
            return self._file

    @property
    def items(self) -> Items:
        """The items.

        Raises:
            FormatError: when the file has none that could be shown.
        """
        items = self.file.items
        if items is None:
            raise FormatError("this file has no items that could be shown", file=self.place.name)
        return items

    def __len__(self) -> int:
        items = self.file.items
        return 0 if items is None else len(items)

    @property
    def alone(self) -> bool:
        """Whether the items are labels themselves, and nothing else is there."""
        items = self.file.items
        return (
            self.place.labels is None
            and items is not None
            and items.ndim == 1
            and items.dtype.kind in "iu"
        )

    @property
    def table(self) -> Array | None:
        """The labels as they stand in the file: a vector, or a matrix with the class in front."""
        self.file  # noqa: B018 - opens it
        return self._labels

    @property
    def stored(self) -> Array | None:
        """The class of each item as it stands in the file, `(items,)`."""
        table = self.table
        return table if table is None or table.ndim == 1 else table[:, 0]

    @property
    def labels(self) -> Array | None:
        """The class of each item by now, the journal's changes in it; `(items,)`, int64."""
        with self._lock:
            stored = self.stored
            if stored is None:
                return None
            changes = self.journal.changes()
            if self._now is None or self._now[0] != len(changes):
                labels = stored.astype(np.int64)
                known = {change.item: change.old for change in reversed(changes)}
                for change in changes:  # one that was made to another file is no change of this
                    if known[change.item] == stored[change.item]:
                        labels[change.item] = change.new
                self._now = len(changes), labels
            return self._now[1]

    def close(self) -> None:
        """Stop counting, and drop the file."""
        with self._lock:
            file = self._file
        if file is not None:
            self.figures.stop()  # who counts may be waiting for the lock: it is not held here
            if file.items is not None:
                file.items.close()

    def slab(self, chosen: Any) -> bytes:
        """Items as they would stand in a file: most significant byte first.

        Args:
            chosen: their numbers.

        Raises:
            IndexError: for an item that is not there.
        """
        block = self.items.take(np.asarray(chosen, np.intp))
        return as_bytes(np.ascontiguousarray(block, self.items.dtype.newbyteorder(">"))).tobytes()

    def rival_names(self) -> list[str]:
        """The files of labels that there are to compare with."""
        return [rival.name for rival in self._rival_places]

    def rival(self, number: int) -> Array:
        """Other labels for the same items, `(items,)`, int64.

        Raises:
            IndexError: when there is no such file.
            PairError: when it has not as many labels.
        """
        with self._lock:
            if number not in self._rivals:
                if not 0 <= number < len(self._rival_places):
                    raise IndexError("there is no such file of labels")
                place = self._rival_places[number]
                labels = _read_labels(place.images())
                if len(labels) != len(self):
                    raise PairError(
                        f"{place.name} has {len(labels):,} labels for {len(self):,} items",
                        found=len(labels),
                        expected=len(self),
                    )
                self._rivals[number] = _classes_of(labels)
            return self._rivals[number]

    def _open(self) -> Opened:
        given = self.place.images()
        opened = _in_memory(given) if hasattr(given, "shape") else _open_file(given, self.place)
        count = 0 if opened.items is None else len(opened.items)
        if self.place.labels is not None:
            self._labels, problem = self._open_labels(count)
            opened.problems += problem
        self._file = opened
        if self.alone:
            self._labels = self.items[...]
        self.journal = Journal(self.place.path if self._labels is not None else None, count)
        window = window_of([_sample(opened)]) if count else (0.0, 255.0)
        self.window: Window = window
        self.figures = Figures(self)
        return opened

    def _open_labels(self, count: int) -> tuple[Array | None, list[Problem]]:
        """The labels of the items that are there, and what is wrong with them."""
        assert self.place.labels is not None
        try:
            labels = _read_labels(self.place.labels())
        except (IdxError, OSError) as error:
            return None, [_labels_problem(str(error))]
        problems = []
        if len(labels) != count:
            found = f"images: {count:,} items, labels: {len(labels):,} items"
            problems.append(Problem("pair-count", found, found=len(labels), expected=count))
        if len(labels) < count:
            return None, problems
        return labels[:count], problems


def _labels_problem(text: str) -> Problem:
    return Problem("label-values", f"the labels cannot be read: {text}")


def _read_labels(file: Any) -> Array:
    """A file of labels, whole: integers, a vector or a matrix."""
    if hasattr(file, "shape") or isinstance(file, list):
        labels = np.asarray(file)
    else:
        with open(file, mmap=False, problems="ignore") as array:
            labels = np.asarray(array[...]) if array.ndim else np.asarray(array[()]).reshape(1)
    if labels.ndim not in (1, 2) or labels.dtype.kind not in "iu" or labels.shape[-1:] == (0,):
        raise UnsupportedError(f"labels are integers, not {labels.dtype} of shape {labels.shape}")
    return labels


def _classes_of(labels: Array) -> Array:
    return (labels if labels.ndim == 1 else labels[:, 0]).astype(np.int64)


def _in_memory(array: Any) -> Opened:
    """An array of the caller, as if it were a file."""
    if isinstance(array, Items):
        items = array
    elif isinstance(array, IdxArray) and array.ndim:
        items = Items([array])
    else:
        values = np.asarray(array)
        items = Items([values if values.ndim else values.reshape(1)])
    header = Header.of(items.dtype.name, items.shape)
    return Opened("memory", items, header, header.encode(), nbytes=header.file_nbytes)


def _open_file(file: Any, place: Place) -> Opened:
    """A file, as much of it as can be shown; what is wrong with it is a fact among others."""
    opened = Opened(place.name)
    try:
        source = open_source(file, mmap=False)
    except FormatError as error:
        opened.problems += unopened(place.name, error).problems
        return opened
    try:
        opened.codecs = source.codecs
        opened.head = header_prefix(source)
        opened.nbytes = outer_nbytes(file, source)
        opened.header, opened.problems = make_out(source, source.size)
        plain = isinstance(source, LocalFile) and examine(opened.head, source.size)[0] is not None
    finally:
        source.close()
    try:
        array = _open_array(file)
    except (IdxError, OSError, MemoryError) as error:
        if not any(problem.level == "error" for problem in opened.problems):
            named = error if isinstance(error, IdxError) else FormatError(str(error))
            opened.problems += unopened(place.name, named).problems
        return opened
    if no_array_error(array.header, array.name):
        array.close()
        return opened
    inner = array._source
    if plain and isinstance(inner, LocalFile) and array.header.dialect == "idx":
        opened.raw = inner
    if not array.ndim:
        with array:
            opened.items = Items([np.asarray(array[()]).reshape(1)])
        opened.raw = None
    else:
        opened.items = Items([array])
    return opened


def _open_array(file: Any) -> IdxArray:
    """A file, read by position: it may be cut by others meanwhile. Of a cut one, what is whole."""
    try:
        array = open(file, mmap=False, problems="ignore")
        if array.codecs and array.ndim and len(array):
            array[:1]  # inflated now: only then it is known whether the stream is whole
        return array
    except FormatError:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", IdxWarning)
            return open_whole_items(file)


def _sample(opened: Opened) -> Array:
    """Items from all over the file; of one that is not at hand, the first."""
    items = opened.items
    assert items is not None
    count = max(1, min(len(items), SAMPLE, (1 << 23) // max(1, items.item_nbytes)))
    far = opened.raw is None and not opened.codecs
    chosen = np.arange(min(count, 16)) if far else np.linspace(0, len(items) - 1, count).astype(int)
    return items.take(chosen)
