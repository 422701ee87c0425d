"""`idx append` and `idx concat`: the items of several files in one."""

from __future__ import annotations

import click

from ..array import open
from ..writer import append, concat
from .terms import force_option, refuse_to_overwrite


@click.command("append")
@click.argument("file", type=click.Path())
@click.argument("others", nargs=-1, required=True, type=click.Path())
def append_command(file: str, others: tuple[str, ...]) -> None:
    """Add the items of OTHERS to the end of FILE, in place.

    A crash leaves the old items of FILE intact. A compressed FILE is written anew, atomically.
    """
    with open(file) as array:
        before = array.shape
    for other in others:
        with open(other) as items:
            append(file, items)
    with open(file) as array:
        click.echo(f"{file}: {before[0]:,} items before, {len(array):,} now", err=True)


@click.command("concat")
@click.argument("out", type=click.Path())
@click.argument("files", nargs=-1, required=True, type=click.Path())
@click.option(
    "--codec",
    type=click.Choice(["auto", "raw", "gz", "bz2", "xz", "zst"]),
    default="auto",
    show_default=True,
    help="Compression; auto goes by the suffix of OUT.",
)
@click.option("--blocked", is_flag=True, help="gz only: many small members, for random access.")
@force_option
def concat_command(
    out: str, files: tuple[str, ...], codec: str, blocked: bool, force: bool
) -> None:
    """Write the items of FILES, one file after another, into the new file OUT.

    The files must have items of one type and shape. Memory stays constant.
    """
    refuse_to_overwrite(out, force)
    concat(out, files, codec=None if codec == "raw" else codec, blocked=blocked)
    with open(out) as array:
        click.echo(f"{out}: {array.header}", err=True)
