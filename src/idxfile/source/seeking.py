"""Ranges of a compressed file, of which only the blocks around them are inflated.

A file is made of blocks where its writer made it so: blocked gzip, whose members say how long they
are, and seekable zstd, which ends in a table. Nothing that a table says is believed: a block must
have the content that it promises, and all of them together the length that the header promises.
Where that does not hold there are no blocks, and the file is inflated from its beginning, which
tells what is wrong.
"""

from __future__ import annotations

import os
import struct
import sys
import threading
from array import array
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import accumulate, pairwise
from typing import Any, NamedTuple, Protocol

from ..codecs import decompressed_zstd
from ..errors import IdxError
from ..problems import Problem
from .blocked import HEADER_NBYTES, WORKERS, inflate_member, member_nbytes
from .content import ContentByRanges
from .places import is_url

__all__ = ["BlockedContent", "Blocks", "blocks_of"]

_BATCH_NBYTES = 1 << 22
"""So much of the compressed file is held at once."""

_PADDING_NBYTES = 1 << 16
COUNTED_NBYTES = 1 << 30

_KEPT_NBYTES = 1 << 22
"""So much content of blocks is kept for the next range."""


class Block(NamedTuple):
    """Where a block lies in the compressed file, and in the content."""

    packed_start: int
    packed_stop: int
    start: int
    stop: int


class UnfitError(Exception):
    """The blocks of a file are not what they should be."""


class Blocks(Protocol):
    """How a file is made of blocks."""

    def find(self, position: int) -> Block:
        """The block that holds a byte of the content.

        Raises:
            UnfitError: when the file has no such block.
        """

    def inflate(self, data: memoryview, nbytes: int) -> bytes | None:
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
            return _zstd_frames(outer, nbytes)
        if codec == "gz" and member_nbytes(outer.read_at(0, HEADER_NBYTES)):
            table = _table_beside(outer.name)
            if table is not None:
                return GzipMembers.of_table(outer, nbytes, table)
            return None if is_url(outer.name) else GzipMembers.of_hops(outer, nbytes)
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
        self._lock = threading.Lock()
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
        if not all(rising) or any(low > high for low, high in pairwise(members._content)):
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

    def inflate(self, data: memoryview, nbytes: int) -> bytes | None:
        """The content of a member, if it is just so long and its checksum holds."""
        if member_nbytes(data) != len(data):
            return None
        content = inflate_member(data)
        return content if content is not None and len(content) == nbytes else None

    def judge_end(self) -> None:
        """Count all members."""
        with self._lock:
            self._count_all()

    def _hop(self) -> bool:
        """Go behind the next member; False at the end."""
        at = self._packed[-1]
        length = member_nbytes(self._read(at, at + HEADER_NBYTES))
        if length is None or at + length > self._outer.size:
            return False
        size = self._read(at + length - 4, at + length)
        self._packed.append(at + length)
        self._content.append(self._content[-1] + int.from_bytes(size, "little"))
        return True

    def _read(self, start: int, stop: int) -> Any:
        whole = self._outer.buffer
        return self._outer.read_at(start, stop) if whole is None else whole[start:stop]

    def _count_all(self) -> None:
        if self._counted:
            return
        while self._hop():
            pass
        rest = self._read(
            self._packed[-1], min(self._outer.size, self._packed[-1] + _PADDING_NBYTES)
        )
        ended = self._packed[-1] + len(rest) == self._outer.size and not any(rest)
        if self._content[-1] != self._nbytes or not ended:
            raise UnfitError
        self._counted = True


def _table_beside(name: str) -> bytes | None:
    """The index that `bgzip` writes beside a file, if there is one that is not older."""
    place = f"{name}.gzi"
    if is_url(name):
        from .remote import open_remote

        try:
            remote = open_remote(place, 1 << 28)
        except (OSError, IdxError):
            return None
        try:
            return remote.read_at(0, 1 << 62)
        finally:
            remote.close()
    try:
        if os.stat(place).st_mtime_ns < os.stat(name).st_mtime_ns:
            return None
        with open(place, "rb") as file:
            return file.read()
    except OSError:
        return None


# Source: "Zstandard Seekable Format", zstd/contrib/seekable_format

_SEEK_TABLE_MAGIC = 0x184D2A5E
_SEEK_FOOTER = struct.Struct("<IBI")
_SEEK_FOOTER_MAGIC = 0x8F92EAB1


