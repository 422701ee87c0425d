"""scikit-learn: a Bunch with the fields of `load_digits`."""

from importlib import import_module

import numpy as np
import pytest
from samples import COUNT, DTYPES, arrays, pair

import idxfile

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def adapter():
    return import_module("idxfile.adapters.sklearn")


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_fields_of_load_digits(tmp_path, adapter, dtype):
    digits = import_module("sklearn.datasets").load_digits()
    images, labels = arrays(dtype)
    bunch = adapter.dataset(pair(tmp_path, dtype))
    assert type(bunch) is type(digits)
    assert set(bunch) == set(digits)
    assert bunch.data.dtype == bunch.images.dtype == dtype
    assert np.array_equal(bunch.images, images)
    assert np.array_equal(bunch.data, images.reshape(COUNT, 30))
    assert np.shares_memory(bunch.data, bunch.images)
    assert bunch.target.dtype == digits.target.dtype
    assert np.array_equal(bunch.target, labels)
    assert bunch.frame is None
    assert bunch.feature_names[:2] == digits.feature_names[:2] == ["pixel_0_0", "pixel_0_1"]
    assert len(bunch.feature_names) == 30
    assert bunch.target_names.tolist() == [0, 1, 2, 3]
    assert "103 items" in bunch.DESCR


def test_names_and_scaling(adapter):
    images, labels = arrays(item_shape=(3, 2, 2))
    ds = idxfile.Dataset(images, labels, classes=("a", None, "c", "d", "e"), name="letters")
    bunch = adapter.dataset(ds.select(labels=["c"]), scale="unit")
    assert bunch.target_names.tolist() == ["a", "1", "c", "d", "e"]
    assert set(bunch.target_names[bunch.target]) == {"c"}
    assert bunch.data.dtype == np.float32
    assert np.allclose(bunch.images, images[labels == 2] / 255)
    assert bunch.feature_names[-1] == "pixel_2_1_1"
    assert bunch.DESCR.startswith("letters")


def test_an_estimator_learns_from_it(tmp_path, adapter):
    neighbors = import_module("sklearn.neighbors")
    bunch = adapter.dataset(pair(tmp_path))
    model = neighbors.KNeighborsClassifier(1).fit(bunch.data, bunch.target)
    assert model.score(bunch.data, bunch.target) == 1


def test_an_empty_selection(tmp_path, adapter):
    bunch = adapter.dataset(pair(tmp_path).select(labels=9))
    assert bunch.data.shape == (0, 30)
    assert bunch.target_names.tolist() == []
