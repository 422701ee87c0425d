"""An IDX file as a Zarr array, in this process and without a copy: `open_zarr`."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterable
from typing import Any

import numpy as np
import zarr
from zarr.abc.store import (
    ByteRequest,
    OffsetByteRequest,
    RangeByteRequest,
    Store,
    SuffixByteRequest,
)
from zarr.core.buffer import Buffer, BufferPrototype

from ..array import IdxArray, open
from .layout import chunk_items, chunk_key, metadata

__all__ = ["IdxStore", "open_zarr"]

_CHUNK_NBYTES = 1 << 20


def open_zarr(file: Any, *, chunk_nbytes: int = _CHUNK_NBYTES) -> zarr.Array[Any]:
    """Open an IDX file as a read-only Zarr 3 array.

    Args:
        file: an IdxArray, or what `idxfile.open` takes; compressed files work too.
        chunk_nbytes: the bytes of a chunk, about; for one item a whole chunk is read.

    Returns:
        A `zarr.Array` in native byte order, whose chunks are read from the file when asked.

    Example:
        >>> import idxfile
        >>> from idxfile.formats.views import open_zarr
        >>> z = open_zarr(bytes.fromhex("00000b01 00000002 0007 ffff"))
        >>> z[:].tolist()
        [7, -1]
    """
    array = file if isinstance(file, IdxArray) else open(file)
    return zarr.open_array(IdxStore(array, chunk_nbytes=chunk_nbytes), mode="r")


class IdxStore(Store):
    """The keys of a Zarr 3 array over an IDX file: `zarr.json`, and a chunk for every few items.

    The last chunk is padded, as Zarr wants all chunks of one size. Nothing can be written.

    Args:
        array: the file.
        chunk_nbytes: the bytes of a chunk, about.
    """

    supports_writes = False
    supports_deletes = False
    supports_listing = True

    def __init__(self, array: IdxArray, *, chunk_nbytes: int = _CHUNK_NBYTES) -> None:
        super().__init__(read_only=True)
        self._array = array
        header = array.header
        self._items = chunk_items(array.shape, header.element.nbytes, chunk_nbytes, even=False)
        described = metadata(array.shape, header.stored_dtype, self._items)
        self._metadata = json.dumps(described).encode()
        count = -(-array.shape[0] // self._items) if array.shape else 1
        self._chunks = {chunk_key(array.ndim, n): n for n in range(count if array.size else 0)}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, IdxStore) and (
            (self._array is other._array or self._array.name == other._array.name)
            and self._items == other._items
        )

    def __hash__(self) -> int:
        return hash((self._array.name, self._items))

    async def get(
        self, key: str, prototype: BufferPrototype, byte_range: ByteRequest | None = None
    ) -> Buffer | None:
        """The bytes of a key, or of a part of it; None where there is none."""
        if key == "zarr.json":
            data = self._metadata
        elif key in self._chunks:
            data = self._chunk(self._chunks[key])
        else:
            return None
        return prototype.buffer.from_bytes(data[_slice(byte_range, len(data))])

    def _chunk(self, number: int) -> bytes:
        header = self._array.header
        one = header.item_nbytes
        low = number * self._items
        count = min(self._items, header.shape[0] - low) if header.shape else 1
        block = self._array[low : low + count] if header.shape else self._array[()]
        stored = np.asarray(block).astype(header.stored_dtype, copy=False)
        return stored.tobytes() + bytes((self._items - count) * one)

    async def get_partial_values(
        self,
        prototype: BufferPrototype,
        key_ranges: Iterable[tuple[str, ByteRequest | None]],
    ) -> list[Buffer | None]:
        """The bytes of several keys, or of parts of them."""
        return [await self.get(key, prototype, part) for key, part in key_ranges]

    async def exists(self, key: str) -> bool:
        """Whether there is such a key."""
        return key == "zarr.json" or key in self._chunks

    async def set(self, key: str, value: Buffer) -> None:
        """Refused: the view is read-only."""
        raise PermissionError(f"{self._array.name} is viewed, and cannot be written: {key}")

    async def delete(self, key: str) -> None:
        """Refused: the view is read-only."""
        raise PermissionError(f"{self._array.name} is viewed, and cannot be written: {key}")

    async def list(self) -> AsyncIterator[str]:
        """All keys."""
        yield "zarr.json"
        for key in self._chunks:
            yield key

    async def list_prefix(self, prefix: str) -> AsyncIterator[str]:
        """All keys that begin so."""
        async for key in self.list():
            if key.startswith(prefix):
                yield key

    async def list_dir(self, prefix: str) -> AsyncIterator[str]:
        """The names directly below a prefix."""
        start = f"{prefix.rstrip('/')}/" if prefix else ""
        seen = set()
        async for key in self.list_prefix(start):
            name = key[len(start) :].partition("/")[0]
            if name not in seen:
                seen.add(name)
                yield name


def _slice(part: ByteRequest | None, length: int) -> slice:
    if isinstance(part, RangeByteRequest):
        return slice(part.start, part.end)
    if isinstance(part, OffsetByteRequest):
        return slice(part.offset, None)
    if isinstance(part, SuffixByteRequest):
        return slice(max(0, length - part.suffix), None)
    return slice(None)
