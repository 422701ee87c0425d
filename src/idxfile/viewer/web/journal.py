"""Labels that were given anew: a journal beside the file, whose labels stay as they are.

A line of JSON for each change: `{"item": 5, "old": 3, "new": 8, "when": "…"}`. Lines are only ever
added, all of one change in one write, under a lock and at the file's end, so that several views
of one file keep each other's work. What was changed together has one time; to undo it is a change
back, whose lines name that time in `undoes`.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from ...names import JOURNAL_SUFFIX

__all__ = ["Change", "Journal"]

# A link in the journal's place would lead what is written to another file.
_READING = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC
_APPENDING = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass(frozen=True, slots=True)
class Change:
    """A line of the journal."""

    item: int
    old: int
    new: int
    when: str
    undoes: str | None = None

    def line(self) -> str:
        """The change as it stands in the file."""
        facts = {"item": self.item, "old": self.old, "new": self.new, "when": self.when}
        return json.dumps(facts if self.undoes is None else {**facts, "undoes": self.undoes}) + "\n"


class Journal:
    """The journal of one file of labels; without a path, it is kept in memory alone.

    Args:
        path: the file of labels, or None.
        count: how many items it has: a line about any other is passed over.
    """

    def __init__(self, path: str | None, count: int) -> None:
        self.path = None if path is None else path + JOURNAL_SUFFIX
        self._count = count
        self._lock = threading.Lock()
        self._read_to = 0
        self._changes: list[Change] = []
        self.passed_over = 0
        """Lines that could not be understood."""

    def changes(self) -> list[Change]:
        """All changes by now, also those of other views."""
        with self._lock:
            self._catch_up()
            return list(self._changes)

    def relabel(self, items: Sequence[int], olds: Sequence[int], new: int) -> list[Change]:
        """Give items another label.

        Args:
            items: the items.
            olds: the labels that the file has for them; what the journal says of them goes before.
            new: the label of all of them.
        """
        with self._writing() as stamp:
            now = self._latest()
            pairs = [(i, now.get(i, old)) for i, old in zip(items, olds, strict=True)]
            return self._add([Change(i, old, new, stamp) for i, old in pairs if old != new])

    def undo(self) -> list[Change]:
        """Take back the last change that was not taken back yet; of nothing, nothing."""
        with self._writing() as stamp:
            undone = {change.undoes for change in self._changes}
            open_ones = [c for c in self._changes if c.undoes is None and c.when not in undone]
            if not open_ones:
                return []
            last = open_ones[-1].when
            return self._add(
                [Change(c.item, c.new, c.old, stamp, last) for c in open_ones if c.when == last]
            )

    def _latest(self) -> dict[int, int]:
        return {change.item: change.new for change in self._changes}

    @contextlib.contextmanager
    def _writing(self) -> Iterator[str]:
        """Alone with the file, which was read to its end; gives a time that no line has yet."""
        with self._lock:
            if self.path is None:
                yield self._stamp()
                return
            fd = os.open(self.path, _APPENDING, 0o666)
            try:
                fcntl.flock(fd, fcntl.LOCK_EX)
                self._catch_up(final=True)
                self._fd = fd
                yield self._stamp()
            finally:
                os.close(fd)

    def _stamp(self) -> str:
        now = datetime.now(UTC).isoformat(timespec="microseconds")
        last = self._changes[-1].when if self._changes else ""
        return now if now > last else f"{last}+"

    def _add(self, changes: list[Change]) -> list[Change]:
        if changes and self.path is None:
            self._changes += changes
        elif changes:
            torn = self._read_to and os.pread(self._fd, 1, self._read_to - 1) != b"\n"
            data = ("\n" if torn else "") + "".join(change.line() for change in changes)
            view = memoryview(data.encode())
            while view:
                view = view[os.write(self._fd, view) :]
            os.fsync(self._fd)
            self._catch_up()
        return changes

    def _catch_up(self, final: bool = False) -> None:
        """Read the lines that were added since; one without an end only when it gets none."""
        if self.path is None:
            return
        try:
            with open(os.open(self.path, _READING), "rb") as file:
                file.seek(0, os.SEEK_END)
                if file.tell() < self._read_to:  # somebody cleared it away
                    self._changes, self._read_to, self.passed_over = [], 0, 0
                file.seek(self._read_to)
                data = file.read()
        except FileNotFoundError:
            self._changes, self._read_to = [], 0
            return
        whole = len(data) if final else data.rfind(b"\n") + 1
        for line in data[:whole].splitlines():
            change = _understood(line, self._count)
            if change is not None:
                self._changes.append(change)
            elif line.strip():
                self.passed_over += 1
        self._read_to += whole


def _understood(line: bytes, count: int) -> Change | None:
    try:
        facts: Any = json.loads(line)
        numbers = [facts[name] for name in ("item", "old", "new")]
        when, undoes = facts["when"], facts.get("undoes")
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    if not all(type(n) is int and abs(n) < 1 << 31 for n in numbers) or type(when) is not str:
        return None
    if not 0 <= numbers[0] < count or not (undoes is None or type(undoes) is str):
        return None
    item, old, new = numbers
    return Change(item, old, new, when, undoes)
