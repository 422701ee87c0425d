"""Which items a command means: by number, by label, by what another file says, at random."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import click
import numpy as np

from ..batching import generator
from ..errors import PairError
from ..report.facts import counted
from ..sheets.tiles import key_of
from .selection import class_words

__all__ = ["different", "items_of", "of_labels", "some"]

Numbers = Sequence[int]
"""Item numbers: a range as long as it can be one, then an array."""
_AT_ONCE = 1 << 20


def items_of(words: Sequence[str], count: int) -> Numbers:
    """The item numbers that words of the command line mean; all of them for no words.

    Args:
        words: numbers and slices: `7`, `-1`, `10:20`, `::6000`.
        count: how many items there are.

    Raises:
        click.UsageError: for a word that is none, or an item that is not there.
    """
    everything = range(count)
    picked = [_picked(word, everything) for word in words]
    if len(picked) <= 1:
        return picked[0] if picked else everything
    return cast(Numbers, np.concatenate([_array(part) for part in picked]))


def _picked(word: str, everything: range) -> range:
    try:
        parts = [int(part) if part else None for part in word.split(":")]
        if len(parts) > 1:
            return everything[slice(*parts)]
        number = everything[parts[0] or 0]
        return range(number, number + 1)
    except (ValueError, TypeError):
        if word.startswith("-"):
            raise click.NoSuchOption(word) from None
        raise click.UsageError(f"{word!r} is no item number and no slice") from None
    except IndexError:
        raise click.UsageError(
            f"item {word} is not there: the file has {counted(len(everything), 'item')}"
        ) from None


def of_labels(items: Numbers, labels: Any, words: str, classes: Mapping[int, str]) -> Numbers:
    """Those items whose label is one of `3,7`, or of the names of classes.

    Raises:
        click.UsageError: for a name that no class has.
    """
    numbers = {name: label for label, name in classes.items()}
    wanted = []
    for word in class_words(words) or ():
        if isinstance(word, str) and word not in numbers:
            known = f"; there are {', '.join(numbers)}" if numbers else ", for no names are known"
            raise click.UsageError(f"no class is called {word!r}{known}")
        wanted.append(numbers[word] if isinstance(word, str) else word)
    return _kept(items, lambda part: np.isin(_classes(labels, part), wanted))


def different(items: Numbers, labels: Any, others: Any) -> Numbers:
    """Those items of which two files of labels say different things.

    Raises:
        PairError: where the two are not as long.
    """
    if len(labels) != len(others):
        raise PairError(
            f"{len(labels):,} labels, and {len(others):,} to compare them with",
            found=len(others),
            expected=len(labels),
        )
    return _kept(items, lambda part: _classes(labels, part) != _classes(others, part))


def some(items: Numbers, count: int, seed: int | None) -> Numbers:
    """So many of the items, drawn at random; all of them in random order where they are fewer."""
    places = generator(seed).choice(len(items), min(count, len(items)), replace=False)
    return [items[place] for place in places.tolist()]


def _classes(labels: Any, part: Any) -> Any:
    """The classes of some items: of a matrix of labels, column 0."""
    values = np.asarray(labels[part])
    return values[:, 0] if values.ndim > 1 else values


def _kept(items: Numbers, test: Callable[[Any], Any]) -> Numbers:
    """The items that pass a test, which is given keys of many items at once."""
    found = [np.empty(0, np.intp)]
    for start in range(0, len(items), _AT_ONCE):
        part = items[start : start + _AT_ONCE]
        found.append(_array(part)[test(key_of(part))])
    return cast(Numbers, np.concatenate(found))


def _array(items: Any) -> Any:
    """Item numbers as an array; a range by itself is taken number by number."""
    if isinstance(items, range):
        return np.arange(items.start, items.stop, items.step, dtype=np.intp)
    return np.asarray(items, np.intp)
