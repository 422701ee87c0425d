"""xarray: `xr.open_dataset("train-images-idx3-ubyte", engine="idx")`, found by content without it.

Variables are lazy: what is selected is read, by position, and `chunks={}` gives Dask arrays.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

import numpy as np
import xarray as xr
from xarray.backends import BackendArray, BackendEntrypoint
from xarray.core import indexing

from ..array import IdxArray, open
from ..dataset import Dataset
from ..errors import IdxError
from ..header import examine
from ..items import Items
from ..names import file_name
from ..pairs import open_dataset
from ..source import header_prefix, open_source
from ..source.places import find_partner

__all__ = ["IdxBackend", "dataset"]

_AXES = ("item", "row", "column", "channel")
_CHUNK_NBYTES = 1 << 24


class IdxBackend(BackendEntrypoint):
    """The engine `idx`: an IDX file, compressed or not; a pair; or a folder with one."""

    description = "Open IDX files, the tensor format of MNIST"
    open_dataset_parameters = ("filename_or_obj", "drop_variables", "split")

    def open_dataset(
        self,
        filename_or_obj: Any,
        *,
        drop_variables: str | Iterable[str] | None = None,
        split: str | None = None,
    ) -> xr.Dataset:
        """Open a file, or the pair that it belongs to.

        Args:
            filename_or_obj: a path, or what `idxfile.open` takes. Beside a file of images lie its
                labels, or they do not; a folder holds a pair.
            drop_variables: what is left out, by name.
            split: train, test …, where a folder holds several.

        Returns:
            A dataset with the variables `images (item, row, column)` and `labels (item)`, or the
            one of them that there is, in native byte order; read when asked.

        Raises:
            FormatError: when it is not a right IDX file.
            PairError: when images and labels do not belong together.
        """
        place = filename_or_obj
        if isinstance(place, (str, os.PathLike)):
            place = os.fsdecode(place)
            named = file_name(place)
            images = named is not None and named.role == "images"
            paired = images and os.path.isfile(place) and find_partner(place) is not None
            if os.path.isdir(place) or paired:
                opened = dataset(open_dataset(place, split=split))
            else:
                opened = _of_file(place, named.role if named else "images")
        else:
            opened = _of_file(place, "images")
        dropped = {drop_variables} if isinstance(drop_variables, str) else set(drop_variables or ())
        return opened.drop_vars(dropped & set(opened.variables))

    def guess_can_open(self, filename_or_obj: Any) -> bool:
        """Whether it is an IDX file, by its content: many other formats are called `.idx` too."""
        if not isinstance(filename_or_obj, (str, os.PathLike)):
            return False
        try:
            source = open_source(filename_or_obj, mmap=False)
            try:
                header, problems = examine(header_prefix(source), source.size)
            finally:
                source.close()
        except (OSError, IdxError, ValueError):
            return False
        return header is not None and all(problem.level != "error" for problem in problems)


def dataset(ds: Dataset) -> xr.Dataset:
    """Make an `xarray.Dataset` of a data set: `images`, read when asked, and `labels`.

    Args:
        ds: the data set.

    Returns:
        The dataset; further columns of a matrix of labels are variables under their names. The
        names of the classes are the attribute `classes` of the labels.
    """
    variables = {"images": _variable(ds.images)}
    for number in range(ds.table.shape[1]):
        name = ds.columns[number] if ds.columns else f"labels_{number}"
        variables["labels" if number == 0 else name] = xr.Variable("item", ds.table[:, number])
    if ds.classes:
        variables["labels"].attrs["classes"] = [name or "" for name in ds.classes]
    attributes = {key: value for key, value in (("name", ds.name), ("split", ds.split)) if value}
    return xr.Dataset(variables, attrs=attributes)


def _of_file(file: Any, role: str) -> xr.Dataset:
    array = file if isinstance(file, IdxArray) else open(file)
    opened = xr.Dataset({role: _variable(array)})
    opened.set_close(array.close)
    return opened


def _variable(array: IdxArray | Items) -> xr.Variable:
    """An array as a variable that is read when asked."""
    axes = _AXES if array.ndim <= len(_AXES) else ("item",)
    names = [*axes[: array.ndim], *(f"axis_{n}" for n in range(len(axes), array.ndim))]
    lazy = indexing.LazilyIndexedArray(_Lazy(array))
    encoding = {}
    if array.ndim and array.nbytes:
        items = max(1, _CHUNK_NBYTES // (array.nbytes // array.shape[0]))
        encoding["preferred_chunks"] = {names[0]: min(items, array.shape[0])}
    return xr.Variable(names, lazy, encoding=encoding)


class _Lazy(BackendArray):
    """An array that answers xarray's keys."""

    def __init__(self, array: IdxArray | Items) -> None:
        self._array = array
        self.shape = array.shape
        self.dtype = array.dtype

    def __getitem__(self, key: indexing.ExplicitIndexer) -> Any:
        support = indexing.IndexingSupport.OUTER_1VECTOR
        return indexing.explicit_indexing_adapter(key, self.shape, support, self._values)

    def _values(self, key: tuple[Any, ...]) -> Any:
        return np.asarray(self._array[key])
