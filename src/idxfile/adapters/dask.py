"""Dask: files as arrays that are read by whoever computes, arrays as files, and its workers.

What travels to a worker is a recipe: the place of the file, never its data. Workers see the files
under the same places as the process that sends them: a shared file system, or addresses.
"""

from __future__ import annotations

import contextlib
import pickle
import re
from collections.abc import Iterable, Iterator
from concurrent.futures import BrokenExecutor, Executor
from functools import lru_cache
from typing import Any

import numpy as np

from ..array import IdxArray, open
from ..dataset import Dataset
from ..elements import Array
from ..errors import MissingExtraError, UnsupportedError
from ..header import IDX_TYPE_NAMES
from ..items import Items
from ..shards import ShardFacts
from ..slabs.filling import Ground, laid_out
from ..slabs.interrupts import deaf_children, undisturbed
from ..slabs.planning import SLAB_NBYTES, plan
from ..slabs.running import AHEAD, Engine
from ..slabs.spreading import Part, Spread, spread_out

try:
    import dask.array as da
    from dask import compute, delayed
    from dask.base import tokenize
except ImportError as error:
    raise MissingExtraError(
        f"this needs the package {error.name}", hint="pip install 'idxfile[dask]'"
    ) from error

__all__ = ["dataset", "executor", "from_idx", "to_idx"]

_SMALL_NBYTES = 1 << 12
"""Up to here a recipe is written into every task; beyond it is sent to each worker once."""

_OPEN_FILES = 16
"""Files that a worker keeps open between one chunk and the next."""

_ADDRESS = re.compile(r"inproc://.+|.+:\d+(/.*)?")


def from_idx(file: Any, *, chunks: Any = None, slab_nbytes: int = SLAB_NBYTES) -> da.Array:
    """A file as a Dask array. Nothing but its header is read before something is computed.

    Of a slice only what it touches is read. The name of the array follows from the place, size and
    time of the file (the version of a remote object), so that equal work is known to be equal; a
    file that was changed meanwhile is an error where it is read.

    Args:
        file: whatever `open` takes, one of many shards too; or an `IdxArray`, or `Items`.
        chunks: as `dask.array.from_array` takes it. None cuts dimension 0 as `plan` does: no chunk
            crosses from one shard into the next, a compressed file without an index is one.
        slab_nbytes: the bytes of a chunk, about, where `chunks` is None.

    Returns:
        An array in native byte order, for every scheduler.

    Raises:
        FormatError: when it is not a right IDX file.
        TypeError: for a file object, which cannot travel: open it by its path.

    Example:
        >>> from idxfile.adapters.dask import from_idx
        >>> x = from_idx(bytes.fromhex("00000802 00000002 00000002 01020304"))
        >>> x.sum(axis=1).compute().tolist()
        [3, 7]
    """
    opened = file if isinstance(file, (IdxArray, Items)) else open(file, mmap=False)
    if chunks is None:
        chunks = _chunks(opened, slab_nbytes)
    return _array(_Lazy(opened), chunks)


def dataset(ds: Dataset, *, slab_nbytes: int = SLAB_NBYTES) -> tuple[da.Array, da.Array]:
    """The images and labels of a data set, as two Dask arrays cut at the same items.

    Args:
        ds: the data set. One that was opened from files travels as their places.
        slab_nbytes: the bytes of a chunk of images, about.

    Returns:
        `(images, labels)`.
    """
    chunks = _chunks(ds.images, slab_nbytes)
    return _array(_Lazy(ds, "images"), chunks), _array(_Lazy(ds, "labels"), chunks[:1])


