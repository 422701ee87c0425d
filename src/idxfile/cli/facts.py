"""`idx info`: what files are. This room starts without NumPy."""

from __future__ import annotations

import click

from ..errors import figure, printable, sides
from ..report.facts import Info, info
from . import INVALID
from .terms import each, files_argument, json_option, place, print_json, size_text, table


@click.command("info")
@files_argument
@json_option
def info_command(files: tuple[str, ...], as_json: bool) -> int:
    """Show what FILES are: element type, shape, codec, sizes, and what their names suggest.

    Only the header of a file is read, also of a compressed one. `-` is standard input.
    """
    found: list[Info] = []

    def work(file: str) -> int:
        facts = info(place(file))
        found.append(facts)
        return INVALID if any(p.level == "error" for p in facts.problems) else 0

    code = each(files, work)
    if as_json:
        print_json([facts.as_dict() for facts in found])
    elif len(files) == 1:
        for facts in found:
            click.echo("\n".join(table(list(_lines(facts)))))
    elif found:
        click.echo("\n".join(table(_overview(found), right=(2, 4))))
    for facts in found if not as_json else ():
        name = printable(facts.file)
        for problem in facts.problems:
            click.echo(f"{problem.level}: {name}: {printable(problem.message)}", err=True)
            if problem.hint:
                click.echo(f"hint: {printable(problem.hint)}", err=True)
    return code


def _lines(facts: Info) -> list[tuple[str, str]]:
    header = facts.header
    dialect = "IDX" if header.dialect == "idx" else "Lush / EBLearn binary matrix"
    order = "most" if header.byteorder == "big" else "least"
    lines = [
        ("file", printable(facts.file)),
        ("format", f"{dialect}, {order} significant byte first"),
        (
            "type",
            f"{header.element.name} ({header.element.c} in C, {header.element.dotnet} in .NET)",
        ),
        ("shape", _shape(facts)),
        ("codec", " in ".join(reversed(facts.codecs)) or "none"),
        ("file size", size_text(facts.file_nbytes)),
        ("data", f"{size_text(header.nbytes)} from byte {header.data_offset}"),
    ]
    if header.ndim and header.shape[0]:
        lines.append(("item", f"{size_text(header.item_nbytes)} each"))
    if facts.codecs and facts.access:
        lines.append(("one item", _ACCESS[facts.access]))
    if facts.stored_name:
        name = facts.stored_name  # of any length, but no file system has names of over 255
        lines.append(("stored name", printable(name if len(name) < 256 else f"{name[:255]}…")))
    return lines


_ACCESS = {
    "direct": "inflated with the shard that it lies in",
    "blocks": "the block around it is inflated, not all",
    "index": "by an index, which is there",
    "index-on-use": "by an index, which is made when one is asked for",
    "whole": "all is inflated for the first one, and kept",
}
"""How single items of a compressed file are to be had."""


def _shape(facts: Info) -> str:
    return sides(facts.header.shape)


def _overview(found: list[Info]) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = [("file", "type", "shape", "codec", "data bytes")]
    for facts in found:
        header = facts.header
        codec = "+".join(facts.codecs) or "-"
        rows.append(
            (
                printable(facts.file),
                header.element.name,
                _shape(facts),
                codec,
                figure(header.nbytes),
            )
        )
    return rows
