"""FORMATS: every format that can be converted from or to, as one table.

A row names a module with two functions (or one of them):

    read_columns(path, **options) -> Columns
    write_columns(path, columns, **options) -> None

`read_columns` opens lazily; `write_columns` takes the blocks of the columns, in constant memory,
and writes one file (or fills one folder, that is there and empty). Options are keyword-only, and
what the signature says of them is what they are held against. A format that can describe elements
that stay where they are has a third function, `point_columns(path, columns, **options)`. One
whose elements lie by position has `lay_columns(path, columns, **options)`, with the options of
`write_columns`: it tells for each file that this would write its path, the name of the column in
it, and a `Header` or `Layout`, and writes whatever else there is; many write these files at once.

What a row says a format holds is enforced: nothing else ever reaches its writer. Another package
adds a format by an entry point of the group `idxfile.formats` that gives such a row, with the
name of its own module.
"""

from __future__ import annotations

import warnings
from functools import cache, partial
from importlib.metadata import entry_points

from ..errors import IdxWarning
from ..header import IDX_TYPE_NAMES
from ..signatures import PICTURE_KINDS
from .row import NUMBERS, Format

__all__ = ["FORMATS"]

_INTEGERS = tuple(name for name in NUMBERS if "int" in name)

PICTURES = (".png", ".jpg", ".jpeg", ".bmp", ".webp", ".tif", ".tiff", ".pgm", ".ppm", ".gif")
"""How the names of pictures end, in small letters."""

_PICTURE_ENDS = (*PICTURES, *map(str.upper, PICTURES))

_pictures = partial(
    Format,
    extra="images",
    types=("uint8",),
    label_types=_INTEGERS,
    typed=False,
    ndim=(3, 4),
    empty="no",
    classes=True,
)
_table = partial(Format, packs=True, typed=False, ndim=(1, 64), empty="no items")

FORMATS: dict[str, Format] = {
    row.name: row
    for row in (
        Format(
            "idx",
            (".idx",),
            ".idx",
            "IDX file",
            types=IDX_TYPE_NAMES,
            label_types=tuple(name for name in IDX_TYPE_NAMES if "int" in name),
            lays=True,
            packs=True,
            classes=True,
        ),
        Format(
            "npy",
            (".npy",),
            ".npy",
            "NumPy array",
            ("a NumPy .npy file",),
            lays=True,
            several=False,
        ),
        Format(
            "npz",
            (".npz",),
            ".npz",
            "NumPy arrays in a zip archive",
            ("a zip archive",),
            (".npy",),
            separate=True,
            classes=True,
        ),
        _table(
            "csv",
            (".csv", ".txt"),
            ".delimited",
            "CSV table",
            ("a CSV table", "a text file"),
        ),
        _table(
            "tsv",
            (".tsv", ".tab"),
            ".delimited",
            "Table with tabs",
            ("a CSV table", "a text file"),
            presets=(("delimiter", "tab"),),
        ),
        Format(
            "jsonl",
            (".jsonl", ".ndjson"),
            ".jsonlines",
            "JSON lines",
            ("a JSON document", "a text file"),
            packs=True,
            typed=False,
            ndim=(1, 64),
            empty="no",
        ),
        Format(
            "parquet",
            (".parquet", ".pq"),
            ".parquet",
            "Parquet",
            ("a Parquet file",),
            extra="parquet",
            ndim=(1, 64),
            empty="no items",
            classes=True,
        ),
        Format(
            "arrow",
            (".arrow", ".feather"),
            ".feather",
            "Arrow file (Feather 2)",
            ("an Arrow file",),
            extra="parquet",
            ndim=(1, 64),
            empty="no items",
            classes=True,
        ),
        Format(
            "hdf5",
            (".h5", ".hdf5", ".hdf"),
            ".hdf5",
            "HDF5",
            ("an HDF5 file",),
            points=True,
            extra="hdf5",
            ndim=(0, 32),
            separate=True,
            classes=True,
        ),
        Format(
            "zarr",
            (".zarr",),
            ".zarr",
            "Zarr, version 3",
            members=("zarr.json", ".zgroup", ".zarray"),
            folder=True,
            extra="zarr",
            ndim=(0, 32),
            separate=True,
            classes=True,
        ),
        Format(
            "safetensors",
            (".safetensors",),
            ".safetensors",
            "Safetensors",
            separate=True,
            classes=True,
        ),
        Format(
            "mat",
            (".mat",),
            ".matlab",
            "MATLAB 5 file",
            ("a MATLAB 5 file", "a MATLAB 7.3 (HDF5) file"),
            extra="mat",
            types=tuple(name for name in NUMBERS if name not in ("bool", "float16")),
            ndim=(0, 32),
            separate=True,
            classes=True,
        ),
        _pictures(
            "pictures",
            (),
            ".pictures",
            "Folder of pictures, or a single one",
            PICTURE_KINDS,
            members=_PICTURE_ENDS,
            folder=True,
        ),
        _pictures(
            "webdataset",
            (),
            ".webdataset",
            "WebDataset: samples in a tar archive",
            ("a tar archive",),
            (".cls",),
            packs=True,
        ),
        _pictures(
            "tar",
            (".tar",),
            ".pictures",
            "Pictures in a tar archive",
            ("a tar archive",),
            _PICTURE_ENDS,
            packs=True,
        ),
        _pictures(
            "zip",
            (".zip",),
            ".pictures",
            "Pictures in a zip archive",
            ("a zip archive",),
            _PICTURE_ENDS,
        ),
        Format(
            "c",
            (".h",),
            ".cheader",
            "C header",
            reads=False,
            types=tuple(name for name in NUMBERS if name not in ("bool", "float16")),
            empty="no",
            classes=True,
        ),
        Format(
            "readmemh",
            (".mem", ".hex"),
            ".readmemh",
            "Memory file for Verilog's $readmemh",
            reads=False,
            several=False,
        ),
        Format(
            "kerchunk",
            (".json",),
            ".kerchunk",
            "Kerchunk references: a Zarr view of a file that stays",
            reads=False,
            writes=False,
            points=True,
            ndim=(0, 32),
            classes=True,
        ),
    )
}


@cache
def all_formats() -> dict[str, Format]:
    """The table, with what other packages add to it; a name of ours stays ours."""
    added = {}
    for point in entry_points(group="idxfile.formats"):
        try:
            row = point.load()
            added[row.name] = row
        except Exception as error:
            text = f"the format {point.name} of {point.value} cannot be loaded: {error}"
            warnings.warn(text, IdxWarning, stacklevel=2)
    return {**added, **FORMATS}


def format_named(name: str) -> Format:
    """The row of that name.

    Raises:
        ValueError: for a name that is not in the table.
    """
    row = all_formats().get(name)
    if row is None:
        raise ValueError(f"format must be one of {', '.join(all_formats())}, not {name!r}")
    return row
