"""A set of shards that many write at once: `spread_out`.

A shard is written by one of them, from front to back, so that it may be compressed, or an object
of a store. What is raw and in a folder may as well be filled by position.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Any

import numpy as np

from ..cutting import Shard, checked_target, facts_of, packing_of, place_of, plan_of, settle
from ..elements import Array, stored_pieces
from ..errors import UnsupportedError
from ..header import Header
from ..sending import committed
from ..shards import ShardFacts
from ..sink import sync_file
from ..source.places import is_url
from .filling import FileGround, lay

__all__ = ["Part", "Spread", "spread_out"]


@dataclass(frozen=True)
class Part:
    """A shard that is to be written. It pickles, and may be written twice, from any process."""

    name: str
    """What errors call it: the name of the set."""
    path: str
    """Where it is written."""
    header: Header
    packing: dict[str, Any]
    first: int
    """The number of its first item in the whole."""

    @property
    def stop(self) -> int:
        """The number behind its last item."""
        return self.first + self.header.shape[0]

    @property
    def by_position(self) -> bool:
        """Whether several may write it at once."""
        return self.packing["codec"] is None and not is_url(self.path)

    def write(self, blocks: Iterable[Array]) -> ShardFacts:
        """Write all its items, block after block."""
        count = 0
        with committed(Shard(self.path, self.header, self.packing)) as shard:
            for block in blocks:
                count += len(block)
                for piece in stored_pieces(block, self.header.stored_dtype):
                    shard.write(piece)
            if count != self.header.shape[0]:
                raise UnsupportedError(
                    f"{count:,} items came for a shard of {self.header.shape[0]:,}", file=self.name
                )
        return shard.facts(count)

    def laid(self) -> FileGround:
        """The same as a file of its whole length, to be filled by position."""
        return lay(self.path, self.name, self.header)

    def judged(self) -> ShardFacts:
        """What it is, once it was filled; made durable."""
        sync_file(self.path)
        return facts_of(self.path, self.header.shape[0])


class Spread:
    """A set of shards that is being written."""

    def __init__(self, parts: Sequence[Part]) -> None:
        self.parts = parts
        """Its shards, in order."""
        self.written: list[ShardFacts] = []
        """What each of them is; all have to be here at the end."""

    @property
    def by_position(self) -> bool:
        """Whether several may write a shard at once."""
        return all(part.by_position for part in self.parts)


@contextlib.contextmanager
def spread_out(
    file: Any,
    dtype: Any,
    shape: Sequence[int],
    *,
    shards: int | None = None,
    shard_nbytes: int | None = None,
    codec: str | None = "auto",
    blocked: bool = False,
) -> Iterator[Spread]:
    """A set of shards, to be written by many; the files have their names at the end.

    Args:
        file: the path or the address of the one file that they stand for.
        dtype: the element type.
        shape: of all items together.
        shards: how many, of equally many items as near as can be.
        shard_nbytes: or how large one may become, before it is compressed.
        codec: of each shard; "auto" goes by the name.
        blocked: gz only: many small members, for random access.

    Raises:
        UnsupportedError: for a type or a shape that IDX has not, more shards than a name can
            count, and a store that is read only.
        ValueError: for numbers that make no sense.
        FileExistsError: for another set of this name; in a store, for any.
        OSError: as the system gives it. After an exception nothing is left.
    """
    header = Header.of(np.dtype(dtype).name, tuple(shape))
    if not header.shape:
        raise UnsupportedError("a scalar has no items, and makes no shards")
    path, name = checked_target(file)
    plan = plan_of(header, header.shape[0], shards, shard_nbytes, name)
    assert isinstance(plan, list)
    packing = packing_of(path, codec, blocked)
    place = place_of(path, plan, name)
    try:
        spread = Spread(
            [
                Part(
                    name,
                    place.path_of(number),
                    Header.of(header.element.name, (high - low, *header.item_shape)),
                    packing,
                    low,
                )
                for number, (low, high) in enumerate(pairwise(accumulate(plan, initial=0)))
            ]
        )
        yield spread
        settle(place, name, header, spread.written)
    except BaseException:
        place.abandon()
        raise
