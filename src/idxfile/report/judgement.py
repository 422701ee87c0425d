"""Whether a file is right: `check`.

A check never maps and never trusts: it reads to the end in constant memory, so that a file that
shrinks meanwhile is a finding and not a crash. NumPy is imported only where elements of several
bytes are held against their own swapped values.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from ..errors import FormatError, IdxError
from ..header import Header
from ..names import name_problems
from ..problems import Problem
from ..source import LocalFile, Source, Spool, open_source, pieces
from .facts import header_facts, make_out, outer_nbytes

__all__ = ["Report", "check"]

Progress = Callable[[int, int], None]
"""Called with the bytes done and the bytes in all."""

EXCESS_NBYTES = 1 << 26
"""So far `check` reads behind the last element: 64 MiB. Beyond, a small compressed file, or one
that grows while it is read, could keep it busy for years."""


@dataclass(frozen=True)
class Report:
    """The judgement over a whole file."""

    file: str
    header: Header | None
    """None where no header can be made out."""
    codecs: tuple[str, ...]
    """The compressions, the outermost first."""
    file_nbytes: int | None
    """Bytes of the file as it lies there; None for a stream."""
    data_nbytes: int
    """Bytes of the decompressed file behind its header, as far as they were counted."""
    problems: list[Problem] = field(default_factory=list)
    """Everything found, the most telling first."""

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
            **(header_facts(self.header) if self.header else {}),
            "problems": [problem.as_dict() for problem in self.problems],
        }


def check(file: Any, *, progress: Progress | None = None) -> Report:
    """Judge a whole file: read it to its end and list everything that is wrong.

    Args:
        file: anything that `open` takes. Of a set of shards every file is judged, and held against
            the manifest.
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
    from ..source.finding import find_shards

    try:
        several = find_shards(file)
    except FormatError as error:
        return unopened(error.file or "", error)
    if several is not None:
        from .sharding import check_shards

        return check_shards(several, check, progress)
    return check_far(file, EXCESS_NBYTES, progress)


def check_far(file: Any, excess: int | None, progress: Progress | None = None) -> Report:
    """`check`, which reads so many bytes behind the last element; None: as many as there are."""
    try:
        source = open_source(file, mmap=False)
    except FormatError as error:
        return unopened(error.file or "", error)
    try:
        return _judge(source, outer_nbytes(file, source), excess, progress)
    finally:
        source.close()


def _judge(
    source: Source, nbytes: int | None, excess: int | None, progress: Progress | None
) -> Report:
    header, problems = make_out(source, source.size)
    count = 0
    if header is not None or source.codecs:  # a damaged stream may hide the header
        reading = _Reading(header, excess)
        try:
            reading.run(source, progress)
        except OSError as error:
            problems.append(_unreadable(error, reading.count))
        else:
            header, problems = reading.judge(source, problems)
        count = reading.count
    if len(source.codecs) > 1:
        problems.append(_compressed_twice(source.codecs))
    if header is not None:
        problems += name_problems(source.name, source.codecs, header)
    found = max(0, count - header.data_offset) if header else 0
    return Report(source.name, header, source.codecs, nbytes, found, problems)


class _Reading:
    """One pass over the bytes of a source, in constant memory."""

    def __init__(self, header: Header | None, excess: int | None) -> None:
        self.count = 0
        """Bytes read so far."""
        self._header = header
        self._promised = 0 if header is None else header.file_nbytes
        self._most = None if excess is None else self._promised + excess
        self._stopped = False
        self._sample = None if header is None else _sample(header)

    def run(self, source: Source, progress: Progress | None) -> None:
        """Read to the end, or as far behind the last element as was allowed."""
        if isinstance(source, Spool) and self._header is not None:
            source.limit = self._promised
        for piece in pieces(source):
            if self._sample:
                self._sample.take(piece, self.count)
            self.count += len(piece)
            if progress and self._promised:
                progress(min(self.count, self._promised), self._promised)
            if self._most is not None and self.count > self._most:
                self._stopped = True
                self.count = self._most
                break

    def judge(self, source: Source, problems: list[Problem]) -> tuple[Header | None, list[Problem]]:
        """The header and all problems, now that it is known how many bytes there are.

        Args:
            source: the source, read.
            problems: what was found before it was read.
        """
        header = self._header
        if isinstance(source, Spool):
            known = not self._stopped or header is not None
            header, problems = make_out(source, self.count if known else None)
            if self._stopped:
                problems = [_over(p) if p.code == "trailing-data" else p for p in problems]
        else:
            if self._stopped and source.size is not None:
                self.count = max(self.count, source.size)
            local = isinstance(source, LocalFile)
            now = os.fstat(source.fd).st_size if local else self.count  # type: ignore[attr-defined]
            if not source.size == self.count == now:
                problems.append(_changed(source.size, now))
        suspicion = self._sample.suspicion() if self._sample else None
        return header, [*problems, suspicion] if suspicion else problems


def _sample(header: Header) -> Any:
    """What collects evidence about the byte order of the elements, where there can be any."""
    if header.element.nbytes == 1 or header.dialect != "idx":
        return None
    from .suspicion import Sample

    return Sample(header)


def _over(problem: Problem) -> Problem:
    """The finding of bytes that were not all counted."""
    return replace(problem, message=f"over {problem.message}")


def _unreadable(error: OSError, count: int) -> Problem:
    what = error.args[0] if isinstance(error, IdxError) else error.strerror or error
    return Problem(
        "unreadable",
        f"the system gives an error at byte {count:,}: {what}",
        offset=count,
        found=error.errno,
        hint="the disk or the connection is failing: copy what is left, and look at it",
    )


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


def unopened(name: str, error: IdxError | OSError) -> Report:
    """The report over a file that could not be opened as anything."""
    if isinstance(error, IdxError):
        problem = Problem("unreadable", str(error.args[0]), hint=error.hint)
    else:
        problem = Problem("unreadable", error.strerror or str(error), found=error.errno)
    return Report(name, None, (), None, 0, [problem])
