"""FORMATS: every format that can be converted from or to, as one table.

A row names a module of this folder with two functions:

    read_columns(path, **options) -> Columns
    write_columns(path, columns, **options) -> None

`read_columns` opens lazily; `write_columns` takes the blocks of the columns, in constant memory,
and writes one file (or fills one folder, that is there and empty). Options are keyword-only and
named in the signature. Another package adds a format by an entry point of the group
`idxfile.formats` that gives such a row.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any

from .. import signatures
from ..codecs import codec_of_name
from ..errors import FormatError, UnsupportedError
from ..names import file_name
from ..source import header_prefix, open_source

__all__ = ["FORMATS", "Format"]


@dataclass(frozen=True, slots=True)
class Format:
    """A row of the table of formats."""

    name: str
    """The public name, as `--from` and `--to` take it."""
    suffixes: tuple[str, ...]
    """Suffixes of file names."""
    module: str
    """Where its two functions are: a module of this folder, or a dotted name."""
    title: str
    """What it is, for people."""
    signatures: tuple[str, ...] = ()
    """Names in SIGNATURES that show it by content."""
    reads: bool = True
    writes: bool = True
    several: bool = True
    """Whether it holds several columns: images with their labels."""
    folder: bool = False
    """Whether it is a folder, not a file."""
    extra: str | None = None
    """The extra of idxfile that brings what it needs."""

    def load(self) -> Any:
        """The module with the two functions."""
        name = self.module if "." in self.module else f"{__package__}.{self.module}"
        return import_module(name)


FORMATS: dict[str, Format] = {
    row.name: row
    for row in (
        Format("idx", (".idx",), "idx", "IDX: a file, or a folder with a pair"),
        Format("npy", (".npy",), "npy", "NumPy array", ("a NumPy .npy file",), several=False),
        Format("npz", (".npz",), "npz", "NumPy arrays in a zip", ("a zip archive",)),
    )
}


@cache
def all_formats() -> dict[str, Format]:
    """The table, with what other packages add to it."""
    added = {}
    for point in entry_points(group="idxfile.formats"):
        row = point.load()
        added[row.name] = row
    return {**added, **FORMATS}


def format_named(name: str) -> Format:
    """The row of that name.

    Raises:
        ValueError: for a name that is not in the table.
    """
    row = all_formats().get(name)
    if row is None:
        raise ValueError(f"format must be one of {', '.join(all_formats())}, not {name!r}")
    return row


def _by_suffix(path: str) -> Iterator[Format]:
    base = path.lower().rstrip("/")
    packed = codec_of_name(base)
    stems = [base] + ([base.rpartition(".")[0]] if packed else [])
    for row in all_formats().values():
        if any(stem.endswith(row.suffixes) for stem in stems):
            yield row


def format_of_source(path: str) -> Format:
    """What a file is, by its content, and only where that tells nothing by its name.

    Raises:
        FormatError: when nothing here reads it.
        OSError: as the system gives it.
    """
    if os.path.isdir(path):
        return _format_of_folder(path)
    source = open_source(path, mmap=False)
    try:
        prefix = header_prefix(source)
    finally:
        source.close()
    kind = signatures.recognise(prefix)
    rows = [row for row in all_formats().values() if kind and kind.name in row.signatures]
    named = [row for row in _by_suffix(path) if row.reads]
    chosen = next((row for row in named if row in rows), None) or next(iter(rows), None)
    if chosen is None and kind is None:
        return FORMATS["idx"]
    chosen = chosen or next((row for row in named if not row.signatures), None)
    if chosen is None or not chosen.reads:
        what = kind.name if kind else "unknown"
        raise FormatError(
            f"this is {what}, which cannot be converted from",
            file=path,
            found=what,
            hint=f"formats that are read: {', '.join(_names('reads'))}",
        )
    return chosen


def _format_of_folder(path: str) -> Format:
    if any(file_name(name) for name in os.listdir(path)):
        return FORMATS["idx"]
    by_name = next((row for row in _by_suffix(path) if row.folder), None)
    return by_name or next((r for r in all_formats().values() if r.folder), FORMATS["idx"])


def format_of_target(path: str) -> Format:
    """The format that the name of a target asks for.

    Raises:
        UnsupportedError: when the name asks for none that is written.
    """
    row = next((row for row in _by_suffix(path) if row.writes), None)
    if row is not None:
        return row
    if file_name(path) or path.endswith("/") or os.path.isdir(path):
        return FORMATS["idx"]
    raise UnsupportedError(
        "the name does not say what format to write",
        file=path,
        hint=f"say it with --to: {', '.join(_names('writes'))}",
    )


def _names(what: str) -> list[str]:
    return [row.name for row in all_formats().values() if getattr(row, what)]
