"""Threads that take work, where what no thread takes is done by whoever hands it out.

A program that ends begins no more threads, and takes no more work for those that it has; a system
that is short of them refuses. One thread can do everything as well.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

__all__ = ["Pool"]

R = TypeVar("R")


class Pool(ThreadPoolExecutor):
    """The standard library's pool, whose `submit` does not fail."""

    def submit(self, fn: Callable[..., R], /, *args: Any, **kwargs: Any) -> Future[R]:
        """Have a call made by a thread; or here, where there is none for it."""
        future: Future[R] = Future()
        # What was refused may lie in the queue all the same: whoever comes first does it.
        first = threading.Lock()

        def work() -> None:
            if not first.acquire(blocking=False) or not future.set_running_or_notify_cancel():
                return
            try:
                result = fn(*args, **kwargs)
            except BaseException as error:  # it is raised by whoever wants the result
                future.set_exception(error)
            else:
                future.set_result(result)

        try:
            handed = super().submit(work)
        except RuntimeError:
            work()
        else:
            handed.add_done_callback(lambda done: done.cancelled() and future.cancel())
        return future
