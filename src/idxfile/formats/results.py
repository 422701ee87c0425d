"""Where the result of a conversion goes: a file, a folder as a whole, or files into a folder."""

from __future__ import annotations

import contextlib
import errno
import filecmp
import io
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from ..classes import CLASSES_FILE
from ..errors import UnsupportedError
from ..names import refuse_rivals
from ..placing import names_there, remove
from ..sending import send_file
from ..sink import sync_file, sync_folder
from ..source.places import beside, download, exists, is_url, public
from ..staging import atomic_file, atomic_folder, hidden_folder, temporary_folder
from .columns import Columns
from .opening import function_of
from .row import Format

__all__: list[str] = []

Overwrite = bool | Literal["files"]
"""What may be replaced: nothing, everything, or files but no folder that holds something."""

_REPLACED = "It exists, and would be replaced"

Kind = Literal["file", "folder", "files"]


@dataclass(frozen=True)
class Target:
    """What is written, and how. It pickles."""

    path: str
    """A path or an address."""
    writer: Format
    kind: Kind
    overwrite: Overwrite
    options: Mapping[str, Any]
    """Of the format."""
    verb: str = "write"

    def check(self) -> None:
        """Make sure that it can be written.

        Raises:
            UnsupportedError: when the format does not do that.
            OSError: for a target that would be replaced and must not.
        """
        check_target(self.path, self.kind, self.overwrite)
        function_of(self.writer, self.verb, self.options)

    def write(self, columns: Columns, names: dict[str, str]) -> None:
        """Write it; it appears whole or not at all.

        Args:
            columns: what it holds.
            names: what errors call the place where it is meanwhile; to be filled.
        """
        with result(self.path, self.kind, self.overwrite) as place:
            names[place] = self.path
            function_of(self.writer, self.verb, self.options)(place, columns)


def check_target(target: str, kind: Kind, overwrite: Overwrite) -> None:
    """Refuse a target that would be replaced and must not.

    Raises:
        FileExistsError: for what exists.
        IsADirectoryError: for a folder where a file is to be written.
        NotADirectoryError: for a file where a folder is to be written.
    """
    if is_url(target):
        if kind == "folder":
            raise UnsupportedError(
                "a folder in a store is not written as a whole",
                file=public(target),
                hint="convert into a folder here, and copy it there",
            )
        from ..source.remote import check_writes

        check_writes(target)
        if kind == "file" and not overwrite and exists(target):
            raise FileExistsError(errno.EEXIST, _REPLACED, public(target))
        return
    target = target.rstrip("/") or "/"
    if os.path.isdir(target):
        if kind == "file":
            raise IsADirectoryError(errno.EISDIR, "Is a folder, and no file", target)
        if kind == "folder" and overwrite is not True and os.listdir(target):
            raise FileExistsError(errno.EEXIST, "It holds something, and would be replaced", target)
    elif os.path.lexists(target):
        if os.path.exists(target) and not os.path.isfile(target):
            raise FileExistsError(errno.EEXIST, "It is a pipe or a device, and no file", target)
        if kind != "file":
            raise NotADirectoryError(errno.ENOTDIR, "Is a file, and no folder", target)
        if not overwrite:
            raise FileExistsError(errno.EEXIST, _REPLACED, target)


def result(target: str, kind: Kind, overwrite: Overwrite) -> contextlib.AbstractContextManager[str]:
    """A temporary path to write to; what stands there at the end gets its name, whole.

    Nothing is left after an exception, and what was there before stays.
    """
    check_target(target, kind, overwrite)
    if kind == "files" and is_url(target):
        return _files_to_store(target, overwrite)
    if kind == "files" and os.path.isdir(target):
        return _files_into(target.rstrip("/") or "/", overwrite)
    return atomic_file(target) if kind == "file" else atomic_folder(target)


@contextlib.contextmanager
def _files_into(folder: str, overwrite: Overwrite) -> Iterator[str]:
    """A temporary folder whose files are moved into a folder at the end, beside what is there.

    Folders in it are not: who writes may have some for the while.
    """
    with hidden_folder(folder) as aside:
        yield aside
        files = [entry.name for entry in os.scandir(aside) if entry.is_file()]
        moves = [(os.path.join(aside, name), os.path.join(folder, name)) for name in files]
        refuse_rivals(folder, os.listdir(folder), files)
        moves = [(new, name) for new, name in moves if not _same(new, name)]
        for _, name in moves if not overwrite else ():
            if os.path.lexists(name):
                raise FileExistsError(errno.EEXIST, _REPLACED, name)
        for new, _ in moves:
            sync_file(new)
        for new, name in moves:
            os.replace(new, name)
    sync_folder(folder)


@contextlib.contextmanager
def _files_to_store(folder: str, overwrite: Overwrite) -> Iterator[str]:
    """A temporary folder here, whose files are sent at the end; where one fails, none stays."""
    with temporary_folder() as aside:
        yield aside
        there = set(names_there(folder))
        names = sorted(os.listdir(aside))
        refuse_rivals(public(folder), there, names)
        for name in names if not overwrite else ():
            url = beside(folder, name)
            if name in there and not _same_classes(os.path.join(aside, name), url):
                raise FileExistsError(errno.EEXIST, _REPLACED, public(url))
        with all_or_none(folder, names):
            for name in names:
                send_file(os.path.join(aside, name), beside(folder, name))


@contextlib.contextmanager
def all_or_none(folder: str, names: Sequence[str]) -> Iterator[None]:
    """A block that writes objects into a folder of a store; where one fails, no new one stays.

    Args:
        folder: its address.
        names: of the objects; they may come to be known in the block.
    """
    old = {*names_there(folder)}
    try:
        yield
    except BaseException:
        new = {*names} - old
        with contextlib.suppress(OSError):  # else each is tried
            new &= {*names_there(folder)}
        remove([beside(folder, name) for name in sorted(new)])
        raise


def _same_classes(new: str, url: str) -> bool:
    """Whether these are the names of classes, which are there already for another split."""
    if os.path.basename(new) != CLASSES_FILE:
        return False
    there = io.BytesIO()
    download(url, there)
    with open(new, "rb") as file:
        return file.read() == there.getvalue()


def _same(new: str, name: str) -> bool:
    return os.path.isfile(name) and filecmp.cmp(new, name, shallow=False)
