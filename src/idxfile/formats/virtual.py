"""A parser for VirtualiZarr: IDX files as virtual Zarr, to be joined and saved without a copy."""

from __future__ import annotations

from typing import Any

import numpy as np
from obspec_utils.registry import ObjectStoreRegistry
from virtualizarr.manifests import ChunkManifest, ManifestArray, ManifestGroup, ManifestStore
from virtualizarr.manifests.utils import create_v3_array_metadata

from ..errors import FormatError
from ..header import MAX_HEADER_NBYTES, examine
from ..problems import settle
from .layout import CHUNK_NBYTES, axes, chunk_items

__all__ = ["IdxParser"]


class IdxParser:
    """Makes references of an IDX file that is not compressed: near, or in an object store.

    Args:
        name: what the array is called.
        chunk_nbytes: the bytes of a chunk, at most; for one item a whole chunk is read. Chunks are
            whole items, and all of them full: their number divides that of the items.

    Example:
        parser = IdxParser()
        ds = virtualizarr.open_virtual_dataset("file:///data/train.idx", registry, parser)
        ds.vz.to_kerchunk("train.json", format="json")
    """

    def __init__(self, *, name: str = "images", chunk_nbytes: int = CHUNK_NBYTES) -> None:
        self._name = name
        self._chunk_nbytes = chunk_nbytes

    def __call__(self, url: str, registry: ObjectStoreRegistry[Any]) -> ManifestStore:
        """The references of one file.

        Args:
            url: of the file.
            registry: the object stores by the beginnings of their URLs.

        Raises:
            FormatError: when it is not a right IDX file.
        """
        store, path = registry.resolve(url)
        size = int(store.head(path)["size"])
        length = min(size, MAX_HEADER_NBYTES)
        prefix = bytes(store.get_range(path, start=0, length=length)) if length else b""
        header, problems = examine(prefix, size)
        settle(problems, "raise", url)
        if header is None:
            raise FormatError("this is no IDX file", file=url)
        shape, dtype = header.shape, header.stored_dtype
        items = chunk_items(shape, dtype.itemsize, self._chunk_nbytes, even=True)
        chunks = (items, *(max(1, n) for n in shape[1:])) if shape else ()
        count = shape[0] // items if shape else 1
        grid = (count, *[1] * (len(shape) - 1)) if shape else ()
        length = items * header.item_nbytes if shape else header.nbytes
        offsets = header.data_offset + np.arange(count, dtype=np.uint64) * np.uint64(length)
        manifest = ChunkManifest.from_arrays(
            paths=np.full(grid, url, np.dtypes.StringDType()),
            offsets=offsets.reshape(grid),
            lengths=np.full(grid, length, np.uint64),
        )
        metadata = create_v3_array_metadata(
            shape=shape,
            data_type=dtype,
            chunk_shape=chunks,
            codecs=[],
            dimension_names=axes(len(shape)),
            attributes={},
        )
        array = ManifestArray(metadata=metadata, chunkmanifest=manifest)
        return ManifestStore(group=ManifestGroup(arrays={self._name: array}), registry=registry)
