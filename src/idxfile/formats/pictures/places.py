"""Where pictures lie: a folder, a tar, a zip, a file; each lists its files and reads one by name.

Names are those below the place, with "/". What begins with a dot is hidden and does not exist.
Reading is safe from many threads.
"""

from __future__ import annotations

import contextlib
import copy
import os
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from ...errors import FormatError, PairError, UnsupportedError
from ...names import split_of
from ...opening import check_identity
from ...problems import settle
from ...signatures import PICTURE_KINDS
from ...source import kind_of, open_source
from ...source.archive import SourceFile
from ...source.local import FileIdentity
from ...source.places import from_anywhere
from ..table import PICTURES
from .labels import TABLES

__all__ = ["Place", "open_place"]

MAX_FILE_NBYTES = 1 << 30
"""A picture file is never larger; what is, was named wrongly, or is a bomb."""


def open_place(path: str, split: str | None = None) -> Place:
    """Open a folder, a tar or zip archive, or a single picture; content decides.

    Args:
        path: where it is.
        split: train, test …: the folder that is the place, where all folders are splits.

    Raises:
        FormatError: for a file that is neither, or is damaged.
        PairError: for a split that is not there.
        OSError: as the system gives it.
    """
    if os.path.isdir(path):
        place: Place = Folder(path)
    else:
        kind = kind_of(path)
        if kind in PICTURE_KINDS:
            return OnePicture(path)
        place = Zip(path) if kind == "a zip archive" else Tar(path)
    folders = place.folders
    if split is not None and folders and all(map(split_of, folders)):
        chosen = [folder for folder in folders if split_of(folder) == (split_of(split) or split)]
        if len(chosen) != 1:
            place.close()
            raise PairError(
                f"no split {split!r} among the folders {', '.join(folders)}",
                file=path,
                found=folders,
            )
        place.enter(chosen[0])
    return place


class Place:
    """What has files."""

    def __init__(self, name: str) -> None:
        self.name = name
        """What errors call it."""
        self.notes: list[str] = []
        """What was left out, and why."""
        self._members: dict[str, Any] = {}
        self._folders: set[str] = set()
        self._within = ""

    @property
    def files(self) -> list[str]:
        """The names of all files that are not hidden."""
        return list(self._members)

    @property
    def pictures(self) -> list[str]:
        """The names of those that are pictures by their names."""
        return [file for file in self._members if file.lower().endswith(PICTURES)]

    @property
    def folders(self) -> list[str]:
        """The names of the folders at the top."""
        tops = (name.partition("/") for name in (*self._folders, *self._members))
        return sorted({top for top, slash, _ in tops if slash})

    def called(self, file: str) -> str:
        """What errors call a file."""
        return f"{self.name}::{self._within}{file}"

    def enter(self, folder: str) -> None:
        """Make one of the folders at the top the place."""
        start = f"{folder}/"
        self._within += start
        found = {name for name in self._folders if name.startswith(start)} - {start}
        self._folders = {name.removeprefix(start) for name in found}
        members = self._members.items()
        self._members = {n.removeprefix(start): m for n, m in members if n.startswith(start)}

    def read(self, file: str) -> bytes:
        """All bytes of a file.

        Raises:
            FormatError: for what is damaged.
            OSError: as the system gives it.
        """
        raise NotImplementedError

    def part(self, files: Sequence[str]) -> Place | None:
        """The same with these files alone, which pickles; None where that cannot be."""
        part = copy.copy(self)
        part._members = {file: self._members[file] for file in files}
        part._folders = set()
        part.notes = []
        return part

    def close(self) -> None:
        """Let go of it."""

    def _add(self, name: str, member: Any) -> None:
        """Take up a member of an archive; None stands for a folder."""
        parts = [part for part in name.split("/") if part not in ("", ".")]
        if not parts or any(part.startswith(".") for part in parts):
            return
        if member is None:
            self._folders.add("/".join(parts) + "/")
        else:
            self._members["/".join(parts)] = member

    def _unwrap(self) -> None:
        """Enter the one folder that an archive is often packed in.

        It is a wrapper, and no class, when folders lie in it, or a table of labels.
        """
        tops = self.folders
        inner = [name.partition("/")[2] for name in self._members]
        if len(tops) != 1 or not all(inner):
            return
        if any("/" in name for name in inner) or not set(TABLES).isdisjoint(inner):
            self.enter(tops[0])


def _refuse_size(nbytes: int, name: str) -> None:
    if nbytes > MAX_FILE_NBYTES:
        raise FormatError(f"{nbytes:,} bytes: this is no picture", file=name, found=nbytes)


