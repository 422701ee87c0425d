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

from ..codecs import codec_of_name
from ..elements import as_bytes
from ..errors import FormatError, IdxError, UnsupportedError
from ..header import MAX_ARRAY_NDIM, Header
from ..problems import Problem
from ..sending import committed
from ..sink import open_sink
from ..source import InOrder, open_source
from .facts import counted
from .judgement import EXCESS_NBYTES, Report, check, check_far

__all__ = ["Mending", "repair"]

BLOCK_NBYTES = 1 << 23


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
        dst: the path to write; None mends in place and keeps the wrong file as `NAME.bak`, or
            leaves it alone where there is nothing to mend.
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
        (['trimmed 1 byte after the data at offset 9'], True, [7])
    """
    target = _target(src, dst)
    before = check_far(src, None if take_trailing else EXCESS_NBYTES)
    there, right, done = _right_header(before, take_trailing=take_trailing, salvage=salvage)
    if swap_data and there.element.nbytes > 1:
        there = replace(there, byteorder="big" if there.byteorder == "little" else "little")
        done.append(f"took the elements as {there.byteorder}-endian")
    if transpose:
        right = _transposed(right, before.file)
        done.append("exchanged the rows and columns of every item")
    codecs = _codecs(target, codec)
    if codecs != before.codecs:
        was, now = ("+".join(names) or "raw" for names in (before.codecs, codecs))
        done.append(f"compression: {was} before, {now} now")
    if dst is None and not done:
        return Mending(before.file, target, done, before, before)
    with _backup(target) if dst is None else contextlib.nullcontext() as backup:
        _write(src, target, there, right, transpose, codec)
    return Mending(before.file, target, done, before, check(target), backup)


def _target(src: Any, dst: Any) -> str:
    """The path that is written.

    Raises:
        TypeError: for what is neither a path nor bytes-like.
        UnsupportedError: for the path of what can be read or written only once.
    """
    is_path = isinstance(src, (str, os.PathLike))
    if not is_path and (dst is None or hasattr(src, "read")):
        raise TypeError("repair needs a path, or bytes-like data and a path to write to")
    target = os.fsdecode(src if dst is None else dst)
    for place in (os.fsdecode(src), target) if is_path else (target,):
        if os.path.exists(place) and not os.path.isfile(place) and not os.path.isdir(place):
            raise UnsupportedError(
                "a pipe or device, and mending reads twice, what is wrong and what is written",
                file=place,
                hint="mend from a file to a file",
            )
    return target


def _codecs(target: str, codec: str | None) -> tuple[str, ...]:
    """The compressions that the written file will have."""
    if codec == "auto":
        row = codec_of_name(target)
        return (row.name,) if row else ()
    return (codec,) if codec else ()


def _right_header(
    report: Report, *, take_trailing: bool, salvage: bool
) -> tuple[Header, Header, list[str]]:
    """What the right file is.

    Returns:
        How the elements lie in the wrong file, the header of the right one, and each change.

    Raises:
        IdxError: where there is no right file.
    """
    there = report.header
    for problem in report.problems:
        mendable = problem.mendable or (problem.kind.salvageable and salvage)
        if problem.level == "error" and (there is None or not mendable):
            raise _hopeless(problem, report)
    assert there is not None  # without a header there is an error
    codes = {problem.code for problem in report.problems}
    done = []
    if "swapped-header" in codes:
        done.append("turned the byte order of the header")
        if there.element.nbytes > 1:
            done.append("took the elements as little-endian, too")
    if there.dialect == "lush":
        done.append("wrote the Lush matrix as IDX")
    if "stream-junk" in codes:
        done.append("dropped the junk after the compressed stream")
    if "stream-truncated" in codes:
        done.append("took what the cut stream gives")
    if codes & {"stream-damaged", "stream-unsupported", "stream-checksum"}:
        done.append("took what the damaged stream gives: its values are not certain")
    count = there.shape[0] if there.ndim else 1
    whole, rest = count, report.data_nbytes - there.nbytes
    if rest < 0 or (rest and take_trailing and there.ndim and there.item_nbytes):
        whole, rest = divmod(report.data_nbytes, there.item_nbytes)
    if whole < count and (not whole or (rest and not salvage)):
        raise _hopeless(next(p for p in report.problems if p.kind.salvageable), report)
    if whole != count:
        done.append(f"set the count from {count:,} to {whole:,}, the whole items that are there")
    if whole < count and rest:
        done.append(f"dropped {counted(rest, 'byte')} of an item that is cut")
    elif rest:
        trailing = next(p for p in report.problems if p.code == "trailing-data")
        done.append(
            f"trimmed {trailing.message}"
            if whole == count
            else f"trimmed {counted(rest, 'byte')} after the last whole item"
        )
    shape = (whole, *there.item_shape) if there.ndim else ()
    try:
        return there, Header.of(there.element.name, shape), done
    except UnsupportedError as error:
        error.file = report.file
        raise


def _hopeless(problem: Problem, report: Report) -> IdxError:
    """The error for what cannot be mended, with what could still be saved."""
    error, header, whole = problem.error(report.file), report.header, 0
    if header is not None and header.ndim and header.item_nbytes:
        whole = min(header.shape[0], report.data_nbytes // header.item_nbytes)
    if not problem.kind.salvageable:
        error.hint = f"cannot be mended; {error.hint}" if error.hint else "cannot be mended"
    elif whole:
        saved = counted(whole, "whole item")
        error.hint = f"cannot be mended; --salvage (salvage=True) keeps its {saved}"
    else:
        error.hint = "cannot be mended: not one whole item is there"
    return error


def _transposed(header: Header, file: str) -> Header:
    if not 3 <= header.ndim <= MAX_ARRAY_NDIM:
        raise UnsupportedError(
            f"{counted(header.ndim, 'dimension')}, expected 3 to {MAX_ARRAY_NDIM}: "
            "items of rows and columns",
            file=file,
            found=header.ndim,
            expected=3,
            hint="only the rows and columns of items can be exchanged",
        )
    items, rows, columns, *rest = header.shape
    return replace(header, shape=(items, columns, rows, *rest))


def _write(
    src: Any, target: str, there: Header, right: Header, transpose: bool, codec: str | None
) -> None:
    with committed(open_sink(target, codec=codec)) as sink:
        sink.write(right.encode())
        for block in _blocks(src, there, right.size, transpose):
            sink.write(block)


def _blocks(src: Any, there: Header, size: int, transpose: bool) -> Iterator[memoryview]:
    """The first `size` elements as they stand in a right file, in constant memory."""
    source = open_source(src, mmap=False)
    with contextlib.closing(source):
        stream = InOrder(source)
        stream.readinto(bytearray(there.data_offset))
        step = max(1, BLOCK_NBYTES // there.element.nbytes)
        if transpose:  # whole items
            per_item = max(1, there.item_nbytes // there.element.nbytes)
            step = max(1, step // per_item) * per_item
        for start in range(0, size, step):
            block = np.empty(min(step, size - start), there.stored_dtype)
            if stream.readinto(as_bytes(block)) != block.nbytes:
                raise FormatError("the file changed while it was being mended", file=source.name)
            if there.byteorder == "little":
                block.byteswap(inplace=True)
            if transpose:
                items = block.reshape(-1, *there.item_shape)
                block = np.ascontiguousarray(items.swapaxes(1, 2))
            yield as_bytes(block)


@contextlib.contextmanager
def _backup(path: str) -> Iterator[str]:
    """Keep a file as `NAME.bak` while another is written in its place."""
    backup = f"{path}.bak"
    if os.path.lexists(backup):
        raise FileExistsError(17, "A backup exists already; move it away first", backup)
    # A link to a link would be a second name of what is written now.
    old = os.path.realpath(path) if os.path.islink(path) else path
    try:
        try:
            os.link(old, backup)
        except OSError:  # another file system, or one without links
            shutil.copy2(old, backup)
        yield backup
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(backup)
        raise
