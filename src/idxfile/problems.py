"""Everything that can be wrong with a file, as one table.

Opening, checking and mending find the same problems and ask this table what each one means:
opening raises the exception of the row, `check` lists the row, `repair` mends what the row calls
mendable. The codes are public: they stand in `--json` and may be matched on.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

from .errors import (
    ChecksumError,
    FormatError,
    IdxError,
    IdxWarning,
    PairError,
    TrailingDataError,
    TruncatedError,
    UnsupportedError,
    printable,
)

__all__ = ["PROBLEMS", "Problem"]

Level = Literal["error", "warning", "note"]
Repair = Literal["idx repair", "idx repair --salvage", "idx repair --swap-data"]
Handling = Literal["raise", "warn", "ignore", "salvage"]
"""What to do about problems; "salvage" is for saving the whole items of a file that was cut."""


@dataclass(frozen=True, slots=True)
class ProblemKind:
    """A row of the table of problems."""

    code: str
    """The public name of the problem."""
    level: Level
    """error: the file is wrong; warning: read, with a warning; note: worth knowing."""
    error: type[IdxError]
    """What a strict read raises for it."""
    meaning: str
    """One sentence for people."""
    repair: Repair | None = None
    """The command that makes a right file of it; None where there is none."""
    salvageable: bool = False
    """Whether whole items before the fault can be saved, by `repair(salvage=True)`."""
    readable: bool = False
    """Whether `problems="warn"` and `"ignore"` read on: nothing would have to be invented."""


PROBLEMS: dict[str, ProblemKind] = {
    row.code: row
    for row in (
        ProblemKind("empty", "error", TruncatedError, "The file has no bytes at all."),
        ProblemKind("foreign", "error", FormatError, "The file is of another, known format."),
        ProblemKind(
            "bad-magic", "error", FormatError, "The first two bytes are not zero, as IDX demands."
        ),
        ProblemKind(
            "unknown-type", "error", FormatError, "The third byte is no element type of IDX."
        ),
        ProblemKind(
            "short-header", "error", TruncatedError, "The file ends inside its own header."
        ),
        ProblemKind(
            "truncated",
            "error",
            TruncatedError,
            "There are fewer data bytes than the header declares.",
            salvageable=True,
        ),
        ProblemKind(
            "trailing-data",
            "error",
            TrailingDataError,
            "There are bytes behind the last element.",
            repair="idx repair",
            readable=True,
        ),
        ProblemKind(
            "swapped-header",
            "error",
            FormatError,
            "The header was written with the least significant byte first.",
            repair="idx repair",
        ),
        ProblemKind(
            "unsupported-dialect",
            "error",
            UnsupportedError,
            "A relative of IDX whose elements cannot be read without loss.",
        ),
        ProblemKind(
            "stream-truncated",
            "error",
            TruncatedError,
            "The compressed stream ends before its own end mark.",
            salvageable=True,
        ),
        ProblemKind(
            "stream-damaged",
            "error",
            FormatError,
            "The compressed stream cannot be decoded beyond some byte.",
            salvageable=True,
        ),
        ProblemKind(
            "stream-unsupported",
            "error",
            UnsupportedError,
            "The compressed stream asks for a dictionary, or for more memory than it is given.",
            salvageable=True,
        ),
        ProblemKind(
            "stream-checksum",
            "error",
            ChecksumError,
            "The checksum stored in the compressed stream is not that of its content.",
            salvageable=True,
        ),
        ProblemKind(
            "stream-junk",
            "warning",
            TrailingDataError,
            "There are bytes behind the compressed stream that are no stream and no padding.",
            repair="idx repair",
            readable=True,
        ),
        ProblemKind(
            "seek-table",
            "warning",
            FormatError,
            "The table at the end of a seekable zstd stream is not that of its frames.",
            readable=True,
        ),
        ProblemKind(
            "compressed-twice",
            "warning",
            FormatError,
            "The file is compressed more than once.",
            repair="idx repair",
            readable=True,
        ),
        ProblemKind(
            "name-codec",
            "note",
            FormatError,
            "The suffix of the name promises another compression than the content has.",
            readable=True,
        ),
        ProblemKind(
            "name-shape",
            "note",
            FormatError,
            "The name (idx3-ubyte) promises another type or number of dimensions.",
            readable=True,
        ),
        ProblemKind(
            "many-dimensions",
            "note",
            UnsupportedError,
            "A valid file of more dimensions than a NumPy array can have (64).",
            readable=True,
        ),
        ProblemKind(
            "swapped-data",
            "warning",
            FormatError,
            "The elements look as if they were written with the least significant byte first.",
            repair="idx repair --swap-data",
            readable=True,
        ),
        ProblemKind("unreadable", "error", FormatError, "The system does not give out its bytes."),
        ProblemKind(
            "pair-count", "error", PairError, "Images and labels are not equally many items."
        ),
        ProblemKind(
            "pair-swapped", "error", PairError, "The images stand under the name of the labels."
        ),
        ProblemKind(
            "pair-twice",
            "warning",
            PairError,
            "Two files take the same place in a pair.",
            readable=True,
        ),
        ProblemKind(
            "label-values", "warning", PairError, "Labels that are no class numbers.", readable=True
        ),
        ProblemKind(
            "label-range", "note", PairError, "From where to where the labels run.", readable=True
        ),
        ProblemKind("changed", "error", FormatError, "The file changed while it was being read."),
        ProblemKind("shard-missing", "error", FormatError, "A shard of a numbered set is missing."),
        ProblemKind("shard-twice", "error", FormatError, "Two files are the same shard of a set."),
        ProblemKind(
            "shard-extra", "error", FormatError, "A file has the name of a shard, and is none."
        ),
        ProblemKind(
            "shard-differs",
            "error",
            FormatError,
            "A shard has items of another type or shape than the first one.",
        ),
        ProblemKind(
            "shard-changed",
            "error",
            FormatError,
            "A shard is not what its manifest says, or what it was when the set was opened.",
        ),
        ProblemKind(
            "manifest-damaged",
            "error",
            FormatError,
            "The manifest of a set cannot be read as one, or is of other files.",
        ),
    )
}


@dataclass(frozen=True, slots=True)
class Problem:
    """One finding: a row of PROBLEMS, met in one file.

    Raises:
        KeyError: for a code that is not in PROBLEMS.
    """

    code: str
    message: str
    offset: int | None = None
    """Byte of the decompressed file (for `stream-` codes: of the compressed one)."""
    found: Any = None
    expected: Any = None
    hint: str | None = None
    repair: Repair | None = None
    """The command that mends it, where it is another than the row says."""

    def __post_init__(self) -> None:
        kind = PROBLEMS[self.code]  # an unknown code is a fault of ours and must not hide
        salvage: Repair | None = "idx repair --salvage" if kind.salvageable else None
        object.__setattr__(self, "repair", self.repair or kind.repair or salvage)

    @property
    def kind(self) -> ProblemKind:
        """The row of PROBLEMS."""
        return PROBLEMS[self.code]

    @property
    def level(self) -> Level:
        """error, warning or note."""
        return self.kind.level

    @property
    def mendable(self) -> bool:
        """Whether `repair` mends it without being asked for more."""
        return self.repair == "idx repair"

    def error(self, file: str | None = None) -> IdxError:
        """The exception that a strict read raises for this problem."""
        return self.kind.error(
            self.message,
            file=file,
            offset=self.offset,
            found=self.found,
            expected=self.expected,
            hint=self.hint,
            code=self.code,
        )

    def as_dict(self) -> dict[str, Any]:
        """The finding as plain values, for JSON."""
        return {
            "code": self.code,
            "level": self.level,
            "message": self.message,
            "offset": self.offset,
            "found": self.found,
            "expected": self.expected,
            "hint": self.hint,
            "mendable": self.mendable,
            "repair": self.repair,
        }


def settle(problems: Iterable[Problem], handling: Handling, file: str | None = None) -> None:
    """Raise, warn or keep silent about what was found, as the caller chose.

    Args:
        problems: the findings, the most telling first.
        handling: "raise" raises errors and warns of warnings; "warn" warns also of errors that
            can be read over without inventing anything; "ignore" says nothing of those.
        file: the name that the message begins with.

    Raises:
        IdxError: the first finding of level error that may not be passed over.
    """
    if handling not in ("raise", "warn", "ignore", "salvage"):
        raise ValueError(f'problems must be "raise", "warn" or "ignore", not {handling!r}')
    found = list(problems)
    for problem in found:
        kind = problem.kind
        passed = (kind.readable and handling != "raise") or (
            kind.salvageable and handling == "salvage"
        )
        if problem.level == "error" and not passed:
            raise problem.error(file)
    if handling not in ("raise", "warn"):
        return
    for problem in found:
        if problem.level != "note":
            name = f"{printable(file)}: " if file else ""
            warnings.warn(f"{name}{problem.message}", IdxWarning, stacklevel=_caller_level())


def _caller_level() -> int:
    """The `stacklevel` of whoever called into idxfile: a warning names their line, not ours."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back and frame.f_globals.get("__name__", "").startswith(f"{__package__}."):
        level, frame = level + 1, frame.f_back
    return level
