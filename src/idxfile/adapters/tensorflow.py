"""TensorFlow: items as a `tf.data.Dataset`, read by TensorFlow itself where the file allows.

An IDX file is a header and records of one length, which `tf.data.FixedLengthRecordDataset` reads
without any Python, from a raw file or a .gz. Grey images are `(rows, columns, 1)`; items of other
dimensions stay as they are stored. Labels are int64. `loader` is that of `idxfile.adapters.keras`.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import tensorflow as tf

from ..array import IdxArray
from ..dataset import Dataset
from ..items import Items
from .epochs import Epochs, Gather
from .keras import loader

__all__ = ["dataset", "loader"]

BLOCK_ITEMS = 256
"""How many items are decoded at once where they are given out one by one."""


def dataset(ds: Dataset, batch_size: int | None = None) -> tf.data.Dataset:
    """Make a `tf.data.Dataset` of the items as they are stored, in their order.

    A whole data set opened from raw or .gz files is read by TensorFlow's own threads; anything
    else (a selection, another compression, arrays) goes through Python, a batch at once.

    Args:
        ds: the data set.
        batch_size: give out batches of so many items; None is one by one, so that TensorFlow can
            shuffle them: `dataset(ds).shuffle(60_000, seed=0).batch(256)`.

    Returns:
        A `tf.data.Dataset` of `(image, label)` or `(images, labels)` that knows its cardinality.
        TensorFlow raises when the file turns out to hold another number of items.
    """
    size = BLOCK_ITEMS if batch_size is None else batch_size
    records = _records(ds.images, size)
    if records is None:
        blocks = _through_python(ds, size)
    else:
        labels = tf.data.Dataset.from_tensor_slices(ds.labels.astype(np.int64))
        blocks = tf.data.Dataset.zip((records, labels.batch(size)))
    count = -(-len(ds) // size)
    if batch_size is None:
        blocks, count = blocks.unbatch(), len(ds)
    return blocks.apply(tf.data.experimental.assert_cardinality(count))


def _records(images: Items, size: int) -> tf.data.Dataset | None:
    """Blocks of images read by TensorFlow; None where it cannot."""
    array = images.arrays[0] if len(images.arrays) == 1 else None
    if not isinstance(array, IdxArray) or not array.nbytes or array._recipe is None:
        return None
    path, recipe = array._recipe.file, array._recipe
    strict = array.mode == "r" and recipe.options["problems"] == "raise"
    as_on_disk = recipe.identity is not None and strict
    if not as_on_disk or array.codecs not in ((), ("gz",)) or not os.path.isfile(path):
        return None
    header = array.header
    shape = (*header.item_shape, 1) if len(header.item_shape) == 2 else header.item_shape

    def decode(block: Any) -> Any:
        little_endian = header.byteorder == "little"
        elements = tf.io.decode_raw(block, header.dtype.name, little_endian=little_endian)
        return tf.reshape(elements, (-1, *shape))

    records = tf.data.FixedLengthRecordDataset(
        path,
        record_bytes=header.item_nbytes,
        header_bytes=header.data_offset,
        compression_type="GZIP" if array.codecs else None,
    )
    return records.batch(size).map(decode, num_parallel_calls=tf.data.AUTOTUNE)


def _through_python(ds: Dataset, size: int) -> tf.data.Dataset:
    """Blocks of images and labels, gathered here."""
    gather = Gather(ds)
    nothing = gather(np.arange(0))
    return tf.data.Dataset.from_generator(
        lambda: map(gather, Epochs(ds, size, shuffle=False)),
        output_signature=tuple(
            tf.TensorSpec((None, *array.shape[1:]), array.dtype.name) for array in nothing
        ),
    )
