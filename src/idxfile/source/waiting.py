"""Tasks that wait for something, a store or a disk, side by side in threads of their own.

Those of `threads` are for what computes, and are as many as processors.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable
from itertools import islice
from threading import Thread
from time import monotonic
from typing import Generic, TypeVar

__all__ = ["AT_ONCE", "done_ahead", "done_together"]

T = TypeVar("T")
R = TypeVar("R")

AT_ONCE = 6

_MOMENT = 1.0
"""Seconds."""


class _Doing(Thread, Generic[T, R]):
    """A task, in a thread of its own, for which nobody waits who was interrupted.

    Where no thread can be begun, as at the end of a program, it is done here.
    """

    def __init__(self, work: Callable[[T], R], task: T) -> None:
        super().__init__(name="idxfile-waiting", daemon=True)
        self._work = work
        self._task = task
        self._results: list[R] = []
        self._error: BaseException | None = None
        try:
            self.start()
        except RuntimeError:
            self.run()

    def run(self) -> None:
        """Do it."""
        try:
            self._results.append(self._work(self._task))
        except BaseException as error:  # it is raised by whoever wants the result
            self._error = error

    def wait(self, seconds: float | None = None) -> None:
        """Return when it is done, or after so long."""
        if self.ident is not None:
            self.join(seconds)

    def result(self) -> R:
        """What came of it, when it is done."""
        self.wait()
        if self._error is not None:
            raise self._error
        return self._results.pop()


def done_ahead(
    work: Callable[[T], R], tasks: Iterable[T], most: int = AT_ONCE, first: int = 2
) -> Generator[R, None, None]:
    """What comes of each task, in order, while the next ones are being done in threads.

    Nothing is begun before the first result is wanted. When the last one is given out, or one is
    an error, no thread is left: what is being done then is waited for. A store may be silent for
    minutes, so that Ctrl-C waits for nothing, and whoever closes the iterator for a moment: that
    may be because of Ctrl-C, too.

    Args:
        work: called with one task, in any thread.
        tasks: taken as needed.
        most: how many are done at once.
        first: how many at the beginning; with each result there is one more.
    """
    left, doing, at_once = iter(tasks), deque[_Doing[T, R]](), first
    try:
        doing.extend(_Doing(work, task) for task in islice(left, at_once))
        while doing:
            result = doing.popleft().result()
            at_once = min(at_once + 1, most)
            doing.extend(_Doing(work, task) for task in islice(left, at_once - len(doing)))
            yield result
    except KeyboardInterrupt:
        doing.clear()
        raise
    except GeneratorExit:
        end = monotonic() + _MOMENT
        while doing:
            doing.popleft().wait(max(0.0, end - monotonic()))
        raise
    finally:
        for each in doing:
            each.wait()


def done_together(work: Callable[[T], R], tasks: Iterable[T], most: int) -> list[R]:
    """What comes of all tasks, so many of which are done at once; see `done_ahead`."""
    return list(done_ahead(work, tasks, most, most))
