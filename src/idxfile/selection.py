"""Which items a NumPy key touches, and what NumPy still has to do with them.

An IDX file is items one after another, so dimension 0 alone decides what must be read. A key is
split into those items and the key that, applied to the block of just them, gives what the whole
key gives on the whole array. NumPy does that second part, so that its rules hold to the letter.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = ["Selection", "select", "spans"]

Array = np.ndarray[Any, np.dtype[Any]]
Items = range | Array
"""Ascending item numbers without repetition."""


@dataclass(frozen=True, slots=True)
class Selection:
    """The items a key touches, and the key for the block that holds just them."""

    items: Items
    key: tuple[Any, ...]
    """The key to apply to the block `(len(items), *item_shape)`."""
    axis: int
    """Where in `key` dimension 0 is picked."""

    def parts(
        self, values: Array, item_shape: tuple[int, ...], step: int
    ) -> Iterator[tuple[Selection, Array]]:
        """Cut an assignment of `values` into assignments to at most `step` items each.

        A slice of items is cut; an index that is an array is as large as its own memory already.

        Raises:
            ValueError: for values that do not fit, before anything is given out.
        """
        picked = self.key[self.axis]
        count = len(self.items)
        if count <= step or not isinstance(picked, slice):
            yield self, values
            return
        one, two = (_result_shape(self.key, (n, *item_shape)) for n in (1, 2))
        axis = next(n for n, length in enumerate(one) if two[n] != length)
        shape = (*one[:axis], count, *one[axis + 1 :])
        while values.ndim > len(shape) and values.shape[0] == 1:  # as NumPy does
            values = values[0]
        spread = np.broadcast_to(values, shape)
        for low in range(0, count, step):
            high = min(low + step, count)
            inside = slice(low, high) if picked.step is None else slice(count - high, count - low)
            part = spread[(*(slice(None),) * axis, inside)]
            yield Selection(self.items[low:high], self.key, self.axis), part


def _result_shape(key: tuple[Any, ...], shape: tuple[int, ...]) -> tuple[int, ...]:
    """The shape of `array[key]` for an array of this shape, as NumPy finds it."""
    result = np.broadcast_to(np.zeros((), np.uint8), shape)[key]
    return tuple(result.shape)


def select(key: Any, shape: tuple[int, ...]) -> Selection:
    """Split a NumPy key for an array of this shape (at least one dimension).

    Raises:
        IndexError: as NumPy raises it, for what concerns dimension 0; the rest is judged when
            the key meets the block.
    """
    parts = [_plain(part) for part in (key if isinstance(key, tuple) else (key,))]
    axis = _axis_of_dimension_0(parts, len(shape))
    picked = parts[axis]
    items: Items
    if isinstance(picked, slice):
        order = range(shape[0])[picked]
        items = order if order.step > 0 else order[::-1]
        local: list[Any] = [slice(None) if order.step > 0 else slice(None, None, -1)]
    elif not isinstance(picked, np.ndarray):
        number = in_bounds(np.asarray(picked), shape[0]).item()
        items, local = range(number, number + 1), [0]
    else:
        numbers, *others = _mask_numbers(picked, shape) if picked.dtype == bool else (picked,)
        items, inverse = np.unique(in_bounds(numbers, shape[0]), return_inverse=True)
        local = [inverse.reshape(numbers.shape), *others]
    return Selection(items, (*parts[:axis], *local, *parts[axis + 1 :]), axis)


def _plain(part: Any) -> Any:
    """A part of a key as an int, a slice, None, Ellipsis, a boolean, or an array."""
    if part is None or part is Ellipsis or isinstance(part, (slice, bool, np.bool_)):
        return part
    if not isinstance(part, (list, tuple, np.ndarray)) and not hasattr(part, "__array__"):
        try:
            return operator.index(part)
        except TypeError:
            pass
    array = np.asarray(part)
    if array.size == 0 and not isinstance(part, np.ndarray):
        array = array.astype(np.intp)
    if array.dtype.kind not in "biu":
        raise IndexError(
            "only integers, slices (`:`), ellipsis (`...`), None, and integer or boolean arrays "
            f"are valid indices, not {array.dtype}"
        )
    if array.ndim == 0:
        return bool(array) if array.dtype == bool else int(array)
    return array


def _dimensions_of(part: Any) -> int:
    """How many dimensions a part of a key picks from."""
    if part is None or part is Ellipsis or isinstance(part, (bool, np.bool_)):
        return 0
    return part.ndim if isinstance(part, np.ndarray) and part.dtype == bool else 1


def _axis_of_dimension_0(parts: list[Any], ndim: int) -> int:
    """Where dimension 0 is picked; an ellipsis that holds it is split."""
    consumed = sum(map(_dimensions_of, parts))
    if consumed > ndim:
        raise IndexError(
            f"too many indices for array: array is {ndim}-dimensional, but {consumed} were indexed"
        )
    for axis, part in enumerate(parts):
        if part is Ellipsis and consumed < ndim:
            parts[axis : axis + 1] = [slice(None), Ellipsis]
            return axis
        if _dimensions_of(part):
            return axis
    parts.append(slice(None))
    return len(parts) - 1


def _mask_numbers(mask: Array, shape: tuple[int, ...]) -> tuple[Array, ...]:
    """The integer indices that mean the same as a boolean mask of the leading dimensions."""
    for axis, (found, expected) in enumerate(zip(mask.shape, shape, strict=False)):
        if found not in (0, expected):  # NumPy lets a side of 0 pass: such a mask picks nothing
            raise IndexError(
                f"boolean index did not match indexed array along axis {axis}; "
                f"size of axis is {expected} but size of corresponding boolean axis is {found}"
            )
    return mask.nonzero()


def in_bounds(numbers: Array, count: int) -> Array:
    """Item numbers counted from the front.

    Raises:
        IndexError: for one that is not there.
    """
    if numbers.size and numbers.dtype.kind not in "iu":
        raise IndexError(f"item numbers must be integers, not {numbers.dtype}")
    if numbers.dtype == np.intp and numbers.size:
        unsigned = numbers.view(np.uintp)  # in which negative numbers are beyond every count
        if unsigned.item(unsigned.argmax()) < count:
            return numbers
    outside = (numbers < -count) | (numbers >= count)
    if outside.any():
        raise IndexError(
            f"index {numbers[outside].flat[0]} is out of bounds for axis 0 with size {count}"
        )
    numbers = numbers.astype(np.intp)
    return np.where(numbers < 0, numbers + count, numbers)


def spans(items: Items, gap: int, most: int) -> Iterator[tuple[int, int, slice, Any]]:
    """The ranges to read for some items, with small gaps read over.

    Args:
        items: ascending item numbers.
        gap: how many unwanted items in a row are rather read than skipped.
        most: the longest range to read where something in it is unwanted.

    Yields:
        `(start, stop, where, pick)`: items start to stop, of which `pick` selects those that go
        to the places `where` of the result.
    """
    if isinstance(items, range):
        step = items.step if len(items) > 1 else 1
        each = len(items) if step == 1 else max(1, most // step) if step <= gap + 1 else 1
        for low in range(0, len(items), max(1, each)):
            part = items[low : low + each]
            yield part[0], part[-1] + 1, slice(low, low + len(part)), slice(None, None, step)
        return
    low = 0
    breaks = (np.flatnonzero(np.diff(items) > gap + 1) + 1).tolist() if items.size else []
    for high in (*breaks, items.size) if items.size else ():
        while low < high:
            start = int(items[low])
            end = int(np.searchsorted(items[low:high], start + most)) + low
            end = high if items[high - 1] - start == high - 1 - low else max(low + 1, end)
            wanted = items[low:end]
            yield start, int(wanted[-1]) + 1, slice(low, end), wanted - start
            low = end
