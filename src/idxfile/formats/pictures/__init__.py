"""Pictures: a folder of classes, a flat folder with a table of labels, a tar or zip of either.

    labels      tables of labels, names of classes
    places      where files lie: folder, tar, zip
    listing     which files are the items, in which order, with which labels
    choices     the options, and the questions that a picture can ask
    decoding    one file → pixels
    workers     many files → pixels, on all cores, in order
    column      all files as a column, decoded when they are asked for
    shelves     where files are put: folder, tar, zip
    writing     items → files

Each imports only what stands above it.
"""

from __future__ import annotations

from typing import Any, Literal

from ...elements import smallest_type
from ...errors import printable
from ..columns import Columns, Sliced
from .choices import Choices
from .column import Pictures, spooled
from .listing import Listing, list_pictures
from .places import Place, open_place
from .writing import write_columns

__all__ = [
    "Choices",
    "Listing",
    "Place",
    "open_place",
    "pictures_of",
    "read_columns",
    "write_columns",
]

_SHOWN = 3


def read_columns(
    path: str,
    *,
    classes: str | None = None,
    labels: str | None = "auto",
    split: str | None = None,
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
    """List the pictures of a folder or an archive; they are decoded when they are asked for.

    Pictures are of 8-bit grey, upright, opaque, one to a file and of one size; what is not needs
    a choice, and is an error that names it without.

    Args:
        path: a folder, or a tar (compressed or not) or zip archive.
        classes: the names of the classes in the order of their labels, with commas between;
            otherwise `classes.txt` says them, or they are sorted naturally (img2 before img10).
            Folders whose names are numbers are the labels themselves.
        labels: the table of labels, in the place or elsewhere; "auto" takes metadata.jsonl,
            metadata.csv or labels.csv where there is one, and otherwise the folders; "folders"
            takes the folders; None reads no labels.
        split: train, test …, where the folders are splits, and the classes lie in them.
        grey: make colours grey.
        rgb: keep colours, as `(items, rows, columns, 3)`.
        alpha: leave transparency out, or put a white or black ground behind it.
        depth: 8 takes the high byte of 16-bit pictures, 16 keeps their values, as int32.
        exif: whether pictures are turned as their EXIF orientation says.
        frames: take the first picture of files that have several.
        crop: columns and rows ("28x28"): what is larger is cut to its middle.
        resize: columns and rows: pictures are scaled to this size; their ratio is not kept.
        pad: columns and rows: what is smaller is centred on zeros.
        invert: exchange black and white (before `pad`).
        threshold: values from here on become white, those below black (at the end).
        skip_bad: leave out pictures that cannot be read, with their labels; the notes count them.

    Raises:
        FormatError: for a picture, a table or an archive that cannot be read.
        UnsupportedError: for a picture that asks for a choice, or is of another size.
        PairError: when pictures and labels do not belong together.
        MissingExtraError: when Pillow is needed and not installed.
        OSError: as the system gives it.
    """
    choices = Choices(
        grey, rgb, alpha, depth, exif, frames, crop, resize, pad, invert, threshold, skip_bad
    )
    place = open_place(path, split)
    try:
        listing = list_pictures(
            place, classes=classes, labels=labels, skip_missing=choices.skip_bad
        )
        return pictures_of(place, listing, choices, split)
    except BaseException:
        place.close()
        raise


def pictures_of(
    place: Place, listing: Listing, choices: Choices, split: str | None = None
) -> Columns:
    """The columns of listed pictures."""
    images: Any = Pictures(place, listing.files, choices)
    labels, close = listing.labels, place.close
    if choices.skip_bad:
        images, kept, bad, close = spooled(images)
        place.close()
        labels = None if labels is None else labels[kept]
        if bad:
            shown = "; ".join(printable(str(error).split("\n")[0]) for error in bad[:_SHOWN])
            more = "; …" if len(bad) > _SHOWN else ""
            listing.notes.append(
                f"left out {len(bad):,} of {len(kept):,} pictures, which cannot be read: "
                f"{shown}{more}"
            )
    columns = {"images": images}
    if labels is not None:
        columns["labels"] = Sliced(labels.astype(smallest_type(labels) or labels.dtype))
    return Columns(columns, listing.classes, split, close=close, notes=listing.notes)
