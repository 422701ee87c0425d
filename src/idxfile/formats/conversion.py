"""The pump between formats: `convert`."""

from __future__ import annotations

import contextlib
import os
from collections import defaultdict
from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from ..codecs import codec_of_name
from ..errors import UnsupportedError
from ..source.places import from_anywhere
from .blocks import nbytes
from .columns import Columns, View
from .fitting import choose, settle
from .opening import function_of, named_errors, open_columns, open_labels
from .recognition import format_of_source, format_of_target
from .results import Kind, Overwrite, check_target, result
from .roles import ALL
from .row import Format
from .sharding import cut, write_shards
from .stored import stored_of
from .table import format_named

__all__ = ["Conversion", "convert"]

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Conversion:
    """What `convert` did."""

    source: str
    target: str
    source_format: str
    target_format: str
    columns: dict[str, tuple[str, tuple[int, ...]]]
    """Name → dtype and shape, as written."""
    classes: tuple[str | None, ...] | None = None
    """The names of the classes by label, where they are known."""
    notes: list[str] = field(default_factory=list)
    """What was left out or decided, for people."""

    def as_dict(self) -> dict[str, Any]:
        """The facts as plain values, for JSON."""
        return {
            "source": self.source,
            "target": self.target,
            "source_format": self.source_format,
            "target_format": self.target_format,
            "columns": {n: {"dtype": d, "shape": list(s)} for n, (d, s) in self.columns.items()},
            "classes": None if self.classes is None else list(self.classes),
            "notes": self.notes,
        }


def convert(
    src: str | os.PathLike[str],
    dst: str | os.PathLike[str],
    *,
    source_format: str | None = None,
    target_format: str | None = None,
    items: slice | None = None,
    column: str | None = None,
    labels: str | os.PathLike[str] | None = None,
    split: str | None = None,
    dtype: Any = None,
    scale: tuple[float, float] | None = None,
    point: bool = False,
    source_options: Mapping[str, Any] | None = None,
    target_options: Mapping[str, Any] | None = None,
    overwrite: Overwrite = "files",
    shards: int | None = None,
    executor: Executor | None = None,
    progress: Progress | None = None,
) -> Conversion:
    """Convert a file or a folder from any format to any other, in constant memory.

    The result appears whole under its name or not at all. Values are kept exactly, or refused.

    Args:
        src: a file or a folder; its format is seen by its content.
        dst: what to write; its suffix says the format. A folder (`out/`) is IDX: the files of a
            pair are put into it.
        source_format: a key of FORMATS, where the content does not say it.
        target_format: a key of FORMATS, where the name does not say it.
        items: a slice of the items.
        column: the one column to convert; by default all that the target holds.
        labels: a file with the labels, of any format.
        split: train, test …: the part to read of a source that has several, and what files are
            called after; "all" takes each, under names like `train/images`.
        dtype: the element type of the first column, where every value must survive; or "auto",
            the smallest type of the target that keeps every value, found in a first pass.
        scale: with an integer dtype: the two values of the source that become the least and the
            greatest of that type; what lies between is rounded to the nearest, what lies outside
            is an error.
        point: write no elements but where they lie in the source, which must stay there.
        source_options: options of the format that is read, by name.
        target_options: options of the format that is written, by name.
        overwrite: whether a target that exists is replaced: "files" replaces a file, and no
            folder that holds something; True replaces a folder too.
        shards: write so many files instead of one, `x-00000-of-00042.idx` … for `x.idx`; of IDX
            with a manifest.
        executor: who writes the shards: any `concurrent.futures.Executor` whose workers see both
            places. None: this thread.
        progress: called now and then with the bytes done and the bytes in all.

    Returns:
        A `Conversion` that says what was written.

    Raises:
        UnsupportedError: for what the target cannot hold without loss.
        FormatError: for a source that is not right.
        PairError: for columns that do not belong together.
        FileExistsError: for a target that exists, and must not be replaced.
        MissingExtraError: when a format needs a package that is not installed.

    Example:
        >>> import idxfile, numpy as np, os, tempfile
        >>> folder = tempfile.mkdtemp()
        >>> np.save(os.path.join(folder, "a.npy"), np.array([[1, 2], [3, 4]], "uint8"))
        >>> done = idxfile.convert(os.path.join(folder, "a.npy"), os.path.join(folder, "a.idx"))
        >>> idxfile.read(os.path.join(folder, "a.idx")).tolist()
        [[1, 2], [3, 4]]
    """
    source, target = os.fsdecode(src), os.fsdecode(dst)
    if shards is None and executor is not None:
        raise ValueError("an executor writes shards: say how many")
    if shards is not None and point:
        raise ValueError("what only points has no shards")
    reader = format_named(source_format) if source_format else format_of_source(source)
    writer = format_named(target_format) if target_format else format_of_target(target, point=point)
    kind = _kind(writer, target)
    check_target(target, kind, overwrite)
    point = point or (writer.points and not writer.writes)
    write = function_of(writer, "point" if point else "write", target_options or {})
    meter = _Meter(progress)
    with contextlib.ExitStack() as stack:
        names = stack.enter_context(named_errors(source, target))
        columns = open_columns(stack, names, source, reader, source_options or {}, split, dtype)
        if labels is not None:
            columns.arrays["labels"] = open_labels(stack, names, os.fsdecode(labels))
        counts = {name: array.shape[0] for name, array in columns.arrays.items() if array.shape}
        columns = Columns(
            {name: meter.watched(array, items) for name, array in columns.arrays.items()},
            columns.classes,
            columns.split if split == ALL else split or columns.split,
            notes=columns.notes,
        )
        columns = choose(columns, writer, kind, column)
        meter.total = sum(map(nbytes, columns.arrays.values()))
        meter.total += nbytes(columns.first) if dtype == "auto" else 0
        columns = settle(columns, writer, dtype=dtype, scale=scale)
        if point:
            _check_stored(columns, target)
        if shards is None:
            with result(target, kind, overwrite) as place:
                names[place] = target
                write(place, columns)
        else:
            first = columns.first.dtype.name if dtype == "auto" else dtype
            splits = _splits(counts, target, kind) if split == ALL else {columns.split: counts}
            for part, there in splits.items():
                one = partial(
                    convert,
                    from_anywhere(source),
                    source_format=reader.name,
                    target_format=writer.name,
                    column=column,
                    labels=None if labels is None else from_anywhere(os.fsdecode(labels)),
                    split=part,
                    dtype=first,
                    scale=scale,
                    source_options=source_options,
                    target_options=target_options,
                )
                parts = cut(items, min(there.values(), default=0), shards)
                write_shards(one, parts, target, kind, overwrite, executor)
    facts = {name: (array.dtype.name, array.shape) for name, array in columns.arrays.items()}
    return Conversion(
        source, target, reader.name, writer.name, facts, columns.classes, columns.notes
    )


