"""Kerchunk references: a Zarr 3 group in one JSON file, whose chunks lie in a file that stays.

Version 1 of the references: a key is a text, or `[URL, offset, length]`. Readers are fsspec's
`reference` file system, and through it zarr and xarray. Source: the kerchunk documentation,
"References specification".
"""

from __future__ import annotations

import json
import os
from typing import Any

from .columns import Columns
from .layout import CHUNK_NBYTES, chunk_items, chunk_key, metadata
from .stored import Stored, stored_of

__all__ = ["point_columns"]


def point_columns(
    path: str, columns: Columns, *, url: str | None = None, chunk_nbytes: int = CHUNK_NBYTES
) -> None:
    """Write references to the elements of the source.

    Chunks are whole items, and all of them full: their number divides that of the items.

    Args:
        path: the JSON file.
        columns: what to point to.
        url: where readers find the source; by default where it lies now.
        chunk_nbytes: the bytes of a chunk, at most; for one item a whole chunk is read.
    """
    attributes = {"classes": list(columns.classes)} if columns.classes else {}
    group = {"zarr_format": 3, "node_type": "group", "attributes": attributes}
    references: dict[str, Any] = {"zarr.json": json.dumps(group)}
    for name, column in columns.arrays.items():
        stored = stored_of(column)
        assert stored is not None  # the pump has looked
        references |= _references(name, stored, url, chunk_nbytes)
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"version": 1, "refs": references}, file)


def _references(name: str, stored: Stored, url: str | None, chunk_nbytes: int) -> dict[str, Any]:
    shape, dtype = stored.shape, stored.stored_dtype
    items = chunk_items(shape, dtype.itemsize, chunk_nbytes, even=True)
    found: dict[str, Any] = {f"{name}/zarr.json": json.dumps(metadata(shape, dtype, items))}
    place = url or f"file://{os.path.realpath(stored.source.name)}"
    count = shape[0] if shape else 1
    length = items * stored.nbytes // count if count else 0
    for number in range(count // items if length else 0):
        offset = stored.offset + number * length
        found[f"{name}/{chunk_key(len(shape), number)}"] = [place, offset, length]
    return found
