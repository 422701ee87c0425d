"""What every loader shares: the order of its batches, and how one is gathered.

Its keywords mean the same in every framework:

    batch_size, drop_last     as in `Dataset.batches`
    shuffle, seed             epoch e is in the order of `ds.batches(…, seed=seed + e)`
    scale, dtype              as in `Dataset.batches`
    epoch, start              the first epoch, and how many of its batches to pass over: to resume
    rank, world_size          this process, and how many there are: each gets items of its own
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ..batching import Scale, Scaling, Shuffle, block_order, generator
from ..dataset import Dataset
from ..elements import Array

__all__ = ["Epochs", "Gather"]


class Epochs:
    """The positions of the items of each batch. Every pass is one epoch, then comes the next.

    With several processes, the order of an epoch is drawn once for all, and dealt out: no item
    goes to two of them, and all get the same number. What does not divide is left out, and with
    `shuffle` is another few items each epoch.

    Args:
        ds: the data set.
        batch_size: the items of a batch, in each process.
        shuffle: True, False or "blocks", as in `Dataset.batches`.
        seed: of epoch 0; None is another order each time.
        drop_last: leave out a last batch that is not full.
        epoch: the number of the first epoch.
        start: how many batches of it to pass over.
        rank: the number of this process, from 0.
        world_size: the number of processes.

    Example:
        >>> import numpy as np
        >>> from idxfile import Dataset
        >>> ds = Dataset(np.zeros((5, 2, 2), "uint8"), np.arange(5))
        >>> [batch.tolist() for batch in Epochs(ds, 2, shuffle=False)]
        [[0, 1], [2, 3], [4]]
    """

    def __init__(
        self,
        ds: Dataset,
        batch_size: int,
        *,
        shuffle: Shuffle = True,
        seed: int | None = 0,
        drop_last: bool = False,
        epoch: int = 0,
        start: int = 0,
        rank: int = 0,
        world_size: int = 1,
    ) -> None:
        if batch_size < 1:
            raise ValueError(f"a batch has at least one item, not {batch_size}")
        if shuffle not in (True, False, "blocks"):
            raise ValueError(f'shuffle must be True, False or "blocks", not {shuffle!r}')
        if not 0 <= rank < world_size:
            raise ValueError(f"rank counts from 0 to world_size - 1 = {world_size - 1}, not {rank}")
        if seed is None and shuffle and world_size > 1:
            raise ValueError("processes that share an order need the same seed, not None")
        self.epoch = epoch
        """The number of the next epoch."""
        self.start = start
        """How many of its batches are passed over; 0 after it."""
        self._items = len(ds)
        self._item_nbytes = ds.images.item_nbytes
        self._batch_size = batch_size
        self._shuffle = shuffle
        self._seed = seed
        self._rank = rank
        self._world_size = world_size
        count = self._items // world_size
        self._batches = count // batch_size if drop_last else -(-count // batch_size)

    def __len__(self) -> int:
        """The number of batches of an epoch, in this process."""
        return self._batches

    def __iter__(self) -> Iterator[Array]:
        # Counted when the first batch is asked for: torch makes two iterators, and uses one.
        order, first, size = self._order(), self.start, self._batch_size
        self.set_epoch(self.epoch + 1)
        for number in range(first, self._batches):
            yield order[number * size : (number + 1) * size]

    def set_epoch(self, epoch: int) -> None:
        """Choose the next epoch, from its first batch on."""
        self.epoch = epoch
        self.start = 0

    def _order(self) -> Array:
        """The items of this process in the order of this epoch."""
        seed = None if self._seed is None else self._seed + self.epoch
        if self._shuffle == "blocks":
            order = np.concatenate([*block_order(self._items, self._item_nbytes, seed)])
        elif self._shuffle:
            order = generator(seed).permutation(self._items)
        else:
            order = np.arange(self._items)
        whole = self._items - self._items % self._world_size
        return order[self._rank : whole : self._world_size]


class Gather:
    """Items by their positions, as networks take them. Pickles as its data set does.

    Args:
        ds: the data set.
        scale: None, "unit" or `(mean, std)`, as in `Dataset.batches`.
        dtype: of the images; float32 for scaled ones.
        label_dtype: of the labels.
        channels_first: where grey items get a channel dimension of 1: before or behind their rows
            and columns. Items that have not two dimensions stay as they are stored.
    """

    def __init__(
        self,
        ds: Dataset,
        scale: Scale = None,
        dtype: Any = None,
        label_dtype: Any = "int64",
        channels_first: bool = False,
    ) -> None:
        self.ds = ds
        self._options = scale, dtype, label_dtype, channels_first
        self._scaling = Scaling(ds.images.dtype, scale, dtype)
        self._label_dtype = np.dtype(label_dtype)
        self._view: tuple[Any, ...] = (...,)
        if len(ds.images.item_shape) == 2:
            self._view = (..., None, slice(None), slice(None)) if channels_first else (..., None)

    def __call__(self, positions: Any) -> tuple[Array, Any]:
        """Fresh images `(*positions.shape, …)` and their labels."""
        positions = np.asarray(positions)
        images = self.ds.images.take(positions)
        if not self._scaling.trivial:
            stored, images = images, np.empty(images.shape, self._scaling.dtype)
            self._scaling.apply(stored, images)
        return images[self._view], self.ds.labels[positions].astype(self._label_dtype)

    def __reduce__(self) -> tuple[Any, ...]:
        return Gather, (self.ds, *self._options)
