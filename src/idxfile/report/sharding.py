"""Whether a set of shards is right: each file, how they fit together, and the manifest."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from ..errors import FormatError, IdxError, printable
from ..header import MAX_DIMENSION, Header
from ..problems import Problem
from ..shards import ShardFacts, missing_shards
from ..source import InOrder, open_outer_source
from ..source.finding import Found, load_manifest, other_files
from ..source.local import digest_of
from ..source.members import differing
from ..source.places import is_url
from .judgement import Progress, Report, unopened

__all__: list[str] = []

_PIECE_NBYTES = 1 << 20


def check_shards(
    found: Found, check_one: Callable[[Any], Report], progress: Progress | None = None
) -> Report:
    """Judge a set of shards: every file read to its end, one after the other.

    Args:
        found: the set.
        check_one: judges one file.
        progress: called with the bytes of the shards done and of all.
    """
    problems = list(found.problems)
    said = _said(found, problems)
    total = sum(shard.nbytes for shard in said.values()) or len(found.places)
    done = items = nbytes = data_nbytes = 0
    first: Report | None = None
    missing = []
    for place, name in zip(found.places, found.names, strict=True):
        shard = said.get(name)
        done += shard.nbytes if shard else 1
        report, digest = _checked(place, check_one, digested=shard is not None)
        if report is None:
            missing.append(name)
            continue
        mine = [*report.problems]
        if report.header is not None:
            mine += _fits(report.header, first, name)
            first = first or report
            items += report.header.shape[0] if report.header.shape else 0
        if shard is not None:
            mine += _as_said(report, digest, shard)
        problems += [replace(p, message=f"{printable(name)}: {p.message}") for p in mine]
        nbytes += report.file_nbytes or 0
        data_nbytes += report.data_nbytes
        if progress:
            progress(done, total)
    if missing:
        problems.append(missing_shards(missing, len(found.places)))
    header = None
    if first is not None and first.header is not None and items <= MAX_DIMENSION:
        element, item_shape = first.header.element, first.header.item_shape
        header = replace(first.header, element=element, shape=(items, *item_shape))
    return Report(found.name, header, first.codecs if first else (), nbytes, data_nbytes, problems)


def _said(found: Found, problems: list[Problem]) -> dict[str, ShardFacts]:
    """What the manifest says of each shard, by name; what is wrong with it goes to `problems`."""
    try:
        manifest = load_manifest(found)
    except FormatError as error:
        text = f"{printable(os.path.basename(error.file or ''))}: {error.args[0]}"
        problems.append(Problem("manifest-damaged", text, hint=error.hint))
        return {}
    if manifest is None:
        return {}
    problem = other_files(found, manifest)
    if problem is not None:
        problems.append(problem)
    return {shard.name: shard for shard in manifest.shards}


def _checked(
    place: Any, check_one: Callable[[Any], Report], *, digested: bool
) -> tuple[Report | None, str | None]:
    """The report over a file, None where there is none; and what its bytes come to."""
    try:
        if digested and is_url(place):
            return _checked_once(place, check_one)
        report = check_one(place)
        return report, digest_of(place) if digested and os.path.isfile(place) else None
    except FileNotFoundError:
        return None, None
    except (OSError, IdxError) as error:
        return unopened(str(place), error), None


def _checked_once(url: str, check_one: Callable[[Any], Report]) -> tuple[Report, str]:
    """The same of an object, which is fetched once for both."""
    source = open_outer_source(url)
    try:
        stream = _Digested(source)
        report = check_one(stream)
        while stream.read(_PIECE_NBYTES):  # what is behind the end of the content
            pass
        return replace(report, file_nbytes=stream.nbytes), stream.digest.hexdigest()
    finally:
        source.close()


class _Digested:
    """An object as a stream, of which is told what came."""

    def __init__(self, source: Any) -> None:
        self.name = source.name
        self.digest = hashlib.sha256()
        self.nbytes = 0
        self._stream = InOrder(source)

    def read(self, limit: int) -> bytes:
        """The next bytes."""
        piece = self._stream.read(limit)
        self.digest.update(piece)
        self.nbytes += len(piece)
        return piece


def _fits(header: Header, first: Report | None, name: str) -> Iterator[Problem]:
    wanted = header if first is None or first.header is None else first.header
    if (header.element, header.item_shape) != (wanted.element, wanted.item_shape):
        yield differing(header, wanted, os.path.basename(first.file) if first else name)


def _as_said(report: Report, digest: str | None, shard: ShardFacts) -> Iterator[Problem]:
    """What of a shard is not as the manifest says; its digest where nothing else tells."""
    items = report.header.shape[0] if report.header and report.header.shape else None
    told: list[tuple[str, Any, Any]] = [
        ("items", items, shard.items),
        ("bytes", report.file_nbytes, shard.nbytes),
    ]
    differing = [each for each in told if None not in each and each[1] != each[2]]
    if not differing and digest not in (None, shard.sha256):
        differing = [("SHA-256", digest, shard.sha256)]
    for what, found, expected in differing:
        yield Problem(
            "shard-changed",
            f"{what} {found}, and the manifest says {expected}",
            found=found,
            expected=expected,
            hint="another file took its place, or it was changed: fetch it again; who changed it "
            "on purpose removes the manifest",
        )
