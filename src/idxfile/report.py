"""Judging whole files: what a file is (`info`), and whether it is right (`check`).

Neither imports NumPy. `check` never maps and never trusts: it reads to the end in constant memory,
so that a file that shrinks meanwhile is a finding and not a crash.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from .codecs import codec_of_name
from .header import ELEMENT_TYPES, Header, examine
from .problems import Problem
from .source import LocalFile, Source, Spool, header_prefix, open_source, pieces

__all__ = ["Info", "Report", "check", "info"]

Progress = Callable[[int, int], None]
"""Called with the bytes done and the bytes in all."""

EXCESS_NBYTES = 1 << 26
"""So far `check` counts what stands behind the last element of a compressed file: 64 MiB. Beyond,
a small file could keep it busy for years."""


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

    def as_dict(self) -> dict[str, Any]:
        """The facts as plain values, for JSON."""
        return {
            "file": self.file,
            "codecs": list(self.codecs),
            "file_nbytes": self.file_nbytes,
            "stored_name": self.stored_name,
            **_header_facts(self.header),
            "problems": [problem.as_dict() for problem in self.problems],
        }


@dataclass(frozen=True)
class Report:
    """The judgement over a whole file."""

    file: str
    header: Header | None
    """None where no header can be made out."""
    codecs: tuple[str, ...]
    file_nbytes: int | None
    data_nbytes: int
    """Bytes of the decompressed file behind its header that were read."""
    problems: list[Problem] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        """Whether nothing was found but notes."""
        return all(problem.level == "note" for problem in self.problems)

    def as_dict(self) -> dict[str, Any]:
        """The judgement as plain values, for JSON."""
        return {
            "file": self.file,
            "ok": self.ok,
            "codecs": list(self.codecs),
            "file_nbytes": self.file_nbytes,
            "data_nbytes_found": self.data_nbytes,
            **(_header_facts(self.header) if self.header else {}),
            "problems": [problem.as_dict() for problem in self.problems],
        }


def _header_facts(header: Header) -> dict[str, Any]:
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
        >>> str(facts.header), facts.header.data_offset
        ('uint8 0 × 28 × 28', 16)
    """
    source = open_source(file, mmap=False)
    try:
        header, problems = examine(header_prefix(source), source.size)
        problems = [*source.problems, *problems]
        if header is None:
            raise next(p for p in problems if p.level == "error").error(source.name)
        stored = getattr(getattr(source, "stream", None), "stored_name", None)
        problems += name_problems(source.name, source.codecs, header)
        return Info(
            source.name, header, source.codecs, _file_nbytes(file, source), stored, problems
        )
    finally:
        source.close()


def check(file: Any, *, progress: Progress | None = None) -> Report:
    """Judge a whole file: read it to its end and list everything that is wrong.

    Args:
        file: anything that `open` takes.
        progress: called now and then with the bytes read and the bytes promised.

    Returns:
        A `Report`; `report.ok` tells whether anything but notes was found.

    Raises:
        OSError: when the file cannot be opened. What fails later is a problem in the report.

    Example:
        >>> import idxfile
        >>> report = idxfile.check(bytes.fromhex("00000801 00000001 070a"))
        >>> report.ok, [(p.code, p.offset) for p in report.problems]
        (False, [('trailing-data', 9)])
    """
    source = open_source(file, mmap=False)
    try:
        header, problems = examine(header_prefix(source), source.size)
        if header is None:
            found = [*source.problems, *problems]
            nbytes = _file_nbytes(file, source)
            return Report(source.name, None, source.codecs, nbytes, 0, found)
        count, problems = _read_to_end(source, header, problems, progress)
        problems = [*source.problems, *problems]
        if len(source.codecs) > 1:
            problems.append(_compressed_twice(source.codecs))
        problems += name_problems(source.name, source.codecs, header)
        data_nbytes = max(0, count - header.data_offset)
        nbytes = _file_nbytes(file, source)
        return Report(source.name, header, source.codecs, nbytes, data_nbytes, problems)
    finally:
        source.close()


