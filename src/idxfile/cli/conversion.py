"""`idx convert`: from any format to any other."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

import click
from click.shell_completion import CompletionItem

import idxfile

from ..errors import IdxError, printable, sides
from ..formats.options import described, explained, options_of, parsed
from ..formats.row import Format
from ..formats.table import all_formats, format_named
from .engines import engine_option, started
from .offering import beginning, splits_there
from .sharding import shards_options
from .terms import (
    force_option,
    json_option,
    print_json,
    progress_bar,
    refuse_to_overwrite,
    slabs_bar,
    table,
)

Value = TypeVar("Value")


class _FormatName(click.ParamType[str]):
    """A key of FORMATS, those of other packages too; the names are looked up when one is given."""

    name = "format"

    def __init__(self, *verbs: str) -> None:
        """What a shell offers does one of these: reads, writes, points; without any, all is."""
        self._verbs = verbs or ("reads", "writes", "points")

    def convert(self, value: str, parameter: Any, context: Any) -> str:
        if value not in all_formats():
            self.fail(f"{value!r} is none of {', '.join(all_formats())}", parameter, context)
        return value

    def shell_complete(self, context: Any, parameter: Any, incomplete: str) -> list[CompletionItem]:
        rows = all_formats().values()
        able = (row for row in rows if any(getattr(row, verb) for verb in self._verbs))
        return beginning(incomplete, ((row.name, row.title) for row in able))


def _list_formats(context: click.Context, _: click.Parameter, wanted: bool) -> None:
    if not wanted or context.resilient_parsing:
        return
    rows: list[tuple[str, ...]] = [("format", "suffixes", "read", "written", "what it is")]
    for row in all_formats().values():
        verbs = ("yes" if does else "" for does in (row.reads, row.writes))
        rows.append((row.name, " ".join(row.suffixes), *verbs, row.title))
    click.echo("\n".join(table(rows)))
    click.echo("`idx convert --options FORMAT` lists what -O can say of one", err=True)
    context.exit()


def _list_options(context: click.Context, _: click.Parameter, name: str | None) -> None:
    if name is None or context.resilient_parsing:
        return
    row = format_named(name)
    for side, verb in (("from", "read"), ("to", "write" if row.writes else "point")):
        if not getattr(row, f"{verb}s"):
            continue
        found = explained(getattr(row.load(), f"{verb}_columns"))
        click.echo(f"{side} {row.name}:{'' if found else ' no options'}")
        for option, values, default, meaning in found:
            click.echo(f"  -O {option}=…  {values}; {default} if not given")
            click.echo(
                click.wrap_text(meaning, 100, initial_indent=" " * 6, subsequent_indent=" " * 6)
            )
    context.exit()


_PICTURES = {
    "classes": ("A,B,…", "the classes in order; else sorted naturally."),
    "resize": ("WxH", "scale them to this size; the ratio is not kept."),
    "crop": ("WxH", "cut what is larger to its middle."),
    "pad": ("WxH", "centre what is smaller on zeros."),
    "grey": (None, "make colours grey."),
    "rgb": (None, "keep colours: items × rows × columns × 3."),
    "alpha": ("drop|white|black", "what becomes of transparency."),
    "depth": ("8|16", "of 16 bits, the high byte or the values."),
    "exif": ("apply|ignore", "whether they are turned as EXIF says."),
    "frames": ("first", "of files with several, the first."),
    "invert": (None, "exchange black and white."),
    "threshold": ("N", "from here on white, below black."),
    "skip_bad": (None, "leave out what cannot be read, with its label."),
}
"""Options of reading pictures that have flags of their own: metavar (None: yes or no), and help."""


def _picture_flags(command: Callable[..., Value]) -> Callable[..., Value]:
    for name, (metavar, text) in reversed(_PICTURES.items()):
        flag = {"is_flag": True} if metavar is None else {"metavar": metavar}
        command = click.option(_flag(name), help=f"Of pictures: {text}", **flag)(command)
    return command


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"


@click.command("convert")
@click.argument("src", type=click.Path())
@click.argument("dst", type=click.Path())
@click.option("--from", "source_format", type=_FormatName("reads"), help="The format of SRC.")
@click.option(
    "--to", "target_format", type=_FormatName("writes", "points"), help="The format of DST."
)
@click.option("--items", help="Items to convert, as a slice: 100:200, ::10.")
@click.option("--column", help="The one column to convert: images, labels, …")
@click.option("--labels", type=click.Path(), help="A file with the labels, of any format.")
@click.option(
    "--split", shell_complete=splits_there,
    help="train, test …: what to read, and what files are called after.",
)  # fmt: skip
@click.option("--dtype", help="Element type; auto is the smallest that keeps every value.")
@click.option("--scale", metavar="LOW:HIGH", help="The values that become least and greatest.")
@click.option("--point", is_flag=True, help="Write no elements, but where they lie in SRC.")
@_picture_flags
@click.option(
    "-O", "--option", "options", multiple=True, metavar="KEY=VALUE", help="Of either format."
)
@click.option(
    "--formats", is_flag=True, is_eager=True, expose_value=False, callback=_list_formats,
    help="List the formats, and exit.",
)  # fmt: skip
@click.option(
    "--options", "_", type=_FormatName(), is_eager=True, expose_value=False,
    callback=_list_options, help="List what -O can say of a format, and exit.",
)  # fmt: skip
@json_option
@shards_options
@engine_option
@force_option
def convert_command(
    src: str,
    dst: str,
    source_format: str | None,
    target_format: str | None,
    items: str | None,
    column: str | None,
    labels: str | None,
    split: str | None,
    dtype: str | None,
    scale: str | None,
    point: bool,
    options: tuple[str, ...],
    as_json: bool,
    cut: dict[str, int],
    engine: str | None,
    force: bool,
    **pictures: str | bool | None,
) -> None:
    """Convert SRC into DST, from any format to any other.

    What SRC is, its content says; what DST shall be, its name says: `train.npz`, `train.csv.gz`,
    or `train/` for a pair of IDX files. Values are kept exactly, or refused. Options of the two
    formats are given with -O, as -O shape=28x28; `from.KEY` and `to.KEY` where both have one.
    With --engine, raw IDX files and .npy are written by many at once, and of other files shards.
    """
    if "-" in (src, dst):
        raise click.UsageError("formats are read and written by position: `-` cannot be it")
    if dtype not in (None, "auto"):
        from ..formats.casts import checked_dtype

        _usage(checked_dtype, dtype)
    bounds = None if scale is None else _bounds(scale)
    chosen = None if items is None else _slice(items)
    source, target = _formats(src, dst, source_format, target_format, point)
    verb = "point" if point or not target.writes else "write"
    words = [_Word.of_option(word) for word in options]
    words += [_Word.of_flag(name, value) for name, value in pictures.items() if value]
    given = _options(words, source, target, verb)
    if not os.path.isdir(dst):
        refuse_to_overwrite(dst, force)
    label = f"convert {printable(os.path.basename(src))}"
    bar = progress_bar(label, _nbytes(src)) if engine is None else slabs_bar(label)
    with started(engine, None) as executor, bar as progress:
        done = _usage(
            idxfile.convert,
            src,
            dst,
            source_format=source.name,
            target_format=target.name,
            items=chosen,
            column=column,
            labels=labels,
            split=split,
            dtype=dtype,
            scale=bounds,
            point=point,
            source_options=given[0],
            target_options=given[1],
            overwrite=force,
            executor=executor,
            progress=progress,
            **cut,
        )
    if as_json:
        print_json(done.as_dict())
    else:
        _tell(done)


def _nbytes(path: str) -> int:
    """About how many bytes there are to convert."""
    if not os.path.isdir(path):
        return os.path.getsize(path) if os.path.exists(path) else 0  # a pattern of shards
    return sum(
        os.path.getsize(os.path.join(folder, name))
        for folder, _, names in os.walk(path)
        for name in names
        if os.path.exists(os.path.join(folder, name))
    )


def _tell(done: idxfile.Conversion) -> None:
    for name, (dtype, shape) in done.columns.items():
        size = sides(shape)
        click.echo(f"{printable(done.target)}: {printable(name)} {dtype} {size}", err=True)
    for note in done.notes:
        click.echo(f"note: {printable(note)}", err=True)


def _formats(
    src: str, dst: str, source: str | None, target: str | None, point: bool
) -> tuple[Format, Format]:
    from ..formats.recognition import format_of_source, format_of_target

    return (
        format_named(source) if source else format_of_source(src),
        format_named(target) if target else format_of_target(dst, point=point),
    )


class _Word(NamedTuple):
    """An option of a format, as it was given."""

    shown: str
    side: str
    """from, to, or nothing where either may be meant."""
    name: str
    value: str

    @classmethod
    def of_option(cls, text: str) -> _Word:
        """`-O KEY=VALUE`."""
        key, separator, value = text.partition("=")
        if not separator:
            raise click.UsageError(f"-O {text}: it is no KEY=VALUE")
        side, _, name = key.rpartition(".")
        return cls(f"-O {text}", side, name, value)

    @classmethod
    def of_flag(cls, name: str, value: str | bool) -> _Word:
        """A flag of pictures."""
        text = "yes" if value is True else str(value)
        shown = _flag(name) if value is True else f"{_flag(name)} {text}"
        return cls(shown, "from", name, text)


def _options(
    words: Sequence[_Word], source: Format, target: Format, verb: str
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The options of the source and those of the target.

    Raises:
        click.UsageError: for an option that neither has, or a value that it cannot have.
    """
    known: list[Mapping[str, Any]] = [{}, {}]
    if words:
        known = [_options_of(source, "read"), _options_of(target, verb)]
    given: tuple[dict[str, Any], dict[str, Any]] = ({}, {})
    for shown, side, name, value in words:
        ends = enumerate(("from", "to"))
        places = [n for n, end in ends if side in ("", end) and name in known[n]]
        if not places:
            there = ", ".join(sorted({*known[0], *known[1]})) or "none"
            raise click.UsageError(f"{shown}: there is no such option; there are {there}")
        if len(places) > 1:
            raise click.UsageError(f"{shown}: both formats have it: say from.{name} or to.{name}")
        (place,) = places
        try:
            given[place][name] = parsed(value, known[place][name])
        except ValueError:
            raise click.UsageError(f"{shown}: {described(known[place][name])}") from None
    return given


