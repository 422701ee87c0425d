"""What the shell offers for a word of a command: names out of the tables, and what lies in a place.

It is asked at every press of a key: neither NumPy nor any file is read for an answer.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable
from typing import Any

import click
from click.shell_completion import CompletionItem

from ..names import SPLIT_WORDS, file_name, split_of

__all__ = ["beginning", "splits_there"]


def beginning(incomplete: str, names: Iterable[tuple[str, str]]) -> list[CompletionItem]:
    """Those of the names that go on from what stands there.

    Args:
        incomplete: the word so far.
        names: each name, and what it is.
    """
    return [CompletionItem(name, help=what) for name, what in names if name.startswith(incomplete)]


def words_before(context: click.Context) -> list[Any]:
    """The arguments given so far; click leaves them aside while a value of an option is missing."""
    found: list[Any] = list(context.args)
    for parameter in context.command.params:
        value = context.params.get(parameter.name or "")
        if isinstance(parameter, click.Argument) and value is not None:
            found += value if isinstance(value, tuple) else [value]
    return found


def splits_there(
    context: click.Context, _: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """The splits that the names in the places say, or the usual ones where they say none."""
    found = set()
    for place in map(str, words_before(context)):
        folder = place if os.path.isdir(place) else os.path.dirname(place)
        if not folder and os.path.lexists(place):
            folder = os.curdir
        with contextlib.suppress(OSError):  # an address, or no place at all
            names = map(file_name, os.listdir(folder) if folder else ())
            found |= {split_of(known.shared) for known in names if known is not None}
    offered = found - {None} or set(SPLIT_WORDS)
    return beginning(incomplete, ((split, "") for split in SPLIT_WORDS if split in offered))
