"""WebDataset: a tar in which files of one name, but for the suffix, are one sample.

`000042.png` is the picture and `000042.cls` the label, in decimal digits; `000042.json` may say
more. Source: the WebDataset format specification, and the `webdataset` package that reads it.
"""

from __future__ import annotations

import itertools
import json as jsonlib
from types import NoneType
from typing import Any, Literal

from ..errors import FormatError, PairError
from .columns import Columns
from .pictures import Choices, Listing, Place, open_place, pictures_of
from .pictures.labels import Label, numbered, parsed_classes
from .pictures.shelves import open_shelf
from .pictures.writing import encoded, pictures_and_labels, values
from .table import PICTURES

__all__ = ["read_columns", "write_columns"]

_MIN_DIGITS = 6


def read_columns(  # noqa: D417
    path: str,
    *,
    field: str | None = None,
    classes: str | None = None,
    labels: Literal["auto"] | None = "auto",
    grey: bool = False,
    rgb: bool = False,
    alpha: Literal["drop", "white", "black"] | None = None,
    depth: int | None = None,
    exif: Literal["apply", "ignore"] | None = None,
    frames: Literal["first"] | None = None,
    crop: tuple[int, ...] | None = None,
    resize: tuple[int, ...] | None = None,
    pad: tuple[int, ...] | None = None,
    invert: bool = False,
    threshold: int | None = None,
    skip_bad: bool = False,
) -> Columns:
    """List the samples of a tar; pictures are decoded when they are asked for.

    Args:
        path: a tar archive, compressed or not.
        field: the suffix of the pictures ("png"), where samples hold several.
        classes: the names of the classes in the order of their labels; otherwise the samples'
            `.json` may say them, as `class` beside `label`.
        labels: "auto" takes `.cls`, or `label` in `.json`; None reads no labels.
        grey, rgb, alpha, depth, exif, frames, crop, resize, pad, invert, threshold, skip_bad: as
            for folders of pictures.

    Raises:
        FormatError: for an archive that cannot be read, or that holds no samples.
        PairError: for samples without a picture or a label.
        UnsupportedError: for pictures that ask for a choice.
    """
    choices = Choices(
        grey, rgb, alpha, depth, exif, frames, crop, resize, pad, invert, threshold, skip_bad
    )
    place = open_place(path)
    try:
        return pictures_of(place, _listing(place, field, classes, labels), choices)
    except BaseException:
        place.close()
        raise


def _listing(place: Place, field: str | None, classes: str | None, labels: str | None) -> Listing:
    samples = _samples(place)
    suffixes = _suffixes(place, samples, field)
    files = [f"{key}.{suffix}" for key, suffix in zip(samples, suffixes, strict=True)]
    given = parsed_classes(classes)
    if labels is None:
        return Listing(files, None, given)
    told = [_label(place, key, fields) for key, fields in samples.items()]
    found: list[Label] = [label for label, _ in told]
    if all(label is None for label in found):
        return Listing(files, None, given, ["no labels: there is neither .cls nor .json"])
    numbers, names = numbered(found, given, place.name)
    if names is None:
        named = {int(n): name for n, (_, name) in zip(numbers, told, strict=True) if name}
        if named and min(named) >= 0 and max(named) < 1 << 16:
            names = tuple(named.get(label) for label in range(max(named) + 1))
    return Listing(files, numbers, names)


def _samples(place: Place) -> dict[str, list[str]]:
    """The samples in the order of the archive: key → suffixes."""
    samples: dict[str, list[str]] = {}
    for file in place.files:
        folder, slash, base = file.rpartition("/")
        stem, _, suffix = base.partition(".")
        samples.setdefault(f"{folder}{slash}{stem}", []).append(suffix)
    if not samples:
        raise FormatError("there are no samples in it", file=place.name)
    return samples


def _is_picture(suffix: str) -> bool:
    return f".{suffix}".lower().endswith(PICTURES)


def _suffixes(place: Place, samples: dict[str, list[str]], field: str | None) -> list[str]:
    """For each sample the suffix of its picture."""
    chosen = []
    for key, fields in samples.items():
        pictures = [name for name in fields if (name == field if field else _is_picture(name))]
        if len(pictures) != 1:
            what = f"{len(pictures)} pictures ({', '.join(pictures)})" if pictures else "no picture"
            raise PairError(
                f"the sample has {what}",
                file=place.called(key),
                found=fields,
                hint=f"it has {', '.join(fields)}; field= names the one that is meant",
            )
        chosen += pictures
    return chosen


def _label(place: Place, key: str, fields: list[str]) -> tuple[Label, str | None]:
    """The label of a sample, and the name of its class where it is told."""
    label: Any = None
    facts: Any = {}
    if "json" in fields:
        name = f"{key}.json"
        try:
            facts = jsonlib.loads(place.read(name))
        except ValueError as error:
            raise FormatError(f"this is no JSON: {error}", file=place.called(name)) from error
        if isinstance(facts, dict):
            label = facts.get("label")
    if "cls" in fields:
        label = place.read(f"{key}.cls").decode("utf-8", errors="replace").strip()
    if isinstance(label, bool) or not isinstance(label, (str, int, NoneType)):
        raise PairError(f"the label {label!r} is no class", file=place.called(key))
    named = facts.get("class") if isinstance(facts, dict) else None
    return label, named if isinstance(named, str) else None


def write_columns(path: str, columns: Columns, *, json: bool | None = None, level: int = 6) -> None:
    """Write a tar of samples: a PNG and, where there are labels, a `.cls` each.

    Args:
        path: the tar; a suffix like .gz compresses it.
        columns: images of uint8, `(items, rows, columns)` or `(items, rows, columns, 3)`, and
            labels.
        json: whether each sample has a `.json` with its label and the name of its class; by
            default where the names are known.
        level: how hard zlib tries with the pictures, 0 to 9.

    Raises:
        UnsupportedError: for what is no picture of bytes, and for no pictures at all.
    """
    images, labels = pictures_and_labels(columns)
    classes = columns.classes or ()
    numbers = itertools.repeat(None) if labels is None else values(labels)
    told = bool(classes) if json is None else json
    digits = max(_MIN_DIGITS, len(str(len(images) - 1)))
    with open_shelf(path) as shelf:
        pictures = encoded(images, level)
        for number, (picture, label) in enumerate(zip(pictures, numbers, strict=False)):
            key = f"{number:0{digits}}"
            shelf.put(f"{key}.png", picture)
            if label is None:
                continue
            shelf.put(f"{key}.cls", str(label).encode())
            if told:
                facts: dict[str, Any] = {"label": label}
                if 0 <= label < len(classes) and classes[label]:
                    facts["class"] = classes[label]
                shelf.put(f"{key}.json", jsonlib.dumps(facts).encode())
