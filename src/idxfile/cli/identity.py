"""`idx identify`: what files and numbers are."""

from __future__ import annotations

import click

from ..catalog.identity import Identity, identify
from ..errors import printable
from .terms import each, json_option, place, print_json


@click.command("identify")
@click.argument("subjects", nargs=-1, required=True, metavar="FILE|NUMBER...")
@json_option
def identify_command(subjects: tuple[str, ...], as_json: bool) -> int:
    """Say what each FILE is by its content, or what a magic NUMBER from an error message means."""
    found: list[Identity] = []

    def work(subject: str) -> int:
        number = subject.removeprefix("-")
        identity = identify(int(subject) if number.isdecimal() else place(subject))
        found.append(identity)
        if not as_json:
            codec = f" in {'+'.join(identity.codecs)}" if identity.codecs else ""
            click.echo(f"{printable(identity.subject)}: {identity.what}{codec}")
            if identity.hint:
                click.echo(f"  hint: {identity.hint}")
        return 0

    code = each(subjects, work)
    if as_json:
        print_json([identity.as_dict() for identity in found])
    return code