def to_idx(
    array: da.Array, file: Any, *, shards: int | None = None, shard_nbytes: int | None = None
) -> None:
    """Compute an array and write it as an IDX file or as shards, on the scheduler in charge.

    Each chunk is written by whoever computed it, to its place in a file that has its whole length
    from the beginning and gets its name at the end. Workers see the file under the same path. An
    object of S3 is sent in parts by whoever computed them; chunks are joined until they are long
    enough for one (32 MiB, or a ten thousandth of the object).

    Shards are filled in the same way. Compressed ones and those in a store are written by one
    worker each, from front to back, which has all chunks of its shard in memory then.

    Args:
        array: of an element type that IDX has, and of known shape.
        file: the path to write, or the address of an object.
        shards: write so many files instead of one, `x-00000-of-00042.idx` … for `x.idx`, and a
            manifest beside them; any store takes them, and the suffix may be that of a codec.
        shard_nbytes: likewise, files of about so many bytes before compression.

    Raises:
        UnsupportedError: for another element type, an unknown shape, masked values, a single file
            that is compressed, and for a store that takes no parts from many.
        FileExistsError: for another set of shards of this name; in a store, for any.
        OSError: as the system gives it.

    Example:
        >>> import dask.array as da, idxfile, os, tempfile
        >>> from idxfile.adapters.dask import to_idx
        >>> path = os.path.join(tempfile.mkdtemp(), "squares.idx")
        >>> to_idx(da.arange(5, chunks=2, dtype="int32") ** 2, path)
        >>> idxfile.read(path).tolist()
        [0, 1, 4, 9, 16]
    """
    if any(np.isnan(size) for size in array.shape):
        raise UnsupportedError(
            f"an array of shape {array.shape}: its length is not known",
            found=array.shape,
            hint="array.compute_chunk_sizes() finds it out",
        )
    _refuse_masks(array._meta)
    if array.dtype.name not in IDX_TYPE_NAMES:
        raise UnsupportedError(
            f"an IDX file cannot hold {array.dtype.name}",
            found=array.dtype.name,
            expected=IDX_TYPE_NAMES,
            hint='array.astype("uint8") takes the type that holds all values',
        )
    whole_items = array.rechunk(dict.fromkeys(range(1, array.ndim), -1))
    shape = [int(size) for size in array.shape]
    if shards is not None or shard_nbytes is not None:
        with spread_out(
            file, array.dtype, shape, shards=shards, shard_nbytes=shard_nbytes
        ) as spread:
            spread.written += _shards_written(whole_items, spread)
        return
    with laid_out(file, array.dtype, shape) as ground:
        if shape and ground.step > 1:
            ranges = ground.cut(max(whole_items.chunks[0], default=1))
            whole_items = whole_items.rechunk({0: tuple(high - low for low, high in ranges) or -1})
        da.store([whole_items], [_Target(ground)], lock=False)


def _shards_written(array: da.Array, spread: Spread) -> Iterable[ShardFacts]:
    """Compute the items of each shard, and write them."""
    pieces = [array[part.first : part.stop] for part in spread.parts]
    if spread.by_position:
        da.store(pieces, [_Target(part.laid()) for part in spread.parts], lock=False)
        tasks = [delayed(part.judged, pure=False)() for part in spread.parts]
    else:
        write = delayed(_shard_written, pure=False)
        whole = [piece.rechunk(-1).to_delayed().item() for piece in pieces]
        tasks = [write(part, block) for part, block in zip(spread.parts, whole, strict=True)]
    yield from compute(*tasks)


def _shard_written(part: Part, chunk: Any) -> ShardFacts:
    """Write a shard from front to back."""
    return part.write([_checked(chunk, part.header.shape, part)])


@contextlib.contextmanager
def executor(address: Any = None, *, workers: int | None = None) -> Iterator[Executor]:
    """The workers of a Dask cluster, as an executor for `idxfile.run` and every `executor=`.

    When a worker is lost its slabs go to another one, up to three times.

    Args:
        address: of a scheduler, `tcp://HOST:PORT`; or a `distributed.Client`. None starts worker
            processes here, and ends them.
        workers: how many processes to start; None for as many as there are processors.

    Yields:
        A `concurrent.futures.Executor`. What is queued is cancelled when the block is left by an
        exception.

    Raises:
        MissingExtraError: without the package distributed.
        OSError: when nobody answers at the address.
        BrokenExecutor: when the same slab was lost with every worker that ran it.
    """
    try:
        from distributed import Client, KilledWorker, LocalCluster
    except ImportError as error:
        raise MissingExtraError(
            f"this needs the package {error.name}", hint="pip install 'idxfile[dask]'"
        ) from error
    with contextlib.ExitStack() as stack:
        client = address
        if not isinstance(client, Client):
            if address is not None and not _ADDRESS.fullmatch(address):
                raise ConnectionError(
                    f"{address!r} is no address of a Dask scheduler, as tcp://HOST:PORT is"
                )
            if address is None:
                with undisturbed(), deaf_children():  # Ctrl-C is for this process alone
                    cluster = LocalCluster(
                        n_workers=workers,
                        threads_per_worker=1,
                        dashboard_address="127.0.0.1:0",
                        silence_logs="CRITICAL",
                    )
                    address = stack.enter_context(cluster)
            client = stack.enter_context(Client(address, set_as_default=False))
        pool = client.get_executor(pure=False)
        try:
            yield Engine(pool, ahead=max(AHEAD, 2 * sum(client.nthreads().values())))
        except BaseException as error:
            pool.shutdown(wait=False)
            if isinstance(error, KilledWorker):
                raise BrokenExecutor(str(error)) from error
            raise


