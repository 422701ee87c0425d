"""Training data: an epoch of batches, and the cost of taking data sets apart.

    python -m benchmarks.epoch [--folder FOLDER] [--nbytes N] [--torch]

The per-item loader is written as torchvision's is: a PIL picture, to a tensor, normalised,
collated. It needs PyTorch and Pillow (`make .venv/.frameworks`). The large file is dropped from the
page cache before each pass, so that it is read from the disk.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from typing import Any

import numpy as np

import idxfile
from idxfile import Dataset

from .harness import Row, heading, interleave, render, timed

BATCH = 256
MEAN, STD = 0.1307, 0.3081


def per_item_loader(pixels: Any, labels: Any, workers: int) -> Callable[[], None]:
    """One epoch of the loader that tutorials show, step by step as torchvision takes them.

    Images and labels are tensors; an item becomes a PIL picture, and that a tensor; the
    normalisation is a module that works on a copy and makes tensors of its numbers each time.
    """
    import torch
    from PIL import Image
    from torch.utils.data import DataLoader

    images, classes = torch.from_numpy(pixels.copy()), torch.from_numpy(labels.copy())

    class Normalise(torch.nn.Module):
        def forward(self, tensor: Any) -> Any:
            tensor = tensor.clone()
            mean = torch.as_tensor([MEAN], dtype=tensor.dtype, device=tensor.device)
            std = torch.as_tensor([STD], dtype=tensor.dtype, device=tensor.device)
            if (std == 0).any():
                raise ValueError
            return tensor.sub_(mean.view(-1, 1, 1)).div_(std.view(-1, 1, 1))

    normalise = Normalise()

    class PerItem(torch.utils.data.Dataset):
        def __len__(self) -> int:
            return len(images)

        def __getitem__(self, item: int) -> tuple[Any, int]:
            picture, label = Image.fromarray(images[item].numpy()), int(classes[item])
            tensor = torch.from_numpy(np.array(picture, np.uint8, copy=True))
            tensor = tensor.view(*picture.size[::-1], len(picture.getbands()))
            tensor = tensor.permute((2, 0, 1)).contiguous()
            tensor = tensor.to(dtype=torch.get_default_dtype()).div(255)
            return normalise(tensor), label

    loader = DataLoader(PerItem(), batch_size=BATCH, shuffle=True, num_workers=workers)

    def run() -> None:
        for _ in loader:
            pass

    return run


def epoch(ds: Dataset, **options: Any) -> Callable[[], None]:
    """One shuffled, normalised epoch of ours."""

    def run() -> None:
        for _ in ds.batches(BATCH, shuffle=True, seed=0, scale=(MEAN, STD), **options):
            pass

    return run


def bare(images: Any, labels: Any) -> Callable[[], None]:
    """The same by NumPy alone: gather, scale."""
    factor, shift = np.float32(1 / 255 / STD), np.float32(-MEAN / STD)

    def run() -> None:
        order = np.random.default_rng(0).permutation(len(images))
        for low in range(0, len(order), BATCH):
            items = order[low : low + BATCH]
            batch = images[items].astype(np.float32)
            batch *= factor
            batch += shift
            labels[items]

    return run


def cold(path: str, run: Callable[[], None]) -> float:
    """The seconds of a run after the file was dropped from the page cache."""
    fd = os.open(path, os.O_RDONLY)
    os.fsync(fd)
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(fd)
    return timed(run)


def large_file(folder: str, nbytes: int) -> str:
    """A file of digits, as many as asked for."""
    pixels = idxfile.read("tests/data/mnist/train-images-idx3-ubyte.gz")
    count = nbytes // pixels[0].nbytes
    path = os.path.join(folder, "large.idx")
    with idxfile.create(path, dtype="uint8", item_shape=(28, 28), count=count) as writer:
        while len(writer) < count:
            writer.append(pixels[: count - len(writer)])
    return path


def labelled(path: str) -> Dataset:
    """The data set over it."""
    images = idxfile.open(path)
    return Dataset(images, np.arange(len(images)) % 10)


def block_shuffle(folder: str, nbytes: int) -> Row:
    """`shuffle="blocks"` of a file that is on the disk, against reading it from end to end."""
    path = large_file(folder, nbytes)

    def blocks() -> None:
        with labelled(path) as ds:  # no longer than this: what is mapped stays in the page cache
            for _ in ds.batches(BATCH, shuffle="blocks", seed=0):
                pass

    def sequential() -> None:
        with open(path, "rb", buffering=0) as file:
            piece = bytearray(1 << 20)
            while file.readinto(piece):
                pass

    pairs = [(cold(path, blocks), cold(path, sequential)) for _ in range(3)]
    ours, theirs = (list(side) for side in zip(*pairs, strict=True))
    work = f'shuffle="blocks" of {nbytes / 1e9:.0f} GB, cold'
    return Row("epoch", work, "reading it in order", ours, theirs, 1.3)


def taking_apart(folder: str) -> list[Row]:
    """Select, split and merge of a gigabyte, against `cp` of the result."""
    path = large_file(folder, 1_000_000_000)
    ds = labelled(path)
    out = os.path.join(folder, "out")

    def saved(*parts: Dataset) -> None:
        for number, part in enumerate(parts):
            part.split = f"part{number}"
            part.save(out)

    def copied() -> None:
        os.mkdir(out)
        target = os.path.join(out, "copy")
        subprocess.run(["cp", path, target], check=True)
        fd = os.open(target, os.O_RDONLY)
        os.fsync(fd)
        os.close(fd)

    def fresh(run: Callable[[], None]) -> float:
        """What is removed is given back to the disk before the clock starts."""
        shutil.rmtree(out, ignore_errors=True)
        os.sync()
        return timed(run)

    half = ds.select(items=slice(0, len(ds) // 2))
    works = {
        "select all by label": lambda: saved(ds.select(labels=range(10))),
        "split at random": lambda: saved(*ds.random_split((0.9, 0.1), seed=0)),
        "merge two halves": lambda: saved(half.merge(ds.select(items=slice(len(ds) // 2, None)))),
    }
    rows = []
    for work, run in works.items():
        pairs = [(fresh(run), fresh(copied)) for _ in range(5)]
        ours, theirs = (list(side) for side in zip(*pairs, strict=True))
        rows.append(Row("epoch", f"{work}, 1 GB", "cp and fsync", ours, theirs, 2.0))
    return rows


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.epoch")
    parser.add_argument("--folder", help="where the large files are made for the while")
    parser.add_argument("--nbytes", type=int, default=10_000_000_000, help="of the large file")
    parser.add_argument("--torch", action="store_true", help="measure the per-item loader, too")
    options = parser.parse_args()
    print(heading())
    with tempfile.TemporaryDirectory(prefix="idxfile-bench-", dir=options.folder) as folder:
        source = idxfile.open_dataset("tests/data/mnist", split="train")
        source.save(folder)
        ds = idxfile.open_dataset(folder)
        pixels, labels = ds.images[...], ds.labels
        ours, theirs = interleave((epoch(ds), bare(pixels, labels)))
        print(render(Row("epoch", "epoch of 60,000", "bare NumPy", ours, theirs, 1.5)), flush=True)
        for workers in (0, 2) if options.torch else ():
            run = per_item_loader(pixels, labels, workers)
            slow = [timed(run) for _ in range(3)]
            quick = [timed(epoch(ds)) for _ in range(3)]
            rival = f"an item at a time, {workers} workers"
            row = Row("epoch", "epoch of 60,000", rival, quick, slow, 1 / 150)
            print(render(row), f"{1 / row.ratio:.0f} times as fast", flush=True)
        for row in taking_apart(folder):
            print(render(row), flush=True)
        print(render(block_shuffle(folder, options.nbytes)), flush=True)


if __name__ == "__main__":
    main()
