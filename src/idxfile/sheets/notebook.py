"""What a notebook shows of an array or a data set: facts, a sheet of the first items, class bars.

HTML without scripts, with styles on the elements alone, in the colours of the page around it, so
that it is right on light and on dark: the sheet is transparent between its pictures. Every text is
escaped. A page has at most 24 small pictures and 40 bars, however large the data are.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from html import escape
from itertools import islice
from typing import Any

import numpy as np

from ..elements import Array
from ..errors import printable
from .contact import sheet
from .tiles import Classes, text

__all__ = ["PEEK_ITEMS", "PEEK_NBYTES", "page", "peek_count"]

PEEK_ITEMS = 24
"""So many items are looked at for a page, at most."""
PEEK_NBYTES = 1 << 22
"""And so many bytes, but for one item."""

_BARS = 40
_LONG = 200
_NUMBERS = 24
_SMALL, _LARGE, _MANY = 56, 160, 6
"""The longest side of a picture where there are many, and where there are few."""

_COLUMNS = 8
_TABLE = "border-collapse:collapse;margin:.4em 0;background:none;color:inherit;font:inherit"
_CELL = (
    "text-align:left;padding:.1em 1em .1em 0;border:0;background:none;vertical-align:middle;"
    "color:inherit;font:inherit"
)
_FAINT = f"{_CELL};opacity:.65"
_CODE = "background:none;color:inherit"
_BAR = "height:.7em;min-width:1px;background:currentColor;opacity:.45"


def peek_count(item_nbytes: int) -> int:
    """How many items of this size a page looks at."""
    return max(1, min(PEEK_ITEMS, PEEK_NBYTES // max(1, item_nbytes)))


def page(
    title: str,
    facts: Mapping[str, str],
    *,
    items: Array | None = None,
    labels: Any = None,
    classes: Classes | None = None,
    counts: Mapping[str, int] | None = None,
    note: str | None = None,
) -> str:
    """The HTML of an array or a data set.

    Args:
        title: what it is.
        facts: what is known, by name.
        items: the first items, or the value of a scalar; None where they were not read.
        labels: the labels of these items.
        classes: the names that stand for the labels.
        counts: how many items each class has.
        note: what is to be said of them.

    Example:
        >>> page("Nothing", {"shape": "0"})[:23]
        '<div style="color:inher'
    """
    parts = [f"<strong>{_text(title)}</strong>", _table(_fact(*fact) for fact in facts.items())]
    if items is not None:
        parts.append(_shown(items, labels, classes))
    if note:
        parts.append(f'<p style="margin:.4em 0;opacity:.65">{_text(note)}</p>')
    if counts:
        parts.append(_bars(counts))
    return f'<div style="color:inherit">{"".join(parts)}</div>'


def _text(value: str) -> str:
    """Text as it may stand anywhere in HTML; very long text is cut."""
    return escape(printable(value if len(value) <= _LONG else f"{value[:_LONG]}…"))


def _table(rows: Any) -> str:
    return f'<table style="{_TABLE}"><tbody>{"".join(rows)}</tbody></table>'


def _fact(name: str, value: str) -> str:
    head = f'<th scope="row" style="{_FAINT}">{_text(name)}</th>'
    return f'<tr style="background:none">{head}<td style="{_CELL}">{_text(value)}</td></tr>'


def _bars(counts: Mapping[str, int]) -> str:
    most = max(counts.values()) or 1
    rows = [
        f'<tr style="background:none"><th scope="row" style="{_FAINT}">{_text(name)}</th>'
        f'<td style="{_CELL};text-align:right">{count:,}</td>'
        f'<td style="{_CELL};width:14em">'
        f'<div style="{_BAR};width:{100 * count / most:.1f}%"></div></td></tr>'
        for name, count in islice(counts.items(), _BARS)
    ]
    if len(counts) > _BARS:
        rows.append(_fact(f"{len(counts) - _BARS:,} more", ""))
    return _table(rows)


def _shown(items: Array, labels: Any, classes: Classes | None) -> str:
    """The first items: as pictures, vectors as the rows of one, numbers as text."""
    if items.ndim < 2:
        numbers = ", ".join(map(text, items.reshape(-1)[:_NUMBERS]))
        return f'<p style="margin:.4em 0"><code style="{_CODE}">{_text(numbers)}</code></p>'
    if not items.size:
        return ""
    if items.ndim == 2:
        told, heat = f"the first {len(items):,} items, a row each", "viridis"
        shown, labels = items[np.newaxis], None
    else:
        shown, labels = _as_pictures(items, labels)
        told, heat = f"the first {len(items):,} items", "grey"
    picture = sheet(
        shown,
        labels,
        slice(None),
        classes=classes,
        columns=_COLUMNS,
        scale=4,
        colours=heat,
        longest=_SMALL if len(shown) > _MANY else _LARGE * (1 + (items.ndim == 2)),
        background=None,
    )
    data = base64.b64encode(picture).decode()
    style = "max-width:100%;height:auto;background:none;margin:0"
    return f'<img alt="{_text(told)}" style="{style}" src="data:image/png;base64,{data}">'


def _as_pictures(items: Array, labels: Any) -> tuple[Array, Sequence[Any] | None]:
    """Items of any number of dimensions as so many pictures that they fit on a page."""
    ndim = 3 if items.ndim > 3 and items.shape[-1] in (1, 3) else 2
    pictures = items.reshape(-1, *items.shape[-ndim:])[:PEEK_ITEMS]
    if labels is None:
        return pictures, None
    slices = int(np.prod(items.shape[1:-ndim], dtype=np.int64))
    return pictures, [labels[n // slices] for n in range(len(pictures))]
