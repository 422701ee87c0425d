"""Sources opened as columns, and closed again: decompressed first where their format is not."""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ..errors import IdxError, UnsupportedError
from ..problems import settle
from ..source import open_source, pieces
from ..source.places import download, file_of, is_url
from ..staging import temporary_folder
from .columns import Columns
from .options import options_of, with_options
from .recognition import format_of_source
from .row import Format

__all__: list[str] = []

_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""What the system says of a file that is written, without its name."""


def function_of(row: Format, verb: str, options: Mapping[str, Any]) -> Callable[..., Any]:
    """A function of a format's module, with its options filled in.

    Args:
        row: the format.
        verb: read, write or point.
        options: as they were given.

    Raises:
        UnsupportedError: when the format does not do that.
    """
    if not getattr(row, f"{verb}s"):
        done = {"read": "read", "write": "written", "point": "used to point"}[verb]
        raise UnsupportedError(f"{row.title} is not {done} here")
    function = getattr(row.load(), f"{verb}_columns")
    return with_options(function, {**dict(row.presets), **options}, row.name)


def open_columns(
    stack: contextlib.ExitStack,
    names: dict[str, str],
    source: str,
    reader: Format,
    options: Mapping[str, Any],
    split: str | None = None,
    dtype: Any = None,
) -> Columns:
    """Open a source, until the stack ends.

    Args:
        stack: what closes it.
        names: gets the path that is read, where it is not the source's own.
        source: the path.
        reader: its format.
        options: of the format.
        split: for a format that has such an option.
        dtype: the type that a text is meant as, where it is one of floats.
    """
    path = stack.enter_context(_unpacked(source, reader))
    if path != source:
        names[path] = source
    given = dict(options)
    known = options_of(reader.load().read_columns) if reader.reads else {}
    if split is not None and "split" in known:
        given.setdefault("split", split)
    if not reader.typed and dtype in ("float16", "float32") and "dtype" in known:
        given.setdefault("dtype", dtype)
    columns: Columns = function_of(reader, "read", given)(path)
    stack.callback(columns.close)
    return columns


def open_labels(stack: contextlib.ExitStack, names: dict[str, str], path: str) -> Any:
    """The column of labels of a file that holds them."""
    columns = open_columns(stack, names, path, format_of_source(path), {})
    return columns.arrays.get("labels", columns.first)


@contextlib.contextmanager
def _unpacked(path: str, row: Format) -> Iterator[str]:
    """The path of a file without compression: its own, or that of a copy for the while."""
    if is_url(path) and row.name != "idx":
        with temporary_folder() as folder:
            copy = os.path.join(folder, os.path.basename(file_of(path)) or "copy")
            with open(copy, "wb") as file:
                download(path, file)
            with _unpacked(copy, row) as unpacked:
                yield unpacked
        return
    source = None if row.packs or os.path.isdir(path) else open_source(path, mmap=False)
    try:
        if source is None or not source.codecs:
            yield path
            return
        with temporary_folder() as folder:
            unpacked = os.path.join(folder, os.path.basename(path).rpartition(".")[0] or "unpacked")
            with open(unpacked, "wb") as file:
                for piece in pieces(source):
                    file.write(piece)
            settle(source.problems, "raise", path)
            yield unpacked
    finally:
        if source is not None:
            source.close()


@contextlib.contextmanager
def named_errors(source: str, target: str) -> Iterator[dict[str, str]]:
    """Errors carry the names that the user gave: a table of paths of ours → names, to be filled."""
    names: dict[str, str] = {}
    try:
        yield names
    except IdxError as error:
        error.file = _as_given(error.file or source, names)
        raise
    except OSError as error:
        if error.filename is None and error.errno in _NO_ROOM:
            error.filename = target
        elif isinstance(error.filename, str):
            error.filename = _as_given(error.filename, names)
            del error.filename2  # it may be a temporary one
        raise


def _as_given(path: str, names: Mapping[str, str]) -> str:
    """A path as the user knows it: what he gave, and whatever lies below."""
    for ours, name in names.items():
        rest = path.removeprefix(ours)
        if rest != path and rest[:1] in ("", "/", ":"):
            return f"{name.rstrip('/')}{rest}" if rest else name
    return path
