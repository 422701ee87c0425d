"""Every error of idxfile, and the names that may stand in a message.

    IdxError (Exception)
    ├── FormatError (ValueError)           the bytes are not what the format says
    │   ├── TruncatedError                 bytes are missing
    │   ├── TrailingDataError              bytes are left over
    │   └── ChecksumError                  a checksum does not hold
    ├── UnsupportedError (ValueError)      it cannot be represented without loss
    ├── PairError (ValueError)             images and labels do not belong together
    ├── FetchError (OSError)               a download failed on every road
    └── MissingExtraError (ImportError)    an optional package is not installed
    IdxWarning (UserWarning)               read all the same, but look at it

Each error is also the built-in that people already catch. Facts are attributes, so that no
program has to take a message apart.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

__all__ = [
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
]


_SIDES_SHOWN = 8


def sides(shape: Iterable[int]) -> str:
    """A shape in words: `60000 × 28 × 28`; of very many dimensions the first and the last."""
    numbers = [*map(str, shape)]
    if len(numbers) > 2 * _SIDES_SHOWN:
        count = f"({len(numbers)} dimensions)"
        numbers = [*numbers[:_SIDES_SHOWN], "…", *numbers[-_SIDES_SHOWN:]]
        return f"{' × '.join(numbers)} {count}"
    return " × ".join(numbers) or "scalar"


def figure(number: int) -> str:
    """A whole number in words: exact up to what a file can have, then its magnitude."""
    return f"{number:,}" if number < 10**21 else f"about 10^{len(str(number)) - 1}"


def printable(text: str) -> str:
    """`text` with everything that could steer a terminal or break a line written as an escape."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


class IdxError(Exception):
    """The root of every error that idxfile raises by itself.

    Attributes:
        file: the name of the file, or None.
        offset: the byte of the (decompressed) file at which the fault was found, or None.
        found: what stands there, or None.
        expected: what the format or the header demands, or None.
        hint: what to do about it, or None.
        code: the row of `idxfile.PROBLEMS` that was met, or None.
    """

    def __init__(
        self,
        message: str,
        *,
        file: str | None = None,
        offset: int | None = None,
        found: Any = None,
        expected: Any = None,
        hint: str | None = None,
        code: str | None = None,
    ) -> None:
        super().__init__(message)
        self.file = file
        self.offset = offset
        self.found = found
        self.expected = expected
        self.hint = hint
        self.code = code

    def __str__(self) -> str:
        name = f"{printable(self.file)}: " if self.file else ""
        hint = f"\nhint: {self.hint}" if self.hint else ""
        return f"{name}{self.args[0]}{hint}"


class FormatError(IdxError, ValueError):
    """The bytes are not an IDX file, or not the one that its header describes."""


class TruncatedError(FormatError):
    """Bytes are missing at the end of the file, of its header, or of its compressed stream."""


class TrailingDataError(FormatError):
    """There are bytes behind the last element."""


class ChecksumError(FormatError):
    """A stored checksum differs from the computed one."""


class UnsupportedError(IdxError, ValueError):
    """It is understood, but cannot be represented without loss."""


class PairError(IdxError, ValueError):
    """Images and labels that do not belong together."""


class FetchError(IdxError, OSError):
    """A download failed on every road that was tried."""


class MissingExtraError(IdxError, ImportError):
    """An optional package is needed for this and is not installed."""


class IdxWarning(UserWarning):
    """Something that was read all the same, and deserves a look."""
