"""What the shell offers for a word of a command: names out of the tables, and what lies in a place.

It is asked at every press of a key: neither NumPy nor any file is read for an answer.
"""

from __future__ import annotations

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


def word_before(context: click.Context, parameter: str) -> Any:
    """The argument that was given; click leaves it aside while a value of an option is missing."""
    return context.params.get(parameter) or next(iter(context.args), None)


def splits_there(
    context: click.Context, _: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """The splits that the names in the place say, or the usual ones where they say none."""
    place = next((word_before(context, key) for key in ("place", "place_", "src")), None)
    folder = str(place or "")
    try:
        names = os.listdir(folder if os.path.isdir(folder) else os.path.dirname(folder) or ".")
    except OSError:  # an address, or nothing
        names = []
    found = {split_of(known.shared) for known in map(file_name, names) if known is not None}
    return beginning(
        incomplete,
        ((split, "") for split in SPLIT_WORDS if split in found or not found - {None}),
    )
