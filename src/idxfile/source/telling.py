"""Long work that nobody asked for by name, and somebody waits for: how far it is.

An index is made because an item was asked for, deep below whoever asked. A command at a terminal
says with `told` whom to tell; where nobody says so, nobody is told.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

__all__ = ["Tell", "listener", "told"]

Tell = Callable[[int, int], None]
"""Called with how much is done, and of how much; at the end, whatever came of it, with all."""

_listener: ContextVar[Tell | None] = ContextVar("listener", default=None)


@contextmanager
def told(tell: Tell | None) -> Iterator[None]:
    """Have somebody told of what this thread waits for, as long as the `with` block lasts."""
    token = _listener.set(tell)
    try:
        yield
    finally:
        _listener.reset(token)


def listener() -> Tell | None:
    """Who is to be told, if anybody."""
    return _listener.get()
