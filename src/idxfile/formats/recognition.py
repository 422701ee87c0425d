"""What format a source has, by its content, and what format a target asks for, by its name."""

from __future__ import annotations

import contextlib
import os
import tarfile
import zipfile
from collections.abc import Iterable, Iterator
from itertools import islice

from .. import signatures
from ..codecs import codec_of_name
from ..errors import FormatError, UnsupportedError
from ..header import examine
from ..names import file_name
from ..source import header_prefix, open_source
from ..source.places import is_url
from .row import Format
from .table import FORMATS, all_formats

__all__: list[str] = []

_LISTED = 1000
"""So many names in a folder or an archive are looked at."""

_RAW_FOLDERS = ("", "raw", os.path.join("MNIST", "raw"))
"""Where in a folder IDX files may lie; the last two are torchvision's."""


def format_of_source(path: str) -> Format:
    """What a file or a folder is, by its content, and only where that tells nothing by its name.

    A pipe, whose bytes come once, is what its name says, and IDX otherwise.

    Raises:
        FormatError: when nothing here reads it.
        OSError: as the system gives it.
    """
    if os.path.isdir(path):
        return _format_of_folder(path)
    if is_url(path) and path.endswith("/"):
        return FORMATS["idx"]
    named = [row for row in _by_suffix(path) if row.reads]
    if os.path.exists(path) and not os.path.isfile(path):  # a pipe gives its bytes only once
        return named[0] if named else FORMATS["idx"]
    prefix = _prefix(path)
    if _is_idx(prefix):
        return FORMATS["idx"]
    kind = signatures.recognise(prefix)
    if kind is None:  # the content says nothing; IDX says best what is wrong with it
        return named[0] if named else FORMATS["idx"]
    rows = [row for row in all_formats().values() if kind.name in row.signatures and row.reads]
    if kind.name == "a text file":  # which may be anything
        rows = [row for row in rows if row in named]
    if names := _archived(path) if any(row.members for row in rows) else []:
        rows = _by_members(rows, names)
    fitting = (row for row in rows if row in named or not row.suffixes)
    chosen = next(fitting, None) or next(iter(rows), None)
    if chosen is None:
        raise FormatError(
            f"this is {kind.name}, which cannot be converted from",
            file=path,
            found=kind.name,
            hint=f"formats that are read: {', '.join(_names('reads'))}",
        )
    return chosen


def format_of_target(path: str, *, point: bool = False) -> Format:
    """The format that the name of a target asks for.

    Args:
        path: where to write.
        point: whether elements are to be pointed to, and not written.

    Raises:
        UnsupportedError: when the name asks for none.
    """
    what = "points" if point else "writes"
    rows = [row for row in _by_suffix(path) if row.folder or not path.endswith("/")]
    row = next((row for row in rows if getattr(row, what)), next(iter(rows), None))
    if row is not None:
        return row
    if path.endswith("/") or os.path.isdir(path) or _is_called_idx(path):
        return FORMATS["idx"]
    raise UnsupportedError(
        "the name does not say what format to write",
        file=path,
        hint=f"say it with --to (target_format=): {', '.join(_names(what))}",
    )


def _prefix(path: str) -> bytes:
    source = open_source(path, mmap=False)
    try:
        return header_prefix(source)
    finally:
        source.close()


def _is_idx(prefix: bytes) -> bool:
    return examine(prefix)[0] is not None


def _is_called_idx(path: str) -> bool:
    """Whether a name is one of MNIST's: `train-images-idx3-ubyte`, `labels.gz`."""
    base = os.path.basename(path).lower()
    stem = base.rpartition(".")[0] if codec_of_name(base) else base
    return file_name(path) is not None and ("." not in stem or "idx" in stem or "ubyte" in stem)


def _by_suffix(path: str) -> Iterator[Format]:
    base = path.lower().rstrip("/")
    stem = base.rpartition(".")[0] if codec_of_name(base) else base
    return (row for row in all_formats().values() if stem.endswith(row.suffixes))


def _by_members(rows: Iterable[Format], names: list[str]) -> list[Format]:
    """The rows that names in an archive or a folder show; IDX, if it is among them, first."""
    found = [row for row in rows if row.members and any(n.endswith(row.members) for n in names)]
    idx = any(file_name(name) and "idx" in os.path.basename(name).lower() for name in names)
    return [FORMATS["idx"], *found] if idx else found


def _archived(path: str) -> list[str]:
    """The first names in a zip or tar archive; none where it is damaged."""
    with contextlib.suppress(
        zipfile.BadZipFile, NotImplementedError, tarfile.TarError, OSError, EOFError
    ):
        if zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as archive:
                return archive.namelist()[:_LISTED]
        with tarfile.open(path) as tar:
            return [member.name for member in islice(tar, _LISTED)]
    return []


def _format_of_folder(path: str) -> Format:
    if any(_holds_idx(os.path.join(path, folder)) for folder in _RAW_FOLDERS):
        return FORMATS["idx"]
    rows = [row for row in all_formats().values() if row.folder and row.reads]
    by_name = [row for row in rows if row in list(_by_suffix(path))]
    chosen = [*by_name, *_by_members(rows, list(islice(_below(path), _LISTED)))]
    if not chosen:
        raise FormatError(
            "this folder holds nothing that can be converted from",
            file=path,
            hint=f"formats that are read: {', '.join(_names('reads'))}",
        )
    return chosen[0]


def _holds_idx(folder: str) -> bool:
    if not os.path.isdir(folder):
        return False
    names = (name for name in sorted(os.listdir(folder)) if file_name(name))
    paths = (os.path.join(folder, name) for name in names if not name.startswith("."))
    return any(os.path.isfile(path) and _is_idx(_prefix(path)) for path in paths)


def _below(folder: str) -> Iterator[str]:
    for _, _, names in os.walk(folder):
        yield from names


def _names(what: str) -> list[str]:
    return [row.name for row in all_formats().values() if getattr(row, what)]
