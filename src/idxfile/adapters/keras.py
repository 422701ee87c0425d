"""Keras, on any of its backends: batches as a `PyDataset` for `fit`, `evaluate` and `predict`.

Grey images get a channel dimension of 1 where `keras.config.image_data_format()` has it: behind
rows and columns, but for "channels_first". Items of other dimensions stay as they are stored.
"""

from __future__ import annotations

from typing import Any

import keras

from ..batching import Scale, Shuffle
from ..dataset import Dataset
from .epochs import Epochs, Gather

__all__ = ["KerasLoader", "loader"]


class KerasLoader(keras.utils.PyDataset):
    """The batches of an epoch by their numbers; then come those of the next. Made by `loader`."""

    def __init__(self, gather: Gather, epochs: Epochs) -> None:
        super().__init__()
        self._gather = gather
        self._epochs = epochs
        self._batches = list(epochs)
        self._given: set[int] = set()

    def __len__(self) -> int:
        return len(self._batches)

    def __getitem__(self, number: int) -> tuple[Any, Any]:
        self._given.add(number)
        return self._gather(self._batches[number])

    def on_epoch_end(self) -> None:
        """Move to the next epoch, if this one was seen: Keras also ends it after a first look."""
        if len(self._given) == len(self):
            self._batches = list(self._epochs)
        self._given = set()


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
    rank: int = 0,
    world_size: int = 1,
) -> KerasLoader:
    """Make a `PyDataset` that gathers and scales whole batches.

    Every epoch has another order, which the seed and the number of the epoch alone decide. Give
    `fit` `shuffle=False`, or Keras shuffles the batches once more, by a generator of its own; and
    no `steps_per_epoch`, with which its epochs are not those of the data. There are no workers:
    batches come at the speed of memory.

    Args:
        ds: the data set.
        batch_size: the items of a batch, in each process.
        shuffle: True, False, or "blocks" for files larger than memory.
        seed: where the random order begins; None is another one each time.
        scale: None gives the stored values, "unit" 0 to 1, `(mean, std)` that normalised.
        dtype: a NumPy dtype of the images; float32 for scaled ones.
        drop_last: leave out a last batch that is not full.
        epoch: the number of the first epoch: with `fit(…, initial_epoch=n)`, training is resumed.
        rank: the number of this process.
        world_size: the number of processes; no item goes to two of them.

    Returns:
        A `PyDataset` of `(images, labels)`, NumPy arrays in fresh memory; labels int64.
    """
    epochs = Epochs(
        ds,
        batch_size,
        shuffle=shuffle,
        seed=seed,
        drop_last=drop_last,
        epoch=epoch,
        rank=rank,
        world_size=world_size,
    )
    channels_first = keras.config.image_data_format() == "channels_first"
    gather = Gather(ds, scale, dtype, channels_first=channels_first)
    return KerasLoader(gather, epochs)
