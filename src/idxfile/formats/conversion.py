"""The pump between formats: `convert`."""

from __future__ import annotations

import contextlib
import os
from collections import defaultdict
from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from ..codecs import codec_of_name
from ..errors import UnsupportedError
from ..source.places import from_anywhere
from .blocks import nbytes
from .columns import Columns, Elsewhere, View
from .filling import fill
from .fitting import choose, settle
from .opening import Source, named_errors
from .recognition import format_of_source, format_of_target
from .results import Kind, Overwrite, Target
from .roles import ALL
from .row import Format
from .scanning import finder_of
from .sharding import shards_of, write_shards
from .stored import stored_of
from .table import format_named

__all__ = ["Conversion", "convert"]

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Conversion:
    """What `convert` did."""

    source: str
    target: str
    """What was written, as it is opened: of shards their pattern; of a pair the folder."""
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
    shard_nbytes: int | None = None,
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
        shard_nbytes: likewise, as many as keep a file at about so many bytes before it is
            compressed; of a pair, the file of images.
        executor: who does the work: any `concurrent.futures.Executor` whose workers see both
            places. One raw file of IDX or .npy is written by all of them at once, a shard by one.
            None: this thread.
        progress: called now and then with the bytes done and the bytes in all.

    Returns:
        A `Conversion` that says what was written.

    Raises:
        UnsupportedError: for what the target cannot hold without loss, and for one file of a
            format that many cannot write at once.
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
    many = shards is not None or shard_nbytes is not None
    if point and (many or executor is not None):
        raise ValueError(
            "what only points is one small file: it has no shards, and needs no engine"
        )
    reader = format_named(source_format) if source_format else format_of_source(source)
    writer = format_named(target_format) if target_format else format_of_target(target, point=point)
    point = point or (writer.points and not writer.writes)
    verb = "point" if point else "write" if executor is None or many else "lay"
    kind = _kind(writer, target)
    goal = Target(target, writer, kind, overwrite, dict(target_options or {}), verb)
    goal.check()
    meter = _Meter(progress)
    with contextlib.ExitStack() as stack:
        names = stack.enter_context(named_errors(source, target))
        sources = {"": Source(source, reader, dict(source_options or {}), split, dtype)}
        if labels is not None:
            place = os.fsdecode(labels)
            sources["labels"] = Source(place, format_of_source(place))
        columns = _opened(stack, names, sources, partial(meter.watched, items), executor)
        if split != ALL:
            columns.split = split or columns.split
        columns = choose(columns, writer, kind, column)
        meter.total = sum(map(nbytes, columns.arrays.values()))
        meter.total += nbytes(columns.first) if dtype == "auto" else 0
        columns = settle(
            columns, writer, dtype=dtype, scale=scale, finder=finder_of(executor, meter.tell)
        )
        if point:
            _check_stored(columns, target)
        if many:
            if not all(array.shape for array in columns.arrays.values()):
                raise UnsupportedError("a scalar has no items, and makes no shards")
            sets = _splits(columns, goal) if split == ALL else [columns]
            for one in sets:
                number = shards_of(one, goal, shards, shard_nbytes)
                target = write_shards(one, goal, number, executor, meter.tell)
        elif verb == "lay" and all(array.shape for array in columns.arrays.values()):
            fill(columns, goal, executor, meter.tell, names)
        else:
            replace(goal, verb="point" if point else "write").write(columns, names)
    facts = {name: (array.dtype.name, array.shape) for name, array in columns.arrays.items()}
    return Conversion(
        source, target, reader.name, writer.name, facts, columns.classes, columns.notes
    )


def _opened(
    stack: contextlib.ExitStack,
    names: dict[str, str],
    sources: Mapping[str, Source],
    watched: Callable[[Any, Elsewhere | None], View],
    executor: Executor | None,
) -> Columns:
    """The columns of a source, and in place of its labels those of another, until the stack ends.

    Args:
        stack: what closes them.
        names: what errors call the paths that are read.
        sources: the source under "", and the other one under "labels".
        watched: makes a view of a column, given where it is opened anew.
        executor: who does the work; None opens nothing anew.
    """
    found: Columns | None = None
    for role, source in sources.items():
        copies: dict[str, str] = {}
        columns = stack.enter_context(source.opened(copies))
        names.update(copies)
        if executor is not None:
            names[from_anywhere(source.path)] = source.path
        arrays = {role: columns.labels} if role else columns.arrays
        views = {}
        for name, array in arrays.items():
            origin = source.column("" if role else name, array, alone=bool(copies))
            views[name] = watched(array, None if executor is None else origin)
        if found is None:
            found = replace(columns, arrays=views)
        else:
            found.arrays |= views
    assert found is not None
    return found


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


def _splits(columns: Columns, target: Target) -> list[Columns]:
    """The columns of each split: `train/images` is one of train.

    Raises:
        UnsupportedError: for a target that is one file, of which a shard would hold them all.
    """
    if target.kind != "files":
        raise UnsupportedError(
            "the splits are not equally long, and make no shards of one file",
            file=target.path,
            hint="convert one split after the other, into a file for each",
        )
    found: dict[str, dict[str, Any]] = defaultdict(dict)
    for name, array in columns.arrays.items():
        found[name.rpartition("/")[0]][name] = array
    return [replace(columns, arrays=arrays) for arrays in found.values()]


class _Meter:
    """How far the work is, in bytes of the columns that go by."""

    def __init__(self, progress: Progress | None) -> None:
        self.total = 0
        self._done = 0
        self._progress = progress

    def watched(self, items: slice | None, column: Any, origin: Elsewhere | None) -> View:
        """Some items of a column, telling of every block that goes by."""
        tell = self.tell if self._progress else None
        return View(column, items=items, tell=tell, origin=origin)

    def tell(self, nbytes: int) -> None:
        """So many bytes more are done."""
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
