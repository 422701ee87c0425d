"""What a file, or a number that somebody met, is: `identify`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .. import signatures
from ..codecs import codec_of_content
from ..errors import FormatError
from ..header import Header, examine
from ..report.facts import counted, make_out
from ..source import Source, header_prefix, open_source
from .recognition import Known, files_like, recognise

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
    dataset: str | None = None
    """The known data set that it belongs to, as `fetch` calls it."""
    split: str | None = None
    """The part of that data set."""
    role: str | None = None
    """Its place in that part: images, labels …"""

    def as_dict(self) -> dict[str, Any]:
        """The facts as plain values, for JSON."""
        return {
            "subject": self.subject,
            "what": self.what,
            "is_idx": self.is_idx,
            "codecs": list(self.codecs),
            "hint": self.hint,
            "dataset": self.dataset,
            "split": self.split,
            "role": self.role,
        }


def identify(file: Any) -> Identity:
    """Say what a file is by its content, or what a number means that a reader complained of.

    Where type and shape are those of a file of a known data set, all of it is read, and it is named
    by its digest, whatever its name and compression: "Fashion-MNIST train labels, not MNIST".

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
        fault = next((problem for problem in problems if problem.level == "error"), None)
        known = recognise(file, source, header) if header is not None and fault is None else []
    finally:
        source.close()
    if header is not None:
        kind = "an IDX file" if header.dialect == "idx" else "a Lush / EBLearn matrix"
        what = f"{kind}: {header}{f'; {fault.message}' if fault else ''}"
        if known:
            return _identify_known(source, what, known)
        hint = "`idx check` tells more" if fault else _unproven(header)
        return Identity(source.name, what, True, source.codecs, hint)
    assert fault is not None  # without a header there is an error
    other = signatures.describe(prefix) if fault.code == "foreign" else None
    return Identity(source.name, other or fault.message, False, source.codecs, fault.hint)


def _identify_known(source: Source, what: str, known: list[Known]) -> Identity:
    """A file that stands in the catalogue; several times, where files are the same."""
    names = " or ".join(dict.fromkeys(row.text for row in known))
    first = known[0]
    same_split = all(row.file.split == first.file.split for row in known)
    hint = None
    if first.dataset.transposed and first.file.role == "images":
        hint = f"the images lie transposed; `fetch('{first.dataset.name}')` turns them"
    return Identity(
        source.name,
        f"{names}; {what}",
        True,
        source.codecs,
        hint,
        first.dataset.name,
        first.file.split if same_split else None,
        first.file.role,
    )


def _unproven(header: Header) -> str | None:
    """Which known file it may be that cannot be told by its content, if there are few."""
    rows = [row for row in files_like(header) if row.file.raw.strongest is None]
    names = " or ".join(row.text for row in rows)
    return f"it may be {names}: no checksum of that is known" if 0 < len(rows) < 3 else None


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
