"""Train a network of two layers on MNIST with JAX, and nothing else.

python examples/train_jax.py [FOLDER]
"""

import sys
import time

import jax
import jax.numpy as jnp

from idxfile import open_dataset
from idxfile.adapters.jax import loader

SCALE = (0.1307, 0.3081)  # mean and standard deviation of the training pixels
EPOCHS = 4
RATE, MOMENTUM = 0.02, 0.9


def network(weights, images):
    """The score of each class, `(items, 10)`."""
    (inner, inner_bias), (outer, outer_bias) = weights
    hidden = jax.nn.relu(images.reshape(len(images), -1) @ inner + inner_bias)
    return hidden @ outer + outer_bias


def loss(weights, images, labels):
    """The mean cross entropy."""
    scores = jax.nn.log_softmax(network(weights, images))
    return -jnp.take_along_axis(scores, labels[:, None], axis=1).mean()


@jax.jit
def step(weights, velocity, images, labels):
    """One step of gradient descent with momentum."""
    slope = jax.grad(loss)(weights, images, labels)
    velocity = jax.tree.map(lambda v, g: MOMENTUM * v - RATE * g, velocity, slope)
    return jax.tree.map(jnp.add, weights, velocity), velocity


def main(folder: str) -> float:
    """Train, and give the share of the test set that is recognised."""
    train = loader(open_dataset(folder, split="train"), 128, scale=SCALE, drop_last=True)
    test = loader(open_dataset(folder, split="test"), 1000, shuffle=False, scale=SCALE)
    keys = jax.random.split(jax.random.key(0))
    shapes = (784, 256), (256, 10)
    weights = [
        (jax.random.normal(key, shape) * (2 / shape[0]) ** 0.5, jnp.zeros(shape[1]))
        for key, shape in zip(keys, shapes, strict=True)
    ]
    velocity = jax.tree.map(jnp.zeros_like, weights)
    for epoch in range(EPOCHS):
        for images, labels in train:
            weights, velocity = step(weights, velocity, images, labels)
        print(f"epoch {epoch}: the last batch has a loss of {loss(weights, images, labels):.3f}")
    right = [(network(weights, images).argmax(1) == labels).mean() for images, labels in test]
    return float(jnp.mean(jnp.array(right)))


if __name__ == "__main__":
    start = time.perf_counter()
    accuracy = main(*sys.argv[1:] or ["tests/data/mnist"])
    seconds = time.perf_counter() - start
    print(f"JAX: {accuracy:.2%} of the test set in {seconds:.1f} s")
    sys.exit(accuracy < 0.97)
