"""TensorFlow: the same items, read by TensorFlow from raw and .gz files, or through Python."""

import gzip
import os
import warnings
from importlib import import_module

import numpy as np
import pytest
from samples import COUNT, DTYPES, arrays, pair

import idxfile

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def adapter():
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    with warnings.catch_warnings(action="ignore"):
        return import_module("idxfile.adapters.tensorflow")


def assert_same(dataset, ds, *, batch_size=None):
    pairs = list(dataset.as_numpy_iterator())
    assert dataset.cardinality() == len(pairs)
    join = np.stack if batch_size is None else np.concatenate
    images = join([image for image, _ in pairs])
    labels = join([label for _, label in pairs])
    expected = ds.images[...]
    assert images.dtype == expected.dtype
    assert np.array_equal(images, expected[..., None] if expected.ndim == 3 else expected)
    assert labels.dtype == np.int64
    assert np.array_equal(labels, ds.labels)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("codec", [None, "gz", "xz"])
@pytest.mark.parametrize("batch_size", [None, 10])
def test_items_and_batches(tmp_path, adapter, dtype, codec, batch_size):
    ds = pair(tmp_path, dtype, codec=codec)
    assert (adapter._records(ds.images, 10) is None) == (codec == "xz")
    dataset = adapter.dataset(ds, batch_size)
    assert_same(dataset, ds, batch_size=batch_size)
    leading = () if batch_size is None else (None,)
    assert dataset.element_spec[0].shape.as_list() == [*leading, 6, 5, 1]
    assert dataset.element_spec[0].dtype == dtype


@pytest.mark.parametrize("shape", [(7,), (3, 4, 5)])
def test_items_that_are_not_grey_stay_as_they_are_stored(tmp_path, adapter, shape):
    ds = pair(tmp_path, "int16", shape)
    assert_same(adapter.dataset(ds), ds)


def test_selections_and_arrays_go_through_python(tmp_path, adapter):
    ds = pair(tmp_path)
    images, labels = arrays()
    for made in (
        ds.select(labels=[1, 2]),
        ds.shuffle(0),
        ds.transpose(),
        ds.merge(ds),
        idxfile.Dataset(images, labels),
        idxfile.Dataset(idxfile.open(idxfile.encode(images)), labels),
        ds.select(labels=9),
    ):
        assert adapter._records(made.images, 10) is None
        if len(made):
            assert_same(adapter.dataset(made), made)
        assert len(list(adapter.dataset(made))) == len(made)


def test_changes_that_only_this_process_knows_are_seen(tmp_path, adapter):
    pair(tmp_path)
    images = idxfile.open(tmp_path / "train-images-idx3-ubyte", mode="c")
    images[3] = 0
    ds = idxfile.Dataset(images, arrays()[1])
    assert_same(adapter.dataset(ds), ds)


def test_a_gzip_of_several_members(tmp_path, adapter):
    images, labels = arrays()
    data = idxfile.encode(images)
    file = tmp_path / "many.gz"
    file.write_bytes(gzip.compress(data[:1000]) + gzip.compress(data[1000:]))
    ds = idxfile.Dataset(idxfile.open(file), labels)
    assert adapter._records(ds.images, 10) is not None
    assert_same(adapter.dataset(ds), ds)


def test_a_cut_gzip_is_an_error(tmp_path, adapter):
    images, labels = arrays()
    file = tmp_path / "cut.gz"
    file.write_bytes(gzip.compress(idxfile.encode(images))[:-500])
    ds = idxfile.Dataset(idxfile.open(file), labels)
    tf = import_module("tensorflow")
    with pytest.raises(tf.errors.OpError):
        list(adapter.dataset(ds))


def test_shuffling_and_training(tmp_path, adapter):
    keras = import_module("keras")
    ds = pair(tmp_path)
    dataset = adapter.dataset(ds).shuffle(COUNT, seed=0).batch(16)
    model = keras.Sequential([keras.layers.Flatten(), keras.layers.Dense(4)])
    model.compile("sgd", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    model.fit(dataset, epochs=1, shuffle=False, verbose=0)
    model.fit(adapter.loader(ds, 16, scale="unit"), epochs=1, shuffle=False, verbose=0)
