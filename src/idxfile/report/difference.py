"""How two files differ: `diff`."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator
from concurrent.futures import Executor, wait
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice, zip_longest
from typing import Any

import numpy as np

from ..array import IdxArray, open
from ..elements import Array, as_bytes, turn
from ..header import Header
from ..problems import settle
from ..slabs.planning import Slab, plan
from ..slabs.running import run
from ..source import InOrder, Source, Spool, open_source
from ..source.threads import threads
from .facts import make_out

__all__ = ["Difference", "diff"]

MOST_ITEMS = 10
BLOCK_SIZE = 1 << 20
"""Elements compared at once."""


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
    last_item: int | None = None
    """The last item that differs."""

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


def diff(a: Any, b: Any, *, executor: Executor | None = None) -> Difference:
    """Compare two files by value, in constant memory.

    Different element types and codecs compare by value; two NaN are equal. Where only the number
    of items differs, the items that both have are compared.

    Args:
        a: anything that `open` takes.
        b: likewise.
        executor: who compares two files of which any item can be read, slab by slab: any
            `concurrent.futures.Executor`. None: this thread.

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
    with contextlib.ExitStack() as stack:
        files = [_opened(file, stack) for file in (a, b)]
        (x, header_x), (y, header_y) = files
        alike = header_x.ndim == header_y.ndim and header_x.item_shape == header_y.item_shape
        result = Difference(x.name, y.name, header_x, header_y, compared=alike)
        if alike and executor is not None and _compare_spread(a, b, result, executor):
            return result
        if alike:
            start = 0
            for p, q in _in_step(*files):
                if p is not None and q is not None:  # the longer one is judged all the same
                    count = min(p.size, q.size)
                    _compare(p[:count], q[:count], start, result)
                    start += count
        return result


def _opened(file: Any, stack: contextlib.ExitStack) -> tuple[Source, Header]:
    source = open_source(file, mmap=False)
    stack.callback(source.close)
    header, problems = make_out(source, source.size)
    settle([problem for problem in problems if problem.level == "error"], "raise", source.name)
    assert header is not None  # settle has raised
    if isinstance(source, Spool):
        source.limit = header.file_nbytes
    return source, header


def _in_step(a: tuple[Source, Header], b: tuple[Source, Header]) -> Iterator[tuple[Any, Any]]:
    """The elements of both, block by block; None for the one that has ended.

    Where both must be inflated, another thread does the second.
    """
    these, those = _elements(*a), _elements(*b)
    hands = threads() if isinstance(a[0], Spool) and isinstance(b[0], Spool) else None
    if hands is None:
        yield from zip_longest(these, those)
        return
    while True:
        coming = hands.submit(next, those, None)
        try:
            block = next(these, None)
        finally:
            wait([coming])  # nothing is closed under it
        pair = block, coming.result()
        if pair[0] is None and pair[1] is None:
            return
        yield pair


def _elements(source: Source, header: Header) -> Iterator[Array]:
    """All elements in order, in constant memory. The file is judged when the last was read."""
    stream = InOrder(source)
    count = stream.readinto(bytearray(header.data_offset))
    for start in range(0, header.size, BLOCK_SIZE):
        block = np.empty(min(BLOCK_SIZE, header.size - start), header.dtype)
        read = stream.readinto(as_bytes(block))
        count += read
        if read != block.nbytes:
            break
        turn(block, header.stored_dtype)
        yield block
    else:
        count += stream.readinto(bytearray(1))
    settle(make_out(source, count)[1], "raise", source.name)


def _compare(p: Array, q: Array, start: int, result: Difference) -> None:
    """Compare elements of which the first has the number `start`."""
    differs = _differs(p, q)
    if not differs.any():
        return
    where = np.flatnonzero(differs)
    if result.first is None:
        at = int(where[0])
        result.first = _index(start + at, result.header_a.shape)
        result.first_values = (p[at].item(), q[at].item())
    result.elements += where.size
    result.largest = max(result.largest, _largest(p[where], q[where]))
    per_item = math.prod(result.header_a.item_shape)
    numbers, counts = np.unique((start + where) // per_item, return_counts=True)
    result.items += numbers.size - int(numbers[0] == result.last_item)
    result.last_item = int(numbers[-1])
    told = result.differing_items
    for number, count in islice(
        zip(numbers.tolist(), counts.tolist(), strict=True), MOST_ITEMS + 1
    ):
        if told and told[-1][0] == number:  # it began in the elements before
            told[-1] = (number, told[-1][1] + count)
        elif len(told) < MOST_ITEMS:
            told.append((number, count))


def _compare_spread(a: Any, b: Any, result: Difference, executor: Executor) -> bool:
    """Compare on an executor, where any item of both can be read; False: it was not done."""
    with open(a, mmap=False) as x, open(b, mmap=False) as y:
        if not (x.ndim and all(z.portable and z.random_access for z in (x, y))):
            return False
        count = min(len(x), len(y))
        work, pairs = partial(_compare_slabs, result), _pairs(x, y, count)
        for part in run(work, pairs, executor=executor, total=len(plan(x))):
            result.elements += part.elements
            result.items += part.items
            result.largest = max(result.largest, part.largest)
            room = MOST_ITEMS - len(result.differing_items)
            result.differing_items += part.differing_items[:room]
            if result.first is None:
                result.first, result.first_values = part.first, part.first_values
    return True


def _pairs(x: IdxArray, y: IdxArray, count: int) -> Iterator[tuple[Slab, Slab]]:
    """The slabs of x, each with the same items of y, as far as both have them."""
    for slab in plan(x):
        length = min(len(slab), count - slab.first)
        if length > 0:
            mine = replace(slab, stop=slab.start + length)
            yield mine, Slab(y, slab.first, slab.first + length, slab.first)


def _compare_slabs(both: Difference, pair: tuple[Slab, Slab]) -> Difference:
    """What two slabs of the same items have of their own."""
    found = Difference(both.a, both.b, both.header_a, both.header_b, compared=True)
    per_item = math.prod(both.header_a.item_shape)
    start = pair[0].first * per_item
    step = BLOCK_SIZE // max(1, per_item) * pair[0].array.header.item_nbytes or 1
    for p in pair[0].blocks(block_nbytes=step):
        first = start // max(1, per_item)
        q = replace(pair[1], start=first, stop=first + len(p), first=first).read()
        _compare(p.reshape(-1), q.reshape(-1), start, found)
        start += p.size
    return found


def _index(number: int, shape: tuple[int, ...]) -> tuple[int, ...]:
    """The index of the element with this number in C order."""
    places: list[int] = []
    for length in reversed(shape[1:]):
        number, place = divmod(number, length)
        places.insert(0, place)
    return (number, *places) if shape else ()


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
