"""Images with their labels, as one thing that stays aligned through every operation.

One file of over 400 lines: it is one class, and what keeps it aligned is kept together.
"""

from __future__ import annotations

import operator
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from typing import Any

import numpy as np

from .array import IdxArray
from .batching import Scale, Shuffle, batches, generator, random_order
from .classes import renumbered
from .elements import Array, smallest_type
from .errors import PairError, printable, sides
from .items import Items
from .saving import Pair
from .selection import select
from .summary import Stats, stats

__all__ = ["Dataset"]

_LABELS_AT_ONCE = 1 << 22

_QUICKLY_COUNTED = 1 << 22
"""Up to so many labels are counted to show a data set."""


class Dataset:
    """Images with their labels. Made by `idxfile.open_dataset`, or of two arrays.

    Every operation gives a new data set that is a view: the numbers of the items that are meant,
    over files that stay where they are. Nothing is copied until asked for, and `save` streams.

    Args:
        images: an array-like with items along dimension 0: an IdxArray, an ndarray, `Items`.
        labels: integers, one for each item; or a matrix whose column 0 is the class.
        classes: the names of the classes by label; None where a label has no class.
        columns: the names of the columns of a matrix of labels.
        name: what it is called.
        split: which part of it this is: train, test …

    Example:
        >>> import numpy as np
        >>> from idxfile import Dataset
        >>> ds = Dataset(np.array([[10], [20], [30]], "uint8"), np.array([1, 2, 1]))
        >>> ones = ds.select(labels=[1])
        >>> ones.images[...].tolist(), ones.labels.tolist()
        ([[10], [30]], [1, 1])
    """

    def __init__(
        self,
        images: Any,
        labels: Any,
        *,
        classes: Sequence[str | None] | None = None,
        columns: Sequence[str] | None = None,
        name: str | None = None,
        split: str | None = None,
    ) -> None:
        if not isinstance(images, Items):
            images = images if isinstance(images, IdxArray) else np.asarray(images)
            if not images.ndim:
                raise PairError("images: a scalar has no items", found=[])
            images = Items([images])
        self._images: Items = images
        self._table: Array = np.asarray(labels)
        if self._table.ndim not in (1, 2) or self._table.dtype.kind not in "iu":
            raise PairError(
                f"labels are {self._table.dtype} of shape {self._table.shape}; "
                "expected integers, a vector or a matrix",
                found=list(self._table.shape),
                hint="are images and labels the wrong way round?",
            )
        if len(self._images) != len(self._table):
            raise PairError(
                f"images: {len(self._images):,} items, labels: {len(self._table):,} items",
                found=len(self._table),
                expected=len(self._images),
                hint="they come from different sets, or one of them was cut",
            )
        self.classes: tuple[str | None, ...] | None = None if classes is None else tuple(classes)
        """The name of each class by its label, or None where nothing is known."""
        self.columns: tuple[str, ...] | None = None if columns is None else tuple(columns)
        """The names of the columns of a matrix of labels."""
        self.name = name
        """What the data set is called, or None."""
        self.split = split
        """Which part it is (train, test …), or None."""
        self._labels_recipe: tuple[Any, ...] | None = None

    @property
    def images(self) -> Items:
        """The images, an array-like `(items, rows, columns)`; read when asked."""
        return self._images

    @property
    def labels(self) -> Array:
        """The class of each item, `(items,)`; a view, native byte order."""
        return self.table[:, 0]

    @property
    def table(self) -> Array:
        """All that is known of each item, `(items, columns)`; column 0 is the class."""
        return self._table if self._table.ndim == 2 else self._table[:, np.newaxis]

    @property
    def labels_file(self) -> str | None:
        """The file that the labels lie in; None where they lie in memory."""
        place = self._labels_recipe[1][0] if self._labels_recipe else None
        return place if isinstance(place, str) else None

    def __len__(self) -> int:
        return len(self._table)

    def close(self) -> None:
        """Drop the files of the images, also for data sets that were chosen from this one."""
        self._images.close()

    def __enter__(self) -> Dataset:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __repr__(self) -> str:
        parts = " ".join(part for part in (self.name, self.split) if part)
        kinds = f", {len(self.classes)} classes" if self.classes else ""
        return f"<Dataset{f' {parts}' if parts else ''}: {self._images!r}{kinds}>"

    def _repr_html_(self) -> str:
        """What a notebook shows: facts, the first items where they are at hand, class bars."""
        from .sheets.notebook import page, peek_count

        images = self._images
        facts = {
            "items": f"{len(self):,}",
            "images": f"{images.dtype} {sides(images.item_shape)}",
            "size": f"{images.nbytes:,} bytes of data",
            "labels": f"{self._table.dtype}, {self.table.shape[1]} for each item",
        }
        items, counts, note = None, None, None
        try:
            items = images.peek(peek_count(images.item_nbytes))
            if len(self) <= _QUICKLY_COUNTED:
                counts = {self.class_name(n): count for n, count in self.class_counts().items()}
        except Exception as error:  # whatever is wrong with a file: to be shown is no failure
            note = str(error)
        names = {n: name for n, name in enumerate(self.classes or ()) if name}
        labels = None if items is None else self.labels[: len(items)]
        title = " ".join(filter(None, ("Dataset", self.name, self.split)))
        return page(
            title, facts, items=items, labels=labels, classes=names, counts=counts, note=note
        )

    def __getitem__(self, key: Any) -> tuple[Any, Any]:
        """An int gives `(image, label)`; a slice, integers or a mask a batch `(images, labels)`."""
        if isinstance(key, tuple):
            raise IndexError("a data set has one dimension: its items")
        labels = self.labels[key]
        if np.ndim(labels) == 0:
            return self._images[key], int(labels)
        return self._images[key], np.array(labels)

    def __iter__(self) -> Iterator[tuple[Array, int]]:
        yield from zip(self._images, self.labels.tolist(), strict=True)

    def batches(
        self,
        size: int,
        *,
        shuffle: Shuffle = False,
        seed: int | None = None,
        drop_last: bool = False,
        scale: Scale = None,
        dtype: Any = None,
        out: Array | None = None,
        start: int = 0,
    ) -> Iterator[tuple[Array, Array]]:
        """One pass over all items, a batch at once.

        Args:
            size: the items of a batch.
            shuffle: True draws one random order of all items. "blocks" is for files larger than
                memory: runs of 4 MiB are read in random order, and mixed 64 MiB at a time.
            seed: where the random order begins; the same seed gives the same batches everywhere
                (`numpy.random.Generator(PCG64(seed))`). None is another order each time.
            drop_last: leave out a last batch that is not full.
            scale: None gives the stored values; "unit" integers divided by their maximum (0 to 1
                for uint8); a pair `(mean, std)` that and then normalised.
            dtype: of the images given out; float32 for scaled ones.
            out: an array that every batch of images is written into, to be used again and again:
                `(size, *item_shape)`.
            start: how many batches to pass over: with the seed, a pass is resumed where it was.

        Yields:
            `(images, labels)`; fresh arrays but for `out`.
        """
        return batches(
            self._images,
            self.labels,
            size,
            shuffle=shuffle,
            seed=seed,
            drop_last=drop_last,
            scale=scale,
            dtype=dtype,
            out=out,
            start=start,
        )

    def select(
        self,
        *,
        labels: Sequence[int | str] | int | str | None = None,
        items: Any = None,
        limit: int | None = None,
        where: Callable[[Array, Array], Any] | None = None,
    ) -> Dataset:
        """The items that fit every condition, in their order.

        Args:
            labels: classes, by number or by name.
            items: a slice, integers (in their order, repeated as they are), or a mask.
            limit: at most so many, the first ones.
            where: called with blocks `(images, labels)`; gives a mask of each.

        Raises:
            ValueError: for a class name that is not known, or a limit below 0.
            IndexError: for items that are not there.
        """
        if limit is not None and limit < 0:
            raise ValueError(f"limit is 0 or more, not {limit}")
        if all(condition is None for condition in (items, labels, limit, where)):
            return self
        classes = None if labels is None else self._class_numbers(labels)
        if items is not None:
            positions = _positions(items, len(self))
            if classes is not None:
                positions = positions[np.isin(self.labels[positions], classes)]
        elif classes is not None:
            positions = self._of_classes(classes, limit if where is None else None)
        else:
            most = len(self) if where is not None or limit is None else min(limit, len(self))
            positions = np.arange(most)
        if where is not None:
            positions = self._where(positions, where)
        return self._choose(positions[:limit])

    def shuffle(self, seed: int | None = None) -> Dataset:
        """All items in a random order, which is that of `batches(shuffle=True, seed=seed)`."""
        return self._choose(random_order(generator(seed), len(self)))

    def random_split(
        self, fractions: Sequence[float], *, seed: int | None = None, stratify: bool = False
    ) -> list[Dataset]:
        """Several data sets of random items that share none.

        Args:
            fractions: the part of each, together at most 1; what is over is left out.
            seed: where the random order begins.
            stratify: keep the share of every class in every part.

        Returns:
            A data set for each fraction, its items in random order. Sizes are rounded so that
            they add up.
        """
        fractions = np.atleast_1d(np.asarray(fractions, np.float64)).tolist()
        if not (fractions and all(f >= 0 for f in fractions) and sum(fractions) <= 1 + 1e-9):
            raise ValueError(f"fractions are 0 or more and together at most 1, not {fractions}")
        random = generator(seed)
        groups = [np.arange(len(self))]
        if stratify:
            groups = [np.flatnonzero(self.labels == label) for label in np.unique(self.labels)]
        parts: list[list[Array]] = [[np.arange(0)] for _ in fractions]
        for group in groups:
            order = random.permutation(group)
            bounds = np.round(np.cumsum([0.0, *fractions]) * len(group)).astype(int)
            for part, low, high in zip(parts, bounds, bounds[1:], strict=False):
                part.append(order[low:high])
        mixed = (np.concatenate(part) for part in parts)
        return [self._choose(random.permutation(part) if stratify else part) for part in mixed]

    def merge(self, *others: Dataset) -> Dataset:
        """These items and then those of the others.

        The names of the classes are those that any of them has.

        Raises:
            PairError: for items of another type or shape, other columns or other classes; it names
                the file, and what differs.
        """
        everyone = (self, *others)
        named = next((ds for ds in everyone if ds.classes is not None), self)
        for other in others:
            for before in (self, named):
                _check_fits(other, before)
        images = self._images.join(*(other._images for other in others))
        table = np.concatenate([ds._table for ds in everyone])
        return self._with(images, table, classes=named.classes)

    def relabel(
        self,
        mapping: Mapping[int, int] | Sequence[int],
        *,
        classes: Sequence[str | None] | None = None,
    ) -> Dataset:
        """The same items with other labels.

        Args:
            mapping: the new label for each old one; labels that are not in it stay. Or a new label
                for each item.
            classes: the names of the new classes. None keeps those that are certain: a class of
                the mapping takes its name along, one that several become has none.
        """
        table = self._table.astype(np.int64)
        column = table if table.ndim == 1 else table[:, 0]
        if isinstance(mapping, Mapping):
            for label, new in mapping.items():
                column[self.labels == label] = new
            if classes is None and self.classes is not None:
                classes = renumbered(self.classes, mapping)
        elif len(mapping) == len(self):
            column[...] = np.asarray(mapping)
        else:
            raise PairError(f"{len(mapping):,} labels for {len(self):,} items")
        changed = self._with(self._images, table)
        changed.classes = None if classes is None else tuple(classes)
        return changed

    def transpose(self) -> Dataset:
        """The same items with rows and columns exchanged."""
        return self._view(self._images.transpose(), self._table)

    def stats(self) -> Stats:
        """The statistics of the images, in one pass."""
        return stats(self._images)

    def class_counts(self) -> dict[int, int]:
        """How many items each label has, by ascending label; named classes without any are 0."""
        counts = {n: 0 for n, name in enumerate(self.classes or ()) if name is not None}
        labels, found = np.unique(self.labels, return_counts=True)
        counts.update(zip(labels.tolist(), found.tolist(), strict=True))
        return dict(sorted(counts.items()))

    def class_name(self, label: int) -> str:
        """The name of a class, or its number where none is known."""
        names = self.classes or ()
        return (names[label] if 0 <= label < len(names) else None) or str(label)

    def save(
        self,
        folder: str | os.PathLike[str],
        *,
        codec: str | None = None,
        blocked: bool = False,
        shards: int | None = None,
        shard_nbytes: int | None = None,
        executor: Executor | None = None,
    ) -> tuple[str, str]:
        """Write the pair as IDX files into a folder, streaming: constant memory, each file atomic.

        The names are MNIST's: `train-images-idx3-ubyte` and `train-labels-idx1-ubyte`, after the
        split, with the codec's suffix. Class names go to `classes.txt`, a line for each label.

        A pair of the same names that is there is replaced (shards in a store are not); another pair
        of the same split is not touched, and would stand beside the new one, so that the folder is
        refused.

        Args:
            folder: made if need be; or the address of one in a store.
            codec: gz, bz2, xz, zst, or None for raw.
            blocked: gz only: many small members, for random access.
            shards: write each of the two as so many files, with a manifest.
            shard_nbytes: likewise, as many as keep files of images at about so many bytes.
            executor: who gathers and writes the images: any `concurrent.futures.Executor` whose
                workers see the folder. A raw file is written by all; a shard by one of them.

        Returns:
            The paths of images and labels; of shards, the patterns that stand for them.

        Raises:
            PairError: for a folder with another pair of this split.
            FileExistsError: for shards in another number, or in a store.
            ValueError: for an executor together with a codec, and no shards.
        """
        pair = self._pair()
        return pair.write(
            os.fsdecode(folder),
            codec=codec,
            blocked=blocked,
            shards=pair.shard_count(shards, shard_nbytes),
            executor=executor,
        )

    def saved_names(
        self,
        folder: str | os.PathLike[str],
        *,
        codec: str | None = None,
        shards: int | None = None,
        shard_nbytes: int | None = None,
    ) -> tuple[str, str]:
        """The paths that `save` would write; of shards, the patterns that stand for them."""
        pair = self._pair()
        return pair.names(os.fsdecode(folder), codec, pair.shard_count(shards, shard_nbytes))

    def __getstate__(self) -> dict[str, Any]:
        """Labels that lie in a file travel as the images do: as the place of the file."""
        state = self.__dict__.copy()
        if self._labels_recipe is not None:
            del state["_table"]
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        if self._labels_recipe is not None:
            reopen, arguments = self._labels_recipe
            with reopen(*arguments) as array:
                table = array[...]
            index = self._images._index
            self._table = table if index is None else table[index]

    # Inside

    def _pair(self) -> Pair:
        """What is saved: the labels in the smallest type that holds them all."""
        labels = self._table.astype(smallest_type(self._table) or self._table.dtype, copy=False)
        return Pair(self._images, labels, self.split or "train", self.classes)

    def _with(
        self, images: Items, table: Array, classes: Sequence[str | None] | None = None
    ) -> Dataset:
        return Dataset(
            images,
            table,
            classes=self.classes if classes is None else classes,
            columns=self.columns,
            name=self.name,
            split=self.split,
        )

    def _view(self, images: Items, table: Array) -> Dataset:
        """Items of the same file, with the labels that they have in theirs."""
        view = self._with(images, table)
        view._labels_recipe = self._labels_recipe
        return view

    def _choose(self, positions: Array) -> Dataset:
        return self._view(self._images.choose(positions), self._table[positions])

    def _class_numbers(self, labels: Any) -> list[int]:
        wanted = [labels] if isinstance(labels, (str, int, np.integer)) else list(labels)
        names = {name: number for number, name in enumerate(self.classes or ()) if name is not None}
        for label in wanted:
            if isinstance(label, str) and label not in names:
                known = f"; there are {', '.join(names)}" if names else ", for no names are known"
                raise ValueError(f"no class is called {label!r}{known}")
        return [names[n] if isinstance(n, str) else operator.index(n) for n in wanted]

    def _where(self, positions: Array, where: Callable[[Array, Array], Any]) -> Array:
        step = max(1, (1 << 23) // max(1, self._images.item_nbytes))
        masks: list[Array] = [np.empty(0, bool)]
        for start in range(0, len(positions), step):
            part = positions[start : start + step]
            masks.append(np.asarray(where(self._images.take(part), self.labels[part]), bool))
        chosen: Array = positions[np.concatenate(masks)]
        return chosen

    def _of_classes(self, classes: Any, limit: int | None) -> Array:
        """The positions of all items of some classes, or of so many: labels are read in blocks."""
        found, count = [np.arange(0)], 0
        for start in range(0, len(self), _LABELS_AT_ONCE):
            if limit is not None and count >= limit:
                break
            block = self.labels[start : start + _LABELS_AT_ONCE]
            found.append(np.flatnonzero(np.isin(block, classes)) + start)
            count += found[-1].size
        return np.concatenate(found)


def _positions(items: Any, count: int) -> Array:
    """The positions that a NumPy key means, as no more memory than they take themselves."""
    chosen = select(items, (count,))
    near = chosen.items
    if isinstance(near, range):
        near = np.arange(near.start, near.stop, near.step)
    return np.atleast_1d(near[chosen.key])


def _check_fits(ds: Dataset, before: Dataset) -> None:
    """Make sure that a data set can stand behind another one.

    Raises:
        PairError: if not.
    """
    named = before.images.name or "the ones before"
    for what, found, expected in (
        ("items", *(f"{s.images.dtype} {sides(s.images.item_shape)}" for s in (ds, before))),
        ("columns of labels", *(sides(s.table.shape[1:]) for s in (ds, before))),
        ("classes", ds.classes, before.classes),
    ):
        if found != expected and None not in (found, expected):
            raise PairError(
                f"its {what} are {_in_words(found)}; those of {printable(named)} are "
                f"{_in_words(expected)}",
                file=ds.images.name,
                found=found,
                expected=expected,
                hint="only what has equal items and the same classes makes one data set"
                + ("; relabel one of them first" if what == "classes" else ""),
            )


def _in_words(value: Any) -> str:
    return value if isinstance(value, str) else ", ".join("-" if n is None else n for n in value)
