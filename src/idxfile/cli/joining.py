"""`idx append` and `idx concat`: the items of several files in one."""

from __future__ import annotations

import contextlib
import glob
import os
import sys
from collections.abc import Sequence
from dataclasses import replace

import click

import idxfile

from ..codecs import codec_of_name
from ..cutting import shard_count
from ..errors import FormatError, UnsupportedError, printable
from ..placing import clear_interrupted
from ..report.facts import counted
from ..shards import named_shards
from ..source.places import beside, file_of, is_url
from .sharding import shards_options
from .terms import force_option, place, refuse_to_overwrite, sets_kept


@click.command("append")
@click.argument("file", type=click.Path())
@click.argument("others", nargs=-1, required=True, type=click.Path())
def append_command(file: str, others: tuple[str, ...]) -> None:
    """Add the items of OTHERS to the end of FILE, in place.

    A crash leaves the old items of FILE intact. A compressed FILE is written anew, atomically.
    """
    with contextlib.ExitStack() as stack:
        old = stack.enter_context(idxfile.open(file, mmap=False))
        arrays = [stack.enter_context(idxfile.open(place(other), mmap=False)) for other in others]
        for array in arrays:  # before anything is written
            _check_fits(array, old)
        for array in arrays:
            idxfile.append(file, array)
    with idxfile.open(file) as new:
        before = counted(old.shape[0], "item")
        click.echo(f"{printable(file)}: {before} before, {len(new):,} now", err=True)


def _check_fits(array: idxfile.IdxArray, old: idxfile.IdxArray) -> None:
    if not array.ndim:
        raise UnsupportedError("a scalar has no items to append", file=array.name)
    mine, wanted = array.header, old.header
    if old.ndim and (mine.element, mine.item_shape) != (wanted.element, wanted.item_shape):
        raise FormatError(
            f"found {mine}, expected items as those of {printable(old.name)}, {wanted}",
            file=array.name,
            found=str(mine),
            expected=str(wanted),
            hint="only items of one type and shape fit into one file; nothing was appended",
        )


@click.command("concat")
@click.argument("out", type=click.Path())
@click.argument("files", nargs=-1, required=True, type=click.Path())
@click.option(
    "--codec",
    type=click.Choice(["auto", "raw", "gz", "bz2", "xz", "zst"]),
    default="auto",
    show_default=True,
    help="Compression; auto goes by the suffix of OUT.",
)
@click.option("--blocked", is_flag=True, help="gz only: many small members, for random access.")
@shards_options
@force_option
def concat_command(
    out: str,
    files: tuple[str, ...],
    codec: str,
    blocked: bool,
    cut: dict[str, int],
    force: bool,
) -> None:
    """Write the items of FILES, one file after another, into the new file OUT.

    The files must have items of one type and shape. Memory stays constant. `-` as OUT is standard
    output. With --shards, OUT.idx stands for OUT-00000-of-00042.idx and so on, with a manifest.
    """
    from ..pairs import is_lone_set

    for file in files:
        if os.path.isdir(file) and not is_lone_set(file):
            raise click.UsageError(f"{printable(file)} is a folder: `idx merge` joins pairs")
    promised = codec_of_name(out) if codec == "auto" else None
    if blocked and (promised.name if promised else codec) != "gz":
        raise click.UsageError("--blocked is a way of writing gz: name OUT so, or add --codec gz")
    if cut and out == "-":
        raise click.UsageError("--shards are files: OUT cannot be standard output")
    written = out
    if cut:
        written = _set_of(out, cut.get("shards") or _number(files, **cut), force, files)
    else:
        refuse_to_overwrite(out, force)
    target = sys.stdout.buffer if out == "-" else out
    parts = [place(file) for file in files]
    packing = None if codec == "raw" else codec
    with sets_kept():
        idxfile.concat(target, parts, codec=packing, blocked=blocked, **cut)
    if cut or os.path.isfile(out):
        with idxfile.open(written) as array:
            click.echo(f"{printable(array.name)}: {array.header}", err=True)


def _number(files: Sequence[str], shard_nbytes: int) -> int:
    """How many shards of so many bytes there will be.

    Raises:
        click.UsageError: where standard input is one of the files, which is read once.
    """
    if "-" in files:
        raise click.UsageError("--shard-nbytes counts before it writes: `-` goes with --shards")
    with contextlib.ExitStack() as stack:
        headers = [stack.enter_context(idxfile.open(f, mmap=False)).header for f in files]
    count = sum(header.shape[0] if header.shape else 1 for header in headers)
    whole = replace(headers[0], shape=(count, *headers[0].item_shape))
    return shard_count(whole, None, shard_nbytes) or 1


def _set_of(out: str, shards: int, force: bool, files: Sequence[str]) -> str:
    """The pattern of the shards that a file stands for.

    With `force`, what an interrupted writer left of them in a store is removed.

    Raises:
        click.UsageError: for a shard here that would be replaced; in a store none is.
    """
    names = named_shards(os.path.basename(file_of(out)), shards)
    if is_url(out):
        if force:
            clear_interrupted(beside(out, ""), names, files)
        return beside(out, names.pattern)
    folder = os.path.dirname(out)
    for number in range(shards):
        refuse_to_overwrite(os.path.join(folder, names.numbered(number)), force)
    return os.path.join(glob.escape(folder), names.pattern)