def _kind(writer: Format, target: str) -> Kind:
    """What the target is to be: a file, a folder, or files into a folder.

    Raises:
        UnsupportedError: for a name that promises a compression that the format does not have.
    """
    if writer.folder:
        return "folder"
    if writer.name == "idx" and (target.endswith("/") or os.path.isdir(target)):
        return "files"
    codec = codec_of_name(target)
    if codec and not writer.packs:
        raise UnsupportedError(
            f"{writer.title} is not compressed with {codec.name} here",
            file=target,
            hint="leave the suffix away",
        )
    return "file"


def _splits(counts: Mapping[str, int], target: str, kind: Kind) -> dict[str | None, dict[str, int]]:
    """The columns of each split, with their counts: `train/images` is one of train.

    Raises:
        UnsupportedError: for a target that is one file, of which a shard would hold them all.
    """
    if kind != "files":
        raise UnsupportedError(
            "the splits are not equally long, and make no shards of one file",
            file=target,
            hint="convert one split after the other, into a file for each",
        )
    found: dict[str | None, dict[str, int]] = defaultdict(dict)
    for name, count in counts.items():
        found[name.rpartition("/")[0] or None][name] = count
    return found


class _Meter:
    """How far the work is, in bytes of the columns that go by."""

    def __init__(self, progress: Progress | None) -> None:
        self.total = 0
        self._done = 0
        self._progress = progress

    def watched(self, column: Any, items: slice | None) -> View:
        """Some items of a column, telling of every block that goes by."""
        return View(column, items=items, tell=self._tell if self._progress else None)

    def _tell(self, nbytes: int) -> None:
        self._done += nbytes
        if self._progress is not None:
            self.total = max(self.total, self._done)
            self._progress(self._done, self.total)


def _same_file(one: str, other: str) -> bool:
    return os.path.exists(other) and os.path.samefile(one, other)


def _check_stored(columns: Columns, target: str) -> None:
    """Refuse to point to elements that do not lie one after another in one plain file that stays.

    Raises:
        UnsupportedError: for columns that are compressed, changed, or not in order; and where the
            target would take the place of the elements.
    """
    for name, array in columns.arrays.items():
        stored = stored_of(array)
        if stored is not None and _same_file(stored.source.name, target):
            raise UnsupportedError(
                "the target is the file that would be pointed to", file=target, hint="name another"
            )
        if stored is None:
            raise UnsupportedError(
                f"{name}: the elements do not lie in the file as they are meant",
                hint="only uncompressed elements can be pointed to, unchanged and in their order",
            )
