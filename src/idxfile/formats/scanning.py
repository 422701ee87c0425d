"""The pass before the writing, by many: the smallest element type that holds every value."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from typing import Any

from ..slabs.running import run
from .casts import Finder, holders, least, smallest
from .columns import View
from .parting import by_position, part_of, slab_items, watched_nbytes

__all__: list[str] = []


def finder_of(executor: Executor | None, tell: Callable[[int], None]) -> Finder:
    """What goes through a column for the smallest type: an executor, or this thread.

    Args:
        executor: who reads the parts of what is read by position.
        tell: called with the bytes that are done.
    """

    def find(column: Any, types: Sequence[str]) -> str | None:
        if executor is None or not by_position(column):
            return smallest(column, types)
        step = slab_items(column)
        starts = range(0, len(column), step)
        parts = ((part_of(column, n, min(n + step, len(column))), types) for n in starts)
        one = watched_nbytes(column) // max(1, len(column))
        left = list(types)
        for start, held in zip(
            starts, run(_holders, parts, executor=executor, total=len(starts)), strict=True
        ):
            left = [name for name in left if name in held]
            if not left:
                break
            tell((min(start + step, len(column)) - start) * one)
        return least(column, left)

    return find


def _holders(task: tuple[View, Sequence[str]]) -> list[str]:
    return holders(*task)
