"""Making a right file of a wrong one: `repair`.

What the judge calls mendable is mended; nothing is invented. Every change is told, the result is
written anew and atomically, and is then checked like any other file.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..elements import Array, as_bytes, turn
from ..errors import FormatError, UnsupportedError
from ..header import ByteOrder, Header, swapped_header
from ..problems import Problem
from ..source import InOrder, header_prefix, open_source
from ..writer import create, write
from .judgement import Report, check

__all__ = ["Mending", "repair"]

BLOCK_NBYTES = 1 << 23
_CUT = ("truncated", "stream-truncated", "stream-damaged", "stream-checksum")


@dataclass(frozen=True)
class Mending:
    """What `repair` did."""

    file: str
    """The wrong file."""
    out: str
    """The file that was written."""
    done: list[str]
    """Each change, as a sentence; empty where nothing was wrong."""
    before: Report
    """What was found in the wrong file."""
    after: Report
    """What was found in the file that was written."""
    backup: str | None = None
    """Where the wrong file lies now, when it was mended in place."""

    def as_dict(self) -> dict[str, Any]:
        """The changes as plain values, for JSON."""
        return {
            "file": self.file,
            "out": self.out,
            "done": self.done,
            "backup": self.backup,
            "before": self.before.as_dict(),
            "after": self.after.as_dict(),
        }


@dataclass
class _Plan:
    """What will be written, and why it differs from what is there."""

    header: Header
    done: list[str]


def repair(
    src: Any,
    dst: Any = None,
    *,
    swap_data: bool = False,
    take_trailing: bool = False,
    transpose: bool = False,
    salvage: bool = False,
    codec: str | None = "auto",
) -> Mending:
    """Write a right file of a wrong one.

    Mended are: bytes after the data, a count that is not that of the items there, a header
    written with the least significant byte first, several compressions, junk after a compressed
    stream, and a compression that the name promises and the content lacks.

    Args:
        src: the wrong file: a path, or bytes-like data.
        dst: the path to write; None mends in place and keeps the wrong file as `NAME.bak`.
        swap_data: turn the bytes of each element, too: for data that look little-endian.
        take_trailing: take whole items that stand behind the declared ones, as an interrupted
            append leaves them, instead of trimming them off.
        transpose: exchange the rows and columns of every item.
        salvage: keep the whole items of a file or stream that is cut or damaged.
        codec: as for `write`.

    Returns:
        A `Mending`, with each change as a sentence and the check of the result.

    Raises:
        FormatError: when it cannot be mended; the hint says what could still be saved.
        UnsupportedError: for elements that IDX cannot hold.
        OSError: as the system gives it; nothing is left then.

    Example:
        >>> import idxfile, tempfile, os
        >>> out = os.path.join(tempfile.mkdtemp(), "mended.idx")
        >>> mending = idxfile.repair(bytes.fromhex("00000801 00000001 070a"), out)
        >>> mending.done, mending.after.ok, idxfile.read(out).tolist()
        (['trimmed 1 byte after the data'], True, [7])
    """
    is_path = isinstance(src, (str, os.PathLike))
    if not is_path and (dst is None or hasattr(src, "read")):
        raise TypeError("repair needs a path, or bytes-like data and a path to write to")
    before = check(src)
    plan = _plan(src, before, take_trailing=take_trailing, salvage=salvage)
    if swap_data:
        order: ByteOrder = "big" if plan.header.byteorder == "little" else "little"
        plan.header = replace(plan.header, byteorder=order)
        if plan.header.element.nbytes > 1:
            plan.done.append(f"took the elements as {order}-endian")
    if transpose:
        if plan.header.ndim < 3:
            raise UnsupportedError(
                "only items of two dimensions or more can be transposed", file=before.file
            )
        plan.done.append("exchanged the rows and columns of every item")
    target = os.fsdecode(src if dst is None else dst)
    with _backup(target) if dst is None else contextlib.nullcontext() as backup:
        _write(src, target, plan.header, transpose, codec)
    after = check(target)
    _tell_codecs(plan.done, before, after)
    return Mending(before.file, target, plan.done, before, after, backup)


def _plan(src: Any, report: Report, *, take_trailing: bool, salvage: bool) -> _Plan:
    """Decide what the right file is, or say why there is none."""
    codes = {problem.code: problem for problem in report.problems}
    source = open_source(src, mmap=False)
    with contextlib.closing(source):
        prefix = header_prefix(source)
    header, done = report.header, []
    if "swapped-header" in codes:
        size = report.file_nbytes if not report.codecs else None
        if header is not None:
            size = header.data_offset + report.data_nbytes
        header = swapped_header(prefix, size)
        assert header is not None  # the judge found it
        done.append("turned the byte order of the header (and took the elements as it was)")
    for problem in report.problems:
        hopeless = problem.level == "error" and not (
            problem.mendable or (problem.kind.salvageable and salvage)
        )
        if hopeless:
            raise _cannot(problem, report)
    if header is None:
        raise _cannot(report.problems[0], report)
    if any(code in codes for code in _CUT):
        header = _cut(header, report, salvage or set(codes).isdisjoint(_CUT[1:]), salvage, done)
    elif "trailing-data" in codes:
        header = _trim(header, report, take_trailing, done)
    if header.dialect == "lush":
        done.append("wrote the Lush matrix as IDX")
    return _Plan(header, done)


def _whole_items(report: Report, header: Header) -> int:
    return report.data_nbytes // header.item_nbytes if header.ndim and header.item_nbytes else 0


def _cannot(problem: Problem, report: Report) -> FormatError | Any:
    """The error for what cannot be mended, with what could still be saved."""
    error = problem.error(report.file)
    if report.header is not None and problem.kind.salvageable:
        whole = _whole_items(report, report.header)
        error.hint = f"cannot be mended; salvage=True (--salvage) keeps {whole:,} whole items"
    else:
        error.hint = f"cannot be mended{f'; {error.hint}' if error.hint else ''}"
    return error


def _cut(header: Header, report: Report, may: bool, salvage: bool, done: list[str]) -> Header:
    """Let the count be that of the items that are whole."""
    if not header.ndim:
        raise _cannot(report.problems[0], report)
    whole = min(_whole_items(report, header), header.shape[0])
    rest = report.data_nbytes - whole * header.item_nbytes
    if not may or (rest and whole < header.shape[0] and not salvage):
        raise _cannot(next(p for p in report.problems if p.kind.salvageable), report)
    lost = f", dropped {rest:,} bytes of a cut one" if rest and whole < header.shape[0] else ""
    if whole < header.shape[0]:
        done.append(
            f"set the count from {header.shape[0]:,} to the {whole:,} whole items there{lost}"
        )
    else:
        done.append(f"kept all {whole:,} items of a damaged stream: their values are not certain")
    return replace(header, shape=(whole, *header.item_shape))


def _trim(header: Header, report: Report, take_trailing: bool, done: list[str]) -> Header:
    extra = report.data_nbytes - header.nbytes
    if take_trailing and header.ndim and header.item_nbytes:
        more, extra = divmod(extra, header.item_nbytes)
        if more:
            count = header.shape[0] + more
            done.append(f"set the count from {header.shape[0]:,} to the {count:,} items there")
            header = replace(header, shape=(count, *header.item_shape))
    if extra:
        done.append(f"trimmed {extra:,} byte{'s'[: extra > 1]} after the data")
    return header


def _write(src: Any, target: str, header: Header, transpose: bool, codec: str | None) -> None:
    if not header.ndim:
        scalar = next(_blocks(src, replace(header, shape=(1,))))
        write(target, scalar.reshape(()), codec=codec)
        return
    shape = list(header.item_shape)
    if transpose:
        shape[:2] = shape[1::-1]
    writer = create(
        target, dtype=header.dtype, item_shape=shape, count=header.shape[0], codec=codec
    )
    with writer:
        for block in _blocks(src, header):
            writer.append(block.swapaxes(1, 2) if transpose else block)


def _blocks(src: Any, header: Header) -> Iterator[Array]:
    """The items that a header describes, in order, without judging the file again."""
    source = open_source(src, mmap=False)
    with contextlib.closing(source):
        stream = InOrder(source)
        stream.readinto(bytearray(header.data_offset))
        step = max(1, BLOCK_NBYTES // max(1, header.item_nbytes))
        for start in range(0, header.shape[0], step):
            count = min(step, header.shape[0] - start)
            block = np.empty((count, *header.item_shape), header.dtype)
            if stream.readinto(as_bytes(block)) != block.nbytes:
                raise FormatError("the file changed while it was being mended", file=source.name)
            turn(block, header.stored_dtype)
            yield block


@contextlib.contextmanager
def _backup(path: str) -> Iterator[str]:
    """Keep a file as `NAME.bak` while another is written in its place."""
    backup = f"{path}.bak"
    if os.path.lexists(backup):
        raise FileExistsError(17, "A backup exists already; move it away first", backup)
    try:
        os.link(path, backup)
    except OSError:
        shutil.copy2(path, backup)
    try:
        yield backup
    except BaseException:
        os.unlink(backup)
        raise


def _tell_codecs(done: list[str], before: Report, after: Report) -> None:
    """Say what became of the compressions."""
    if any(problem.code == "stream-junk" for problem in before.problems):
        done.append("dropped the junk after the compressed stream")
    if before.codecs != after.codecs:
        was, now = ("+".join(codecs) or "raw" for codecs in (before.codecs, after.codecs))
        done.append(f"compression: {was} before, {now} now")
