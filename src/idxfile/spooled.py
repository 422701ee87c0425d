"""A file that comes only in order, and the three ways in which an array reads it all the same.

Single items are had by inflating the blocks around them, where it is made of blocks or has an
index. Who takes all of it from front to back has it pass by. Everything else has it kept, once.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from .elements import Array, as_bytes, turn
from .header import Header
from .problems import Handling
from .source import Spool, judge_spooled
from .source.locking import Lock
from .source.passing import Elements

__all__: list[str] = []


class Passes:
    """The items of a file that must be inflated, from front to back.

    Args:
        source: the file: a `Spool`, or compressed shards.
        header: its header, judged.
        problems: how to handle what is found wrong further on.
    """

    def __init__(self, source: Any, header: Header, problems: Handling) -> None:
        self._source = source
        self._header = header
        self._problems: Handling = problems
        # A stream that fits into the first kilobyte had an end when its header was judged.
        self._judged = source.size is not None
        self._passed_nbytes = 0
        """How much was inflated for those who had it pass by."""
        self._once = False
        """Whether nobody will read it a second time, so that it need not be to be had again."""

    def passes_by(self) -> bool:
        """Whether who takes all items in order has them pass by, and they are not kept.

        The first time they do: most read a file once. Who does so again is likely to go on; so it
        is kept then, and nobody ever has it inflated more than twice in all.
        """
        unread = not self._source.at_hand and self._passed_nbytes < self._header.nbytes
        return unread and (self._once or self._source.repeatable)

    def read_once(self) -> None:
        """Have it pass by even if it can be had only once."""
        self._once = True

    def keep(self) -> None:
        """Have it kept from now on."""
        self._passed_nbytes = self._header.nbytes

    def passing(self, step: int, out: Array | None = None) -> Iterator[Array]:
        """Native arrays of `step` neighbours, as they are inflated, for this one reader.

        Args:
            step: how many in one.
            out: what they are parts of; fresh ones if None.

        Raises:
            FormatError: in place of the last one, at the latest, if the file is not right.
        """
        header, left = self._header, self._header.nbytes
        elements = Elements(self._source, header, self._problems, self._judged)
        self._passed_nbytes += left
        try:
            for start in range(0, header.shape[0], step):
                count = min(step, header.shape[0] - start)
                block = self._room(count, elements) if out is None else out[start : start + count]
                elements.readinto(as_bytes(block))
                turn(block, header.stored_dtype)
                left -= block.nbytes
                yield block
        finally:
            self._passed_nbytes -= left

    def _room(self, count: int, elements: Elements) -> Array:
        try:
            return np.empty((count, *self._header.item_shape), self._header.dtype)
        except (MemoryError, ValueError):  # of an item so large the header lies, most often
            elements.skip()
            raise


class Spooled(Passes):
    """The items of a compressed file, or of a pipe."""

    _source: Spool

    def __init__(self, source: Spool, header: Header, problems: Handling) -> None:
        super().__init__(source, header, problems)
        source.limit = header.file_nbytes
        self._lock = Lock()
        self._sought = False
        self.ranges: Any = None
        """The content by ranges, if there is one and somebody has asked for it."""

    # By blocks

    @property
    def random_access(self) -> bool:
        """Whether any item is read without those before it."""
        ranges = self._by_ranges()
        return ranges is not None and ranges.ready

    def in_blocks(self) -> bool:
        """Whether items are had by inflating the blocks around them, and that still pays."""
        source = self._source
        ranges = self._by_ranges() if source.size is None else None
        if ranges is None:
            return False
        return not source.fits_memory or ranges.inflated_nbytes < self._header.file_nbytes

    def prefers_blocks(self, count: int) -> bool:
        """Whether so many items, scattered, are better had so than by inflating everything."""
        few = 2 * count < self._header.shape[0]
        return few or (self.ranges.ready and not self._source.fits_memory)

    def _by_ranges(self) -> Any:
        with self._lock:
            if not self._sought:
                self.ranges = self._source.by_blocks()
                self._sought = True
        return self.ranges

    # Kept

    def load(self) -> None:
        """Have all of it in the buffer of the source, judged."""
        source = self._source
        source.load()
        if not self._judged:
            judge_spooled(source, self._header, source.size, source.problems, self._problems)
            self._judged = True
