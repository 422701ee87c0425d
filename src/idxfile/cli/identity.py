"""`idx identify`: what files and numbers are."""

from __future__ import annotations

import re

import click

from ..catalog.identity import Identity, identify
from ..errors import printable
from .terms import each, json_option, place, print_json

_NUMBER = re.compile(r"-?([0-9]{1,20}|0x[0-9a-f]{1,16})", re.IGNORECASE)


@click.command("identify", context_settings={"ignore_unknown_options": True})
@click.argument("subjects", nargs=-1, required=True, metavar="FILE|NUMBER...", type=click.Path())
@json_option
def identify_command(subjects: tuple[str, ...], as_json: bool) -> int:
    """Say what each FILE is by its content, or what a magic NUMBER from an error message means.

    A NUMBER is decimal or hexadecimal: 529205256, -1991225785, 0x1f8b0808.
    """
    found: list[Identity] = []

    def work(subject: str) -> int:
        number = _NUMBER.fullmatch(subject)
        if subject.startswith("--") or (subject[:1] == "-" and len(subject) > 1 and not number):
            raise click.NoSuchOption(subject)
        base = 16 if "x" in subject.lower() else 10
        identity = identify(int(subject, base) if number else place(subject))
        found.append(identity)
        if not as_json:
            codec = f" ({'+'.join(identity.codecs)})" if identity.codecs else ""
            click.echo(f"{printable(identity.subject)}{codec}: {printable(identity.what)}")
            if identity.hint:
                click.echo(f"  hint: {printable(identity.hint)}")
        return 0

    code = each(subjects, work)
    if as_json:
        print_json([identity.as_dict() for identity in found])
    return code
