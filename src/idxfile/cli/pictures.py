"""`idx show`: items as pictures."""

from __future__ import annotations

import contextlib
import os
import shutil
from dataclasses import dataclass
from typing import Any

import click

from ..array import open
from ..catalog.decoration import recognise_dataset
from ..catalog.recognition import files_like
from ..classes import read_classes
from ..dataset import Dataset
from ..errors import printable
from ..names import file_name
from ..pairs import is_lone_set, open_dataset
from ..report.facts import counted
from ..sheets.colours import COLOUR_MAPS, GREY
from ..sheets.contact import sheet
from ..sheets.tiles import Shelf
from ..source.places import file_of, find_partner, is_folder, is_url
from ..staging import write_whole
from ..viewer.cells import MODES
from ..viewer.screen import Screen, View
from ..viewer.terminal import STYLES, strips
from .asking import abilities
from .choosing import different, items_of, of_labels, some
from .paging import print_strips
from .selection import labels_file_option, name_option, split_option
from .terms import force_option, place, refuse_to_overwrite


@dataclass(frozen=True, slots=True)
class Exhibit:
    """What is shown: images, and what is known of them."""

    images: Any
    labels: Any
    classes: dict[int, str]
    """The names of the classes by their labels."""

    @property
    def count(self) -> int:
        """The number of items."""
        return self.images.shape[0] if self.images.ndim else 1


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
    type=click.Choice(["auto", *MODES]),
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
    with contextlib.ExitStack() as stack:
        exhibit = _exhibit(stack, place_, labels_file, split, name)
        against = stack.enter_context(open(place(wrong))) if wrong is not None else None
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
            _draw(exhibit, numbers, known, {**look, "scale": scale, "style": style}, screen)
            return
        refuse_to_overwrite(png, force)
        if not items and count is None and not mean:
            numbers = numbers[:100]
        look |= {"colours": colours or GREY, "scale": scale or 2}
        page = sheet(exhibit.images, exhibit.labels, numbers, **known, **look)
        write_whole(png, page)
        shape = " × ".join(map(str, exhibit.images.shape))
        click.echo(
            f"{printable(png)}: {len(page):,} bytes, of {exhibit.images.dtype} {shape}", err=True
        )


def _draw(exhibit: Exhibit, numbers: Any, known: Any, look: Any, wanted: Any) -> None:
    """Draw on standard output."""
    graphics, width, everything, paged = wanted
    size = shutil.get_terminal_size()
    mode, cell = abilities(os.environ, graphics)
    shelf = Shelf(exhibit.images, exhibit.labels, numbers, **known)
    height = max(1, size.lines - 2)
    screen = Screen.of(width or max(1, size.columns), height, mode, not everything, cell)
    drawn = strips(shelf, screen, View(**look))
    print_strips(drawn, size.lines, pixels=screen.mode.graphic is not None, paged=paged)


def _exhibit(
    stack: contextlib.ExitStack,
    file: str,
    labels_file: str | None,
    split: str | None,
    name: str | None,
) -> Exhibit:
    """Open what is to be shown: a data set, or a file and the labels beside it."""
    if labels_file is None and _is_dataset(file, split, name):
        ds = open_dataset(file, split=split, name=name)
        stack.callback(ds.close)
        return _of_dataset(ds if is_url(file) else recognise_dataset(ds))
    images = stack.enter_context(open(place(file)))
    partner = labels_file or _labels_of(file)
    if partner is None:
        return Exhibit(images, None, {})
    labels = stack.enter_context(open(place(partner)))
    classes = _classes_beside(file)
    if not is_url(file) and _may_be_known(images, labels):
        return _of_dataset(recognise_dataset(Dataset(images, labels[...], classes=classes)))
    return Exhibit(images, labels, _named(classes))


def _is_dataset(file: str, split: str | None, name: str | None) -> bool:
    """Whether a place holds pairs, of which one is to be chosen."""
    if (split, name) != (None, None) or file.endswith(".zip"):
        return True
    return is_folder(file) and not is_lone_set(file)


def _may_be_known(images: Any, labels: Any) -> bool:
    """Whether the catalogue has data sets of this type and shape; then they are small."""
    integers = labels.ndim in (1, 2) and labels.dtype.kind in "iu"
    return bool(integers and images.shape[:1] == labels.shape[:1] and files_like(images.header))


def _of_dataset(ds: Any) -> Exhibit:
    return Exhibit(ds.images, ds.labels, _named(ds.classes))


def _named(classes: Any) -> dict[int, str]:
    return {label: name for label, name in enumerate(classes or ()) if name}


def _classes_beside(file: str) -> Any:
    """The names of classes in the folder of a file; none where they are no text."""
    if file == "-" or is_url(file):
        return None
    try:
        return read_classes(os.path.dirname(file) or os.curdir)
    except UnicodeDecodeError:
        return None


def _labels_of(file: str) -> str | None:
    """The file of labels that belongs to a file of images, or None."""
    named = file_name(file_of(file))
    if file == "-" or named is None or named.role != "images":
        return None
    return find_partner(file)
