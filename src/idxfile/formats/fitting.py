"""What of a source a target gets: the columns it has room for, as element types that it holds."""

from __future__ import annotations

from typing import Any

from ..errors import UnsupportedError
from ..report.facts import counted
from .casts import Finder, as_type, held, is_text, numbered, scaled, smallest
from .columns import Columns
from .results import Kind
from .roles import SINGULAR, is_label, role_of
from .row import Format

__all__: list[str] = []


def choose(columns: Columns, writer: Format, kind: Kind, column: str | None) -> Columns:
    """The columns that will be written; what is left out is told.

    Raises:
        UnsupportedError: for a column that is not there, or columns that are no pair where a pair
            is written.
    """
    arrays, notes = dict(columns.arrays), list(columns.notes)
    if column is not None:
        if column not in arrays:
            raise UnsupportedError(
                f"there is no column {column!r}", hint=f"there are {', '.join(arrays)}"
            )
        arrays = {column: arrays[column]}
    elif texts := [n for n, a in arrays.items() if is_text(a) and not is_label(n)]:
        notes.append(f"left out {', '.join(texts)}: text")
        arrays = {name: array for name, array in arrays.items() if name not in texts}
    if not arrays:
        raise UnsupportedError("there are no columns of numbers")
    if len(arrays) > 1 and not (writer.several and (writer.name, kind) != ("idx", "file")):
        kept, *others = arrays
        notes.append(f"left out {', '.join(others)}: {_one(writer)} (column= chooses another)")
        arrays = {kept: arrays[kept]}
    if kind == "files":
        arrays = _pairs(arrays)
    _check_together(arrays, writer, kind)
    return Columns(arrays, columns.classes, columns.split, notes=notes)


def _check_together(arrays: dict[str, Any], writer: Format, kind: Kind) -> None:
    """Refuse columns that make no rows, images whose labels are others', and splits in one table.

    Raises:
        PairError: for columns of unequal length.
        UnsupportedError: for several splits where one has room.
    """
    splits = {name.rpartition("/")[0] for name in arrays}
    if len(splits) > 1 and not (writer.separate or kind == "files"):
        raise UnsupportedError(
            f"{writer.title} holds one split, not {', '.join(sorted(splits))}",
            hint="choose it with --split (split=)",
        )
    for split in splits:
        mine = {name: array for name, array in arrays.items() if name.rpartition("/")[0] == split}
        roles = {name: array for name, array in mine.items() if role_of(name) in SINGULAR}
        Columns(roles if writer.separate else mine).check_lengths()


def _one(writer: Format) -> str:
    if writer.name == "idx":
        return "an IDX file holds one array, a folder (with / at its end) a pair"
    return f"{writer.title} holds one array"


def _pairs(arrays: dict[str, Any]) -> dict[str, Any]:
    """The columns as pairs of IDX files, one for each split; or as a single file of either."""
    if len(arrays) == 1:
        ((name, array),) = arrays.items()
        return {"labels" if is_label(name) else "images": array}
    if not {role_of(name) for name in arrays} <= {"images", "labels"}:
        raise UnsupportedError(
            f"columns {', '.join(arrays)} are no pair of images and labels",
            hint="choose one with --column (column=)",
        )
    return arrays


def settle(
    columns: Columns,
    writer: Format,
    *,
    dtype: Any = None,
    scale: tuple[float, float] | None = None,
    finder: Finder = smallest,
) -> Columns:
    """The columns with the element types that were asked for, or that the target holds.

    Labels alone change without being asked: names become numbers, and numbers the smallest type
    that holds them where the target lacks their own. That loses nothing.

    Args:
        columns: what is written.
        writer: the format of the target.
        dtype: of the first column, and of what goes with it under other splits.
        scale: the values that become the least and the greatest of that type.
        finder: goes through a column for the smallest type.

    Raises:
        UnsupportedError: for what the target cannot hold.
    """
    arrays, classes, notes = dict(columns.arrays), columns.classes, list(columns.notes)
    texts = {name: array for name, array in arrays.items() if is_text(array)}
    if texts:
        numbers, classes = numbered(texts, classes)
        arrays.update(numbers)
        notes.append(f"{', '.join(texts)} are numbers now: {_listed(classes)}")
    first = role_of(next(iter(arrays)))
    for name, array in arrays.items():
        paired = is_label(name) and role_of(name) != first
        types = (writer.label_types if paired else ()) or writer.types
        if role_of(name) == first and scale is not None:
            array = scaled(array, dtype, scale)
        elif role_of(name) == first and dtype is not None:
            array = as_type(array, dtype, types, finder)
        elif is_label(name) and array.dtype.name not in types:
            array = as_type(array, "auto", types, finder)
        held(array, types, writer.title)
        _check_shape(name, array.shape, writer, fewest=1 if paired else writer.ndim[0])
        arrays[name] = array
    if classes and not writer.classes:
        notes.append(f"the names of the classes are left out: {_listed(classes)}")
    return Columns(arrays, classes, columns.split, notes=notes)


def _check_shape(name: str, shape: tuple[int, ...], writer: Format, *, fewest: int) -> None:
    most = writer.ndim[1]
    if not fewest <= len(shape) <= most:
        raise UnsupportedError(
            f"{name}: {counted(len(shape), 'dimension')}; {writer.title} holds {fewest} to {most}",
            found=len(shape),
            expected=[fewest, most],
        )
    if 0 in shape and (writer.empty == "no" or (writer.empty == "no items" and 0 in shape[1:])):
        raise UnsupportedError(
            f"{name}: {writer.title} holds no array of shape {' × '.join(map(str, shape))}",
            found=list(shape),
        )


def _listed(classes: Any) -> str:
    names = [f"{number} {name}" for number, name in enumerate(classes) if name is not None]
    return ", ".join([*names[:10], *(["…"] if len(names) > 10 else [])])
