"""Pictures as a column: decoded when they are asked for, on all cores, in order."""

from __future__ import annotations

import copy
import math
import tempfile
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from ...array import IdxArray, open
from ...elements import Array
from ...errors import FormatError
from ...lazyarray import DEFAULT_BLOCK_NBYTES
from ...writer import create
from .choices import Choices
from .places import Place
from .workers import Decoded, Task, in_order

__all__ = ["Pictures", "spooled"]

_CHUNK_NBYTES = 1 << 20
"""What one core decodes at a time, if it is not a single picture."""


class Pictures:
    """Picture files of one size as a column: uint8 or int32 `(items, rows, columns[, 3])`.

    The first picture says the size of all; each is checked when it is decoded. Nothing is kept.

    Args:
        place: where the files are.
        files: their names, in order.
        choices: what is made of them.

    Raises:
        FormatError, UnsupportedError: when the first picture cannot be read.
    """

    def __init__(self, place: Place, files: list[str], choices: Choices) -> None:
        self._place = place
        self._files = files
        self._task = self._of_first(choices)
        self.dtype: np.dtype[Any] = np.dtype(choices.dtype)
        self.shape: tuple[int, ...] = (len(files), *self._task.shape)

    def __len__(self) -> int:
        return len(self._files)

    def __getitem__(self, key: slice) -> Array:
        """Some items, as a fresh array."""
        parts = [part.pixels for part in self._decoded(self._files[key], _CHUNK_NBYTES)]
        return np.concatenate([np.empty((0, *self.shape[1:]), self.dtype), *parts])

    def part(self, low: int, high: int) -> Pictures | None:
        """The items from `low` to `high`; None of a place that must be read as a whole."""
        part = copy.copy(self)
        part._files = self._files[low:high]
        part.shape = (len(part._files), *self.shape[1:])
        place = self._place.part(part._files)
        if place is None:
            return None
        part._place = place
        return part

    def blocks(self, *, block_nbytes: int = DEFAULT_BLOCK_NBYTES) -> Iterator[Array]:
        """All items in order, as fresh arrays of `block_nbytes` at most, or one item."""
        for part in self._decoded(self._files, min(block_nbytes, _CHUNK_NBYTES)):
            yield part.pixels

    def readable(self) -> Iterator[Decoded]:
        """All items in order, without those that cannot be read."""
        return self._decoded(self._files, _CHUNK_NBYTES, skip=True)

    def _decoded(
        self, files: list[str], chunk_nbytes: int, *, skip: bool = False
    ) -> Iterator[Decoded]:
        item_nbytes = math.prod(self.shape[1:]) * self.dtype.itemsize
        step = max(1, chunk_nbytes // item_nbytes)
        parts = (files[low : low + step] for low in range(0, len(files), step))
        return in_order(lambda part: self._task.decode(self._place, part, skip=skip), parts)

    def _of_first(self, choices: Choices) -> Task:
        """The task, with the size that the first picture says."""
        for file in self._files:
            name = self._place.called(file)
            try:
                return Task.like(self._place.read(file), name, choices)
            except (FormatError, OSError):
                if not choices.skip_bad:
                    raise
        count = f"{len(self._files):,}"
        raise FormatError(f"none of {count} pictures can be read", file=self._place.name)


class Spooled(NamedTuple):
    """The pictures that can be read, and what is said of the others."""

    images: IdxArray
    kept: Array
    """For each file, whether it could be read."""
    bad: list[Exception]
    close: Callable[[], None]


def spooled(pictures: Pictures) -> Spooled:
    """Decode all pictures into an unnamed temporary file, leaving out those that cannot be read.

    How many there are must be known before the first is written: so each is decoded once, here.
    """
    file = tempfile.TemporaryFile(prefix="idxfile-")  # noqa: SIM115
    try:
        errors: list[Exception | None] = []
        with create(file, dtype=pictures.dtype, item_shape=pictures.shape[1:]) as writer:
            for part in pictures.readable():
                writer.append(part.pixels)
                errors += part.errors
        file.seek(0)
        kept = np.array([error is None for error in errors], bool)
        bad = [error for error in errors if error is not None]
        return Spooled(open(file), kept, bad, file.close)
    except BaseException:
        file.close()
        raise
