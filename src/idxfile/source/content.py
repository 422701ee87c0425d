"""What compressed files that are read by ranges have in common."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

__all__ = ["Block", "ContentByRanges", "UnfitError"]


class Block(NamedTuple):
    """Where a block lies in the compressed file, and in the content."""

    packed_start: int
    packed_stop: int
    start: int
    stop: int


class UnfitError(Exception):
    """The blocks of a file are not what they should be."""


class ContentByRanges:
    """The content of a compressed file, as a source that takes many ranges at once."""

    buffer: memoryview | None = None
    size: int

    def readinto_many(self, parts: Sequence[tuple[int, memoryview]]) -> None:
        """Fill many buffers, each from its own position, ascending.

        Raises:
            UnfitError: where the file is not as it should be.
        """
        raise NotImplementedError

    def read_at(self, start: int, stop: int) -> bytes:
        """The bytes from `start` to `stop`; fewer only at the end."""
        buffer = bytearray(max(0, min(stop, self.size) - start))
        self.readinto_at(start, buffer)
        return bytes(buffer)

    def readinto_at(self, start: int, buffer: Any) -> int:
        """Fill `buffer` from byte `start` on; fewer only at the end."""
        view = memoryview(buffer).cast("B")[: max(0, self.size - start)]
        self.readinto_many([(start, view)])
        return len(view)
