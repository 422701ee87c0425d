"""Whether a set of shards is right: each file, how they fit together, and the manifest."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from ..errors import FormatError, printable
from ..header import MAX_DIMENSION, Header
from ..problems import Problem
from ..shards import ShardFacts, missing_shards
from ..source.finding import Found, load_manifest, other_files
from ..source.local import LocalFile
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
        report = _checked(place, check_one)
        if report is None:
            missing.append(name)
            continue
        mine = [*report.problems]
        if report.header is not None:
            mine += _fits(report.header, first, name)
            first = first or report
            items += report.header.shape[0] if report.header.shape else 0
        if shard is not None:
            mine += _as_said(place, report, shard)
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


def _checked(place: Any, check_one: Callable[[Any], Report]) -> Report | None:
    """The report over a file; None where there is none."""
    try:
        return check_one(place)
    except FileNotFoundError:
        return None
    except OSError as error:
        return unopened(str(place), error)


def _fits(header: Header, first: Report | None, name: str) -> Iterator[Problem]:
    wanted = header if first is None or first.header is None else first.header
    if (header.element, header.item_shape) != (wanted.element, wanted.item_shape):
        yield differing(header, wanted, name, os.path.basename(first.file) if first else name)


def _as_said(place: Any, report: Report, shard: ShardFacts) -> Iterator[Problem]:
    """What of a shard is not as the manifest says."""
    items = report.header.shape[0] if report.header and report.header.shape else None
    told: list[tuple[str, Any, Any]] = [
        ("items", items, shard.items),
        ("bytes", report.file_nbytes, shard.nbytes),
    ]
    if not is_url(place) and os.path.isfile(place):
        told.append(("SHA-256", _digest(place), shard.sha256))
    for what, found, expected in told:
        if found != expected:
            yield Problem(
                "shard-changed",
                f"{what} {found}, and the manifest says {expected}",
                found=found,
                expected=expected,
                hint="another file took its place, or it was changed: fetch it again",
            )


def _digest(path: str) -> str:
    digest = hashlib.sha256()
    source = LocalFile(path, mapped=False)
    try:
        piece = memoryview(bytearray(_PIECE_NBYTES))
        start = 0
        while count := source.readinto_at(start, piece):
            digest.update(piece[:count])
            start += count
    finally:
        source.close()
    return digest.hexdigest()
