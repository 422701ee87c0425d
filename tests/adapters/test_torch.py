"""PyTorch: the same items, in every kind of worker, in tensors of their own."""

import pickle
from importlib import import_module

import numpy as np
import pytest
from samples import COUNT, DTYPES, arrays, pair, run

import idxfile

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def torch():
    return import_module("torch")


@pytest.fixture(scope="module")
def adapter():
    return import_module("idxfile.adapters.torch")


@pytest.fixture
def ds(tmp_path):
    return pair(tmp_path)


def listed(loader):
    return [(images.numpy(), labels.numpy()) for images, labels in loader]


def assert_same_batches(found, expected):
    found, expected = list(found), list(expected)
    assert len(found) == len(expected)
    for (images, labels), (images_expected, labels_expected) in zip(found, expected, strict=True):
        assert images.dtype == images_expected.dtype
        assert np.array_equal(images, images_expected[:, None])
        assert labels.dtype == np.int64
        assert np.array_equal(labels, labels_expected)


# The map-style dataset


@pytest.mark.parametrize("dtype", DTYPES)
def test_items(tmp_path, adapter, dtype):
    images, labels = arrays(dtype)
    dataset = adapter.dataset(pair(tmp_path, dtype))
    assert len(dataset) == COUNT
    image, label = dataset[7]
    assert image.shape == (1, 6, 5)
    assert str(image.dtype) == f"torch.{dtype}"
    assert np.array_equal(image[0], images[7])
    assert type(label) is int
    assert label == labels[7]
    batch, classes = dataset[[3, 1, -1]]
    assert np.array_equal(batch, images[[3, 1, -1], None])
    assert classes.tolist() == labels[[3, 1, -1]].tolist()
    with pytest.raises(IndexError):
        dataset[COUNT]


@pytest.mark.parametrize("shape", [(7,), (3, 4, 5)])
def test_items_that_are_not_grey_stay_as_they_are_stored(tmp_path, adapter, shape):
    images, _ = arrays(item_shape=shape)
    dataset = adapter.dataset(pair(tmp_path, item_shape=shape))
    assert np.array_equal(dataset[2][0], images[2])
    assert np.array_equal(dataset[[2, 4]][0], images[[2, 4]])


def test_a_plain_data_loader_collates_it(ds, torch, adapter):
    loader = torch.utils.data.DataLoader(adapter.dataset(ds, scale="unit"), batch_size=10)
    assert_same_batches(listed(loader), ds.batches(10, scale="unit"))


def test_subsets_and_random_splits(ds, torch, adapter):
    images, _ = arrays()
    some = torch.utils.data.Subset(adapter.dataset(ds), [5, 2])
    (batch, _), *_ = torch.utils.data.DataLoader(some, batch_size=2)
    assert np.array_equal(batch[:, 0], images[[5, 2]])
    assert len(torch.utils.data.random_split(adapter.dataset(ds), [0.5, 0.5])) == 2


def test_a_transform_of_items(ds, adapter):
    images, _ = arrays()
    dataset = adapter.dataset(ds, lambda image: image.flip(-1))
    assert np.array_equal(dataset[4][0][0], images[4, :, ::-1])
    ((image, _),) = dataset.__getitems__([4])
    assert np.array_equal(image[0], images[4, :, ::-1])


@pytest.mark.parametrize("codec", [None, "gz"])
def test_it_pickles_small(tmp_path, adapter, codec):
    dataset = adapter.dataset(pair(tmp_path, codec=codec, count=5000), scale=(0.1307, 0.3081))
    data = pickle.dumps(dataset)
    assert len(data) < 1000
    again = pickle.loads(data)
    assert np.array_equal(again[[9, 4999]][0], dataset[[9, 4999]][0])


# The loader


@pytest.mark.parametrize("shuffle", [True, False, "blocks"])
@pytest.mark.parametrize("scale", [None, "unit", (0.1, 0.3)])
def test_every_pass_is_the_next_epoch(ds, adapter, shuffle, scale):
    loader = adapter.loader(ds, 10, shuffle=shuffle, seed=3, scale=scale)
    assert len(loader) == 11
    for epoch in range(3):
        expected = ds.batches(10, shuffle=shuffle, seed=3 + epoch, scale=scale)
        assert_same_batches(listed(loader), expected)


def test_resuming(ds, adapter):
    loader = adapter.loader(ds, 10)
    listed(loader)
    second, third = listed(loader), listed(loader)
    resumed = adapter.loader(ds, 10, epoch=1, start=6)
    for expected in (second[6:], third):
        for found, wanted in zip(listed(resumed), expected, strict=True):
            assert np.array_equal(found[0], wanted[0])
            assert np.array_equal(found[1], wanted[1])
    resumed.sampler.set_epoch(1)
    assert np.array_equal(listed(resumed)[0][0], second[0][0])


