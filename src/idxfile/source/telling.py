"""Long work that nobody asked for by name, and somebody waits for: how far it is.

An index is made, or all is inflated, because an item was asked for, deep below whoever asked. A
command at a terminal says with `told` whom to tell; where nobody says so, nobody is told.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

__all__ = ["Tell", "telling", "told"]

Tell = Callable[[str, int, int], None]
"""Called with what is done, how much of it, and of how much; at the end, whatever came of it, with
all."""


def _nobody(what: str, done: int, total: int) -> None:
    pass


_listener: ContextVar[Tell] = ContextVar("listener", default=_nobody)


@contextmanager
def told(tell: Tell | None) -> Iterator[None]:
    """Have somebody told of what this thread waits for, or nobody, within the `with` block."""
    token = _listener.set(tell or _nobody)
    try:
        yield
    finally:
        _listener.reset(token)


@contextmanager
def telling(what: str, total: int | None) -> Iterator[Callable[[int], None]]:
    """Tell how far the work of the `with` block is, and at its end that all is done.

    Args:
        what: what is done, in a word or two.
        total: how much there is; where that is not known, nobody is told.

    Yields:
        What is called with how much is done, in any thread.
    """
    tell = _nobody if total is None else _listener.get()
    most = total or 0
    try:
        yield lambda done: tell(what, min(done, most - 1), most)
    finally:
        tell(what, most, most)
