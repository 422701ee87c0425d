"""A set of shards as one thing that is written: the bytes of one file, cut into many.

What comes are the bytes of one IDX file, header first. Each shard gets a header of its own and the
next items. All are written in a hidden folder beside their place, and renamed when the last is
whole; the manifest comes last. Nothing old stands beside anything new under a final name: what is
replaced is moved aside first, so that a set that was cut short by a crash is never taken for a
whole one.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import secrets
import shutil
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from .errors import UnsupportedError
from .header import Header
from .shards import Manifest, ShardFacts, ShardName, named_shards, sets_of, shard_name
from .sink import Sink, errors_named, open_sink, sync_folder
from .source import open_source
from .source.holding import Elements
from .source.local import write_exactly
from .source.places import is_url
from .staging import write_whole

__all__: list[str] = []

_COUNT_OFFSET = 4
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
        target: the path of the one file that the shards stand for: `x.idx`.
        header: of that file.
        count: how many items will come; None while nobody knows.
        shards: how many files to write, of equally many items as near as can be.
        shard_nbytes: how large a file may become, before it is compressed; at least one item.
        codec: as for `open_sink`, for each shard.
        blocked: likewise.

    Raises:
        TypeError: for anything but a path.
        ValueError: for numbers that make no sense, and for `shards` without `count`.
        UnsupportedError: for an address.
    """
    if not isinstance(target, (str, os.PathLike)):
        raise TypeError(f"shards are written beside a path, not to a {type(target).__name__}")
    path = os.fsdecode(target)
    if is_url(path):
        raise UnsupportedError(
            "shards are written to a folder of this machine",
            file=path,
            hint="write them here and copy them, the manifest last",
        )
    if shards is not None and shard_nbytes is not None:
        raise ValueError("give shards=, or shard_nbytes=, not both")
    if shards is not None:
        if not 1 <= shards <= MOST_SHARDS:
            raise ValueError(f"shards is 1 to {MOST_SHARDS:,}, not {shards:,}")
        if count is None:
            raise ValueError(
                f"{path}: items are spread evenly over shards when their number is known: "
                "give count=, or shard_nbytes= instead of shards="
            )
        bounds = [count * number // shards for number in range(shards + 1)]
        plan = [high - low for low, high in pairwise(bounds)]
        return ShardsSink(path, header, plan, None, codec, blocked)
    assert shard_nbytes is not None
    if shard_nbytes < 1:
        raise ValueError(f"shard_nbytes is 1 or more, not {shard_nbytes:,}")
    most = max(1, (shard_nbytes - header.data_offset) // max(1, header.item_nbytes))
    return ShardsSink(path, header, [], most, codec, blocked)


def refuse_other_sets(folder: str, names: ShardName) -> None:
    """Make sure that a new set will be the only one of its name in its folder.

    Raises:
        FileExistsError: for shards of the same name in another number.
    """
    for other in sets_of(os.listdir(folder), any_kind=True):
        if (other.stem, other.kind) == (names.stem, names.kind) and other.total != names.total:
            raise FileExistsError(
                errno.EEXIST,
                f"There are {other.total:,} shards of the same name, and two sets could not be "
                "told apart: remove them, or choose another name",
                folder,
            )


MOST_SHARDS = 99_999
"""A name has five digits for them."""


class ShardsSink:
    """Takes the bytes of one file, and writes them as shards."""

    def __init__(
        self,
        path: str,
        header: Header,
        plan: list[int],
        most: int | None,
        codec: str | None,
        blocked: bool,
    ) -> None:
        self.name = path
        self.patchable = most is not None
        self._header = header
        self._plan = plan
        self._most = most
        self._codec = codec
        self._blocked = blocked
        folder, base = os.path.split(path)
        self._folder = os.path.realpath(folder or os.curdir)
        self._names = named_shards(base, len(plan))
        self._owner = os.getpid()
        self._hidden = os.path.join(self._folder, f".{base[:50]}.{secrets.token_hex(4)}.tmp")
        self._done: list[ShardFacts] = []
        self._sink: Sink | None = None
        self._left = 0
        """Bytes that the shard being written still takes."""
        self._before = header.data_offset
        """Bytes of the header of the whole that are still to come."""
        self._count = header.shape[0]
        with errors_named(path):
            os.mkdir(self._hidden)

    def write(self, data: Any) -> None:
        """Write all of `data` behind what was written before."""
        view = memoryview(data).cast("B")
        skipped = min(self._before, len(view))
        self._before -= skipped
        view = view[skipped:]
        while view:
            while not self._left:
                self._next()
            assert self._sink is not None
            self._sink.write(view[: self._left])
            count = min(self._left, len(view))
            self._left -= count
            view = view[count:]

    def patch(self, offset: int, data: bytes) -> None:
        """Write the number of all items; nothing else is ever changed."""
        assert offset == _COUNT_OFFSET
        self._count = int.from_bytes(data, "big")

    def commit(self) -> None:
        """Finish the last shard, give all of them their names, and write the manifest."""
        with errors_named(self.name):
            self._finish_all()
            total = len(self._done)
            if total > MOST_SHARDS:
                raise UnsupportedError(
                    f"{total:,} shards; a set holds {MOST_SHARDS:,}",
                    file=self.name,
                    hint="make them larger: shard_nbytes=",
                )
            names = named_shards(os.path.basename(self.name), total)
            refuse_other_sets(self._folder, names)
            facts = tuple(
                ShardFacts(names.numbered(n), each.items, each.nbytes, each.sha256)
                for n, each in enumerate(self._done)
            )
            with self._old_ones_aside(names):
                for old, new in zip(self._done, facts, strict=True):
                    os.rename(os.path.join(self._hidden, old.name), self._place(new.name))
                sync_folder(self._folder)
                manifest = Manifest(self._header.element.name, self._header.item_shape, facts)
                write_whole(self._place(names.manifest_name), manifest.encode())
            shutil.rmtree(self._hidden, ignore_errors=True)

    def abort(self) -> None:
        """Leave nothing of it. After `commit` this does nothing."""
        if self._owner != os.getpid():  # a forked child leaves its parent's files alone
            return
        if self._sink is not None:
            self._sink.abort()
            self._sink = None
        kept = os.path.join(self._hidden, "old")
        if not (os.path.isdir(kept) and os.listdir(kept)):  # what could not be put back stays
            shutil.rmtree(self._hidden, ignore_errors=True)

    # Inside

    def _place(self, name: str) -> str:
        return os.path.join(self._folder, name)

    @contextlib.contextmanager
    def _old_ones_aside(self, names: ShardName) -> Iterator[None]:
        """Move what is to be replaced into the hidden folder; back again if anything fails."""
        there = [(name, shard_name(name)) for name in os.listdir(self._folder)]
        mine = (names.stem, names.total, names.kind)
        old = [self._place(n) for n, s in there if s and (s.stem, s.total, s.kind) == mine]
        old.append(self._place(names.manifest_name))
        aside = os.path.join(self._hidden, "old")
        os.mkdir(aside)
        moved: list[str] = []
        new: list[str] = []
        try:
            for path in filter(os.path.lexists, old):
                os.rename(path, os.path.join(aside, os.path.basename(path)))
                moved.append(path)
            new = [names.numbered(number) for number in range(names.total)]
            new.append(names.manifest_name)
            yield
        except BaseException:
            for name in new:  # none, as long as what stands there may be what is to be replaced
                with contextlib.suppress(OSError):
                    os.unlink(self._place(name))
            for path in moved:
                os.replace(os.path.join(aside, os.path.basename(path)), path)
            raise

    def _next(self) -> None:
        """Finish a shard and begin the next one."""
        self._finish()
        number = len(self._done)
        items = self._most if self._most is not None else self._plan[number]
        self._sink = self._begun(number, items)
        self._left = items * self._header.item_nbytes

    def _begun(self, number: int, items: int) -> Sink:
        sink = open_sink(self._path_of(number), codec=self._codec, blocked=self._blocked)
        header = Header.of(self._header.element.name, (items, *self._header.item_shape))
        try:
            sink.write(header.encode())
        except BaseException:
            sink.abort()
            raise
        return sink

    def _path_of(self, number: int) -> str:
        return os.path.join(self._hidden, self._names.numbered(number))

    def _finish(self) -> None:
        """Make the shard that is being written durable, and tell what it is."""
        if self._sink is None:
            return
        number = len(self._done)
        items = self._most if self._most is not None else self._plan[number]
        sink, self._sink = self._sink, None
        try:
            sink.commit()
        except BaseException:
            sink.abort()
            raise
        if self._left:  # the last one, of which nobody knew that it would be the last
            items -= self._left // self._header.item_nbytes
            self._shorten(number, items)
        self._tell(number, items)

    def _tell(self, number: int, items: int) -> None:
        path = self._path_of(number)
        with open(path, "rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        nbytes = os.path.getsize(path)
        self._done.append(ShardFacts(os.path.basename(path), items, nbytes, digest))

    def _shorten(self, number: int, items: int) -> None:
        """Set the number of items of a finished shard; a compressed one is written anew."""
        path = self._path_of(number)
        source = open_source(path, mmap=False)
        if not source.codecs:
            source.close()
            fd = os.open(path, os.O_RDWR)
            try:
                write_exactly(fd, items.to_bytes(4, "big"), _COUNT_OFFSET)
                os.fsync(fd)
            finally:
                os.close(fd)
            return
        header = Header.of(self._header.element.name, (items, *self._header.item_shape))
        with contextlib.closing(Elements(source, header)) as elements:
            sink = self._begun(number, items)
            try:
                piece = memoryview(bytearray(_PIECE_NBYTES))
                while count := elements.readinto(piece):
                    sink.write(piece[:count])
                sink.commit()
            except BaseException:
                sink.abort()
                raise

    def _finish_all(self) -> None:
        """Finish what was begun, and write the shards that no bytes came for."""
        self._finish()
        if self._most is not None:
            plan = [] if self._done else [self._count]
        else:
            plan = self._plan[len(self._done) :]
        for items in plan:
            number = len(self._done)
            sink = self._begun(number, items)
            sink.commit()
            self._tell(number, items)
