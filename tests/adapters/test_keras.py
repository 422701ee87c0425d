"""Keras: the same batches by their numbers, and training on every backend."""

from importlib import import_module

import numpy as np
import pytest
from samples import pair, run

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def adapter():
    return import_module("idxfile.adapters.keras")


@pytest.fixture
def ds(tmp_path):
    return pair(tmp_path)


def test_batches_by_number(ds, adapter):
    loader = adapter.loader(ds, 10, scale="unit", seed=3)
    for epoch in range(2):
        expected = list(ds.batches(10, shuffle=True, seed=3 + epoch, scale="unit"))
        assert len(loader) == len(expected) == 11
        for number in reversed(range(len(loader))):
            images, labels = loader[number]
            assert np.array_equal(images[..., 0], expected[number][0])
            assert np.array_equal(labels, expected[number][1])
        loader.on_epoch_end()
    first, _ = loader[0]
    loader.on_epoch_end()  # after one look: the same epoch again
    assert np.array_equal(loader[0][0], first)


def test_ranks(ds, adapter):
    loaders = [adapter.loader(ds, 5, rank=rank, world_size=2) for rank in range(2)]
    assert [sum(len(loader[n][1]) for n in range(len(loader))) for loader in loaders] == [51, 51]


TRAIN = """
import sys, warnings, numpy as np, idxfile
with warnings.catch_warnings(action="ignore"):
    import keras
from idxfile.adapters.keras import loader
warnings.simplefilter("ignore")  # Keras on torch warns of itself

ds = idxfile.open_dataset(sys.argv[1], split="train")
seen = []

class Watched(type(loader(ds))):
    def __getitem__(self, number):
        seen.append((number, self._batches[number].tolist()))
        return super().__getitem__(number)

batches = loader(ds, 4, seed=3, scale="unit")
batches.__class__ = Watched
channels = keras.config.image_data_format()
model = keras.Sequential([
    keras.layers.Conv2D(4, 3), keras.layers.Flatten(), keras.layers.Dense(4)
])
loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
model.compile("adam", loss, metrics=["accuracy"])
history = model.fit(batches, epochs=3, shuffle=False, verbose=0)
assert len(history.history["loss"]) == 3
model.evaluate(loader(ds, shuffle=False), verbose=0)
assert model.predict(loader(ds, shuffle=False), verbose=0).shape == (len(ds), 4)

numbered = idxfile.Dataset(np.zeros((len(ds), 1), "uint8"), np.arange(len(ds)))
passes = [
    [y.tolist() for _, y in numbered.batches(4, shuffle=True, seed=3 + epoch)]
    for epoch in range(3)
]
assert {str(entry) for entry in seen} >= {str(e) for order in passes for e in enumerate(order)}
assert batches._epochs.epoch == 4  # three seen, and the one to come
print(keras.config.backend(), channels, "trained")
"""


@pytest.mark.parametrize(
    ("backend", "channels"),
    [
        ("tensorflow", "channels_last"),
        ("jax", "channels_last"),
        ("torch", "channels_first"),
        ("torch", "channels_last"),
    ],
)
def test_training(tmp_path, backend, channels):
    pair(tmp_path)
    (tmp_path / "keras.json").write_text(f'{{"image_data_format": "{channels}"}}')
    environment = {"KERAS_BACKEND": backend, "KERAS_HOME": str(tmp_path), "JAX_PLATFORMS": "cpu"}
    assert run(TRAIN, tmp_path, **environment) == f"{backend} {channels} trained\n"
