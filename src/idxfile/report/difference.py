"""How two files differ: `diff`."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import numpy as np

from ..array import DEFAULT_BLOCK_NBYTES, IdxArray, open
from ..header import Header

__all__ = ["Difference", "diff"]

MOST_ITEMS = 10
SPOOL_NBYTES = 1 << 26
"""A compressed file of more than 64 MiB is inflated into a temporary file."""


@dataclass
class Difference:
    """Where two files differ, by value."""

    a: str
    b: str
    header_a: Header
    header_b: Header
    compared: bool
    """Whether values were compared: not when the items have different shapes."""
    elements: int = 0
    """Elements that differ, among the items that both files have."""
    items: int = 0
    """Items that differ, among those that both have."""
    first: tuple[int, ...] | None = None
    """The index of the first element that differs."""
    first_values: tuple[Any, Any] | None = None
    """What stands there, in a and in b."""
    largest: float | int = 0
    """The largest absolute difference between two numbers."""
    differing_items: list[tuple[int, int]] = field(default_factory=list)
    """The first items that differ, with the number of elements that do."""

    @property
    def same_type(self) -> bool:
        """Whether both have one element type."""
        return self.header_a.element == self.header_b.element

    @property
    def same_shape(self) -> bool:
        """Whether both have one shape."""
        return self.header_a.shape == self.header_b.shape

    @property
    def equal(self) -> bool:
        """Whether both have one shape and the same values, whatever the type and the codec."""
        return self.same_shape and self.elements == 0

    def as_dict(self) -> dict[str, Any]:
        """The facts as plain values, for JSON."""
        return {
            "a": self.a,
            "b": self.b,
            "equal": self.equal,
            "same_type": self.same_type,
            "same_shape": self.same_shape,
            "type_a": self.header_a.element.name,
            "type_b": self.header_b.element.name,
            "shape_a": list(self.header_a.shape),
            "shape_b": list(self.header_b.shape),
            "compared": self.compared,
            "elements": self.elements,
            "items": self.items,
            "first": None if self.first is None else list(self.first),
            "first_values": None if self.first_values is None else list(self.first_values),
            "largest": self.largest,
            "differing_items": [list(pair) for pair in self.differing_items],
        }


def diff(a: Any, b: Any) -> Difference:
    """Compare two files by value, in constant memory.

    Different element types and codecs compare by value; two NaN are equal. Where only the number
    of items differs, the items that both have are compared.

    Args:
        a: anything that `open` takes.
        b: likewise.

    Returns:
        A `Difference`; `difference.equal` is the answer.

    Raises:
        FormatError: when one of them is not a right IDX file.
        OSError: as the system gives it.

    Example:
        >>> import idxfile, numpy as np
        >>> x = np.array([[1, 2], [3, 4]], "uint8")
        >>> d = idxfile.diff(idxfile.encode(x), idxfile.encode(x * 2, dtype="int16", cast="safe"))
        >>> d.equal, d.elements, d.items, d.first, d.largest
        (False, 4, 2, (0, 0), 4)
    """
    options: dict[str, Any] = {"mmap": False, "spool_nbytes": SPOOL_NBYTES}
    with open(a, **options) as x, open(b, **options) as y:
        same_items = x.ndim == y.ndim and x.header.item_shape == y.header.item_shape
        result = Difference(x.name, y.name, x.header, y.header, same_items)
        if same_items:
            _compare(x, y, result)
        return result


def _compare(x: IdxArray, y: IdxArray, result: Difference) -> None:
    wider = max(x.header.item_nbytes, y.header.item_nbytes, 1)
    step = max(1, DEFAULT_BLOCK_NBYTES // wider)
    start = 0
    blocks = (
        array.blocks(block_nbytes=step * max(1, array.header.item_nbytes)) for array in (x, y)
    )
    for p, q in zip(*blocks, strict=False):
        if x.ndim:
            count = min(len(p), len(q))
            p, q = p[:count], q[:count]
        else:
            p, q = p.reshape(1), q.reshape(1)
        _compare_blocks(p, q, start, result, x.ndim)
        start += len(p)


def _compare_blocks(p: Any, q: Any, start: int, result: Difference, ndim: int) -> None:
    differs = _differs(p, q)
    if not differs.any():
        return
    if result.first is None:
        index = tuple(int(n) for n in np.unravel_index(int(differs.argmax()), differs.shape))
        result.first_values = (p[index].item(), q[index].item())
        result.first = (index[0] + start, *index[1:]) if ndim else ()
    result.elements += int(np.count_nonzero(differs))
    per_item = np.count_nonzero(differs.reshape(len(differs), -1), axis=1)
    where = np.flatnonzero(per_item)
    result.items += where.size
    room = MOST_ITEMS - len(result.differing_items)
    result.differing_items += [
        (start + int(n), int(per_item[n])) for n in islice(where, max(0, room))
    ]
    result.largest = max(result.largest, _largest(p[differs], q[differs]))


def _differs(p: Any, q: Any) -> Any:
    """Which elements differ by value; two NaN do not."""
    differs = p != q
    if p.dtype.kind == q.dtype.kind == "f":
        return differs & ~(np.isnan(p) & np.isnan(q))
    if _wide(p, q) and "f" in (p.dtype.kind, q.dtype.kind):
        # What is equal as float64 is equal only if it comes back as the same integer.
        whole, real = (p, q) if q.dtype.kind == "f" else (q, p)
        over = real >= float(np.iinfo(whole.dtype).max)
        with np.errstate(invalid="ignore"):
            differs |= over | (real.astype(whole.dtype) != whole)
    return differs


def _wide(p: Any, q: Any) -> bool:
    """Whether there are integers of eight bytes, not all of which float64 holds."""
    return any(part.dtype.kind in "iu" and part.dtype.itemsize == 8 for part in (p, q))


def _largest(p: Any, q: Any) -> float | int:
    """The largest absolute difference; exact for integers, and inf where one is not a number."""
    common = np.result_type(p, q)
    if common.kind in "iu":
        p, q = p.astype(common), q.astype(common)
        return int((np.maximum(p, q) - np.minimum(p, q)).view(f"u{common.itemsize}").max())
    if _wide(p, q):
        return max(map(_gap, p.tolist(), q.tolist()))
    with np.errstate(all="ignore"):
        gaps = np.abs(p.astype(np.float64) - q.astype(np.float64))
    return float(np.where(np.isnan(gaps), np.inf, gaps).max())


def _gap(m: float, n: float) -> float:
    """The absolute difference of two numbers of Python, exact for whole ones."""
    if not (math.isfinite(m) and math.isfinite(n)):
        return math.inf
    if m == int(m) and n == int(n):
        return abs(int(m) - int(n))
    return abs(m - n)
