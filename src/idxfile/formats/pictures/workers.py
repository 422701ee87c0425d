"""Decoding many files: on all cores, in order, and plain PNG files of one size at once.

Threads, because decoders and zlib let others run meanwhile. Pictures that are so small that a
thread ends before another has begun are not worth a process either: their files are decoded as one.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

import numpy as np

from ...elements import Array
from ...errors import FormatError, UnsupportedError, printable
from ...source.pool import Pool
from .choices import Choices
from .decoding import Plain, decode, decode_plain, plain, shaped
from .places import Place

__all__ = ["Decoded", "Task", "in_order"]

Job = TypeVar("Job")
Result = TypeVar("Result")

CORES = os.cpu_count() or 1


def in_order(work: Callable[[Job], Result], jobs: Iterable[Job]) -> Iterator[Result]:
    """`work(job)` for every job, in threads; results in order, no more in memory than cores."""
    pending: deque[Future[Result]] = deque()
    pool = Pool(CORES)
    try:
        for job in jobs:
            pending.append(pool.submit(work, job))
            if len(pending) > CORES:
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


@dataclass(frozen=True)
class Task:
    """What is to be made of files; a first one has said how large they are."""

    choices: Choices
    model: str
    """The name of that file."""
    shape: tuple[int, ...]
    """The shape of its pixels."""
    stored: tuple[int, ...] | None = None
    """The shape in the file, if it was a plain PNG."""

    @classmethod
    def like(cls, data: bytes, name: str, choices: Choices) -> Task:
        """The task that a first file sets."""
        pixels = decode(data, name, choices)
        picture = plain(data, choices)
        return cls(choices, name, pixels.shape, picture and picture.shape)

    def decode(self, place: Place, files: list[str], *, skip: bool = False) -> Decoded:
        """Read and decode some files, in order.

        Args:
            place: where they are.
            files: their names.
            skip: whether those that cannot be read are left out.

        Raises:
            FormatError, OSError: for the first that cannot be read, without `skip`.
            UnsupportedError: for the first that asks for a choice, or has another size.
        """
        pictures: list[Array | Plain] = []
        errors: list[Exception | None] = []
        for file in files:
            try:
                data = place.read(file)
                picture = plain(data, self.choices)
                if picture is not None and picture.shape == self.stored:
                    pictures.append(picture)
                else:
                    pictures.append(self._fitting(data, place.called(file)))
            except (FormatError, OSError) as error:
                if not skip:
                    raise
                errors.append(error)
            else:
                errors.append(None)
        return Decoded(self._together(pictures), errors)

    def _together(self, pictures: list[Array | Plain]) -> Array:
        """One block of pictures; those that are still in their files are decoded at once."""
        if len(pictures) == 1 and isinstance(pictures[0], np.ndarray):
            return pictures[0][None]  # it may be large: no copy
        pixels = np.empty((len(pictures), *self.shape), self.choices.dtype)
        packed = [picture for picture in pictures if isinstance(picture, Plain)]
        unpacked = iter(decode_plain(packed) if packed else ())
        for number, picture in enumerate(pictures):
            if isinstance(picture, Plain):
                pixels[number] = shaped(next(unpacked), self.choices)
            else:
                pixels[number] = picture
        return pixels

    def _fitting(self, data: bytes, name: str) -> Array:
        pixels = decode(data, name, self.choices)
        if pixels.shape == self.shape:
            return pixels
        raise UnsupportedError(
            f"{_size(pixels.shape)} (columns × rows), and {_size(self.shape)} in "
            f"{printable(self.model)}",
            file=name,
            found=pixels.shape,
            expected=self.shape,
            hint=f"--resize {self.shape[1]}x{self.shape[0]} (resize=), --crop or --pad",
        )


def _size(shape: tuple[int, ...]) -> str:
    return f"{shape[1]:,} × {shape[0]:,} pixels"
