"""`idx head`: items as numbers."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import click

import idxfile

from ..errors import TruncatedError
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

    from ..array import open_whole_items

    source = place(file)
    try:
        array = open_whole_items(source) if allow_partial else idxfile.open(source, mmap=False)
    except TruncatedError as error:
        error.hint = f"{error.hint}; --allow-partial shows the items that are whole"
        raise
    with array:
        picked = np.asarray(array[:count] if array.ndim else array[()])
        if as_json:
            facts = {"dtype": str(array.dtype), "shape": list(array.shape)}
            print_json({**facts, "items": picked.tolist()})
            return
        of = f", the first {len(picked):,}" if array.ndim and len(picked) < len(array) else ""
        click.echo(f"{array.header}{of}", err=True)
        texts = _texts(picked)
        while some := "".join(itertools.islice(texts, 10_000)):
            click.echo(some, nl=False)


def _texts(items: Any) -> Iterator[str]:
    """Items as text, number by number: a line for each row, an empty line between items."""
    width = _width(items) if items.ndim > 1 else 0
    columns = items.shape[-1] if items.ndim > 1 else 1
    for number, item in enumerate(items.reshape(-1) if items.ndim < 2 else items):
        if number and items.ndim > 2:
            yield "\n"
        for row in item.reshape(-1, columns) if item.size else ():
            for column, value in enumerate(row):
                yield f"{' ' if column else ''}{_text(value).rjust(width)}"
            yield "\n"


def _width(items: Any) -> int:
    """The characters of the longest number, by the extremes and the first few of them."""
    if not items.size:
        return 0
    few = [items.min(), items.max(), *items.reshape(-1)[:1000]]
    return max(len(_text(value)) for value in few)


def _text(value: Any) -> str:
    return str(value.item()) if value.dtype.kind in "iu" else str(value)
