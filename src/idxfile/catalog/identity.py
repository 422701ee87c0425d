"""What a file, or a number that somebody met, is: `identify`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .. import signatures
from ..codecs import codec_of_content
from ..errors import FormatError
from ..header import examine
from ..report.facts import counted, make_out
from ..source import header_prefix, open_source

__all__ = ["Identity", "identify"]


@dataclass(frozen=True)
class Identity:
    """What something is."""

    subject: str
    """The name of the file, or the number."""
    what: str
    """What it is, as it stands in a sentence."""
    is_idx: bool
    """Whether idxfile reads it."""
    codecs: tuple[str, ...] = ()
    """The compressions around it, the outermost first."""
    hint: str | None = None
    """What to do with it."""

    def as_dict(self) -> dict[str, Any]:
        """The facts as plain values, for JSON."""
        return {
            "subject": self.subject,
            "what": self.what,
            "is_idx": self.is_idx,
            "codecs": list(self.codecs),
            "hint": self.hint,
        }


def identify(file: Any) -> Identity:
    """Say what a file is by its first bytes, or what a number means that a reader complained of.

    Args:
        file: anything that `open` takes; or an int: the magic number from an error message.

    Raises:
        OSError: when the file cannot be opened.

    Example:
        >>> import idxfile
        >>> idxfile.identify(529205256).what
        'the first four bytes of a gzip file (1f 8b 08 08)'
        >>> idxfile.identify(bytes.fromhex("00000801 00000001 07")).what
        'an IDX file: uint8 1'
    """
    if isinstance(file, int):
        return _identify_number(file)
    try:
        source = open_source(file, mmap=False)
    except FormatError as error:
        return Identity(error.file or "", str(error.args[0]), False, hint=error.hint)
    try:
        header, problems = make_out(source, source.size)
        prefix = header_prefix(source)
    finally:
        source.close()
    fault = next((problem for problem in problems if problem.level == "error"), None)
    if header is not None:
        kind = "an IDX file" if header.dialect == "idx" else "a Lush / EBLearn matrix"
        what = f"{kind}: {header}{f'; {fault.message}' if fault else ''}"
        hint = "`idx check` tells more" if fault else None
        return Identity(source.name, what, True, source.codecs, hint)
    assert fault is not None  # without a header there is an error
    known = signatures.describe(prefix) if fault.code == "foreign" else None
    return Identity(source.name, known or fault.message, False, source.codecs, fault.hint)


def _identify_number(number: int) -> Identity:
    """What four bytes mean that somebody read as one number."""
    if not -(2**31) <= number < 2**32:
        return Identity(f"{number:#x}", "a number that four bytes do not hold", False)
    subject = str(number)
    for order in ("big", "little"):
        first = (number % 2**32).to_bytes(4, order)
        header, _ = examine(first + bytes(1020))
        if header is not None and header.dialect == "idx":
            what = (
                f"the magic number of IDX files of {header.element.name}, "
                f"{counted(header.ndim, 'dimension')}"
            )
            hint = None
            if order == "little":
                what += ", read with the bytes turned around"
                hint = "read it most significant byte first; or the file's writer forgot to turn it"
            return Identity(subject, what, True, (), hint)
        row = signatures.beginning_with(first)
        if row is not None or header is not None:
            name = "a Lush / EBLearn matrix" if header is not None else row.name  # type: ignore[union-attr]
            what = f"the first four bytes of {name} ({first.hex(' ')})"
            codec = codec_of_content(first)
            hint = "decompress it, or read it with idxfile, which does" if codec else None
            hint = hint or (row.hint if row is not None else None)
            return Identity(subject, what, header is not None or codec is not None, (), hint)
    bytes_there = (number % 2**32).to_bytes(4, "big").hex(" ")
    return Identity(subject, f"the bytes {bytes_there}, which begin no known format", False)
