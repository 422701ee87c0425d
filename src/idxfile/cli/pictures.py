"""`idx show`: items as pictures."""

from __future__ import annotations

import contextlib
from typing import Any

import click

import idxfile

from ..errors import printable
from ..report.facts import counted
from ..sheets.palettes import COLOUR_MAPS, GREY
from ..staging import write_whole
from ..viewer.words import GRAPHICS, STYLES
from .selection import labels_file_option, name_option, split_option
from .terms import force_option, place, refuse_to_overwrite


@click.command("show", context_settings={"ignore_unknown_options": True})  # for `-1`
@click.argument("place_", metavar="FILE|DATASET", type=click.Path())
@click.argument("items", nargs=-1)
@split_option
@name_option
@labels_file_option
@click.option("--labels", metavar="3,7", help="Only items of these classes, by number or name.")
@click.option(
    "--wrong",
    type=click.Path(),
    metavar="FILE",
    help="Only items whose label differs from the one in this file of labels; both are shown.",
)
@click.option("--random", "count", type=click.IntRange(0), help="So many of them, at random.")
@click.option("--seed", type=click.IntRange(0), help="Where the random order begins.")
@click.option("--mean", is_flag=True, help="The mean item of each class.")
@click.option("--png", type=click.Path(), help="Write a contact sheet to this PNG file instead.")
@click.option(
    "--graphics",
    type=click.Choice(["auto", *GRAPHICS]),
    default="auto",
    show_default=True,
    help="How to draw: in pixels, in half blocks with colours, or in characters.",
)
@click.option(
    "--as",
    "style",
    type=click.Choice(STYLES),
    default="auto",
    show_default=True,
    help="How often values occur, or values as colours with a scale.",
)
@click.option(
    "--colours", type=click.Choice(list(COLOUR_MAPS)), help="The colour map; grey for uint8."
)
@click.option("--invert", is_flag=True, help="Exchange the ends of the colour map.")
@click.option("--columns", type=click.IntRange(1), help="Pictures side by side.")
@click.option("--scale", type=click.IntRange(1), help="The side of the square of one pixel.")
@click.option("--width", type=click.IntRange(1), help="Characters a line; the terminal's width.")
@click.option("--no-pager", is_flag=True, help="Print all at once, however long.")
@force_option
def show_command(
    place_: str,
    items: tuple[str, ...],
    split: str | None,
    name: str | None,
    labels_file: str | None,
    labels: str | None,
    wrong: str | None,
    count: int | None,
    seed: int | None,
    mean: bool,
    png: str | None,
    graphics: str,
    style: str,
    colours: str | None,
    invert: bool,
    columns: int | None,
    scale: int | None,
    width: int | None,
    no_pager: bool,
    force: bool,
) -> None:
    """Draw ITEMS of an IDX file or of a data set, with their labels where there are any.

    ITEMS are numbers and slices: `7`, `-1`, `10:20`, `::6000`, `:` for all. Without any, as many
    as have room on the screen. What is longer than the screen goes through a pager. Not at a
    terminal, pictures are plain text.
    """
    from .choosing import different, items_of, of_labels, some
    from .exhibit import draw, open_exhibit

    with contextlib.ExitStack() as stack:
        exhibit = open_exhibit(stack, place_, labels_file, split, name)
        against = stack.enter_context(idxfile.open(place(wrong))) if wrong is not None else None
        if exhibit.labels is None and (mean or (labels, wrong) != (None, None)):
            raise click.UsageError(
                "there are no labels: name their file with --labels-file, or give a data set"
            )
        numbers = items_of(items, exhibit.count)
        if labels is not None:
            numbers = of_labels(numbers, exhibit.labels, labels, exhibit.classes)
        if against is not None:
            among = len(numbers)
            numbers = different(numbers, exhibit.labels, against)
            click.echo(f"{len(numbers):,} of {counted(among, 'item')} differ", err=True)
        if count is not None:
            numbers = some(numbers, count, seed)
        known: dict[str, Any] = {"classes": exhibit.classes, "against": against}
        look: dict[str, Any] = {
            "columns": columns,
            "colours": colours,
            "invert": invert,
            "mean": mean,
        }
        if png is None:
            everything = bool(items) or count is not None or mean
            screen = (graphics, width, everything, not no_pager)
            draw(exhibit, numbers, known, {**look, "scale": scale, "style": style}, screen)
            return
        refuse_to_overwrite(png, force)
        if not items and count is None and not mean:
            numbers = numbers[:100]
        look |= {"colours": colours or GREY, "scale": scale or 2}
        page = idxfile.sheet(exhibit.images, exhibit.labels, numbers, **known, **look)
        write_whole(png, page)
        shape = " × ".join(map(str, exhibit.images.shape))
        click.echo(
            f"{printable(png)}: {len(page):,} bytes, of {exhibit.images.dtype} {shape}", err=True
        )
