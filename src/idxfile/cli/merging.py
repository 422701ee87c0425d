"""`idx merge`: the items of several pairs in one."""

from __future__ import annotations

from typing import Any

import click

from .engines import engine_option
from .selection import (
    codec_option,
    name_option,
    open_place,
    save_pairs,
    split_option,
)
from .sharding import shards_options
from .terms import force_option


@click.command("merge")
@click.argument("out", type=click.Path())
@click.argument("places", nargs=-1, required=True, type=click.Path())
@split_option
@name_option
@codec_option
@shards_options
@engine_option
@force_option
def merge_command(
    out: str,
    places: tuple[str, ...],
    split: str | None,
    name: str | None,
    codec: str | None,
    cut: dict[str, Any],
    engine: str | None,
    force: bool,
) -> None:
    """Write the items of PLACES, one after another, with their labels, into the folder OUT.

    A place is a folder with a pair, or a file of images with its labels beside it. Items must be of
    one type and shape, and classes the same. The new pair bears the split of the first place.
    """
    first, *others = (open_place(place, None, split, name) for place in places)
    save_pairs([first.merge(*others)], out, codec, cut, engine, force)