class ZstdFrames:
    """The frames of a seekable zstd file, from the table at its end."""

    def __init__(self, packed: list[int], content: list[int]) -> None:
        self._packed = array("Q", accumulate(packed, initial=0))
        self._content = array("Q", accumulate(content, initial=0))

    def find(self, position: int) -> Block:
        """The frame that holds a byte of the content."""
        if position >= self._content[-1]:
            raise UnfitError
        place = bisect_right(self._content, position) - 1
        return Block(*self._packed[place : place + 2], *self._content[place : place + 2])

    def inflate(self, data: memoryview, nbytes: int) -> bytes | None:
        """The content of a frame, if it is just so long and right."""
        return decompressed_zstd(data, nbytes)

    def judge_end(self) -> None:
        """The table was held against the length when it was read."""


def _zstd_frames(outer: Any, nbytes: int) -> ZstdFrames | None:
    size = outer.size
    footer = outer.read_at(max(0, size - _SEEK_FOOTER.size), size)
    if len(footer) != _SEEK_FOOTER.size:
        return None
    count, flags, magic = _SEEK_FOOTER.unpack(footer)
    width = 12 if flags & 0x80 else 8
    start = size - _SEEK_FOOTER.size - count * width - 8
    if magic != _SEEK_FOOTER_MAGIC or flags & 0x7C or start < 0:
        return None
    table = outer.read_at(start, size - _SEEK_FOOTER.size)
    if struct.unpack_from("<II", table) != (_SEEK_TABLE_MAGIC, size - start - 8):
        return None
    entries = [struct.unpack_from("<II", table, 8 + n * width) for n in range(count)]
    packed, content = [entry[0] for entry in entries], [entry[1] for entry in entries]
    if sum(packed) != start or sum(content) != nbytes:
        raise UnfitError
    return ZstdFrames(packed, content)


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
        self._lock = threading.Lock()

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
            for block, content in zip(blocks, self._contents(blocks), strict=True):
                while part is not None:
                    start, view = part
                    low, high = max(start, block.start), min(start + len(view), block.stop)
                    if low < high:
                        piece = memoryview(content)[low - block.start : high - block.start]
                        view[low - start : high - start] = piece
                    if start + len(view) > block.stop:
                        break
                    part = next(pending, None)

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

    def _contents(self, blocks: list[Block]) -> list[bytes]:
        with self._lock:
            found = {b.start: self._kept[b.start] for b in blocks if b.start in self._kept}
        missing = [block for block in blocks if block.start not in found]
        packed = self._packed(missing)
        if len(missing) > 2 and WORKERS > 1:
            with ThreadPoolExecutor(WORKERS) as pool:
                fresh = list(pool.map(self._content, missing, packed))
        else:
            fresh = list(map(self._content, missing, packed))
        found |= {block.start: content for block, content in zip(missing, fresh, strict=True)}
        with self._lock:
            self.inflated_nbytes += sum(map(len, fresh))
            if fresh:
                self._keep(missing[-1], fresh[-1])
        return [found[block.start] for block in blocks]

    def _content(self, block: Block, data: memoryview) -> bytes:
        content = self._blocks.inflate(data, block.stop - block.start)
        if content is None:
            raise UnfitError
        return content

    def _packed(self, blocks: list[Block]) -> list[memoryview]:
        """The compressed bytes of some blocks."""
        whole = self._outer.buffer
        if whole is not None:
            return [whole[block.packed_start : block.packed_stop] for block in blocks]
        views = [memoryview(bytearray(b.packed_stop - b.packed_start)) for b in blocks]
        if hasattr(self._outer, "readinto_many"):
            starts = [block.packed_start for block in blocks]
            self._outer.readinto_many(list(zip(starts, views, strict=True)))
        else:
            for block, view in zip(blocks, views, strict=True):
                self._outer.readinto_at(block.packed_start, view)
        return views

    def _keep(self, block: Block, content: bytes) -> None:
        """Keep the last block: neighbours are often asked for next."""
        if len(content) <= _KEPT_NBYTES:
            kept = sum(map(len, self._kept.values()))
            while self._kept and kept + len(content) > _KEPT_NBYTES:
                kept -= len(self._kept.pop(next(iter(self._kept))))
            self._kept[block.start] = content


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
