"""The command line of the runner."""

from __future__ import annotations

import json
import sys
from collections import Counter

import click

from ..errors import printable
from .corpus import chosen, load
from .running import run

__all__ = ["main"]

OWN = [sys.executable, "-m", "idxfile.conformance", "--serve"]
"""idxfile as a reader."""


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("command", nargs=-1)
@click.option("--corpus", default="conformance", metavar="DIR", show_default=True)
@click.option("--tags", metavar="TAGS", help="core (the default), gz, bz2, xz, zst, lush … or all.")
@click.option("--only", metavar="PATTERN", help="Only files whose name fits, as 'cut-*'.")
@click.option("--timeout", default=10.0, show_default=True, help="Seconds for an answer.")
@click.option("--json", "as_json", is_flag=True, help="Print all outcomes as JSON.")
@click.option("--self", "own", is_flag=True, help="Try idxfile's own reader, on all tags.")
@click.option("--serve", "served", is_flag=True, help="Be idxfile's own reader.")
@click.pass_context
def main(
    context: click.Context,
    command: tuple[str, ...],
    corpus: str,
    tags: str | None,
    only: str | None,
    timeout: float,
    as_json: bool,
    own: bool,
    served: bool,
) -> None:
    """Try a reader of IDX files on the conformance corpus.

    COMMAND reads a path a line and answers each with a line: `ok TYPE NDIM D0 … hex HEX`, or
    `error KIND OFFSET`. Put -- before it if it has options of its own. Exit code 0 if all passed.
    """
    if served:
        from .own import serve  # the one who needs NumPy

        serve()
        return
    if own == bool(command):
        raise click.UsageError("give the command of a reader, or --self")
    manifest = load(corpus)
    rows = chosen(manifest, tags or ("all" if own else "core"), only)
    words = OWN if own else list(command)
    outcomes = []
    try:
        for outcome in run(words, corpus, rows, timeout=timeout):
            outcomes.append(outcome)
            if outcome.result != "pass" and not as_json:
                name, result, expected, got = (_short(text) for text in outcome)
                click.echo(f"{result:10} {name}\n  expected {expected}\n  got      {got}")
    except OSError as error:
        raise click.UsageError(f"{words[0]} cannot be started: {error.strerror}") from None
    counts = Counter[str](outcome.result for outcome in outcomes)
    if as_json:
        facts = {
            "command": words,
            "counts": dict(counts),
            "left_out": len(manifest["files"]) - len(rows),
            "files": [outcome._asdict() for outcome in outcomes],
        }
        click.echo(json.dumps(facts, indent=1))
    else:
        results = ("pass", "fail", "wrong-kind", "crash", "hang")
        text = ", ".join(f"{counts[r]} {r}" for r in results if counts[r] or r == "pass")
        click.echo(f"{len(rows)} files: {text} ({len(manifest['files']) - len(rows)} left out)")
    context.exit(0 if set(counts) == {"pass"} else 1)


def _short(text: str) -> str:
    text = printable(text)
    return text if len(text) <= 400 else f"{text[:397]}..."
