"""JAX: batches as arrays on its devices; and items for Grain, which moves them through pipelines.

Grey images are `(rows, columns, 1)`, and `(items, rows, columns, 1)` in a batch, as Flax has
them; items of other dimensions stay as they are stored. Labels are int32.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import jax
import numpy as np

from ..batching import Scale, Shuffle
from ..dataset import Dataset
from .epochs import Epochs, Gather

__all__ = ["GrainSource", "JaxLoader", "dataset", "loader"]


class JaxLoader:
    """Batches on devices. Every pass is the next epoch. Made by `loader`."""

    def __init__(self, gather: Gather, epochs: Epochs, device: Any) -> None:
        self._gather = gather
        self._put = partial(jax.device_put, device=device)
        if isinstance(device, jax.sharding.Sharding):
            self._put = partial(
                jax.tree.map, partial(jax.make_array_from_process_local_data, device)
            )
        self.epochs = epochs
        """The order of the batches; `epochs.set_epoch(n)` chooses the next epoch."""

    def __len__(self) -> int:
        return len(self.epochs)

    def __iter__(self) -> Iterator[tuple[jax.Array, jax.Array]]:
        return map(self._batch, self.epochs)

    def _batch(self, positions: Any) -> tuple[jax.Array, jax.Array]:
        images, labels = self._put(self._gather(positions))
        return images, labels


class GrainSource:
    """A data set as Grain's `RandomAccessDataSource`. Made by `dataset`."""

    def __init__(self, ds: Dataset, slab_items: int | None, scale: Scale, dtype: Any) -> None:
        self._gather = Gather(ds, scale, dtype, "int32")
        self._slab_items = slab_items

    def __len__(self) -> int:
        return -(-len(self._gather.ds) // (self._slab_items or 1))

    def __getitem__(self, number: int) -> tuple[Any, Any]:
        """An item `(image, label)`, or a slab `(images, labels)`: NumPy, fresh memory."""
        if not 0 <= number < len(self):
            raise IndexError(f"{number} is not one of {len(self)}")
        if self._slab_items is None:
            return self._gather(number)
        start = number * self._slab_items
        return self._gather(np.arange(start, min(start + self._slab_items, len(self._gather.ds))))

    def __repr__(self) -> str:
        """The same in every run: Grain compares it when it resumes from a checkpoint."""
        return f"GrainSource({self._gather.ds!r}, slab_items={self._slab_items})"


def dataset(
    ds: Dataset, *, slab_items: int | None = None, scale: Scale = None, dtype: Any = None
) -> GrainSource:
    """Make a source for Grain: `grain.MapDataset.source(dataset(ds)).shuffle(0).batch(256)`.

    It is safe to use from many threads, and pickles as its data set does.

    Args:
        ds: the data set.
        slab_items: give out slabs of so many neighbours as one element, which is many times faster
            than one by one: `dataset(ds.shuffle(0), slab_items=256)` gives ready batches, and
            Grain shuffles those.
        scale: None gives the stored values, "unit" 0 to 1, `(mean, std)` that normalised.
        dtype: a NumPy dtype of the images; float32 for scaled ones.
    """
    return GrainSource(ds, slab_items, scale, dtype)


def loader(
    ds: Dataset,
    batch_size: int = 256,
    *,
    shuffle: Shuffle = True,
    seed: int | None = 0,
    scale: Scale = None,
    dtype: Any = None,
    drop_last: bool = False,
    epoch: int = 0,
    start: int = 0,
    rank: int = 0,
    world_size: int = 1,
    device: Any = None,
) -> JaxLoader:
    """Make an iterable of batches on a device. Every pass is the next epoch.

    Args:
        ds: the data set.
        batch_size: the items of a batch, in each process.
        shuffle: True, False, or "blocks" for files larger than memory.
        seed: where the random order begins; None is another one each time.
        scale: None gives the stored values, "unit" 0 to 1, `(mean, std)` that normalised.
        dtype: a NumPy dtype of the images; float32 for scaled ones.
        drop_last: leave out a last batch that is not full: `jit` compiles once for each shape.
        epoch: the number of the first epoch.
        start: how many of its batches to pass over: with the epoch, training is resumed.
        rank: the number of this process: `jax.process_index()`.
        world_size: the number of processes: `jax.process_count()`.
        device: where batches go: a device, or a sharding, whose first axis then cuts the batch;
            each process brings its own part. None is JAX's default device.

    Yields:
        `(images, labels)`: images `(items, rows, columns, 1)`, labels int32.
    """
    epochs = Epochs(
        ds,
        batch_size,
        shuffle=shuffle,
        seed=seed,
        drop_last=drop_last,
        epoch=epoch,
        start=start,
        rank=rank,
        world_size=world_size,
    )
    return JaxLoader(Gather(ds, scale, dtype, "int32"), epochs, device)
