"""CSV and its relatives: a row for every item, a column for every value.

The text does not say element types: whole numbers become the smallest integer type of IDX that
holds them all, others float32 where that is exact and else float64.
"""

from __future__ import annotations

import csv
import io
import math
import warnings
from collections.abc import Iterator
from typing import Any, Literal

import numpy as np

from ..elements import Array
from ..errors import FormatError
from .columns import Columns, Sliced, Streamed
from .lines import line_blocks, text_sink
from .roles import SINGULAR
from .tabular import EXACT, Findings, Layout, damaged, is_header, lay_out, names_of, refuse_rounded

__all__ = ["read_columns", "write_columns"]

Delimiter = Literal["comma", "semicolon", "tab"]

_DELIMITERS: dict[str, str] = {"comma": ",", "semicolon": ";", "tab": "\t"}


def read_columns(
    path: str,
    *,
    header: Literal["auto", "yes", "no"] = "auto",
    label: str = "auto",
    shape: tuple[int, ...] | None = None,
    delimiter: Literal["auto", "comma", "semicolon", "tab"] = "auto",
    dtype: str | None = None,
) -> Columns:
    """Read a table: once to see its values, and once for each use. Labels are kept in memory.

    Args:
        path: the file, compressed or not.
        header: whether the first row holds names; "auto" sees whether it holds texts where the
            second holds numbers.
        label: the column of labels: "auto" is the one called label, class, target or y; or first,
            last, none, or its name. Texts become classes.
        shape: of an item (28x28). By default the names of the columns say it (`pixel_3_7`, `3x7`,
            in order); if they do not, an item is a vector.
        delimiter: what stands between two values; "auto" looks at the first row.
        dtype: float32 or float16, where the decimals mean values of that type.

    Raises:
        FormatError: for rows of unequal length, and for what is no number.
        UnsupportedError: for numbers that no type holds exactly.
    """
    first, second = _first_rows(path)
    sep = _DELIMITERS.get(delimiter) or max(",;\t", key=first.count)
    rows = [next(csv.reader([row], delimiter=sep), []) for row in (first, second)]
    named = header == "yes" or (header == "auto" and is_header(*rows))
    layout = lay_out(rows[0] if named else None, len(rows[0]), label, shape, path)
    notes = [*layout.notes, f"the first row is {'a header' if named else 'an item'}"]
    table = _Table(path, sep, named, layout)
    found, marks = table.looked_through()
    found_dtype = found.dtype(path, dtype)

    def pixels(block_nbytes: int) -> Iterator[Array]:
        for block in table.pixels() if found.kept is None else found.kept:
            yield block.astype(found_dtype).reshape(len(block), *layout.item_shape)

    arrays: dict[str, Any] = {}
    if layout.pixels:
        notes.append(found.told("images", found_dtype, dtype))
        arrays["images"] = Streamed((found.count, *layout.item_shape), found_dtype, pixels)
    if layout.labels:
        arrays["labels"] = labels = table.labels(marks)
        notes += [] if marks.kept is None else [marks.told("labels", labels.dtype)]
    return Columns(arrays, notes=notes)


def _first_rows(path: str) -> tuple[str, str]:
    text = next(iter(line_blocks(path)), "")
    lines = [line for line in text.split("\n", 20) if line.strip()][:2]
    if not lines:
        raise FormatError("the table is empty", file=path)
    first, second = (*lines, "")[:2]
    return first.rstrip("\r"), second.rstrip("\r")


