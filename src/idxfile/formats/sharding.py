"""A conversion cut into shards, each written by one, here or on an executor."""

from __future__ import annotations

import contextlib
import glob
import os
import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import Any, TypeVar

from ..array import open as open_idx
from ..classes import CLASSES_FILE
from ..cutting import check_number, facts_of, shard_count
from ..errors import UnsupportedError
from ..header import Header
from ..names import refuse_rivals
from ..placing import clear_interrupted, names_there, new_in_store, refuse_other_sets
from ..sending import send_file
from ..shards import Manifest, ShardFacts, ShardName, named_shards
from ..slabs.running import run
from ..source.places import beside, file_of, is_url, public
from ..staging import folder_made, temporary_folder, write_whole
from .blocks import item_nbytes
from .columns import Columns
from .opening import named_errors
from .parting import parts_of, watched_nbytes
from .results import Target, result

__all__: list[str] = []

T = TypeVar("T")


def shards_of(
    columns: Columns, target: Target, shards: int | None, shard_nbytes: int | None
) -> int:
    """How many shards are meant, where one may have about so many bytes.

    Args:
        columns: what is written, settled.
        target: where to. Of a pair the file of images counts, of a table a row.
        shards: how many; None goes by the bytes.
        shard_nbytes: how many bytes, before they are compressed.

    Raises:
        ValueError: for numbers that make no sense.
    """
    counted = [columns.first] if target.writer.name == "idx" else list(columns.arrays.values())
    row = sum(map(item_nbytes, counted))
    header = Header.of("uint8", (len(columns) if columns.first.shape else 0, row))
    number = shard_count(header, shards, shard_nbytes)
    assert number is not None
    check_number(number)
    return number


