"""Values: byte order and casts, each against NumPy or against Python's own exact numbers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from conftest import CODES, KNOWN, NANS, TYPES, bits
from idxfile import elements
from idxfile.elements import (
    as_bytes,
    first_lossy,
    fitted,
    idx_type_name,
    read_elements,
    smallest_type,
    stored_pieces,
    turn,
)
from idxfile.errors import TruncatedError, UnsupportedError
from idxfile.source import open_source

# Byte order


def big(dtype: str) -> np.dtype[Any]:
    return np.dtype(dtype).newbyteorder(">")


@pytest.fixture(params=["blocks", "tiny blocks"])
def blocks(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks as they are, and so small that every test meets their ends."""
    if request.param == "tiny blocks":
        monkeypatch.setattr(elements, "BLOCK_NBYTES", 24)


@pytest.mark.usefixtures("blocks")
def test_the_pieces_of_an_array_are_its_elements_in_order(array: np.ndarray) -> None:
    stored = big(array.dtype.name)
    pieces = [bytes(piece) for piece in stored_pieces(array, stored)]
    assert b"".join(pieces) == array.astype(stored).tobytes()
    assert all(pieces)


@pytest.mark.usefixtures("blocks")
def test_an_array_that_lies_right_is_given_out_uncopied() -> None:
    array = bits(">i4", 40, 3)
    (piece,) = stored_pieces(array, array.dtype)
    assert np.shares_memory(np.frombuffer(piece, "uint8"), array)


@pytest.mark.usefixtures("blocks")
@pytest.mark.parametrize("shape", [(), (0,), (7,), (5, 3)])
@pytest.mark.parametrize("dtype", TYPES)
def test_bytes_are_turned_in_place(dtype: str, shape: tuple[int, ...]) -> None:
    stored = bits(dtype, *shape).view(big(dtype)) if shape else bits(dtype, 1).reshape(())
    expected = stored.view(big(dtype)).astype(dtype)
    target = stored.view(dtype).copy()
    turn(target, big(dtype))
    assert target.tobytes() == expected.tobytes()


@pytest.mark.parametrize("dtype", NANS)
def test_turning_keeps_the_bits_of_every_nan(dtype: str) -> None:
    stored = np.frombuffer(bytes.fromhex(NANS[dtype]), big(dtype))
    target = stored.view(dtype).copy()
    turn(target, stored.dtype)
    assert target.byteswap().tobytes() == stored.tobytes()
    assert b"".join(stored_pieces(target, stored.dtype)) == stored.tobytes()