class OnePicture(Place):
    """A single picture, whatever its name says."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self._members[os.path.basename(path)] = None

    @property
    def pictures(self) -> list[str]:
        """The one that there is."""
        return self.files

    def called(self, file: str) -> str:
        """What errors call it."""
        return self.name

    def read(self, file: str) -> bytes:
        """All bytes of it."""
        with contextlib.closing(open_source(self.name, mmap=False)) as source:
            content = source.read_at(0, MAX_FILE_NBYTES + 1)
        _refuse_size(len(content), self.name)
        return content

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "name": from_anywhere(self.name)}


class Folder(Place):
    """A folder, with the folders in it; links are followed, but not in circles."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self._top = os.path.join(path, "")
        pending = [("", [os.stat(path)])]
        while pending:
            below, above = pending.pop()
            with os.scandir(os.path.join(path, below)) as entries:
                for entry in entries:
                    if entry.name.startswith("."):
                        continue
                    name = below + entry.name
                    if entry.is_dir():
                        here = entry.stat()
                        if any(os.path.samestat(here, other) for other in above):
                            self.notes.append(f"left out {name}: a link to a folder above it")
                        else:
                            self._folders.add(f"{name}/")
                            pending.append((f"{name}/", [*above, here]))
                    elif entry.is_file() or entry.is_symlink():
                        self._members[name] = None
                    else:
                        self.notes.append(f"left out {name}: neither a file nor a folder")

    def called(self, file: str) -> str:
        """What errors call a file."""
        return f"{self._top}{self._within}{file}"

    def read(self, file: str) -> bytes:
        """All bytes of a file."""
        path = self.called(file)
        # A third of the time that `open` takes; and what became a pipe meanwhile does not block.
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            status = os.fstat(fd)
            if not stat.S_ISREG(status.st_mode):
                raise FormatError("this is no regular file", file=path)
            _refuse_size(status.st_size, path)
            data = os.read(fd, status.st_size)
            while len(data) < status.st_size and (more := os.read(fd, status.st_size - len(data))):
                data += more
            return data
        finally:
            os.close(fd)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_top": from_anywhere(self._top) + os.sep}


class Tar(Place):
    """A tar archive, compressed or not; members are read by position."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self._source = open_source(path, mmap=False)
        self._identity = FileIdentity.of(os.stat(path))
        try:
            if self._source.codecs:
                self._source.read_at(0, 1 << 12)  # inflates all of it, once
                settle(self._source.problems, "raise", path)
            with tarfile.open(fileobj=SourceFile(self._source), mode="r:") as archive:
                for member in archive:
                    self._take(member)
            self._unwrap()
        except tarfile.TarError as error:
            self.close()
            raise FormatError(f"this tar archive cannot be read: {error}", file=path) from error
        except BaseException:
            self.close()
            raise

    def _take(self, member: tarfile.TarInfo) -> None:
        if member.isdir():
            self._add(member.name, None)
        elif member.isreg() and not member.issparse():
            self._add(member.name, (member.offset_data, member.size))
        elif member.islnk() and member.linkname in self._members:
            self._add(member.name, self._members[member.linkname])
        else:
            self.notes.append(f"left out {member.name}: a link, or no plain file")

    def read(self, file: str) -> bytes:
        """All bytes of a member."""
        start, nbytes = self._members[file]
        _refuse_size(nbytes, self.called(file))
        return self._source.read_at(start, start + nbytes)

    def part(self, files: Sequence[str]) -> Place | None:
        """The same with these files alone; None of a compressed one, which is inflated whole."""
        return None if self._source.codecs else super().part(files)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_source": None, "name": from_anywhere(self.name)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        check_identity(self.name, None, self._identity)
        self._source = open_source(self.name, mmap=False)

    def close(self) -> None:
        """Close the archive."""
        self._source.close()


class Zip(Place):
    """A zip archive; its members' checksums are held against them."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self._identity = FileIdentity.of(os.stat(path))
        try:
            self._zip = zipfile.ZipFile(path)
        except (zipfile.BadZipFile, NotImplementedError) as error:
            raise FormatError(f"this zip archive cannot be read: {error}", file=path) from error
        for member in self._zip.infolist():
            name = member.filename.replace("\\", "/")
            if not name.startswith("__MACOSX/"):
                self._add(name, None if member.is_dir() else member)
        self._unwrap()

    def read(self, file: str) -> bytes:
        """All bytes of a member."""
        member = self._members[file]
        _refuse_size(member.file_size, self.called(file))
        if member.flag_bits & 1:
            raise UnsupportedError("it is encrypted", file=self.called(file), hint="unpack it")
        try:
            return self._zip.read(member)
        except (zipfile.BadZipFile, zlib.error, EOFError) as error:
            raise FormatError(f"it is damaged: {error}", file=self.called(file)) from error
        except NotImplementedError as error:
            raise UnsupportedError(str(error), file=self.called(file)) from error

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_zip": None, "name": from_anywhere(self.name)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        check_identity(self.name, None, self._identity)
        self._zip = _opened(self.name, self._identity)

    def close(self) -> None:
        """Close the archive."""
        self._zip.close()


@lru_cache(1)
def _opened(path: str, _: FileIdentity) -> zipfile.ZipFile:
    """An archive of which many parts arrive: its directory is read once."""
    return zipfile.ZipFile(path)
