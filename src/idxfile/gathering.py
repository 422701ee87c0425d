"""Items read from a source by position, and written back: few ranges for many items."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import numpy as np

from .elements import Array, as_bytes, read_elements, read_many, turn
from .header import Header
from .selection import Items, spans
from .source import LocalFile, Source

__all__: list[str] = []

GAP_NBYTES = 1 << 13
"""Up to here it is faster to read over unwanted bytes of a file than to ask twice."""


def read_items(source: Source, header: Header, start: int, target: Array) -> None:
    """Fill a native array with the items from `start` on."""
    read_elements(source, header.offset_of(start), target, header.stored_dtype)


def read_ahead(source: Any, header: Header, items: range, step: int) -> Iterator[Array]:
    """Fresh native arrays of `step` neighbours, while the next ones are on their way.

    Args:
        source: one that lies far away, and fetches ahead.
        header: of the file.
        items: which, in order.
        step: how many in one.
    """
    start, stop = header.offset_of(items.start), header.offset_of(items.stop)
    with closing(source.ahead(start, stop)) as reader:
        for low in range(items.start, items.stop, step):
            block = np.empty((min(step, items.stop - low), *header.item_shape), header.dtype)
            reader.readinto(as_bytes(block))  # all of them, or it raises
            turn(block, header.stored_dtype)
            yield block


def gather(source: Source, header: Header, items: Items, most: int) -> Array:
    """A fresh native array of ascending items, neighbours read together.

    Args:
        source: where from. One that takes many ranges at once gets them all, and joins them as
            suits it.
        header: of the file.
        items: their numbers.
        most: the longest range to read where something in it is unwanted, in items.
    """
    target = np.empty((len(items), *header.item_shape), header.dtype)
    if hasattr(source, "shard_with") and not isinstance(items, range):
        _gather_from_shards(source, header, items, target, most)
        return target
    if hasattr(source, "readinto_many"):
        runs = spans(items, 0, most)
        read_many(
            source,
            [(header.offset_of(start), target[where]) for start, _, where, _ in runs],
            header.stored_dtype,
        )
        return target
    gap = GAP_NBYTES // max(1, header.item_nbytes)
    for start, stop, where, pick in spans(items, gap, most):
        if stop - start == where.stop - where.start:
            read_items(source, header, start, target[where])
        else:
            block = np.empty((stop - start, *header.item_shape), header.dtype)
            read_items(source, header, start, block)
            target[where] = block[pick]
    return target


def _gather_from_shards(
    source: Any, header: Header, items: Array, target: Array, most: int
) -> None:
    """Fill a native array with ascending items: of shards in memory from there, others at once."""
    parts = []
    low = 0
    while low < len(items):
        first, stop, held = source.shard_with(int(items[low]))
        high = low + int(np.searchsorted(items[low:], stop))
        if held is None:
            for start, _, where, _ in spans(items[low:high], 0, most):
                place = target[low + where.start : low + where.stop]
                parts.append((header.offset_of(start), place))
        else:
            target[low:high] = rows_of(held, stop - first, header)[items[low:high] - first]
        low = high
    read_many(source, parts, header.stored_dtype)


def rows_of(held: Any, count: int, header: Header) -> Array:
    """The items of a shard in memory as they are stored; laid over it once."""
    if held.rows is None:
        stored = np.frombuffer(held.memory, header.stored_dtype)
        held.rows = stored.reshape(count, *header.item_shape)
    rows: Array = held.rows
    return rows


def scatter(file: LocalFile, header: Header, items: Items, block: Array) -> None:
    """Write a block of ascending items to their places in a file."""
    stored = np.ascontiguousarray(block, header.stored_dtype)
    for start, _, where, _ in spans(items, 0, len(items)):
        file.write_at(header.offset_of(start), as_bytes(stored[where]))
