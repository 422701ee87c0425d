"""`idx stats`, `idx select` and `idx split`: data sets summarised and taken apart."""

from __future__ import annotations

import contextlib
import glob
import os
import re
from collections.abc import Iterator, Sequence
from typing import Any

import click

import idxfile

from ..catalog.table import datasets
from ..errors import IdxError, printable, sides
from ..names import file_name
from ..placing import clear_interrupted
from ..shards import shard_name
from ..source.places import beside, file_of, find_partner, is_folder, is_url
from .engines import engine_option, started
from .offering import splits_there
from .sharding import shards_options
from .terms import force_option, json_option, print_json, refuse_to_overwrite, sets_kept, table
from .terms import place as given

split_option = click.option(
    "--split", shell_complete=splits_there, help="train, test, or a word of the files' names."
)
name_option = click.option(
    "--name", help="Words of the files' names, where there are several sets."
)
labels_file_option = click.option(
    "--labels-file", type=click.Path(), help="The labels, where their name does not say so."
)
codec_option = click.option(
    "--codec", type=click.Choice(["gz", "bz2", "xz", "zst"]), help="Compression; none by default."
)

_MOST_BARS = 64


def open_place(
    place: str, labels_file: str | None, split: str | None, name: str | None
) -> idxfile.Dataset:
    """The data set that the words of a command mean."""
    if labels_file is not None:
        return idxfile.open_dataset((place, labels_file), split=split, name=name)
    return idxfile.open_dataset(place, split=split, name=name)


@click.command("stats")
@click.argument("place", type=click.Path())
@split_option
@name_option
@labels_file_option
@click.option("--duplicates", is_flag=True, help="Count equal images, also in the other split.")
@engine_option
@json_option
def stats_command(
    place: str,
    split: str | None,
    name: str | None,
    labels_file: str | None,
    duplicates: bool,
    engine: str | None,
    as_json: bool,
) -> None:
    """Summarise PLACE, a folder with a pair, a pair's file, or one IDX file.

    Counts by class, range, mean and standard deviation, ready to paste into a normalisation.
    """
    from ..summary import duplicate_items

    ds = _dataset_or_none(place, labels_file, split, name)
    with started(engine, f"stats {printable(place)}") as executor:
        summary = idxfile.stats(given(place) if ds is None else ds.images, executor=executor)
    facts: dict[str, Any] = summary.as_dict()
    if ds is not None:
        facts["parts"] = _parts(ds)
        facts["class_counts"] = {ds.class_name(n): count for n, count in ds.class_counts().items()}
        if duplicates:
            facts["duplicate_items"] = duplicate_items(ds.images)
    if as_json:
        print_json(facts)
        return
    rows = [("known as", f"{ds.name} {ds.split}")] if ds is not None and ds.name else []
    rows += [
        ("shape", sides(summary.shape)),
        ("type", summary.dtype),
        ("range", _range(summary)),
        ("mean", _number(summary.mean)),
        ("std", _number(summary.std)),
        ("zeros", f"{summary.zeros:,} of {summary.count:,}"),
    ]
    if summary.not_finite:
        rows.append(("not finite", f"{summary.not_finite:,}"))
    if summary.dtype == "uint8" and summary.unit_mean is not None and len(summary.shape) > 1:
        pair = f"({summary.unit_mean:.4f}, {summary.unit_std:.4f})"
        rows.append(("normalisation", f"scale={pair}, of values from 0 to 1"))
    if "duplicate_items" in facts:
        rows.append(("duplicates", f"{facts['duplicate_items']:,} items equal an earlier one"))
    click.echo("\n".join(table(rows)))
    if ds is not None:
        for part in facts["parts"]:
            click.echo(
                f"{part['name']}: items {part['items'][0]:,} to {part['items'][1] - 1:,}, "
                f"normalisation ({part['unit_mean']:.4f}, {part['unit_std']:.4f}); {part['note']}"
            )
    bars = facts["class_counts"] if ds is not None else _value_counts(summary)
    if bars:
        click.echo("\n".join(_bars(bars)))


