"""Sets of shards: what their files are called, which names make a set, and its manifest.

`x-00000-of-00042.idx` is number 0 of 42 of the set `x`. The number of shards stands in every name,
so that a set tells by itself whether it is whole. A set may have a manifest beside it,
`x.manifest.json`, which says what is in each shard. Nothing here touches a file.
"""

from __future__ import annotations

import glob
import itertools
import json
import os
import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from operator import itemgetter
from typing import Any, NamedTuple

from .codecs import CODECS
from .errors import FormatError, printable
from .header import Header
from .problems import Problem

__all__: list[str] = []

MANIFEST_SUFFIX = ".manifest.json"
MANIFEST_VERSION = 1
MOST_MANIFEST_NBYTES = 1 << 28
"""A manifest of a million shards is smaller."""

_CODECS = rf"(?:{'|'.join(re.escape(suffix) for row in CODECS for suffix in row.suffixes)})*"
_KIND = r"(?:\.idx\d*(?:[-_.][a-z]+\d*)?|\.bin|\.lushbin)?"
_NAME = re.compile(rf"(.*?)({_KIND}{_CODECS})\Z", re.IGNORECASE | re.DOTALL | re.ASCII)
_SHARD = re.compile(r"(.+)-(\d{5,}|\?{5,}|\*)-of-(\d{5,})(\..*|\*)?\Z", re.DOTALL | re.ASCII)


class ShardName(NamedTuple):
    """What the name of a file tells about its place in a set."""

    stem: str
    number: int | None
    """Which shard it is, from 0; None for a pattern that stands for all of them."""
    total: int
    suffix: str
    """What follows the numbers: `.idx`, `.idx3-ubyte.gz` …"""

    @property
    def kind(self) -> str:
        """The suffix without compressions: shards of one set may be packed differently."""
        return re.sub(rf"{_CODECS}\Z", "", self.suffix, flags=re.IGNORECASE)

    @property
    def manifest_name(self) -> str:
        """What the manifest of this set is called, if it has one."""
        return self.stem + MANIFEST_SUFFIX

    @property
    def pattern(self) -> str:
        """The one name of all shards of this set."""
        return f"{glob.escape(self.stem)}-?????-of-{self.total:05d}{self.suffix}"

    def numbered(self, number: int) -> str:
        """The name of one shard of this set."""
        return f"{self.stem}-{number:05d}-of-{self.total:05d}{self.suffix}"


def shard_name(name: str) -> ShardName | None:
    """Read the name of a file (without its folder); None where it is no shard of a set."""
    match = _SHARD.fullmatch(name)
    if match is None:
        return None
    stem, number, total, suffix = match.groups()
    return ShardName(stem, int(number) if number.isdigit() else None, int(total), suffix or "")


def named_shards(name: str, total: int) -> ShardName:
    """The names of a new set: those of one file, with numbers before the suffix."""
    match = _NAME.fullmatch(name)
    assert match is not None  # the pattern takes every name
    return ShardName(match[1], None, total, match[2])


def without_number(name: str) -> str:
    """The name that a file would have that is no shard."""
    parts = shard_name(name)
    return name if parts is None else parts.stem + parts.suffix.rstrip("*")


@dataclass(frozen=True)
class ShardSet:
    """The files of one set, as far as they are there."""

    folder: str
    """What stands before the names, with its slash."""
    stem: str
    total: int
    kind: str
    members: tuple[tuple[int, str], ...]
    """Number and name of each file, in order."""

    @property
    def pattern(self) -> str:
        """The one name of them all, as a pattern of file names."""
        first = _SHARD.fullmatch(self.members[0][1])
        assert first is not None
        stem, number, total, suffix = first.groups(default="")
        if any(_suffix_of(name) != suffix for _, name in self.members):
            suffix = f"{self.kind}*"
        return f"{glob.escape(stem)}-{'?' * len(number)}-of-{total}{suffix}"

    @property
    def place(self) -> str:
        """The pattern in its folder."""
        return glob.escape(self.folder) + self.pattern

    @property
    def places(self) -> list[str]:
        """The files, in order."""
        return [self.folder + name for _, name in self.members]

    @property
    def manifest_name(self) -> str:
        """What the manifest of this set is called, if it has one."""
        return self.stem + MANIFEST_SUFFIX

    def problems(self) -> list[Problem]:
        """What is wrong with the set as such: numbers that are missing, there twice, or beyond."""
        found = []
        there = {number for number, _ in self.members}
        missing = [self._name_of(n) for n in range(self.total) if n not in there]
        if missing:
            found.append(missing_shards(missing, self.total))
        for number, members in itertools.groupby(self.members, itemgetter(0)):
            same = [printable(name) for _, name in members]
            if len(same) > 1:
                found.append(
                    Problem(
                        "shard-twice",
                        f"{' and '.join(same)} are the same shard",
                        found=same,
                        expected=1,
                        hint="remove one of them, or give the list of files that are meant",
                    )
                )
            if number >= self.total:
                found.append(
                    Problem(
                        "shard-extra",
                        f"{same[0]} is beyond the last of {self.total:,} shards",
                        found=number,
                        expected=self.total - 1,
                        hint="it is not of this set: move it away",
                    )
                )
        return found

    def _name_of(self, number: int) -> str:
        suffix = _suffix_of(self.members[0][1])
        return ShardName(self.stem, None, self.total, suffix).numbered(number)


