"""What must hold for any bytes whatever, as one function that a fuzzer calls.

Reading, indexing, checking and mending may refuse with an error of ours and with nothing else;
and they must agree: what `check` calls right is read, what is read is written back to the same
bytes, what `repair` wrote is right.
"""

from __future__ import annotations

import os
import tempfile
import warnings

import numpy as np

import idxfile
from idxfile.source import header_prefix, open_source

_KEYS = (0, -1, slice(None, None, -2), [0, 0], (Ellipsis, 0), None)
_TOO_MUCH = 1 << 24
"""Arrays beyond this are not made: a fuzzer would spend its time on zeros."""

_MEMORY = "/dev/shm" if os.path.isdir("/dev/shm") else None
"""Where mended files are written: a disk would be asked for a sync each time."""


def judge(data: bytes) -> None:
    """Hold every promise against these bytes.

    Raises:
        AssertionError: when one does not hold; any other exception is a fault, too.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        report = idxfile.check(data)
        header, problems = idxfile.examine(data[:1024], len(data))
        assert header is not None or problems
        if report.header is not None and report.header.nbytes > _TOO_MUCH:
            assert not report.ok or report.data_nbytes == report.header.nbytes
            return
        array = _read(data, report)
        if array is not None:
            _index(data, array)
            _write_back(data, report, array)
        _mend(data, report)


def _read(data: bytes, report: idxfile.Report) -> np.ndarray | None:
    errors = [problem for problem in report.problems if problem.level == "error"]
    try:
        array = idxfile.read(data)
    except idxfile.UnsupportedError:
        header = report.header
        assert errors or header is None or header.ndim > 64 or header.size == 0
        return None
    except idxfile.IdxError:
        assert errors, "read refuses what check calls right"
        return None
    assert not errors, f"read accepts what check refuses: {errors}"
    assert array.shape == report.header.shape
    assert array.dtype.isnative
    assert array.flags.writeable
    assert array.flags.c_contiguous
    return array


def _index(data: bytes, array: np.ndarray) -> None:
    """Keys on the lazy array, with a map and by position, give what NumPy gives."""
    source = open_source(data)
    try:
        assert len(header_prefix(source)) <= 1024
    finally:
        source.close()
    for mmap in (True, False):
        with idxfile.open(data, mmap=mmap) as lazy:
            for key in _KEYS:
                try:
                    expected = array[key]
                except (IndexError, MemoryError, ValueError):  # NumPy makes the result first
                    continue
                got = lazy[key]
                assert np.shape(got) == np.shape(expected)
                assert np.asarray(got).tobytes() == np.asarray(expected).tobytes()


def _write_back(data: bytes, report: idxfile.Report, array: np.ndarray) -> None:
    if array.dtype.name not in ("uint8", "int8", "int16", "int32", "float32", "float64"):
        return
    written = idxfile.encode(array)
    assert idxfile.read(written).tobytes() == array.tobytes()
    if not report.codecs and report.header.dialect == "idx":
        assert written == data


def _mend(data: bytes, report: idxfile.Report) -> None:
    with tempfile.TemporaryDirectory(prefix="fuzz-", dir=_MEMORY) as folder:
        out = os.path.join(folder, "mended.idx")
        for salvage in (False, True):
            try:
                mending = idxfile.repair(data, out, salvage=salvage)
            except idxfile.IdxError:
                assert not os.path.exists(out)
                assert not report.ok or report.header.element.code is None
                continue
            errors = [p for p in mending.after.problems if p.level == "error"]
            assert not errors, f"repair wrote a wrong file: {errors}"
            os.unlink(out)
        assert os.listdir(folder) == []