def _dataset_or_none(
    place: str, labels_file: str | None, split: str | None, name: str | None
) -> idxfile.Dataset | None:
    """The data set of a place, or None where it is a single file without labels beside it."""
    from ..catalog.decoration import recognise_dataset
    from ..pairs import is_lone_set

    folder = is_folder(place)
    if labels_file is None and folder and is_lone_set(place):
        return None
    single = labels_file is None and not folder and not place.endswith(".zip")
    if single and (_names_labels(place) or find_partner(place) is None):
        return None
    return recognise_dataset(open_place(place, labels_file, split, name))


def _names_labels(place: str) -> bool:
    """Whether somebody asks for the labels themselves."""
    known = file_name(place)
    return known is not None and known.role == "labels"


def _value_counts(summary: idxfile.Stats) -> dict[str, int]:
    """Of few different values in a row, which is what labels are, how often each stands there."""
    found = {str(value): count for value, count in enumerate(summary.histogram) if count}
    few = summary.dtype == "uint8" and len(summary.shape) == 1 and len(found) <= _MOST_BARS
    return found if few else {}


def _parts(ds: idxfile.Dataset) -> list[dict[str, Any]]:
    """What is known of parts of a known data set, and their own figures."""
    known = next((facts for facts in datasets() if facts.name == ds.name), None)
    found = []
    for part in known.parts if known is not None else ():
        if part.split == ds.split and part.items[1] <= len(ds):
            figures = idxfile.stats(ds.select(items=slice(*part.items)).images)
            unit = {"unit_mean": figures.unit_mean, "unit_std": figures.unit_std}
            found.append({"name": part.name, "items": part.items, "note": part.note, **unit})
    return found


def _range(summary: idxfile.Stats) -> str:
    return f"{summary.minimum} to {summary.maximum}" if summary.count else "none"


def _number(value: float | None) -> str:
    return "none" if value is None else f"{value:.6g}"


def _bars(counts: dict[str, int], width: int = 40) -> list[str]:
    """A bar for each class, as long as its share of the largest."""
    most = max(counts.values(), default=0) or 1
    rows = [
        (name, f"{count:,}", "█" * round(width * count / most) or ("▏" if count else ""))
        for name, count in counts.items()
    ]
    return list(table([("class", "items", ""), *rows], right=(1,)))


@click.command("select")
@click.argument("place", type=click.Path())
@click.argument("out", type=click.Path())
@split_option
@name_option
@labels_file_option
@click.option("--labels", help="Classes to keep, by number or name: 3,7.")
@click.option("--items", "item_words", help="Items to keep: a slice 100:200, or numbers 1,5,9.")
@click.option("--limit", type=click.IntRange(0), help="At most so many items, the first ones.")
@click.option("--shuffle", is_flag=True, help="In random order; before --limit.")
@click.option("--seed", type=click.IntRange(0), help="Where the random order begins.")
@click.option("--transpose", is_flag=True, help="Exchange the rows and columns of every item.")
@codec_option
@shards_options
@engine_option
@force_option
def select_command(
    place: str,
    out: str,
    split: str | None,
    name: str | None,
    labels_file: str | None,
    labels: str | None,
    item_words: str | None,
    limit: int | None,
    shuffle: bool,
    seed: int | None,
    transpose: bool,
    codec: str | None,
    cut: dict[str, Any],
    engine: str | None,
    force: bool,
) -> None:
    """Write some items of PLACE, with their labels, as a new pair into the folder OUT."""
    ds = open_place(place, labels_file, split, name)
    with usage_errors():
        first, wanted = None if shuffle else limit, class_words(labels)
        absent = [word for word in wanted or () if not len(ds.select(labels=word, limit=1))]
        ds = ds.select(labels=wanted, items=items_key(item_words), limit=first)
    if absent:
        names = printable(", ".join(map(str, absent)))
        click.echo(f"note: no item has the label {names}", err=True)
    if shuffle:
        ds = ds.shuffle(seed).select(limit=limit)
    ds = ds.transpose() if transpose else ds
    save_pairs([ds], out, codec, cut, engine, force)


