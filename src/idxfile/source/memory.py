"""Bytes that are in memory already."""

from __future__ import annotations

from typing import Any

from ..problems import Problem

__all__ = ["Memory"]


class Memory:
    """Bytes-like data of the caller, never copied and never written to."""

    codecs: tuple[str, ...] = ()

    def __init__(self, buffer: memoryview, name: str) -> None:
        self.name = name
        self.problems: list[Problem] = []
        self.size = len(buffer)
        self.buffer: memoryview | None = buffer

    def read_at(self, start: int, stop: int) -> bytes:
        """A copy of the bytes from `start` to `stop`; fewer only at the end."""
        return bytes(self._open()[start:stop])

    def readinto_at(self, start: int, buffer: Any) -> int:
        """Fill `buffer` from byte `start` on; fewer only at the end."""
        target = memoryview(buffer).cast("B")
        piece = self._open()[start : start + len(target)]
        target[: len(piece)] = piece
        return len(piece)

    def close(self) -> None:
        """Let go of the caller's data."""
        self.buffer = None

    def _open(self) -> memoryview:
        if self.buffer is None:
            raise ValueError(f"{self.name} is closed")
        return self.buffer
