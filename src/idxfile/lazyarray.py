"""The lazy array over an IDX file: `IdxArray`.

One file of over 400 lines: it is one class, and half of its lines are what users read. `array`
holds the verbs that make one.
"""

from __future__ import annotations

import contextlib
import itertools
import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from .elements import Array, as_bytes, exactly, numbers, read_many, turn
from .errors import FormatError, sides
from .gathering import gather, read_ahead, read_items, rows_of, scatter
from .header import Header
from .opening import Recipe, ShardRecipe, no_array_error
from .problems import Handling
from .selection import Items, in_bounds, select
from .source import LocalFile, Memory, Source, Spool
from .source.content import UnfitError
from .source.local import memory_nbytes
from .source.locking import Lock
from .source.passing import Elements
from .spooled import Passes, Spooled

if TYPE_CHECKING:
    from .source.members import Shard

__all__ = ["DEFAULT_BLOCK_NBYTES", "IdxArray", "Mode", "checked_out"]

Mode = Literal["r", "c", "r+"]
DEFAULT_BLOCK_NBYTES = 1 << 23
PEEK_NBYTES = 1 << 26
"""As much is read, or inflated, to show what a file holds."""
TAKE_NBYTES = 1 << 18
"""A batch is turned in pieces of this size, which are in the cache still."""


