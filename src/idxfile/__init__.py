"""idxfile: read, write, check, mend, convert, look at and serve IDX files.

IDX is the tensor format of MNIST and its relatives. The whole library is reached from here; each
name is loaded when it is first used, so that `import idxfile` costs nothing.

    >>> import idxfile, io
    >>> file = io.BytesIO()
    >>> idxfile.write(file, [[1, 2], [3, 4]], dtype="uint8", cast="safe")
    >>> idxfile.read(file.getvalue())
    array([[1, 2],
           [3, 4]], dtype=uint8)
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .array import IdxArray, open, read
    from .errors import (
        ChecksumError,
        FetchError,
        FormatError,
        IdxError,
        IdxWarning,
        MissingExtraError,
        PairError,
        TrailingDataError,
        TruncatedError,
        UnsupportedError,
    )
    from .header import Header, examine
    from .problems import PROBLEMS, Problem
    from .writer import IdxWriter, append, concat, create, encode, write

__version__ = "0.1.0"

_ROOMS = {
    "array": ("IdxArray", "open", "read"),
    "errors": (
        "ChecksumError",
        "FetchError",
        "FormatError",
        "IdxError",
        "IdxWarning",
        "MissingExtraError",
        "PairError",
        "TrailingDataError",
        "TruncatedError",
        "UnsupportedError",
    ),
    "header": ("Header", "examine"),
    "problems": ("PROBLEMS", "Problem"),
    "writer": ("IdxWriter", "append", "concat", "create", "encode", "write"),
}
"""Room → what the house's door shows of it."""

_ROOM_OF = {name: room for room, names in _ROOMS.items() for name in names}

__all__ = [  # noqa: PLE0604
    "PROBLEMS",
    "ChecksumError",
    "FetchError",
    "FormatError",
    "Header",
    "IdxArray",
    "IdxError",
    "IdxWarning",
    "IdxWriter",
    "MissingExtraError",
    "PairError",
    "Problem",
    "TrailingDataError",
    "TruncatedError",
    "UnsupportedError",
    "append",
    "concat",
    "create",
    "encode",
    "examine",
    "open",
    "read",
    "write",
]


def __getattr__(name: str) -> Any:
    room = _ROOM_OF.get(name)
    if room is None:
        raise AttributeError(f"module 'idxfile' has no attribute {name!r}")
    value = getattr(import_module(f".{room}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
