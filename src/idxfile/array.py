"""Reading: the two verbs that make arrays of files, `open` and `read`."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np

from .elements import Array, as_bytes, read_elements, turn
from .errors import IdxWarning, UnsupportedError, printable
from .header import ByteOrder, Header, examine
from .lazyarray import IdxArray, Mode, checked_out
from .opening import (
    ShardRecipe,
    check_identity,
    no_array_error,
    open_header,
    recipe_of,
)
from .problems import Handling, settle
from .source import SPOOL_NBYTES, LocalFile, Spool, header_prefix, judge_spooled
from .source.finding import absent_told, manifest_listing, set_of_shard
from .source.local import FileIdentity, reserve
from .source.passing import Elements

__all__ = ["IdxArray", "open", "read"]


def open(
    file: Any,
    *,
    mode: Mode = "r",
    mmap: bool = True,
    byteorder: ByteOrder = "big",
    problems: Handling = "raise",
    spool_nbytes: int = SPOOL_NBYTES,
) -> IdxArray:
    """Open an IDX file lazily: the header is read, the rest when it is asked for.

    Args:
        file: a path, an address (`https://…`, `s3://…`), bytes-like data, a binary file object
            (read from its current position, never closed), or a readable stream. gz, bz2, xz and
            zst are recognised by content.
        mode: "r" never writes; "c" is copy-on-write: arrays are writeable and the file is not
            touched, which is what tensors need; "r+" changes the file, by `x[key] = values`.
        mmap: map a plain local file; False reads it by position, for files that somebody else
            may shorten meanwhile.
        byteorder: "little" for a stray file whose elements (not its header) are little-endian.
        problems: "raise", "warn" (read on where nothing must be invented), or "ignore".
        spool_nbytes: a compressed file is inflated once, when the first item is asked for: in
            memory up to this size, beyond it into a temporary file. Of what is read through by
            `blocks`, for the first time, nothing is kept.

    Returns:
        An `IdxArray`; close it, or use it in a `with` statement.

    Raises:
        FormatError: when it is not a right IDX file; the subclasses say how.
        OSError: as the system gives it.

    Example:
        >>> import idxfile
        >>> with idxfile.open(bytes.fromhex("00000802 00000002 00000002 01020304")) as x:
        ...     x[1].tolist()
        [3, 4]
    """
    if mode not in ("r", "c", "r+"):
        raise ValueError(f'mode must be "r", "c" or "r+", not {mode!r}')
    if mode == "c" and not mmap:
        raise ValueError('mode="c" is copy-on-write over a map: it needs mmap=True')
    options = {
        "mode": mode,
        "mmap": mmap,
        "byteorder": byteorder,
        "problems": problems,
        "spool_nbytes": spool_nbytes,
    }
    _check_handling(problems)
    source, header = open_header(
        file,
        byteorder=byteorder,
        problems=problems,
        mmap=mmap,
        spool_nbytes=spool_nbytes,
        writeable=mode == "r+",
    )
    try:
        if mode == "r+" and not isinstance(source, LocalFile):
            kind = f"{source.codecs[-1]} data" if source.codecs else "no plain file"
            raise ValueError(f'{source.name} is {kind}: mode="r+" needs a raw local file')
        if mode == "r+" and header.dialect != "idx":
            raise UnsupportedError("a Lush matrix is read, and never written", file=source.name)
        if mode == "r+" and (manifest := manifest_listing(source.name)) is not None:
            text = (
                f"{printable(source.name)}: {manifest} has its SHA-256, "
                "and `check` will miss it: remove the manifest when the shard is changed"
            )
            warnings.warn(text, IdxWarning, stacklevel=2)
        recipe = recipe_of(reopen, file, options, source)
        if mode == "c" and hasattr(source, "in_memory"):
            source = source.in_memory(spool_nbytes)
        return IdxArray(source, header, mode=mode, problems=problems, recipe=recipe)
    except BaseException:
        source.close()
        raise


def open_whole_items(file: Any) -> IdxArray:
    """Open a file that may have been cut, as if it had been written with the items that are whole.

    Nothing is invented: an item that misses a byte is not among them.
    """
    source, header = open_header(file, mmap=False, problems="salvage")
    try:
        if isinstance(source, Spool):
            source.limit = header.file_nbytes
            source.load()  # now the size is known
        found = max(0, (source.size or 0) - header.data_offset)
        if found < header.nbytes:
            if not header.ndim:
                settle(examine(header_prefix(source), source.size)[1], "raise", source.name)
            count = found // header.item_nbytes
            whole = f"{count:,} of {header.shape[0]:,} declared items are whole"
            warnings.warn(f"{printable(source.name)}: {whole}", IdxWarning, stacklevel=2)
            header = replace(header, shape=(count, *header.item_shape))
        return IdxArray(source, header, problems="salvage")
    except BaseException:
        source.close()
        raise


def _check_handling(problems: Handling) -> None:
    """Refuse what only `open_whole_items` may do: it knows which items are whole."""
    if problems == "salvage":
        raise ValueError('problems must be "raise", "warn" or "ignore"')


def reopen(file: Any, options: dict[str, Any], identity: Any) -> IdxArray:
    """Open what a recipe describes, as a rule in another process."""
    verified = identity is not None and options["mode"] != "r+"
    early = isinstance(identity, FileIdentity)  # the system tells before anything is opened
    if verified and early:
        check_identity(file, None, identity)
    array = open(file, **options)
    if verified and not early:
        try:
            check_identity(file, array._source, identity)
        except BaseException:
            array.close()
            raise
    return array


def open_shard(recipe: ShardRecipe) -> IdxArray:
    """Open one shard of a set by itself, with the options of the set.

    Raises:
        FormatError: when it is not what it was when the set was opened.
    """
    from .source.members import changed, check_unchanged

    with absent_told(lambda: set_of_shard(recipe.shard.place)):
        array = open(recipe.shard.place, **dict(recipe.options))
    try:
        check_unchanged(array._source, recipe.shard)
        if str(array.header) != recipe.header:
            raise changed(array.name, str(array.header), recipe.header)
    except BaseException:
        array.close()
        raise
    return array


def read(
    file: Any,
    items: Any = None,
    *,
    out: Array | None = None,
    byteorder: ByteOrder = "big",
    problems: Handling = "raise",
) -> Array:
    """Read an IDX file into an array of its own.

    Args:
        file: a path, bytes-like data, a binary file object, or a stream; as in `open`.
        items: what to read along dimension 0: an int, a slice, or integers; None reads all.
        out: the array to read into: the shape and dtype of the result, C order.
        byteorder: "little" for a stray file whose elements are little-endian.
        problems: "raise", "warn" or "ignore"; what is missing always raises.

    Returns:
        An array (a scalar file: 0-d) in native byte order and C order, writeable, whose memory
        nobody else holds. Peak memory is the result and a block.

    Raises:
        FormatError: when it is not a right IDX file; the subclasses say how.
        UnsupportedError: over 64 dimensions.
        OSError: as the system gives it.

    Example:
        >>> import idxfile
        >>> idxfile.read(bytes.fromhex("00000c01 00000002 ffffffff 00011170")).tolist()
        [-1, 70000]
    """
    _check_handling(problems)
    if items is not None:
        with open(file, byteorder=byteorder, problems=problems, mmap=False) as array:
            return _read_some(array, items, out)
    source, header = open_header(file, byteorder=byteorder, problems=problems, mmap=False)
    try:
        if error := no_array_error(header, source.name):
            raise error
        if out is not None:
            checked_out(out, header.shape, header.dtype, source.name)
        if isinstance(source, Spool):
            return _read_spooled(source, header, out, problems)
        target = np.empty(header.shape, header.dtype) if out is None else out
        if header.size:
            read_elements(source, header.data_offset, target, header.stored_dtype)
        return target
    finally:
        source.close()


def _read_some(array: IdxArray, items: Any, out: Array | None) -> Array:
    if isinstance(items, tuple):
        raise TypeError("items selects along dimension 0: an int, a slice or integers")
    values = np.asarray(array[items])
    if out is None:
        fresh = array._direct is None and values.flags.c_contiguous
        return values if fresh else values.copy(order="C")
    checked_out(out, np.shape(values), array.dtype, array.name)
    out[...] = values
    return out


def _read_spooled(source: Spool, header: Header, out: Array | None, problems: Handling) -> Array:
    """Inflate once, straight into the result."""
    source.limit = header.file_nbytes
    target = out
    if target is None and header.nbytes <= SPOOL_NBYTES:
        target = np.empty(header.shape, header.dtype)
    elif target is None:
        # A header that lies costs nothing: memory is taken as the bytes arrive.
        try:
            memory = reserve(header.nbytes)
        except MemoryError:
            source.load()
            judge_spooled(source, header, source.size, source.problems, problems)
            raise
        target = np.frombuffer(memory, header.dtype, header.size).reshape(header.shape)
    Elements(source, header, problems).readinto(as_bytes(target))
    turn(target, header.stored_dtype)
    return target
