"""Finding a pair of files and opening it as a data set: `open_dataset`.

A place is a folder, one of the two files, both, or a zip archive. What is in it is a list of
candidates: names, and how to open each. The names are grouped by what the two files of a pair
share; the split chooses among the groups, and nothing is ever guessed between two.
"""

from __future__ import annotations

import contextlib
import difflib
import hashlib
import itertools
import os
import zipfile
from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from .array import IdxArray, open
from .classes import read_classes
from .dataset import Dataset
from .errors import FormatError, IdxError, PairError
from .lazyarray import Mode
from .names import Role, file_name, split_of
from .shards import folded
from .signatures import PICTURE_KINDS
from .source import kind_of, open_source, pieces
from .source.finding import find_shards
from .source.places import (
    beside,
    file_of,
    is_archive,
    is_url,
    local_path,
    names_in,
    partners_of,
    public,
)

__all__ = ["open_dataset"]

_SUBFOLDERS = ("", "raw", os.path.join("MNIST", "raw"))
"""Where in a folder the files lie; the last two are torchvision's."""


class Candidate(NamedTuple):
    """A file that may be half of a pair."""

    name: str
    """For people, and for what it says about its role."""
    load: Callable[[], Any]
    """Gives what `open` takes."""


def open_dataset(
    place: Any, *, split: str | None = None, name: str | None = None, mode: Mode = "r"
) -> Dataset:
    """Open images with their labels, wherever the pair lies and whatever the usual name.

    Args:
        place: a folder (or torchvision's root, with `MNIST/raw` in it), the images or the labels
            of a pair, both as a tuple `(images, labels)`, or a zip archive (as EMNIST's
            `gzip.zip`). A folder or a file may be an address; a folder of a web server ends in
            `/`, and needs a page that leads to its files.
        split: train, test or validation, or any word of the files' names; needed where a place
            holds several.
        name: words of the files' names, where a place holds several data sets: `letters`.
        mode: "r", or "c" for images that tensors may be made of.

    Returns:
        A `Dataset` whose images are read when asked (raw files are mapped).

    Raises:
        FileNotFoundError: when no pair is found; it says what was looked for and what is near.
        PairError: when several are found, or images and labels do not belong together.
        FormatError: for files that are not right.

    Example:
        >>> import idxfile, numpy as np
        >>> images = idxfile.encode(np.zeros((2, 28, 28), "uint8"))
        >>> labels = idxfile.encode(np.array([7, 2], "uint8"))
        >>> idxfile.open_dataset((images, labels))[1][1]
        2
    """
    if isinstance(place, tuple):
        if len(place) != 2:
            raise TypeError(f"a pair is (images, labels), not {len(place)} files")
        return _open_pair(*place, mode=mode, split=split, name=name)
    if not isinstance(place, (str, os.PathLike)):
        raise TypeError("place must be a path, or a tuple (images, labels)")
    path = local_path(os.fsdecode(place))
    if is_url(path):
        if file_of(path).lower().endswith(".zip") and not is_archive(path):
            path = f"zip://::{path}"
        if file_name(file_of(path)):
            return _open_with_partner(path, mode)
        return _choose(path, _in_store(path), split, name, mode)
    if os.path.isdir(path):
        for folder in _SUBFOLDERS:
            candidates = list(_in_folder(os.path.join(path, folder)))
            if candidates:
                break
        return _choose(path, candidates, split, name, mode)
    if zipfile.is_zipfile(path):
        return _choose(path, list(_in_archive(path)), split, name, mode)
    return _open_with_partner(path, mode)


def is_lone_set(folder: str) -> bool:
    """Whether a folder, here or in a store, holds the shards of one file, and no other half."""
    try:
        found = find_shards(folder)
    except ValueError:  # of several
        return False
    return found is not None and not partners_of(found.places[0])


def _in_folder(folder: str) -> Iterable[Candidate]:
    if not os.path.isdir(folder):
        return
    for path in folded(names_in(folder) or ()):
        if not os.path.basename(path).startswith(".") and file_name(path):
            yield Candidate(path, lambda path=path: path)  # type: ignore[misc]


def _in_store(folder: str) -> list[Candidate]:
    names = names_in(folder)
    if names is None:
        raise PairError(
            "this place does not tell what lies in it",
            file=public(folder),
            hint="give the address of one of the files, or of both: (images, labels)",
        )
    return [
        Candidate(file_of(url), lambda url=url: url)  # type: ignore[misc]
        for url in folded(names)
        if file_name(file_of(url))
    ]


def _in_archive(path: str) -> Iterable[Candidate]:
    with zipfile.ZipFile(path) as archive:
        members = [member for member in archive.namelist() if file_name(member)]
    for member in members:
        yield Candidate(member, lambda member=member: read_member(path, member))  # type: ignore[misc]


def read_member(path: str, member: str) -> bytes:
    try:
        with zipfile.ZipFile(path) as archive:
            return archive.read(member)
    except (zipfile.BadZipFile, EOFError, NotImplementedError, RuntimeError) as error:
        raise FormatError(f"member {member} cannot be read: {error}", file=path) from error


