"""Columns of Arrow: how items lie in them, for Parquet and Arrow files.

An item is written as one of
    tensor    `fixed_shape_tensor`, which says shape and type to every reader of Arrow
    binary    its bytes, least significant first; shape and dtype stand in the field's metadata
    png       a PNG file in a struct `{bytes, path}`, as Hugging Face has its MNIST
and read from these, from lists of lists, and from single values.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from .. import png
from ..elements import Array
from ..errors import FormatError, UnsupportedError
from .columns import Columns
from .pictures.choices import Choices
from .pictures.decoding import decode
from .roles import SINGULAR

__all__: list[str] = []

Encoding = Literal["tensor", "binary", "png"]

Decoder = Callable[[Any], Array]
"""Makes an array `(items, *item_shape)` of a chunk of a column."""


# Writing


def schema_of(columns: Columns, encoding: Encoding) -> Any:
    """The schema of the rows: a field for every column.

    Raises:
        UnsupportedError: for items that are no pictures, with the encoding `png`.
    """
    fields = []
    for name, column in columns.arrays.items():
        if name != "labels":
            fields.append(_field(SINGULAR.get(name, name), column, encoding))
        elif encoding == "png" and len(column.shape) == 1 and _fits_int64(column.dtype):
            fields.append(pa.field("label", pa.int64()))  # as Datasets has a ClassLabel
        else:
            fields.append(_field("label", column, "tensor"))
    metadata = {}
    if columns.classes:
        metadata["classes"] = json.dumps(columns.classes)
    if encoding == "png":
        metadata["huggingface"] = json.dumps(_features(fields, columns.classes))
    return pa.schema(fields, metadata)


def _fits_int64(dtype: np.dtype[Any]) -> bool:
    return np.can_cast(dtype, np.int64) and dtype.kind != "b"


def _field(name: str, column: Any, encoding: Encoding) -> Any:
    shape, value = column.shape[1:], pa.from_numpy_dtype(column.dtype)
    if encoding == "png":
        if column.dtype != np.uint8 or not (len(shape) == 2 or shape[2:] == (3,)):
            raise UnsupportedError(
                f"{name}: items of {column.dtype} {' × '.join(map(str, shape))} are no pictures",
                hint="encoding=tensor holds them",
            )
        return pa.field(name, pa.struct({"bytes": pa.binary(), "path": pa.string()}))
    if not shape:
        return pa.field(name, value)
    if encoding == "binary":
        facts = {"shape": json.dumps(shape), "dtype": column.dtype.name}
        return pa.field(name, pa.binary(math.prod(shape) * column.dtype.itemsize), metadata=facts)
    return pa.field(name, pa.fixed_shape_tensor(value, shape))


def _features(fields: Iterable[Any], classes: Any) -> dict[str, Any]:
    """What Hugging Face Datasets wants to know of the columns."""
    features: dict[str, Any] = {}
    for field in fields:
        if pa.types.is_struct(field.type):
            features[field.name] = {"_type": "Image"}
        elif field.name == "label" and classes:
            names = [name or str(number) for number, name in enumerate(classes)]
            features[field.name] = {"names": names, "_type": "ClassLabel"}
        else:
            features[field.name] = {"dtype": str(field.type), "_type": "Value"}
    return {"info": {"features": features}}


def batch_of(blocks: list[Array], schema: Any) -> Any:
    """Blocks of all columns, in step, as a record batch."""
    arrays = [_array(block, field) for block, field in zip(blocks, schema, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _array(block: Array, field: Any) -> Any:
    kind = field.type
    if pa.types.is_struct(kind):
        files = _of_files([png.encode(np.ascontiguousarray(item)) for item in block])
        paths = pa.nulls(len(block), pa.string())
        return pa.StructArray.from_arrays([files, paths], fields=list(kind))
    if pa.types.is_fixed_size_binary(kind):
        stored = np.ascontiguousarray(block, block.dtype.newbyteorder("<"))
        buffers = [None, pa.py_buffer(stored.reshape(-1).view(np.uint8))]
        return pa.Array.from_buffers(kind, len(block), buffers)
    if pa.types.is_int64(kind):
        block = block.astype(np.int64, copy=False)
    flat = _of_numbers(np.ascontiguousarray(block).reshape(-1))
    if not isinstance(kind, pa.FixedShapeTensorType):
        return flat
    storage = pa.FixedSizeListArray.from_arrays(flat, math.prod(kind.shape))
    return pa.ExtensionArray.from_storage(kind, storage)


# `pa.array` and `to_numpy` would do what these three do, and load pandas: 50 MB of memory.


def _of_numbers(values: Array) -> Any:
    """A vector of numbers as an array of Arrow, without a copy."""
    kind = pa.from_numpy_dtype(values.dtype)
    data = np.packbits(values, bitorder="little") if values.dtype.kind == "b" else values
    return pa.Array.from_buffers(kind, len(values), [None, pa.py_buffer(data)])


def _of_files(files: list[bytes]) -> Any:
    """Files as an array of Arrow."""
    ends = np.cumsum([0, *map(len, files)], dtype=np.int32)
    buffers = [None, pa.py_buffer(ends), pa.py_buffer(b"".join(files))]
    return pa.Array.from_buffers(pa.binary(), len(files), buffers)


def _to_numbers(array: Any) -> Array:
    """An array of Arrow without missing values as one of NumPy, without a copy."""
    kind, start, count = array.type, array.offset, len(array)
    if not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)):
        return np.asarray(array.to_numpy(zero_copy_only=False))
    data = array.buffers()[1] or b""
    if pa.types.is_boolean(kind):
        packed = np.frombuffer(data, np.uint8)
        return np.unpackbits(packed, count=start + count, bitorder="little")[start:].view(bool)
    dtype = np.dtype(kind.to_pandas_dtype())
    return np.frombuffer(data, dtype, count, start * dtype.itemsize)


# Reading


def classes_of(schema: Any) -> tuple[str | None, ...] | None:
    """The names of the classes that a schema tells: ours, or those of a ClassLabel."""
    metadata = schema.metadata or {}
    try:
        if b"classes" in metadata:
            return tuple(json.loads(metadata[b"classes"]))
        features = json.loads(metadata[b"huggingface"])["info"]["features"].values()
        return tuple(next(f["names"] for f in features if f.get("_type") == "ClassLabel"))
    except (KeyError, TypeError, ValueError, AttributeError, StopIteration):
        return None


def is_item(kind: Any) -> bool:
    """Whether a column of this type can hold whole items, not only single values."""
    return not (pa.types.is_primitive(kind) or is_text(kind))


def is_text(kind: Any) -> bool:
    """Whether a column of this type holds texts."""
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    types = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)
    return any(fits(kind) for fits in types)


def decoder_of(field: Any, choices: Choices, file: str) -> Decoder:
    """What makes arrays of a column, by its type.

    Raises:
        UnsupportedError: for a type that holds no numbers, texts or pictures.
    """
    kind, facts = field.type, field.metadata or {}
    name = f"{file}: {field.name}"
    if isinstance(kind, pa.FixedShapeTensorType):
        if kind.permutation not in (None, list(range(len(kind.shape)))):
            return lambda chunk: np.asarray(_filled(chunk, name).to_numpy_ndarray())
        return lambda chunk: _from_lists(_filled(chunk, name).storage, name).reshape(
            len(chunk), *kind.shape
        )
    if isinstance(kind, pa.BaseExtensionType):
        inner = decoder_of(pa.field(field.name, kind.storage_type), choices, file)
        return lambda chunk: inner(chunk.storage)
    if is_text(kind):
        return lambda chunk: np.array(_filled(chunk, name).to_pylist(), str)
    if pa.types.is_struct(kind) and kind.get_field_index("bytes") >= 0:
        return lambda chunk: _pictures(chunk.field("bytes"), choices, name)
    if b"shape" in facts and b"dtype" in facts and _is_binary(kind):
        shape, dtype = _declared(facts, name)
        return lambda chunk: _from_bytes(chunk, shape, dtype, name)
    if pa.types.is_fixed_size_binary(kind):
        return lambda chunk: _from_bytes(chunk, (kind.byte_width,), np.dtype("uint8"), name)
    if _is_binary(kind):
        return lambda chunk: _pictures(chunk, choices, name)
    if pa.types.is_nested(kind) or pa.types.is_primitive(kind):
        return lambda chunk: _from_lists(chunk, name)
    raise UnsupportedError(f"a column of {kind} holds no numbers", file=name)


def _is_binary(kind: Any) -> bool:
    types = (pa.types.is_binary, pa.types.is_large_binary, pa.types.is_fixed_size_binary)
    return any(fits(kind) for fits in types)


def _declared(facts: dict[bytes, bytes], name: str) -> tuple[tuple[int, ...], np.dtype[Any]]:
    try:
        shape = tuple(int(n) for n in json.loads(facts[b"shape"]))
        return shape, np.dtype(facts[b"dtype"].decode()).newbyteorder("<")
    except (ValueError, TypeError) as error:
        raise FormatError(f"shape or dtype cannot be read: {error}", file=name) from None


def _filled(chunk: Any, name: str) -> Any:
    if chunk.null_count:
        raise UnsupportedError(f"{chunk.null_count:,} values are missing (null)", file=name)
    return chunk


def _from_bytes(chunk: Any, shape: tuple[int, ...], dtype: np.dtype[Any], name: str) -> Array:
    """Items whose elements lie one after another."""
    width = math.prod(shape) * dtype.itemsize
    buffers = _filled(chunk, name).buffers()
    start, size = chunk.offset * width, width * len(chunk)
    if not pa.types.is_fixed_size_binary(chunk.type):
        wide = pa.types.is_large_binary(chunk.type)
        offsets = np.frombuffer(buffers[1] or b"", np.int64 if wide else np.int32)
        offsets = offsets[chunk.offset : chunk.offset + len(chunk) + 1]
        start = int(offsets[0]) if len(chunk) else 0
        if (np.diff(offsets) != width).any():
            raise FormatError(f"items do not have the bytes of {dtype} {list(shape)}", file=name)
    elif chunk.type.byte_width != width:
        raise FormatError(f"items do not have the bytes of {dtype} {list(shape)}", file=name)
    if not size:
        return np.empty((len(chunk), *shape), dtype.newbyteorder("="))
    flat = np.frombuffer(buffers[-1], np.uint8, size, start)
    return flat.view(dtype).reshape(len(chunk), *shape).astype(dtype.newbyteorder("="))


def _pictures(chunk: Any, choices: Choices, name: str) -> Array:
    files = _filled(chunk, name).to_pylist()
    pictures = [decode(file, f"{name} {n}", choices) for n, file in enumerate(files)]
    shapes = {picture.shape for picture in pictures}
    if len(shapes) > 1:
        found = " and ".join(map(str, sorted(shapes)[:2]))
        raise UnsupportedError(f"pictures of different shapes: {found}", file=name)
    return np.stack(pictures) if pictures else np.empty((0, 0, 0), np.uint8)


def _from_lists(chunk: Any, name: str) -> Array:
    """Single values, or lists of lists of equal lengths."""
    array, shape = _filled(chunk, name), [len(chunk)]
    while pa.types.is_nested(array.type):
        if pa.types.is_fixed_size_list(array.type):
            length = array.type.list_size
        elif pa.types.is_list(array.type) or pa.types.is_large_list(array.type):
            lengths = np.unique(np.diff(_to_numbers(array.offsets)))
            if len(lengths) > 1:
                raise UnsupportedError(f"lists of {lengths[0]} and {lengths[-1]} values", file=name)
            length = int(lengths[0]) if len(lengths) else 0
        else:
            raise UnsupportedError(f"a column of {chunk.type} holds no items", file=name)
        shape.append(length)
        array = _filled(array.flatten(), name)
    if not (pa.types.is_primitive(array.type) or pa.types.is_boolean(array.type)):
        raise UnsupportedError(f"a column of {chunk.type} holds no numbers", file=name)
    return _to_numbers(array).reshape(shape)
