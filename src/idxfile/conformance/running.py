"""A reader driven over the corpus."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from .judging import Result, Row, judge, right_line
from .process import NoAnswerError, Reader

__all__ = ["Outcome", "run"]

END = "(the end of its input)"


class Outcome(NamedTuple):
    """How a reader did on one file."""

    name: str
    """The file's name in the manifest."""
    result: Result
    """wrong-kind: rightly refused, but not for this reason or not at this byte."""
    expected: str
    """The line that would have been right, or the first of them."""
    got: str
    """What the reader said, or how it ended."""


def run(
    command: list[str], corpus: str, rows: Iterable[Row], *, timeout: float = 10
) -> Iterator[Outcome]:
    """Ask a reader for each of these files, then end its input.

    Args:
        command: the reader and its arguments.
        corpus: the folder of the corpus.
        rows: the files of the manifest to ask for.
        timeout: the seconds that one answer may take.

    Yields:
        An outcome for each file, and one for the end where that went wrong.

    Raises:
        OSError: when the reader cannot be started.
    """
    reader = Reader(command, timeout)
    try:
        for row in rows:
            path = os.path.join(os.path.abspath(corpus), row["file"])
            result: Result
            try:
                got = reader.ask(path)
                result = judge(row, got)
            except NoAnswerError as silence:
                got, result = str(silence), silence.result
            yield Outcome(row["name"], result, right_line(row), got)
        try:
            reader.close()
        except NoAnswerError as silence:
            yield Outcome(END, silence.result, "exit code 0", str(silence))
    finally:
        reader.kill()
