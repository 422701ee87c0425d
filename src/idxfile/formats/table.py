"""FORMATS: every format that can be converted from or to, as one table.

A row names a module of this folder with two functions (or one of them):

    read_columns(path, **options) -> Columns
    write_columns(path, columns, **options) -> None

`read_columns` opens lazily; `write_columns` takes the blocks of the columns, in constant memory,
and writes one file (or fills one folder, that is there and empty). Options are keyword-only, and
what the signature says of them is what they are held against. A format that can describe elements
that stay where they are has a third function, `point_columns(path, columns, **options)`.

What a row says a format holds is enforced: nothing else ever reaches its writer. Another package
adds a format by an entry point of the group `idxfile.formats` that gives such a row, with the
dotted name of its own module.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any, Literal

from ..errors import IdxWarning, MissingExtraError
from ..header import IDX_TYPE_NAMES

__all__ = ["FORMATS", "Format"]

NUMBERS = (
    "bool",
    *(f"uint{bits}" for bits in (8, 16, 32, 64)),
    *(f"int{bits}" for bits in (8, 16, 32, 64)),
    *(f"float{bits}" for bits in (16, 32, 64)),
)
"""The element types of NumPy that are numbers, but for the complex ones and those of one machine."""

_INTEGERS = tuple(name for name in NUMBERS if "int" in name)
_FLOATS = tuple(name for name in NUMBERS if name.startswith("float"))

PICTURES = (".png", ".jpg", ".jpeg", ".bmp", ".webp", ".tif", ".tiff", ".pgm", ".ppm", ".gif")
"""How the names of pictures end, in small letters."""

_PICTURES = (*PICTURES, *map(str.upper, PICTURES))


@dataclass(frozen=True, slots=True)
class Format:
    """A row of the table of formats."""

    name: str
    """The public name, as `--from` and `--to` take it."""
    suffixes: tuple[str, ...]
    """Suffixes of file names."""
    module: str
    """Where its functions are: a module of this folder, or a dotted name."""
    title: str
    """What it is, for people."""
    signatures: tuple[str, ...] = ()
    """Names in SIGNATURES that show it by content."""
    members: tuple[str, ...] = ()
    """Ends of the names in an archive or a folder that show it."""
    reads: bool = True
    writes: bool = True
    points: bool = False
    """Whether it can describe elements that stay in their file."""
    several: bool = True
    """Whether it holds several columns: images with their labels."""
    folder: bool = False
    """Whether it is a folder, not a file."""
    packs: bool = False
    """Whether it is also written and read compressed: `.csv.gz`."""
    presets: tuple[tuple[str, Any], ...] = ()
    """Options that its functions are given, where the user gives none."""
    extra: str | None = None
    """The extra of idxfile that brings what it needs."""
    types: tuple[str, ...] = NUMBERS
    """The element types that it holds."""
    typed: bool = True
    """Whether it says the element type; if not, reading finds the smallest one."""
    ndim: tuple[int, int] = (0, 64)
    """The fewest and the most dimensions that it holds."""
    empty: Literal["yes", "no items", "no"] = "yes"
    """Whether it holds arrays without elements: any, those without items, or none."""
    classes: bool = False
    """Whether it holds the names of classes."""

    def load(self) -> Any:
        """The module with the functions.

        Raises:
            MissingExtraError: when a package that it needs is not installed.
        """
        name = self.module if "." in self.module else f"{__package__}.{self.module}"
        return imported(name, self.extra)


def imported(name: str, extra: str | None) -> Any:
    """A module that is there, or whose package an extra of idxfile brings.

    Raises:
        MissingExtraError: with the line that installs it.
    """
    try:
        return import_module(name)
    except ImportError as error:
        if extra is None:
            raise
        raise MissingExtraError(
            f"this needs the package {error.name}", hint=f"pip install 'idxfile[{extra}]'"
        ) from error


FORMATS: dict[str, Format] = {
    row.name: row
    for row in (
        Format(
            "idx",
            (".idx",),
            "idx",
            "IDX: a file, or a folder with a pair",
            types=IDX_TYPE_NAMES,
            packs=True,
            classes=True,
        ),
        Format("npy", (".npy",), "npy", "NumPy array", ("a NumPy .npy file",), several=False),
        Format(
            "npz",
            (".npz",),
            "npz",
            "NumPy arrays in a zip archive",
            ("a zip archive",),
            (".npy",),
            classes=True,
        ),
        Format(
            "csv",
            (".csv",),
            "delimited",
            "CSV table",
            ("a CSV table", "a text file"),
            packs=True,
            typed=False,
            ndim=(1, 64),
            empty="no items",
        ),
        Format(
            "tsv",
            (".tsv", ".tab"),
            "delimited",
            "Table with tabs",
            ("a CSV table", "a text file"),
            presets=(("delimiter", "tab"),),
            packs=True,
            typed=False,
            ndim=(1, 64),
            empty="no items",
        ),
        Format(
            "jsonl",
            (".jsonl", ".ndjson"),
            "jsonlines",
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
            "parquet",
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
            "feather",
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
            "hdf5",
            "HDF5",
            ("an HDF5 file",),
            points=True,
            extra="hdf5",
            ndim=(0, 32),
            classes=True,
        ),
        Format(
            "zarr",
            (".zarr",),
            "zarr",
            "Zarr, version 3",
            members=("zarr.json", ".zgroup", ".zarray"),
            folder=True,
            extra="zarr",
            classes=True,
        ),
        Format(
            "safetensors",
            (".safetensors",),
            "safetensors",
            "Safetensors",
            classes=True,
        ),
        Format(
            "mat",
            (".mat",),
            "matlab",
            "MATLAB 5 file",
            ("a MATLAB 5 file", "a MATLAB 7.3 (HDF5) file"),
            extra="mat",
            types=tuple(name for name in NUMBERS if name not in ("bool", "float16")),
            ndim=(0, 32),
            classes=True,
        ),
        Format(
            "pictures",
            (),
            "pictures",
            "Folder of pictures",
            members=_PICTURES,
            folder=True,
            extra="images",
            types=_INTEGERS,
            typed=False,
            ndim=(1, 4),
            empty="no",
            classes=True,
        ),
        Format(
            "tar",
            (".tar",),
            "pictures",
            "Pictures in a tar archive",
            ("a tar archive",),
            _PICTURES,
            packs=True,
            extra="images",
            types=_INTEGERS,
            typed=False,
            ndim=(1, 4),
            empty="no",
            classes=True,
        ),
        Format(
            "zip",
            (".zip",),
            "pictures",
            "Pictures in a zip archive",
            ("a zip archive",),
            _PICTURES,
            extra="images",
            types=_INTEGERS,
            typed=False,
            ndim=(1, 4),
            empty="no",
            classes=True,
        ),
        Format(
            "webdataset",
            (),
            "webdataset",
            "WebDataset: samples in a tar archive",
            ("a tar archive",),
            (".cls",),
            packs=True,
            extra="images",
            types=_INTEGERS,
            typed=False,
            ndim=(1, 4),
            empty="no",
            classes=True,
        ),
        Format(
            "c",
            (".h",),
            "cheader",
            "C header",
            reads=False,
            types=tuple(name for name in NUMBERS if name not in ("bool", "float16")),
            empty="no",
            classes=True,
        ),
        Format(
            "readmemh",
            (".mem", ".hex"),
            "readmemh",
            "Memory file for Verilog's $readmemh",
            reads=False,
            several=False,
        ),
        Format(
            "kerchunk",
            (".json",),
            "kerchunk",
            "Kerchunk references: a Zarr view of a file that stays",
            reads=False,
            writes=False,
            points=True,
            types=IDX_TYPE_NAMES,
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
