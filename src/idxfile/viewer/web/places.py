"""What a place holds: data sets, pairs, and files that stand alone."""

from __future__ import annotations

import glob
import os
import re
import zipfile
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from ...classes import read_classes
from ...codecs import codec_of_name
from ...names import Role, file_name, split_of
from ...shards import MANIFEST_SUFFIX, folded, without_number
from ...source.finding import find_shards
from ...source.places import (
    beside,
    file_of,
    find_partner,
    is_folder,
    is_pattern,
    is_url,
    names_in,
    public,
    unescaped,
)

__all__ = ["Place", "find_places"]

_SUBFOLDERS = ("", "raw", os.path.join("MNIST", "raw"))
_LOOKS_LIKE_IDX = re.compile(r"idx\d+[-_.][a-z]+\d*|\.idx\d*\b|u?byte\b|\.lushbin\b", re.IGNORECASE)

MOST = 500
"""How many places the page lets one choose from."""


@dataclass(frozen=True)
class Place:
    """Files that are looked at together."""

    name: str
    """What the page calls it."""
    images: Callable[[], Any]
    """Gives what `open` takes: the items."""
    labels: Callable[[], Any] | None = None
    """Gives what `open` takes: a label for each; None where nothing is known."""
    path: str | None = None
    """The local file whose labels these are; a journal can lie beside it."""
    classes: tuple[str | None, ...] | None = None
    split: str | None = None


def find_places(place: Any, labels: Any = None) -> list[Place]:
    """Everything in a place that can be looked at; nothing is opened yet.

    Args:
        place: a folder, a file, a URL, a zip archive, bytes, a pair `(images, labels)`, or an
            array or data set in memory.
        labels: the labels, where the place is a file and its name does not say so.

    Raises:
        FileNotFoundError: when nothing is there, or no such file of labels.
        PairError: when several files could be the labels.
    """
    if isinstance(place, tuple) and len(place) == 2:
        place, labels = place
    if not isinstance(place, (str, os.PathLike)):
        return [_in_memory(place, labels)]
    path = os.fsdecode(place)
    if labels is not None:
        look_for(labels)
        return [_pair(path, labels)]
    if is_folder(path):
        found = _in_store(path) if is_url(path) else list(_in_folder(path))
        if not found:
            shown = public(path)
            raise FileNotFoundError(2, "No file in this folder has a name like IDX", shown)
        return found
    if is_url(path):
        return [_with_partner(path)]
    if find_shards(path) is not None:
        return [_with_partner(path)]
    os.stat(path)  # a file that is not there is told at once
    if zipfile.is_zipfile(path):
        return list(_in_archive(path))
    return [_with_partner(path)]


def look_for(file: Any) -> None:
    """Tell at once of a file of this machine that is not there; all else is told by the page.

    Raises:
        OSError: as the system gives it.
    """
    if isinstance(file, (str, os.PathLike)):
        path = os.fsdecode(file)
        if not is_url(path) and find_shards(path) is None:
            os.stat(path)


def _with_partner(path: str) -> Place:
    """A file and the other half of its pair, if it is one."""
    mine = file_name(file_of(path))
    partner = find_partner(path) if mine is not None else None
    if mine is None or partner is None:
        return _alone(path)
    return _pair(path, partner) if mine.role == "images" else _pair(partner, path)


def _in_memory(images: Any, labels: Any) -> Place:
    classes = getattr(images, "classes", None)
    split, name = getattr(images, "split", None), getattr(images, "name", None)
    if hasattr(images, "images") and hasattr(images, "labels"):
        images, labels = images.images, images.labels
    named = name if isinstance(name, str) else type(images).__name__
    return Place(
        os.path.basename(named) or named,
        lambda: images,
        None if labels is None else lambda: labels,
        os.fsdecode(labels) if isinstance(labels, (str, os.PathLike)) else None,
        classes,
        split,
    )


def _pair(images: str, labels: Any) -> Place:
    path = _journaled(os.fsdecode(labels)) if isinstance(labels, (str, os.PathLike)) else None
    mine = file_name(file_of(images))
    folder = os.path.dirname(images) or os.curdir
    return Place(
        _shown(images),
        lambda: images,
        lambda: labels,
        path,
        read_classes(folder) if os.path.isdir(folder) else None,
        split_of(mine.shared) if mine else None,
    )


def _alone(path: str) -> Place:
    return Place(_shown(path), lambda: path, path=_journaled(path))


def _journaled(path: str) -> str | None:
    """The path of a file that a journal can lie beside; of shards, of the one they stand for."""
    if is_url(path):
        return None
    if not is_pattern(path) or os.path.exists(path):
        return path
    folder, name = os.path.split(path)
    return os.path.join(unescaped(folder), without_number(unescaped(name)))


def _shown(path: str) -> str:
    return os.path.basename(public(path)) or path


def _in_folder(place: str) -> Iterator[Place]:
    """The pairs of a folder, and behind them what has no partner."""
    for folder in (os.path.join(place, below) if below else place for below in _SUBFOLDERS):
        if not os.path.isdir(folder):
            continue
        names = sorted(
            entry.name
            for entry in os.scandir(folder)
            if _may_be_shown(entry.name) and entry.is_file()
        )
        found = [
            _pair(_within(folder, images), _within(folder, labels))
            if labels
            else _alone(_within(folder, images))
            for images, labels in _paired(folded(names))
        ]
        if found:
            yield from found[:MOST]
            return


def _in_store(url: str) -> list[Place]:
    """The same of a folder in a store; the folder alone where it does not tell what it holds."""
    urls = names_in(url)
    if urls is None:
        return [_alone(url)]
    names = (os.path.basename(file_of(each)) for each in urls)
    return [
        _pair(beside(url, images), beside(url, labels)) if labels else _alone(beside(url, images))
        for images, labels in _paired(folded(filter(_may_be_shown, names)))[:MOST]
    ]


def _may_be_shown(name: str) -> bool:
    hidden = name.startswith(".") or name.endswith(MANIFEST_SUFFIX)
    return not hidden and bool(file_name(name) or _LOOKS_LIKE_IDX.search(name))


def _within(folder: str, name: str) -> str:
    """The path of a file; of a set of shards its pattern, in which the folder means itself."""
    return os.path.join(glob.escape(folder) if is_pattern(name) else folder, name)


def _in_archive(path: str) -> Iterator[Place]:
    from ...pairs import read_member

    with zipfile.ZipFile(path) as archive:
        members = [name for name in archive.namelist() if file_name(name)]
    for images, labels in _paired(sorted(members))[:MOST]:
        yield Place(
            images,
            lambda member=images: read_member(path, member),  # type: ignore[misc]
            None if labels is None else lambda member=labels: read_member(path, member),  # type: ignore[misc]
            split=split_of(images),
        )


def _paired(names: list[str]) -> list[tuple[str, str | None]]:
    """Names with those of their labels; the raw one where a file is there compressed, too."""
    groups: dict[str, dict[Role, list[str]]] = defaultdict(lambda: {"images": [], "labels": []})
    rest: list[str] = []
    for name in sorted(names, key=lambda name: (codec_of_name(name) is not None, name)):
        parsed = file_name(name)
        if parsed is None:
            rest.append(name)
        else:
            groups[parsed.shared][parsed.role].append(name)
    pairs: list[tuple[str, str | None]] = []
    for group in groups.values():
        images, labels = group["images"], group["labels"]
        if images and labels:
            pairs.append((images.pop(0), labels.pop(0)))
        rest += images + labels
    return [*sorted(pairs), *((name, None) for name in sorted(rest))]
