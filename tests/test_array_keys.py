"""Every key on a lazy array, read and assigned, against NumPy.

Arrays of each shape lie in files of each kind, opened once; Hypothesis brings the keys.
"""

from __future__ import annotations

import gzip
import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import idxfile
from conftest import (
    REFUSALS,
    Index,
    assert_same,
    assert_same_outcome,
    bits,
    idx_bytes,
    keys,
    outcome,
)
from idxfile import lazyarray as array_room
from idxfile.errors import UnsupportedError

SHAPES = ((), (7,), (5, 4), (4, 3, 2), (1, 1, 1, 2), (0,), (0, 3), (3, 0, 2))
ROADS = {
    "mapped": lambda path, data: idxfile.open(path),
    "mapped c": lambda path, data: idxfile.open(path, mode="c"),
    "mapped r+": lambda path, data: idxfile.open(path, mode="r+"),
    "by position": lambda path, data: idxfile.open(path, mmap=False),
    "by position r+": lambda path, data: idxfile.open(path, mmap=False, mode="r+"),
    "compressed": lambda path, data: idxfile.open(gzip.compress(data)),
    "spooled": lambda path, data: idxfile.open(gzip.compress(data), spool_nbytes=0),
    "bytes": lambda path, data: idxfile.open(data),
    "file object": lambda path, data: idxfile.open(io.BytesIO(data)),
}
DTYPES = ("uint8", "int32")
THIS_FIXTURE_IS_MEANT = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.fixture(params=["blocks", "tiny blocks"])
def blocks(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks as they are, and of one or two items, so that every key meets their ends."""
    if request.param == "tiny blocks":
        monkeypatch.setattr(array_room, "DEFAULT_BLOCK_NBYTES", 20)
        monkeypatch.setattr("idxfile.gathering.GAP_NBYTES", 9)


@pytest.fixture(scope="module", params=ROADS)
def opened(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Pairs of a NumPy array and a lazy one, by shape and type, all by one road."""
    folder = tmp_path_factory.mktemp("arrays")
    pairs = {}
    for shape in SHAPES:
        for dtype in DTYPES:
            array = bits(dtype, *shape) if shape else bits(dtype, 1).reshape(())
            path = folder / f"{dtype} {shape}.idx"
            path.write_bytes(idx_bytes(array))
            pairs[shape, dtype] = array, ROADS[request.param](path, idx_bytes(array))
    yield pairs
    for _, x in pairs.values():
        x.close()


SHAPES_AND_KEYS = st.sampled_from(SHAPES).flatmap(
    lambda shape: st.tuples(st.just(shape), st.sampled_from(DTYPES), keys(shape))
)


@pytest.mark.usefixtures("blocks")
@THIS_FIXTURE_IS_MEANT
@given(case=SHAPES_AND_KEYS)
def test_every_key_gives_what_numpy_gives(opened: Any, case: Any) -> None:
    shape, dtype, key = case
    array, x = opened[shape, dtype]
    assert_same_outcome(outcome(lambda: x[key]), outcome(lambda: array[key]), key)


KEYS = [
    *(0, -1, np.int64(2), Index(3), slice(None), slice(1, 3), slice(None, None, -2), slice(9, 1)),
    *([0, 2], [-1, 0, -1], [], [[0], [1]], np.array([2, 0], "uint8"), np.array(1), range(2)),
    *(..., None, (), True, False, np.array(True), (..., 1), (1, ...), (None, 0), (0, None, 1)),
    *((slice(None), 1), (slice(1, 3), [0, 2]), ([0, 1], [1, 2]), ([0, 1], slice(None), [1, 0])),
    *((0, slice(None), [1, 1]), (True, 0), (0, True), (..., False), (1, 2, 1), (1, 2, 1, ...)),
    *(np.arange(4) % 2 == 0, (slice(None), np.array([True, False, True])), np.ones((4, 3), bool)),
    *((1, np.ones((3, 2), bool)), np.ones((4, 3, 2), bool), np.zeros((4, 3, 2), bool)),
    *((np.ones((4, 3), bool), None, 1), ([[0], [3]], [[0, 1]]), (slice(None, None, -1), None, -1)),
    *([True, False, True, True], np.zeros((0,), bool), np.zeros((4, 0), bool)),
    *(4, -5, [0, 4], (0, 3), (0, 0, 0, 0), 1.0, "a", [0.5], np.ones(5, bool), (..., ...)),
    *(np.ones((4, 4), bool), 2**70, ([0, 1], [0, 1, 2]), slice("a"), {}),
]  # fmt: skip


@pytest.mark.usefixtures("blocks")
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("key", KEYS, ids=str)
def test_keys_of_every_kind(opened: Any, key: Any, dtype: str) -> None:
    array, x = opened[(4, 3, 2), dtype]
    expected = outcome(lambda: array[key])
    found = outcome(lambda: x[key])
    if isinstance(expected, type):
        assert found in (expected, IndexError)
    else:
        assert_same(found, expected)


# Assignment


def values_for(draw: Any, picked: Any) -> np.ndarray:
    """Values for what a key picked: its shape, or one that broadcasts to it."""
    shape = np.shape(picked)
    for axis in range(len(shape)):
        if draw(st.integers(0, 3)) == 0:
            shape = (*shape[:axis], 1, *shape[axis + 1 :])
    shape = shape[draw(st.integers(0, len(shape))) :]
    return np.arange(1, 1 + np.prod(shape, dtype=int)).reshape(shape) % 100


@pytest.mark.usefixtures("blocks")
@THIS_FIXTURE_IS_MEANT
@given(case=SHAPES_AND_KEYS, data=st.data())
@pytest.mark.parametrize("mmap", [True, False])
def test_every_assignment_does_to_the_file_what_numpy_does(
    mmap: bool, case: Any, data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    shape, dtype, key = case
    array = bits(dtype, *shape) if shape else bits(dtype, 1).reshape(())
    expected = array.copy()
    try:
        values = values_for(data.draw, expected[key])
        expected[key] = values
    except REFUSALS:
        return
    path = tmp_path_factory.getbasetemp() / "assigned.idx"
    path.write_bytes(idx_bytes(array))
    with idxfile.open(path, mode="r+", mmap=mmap) as x:
        refused = outcome(lambda: x.__setitem__(key, values))
        assert refused is None or (refused is IndexError and np.size(array[key]) == 0)
        assert path.read_bytes() == idx_bytes(expected)
        assert_same(np.asarray(x), expected)


@pytest.mark.usefixtures("blocks")
@THIS_FIXTURE_IS_MEANT
@given(case=SHAPES_AND_KEYS)
def test_what_numpy_refuses_to_assign_changes_no_byte(
    case: Any, tmp_path_factory: pytest.TempPathFactory
) -> None:
    shape, dtype, key = case
    array = bits(dtype, *shape) if shape else bits(dtype, 1).reshape(())
    path = tmp_path_factory.getbasetemp() / "refused.idx"
    path.write_bytes(idx_bytes(array))
    with idxfile.open(path, mode="r+") as x:
        picked = outcome(lambda: array[key])
        values = 7 if isinstance(picked, type) else np.zeros((*np.shape(picked), 2, 3), "uint8")
        assert outcome(lambda: array.copy().__setitem__(key, values)) is not None
        assert outcome(lambda: x.__setitem__(key, values)) is not None
    assert path.read_bytes() == idx_bytes(array)


@pytest.mark.usefixtures("blocks")
@pytest.mark.parametrize("mode", ["r+", "c"])
@pytest.mark.parametrize("key", KEYS, ids=str)
def test_assignments_of_every_kind(mode: str, key: Any, tmp_path: Path) -> None:
    array = bits("int16", 4, 3, 2)
    expected = array.copy()
    answer = outcome(lambda: expected.__setitem__(key, 5))
    path = tmp_path / "a.idx"
    path.write_bytes(idx_bytes(array))
    with idxfile.open(path, mode=mode) as x:
        found = outcome(lambda: x.__setitem__(key, 5))
        assert found in (answer, IndexError if isinstance(answer, type) else answer)
        assert_same(np.asarray(x), expected)
    assert path.read_bytes() == idx_bytes(expected if mode == "r+" else array)


LOSSY = [
    ("uint8", 256, "256 does not survive as uint8"),
    ("uint8", [[1, -1]], "-1 at index (0, 1) does not survive as uint8"),
    ("uint8", 0.5, "0.5 does not survive as uint8"),
    ("uint8", np.nan, "nan does not survive as uint8"),
    ("int8", np.array([128], "uint8"), "128 at index (0) does not survive as int8"),
    ("int16", 40000, "40000 does not survive as int16"),
    ("int32", 2**31, "2147483648 does not survive as int32"),
    ("float32", 0.1, "0.1 does not survive as float32"),
    ("float32", 16777217, "16777217 does not survive as float32"),
    ("float64", 2**53 + 1, "9007199254740993 does not survive as float64"),
    ("float64", "7", "an IDX file cannot hold <U1"),
    ("float64", 1j, "an IDX file cannot hold complex128"),
    ("float64", 2**70, "an IDX file cannot hold object"),
    ("float64", np.ma.array([1.0, 2.0], mask=[0, 1]), "an IDX file cannot hold masked values"),
]


@pytest.mark.parametrize("mode", ["r+", "c"])
@pytest.mark.parametrize(("dtype", "values", "message"), LOSSY)
def test_values_that_do_not_survive_are_refused(
    dtype: str, values: Any, message: str, mode: str, tmp_path: Path
) -> None:
    path = tmp_path / "a.idx"
    path.write_bytes(idx_bytes(bits(dtype, 3, 2)))
    before = path.read_bytes()
    with idxfile.open(path, mode=mode) as x:
        with pytest.raises(UnsupportedError) as caught:
            x[1:2] = values
        assert str(caught.value).startswith(message)
        assert_same(np.asarray(x), bits(dtype, 3, 2))
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    "values",
    [7, 7.0, True, [7, 7], np.int64(7), np.full(2, 7, ">f8"), np.array(7, "uint16"), np.float16(7)],
)
@pytest.mark.parametrize("dtype", ["uint8", "int32", "float64"])
def test_values_that_survive_may_have_any_type(values: Any, dtype: str, tmp_path: Path) -> None:
    path = tmp_path / "a.idx"
    path.write_bytes(idx_bytes(bits(dtype, 3, 2)))
    with idxfile.open(path, mode="r+") as x:
        x[1] = values
        assert x[1].tolist() == [int(np.max(values))] * 2


def test_an_array_may_be_assigned_from_itself(tmp_path: Path) -> None:
    array = bits("int16", 50, 2)
    path = tmp_path / "a.idx"
    path.write_bytes(idx_bytes(array))
    with idxfile.open(path, mode="r+") as x:
        x[1:] = x[:-1]
        array[1:] = array[:-1].copy()
        assert_same(x[...], array)
        x[...] = x
        x[::-1] = x
        assert_same(x[...], array[::-1])
