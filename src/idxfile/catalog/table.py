"""The table of known data sets: what stands in `datasets.toml`, as frozen values.

A data set is a row of that file. Nothing in it is guessed: what is not known is None, or empty.
"""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from functools import cache
from importlib import resources
from typing import Any, Literal

__all__ = ["DatasetFacts", "FileFacts", "datasets"]

FileRole = Literal["images", "labels", "info", "extra"]


@dataclass(frozen=True)
class Fingerprint:
    """What is known of the bytes of a file."""

    size: int | None = None
    """In bytes."""
    sha256: str | None = None
    git: str | None = None
    """Git's name of a blob: the SHA-1 of `blob SIZE`, a zero byte, and the bytes."""
    sha1: str | None = None
    md5: str | None = None

    @property
    def strongest(self) -> tuple[str, str] | None:
        """The best digest that is known, as `(algorithm, hexadecimal)`; None without any."""
        known = ((name, getattr(self, name)) for name in ("sha256", "git", "sha1", "md5"))
        return next(((name, digest) for name, digest in known if digest), None)


@dataclass(frozen=True)
class FileFacts:
    """One published file of a data set."""

    name: str
    """As it is published, with the suffix of its compression."""
    role: FileRole
    """`info` holds further columns of the labels; `extra` is not needed for the data set."""
    shape: tuple[int, ...]
    dtype: str
    split: str | None = None
    published: Fingerprint = Fingerprint()
    """The file as it is published."""
    raw: Fingerprint = Fingerprint()
    """Its content, decompressed."""
    counts: tuple[int, ...] = ()
    """Of labels: how many items each label has, from 0."""
    note: str | None = None


@dataclass(frozen=True)
class Part:
    """A name for some items of a split."""

    name: str
    split: str
    items: tuple[int, int]
    """The first, and the one behind the last."""
    note: str


@dataclass(frozen=True)
class Release:
    """Files of other bytes that were published too."""

    what: str
    same_content: bool
    """Whether only the compression differs."""
    files: Mapping[str, Fingerprint] = field(default_factory=dict)
    """The name of a file → what is known of it; empty where nothing is."""


@dataclass(frozen=True)
class Archive:
    """A zip that holds the files of a whole family of data sets."""

    name: str
    family: str
    mirrors: tuple[str, ...]
    published: Fingerprint


@dataclass(frozen=True)
class DatasetFacts:
    """What is known of a data set."""

    name: str
    """What `fetch` calls it."""
    title: str
    summary: str
    """What it shows, in a few words."""
    homepage: str | None = None
    licence: str | None = None
    licence_checked: str | None = None
    """Where the licence was read; None: it is hearsay."""
    citation: str | None = None
    """BibTeX."""
    attribution: str | None = None
    classes: tuple[str | None, ...] = ()
    """The name of each class by its label; None where a label has none."""
    columns: tuple[str, ...] = ()
    """The columns of a matrix of labels."""
    transposed: bool = False
    """Whether items lie in the files with rows and columns exchanged."""
    dialect: Literal["idx", "lush"] = "idx"
    mirrors: tuple[str, ...] = ()
    """Where the files can be downloaded, in the order in which they are tried."""
    by_hand: tuple[str, ...] = ()
    """Pages and archives for people."""
    layouts: tuple[str, ...] = ()
    """Folders in which other libraries keep these files."""
    quirks: tuple[str, ...] = ()
    """What its users should know."""
    files: tuple[FileFacts, ...] = ()
    parts: tuple[Part, ...] = ()
    releases: tuple[Release, ...] = ()
    archive: Archive | None = None

    @property
    def splits(self) -> dict[str, int]:
        """The published splits, and the items of each."""
        counts: dict[str, int] = {}
        for file in self.files:
            if file.role == "images" and file.split is not None:
                counts[file.split] = counts.get(file.split, 0) + file.shape[0]
        return counts

    @property
    def fetchable(self) -> bool:
        """Whether `fetch` can download it: it has mirrors, and checksums to go by."""
        needed = [file for file in self.files if file.role != "extra"]
        known = all(file.published.strongest for file in needed)
        return bool(needed and known and (self.mirrors or self.archive))

    def files_of(self, split: str) -> dict[FileRole, list[FileFacts]]:
        """The files of a published split by their role, each in their order."""
        found: dict[FileRole, list[FileFacts]] = {"images": [], "labels": [], "info": []}
        for file in self.files:
            if file.split == split and file.role in found:
                found[file.role].append(file)
        return found

    def as_dict(self) -> dict[str, Any]:
        """The facts as plain values, for JSON; without what is not known."""
        return {**_known(asdict(self)), "splits": self.splits, "fetchable": self.fetchable}


