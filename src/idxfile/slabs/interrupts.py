"""Ctrl-C at moments when nothing of an executor is half done, here and in its processes."""

from __future__ import annotations

import math
import signal
from collections.abc import Callable, Collection, Iterator
from concurrent.futures import Future, wait
from contextlib import contextmanager
from time import monotonic
from typing import Any, TypeVar

__all__: list[str] = []

R = TypeVar("R")

_MOMENT = 0.1
"""Seconds: Ctrl-C waits for no longer than this."""

_MASKS = hasattr(signal, "pthread_sigmask")
"""Whether signals can be kept from a thread, and from what it begins."""


@contextmanager
def undisturbed() -> Iterator[None]:
    """Ctrl-C comes behind this block, which is a short one.

    In the middle of `submit` or `result` it may leave a lock of the executor taken, or one that is
    let go twice: the executor's end would then be waited for in vain, or be an error.
    """
    came: list[int] = []
    before = signal.getsignal(signal.SIGINT)
    try:
        if before is not None:  # and not of a program around Python, which could not be put back
            signal.signal(signal.SIGINT, lambda number, _: came.append(number))
    except ValueError:  # in a thread that no signal reaches
        before = None
    try:
        yield
    finally:
        if before is not None:
            signal.signal(signal.SIGINT, before)
        if came:
            signal.raise_signal(signal.SIGINT)


def result_of(future: Future[R]) -> R:
    """The result of a call, or its error, when it is done; Ctrl-C ends the waiting."""
    while True:
        with undisturbed():
            if future.done() or wait([future], _MOMENT).done:
                return future.result()


def wait_for(futures: Collection[Future[Any]], seconds: float = math.inf) -> None:
    """Wait until all are done, for so long at most; Ctrl-C ends it."""
    end = monotonic() + seconds
    while futures and monotonic() < end:
        with undisturbed():
            if not wait(futures, _MOMENT).not_done:
                return


class _Ears:
    """What a worker process has heard of Ctrl-C, which reaches all processes of a terminal."""

    heard = -math.inf
    """When it came last."""
    working = False
    """Whether a call runs, which it may end."""

    def hear(self, *_: Any) -> None:
        """End the call that runs, once; between calls nothing is to be interrupted."""
        self.heard = monotonic()
        working, self.working = self.working, False
        if working:
            raise KeyboardInterrupt


_ears = _Ears()


@contextmanager
def deaf_children() -> Iterator[None]:
    """Processes that are begun in this block, or by its threads, hear no Ctrl-C but by `listen`."""
    if not _MASKS:
        yield
        return
    from multiprocessing import resource_tracker

    resource_tracker.ensure_running()  # it lets signals in again, where it is begun
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def listen() -> None:
    """In a process that was begun for work: Ctrl-C ends calls of `interruptible`, and no more.

    What comes while such a process imports, or waits, would be a traceback on the terminal.
    """
    if signal.getsignal(signal.SIGINT) != signal.SIG_IGN:  # where nobody hears it, nor do workers
        signal.signal(signal.SIGINT, _ears.hear)
    if _MASKS:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})


def interruptible(
    since: float, function: Callable[..., R], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> R:
    """A call in a process that listens; a Ctrl-C that came after `since` ends it as well.

    Raises:
        KeyboardInterrupt: that of `since`, or one that comes meanwhile.
    """
    _ears.working = True
    try:
        if _ears.heard >= since:
            raise KeyboardInterrupt
        return function(*args, **kwargs)
    finally:
        _ears.working = False
