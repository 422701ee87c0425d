"""Pictures to IDX and back, against the loop that everybody writes with Pillow.

python -m benchmarks pictures --folder DIR   where the trees are made; best in memory
"""

from __future__ import annotations

import io
import itertools
import shutil
import tarfile
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
from PIL import Image

import idxfile

from .cases import Case, Ready
from .files import IMAGES, LABELS, Files
from .harness import Run

PHOTOS = 150


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

    def __init__(self, files: Files) -> None:
        self._folder = files.path("pictures")
        self._numbers = itertools.count()
        self.images = files.pixels
        self.labels = idxfile.read(files.path(LABELS))
        self.pair = self._folder / "pair"
        self.pair.mkdir(parents=True)
        idxfile.write(self.pair / IMAGES, self.images)
        idxfile.write(self.pair / LABELS, self.labels)
        self.theirs = self._folder / "pillow"
        save_with_pillow(self, self.theirs)
        self.photos = self._folder / "photos"
        save_photos(self.photos)
        self.ours = self._folder / "idxfile"
        idxfile.convert(self.pair, self.ours, target_format="pictures")

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

pictures_of = cache(Pictures)


def measured(work: Callable[[Pictures, Path], object], suffix: str = "") -> Ready:
    """`work(pictures, place)`, each time at another place, which is emptied after the clock."""

    def ready(files: Files) -> Run:
        pictures = pictures_of(files)

        def run() -> object:
            out = pictures.place(suffix)
            work(pictures, out)
            return Dropped(out)

        return run

    return ready


def reading(tree: str, **options: object) -> tuple[Ready, Ready]:
    """A tree to a pair: ours, and the loop."""
    options["labels"] = "folders"

    def ours(pictures: Pictures, out: Path) -> None:
        idxfile.convert(getattr(pictures, tree), f"{out}/", source_options=options)

    def theirs(pictures: Pictures, out: Path) -> None:
        load_with_pillow(getattr(pictures, tree), out)

    return measured(ours), measured(theirs)


def writing(
    suffix: str, target_format: str, save: Callable[[Pictures, Path], None]
) -> tuple[Ready, Ready]:
    """A pair to a tree or an archive: ours, and the loop."""

    def ours(pictures: Pictures, out: Path) -> None:
        idxfile.convert(pictures.pair, out, target_format=target_format)

    return measured(ours, suffix), measured(save, suffix)


LOOP = "a loop with Pillow"
CASES: tuple[Case, ...] = tuple(
    Case("pictures", work, ours, rival, theirs, target)
    for work, rival, (ours, theirs), target in (
        ("Pillow's PNG files to IDX", LOOP, reading("theirs"), 1 / 1.6),
        ("our PNG files to IDX", LOOP, reading("ours"), 1 / 1.6),
        (f"{PHOTOS} JPEG, 1,500 × 1,000, to IDX", LOOP, reading("photos", rgb=True), None),
        ("IDX to PNG files", LOOP, writing("", "pictures", save_with_pillow), None),
        (
            "IDX to a tar of PNG",
            f"{LOOP} and tarfile",
            writing(".tar", "tar", tar_with_pillow),
            None,
        ),
    )
)