def missing_shards(names: Sequence[str], total: int) -> Problem:
    """The finding of shards that are not there, of so many."""
    count = len(names)
    more = f" and {count - 3:,} more" if count > 3 else ""
    return Problem(
        "shard-missing",
        f"{', '.join(map(printable, names[:3]))}{more}: missing of {total:,} shards",
        found=total - count,
        expected=total,
        hint="fetch or make what is missing; a list of files opens as it is",
    )


def _suffix_of(name: str) -> str:
    parts = shard_name(name)
    assert parts is not None
    return parts.suffix


def sets_of(names: Iterable[str], folder: str = "", *, any_kind: bool = False) -> list[ShardSet]:
    """The sets that some names make, in order of their names.

    Args:
        names: of files, without their folder.
        folder: what to write before them.
        any_kind: also names whose suffix is not one of IDX files.
    """
    found: dict[tuple[str, int, str], list[tuple[int, str]]] = defaultdict(list)
    for name in names:
        parts = shard_name(name)
        if parts is None or parts.number is None or name.startswith("."):
            continue
        if any_kind or re.fullmatch(_KIND, parts.kind, re.IGNORECASE | re.ASCII):
            found[parts.stem, parts.total, parts.kind].append((parts.number, name))
    return [ShardSet(folder, *key, tuple(sorted(found[key]))) for key in sorted(found)]


def folded(places: Iterable[str]) -> list[str]:
    """Places in which each set of shards stands as one, as its pattern, where its first stood."""
    given = list(places)
    by_folder: dict[str, list[str]] = defaultdict(list)
    for place in given:
        name = os.path.basename(place)
        by_folder[place[: len(place) - len(name)]].append(name)
    pattern_of = {
        each: shards.place
        for folder, names in by_folder.items()
        for shards in sets_of(names, folder)
        for each in shards.places
    }
    return list(dict.fromkeys(pattern_of.get(place, place) for place in given))


# The manifest


@dataclass(frozen=True, slots=True)
class ShardFacts:
    """What a manifest says of one shard."""

    name: str
    items: int
    nbytes: int
    """Bytes of the file as it lies there."""
    sha256: str
    """Of the file as it lies there."""


@dataclass(frozen=True)
class Manifest:
    """What is in each shard of a set."""

    dtype: str
    item_shape: tuple[int, ...]
    shards: tuple[ShardFacts, ...]

    @property
    def header(self) -> Header:
        """The header of the one file that the shards would make."""
        return Header.of(self.dtype, (sum(s.items for s in self.shards), *self.item_shape))

    def encode(self) -> bytes:
        """The manifest as the bytes of its file: a line a shard."""
        head = {
            "idxfile_manifest": MANIFEST_VERSION,
            "dtype": self.dtype,
            "item_shape": list(self.item_shape),
            "items": sum(shard.items for shard in self.shards),
        }
        lines = ",\n".join(f"  {json.dumps(asdict(shard))}" for shard in self.shards)
        return f'{json.dumps(head)[:-1]}, "shards": [\n{lines}\n]}}\n'.encode()


def read_manifest(data: bytes, name: str) -> Manifest:
    """Read the bytes of a manifest.

    Raises:
        FormatError: for what is none, or contradicts itself.
    """
    try:
        facts = json.loads(data)
        version = facts["idxfile_manifest"]
        if version != MANIFEST_VERSION:
            raise ValueError(f"version {version!r}, and {MANIFEST_VERSION} is known")
        shards = tuple(ShardFacts(**shard) for shard in facts["shards"])
        manifest = Manifest(facts["dtype"], tuple(facts["item_shape"]), shards)
        _judge(shards, facts["items"])
        _ = manifest.header
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise FormatError(
            f"this is no manifest of shards: {_told(error)}",
            file=name,
            hint="remove it, and the shards are read without it; or write the set again",
            code="manifest-damaged",
        ) from None
    return manifest


def _judge(shards: Sequence[ShardFacts], total: Any) -> None:
    if not shards:
        raise ValueError("it names no shards")
    for shard in shards:
        numbers = (shard.items, shard.nbytes)
        if not all(type(number) is int and number >= 0 for number in numbers):
            raise ValueError(f"items and bytes of {shard.name!r} are {numbers}")
        if not isinstance(shard.name, str) or not isinstance(shard.sha256, str):
            raise TypeError(f"a shard is called {shard.name!r}")
        if os.path.basename(shard.name) != shard.name or shard.name in ("", ".", ".."):
            raise ValueError(f"{shard.name!r} is no name of a file beside it")
    if len({shard.name for shard in shards}) != len(shards):
        raise ValueError("it names a shard twice")
    if sum(shard.items for shard in shards) != total:
        raise ValueError(f"its shards have other items than the {total!r} that it counts")


def _told(error: Exception) -> str:
    return f"{error} is not in it" if isinstance(error, KeyError) else printable(str(error))
