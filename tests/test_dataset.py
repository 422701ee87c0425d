"""Datasets: any chain of operations equals the same on plain NumPy arrays, and stays aligned."""

import gzip
import os
import pickle
import zipfile

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import idxfile
from idxfile import Dataset, PairError, open_dataset
from idxfile.batching import block_order, generator
from idxfile.items import Items

MNIST = "tests/data/mnist"


def make(count=20, rows=2, columns=3, classes=4):
    """A data set whose images tell which item they are, and its arrays."""
    images = np.arange(count * rows * columns, dtype="int32").reshape(count, rows, columns)
    labels = (np.arange(count) * 7 % classes).astype("uint8")
    return images, labels


def same(ds, images, labels):
    assert np.array_equal(ds.images[...], images)
    assert ds.labels.tolist() == list(labels)
    assert len(ds) == len(images) == len(ds.images)
    assert ds.images.shape == images.shape


# Chains of operations against NumPy


def apply_select_labels(data, draw):
    images, labels, ds = data
    wanted = draw(st.lists(st.integers(0, 4), max_size=3))
    keep = np.isin(labels, wanted)
    return images[keep], labels[keep], ds.select(labels=wanted)


def apply_slice(data, draw):
    images, labels, ds = data
    key = draw(st.slices(max(1, len(labels))))
    return images[key], labels[key], ds.select(items=key)


def apply_limit(data, draw):
    images, labels, ds = data
    limit = draw(st.integers(0, 30))
    return images[:limit], labels[:limit], ds.select(limit=limit)


def apply_where(data, draw):
    images, labels, ds = data
    bound = draw(st.integers(0, 200))
    keep = images.reshape(len(images), -1)[:, 0] < bound if len(images) else np.empty(0, bool)
    return images[keep], labels[keep], ds.select(where=lambda x, y: x[:, 0, 0] < bound)


def apply_shuffle(data, draw):
    images, labels, ds = data
    seed = draw(st.integers(0, 5))
    order = np.random.Generator(np.random.PCG64(seed)).permutation(len(labels))
    return images[order], labels[order], ds.shuffle(seed)


def apply_merge(data, draw):
    images, labels, ds = data
    other_images, other_labels = make(5)
    if images.shape[1:] != other_images.shape[1:]:
        return data
    return (
        np.concatenate([images, other_images]),
        np.concatenate([labels, other_labels]),
        ds.merge(Dataset(other_images, other_labels)),
    )


def apply_transpose(data, draw):
    images, labels, ds = data
    return images.swapaxes(1, 2), labels, ds.transpose()


def apply_relabel(data, draw):
    images, labels, ds = data
    mapping = draw(st.dictionaries(st.integers(0, 4), st.integers(0, 4), max_size=3))
    changed = np.array([mapping.get(int(label), int(label)) for label in labels], "int64")
    return images, changed, ds.relabel(mapping)


OPERATIONS = [
    apply_select_labels,
    apply_slice,
    apply_limit,
    apply_where,
    apply_shuffle,
    apply_merge,
    apply_transpose,
    apply_relabel,
]


@settings(deadline=None)
@given(st.data(), st.lists(st.sampled_from(OPERATIONS), max_size=6), st.booleans())
def test_any_chain_equals_numpy(data, operations, from_file):
    images, labels = make()
    source = idxfile.open(idxfile.encode(images)) if from_file else images
    state = images, labels, Dataset(source, labels)
    for operation in operations:
        state = operation(state, data.draw)
    images, labels, ds = state
    same(ds, images, labels)
    if len(ds):
        item = data.draw(st.integers(-len(ds), len(ds) - 1))
        image, label = ds[item]
        assert np.array_equal(image, images[item])
        assert label == labels[item]
    order = np.arange(len(ds))[::-1]
    batch, batch_labels = ds[order]
    assert np.array_equal(batch, images[order])
    assert np.array_equal(batch_labels, labels[order])


