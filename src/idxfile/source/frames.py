"""Zstandard's frames: where each ends, what it says of itself, and the table of seekable files.

Sources: RFC 8878; "Zstandard Seekable Format", zstd/contrib/seekable_format.
"""

from __future__ import annotations

import struct
from array import array
from bisect import bisect_right
from collections.abc import Callable
from functools import partial
from itertools import accumulate, pairwise
from typing import Any, NamedTuple

from ..codecs import Codec, ZstdDecoder, decompressed_zstd, xxh64
from ..problems import Problem
from .content import Block, UnfitError
from .places import is_far
from .sidebyside import SideBySide

__all__ = ["FrameTable", "FramesInflater", "frame_table"]

_MAGIC = 0xFD2FB528
_SKIPPABLE_MAGIC, _SKIPPABLE_MASK = 0x184D2A50, 0xFFFFFFF0
_WORD = struct.Struct("<I")
_LENGTHS = struct.Struct("<II")
_HEADER_NBYTES = 18
_BLOCK_NBYTES = 1 << 17
"""No block holds more."""

_TABLE_MAGIC = 0x184D2A5E
_FOOTER = struct.Struct("<IBI")
_FOOTER_MAGIC = 0x8F92EAB1

COUNTED_NBYTES = 1 << 30
"""A table of a larger file is not held against all frames."""


class Frame(NamedTuple):
    """What a frame says of itself."""

    packed_nbytes: int
    """How long it is; of one that is not there whole, what is known to belong to it."""
    nbytes: int | None
    """Its content; None where it does not say."""
    most_nbytes: int
    """No more content can be in the blocks that were seen."""
    checked: bool
    """Whether it holds a checksum of its content."""


def frame_at(read: Callable[[int, int], Any], at: int, stop: int) -> Frame | None:
    """What the frame says of itself that begins here; None where there is none.

    Args:
        read: gives the bytes from one position to another.
        at: where it begins.
        stop: where the bytes end.
    """
    head = bytes(read(at, min(at + _HEADER_NBYTES, stop)))
    if len(head) < 9:
        return Frame(9, None, 0, False)  # no frame is shorter
    (magic,) = _WORD.unpack_from(head)
    if magic & _SKIPPABLE_MASK == _SKIPPABLE_MAGIC:
        return Frame(8 + _WORD.unpack_from(head, 4)[0], 0, 0, False)
    flags = head[4]
    if magic != _MAGIC or flags & 0x08:
        return None
    single, checked = flags >> 5 & 1, bool(flags & 4)
    place = 6 - single + (0, 1, 2, 4)[flags & 3]
    width = (single, 2, 4, 8)[flags >> 6]
    nbytes = None
    if width:
        nbytes = int.from_bytes(head[place : place + width], "little") + 256 * (width == 2)
    place += at + width
    most = 0
    while place + 3 <= stop:
        block = int.from_bytes(read(place, place + 3), "little")
        kind, size = block >> 1 & 3, block >> 3
        if kind == 3:
            return None
        place += 3 + (1 if kind == 1 else size)
        most += _BLOCK_NBYTES if kind == 2 else size
        if block & 1:
            return Frame(place + 4 * checked - at, nbytes, most, checked)
    return Frame(max(place, stop) + 1 - at, nbytes, most, checked)


class FrameTable:
    """The frames of a seekable file, as the table at its end has them."""

    def __init__(self, packed: list[int], content: list[int], checksums: list[int]) -> None:
        self._packed = array("Q", accumulate(packed, initial=0))
        self._content = array("Q", accumulate(content, initial=0))
        self._checksums = array("L", checksums)

    def judge(self, outer: Any, nbytes: int) -> None:
        """Hold it against the frames themselves, as far as that is cheap.

        Of a local file up to 1 GiB each frame must lie where it says, and have the content that it
        says. Where frames do not say, or are not looked at, all but the last must be alike: where
        such a table is wrong, every frame that is inflated shows it.

        Args:
            outer: the compressed file.
            nbytes: what its content should come to.

        Raises:
            UnfitError: where it does not fit.
        """
        if self._content[-1] != nbytes:
            raise UnfitError
        sizes = [high - low for low, high in pairwise(self._content)]
        alike = len({*sizes[:-1]}) <= 1 and sizes[-1:] <= sizes[:1]
        if is_far(outer.name) or outer.size > COUNTED_NBYTES:
            if not alike:
                raise UnfitError
            return
        for (start, stop), size in zip(pairwise(self._packed), sizes, strict=True):
            frame = frame_at(outer.read_at, start, stop)
            if frame is None or frame.packed_nbytes != stop - start:
                raise UnfitError
            if frame.nbytes != size and not (frame.nbytes is None and alike):
                raise UnfitError

    def find(self, position: int) -> Block:
        """The frame that holds a byte of the content."""
        if position >= self._content[-1]:
            raise UnfitError
        place = bisect_right(self._content, position) - 1
        return Block(*self._packed[place : place + 2], *self._content[place : place + 2])

    def inflate(self, block: Block, data: memoryview) -> bytes | None:
        """The content of a frame, if it is just so long and right."""
        content = decompressed_zstd(data, block.stop - block.start)
        if content is None or len(content) != block.stop - block.start:
            return None
        return content if self.agrees(content, block.packed_start) else None

    def judge_end(self) -> None:
        """It was held against the length when it was read."""

    def nbytes_at(self, at: int) -> int | None:
        """The content of the frame that begins there in the file; None where there is none."""
        place = self._place_at(at)
        return None if place is None else self._content[place + 1] - self._content[place]

    @property
    def end(self) -> int:
        """Where the last frame ends in the file."""
        return self._packed[-1]

    def checksum_at(self, at: int) -> int | None:
        """The checksum of the frame that begins there in the file; None where there is none."""
        place = self._place_at(at) if self._checksums else None
        return None if place is None else self._checksums[place]

    def _place_at(self, at: int) -> int | None:
        """Which frame begins there in the file."""
        place = bisect_right(self._packed, at) - 1
        return place if place + 1 < len(self._packed) and self._packed[place] == at else None

    def agrees(self, content: bytes, at: int) -> bool:
        """Whether it has no other checksum for the frame that begins there in the file."""
        expected = self.checksum_at(at)
        found = None if expected is None else xxh64(content)
        return found is None or found == expected


