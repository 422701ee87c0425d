"""Many small ranges as few requests.

A request costs a way to the store and back, whatever it asks for: some megabytes could have come
in that time. So what lies near is fetched with what lies between, within bounds.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

__all__ = ["Part", "plan"]

Part = tuple[int, memoryview]
"""A position, and the memory that is filled from there on."""

NEAR_NBYTES = 1 << 18
"""Up to here reading on is always cheaper than asking again: 256 KiB."""

FAR_NBYTES = 1 << 21
"""Up to here it is read over while there are more requests than run at once: 2 MiB."""

FEW = 6

LONGEST_NBYTES = 1 << 24
"""A request that fetches several parts is no longer, since all of it is held: 16 MiB."""

PIECE_NBYTES = 1 << 23
"""A long part is fetched in pieces of this size, side by side: 8 MiB."""


def plan(parts: Sequence[Part]) -> list[list[Part]]:
    """Group ascending parts into requests.

    Returns:
        For each request the parts that it covers, from the first one's start to the last one's
        end. A long part stands in requests of its own.
    """
    pieces = [piece for part in parts for piece in _cut(*part)]
    gaps = [after[0] - before[0] - len(before[1]) for before, after in pairwise(pieces)]
    bound = _bridged(gaps)
    requests: list[list[Part]] = []
    for place, piece in enumerate(pieces):
        if place and gaps[place - 1] <= bound and _go_together(requests[-1], piece):
            requests[-1].append(piece)
        else:
            requests.append([piece])
    return requests


def _go_together(request: list[Part], piece: Part) -> bool:
    """Whether a piece may join a request: a long one comes straight into its own memory."""
    length = piece[0] + len(piece[1]) - request[0][0]
    return length <= LONGEST_NBYTES and not _is_long(piece) and not _is_long(request[-1])


def _bridged(gaps: list[int]) -> int:
    """Gaps up to this size are read over."""
    wide = sorted(gap for gap in gaps if gap > NEAR_NBYTES)
    spare = len(wide) + 1 - FEW
    if spare <= 0:
        return NEAR_NBYTES
    return min(FAR_NBYTES, wide[spare - 1])


def _cut(start: int, view: memoryview) -> list[Part]:
    return [(start + at, view[at : at + PIECE_NBYTES]) for at in range(0, len(view), PIECE_NBYTES)]


def _is_long(part: Part) -> bool:
    return len(part[1]) >= PIECE_NBYTES // 2
