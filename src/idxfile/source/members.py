"""What is known of the shards of a set before they are opened, and whether they fit together."""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from typing import Any, NamedTuple

from ..codecs import codec_of_name
from ..errors import FormatError, IdxError, IdxWarning, UnsupportedError, printable
from ..header import MAX_DIMENSION, Header
from ..problems import Problem
from .finding import Found, load_manifest, other_files
from .local import FileIdentity
from .places import absolute, is_url, public

__all__: list[str] = []


class Promised(NamedTuple):
    """What a manifest says that an object is; the store itself tells another version."""

    size: int
    sha256: str


class Facts(NamedTuple):
    """What is known of a shard without holding it open."""

    header: Header
    nbytes: int | None
    """Of the file as it lies there; None where only reading tells."""
    identity: Any
    """What tells that it is the same; None where nothing does, or it was not looked at."""
    codecs: tuple[str, ...] = ()


class Shard(NamedTuple):
    """One file of several that are read as one."""

    place: Any
    """Its absolute path or its address; what was given, where that is neither."""
    items: int
    nbytes: int | None = None
    """Of the file as it lies there; None where only reading tells."""
    identity: Any = None
    """What tells that it is the same; None where nothing does."""


class ShardsIdentity(NamedTuple):
    """What tells that shards are still those that were opened."""

    size: int
    version: str
    """A digest of what tells each of them."""


def check_unchanged(source: Any, known: Shard | Facts) -> None:
    """Make sure that the file of a shard is what it was when the set was opened.

    Raises:
        FormatError: when it is not.
    """
    identity = getattr(source, "identity", None)
    size = source.size if identity is None else identity.size
    if known.nbytes is not None and size != known.nbytes:
        raise changed(source.name, f"{size:,} bytes", f"{known.nbytes:,}")
    if isinstance(identity, type(known.identity)) and identity != known.identity:
        raise changed(source.name, "another version of it", "the one that was opened")


def of_manifest(found: Found) -> list[Facts] | None:
    """What the manifest says of each shard, where there is one.

    Local files are asked for their sizes; a store is not: each shard is held against the manifest
    when it is touched. A manifest that cannot be read is passed over, with a warning: the shards
    tell themselves what they hold. One that says otherwise than the files is an error, since
    shards of two sets may stand side by side.

    Raises:
        FormatError: when the manifest is of other files.
        OSError: as the system gives it.
    """
    try:
        manifest = load_manifest(found)
    except FormatError as error:
        text = f"{printable(error.file or '')}: {error.args[0]}; the shards are read without it"
        warnings.warn(text, IdxWarning, stacklevel=2)
        return None
    if manifest is None:
        return None
    problem = other_files(found, manifest)
    if problem is not None:
        raise problem.error(found.name)
    facts = []
    for place, shard in zip(found.places, manifest.shards, strict=True):
        header = Header.of(manifest.dtype, (shard.items, *manifest.item_shape))
        identity: Any = Promised(shard.nbytes, shard.sha256)
        if not is_url(place):
            identity = FileIdentity.of(os.stat(place))
            if identity.size != shard.nbytes:
                raise changed(place, f"{identity.size:,} bytes", f"{shard.nbytes:,}")
        codec = codec_of_name(shard.name) if shard.nbytes != header.file_nbytes else None
        facts.append(Facts(header, shard.nbytes, identity, (codec.name,) if codec else ()))
    return facts


def joined(facts: Sequence[Facts], found: Found) -> Header:
    """The header of the one file that the shards make.

    Raises:
        FormatError: where one has items of another type or shape; it names the file.
        UnsupportedError: for over 2^32 - 1 items.
    """
    first = facts[0].header
    for place, each in zip(found.places, facts, strict=True):
        if (each.header.element, each.header.item_shape) != (first.element, first.item_shape):
            raise differing(each.header, first, shown(found.places[0])).error(shown(place))
    count = sum(each.header.shape[0] for each in facts)
    if count > MAX_DIMENSION:
        raise UnsupportedError(
            f"{count:,} items in {len(facts):,} shards; one array holds {MAX_DIMENSION:,}",
            file=found.name,
            found=count,
            expected=MAX_DIMENSION,
            hint="open some of them: a list of files",
        )
    return Header.of(first.element.name, (count, *first.item_shape))


def differing(mine: Header, wanted: Header, first: str) -> Problem:
    """The finding of a shard whose items are others than those of the first one."""
    return Problem(
        "shard-differs",
        f"items of {mine.element.name} {mine.item_shape}, "
        f"expected {wanted.element.name} {wanted.item_shape} as in {printable(first)}",
        found=str(mine),
        expected=str(wanted),
        hint="only files of equal items make one array",
    )


def changed(name: str, found: str, expected: str) -> IdxError:
    problem = Problem(
        "shard-changed",
        f"found {found}, expected {expected}: the shard is not what it was said to be",
        found=found,
        expected=expected,
        hint="it was changed after the set was opened, or its manifest is of another set; without "
        "the manifest, the files are taken as they are",
    )
    return problem.error(name)


def shown(place: Any) -> str:
    """The name of a shard, as errors show it."""
    if not isinstance(place, (str, os.PathLike)):
        return f"<{type(place).__name__}>"
    return public(os.fsdecode(place))


def lasting(place: Any) -> Any:
    """The place of a shard, if it has one, as it means the same in every folder."""
    return absolute(place) if isinstance(place, str) else place
