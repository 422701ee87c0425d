"""Decoding and encoding on all cores: threads, and processes for many small pictures.

Decoders and zlib let other threads run meanwhile, which is all that large pictures need. A small
one is done before another thread has begun: there, processes of our own decode what this one reads,
and nothing but file contents and pixels goes to and fro. They are started as programs, not as
forks, and not by `multiprocessing`, which would run the main module of the user again.
"""

from __future__ import annotations

import os
import pickle
import queue
import signal
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

import numpy as np

from ...elements import Array
from ...errors import FormatError, UnsupportedError, printable
from .choices import Choices
from .decoding import decode, get_limits, set_limits

__all__ = ["Decoded", "Task", "Workers", "in_order"]

Job = TypeVar("Job")
Result = TypeVar("Result")
Files = list[tuple[str, bytes | Exception]]
"""Names, as errors show them, and contents, or why they could not be read."""

CORES = os.cpu_count() or 1


def in_order(work: Callable[[Job], Result], jobs: Iterable[Job]) -> Iterator[Result]:
    """`work(job)` for every job, in threads; results in order, no more in memory than cores."""
    pending: deque[Future[Result]] = deque()
    pool = ThreadPoolExecutor(CORES)
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
    """What is to be done with files."""

    choices: Choices
    shape: tuple[int, ...]
    """The shape that every picture must have."""
    model: str
    """The picture that has said so."""
    skip: bool = False
    """Whether pictures that cannot be read are left out."""

    def decode(self, files: Files) -> Decoded:
        """Decode files, in order.

        Raises:
            FormatError, OSError: for the first that cannot be read, without `skip`.
            UnsupportedError: for the first that asks for a choice, or has another size.
        """
        pixels = np.empty((len(files), *self.shape), self.choices.dtype)
        errors: list[Exception | None] = []
        count = 0
        for name, content in files:
            try:
                if isinstance(content, Exception):
                    raise content
                picture = decode(content, name, self.choices)
            except (FormatError, OSError) as error:
                if not self.skip:
                    raise
                errors.append(error)
                continue
            if picture.shape != self.shape:
                raise self._misfit(name, picture.shape)
            pixels[count] = picture
            errors.append(None)
            count += 1
        return Decoded(pixels[:count], errors)

    def _misfit(self, name: str, shape: tuple[int, ...]) -> UnsupportedError:
        return UnsupportedError(
            f"{_size(shape)} (columns × rows), and {_size(self.shape)} in {printable(self.model)}",
            file=name,
            found=shape,
            expected=self.shape,
            hint=f"resize={self.shape[1]}x{self.shape[0]}, crop= or pad= make pictures one size",
        )


def _size(shape: tuple[int, ...]) -> str:
    return f"{shape[1]:,} × {shape[0]:,} pixels"


# Processes

_PROGRAM = "from idxfile.formats.pictures.workers import serve; serve()"


class Workers:
    """Processes that do a task; any number of threads may hand them files."""

    def __init__(self, task: Task) -> None:
        self._idle: queue.SimpleQueue[subprocess.Popen[bytes]] = queue.SimpleQueue()
        self._all: list[subprocess.Popen[bytes]] = []
        path = os.pathsep.join(filter(None, sys.path))
        try:
            for _ in range(CORES):
                worker = subprocess.Popen(
                    [sys.executable, "-W", "ignore", "-c", _PROGRAM],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    env={**os.environ, "PYTHONPATH": path},
                )
                self._all.append(worker)
                self._idle.put(worker)
                _send(worker.stdin, (task, get_limits()))
        except BaseException:
            self.close()
            raise

    @staticmethod
    def possible() -> bool:
        """Whether this is a Python that can be started again."""
        return bool(sys.executable) and not getattr(sys, "frozen", False) and CORES > 1

    def decode(self, files: Files) -> Decoded:
        """What `Task.decode` gives or raises, from another process."""
        worker = self._idle.get()
        try:
            _send(worker.stdin, files)
            result = pickle.load(worker.stdout)  # type: ignore[arg-type]  # noqa: S301
        except (EOFError, BrokenPipeError, pickle.UnpicklingError) as error:
            code = worker.wait()
            raise RuntimeError(f"a process that decodes pictures ended with {code}") from error
        finally:
            self._idle.put(worker)
        if isinstance(result, Exception):
            raise result
        assert isinstance(result, Decoded)
        return result

    def close(self) -> None:
        """End the processes."""
        for worker in self._all:
            worker.kill()
            worker.communicate()


def _send(file: Any, message: Any) -> None:
    pickle.dump(message, file, pickle.HIGHEST_PROTOCOL)
    file.flush()


def serve() -> None:
    """Be one of the processes: a task, then files and pixels by turns, until nothing comes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # whoever started this ends it
    source, target = sys.stdin.buffer, sys.stdout.buffer
    task, limits = pickle.load(source)  # noqa: S301
    set_limits(limits)
    while True:
        try:
            files = pickle.load(source)  # noqa: S301
        except EOFError:
            return
        try:
            result: Decoded | Exception = task.decode(files)
        except Exception as error:
            result = error
        _send(target, result)
