"""The pump between formats: `convert`."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..elements import Array, fitted, idx_type_name, range_type
from ..errors import UnsupportedError
from ..sink import atomic_file, atomic_folder
from .columns import Columns, View
from .table import Format, format_named, format_of_source, format_of_target

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
    dtype: Any = None,
    scale: tuple[float, float] | None = None,
    source_options: Mapping[str, Any] | None = None,
    target_options: Mapping[str, Any] | None = None,
    overwrite: bool = True,
    progress: Progress | None = None,
) -> Conversion:
    """Convert a file or a folder from any format to any other, in constant memory.

    The result appears whole under its name or not at all. Values are kept exactly, or refused.

    Args:
        src: a file or a folder; its format is seen by its content.
        dst: what to write; its suffix says the format. A folder (`out/`) is IDX.
        source_format: a key of FORMATS, where the content does not say it.
        target_format: a key of FORMATS, where the name does not say it.
        items: a slice of the items.
        column: the one column to convert; by default all that the target holds.
        dtype: the element type of the first column: a name, where every value must survive; or
            "auto", the smallest IDX type that keeps every value, found in a first pass.
        scale: with an integer dtype: the two values of the source that become the least and the
            greatest of that type; what lies between is rounded to the nearest, what lies outside
            is an error.
        source_options: options of the format that is read, by name.
        target_options: options of the format that is written, by name.
        overwrite: whether a target that exists is replaced.
        progress: called now and then with the bytes done and the bytes in all.

    Returns:
        A `Conversion` that says what was written.

    Raises:
        UnsupportedError: for what the target cannot hold without loss.
        FormatError: for a source that is not right.
        PairError: for columns that do not belong together.
        FileExistsError: for a target that exists, with `overwrite=False`.
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
    reader = format_named(source_format) if source_format else format_of_source(source)
    writer = format_named(target_format) if target_format else format_of_target(target)
    if not overwrite and os.path.lexists(target) and not _is_empty_folder(target):
        raise FileExistsError(17, "It exists, and would be replaced", target)
    read = _function(reader, "read_columns", source_options)
    write = _function(writer, "write_columns", target_options)
    columns = read(source)
    try:
        arrays = _chosen(columns, column, writer, target)
        arrays = {name: View(array, items=items) for name, array in arrays.items()}
        arrays = _cast(arrays, writer, dtype, scale)
        if progress:
            arrays = _watched(arrays, progress)
        written = Columns(arrays, columns.classes, columns.split, notes=columns.notes)
        folder = writer.folder or (writer.name == "idx" and len(arrays) > 1)
        with (atomic_folder if folder else atomic_file)(target) as path:
            write(path, written)
    finally:
        columns.close()
    facts = {name: (array.dtype.name, array.shape) for name, array in arrays.items()}
    return Conversion(source, target, reader.name, writer.name, facts, columns.notes)


def _is_empty_folder(path: str) -> bool:
    return os.path.isdir(path) and not os.listdir(path)


def _function(row: Format, name: str, options: Mapping[str, Any] | None) -> Callable[..., Any]:
    """A function of a format's module, with its options filled in.

    Raises:
        UnsupportedError: when the format is not read, or not written.
        TypeError: for an option that it does not have.
    """
    if not (row.reads if name == "read_columns" else row.writes):
        verb = "read" if name == "read_columns" else "written"
        raise UnsupportedError(f"{row.title} is not {verb} here")
    function = getattr(row.load(), name)
    known = [
        p.name for p in inspect.signature(function).parameters.values() if p.kind is p.KEYWORD_ONLY
    ]
    for option in options or ():
        if option not in known:
            raise TypeError(
                f"{row.name} has no option {option!r}; it has {', '.join(known) or 'none'}"
            )
    return lambda *args: function(*args, **(options or {}))


def _chosen(columns: Columns, column: str | None, writer: Format, target: str) -> dict[str, Any]:
    """The columns that will be written."""
    if column is not None:
        if column not in columns.arrays:
            known = ", ".join(columns.arrays)
            raise UnsupportedError(f"there is no column {column!r}", hint=f"there are {known}")
        return {column: columns.arrays[column]}
    arrays = columns.arrays
    if len(arrays) > 1 and not writer.several:
        kept, *others = arrays
        columns.notes.append(f"left out {', '.join(others)}: {writer.name} holds one array")
        return {kept: arrays[kept]}
    if len(arrays) > 1 and writer.name == "idx":
        if not {"images", "labels"} <= set(arrays):
            raise UnsupportedError(
                f"columns {', '.join(arrays)} are no pair of images and labels",
                hint="choose one with --column",
            )
        return {name: arrays[name] for name in ("images", "labels")}
    return dict(arrays)


def _cast(
    arrays: dict[str, Any], writer: Format, dtype: Any, scale: tuple[float, float] | None
) -> dict[str, Any]:
    """Give the columns the types that were asked for, or that IDX has.

    Labels become the smallest type that holds them where IDX is written: that loses nothing, and
    nobody's labels come as bytes.
    """
    changed = dict(arrays)
    first = next(iter(arrays))
    if scale is not None:
        changed[first] = _scaled(arrays[first], dtype, scale)
    elif dtype is not None:
        changed[first] = _as_type(arrays[first], dtype)
    labels = arrays.get("labels")
    if writer.name == "idx" and labels is not None and labels.dtype.kind in "biu":
        changed["labels"] = _as_type(labels, "auto")
    return changed


def _as_type(column: Any, dtype: Any) -> Any:
    name = range_type(column.blocks()) if dtype == "auto" else idx_type_name(dtype)
    if name is None:
        raise UnsupportedError(f"no element type of IDX holds every value of this {column.dtype}")
    if name == column.dtype.name:
        return column
    return View(column, change=lambda block: fitted(block, name, "safe"), dtype=name)


def _scaled(column: Any, dtype: Any, scale: tuple[float, float]) -> View:
    """Values between two bounds spread over the whole range of an integer type."""
    name = idx_type_name(dtype or "uint8")
    if not name.startswith(("int", "uint")):
        raise ValueError(f"scale goes with an integer dtype, not {name}")
    low, high = scale
    if not low < high:
        raise ValueError(f"scale is a lower and a higher value, not {low}:{high}")
    limits = np.iinfo(name)

    def change(block: Array) -> Array:
        values = block.astype(np.float64)
        outside = ~((values >= low) & (values <= high))
        if outside.any():
            value = block[outside].flat[0]
            raise UnsupportedError(
                f"{value} lies outside the scale {low:g}:{high:g}",
                found=value.item(),
                expected=[low, high],
                hint="give the range that the values have: `idx stats` shows it",
            )
        span = float(limits.max) - float(limits.min)
        return np.rint((values - low) / (high - low) * span + limits.min).astype(name)

    return View(column, change=change, dtype=name)


def _watched(arrays: dict[str, Any], progress: Progress) -> dict[str, Any]:
    """The same columns, telling of every block that goes by."""
    total = sum(int(np.prod(a.shape, dtype=np.float64)) * a.dtype.itemsize for a in arrays.values())
    done = 0

    def tell(block: Array) -> Array:
        nonlocal done
        done += block.nbytes
        progress(min(done, total), total)
        return block

    return {name: View(array, change=tell) for name, array in arrays.items()}
