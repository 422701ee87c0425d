"""Arrow files (Feather 2), and the streams that Hugging Face keeps, through pyarrow."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from typing import Any, Literal

import pyarrow as pa

from ..errors import FormatError
from .batches import columns_of
from .columns import Columns
from .pictures.choices import Choices
from .tensors import Encoding, batch_of, schema_of

__all__ = ["read_columns", "write_columns"]

_BATCH_NBYTES = 1 << 23
_MAGIC = b"ARROW1"


def read_columns(
    path: str,
    *,
    label: str = "auto",
    shape: tuple[int, ...] | None = None,
    grey: bool = False,
    rgb: bool = False,
) -> Columns:
    """Open an Arrow file or stream: tensors, lists, bytes, pictures, or a column for every pixel.

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
    with open(path, "rb") as file:
        whole = file.read(len(_MAGIC)) == _MAGIC

    def all_batches(names: Sequence[str] | None) -> Iterator[Any]:
        """All batches, of some columns, read one after another."""
        try:
            with pa.OSFile(path) as file:
                if not whole:
                    for batch in pa.ipc.open_stream(file):
                        yield batch if names is None else batch.select(names)
                    return
                schema = pa.ipc.open_file(file).schema
                fields = [schema.get_field_index(name) for name in names or schema.names]
                options = pa.ipc.IpcReadOptions(included_fields=fields)
                reader = pa.ipc.open_file(file, options=options)
                for number in range(reader.num_record_batches):
                    yield reader.get_batch(number)
        except (pa.ArrowException, OSError) as error:
            raise FormatError(f"the Arrow file cannot be read: {error}", file=path) from error

    def batches(names: Sequence[str], rows: int) -> Generator[Any]:
        for batch in all_batches(names):
            for start in range(0, len(batch), rows):
                yield batch.slice(start, rows)

    try:
        with pa.OSFile(path) as file:
            schema = (pa.ipc.open_file if whole else pa.ipc.open_stream)(file).schema
    except pa.ArrowException as error:
        raise FormatError(f"the Arrow file cannot be read: {error}", file=path) from error
    count = sum(len(batch) for batch in all_batches(schema.names[:1]))
    return columns_of(schema, count, batches, path, Choices(grey=grey, rgb=rgb), label, shape)


def write_columns(
    path: str,
    columns: Columns,
    *,
    encoding: Encoding = "tensor",
    compression: Literal["lz4", "zstd"] | None = None,
) -> None:
    """Write a row for every item, with the columns `image` and `label`, in batches.

    Args:
        path: the file.
        columns: what to write.
        encoding: "tensor" says shape and type to every reader of Arrow; "binary" is bytes; "png" is
            what Hugging Face shows as pictures.
        compression: none can be mapped.
    """
    schema = schema_of(columns, encoding)
    options = pa.ipc.IpcWriteOptions(compression=compression)
    with (
        pa.OSFile(path, "wb") as file,
        pa.ipc.new_file(file, schema, options=options) as writer,
    ):
        for blocks in columns.rows(block_nbytes=_BATCH_NBYTES):
            writer.write_batch(batch_of(blocks, schema))