class IdxArray:
    """An IDX file as an array that is read when asked. Made by `idxfile.open`.

    It is an array-like to NumPy and to everything that speaks NumPy's protocols: `shape`,
    `dtype`, `ndim`, `size`, `nbytes`, `len`, iteration over items, every NumPy key in `[...]`,
    and `np.asarray(x)`. Values come in native byte order. Many threads may read at once.

    What `x[key]` gives, of a mapped file:

    ===== ======================== =====================================
    mode  uint8 and int8           wider types
    ===== ======================== =====================================
    r     what NumPy gives over a  fresh array: the byte order is turned
          read-only array (a view
          for ints and slices)
    c     the same, writeable; the fresh array
          file is never changed
    r+    fresh array              fresh array
    ===== ======================== =====================================

    Example:
        >>> import idxfile
        >>> x = idxfile.open(bytes.fromhex("00000801 00000003 070809"))
        >>> x.shape, x.dtype, len(x), int(x[-1])
        ((3,), dtype('uint8'), 3, 9)
    """

    def __init__(
        self,
        source: Source,
        header: Header,
        *,
        mode: Mode = "r",
        problems: Handling = "raise",
        recipe: Recipe | None = None,
    ) -> None:
        self._source = source
        self._header = header
        self._mode = mode
        self._problems: Handling = problems
        self._recipe = recipe
        self._lock = Lock()
        self._closed = False
        self._stored: Array | None = None
        self._direct: Array | None = None
        self._cold = isinstance(source, LocalFile) and source.size > memory_nbytes() // 2
        """Whether most of the file cannot be in memory: what is asked for is not there yet."""
        self._spooled: Spooled | None = None
        """How it is read, if it comes only in order."""
        self._passes: Passes | None = None
        """How it is read from front to back, if it must be inflated."""
        self._of_shards = False
        """Whether single items are taken from the shards that they lie in."""
        self.dtype: np.dtype[Any] = header.dtype
        """The element type, in native byte order."""
        if isinstance(source, Spool):
            self._passes = self._spooled = Spooled(source, header, problems)
        elif hasattr(source, "shard_with") and header.size and not no_array_error(header, ""):
            self._of_shards = True
            self._passes = Passes(source, header, problems) if source.codecs else None
        elif source.buffer is not None or not header.nbytes:
            self._attach()

    # What it is

    @property
    def header(self) -> Header:
        """What the file's header says."""
        return self._header

    @property
    def shape(self) -> tuple[int, ...]:
        """The dimensions, outermost first."""
        return self._header.shape

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return self._header.ndim

    @property
    def size(self) -> int:
        """The number of elements."""
        return self._header.size

    @property
    def nbytes(self) -> int:
        """The bytes of all elements."""
        return self._header.nbytes

    @property
    def name(self) -> str:
        """The name of the file, as errors show it."""
        return self._source.name

    @property
    def codecs(self) -> tuple[str, ...]:
        """The compressions of the file, the outermost first; empty for a raw file."""
        return self._source.codecs

    @property
    def random_access(self) -> bool:
        """Whether any item is read without those before it: not of what must be inflated whole."""
        return self._spooled is None or self._spooled.random_access

    @property
    def far(self) -> bool:
        """Whether it lies in a store, so that what comes next is to be fetched ahead."""
        return getattr(self._source, "far", False)

    @property
    def portable(self) -> bool:
        """Whether it can be sent to another process: not what was opened from a file object."""
        return self._recipe is not None

    @property
    def shards(self) -> tuple[Shard, ...]:
        """The files of an array that lies in several, in order: place, items, bytes, identity."""
        return getattr(self._source, "shards", ())

    @property
    def mode(self) -> Mode:
        """The mode it was opened in: r, c or r+."""
        return self._mode

    @property
    def closed(self) -> bool:
        """Whether `close` was called."""
        return self._closed

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of a scalar: its value is x[()]")
        return self.shape[0]

    def __repr__(self) -> str:
        state = ", closed" if self._closed else ""
        return f"<IdxArray {self.name!r}: {self._header}, mode {self._mode!r}{state}>"

    def _repr_html_(self) -> str:
        """What a notebook shows: the facts, and the first items where they are at hand."""
        from .sheets.notebook import page, peek_count

        size = f"{self.nbytes:,} bytes of data from byte {self._header.data_offset}"
        facts = {
            "type": self._header.element.name,
            "shape": sides(self.shape),
            "size": size,
            "codec": " in ".join(reversed(self.codecs)) or "none",
            "mode": f"{self._mode}, closed" if self._closed else self._mode,
        }
        items, note = None, None
        try:
            if self.ndim:
                items = self.peek(range(min(peek_count(self._header.item_nbytes), len(self))))
            elif not self._closed:
                items = np.asarray(self[()])
        except Exception as error:  # whatever is wrong with the file: to be shown is no failure
            note = str(error)
        return page(f"IdxArray {self.name}", facts, items=items, note=note)

    # Reading

    def __getitem__(self, key: Any) -> Any:
        """What NumPy gives for this key, in native byte order.

        Raises:
            IndexError: as NumPy.
            ValueError: after `close`.
            UnsupportedError: over 64 dimensions.
            FormatError: when a compressed file turns out to be cut or damaged.
        """
        direct = self._direct
        if direct is not None:
            return direct[key]
        if self._of_shards and type(key) is int:
            found = self._item_of_shard(key)
            if found is not None:
                return found
        stored = self._whole()
        if stored is None:
            if not self.shape:
                return np.asarray(self._read_item(0))[key]
            if type(key) is int and -len(self) <= key < len(self):
                return self._read_item(key % len(self))
            selection = select(key, self.shape)
            return self._gather(selection.items)[selection.key]
        result = stored[key]
        if not isinstance(result, np.ndarray):
            return result
        return result.astype(self.dtype)

    def take(self, items: Any, *, out: Array | None = None) -> Array:
        """A batch of items by their numbers, gathered at once.

        Args:
            items: integers of any shape; negative ones count from the end.
            out: where the items go: shape `(*items.shape, *item_shape)`, this dtype, C order.

        Returns:
            `out`, or a fresh array, in native byte order.

        Raises:
            IndexError: for an item that is not there.
        """
        wanted, count, stored = np.asarray(items), len(self), self._whole()
        if self._cold:
            self._announce(in_bounds(wanted, count))
        if self._direct is not None and out is None and wanted.dtype == np.intp and wanted.ndim:
            # NumPy judges the numbers while it gathers, if it makes the result itself.
            return self._direct.take(wanted, 0)
        wanted = in_bounds(wanted, count)
        item_shape = self._header.item_shape
        shape = wanted.shape + item_shape
        target = np.empty(shape, self.dtype) if out is None else out
        checked_out(target, shape, self.dtype, self.name)
        if stored is None:
            unique, inverse = np.unique(wanted, return_inverse=True)
            self._gather(unique).take(inverse.reshape(wanted.shape), 0, target, "clip")
        elif stored.dtype == self.dtype:
            stored.take(wanted, 0, target, "clip")
        else:
            numbers, places = wanted.reshape(-1), target.reshape(wanted.size, *item_shape)
            step = max(1, TAKE_NBYTES // max(1, self._header.item_nbytes))
            for low in range(0, wanted.size, step):
                places[low : low + step] = stored.take(numbers[low : low + step], 0, None, "clip")
        return target

    def _announce(self, items: Array) -> None:
        """Have the disk fetch scattered items side by side, where the map would one by one."""
        assert isinstance(self._source, LocalFile)
        for item in items.reshape(-1).tolist():
            self._source.will_need(self._header.offset_of(item), self._header.item_nbytes)

    def peek(self, items: Any) -> Array | None:
        """Items by number, if they are at hand; None where a look at them would take long.

        At hand is what is mapped or in memory, and what stands in the first 64 MiB of a compressed
        file, which is inflated as far as that. Nothing is asked of a network or of a pipe.
        """
        wanted, nbytes = np.asarray(items, np.intp), self._header.item_nbytes
        if self._closed or wanted.size * nbytes > PEEK_NBYTES:
            return None
        if self._stored is not None or isinstance(self._source, (LocalFile, Memory)):
            return self.take(wanted)
        last = int(wanted.max(initial=-1)) + 1
        if not isinstance(self._source, Spool) or self._recipe is None:
            return None
        file = self._recipe.file
        if last * nbytes > PEEK_NBYTES or (isinstance(file, str) and not os.path.isfile(file)):
            return None
        with self._recipe.open() as fresh:
            assert isinstance(fresh._source, Spool)  # it is the same file
            first = np.empty((last, *self._header.item_shape), self.dtype)
            elements = Elements(fresh._source, self._header, "ignore")
            try:
                elements.readinto(as_bytes(first))
            except FormatError:
                return None
        turn(first, self._header.stored_dtype)
        return first[wanted]

    def read_runs(self, runs: Sequence[range], out: Array) -> None:
        """Fill `out`, native and C-contiguous, with runs of neighbours, one behind the other.

        The system is told of each run while the one before is read, so that no disk waits for us.
        A store is asked for all of them at once.
        """
        header, done = self._header, 0
        if len(runs) > 1 and hasattr(self._source, "readinto_many"):
            ends = itertools.accumulate(len(run) for run in runs)
            places = [
                (run.start, out[end - len(run) : end]) for run, end in zip(runs, ends, strict=True)
            ]
            places.sort(key=itemgetter(0))
            parts = [(header.offset_of(start), place) for start, place in places]
            read_many(self._source, parts, header.stored_dtype)
            return
        for run, coming in zip(runs, [*runs[1:], range(0)], strict=True):
            if isinstance(self._source, LocalFile):
                start, nbytes = header.offset_of(coming.start), len(coming) * header.item_nbytes
                self._source.will_need(start, nbytes)
            self.read_run(run.start, out[done : done + len(run)])
            done += len(run)

    def read_run(self, start: int, out: Array) -> None:
        """Fill `out`, native and C-contiguous, with the items from `start` on.

        A plain file is read by position: one that is not in memory comes faster so than page by
        page through its map.
        """
        if self._passes_by(range(start, start + len(out))):
            for _ in self.passing(out=out):
                pass
            return
        stored = self._whole()
        if stored is None or (self._mode != "c" and isinstance(self._source, LocalFile)):
            self._fill(start, out)
        else:
            out[...] = stored[start : start + len(out)]

    def blocks(self, *, block_nbytes: int = DEFAULT_BLOCK_NBYTES) -> Iterator[Array]:
        """All items in order, in blocks of constant memory.

        A compressed file that is read through for the first time is inflated as the blocks are
        taken, and nothing of it is kept; whoever reads it once more has it kept, as `open` says.
        What is wrong with it is an error in place of the last block, at the latest.

        Args:
            block_nbytes: the bytes of a block, about; at least one item.

        Yields:
            Fresh arrays `(items, *item_shape)` in native byte order; of a scalar, itself once.

        Raises:
            FormatError: when a compressed file turns out to be cut or damaged.
        """
        if self.shape:
            yield from self.blocks_of(range(len(self)), block_nbytes=block_nbytes)
        else:
            yield np.asarray(self[()]).copy()

    def blocks_of(self, items: range, *, block_nbytes: int) -> Iterator[Array]:
        """As `blocks`, of some neighbours. What lies in a store is fetched ahead."""
        if error := no_array_error(self._header, self.name):
            raise error
        step = self._block_items(block_nbytes)
        if self.far:
            self._check_open()
            yield from read_ahead(self._source, self._header, items, step)
            return
        if self._passes_by(items):
            yield from self.passing(block_nbytes=block_nbytes)
            return
        if items == range(len(self)) and not self.random_access:
            self._whole(inflate=True)  # all of it is wanted: an index would not pay
        for start in range(items.start, items.stop, step):
            run = range(start, min(start + step, items.stop))
            block = np.empty((len(run), *self._header.item_shape), self.dtype)
            self.read_run(start, block)
            yield block

    def _passes_by(self, items: range) -> bool:
        """Whether so many items are inflated for whoever wants them now, and not kept."""
        return (
            self._passes is not None
            and items == range(len(self))
            and self._mode != "c"  # what is changed must stand somewhere
            and self._passes.passes_by()
            and not (self._spooled is not None and self._spooled.random_access)
        )

    def passing(
        self, *, block_nbytes: int = DEFAULT_BLOCK_NBYTES, out: Array | None = None
    ) -> Iterator[Array]:
        """As `blocks` of a compressed file, inflated for this one reader, however often.

        Args:
            block_nbytes: the bytes of a block, about.
            out: what the blocks are parts of; fresh ones if None.
        """
        assert self._passes is not None  # nothing else passes by
        self._check_open()
        for block in self._passes.passing(self._block_items(block_nbytes), out):
            yield block
            self._check_open()

    def read_once(self) -> None:
        """Have `blocks` of a pipe not kept either, for who knows that he reads nothing but them."""
        if self._passes is not None:
            self._passes.read_once()

    def keep(self) -> None:
        """Have what is inflated kept from now on, for who knows that he reads it more than once."""
        if self._passes is not None:
            self._passes.keep()

    def __contains__(self, value: Any) -> bool:
        """Whether the value stands anywhere, as NumPy's `in` has it; in constant memory."""
        return any(bool((block == value).any()) for block in self.blocks())

    def __iter__(self) -> Iterator[Any]:
        if not self.shape:
            raise TypeError("iteration over a scalar: its value is x[()]")
        if self._whole() is not None:
            for item in range(len(self)):
                yield self[item]
        else:
            for block in self.blocks():
                yield from block

    @property
    def raw(self) -> Array:
        """The elements as they lie in the file: no copy, the file's own byte order.

        A view of the map (or of the bytes in memory); read-only but in mode "c", where writes
        stay in this process. It stays valid after `close`.

        Raises:
            ValueError: where there is no map: `mmap=False`, file objects, after `close`.
        """
        stored = self._whole(inflate=True)
        if stored is None:
            raise ValueError(f"{self.name} is not mapped: it has no raw view; use x[...]")
        return stored

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        """The whole array in native byte order, for `np.asarray` and everything that uses it.

        A view where one is possible (a mapped uint8 file) unless `copy` is True; `copy=False`
        where a copy is needed is a ValueError, as NumPy has it.
        """
        values = self[()] if self.ndim == 0 else self[...]
        array = np.asarray(values)
        viewed = self._direct is not None and self.ndim > 0
        if dtype is not None and np.dtype(dtype) != array.dtype:
            if copy is False:
                raise ValueError(f"{self.name}: a copy is needed to make it {np.dtype(dtype)}")
            return array.astype(dtype)
        if copy is False and not viewed:
            raise ValueError(f"{self.name}: a copy is needed to turn its byte order or to read it")
        return array.copy() if copy and viewed else array

    # Writing in place

    def __setitem__(self, key: Any, values: Any) -> None:
        """Write values into the file (mode "r+") or into this process alone (mode "c").

        The values are those of a NumPy assignment, and none is changed on its way: a value that
        the element type does not hold is refused. In "r+" the bytes go to the file at once, by
        position, in constant memory; `flush` makes them durable. One thread writes at a time.

        Raises:
            ValueError: in mode "r", and for values of another shape.
            UnsupportedError: when a value would not survive.
        """
        if self._mode == "r":
            raise ValueError(f'{self.name} is open for reading: open it with mode="r+" or "c"')
        self._check_open()
        array = numbers(values)
        if array.dtype != self.dtype:
            array = exactly(array, self.dtype)
        if self._mode == "c":
            stored = self._whole()
            if stored is None:
                raise ValueError(f"{self.name} is not mapped: nothing can be written into it")
            stored[key] = array
            return
        with self._lock:
            if not self.shape:
                block = self[...]
                block[key] = array
                self._scatter(range(1), block.reshape(1))
                return
            whole = select(key, self.shape)
            for selection, part in whole.parts(array, self._header.item_shape, self._block_items()):
                block = self._gather(selection.items)
                block[selection.key] = part
                self._scatter(selection.items, block)

    def flush(self) -> None:
        """Make what was assigned in mode "r+" durable (fsync). `close` does so too."""
        self._check_open()
        if self._mode == "r+":
            self._local_file().sync()

    # Life

    def close(self) -> None:
        """Drop the file. Views taken before stay valid; reading afterwards is a ValueError."""
        if not self._closed:
            try:
                self.flush()
            finally:
                self._closed = True
                self._stored = self._direct = None
                self._source.close()

    def __enter__(self) -> IdxArray:
        self._check_open()
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def shard_recipes(self) -> list[ShardRecipe]:
        """How each shard is opened by itself, with the options of the whole."""
        assert self._recipe is not None  # `portable` has told
        options = tuple({**self._recipe.options, "mode": "r"}.items())
        headers = (replace(self._header, shape=(s.items, *self.shape[1:])) for s in self.shards)
        return [
            ShardRecipe(shard, str(header), options)
            for shard, header in zip(self.shards, headers, strict=True)
        ]

    def __reduce__(self) -> tuple[Any, ...]:
        """A recipe, not the data: the absolute path, the options, and the file's size and time.

        Bytes travel whole. A file object cannot travel.
        """
        self._check_open()
        if self._recipe is None:
            raise TypeError(
                f"{self.name} was opened from a file object, which cannot be pickled: "
                "open it by its path"
            )
        return self._recipe.reopen, self._recipe.arguments

    # Inside

    def _check_open(self) -> None:
        if self._closed:
            raise ValueError(f"{self.name} is closed")

    def _whole(self, *, inflate: bool = False) -> Array | None:
        """All elements as they lie, where they are in memory or mapped; read them if need be.

        Of a file in blocks they are not, unless they must, or as much was inflated as there is.
        """
        if self._stored is None:
            self._check_open()
            if error := no_array_error(self._header, self.name):
                raise error
            if self._spooled is not None:
                if not inflate and self._mode != "c" and self._spooled.in_blocks():
                    return None
                with self._lock:
                    if self._stored is None:
                        self._spooled.load()
                        self._attach()
        return self._stored

    def _attach(self) -> None:
        """Lay an array over the bytes of the source, if one can be laid."""
        header = self._header
        if no_array_error(header, self.name):
            return
        if header.size == 0:
            stored = np.empty(header.shape, header.stored_dtype)
        else:
            buffer = self._source.buffer
            assert buffer is not None
            if self._mode == "c" and (buffer.readonly or isinstance(self._source, Memory)):
                # Bytes of the caller are not ours to change, even where they can be.
                buffer = memoryview(bytearray(buffer))
            flat = np.frombuffer(buffer, header.stored_dtype, header.size, header.data_offset)
            stored = flat.reshape(header.shape)
        if self._mode != "c":
            stored.flags.writeable = False
        self._stored = stored
        if header.element.nbytes == 1 and self._mode != "r+":
            self._direct = stored

    def _block_items(self, block_nbytes: int = DEFAULT_BLOCK_NBYTES) -> int:
        return max(1, block_nbytes // max(1, self._header.item_nbytes))

    def _read_item(self, item: int) -> Any:
        """One item, fresh and native; a number where items are numbers."""
        target = np.empty((1, *self._header.item_shape), self.dtype)
        self._fill(item, target)
        return target[0]

    def _item_of_shard(self, key: int) -> Any:
        """One item of a shard that is in memory, fresh and native; None where it is not."""
        count = self._header.shape[0]
        item = key + count if key < 0 else key
        if not 0 <= item < count:
            return None
        first, stop, held = self._source.shard_with(item)  # type: ignore[attr-defined]
        if held is None:
            return None
        return rows_of(held, stop - first, self._header)[item - first].astype(self.dtype)

    @property
    def _ranges(self) -> Any:
        """The content of a compressed file by ranges, where it is read so."""
        return None if self._spooled is None else self._spooled.ranges

    def _fill(self, start: int, target: Array) -> None:
        """Fill a native array with the items from `start` on, by position."""
        try:
            read_items(self._ranges or self._source, self._header, start, target)
        except UnfitError:  # what is wrong is told by whoever inflates it all
            target[...] = self._inflated()[start : start + len(target)]

    def _gather(self, items: Items) -> Array:
        """A fresh native array of ascending items, by position."""
        if self._ranges is None:
            return gather(self._source, self._header, items, self._block_items())
        assert self._spooled is not None  # nothing else is in blocks
        if self._spooled.prefers_blocks(len(items)):
            with contextlib.suppress(UnfitError):
                return gather(self._ranges, self._header, items, self._block_items())
        picked = slice(items.start, items.stop, items.step) if isinstance(items, range) else items
        return self._inflated()[picked].astype(self.dtype)

    def _inflated(self) -> Array:
        stored = self._whole(inflate=True)
        assert stored is not None  # inflated, it is in memory or mapped
        return stored

    def _scatter(self, items: Items, block: Array) -> None:
        """Write a block of items back to their places in the file."""
        scatter(self._local_file(), self._header, items, block)

    def _local_file(self) -> LocalFile:
        assert isinstance(self._source, LocalFile)  # mode "r+" opens nothing else
        return self._source


def checked_out(out: Array, shape: tuple[int, ...], dtype: np.dtype[Any], name: str) -> Array:
    """`out`, if a result of this shape and dtype can be written straight into it."""
    fault = None
    if not isinstance(out, np.ndarray):
        fault = f"an ndarray, not {type(out).__name__}"
    elif out.shape != shape or out.dtype != dtype:
        fault = f"{dtype} of shape {shape}, not {out.dtype} of shape {out.shape}"
    elif not out.flags.c_contiguous or not out.flags.writeable:
        fault = "writeable and C-contiguous"
    if fault:
        raise ValueError(f"{name}: out must be {fault}")
    return out
