"""`idx head`: items as numbers."""

from __future__ import annotations

import itertools
from typing import Any

import click

from ..array import open, open_whole_items
from .terms import file_argument, json_option, place, print_json


@click.command("head")
@file_argument
@click.option("-n", "count", default=5, show_default=True, help="How many items.")
@click.option(
    "--allow-partial", is_flag=True, help="Of a file that was cut, take the items that are whole."
)
@json_option
def head_command(file: str, count: int, allow_partial: bool, as_json: bool) -> None:
    """Print the first items of FILE as numbers, one row of the last dimension a line."""
    import numpy as np

    opener = open_whole_items if allow_partial else open
    with opener(place(file)) as array:
        picked = np.asarray(array[: max(0, count)] if array.ndim else array[()])
        if as_json:
            facts = {"dtype": str(array.dtype), "shape": list(array.shape)}
            print_json({**facts, "items": picked.tolist()})
            return
        of = f", the first {len(picked)}" if array.ndim and len(picked) < len(array) else ""
        click.echo(f"{array.header}{of}", err=True)
        for line in _lines(picked):
            click.echo(line)


def _lines(items: Any) -> list[str]:
    """Items as lines of numbers: a line for each row, an empty line between items."""
    if items.ndim < 2:
        return [_text(value) for value in items.reshape(-1)]
    texts = [_text(value) for value in items.reshape(-1)]
    width = max(map(len, texts), default=0)
    columns = items.shape[-1] or 1
    rows = [
        " ".join(text.rjust(width) for text in texts[at : at + columns])
        for at in range(0, len(texts), columns)
    ]
    if items.ndim == 2:
        return rows
    per_item = len(rows) // len(items) if len(items) else 0
    blocks = (rows[n * per_item : (n + 1) * per_item] for n in range(len(items)))
    return list(itertools.chain.from_iterable([*block, ""] for block in blocks))[:-1]


def _text(value: Any) -> str:
    return str(value.item()) if value.dtype.kind in "iu" else str(value)
