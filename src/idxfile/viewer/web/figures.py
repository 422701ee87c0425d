"""Statistics of every item, computed once, in the background and in constant memory.

mean        the mean of an item's values
ink         the part of its values above the middle of the window: what is drawn
asymmetry   the mean difference from its own mirror image, as a part of the window; 0 to 1
unusual     the distance from the mean item of its class, likewise (root of the mean square)
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from ...elements import Array
from ...problems import Problem
from ...report.judgement import check
from ...summary import stats

if TYPE_CHECKING:
    from .exhibit import Exhibit

__all__ = ["COLUMNS", "Figures"]

COLUMNS = ("mean", "ink", "asymmetry", "unusual")

UNASKED_NBYTES = 1 << 33
"""Up to here files are counted through without being asked: 8 GiB on this machine."""

MOST_CLASSES, MOST_MEAN_NBYTES = 1000, 1 << 26
_BLOCK_NBYTES = 1 << 20


class Stopped(Exception):  # noqa: N818 - it is no error
    """The server ends, and nobody waits for the figures any more."""


class Figures:
    """The figures of one exhibit; `state` tells how far they are."""

    def __init__(self, exhibit: Exhibit) -> None:
        self._exhibit = exhibit
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()
        self._stopping = False
        self._passes = 0
        self.state = "none"
        """none, running, ready, or failed."""
        self.done = 0.0
        """How much of the work is done, 0 to 1."""
        self.fault: str | None = None
        self.columns: dict[str, Array] = {}
        """Name → float32 `(items,)`; those that are complete."""
        self.means: dict[int, Array] = {}
        """Class → its mean item, float64; without labels, one class 0 of all items."""
        self.summary: dict[str, Any] | None = None
        self.problems: list[Problem] | None = None
        """What a check of the whole file found; None while it was not made."""

    def start(self, asked: bool = False) -> None:
        """Begin, if that was not done; unasked, only where the bytes lie at hand."""
        file = self._exhibit.file
        if file.items is None:
            near = file.nbytes is not None and file.nbytes <= UNASKED_NBYTES
        else:
            at_hand = file.raw is not None or bool(file.codecs) or file.name == "memory"
            near = at_hand and file.items.nbytes <= UNASKED_NBYTES
        with self._lock:
            if self._thread is None and not self._stopping and (asked or near):
                self.state = "running"
                self._thread = threading.Thread(target=self._run, name="figures", daemon=True)
                self._thread.start()

    def stop(self) -> None:
        """End now, and wait until it has ended."""
        with self._lock:
            self._stopping = True
        if self._thread is not None:
            self._thread.join()

    def wait(self, seconds: float) -> bool:
        """Wait until all is counted; whether it is."""
        if self._thread is not None:
            self._thread.join(seconds)
        return self.state == "ready"

    def of_item(self, item: int) -> dict[str, float]:
        """The figures of one item, those that are there."""
        return {name: float(column[item]) for name, column in self.columns.items()}

    def _run(self) -> None:
        try:
            if self._exhibit.file.items is not None:
                labels = self._exhibit.labels
                with np.errstate(all="ignore"):
                    self._first_pass(labels)
                    self._second_pass(labels)
                self.summary = stats(_Watched(self)).as_dict()
            self.problems = self._check()
            self.done, self.state = 1.0, "ready"
        except Stopped:
            pass
        except Exception as error:  # the page tells it
            self.fault, self.state = str(error), "failed"

    def _check(self) -> list[Problem] | None:
        given = self._exhibit.place.images()
        if hasattr(given, "shape") or hasattr(given, "read"):
            return None
        return check(given, progress=lambda *_: self._go_on()).problems

    def _go_on(self) -> None:
        if self._stopping:
            raise Stopped

    def _blocks(
        self, share: float, block_nbytes: int = _BLOCK_NBYTES
    ) -> Iterator[tuple[slice, Array]]:
        """All items in blocks; this pass is so much of the whole work."""
        items = self._exhibit.items
        step = max(1, block_nbytes // max(1, items.item_nbytes))
        start_done = self.done
        for start in range(0, len(items), step):
            self._go_on()
            part = slice(start, min(start + step, len(items)))
            yield part, items.take(np.arange(part.start, part.stop))
            self.done = start_done + share * part.stop / len(items)

    def _first_pass(self, labels: Array | None) -> None:
        items = self._exhibit.items
        low, high = self._exhibit.window
        middle, span = (low + high) / 2, (high - low) or 1.0
        columns = {name: np.zeros(len(items), np.float32) for name in COLUMNS[:3]}
        mirror = _mirror(items.item_shape)
        sums: dict[int, Array] | None = {}
        counts: dict[int, int] = {}
        for part, block in self._blocks(0.4):
            flat = block.reshape(len(block), -1)
            if not flat.shape[1]:
                continue
            columns["mean"][part] = flat.mean(1)
            columns["ink"][part] = (flat > middle).mean(1)
            if mirror is not None:
                columns["asymmetry"][part] = _differences(block, block[mirror]).mean(1) / span
            if sums is not None:
                classes = np.zeros(len(block), np.int64) if labels is None else labels[part]
                for label in np.unique(classes).tolist():
                    mine = flat[classes == label]
                    counts[label] = counts.get(label, 0) + len(mine)
                    total = mine.sum(0, dtype=np.float64)
                    sums[label] = sums[label] + total if label in sums else total
                most = MOST_MEAN_NBYTES // (8 * max(1, flat.shape[1]))
                if len(sums) > min(MOST_CLASSES, most):
                    sums = None
        if sums is not None:
            self.means = {label: total / counts[label] for label, total in sorted(sums.items())}
        self.columns = {**self.columns, **columns}

    def _second_pass(self, labels: Array | None) -> None:
        low, high = self._exhibit.window
        span = (high - low) or 1.0
        if not self.means:
            return
        known = np.array(list(self.means))
        table = np.stack(list(self.means.values())).astype(np.float32)
        unusual = np.zeros(len(self._exhibit.items), np.float32)
        for part, block in self._blocks(0.3):
            flat = block.reshape(len(block), -1)
            classes = np.zeros(len(block), np.int64) if labels is None else labels[part]
            gaps = flat - table[np.searchsorted(known, classes)]
            unusual[part] = np.sqrt(np.einsum("ij,ij->i", gaps, gaps) / max(1, flat.shape[1]))
        self.columns = {**self.columns, "unusual": unusual / np.float32(span)}


class _Watched:
    """The items as `stats` takes them, which ends when the server does."""

    def __init__(self, figures: Figures) -> None:
        self._figures = figures
        items = figures._exhibit.items
        self.shape, self.dtype = items.shape, items.dtype

    def blocks(self, *, block_nbytes: int) -> Iterator[Array]:
        for _, block in self._figures._blocks(0.1, block_nbytes):
            yield block


def _mirror(item_shape: tuple[int, ...]) -> tuple[Any, ...] | None:
    """The key that turns left and right around; None where there is no side."""
    if not item_shape:
        return None
    coloured = len(item_shape) > 2 and item_shape[-1] in (1, 3)
    key: list[Any] = [slice(None)] * (1 + len(item_shape))
    key[-2 if coloured else -1] = slice(None, None, -1)
    return tuple(key)


def _differences(block: Array, other: Array) -> Array:
    """The absolute differences of values, item by item, where nothing can overflow."""
    wide = np.int16 if block.dtype.itemsize == 1 else np.float64
    gaps = np.subtract(block, other, dtype=wide)
    return np.abs(gaps, out=gaps).reshape(len(block), -1)
