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
    from .catalog.download import fetch
    from .catalog.identity import Identity, identify
    from .catalog.table import DatasetFacts, FileFacts, datasets
    from .dataset import Dataset
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
    from .formats.conversion import Conversion, convert
    from .formats.table import FORMATS
    from .growing import append
    from .header import Header, examine
    from .pairs import open_dataset
    from .problems import PROBLEMS, Problem
    from .report.difference import Difference, diff
    from .report.facts import Info, info
    from .report.judgement import Report, check
    from .report.mending import Mending, repair
    from .sheets.contact import sheet
    from .slabs.planning import Plan, Slab, plan
    from .slabs.running import Processes, run
    from .summary import Stats, stats
    from .viewer.terminal import show
    from .viewer.web import view
    from .writer import IdxWriter, concat, create, encode, write

__version__ = "0.1.0"

_ROOMS = {
    "array": ("IdxArray", "open", "read"),
    "catalog.download": ("fetch",),
    "catalog.identity": ("Identity", "identify"),
    "catalog.table": ("DatasetFacts", "FileFacts", "datasets"),
    "dataset": ("Dataset",),
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
    "formats.conversion": ("Conversion", "convert"),
    "formats.table": ("FORMATS",),
    "growing": ("append",),
    "header": ("Header", "examine"),
    "pairs": ("open_dataset",),
    "problems": ("PROBLEMS", "Problem"),
    "report.facts": ("Info", "info"),
    "report.difference": ("Difference", "diff"),
    "report.judgement": ("Report", "check"),
    "report.mending": ("Mending", "repair"),
    "sheets.contact": ("sheet",),
    "slabs.planning": ("Plan", "Slab", "plan"),
    "slabs.running": ("Processes", "run"),
    "summary": ("Stats", "stats"),
    "viewer.terminal": ("show",),
    "viewer.web": ("view",),
    "writer": ("IdxWriter", "concat", "create", "encode", "write"),
}
"""Room → what the house's door shows of it."""

_ROOM_OF = {name: room for room, names in _ROOMS.items() for name in names}

__all__ = [
    "FORMATS",
    "PROBLEMS",
    "ChecksumError",
    "Conversion",
    "Dataset",
    "DatasetFacts",
    "Difference",
    "FetchError",
    "FileFacts",
    "FormatError",
    "Header",
    "Identity",
    "IdxArray",
    "IdxError",
    "IdxWarning",
    "IdxWriter",
    "Info",
    "Mending",
    "MissingExtraError",
    "PairError",
    "Plan",
    "Problem",
    "Processes",
    "Report",
    "Slab",
    "Stats",
    "TrailingDataError",
    "TruncatedError",
    "UnsupportedError",
    "append",
    "check",
    "concat",
    "convert",
    "create",
    "datasets",
    "diff",
    "encode",
    "examine",
    "fetch",
    "identify",
    "info",
    "open",
    "open_dataset",
    "plan",
    "read",
    "repair",
    "run",
    "sheet",
    "show",
    "stats",
    "view",
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
