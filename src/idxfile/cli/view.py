"""`idx view`: all items of a place, in the browser."""

from __future__ import annotations

import os
from typing import Any

import click

from ..errors import printable
from .selection import usage_errors
from .terms import force_option, refuse_to_overwrite


@click.command("view")
@click.argument("place", type=click.Path())
@click.option(
    "--labels", type=click.Path(), help="The file of labels; found by its name when not given."
)
@click.option(
    "--compare", type=click.Path(), help="Other labels for the same items, as predictions."
)
@click.option(
    "--out",
    type=click.Path(file_okay=False),
    default=".",
    show_default=True,
    help="The folder that selections are saved into.",
)
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen at.")
@click.option(
    "--port", type=click.IntRange(0, 65535), default=0, help="The port; a free one when not given."
)
@click.option(
    "--browser/--no-browser", default=True, show_default=True, help="Open the browser, or do not."
)
@click.option(
    "--export", type=click.Path(dir_okay=False), help="Write one page that needs no server instead."
)
@click.option(
    "--items", "item_words", help="With --export: a slice 100:200, or numbers 1,5,9; 0:1000 if not."
)
@force_option
def view_command(
    place: str,
    labels: str | None,
    compare: str | None,
    out: str,
    host: str,
    port: int,
    browser: bool,
    export: str | None,
    item_words: str | None,
    force: bool,
) -> None:
    """Look through PLACE in the browser: a folder, a pair, a file, an address.

    A page is served to this machine alone, until Ctrl-C; its address, which holds a secret, is
    printed. Nothing that lies there is changed: new labels go to a journal beside the file, and
    what is saved goes to a new folder in --out.
    """
    from ..viewer.web import view
    from .selection import items_key

    if item_words is not None and export is None:
        raise click.UsageError("--items chooses what is exported: it needs --export")
    items: Any = items_key(item_words)
    if export is not None:
        refuse_to_overwrite(export, force)
        with usage_errors():
            view(place, labels, compare=compare, items=items, export=export)
        click.echo(f"{printable(export)}: {os.path.getsize(export):,} bytes", err=True)
        return
    view(
        place,
        labels,
        compare=compare,
        out=out,
        host=host,
        port=port,
        browser=browser,
        ready=lambda address: _tell(address, host),
    )


def _tell(address: str, host: str) -> None:
    from ..viewer.web.guard import is_loopback

    click.echo(address)
    if not is_loopback(host):
        click.echo(
            f"warning: this listens at {printable(host)}: whoever reaches it and has the address "
            "sees the data, and nothing is encrypted",
            err=True,
        )
    click.echo("Ctrl-C ends it", err=True)
