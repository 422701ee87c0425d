"""How columns are cut into blocks: sizes in exact integers, bounds, and regrouping."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Protocol

import numpy as np

from ..elements import Array

__all__: list[str] = []


class Sized(Protocol):
    """Anything with the shape and the dtype of an array."""

    @property
    def shape(self) -> tuple[int, ...]:
        """The dimensions, items first."""

    @property
    def dtype(self) -> np.dtype[Any]:
        """The element type."""


def item_nbytes(column: Sized) -> int:
    """The bytes of one item, exact; of a scalar, its own."""
    return math.prod(column.shape[1:]) * column.dtype.itemsize


def nbytes(column: Sized) -> int:
    """The bytes of all items, exact."""
    return math.prod(column.shape) * column.dtype.itemsize


def steps(
    shape: Sequence[int], dtype: np.dtype[Any], block_nbytes: int, align: int = 1
) -> Iterator[tuple[int, int]]:
    """The bounds of blocks of about `block_nbytes` along dimension 0; at least one item each."""
    one = math.prod(shape[1:]) * dtype.itemsize
    step = max(1, block_nbytes // max(1, one))
    step = max(align, step // align * align)
    for low in range(0, shape[0], step):
        yield low, min(low + step, shape[0])


def in_groups(blocks: Iterable[Array], count: int) -> Iterator[Array]:
    """The same items in blocks of exactly `count` items each, but for the last."""
    kept: list[Array] = []
    size = 0
    for block in blocks:
        while size + len(block) >= count:
            cut = count - size
            yield np.concatenate([*kept, block[:cut]]) if kept else block[:cut]
            kept, size, block = [], 0, block[cut:]
        if len(block):
            kept.append(block)
            size += len(block)
    if kept:
        yield kept[0] if len(kept) == 1 else np.concatenate(kept)
