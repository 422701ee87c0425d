"""Values of the six element types: byte order and casts, each in one place.

Byte order is turned by copying from a stored dtype into a native one, which NumPy does at the
speed of memory; turning in place is six times slower. Casts keep every value or are refused.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, Literal, cast

import numpy as np

from .errors import TruncatedError, UnsupportedError
from .header import IDX_TYPE_NAMES
from .source import Source
from .source.pool import Pool

__all__: list[str] = []

BLOCK_NBYTES = 1 << 20
"""Byte order is turned, and values are checked, in blocks of this size."""

_PARALLEL_NBYTES = 1 << 23
_PART_NBYTES = 1 << 23
"""Readers take parts of this size as they come, so that none waits for a slower one."""

_READERS = min(4, os.cpu_count() or 1)

Cast = Literal["safe"] | None
Array = np.ndarray[Any, np.dtype[Any]]

_INTEGERS = ("uint8", "int8", "int16", "int32")
_FLOATS = ("float32", "float64")


def as_bytes(array: Array) -> memoryview:
    """The bytes of a C-contiguous array, as they lie in memory."""
    return array.reshape(-1).view(np.uint8).data


def turn(target: Array, stored: np.dtype[Any]) -> None:
    """Turn a native C-contiguous array, filled with bytes as stored, into its values. In place."""
    if stored == target.dtype:
        return
    flat = target.reshape(-1)
    step = BLOCK_NBYTES // stored.itemsize
    for start in range(0, flat.size, step):
        block = flat[start : start + step]
        block[...] = block.view(stored).copy()


def read_elements(source: Source, start: int, target: Array, stored: np.dtype[Any]) -> None:
    """Read elements from byte `start` of a source into a native C-contiguous array.

    Large ranges are read side by side. Peak memory is the target and a block for each reader.

    Raises:
        TruncatedError: when the source has become shorter than it was.
    """
    flat = target.reshape(-1)
    if hasattr(source, "readinto_many"):
        read_many(source, [(start, flat)], stored)
        return
    readers = _READERS if flat.nbytes >= _PARALLEL_NBYTES else 1
    if readers == 1:
        _read_part(source, start, flat, stored)
        return
    bounds = [*range(0, flat.size, _PART_NBYTES // stored.itemsize), flat.size]
    with Pool(readers) as pool:
        parts = [
            pool.submit(_read_part, source, start + low * stored.itemsize, flat[low:high], stored)
            for low, high in pairwise(bounds)
        ]
        for part in parts:
            part.result()


def read_many(source: Any, parts: Sequence[tuple[int, Array]], stored: np.dtype[Any]) -> None:
    """Read elements into native C-contiguous arrays, each from a position of its own.

    Args:
        source: one that takes many ranges at once.
        parts: positions and arrays, ascending.
        stored: the element type as it lies in the source.

    Raises:
        TruncatedError: when the source ends before.
    """
    filled = [part for part in parts if part[1].size]
    if filled and filled[-1][0] + filled[-1][1].nbytes > source.size:
        start, array = filled[-1]
        raise _too_short(source, max(0, source.size - start), start, array)
    source.readinto_many([(start, as_bytes(array)) for start, array in filled])
    for _, array in filled:
        turn(array, stored)


def _read_part(source: Source, start: int, flat: Array, stored: np.dtype[Any]) -> None:
    if stored == flat.dtype:
        _read_exactly(source, start, flat)
        return
    step = BLOCK_NBYTES // stored.itemsize
    scratch = np.empty(min(step, flat.size), stored)
    for low in range(0, flat.size, step):
        block = flat[low : low + step]
        _read_exactly(source, start + low * stored.itemsize, scratch[: block.size])
        block[...] = scratch[: block.size]


def _read_exactly(source: Source, start: int, target: Array) -> None:
    count = source.readinto_at(start, as_bytes(target))
    if count != target.nbytes:
        raise _too_short(source, count, start, target)


def _too_short(source: Source, count: int, start: int, target: Array) -> TruncatedError:
    return TruncatedError(
        f"{count:,} of {target.nbytes:,} bytes at byte {start:,}: "
        "the file is shorter than it was when it was opened",
        file=source.name,
        offset=start + count,
        found=count,
        expected=target.nbytes,
        hint="another program shortened it meanwhile",
    )


def stored_pieces(array: Array, stored: np.dtype[Any]) -> Iterator[memoryview]:
    """The bytes of an array in C order and the stored byte order, piece by piece.

    An array that lies so already is given out whole and uncopied; a piece that was copied is
    valid until the next one is asked for.
    """
    if array.dtype == stored and array.flags.c_contiguous:
        if array.size:
            yield as_bytes(array)
        return
    for piece in _in_order(array, stored, BLOCK_NBYTES // stored.itemsize):
        if piece.size:
            yield as_bytes(np.ascontiguousarray(piece))


def _in_order(array: Array, dtype: np.dtype[Any], size: int) -> Iterator[Array]:
    """All elements in C order, at most `size` at once, as `dtype`, which differs in order only."""
    pieces = np.nditer(
        array,
        flags=["external_loop", "buffered", "zerosize_ok"],
        op_flags=["readonly"],
        op_dtypes=dtype,
        order="C",
        casting="equiv",
        buffersize=size,
    )
    return cast(Iterator[Array], iter(pieces))  # one operand comes bare, not in a tuple


def fitted(values: Any, dtype: Any = None, cast: Cast = None) -> Array:
    """An array whose element type IDX has, made of `values` without losing any.

    Args:
        values: anything `np.asarray` takes.
        dtype: the element type wanted, or None for the array's own.
        cast: None refuses every change of type but byte order; "safe" changes it where every
            value survives, and without `dtype` takes the smallest type that holds them all.

    Returns:
        The array itself where nothing had to change, else a cast copy; any byte order.

    Raises:
        UnsupportedError: for an element type that IDX lacks, or a value that would not survive.
    """
    if cast not in (None, "safe"):
        raise ValueError(f'cast must be None or "safe", not {cast!r}')
    array = numbers(values)
    name = array.dtype.name
    wanted = None if dtype is None else idx_type_name(dtype)
    if name in IDX_TYPE_NAMES and wanted in (None, name):
        return array
    if cast is None:
        raise UnsupportedError(
            f"an IDX file{f' of {wanted}' if wanted else ''} cannot hold {name}",
            found=name,
            expected=wanted or IDX_TYPE_NAMES,
            hint=_advice(array, wanted),
        )
    if wanted is None:
        wanted = smallest_type(array)
        if wanted is None:
            raise UnsupportedError(
                f"no element type of IDX holds every value of this {name} array",
                found=name,
                expected=IDX_TYPE_NAMES,
                hint=_range_text(array),
            )
    return exactly(array, np.dtype(wanted))


def numbers(values: Any) -> Array:
    """`values` as an array of numbers.

    Raises:
        UnsupportedError: for what is no number, and for masked values: a file has no place for
            a value that is missing.
    """
    if hasattr(values, "mask") and np.ma.is_masked(values):
        raise UnsupportedError(
            "an IDX file cannot hold masked values",
            found="a masked array",
            expected=IDX_TYPE_NAMES,
            hint="say what they are to be: array.filled(value)",
        )
    array = np.asarray(values)
    if array.dtype.kind not in "biuf":
        raise UnsupportedError(
            f"an IDX file cannot hold {array.dtype}",
            found=str(array.dtype),
            expected=IDX_TYPE_NAMES,
            hint=f"the element types of IDX are {', '.join(IDX_TYPE_NAMES)}",
        )
    return array


def exactly(array: Array, dtype: np.dtype[Any]) -> Array:
    """The same values as another type of numbers.

    Raises:
        UnsupportedError: for a value that would not survive.
    """
    lossy = first_lossy(array, dtype)
    if lossy is not None:
        where = f" at index ({', '.join(map(str, lossy))})" if lossy else ""
        raise UnsupportedError(
            f"{array[lossy]}{where} does not survive as {dtype.name}",
            found=array[lossy].item(),
            expected=dtype.name,
            hint=_advice(array, dtype.name),
        )
    with np.errstate(all="ignore"):
        return array.astype(dtype)


def idx_type_name(dtype: Any) -> str:
    """The name of an IDX element type given as a name, a dtype or a scalar class.

    Raises:
        UnsupportedError: for a type that IDX lacks.
    """
    name: str = np.dtype(dtype).name
    if name not in IDX_TYPE_NAMES:
        raise UnsupportedError(
            f"IDX has no element type {name}",
            found=name,
            expected=IDX_TYPE_NAMES,
            hint=f"the element types of IDX are {', '.join(IDX_TYPE_NAMES)}",
        )
    return name


def smallest_type(array: Array) -> str | None:
    """The smallest IDX type of the same kind that holds every value, or None."""
    if array.dtype.kind == "f":
        names = [n for n in _FLOATS if np.dtype(n).itemsize >= array.dtype.itemsize]
        names = names if array.dtype.itemsize <= 8 else ["float64"]
        return next((n for n in names if first_lossy(array, np.dtype(n)) is None), None)
    if array.dtype.kind == "b" or array.size == 0:
        return "uint8"
    low, high = int(array.min()), int(array.max())
    for name in _INTEGERS:
        limits = np.iinfo(name)
        if limits.min <= low and high <= limits.max:
            return name
    return None


def first_lossy(array: Array, dtype: np.dtype[Any]) -> tuple[int, ...] | None:
    """The index of the first value that changes when cast to `dtype`, or None."""
    source = array.dtype
    if np.can_cast(source, dtype, "safe") and not _rounds(source, dtype):
        return None
    start = 0
    for piece in _in_order(array, source, BLOCK_NBYTES // max(source.itemsize, dtype.itemsize)):
        with np.errstate(all="ignore"):
            there = piece.astype(dtype)
            same = (there.astype(source) == piece) | ((piece != piece) & (there != there))
            # There and back again is not enough: beyond an integer type's range it may wrap.
            if dtype.kind in "iu":
                same &= _within(piece, dtype)
            elif source.kind in "iu":
                same &= _within(there, source)
        if not same.all():
            flat = start + int(np.flatnonzero(~same)[0])
            return tuple(int(n) for n in np.unravel_index(flat, array.shape))
        start += piece.size
    return None


def _rounds(source: np.dtype[Any], dtype: np.dtype[Any]) -> bool:
    """Whether NumPy calls this cast safe and yet rounds: 2**53 + 1 is no float64."""
    return source.kind in "iu" and source.itemsize == 8 and dtype.kind == "f"


def _within(values: Array, integer: np.dtype[Any]) -> Array:
    """Which values an integer type has room for.

    The bound is the power of two behind the last one: a float holds the former, not the latter.
    """
    limits = np.iinfo(integer)
    if values.dtype == np.float16:  # which has no room for the bounds themselves
        values = values.astype(np.float32)
    return cast(Array, (values >= limits.min) & (values < limits.max + 1))


def _range_text(array: Array) -> str:
    if array.size == 0:
        return "it has no values"
    text = f"its values run from {array.min()} to {array.max()}"
    if array.dtype.kind in "iu" and first_lossy(array, np.dtype("float64")) is None:
        text += "; float64 would hold them exactly: array.astype('float64')"
    return text


def _advice(array: Array, wanted: str | None) -> str:
    name = smallest_type(array)
    if name is None:
        return _range_text(array)
    if wanted is not None and first_lossy(array, np.dtype(wanted)) is None:
        name = wanted
    elif wanted is not None:
        return f"{name} would hold every value, {wanted} would not"
    return f'{name} would hold every value: cast="safe", or array.astype("{name}")'