def test_the_case_of_three_items():
    ds = Dataset(np.array([[10], [20], [30]], "uint8"), np.array([1, 2, 1]))
    ones = ds.select(labels=1)
    assert ones.images[...].tolist() == [[10], [30]]
    assert ones.labels.tolist() == [1, 1]
    assert (len(ones), len(ones.images)) == (2, 2)


def test_selections_are_views_that_read_nothing(tmp_path):
    class Untouchable(np.ndarray):
        def __getitem__(self, key):
            raise AssertionError("read too early")

    images = np.zeros((4, 2, 2), "uint8").view(Untouchable)
    ds = Dataset(Items([images]), np.array([0, 1, 0, 1]))
    chosen = ds.select(labels=1).shuffle(0).merge(ds).transpose()
    assert len(chosen) == 6


# Random orders


def test_the_random_order_is_pinned():
    assert generator(0).permutation(10).tolist() == [4, 6, 2, 7, 3, 5, 9, 0, 8, 1]
    images, labels = make(10)
    assert Dataset(images, labels).shuffle(0).images[:, 0, 0].tolist() == [
        24, 36, 12, 42, 18, 30, 54, 0, 48, 6,
    ]  # fmt: skip


def test_stratified_split_keeps_the_shares_and_loses_nothing():
    labels = np.repeat([0, 1, 2], [60, 30, 10])
    ds = Dataset(np.arange(100, dtype="int32").reshape(100, 1), labels)
    train, test = ds.random_split((0.9, 0.1), seed=0, stratify=True)
    assert train.class_counts() == {0: 54, 1: 27, 2: 9}
    assert test.class_counts() == {0: 6, 1: 3, 2: 1}
    together = np.concatenate([train.images[...], test.images[...]])
    assert sorted(together.reshape(-1).tolist()) == list(range(100))


@pytest.mark.parametrize("fractions", [(), (0.5, 0.6), (-0.1, 0.2)])
def test_fractions_that_make_no_sense(fractions):
    with pytest.raises(ValueError, match="fractions"):
        Dataset(*make()).random_split(fractions)


# Batches


