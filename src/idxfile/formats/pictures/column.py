"""Pictures as a column: decoded when they are asked for, on all cores, in order."""

from __future__ import annotations

import math
import os
import tempfile
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Any, NamedTuple, TypeVar

import numpy as np

from ...array import DEFAULT_BLOCK_NBYTES, IdxArray, open
from ...elements import Array
from ...errors import FormatError, UnsupportedError, printable
from ...writer import create
from .choices import Choices
from .decoding import decode
from .places import Place

__all__ = ["Pictures", "in_order", "spooled"]

Job = TypeVar("Job")
Result = TypeVar("Result")

_CHUNK_NBYTES = 1 << 20
"""What one core decodes at a time, if it is not a single picture."""


def in_order(work: Callable[[Job], Result], jobs: Iterable[Job]) -> Iterator[Result]:
    """`work(job)` for every job, on all cores; results in order, no more in memory than cores.

    Threads, because decoders and zlib let others run meanwhile; processes were measured too, and
    lost what they won by carrying pictures from one to the other.
    """
    cores = os.cpu_count() or 1
    pending: deque[Future[Result]] = deque()
    pool = ThreadPoolExecutor(cores)
    try:
        for job in jobs:
            pending.append(pool.submit(work, job))
            if len(pending) > cores:
                yield pending.popleft().result()
        while pending:
            yield pending.popleft().result()
    finally:
        pool.shutdown(cancel_futures=True)


class Decoded(NamedTuple):
    """Some pictures, and what became of each file."""

    pixels: Array
    """The pictures that could be read."""
    errors: list[Exception | None]
    """For each file, why it could not."""


class Pictures:
    """Picture files of one size as a column: uint8 or int32 `(items, rows, columns[, 3])`.

    The first picture says the size of all; each is checked when it is decoded. Nothing is kept.

    Args:
        place: where the files are.
        files: their names, in order.
        choices: what is made of them.
        skip: whether pictures are left out that cannot be read (see `spooled`).

    Raises:
        FormatError, UnsupportedError: when the first picture cannot be read.
    """

    def __init__(self, place: Place, files: list[str], choices: Choices) -> None:
        self._place = place
        self._files = files
        self._choices = choices
        self.dtype: np.dtype[Any] = np.dtype(choices.dtype)
        self._model, item_shape = self._first()
        self.shape: tuple[int, ...] = (len(files), *item_shape)

    def __len__(self) -> int:
        return len(self._files)

    def __getitem__(self, key: slice) -> Array:
        """Some items, as a fresh array."""
        blocks = list(self._decoded(self._files[key], _CHUNK_NBYTES))
        return np.concatenate([np.empty((0, *self.shape[1:]), self.dtype), *blocks])

    def blocks(self, *, block_nbytes: int = DEFAULT_BLOCK_NBYTES) -> Iterator[Array]:
        """All items in order, as fresh arrays of `block_nbytes` at most, or one item."""
        return self._decoded(self._files, min(block_nbytes, _CHUNK_NBYTES))

    def readable(self) -> Iterator[Decoded]:
        """All items in order, without those that cannot be read."""
        return in_order(partial(self._chunk, skip=True), self._parts(self._files, _CHUNK_NBYTES))

    def _decoded(self, files: list[str], chunk_nbytes: int) -> Iterator[Array]:
        for part in in_order(self._chunk, self._parts(files, chunk_nbytes)):
            yield part.pixels

    def _parts(self, files: list[str], chunk_nbytes: int) -> Iterator[list[str]]:
        item_nbytes = math.prod(self.shape[1:]) * self.dtype.itemsize
        step = max(1, chunk_nbytes // item_nbytes)
        return (files[low : low + step] for low in range(0, len(files), step))

    def _chunk(self, files: list[str], skip: bool = False) -> Decoded:
        pixels = np.empty((len(files), *self.shape[1:]), self.dtype)
        errors: list[Exception | None] = []
        count = 0
        for file in files:
            try:
                picture = self._decode(file)
            except (FormatError, OSError) as error:
                if not skip:
                    raise
                errors.append(error)
                continue
            if picture.shape != self.shape[1:]:
                raise self._misfit(file, picture.shape)
            pixels[count] = picture
            errors.append(None)
            count += 1
        return Decoded(pixels[:count], errors)

    def _decode(self, file: str) -> Array:
        return decode(self._place.read(file), self._place.called(file), self._choices)

    def _first(self) -> tuple[str, tuple[int, ...]]:
        """The picture that says the size, and the shape of an item."""
        for file in self._files:
            try:
                return file, self._decode(file).shape
            except (FormatError, OSError):
                if not self._choices.skip_bad:
                    raise
        count = f"{len(self._files):,}"
        raise FormatError(f"none of {count} pictures can be read", file=self._place.name)

    def _misfit(self, file: str, shape: tuple[int, ...]) -> UnsupportedError:
        first = self.shape[1:]
        return UnsupportedError(
            f"{_size(shape)} (columns × rows), and {_size(first)} in "
            f"{printable(self._place.called(self._model))}",
            file=self._place.called(file),
            found=shape,
            expected=first,
            hint=f"resize={first[1]}x{first[0]}, crop= or pad= make all pictures one size",
        )


def _size(shape: tuple[int, ...]) -> str:
    return f"{shape[1]:,} × {shape[0]:,} pixels"


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
