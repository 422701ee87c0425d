"""Data sets for the frameworks that learn from them, one short module for each.

    idxfile.adapters.torch         PyTorch
    idxfile.adapters.jax           JAX, and Grain
    idxfile.adapters.keras         Keras, on any of its backends
    idxfile.adapters.tensorflow    TensorFlow
    idxfile.adapters.sklearn       scikit-learn
    idxfile.adapters.huggingface   Hugging Face Datasets

The import line is the opt-in: a module imports its framework, and nothing else does. All speak the
same two words, `dataset(ds)` for the framework's own kind of data set and `loader(ds, batch_size)`
for batches, with the same keywords (see `epochs`).
"""
