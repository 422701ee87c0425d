"""Parquet, through pyarrow: a row for every item."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Any, Literal

import pyarrow as pa
import pyarrow.parquet as pq

from ..errors import FormatError
from .batches import columns_of
from .columns import Columns
from .pictures.choices import Choices
from .tensors import Encoding, batch_of, schema_of

__all__ = ["read_columns", "write_columns"]

_GROUP_NBYTES = 1 << 21
"""Of a row group: pyarrow takes 25 times as much memory to write tensors."""
_READ_NBYTES = 1 << 20


def read_columns(
    path: str,
    *,
    label: str = "auto",
    shape: tuple[int, ...] | None = None,
    grey: bool = False,
    rgb: bool = False,
) -> Columns:
    """Open a Parquet file: tensors, lists, bytes, pictures, or a column for every pixel.

    Args:
        path: the file.
        label: the column of labels, where every pixel has a column: as for CSV.
        shape: of an item, likewise.
        grey: make colours of pictures grey.
        rgb: keep colours of pictures.

    Raises:
        FormatError: for a file that is damaged.
        UnsupportedError: for items of different shapes, and missing values.
    """
    try:
        # Read ahead, pages stay in memory as long as the file is open.
        file = pq.ParquetFile(
            path, pre_buffer=False, buffer_size=_READ_NBYTES, page_checksum_verification=True
        )
        schema = file.schema_arrow
    except pa.ArrowException as error:
        raise FormatError(f"the Parquet file cannot be read: {error}", file=path) from error

    def batches(names: Sequence[str], rows: int) -> Generator[Any]:
        try:
            yield from file.iter_batches(rows, columns=list(names), use_threads=False)
        except (pa.ArrowException, OSError) as error:
            raise FormatError(f"the Parquet file cannot be read: {error}", file=path) from error

    try:
        choices = Choices(grey=grey, rgb=rgb)
        columns = columns_of(schema, file.metadata.num_rows, batches, path, choices, label, shape)
    except BaseException:
        file.close()
        raise
    columns.close = file.close
    return columns


def write_columns(
    path: str,
    columns: Columns,
    *,
    encoding: Encoding = "tensor",
    compression: Literal["snappy", "zstd", "gzip", "lz4", "none"] = "snappy",
) -> None:
    """Write a row for every item, with the columns `image` and `label`.

    Args:
        path: the file.
        columns: what to write.
        encoding: "tensor" says shape and type to every reader of Arrow; "binary" is bytes, and many
            times as fast; "png" is what Hugging Face shows as pictures.
        compression: of the pages.
    """
    schema = schema_of(columns, encoding)
    values = [field.name for field in schema if pa.types.is_primitive(field.type)]
    with pq.ParquetWriter(path, schema, compression=compression, use_dictionary=values) as writer:
        for blocks in columns.rows(block_nbytes=_GROUP_NBYTES):
            writer.write_batch(batch_of(blocks, schema))
