"""How columns get the element types that were asked for, or that a format holds."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from ..elements import Array, first_lossy
from ..errors import UnsupportedError
from ..names import natural
from .columns import View
from .row import NUMBERS

__all__: list[str] = []

_MOST_CLASSES = 1 << 16


Finder = Callable[[Any, Sequence[str]], str | None]
"""What finds the smallest of some element types that holds every value of a column."""


def smallest(column: Any, types: Sequence[str]) -> str | None:
    """The smallest of some element types that holds every value of a column, or None.

    Of two types of one size it is that of floats for floats, and the unsigned one for integers.
    """
    return least(column, holders(column, types))


def holders(column: Any, types: Sequence[str]) -> list[str]:
    """Those of some element types that hold every value of a column."""
    left = list(types)
    for block in column.blocks():
        left = [name for name in left if _lossy(block, np.dtype(name)) is None]
        if not left:
            break
    return left


def least(column: Any, types: Sequence[str]) -> str | None:
    """The smallest of some element types for a column, all of whose values each of them holds."""
    kind = column.dtype.kind if not column.shape or len(column) else ""
    kinds = {"f": "fuib", "b": "buif", "": "buif"}.get(kind, "uifb")
    found = (np.dtype(name) for name in types)
    return min((t.itemsize, kinds.index(t.kind), t.name) for t in found)[2] if types else None


def checked_dtype(dtype: Any) -> str:
    """The name of an element type that columns can be cast to.

    Raises:
        ValueError: for anything else.
    """
    try:
        name: str = np.dtype(dtype).name
    except TypeError:
        name = str(dtype)
    if name not in NUMBERS:
        raise ValueError(f"dtype must be auto or one of {', '.join(NUMBERS)}, not {dtype!r}")
    return name


def as_type(column: Any, dtype: Any, types: Sequence[str], finder: Finder = smallest) -> Any:
    """A column with another element type; every value survives, or reading it is an error.

    Args:
        column: the column.
        dtype: the type; "auto" is the smallest of `types` that holds every value, found in a pass.
        types: those that the target holds.
        finder: goes through the column for that.

    Raises:
        UnsupportedError: when none of them holds every value.
    """
    if dtype == "auto":
        found = finder(column, types)
        if found is None:
            raise UnsupportedError(
                f"no element type of the target holds every value of this {column.dtype}",
                found=str(column.dtype),
                expected=list(types),
            )
        dtype = found
    wanted = np.dtype(checked_dtype(dtype))
    if wanted == column.dtype:
        return column

    return View(column, change=partial(_survived, wanted=wanted), dtype=wanted)


def _survived(block: Array, start: int, *, wanted: np.dtype[Any]) -> Array:
    """A block as another type, every value the same; `start` is the number of its first item."""
    lossy = _lossy(block, wanted)
    if lossy is not None:
        index = (start + lossy[0], *lossy[1:]) if lossy else ()
        raise UnsupportedError(
            f"{block[lossy]} at index ({', '.join(map(str, index))}) does not survive as {wanted}",
            found=block[lossy].item(),
            expected=wanted.name,
            hint='dtype="auto" takes the smallest type that holds every value; or give a scale',
        )
    with np.errstate(all="ignore"):
        return block.astype(wanted)


def _lossy(block: Array, dtype: np.dtype[Any]) -> tuple[int, ...] | None:
    """The index of the first value that a type does not hold, or None."""
    if dtype.kind != "b":
        return first_lossy(block, dtype)
    bad = np.argwhere((block != 0) & (block != 1))
    return tuple(map(int, bad[0])) if len(bad) else None


def scaled(column: Any, dtype: Any, scale: tuple[float, float]) -> View:
    """Values between two bounds spread over the whole range of an integer type.

    Args:
        column: the column.
        dtype: the integer type; None is uint8.
        scale: the values that become the least and the greatest of the type.

    Raises:
        ValueError: for another type, or bounds that are none.
    """
    name = "uint8" if dtype is None else checked_dtype(dtype) if dtype != "auto" else "auto"
    if not re.match("u?int", name):
        raise ValueError(f"scale goes with an integer dtype, not {name}")
    low, high = scale
    if not (low < high and np.isfinite([low, high]).all()):
        raise ValueError(f"scale is a lower and a higher value, not {low:g}:{high:g}")
    change = partial(_spread, scale=(low, high), dtype=np.dtype(name))
    return View(column, change=change, dtype=name)


def _spread(block: Array, _: int, *, scale: tuple[float, float], dtype: np.dtype[Any]) -> Array:
    """A block whose values between two bounds are spread over a whole integer type."""
    low, high = scale
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
    limits = np.iinfo(dtype)
    span = float(limits.max) - float(limits.min)
    return np.rint((values - low) / (high - low) * span + limits.min).astype(dtype)


def held(column: Any, types: Sequence[str], title: str) -> None:
    """Refuse a column whose element type a format lacks.

    Raises:
        UnsupportedError: it names the nearest type that would hold the values.
    """
    if column.dtype.name in types:
        return
    nearest = smallest(column, types) if column.dtype.name in NUMBERS else None
    others = f"it holds {', '.join(types)}"
    if nearest:
        hint = f'{nearest} would hold every value: dtype="{nearest}", or "auto"'
    elif column.dtype.kind == "f" and any("int" in name for name in types):
        hint = f"{others}; --scale LOW:HIGH (scale=(low, high)) says how floats become integers"
    else:
        hint = others
    raise UnsupportedError(
        f"{title} cannot hold {column.dtype}",
        found=str(column.dtype),
        expected=list(types),
        hint=hint,
    )


def is_text(column: Any) -> bool:
    """Whether a column holds texts: the names of classes, perhaps."""
    return column.dtype.kind in "UT"


def numbered(
    columns: Mapping[str, Any], classes: Sequence[str | None] | None
) -> tuple[dict[str, View], tuple[str, ...]]:
    """Class names as numbers, and the names by number.

    Args:
        columns: name → texts; the same text is the same class in all of them.
        classes: the names by number, where they are known; else they are sorted, numbers in a
            name by their value.
    """
    found: set[str] = set()
    for column in columns.values():
        for block in column.blocks():
            found.update(np.unique(block).tolist())
            if len(found) > _MOST_CLASSES:
                raise UnsupportedError(f"over {_MOST_CLASSES:,} different texts are no classes")
    names = tuple(str(name) for name in classes or ())
    if not found <= set(names):
        names = tuple(sorted(found, key=natural))
    numbers = {name: number for number, name in enumerate(names)}
    dtype = np.dtype("uint8" if len(names) <= 256 else "int32")
    change = partial(_looked_up, numbers=numbers, dtype=dtype)
    return {n: View(column, change=change, dtype=dtype) for n, column in columns.items()}, names


def _looked_up(block: Array, _: int, *, numbers: Mapping[str, int], dtype: np.dtype[Any]) -> Array:
    """A block of class names as numbers."""
    return np.array([numbers[name] for name in block.tolist()], dtype).reshape(block.shape)
