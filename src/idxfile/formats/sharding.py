"""A conversion cut into shards, each a conversion of its own, here or on an executor."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import Any

from ..array import open as open_idx
from ..cutting import check_number, facts_of
from ..errors import UnsupportedError
from ..placing import new_in_store, refuse_other_sets
from ..sending import send_file
from ..shards import Manifest, ShardFacts, ShardName, named_shards
from ..slabs.running import run
from ..source.places import beside, file_of, is_url, public
from ..staging import temporary_folder, write_whole
from .results import Kind, Overwrite, result

__all__: list[str] = []


def cut(items: slice | None, count: int, shards: int) -> list[slice]:
    """The items of each shard, as slices of all: as many in one as in another, or one more.

    Args:
        items: which are meant; None: all.
        count: how many there are in all.
        shards: how many shards.

    Raises:
        ValueError: for no shards, or more than a name can count.
    """
    check_number(shards)
    meant = range(count)[items if items is not None else slice(None)]
    bounds = [len(meant) * number // shards for number in range(shards + 1)]
    return [_slice(meant[low:high]) for low, high in pairwise(bounds)]


def _slice(part: range) -> slice:
    """A range as a slice; a negative stop would be counted from the end there."""
    if not part:
        return slice(0, 0)
    return slice(part.start, part.stop if part.stop >= 0 else None, part.step)


def write_shards(
    convert: Callable[..., Any],
    parts: Sequence[slice],
    target: str,
    kind: Kind,
    overwrite: Overwrite,
    executor: Executor | None,
) -> None:
    """Write each part as a shard; all appear at the end, under `x-00000-of-00042.idx` for `x.idx`.

    Args:
        convert: called with a path and `items=`; it can be sent to the executor.
        parts: the items of each shard.
        target: the one file that the shards stand for, or a folder for a pair; of a file, the
            address in a store too, where no set is replaced.
        kind: which of both.
        overwrite: whether files that exist are replaced.
        executor: who writes the shards, all of which see the folder; None: this thread.

    Raises:
        FileExistsError: for a file that must not be replaced, and for another set of that name.
        UnsupportedError: for formats that are folders, and where shards would differ in type.
    """
    if kind == "folder":
        raise UnsupportedError(
            "shards are files, and this format is a folder",
            file=target,
            hint="convert into one folder, without shards, or into files",
        )
    if is_url(target) and kind == "files":
        raise UnsupportedError(
            "sets of several files are not converted into a store at once",
            file=public(target),
            hint="convert one column after the other (--column); or the pair by `idx select`",
        )
    if is_url(target):
        _write_to_store(convert, parts, target, executor)
        return
    folder, name = (target, "") if kind == "files" else os.path.split(target)
    os.makedirs(folder or os.curdir, exist_ok=True)
    with result(os.path.join(folder or os.curdir, ""), "files", overwrite) as aside:
        work = partial(_write_shard, convert, os.path.abspath(aside), name)
        numbered = list(enumerate(parts))
        shards = list(run(work, numbered, executor=executor))
        for made in shards[0]:
            if made == "classes.txt":  # the same in each
                os.replace(os.path.join(aside, "0", made), os.path.join(aside, made))
                continue
            names = _names(made, len(parts))
            refuse_other_sets(folder or os.curdir, names)
            for number in range(len(parts)):
                old = os.path.join(aside, str(number), made)
                os.replace(old, os.path.join(aside, names.numbered(number)))
            facts = [shard[made] for shard in shards]
            if all(facts):
                manifest = _manifest(names.numbered, facts, os.path.join(folder, made))
                write_whole(os.path.join(aside, names.manifest_name), manifest.encode())
        for number in range(len(parts)):
            shutil.rmtree(os.path.join(aside, str(number)))


def _write_to_store(
    convert: Callable[..., Any], parts: Sequence[slice], target: str, executor: Executor | None
) -> None:
    """Write each part as an object; the manifest comes last."""
    names = _names(os.path.basename(file_of(target)), len(parts))
    with new_in_store(beside(target, ""), names):
        work = partial(_send_shard, convert, target, names)
        facts = list(run(work, list(enumerate(parts)), executor=executor))
        if all(facts):
            manifest = _manifest(names.numbered, facts, public(target))
            write_whole(beside(target, names.manifest_name), manifest.encode())


def _send_shard(
    convert: Callable[..., Any], target: str, names: ShardName, part: tuple[int, slice]
) -> _Facts:
    """Write one shard where it is made, and send it."""
    number, items = part
    with temporary_folder() as aside:
        path = os.path.join(aside, names.numbered(number))
        convert(path, items=items)
        send_file(path, beside(target, names.numbered(number)))
        return _facts(path)


def _names(name: str, total: int) -> ShardName:
    """The names of shards: a number before the suffix, whatever the format."""
    names = named_shards(name, total)
    if names.kind:
        return names
    stem, suffix = os.path.splitext(names.stem)
    return ShardName(stem, None, total, suffix + names.suffix)


_Facts = tuple[str, tuple[int, ...], ShardFacts] | None
"""Of an IDX file: element type, item shape, and what the manifest says of it."""


def _write_shard(
    convert: Callable[..., Any], aside: str, name: str, part: tuple[int, slice]
) -> dict[str, _Facts]:
    """Write one shard into a folder of its own, again if somebody began it before."""
    number, items = part
    folder = os.path.join(aside, str(number))
    with contextlib.suppress(FileExistsError):
        os.mkdir(folder)
    convert(os.path.join(folder, name), items=items)
    return {made: _facts(os.path.join(folder, made)) for made in sorted(os.listdir(folder))}


def _facts(path: str) -> _Facts:
    try:
        with open_idx(path) as array:
            kind, shape = array.dtype.name, array.shape
    except ValueError:  # of another format
        return None
    return kind, shape[1:], facts_of(path, shape[0])


def _manifest(numbered: Callable[[int], str], facts: Sequence[Any], name: str) -> Manifest:
    kinds = {(kind, shape) for kind, shape, _ in facts}
    if len(kinds) > 1:
        found = ", ".join(sorted({kind for kind, _ in kinds}))
        raise UnsupportedError(
            f"the shards would differ in their element type: {found}",
            file=name,
            found=found,
            hint="say which type they shall have",
        )
    ((kind, shape),) = kinds
    shards = (replace(shard, name=numbered(number)) for number, (_, _, shard) in enumerate(facts))
    return Manifest(kind, shape, tuple(shards))
