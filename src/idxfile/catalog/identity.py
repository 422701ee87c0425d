"""What a file, or a number that somebody met, is: `identify`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .. import signatures
from ..codecs import CODECS
from ..errors import FormatError
from ..header import ByteOrder, Header, examine
from ..report.facts import counted, make_out
from ..source import Source, header_prefix, open_source
from .recognition import BY_NAME, Known, files_like, may_lie_transposed, named_so, recognise

__all__ = ["Identity", "identify"]

_TURNED_HINT = "read it most significant byte first; or the file's writer forgot to turn it"
_ORDERS: tuple[ByteOrder, ByteOrder] = ("big", "little")


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
    by its digest, whatever its name and compression: "Fashion-MNIST train labels, not MNIST". Where
    no digest is known, a name that only that file bears tells, and the words say so.

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
        known: list[Known] = []
        if header is not None and fault is None:
            known = recognise(file, source, header) or named_so(source.name, source.codecs, header)
        # Where all of it was read, damage has been seen, too.
        fault = fault or next((p for p in source.problems if p.level == "error"), None)
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
        if first.remark == BY_NAME:
            hint = may_lie_transposed(first.dataset)
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
    for turned, order in enumerate(_ORDERS):
        found = _identify_start(str(number), (number % 2**32).to_bytes(4, order), bool(turned))
        if found is not None:
            return found
    bytes_there = (number % 2**32).to_bytes(4, "big").hex(" ")
    return Identity(str(number), f"the bytes {bytes_there}, which begin no known format", False)


def _identify_start(subject: str, first: bytes, turned: bool) -> Identity | None:
    """What begins with these four bytes, which may have been read turned around."""
    header, _ = examine(first + bytes(1020))
    if header is not None and header.dialect == "idx":
        dimensions = counted(header.ndim, "dimension")
        what = f"the magic number of IDX files of {header.element.name}, {dimensions}"
        if not turned:
            return Identity(subject, what, True)
        what += ", read with the bytes turned around"
        return Identity(subject, what, True, (), _TURNED_HINT)
    start = f"({first.hex(' ')})"
    if header is not None:
        return Identity(subject, f"the first four bytes of a Lush / EBLearn matrix {start}", True)
    row = signatures.beginning_with(first)
    if row is None:
        return None
    magics = [magic for codec in CODECS for magic in codec.magics]
    packed = any(magic.startswith(first) or first.startswith(magic) for magic in magics)
    hint = "decompress it, or read it with idxfile, which does" if packed else row.hint
    return Identity(subject, f"the first four bytes of {row.name} {start}", packed, (), hint)