def _known(value: Any) -> Any:
    """A value without the fields that say nothing. A class without a name stays None."""
    if isinstance(value, dict):
        known = {key: _known(part) for key, part in value.items()}
        return {key: part for key, part in known.items() if part not in (None, [], {})}
    return [_known(part) for part in value] if isinstance(value, (list, tuple)) else value


@cache
def datasets() -> tuple[DatasetFacts, ...]:
    """Every data set that is known: files, checksums, classes, licence, and what to look out for.

    Example:
        >>> import idxfile
        >>> facts = {facts.name: facts for facts in idxfile.datasets()}
        >>> facts["mnist"].splits
        {'train': 60000, 'test': 10000}
        >>> facts["emnist-letters"].classes[:3]
        (None, 'A/a', 'B/b')
    """
    text = resources.files(__package__).joinpath("datasets.toml").read_text("utf-8")
    tables = tomllib.loads(text)
    families = tables["family"]
    return tuple(
        _dataset(row, families.get(row.get("family"), {}), row.get("family"))
        for row in tables["dataset"]
    )


def dataset_named(name: str) -> DatasetFacts:
    """The data set of this name; capitals, spaces and underscores do not matter.

    Raises:
        ValueError: for a name that is not known; it says what is near.
    """
    wanted = name.lower().replace("_", "-").replace(" ", "-")
    names = {facts.name: facts for facts in datasets()}
    if wanted in names:
        return names[wanted]
    near = [known for known in names if wanted in known]
    near = near or difflib.get_close_matches(wanted, names, n=3, cutoff=0.5) or list(names)
    raise ValueError(f"no data set is called {name!r}; there is {', '.join(near)}")


def _dataset(row: dict[str, Any], shared: dict[str, Any], family: str | None) -> DatasetFacts:
    """A table of the file, and what its family shares, as a value."""
    values = {**shared, **row, "quirks": [*shared.get("quirks", ()), *row.get("quirks", ())]}
    classes = (None,) * values.get("first_label", 0) + tuple(values["classes"])
    archive = values.get("archive")
    known = {f.name for f in fields(DatasetFacts)}
    plain = {key: _frozen(value) for key, value in values.items() if key in known}
    return DatasetFacts(
        **plain
        | {
            "classes": classes,
            "files": tuple(_file(file) for file in row.get("file", ())),
            "parts": tuple(
                Part(**{key: _frozen(value) for key, value in part.items()})
                for part in row.get("part", ())
            ),
            "releases": tuple(_release(release) for release in row.get("release", ())),
            "archive": archive and _archive(archive, family),
        }
    )


def _file(row: dict[str, Any]) -> FileFacts:
    values = {key: _frozen(value) for key, value in row.items()}
    for key in ("published", "raw"):
        values[key] = Fingerprint(**row.get(key, {}))
    return FileFacts(**values)


def _release(row: dict[str, Any]) -> Release:
    prints = {name: Fingerprint(**known) for name, known in row.get("files", {}).items()}
    return Release(row["what"], row["same_content"], prints)


def _archive(row: dict[str, Any], family: Any) -> Archive:
    published = Fingerprint(**row["published"])
    return Archive(row["name"], family, tuple(row["mirrors"]), published)


def _frozen(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value
