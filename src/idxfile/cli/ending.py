"""SIGTERM, by which batch systems, containers and `timeout` end what runs."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic
from types import FrameType

__all__: list[str] = []

_PATIENCE = 1.0
"""Seconds: who sends it again after them does not want to wait. `timeout` sends two at once."""


class Ending:
    """What came of SIGTERM."""

    came: float | None = None
    """When it came first."""

    def hear(self, number: int, frame: FrameType | None) -> None:
        """Do as for Ctrl-C, once: nothing half done is to be left."""
        if self.came is None:
            self.came = monotonic()
            interrupt = signal.getsignal(signal.SIGINT)
            if not callable(interrupt):  # in the background of a shell nobody hears Ctrl-C
                raise KeyboardInterrupt
            interrupt(signal.SIGINT, frame)
        elif monotonic() - self.came > _PATIENCE:
            self.pass_on()

    def pass_on(self) -> None:
        """End by the signal, as whoever sent it expects."""
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.raise_signal(signal.SIGTERM)


@contextmanager
def ended_tidily() -> Iterator[Ending]:
    """A command that is interrupted by SIGTERM as it is by Ctrl-C; behind it the process ends."""
    ending = Ending()
    try:
        if signal.getsignal(signal.SIGTERM) != signal.SIG_DFL:  # somebody else's
            raise ValueError
        signal.signal(signal.SIGTERM, ending.hear)
    except ValueError:  # in a thread that no signal reaches
        yield ending
        return
    try:
        yield ending
    finally:
        if ending.came is not None:
            ending.pass_on()
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
