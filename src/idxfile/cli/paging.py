"""A pager for what is longer than the screen. Strips are made as they are read.

Text goes through `$PAGER`, or `less`; what is drawn in pixels no pager can pass on, so that it
comes a screen at a time, and the terminal's own scrolling goes back.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from itertools import chain

import click

from ..viewer.screen import Strip

__all__ = ["print_strips"]

_RESET = "\x1b\\\x1b[0m"
"""Ends a picture that was broken off, and its colours."""
_PROMPT = "\x1b[7m space: go on, q: end \x1b[0m"


def print_strips(strips: Iterator[Strip], lines: int, *, pixels: bool, paged: bool) -> None:
    """Print strips as they come, through a pager where they are more than so many lines.

    Args:
        strips: what is printed.
        lines: those of the screen.
        pixels: whether there are pictures in them that no pager passes on.
        paged: whether a pager is wanted at all; never where the output is no terminal.
    """
    if not sys.stdout.isatty():
        _print(strips)
        return
    try:
        first, height = [], 0
        for strip in strips:
            first.append(strip)
            height += strip.height
            if height >= lines:
                break
        together = chain(first, strips)
        if height < lines or not paged:
            _print(together)
        elif pixels:
            _by_screens(together, lines)
        else:
            _through_pager(together)
    except KeyboardInterrupt:
        click.echo(_RESET, nl=False, color=True)
        raise


def _print(strips: Iterator[Strip]) -> None:
    for strip in strips:
        click.echo(strip.text, color=True)


def _pager() -> list[str]:
    """The command of the pager; nothing where there is none."""
    words = shlex.split(os.environ.get("PAGER", "less"))
    if not words or words == ["cat"] or shutil.which(words[0]) is None:
        return []
    if os.path.basename(words[0]) == "less":  # keeps the colours; leaves the text on the screen
        words += ["-R"] if "LESS" in os.environ else ["-R", "-X"]
    return words


def _through_pager(strips: Iterator[Strip]) -> None:
    command = _pager()
    if not command:
        _print(strips)
        return
    sys.stdout.flush()
    with subprocess.Popen(command, stdin=subprocess.PIPE) as pager:  # noqa: S603
        assert pager.stdin is not None  # it was asked for
        try:
            for strip in strips:
                pager.stdin.write(f"{strip.text}\n".encode(errors="backslashreplace"))
            pager.stdin.close()
        except (BrokenPipeError, KeyboardInterrupt):  # whoever reads has seen enough
            pass
        while True:
            try:
                pager.wait()
                break
            except KeyboardInterrupt:  # that one is the pager's
                continue


def _by_screens(strips: Iterator[Strip], lines: int) -> None:
    """Strips until the screen is full; a key shows the next ones."""
    free = lines - 1
    for strip in strips:
        if strip.height > free and free < lines - 1:
            if not _goes_on():
                return
            free = lines - 1
        click.echo(strip.text, color=True)
        free -= strip.height


def _goes_on() -> bool:
    """Whether whoever sits there wants more; True where nobody can be asked."""
    try:
        import termios
        import tty

        terminal = os.open("/dev/tty", os.O_RDONLY)
    except (ImportError, OSError):
        return True
    try:
        before = termios.tcgetattr(terminal)
        tty.setcbreak(terminal, termios.TCSADRAIN)  # what was typed already counts
        try:
            click.echo(_PROMPT, nl=False, color=True)
            key = os.read(terminal, 1)
        finally:
            termios.tcsetattr(terminal, termios.TCSADRAIN, before)
            click.echo("\r\x1b[2K", nl=False, color=True)
    finally:
        os.close(terminal)
    return key not in (b"q", b"Q", b"\x1b", b"\x04", b"")
