"""The corpus: every file with what a reader must answer, as tables of rows.

Nothing here knows idxfile: the bytes are built by hand, so that they judge it as they judge every
other reader.
"""

from __future__ import annotations

from . import bad, collected, compressed, damaged, good, lush
from .row import CLASSES, Row

__all__ = ["CLASSES", "ROWS", "Row"]

ROWS: tuple[Row, ...] = (
    *good.ROWS,
    *bad.ROWS,
    *compressed.ROWS,
    *damaged.ROWS,
    *lush.ROWS,
    *collected.ROWS,
)
"""All rows, in the order of the manifest."""
