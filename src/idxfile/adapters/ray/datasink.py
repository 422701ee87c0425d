"""Where Ray Data writes items to: `IdxDatasink`.

A worker has some rows, whose numbers may be any, and nobody knows how many there will be. Into a
file of the disk it writes them by position, and gaps are closed at the end. A store has no
positions: there it writes an object of them, and items are gathered from all objects at the end.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from ray.data.block import BlockAccessor
from ray.data.datasource import Datasink

from ...elements import Array, exactly
from ...errors import UnsupportedError
from ...gathering import scatter
from ...header import IDX_TYPE_NAMES, MAX_DIMENSION, Header
from ...source import LocalFile
from ...source.local import read_exactly, write_exactly
from ...source.places import beside, is_url
from ...writer import write

__all__ = ["Column", "IdxDatasink", "no_rows"]

_COPY_NBYTES = 1 << 23


@dataclass(frozen=True)
class Column:
    """A column of a dataset that becomes a file."""

    name: str
    file: str
    """The final name."""
    dtype: Any
    """The element type; None for the column's own."""

    def of(self, batch: dict[str, Array]) -> tuple[Array, Header]:
        """Its values in a batch, and the header of a file with items like these and none in it.

        Raises:
            UnsupportedError: where there is none, and for values that IDX does not hold.
        """
        values = _column(batch, self.name, "image= and label= name other columns")
        name = np.dtype(self.dtype or values.dtype).name
        if values.dtype.name != name and values.dtype.kind in "biuf":
            values = exactly(values, np.dtype(name))
        if values.dtype.name not in IDX_TYPE_NAMES:
            raise UnsupportedError(
                f"column {self.name!r} is {values.dtype.name}, which an IDX file cannot hold",
                file=self.file,
                found=values.dtype.name,
                expected=IDX_TYPE_NAMES,
                hint="tensors of several shapes are made one in map_batches"
                if values.dtype == object
                else "dtype= and label_dtype= take the type that holds all values",
            )
        return values, Header.of(name, (0, *values.shape[1:]))


class IdxDatasink(Datasink[Any]):
    """Where Ray Data writes items to; `write_idx` makes it, and gives the files their names.

    Args:
        columns: what is written.
        places: for each column, where it is written meanwhile: a file that is there already, into
            which all write by position; or an address, beside which each writes objects.
        item: the name of the column of item numbers.
    """

    def __init__(self, columns: Sequence[Column], places: Sequence[str], item: str) -> None:
        self._columns = columns
        self._places = places
        self._item = item
        self.objects: list[list[str]] = [[] for _ in columns]
        """At the end, the objects of each column."""
        self.index = np.empty(0, np.int64)
        """And which of their items, counted through all of them, come one after the other."""

    def write(self, blocks: Iterable[Any], ctx: Any) -> list[_Written]:
        """Write the rows of some blocks, those of a block together."""
        return [
            self._write(_numpy(block))
            for block in blocks
            if BlockAccessor.for_block(block).num_rows()
        ]

    def _write(self, batch: dict[str, Array]) -> _Written:
        numbers = _column(batch, self._item, _KEEP_ITEM)
        whole = numbers.dtype.kind in "iu" and numbers.ndim == 1
        if not (whole and numbers.min() >= 0 and numbers.max() < MAX_DIMENSION):
            raise UnsupportedError(f"column {self._item!r} holds no item numbers")
        order = np.argsort(numbers, kind="stable")
        numbers = numbers[order].astype(np.int64)
        done = _Written(_runs_of(numbers))
        for column, place in zip(self._columns, self._places, strict=True):
            values, header = column.of(batch)
            if is_url(place):
                # Of a task that is run again another one counts; the first is removed with all.
                place = beside(place, f"{secrets.token_hex(8)}.idx")
                write(place, values[order])
            else:
                file = LocalFile(place, mapped=False, writeable=True)
                try:
                    scatter(file, header, numbers, values[order])
                finally:
                    file.close()
            done.headers.append(header)
            done.places.append(place)
        return done

    def on_write_complete(self, write_result: Any) -> None:
        """Join what the workers tell; of files, close the gaps and write the headers."""
        written = [block for blocks in write_result.write_returns for block in blocks]
        if not written:
            raise no_rows(self._columns[0])
        unsorted = np.concatenate([block.runs for block in written])
        runs = unsorted[np.argsort(unsorted[:, 0], kind="stable")]
        twice = np.flatnonzero(runs[1:, 0] < runs[:-1, 1])
        if twice.size:
            raise UnsupportedError(
                f"item {runs[twice[0] + 1, 0]:,} is there twice",
                file=self._columns[0].file,
                hint=f"number the rows anew in column {self._item!r}",
            )
        for number, (column, place) in enumerate(zip(self._columns, self._places, strict=True)):
            header, *others = {block.headers[number]: None for block in written}
            if others:
                raise UnsupportedError(
                    f"column {column.name!r} has items of {header} and of {others[0]}",
                    file=column.file,
                )
            if is_url(place):
                self.objects[number] = [block.places[number] for block in written]
            else:
                _settle(place, header, runs)
        if any(self.objects):
            self.index = np.argsort(_numbers_of(unsorted))


