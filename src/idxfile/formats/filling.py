"""Files that many write at once: laid in their whole length, and filled by position."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor
from itertools import islice

from ..header import Header
from ..lazyarray import DEFAULT_BLOCK_NBYTES
from ..names import refuse_rivals
from ..placing import names_there
from ..slabs.filling import Ground, Layout, filled, laid
from ..slabs.running import run
from ..source.places import beside, is_url, public
from .blocks import in_groups, item_nbytes
from .columns import Columns, View
from .opening import function_of
from .parting import by_position, part_of, slab_items, watched_nbytes
from .results import Target, all_or_none, check_target, result

__all__: list[str] = []

Task = tuple[Ground, int, View]


def fill(
    columns: Columns,
    target: Target,
    executor: Executor | None,
    tell: Callable[[int], None],
    names: dict[str, str],
) -> None:
    """Write columns as files that are filled by position; all appear at the end.

    What comes only in order is read and written here.

    Args:
        columns: what is written, settled; no scalars.
        target: of a format that lays files.
        executor: who reads and writes the parts.
        tell: called with the bytes that are done.
        names: what errors call the place where the files are meanwhile; to be filled.

    Raises:
        UnsupportedError: for files that many cannot write at once.
        OSError: as the system gives it. After an exception nothing is left.
    """
    with contextlib.ExitStack() as stack:
        grounds = [
            (stack.enter_context(laid(path, layout)), columns.arrays[name])
            for path, name, layout in _layouts(stack, columns, target, names)
        ]
        apart = [(ground, view) for ground, view in grounds if by_position(view)]
        bounds = [list(ground.cut(slab_items(view))) for ground, view in apart]
        tasks = (
            (ground, low, part_of(view, low, high))
            for (ground, view), ranges in zip(apart, bounds, strict=True)
            for low, high in ranges
        )
        counts = run(_fill, tasks, executor=executor, total=sum(map(len, bounds)))
        for (ground, view), ranges in zip(apart, bounds, strict=True):
            filled(ground, _told(islice(counts, len(ranges)), view, tell))
        for ground, view in grounds:
            if not by_position(view):
                filled(ground, iter([_fill((ground, 0, view))]))


def _layouts(
    stack: contextlib.ExitStack, columns: Columns, target: Target, names: dict[str, str]
) -> list[tuple[str, str, Header | Layout]]:
    """Where each file is written, the name of its column, and how it lies."""
    place = target.path
    begun: list[str] = []
    if target.kind == "files" and is_url(target.path):
        stack.enter_context(all_or_none(target.path, begun))
    if target.kind == "files":
        place = stack.enter_context(result(target.path, target.kind, target.overwrite))
        names[place] = target.path
    found = function_of(target.writer, "lay", target.options)(place, columns)
    if place == target.path or not is_url(target.path):
        return list(found)
    begun += [os.path.basename(path) for path, *_ in found]
    refuse_rivals(public(target.path), names_there(target.path), begun)
    for name in begun:
        check_target(beside(target.path, name), "file", target.overwrite)
    places = (beside(target.path, name) for name in begun)
    return [(url, *rest) for url, (_, *rest) in zip(places, found, strict=True)]


def _fill(task: Task) -> int:
    """Read some items, and write them to their place; how many."""
    ground, first, view = task
    step = max(1, DEFAULT_BLOCK_NBYTES // max(1, item_nbytes(view)))
    step = -(-step // ground.step) * ground.step
    done = 0
    for block in in_groups(view.blocks(), step):
        done += ground.write(first + done, block)
    return done


def _told(counts: Iterable[int], view: View, tell: Callable[[int], None]) -> Iterator[int]:
    one = watched_nbytes(view) // max(1, len(view))
    for count in counts:
        yield count
        tell(count * one)
