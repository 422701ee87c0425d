"""Plain data sets with all that is known of them: name, classes, columns, orientation."""

from __future__ import annotations

import contextlib
import os
import warnings
from collections.abc import Callable, Iterable
from itertools import chain
from typing import Any

from ..dataset import Dataset
from ..errors import IdxWarning, printable
from ..header import Header
from ..lazyarray import IdxArray
from ..pairs import open_dataset
from ..report.facts import make_out
from ..source import open_source
from .recognition import (
    BY_NAME,
    Claim,
    Known,
    files_like,
    matching,
    may_lie_transposed,
    named_so,
    recognise,
)
from .table import DatasetFacts, FileFacts

__all__: list[str] = []


def recognise_dataset(place: Any, **options: Any) -> Dataset:
    """A data set with its name, split, classes, columns and orientation, if it is a known one.

    Images and labels are held against the catalogue by their digests: as files that lie here, or as
    the IDX files that they came from. Where no digest of such a content is known, names that no
    other data set has, both shapes, and labels that all have a class tell. Which way images lie
    no name tells: those are left as they are.

    Args:
        place: a data set as it was opened, or what `open_dataset` takes.
        options: of `open_dataset`.

    Returns:
        The data set, named, and upright where its content is known: `place` itself but for what
        lies transposed.

    Warns:
        IdxWarning: for images that may lie transposed.
    """
    ds = place if isinstance(place, Dataset) else open_dataset(place, **options)
    arrays = ds.images.arrays
    file = arrays[0].name if len(arrays) == 1 and isinstance(arrays[0], IdxArray) else None
    found = _known(file, ds.images.shape, ds.images.dtype, ds.images.blocks)
    table = ds.table if len(ds.table.shape) == 2 and ds.table.shape[1] > 1 else ds.labels
    partners: list[Known] | None = None
    for known in found:
        if partners is None:
            partners = _known(ds.labels_file, table.shape, table.dtype, lambda: [table])
        facts, split = known.dataset, known.file.split
        files = facts.files_of(split or "")
        labels = dict(zip(files["images"], files["labels"], strict=False)).get(known.file)
        if any(row.file == labels and row.dataset is facts for row in partners) and (
            known.remark != BY_NAME or _all_have_classes(ds, facts, labels)
        ):
            if known.remark != BY_NAME:
                return decorated(ds, facts, split)
            if facts.transposed:
                where = printable(ds.images.name or "images")
                warnings.warn(f"{where}: {may_lie_transposed(facts)}", IdxWarning, stacklevel=2)
            return named(ds, facts, split)
    return ds


def _known(
    file: str | None, shape: tuple[int, ...], dtype: Any, blocks: Callable[[], Iterable[Any]]
) -> list[Known]:
    """The known files that an array is, or would make."""
    if file is None or not os.path.isfile(file):
        return _known_arrays(shape, dtype, blocks)
    with contextlib.closing(open_source(file, mmap=False)) as source:
        header, _ = make_out(source, source.size)
        if header is None or header.shape != tuple(shape) or not files_like(header):
            return []
        return recognise(file, source, header) or named_so(file, source.codecs, header)


def _known_arrays(
    shape: tuple[int, ...], dtype: Any, blocks: Callable[[], Iterable[Any]]
) -> list[Known]:
    """The known IDX files that an array would make."""
    try:
        header = Header.of(dtype.name, tuple(shape))
    except ValueError:
        return []
    rows = files_like(header)
    if not rows:
        return []
    stored = (block.astype(block.dtype.newbyteorder(">")).tobytes() for block in blocks())
    claims = [Claim(row, row.file.raw) for row in rows]
    return matching(lambda: chain([header.encode()], stored), header.file_nbytes, claims)


def _all_have_classes(ds: Dataset, facts: DatasetFacts, labels: FileFacts | None) -> bool:
    """Whether the labels are such as this data set has, and as many of each where that is known."""
    counts = ds.class_counts()
    named = all(0 <= n < len(facts.classes) and facts.classes[n] is not None for n in counts)
    expected = labels.counts if labels is not None else ()
    return named and all(counts.get(n, 0) == count for n, count in enumerate(expected))


def decorated(ds: Dataset, facts: DatasetFacts, split: str | None) -> Dataset:
    """A data set as it was opened, with all that is known of it, and upright."""
    return named(ds.transpose() if facts.transposed else ds, facts, split)


def named(ds: Dataset, facts: DatasetFacts, split: str | None) -> Dataset:
    """A data set with its name, split, classes and columns."""
    ds.name, ds.split = facts.name, split
    ds.classes = facts.classes or None
    ds.columns = facts.columns if len(facts.columns) == ds.table.shape[1] else None
    return ds
