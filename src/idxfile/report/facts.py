"""What a file is, from its first kilobyte and its name: `info`."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..errors import figure
from ..header import Header, examine, swapped_header
from ..names import name_problems
from ..problems import Problem
from ..source import Source, header_prefix, open_source
from ..source.access import Access, access_of
from ..source.places import is_url, local_path

if TYPE_CHECKING:
    import numpy as np

__all__ = ["Info", "info"]


@dataclass(frozen=True)
class Info:
    """What a file is, from its first kilobyte and its name."""

    file: str
    header: Header
    codecs: tuple[str, ...]
    """Its compressions, the outermost first."""
    file_nbytes: int | None
    """Bytes of the file as it lies there; None for a stream."""
    stored_name: str | None
    """The name inside a gzip file."""
    problems: list[Problem]
    """What the header, the length of a raw file and the name show by themselves."""
    access: Access | None
    """How single items are to be had: `direct`; by the `blocks` around them (blocked gzip, seekable
    zstd); by an `index` that is there, or one that is made at the first item (`index-on-use`); or
    only by reading the `whole`. None where that takes more requests than the header."""

    @property
    def shape(self) -> tuple[int, ...]:
        """As the header declares it: items first."""
        return self.header.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """The NumPy dtype of the elements once read: native byte order."""
        return self.header.dtype

    def as_dict(self) -> dict[str, Any]:
        """The facts as plain values, for JSON."""
        return {
            "file": self.file,
            "codecs": list(self.codecs),
            "file_nbytes": self.file_nbytes,
            "stored_name": self.stored_name,
            "access": self.access,
            **header_facts(self.header),
            "problems": [problem.as_dict() for problem in self.problems],
        }


def header_facts(header: Header) -> dict[str, Any]:
    """A header as plain values, for JSON."""
    return {
        "dialect": header.dialect,
        "dtype": header.element.name,
        "shape": list(header.shape),
        "byteorder": header.byteorder,
        "data_offset": header.data_offset,
        "data_nbytes": header.nbytes,
    }


def info(file: Any) -> Info:
    """What a file is: type, shape, codec, sizes, and what its name suggests.

    Only the header is read; of a compressed file its first kilobyte (bz2: its first block).

    Args:
        file: anything that `open` takes.

    Returns:
        An `Info`. Problems that the header and the length show stand in `problems`.

    Raises:
        FormatError: where no IDX header can be made out.
        OSError: as the system gives it.

    Example:
        >>> import idxfile
        >>> facts = idxfile.info(bytes.fromhex("00000803 00000000 0000001c 0000001c"))
        >>> str(facts.header), facts.shape, facts.header.data_offset
        ('uint8 0 × 28 × 28', (0, 28, 28), 16)
    """
    source = open_source(file, mmap=False)
    try:
        header, problems = make_out(source, source.size)
        if header is None:
            from ..source.archive import with_members

            problems = with_members(problems, source)
            raise next(p for p in problems if p.level == "error").error(source.name)
        stored = getattr(getattr(source, "stream", None), "stored_name", None)
        problems += name_problems(source.name, source.codecs, header)
        return Info(
            source.name,
            header,
            source.codecs,
            outer_nbytes(file, source),
            stored,
            problems,
            access_of(source, header.file_nbytes),
        )
    finally:
        source.close()


def make_out(source: Source, size: int | None) -> tuple[Header | None, list[Problem]]:
    """What the judge finds in a source, and a header that is turned around as what it means.

    Args:
        source: what `open_source` gave.
        size: its bytes, as far as they are known by now.
    """
    prefix = header_prefix(source)
    header, problems = examine(prefix, size)
    if any(problem.code == "swapped-header" for problem in problems):
        header = swapped_header(prefix, size)
    if any(problem.level == "error" for problem in source.problems):
        # Where a stream breaks off, it is no fault of the header that it is short.
        problems = [p for p in problems if p.code not in ("empty", "short-header")]
    return header, [*source.problems, *problems]


def outer_nbytes(file: Any, source: Source) -> int | None:
    """The bytes of the file as it lies there, before any decompression; of shards, of all."""
    if hasattr(source, "shards"):
        of_all: int | None = source.file_nbytes  # type: ignore[attr-defined]
        return of_all
    if isinstance(file, (str, os.PathLike)):
        place = local_path(os.fsdecode(file))
        if is_url(place):
            identity = getattr(source, "identity", None)
            return None if identity is None else identity.size
        status = os.stat(place)
        return status.st_size if stat.S_ISREG(status.st_mode) else None
    if not source.codecs:
        return source.size
    return None if hasattr(file, "read") else memoryview(file).nbytes


def counted(number: int, noun: str) -> str:
    """A number of things, in words: `1 byte`, `1,234 bytes`."""
    return f"{figure(number)} {noun}{'' if number == 1 else 's'}"