@pytest.mark.parametrize("side_by_side", [False, True])
@pytest.mark.parametrize("order", [">", "<"])
@pytest.mark.parametrize("dtype", TYPES)
def test_elements_are_read_from_any_byte(
    dtype: str, order: str, side_by_side: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if side_by_side:
        monkeypatch.setattr(elements, "_PARALLEL_NBYTES", 1)
        monkeypatch.setattr(elements, "_READERS", 3)
        monkeypatch.setattr(elements, "BLOCK_NBYTES", 16)
    stored = bits(dtype, 11, 3).view(np.dtype(dtype).newbyteorder(order))
    target = np.empty(stored.shape, dtype)
    read_elements(open_source(b"head." + stored.tobytes()), 5, target, stored.dtype)
    assert target.tobytes() == stored.astype(dtype).tobytes()


@pytest.mark.parametrize("dtype", ["uint8", "int32"])
def test_a_source_that_has_become_shorter_is_an_error(dtype: str) -> None:
    target = np.empty(8, dtype)
    data = b"head." + bytes(target.nbytes - 2)
    with pytest.raises(TruncatedError, match="shorter than it was when it was opened") as caught:
        read_elements(open_source(data), 5, target, big(dtype))
    assert caught.value.offset == len(data)


def test_the_bytes_of_an_array_are_a_view() -> None:
    array = bits("int16", 3, 2)
    as_bytes(array)[:] = bytes(12)
    assert not array.any()
    assert len(as_bytes(array[:0])) == 0
    assert len(as_bytes(np.array(7, "int16"))) == 2


# Casts

SOURCES = (
    *("bool", "uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64"),
    *("float16", "float32", "float64"),
)
EDGES = [
    *(sign * 2**n + more for n in (7, 8, 15, 16, 24, 31, 32, 53, 63) for sign in (1, -1)
      for more in (-1, 0, 1)),
    *(0, 2**64 - 1, 2**64, 2**128 - 2**104, 2**128),
    *(0.5, -0.0, 0.1, 1e-50, 1e300, float("inf"), float("-inf"), float("nan")),
]  # fmt: skip


def survives(value: Any, dtype: str) -> bool:
    """Whether a value is the same after the cast, by Python's exact comparison."""
    if math.isnan(value):
        return dtype in ("float32", "float64")
    if dtype in ("float32", "float64"):
        with np.errstate(all="ignore"):
            return np.dtype(dtype).type(value).item() == value
    limits = np.iinfo(dtype)
    return math.isfinite(value) and value == int(value) and limits.min <= value <= limits.max


@pytest.mark.parametrize("target", TYPES)
@pytest.mark.parametrize("source", SOURCES)
def test_a_cast_is_safe_exactly_where_every_value_survives(source: str, target: str) -> None:
    for edge in EDGES:
        try:
            with np.errstate(all="ignore"):
                array = np.array([0, edge]).astype(source)
        except OverflowError:
            continue
        value = array[1].item()
        if survives(value, target):
            kept = fitted(array, target, "safe")
            assert kept.dtype == target
            assert kept[1].item() == value or math.isnan(value)
        else:
            assert first_lossy(array, np.dtype(target)) == (1,)
            with pytest.raises(
                UnsupportedError, match=rf"at index \(1\) does not survive as {target}"
            ):
                fitted(array, target, "safe")


@given(
    st.sampled_from(SOURCES).flatmap(lambda source: arrays(source, array_shapes(min_side=0))),
    st.sampled_from(TYPES),
)
def test_the_first_lossy_value_is_the_first_that_changes(array: np.ndarray, target: str) -> None:
    changed = (i for i in np.ndindex(array.shape) if not survives(array[i].item(), target))
    assert first_lossy(array, np.dtype(target)) == next(changed, None)


def test_the_first_lossy_value_is_found_behind_many_blocks() -> None:
    array = np.zeros((3, 1000, 1000), "int64").transpose(2, 0, 1)
    array[999, 2, 999] = 300
    assert first_lossy(array, np.dtype("uint8")) == (999, 2, 999)


@given(st.sampled_from(SOURCES).flatmap(lambda source: arrays(source, array_shapes(min_side=0))))
def test_without_a_wish_the_smallest_type_of_the_kind_is_taken(array: np.ndarray) -> None:
    kind = (
        ("float32", "float64") if array.dtype.kind == "f" else ("uint8", "int8", "int16", "int32")
    )
    enough = [t for t in kind if all(survives(v, t) for v in array.ravel().tolist())]
    if array.dtype.name in CODES:
        assert fitted(array, None, "safe") is array
    elif enough:
        assert fitted(array, None, "safe").dtype == enough[0] == smallest_type(array)
    else:
        assert smallest_type(array) is None
        with pytest.raises(UnsupportedError, match="no element type of IDX holds every value"):
            fitted(array, None, "safe")


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("order", [">", "<"])
def test_the_six_types_pass_untouched_in_both_byte_orders(dtype: str, order: str) -> None:
    array = np.array(KNOWN[dtype][1]).astype(np.dtype(dtype).newbyteorder(order))
    for wanted in (None, dtype, big(dtype), np.dtype(dtype).type):
        for cast in (None, "safe"):
            assert fitted(array, wanted, cast) is array


REFUSED = [
    # values, dtype wanted, cast, what the error names
    (np.array([True]), None, None, ["bool", "uint8 would hold every value"]),
    (np.array([5, 0, 4]), None, None, ["int64", "uint8 would hold every value", 'cast="safe"']),
    (np.array([-5]), None, None, ["int64", "int8 would hold every value"]),
    (np.array([300]), None, None, ["int64", "int16 would hold every value"]),
    (np.array([2**31]), None, None, ["int64", "float64 would hold them exactly"]),
    (np.array([2**53 + 1]), None, None, ["int64", "its values run from 9007199254740993 to"]),
    (np.array([65535], "uint16"), None, None, ["uint16", "int32 would hold every value"]),
    (np.array([0.5], "float16"), None, None, ["float16", "float32 would hold every value"]),
    (np.array([1j]), None, None, ["complex128", "the element types of IDX are uint8, int8"]),
    (np.array([1j]), None, "safe", ["complex128", "the element types of IDX are uint8, int8"]),
    (np.array(["7"]), None, "safe", ["<U1", "the element types of IDX are"]),
    (np.array([b"7"]), None, "safe", ["|S1", "the element types of IDX are"]),
    (np.array(["2024-01-01"], "M8[D]"), None, "safe", ["datetime64[D]"]),
    (np.array([2**70]), None, "safe", ["object"]),
    (np.zeros(2, "u1,u1"), None, "safe", ["[('f0', 'u1'), ('f1', 'u1')]"]),
    (np.array([1.0]), "uint8", None, ["an IDX file of uint8 cannot hold float64", "uint8 would"]),
    (np.array([1.5]), "uint8", None, ["float64 would hold every value, uint8 would not"]),
    (np.array([[0, 7], [300, 9]]), "uint8", "safe", ["300 at index (1, 0)", "int16 would hold"]),
    (np.array(300), "uint8", "safe", ["300 does not survive as uint8"]),
    (np.array([0.1]), "float32", "safe", ["0.1 at index (0) does not survive as float32"]),
    (np.array([1]), "int64", "safe", ["IDX has no element type int64"]),
    (np.ma.array([1, 2], "uint8", mask=[0, 1]), None, None, ["cannot hold masked values"]),
    (np.ma.array([1, 2], mask=[1, 0]), "uint8", "safe", ["array.filled(value)"]),
    (np.array([1]), "bool", "safe", ["IDX has no element type bool"]),
]  # fmt: skip


@pytest.mark.parametrize(("values", "dtype", "cast", "named"), REFUSED)
def test_what_would_lose_something_is_refused_with_advice(
    values: np.ndarray, dtype: Any, cast: Any, named: list[str]
) -> None:
    with pytest.raises(UnsupportedError) as caught:
        fitted(values, dtype, cast)
    for text in named:
        assert text in str(caught.value)
    assert "\nhint: " in str(caught.value)


def test_lists_and_scalars_are_values_too() -> None:
    assert fitted([[1, 2], [3, 300]], None, "safe").dtype == "int16"
    assert fitted(True, None, "safe").dtype == "uint8"
    assert fitted([], None, "safe").dtype == "float64"  # what NumPy makes of an empty list
    assert fitted([], "uint8", "safe").dtype == "uint8"
    assert fitted(np.ma.array([1, 2], "uint8")).tolist() == [1, 2]  # nothing is masked


def test_only_the_one_cast_is_known() -> None:
    with pytest.raises(ValueError, match="cast must be None or \"safe\", not 'unsafe'"):
        fitted([1], None, "unsafe")  # type: ignore[arg-type]


@pytest.mark.parametrize("dtype", TYPES)
def test_a_type_may_be_given_in_every_way(dtype: str) -> None:
    for given_as in (dtype, np.dtype(dtype), big(dtype), np.dtype(dtype).type, np.dtype(dtype).str):
        assert idx_type_name(given_as) == dtype


def test_a_type_that_is_none_is_numpys_error() -> None:
    with pytest.raises(TypeError):
        idx_type_name("no such type")