@click.command("split")
@click.argument("place", type=click.Path())
@click.argument("out", type=click.Path())
@click.option("--fractions", default="0.9,0.1", show_default=True, help="The part of each.")
@click.option("--names", default="train,test", show_default=True, help="What each is called.")
@click.option("--seed", type=click.IntRange(0), help="Where the random order begins.")
@click.option("--stratify", is_flag=True, help="Keep the share of every class.")
@split_option
@name_option
@labels_file_option
@codec_option
@shards_options
@engine_option
@force_option
def split_command(
    place: str,
    out: str,
    fractions: str,
    names: str,
    seed: int | None,
    stratify: bool,
    split: str | None,
    name: str | None,
    labels_file: str | None,
    codec: str | None,
    cut: dict[str, Any],
    engine: str | None,
    force: bool,
) -> None:
    """Split PLACE at random into several pairs, all written into the folder OUT."""
    parts = _list_of(float, fractions, "--fractions")
    called = [word.strip() for word in names.split(",")]
    if len(parts) != len(called) or len(set(called)) != len(called):
        raise click.UsageError(
            f"{len(parts)} fractions and {len(called)} names ({names}): --names needs a name of "
            "its own for each of --fractions"
        )
    if not all(re.fullmatch(r"[\w.+-]*\w[\w.+-]*", word) for word in called):
        raise click.UsageError("--names are parts of file names: letters, digits, . _ + -")
    ds = open_place(place, labels_file, split, name)
    with usage_errors():
        split_parts = ds.random_split(parts, seed=seed, stratify=stratify)
    for part, word in zip(split_parts, called, strict=True):
        part.split = word
    save_pairs(split_parts, out, codec, cut, engine, force)


def save_pairs(
    parts: Sequence[idxfile.Dataset],
    out: str,
    codec: str | None,
    cut: dict[str, Any],
    engine: str | None,
    force: bool,
) -> None:
    """Write data sets into a folder, as the options of a command say."""
    if engine is not None and codec is not None and not cut:
        raise click.UsageError(
            "--engine has a compressed file written from front to back: say how many with --shards"
        )
    for ds in parts:
        for place in ds.saved_names(out, codec=codec, **cut):
            if not cut:
                refuse_to_overwrite(place, force)
            elif is_url(place):  # a whole set in a store is never replaced
                names = shard_name(os.path.basename(file_of(place)))
                if force and names is not None:
                    clear_interrupted(beside(place, ""), names, [ds.images.name])
            else:
                for path in glob.glob(place):
                    refuse_to_overwrite(path, force)
    with started(engine, f"write {printable(out)}") as executor:
        for ds in parts:
            with sets_kept():
                images, labels = ds.save(out, codec=codec, executor=executor, **cut)
            click.echo(f"{printable(images)}, {printable(labels)}: {len(ds):,} items", err=True)
            if not len(ds):
                click.echo("note: nothing fits, so the files are empty", err=True)


@contextlib.contextmanager
def usage_errors() -> Iterator[None]:
    """What somebody asked for amiss is an error of usage, and none of ours."""
    try:
        yield
    except IdxError:
        raise
    except (IndexError, ValueError) as error:
        raise click.UsageError(str(error)) from None


def class_words(words: str | None) -> list[int | str] | None:
    """The classes that `3,7` or `cat,dog` mean, by number or by name; None for no words."""
    if words is None:
        return None
    names = (word.strip() for word in words.split(","))
    return [int(word) if word.lstrip("-").isdecimal() else word for word in names]


def items_key(words: str | None) -> Any:
    """What `--items` means: a slice, or numbers; None where it was not given."""
    if words is None:
        return None
    if ":" in words:
        try:
            return slice(*(int(part) if part else None for part in words.split(":")))
        except (ValueError, TypeError):
            raise click.UsageError(f"--items {words!r} is no slice") from None
    return _list_of(int, words, "--items")


def _list_of(kind: Any, words: str, option: str) -> list[Any]:
    try:
        return [kind(word) for word in words.split(",")]
    except ValueError:
        raise click.UsageError(f"{option} {words!r} is no list of numbers") from None
