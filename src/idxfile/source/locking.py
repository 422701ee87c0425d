"""Locks that a forked process gets anew."""

from __future__ import annotations

import os
import threading
from weakref import WeakSet

__all__ = ["Lock"]


class Lock:
    """A lock of this process alone.

    A fork takes no other threads along: a lock that one of them holds would be held for ever in
    the child. There every lock is free; what it guards must bear that work has begun which nobody
    ends.
    """

    __slots__ = ("__weakref__", "_lock")

    def __init__(self) -> None:
        self._lock = threading.Lock()
        _locks.add(self)

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *exception: object) -> None:
        self._lock.release()

    def anew(self) -> None:
        """Be free, whoever held it."""
        self._lock = threading.Lock()


_locks: WeakSet[Lock] = WeakSet()


def _forked() -> None:
    for lock in _locks:
        lock.anew()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)
