"""A set of shards as one thing that is written: the bytes of one file, cut into many.

What comes are the bytes of one IDX file, header first. Each shard gets a header of its own and the
next items; `placing` knows where it goes, and when it may be seen there.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

from .codecs import codec_of_name
from .errors import UnsupportedError
from .header import COUNT_OFFSET, Header
from .placing import ForStore, InFolder, InStore, Place
from .sending import committed
from .shards import Manifest, ShardFacts, named_shards
from .sink import Sink, errors_named, open_sink
from .source import open_source
from .source.local import digest_of, write_exactly
from .source.passing import Elements
from .source.places import file_of, is_url, local_path, public, refuse_folder

__all__: list[str] = []

_PIECE_NBYTES = 1 << 20


def open_shards_sink(
    target: Any,
    header: Header,
    *,
    count: int | None,
    shards: int | None,
    shard_nbytes: int | None,
    codec: str | None = "auto",
    blocked: bool = False,
) -> ShardsSink:
    """Open a set of shards for writing.

    Args:
        target: the path or the address of the one file that the shards stand for: `x.idx`.
        header: of that file.
        count: how many items will come; None while nobody knows.
        shards: how many files to write, of equally many items as near as can be.
        shard_nbytes: how large a file may become, before it is compressed; at least one item.
        codec: as for `open_sink`, for each shard.
        blocked: likewise.

    Raises:
        TypeError: for anything but a path or an address.
        ValueError: for numbers that make no sense, and for `shards` without `count`.
        UnsupportedError: for more shards than a name can count, and a store that is read only.
        FileExistsError: for a set of this name in a store.
    """
    path, name = checked_target(target)
    plan = plan_of(header, count, shards, shard_nbytes, name)
    place = place_of(path, plan, name)
    return ShardsSink(name, place, header, plan, packing_of(path, codec, blocked))


def checked_target(target: Any) -> tuple[str, str]:
    """The path or address that shards stand for, and what errors call it.

    Raises:
        TypeError: for anything else.
        IsADirectoryError: for a folder.
    """
    if not isinstance(target, (str, os.PathLike)):
        raise TypeError(f"shards are written beside a path, not to a {type(target).__name__}")
    path = local_path(os.fsdecode(target))
    refuse_folder(path)
    return path, public(path)


def packing_of(path: str, codec: str | None, blocked: bool) -> dict[str, Any]:
    """How each shard is compressed, as `open_sink` takes it: "auto" goes by the name of the set."""
    if codec == "auto":
        row = codec_of_name(file_of(path))
        codec = row.name if row else None
    return {"codec": codec, "blocked": blocked}


def plan_of(
    header: Header, count: int | None, shards: int | None, shard_nbytes: int | None, name: str
) -> list[int] | int:
    """How many items go into each shard; or at most into one, while nobody knows their number.

    Raises:
        ValueError: for numbers that make no sense, and for `shards` without `count`.
    """
    if shards is not None and shard_nbytes is not None:
        raise ValueError("give shards=, or shard_nbytes=, not both")
    if shards is not None:
        return _spread(count, shards, name)
    assert shard_nbytes is not None
    if shard_nbytes < 1:
        raise ValueError(f"shard_nbytes is 1 or more, not {shard_nbytes:,}")
    most = max(1, (shard_nbytes - header.data_offset) // max(1, header.item_nbytes))
    return most if count is None else _filled(count, most if header.item_nbytes else count)


def shard_count(header: Header, shards: int | None, shard_nbytes: int | None) -> int | None:
    """How many shards are meant, where one may have so many bytes; None for no shards."""
    if shard_nbytes is None:
        return shards
    plan = plan_of(header, header.shape[0], shards, shard_nbytes, "")
    return len(plan) if isinstance(plan, list) else None


def _spread(count: int | None, shards: int, name: str) -> list[int]:
    """How many items go into each of so many shards."""
    check_number(shards)
    if count is None:
        raise ValueError(
            f"{name}: items are spread evenly over shards when their number is known: "
            "give count=, or shard_nbytes= instead of shards="
        )
    bounds = [count * number // shards for number in range(shards + 1)]
    return [high - low for low, high in pairwise(bounds)]


def check_number(shards: int) -> None:
    """Make sure that a set can have so many shards.

    Raises:
        ValueError: for none, or more than a name can count.
    """
    if not 1 <= shards <= MOST_SHARDS:
        raise ValueError(
            f"shards is 1 to {MOST_SHARDS:,}, not {shards:,}: "
            "give another number, or none for a single file"
        )


def _filled(count: int, most: int) -> list[int]:
    """How many items go into each shard of at most so many."""
    plan = [most] * (count // most if most else 0)
    rest = count - sum(plan)
    return [*plan, rest] if rest or not plan else plan


def place_of(path: str, plan: list[int] | int, name: str) -> Place:
    """Where the shards of a set go.

    Raises:
        UnsupportedError: for more shards than a name can count, and a store that is read only.
        FileExistsError: for a set of this name in a store.
    """
    if isinstance(plan, list):
        _refuse_too_many(len(plan), name)
    if not is_url(path):
        return InFolder(path)
    if not isinstance(plan, list):
        return ForStore(path)
    return InStore(path, named_shards(os.path.basename(file_of(path)), len(plan)))


def _refuse_too_many(total: int, name: str) -> None:
    if total > MOST_SHARDS:
        raise UnsupportedError(
            f"{total:,} shards; a set holds {MOST_SHARDS:,}",
            file=name,
            hint="make them larger: shard_nbytes=",
        )


MOST_SHARDS = 99_999
"""A name has five digits for them."""


def settle(place: Place, name: str, header: Header, written: Sequence[ShardFacts]) -> None:
    """Give the shards of a set their names, and write the manifest.

    Args:
        place: where they are.
        name: of the one file that they stand for.
        header: of that file.
        written: what each of them is; their names are settled here.
    """
    total = len(written)
    _refuse_too_many(total, name)
    names = named_shards(os.path.basename(name), total)
    facts = tuple(replace(each, name=names.numbered(n)) for n, each in enumerate(written))
    place.settle(names, Manifest(header.element.name, header.item_shape, facts))


class ShardsSink:
    """Takes the bytes of one file, and writes them as shards."""

    def __init__(
        self,
        name: str,
        place: Place,
        header: Header,
        plan: list[int] | int,
        packing: dict[str, Any],
    ) -> None:
        """Begin a set.

        Args:
            name: what errors call it.
            place: where the shards go.
            header: of the one file that they stand for.
            plan: how many items go into each; or at most into one, while nobody knows their number.
            packing: of each shard, as `packing_of` tells.
        """
        self.name = name
        self.patchable = not isinstance(plan, list)
        self._place = place
        self._header = header
        self._plan = plan
        self._packing = packing
        self._owner = os.getpid()
        self._done: list[ShardFacts] = []
        self._shard: Shard | None = None
        self._left = 0
        """Bytes that the shard being written still takes."""
        self._before = header.data_offset
        """Bytes of the header of the whole that are still to come."""
        self._count = header.shape[0]

    def write(self, data: Any) -> None:
        """Write all of `data` behind what was written before."""
        view = memoryview(data).cast("B")
        skipped = min(self._before, len(view))
        self._before -= skipped
        view = view[skipped:]
        with errors_named(self.name):
            while view:
                while not self._left:
                    self._next()
                assert self._shard is not None
                self._shard.write(view[: self._left])
                count = min(self._left, len(view))
                self._left -= count
                view = view[count:]

    def patch(self, offset: int, data: bytes) -> None:
        """Write the number of all items; nothing else is ever changed."""
        assert offset == COUNT_OFFSET
        self._count = int.from_bytes(data, "big")

    def commit(self) -> None:
        """Finish the last shard, give all of them their names, and write the manifest."""
        with errors_named(self.name):
            self._finish_all()
        settle(self._place, self.name, self._header, self._done)

    def abort(self) -> None:
        """Leave nothing of it. After `commit` this does nothing."""
        if self._owner != os.getpid():  # a forked child leaves its parent's files alone
            return
        if self._shard is not None:
            self._shard.abort()
            self._shard = None
        self._place.abandon()

    # Inside

    def _items_of(self, number: int) -> int:
        return self._plan[number] if isinstance(self._plan, list) else self._plan

    def _next(self) -> None:
        """Finish a shard and begin the next one."""
        self._finish()
        items = self._items_of(len(self._done))
        self._shard = self._begun(len(self._done), items)
        self._left = items * self._header.item_nbytes

    def _begun(self, number: int, items: int) -> Shard:
        header = Header.of(self._header.element.name, (items, *self._header.item_shape))
        return Shard(self._place.path_of(number), header, self._packing)

    def _finish(self) -> None:
        """Make the shard that is being written durable, and tell what it is."""
        if self._shard is None:
            return
        number, shard, self._shard = len(self._done), self._shard, None
        items = self._items_of(number)
        shard.commit()
        facts = shard.facts(items)
        if self._left:  # the last one, of which nobody knew that it would be the last
            facts = self._shortened(number, items - self._left // self._header.item_nbytes)
        self._done.append(facts)

    def _shortened(self, number: int, items: int) -> ShardFacts:
        """Set the number of items of a finished shard; a compressed one is written anew."""
        path = self._place.path_of(number)
        source = open_source(path, mmap=False)
        if not source.codecs:
            source.close()
            fd = os.open(path, os.O_RDWR)
            try:
                write_exactly(fd, items.to_bytes(4, "big"), COUNT_OFFSET)
                os.fsync(fd)
            finally:
                os.close(fd)
            return facts_of(path, items)
        header = Header.of(self._header.element.name, (items, *self._header.item_shape))
        with (
            contextlib.closing(Elements(source, header)) as elements,
            committed(self._begun(number, items)) as shard,
        ):
            piece = memoryview(bytearray(_PIECE_NBYTES))
            while count := elements.readinto(piece):
                shard.write(piece[:count])
        return shard.facts(items)

    def _finish_all(self) -> None:
        """Finish what was begun, and write the shards that no bytes came for."""
        self._finish()
        if isinstance(self._plan, list):
            plan = self._plan[len(self._done) :]
        else:
            plan = [] if self._done else [self._count]
        for items in plan:
            shard = self._begun(len(self._done), items)
            shard.commit()
            self._done.append(shard.facts(items))


class Shard:
    """One shard that is being written; its bytes as they will lie there are told on the way."""

    def __init__(self, path: str, header: Header, packing: dict[str, Any]) -> None:
        """Begin it.

        Args:
            path: a path or an address.
            header: its own.
            packing: as `packing_of` tells.
        """
        self._file = open_sink(path, codec=None, nbytes=header.file_nbytes)
        self._tally = _Tally(self._file)
        try:
            self._sink = open_sink(self._tally, **packing)
            self._sink.write(header.encode())
        except BaseException:
            self._file.abort()
            raise

    def write(self, data: memoryview) -> None:
        """Write the next bytes of its content."""
        self._sink.write(data)

    def commit(self) -> None:
        """Make it whole."""
        try:
            self._sink.commit()
            self._file.commit()
        except BaseException:
            self._file.abort()
            raise

    def abort(self) -> None:
        """Leave nothing of it."""
        self._file.abort()

    def facts(self, items: int) -> ShardFacts:
        """What it is; its name is settled at the end."""
        return ShardFacts("", items, self._tally.nbytes, self._tally.digest.hexdigest())


def facts_of(path: str, items: int) -> ShardFacts:
    """What a finished shard of so many items is, by reading it; its name is settled at the end."""
    return ShardFacts("", items, os.path.getsize(path), digest_of(path))


class _Tally:
    """Passes bytes on, and counts and digests them."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self.digest = hashlib.sha256()
        self.nbytes = 0

    def write(self, data: Any) -> None:
        """Take the next bytes."""
        self._sink.write(data)
        self.digest.update(data)
        self.nbytes += len(data)
