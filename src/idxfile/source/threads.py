"""The threads of this process that inflate and count side by side, one set for all of it.

What they do must let go of the interpreter for most of its time, as decoders and NumPy do. A thread
of the set that would hand out work does it itself, so that none waits for another.
"""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING

from .locking import Lock

if TYPE_CHECKING:
    from .pool import Pool

__all__ = ["WORKERS", "threads"]


def _processors() -> int:
    """The processors that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1  # pragma: no cover


WORKERS = min(8, _processors())
"""Beyond, they would wait for the interpreter."""

_PIECES_NBYTES = 1 << 22
"""The C library gives memory back to the system at once, and takes it anew for each piece, until a
larger piece than this came and went: from then on it keeps so much at hand for every thread."""

_lock = Lock()
_pool: Pool | None = None
_process = 0
_own = threading.local()


def threads() -> Pool | None:
    """The threads; None where they are no help: on one processor, and to one of them."""
    global _pool, _process
    if WORKERS == 1 or getattr(_own, "is_worker", False):
        return None
    with _lock:
        if _pool is None or _process != os.getpid():  # threads do not come along with a fork
            from .pool import Pool

            _pool = Pool(WORKERS, "idxfile", _begin)
            _process = os.getpid()
            bytearray(_PIECES_NBYTES)
        return _pool


def _begin() -> None:
    _own.is_worker = True
