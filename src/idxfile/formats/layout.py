"""An IDX file as a Zarr array that is not there: its metadata, and where its chunks lie.

The elements of an IDX file are a legal chunk of Zarr 3 as they stand, with the codec `bytes` in
big-endian order; any whole number of items is one too. Source: Zarr core specification 3.0.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

__all__: list[str] = []

CHUNK_NBYTES = 1 << 24
"""A whole chunk is read for one item: so large they may be, where the file is far away."""

_AXES = ("item", "row", "column", "channel")


def axes(ndim: int) -> list[str]:
    """What dimensions are called."""
    if ndim <= len(_AXES):
        return list(_AXES[:ndim])
    return ["item", *(f"axis_{number}" for number in range(1, ndim))]


def chunk_items(shape: Sequence[int], itemsize: int, chunk_nbytes: int, *, even: bool) -> int:
    """How many items a chunk has.

    Args:
        shape: of the array.
        itemsize: the bytes of one element.
        chunk_nbytes: the bytes of a chunk, at most, but for one item.
        even: whether all chunks must be full: then it is a divisor of the number of items.
    """
    count = max(1, shape[0]) if shape else 1
    most = max(1, chunk_nbytes // max(1, math.prod(shape[1:]) * itemsize))
    if most >= count or not even:
        return min(most, count)
    divisors = (
        d for n in range(1, math.isqrt(count) + 1) if count % n == 0 for d in (n, count // n)
    )
    return max(d for d in divisors if d <= most)


def metadata(
    shape: Sequence[int], dtype: np.dtype[Any], items: int, *, names: Sequence[str] | None = None
) -> dict[str, Any]:
    """The `zarr.json` of an array whose elements lie as `dtype` says.

    Args:
        shape: of the array.
        dtype: of the elements, in the byte order in which they lie.
        items: how many are one chunk.
        names: of the dimensions.
    """
    order = {"endian": "big" if dtype.str[0] == ">" else "little"} if dtype.itemsize > 1 else {}
    return {
        "zarr_format": 3,
        "node_type": "array",
        "shape": list(shape),
        "data_type": dtype.name,
        "chunk_grid": {
            "name": "regular",
            "configuration": {
                "chunk_shape": [items, *(max(1, n) for n in shape[1:])] if shape else []
            },
        },
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
        "fill_value": 0,
        "codecs": [{"name": "bytes", "configuration": order}],
        "attributes": {},
        "dimension_names": list(names or axes(len(shape))),
    }


def chunk_key(ndim: int, number: int) -> str:
    """The key of a chunk of items, by its number."""
    return "/".join(["c", *([str(number)] if ndim else []), *["0"] * (ndim - 1)])
