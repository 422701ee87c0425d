"""PyTorch: items as a map-style dataset, batches as a `DataLoader`.

Grey images are `(1, rows, columns)`, and `(items, 1, rows, columns)` in a batch; items of other
dimensions stay as they are stored. Every tensor has memory of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch.utils.data import DataLoader

from ..batching import Scale, Shuffle
from ..dataset import Dataset
from .epochs import Epochs, Gather

__all__ = ["TorchDataset", "TorchLoader", "dataset", "loader"]

Transform = Callable[[torch.Tensor], Any]


class TorchDataset(torch.utils.data.Dataset[Any]):
    """A data set as a map-style dataset, for your own `DataLoader`. Made by `dataset`.

    An int gives `(image, label)`, a tensor and an int; a list of ints a whole batch
    `(images, labels)`, two tensors, gathered at once. A data set opened from raw files pickles as
    their places: workers under fork, spawn and forkserver map them for themselves.
    """

    def __init__(
        self,
        ds: Dataset,
        transform: Transform | None = None,
        *,
        scale: Scale = None,
        dtype: Any = None,
    ) -> None:
        self._gather = Gather(ds, scale, dtype, channels_first=True)
        self._transform = transform

    def __len__(self) -> int:
        return len(self._gather.ds)

    def __getitem__(self, key: Any) -> tuple[Any, Any]:
        images, labels = self._gather(key)
        tensor = self._transformed(torch.from_numpy(images))
        return tensor, int(labels) if np.ndim(labels) == 0 else torch.from_numpy(labels)

    def __getitems__(self, keys: list[int]) -> list[tuple[Any, int]]:
        """Single items, gathered at once: what a `DataLoader` asks for when it collates."""
        images, labels = self._gather(keys)
        tensors = map(self._transformed, torch.from_numpy(images))
        return list(zip(tensors, labels.tolist(), strict=True))

    def _transformed(self, tensor: torch.Tensor) -> Any:
        return tensor if self._transform is None else self._transform(tensor)


class TorchLoader(DataLoader[Any]):
    """A `DataLoader` that, without workers, goes straight to the batches. Made by `loader`.

    It saves the sixth of an epoch of MNIST that goes into minding workers that are not there.
    """

    def __iter__(self) -> Any:
        if self.num_workers or self.pin_memory:
            return super().__iter__()
        return (self.collate_fn(self.dataset[positions]) for positions in self.sampler)


def dataset(
    ds: Dataset,
    transform: Transform | None = None,
    *,
    scale: Scale = None,
    dtype: Any = None,
) -> TorchDataset:
    """Make a map-style dataset, for your own `DataLoader`.

    Args:
        ds: the data set.
        transform: called with each image `(1, rows, columns)`.
        scale: None gives the stored values, "unit" 0 to 1, `(mean, std)` that normalised.
        dtype: a NumPy dtype of the images; float32 for scaled ones.
    """
    return TorchDataset(ds, transform, scale=scale, dtype=dtype)


def loader(
    ds: Dataset,
    batch_size: int = 256,
    *,
    shuffle: Shuffle = True,
    seed: int | None = 0,
    scale: Scale = None,
    dtype: Any = None,
    transform: Transform | None = None,
    drop_last: bool = False,
    epoch: int = 0,
    start: int = 0,
    rank: int = 0,
    world_size: int = 1,
    workers: int = 0,
    pin_memory: bool = False,
    **options: Any,
) -> TorchLoader:
    """Make a `DataLoader` that gathers, scales and transforms whole batches.

    Every pass is the next epoch, in another order that the seed and the number of the epoch alone
    decide, whatever the workers. `loader.sampler.set_epoch(n)` chooses one.

    Args:
        ds: the data set.
        batch_size: the items of a batch, in each process.
        shuffle: True, False, or "blocks" for files larger than memory.
        seed: where the random order begins; None is another one each time.
        scale: None gives the stored values, "unit" 0 to 1, `(mean, std)` that normalised.
        dtype: a NumPy dtype of the images; float32 for scaled ones.
        transform: called with each batch `(items, 1, rows, columns)`, as torchvision's v2
            transforms are; what it draws at random, it draws once for the batch.
        drop_last: leave out a last batch that is not full.
        epoch: the number of the first epoch.
        start: how many of its batches to pass over: with the epoch, training is resumed.
        rank: the number of this process: `torch.distributed.get_rank()`.
        world_size: the number of processes; no item goes to two of them, and all get the same
            number of batches.
        workers: how many processes prepare batches; 0 is this one, and mostly the fastest.
        pin_memory: give out batches in page-locked memory, for a fast way to the accelerator.
        options: everything else that `DataLoader` takes, such as `multiprocessing_context`.

    Yields:
        `[images, labels]`: images `(items, 1, rows, columns)`, labels int64.
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
    return TorchLoader(
        TorchDataset(ds, transform, scale=scale, dtype=dtype),
        batch_size=None,
        sampler=epochs,
        num_workers=workers,
        pin_memory=pin_memory,
        **options,
    )
