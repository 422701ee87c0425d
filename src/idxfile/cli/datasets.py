"""`idx datasets` and `idx fetch`: what is known of published data sets, and the data themselves."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import click
from click.shell_completion import CompletionItem

from ..catalog.table import DatasetFacts, dataset_named, datasets
from ..errors import printable
from ..report.facts import counted
from .offering import beginning, words_before
from .terms import json_option, print_json, table


class _KnownDataset(click.ParamType[DatasetFacts]):
    """The name of a data set of the catalogue."""

    name = "name"

    def convert(self, value: str, parameter: Any, context: Any) -> DatasetFacts:
        try:
            return dataset_named(value)
        except ValueError as error:
            self.fail(str(error), parameter, context)

    def shell_complete(self, context: Any, parameter: Any, incomplete: str) -> list[CompletionItem]:
        wanted = context.command.name == "datasets"
        rows = (row for row in datasets() if wanted or row.fetchable)
        return beginning(incomplete, ((row.name, row.summary) for row in rows))


def _splits(context: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """The splits of the data set that is named, and the named parts of them."""
    named = next(iter(words_before(context)), None)
    try:
        facts = named if isinstance(named, DatasetFacts) else dataset_named(str(named))
    except ValueError:
        return []
    parts = ((part.name, part.note) for part in facts.parts)
    counts = ((name, counted(count, "item")) for name, count in facts.splits.items())
    return beginning(incomplete, [*counts, *parts])


@click.command("datasets")
@click.argument("facts", metavar="[NAME]", required=False, type=_KnownDataset())
@json_option
def datasets_command(facts: DatasetFacts | None, as_json: bool) -> None:
    """List the known data sets; with a NAME, all that is known of one."""
    if as_json:
        known = [row.as_dict() for row in datasets()] if facts is None else facts.as_dict()
        print_json(known)
    elif facts is None:
        rows = [("name", "items", "classes", "to be had", "shows"), *map(_row, datasets())]
        click.echo("\n".join(table(rows, right=(1, 2))))
    else:
        click.echo("\n".join(_detail(facts)))


def _row(facts: DatasetFacts) -> tuple[str, ...]:
    items = " + ".join(f"{count:,}" for count in facts.splits.values())
    classes = str(sum(name is not None for name in facts.classes))
    way = "idx fetch" if facts.fetchable else "by hand"
    return facts.name, items or "-", classes, way, facts.summary


def _detail(facts: DatasetFacts) -> Iterator[str]:
    checked = f"read in: {facts.licence_checked}" if facts.licence_checked else "not checked"
    splits = (f"{name} {count:,}" for name, count in facts.splits.items())
    parts = (f"{p.name} ({p.split} {p.items[0]:,} to {p.items[1] - 1:,})" for p in facts.parts)
    named = [(str(n), name) for n, name in enumerate(facts.classes) if name is not None]
    classes = (n if n == name else f"{n} {name}" for n, name in named)
    lines = [
        ("name", facts.name),
        ("title", facts.title),
        ("shows", facts.summary),
        ("home page", facts.homepage),
        ("licence", f"{facts.licence} ({checked})" if facts.licence else None),
        ("attribution", facts.attribution),
        ("splits", ", ".join((*splits, *parts))),
        ("classes", ", ".join(classes)),
        ("columns", ", ".join(facts.columns)),
        ("stored", "with rows and columns exchanged" if facts.transposed else None),
        *(("file", file.name) for file in facts.files),
        *(("mirror", url) for url in facts.mirrors),
        *(("archive", url) for url in (facts.archive.mirrors if facts.archive else ())),
        *(("by hand", url) for url in facts.by_hand),
        *(("note", quirk) for quirk in facts.quirks),
        *(("note", f"{part.name}: {part.note}") for part in facts.parts),
        *(("release", release.what) for release in facts.releases),
    ]
    yield from table([(key, value) for key, value in lines if value])
    if facts.citation:
        yield f"\n{facts.citation}"


@click.command("fetch")
@click.argument("facts", metavar="NAME", type=_KnownDataset())
@click.option(
    "--to", type=click.Path(), metavar="DIR", help="Where files are looked for and put; the cache."
)
@click.option(
    "--split",
    "splits",
    multiple=True,
    shell_complete=_splits,
    help="train, test …; may be repeated. [all]",
)
@click.option("--offline", is_flag=True, help="Use what is there; open no connection.")
@json_option
def fetch_command(
    facts: DatasetFacts, to: str | None, splits: tuple[str, ...], offline: bool, as_json: bool
) -> None:
    """Download what is missing of a data set, verify all of it, and print where the files are.

    `idx datasets` lists the names. Files go to DIR/NAME as they are published; those that lie in
    DIR already, also as torchvision keeps them, are used.
    """
    from ..catalog.download import files_needed, obtain

    try:
        files = {
            (split, role): some
            for split in splits or facts.splits or ("train",)
            for role, some in files_needed(facts, split).items()
        }
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--split") from None
    with _bar(facts.name) as progress:
        found = obtain(facts, files, folder=to, offline=offline, progress=progress)
    if as_json:
        parts: dict[str, dict[str, list[str]]] = {split: {} for split, _ in found}
        for (split, role), paths in found.items():
            parts[split][role] = paths
        print_json({"name": facts.name, "splits": parts})
        return
    for path in dict.fromkeys(path for paths in found.values() for path in paths):
        click.echo(printable(path))


@contextmanager
def _bar(label: str) -> Iterator[Callable[[int, int], None] | None]:
    """A bar on a terminal, from the first byte on that is downloaded."""
    if not sys.stderr.isatty():
        yield None
        return
    with click.progressbar(length=1, label=label, file=sys.stderr) as bar:

        def advance(done: int, total: int) -> None:
            bar.length = total
            bar.update(done - bar.pos)

        yield advance
