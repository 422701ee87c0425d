"""Hugging Face Datasets: a data set as an Arrow-built `datasets.Dataset`, and back."""

from __future__ import annotations

import io
from typing import Any

import datasets
import numpy as np
import PIL.Image
import pyarrow as pa
import pyarrow.compute

from ..dataset import Dataset
from ..elements import Array
from ..errors import UnsupportedError

__all__ = ["dataset", "from_dataset"]

_ARRAYS = {2: datasets.Array2D, 3: datasets.Array3D, 4: datasets.Array4D, 5: datasets.Array5D}
"""Dimensions of an item → the feature that holds it."""

_MOST_CLASSES = 10_000


def dataset(ds: Dataset, *, encoding: str = "array") -> datasets.Dataset:
    """Make a `datasets.Dataset` with the columns `image` and `label`, in memory.

    Args:
        ds: the data set.
        encoding: "array" stores the elements as an `Array2D` (to 5D; fewer dimensions as a list
            or a value); "png" stores pictures as an `Image`, of uint8 items that are grey
            `(rows, columns)` or colour `(rows, columns, 3 or 4)`.

    Returns:
        A dataset whose labels are a `ClassLabel` with the names of the classes (their numbers
        where none are known), or plain integers where a label is below 0 or above 9,999. Further
        columns of a matrix of labels follow under their own names.

    Raises:
        UnsupportedError: for items that the encoding cannot hold.
    """
    if encoding not in ("array", "png"):
        raise ValueError(f'encoding must be "array" or "png", not {encoding!r}')
    feature, build = _pictures(ds) if encoding == "png" else _arrays(ds)
    features = {"image": feature, "label": _label_feature(ds)}
    blocks = [build(block) for block in ds.images.blocks()]
    columns = [pa.chunked_array(blocks, type=datasets.Features(image=feature).arrow_schema[0].type)]
    for number in range(ds.table.shape[1]):
        columns.append(pa.array(ds.table[:, number].astype(np.int64)))
        if number:
            name = ds.columns[number] if ds.columns else f"label {number}"
            features[name] = datasets.Value("int64")
    table = pa.table(columns, names=list(features))
    return datasets.Dataset(
        datasets.table.InMemoryTable(table),
        info=datasets.DatasetInfo(features=datasets.Features(features), dataset_name=ds.name),
        split=ds.split and datasets.Split(ds.split),
    )


def from_dataset(hf: datasets.Dataset, *, image: str = "image", label: str = "label") -> Dataset:
    """Make a data set of two columns of a `datasets.Dataset`, in memory.

    Args:
        hf: one split of a dataset.
        image: the column of the images: an `Image`, `Array2D` to 5D, lists, or numbers.
        label: the column of the labels, integers.

    Returns:
        A `Dataset` with the names of a `ClassLabel` as classes, unless they are only the numbers.

    Raises:
        UnsupportedError: for items of different shapes.
    """
    columns = hf.with_format("arrow")[:]
    if isinstance(hf.features[image], datasets.Image):
        images = _joined([np.asarray(picture)[None] for picture in hf.with_format(None)[image]])
    else:
        images = _elements(columns[image], hf.features[image])
    classes = getattr(hf.features[label], "names", None)
    if classes is not None and all(name == str(number) for number, name in enumerate(classes)):
        classes = None
    return Dataset(
        images,
        columns[label].to_numpy(),
        classes=classes,
        name=hf.info.dataset_name,
        split=hf.split and str(hf.split),
    )


def _arrays(ds: Dataset) -> tuple[Any, Any]:
    """The feature of plain elements, and what makes an Arrow array of a block."""
    shape, dtype = ds.images.item_shape, ds.images.dtype.name
    if len(shape) in _ARRAYS:
        feature = _ARRAYS[len(shape)](shape=shape, dtype=dtype)
    elif len(shape) < 2:
        value = datasets.Value(dtype)
        feature = datasets.List(value) if shape else value
    else:
        raise UnsupportedError(f"items of {len(shape)} dimensions; Datasets holds 5")

    def build(block: Array) -> Any:
        array = pa.array(block.reshape(-1))
        for axis in range(len(shape), 0, -1):
            count = int(np.prod(block.shape[:axis]))
            offsets = np.arange(count + 1, dtype=np.int32) * np.int32(block.shape[axis])
            array = pa.ListArray.from_arrays(pa.array(offsets), array)
        return pa.ExtensionArray.from_storage(feature(), array) if len(shape) > 1 else array

    return feature, build


def _pictures(ds: Dataset) -> tuple[Any, Any]:
    """The feature of PNG pictures, and what makes an Arrow array of a block."""
    shape, dtype = ds.images.item_shape, ds.images.dtype
    if dtype != np.uint8 or not (len(shape) == 2 or (len(shape) == 3 and shape[2] in (3, 4))):
        raise UnsupportedError(
            f"items of {dtype} {shape} are no pictures",
            hint='encoding="array" holds them',
        )
    feature = datasets.Image()

    def encode(item: Array) -> dict[str, Any]:
        file = io.BytesIO()
        PIL.Image.fromarray(item).save(file, "PNG")
        return {"bytes": file.getvalue(), "path": None}

    def build(block: Array) -> Any:
        return pa.array([encode(item) for item in block], feature.pa_type)

    return feature, build


def _label_feature(ds: Dataset) -> Any:
    highest = max(int(ds.labels.max(initial=0)), len(ds.classes or ()) - 1)
    if highest >= _MOST_CLASSES or ds.labels.min(initial=0) < 0:
        return datasets.Value("int64")
    return datasets.ClassLabel(names=[ds.class_name(label) for label in range(highest + 1)])


def _elements(column: Any, feature: Any) -> Array:
    """The elements of a column of arrays, lists or numbers, `(items, …)`."""
    parts = []
    for chunk in column.chunks or [column.combine_chunks()]:
        array = chunk.storage if isinstance(chunk, pa.ExtensionArray) else chunk
        shape = []
        while pa.types.is_list(array.type) or pa.types.is_fixed_size_list(array.type):
            lengths = pa.compute.list_value_length(array).unique().to_pylist() or [0]
            if len(lengths) > 1:
                raise UnsupportedError(f"items of different shapes: {lengths} on one dimension")
            shape.append(lengths[0])
            array = array.flatten()
        item_shape = getattr(feature, "shape", shape)
        parts.append(array.to_numpy(zero_copy_only=False).reshape(len(chunk), *item_shape))
    return _joined(parts)


def _joined(parts: list[Array]) -> Array:
    """Blocks of items of one shape as one array of its own."""
    shapes = {part.shape[1:] for part in parts}
    if len(shapes) > 1:
        raise UnsupportedError(f"items of different shapes: {sorted(shapes)}")
    return np.concatenate(parts)
