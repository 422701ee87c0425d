"""`idx head`: items as numbers."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import click

from ..array import open, open_whole_items
from .terms import file_argument, json_option, place, print_json


@click.command("head")
@file_argument
@click.option(
    "-n", "count", type=click.IntRange(0), default=5, show_default=True, help="How many items."
)
@click.option(
    "--allow-partial", is_flag=True, help="Of a file that was cut, take the items that are whole."
)
@json_option
def head_command(file: str, count: int, allow_partial: bool, as_json: bool) -> None:
    """Print the first items of FILE as numbers, one row of the last dimension a line."""
    import numpy as np

    opener = open_whole_items if allow_partial else open
    with opener(place(file)) as array:
        picked = np.asarray(array[:count] if array.ndim else array[()])
        if as_json:
            facts = {"dtype": str(array.dtype), "shape": list(array.shape)}
            print_json({**facts, "items": picked.tolist()})
            return
        of = f", the first {len(picked):,}" if array.ndim and len(picked) < len(array) else ""
        click.echo(f"{array.header}{of}", err=True)
        lines = _lines(picked)
        while some := list(itertools.islice(lines, 1000)):
            click.echo("\n".join(some))


def _lines(items: Any) -> Iterator[str]:
    """Items as lines of numbers: a line for each row, an empty line between items."""
    if items.ndim < 2:
        yield from map(_text, items.reshape(-1))
        return
    width = _width(items)
    for number, item in enumerate(items):
        if number and items.ndim > 2:
            yield ""
        for row in item.reshape(-1, items.shape[-1]) if item.size else ():
            yield " ".join(_text(value).rjust(width) for value in row)


def _width(items: Any) -> int:
    """The characters of the longest number, by the extremes and the first few of them."""
    if not items.size:
        return 0
    few = [items.min(), items.max(), *items.reshape(-1)[:1000]]
    return max(len(_text(value)) for value in few)


def _text(value: Any) -> str:
    return str(value.item()) if value.dtype.kind in "iu" else str(value)
