"""Data sets for the frameworks that learn from them and the engines that work on them.

    idxfile.adapters.torch         PyTorch
    idxfile.adapters.jax           JAX, and Grain
    idxfile.adapters.keras         Keras, on any of its backends
    idxfile.adapters.tensorflow    TensorFlow
    idxfile.adapters.sklearn       scikit-learn
    idxfile.adapters.huggingface   Hugging Face Datasets
    idxfile.adapters.xarray        xarray
    idxfile.adapters.dask          Dask: arrays, files of arrays, workers
    idxfile.adapters.ray           Ray: datasets, files of datasets, workers

The import line is the opt-in: a module imports its framework, and nothing else does. All speak the
same two words, `dataset(ds)` for the framework's own kind of data set and, where batches are its
business, `loader(ds, batch_size)`, with the same keywords (see `epochs`). Engines have a third,
`executor()`, for everything that takes an `executor=`.
"""
