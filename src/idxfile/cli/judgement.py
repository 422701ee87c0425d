"""`idx check`, `idx repair` and `idx diff`: whole files judged, mended and compared."""

from __future__ import annotations

import fnmatch
import glob
import os
import re
from collections.abc import Iterable
from dataclasses import replace
from functools import partial

import click

from ..codecs import CODECS
from ..errors import printable
from ..problems import Problem
from ..report.facts import counted
from ..report.judgement import Report, check, unopened
from ..report.pairing import judge_pairs
from ..shards import folded, shard_name, without_number
from ..slabs.running import run
from ..source.places import beside, file_of, is_url, names_in
from . import NEGATIVE, tell
from .engines import engine_option, started
from .terms import (
    each,
    files_argument,
    force_option,
    json_option,
    place,
    print_json,
    progress_bar,
    refuse_to_overwrite,
    say,
)


@click.command("check")
@files_argument
@engine_option
@json_option
def check_command(files: tuple[str, ...], engine: str | None, as_json: bool) -> int:
    """Read FILES to their ends and tell everything that is wrong with them.

    Header, length, compressed streams and their checksums are judged, and how images and labels
    fit together; memory stays constant. A folder stands for the files in it and below that have a
    name like IDX (idx3-ubyte, .idx, with or without .gz), a quoted pattern ('*.gz') for the files
    that fit it. A set of shards is one file, held against its manifest. Prints a line a file. Exit
    code 1 where one is not right.
    """
    if engine is not None and "-" in files:
        raise click.UsageError("standard input cannot be sent to an engine: check it without one")
    reports: list[Report] = []

    def work(file: str) -> int:
        report = next(judged)
        if isinstance(report, OSError):
            reports.append(unopened(file, report))
            raise report
        reports.append(report)
        if not as_json:
            _print(report.file, report.ok, _what(report), report.problems)
        return 0 if report.ok else NEGATIVE

    found, code = _expand(files)
    with started(engine, "check") as executor:
        judge = _judged if executor is None else partial(_judged_there, os.getcwd())
        judged = run(judge, found, executor=executor)
        code = max(code, each(found, work))
    pairs = judge_pairs(reports)
    for pair in pairs if not as_json else ():
        name = f"{pair.images} + {os.path.basename(pair.labels)}"
        _print(name, pair.ok, "a pair", pair.problems)
    if as_json:
        facts = [report.as_dict() for report in reports]
        print_json({"files": facts, "pairs": [pair.as_dict() for pair in pairs]})
    return max([code, *(NEGATIVE for pair in pairs if not pair.ok)])


def _judged(file: str) -> Report | OSError:
    """The report over a file, or why it could not be opened."""
    total = os.path.getsize(file) if os.path.isfile(file) else 0
    try:
        with progress_bar(f"check {printable(os.path.basename(file))}", total) as progress:
            return check(place(file), progress=progress)
    except OSError as error:
        return error


def _judged_there(folder: str, file: str) -> Report | OSError:
    """The same, by a worker that has no terminal, and may stand in another folder."""
    try:
        if is_url(file) or os.path.isabs(file) or os.getcwd() == folder:
            return check(file)
        return replace(check(os.path.join(folder, file)), file=file)
    except OSError as error:
        return error


_SUFFIXES = "|".join(re.escape(suffix) for row in CODECS for suffix in row.suffixes)
_LOOKS_LIKE_IDX = re.compile(
    rf"^[^.].*(idx\d+([-_][a-z]+\d*)?|\.idx|u?byte|\.lushbin)({_SUFFIXES})*\Z",
    re.IGNORECASE | re.DOTALL,
)


