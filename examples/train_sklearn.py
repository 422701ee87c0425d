"""Train scikit-learn's network on MNIST, batch by batch.

python examples/train_sklearn.py [FOLDER]
"""

import sys
import time

from sklearn.neural_network import MLPClassifier
from threadpoolctl import threadpool_limits

from idxfile import open_dataset
from idxfile.adapters.sklearn import dataset

SCALE = (0.1307, 0.3081)  # mean and standard deviation of the training pixels
EPOCHS = 5


def main(folder: str) -> float:
    """Train, and give the share of the test set that is recognised."""
    train = open_dataset(folder, split="train")
    test = dataset(open_dataset(folder, split="test"), scale=SCALE)
    model = MLPClassifier((256,), random_state=0)
    for epoch in range(EPOCHS):
        for images, labels in train.batches(200, shuffle=True, seed=epoch, scale=SCALE):
            model.partial_fit(images.reshape(len(images), -1), labels, classes=range(10))
        print(f"epoch {epoch}: the last batch has a loss of {model.loss_:.3f}")
    return model.score(test.data, test.target)


if __name__ == "__main__":
    start = time.perf_counter()
    with threadpool_limits(1):  # steps as small as these are slower on several
        accuracy = main(*sys.argv[1:] or ["tests/data/mnist"])
    seconds = time.perf_counter() - start
    print(f"scikit-learn: {accuracy:.2%} of the test set in {seconds:.1f} s")
    sys.exit(accuracy < 0.97)