def _choose(
    place: str, candidates: list[Candidate], split: str | None, name: str | None, mode: Mode
) -> Dataset:
    """Open the one pair among the candidates that fits."""
    groups: dict[str, dict[Role, list[Candidate]]] = defaultdict(
        lambda: {"images": [], "labels": []}
    )
    for candidate in candidates:
        parsed = file_name(candidate.name)
        assert parsed is not None  # candidates are files with a role
        groups[parsed.shared][parsed.role].append(candidate)
    pairs = {shared: group for shared, group in groups.items() if all(group.values())}
    fitting = [shared for shared in pairs if _fits(shared, split, name)]
    if not fitting:
        raise _not_found(place, split, name, groups)
    if len(fitting) > 1:
        found = ", ".join(sorted(shared.replace("*", "images") for shared in fitting))
        splits = sorted({str(split_of(shared)) for shared in fitting})
        if len(splits) > 1:
            hint = f"choose with split= (--split): one of {', '.join(splits)}"
        else:
            hint = "choose with name= (--name): words of one of the names"
        raise PairError(f"several pairs: {found}", file=place, found=fitting, hint=hint)
    group = pairs[fitting[0]]
    images, labels = (_only(place, role, group[role]) for role in ("images", "labels"))
    return _open_pair(
        images.load(),
        labels.load(),
        mode=mode,
        split=split or split_of(fitting[0]),
        name=name,
        folder=place if is_url(place) or os.path.isdir(place) else None,
    )


def _fits(shared: str, split: str | None, name: str | None) -> bool:
    wanted = None if split is None else split.lower()
    return (wanted is None or split_of(shared) == wanted or wanted in shared) and (
        name is None or all(word in shared for word in name.lower().split())
    )


def _not_found(place: str, split: str | None, name: str | None, groups: Any) -> FileNotFoundError:
    wanted = "-".join(word for word in (name, split or "train", "images-idx3-ubyte") if word)
    names = [
        os.path.basename(c.name) for group in groups.values() for r in group.values() for c in r
    ]
    if not names and os.path.isdir(place):
        names = os.listdir(place)
    near = difflib.get_close_matches(wanted, names, n=3, cutoff=0.3) or sorted(names)[:3]
    there = f"; near: {', '.join(near)}" if near else "; nothing of the kind is there"
    if _holds_pictures(place):
        there = "; there are pictures, of which `idx convert` makes a pair"
    return FileNotFoundError(2, f"No pair like {wanted} and its labels{there}", place)


def _holds_pictures(place: str) -> bool:
    """Whether the first file of a folder, or of its first folder, is a picture."""
    for folder, folders, names in itertools.islice(os.walk(place), 2):
        folders.sort()
        for name in sorted(name for name in names if not name.startswith("."))[:1]:
            with contextlib.suppress(OSError, IdxError):
                return kind_of(os.path.join(folder, name)) in PICTURE_KINDS
    return False


def _only(place: str, role: Role, candidates: list[Candidate]) -> Candidate:
    """The one candidate, or the first where all have the same content."""
    if len(candidates) > 1:
        digests = {_content_digest(candidate) for candidate in candidates}
        if len(digests) > 1:
            names = " and ".join(os.path.basename(candidate.name) for candidate in candidates)
            raise PairError(
                f"{names} could both be the {role}, and they differ",
                file=place,
                found=[candidate.name for candidate in candidates],
                hint="give the two files that are meant: open_dataset((images, labels))",
            )
    # Uncompressed files map; of equal ones they are the better.
    return min(candidates, key=lambda candidate: len(os.path.splitext(candidate.name)[1]) > 0)


def _content_digest(candidate: Candidate) -> bytes:
    digest = hashlib.sha256()
    source = open_source(candidate.load(), mmap=False)
    try:
        for piece in pieces(source):
            digest.update(piece)
    finally:
        source.close()
    return digest.digest()


def _open_with_partner(path: str, mode: Mode) -> Dataset:
    """Open one file of a pair and the other one beside it."""
    remote = is_url(path)
    folder = beside(path, "") if remote else os.path.dirname(path) or os.curdir
    mine = file_name(file_of(path))
    if mine is None:
        os.stat(path)  # a file that is not there is the better error
        raise PairError(
            "the name says neither images nor labels",
            file=path,
            hint="give both files: open_dataset((images, labels)), or --labels-file",
        )
    other: Role = "labels" if mine.role == "images" else "images"
    partners = [Candidate(file_of(place), lambda place=place: place) for place in partners_of(path)]  # type: ignore[misc]
    if not partners:
        open_source(path, mmap=False).close()  # likewise
        there = [] if remote else list(_in_folder(folder))
        groups = {mine.shared: {other: there}}
        wanted = mine.shared.replace("*", other)
        raise _not_found(public(folder) if remote else folder, None, wanted, groups)
    partner = _only(folder, other, partners)
    pair = (path, partner.load()) if mine.role == "images" else (partner.load(), path)
    return _open_pair(*pair, mode=mode, split=split_of(mine.shared), folder=folder)


def _open_pair(
    images: Any,
    labels: Any,
    *,
    mode: Mode,
    split: str | None = None,
    name: str | None = None,
    folder: str | None = None,
) -> Dataset:
    """Open two files as a data set, the labels into memory."""
    pictures = open(images, mode=mode)
    try:
        with open(labels) as array:
            table = array[...] if array.ndim else None
            if table is None or (_holds_labels(pictures) and not _holds_labels(array)):
                raise PairError(
                    f"{pictures.name} holds {pictures.header} and {array.name} {array.header}: "
                    "images and labels are the wrong way round",
                    found=[list(pictures.shape), list(array.shape)],
                    hint="give the images first, or exchange the names",
                )
            by_path = isinstance(labels, (str, os.PathLike)) and (
                is_url(labels) or os.path.isfile(labels) or bool(array.shards)
            )
            recipe = array.__reduce__() if by_path else None
        table.flags.writeable = False
        classes = read_classes(folder) if folder is not None else None
        ds = Dataset(pictures, table, classes=classes, name=name, split=split)
        ds._labels_recipe = recipe
        return ds
    except BaseException:
        pictures.close()
        raise


def _holds_labels(array: IdxArray) -> bool:
    return array.ndim <= 2 and array.header.element.name.startswith(("uint", "int"))
