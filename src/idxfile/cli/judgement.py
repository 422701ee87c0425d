"""`idx check`: whole files judged."""

from __future__ import annotations

import os

import click

from ..errors import printable
from ..report import Report, check
from . import NEGATIVE
from .terms import each, files_argument, json_option, place, print_json, progress_bar


@click.command("check")
@files_argument
@json_option
def check_command(files: tuple[str, ...], as_json: bool) -> int:
    """Read FILES to their ends and tell everything that is wrong with them.

    Header, length, compressed streams and their checksums are judged; memory stays constant.
    Prints a line a file. Exit code 1 where a file is not right.
    """
    reports: list[Report] = []

    def work(file: str) -> int:
        total = os.path.getsize(file) if os.path.isfile(file) else 0
        with progress_bar(f"check {printable(os.path.basename(file))}", total) as progress:
            report = check(place(file), progress=progress)
        reports.append(report)
        if not as_json:
            for line in _lines(report):
                click.echo(line)
        return 0 if report.ok else NEGATIVE

    code = each(files, work)
    if as_json:
        print_json([report.as_dict() for report in reports])
    return code


def _lines(report: Report) -> list[str]:
    codec = f", {'+'.join(report.codecs)}" if report.codecs else ""
    what = f"{report.header}{codec}" if report.header else "no header"
    lines = [f"{printable(report.file)}: {'ok' if report.ok else 'NOT OK'} ({what})"]
    for problem in report.problems:
        lines.append(f"  {problem.level} {problem.code}: {problem.message}")
        if problem.hint:
            lines.append(f"    hint: {problem.hint}")
    return lines
