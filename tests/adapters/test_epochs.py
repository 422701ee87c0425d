"""What the loaders share: orders, resuming, ranks, gathering; and data sets that pickle small."""

import pickle

import numpy as np
import pytest
from samples import COUNT, DTYPES, arrays, pair, run

import idxfile
from idxfile import Dataset
from idxfile.adapters.epochs import Epochs, Gather


@pytest.fixture
def ds():
    return Dataset(*arrays())


def listed(epochs):
    return [positions.tolist() for positions in epochs]


@pytest.mark.parametrize("shuffle", [True, False, "blocks"])
@pytest.mark.parametrize("drop_last", [True, False])
def test_epoch_e_is_the_pass_of_the_data_set_with_seed_plus_e(shuffle, drop_last):
    numbered = Dataset(np.arange(COUNT).reshape(-1, 1, 1), np.arange(COUNT))
    epochs = Epochs(numbered, 10, shuffle=shuffle, seed=5, drop_last=drop_last, epoch=2)
    for epoch in (2, 3, 4):
        batches = numbered.batches(10, shuffle=shuffle, seed=5 + epoch, drop_last=drop_last)
        expected = [labels.tolist() for _, labels in batches]
        assert epochs.epoch == epoch
        assert len(epochs) == len(expected)
        assert listed(epochs) == expected


def test_resuming_gives_the_rest_of_the_pass_and_then_whole_ones(ds):
    whole = Epochs(ds, 10)
    first, second = listed(whole), listed(whole)
    resumed = Epochs(ds, 10, start=4)
    assert listed(resumed) == first[4:]
    assert listed(resumed) == second
    resumed.set_epoch(0)
    assert listed(resumed) == first


def test_no_seed_is_another_order_each_time(ds):
    epochs = Epochs(ds, COUNT, seed=None)
    assert listed(epochs) != listed(epochs)


@pytest.mark.parametrize("shuffle", [True, False, "blocks"])
@pytest.mark.parametrize("world_size", [1, 2, 3, 7])
def test_ranks_share_no_item_and_get_the_same_number(ds, shuffle, world_size):
    ranks = [
        Epochs(ds, 8, shuffle=shuffle, rank=rank, world_size=world_size)
        for rank in range(world_size)
    ]
    for _ in range(2):
        each = [[item for batch in listed(epochs) for item in batch] for epochs in ranks]
        assert {len(items) for items in each} == {COUNT // world_size}
        everyone = [item for items in each for item in items]
        assert len(set(everyone)) == len(everyone) == COUNT - COUNT % world_size


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"batch_size": 0}, "at least one item"),
        ({"shuffle": "yes"}, "shuffle must be"),
        ({"rank": 2, "world_size": 2}, "rank counts from 0"),
        ({"seed": None, "world_size": 2}, "same seed"),
    ],
)
def test_what_makes_no_epochs(ds, options, message):
    with pytest.raises(ValueError, match=message):
        Epochs(ds, **{"batch_size": 8, **options})


@pytest.mark.parametrize("dtype", DTYPES)
def test_gathering(dtype):
    images, labels = arrays(dtype)
    gather = Gather(Dataset(images, labels))
    batch, classes = gather([5, 0, -1])
    assert batch.dtype == dtype
    assert np.array_equal(batch, images[[5, 0, -1], ..., None])
    assert classes.dtype == np.int64
    assert classes.tolist() == labels[[5, 0, -1]].tolist()
    item, label = gather(5)
    assert np.array_equal(item, images[5][..., None])
    assert label == labels[5]


def test_gathering_with_channels_first_scaled(ds):
    images, _ = arrays()
    batch, _ = Gather(ds, (0.5, 0.25), channels_first=True)([1, 2])
    assert batch.dtype == np.float32
    assert batch.shape == (2, 1, 6, 5)
    assert np.allclose(batch[:, 0], (images[1:3] / 255 - 0.5) / 0.25, atol=1e-6)


@pytest.mark.parametrize("shape", [(), (7,), (3, 4, 5)])
def test_items_that_are_not_grey_stay_as_they_are_stored(shape):
    images, labels = arrays(item_shape=shape)
    batch, _ = Gather(Dataset(images, labels), channels_first=True)(np.arange(4))
    assert np.array_equal(batch, images[:4])


# Pickling


@pytest.mark.parametrize("codec", [None, "gz"])
def test_a_data_set_of_files_pickles_as_their_places(tmp_path, codec):
    ds = pair(tmp_path, codec=codec, count=5000)
    for made in (ds, ds.transpose()):
        data = pickle.dumps(made)
        assert len(data) < 1000
        again = pickle.loads(data)
        assert np.array_equal(again.images[...], made.images[...])
        assert np.array_equal(again.labels, made.labels)
        assert (again.split, again.classes) == ("train", None)


@pytest.mark.parametrize(
    "make",
    [
        lambda ds: ds.select(labels=[1, 3]),
        lambda ds: ds.shuffle(1).select(limit=20).transpose(),
        lambda ds: ds.random_split([0.3], seed=0)[0].select(items=[3, 3, 1]),
        lambda ds: ds.relabel({1: 2}).select(labels=2),
        lambda ds: ds.merge(ds.shuffle(2)),
        lambda ds: ds.select(labels=9),
    ],
)
def test_selections_pickle(tmp_path, make):
    made = make(pair(tmp_path))
    again = pickle.loads(pickle.dumps(pickle.loads(pickle.dumps(made))))
    assert np.array_equal(again.images[...], made.images[...])
    assert np.array_equal(again.labels, made.labels)


def test_other_labels_meanwhile_are_an_error(tmp_path):
    ds = pair(tmp_path)
    data = pickle.dumps(ds)
    idxfile.write(tmp_path / "train-labels-idx1-ubyte", np.zeros(COUNT + 1, "uint8"))
    with pytest.raises(idxfile.FormatError, match="has changed"):
        pickle.loads(data)


def test_labels_that_travel_as_a_place_cannot_be_changed_on_the_way(tmp_path):
    images, labels = arrays()
    idxfile.write(tmp_path / "x-images-idx3-ubyte", images)
    idxfile.write(tmp_path / "x-labels-idx1-int", labels.astype("int32"))
    ds = idxfile.open_dataset((tmp_path / "x-images-idx3-ubyte", tmp_path / "x-labels-idx1-int"))
    with pytest.raises(ValueError, match="read-only"):
        ds.labels[0] = 3


def test_no_framework_is_imported_unasked():
    frameworks = "torch jax grain keras tensorflow sklearn datasets pyarrow PIL"
    code = f"""
import sys, idxfile, idxfile.adapters, idxfile.adapters.epochs
idxfile.Dataset
print([name for name in "{frameworks}".split() if name in sys.modules])
"""
    assert run(code).strip() == "[]"