@dataclass(frozen=True)
class _Written:
    """What a worker tells of a block that it has written."""

    runs: Array
    """The numbers of its items, ascending."""
    headers: list[Header] = field(default_factory=list)
    """For each column, that of a file with items like these and none in it."""
    places: list[str] = field(default_factory=list)
    """For each column, where they are."""


def _numpy(block: Any) -> dict[str, Array]:
    columns: dict[str, Array] = BlockAccessor.for_block(block).to_batch_format("numpy")
    return columns


_KEEP_ITEM = (
    "have the functions of map and map_batches return the column of item numbers as well; "
    "item=None takes the rows in the order in which they come"
)


def _column(columns: dict[str, Array], name: str, hint: str) -> Array:
    if name not in columns:
        known = ", ".join(map(repr, columns))
        raise UnsupportedError(f"there is no column {name!r}, but {known}", hint=hint)
    return columns[name]


def no_rows(column: Column) -> UnsupportedError:
    """What is wrong where not one row comes."""
    return UnsupportedError("no rows: what items they would be is not known", file=column.file)


def _runs_of(numbers: Array) -> Array:
    """Ascending numbers as runs `(first, behind the last)`."""
    ends = np.flatnonzero(np.diff(numbers) != 1)
    return np.stack([numbers[[0, *(ends + 1)]], numbers[[*ends, -1]] + 1], axis=1)


def _numbers_of(runs: Array) -> Array:
    """The numbers that runs stand for, run after run."""
    starts, lengths = runs[:, 0], runs[:, 1] - runs[:, 0]
    before = np.cumsum(lengths) - lengths
    numbers: Array = np.repeat(starts - before, lengths) + np.arange(lengths.sum())
    return numbers


def _settle(path: str, header: Header, runs: Array) -> None:
    """Move every run to where the one before it ends, and write the header for so many items."""
    nbytes = header.item_nbytes
    file = LocalFile(path, mapped=False, writeable=True)
    try:
        done = 0
        for start, stop in runs.tolist():
            if start != done:
                here, there = header.offset_of(start), header.offset_of(done)
                _move(file, here, there, (stop - start) * nbytes)
            done += stop - start
        header = Header.of(header.element.name, (done, *header.item_shape))
        os.truncate(path, header.file_nbytes)
        file.write_at(0, header.encode())
    finally:
        file.close()


def _move(file: LocalFile, source: int, target: int, nbytes: int) -> None:
    """Move bytes towards the beginning of a file."""
    for done in range(0, nbytes, _COPY_NBYTES):
        piece = bytearray(min(_COPY_NBYTES, nbytes - done))
        read_exactly(file.fd, piece, source + done)
        write_exactly(file.fd, piece, target + done)
