"""`idx check`, `idx repair` and `idx diff`: whole files judged, mended and compared."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterator

import click

from ..errors import printable
from ..problems import Problem
from ..report.judgement import Report, check
from ..report.pairing import judge_pairs
from . import NEGATIVE
from .terms import (
    each,
    files_argument,
    force_option,
    json_option,
    place,
    print_json,
    progress_bar,
    refuse_to_overwrite,
)


@click.command("check")
@files_argument
@json_option
def check_command(files: tuple[str, ...], as_json: bool) -> int:
    """Read FILES to their ends and tell everything that is wrong with them.

    Header, length, compressed streams and their checksums are judged, and how images and labels
    fit together; memory stays constant. A folder stands for the IDX files in it, a pattern
    (`'*.gz'`) for the files that fit it. Prints a line a file. Exit code 1 where one is not right.
    """
    reports: list[Report] = []

    def work(file: str) -> int:
        total = os.path.getsize(file) if os.path.isfile(file) else 0
        with progress_bar(f"check {printable(os.path.basename(file))}", total) as progress:
            report = check(place(file), progress=progress)
        reports.append(report)
        if not as_json:
            _print(f"{report.file}", report.ok, _what(report), report.problems)
        return 0 if report.ok else NEGATIVE

    code = each((found for file in files for found in _expand(file)), work)
    pairs = judge_pairs(reports)
    for pair in pairs if not as_json else ():
        name = f"{pair.images} + {os.path.basename(pair.labels)}"
        _print(name, pair.ok, "a pair", pair.problems)
    if as_json:
        files_found = [report.as_dict() for report in reports]
        print_json({"files": files_found, "pairs": [pair.as_dict() for pair in pairs]})
    return max([code, *(NEGATIVE for pair in pairs if not pair.ok)])


_LOOKS_LIKE_IDX = re.compile(r"idx\d|\.idx(\.\w+)?$|-u?byte(\.\w+)?$|\.lushbin$", re.IGNORECASE)


def _expand(file: str) -> Iterator[str]:
    """The files that an argument stands for: a folder's, a pattern's, or itself.

    Raises:
        click.UsageError: for a folder or a pattern without any.
    """
    found = [file]
    if os.path.isdir(file):
        found = sorted(
            os.path.join(folder, name)
            for folder, _, names in os.walk(file)
            for name in names
            if _LOOKS_LIKE_IDX.search(name) and not name.startswith(".")
        )
    elif not os.path.lexists(file) and glob.has_magic(file):
        found = sorted(p for p in glob.glob(file, recursive=True) if os.path.isfile(p))
    if not found:
        raise click.UsageError(f"{printable(file)}: no IDX files there")
    yield from found


def _what(report: Report) -> str:
    codec = f", {'+'.join(report.codecs)}" if report.codecs else ""
    return f"{report.header}{codec}" if report.header else "no header"


def _print(name: str, ok: bool, what: str, problems: list[Problem]) -> None:
    click.echo(f"{printable(name)}: {'ok' if ok else 'NOT OK'} ({what})")
    for problem in problems:
        click.echo(f"  {problem.level} {problem.code}: {problem.message}")
        if problem.hint:
            click.echo(f"    hint: {problem.hint}")


@click.command("repair")
@click.argument("src", type=click.Path())
@click.argument("dst", required=False, type=click.Path())
@click.option("--in-place", is_flag=True, help="Mend SRC itself; the old file stays as SRC.bak.")
@click.option("--swap-data", is_flag=True, help="Turn the bytes of each element, too.")
@click.option(
    "--take-trailing", is_flag=True, help="Take whole items behind the declared ones as items."
)
@click.option("--transpose", is_flag=True, help="Exchange the rows and columns of every item.")
@click.option("--salvage", is_flag=True, help="Keep the whole items of a cut or damaged file.")
@json_option
@force_option
def repair_command(
    src: str,
    dst: str | None,
    in_place: bool,
    swap_data: bool,
    take_trailing: bool,
    transpose: bool,
    salvage: bool,
    as_json: bool,
    force: bool,
) -> int:
    """Write DST, a right file made of the wrong file SRC, and tell each change.

    Mended are bytes after the data, a wrong count, a little-endian header, several compressions,
    junk after a stream, and the compression that the name of DST promises. The result is checked.
    """
    from ..report.mending import repair

    if (dst is None) != in_place:
        raise click.UsageError("give the file to write, or --in-place")
    if dst is not None:
        refuse_to_overwrite(dst, force)
    mending = repair(
        src,
        dst,
        swap_data=swap_data,
        take_trailing=take_trailing,
        transpose=transpose,
        salvage=salvage,
    )
    if as_json:
        print_json(mending.as_dict())
    else:
        for sentence in mending.done or ["nothing to mend: written as it is"]:
            click.echo(sentence)
        if mending.backup:
            click.echo(f"the old file is {printable(mending.backup)}")
        _print(mending.out, mending.after.ok, _what(mending.after), mending.after.problems)
    return 0 if mending.after.ok else NEGATIVE


@click.command("diff")
@click.argument("a", type=click.Path())
@click.argument("b", type=click.Path())
@click.option("--strict", is_flag=True, help="Different element types are a difference, too.")
@json_option
def diff_command(a: str, b: str, strict: bool, as_json: bool) -> int:
    """Compare A and B by value, whatever their types and codecs. Exit code 0 equal, 1 not."""
    from ..report.difference import diff

    difference = diff(place(a), place(b))
    equal = difference.equal and (difference.same_type or not strict)
    if as_json:
        print_json(difference.as_dict())
    else:
        click.echo("equal" if equal else "different")
        if not difference.same_type:
            one, other = difference.header_a.element.name, difference.header_b.element.name
            click.echo(f"  type: {one} and {other}")
        if not difference.same_shape:
            click.echo(f"  header: {difference.header_a} and {difference.header_b}")
        if difference.first is not None and difference.first_values is not None:
            click.echo(f"  {difference.elements:,} elements differ, in {difference.items:,} items")
            index = ", ".join(map(str, difference.first))
            values = " and ".join(map(str, difference.first_values))
            click.echo(f"  first at ({index}): {values}")
            click.echo(f"  largest difference: {difference.largest}")
            items = ", ".join(f"{item} ({n:,})" for item, n in difference.differing_items)
            more = ", …" if difference.items > len(difference.differing_items) else ""
            click.echo(f"  items (elements): {items}{more}")
    return 0 if equal else NEGATIVE
