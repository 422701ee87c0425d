"""Many files as one: the shards of a set, a list of files, or all that fit a pattern.

What is presented are the bytes of the one IDX file that the shards would make: its header, made
anew with all items counted, and the elements of each shard behind those of the one before. So
everything that reads a file reads shards. Files are opened when they are touched, and few are
held open; each is held against what it was when the set was opened.
"""

from __future__ import annotations

import contextlib
import os
from bisect import bisect_right
from collections import deque
from collections.abc import Iterator, Sequence
from hashlib import blake2b
from itertools import accumulate, groupby
from operator import itemgetter
from typing import Any

from ..header import MAX_HEADER_NBYTES
from ..problems import Problem, settle
from . import open_source
from .ahead import Ahead
from .finding import Found, absent_told
from .holding import Held, HeldInOrder, Overflow, ShardsInOrder, header_of, most_held
from .locking import Lock
from .members import (
    Facts,
    Promised,
    Shard,
    ShardsIdentity,
    changed,
    check_unchanged,
    joined,
    lasting,
    of_manifest,
    shown,
)
from .passing import Elements
from .places import file_of, is_url
from .stream import Spool
from .waiting import done_together

__all__ = ["Shards"]

_LOOKING_AT_ONCE = 16
_READING_AT_ONCE = 4
_ASKED_AT_ONCE = 8
"""So many shards of a store are read at once, each by some requests."""

_PART_NBYTES = 1 << 23
_LOCKS = 16

_Group = tuple[int, list[tuple[int, memoryview]]]
"""A shard, and buffers to fill, each from its own byte of the elements of it."""


