"""How single items of a file are to be had, as far as it shows without reading on: for `info`."""

from __future__ import annotations

from typing import Any, Literal

from .blocked import BlockedInflater
from .frames import FramesInflater
from .places import is_far
from .stream import Spool

__all__ = ["Access", "access_of"]

Access = Literal["direct", "blocks", "index", "index-on-use", "whole"]
"""An item is read where it lies; the blocks around it are inflated; an index is there; one is made
when the first item is asked for; all is read from the beginning."""


def access_of(source: Any, nbytes: int) -> Access | None:
    """How single items are to be had; None where only further requests over a network would tell.

    Args:
        source: what `open_source` gave.
        nbytes: what the content should come to.
    """
    if not isinstance(source, Spool):
        return "direct"
    outer = source._outer
    if len(source.codecs) != 1 or outer is None or outer.size is None:
        return "whole"
    if is_far(outer.name) and source.codecs[0] in ("gz", "zst"):
        return None
    inflater = source.stream
    if isinstance(inflater, BlockedInflater):
        return "blocks"
    if isinstance(inflater, FramesInflater) and inflater.seekable:
        return "blocks"
    from .indexed import indexed

    source.limit = nbytes
    content = indexed(outer, source.codecs, nbytes, worth=not source.fits_memory)
    if content is None:
        return "whole"
    return "index" if content.ready else "index-on-use"
