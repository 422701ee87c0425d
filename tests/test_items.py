"""Items: every NumPy key on a view of chosen items equals NumPy's on the chosen array."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

import idxfile
from idxfile.items import Items

A = np.arange(5 * 2 * 3, dtype="int16").reshape(5, 2, 3)
B = np.arange(1000, 1000 + 4 * 2 * 3, dtype="int16").reshape(4, 2, 3)


def sources(kind):
    if kind == "arrays":
        return [A, B]
    mmap = kind == "mapped"
    return [idxfile.open(idxfile.encode(array), mmap=mmap) for array in (A, B)]


KINDS = ["arrays", "mapped", "positions"]


@settings(deadline=None)
@given(st.data(), st.sampled_from(KINDS), st.booleans())
def test_every_key_equals_numpy(data, kind, turned):
    index = np.array(data.draw(st.lists(st.integers(0, 8), min_size=1, max_size=12)))
    chosen = np.concatenate([A, B])[index]
    items = Items(sources(kind), index)
    if turned:
        items, chosen = items.transpose(), chosen.swapaxes(1, 2)
    key = data.draw(
        npst.basic_indices(chosen.shape)
        | npst.integer_array_indices(chosen.shape)
        | npst.arrays(bool, len(chosen))
    )
    expected, got = chosen[key], items[key]
    assert np.shape(got) == np.shape(expected)
    assert np.array_equal(got, expected)


@pytest.mark.parametrize("kind", KINDS)
def test_what_it_is(kind):
    items = Items(sources(kind))
    assert (items.shape, items.dtype, items.ndim, len(items)) == ((9, 2, 3), A.dtype, 3, 9)
    assert (items.size, items.nbytes, items.item_nbytes) == (54, 108, 12)
    assert np.array_equal(np.asarray(items), np.concatenate([A, B]))
    assert np.array_equal(np.concatenate(list(items.blocks(block_nbytes=24))), items[...])
    assert [item.tolist() for item in items] == np.concatenate([A, B]).tolist()


@pytest.mark.parametrize("kind", KINDS)
def test_take_into_memory_of_the_caller(kind):
    items = Items(sources(kind))
    for view, expected in ((items, [B[0], A[1]]), (items.transpose(), [B[0].T, A[1].T])):
        out = np.empty((2, *view.item_shape), "int16")
        assert view.take([5, 1], out=out) is out
        assert np.array_equal(out, expected)
    single = Items(sources(kind)[:1])
    out = np.empty((1, 2, 3), "int16")
    assert single.take([-1], out=out) is out
    assert np.array_equal(out[0], A[-1])


def test_choose_join_and_bounds():
    items = Items([A]).choose([4, 0]).join(Items([B]).choose([3]), Items([A]))
    assert np.array_equal(items[...], np.concatenate([A[[4, 0]], B[[3]], A]))
    with pytest.raises(IndexError):
        items.choose([8])
    with pytest.raises(IndexError):
        items[9]
    with pytest.raises(ValueError, match="make no one array"):
        Items([A, B.astype("int32")])
    with pytest.raises(ValueError, match="no rows and columns"):
        Items([A[:, 0, 0]]).transpose()
    with pytest.raises(ValueError, match="copy is needed"):
        np.array(items, copy=False)


def test_arrays_of_any_byte_order_come_out_native():
    items = Items([A.astype(">i2")])
    assert items.dtype.isnative
    assert items[2].dtype.isnative
    assert np.array_equal(items[...], A)


def test_numbers_and_whether_they_hop():
    whole = Items([np.arange(5), np.arange(5)])
    assert whole.numbers(2, 4).tolist() == [2, 3]
    assert not whole.hops
    assert not whole.choose([1, 1, 9]).hops
    mixed = whole.choose([1, 9, 0])
    assert mixed.hops
    assert mixed.numbers(1, 3).tolist() == [9, 0]
    assert mixed.renumbered(np.array([7, 0], "uint32"))[...].tolist() == [2, 0]