@pytest.mark.parametrize("shuffle", [False, True, "blocks"])
@pytest.mark.parametrize("drop_last", [False, True])
def test_batches_hold_every_item_once_and_aligned(shuffle, drop_last):
    images, labels = make(23)
    ds = Dataset(images, labels)
    got = list(ds.batches(5, shuffle=shuffle, seed=3, drop_last=drop_last))
    assert [len(y) for _, y in got] == [5] * 4 + ([] if drop_last else [3])
    numbers = np.concatenate([x[:, 0, 0] // 6 for x, _ in got])
    assert len(set(numbers.tolist())) == len(numbers)
    for x, y in got:
        assert np.array_equal(x, images[x[:, 0, 0] // 6])
        assert np.array_equal(y, labels[x[:, 0, 0] // 6])
    again = list(ds.batches(5, shuffle=shuffle, seed=3, drop_last=drop_last))
    assert all(np.array_equal(a[0], b[0]) for a, b in zip(got, again, strict=True))


@pytest.mark.parametrize("shuffle", [False, True, "blocks"])
def test_a_pass_is_resumed_where_it_was(shuffle):
    ds = Dataset(*make(23))
    whole = list(ds.batches(4, shuffle=shuffle, seed=1))
    rest = list(ds.batches(4, shuffle=shuffle, seed=1, start=2))
    assert len(rest) == len(whole) - 2
    for (x, y), (p, q) in zip(whole[2:], rest, strict=True):
        assert np.array_equal(x, p)
        assert np.array_equal(y, q)


def test_block_shuffle_mixes_whole_runs(monkeypatch):
    monkeypatch.setattr("idxfile.batching.RUN_NBYTES", 40)
    monkeypatch.setattr("idxfile.batching.POOL_RUNS", 3)
    pools = list(block_order(100, 4, 0))
    assert sorted(np.concatenate(pools).tolist()) == list(range(100))
    assert [len(pool) for pool in pools] == [30, 30, 30, 10]
    for pool in pools:  # three runs of ten neighbours each, mixed
        assert len({n // 10 for n in pool.tolist()}) == len(pool) // 10
    assert pools[0].tolist() != sorted(pools[0].tolist())
    ds = Dataset(np.arange(100, dtype="int32"), np.arange(100) % 3)
    order = np.concatenate(pools).tolist()
    for out in (None, np.empty(7, "int32")):
        got = [x.copy() for x, _ in ds.batches(7, shuffle="blocks", seed=0, out=out)]
        assert np.concatenate(got).tolist() == order


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("runs", [1, 2, 5])
def test_block_shuffle_is_aligned_whatever_the_sizes(monkeypatch, tmp_path, seed, runs):
    """The short run at the end falls into any pool, the first one too; batches cross pools."""
    monkeypatch.setattr("idxfile.batching.RUN_NBYTES", 40)
    monkeypatch.setattr("idxfile.batching.POOL_RUNS", runs)
    idxfile.write(tmp_path / "x.idx", np.arange(103, dtype="int32"))
    order = np.concatenate([*block_order(103, 4, seed)])
    for size in (1, 7, 64, 200):
        for start in (0, 1, 3):
            with idxfile.open(tmp_path / "x.idx") as x:
                parts = Dataset(x, np.arange(103)).batches(
                    size, shuffle="blocks", seed=seed, scale=(0, 1 / 2**31), start=start
                )
                pairs = [(images, labels) for images, labels in parts]
            labels = np.concatenate([y for _, y in pairs] or [np.arange(0)])
            assert labels.tolist() == order[start * size :].tolist()
            images = np.concatenate([x for x, _ in pairs] or [np.arange(0)])
            assert np.rint(images * (1 - 1 / 2**31)).tolist() == labels.tolist()


def test_block_shuffle_sees_what_was_written_in_mode_c(tmp_path):
    idxfile.write(tmp_path / "x.idx", np.zeros(9, "uint8"))
    with idxfile.open(tmp_path / "x.idx", mode="c") as x:
        x[4] = 7
        ((images, labels),) = Dataset(x, np.arange(9)).batches(9, shuffle="blocks", seed=0)
        assert images.tolist() == np.where(labels == 4, 7, 0).tolist()


def test_scales():
    images = np.array([[0, 51, 255]], "uint8")
    ds = Dataset(images, np.array([0]))
    ((unit, _),) = ds.batches(1, scale="unit")
    assert unit.dtype == np.float32
    assert np.allclose(unit, [[0, 0.2, 1]])
    ((normal, _),) = ds.batches(1, scale=(0.2, 0.5), dtype="float64")
    assert normal.dtype == np.float64
    assert np.allclose(normal, [[-0.4, 0, 1.6]])
    floats = Dataset(np.array([[1.0, 3.0]]), np.array([0]))
    ((centred, _),) = floats.batches(1, scale=(1, 2))
    assert np.allclose(centred, [[0, 1]])
    for scale in ("percent", (1, 0), (1,)):
        with pytest.raises(ValueError, match=r"scale|deviation"):
            next(ds.batches(1, scale=scale))
    with pytest.raises(ValueError, match="floats"):
        next(ds.batches(1, scale="unit", dtype="uint8"))


def test_batches_into_memory_of_the_caller():
    images, labels = make(5)
    out = np.empty((2, 2, 3), np.float32)
    for number, (x, _) in enumerate(Dataset(images, labels).batches(2, scale=(0, 1), out=out)):
        assert x.base is out
        assert np.allclose(x, images[2 * number : 2 * number + 2] / (2**31 - 1))
    with pytest.raises(ValueError, match="out must be"):
        next(Dataset(images, labels).batches(2, out=np.empty((2, 2, 2), np.int32)))


# Saving


@pytest.mark.parametrize("codec", [None, "gz", "zst"])
def test_save_and_open_again(tmp_path, codec):
    images, labels = make()
    ds = Dataset(images, labels.astype("int64"), classes=["a", None, "c", "d"], split="test")
    saved = ds.select(labels=["a", "d"]).save(tmp_path, codec=codec)
    suffix = f".{codec}" if codec else ""
    assert [p.rpartition("/")[2] for p in saved] == [
        f"test-images-idx3-int{suffix}",
        f"test-labels-idx1-ubyte{suffix}",
    ]
    again = open_dataset(tmp_path)
    keep = np.isin(labels, [0, 3])
    same(again, images[keep], labels[keep])
    assert again.classes == ("a", None, "c", "d")
    assert again.split == "test"
    assert idxfile.check(saved[0]).ok


def test_a_matrix_of_labels_travels_whole(tmp_path):
    table = np.array([[3, 1000], [1, -5]], "int32")
    ds = Dataset(np.zeros((2, 2, 2), "uint8"), table, columns=["class", "writer"])
    assert ds.labels.tolist() == [3, 1]
    ds.shuffle(1).save(tmp_path)
    again = open_dataset(tmp_path)
    assert again.table.tolist() == table[generator(1).permutation(2)].tolist()


def test_an_empty_selection_makes_a_right_file(tmp_path):
    empty = Dataset(*make()).select(labels=99)
    empty.save(tmp_path)
    again = open_dataset(tmp_path)
    assert again.images.shape == (0, 2, 3)
    assert again.labels.tolist() == []


# Alignment is demanded


def test_counts_that_differ():
    with pytest.raises(PairError, match="images: 2 items, labels: 3 items"):
        Dataset(np.zeros((2, 1)), np.zeros(3, int))


def test_labels_that_are_none():
    with pytest.raises(PairError, match="wrong way round"):
        Dataset(np.zeros((3,), int), np.zeros((3, 2, 2), "uint8"))


@pytest.mark.parametrize("shards", [None, 2])
def test_a_folder_that_was_made_goes_if_nothing_comes(shards, tmp_path):
    data = gzip.compress(idxfile.encode(np.zeros((9, 99, 99), "uint8")))[:-9]
    ds = open_dataset((data, idxfile.encode(np.zeros(9, "uint8"))))
    for folder in ("new", "new/and/below"):
        with pytest.raises(idxfile.FormatError):
            ds.save(tmp_path / folder, shards=shards)
    assert os.listdir(tmp_path) == []


def test_a_scalar_is_no_set():
    with pytest.raises(PairError, match="a scalar has no items"):
        open_dataset((b"\0\0\x08\0\5", idxfile.encode(np.array([1], "uint8"))))


def test_merging_what_does_not_fit():
    ds = Dataset(*make())
    with pytest.raises(PairError, match=r"int32 5 × 5; those of the ones before are int32 2 × 3"):
        ds.merge(Dataset(np.zeros((1, 5, 5), "int32"), [0]))
    with pytest.raises(PairError, match="items are uint8 2 × 3; those"):
        ds.merge(Dataset(np.zeros((1, 2, 3), "uint8"), [0]))
    with pytest.raises(PairError, match=r"columns of labels are 3; those .* are 1"):
        ds.merge(Dataset(make()[0], np.zeros((20, 3), "int8")))
    named = Dataset(*make(), classes=list("abcd"))
    other = Dataset(*make(), classes=("w", None))
    with pytest.raises(PairError, match=r"classes are w, -; those .* are a, b, c, d"):
        named.merge(ds, other)
    with pytest.raises(PairError, match=r"classes are w, -; those .* are a, b, c, d"):
        ds.merge(named, other)  # those that have names are compared, whichever they are
    assert ds.merge(ds, named).classes == tuple("abcd")
    with pytest.raises(ValueError, match="no class is called 'nobody'; there are a, b, c, d"):
        named.select(labels="nobody")


def test_whole_files_are_merged_without_a_list_of_their_items():
    merged = Dataset(*make()).merge(Dataset(*make(5)), Dataset(*make(3)))
    assert merged.images._index is None
    assert [len(array) for array in merged.images.arrays] == [20, 5, 3]
    chosen = Dataset(*make()).select(items=[3, 1]).merge(Dataset(*make(2)))
    assert chosen.images.index.tolist() == [3, 1, 20, 21]


# Real MNIST, and where pairs lie


def test_mnist_counts_and_normalisation():
    ds = open_dataset(MNIST, split="train")
    assert ds.split == "train"
    assert list(ds.class_counts().values()) == [
        5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949,
    ]  # fmt: skip
    summary = ds.stats()
    assert round(summary.unit_mean, 4) == 0.1307
    assert round(summary.unit_std, 4) == 0.3081
    assert ds.labels[:10].tolist() == [5, 0, 4, 1, 9, 2, 1, 3, 1, 4]


IMAGES, LABELS = np.zeros((3, 2, 2), "uint8"), np.array([1, 0, 1], "uint8")
NAMES = {
    "train-images-idx3-ubyte": "train-labels-idx1-ubyte",
    "train-images.idx3-ubyte": "train-labels.idx1-ubyte",
    "train-images-idx3-ubyte.gz": "train-labels-idx1-ubyte.gz",
    "train-images.idx3-ubyte.xz": "train-labels-idx1-ubyte.bz2",
    "emnist-letters-train-images-idx3-ubyte.zst": "emnist-letters-train-labels-idx1-ubyte",
    "qmnist-train-images-idx3-ubyte.gz": "qmnist-train-labels-idx2-int.gz",
    "X_kannada_MNIST_train-idx3-ubyte.gz": "y_kannada_MNIST_train-idx1-ubyte.gz",
    "mnist8m-patterns-idx3-ubyte": "mnist8m-labels-idx1-ubyte",
    "3.image-idx3-ubyte": "3.label-idx1-ubyte",
}


@pytest.mark.parametrize(("images", "labels"), NAMES.items())
def test_every_usual_name(tmp_path, images, labels):
    idxfile.write(tmp_path / images, IMAGES)
    idxfile.write(tmp_path / labels, LABELS)
    for place in (tmp_path, tmp_path / images, tmp_path / labels):
        same(open_dataset(place), IMAGES, LABELS)


def write_pair(folder, split="train", labels=LABELS, suffix=""):
    folder.mkdir(parents=True, exist_ok=True)
    idxfile.write(folder / f"{split}-images-idx3-ubyte{suffix}", IMAGES)
    idxfile.write(folder / f"{split}-labels-idx1-ubyte{suffix}", labels)


def test_torchvisions_layout(tmp_path):
    write_pair(tmp_path / "MNIST" / "raw", "t10k")
    same(open_dataset(tmp_path, split="test"), IMAGES, LABELS)
    same(open_dataset(tmp_path / "MNIST"), IMAGES, LABELS)


def test_an_archive(tmp_path):
    with zipfile.ZipFile(tmp_path / "gzip.zip", "w") as archive:
        for name, array in (("images-idx3", IMAGES), ("labels-idx1", LABELS)):
            for kind in ("letters", "digits"):
                member = f"gzip/emnist-{kind}-test-{name}-ubyte.gz"
                archive.writestr(member, idxfile.encode(array, codec="gz"))
    with pytest.raises(PairError, match="several pairs"):
        open_dataset(tmp_path / "gzip.zip")
    same(open_dataset(tmp_path / "gzip.zip", name="letters", split="test"), IMAGES, LABELS)


def test_several_splits_need_a_word(tmp_path):
    write_pair(tmp_path, "train")
    write_pair(tmp_path, "t10k")
    with pytest.raises(PairError, match=r"split= \(--split\): one of test, train"):
        open_dataset(tmp_path)
    assert open_dataset(tmp_path, split="test").split == "test"
    with pytest.raises(FileNotFoundError, match="validation-images"):
        open_dataset(tmp_path, split="validation")


def test_two_candidates(tmp_path):
    write_pair(tmp_path)
    write_pair(tmp_path, suffix=".gz")
    same(open_dataset(tmp_path), IMAGES, LABELS)  # the same content twice is no question
    other = gzip.compress(idxfile.encode(1 - LABELS))
    (tmp_path / "train-labels-idx1-ubyte.gz").write_bytes(other)
    with pytest.raises(PairError, match=r"idx1-ubyte and train-labels-idx1-ubyte.gz could both"):
        open_dataset(tmp_path)


def test_nothing_there_says_what_was_looked_for_and_what_is_near(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"train-images-idx3-ubyte.*nothing of the kind"):
        open_dataset(tmp_path)
    idxfile.write(tmp_path / "train-images-idx3-ubyte", IMAGES)
    with pytest.raises(FileNotFoundError, match="near: train-images-idx3-ubyte"):
        open_dataset(tmp_path / "train-images-idx3-ubyte")
    with pytest.raises(FileNotFoundError):
        open_dataset(tmp_path / "missing-images-idx3-ubyte")


def test_the_wrong_way_round(tmp_path):
    images, labels = idxfile.encode(IMAGES), idxfile.encode(LABELS)
    with pytest.raises(PairError, match="wrong way round"):
        open_dataset((labels, images))
    same(open_dataset((images, labels)), IMAGES, LABELS)


def test_a_data_set_pickles(tmp_path):
    write_pair(tmp_path)
    ds = open_dataset(tmp_path)
    again = pickle.loads(pickle.dumps(ds))
    same(again, IMAGES, LABELS)
    chosen = pickle.loads(pickle.dumps(ds.select(labels=1)))
    same(chosen, IMAGES[[0, 2]], LABELS[[0, 2]])


@pytest.mark.parametrize("codec", [None, "gz"])
def test_save_as_shards(tmp_path, codec):
    images, labels = make(23)
    ds = Dataset(images, labels, classes=[*"abcdefghij"]).shuffle(1)
    place, _ = ds.save(tmp_path, shards=4, codec=codec)
    assert place.endswith("-?????-of-00004" + (".gz" if codec else ""))
    again = idxfile.open_dataset(tmp_path, split="train")
    assert np.array_equal(again.images[...], ds.images[...])
    assert np.array_equal(again.labels, ds.labels)
    assert idxfile.read(place).shape == ds.images.shape
    assert idxfile.check(place).ok
    ds.save(tmp_path, shards=4, codec=codec)  # its own names are replaced
    with pytest.raises(PairError, match="nobody could tell"):
        ds.save(tmp_path, shards=3, codec=codec)
    with pytest.raises(PairError, match="nobody could tell"):
        ds.save(tmp_path, codec=codec)


@pytest.mark.parametrize(
    ("mapping", "classes"),
    [
        ({}, ("cat", "dog", "frog")),
        ({0: 1, 1: 0}, ("dog", "cat", "frog")),
        ({1: 0}, (None, None, "frog")),
        ({2: 4}, ("cat", "dog", None, None, "frog")),
        ({7: 1}, ("cat", None, "frog")),
        ({0: -1}, (None, "dog", "frog")),
        ({0: 9, 1: 9, 2: 9}, None),
        ({0: 1 << 40}, None),
    ],
)
def test_names_follow_their_classes(mapping, classes) -> None:
    ds = Dataset(np.zeros((3, 1, 1), "uint8"), np.arange(3), classes=("cat", "dog", "frog"))
    assert ds.relabel(mapping).classes == classes
    assert ds.relabel(mapping, classes=["x"]).classes == ("x",)
    assert ds.relabel([0, 0, 1]).classes is None


def test_a_folder_of_pictures_is_told_as_one(tmp_path):
    (tmp_path / "cat").mkdir()
    (tmp_path / "cat" / "1.png").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(40))
    with pytest.raises(FileNotFoundError, match="there are pictures, of which `idx convert` makes"):
        idxfile.open_dataset(tmp_path)