def write_shards(
    columns: Columns,
    target: Target,
    shards: int,
    executor: Executor | None,
    tell: Callable[[int], None],
) -> str:
    """Write columns as shards; all appear at the end, under `x-00000-of-00042.idx` for `x.idx`.

    Args:
        columns: what is written, settled; all of one length.
        target: the one file that the shards stand for, or a folder for a pair; also in a store,
            where no set is replaced.
        shards: how many: as many items in one as in another, or one more.
        executor: who writes the shards, all of which see the folder; None: this thread.
        tell: called with the bytes that are done.

    Returns:
        The pattern of the shards; of a pair, which are two sets, the folder.

    Raises:
        FileExistsError: for a file that must not be replaced, and for another set of that name.
        UnsupportedError: for formats that are folders.
    """
    if target.kind == "folder":
        raise UnsupportedError(
            "shards are files, and this format is a folder",
            file=target.path,
            hint="convert into one folder, without shards, or into files",
        )
    count = min(map(len, columns.arrays.values()))
    bounds = pairwise(count * number // shards for number in range(shards + 1))
    parts = ((number, parts_of(columns, *pair)) for number, pair in enumerate(bounds))

    def written(work: Callable[[_Part], T]) -> list[T]:
        found = []
        total = sum(map(watched_nbytes, columns.arrays.values()))
        for facts in run(work, parts, executor=executor, total=shards):
            found.append(facts)
            tell(total * len(found) // shards - total * (len(found) - 1) // shards)
        return found

    if is_url(target.path):
        _write_to_store(written, target, shards, parts_of(columns, 0, 0))
    else:
        _write_to_folder(written, target, shards)
    if not _name(target):
        return target.path
    pattern = _names(_name(target), shards).pattern
    if is_url(target.path):
        return beside(target.path, pattern)
    return os.path.join(glob.escape(os.path.dirname(target.path)), pattern)


def _write_to_folder(written: Any, target: Target, shards: int) -> None:
    """Write each part as a file of a hidden folder; they are renamed when all are there."""
    folder, name = (target.path, "") if target.kind == "files" else os.path.split(target.path)
    folder = folder or os.curdir
    with (
        folder_made(folder),
        result(os.path.join(folder, ""), "files", target.overwrite) as aside,
    ):
        made_by = written(partial(_write_shard, target, os.path.abspath(aside), name))
        for made in made_by[0].files:
            if made == CLASSES_FILE:  # the same in each
                os.replace(os.path.join(made_by[0].folder, made), os.path.join(aside, made))
                continue
            names = _names(made, shards)
            refuse_other_sets(folder, names)
            for number, shard in enumerate(made_by):
                old = os.path.join(shard.folder, made)
                os.replace(old, os.path.join(aside, names.numbered(number)))
            _write_manifest(aside, names, [shard.files[made] for shard in made_by])


def _write_to_store(written: Any, target: Target, shards: int, nothing: Columns) -> None:
    """Write each part as an object of each set; what tells of them comes last."""
    folder, name = beside(target.path, ""), _name(target)
    sources = [getattr(array, "name", None) for array in nothing.arrays.values()]
    with contextlib.ExitStack() as stack:
        sample = stack.enter_context(temporary_folder())
        made = None if name else _write_shard(target, sample, name, (0, nothing))
        files = made.files if made else [name]
        sets = {each: _names(each, shards) for each in files if each != CLASSES_FILE}
        for names in sets.values():
            if target.overwrite is True:
                clear_interrupted(folder, names, sources)
            stack.enter_context(new_in_store(folder, names))
        mine = [names.numbered(number) for names in sets.values() for number in range(shards)]
        refuse_rivals(public(folder), names_there(folder), mine)
        shown_last = stack.enter_context(result(folder, "files", target.overwrite))
        made_by = written(partial(_send_shard, target, sets))
        if made and CLASSES_FILE in made.files:
            os.replace(
                os.path.join(made.folder, CLASSES_FILE), os.path.join(shown_last, CLASSES_FILE)
            )
        for each, names in sets.items():
            _write_manifest(shown_last, names, [shard[each] for shard in made_by])


def _name(target: Target) -> str:
    """The file that the shards stand for; of a pair, whose files have names of their own, none."""
    return "" if target.kind == "files" else os.path.basename(file_of(target.path))


def _send_shard(target: Target, sets: dict[str, ShardName], part: _Part) -> dict[str, _Facts]:
    """Write one shard of each set where it is made, and send them."""
    number, _ = part
    with temporary_folder() as aside:
        made = _write_shard(target, aside, _name(target), part)
        for name, names in sets.items():
            path = os.path.join(made.folder, name)
            send_file(path, beside(target.path, names.numbered(number)))
        return made.files


def _write(columns: Columns, target: Target, path: str) -> None:
    with named_errors("", target.path) as called:
        called[path] = target.path
        replace(target, path=path, overwrite=True).write(columns, called)


def _names(name: str, total: int) -> ShardName:
    """The names of shards: a number before the suffix, whatever the format."""
    names = named_shards(name, total)
    if names.kind:
        return names
    stem, suffix = os.path.splitext(names.stem)
    return ShardName(stem, None, total, suffix + names.suffix)


_Facts = tuple[str, tuple[int, ...], ShardFacts] | None
"""Of an IDX file: element type, item shape, and what the manifest says of it."""


_Part = tuple[int, Columns]
"""The number of a shard, and its items."""


@dataclass(frozen=True)
class _Made:
    """What was written of a shard."""

    folder: str
    files: dict[str, _Facts]
    """By their names; of a pair there are two, and the names of classes."""


def _write_shard(target: Target, aside: str, name: str, part: _Part) -> _Made:
    """Write one shard into a folder of its own: in another one lies what a lost worker began."""
    number, columns = part
    folder = tempfile.mkdtemp(prefix=f"{number}-", dir=aside)
    _write(columns, target, os.path.join(folder, name))
    files = {each: _facts(os.path.join(folder, each)) for each in sorted(os.listdir(folder))}
    return _Made(folder, files)


def _facts(path: str) -> _Facts:
    try:
        with open_idx(path) as array:
            kind, shape = array.dtype.name, array.shape
    except ValueError:  # of another format
        return None
    return kind, shape[1:], facts_of(path, shape[0])


def _write_manifest(folder: str, names: ShardName, facts: Sequence[_Facts]) -> None:
    """Write what tells of a set, which other formats have not."""
    known = [each for each in facts if each is not None]
    if len(known) == len(facts):
        kind, shape, _ = known[0]
        shards = tuple(
            replace(shard, name=names.numbered(number)) for number, (*_, shard) in enumerate(known)
        )
        manifest = Manifest(kind, shape, shards)
        write_whole(os.path.join(folder, names.manifest_name), manifest.encode())