def _expand(files: Iterable[str]) -> tuple[list[str], int]:
    """The files that arguments stand for: a folder's, a pattern's, or themselves.

    Returns:
        The files, and the exit code for folders that could not be looked into.

    Raises:
        click.UsageError: for a folder or a pattern without any.
    """
    found: list[str] = []
    errors: list[OSError] = []
    for file in files:
        if is_url(file):
            some = _in_store(file)
            fault = "no file there has a name like IDX: idx3-ubyte, .idx"
        elif os.path.isdir(file):
            some = sorted(
                os.path.join(folder, name)
                for folder, _, names in os.walk(file, onerror=errors.append)
                for name in names
                if _LOOKS_LIKE_IDX.match(without_number(name))
                and _is_file(os.path.join(folder, name))
            )
            fault = "no file there has a name like IDX: idx3-ubyte, .idx"
        elif not os.path.lexists(file) and glob.has_magic(file):
            some = sorted(filter(_is_file, glob.glob(file, recursive=True)))
            fault = "no file has such a name"
        else:
            some = [file]
        if not some and not errors:
            raise click.UsageError(f"{file}: {fault}")
        found += folded(some) if some != [file] else some
    return found, max(map(tell, errors), default=0)


def _in_store(url: str) -> list[str]:
    """The objects that an address stands for: a folder's, a pattern's, or itself."""
    name = os.path.basename(file_of(url))
    parts = shard_name(name)
    if (name and "*" not in name) or (parts is not None and "*" not in parts.suffix):
        return [url]
    found = names_in(beside(url, ""))
    if found is None:
        return [url]  # whoever opens it tells
    names = ((each, os.path.basename(file_of(each))) for each in found)
    if name:
        return [each for each, base in names if fnmatch.fnmatchcase(base, name)]
    return [each for each, base in names if _LOOKS_LIKE_IDX.match(without_number(base))]


def _is_file(path: str) -> bool:
    """Whether this is a file, or a link that leads nowhere; no folder, pipe or device."""
    return os.path.isfile(path) or not os.path.exists(path)


def _what(report: Report) -> str:
    if report.header is None:
        return "no header"
    turned = ", little-endian" if report.header.byteorder == "little" else ""
    codec = f", {'+'.join(report.codecs)}" if report.codecs else ""
    return f"{report.header}{turned}{codec}"


def _print(name: str, ok: bool, what: str, problems: list[Problem]) -> None:
    say(f"{printable(name)}: {'ok' if ok else 'NOT OK'} ({what})")
    for problem in problems:
        say(f"  {problem.level} {problem.code}: {printable(problem.message)}")
        if problem.hint:
            say(f"    hint: {printable(problem.hint)}")


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
    if "-" in (src, dst):
        raise click.UsageError("mending reads a file twice and writes it whole: `-` cannot be it")
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
        as_it_is = "left as it is" if in_place else "written as it is"
        for sentence in mending.done or [f"nothing to mend: {as_it_is}"]:
            say(printable(sentence))
        if mending.backup:
            say(f"the old file is {printable(mending.backup)}")
        _print(mending.out, mending.after.ok, _what(mending.after), mending.after.problems)
    return 0 if mending.after.ok else NEGATIVE


@click.command("diff")
@click.argument("a", type=click.Path())
@click.argument("b", type=click.Path())
@click.option("--strict", is_flag=True, help="Different element types are a difference, too.")
@engine_option
@json_option
def diff_command(a: str, b: str, strict: bool, engine: str | None, as_json: bool) -> int:
    """Compare A and B by value, whatever their types and codecs. Exit code 0 equal, 1 not."""
    from ..report.difference import diff

    with started(engine, "diff") as executor:
        difference = diff(place(a), place(b), executor=executor)
    equal = difference.equal and (difference.same_type or not strict)
    if as_json:
        print_json(difference.as_dict())
    else:
        say("equal" if equal else "different")
        if not difference.same_type:
            one, other = difference.header_a.element.name, difference.header_b.element.name
            say(f"  type: {one} and {other}")
        if not difference.same_shape:
            say(f"  header: {difference.header_a} and {difference.header_b}")
        if difference.first is not None and difference.first_values is not None:
            elements = counted(difference.elements, "element")
            say(f"  {elements} different, in {counted(difference.items, 'item')}")
            index = ", ".join(map(str, difference.first))
            values = " and ".join(map(str, difference.first_values))
            say(f"  first at ({index}): {values}")
            say(f"  largest difference: {difference.largest}")
            items = ", ".join(f"{item} ({n:,})" for item, n in difference.differing_items)
            more = ", …" if difference.items > len(difference.differing_items) else ""
            say(f"  items (elements): {items}{more}")
    return 0 if equal else NEGATIVE
