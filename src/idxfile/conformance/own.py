"""The reader of idxfile itself."""

from __future__ import annotations

import os
import sys
import warnings
import zlib

from ..array import read
from ..errors import IdxError
from ..problems import Problem
from ..report.judgement import check
from .judging import answer_line

__all__: list[str] = []

MOST_HEX_NBYTES = 4096


def respond(path: str) -> str:
    """The line that idxfile answers for a path; what is no error of its own passes through."""
    problems: list[Problem] = []
    try:
        problems = check(path).problems
        for problem in problems:
            if problem.level == "error":
                offset = "-" if problem.offset is None else problem.offset
                return f"error {problem.code} {offset}"
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            array = read(path)
    except OSError:
        return "error open"
    except IdxError:
        noted = next((p for p in problems if p.code == "many-dimensions"), None)
        return f"error {noted.code} {noted.offset}" if noted else "error dimension"
    elements = array.astype(array.dtype.newbyteorder(">")).tobytes()
    data = f"crc {len(elements)} {zlib.crc32(elements):08x}"
    if len(elements) <= MOST_HEX_NBYTES:
        data = f"hex {elements.hex()}"
    return answer_line(array.dtype.name, array.shape, data)


def serve() -> None:
    """Answer the paths on standard input, as every reader does."""
    for line in sys.stdin.buffer:
        print(respond(os.fsdecode(line.rstrip(b"\n"))), flush=True)
