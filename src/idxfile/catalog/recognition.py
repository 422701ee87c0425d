"""Which known file some bytes are: by the digest of their content, whatever name they bear.

Nothing is hashed in vain: the header tells which known files have this type and shape, and sizes
which of those it can be.
"""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import Any, NamedTuple

from ..codecs import codec_of_name
from ..header import Header
from ..source import Source, pieces
from ..source.places import file_of
from .digests import digests, file_pieces
from .table import DatasetFacts, FileFacts, Fingerprint, datasets

__all__: list[str] = []


Pieces = Callable[[], Iterable[Any]]
"""Gives bytes in order."""


class Known(NamedTuple):
    """A file that stands in the catalogue."""

    dataset: DatasetFacts
    file: FileFacts
    remark: str | None = None
    """What distinguishes it from the published file."""

    @property
    def text(self) -> str:
        """What it is, as it stands in a sentence."""
        role = self.file.note if self.file.role == "extra" else self.file.role
        words = (self.dataset.title, self.file.split, role)
        other = ", not MNIST" if _named_like_mnist(self) else ""
        return " ".join(filter(None, words)) + other + (f", {self.remark}" if self.remark else "")


def _named_like_mnist(known: Known) -> bool:
    mnist = datasets()[0]
    return known.dataset is not mnist and any(f.name == known.file.name for f in mnist.files)


BY_NAME = "by its name and shape"
"""The remark on a file whose content could not be held against anything."""


def may_lie_transposed(facts: DatasetFacts) -> str:
    """What is to be known of images that are those of a data set by their name alone."""
    return (
        f"images of {facts.title} were published transposed; no checksum tells whether these still "
        "are, and they are taken as they lie (`idx select --transpose` turns them)"
    )


class Claim(NamedTuple):
    """What the bytes of a file would have to be, for it to be a known one."""

    known: Known
    fingerprint: Fingerprint


def recognise(file: Any, source: Source, header: Header) -> list[Known]:
    """The known files that a file is: none, one, or several where the content is the same.

    Args:
        file: what the user passed.
        source: what `open_source` made of it; it is used up.
        header: its header.
    """
    rows = files_like(header)
    if not rows:
        return []
    outer_size, outer = _outer(file) if source.codecs else (None, tuple)
    outside = [claim for row in rows for claim in _published(row)] if outer_size else []
    found = matching(outer, outer_size, [c for c in outside if c.fingerprint.size == outer_size])
    if found or source.size not in (None, header.file_nbytes):
        return found
    inside = [Claim(row, row.file.raw) for row in rows]
    found = matching(lambda: pieces(source), header.file_nbytes, inside)
    if found:
        return [known._replace(remark=_packing(known, outer_size)) for known in found]
    return matching(outer, outer_size, [c for c in outside if c.fingerprint.size is None])


def named_so(name: str, codecs: Sequence[str], header: Header) -> list[Known]:
    """The known files whose name and header a file has, where no digest could tell.

    Only names that no other data set uses count. A file in the compression of the published one,
    whose digest is known, is that one by its digest, or it is not.

    Args:
        name: the name of the file, or its place.
        codecs: its compressions.
        header: its header.
    """
    base = _bare(os.path.basename(file_of(name)))
    return [
        row._replace(remark=BY_NAME)
        for row in files_like(header)
        if _bare(row.file.name) == base
        and _bearers()[base] == 1
        and row.file.raw.strongest is None
        and not (row.file.published.strongest and codecs and _codec(row.file.name) == codecs[0])
    ]


@cache
def _bearers() -> Counter[str]:
    """How many files of the catalogue bear a name."""
    return Counter(_bare(file.name) for dataset in datasets() for file in dataset.files)


def _bare(name: str) -> str:
    """The name of a file without the suffix of its compression."""
    return os.path.splitext(name)[0] if codec_of_name(name) else name


def _codec(name: str) -> str | None:
    codec = codec_of_name(name)
    return codec.name if codec else None


def files_like(header: Header) -> Sequence[Known]:
    """The known files of this type and shape."""
    return _by_header().get((header.dialect, header.element.name, header.shape), ())


@cache
def _by_header() -> dict[tuple[str, str, tuple[int, ...]], list[Known]]:
    table: dict[tuple[str, str, tuple[int, ...]], list[Known]] = defaultdict(list)
    for dataset in datasets():
        for file in dataset.files:
            table[dataset.dialect, file.dtype, file.shape].append(Known(dataset, file))
    return dict(table)


def _published(row: Known) -> Iterable[Claim]:
    yield Claim(row, row.file.published)
    for release in row.dataset.releases:
        if row.file.name in release.files:
            yield Claim(row._replace(remark=release.what), release.files[row.file.name])


def _packing(known: Known, outer_size: int | None) -> str | None:
    """What to say of a right content in a compression that is not the published one."""
    published = known.file.published.size
    return "compressed anew" if outer_size and published and outer_size != published else None


def _outer(file: Any) -> tuple[int | None, Pieces]:
    """The bytes as they lie there, compressed: how many, and what gives them."""
    if isinstance(file, (str, os.PathLike)):
        path = os.fsdecode(file)
        size = os.path.getsize(path) if os.path.isfile(path) else None
        return size, lambda: file_pieces(path)
    try:
        view = memoryview(file).cast("B")
    except TypeError:
        return None, tuple  # a stream is read once
    return len(view), lambda: [view]


def matching(content: Pieces, size: int | None, claims: list[Claim]) -> list[Known]:
    algorithms = {c.fingerprint.strongest[0] for c in claims if c.fingerprint.strongest}
    found = digests(content(), size, algorithms).items() if algorithms else ()
    return [claim.known for claim in claims if claim.fingerprint.strongest in found]
