"""Plain data sets with all that is known of them: name, classes, columns, orientation."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain
from typing import Any

from ..dataset import Dataset
from ..header import Header
from ..pairs import open_dataset
from .recognition import Claim, Known, files_like, matching
from .table import DatasetFacts

__all__: list[str] = []


def recognise_dataset(place: Any, **options: Any) -> Dataset:
    """A data set with its name, split, classes, columns and orientation, if its content is known.

    Images and labels are hashed as the IDX files that they came from. Where the catalogue has no
    digest of the raw images, or they are others, the data set stays as it is.

    Args:
        place: a data set as it was opened, or what `open_dataset` takes.
        options: of `open_dataset`.

    Returns:
        The data set, named, and upright: `place` itself but for what lies transposed.
    """
    ds = place if isinstance(place, Dataset) else open_dataset(place, **options)
    found = _known_arrays(ds.images.shape, ds.images.dtype, ds.images.blocks())
    table = ds.table if len(ds.table.shape) == 2 and ds.table.shape[1] > 1 else ds.labels
    for known in found:
        facts, split = known.dataset, known.file.split
        labels = facts.files_of(split or "")["labels"]
        if labels and labels[0] in [
            k.file for k in _known_arrays(table.shape, table.dtype, [table])
        ]:
            return decorated(ds, facts, split)
    return ds


def _known_arrays(shape: tuple[int, ...], dtype: Any, blocks: Iterable[Any]) -> list[Known]:
    """The known IDX files that an array would make."""
    try:
        header = Header.of(dtype.name, tuple(shape))
    except ValueError:
        return []
    rows = files_like(header)
    if not rows:
        return []
    stored = (block.astype(block.dtype.newbyteorder(">")).tobytes() for block in blocks)
    claims = [Claim(row, row.file.raw) for row in rows]
    return matching(lambda: chain([header.encode()], stored), header.file_nbytes, claims)


def decorated(ds: Dataset, facts: DatasetFacts, split: str | None) -> Dataset:
    """A data set as it was opened, with all that is known of it, and upright."""
    upright = ds.transpose() if facts.transposed else ds
    upright.name, upright.split = facts.name, split
    upright.classes = facts.classes or None
    upright.columns = facts.columns if len(facts.columns) == ds.table.shape[1] else None
    return upright
