"""Slabs run: in order, on any executor, a few ahead of what was asked for."""

from __future__ import annotations

import pickle
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sized
from concurrent.futures import BrokenExecutor, Executor, Future, InvalidStateError
from contextlib import suppress
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING, Any, TypeVar

from .interrupts import interruptible, listen, result_of, undisturbed, wait_for
from .orphans import end_with_parent

if TYPE_CHECKING:
    from concurrent.futures import ProcessPoolExecutor

__all__ = ["Processes", "run"]

T = TypeVar("T")
R = TypeVar("R")

AHEAD = 64
"""Slabs handed out and not yet taken back: the driver's memory has this bound."""

_ATTEMPTS = 4

_NEVER_BEGAN = (
    " No process came to the end of any work. New ones import the file that is run: what begins "
    'the work stands there under `if __name__ == "__main__":`'
)

_PATIENCE = 60.0
"""Seconds: what runs somewhere else may have been lost with its machine."""


def run(
    function: Callable[[T], R],
    slabs: Iterable[T],
    *,
    executor: Executor | None = None,
    ahead: int | None = None,
    total: int | None = None,
) -> Iterator[R]:
    """Run a function on every slab, and give the results in the order of the slabs.

    Args:
        function: called with one slab. For processes and engines it is a function of a module, or
            a `functools.partial` of one.
        slabs: what it is called with, taken as needed.
        executor: any `concurrent.futures.Executor`: threads, `Processes`, those of the adapters for
            Dask and Ray. None runs them here, one after the other.
        ahead: how many slabs are handed to the executor beyond the one whose result is awaited;
            64 if None, or more for the many workers of Dask and Ray.
        total: how many slabs there are, where `slabs` does not tell: for an `Engine` that is told
            how far the work is.

    Yields:
        The results. Whoever stops early, or is interrupted, leaves no slab waiting; those that run
        are waited for, a while, so that nobody writes any more.

    Raises:
        Exception: what the function raised, at the place of its slab.
    """
    if executor is None:
        yield from map(function, slabs)
        return
    engine = executor if isinstance(executor, Engine) else Engine(executor)
    if ahead is None:
        ahead = engine.ahead
    if total is None and isinstance(slabs, Sized):
        total = len(slabs)
    waiting: deque[Future[R]] = deque()
    done = 0

    def next_result() -> R:
        nonlocal done
        result = result_of(waiting[0])  # while it runs, it is one of those that are waited for
        waiting.popleft()
        done += 1
        if engine.progress is not None and total is not None:
            engine.progress(done, total)
        return result

    try:
        for slab in slabs:
            with undisturbed():
                waiting.append(engine.submit(function, slab))
            if len(waiting) > ahead:
                yield next_result()
        while waiting:
            yield next_result()
    finally:
        with undisturbed():
            running = [future for future in waiting if not future.cancel()]
        wait_for(running, _PATIENCE)


