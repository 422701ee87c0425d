"""What the page writes: items as a new pair, or as a sheet. What was there is never touched."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

import numpy as np

from ...dataset import Dataset
from ...elements import Array, smallest_type
from ...names import pair_names
from ...sheets.contact import sheet
from ...staging import atomic_folder
from ...writer import create, write

if TYPE_CHECKING:
    from .exhibit import Exhibit

__all__ = ["SavingError", "save_pair", "save_sheet"]

MOST_ON_A_SHEET = 10_000
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9 ._+-]{0,80}(?<![ .])")


class SavingError(ValueError):
    """A name under which nothing can be saved."""


def save_pair(exhibit: Exhibit, items: Array, folder: str, name: str, codec: str | None) -> str:
    """Write items and their labels of now, the journal's changes in them, as a new data set.

    Args:
        exhibit: where they come from.
        items: their numbers, in the order in which they are written.
        folder: where new things go; it was chosen when the server was started.
        name: a plain name for the new folder in it; there must be nothing of this name.
        codec: gz, bz2, xz, zst or None.

    Returns:
        The path of the new folder. It appears whole, or not at all.

    Raises:
        SavingError: for a name that is none, or is taken.
    """
    if not _NAME.fullmatch(name):
        raise SavingError("a name has letters, digits, spaces and . _ + - and begins with no dot")
    if codec not in (None, "gz", "bz2", "xz", "zst"):
        raise SavingError("there is no such compression")
    target = os.path.join(folder, name)
    if os.path.lexists(target):
        raise SavingError(f"{name} is there already: nothing is ever written over; take another")
    with atomic_folder(target) as temporary:
        _write(exhibit, items, temporary, codec)
        if os.path.lexists(target):
            raise SavingError(f"{name} is there by now: take another name")
    return target


def _write(exhibit: Exhibit, items: Array, folder: str, codec: str | None) -> None:
    place, table = exhibit.place, _table(exhibit, items)
    split = place.split or "train"
    chosen = exhibit.items.choose(items)
    if table is not None and not exhibit.alone:
        ds = Dataset(chosen, table, classes=place.classes, split=split)
        ds.save(folder, codec=codec)
        return
    labels = (1, "uint8") if table is None else (table.ndim, table.dtype.name)
    pair = pair_names(split, (chosen.ndim, chosen.dtype.name), labels, codec)
    images_name, labels_name = (os.path.join(folder, name) for name in pair)
    if table is not None:
        write(labels_name, table, codec=codec)
        return
    with create(
        images_name,
        dtype=chosen.dtype,
        item_shape=chosen.item_shape,
        count=len(chosen),
        codec=codec,
    ) as writer:
        for block in chosen.blocks():
            writer.append(block)


def _table(exhibit: Exhibit, items: Array) -> Array | None:
    """The labels of items by now, all their columns, in the smallest type that holds them."""
    labels, stored = exhibit.labels, exhibit.table
    if labels is None or stored is None:
        return None
    table = stored[items].astype(np.int64)
    column = table if table.ndim == 1 else table[:, 0]
    column[...] = labels[items]
    return table.astype(smallest_type(table) or stored.dtype)


def save_sheet(exhibit: Exhibit, items: Array, columns: int | None, scale: int) -> bytes:
    """A contact sheet of items with their labels of now, as the bytes of a PNG file.

    Raises:
        SavingError: for more items than a sheet is good for.
    """
    if len(items) > MOST_ON_A_SHEET:
        raise SavingError(f"a sheet has at most {MOST_ON_A_SHEET:,} items, not {len(items):,}")
    chosen = exhibit.items.choose(items)
    labels = exhibit.labels
    names = exhibit.place.classes
    classes = {n: name for n, name in enumerate(names or ()) if name is not None}
    return sheet(
        chosen,
        None if labels is None else labels[items],
        slice(None),
        columns=columns,
        scale=scale,
        window=exhibit.window,
        classes=classes,
    )
