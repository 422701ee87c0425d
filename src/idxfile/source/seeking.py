"""Ranges of a compressed file, of which only the blocks around them are inflated.

A file is made of blocks where its writer made it so: blocked gzip, whose members say how long they
are, and seekable zstd, which ends in a table. Nothing that a table says is believed: a block must
have the content that it promises, and all of them together the length that the header promises.
Where that does not hold there are no blocks, and the file is inflated from its beginning, which
tells what is wrong.
"""

from __future__ import annotations

import contextlib
import os
import sys
from array import array
from bisect import bisect_right
from collections import deque
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, Protocol

from ..errors import IdxError
from ..names import INDEX_SUFFIX
from ..problems import Problem
from .blocked import HEADER_NBYTES, inflate_member, member_nbytes
from .content import Block, ContentByRanges, UnfitError
from .frames import COUNTED_NBYTES, frame_table
from .locking import Lock
from .places import is_archive, is_far
from .threads import threads

__all__ = ["BlockedContent", "Blocks", "blocks_of"]

_BATCH_NBYTES = 1 << 22
"""So much of the compressed file is held at once."""

_PADDING_NBYTES = 1 << 16

_KEPT_NBYTES = 1 << 22
"""So much content of blocks is kept for the next range."""


class Blocks(Protocol):
    """How a file is made of blocks."""

    def find(self, position: int) -> Block:
        """The block that holds a byte of the content.

        Raises:
            UnfitError: when the file has no such block.
        """

    def inflate(self, block: Block, data: memoryview) -> bytes | None:
        """The content of a block, if it is just so long and right."""

    def judge_end(self) -> None:
        """Make sure that the blocks have all the content that there should be, and no more.

        Raises:
            UnfitError: if not.
        """


def blocks_of(outer: Any, codec: str, nbytes: int) -> Blocks | None:
    """How a compressed file is made of blocks; None where it is not, or not rightly.

    Args:
        outer: the compressed file, as a source that is asked by position.
        codec: its compression.
        nbytes: what its content should come to.
    """
    if outer.size is None:
        return None
    try:
        if codec == "zst":
            frames = frame_table(outer)
            if frames is not None:
                frames.judge(outer, nbytes)
            return frames
        if codec == "gz" and member_nbytes(outer.read_at(0, HEADER_NBYTES)):
            if not is_far(outer.name) and outer.size <= COUNTED_NBYTES:
                return GzipMembers.of_hops(outer, nbytes)  # no table is needed, nor believed
            return _of_table_beside(outer, nbytes)
    except UnfitError:
        return None
    return None


