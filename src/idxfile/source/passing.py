"""The elements of a file that passes by once, from front to back."""

from __future__ import annotations

from typing import Any

from ..header import Header
from ..problems import Handling
from . import InOrder, judge_spooled
from .stream import Spool

__all__: list[str] = []

_PIECE_NBYTES = 1 << 18


class Elements:
    """The elements of a file in order, judged at their end.

    Args:
        source: the file.
        header: its header, judged.
        problems: how to handle what is found wrong.
        judged: whether its end was judged with its header; by default, where its size is known.
            Of a source that others read meanwhile, it may be known and wrong.
    """

    def __init__(
        self,
        source: Any,
        header: Header,
        problems: Handling = "raise",
        judged: bool | None = None,
    ) -> None:
        self._source = source
        self._header = header
        self._problems: Handling = problems
        if isinstance(source, Spool):
            source.limit = header.file_nbytes
        self._stream = InOrder(source)
        self._left = header.nbytes
        self._judged = source.size is not None if judged is None else judged
        before = memoryview(bytearray(header.data_offset))
        self._stream.readinto(before)

    def readinto(self, view: memoryview) -> int:
        """Fill `view` with the next bytes of the elements; fewer, or none, at their end.

        With the last of them the end is judged: nobody has them all of a file that is not right.

        Raises:
            FormatError: when the file ends before, or goes on behind.
        """
        view = view[: self._left]
        count = self._stream.readinto(view) if len(view) else 0
        self._left -= count
        if count < len(view) or not self._left:
            self._finish()
        return count

    def skip(self) -> None:
        """Read what is left for its judgement alone.

        Raises:
            FormatError: as `readinto`.
        """
        piece = memoryview(bytearray(_PIECE_NBYTES))
        while self.readinto(piece):
            pass

    def _finish(self) -> None:
        size = self._header.file_nbytes - self._left
        if self._judged and not self._left:
            return
        self._judged = True
        size += 0 if self._left else self._stream.readinto(memoryview(bytearray(1)))
        found = self._stream.problems
        judge_spooled(self._source, self._header, size, found, self._problems)

    def close(self) -> None:
        """Close the file."""
        self._source.close()