def test_ranks_share_no_item(tmp_path, adapter):
    numbered = idxfile.Dataset(np.arange(50).reshape(-1, 1, 1), np.arange(50))
    seen = []
    for rank in range(3):
        batches = listed(adapter.loader(numbered, 5, rank=rank, world_size=3))
        assert [len(labels) for _, labels in batches] == [5, 5, 5, 1]
        seen += np.concatenate([labels for _, labels in batches]).tolist()
    assert len(set(seen)) == len(seen) == 48


def test_a_transform_gets_whole_batches(ds, torch, adapter):
    class Invert(torch.nn.Module):
        shapes = ()

        def forward(self, images):
            self.shapes = (*self.shapes, tuple(images.shape))
            return 1 - images

    invert = Invert()
    loader = adapter.loader(ds, 50, shuffle=False, scale="unit", transform=invert)
    images = np.concatenate([images for images, _ in listed(loader)])
    assert invert.shapes == ((50, 1, 6, 5), (50, 1, 6, 5), (3, 1, 6, 5))
    assert np.array_equal(
        images[:, 0], 1 - np.concatenate([x for x, _ in ds.batches(50, scale="unit")])
    )


WORKERS = """
import sys, idxfile, torch
from idxfile.adapters.torch import dataset, loader

def assert_same(here, there):
    for (x, y), (x2, y2) in zip(here, there, strict=True):
        assert torch.equal(x, x2) and torch.equal(y, y2)

def main():
    method, place = sys.argv[1:]
    ds = idxfile.open_dataset(place, split="train").select(labels=[0, 1, 3])
    options = {"workers": 2, "multiprocessing_context": method, "persistent_workers": True}
    here = loader(ds, 16, scale="unit", epoch=2, start=3)
    there = loader(ds, 16, scale="unit", epoch=2, start=3, **options)
    assert len(list(there)) == len(here) - 3 == len(list(here))
    for epoch in range(2):
        assert_same(here, there)
    single = torch.utils.data.DataLoader(
        dataset(ds), batch_size=16, num_workers=2, multiprocessing_context=method
    )
    assert_same(loader(ds, 16, shuffle=False), single)
    print("the same")

if __name__ == "__main__":
    main()
"""


@pytest.mark.parametrize(
    ("method", "codec"),
    [("fork", None), ("spawn", None), ("forkserver", None), ("fork", "gz"), ("forkserver", "gz")],
)
def test_workers_give_the_same_items(tmp_path, method, codec):
    pair(tmp_path, codec=codec)
    assert run(WORKERS, method, tmp_path) == "the same\n"


# Memory


@pytest.mark.parametrize("dtype", DTYPES)
def test_tensors_of_what_is_read_warn_of_nothing(tmp_path, torch, dtype):
    images, _ = arrays(dtype)
    file = str(tmp_path / "images")
    idxfile.write(file, images)
    tensor = torch.from_numpy(idxfile.read(file))
    assert np.array_equal(tensor, images)
    tensor += 1
    assert np.array_equal(idxfile.read(file), images)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("make", ["from_numpy", "asarray", "from_dlpack"])
def test_writing_over_a_copy_on_write_map_stays_in_this_process(tmp_path, torch, dtype, make):
    images, _ = arrays(dtype)
    file = str(tmp_path / "images")
    idxfile.write(file, images)
    with idxfile.open(file, mode="c") as array:
        tensor = getattr(torch, make)(array[...])
    tensor.zero_()
    assert not tensor.any()
    assert np.array_equal(idxfile.read(file), images)


def test_writing_over_a_read_only_map_does_not_crash_either(tmp_path, torch):
    images, _ = arrays()
    file = str(tmp_path / "images")
    idxfile.write(file, images)
    code = """
import sys, warnings, idxfile, torch
warnings.simplefilter("ignore")  # torch says that the array is not writeable
tensor = torch.from_numpy(idxfile.open(sys.argv[1])[...])
tensor.zero_()
print(int(tensor.sum()))
"""
    assert run(code, file) == "0\n"
    assert np.array_equal(idxfile.read(file), images)


@pytest.mark.parametrize("mode", ["r", "c"])
def test_what_the_loader_gives_is_its_takers_own(tmp_path, adapter, mode):
    images, _ = arrays()
    pair(tmp_path)
    ds = idxfile.open_dataset(tmp_path, split="train", mode=mode)
    for _ in range(2):
        for batch, _ in adapter.loader(ds, 10):
            batch.zero_()
        for image, _ in (adapter.dataset(ds)[n] for n in range(5)):
            image.zero_()
    assert np.array_equal(ds.images[...], images)
    assert np.array_equal(idxfile.open_dataset(tmp_path, split="train").images[...], images)
