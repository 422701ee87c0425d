"""Which items are shown, and in which order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ...batching import generator
from ...elements import Array
from .expression import ExpressionError, matches, names_in
from .figures import COLUMNS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .exhibit import Exhibit

__all__ = ["NotYetError", "Query", "confusion", "ordered"]

MOST_CONFUSED = 200
"""The rows and columns of a confusion matrix, at most."""


class NotYetError(Exception):
    """The figures that were asked for are still being counted."""


@dataclass(frozen=True)
class Query:
    """What was asked for; each part narrows what is left."""

    classes: tuple[int, ...] = ()
    """Only items of these classes; empty is all."""
    start: int = 0
    stop: int | None = None
    where: str = ""
    """A condition."""
    sort: str = ""
    """A column, with a minus in front for the greatest first; or `shuffle`."""
    seed: int = 0
    rival: int | None = None
    """The other labels that `other` stands for."""

    @classmethod
    def of(cls, words: Mapping[str, Any]) -> Query:
        """What the words of a request mean.

        Raises:
            ValueError: for words that mean nothing.
        """
        classes = str(words.get("classes", ""))
        stop, rival = str(words.get("to", "")), str(words.get("rival", ""))
        return cls(
            tuple(int(word) for word in classes.split(",")) if classes else (),
            int(words.get("from") or 0),
            int(stop) if stop else None,
            str(words.get("where", "")).strip(),
            str(words.get("sort", "")),
            int(words.get("seed") or 0),
            int(rival) if rival else None,
        )

    @property
    def natural(self) -> bool:
        """Whether it means all items as they lie."""
        return self == Query(rival=self.rival, seed=self.seed)


def ordered(exhibit: Exhibit, query: Query) -> Array:
    """The numbers of the items that a query means, in its order; uint32.

    Raises:
        NotYetError: when it needs figures that are not there yet.
        ExpressionError: for a condition or a column that is none.
    """
    count = len(exhibit)
    columns = _Columns(exhibit, query.rival)
    start, stop, _ = slice(query.start, query.stop).indices(count)
    chosen = np.arange(start, stop)
    if query.classes:
        labels = columns["label"]
        chosen = chosen[np.isin(labels[chosen], query.classes)]
    if query.where:
        wanted = {name: columns[name][chosen] for name in names_in(query.where) if name in columns}
        mask = matches(query.where, wanted or {"item": chosen}) if chosen.size else chosen
        chosen = chosen[mask]
    if query.sort == "shuffle":
        chosen = generator(query.seed).permutation(chosen)
    elif query.sort:
        backwards = query.sort.startswith("-")
        name = query.sort.removeprefix("-")
        if name not in columns:
            raise ExpressionError(f"{name!r} is not known; there are {', '.join(columns)}")
        keys = columns[name][chosen]
        chosen = chosen[np.argsort(-keys if backwards else keys, kind="stable")]
    return chosen.astype("<u4")


class _Columns(dict[str, Array]):
    """What items can be chosen by; made when asked."""

    def __init__(self, exhibit: Exhibit, rival: int | None) -> None:
        self._exhibit, self._rival = exhibit, rival
        super().__init__(item=np.arange(len(exhibit)))
        names = ["label"] if exhibit.labels is not None else []
        names += ["other"] if rival is not None else []
        self._names = ("item", *names, *COLUMNS)

    def __missing__(self, name: str) -> Array:
        self[name] = self._made(name)
        return self[name]

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def __iter__(self) -> Any:
        return iter(self._names)

    def _made(self, name: str) -> Array:
        if name == "label":
            labels = self._exhibit.labels
            if labels is None:
                raise ExpressionError("there are no labels here")
            return labels
        if name == "other":
            assert self._rival is not None
            return self._exhibit.rival(self._rival)
        figures = self._exhibit.figures
        if name not in figures.columns:
            figures.start(asked=True)
            if figures.state in ("failed", "ready"):
                raise ExpressionError(f"there is no {name} here: {figures.fault or 'no values'}")
            raise NotYetError(name)
        return figures.columns[name]


def confusion(exhibit: Exhibit, rival: int) -> dict[str, Any]:
    """How often each label of the one file meets each of the other.

    Raises:
        ExpressionError: when there are no labels, or too many different ones.
    """
    labels = exhibit.labels
    if labels is None:
        raise ExpressionError("there are no labels to compare with")
    others = exhibit.rival(rival)
    names = np.union1d(labels, others)
    if len(names) > MOST_CONFUSED:
        raise ExpressionError(f"{len(names)} different labels make no matrix to look at")
    rows, columns = np.searchsorted(names, labels), np.searchsorted(names, others)
    size = len(names)
    counts = np.bincount(rows * size + columns, minlength=size * size).reshape(size, size)
    return {
        "labels": names.tolist(),
        "rows": counts.tolist(),
        "equal": int(np.trace(counts)),
        "count": len(labels),
    }