def frame_table(outer: Any) -> FrameTable | None:
    """The table at the end of a seekable file, not yet judged; None where there is none."""
    size = outer.size or 0
    footer = outer.read_at(max(0, size - _FOOTER.size), size)
    if len(footer) != _FOOTER.size:
        return None
    count, flags, magic = _FOOTER.unpack(footer)
    entry = struct.Struct("<III" if flags & 0x80 else "<II")
    start = size - _FOOTER.size - count * entry.size - 8
    if magic != _FOOTER_MAGIC or flags & 0x7C or start < 0:
        return None
    table = outer.read_at(start, size - _FOOTER.size)
    if len(table) < 8 or _LENGTHS.unpack_from(table) != (_TABLE_MAGIC, size - start - 8):
        return None
    entries = list(entry.iter_unpack(table[8:]))
    packed, content = [entry[0] for entry in entries], [entry[1] for entry in entries]
    if sum(packed) != start:
        return None
    return FrameTable(packed, content, [entry[2] for entry in entries if len(entry) > 2])


class FramesInflater(SideBySide):
    """Inflates frames side by side, and holds them against the checksums of a table.

    Args:
        codec: the row of CODECS.
        read: as of an `Inflater`.
        table: of a seekable file.
    """

    most_nbytes = 1 << 21
    _most_content = 1 << 23

    def __init__(
        self, codec: Codec, read: Callable[[int], bytes], table: FrameTable | None = None
    ) -> None:
        super().__init__(codec, read)
        self._table = table
        self._unlisted: int | None = None
        """Where the first frame stands that is not as the table has it."""

    @property
    def seekable(self) -> bool:
        """Whether a table was found that tells where each frame is."""
        return self._table is not None

    @classmethod
    def span(cls, data: Any, at: int) -> int | None:
        """What its blocks come to, unless their content is too much to be held."""
        frame = _frame_in(data, at, len(data))
        if frame is None:
            return None
        content = frame.most_nbytes if frame.nbytes is None else frame.nbytes
        return frame.packed_nbytes if content <= cls._most_content else None

    @staticmethod
    def promised(data: Any, start: int, stop: int) -> int | None:
        """The content that its header promises."""
        frame = _frame_in(data, start, stop)
        return None if frame is None else frame.nbytes

    def inflated(self, data: memoryview, at: int) -> bytes | None:
        """The content, if it is as long as promised, and right."""
        frame = _frame_in(data, 0, len(data))
        if frame is None or frame.packed_nbytes != len(data):
            return None
        most = frame.most_nbytes if frame.nbytes is None else frame.nbytes
        content = decompressed_zstd(data, most) if most or frame.most_nbytes else b""
        if content is None or frame.nbytes not in (None, len(content)):
            return None
        if frame.checked or self._table is None or self._table.agrees(content, at):
            self._judge_table(at, len(content))
            return content
        return None

    def _begin_member(self) -> bool:
        begun = super()._begin_member()
        if self._table is None:
            return begun
        at, decoder = self._consumed, self._decoder
        if begun:
            assert isinstance(decoder, ZstdDecoder)
            decoder.checksum = self._table.checksum_at(at)
            decoder.ended = partial(self._judge_table, at)
        elif self._unlisted is not None:
            self.problems.append(_unlike(self._unlisted))
        return begun

    def _judge_table(self, at: int, nbytes: int) -> None:
        """Remember the first frame that the table does not have so."""
        table = self._table
        if table is not None and at < table.end and table.nbytes_at(at) != nbytes:
            self._unlisted = at if self._unlisted is None else min(at, self._unlisted)


def _unlike(at: int) -> Problem:
    return Problem(
        "seek-table",
        f"the table at the end of the zst stream does not have the frame at byte {at:,} as it is",
        offset=at,
        hint="it is not used here, but other readers may believe it: compress the file anew",
    )


def _frame_in(data: Any, at: int, stop: int) -> Frame | None:
    return frame_at(lambda start, end: data[start:end], at, stop)
