"""Which files a place stands for, when it stands for several: a set, a pattern, a list."""

from __future__ import annotations

import contextlib
import fnmatch
import glob
import os
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from ..errors import FormatError, printable
from ..names import natural
from ..problems import Problem
from ..shards import (
    MANIFEST_SUFFIX,
    MOST_MANIFEST_NBYTES,
    Manifest,
    ShardName,
    ShardSet,
    missing_shards,
    read_manifest,
    sets_of,
    shard_name,
)
from .local import LocalFile
from .places import absolute, beside, file_of, is_pattern, is_url, local_path, names_in, public

__all__: list[str] = []

_MOST_NUMBERED = 1_000_000
"""So many addresses are made of a pattern."""


class Found(NamedTuple):
    """Several files that are meant as one."""

    name: str
    """What errors call them together."""
    place: Any
    """What finds the same files again from anywhere; None where nothing does."""
    places: tuple[Any, ...]
    """The files, in order."""
    problems: tuple[Problem, ...] = ()
    """What is wrong with the set as such."""
    manifest_place: str | None = None
    """Where its manifest lies, if it has one."""
    manifest: Manifest | None = None
    """The manifest, where that is what was opened."""

    @property
    def names(self) -> list[str]:
        """The names of the files, without their folders."""
        return [_base(os.fsdecode(place)) for place in self.places]


def find_shards(file: Any) -> Found | None:
    """The files that a list, a pattern, a folder or a manifest stands for; None for one file.

    A file that has the very name of a pattern is that file.

    Raises:
        FileNotFoundError: when no file fits a pattern.
        FormatError: for an empty list, a folder with several sets, or a damaged manifest.
        OSError: as the system gives it.
    """
    if isinstance(file, (list, tuple)):
        return _listed(file)
    if not isinstance(file, (str, os.PathLike)):
        return None
    place = local_path(os.fsdecode(file))
    if is_url(place):
        return _in_store(place)
    if os.path.isdir(place):
        return _in_folder(place, names_in(place) or ())
    if os.path.lexists(place):
        return _of_manifest(place) if place.endswith(MANIFEST_SUFFIX) else None
    if not is_pattern(place):
        return None
    anywhere = os.path.join(glob.escape(os.getcwd()), place)
    return _fitting(place, anywhere, filter(os.path.isfile, glob.glob(place)))


def load_manifest(found: Found) -> Manifest | None:
    """The manifest of a set, where there is one.

    Raises:
        FormatError: when it is damaged.
        OSError: when it cannot be read.
    """
    if found.manifest is not None or found.manifest_place is None:
        return found.manifest
    try:
        return _read(found.manifest_place)
    except FileNotFoundError:
        return None


def other_files(found: Found, manifest: Manifest) -> Problem | None:
    """Whether a manifest is of other files than those that are there.

    A shard that is missing is no fault of the manifest.
    """
    named, there = [shard.name for shard in manifest.shards], found.names
    known, present = set(named), set(there)
    numbers = {_number_of(name) for name in there}
    more = [name for name in there if name not in known]
    gone = [name for name in named if name not in present and _number_of(name) in numbers]
    kept = [name for name in named if name in present]
    if not more and not gone and kept == there:
        return None
    facts = [f"lacks {name}" for name in more[:1]]
    facts += [f"names {name}, which is not there" for name in gone[:1]]
    return Problem(
        "manifest-damaged",
        f"{_base(found.manifest_place or '')}: it "
        f"{printable(' and '.join(facts)) or 'names them in another order'}",
        found=named,
        expected=there,
        hint="it is of other files of this name: remove it, or write the set again",
    )


def set_of_shard(place: Any) -> Found | None:
    """The set that a shard is of, by its name alone; None for a file that has another name."""
    parts = shard_name(_base(place)) if isinstance(place, str) else None
    return None if parts is None else _counted(_next_to(place, parts.pattern), parts)


