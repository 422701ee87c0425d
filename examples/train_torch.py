"""Train a small convolutional network on MNIST with PyTorch.

python examples/train_torch.py [FOLDER]
"""

import sys
import time

import torch
from torch import nn

from idxfile import open_dataset
from idxfile.adapters.torch import loader

SCALE = (0.1307, 0.3081)  # mean and standard deviation of the training pixels
EPOCHS = 3


def main(folder: str) -> float:
    """Train, and give the share of the test set that is recognised."""
    torch.manual_seed(0)
    torch.set_num_threads(1)  # steps as small as these are slower on several
    train = loader(open_dataset(folder, split="train"), 128, scale=SCALE)
    test = loader(open_dataset(folder, split="test"), 1000, shuffle=False, scale=SCALE)
    model = nn.Sequential(
        *(nn.Conv2d(1, 8, 5, stride=2), nn.ReLU()),
        *(nn.Conv2d(8, 16, 3, stride=2), nn.ReLU()),
        *(nn.Flatten(), nn.Linear(16 * 5 * 5, 10)),
    )
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    for epoch in range(EPOCHS):
        for images, labels in train:
            loss = nn.functional.cross_entropy(model(images), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch}: the last batch has a loss of {loss.item():.3f}")
    with torch.no_grad():
        right = sum(int((model(images).argmax(1) == labels).sum()) for images, labels in test)
    return right / len(test.dataset)


if __name__ == "__main__":
    start = time.perf_counter()
    accuracy = main(*sys.argv[1:] or ["tests/data/mnist"])
    seconds = time.perf_counter() - start
    print(f"PyTorch: {accuracy:.2%} of the test set in {seconds:.1f} s")
    sys.exit(accuracy < 0.97)
