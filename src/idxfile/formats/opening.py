"""Sources opened as columns, and closed again: decompressed first where their format is not."""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from ..errors import IdxError, UnsupportedError
from ..problems import settle
from ..source import open_source, pieces
from ..source.places import download, file_of, from_anywhere, is_url
from ..staging import temporary_folder
from .columns import Columns, Elsewhere
from .options import options_of, with_options
from .row import Format

__all__: list[str] = []

_DONE = {
    "read": ("read", None),
    "write": ("written", None),
    "point": ("used to point", None),
    "lay": (
        "written by many at once",
        "--shards (shards=) has each write a file; without --engine (executor=) it is one",
    ),
}
"""What a format does or not, and a way out."""

_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""What the system says of a file that is written, without its name."""


def function_of(row: Format, verb: str, options: Mapping[str, Any]) -> Callable[..., Any]:
    """A function of a format's module, with its options filled in.

    Args:
        row: the format.
        verb: read, write, lay or point.
        options: as they were given.

    Raises:
        UnsupportedError: when the format does not do that.
    """
    if not getattr(row, f"{verb}s"):
        done, hint = _DONE[verb]
        raise UnsupportedError(f"{row.title} is not {done} here", hint=hint)
    function = getattr(row.load(), f"{verb}_columns")
    return with_options(function, {**dict(row.presets), **options}, row.name)


@dataclass(frozen=True)
class Source:
    """What is read: how its columns are opened, here or in a process that it was sent to."""

    path: str
    reader: Format
    """Its format."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Of the format."""
    split: str | None = None
    """For a format that has such an option."""
    dtype: Any = None
    """The type that a text is meant as, where it is one of floats."""

    @contextlib.contextmanager
    def opened(self, names: dict[str, str] | None = None) -> Iterator[Columns]:
        """Its columns, for the while.

        Args:
            names: what errors call the path that is read, where it is not the source's own; to be
                filled.
        """
        with _unpacked(self.path, self.reader) as path:
            if path != self.path and names is not None:
                names[path] = self.path
            given = dict(self.options)
            known = options_of(self.reader.load().read_columns) if self.reader.reads else {}
            if self.split is not None and "split" in known:
                given.setdefault("split", self.split)
            floats = self.dtype in ("float16", "float32")
            if not self.reader.typed and floats and "dtype" in known:
                given.setdefault("dtype", self.dtype)
            columns: Columns = function_of(self.reader, "read", given)(path)
            try:
                yield columns
            finally:
                columns.close()

    def column(self, name: str, array: Any, *, alone: bool) -> Elsewhere:
        """One of its columns, as it is opened anywhere.

        Args:
            name: which; empty for its labels, whatever they are called.
            array: the column as it was opened here.
            alone: whether what was opened here is a copy that nobody else sees.
        """
        there = replace(self, path=from_anywhere(self.path))
        return Elsewhere(there.opened, name, array.shape, array.dtype, alone)


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
