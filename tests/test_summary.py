"""Statistics in one pass equal NumPy's over the whole array."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

import idxfile
from idxfile.source import threads
from idxfile.summary import BLOCK_NBYTES, duplicate_items, stats

TYPES = ["uint8", "int8", "int16", "int32", "float32", "float64"]


@settings(deadline=None)
@given(st.data(), st.sampled_from(TYPES))
def test_equal_to_numpy(data, dtype):
    bounded = {"min_value": -1e6, "max_value": 1e6} if dtype.startswith("f") else {}
    elements = npst.from_dtype(np.dtype(dtype), **bounded)
    array = data.draw(npst.arrays(dtype, npst.array_shapes(min_side=0), elements=elements))
    s = stats(idxfile.encode(array))
    assert s.shape == array.shape
    assert s.zeros == array.size - np.count_nonzero(array)
    assert sum(s.histogram) == array.size == s.count
    if array.size:
        assert (s.minimum, s.maximum) == (array.min(), array.max())
        assert s.mean == pytest.approx(array.mean(dtype="float64"), rel=1e-9, abs=1e-9)
        assert s.std == pytest.approx(array.std(dtype="float64"), rel=1e-6, abs=1e-6)
    else:
        assert (s.minimum, s.mean, s.std) == (None, None, None)


def test_blocks_are_joined_without_losing_digits(monkeypatch):
    array = np.random.default_rng(0).normal(1e6, 1, 100_000)
    monkeypatch.setattr("idxfile.summary.BLOCK_NBYTES", 1000)
    s = stats(array)
    assert s.mean == pytest.approx(array.mean(), rel=1e-14)
    assert s.std == pytest.approx(array.std(), rel=1e-9)


def test_what_is_no_number_is_counted_apart():
    s = stats(np.array([1.0, np.nan, np.inf, -np.inf, 3.0]))
    assert (s.count, s.not_finite, s.mean, s.maximum) == (2, 3, 2.0, 3.0)


def test_the_widest_range():
    s = stats(np.array([np.finfo("f8").min, 0.0, np.finfo("f8").max]))
    assert s.mean == 0
    assert s.histogram[0] == s.histogram[-1] == 1
    assert s.histogram[32] == 1


def test_uint8_is_exact():
    array = np.full((100, 1000), 255, "uint8")
    array[0, 0] = 254
    s = stats(array)
    assert s.total == 255 * 100_000 - 1
    assert s.histogram[254:] == (1, 99_999)
    assert s.unit_mean == s.mean / 255


def test_duplicates():
    x = idxfile.open(idxfile.encode(np.array([[1, 2], [3, 4], [1, 2], [1, 2]], "uint8")))
    y = idxfile.open(idxfile.encode(np.array([[3, 4]], "uint8")))
    assert duplicate_items(x) == 2
    assert duplicate_items(x, y) == 3


@pytest.mark.parametrize("dtype", ["uint8", "int8", "int32", "float32", "float64"])
def test_the_figures_are_the_same_on_an_executor(tmp_path, monkeypatch, dtype):
    """To the last digit, though the slabs are read by others."""
    monkeypatch.setattr("idxfile.summary.BLOCK_NBYTES", 4000)
    monkeypatch.setattr("idxfile.summary.SLAB_NBYTES", 13000)
    values = np.random.default_rng(0).normal(20, 30, (5000, 3))
    values = np.clip(values, 0, 100).astype(dtype)
    if dtype.startswith("float"):
        values[77, 1] = np.nan
    idxfile.write(tmp_path / "x.idx", values)
    idxfile.write(tmp_path / "x.idx.gz", values)
    alone = idxfile.stats(tmp_path / "x.idx")
    with ThreadPoolExecutor(3) as threads:
        assert idxfile.stats(tmp_path / "x.idx", executor=threads) == alone
        assert idxfile.stats(tmp_path / "x.idx.gz", executor=threads) == alone
        assert idxfile.stats(values, executor=threads).count == alone.count
        with idxfile.open(tmp_path / "x.idx") as x:
            ds = idxfile.Dataset(x, np.zeros(5000, int))
            assert idxfile.stats(ds.images, executor=threads) == alone
            few = ds.select(items=slice(0, 5000, 2)).images
            assert idxfile.stats(few, executor=threads).total == pytest.approx(
                float(np.nansum(values[::2], dtype="f8"))
            )


@pytest.mark.parametrize("dtype", ["uint8", "int16", "float32"])
@pytest.mark.parametrize("kind", ["raw", "gz", "blocked"])
def test_threads_change_no_digit(
    dtype: str, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    count = 3 * BLOCK_NBYTES // (999 * np.dtype(dtype).itemsize)
    values = np.random.default_rng(5).integers(0, 256, (count, 999), np.uint8).astype(dtype)
    path = tmp_path / "x.idx"
    idxfile.write(path, values, codec=None if kind == "raw" else "gz", blocked=kind == "blocked")
    found = []
    for workers in (1, 3):
        monkeypatch.setattr(threads, "WORKERS", workers)
        found.append(idxfile.stats(path))
    assert found[0] == found[1]
    assert found[0].total == int(values.sum(dtype=np.int64))
    if dtype == "uint8":
        assert found[0].histogram == tuple(np.bincount(values.reshape(-1), minlength=256))


def test_sums_beyond_float64_on_the_way_come_back():
    values = np.array([1.7e308, 1.7e308, -1.7e308, -1.7e308] * 300_000)
    found = idxfile.stats(values)
    assert (found.total, found.mean) == (0, 0)


def test_signalling_nans_are_nans():
    values = np.array([0x7FF0000000000001, 0x7FF8000000000001, 0], "uint64").view("float64")
    found = idxfile.stats(values)
    assert (found.not_finite, found.count) == (2, 1)
