"""The page itself: its files, the facts that it starts with, and the page that needs no server."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import numpy as np

from ...elements import Array
from ...errors import UnsupportedError

if TYPE_CHECKING:
    from .exhibit import Exhibit

__all__ = ["FILES", "export_page", "facts_of"]

MODULES = (
    "idx.js",
    "paint.js",
    "source.js",
    "state.js",
    "blocks.js",
    "grid.js",
    "elements.js",
    "classes.js",
    "item.js",
    "numbers.js",
    "compare.js",
    "chosen.js",
    "names.js",
    "query.js",
    "cursor.js",
    "counting.js",
    "panels.js",
    "keys.js",
    "main.js",
)
"""The page's code, each after those that it imports from."""

MOST_EXPORT_NBYTES = 1 << 25
"""A page with more than 32 MiB of items is slow to open."""

_IMPORT = re.compile(r"^import [^;]*;\n", re.MULTILINE)
_EXPORT = re.compile(r"^export ", re.MULTILINE)
_STATIC = files(__package__) / "static"


def _read(name: str) -> bytes:
    return (_STATIC / name).read_bytes()


def _bundle() -> str:
    """All modules as one: names at their top level are unique, so that they just stand in a row.

    One request in place of many halves the time to the first picture.
    """
    texts = (_read(name).decode() for name in MODULES)
    return "".join(_EXPORT.sub("", _IMPORT.sub("", text)) for text in texts)


FILES: dict[str, tuple[str, bytes]] = {
    "/": ("text/html; charset=utf-8", _read("index.html")),
    "/page.css": ("text/css; charset=utf-8", _read("page.css")),
    "/icon.svg": ("image/svg+xml", _read("icon.svg")),
    "/page.js": ("text/javascript; charset=utf-8", _bundle().encode()),
}
"""Path → kind and content. All that is ever given out of the disk without a token."""


def facts_of(exhibit: Exhibit) -> dict[str, Any]:
    """What the page has to know before the first item."""
    file = exhibit.file
    header, items, labels = file.header, file.items, exhibit.labels
    return {
        "name": exhibit.place.name,
        "count": len(exhibit),
        "dtype": None if items is None else items.dtype.name,
        "item_shape": None if items is None else list(items.item_shape),
        "declared": None if header is None else list(header.shape),
        "dialect": None if header is None else header.dialect,
        "byteorder": None if header is None else header.byteorder,
        "head": file.head[: header.data_offset if header else 64].hex(),
        "codecs": list(file.codecs),
        "nbytes": file.nbytes,
        "raw": file.raw is not None,
        "window": list(exhibit.window),
        "classes": exhibit.place.classes,
        "labelled": labels is not None,
        "alone": exhibit.alone,
        "rivals": exhibit.rival_names(),
        "problems": [problem.as_dict() for problem in file.problems],
    }


def export_page(exhibit: Exhibit, items: Array) -> bytes:
    """One page that needs no server: the items, their labels, and all of the code.

    Raises:
        UnsupportedError: for more than it can hold.
    """
    nbytes = len(items) * exhibit.items.item_nbytes
    if nbytes > MOST_EXPORT_NBYTES:
        raise UnsupportedError(
            f"{len(items):,} items of {exhibit.items.item_nbytes:,} bytes are {nbytes:,} bytes",
            found=nbytes,
            expected=MOST_EXPORT_NBYTES,
            hint="a page holds some megabytes: choose fewer with --items",
        )
    labels = exhibit.labels
    facts = {
        **facts_of(exhibit),
        "count": len(items),
        "rivals": [],
        "raw": False,
        "places": [exhibit.place.name],
        "numbers": None if _whole(items, exhibit) else items.tolist(),
        "items": base64.b64encode(exhibit.slab(items)).decode(),
        "labels": None if labels is None else labels[items].tolist(),
    }
    data = json.dumps(facts, separators=(",", ":")).replace("<", "\\u003c")
    style, script = _read("page.css").decode(), _bundle()
    policy = (
        f"default-src 'none'; script-src '{_digest(script)}'; style-src '{_digest(style)}'; "
        "img-src data: blob:; base-uri 'none'; form-action 'none'"
    )
    page = _read("index.html").decode()
    for old, new in (
        (
            '<meta charset="utf-8" />',
            '<meta charset="utf-8" />\n'
            f'    <meta http-equiv="Content-Security-Policy" content="{policy}" />',
        ),
        ('<link rel="stylesheet" href="page.css" />', f"<style>{style}</style>"),
        (
            '<script type="module" src="page.js"></script>',
            f'<script type="application/json" id="data">{data}</script>\n'
            f'    <script type="module">{script}</script>',
        ),
    ):
        assert page.count(old) == 1, old
        page = page.replace(old, new)
    page = re.sub(r' *<link rel="icon"[^>]*>\n', "", page)
    return page.encode()


def _whole(items: Array, exhibit: Exhibit) -> bool:
    return len(items) == len(exhibit) and bool((items == np.arange(len(items))).all())


def _digest(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
