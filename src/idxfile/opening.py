"""How a file becomes a source and a header, judged; and how it is opened again elsewhere."""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from .errors import FormatError, UnsupportedError
from .header import MAX_ARRAY_NDIM, ByteOrder, Header, examine
from .problems import Handling, settle
from .source import SPOOL_NBYTES, header_prefix, open_source
from .source.local import FileIdentity
from .source.places import absolute

if TYPE_CHECKING:
    from .source.members import Shard

__all__: list[str] = []


@dataclass(frozen=True)
class Recipe:
    """What it takes to open a file again, in this process or in another."""

    reopen: Callable[..., Any]
    """A function of a module, called with the arguments."""
    file: Any
    """The absolute place, or the data."""
    options: dict[str, Any]
    """Of `open`."""
    identity: Any
    """What the file was; None for data."""

    @property
    def arguments(self) -> tuple[Any, ...]:
        """What `reopen` is called with, as it travels: data as bytes."""
        return (self.file if self.identity else bytes(self.file)), self.options, self.identity

    def open(self) -> Any:
        """Open the file again; data are not copied for it."""
        return self.reopen(self.file, self.options, self.identity)


class ShardRecipe(NamedTuple):
    """What it takes to open one shard of a set by itself, as the set was opened."""

    shard: Shard
    header: str
    """What the set knows of it, in words."""
    options: tuple[tuple[str, Any], ...]
    """Of `open`."""


def open_header(
    file: Any,
    *,
    byteorder: ByteOrder = "big",
    problems: Handling = "raise",
    mmap: bool = True,
    spool_nbytes: int = SPOOL_NBYTES,
    writeable: bool = False,
) -> tuple[Any, Header]:
    """Open a source and read its header, raising what the judge finds.

    Returns:
        The source, open, and the header.
    """
    source = open_source(file, mmap=mmap, spool_nbytes=spool_nbytes, writeable=writeable)
    try:
        header, found = examine(header_prefix(source), source.size)
        if header is None:
            from .source.archive import with_members

            found = with_members(found, source)
        settle([*source.problems, *found], problems, source.name)
        assert header is not None  # settle has raised
        if byteorder not in ("big", "little"):
            raise ValueError(f'byteorder must be "big" or "little", not {byteorder!r}')
        if header.dialect == "idx" and byteorder == "little":
            header = Header(header.element, header.shape, header.data_offset, "little")
    except BaseException:
        source.close()
        raise
    return source, header


def recipe_of(
    reopen: Callable[..., Any], file: Any, options: dict[str, Any], source: Any
) -> Recipe | None:
    """The recipe of a file that was opened as this source; None for a file object."""
    if hasattr(source, "shards"):  # many files know where they are, or nobody does
        known = source.identity is not None
        return Recipe(reopen, source.place, options, source.identity) if known else None
    if not isinstance(file, (str, os.PathLike)):
        return None if hasattr(file, "read") else Recipe(reopen, file, options, None)
    place = absolute(os.fsdecode(file))
    identity = getattr(source, "identity", None)  # of the very file that was opened
    return Recipe(reopen, place, options, identity or FileIdentity.of(os.stat(place)))


def check_identity(place: str, source: Any, identity: Any) -> None:
    """Make sure that a file is still the one that a recipe is of.

    Args:
        place: where it lies.
        source: what it was opened as; None asks the system, before it is opened.
        identity: what it was.

    Raises:
        FormatError: when it is another one.
    """
    now = getattr(source, "identity", None) or FileIdentity.of(os.stat(place))
    if now != identity:
        raise FormatError(
            f"the file has changed since it was pickled: {_told(now)} now, {_told(identity)} then",
            file=source.name if source is not None else place,
            found=now,
            expected=identity,
            hint="open it again in the process that sent it",
            code="changed",
        )


def _told(identity: Any) -> str:
    size = "unknown" if identity.size is None else f"{identity.size:,}"
    version = getattr(identity, "version", None)
    return f"{size} bytes{f', version {version}' if version else ''}"


def no_array_error(header: Header, name: str) -> UnsupportedError | None:
    """The error for a shape that no NumPy array can have, or None."""
    found, limit = header.ndim, MAX_ARRAY_NDIM
    text = f"{found} dimensions; NumPy holds {limit}"
    if found <= limit and header.size == 0:
        # Of an empty array NumPy multiplies the other dimensions all the same.
        found, limit = math.prod(filter(None, header.shape)) * header.element.nbytes, sys.maxsize
        text = f"an empty array of {header}; NumPy has no room for its other dimensions"
    if found <= limit:
        return None
    hint = "`idx info` and `idx check` work on it"
    return UnsupportedError(text, file=name, found=found, expected=limit, hint=hint)