class GzipMembers:
    """The members of a blocked gzip file, found by hopping from one to the next.

    Of a file up to 1 GiB all are counted at once, and held against the length of the content. Of a
    larger one only as many headers are read as are needed: as long as every member holds as much
    as the first one, they vouch for each other; where one does not, all are counted.
    """

    def __init__(self, outer: Any, nbytes: int) -> None:
        self._outer = outer
        self._nbytes = nbytes
        self._packed = array("Q", [0])
        """Where each member begins, and where the last one known ends."""
        self._content = array("Q", [0])
        self._lock = Lock()
        self._counted = False

    @classmethod
    def of_hops(cls, outer: Any, nbytes: int) -> GzipMembers:
        """The members as they say of themselves where they lie.

        Raises:
            UnfitError: where it is plain that they do not come to the right length.
        """
        members = cls(outer, nbytes)
        if outer.size <= COUNTED_NBYTES:
            members._count_all()
        return members

    @classmethod
    def of_table(cls, outer: Any, nbytes: int, table: bytes) -> GzipMembers:
        """The members that a `.gzi` file lists, if they come to the right length.

        All but the last must hold the same, as they do where `bgzip` writes a file: where such a
        table is wrong, the members that are inflated show it.

        Raises:
            UnfitError: if they do not.
        """
        members = cls(outer, nbytes)
        count, rest = int.from_bytes(table[:8], "little"), table[8:]
        pairs = array("Q", rest[: len(rest) // 8 * 8])
        if sys.byteorder == "big":  # pragma: no cover
            pairs.byteswap()
        if len(pairs) != 2 * count:
            raise UnfitError
        members._packed.extend(pairs[::2])
        members._content.extend(pairs[1::2])
        rising = (low < high for low, high in pairwise(members._packed))
        sizes = [high - low for low, high in pairwise(members._content)]
        alike = len({*sizes[:-1]}) <= 1 and min(sizes, default=1) > 0
        if not all(rising) or not alike or members._content[-1] > nbytes:
            raise UnfitError
        members._count_all()
        return members

    def find(self, position: int) -> Block:
        """The member that holds a byte of the content."""
        with self._lock:
            while self._content[-1] <= position:
                if not self._hop():
                    raise UnfitError
                size = self._content[-1] - self._content[-2]
                if size != self._content[1] and not self._counted:
                    self._count_all()
            place = bisect_right(self._content, position) - 1
            return Block(*self._packed[place : place + 2], *self._content[place : place + 2])

    def inflate(self, block: Block, data: memoryview) -> bytes | None:
        """The content of a member, if it is just so long and its checksum holds."""
        if member_nbytes(data) != len(data):
            return None
        content = inflate_member(data)
        right = content is not None and len(content) == block.stop - block.start
        return content if right else None

    def judge_end(self) -> None:
        """Count all members."""
        with self._lock:
            self._count_all()

    def _hop(self) -> bool:
        """Go behind the next member; False at the end."""
        del self._packed[len(self._content) :]  # of a hop that was interrupted
        at = self._packed[-1]
        length = member_nbytes(self._outer.read_at(at, at + HEADER_NBYTES))
        if length is None or at + length > self._outer.size:
            return False
        size = self._outer.read_at(at + length - 4, at + length)
        self._packed.append(at + length)
        self._content.append(self._content[-1] + int.from_bytes(size, "little"))
        return True

    def _count_all(self) -> None:
        if self._counted:
            return
        while self._hop():
            pass
        end = self._packed[-1]
        rest = self._outer.read_at(end, min(self._outer.size, end + _PADDING_NBYTES))
        ended = end + len(rest) == self._outer.size and not any(rest)
        if self._content[-1] != self._nbytes or not ended:
            raise UnfitError
        self._counted = True


def _of_table_beside(outer: Any, nbytes: int) -> GzipMembers | None:
    """The members by the table beside the file; without a right one by hops, if it is near."""
    far = is_far(outer.name)
    table = (_table_afar if far else _table_beside)(outer.name + INDEX_SUFFIX, outer)
    if table is not None:
        with contextlib.suppress(UnfitError):
            return GzipMembers.of_table(outer, nbytes, table)
    return None if far else GzipMembers.of_hops(outer, nbytes)


def _table_afar(place: str, outer: Any) -> bytes | None:
    from .remote import open_remote

    if is_archive(place):
        return None
    # Whatever is wrong with it, it was only to help.
    with (
        contextlib.suppress(OSError, IdxError),
        contextlib.closing(open_remote(place, 1 << 28)) as remote,
    ):
        return remote.read_at(0, outer.size)
    return None


def _table_beside(place: str, outer: Any) -> bytes | None:
    """The index that `bgzip` writes beside a file, if there is one that is not older."""
    try:
        if os.stat(place).st_mtime_ns < os.stat(outer.name).st_mtime_ns:
            return None
        with open(place, "rb") as file:
            return file.read(outer.size)  # every member is longer than what is said of it
    except OSError:
        return None


_Place = tuple[memoryview, int, int]
"""Where something of a block goes, and from where to where it stands in the block."""


class BlockedContent(ContentByRanges):
    """The content of a file that is made of blocks, as a source."""

    ready = True
    """Whether the first range costs no more than others."""

    def __init__(self, outer: Any, codecs: tuple[str, ...], blocks: Blocks, nbytes: int) -> None:
        self.name = outer.name
        self.size = nbytes
        self.codecs = codecs
        self.problems: list[Problem] = []
        self.inflated_nbytes = 0
        """How much was inflated so far, all together."""
        self._outer = outer
        self._blocks = blocks
        self._kept: dict[int, bytes] = {}
        self._lock = Lock()

    def readinto_many(self, parts: Sequence[tuple[int, memoryview]]) -> None:
        """Fill many buffers, each from its own position, ascending; inflate each block once.

        Raises:
            UnfitError: when a block is damaged, or the blocks do not end where the content should.
        """
        if parts and parts[-1][0] + len(parts[-1][1]) >= self.size:
            self._blocks.judge_end()
        pending = iter([(start, view) for start, view in parts if len(view)])
        part = next(pending, None)
        for blocks in _batches(self._needed(parts)):
            places: list[list[_Place]] = []
            for block in blocks:
                places.append([])
                while part is not None:
                    start, view = part
                    low, high = max(start, block.start), min(start + len(view), block.stop)
                    if low < high:
                        piece = view[low - start : high - start]
                        places[-1].append((piece, low - block.start, high - block.start))
                    if start + len(view) > block.stop:
                        break
                    part = next(pending, None)
            self._fill(blocks, places)

    def close(self) -> None:
        """Let go of what is kept; the file below belongs to another."""
        self._kept.clear()

    def _needed(self, parts: Sequence[tuple[int, memoryview]]) -> Iterator[Block]:
        """The blocks that hold these ranges, ascending, each once."""
        stop = 0
        for start, view in parts:
            at = max(start, stop)
            while at < start + len(view):
                block = self._blocks.find(at)
                yield block
                at = stop = block.stop

    def _fill(self, blocks: list[Block], places: list[list[_Place]]) -> None:
        """Put what is wanted of some blocks to its places: side by side, if there are several."""
        with self._lock:
            kept = [self._kept.get(block.start) for block in blocks]
        missing = [block for block, content in zip(blocks, kept, strict=True) if content is None]
        packed = iter(self._packed(missing))
        work = [
            (block, content or next(packed), content is None, where)
            for block, content, where in zip(blocks, kept, places, strict=True)
        ]
        pool = threads() if len(missing) > 2 else None
        done = (map if pool is None else pool.map)(self._put, *zip(*work, strict=True))
        last = deque(done, maxlen=1)
        with self._lock:
            self.inflated_nbytes += sum(block.stop - block.start for block in missing)
            if missing and missing[-1] is blocks[-1]:
                self._keep(blocks[-1], last[0])

    def _put(self, block: Block, data: Any, packed: bool, places: list[_Place]) -> bytes:
        """Put the content of a block, which is still to be inflated or not, to its places."""
        content = self._content(block, data) if packed else data
        for view, low, high in places:
            view[:] = memoryview(content)[low:high]
        return content

    def _content(self, block: Block, data: memoryview) -> bytes:
        content = self._blocks.inflate(block, data)
        if content is None:
            raise UnfitError
        return content

    def _packed(self, blocks: list[Block]) -> list[memoryview]:
        """The compressed bytes of some blocks, read with their neighbours.

        They are not mapped: a file that is cut meanwhile would end this process.
        """
        runs: list[tuple[int, memoryview]] = []
        views: list[memoryview] = []
        for run in _neighbours(blocks):
            start, stop = run[0].packed_start, run[-1].packed_stop
            whole = memoryview(bytearray(stop - start))
            runs.append((start, whole))
            views += [
                whole[block.packed_start - start : block.packed_stop - start] for block in run
            ]
        if hasattr(self._outer, "readinto_many"):
            self._outer.readinto_many(runs)
        else:
            for start, whole in runs:
                self._outer.readinto_at(start, whole)
        return views

    def _keep(self, block: Block, content: bytes) -> None:
        """Keep the last block: neighbours are often asked for next."""
        if len(content) <= _KEPT_NBYTES:
            kept = sum(map(len, self._kept.values()))
            while self._kept and kept + len(content) > _KEPT_NBYTES:
                kept -= len(self._kept.pop(next(iter(self._kept))))
            self._kept[block.start] = content


def _neighbours(blocks: list[Block]) -> Iterator[list[Block]]:
    """Blocks in lists of those that lie side by side in the compressed file."""
    run: list[Block] = []
    for block in blocks:
        if run and run[-1].packed_stop != block.packed_start:
            yield run
            run = []
        run.append(block)
    if run:
        yield run


def _batches(blocks: Iterator[Block]) -> Iterator[list[Block]]:
    """Blocks in lists that are not too large to be held."""
    batch: list[Block] = []
    nbytes = 0
    for block in blocks:
        batch.append(block)
        nbytes += block.packed_stop - block.packed_start
        if nbytes >= _BATCH_NBYTES:
            yield batch
            batch, nbytes = [], 0
    if batch:
        yield batch