def _options_of(row: Format, verb: str) -> Mapping[str, Any]:
    return options_of(getattr(row.load(), f"{verb}_columns")) if getattr(row, f"{verb}s") else {}


def _bounds(text: str) -> tuple[float, float]:
    low, separator, high = text.partition(":")
    if not separator:
        raise click.UsageError(f"--scale {text!r} is not LOW:HIGH")
    try:
        return float(low), float(high)
    except ValueError:
        raise click.UsageError(f"--scale {text!r} is not LOW:HIGH") from None


def _slice(text: str) -> slice:
    try:
        parts = [int(part) if part else None for part in text.split(":")]
        if not 2 <= len(parts) <= 3 or parts[2:] == [0]:
            raise ValueError
    except ValueError:
        raise click.UsageError(f"--items {text!r} is no slice like 100:200") from None
    return slice(*parts)


def _usage(work: Callable[..., Value], *words: Any, **options: Any) -> Value:
    """Call the library; what it says of its arguments is wrong usage."""
    try:
        return work(*words, **options)
    except IdxError:
        raise
    except FileExistsError as error:
        place = printable(os.fsdecode(error.filename))
        if str(error.strerror).endswith("would be replaced"):
            raise click.UsageError(f"{place} exists; --force writes over it") from None
        raise click.UsageError(f"{place}: {error.strerror}") from None  # nothing writes over it
    except (TypeError, ValueError) as error:
        raise click.UsageError(str(error)) from None