@contextlib.contextmanager
def absent_told(set_of: Callable[[], Found | None]) -> Iterator[None]:
    """A block that opens shards; one that is not there is missing of the set, here and in a store.

    Args:
        set_of: called then, for the set; None where it is of none.

    Raises:
        FormatError: for such a one.
    """
    try:
        yield
    except FileNotFoundError as error:
        found = set_of()
        problem = found and _absent(found, error)
        if found is None or problem is None:
            raise
        raise problem.error(found.name) from error


def _absent(found: Found, error: FileNotFoundError) -> Problem | None:
    """Which shards of a set are not there, once one was looked for in vain.

    The folder is asked, so that all of them are named; where it does not tell, the one is.

    Returns:
        None for what is no set, and where a pattern fits nothing at all: that is no missing shard.
    """
    if found.manifest_place is None:
        return None
    try:
        there = {*map(_base, names_in(_next_to(found.manifest_place, "") or os.curdir) or ())}
    except OSError:
        there = set()
    names = [name for name in found.names if name not in there]
    if not there:
        names = [_base(getattr(error, "file", None) or os.fsdecode(error.filename))]
    elif len(names) == len(found.places) and found.manifest is None:
        return None
    return missing_shards(names, len(found.places)) if names else None


def manifest_listing(path: str) -> str | None:
    """The name of the manifest beside a local file that has it as a shard; None where none has."""
    base = os.path.basename(path)
    parts = shard_name(base)
    if parts is None:
        return None
    try:
        place = _next_to(path, parts.manifest_name)
        names = [shard.name for shard in _read(place).shards]
    except (OSError, FormatError):  # there is none, or nobody goes by it
        return None
    return printable(parts.manifest_name) if base in names else None


def _number_of(name: str) -> int | None:
    parts = shard_name(name)
    return parts and parts.number


def _base(place: str) -> str:
    return os.path.basename(file_of(place))


def _next_to(place: str, name: str) -> str:
    """Another name in the folder of this one, here or in a store."""
    return beside(place, name) if is_url(place) else place[: len(place) - len(_base(place))] + name


def _listed(files: Sequence[Any]) -> Found:
    """A list is taken as it is: these files, in this order."""
    if not files:
        raise FormatError("an empty list of files", hint="an array needs a file, if an empty one")
    if not all(isinstance(file, (str, os.PathLike)) for file in files):
        return Found(f"<{len(files):,} files>", None, tuple(files))
    places = tuple(local_path(os.fsdecode(file)) for file in files)
    whole = _whole_set(places)
    if whole is not None:
        return _of_set(whole, absolute(whole.place))
    first = os.path.basename(public(places[0]))
    return Found(f"<{len(files):,} files, {first} first>", list(map(absolute, places)), places)


def _whole_set(places: Sequence[str]) -> ShardSet | None:
    """The one set that a list of files is, exactly."""
    folder = os.path.join(os.path.dirname(places[0]), "")
    if is_url(folder) or any(os.path.join(os.path.dirname(p), "") != folder for p in places):
        return None
    sets = sets_of(map(os.path.basename, places), folder, any_kind=True)
    fits = len(sets) == 1 and sets[0].places == list(places) and not sets[0].problems()
    return sets[0] if fits else None


def _in_folder(folder: str, places: Iterable[str]) -> Found | None:
    """The one set of a folder; None where there is none."""
    within = beside(folder, "") if is_url(folder) else os.path.join(folder, "")
    sets = sets_of(map(_base, places), within)
    if len(sets) > 1:
        raise FormatError(
            f"several sets of shards: {' and '.join(printable(each.pattern) for each in sets)}",
            file=public(folder),
            found=[each.pattern for each in sets],
            hint="give the pattern of the one that is meant",
            code="shard-twice",
        )
    return _of_set(sets[0], absolute(sets[0].place)) if sets else None


def _of_set(shards: ShardSet, place: str) -> Found:
    folder = shards.folder
    name = f"{folder}{shards.pattern}"
    return Found(
        public(name),
        place,
        tuple(shards.places),
        tuple(shards.problems()),
        folder + shards.manifest_name,
    )


