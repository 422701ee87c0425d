"""What the terminal can show: the environment tells, or the terminal itself is asked.

It is asked for a picture of one pixel in kitty's protocol, for the size of a cell, and for its
attributes. Every terminal answers the last one, and in order: with that answer all are there. The
time to wait is short, and nothing is echoed meanwhile. Sources: kitty's "Terminal graphics
protocol", "Querying support"; xterm's "Control Sequences", `CSI c` and `CSI 16 t`.
"""

from __future__ import annotations

import os
import re
import select
import sys
import time
from collections.abc import Mapping
from typing import NamedTuple

from ..viewer.screen import CELL, graphics_mode, pixel_mode, within_multiplexer

__all__ = ["Abilities", "abilities"]

_SECONDS = 0.5
"""How long an answer may take: that of a terminal beside us takes milliseconds."""

_KITTY = b"\x1b_Gi=31,s=1,v=1,a=q,t=d,f=24;AAAA\x1b\\"
_CELL = b"\x1b[16t"
_ATTRIBUTES = b"\x1b[c"

_KITTY_YES = re.compile(rb"\x1b_Gi=31;OK\x1b\\")
_CELL_SIZE = re.compile(rb"\x1b\[6;(\d{1,4});(\d{1,4})t")
_ATTRIBUTES_ARE = re.compile(rb"\x1b\[\?([\d;]*)c")
_SIXEL = b"4"


class Abilities(NamedTuple):
    """How to draw, and on cells of which size."""

    graphics: str
    """A key of MODES."""
    cell: tuple[int, int]


def abilities(environ: Mapping[str, str], wanted: str = "auto") -> Abilities:
    """How to draw on standard output.

    Args:
        environ: the environment variables.
        wanted: a key of MODES, or "auto": what the environment says, and where it says nothing of
            pixels, what the terminal answers.
    """
    isatty = sys.stdout.isatty()
    graphics = graphics_mode(environ, isatty) if wanted == "auto" else wanted
    coloured = graphics in ("truecolour", "256")
    answer = b""
    if wanted == "auto" and coloured and pixel_mode(environ) is None:
        answer = _answer(_question(environ))
        attributes = _ATTRIBUTES_ARE.search(answer)
        if _KITTY_YES.search(answer):
            graphics = "kitty"
        elif attributes and _SIXEL in attributes[1].split(b";")[1:]:
            graphics = "sixel"
    told = _CELL_SIZE.search(answer)
    cell = (int(told[2]), int(told[1])) if told else _cell_of_window() if isatty else CELL
    return Abilities(graphics, cell if min(cell) > 0 else CELL)


def _question(environ: Mapping[str, str]) -> bytes:
    """What this terminal may be asked; nothing of one that would print it.

    tmux and screen take kitty's question for a new title of the window.
    """
    if environ.get("TERM", "") in ("", "dumb", "linux", "cons25", "vt52"):
        return b""
    kitty = b"" if within_multiplexer(environ) else _KITTY
    return kitty + _CELL + _ATTRIBUTES


def _answer(question: bytes) -> bytes:
    """What the terminal answers in time; nothing where nobody is there to be asked.

    Nothing is asked where somebody has typed ahead, or this process stands in the background.
    """
    try:
        import termios
        import tty

        near, far = sys.stdin.fileno(), sys.stdout.fileno()
        if not question or not (os.isatty(near) and os.isatty(far)):
            return b""
        if os.tcgetpgrp(near) != os.getpgrp() or select.select([near], [], [], 0)[0]:
            return b""
        before = termios.tcgetattr(near)
    except (ImportError, AttributeError, OSError, ValueError):
        return b""
    answer, end = b"", time.monotonic() + _SECONDS
    restore = termios.TCSAFLUSH  # what comes too late is thrown away
    try:
        tty.setcbreak(near, termios.TCSADRAIN)
        os.write(far, question)
        while (left := end - time.monotonic()) > 0 and select.select([near], [], [], left)[0]:
            answer += os.read(near, 1 << 10)
            if _ATTRIBUTES_ARE.search(answer):
                restore = termios.TCSADRAIN
                break
    except OSError:
        pass
    finally:
        termios.tcsetattr(near, restore, before)
    return answer


def _cell_of_window() -> tuple[int, int]:
    """The pixels of a cell as the system tells them, or (0, 0)."""
    try:
        import fcntl
        import struct
        import termios

        size = fcntl.ioctl(sys.stdout.fileno(), termios.TIOCGWINSZ, bytes(8))
        lines, columns, wide, high = struct.unpack("4H", size)
        return wide // max(1, columns), high // max(1, lines)
    except (ImportError, AttributeError, OSError, ValueError):
        return 0, 0
