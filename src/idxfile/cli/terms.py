"""What the commands share: their words, their arguments, and how results are written down."""

from __future__ import annotations

import json
import math
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import click

from ..errors import printable
from ..report.facts import counted
from ..source.places import exists, public
from ..source.telling import told
from . import tell

json_option = click.option("--json", "as_json", is_flag=True, help="Print the facts as JSON.")
force_option = click.option("--force", is_flag=True, help="Write over a file that exists.")
file_argument = click.argument("file", type=click.Path())
files_argument = click.argument("files", nargs=-1, required=True, type=click.Path())


def place(file: str) -> Any:
    """What a FILE argument means: a path, or `-` for standard input.

    Raises:
        click.UsageError: when standard input is closed.
    """
    if file != "-":
        return file
    if sys.stdin is None:
        raise click.UsageError("standard input is closed")
    return sys.stdin.buffer


def refuse_to_overwrite(path: str, force: bool) -> None:
    """Stop before anything is written over, unless that was asked for.

    Raises:
        click.UsageError: when the file exists, or a store does not tell whether it does.
    """
    if force:
        return
    shown = printable(public(path))
    try:
        if exists(path):
            raise click.UsageError(f"{shown} exists; --force writes over it")
    except PermissionError as error:
        reasons = [*error.args[:1], getattr(error, "hint", None), "--force writes over it"]
        text = f"{shown}: {printable('; '.join(map(str, filter(None, reasons))))}"
        raise click.UsageError(text) from error


@contextmanager
def slabs_bar(label: str) -> Iterator[Callable[[int, int], None] | None]:
    """A progress bar on stderr for the slabs of an engine, at a terminal; None elsewhere."""
    if not sys.stderr.isatty():
        yield None
        return
    with ExitStack() as stack:
        bars: list[Any] = []

        def advance(done: int, total: int) -> None:
            if not bars or bars[-1].finished:  # other slabs, after those that are done
                stack.close()
                bar = click.progressbar(length=total, label=label, file=sys.stderr)
                bars.append(stack.enter_context(bar))
            bar = bars[-1]
            bar.length = total
            bar.update(done - bar.pos)

        yield advance


@contextmanager
def waiting_bar() -> Iterator[None]:
    """A bar at a terminal for what a command waits for without having asked, as an index."""
    if sys.stderr is None or not sys.stderr.isatty():
        yield
        return
    with ExitStack() as stack:
        bars: list[Any] = []

        def advance(what: str, done: int, total: int) -> None:
            if not bars:
                bars.append(stack.enter_context(slabs_bar(printable(what))))
            bars[0](done, total)
            if done >= total:  # what was waited for is printed behind it
                stack.close()
                bars.clear()

        with told(advance):
            yield


@contextmanager
def sets_kept() -> Iterator[None]:
    """A set of shards that is in the way of a new one is an error of usage."""
    try:
        yield
    except FileExistsError as error:
        raise click.UsageError(f"{printable(str(error.filename))}: {error.strerror}") from error


def each(files: Iterable[str], work: Callable[[str], int]) -> int:
    """Do a piece of work for every file, whatever happens to the others.

    Returns:
        The highest exit code: `work` returns one, an error is told and has its own.
    """
    code = 0
    for file in files:
        try:
            code = max(code, work(file))
        except (ValueError, OSError, ImportError, MemoryError) as error:
            if isinstance(error, BrokenPipeError):
                raise
            code = max(code, tell(error))
    return code


def say(text: str) -> None:
    """Print a line on stdout; in silence once nobody reads on, for the exit code is an answer."""
    try:
        click.echo(text)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def print_json(value: Any) -> None:
    """Print one JSON value on stdout. JSON has no NaN and no infinity: they become strings."""
    say(json.dumps(_finite(value), indent=2, allow_nan=False))


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(part) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(part) for part in value]
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return value


def table(rows: Sequence[Sequence[str]], right: Sequence[int] = ()) -> Iterator[str]:
    """Lay rows out in columns as wide as their widest cell.

    Args:
        rows: the cells; the first row is the heading.
        right: numbers of the columns that stand flush right.

    Yields:
        The lines.
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = (
            cell.rjust(width) if place in right else cell.ljust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        yield "  ".join(cells).rstrip()


def size_text(nbytes: int | None) -> str:
    """A number of bytes for people."""
    return "unknown" if nbytes is None else counted(nbytes, "byte")


@contextmanager
def progress_bar(label: str, total: int) -> Iterator[Callable[[int, int], None] | None]:
    """A progress bar on stderr, for long work at a terminal; None elsewhere.

    Args:
        label: what is being done.
        total: about how many bytes there are; work below 64 MiB needs no bar.
    """
    if total < 1 << 26 or not sys.stderr.isatty():
        yield None
        return
    with told(None), click.progressbar(length=total, label=label, file=sys.stderr) as bar:

        def advance(done: int, all_of_it: int) -> None:
            bar.length = all_of_it
            bar.update(done - bar.pos)

        yield advance