class Shards:
    """Many files as one source. Made by `open_source`."""

    buffer: memoryview | None = None
    at_hand, repeatable = False, True

    def __init__(self, found: Found, *, mmap: bool, spool_nbytes: int) -> None:
        """Look at the shards, or at their manifest.

        Args:
            found: where they are.
            mmap: as for `open_source`.
            spool_nbytes: as for `open_source`, for all shards together.
        """
        settle(found.problems, "raise", found.name)
        self._found = found
        self.name = found.name
        self.place = found.place
        self.problems: list[Problem] = []
        self._mmap = mmap
        self._budget = self._spool_nbytes = spool_nbytes
        self._places = found.places
        self._kept: dict[int, Any] = {}
        self._closed = False
        self._held: list[Held | None] = [None] * len(self._places)
        self._overflow = Overflow()
        try:
            self._facts = of_manifest(found) or self._look_at_all()
            self.header = joined(self._facts, found)
        except BaseException:
            self.close()
            raise
        first = self._facts[0]
        self.codecs = first.codecs
        self._head = self.header.encode()
        self._item_nbytes = first.header.item_nbytes
        counts = [facts.header.shape[0] for facts in self._facts]
        self._firsts = [0, *accumulate(counts)]
        begin, nbytes = len(self._head), self._item_nbytes
        self._starts = [begin + item * nbytes for item in self._firsts]
        self.size = self._starts.pop()
        self.shards = tuple(
            Shard(lasting(place), count, facts.nbytes, facts.identity)
            for place, count, facts in zip(self._places, counts, self._facts, strict=True)
        )
        self.identity = self._identify()
        self._turns: deque[int] = deque()
        self._most = most_held()
        self._lock = Lock()
        self._locks = [Lock() for _ in range(_LOCKS)]

    # What it is

    @property
    def file_nbytes(self) -> int | None:
        """The bytes of all files as they lie there."""
        sizes = [facts.nbytes for facts in self._facts]
        return None if None in sizes else sum(filter(None, sizes))

    def _identify(self) -> ShardsIdentity | None:
        """One digest of all identities; None where one has none."""
        digest = blake2b(digest_size=16)
        for place, facts in zip(self._places, self._facts, strict=True):
            if facts.identity is None:
                return None
            name = os.path.basename(file_of(os.fsdecode(place)))
            digest.update(repr((name, tuple(facts.identity))).encode("utf-8", "surrogateescape"))
        return ShardsIdentity(self.size, digest.hexdigest())

    def _look_at_all(self) -> list[Facts]:
        if any(map(is_url, self._places)):
            return done_together(self._look_at, range(len(self._places)), _LOOKING_AT_ONCE)
        return [self._look_at(index) for index in range(len(self._places))]

    def _look_at(self, index: int) -> Facts:
        """Read the header of one shard."""
        place = self._places[index]
        source = open_source(place, mmap=False, spool_nbytes=self._spool_nbytes)
        named = isinstance(place, (str, os.PathLike))
        if not named:  # it may not be opened twice
            self._kept[index] = source
        try:
            header = header_of(source)
            identity = getattr(source, "identity", None)
            nbytes = source.size if identity is None else identity.size
            return Facts(header, nbytes, identity if named else None, source.codecs)
        finally:
            if named:
                source.close()

    # Reading

    def read_at(self, start: int, stop: int) -> bytes:
        """The bytes from `start` to `stop`; fewer only at the end, and of a look at the header.

        Whoever looks at the first kilobyte wants the header, and no shard is opened for that.
        """
        if start < len(self._head) and stop <= MAX_HEADER_NBYTES:
            return self._head[start:stop]
        stop = min(stop, self.size)
        head = self._head[start:stop]
        rest = bytearray(max(0, stop - max(start, len(self._head))))
        if rest:
            self.readinto_at(max(start, len(self._head)), rest)
        return head + bytes(rest)

    def readinto_at(self, start: int, buffer: Any) -> int:
        """Fill `buffer` from byte `start` on; fewer only at the end."""
        view = memoryview(buffer)
        if view.format != "B" or view.ndim != 1:
            view = view.cast("B")
        index = bisect_right(self._starts, start) - 1
        if index >= 0:
            offset = start - self._starts[index]
            held = self._held[index]
            # What is asked for most is in memory, in one shard.
            if held is not None and held.copy(offset, view):
                return len(view)
        view = view[: max(0, self.size - start)]
        self.readinto_many([(start, view)])
        return len(view)

    def readinto_many(self, parts: Sequence[tuple[int, Any]]) -> None:
        """Fill many buffers, each from its own position; all lie within the file."""
        groups = self._by_shard(parts)
        nbytes = sum(len(view) for _, group in groups for _, view in group)
        if nbytes < _PART_NBYTES and all(self._is_near(index) for index, _ in groups):
            self._fill_all(groups)
            return
        far = any(is_url(self._places[index]) for index, _ in groups)
        work = [(index, part) for index, group in groups for part in self._parts(index, group)]
        if len(work) == 1:  # no thread is needed
            self._fill_all(work)
        else:
            most = _ASKED_AT_ONCE if far else _READING_AT_ONCE
            done_together(lambda each: self._fill(*each), work, most)

    def shard_with(self, item: int) -> tuple[int, int, Held | None]:
        """The shard that an item lies in.

        Returns:
            Its first item, the one behind its last, and the shard where it is in memory.
        """
        index = bisect_right(self._firsts, item) - 1
        held = self._held[index]
        if held is None and not is_url(self._places[index]):
            self._check_open()
            held = self._hold(index)
        if held is not None:
            held.used = True
            held = held if held.memory is not None else None
        return self._firsts[index], self._firsts[index + 1], held

    def in_order(self) -> ShardsInOrder:
        """All bytes from the first on, for one reader; what is compressed passes by once."""
        self._check_open()
        return ShardsInOrder(self._head, (self._elements_of(n) for n in range(len(self._places))))

    @property
    def far(self) -> bool:
        """Whether some lie in a store, by ranges: what comes next is to be fetched ahead."""
        return any(map(is_url, self._places)) and not any(facts.codecs for facts in self._facts)

    def ahead(self, start: int, stop: int) -> Ahead:
        """The bytes from `start` to `stop`, for one reader that takes them in order.

        Several pieces of it are on their way at once: each takes its shards one after another.
        """

        def fill(at: int, view: memoryview) -> None:
            self._fill_all(self._by_shard([(at, view)]))

        return Ahead(self.name, fill, start, stop)

    def close(self) -> None:
        """Drop the files."""
        self._closed = True
        self._held = [None] * len(self._places)
        self._overflow.close()
        for source in self._kept.values():
            source.close()

    # Inside

    def _check_open(self) -> None:
        if self._closed:
            raise ValueError(f"{self.name} is closed")

    def _by_shard(self, parts: Sequence[tuple[int, Any]]) -> list[_Group]:
        """What is to be filled of each shard; neighbours of one shard together."""
        self._check_open()
        pieces = [piece for start, view in parts for piece in self._cut(start, memoryview(view))]
        return [(n, [p[1:] for p in group]) for n, group in groupby(pieces, itemgetter(0))]

    def _cut(self, start: int, view: memoryview) -> Iterator[tuple[int, int, memoryview]]:
        """A range as ranges of single shards: which, from where in it, and the place to fill."""
        view = view.cast("B")
        if start < len(self._head):
            head = self._head[start : start + len(view)]
            view[: len(head)] = head
            start, view = start + len(head), view[len(head) :]
        index = bisect_right(self._starts, start) - 1
        while len(view):
            offset = start - self._starts[index]
            count = min(len(view), self._nbytes_of(index) - offset)
            if count:
                yield index, offset, view[:count]
            start, view, index = start + count, view[count:], index + 1

    def _nbytes_of(self, index: int) -> int:
        return (self._firsts[index + 1] - self._firsts[index]) * self._item_nbytes

    def _is_near(self, index: int) -> bool:
        """Whether the bytes of a shard come at once: nothing to fetch, nothing to inflate."""
        held = self._held[index]
        return held.near if held is not None else not self._is_slow(index)

    def _is_slow(self, index: int) -> bool:
        return is_url(self._places[index]) or bool(self._facts[index].codecs)

    def _parts(
        self, index: int, group: list[tuple[int, memoryview]]
    ) -> Iterator[list[tuple[int, memoryview]]]:
        """What is wanted of one shard as pieces of work; a long one is cut, if it may be."""
        offset, view = group[0]
        if len(group) > 1 or self._is_slow(index):
            yield group
            return
        for low in range(0, len(view), _PART_NBYTES):
            yield [(offset + low, view[low : low + _PART_NBYTES])]

    def _fill_all(self, groups: Sequence[_Group]) -> None:
        for index, group in groups:
            self._fill(index, group)

    def _fill(self, index: int, group: list[tuple[int, memoryview]]) -> None:
        """Fill buffers from one shard."""
        packed = self._facts[index].codecs and index not in self._kept
        whole = len(group[0][1]) == self._nbytes_of(index)
        if packed and whole and self._held[index] is None:
            with contextlib.closing(self._elements_of(index)) as elements:
                elements.readinto(group[0][1])  # all of it, once: no copy needs to be kept
        elif not self._hold(index).fill(group):
            name = shown(self._places[index])
            raise changed(name, "fewer bytes than it had", "as many")

    def _hold(self, index: int) -> Held:
        """One shard, opened."""
        held = self._held[index]
        if held is None:
            with self._locks[index % _LOCKS]:
                held = self._held[index]
                if held is None:
                    held = self._held[index] = self._opened(index)
                    if held.counts:
                        self._make_room(index)
        held.used = True
        return held

    def _make_room(self, index: int) -> None:
        """Let go of shards that were not used lately, so that few files are open at once.

        They are closed when the last reader has done with them.
        """
        with self._lock:
            self._turns.append(index)
            while len(self._turns) > self._most:
                oldest = self._turns.popleft()
                held = self._held[oldest]
                if held is not None and held.used:
                    held.used = False
                    self._turns.append(oldest)
                else:
                    self._held[oldest] = None

    def _opened(self, index: int) -> Held:
        source = self._source_of(index)
        try:
            if isinstance(source, Spool):
                return self._inflated(index, source)
            offset = self._facts[index].header.data_offset
            buffer = source.buffer
            memory = None if buffer is None else buffer[offset:]
            return Held(source, offset, memory, owned=index not in self._kept)
        except BaseException:
            if index not in self._kept:
                source.close()
            raise

    def _source_of(self, index: int) -> Any:
        """The source of one shard, which is still what it was.

        Raises:
            FormatError: when it is not.
        """
        self._check_open()
        if index in self._kept:
            return self._kept[index]
        place, known = self._places[index], self._facts[index]
        with absent_told(lambda: self._found):
            source = open_source(place, mmap=self._mmap, spool_nbytes=self._spool_nbytes)
        try:
            check_unchanged(source, known)
            header = header_of(source)
            if header != known.header:
                raise changed(source.name, str(header), str(known.header))
            if isinstance(known.identity, Promised):  # from now on it is this very object
                self._facts[index] = known._replace(identity=getattr(source, "identity", None))
        except BaseException:
            source.close()
            raise
        return source

    def _inflated(self, index: int, source: Spool) -> Held:
        """Inflate a shard, once: into memory as long as there is room, then into one file."""
        nbytes = self._nbytes_of(index)
        with self._lock:
            fits = nbytes <= self._budget
            self._budget -= nbytes if fits else 0
            if self._overflow.process != os.getpid():  # the file is another one's to write
                self._overflow = Overflow()
            overflow = self._overflow
        try:
            elements = Elements(source, self._facts[index].header)
            if fits:
                memory = memoryview(bytearray(nbytes))
                elements.readinto(memory)
                held = Held(None, 0, memory, owned=False)
            else:
                held = Held(overflow, overflow.add(nbytes, elements), None, owned=False)
            if index not in self._kept:  # it closes what it keeps at its own end
                elements.close()
            return held
        except BaseException:
            with self._lock:
                self._budget += nbytes if fits else 0
            raise

    def _elements_of(self, index: int) -> Elements | HeldInOrder:
        if index in self._kept or self._held[index] is not None:  # it may not be opened twice
            return HeldInOrder(self._hold(index), self._nbytes_of(index))
        return Elements(self._source_of(index), self._facts[index].header)
