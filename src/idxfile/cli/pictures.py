"""`idx show`: items as pictures."""

from __future__ import annotations

import contextlib
import shutil

import click

from ..array import IdxArray, open
from ..errors import printable
from ..names import file_name
from ..report.facts import counted
from ..sink import write_whole
from ..source.places import find_partner
from .terms import file_argument, force_option, place, refuse_to_overwrite


@click.command("show")
@file_argument
@click.argument("items", nargs=-1)
@click.option(
    "--labels", type=click.Path(), help="The file of labels; found by its name when not given."
)
@click.option("--png", type=click.Path(), help="Write a contact sheet to this PNG file instead.")
@click.option("--columns", type=click.IntRange(1), help="Pictures side by side.")
@click.option("--scale", type=click.IntRange(1), help="The side of the square of one pixel.")
@click.option("--width", type=click.IntRange(1), help="Characters a line; the terminal's width.")
@force_option
def show_command(
    file: str,
    items: tuple[str, ...],
    labels: str | None,
    png: str | None,
    columns: int | None,
    scale: int | None,
    width: int | None,
    force: bool,
) -> None:
    """Draw ITEMS of FILE, with their labels when the other file of the pair is found.

    ITEMS are numbers and slices: `7`, `-1`, `10:20`, `::6000` (after `--` when the first is
    negative). Without any, the first few. Not at a terminal, the pictures are plain text.
    """
    from ..viewer import sheet, show

    with contextlib.ExitStack() as stack:
        images = stack.enter_context(open(place(file)))
        partner = labels or _labels_of(file)
        names = stack.enter_context(open(partner)) if partner else None
        numbers = _numbers(items, images)
        if png is None:
            screen = shutil.get_terminal_size()
            text = show(
                images,
                names,
                numbers,
                width=width or screen.columns,
                height=max(1, screen.lines - 2),
                columns=columns,
                scale=scale or 1,
            )
            click.echo(text, color=True)
            return
        refuse_to_overwrite(png, force)
        page = sheet(images, names, numbers, columns=columns, scale=scale or 2)
        write_whole(png, page)
        click.echo(f"{printable(png)}: {len(page):,} bytes, of {images.header}", err=True)


def _labels_of(file: str) -> str | None:
    """The file of labels that belongs to a file of images, or None."""
    named = file_name(file)
    if file == "-" or named is None or named.role != "images":
        return None
    return find_partner(file)


def _numbers(words: tuple[str, ...], images: IdxArray) -> list[int] | None:
    """The item numbers that words of the command line mean; None for no words.

    Raises:
        click.UsageError: for a word that is none, or an item that is not there.
    """
    if not words:
        return None
    everything = range(len(images) if images.ndim else 1)
    numbers: list[int] = []
    for word in words:
        try:
            parts = [int(part) if part else None for part in word.split(":")]
            picked = everything[slice(*parts)] if len(parts) > 1 else [everything[parts[0] or 0]]
        except (ValueError, TypeError):
            raise click.UsageError(f"{word!r} is no item number and no slice") from None
        except IndexError:
            raise click.UsageError(
                f"item {word} is not there: the file has {counted(len(everything), 'item')}"
            ) from None
        numbers.extend(picked)
    return numbers
