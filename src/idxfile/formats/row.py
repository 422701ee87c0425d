"""A row of the table of formats, and what every format may need to be loaded."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import Any, Literal

from ..errors import MissingExtraError

__all__ = ["Format"]

NUMBERS = (
    "bool",
    *(f"uint{bits}" for bits in (8, 16, 32, 64)),
    *(f"int{bits}" for bits in (8, 16, 32, 64)),
    *(f"float{bits}" for bits in (16, 32, 64)),
)
"""The element types of NumPy that are real numbers, the same on every machine."""


@dataclass(frozen=True, slots=True)
class Format:
    """A row of the table of formats."""

    name: str
    """The public name, as `--from` and `--to` take it."""
    suffixes: tuple[str, ...]
    """Suffixes of file names."""
    module: str
    """Where its functions are: the name of a module; with a dot before it, of this folder."""
    title: str
    """What it is, for people."""
    signatures: tuple[str, ...] = ()
    """Names in SIGNATURES that show it by content."""
    members: tuple[str, ...] = ()
    """Ends of the names in an archive or a folder that show it."""
    reads: bool = True
    writes: bool = True
    lays: bool = False
    """Whether its elements lie by position, so that many can write a file at once."""
    points: bool = False
    """Whether it can describe elements that stay in their file."""
    several: bool = True
    """Whether it holds several columns: images with their labels."""
    separate: bool = False
    """Whether its columns are separate arrays, of any lengths: several splits, too."""
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
    label_types: tuple[str, ...] = ()
    """Those of labels beside images, where they are others."""
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
        return imported(self.module, self.extra)


def imported(name: str, extra: str | None) -> Any:
    """A module that is there, or whose package an extra of idxfile brings.

    Raises:
        MissingExtraError: with the line that installs it.
    """
    try:
        return import_module(name, __package__)
    except ImportError as error:
        if extra is None:
            raise
        raise MissingExtraError(
            f"this needs the package {error.name}", hint=f"pip install 'idxfile[{extra}]'"
        ) from error
