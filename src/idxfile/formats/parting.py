"""Parts of columns: neighbours that are read by whoever gets them, in another process too.

A column that has a method `part(low, high)` gives its own; what it gives pickles, or is None. All
others are opened anew by who reads them, as their views know.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from typing import Any

import numpy as np

from ..array import IdxArray
from ..elements import Array
from ..slabs.planning import SLAB_NBYTES, opened_once
from .blocks import item_nbytes, nbytes
from .columns import Columns, Sliced, View

__all__: list[str] = []

LEAST_NBYTES = 1 << 20
_SLABS = 64
"""So many there are of what is not large: pictures take long, however small they are."""


def part_of(view: View, low: int, high: int) -> View:
    """The items of a view from `low` to `high`, as a view that pickles."""
    items = view.items[low:high]
    inner, origin, start = view.column, view.origin, 0
    if origin is not None and origin.alone:
        column: Any = origin
    elif isinstance(inner, IdxArray) and inner.portable:
        column = _Array(inner, inner.shape, inner.dtype)
    else:
        start, stop = _span(items)
        column = part_of(inner, start, stop) if isinstance(inner, View) else None
        if column is None and hasattr(inner, "part"):
            column = inner.part(start, stop)
        if column is None:
            column, start = origin or inner, 0
    moved = range(items.start - start, items.stop - start, items.step) if items else range(0)
    return View(column, items=moved, change=view.change, dtype=view.dtype, first=view.first + low)


def parts_of(columns: Columns, low: int, high: int) -> Columns:
    """The same items of all columns."""
    arrays = {name: part_of(array, low, high) for name, array in columns.arrays.items()}
    return Columns(arrays, columns.classes, columns.split)


def by_position(column: Any) -> bool:
    """Whether any part of a column is read without those before it, wherever it is sent."""
    if isinstance(column, View):
        if column.items is None or (column.origin is not None and column.origin.alone):
            return False
        inner = column.column
        return by_position(inner) or (isinstance(inner, Sliced) and column.origin is not None)
    if isinstance(column, IdxArray):
        return column.portable and column.random_access
    return hasattr(column, "part") and column.part(0, 0) is not None


def slab_items(view: View) -> int:
    """How many items are dealt with at once by one of many."""
    most = min(SLAB_NBYTES, max(LEAST_NBYTES, nbytes(view) // _SLABS))
    align = _alignment(view)
    return -(-max(1, most // max(1, item_nbytes(view))) // align) * align


def _alignment(column: Any) -> int:
    """At a multiple of how many items a part had best begin: at a chunk of what is kept so."""
    while isinstance(column, View):
        if column.items is None or column.items.step != 1:
            return 1
        column = column.column
    return getattr(column, "align", 1)


def watched_nbytes(view: View) -> int:
    """The bytes of the items that are read for a view, as its source has them."""
    while isinstance(view.column, View):
        view = view.column
    return nbytes(view)


def _span(items: range) -> tuple[int, int]:
    """The bounds that items of a range lie in."""
    return (min(items[0], items[-1]), max(items[0], items[-1]) + 1) if items else (0, 0)


class _Array:
    """An array that is sent, and opened once for many parts by who gets it.

    It is opened when it is read, where an error is one of the part: one that came while a call is
    unpickled would end the worker.
    """

    def __init__(
        self, array: IdxArray | bytes, shape: tuple[int, ...], dtype: np.dtype[Any]
    ) -> None:
        self._array = array
        self.shape, self.dtype = shape, dtype

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, key: slice) -> Any:
        return self._opened()[key]

    def blocks(self, **options: Any) -> Iterator[Array]:
        """As those of the array."""
        return self._opened().blocks(**options)

    def _opened(self) -> IdxArray:
        return opened_once(self._array) if isinstance(self._array, bytes) else self._array

    def __reduce__(self) -> tuple[Any, ...]:
        sent = self._array if isinstance(self._array, bytes) else pickle.dumps(self._array)
        return _Array, (sent, self.shape, self.dtype)
