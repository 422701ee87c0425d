"""Keys: the items that a key touches, the rest that NumPy does, and the ranges to read."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes

from conftest import REFUSALS, Index, assert_same_outcome, keys, outcome
from idxfile.selection import in_bounds, select, spans

SHAPES = array_shapes(max_dims=4, min_side=0, max_side=4)
SHAPES_AND_KEYS = SHAPES.flatmap(lambda shape: st.tuples(st.just(shape), keys(shape)))


def numbered(shape: tuple[int, ...]) -> np.ndarray:
    """An array whose every element is its own number."""
    return np.arange(np.prod(shape, dtype=int)).reshape(shape)


@given(SHAPES_AND_KEYS)
@example(((3, 2), ([0, 2], slice(None), None)))
@example(((3, 2), (None, True, -1)))
@example(((2, 2, 3), (np.ones((2, 2), bool), 1)))
def test_the_block_of_the_selected_items_gives_what_the_whole_gives(
    shape_and_key: tuple[tuple[int, ...], Any],
) -> None:
    shape, key = shape_and_key
    whole = numbered(shape)

    def of_the_block() -> Any:
        selection = select(key, shape)
        items = list(selection.items)
        assert items == sorted(set(items))
        return whole[np.array(items, int)][selection.key]

    assert_same_outcome(outcome(of_the_block), outcome(lambda: whole[key]), key)


@pytest.mark.parametrize(
    ("key", "items"),
    [
        (5, [5]),
        (-1, [9]),
        (np.int64(5), [5]),
        (Index(5), [5]),
        (slice(2, 5), [2, 3, 4]),
        (slice(None, None, 4), [0, 4, 8]),
        (slice(None, None, -4), [1, 5, 9]),
        (slice(5, 2), []),
        ([7, 3, 7, -3], [3, 7]),
        ([], []),
        (np.arange(10) % 4 == 1, [1, 5, 9]),
        ((slice(0, 2), 1), [0, 1]),
        ((..., 1), range(10)),
        ((None, 3), [3]),
        ((..., 3, 1), [3]),
        ((), range(10)),
        (True, range(10)),
    ],
)
def test_only_the_items_that_a_key_names_are_selected(key: Any, items: Any) -> None:
    assert list(select(key, (10, 2)).items) == list(items)


@given(SHAPES_AND_KEYS, st.integers(1, 3), st.data())
def test_an_assignment_in_parts_is_the_assignment(
    shape_and_key: tuple[tuple[int, ...], Any], step: int, data: st.DataObject
) -> None:
    shape, key = shape_and_key
    expected = numbered(shape)
    try:
        picked = expected[key]
    except REFUSALS:
        return
    values = -1 - numbered(np.shape(picked))
    squeeze = data.draw(st.integers(0, np.ndim(values)))
    values = values[(0,) * squeeze] if values.size else values
    values = values[(None,) * data.draw(st.integers(0, min(1, np.ndim(picked))))]
    found = expected.copy()
    try:
        expected[key] = values
    except TypeError:  # a mask of everything takes 1-D values only
        return
    selected = outcome(lambda: select(key, shape))
    if selected is IndexError:
        assert np.size(picked) == 0
        return
    for selection, part in selected.parts(values, shape[1:], step):
        items = np.array(list(selection.items), int)
        block = found[items]
        block[selection.key] = part
        found[items] = block
    assert (found == expected).all()


@given(SHAPES_AND_KEYS.filter(lambda both: both[0][0] > 0))
def test_values_of_another_shape_are_refused_before_anything_is_written(
    shape_and_key: tuple[tuple[int, ...], Any],
) -> None:
    shape, key = shape_and_key
    whole = numbered(shape)
    try:
        values = np.zeros((*whole[key].shape, 5, 7))
    except REFUSALS:
        return

    def first_part() -> Any:
        selection, part = next(select(key, shape).parts(values, shape[1:], 1))
        block = whole[np.array(list(selection.items), int)]
        block[selection.key] = part

    refused = outcome(lambda: whole.__setitem__(key, values))
    assert refused in (ValueError, TypeError)
    assert outcome(first_part) in (ValueError, IndexError)


def test_a_long_slice_is_assigned_in_parts_of_at_most_a_step() -> None:
    values = np.arange(20).reshape(10, 2)
    parts = list(select(slice(None, None, -1), (10, 2)).parts(values, (2,), 3))
    assert [list(s.items) for s, _ in parts] == [[0, 1, 2], [3, 4, 5], [6, 7, 8], [9]]
    assert [part.tolist() for _, part in parts] == [
        values[7:].tolist(),
        values[4:7].tolist(),
        values[1:4].tolist(),
        values[:1].tolist(),
    ]


# Item numbers


@given(st.lists(st.integers(-12, 12)), st.integers(0, 12))
def test_item_numbers_count_from_the_front(numbers: list[int], count: int) -> None:
    array = np.array(numbers, int)
    expected = outcome(lambda: np.arange(count)[array])
    found = outcome(lambda: in_bounds(array, count))
    assert found is IndexError if expected is IndexError else found.tolist() == expected.tolist()


@pytest.mark.parametrize("dtype", ["uint8", "uint64", "int8", ">i4"])
def test_item_numbers_may_have_any_integer_type(dtype: str) -> None:
    assert in_bounds(np.array([[3, 1]], dtype), 4).tolist() == [[3, 1]]


@pytest.mark.parametrize("numbers", [[0.0], [True], ["a"], [None], [2**64]])
def test_what_is_no_item_number_is_refused(numbers: list[Any]) -> None:
    with pytest.raises(IndexError, match="item numbers must be integers"):
        in_bounds(np.array(numbers), 5)


def test_the_first_item_that_is_not_there_is_named() -> None:
    with pytest.raises(IndexError, match="index -6 is out of bounds for axis 0 with size 5"):
        in_bounds(np.array([[4, -5], [-6, 9]]), 5)


def test_no_items_may_come_as_an_empty_list() -> None:
    assert in_bounds(np.array([]), 5).tolist() == []


# Ranges to read

ITEMS = st.one_of(
    st.builds(range, st.integers(0, 9), st.integers(0, 60), st.integers(1, 7)),
    st.sets(st.integers(0, 60)).map(lambda numbers: np.array(sorted(numbers), int)),
)


@given(ITEMS, st.integers(0, 5), st.integers(1, 20))
def test_the_ranges_bring_the_items_to_their_places(items: Any, gap: int, most: int) -> None:
    whole = np.arange(100) * 7
    found = np.full(len(items), -1)
    end = 0
    for start, stop, where, pick in spans(items, gap, most):
        assert end <= start < stop
        end = stop
        found[where] = whole[start:stop][pick]
        wanted = where.stop - where.start
        assert stop - start == wanted or stop - start <= max(most, 1)
        unwanted = np.setdiff1d(np.arange(start, stop), np.asarray(items))
        for run in np.split(unwanted, np.flatnonzero(np.diff(unwanted) > 1) + 1):
            assert len(run) <= gap
    assert found.tolist() == (np.asarray(items, int) * 7).tolist()


@pytest.mark.parametrize(
    ("items", "gap", "most", "ranges"),
    [
        (range(3, 9), 0, 2, [(3, 9)]),
        (range(0, 9, 2), 0, 100, [(0, 1), (2, 3), (4, 5), (6, 7), (8, 9)]),
        (range(0, 9, 2), 1, 100, [(0, 9)]),
        (range(0, 9, 2), 1, 4, [(0, 3), (4, 7), (8, 9)]),
        (range(4, 5, 100), 0, 1, [(4, 5)]),
        (range(0), 9, 9, []),
        (np.array([0, 1, 2, 9]), 0, 100, [(0, 3), (9, 10)]),
        (np.array([0, 2, 4, 9]), 1, 100, [(0, 5), (9, 10)]),
        (np.array([0, 2, 4, 6]), 1, 4, [(0, 3), (4, 7)]),
        (np.array([5, 6, 7, 8]), 0, 2, [(5, 9)]),
        (np.array([], int), 9, 9, []),
    ],
)
def test_neighbours_are_read_together(
    items: Any, gap: int, most: int, ranges: list[tuple[int, int]]
) -> None:
    assert [(start, stop) for start, stop, _, _ in spans(items, gap, most)] == ranges