def _array(lazy: _Lazy, chunks: Any) -> da.Array:
    return da.from_array(
        lazy,
        chunks,
        name=f"idx-{tokenize(lazy, chunks)}",
        asarray=True,
        inline_array=lazy.nbytes_of_recipe <= _SMALL_NBYTES,
        meta=np.empty((0,) * lazy.ndim, lazy.dtype),
    )


def _chunks(array: IdxArray | Items, slab_nbytes: int) -> tuple[Any, ...]:
    """The sizes of the chunks of each dimension: slabs along dimension 0, all of the others."""
    if not array.ndim:
        return ()
    if (
        isinstance(array, Items)
        and len(array.arrays) == 1
        and isinstance(array.arrays[0], IdxArray)
    ):
        array = array.arrays[0]
    if isinstance(array, IdxArray):
        items = tuple(len(slab) for slab in plan(array, slab_nbytes=slab_nbytes))
    else:
        step = max(1, slab_nbytes // max(1, array.item_nbytes))
        items = tuple(min(step, len(array) - start) for start in range(0, len(array), step))
    return (items or (0,), *((size,) for size in array.shape[1:]))


class _Lazy:
    """An array as Dask asks for it, by slices; it pickles as a recipe.

    Args:
        owner: an array, or a data set.
        part: the attribute of the data set that is the array.
    """

    def __init__(self, owner: Any, part: str | None = None) -> None:
        self._owner = owner
        self._part = part
        self._array = owner if part is None else getattr(owner, part)
        self._recipe = pickle.dumps(owner)
        self.shape: tuple[int, ...] = self._array.shape
        self.dtype: np.dtype[Any] = self._array.dtype
        self.ndim = len(self.shape)

    @property
    def nbytes_of_recipe(self) -> int:
        """How much travels."""
        return len(self._recipe)

    def __getitem__(self, key: Any) -> Array:
        return np.asarray(self._array[key])

    def __dask_tokenize__(self) -> Any:
        owner = self._owner
        recipe = owner.__reduce__()[1] if isinstance(owner, IdxArray) else self._recipe
        return recipe, self._part

    def __reduce__(self) -> tuple[Any, ...]:
        return _arrived, (self._recipe, self._part)


@lru_cache(_OPEN_FILES)
def _arrived(recipe: bytes, part: str | None) -> _Lazy:
    return _Lazy(pickle.loads(recipe), part)  # noqa: S301  of our own making


class _Target:
    """A file to be filled, as `dask.array.store` writes to it."""

    def __init__(self, ground: Ground) -> None:
        self._ground = ground

    def __setitem__(self, key: tuple[slice, ...], chunk: Any) -> None:
        expected = tuple(part.stop - part.start for part in key)
        block = _checked(chunk, expected, self._ground)
        self._ground.write(key[0].start if key else 0, block if key else block.reshape(1))


def _checked(chunk: Any, shape: tuple[int, ...], target: Ground | Part) -> Array:
    """A chunk as what it was said to be.

    Raises:
        UnsupportedError: when it is something else, or masked, of which Dask may not have known.
    """
    _refuse_masks(chunk, target.name)
    element = target.header.dtype.name
    block = np.asarray(chunk)
    if block.dtype.name != element or block.shape != shape:
        raise UnsupportedError(
            f"a chunk is {block.dtype.name} {block.shape}, and was to be {element} {shape}",
            file=target.name,
            found=block.dtype.name,
            expected=element,
            hint="tell Dask the right dtype= and chunks= where the array is made",
        )
    return block


def _refuse_masks(array: Any, name: str | None = None) -> None:
    """Refuse masked values, which `np.asarray` would replace by what lies under the mask."""
    if isinstance(array, np.ma.MaskedArray):
        raise UnsupportedError(
            "a mask has no place in an IDX file",
            file=name,
            hint="dask.array.ma.filled(array, value) gives what is masked a value",
        )
