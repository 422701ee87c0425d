"""`idx show`: items as pictures."""

from __future__ import annotations

import os
import shutil
import sys
from typing import Any

import click

from ..array import IdxArray, open
from ..dataset import file_name, find_partner
from ..errors import PairError
from .terms import file_argument, force_option, place, refuse_to_overwrite

DEFAULT_ITEMS = 20
SHEET_ITEMS = 100


@click.command("show")
@file_argument
@click.argument("items", nargs=-1)
@click.option(
    "--labels", type=click.Path(), help="The file of labels; found by its name when not given."
)
@click.option("--png", type=click.Path(), help="Write a contact sheet to this PNG file instead.")
@click.option("--columns", type=click.IntRange(1), help="Pictures side by side.")
@click.option("--width", type=click.IntRange(1), help="Characters a line; the terminal's width.")
@force_option
def show_command(
    file: str,
    items: tuple[str, ...],
    labels: str | None,
    png: str | None,
    columns: int | None,
    width: int | None,
    force: bool,
) -> None:
    """Draw ITEMS of FILE, with their labels when the other file of the pair is found.

    ITEMS are numbers and slices: `7`, `-1`, `10:20`, `::6000`. Without any, the first few.
    Not at a terminal, the pictures are plain text.
    """
    import numpy as np

    from ..viewer import sheet, show
    from ..viewer.terminal import colour_mode

    with open(place(file)) as images:
        numbers = _numbers(items, images, SHEET_ITEMS if png else DEFAULT_ITEMS)
        pictures = images.take(numbers) if images.ndim else np.asarray(images)
        names = None if file == "-" else _labels(file, labels, images, numbers)
        if png:
            refuse_to_overwrite(png, force)
            from ..sink import open_sink

            sink = open_sink(png, codec=None)
            try:
                sink.write(sheet(pictures, names, columns=columns))
                sink.commit()
            except BaseException:
                sink.abort()
                raise
            click.echo(f"{png}: {len(numbers)} items of {images.header}", err=True)
            return
        width = width or shutil.get_terminal_size().columns
        colour = colour_mode(os.environ, sys.stdout.isatty())
        click.echo(
            show(pictures, names, numbers=numbers, width=width, columns=columns, colour=colour),
            color=True,
        )


def _numbers(items: tuple[str, ...], images: IdxArray, limit: int) -> list[int]:
    """The item numbers that the words of the command line mean.

    Raises:
        click.UsageError: for a word that is none, or an item that is not there.
    """
    if not images.ndim:
        return [0]
    everything = range(len(images))
    if not items:
        return list(everything[:limit])
    numbers: list[int] = []
    for word in items:
        try:
            parts = [int(part) if part else None for part in word.split(":")]
            picked = everything[slice(*parts)] if len(parts) > 1 else [everything[parts[0] or 0]]
        except (ValueError, TypeError):
            raise click.UsageError(f"{word!r} is no item number and no slice") from None
        except IndexError:
            raise click.UsageError(f"item {word} is not there: {len(images):,} items") from None
        numbers.extend(picked)
    return numbers


def _labels(file: str, labels: str | None, images: IdxArray, numbers: list[int]) -> Any:
    """The labels of some items as a list, or None where there are none."""
    named = file_name(file)
    if labels is None and (named is None or named.role != "images"):
        return None
    partner = labels or find_partner(file)
    if partner is None:
        return None
    with open(partner) as array:
        if array.ndim == 0 or len(array) != len(images):
            raise PairError(
                f"images: {len(images):,} items, labels: {array.shape[0] if array.ndim else 1:,} "
                f"items in {partner}",
                file=file,
                found=list(array.shape),
                expected=len(images),
                hint="name the right labels with --labels",
            )
        picked = array.take(numbers)
    return picked.reshape(len(numbers), -1)[:, 0].tolist()