class _Table:
    """A table whose columns are known, read block by block as often as needed."""

    def __init__(self, path: str, sep: str, named: bool, layout: Layout) -> None:
        self._path = path
        self._sep = sep
        self._named = named
        self._layout = layout

    def looked_through(self) -> tuple[Findings, Findings]:
        """One pass over all rows: what the items hold, and what the labels."""
        found, marks = Findings(), Findings(math.inf)
        for start, text in self._texts():
            block, labels = self._parsed(text, start)
            found.add(block)
            marks.add(labels)
        return found, marks

    def labels(self, marks: Findings) -> Any:
        """The column of labels: numbers that were kept, or texts."""
        width = len(self._layout.labels)
        shape = (marks.count,) if width == 1 else (marks.count, width)
        if marks.kept is None:
            return Streamed(shape, "U", lambda _: self._label_texts(shape))
        dtype = marks.dtype(self._path)
        table = np.concatenate([np.empty((0, width), dtype), *marks.kept]).astype(dtype)
        return Sliced(table.reshape(shape))

    def pixels(self) -> Iterator[Array]:
        """The values of the items, int64 or float64, `(items, values)`."""
        for start, text in self._texts():
            yield self._numbers(text, start, self._layout.pixels)

    def _label_texts(self, shape: tuple[int, ...]) -> Iterator[Array]:
        for _, text in self._texts():
            yield self._loaded(text, self._layout.labels, np.str_).reshape(-1, *shape[1:])

    def _texts(self) -> Iterator[tuple[int, str]]:
        """Blocks of rows, each with the number of its first."""
        start = 0
        skip = self._named
        for block in line_blocks(self._path):
            text = block
            if skip:
                text = block.lstrip().partition("\n")[2]
                skip = False
            if text.strip():
                yield start, text
                start += sum(1 for line in text.split("\n") if line.strip())

    def _parsed(self, text: str, start: int) -> tuple[Array, Array]:
        """The items and labels of a block, at once where all are whole numbers."""
        pixels, labels = self._layout.pixels, self._layout.labels
        try:
            both = self._loaded(text, [*pixels, *labels], np.int64)
            return both[:, : len(pixels)], both[:, len(pixels) :]
        except (ValueError, DeprecationWarning):
            block = self._numbers(text, start, pixels)
        for dtype in (np.int64, np.float64):
            try:
                return block, self._loaded(text, labels, dtype)
            except (ValueError, DeprecationWarning):
                continue
        return block, self._loaded(text, labels, np.str_)

    def _numbers(self, text: str, start: int, columns: list[int]) -> Array:
        """Values as int64, or as float64 where one is no whole number."""
        try:
            return self._loaded(text, columns, np.int64)
        except (ValueError, DeprecationWarning):
            pass
        try:
            values = self._loaded(text, columns, np.float64)
        except ValueError as error:
            raise damaged(error, start, self._path) from None
        large = np.isfinite(values) & (np.abs(values) >= EXACT)
        if large.any():
            texts = self._loaded(text, columns, np.str_)
            refuse_rounded(texts[large].tolist(), values[large], self._path)
        return values

    def _loaded(self, text: str, columns: list[int], dtype: Any) -> Array:
        """Some columns of a block of rows, `(rows, columns)`."""
        if not columns:
            return np.empty((sum(1 for line in text.split("\n") if line.strip()), 0), dtype)
        with warnings.catch_warnings():
            # NumPy before 2.4 reads 4.0 as an integer, and warns.
            warnings.simplefilter("error", DeprecationWarning)
            return np.loadtxt(
                io.StringIO(text),
                dtype,
                comments=None,
                delimiter=self._sep,
                usecols=columns,
                ndmin=2,
                quotechar='"',
            )


def write_columns(
    path: str,
    columns: Columns,
    *,
    header: bool = True,
    names: Literal["grid", "count"] = "grid",
    label: Literal["first", "last"] = "first",
    delimiter: Delimiter = "comma",
) -> None:
    """Write a row for every item; floats in the fewest digits that give the same float64.

    Args:
        path: the file; compressed where its suffix says so.
        columns: what to write.
        header: whether the first row holds names.
        names: of the pixels: "grid" says row and column, from 0 (`pixel_3_7`, as scikit-learn has
            them), and so the shape of an item; "count" counts through the item (`pixel87`, as
            Kaggle has them).
        label: where the labels stand.
        delimiter: what stands between two values.
    """
    sep = _DELIMITERS[delimiter]
    order = sorted(columns.arrays, key=lambda name: (name == "labels") == (label == "last"))
    ordered = Columns({name: columns.arrays[name] for name in order})
    with text_sink(path) as write:
        if header:
            fields: list[str] = []
            for name, column in ordered.arrays.items():
                called = {"images": "pixel"}.get(name, SINGULAR.get(name, name))
                if name == "labels" and len(column.shape) == 2:
                    fields += [called, *(f"{called}_{n}" for n in range(1, column.shape[1]))]
                else:
                    fields += names_of(called, column.shape[1:], grid=names == "grid")
            write(sep.join(fields) + "\n")
        for blocks in ordered.rows(block_nbytes=1 << 20):
            rows = zip(*map(_texts, blocks), strict=True)
            write("".join([sep.join([f for part in row for f in part]) + "\n" for row in rows]))


def _texts(block: Array) -> list[list[str]]:
    """The values of each item of a block, as texts."""
    rows = block.reshape(len(block), -1)
    if rows.dtype.kind == "b":
        rows = rows.view(np.uint8)
    values = rows.tolist()
    if rows.dtype.kind == "f":
        return [[repr(value) for value in row] for row in values]
    if rows.dtype.itemsize > 2 or len(rows) * rows.shape[1] < 1 << 16:
        return [[str(value) for value in row] for row in values]
    limits = np.iinfo(rows.dtype)
    # A negative value finds its text from the end.
    texts = [str(value) for value in (*range(limits.max + 1), *range(limits.min, 0))]
    return [[texts[value] for value in row] for row in values]
