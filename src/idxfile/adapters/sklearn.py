"""scikit-learn: a data set as a `Bunch`, as `sklearn.datasets.load_digits` gives it."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import Bunch

from ..batching import Scale
from ..dataset import Dataset
from .epochs import Gather

__all__ = ["dataset"]


def dataset(ds: Dataset, *, scale: Scale = None, dtype: Any = None) -> Bunch:
    """Read a data set into a `Bunch`.

    Args:
        ds: the data set.
        scale: None gives the stored values, "unit" 0 to 1, `(mean, std)` that normalised.
        dtype: a NumPy dtype of the images; float32 for scaled ones.

    Returns:
        `data` `(items, features)` and `images` `(items, rows, columns)`, two views of one fresh
        array; `target` `(items,)`, int64; `feature_names`; `target_names`, the names of the
        classes by label (where none are known, the labels that occur); `frame`, None; `DESCR`.
    """
    items = Gather(ds, scale, dtype)
    images, target = items(np.arange(len(ds)))
    shape = ds.images.item_shape
    images = images.reshape(len(ds), *shape)
    names = [ds.class_name(label) for label in range(len(ds.classes or ()))]
    return Bunch(
        data=images.reshape(len(ds), int(np.prod(shape))),
        target=target,
        frame=None,
        feature_names=["_".join(map(str, ("pixel", *place))) for place in np.ndindex(shape)],
        target_names=np.array(names) if names else np.unique(target),
        images=images,
        DESCR=_described(ds),
    )


def _described(ds: Dataset) -> str:
    name = " ".join(part for part in (ds.name, ds.split) if part) or "An IDX data set"
    counts = "\n".join(
        f"{ds.class_name(label):>16}  {count:,}" for label, count in ds.class_counts().items()
    )
    return f"{name}\n\n{len(ds):,} items of {ds.images.dtype} {ds.images.item_shape}\n\n{counts}\n"
