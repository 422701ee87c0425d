"""JAX: the same batches on devices; items and slabs for Grain."""

import pickle
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module

import numpy as np
import pytest
from samples import COUNT, DTYPES, arrays, pair, run

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def jax():
    return import_module("jax")


@pytest.fixture(scope="module")
def grain():
    return import_module("grain")


@pytest.fixture(scope="module")
def adapter():
    return import_module("idxfile.adapters.jax")


@pytest.fixture
def ds(tmp_path):
    return pair(tmp_path)


@pytest.mark.parametrize("dtype", DTYPES)
def test_batches(tmp_path, jax, adapter, dtype):
    ds = pair(tmp_path, dtype)
    loader = adapter.loader(ds, 10, seed=3)
    assert len(loader) == 11
    for epoch in range(2):
        expected = list(ds.batches(10, shuffle=True, seed=3 + epoch))
        found = list(loader)
        assert len(found) == len(expected)
        for (images, labels), (images_expected, labels_expected) in zip(
            found, expected, strict=True
        ):
            assert isinstance(images, jax.Array)
            assert images.dtype == ("float32" if dtype == "float64" else dtype)  # JAX's own default
            assert np.array_equal(images[..., 0], images_expected)
            assert labels.dtype == "int32"
            assert np.array_equal(labels, labels_expected)


def test_resuming_and_ranks(ds, adapter):
    whole = [labels.tolist() for _, labels in adapter.loader(ds, 10)]
    resumed = adapter.loader(ds, 10, start=7)
    assert [labels.tolist() for _, labels in resumed] == whole[7:]
    assert resumed.epochs.epoch == 1
    counts = [len(list(adapter.loader(ds, 5, rank=rank, world_size=4))) for rank in range(4)]
    assert counts == [5, 5, 5, 5]


def test_devices_and_shardings(tmp_path):
    pair(tmp_path)
    code = """
import sys, idxfile, jax, numpy as np
from idxfile.adapters.jax import loader
from jax.sharding import Mesh, NamedSharding, PartitionSpec
ds = idxfile.open_dataset(sys.argv[1], split="train")
first, second = jax.devices()
for device in (first, second):
    assert all(x.devices() == y.devices() == {device} for x, y in loader(ds, 16, device=device))
sharding = NamedSharding(Mesh(np.array([first, second]), ("batch",)), PartitionSpec("batch"))
here = loader(ds, 16, scale="unit", drop_last=True)
there = loader(ds, 16, scale="unit", drop_last=True, device=sharding)
for (x, y), (x2, y2) in zip(here, there, strict=True):
    assert x2.sharding == y2.sharding == sharding
    assert [part.data.shape for part in x2.addressable_shards] == [(8, 6, 5, 1)] * 2
    assert np.array_equal(x, x2) and np.array_equal(y, y2)
print("the same")
"""
    devices = "--xla_force_host_platform_device_count=2"
    assert run(code, tmp_path, XLA_FLAGS=devices, JAX_PLATFORMS="cpu") == "the same\n"


# Grain


def test_a_source_of_items(ds, grain, adapter):
    images, labels = arrays()
    source = adapter.dataset(ds)
    assert isinstance(source, grain.sources.RandomAccessDataSource)
    assert len(source) == COUNT
    image, label = source[7]
    assert np.array_equal(image[..., 0], images[7])
    assert label == labels[7]
    assert repr(source) == repr(adapter.dataset(ds))
    assert " at 0x" not in repr(source)
    for number in (-1, COUNT):
        with pytest.raises(IndexError):
            source[number]


def test_a_source_of_slabs(ds, adapter):
    images, labels = arrays()
    source = adapter.dataset(ds, slab_items=10, scale="unit")
    assert len(source) == 11
    slabs = [source[number] for number in range(len(source))]
    assert [len(slab) for slab, _ in slabs] == [10] * 10 + [3]
    assert np.allclose(np.concatenate([slab for slab, _ in slabs])[..., 0], images / 255)
    assert np.array_equal(np.concatenate([classes for _, classes in slabs]), labels)


def test_a_pipeline(ds, grain, adapter):
    images, labels = arrays()
    pipeline = grain.MapDataset.source(adapter.dataset(ds)).seed(0).shuffle().batch(10)
    batches = list(pipeline.to_iter_dataset())
    assert batches[0][0].shape == (10, 6, 5, 1)
    found = np.concatenate([x for x, _ in batches])[..., 0]
    assert sorted(x.tobytes() for x in found) == sorted(x.tobytes() for x in images)
    assert sorted(np.concatenate([y for _, y in batches])) == sorted(labels)


def test_it_pickles_small_and_serves_many_threads(tmp_path, adapter):
    source = adapter.dataset(pair(tmp_path, count=5000, codec="gz"))
    data = pickle.dumps(source)
    assert len(data) < 1000
    again = pickle.loads(data)
    with ThreadPoolExecutor(8) as pool:
        items = list(pool.map(again.__getitem__, range(len(again))))
    assert np.array_equal(np.stack([image for image, _ in items])[..., 0], source._gather.ds.images)
