"""Pictures to IDX and back, against the loop that everybody writes with Pillow.

python -m benchmarks.pictures                60,000 pictures
python -m benchmarks.pictures --quick        10,000
python -m benchmarks.pictures --folder DIR   where the trees are made; by default in memory
"""

from __future__ import annotations

import argparse
import io
import itertools
import os
import shutil
import tarfile
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
from PIL import Image

import idxfile
from idxfile.formats.conversion import convert

from .files import IMAGES, LABELS, Files
from .harness import Row, Run, heading, interleave, render

COUNTS = {"quick": 10_000, "full": 60_000}
PHOTOS = 150
MEMORY = "/dev/shm"


class Dropped:
    """A result that is removed when nobody holds it: after the clock was read."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __del__(self) -> None:
        if self._path.is_dir():
            shutil.rmtree(self._path)
        else:
            self._path.unlink()


class Pictures:
    """MNIST as a pair of IDX files, and as trees of PNG files."""

    def __init__(self, folder: str, count: int) -> None:
        self._folder = Path(folder)
        self._numbers = itertools.count()
        files = Files(folder)
        self.images = files.pixels[:count]
        self.labels = idxfile.read(files.path(LABELS))[:count]
        self.pair = self._folder / "pair"
        self.pair.mkdir()
        idxfile.write(self.pair / IMAGES, self.images)
        idxfile.write(self.pair / LABELS, self.labels)
        self.theirs = self._folder / "pillow"
        save_with_pillow(self, self.theirs)
        self.photos = self._folder / "photos"
        save_photos(self.photos)
        self.ours = self._folder / "idxfile"
        convert(self.pair, self.ours, target_format="pictures")

    def place(self, suffix: str = "") -> Path:
        """A place where nothing is."""
        return self._folder / f"{next(self._numbers)}{suffix}"


# The loops


def save_with_pillow(pictures: Pictures, folder: Path) -> None:
    """A file for each item, in the folder of its class."""
    for label in range(10):
        (folder / str(label)).mkdir(parents=True)
    for number, (image, label) in enumerate(zip(pictures.images, pictures.labels, strict=True)):
        Image.fromarray(image).save(folder / f"{label}/{number:05}.png")


def tar_with_pillow(pictures: Pictures, path: Path) -> None:
    """A member for each item, in the folder of its class."""
    with tarfile.open(path, "w") as tar:
        for number, (image, label) in enumerate(zip(pictures.images, pictures.labels, strict=True)):
            file = io.BytesIO()
            Image.fromarray(image).save(file, "PNG")
            member = tarfile.TarInfo(f"{label}/{number:05}.png")
            member.size = file.tell()
            file.seek(0)
            tar.addfile(member, file)


def save_photos(folder: Path) -> None:
    """Large JPEG files, in colour."""
    (folder / "0").mkdir(parents=True)
    noise = Image.effect_noise((1500, 1000), 60).convert("RGB")
    for number in range(PHOTOS):
        noise.rotate(number).save(folder / f"0/{number:03}.jpg", quality=90)


def load_with_pillow(tree: Path, out: Path) -> None:
    """Every picture of every class into a list, and the list into a pair of IDX files."""
    images, labels = [], []
    for folder in sorted(entry for entry in tree.iterdir() if entry.is_dir()):
        for path in sorted(folder.iterdir()):
            with Image.open(path) as image:
                images.append(np.asarray(image))
            labels.append(int(folder.name))
    out.mkdir()
    idxfile.write(out / IMAGES, np.stack(images))
    idxfile.write(out / LABELS, np.array(labels, np.uint8))


# What is measured

Prepare = Callable[[Pictures], Run]


def reading(tree: str, **options: object) -> tuple[Prepare, Prepare]:
    """A tree to a pair."""
    options["labels"] = "folders"

    def ours(pictures: Pictures) -> Run:
        def run() -> object:
            out = pictures.place()
            convert(getattr(pictures, tree), f"{out}/", source_options=options)
            return Dropped(out)

        return run

    def theirs(pictures: Pictures) -> Run:
        def run() -> object:
            out = pictures.place()
            load_with_pillow(getattr(pictures, tree), out)
            return Dropped(out)

        return run

    return ours, theirs


def writing(
    suffix: str, target_format: str, save: Callable[[Pictures, Path], None]
) -> tuple[Prepare, Prepare]:
    """A pair to a tree or an archive."""

    def ours(pictures: Pictures) -> Run:
        def run() -> object:
            out = pictures.place(suffix)
            convert(pictures.pair, out, target_format=target_format)
            return Dropped(out)

        return run

    def theirs(pictures: Pictures) -> Run:
        def run() -> object:
            out = pictures.place(suffix)
            save(pictures, out)
            return Dropped(out)

        return run

    return ours, theirs


LOOP = "a loop with Pillow"
CASES: tuple[tuple[str, str, tuple[Prepare, Prepare], float | None], ...] = (
    ("Pillow's PNG files to IDX", LOOP, reading("theirs"), 1 / 1.6),
    ("our PNG files to IDX", LOOP, reading("ours"), 1 / 1.6),
    (f"{PHOTOS} JPEG, 1,500 × 1,000, to IDX", LOOP, reading("photos", rgb=True), None),
    ("IDX to PNG files", LOOP, writing("", "pictures", save_with_pillow), None),
    ("IDX to a tar of PNG", f"{LOOP} and tarfile", writing(".tar", "tar", tar_with_pillow), None),
)
"""Work, rival, what prepares both, and the ratio of the times to reach."""


def main() -> None:
    """Measure the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.pictures")
    parser.add_argument("--quick", action="store_true", help="10,000 pictures instead of 60,000")
    parser.add_argument("--folder", help="where the trees are made for the while")
    options = parser.parse_args()
    count = COUNTS["quick" if options.quick else "full"]
    parent = options.folder or (MEMORY if os.path.isdir(MEMORY) else None)
    with tempfile.TemporaryDirectory(prefix="idxfile-pictures-", dir=parent) as folder:
        pictures = Pictures(folder, count)
        print(f"{count:,} pictures of 28 × 28, processors: {os.cpu_count()}\n\n{heading()}")
        for work, rival, prepare, target in CASES:
            ours, theirs = interleave([ready(pictures) for ready in prepare])
            print(render(Row("pictures", work, rival, ours, theirs, target)), flush=True)


if __name__ == "__main__":
    main()