class Engine(Executor):
    """An executor, and all that `run` asks of one beyond the standard library's `submit`.

    Args:
        executor: who does the work; another engine's `ahead` is taken over.
        ahead: how many slabs it is given at once, where nobody says so.
        progress: called with the slabs that are done and those there are.
    """

    def __init__(
        self,
        executor: Executor,
        *,
        ahead: int | None = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> None:
        self._executor = executor
        if ahead is None:
            ahead = executor.ahead if isinstance(executor, Engine) else AHEAD
        self.ahead: int = ahead
        self.progress = progress

    def submit(self, fn: Callable[..., R], /, *args: Any, **kwargs: Any) -> Future[R]:
        """Hand a call to the executor."""
        return self._executor.submit(fn, *args, **kwargs)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """End the executor."""
        options = {"cancel_futures": True} if cancel_futures else {}  # Dask's does not know it
        self._executor.shutdown(wait, **options)


class _Task(Future[R]):
    """A call, which may be in the hands of one pool after the other."""

    inner: Future[R] | None = None

    def cancel(self) -> bool:
        """Cancel it, unless it runs."""
        inner = self.inner
        if inner is not None and not inner.done() and not inner.cancel():
            return False
        return super().cancel()

    def give_up(self) -> None:
        """It was cancelled in the pool."""
        if super().cancel():
            self.set_running_or_notify_cancel()


def _told(future: Future[Any], error: BaseException | None) -> None:
    """Tell a future what went wrong, unless it was cancelled."""
    with suppress(InvalidStateError):
        Future.set_exception(future, error)


def _called(call: bytes) -> Any:
    """A call that arrived in a process.

    What is wrong with its arguments, as a file that was removed meanwhile, is an error of the call:
    in the hands of the standard library's worker it would end that.
    """
    fn, args, kwargs = pickle.loads(call)  # noqa: S301  of our own making
    return fn(*args, **kwargs)


def _begin() -> None:
    """The first thing that a process does."""
    end_with_parent()
    listen()


class Processes(Executor):
    """Worker processes of this machine, replaced when one is lost.

    The standard library's pool is broken for good when one of its processes dies. Slabs may be run
    twice, so that here a new pool takes over what was not finished.

    Args:
        workers: how many; None for as many as there are processors.
    """

    def __init__(self, workers: int | None = None) -> None:
        self._workers = workers
        self._lock = threading.Lock()
        self._pool = self._new()
        self._closed = False
        self._proven = False
        """Whether a process has ever come to do its work."""

    def submit(self, fn: Callable[..., R], /, *args: Any, **kwargs: Any) -> Future[R]:
        """Run a call in one of the processes; again in a new one if that was lost."""
        from multiprocessing.reduction import ForkingPickler

        result: _Task[R] = _Task()
        try:
            call = bytes(ForkingPickler.dumps((fn, args, kwargs)))
        except Exception as error:  # as the standard library's pool tells it
            result.set_exception(error)
            return result
        self._attempt(result, _ATTEMPTS, _called, (call,), {})
        return result

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """End the processes."""
        with self._lock:
            self._closed = True
            pool = self._pool
        pool.shutdown(wait, cancel_futures=cancel_futures)

    def _new(self) -> ProcessPoolExecutor:
        import multiprocessing
        from concurrent.futures import ProcessPoolExecutor

        if getattr(multiprocessing.current_process(), "_inheriting", False):
            raise SystemExit(1)  # a worker that imports what began it; `_again` tells the user
        # Forked children would inherit the locks of threads that do not live in them.
        ways = multiprocessing.get_all_start_methods()
        way = "forkserver" if "forkserver" in ways else "spawn"
        context = multiprocessing.get_context(way)
        return ProcessPoolExecutor(self._workers, context, initializer=_begin)

    def _attempt(
        self, result: _Task[R], attempts: int, fn: Callable[..., R], args: Any, kwargs: Any
    ) -> None:
        with self._lock:
            pool = self._pool
        try:
            inner = pool.submit(interruptible, monotonic(), fn, args, kwargs)
            result.inner = inner
        except RuntimeError as error:  # it is broken, or was shut down meanwhile
            self._again(error, pool, result, attempts, fn, args, kwargs)
            return

        # A pool that breaks tells all that it had, and would stop at one that was cancelled.
        inner.set_exception = partial(_told, inner)  # type: ignore[method-assign]

        def arrived(done: Future[R]) -> None:
            if done.cancelled() or result.cancelled():  # nobody wants it any more
                result.give_up()
                return
            error = done.exception()
            self._proven = self._proven or not isinstance(error, BrokenExecutor)
            if isinstance(error, BrokenExecutor):
                self._again(error, pool, result, attempts, fn, args, kwargs)
            elif result.set_running_or_notify_cancel():
                if error is None:
                    result.set_result(done.result())
                else:
                    result.set_exception(error)

        inner.add_done_callback(arrived)

    def _again(
        self,
        error: BaseException,
        broken: ProcessPoolExecutor,
        result: _Task[R],
        left: int,
        *call: Any,
    ) -> None:
        with self._lock:
            if self._pool is broken and not self._closed:
                self._pool = self._new()
            over = self._closed or left <= 1
        if not over:
            self._attempt(result, left - 1, *call)
        elif result.set_running_or_notify_cancel():
            if not (self._proven or self._closed):
                error = BrokenExecutor(f"{error}{_NEVER_BEGAN}")
            result.set_exception(error)
