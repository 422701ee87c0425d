"""Files as datasets of Ray Data: `read_idx`."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import ray.data
from ray.data.block import BlockMetadata
from ray.data.datasource import Datasource, ReadTask

from ...array import IdxArray, open
from ...dataset import Dataset
from ...elements import Array
from ...errors import PairError, UnsupportedError
from ...items import Items
from ...slabs.planning import SLAB_NBYTES, Slab, plan

__all__ = ["IdxDatasource", "dataset", "read_idx"]

_BLOCK_NBYTES = 1 << 25
"""What a worker gives to Ray at once; Ray joins and cuts as suits it."""

_SMALL_NBYTES = 1 << 12
"""Up to here what is read from is a recipe, and tasks have it; beyond it data, and cut for them."""


def read_idx(file: Any, labels: Any = None, **options: Any) -> ray.data.Dataset:
    """A file as a dataset of Ray Data; large files are read by many, slab by slab.

    Args:
        file: the images, or whatever items there are: what `open` takes, one of many shards too.
        labels: the file of their labels; None for no column `label`.
        options: what `ray.data.read_datasource` takes: `override_num_blocks`, `concurrency` …

    Returns:
        A dataset with the columns `item` (int64), `image` (a tensor of the item's shape; a number
        where items are numbers) and `label`, in native byte order and the types of the files.

    Raises:
        FormatError: when a file is not right.
        PairError: when there are not as many labels as items.
        TypeError: for a file object, which cannot travel: open it by its path.
    """
    return ray.data.read_datasource(IdxDatasource(file, labels), **options)


def dataset(ds: Dataset, **options: Any) -> ray.data.Dataset:
    """A data set as a dataset of Ray Data, with the columns `item`, `image` and `label`.

    Args:
        ds: the data set. Further columns of its labels come under their own names.
        options: what `ray.data.read_datasource` takes: `override_num_blocks`, `concurrency` …

    Returns:
        A dataset whose column `item` counts the items as `ds` has them.
    """
    return ray.data.read_datasource(IdxDatasource(ds), **options)


class IdxDatasource(Datasource):
    """Where Ray Data reads items from, for `ray.data.read_datasource`.

    Args:
        file: what `open` takes, an `IdxArray`, or a `Dataset`.
        labels: the file of the labels, of one number or a vector for each item.
    """

    def __init__(self, file: Any, labels: Any = None) -> None:
        super().__init__()
        self._labels: IdxArray | Array | None = None
        if isinstance(file, Dataset):
            arrays = file.images.arrays
            single = len(arrays) == 1 and isinstance(arrays[0], IdxArray)
            self._images: Any = arrays[0] if single else file.images
            self._labels = file.table
        else:
            self._images = file if isinstance(file, IdxArray) else open(file, mmap=False)
            if labels is not None:
                self._labels = labels if isinstance(labels, IdxArray) else open(labels, mmap=False)
        if not self._images.shape:
            raise UnsupportedError("a scalar has no items, and makes no rows")
        if self._labels is not None and self._labels.shape[:1] != self._images.shape[:1]:
            raise PairError(
                f"{len(self._images):,} items and {self._labels.shape} labels",
                hint="they come from different sets, or one of them was cut",
            )
        self._names = self._columns_of_labels(getattr(file, "columns", None))
        whole = self._images.everything if isinstance(self._images, Items) else self._images
        self._travels = len(pickle.dumps(whole)) <= _SMALL_NBYTES

    def _columns_of_labels(self, known: Any) -> tuple[str, ...]:
        count = 1 if self._labels is None or self._labels.ndim < 2 else self._labels.shape[1]
        return ("label", *(known or [f"label_{n}" for n in range(count)])[1:])

    def estimate_inmemory_data_size(self) -> int:
        """The bytes of all columns."""
        return len(self._images) * self._row_nbytes

    def get_read_tasks(
        self, parallelism: int, per_task_row_limit: int | None = None, data_context: Any = None
    ) -> list[ReadTask]:
        """The slabs, as many as are wanted or more, each as a task of about a kilobyte."""
        slab_nbytes = min(SLAB_NBYTES, -(-self._images.nbytes // max(1, parallelism)))
        parts = [*self._parts(max(1, slab_nbytes))] or [(self._images, 0, 0)]  # no rows, one schema
        return [
            ReadTask(
                partial(_rows, part, self._labels_of(first, count), first, self._names),
                BlockMetadata(
                    num_rows=count,
                    size_bytes=count * self._row_nbytes,
                    input_files=None,
                    exec_stats=None,
                ),
                schema=self._schema,
                per_task_row_limit=per_task_row_limit,
            )
            for part, first, count in parts
        ]

    @property
    def _row_nbytes(self) -> int:
        return sum(field.nbytes for field in self._one().values())

    @property
    def _schema(self) -> pa.Schema:
        return _table({name: field[:0] for name, field in self._one().items()}).schema

    def _one(self) -> dict[str, Array]:
        """The columns of one row that is none of ours."""
        image = np.zeros((1, *self._images.shape[1:]), self._images.dtype)
        labels = self._labels
        label = None if labels is None else np.zeros((1, *labels.shape[1:]), labels.dtype)
        return _columns(0, image, label, self._names)

    def _parts(self, slab_nbytes: int) -> Iterator[tuple[Any, int, int]]:
        """Who can be asked for some items, the number of the first, and how many there are."""
        images = self._images
        if isinstance(images, IdxArray) and self._travels:
            for slab in plan(images, slab_nbytes=slab_nbytes):
                yield slab, slab.first, len(slab)
            return
        count, step = len(images), max(1, slab_nbytes * len(images) // max(1, images.nbytes))
        for start in range(0, count, step):
            some = np.arange(start, min(start + step, count))
            yield images.choose(some) if self._travels else images.take(some), start, len(some)

    def _labels_of(self, first: int, count: int) -> Slab | Array | None:
        if isinstance(self._labels, IdxArray):
            return Slab(self._labels, first, first + count, first)
        return None if self._labels is None else np.array(self._labels[first : first + count])


def _rows(
    part: Any, labels: Slab | Array | None, first: int, names: tuple[str, ...]
) -> Iterator[pa.Table]:
    """What a worker reads: blocks of rows."""
    table = labels.read() if isinstance(labels, Slab) else labels
    done = 0
    blocks = [part] if isinstance(part, np.ndarray) else part.blocks(block_nbytes=_BLOCK_NBYTES)
    for block in blocks:
        label = None if table is None else table[done : done + len(block)]
        yield _table(_columns(first + done, block, label, names))
        done += len(block)


def _columns(
    first: int, block: Array, labels: Array | None, names: tuple[str, ...]
) -> dict[str, Array]:
    columns = {"item": np.arange(first, first + len(block)), "image": block}
    if labels is not None:
        columns |= zip(names, labels.reshape(len(block), len(names)).T, strict=True)
    return columns


def _table(columns: dict[str, Array]) -> pa.Table:
    return pa.table({name: _arrow(column) for name, column in columns.items()})


def _arrow(column: Array) -> Any:
    """A column as Arrow has it: numbers, or tensors of one shape."""
    values = pa.array(np.ascontiguousarray(column).reshape(-1))
    if column.ndim == 1:
        return values
    size = int(np.prod(column.shape[1:]))
    kind = pa.fixed_shape_tensor(values.type, column.shape[1:])
    storage = pa.FixedSizeListArray.from_arrays(values, size)
    return pa.ExtensionArray.from_storage(kind, storage)
