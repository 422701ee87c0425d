"""Hugging Face Datasets: there and back is the same."""

from importlib import import_module

import numpy as np
import pytest
from samples import DTYPES, arrays, pair

import idxfile
from idxfile import Dataset, UnsupportedError

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def datasets():
    return import_module("datasets")


@pytest.fixture(scope="module")
def adapter():
    return import_module("idxfile.adapters.huggingface")


def assert_same(found, expected):
    assert found.images.dtype == expected.images.dtype
    assert found.images.shape == expected.images.shape
    assert np.array_equal(found.images[...], expected.images[...])
    assert np.array_equal(found.labels, expected.labels)
    assert (found.name, found.split, found.classes) == (
        expected.name,
        expected.split,
        expected.classes,
    )


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(), (7,), (6, 5), (2, 3, 4), (2, 1, 2, 3), (1, 2, 1, 2, 3)])
def test_arrays_there_and_back(tmp_path, datasets, adapter, dtype, shape):
    ds = Dataset(*arrays(dtype, shape), name="mine", split="test", classes=("a", "b", "c", "d"))
    hf = adapter.dataset(ds)
    assert_same(adapter.from_dataset(hf), ds)
    hf.save_to_disk(str(tmp_path))
    assert_same(adapter.from_dataset(datasets.load_from_disk(str(tmp_path))), ds)


def test_features(tmp_path, datasets, adapter):
    images, _ = arrays()
    hf = adapter.dataset(pair(tmp_path))
    assert hf.features == datasets.Features(
        image=datasets.Array2D((6, 5), "uint8"),
        label=datasets.ClassLabel(names=["0", "1", "2", "3"]),
    )
    assert hf.split == "train"
    assert np.array_equal(hf[3]["image"], images[3])
    assert np.array_equal(hf.with_format("numpy", dtype=np.uint8)[:]["image"], images)


@pytest.mark.parametrize("shape", [(6, 5), (6, 5, 3), (6, 5, 4)])
def test_pictures_there_and_back(datasets, adapter, shape):
    ds = Dataset(*arrays(item_shape=shape))
    hf = adapter.dataset(ds, encoding="png")
    assert isinstance(hf.features["image"], datasets.Image)
    assert np.array_equal(np.asarray(hf[3]["image"]), ds.images[3])
    assert_same(adapter.from_dataset(hf), ds)


def test_rows_chosen_over_there_come_back(tmp_path, adapter):
    ds = pair(tmp_path)
    for encoding in ("array", "png"):
        hf = adapter.dataset(ds, encoding=encoding).select([5, 2, 2]).with_format("numpy")
        assert_same(adapter.from_dataset(hf), ds.select(items=[5, 2, 2]))


def test_several_blocks_and_none(adapter):
    many = Dataset(*arrays(item_shape=(500, 400), count=60))
    hf = adapter.dataset(many)
    assert hf.data.column("image").num_chunks > 1
    assert_same(adapter.from_dataset(hf), many)
    none = many.select(labels=9)
    assert_same(adapter.from_dataset(adapter.dataset(none)), none)


def test_labels(datasets, adapter):
    images, labels = arrays()
    letters = Dataset(images, labels + 1, classes=(None, "a", "b", "c", "d"))
    assert adapter.dataset(letters).features["label"].names == ["0", "a", "b", "c", "d"]
    for odd in (labels.astype("int32") - 1, labels.astype("int32") * 10_000):
        hf = adapter.dataset(Dataset(images, odd))
        assert hf.features["label"] == datasets.Value("int64")
        assert_same(adapter.from_dataset(hf), Dataset(images, odd))
    table = np.stack([labels, labels * 2, labels * 3], axis=1)
    hf = adapter.dataset(Dataset(images, table, columns=("class", "writer", "sheet")))
    assert hf.column_names == ["image", "label", "writer", "sheet"]
    assert np.array_equal(hf.with_format("numpy")["sheet"][:], labels * 3)


def test_what_it_cannot_hold(adapter):
    with pytest.raises(UnsupportedError, match="6 dimensions"):
        adapter.dataset(Dataset(*arrays(item_shape=(1,) * 6)))
    with pytest.raises(UnsupportedError, match="no pictures"):
        adapter.dataset(Dataset(*arrays("int16")), encoding="png")
    with pytest.raises(ValueError, match="encoding must be"):
        adapter.dataset(Dataset(*arrays()), encoding="jpeg")


def test_items_of_different_shapes_are_refused(datasets, adapter):
    ragged = datasets.Dataset.from_dict({"image": [[1, 2], [3, 4, 5]], "label": [0, 1]})
    with pytest.raises(UnsupportedError, match="different shapes"):
        adapter.from_dataset(ragged)
    pil = import_module("PIL.Image")
    features = datasets.Features(image=datasets.Image(), label=datasets.Value("int64"))
    pictures = {"image": [pil.new("L", (2, 3)), pil.new("L", (3, 2))], "label": [0, 1]}
    with pytest.raises(UnsupportedError, match="different shapes"):
        adapter.from_dataset(datasets.Dataset.from_dict(pictures, features=features))


def test_other_columns_and_saving(tmp_path, datasets, adapter):
    hf = datasets.Dataset.from_dict({"img": [[[1, 2]], [[3, 4]]], "class": [1, 0]})
    ds = adapter.from_dataset(
        hf.cast_column("img", datasets.Array2D((1, 2), "uint8")), image="img", label="class"
    )
    ds.save(tmp_path)
    again = idxfile.open_dataset(tmp_path)
    assert again.images[...].tolist() == [[[1, 2]], [[3, 4]]]
    assert again.labels.tolist() == [1, 0]