def _fitting(pattern: str, anywhere: str, places: Iterable[str]) -> Found:
    """All files that fit a pattern: a set, whole ones in folders of their own, or others."""
    fitting = sorted((p for p in places if not p.endswith(MANIFEST_SUFFIX)), key=natural)
    if not fitting:
        text = "No file fits this pattern: look at what its folder holds, or give a list of files"
        raise FileNotFoundError(2, text, pattern)
    by_folder: dict[str, list[str]] = defaultdict(list)
    for place in fitting:
        name = os.path.basename(place)
        by_folder[place[: len(place) - len(name)]].append(name)
    sets = [
        each
        for folder, names in by_folder.items()
        for each in sets_of(names, folder, any_kind=True)
    ]
    if not sets:
        return Found(pattern, anywhere, tuple(fitting))
    problems = [problem for each in sets for problem in each.problems()]
    for one, other in pairwise(sets):
        if one.folder == other.folder:
            names = f"{printable(one.pattern)} and {printable(other.pattern)}"
            hint = "give a pattern that only one of them fits"
            problems.append(Problem("shard-twice", f"two sets of shards: {names}", hint=hint))
    numbered = {place for each in sets for place in each.places}
    for place in fitting:
        if place not in numbered:
            text = f"{printable(place)} is no shard of {printable(sets[0].pattern)}"
            problems.append(
                Problem("shard-extra", text, hint="give a pattern that it does not fit")
            )
    if len(sets) == 1:
        return _of_set(sets[0], anywhere)._replace(problems=tuple(problems))
    places_in_order = (place for each in sets for place in each.places)
    return Found(pattern, anywhere, tuple(places_in_order), tuple(problems))


def _of_manifest(place: str) -> Found:
    """The files that a manifest names, beside it."""
    manifest = _read(place)
    places = tuple(_next_to(place, shard.name) for shard in manifest.shards)
    return Found(public(place), absolute(place), places, (), place, manifest)


def _in_store(url: str) -> Found | None:
    path = file_of(url)
    if path.endswith(MANIFEST_SUFFIX):
        return _of_manifest(url)
    if path.endswith("/"):
        found = _in_folder(url, names_in(url) or ())
        return found and found._replace(place=url)
    wanted = os.path.basename(path)
    parts = shard_name(wanted)
    if parts is not None and parts.number is None and "*" not in parts.suffix:
        return _counted(url, parts)
    if "*" not in wanted:
        return None
    names = names_in(beside(url, ""))
    if names is None:
        raise FormatError(
            "this place does not tell what lies in it",
            file=public(url),
            hint="give the list of files, or a pattern that counts them: x-*-of-00042.idx",
        )
    if wanted in map(_base, names):  # an object that is called so; each would be a pattern again
        return None
    return _fitting(public(url), url, (n for n in names if fnmatch.fnmatchcase(_base(n), wanted)))


def _counted(pattern: str, parts: ShardName) -> Found | None:
    """The files of a pattern that says how many there are: no listing is needed."""
    if not 0 < parts.total <= _MOST_NUMBERED:
        return None
    places = tuple(_next_to(pattern, parts.numbered(number)) for number in range(parts.total))
    manifest_place = _next_to(pattern, parts.manifest_name)
    return Found(public(pattern), pattern, places, (), manifest_place)


def _read(place: str) -> Manifest:
    """Read a manifest.

    Raises:
        FileNotFoundError: where there is none, or a store hides whether there is one.
    """
    from . import pieces

    source: Any
    if is_url(place):
        from .remote import open_remote
        from .remote.faults import DeniedError

        name = public(place)
        try:
            source = open_remote(place, 0)
        except DeniedError as error:  # a store that hides what it has not, refuses
            raise FileNotFoundError(2, "There is no manifest", name) from error
    else:
        name, source = place, LocalFile(place, mapped=False)
    try:
        data = bytearray()
        for piece in pieces(source):
            data += piece
            if len(data) > MOST_MANIFEST_NBYTES:
                break
    finally:
        source.close()
    return read_manifest(bytes(data), name)