def _read_to_end(
    source: Source, header: Header, problems: list[Problem], progress: Progress | None
) -> tuple[int, list[Problem]]:
    """Read all bytes and judge the length that was really there.

    Returns:
        The number of bytes read, and the problems.
    """
    if isinstance(source, Spool):
        source.limit = header.file_nbytes
    count = 0
    most = header.file_nbytes + EXCESS_NBYTES
    try:
        for piece in pieces(source):
            count += len(piece)
            if progress:
                progress(min(count, header.file_nbytes), header.file_nbytes)
            if count > most and isinstance(source, Spool):
                break
    except OSError as error:
        return count, [
            *problems,
            Problem(
                "unreadable",
                f"the system gives an error at byte {count:,}: {error.strerror or error}",
                offset=count,
                found=error.errno,
                hint="the disk or the connection is failing: copy what is left, and look at it",
            ),
        ]
    if isinstance(source, Spool):
        _, problems = examine(source.read_at(0, header.data_offset), count)
    elif count != source.size:
        problems.append(_changed(source.size, count))
    elif isinstance(source, LocalFile) and (now := os.fstat(source.fd).st_size) != count:
        problems.append(_changed(count, now))
    return count, problems


def _changed(before: int | None, now: int) -> Problem:
    return Problem(
        "changed",
        f"the file had {before:,} bytes and then {now:,}, while it was being read",
        offset=min(before or 0, now),
        found=now,
        expected=before,
        hint="another program is writing it: check again when that has finished",
    )


def _compressed_twice(codecs: tuple[str, ...]) -> Problem:
    return Problem(
        "compressed-twice",
        f"compressed {len(codecs)} times: {' in '.join(reversed(codecs))}",
        found=list(codecs),
        expected=list(codecs[:1]),
        hint="most readers take off one layer: `idx repair` leaves one",
    )


def _file_nbytes(file: Any, source: Source) -> int | None:
    """The bytes of the file as it lies there, before any decompression."""
    if not source.codecs:
        return source.size
    if isinstance(file, (str, os.PathLike)):
        return os.stat(file).st_size
    if hasattr(file, "read"):
        return None
    return memoryview(file).nbytes


_TYPE_WORDS = {
    "ubyte": "uint8",
    "byte": "int8",
    "sbyte": "int8",
    "short": "int16",
    "int": "int32",
    "float": "float32",
    "double": "float64",
} | {row.name: row.name for row in ELEMENT_TYPES}

_NAMED_SHAPE = re.compile(r"idx(\d{1,3})[-_.]([a-z]+\d*)", re.IGNORECASE)


def name_problems(name: str, codecs: tuple[str, ...], header: Header) -> list[Problem]:
    """What the name of a file promises and its content does not hold.

    The content decides; this is only told. Names like `train-images-idx3-ubyte.gz` promise a
    number of dimensions, an element type and a compression.
    """
    base = os.path.basename(name)
    problems = []
    promised = codec_of_name(base)
    outer = codecs[0] if codecs else None
    if (promised.name if promised else None) != outer and not base.startswith("<"):
        suggests = f"suggests {promised.name}" if promised else "suggests no compression"
        problems.append(
            Problem(
                "name-codec",
                f"the name {suggests} and the content is {outer or 'raw'}",
                found=outer,
                expected=promised.name if promised else None,
            )
        )
    match = _NAMED_SHAPE.search(base)
    if match:
        ndim, element = int(match[1]), _TYPE_WORDS.get(match[2].lower())
        there = (header.ndim, header.element.name)
        if there != (ndim, element or header.element.name):
            problems.append(
                Problem(
                    "name-shape",
                    f"the name says {match[0]}, the header {header.element.name} "
                    f"with {header.ndim} dimensions",
                    found=list(there),
                    expected=[ndim, element],
                )
            )
    return problems
