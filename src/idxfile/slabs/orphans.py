"""Processes that were begun for work end with the one that began them, however that ends."""

from __future__ import annotations

import os
import threading

__all__: list[str] = []


def end_with_parent() -> None:
    """In a process that was begun for work: end when its parent does.

    The standard library's workers wait for a call for ever, if their parent is killed; whoever
    reads what they print, from a pipe that they inherited, waits with them.
    """
    from multiprocessing import parent_process
    from multiprocessing.connection import wait

    parent = parent_process()
    if parent is None:
        return

    def watch() -> None:
        wait([parent.sentinel])
        os._exit(1)

    threading.Thread(target=watch, name="idxfile-parent", daemon=True).start()
