"""Where the files of data sets lie on this machine, and whether they are right.

Every data set has a folder of its own, since different ones use the same file names. Files that
were brought by hand, or by another library, count as much as downloaded ones: nothing is asked of
a file but its content.
"""

from __future__ import annotations

import contextlib
import os
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from ..errors import IdxError
from ..names import file_name
from ..report.facts import make_out
from ..signatures import describe
from ..sink import put_in_place
from ..source import open_source, pieces
from ..source.places import home
from .digests import digests, file_fits
from .identity import identify
from .table import Archive, DatasetFacts, FileFacts

__all__: list[str] = []


def keras_home() -> str:
    """The folder in which Keras keeps its downloads."""
    chosen = os.environ.get("KERAS_HOME", os.path.join("~", ".keras"))
    return os.path.join(os.path.expanduser(chosen), "datasets")


@dataclass(frozen=True)
class Storage:
    """The folders in which the files of one data set are looked for."""

    facts: DatasetFacts
    folder: str
    """Where downloads go: the data set's own folder."""
    places: tuple[str, ...]
    """Where files are looked for, the own folder first."""

    @classmethod
    def of(cls, facts: DatasetFacts, root: str | os.PathLike[str] | None) -> Storage:
        """The folders under a root that the user gave, or those that are usual."""
        top = home() if root is None else os.path.abspath(os.fsdecode(root))
        own = os.path.join(top, facts.name)
        places = [own, top, *(os.path.join(top, layout) for layout in facts.layouts)]
        if root is None:
            places.append(os.path.join(keras_home(), facts.name))
        return cls(facts, own, tuple(places))

    def archive_folder(self, archive: Archive) -> str:
        """Where the archive of a family goes: a folder that its data sets share."""
        return os.path.join(os.path.dirname(self.folder), archive.family)

    def find(self, file: FileFacts) -> tuple[str | None, list[str]]:
        """Look for a file by its content.

        Returns:
            Its path, or None; and what is wrong with those that bear its name.
        """
        faults: list[str] = []
        for path in self._candidates(file):
            try:
                fault = file_fault(path, self.facts, file)
            except (OSError, IdxError) as error:
                fault = str(error)
            if fault is None:
                return path, faults
            faults.append(f"{path}: {fault}")
        return None, faults

    def find_archives(self, archive: Archive) -> Iterator[str]:
        """The archives of this name, right or wrong: their members are verified one by one."""
        for folder in (self.archive_folder(archive), *self.places):
            path = os.path.join(folder, archive.name)
            if os.path.isfile(path):
                yield path

    def _candidates(self, file: FileFacts) -> Iterator[str]:
        wanted = file_name(file.name)
        exact = (file.name, os.path.splitext(file.name)[0])
        for place in self.places:
            try:
                names = sorted(os.listdir(place), key=lambda name: (name not in exact, name))
            except (FileNotFoundError, NotADirectoryError):
                continue
            for name in names:
                path = os.path.join(place, name)
                alike = wanted and file_name(name) == wanted and not name.startswith(".")
                if (name in exact or alike) and os.path.isfile(path):
                    yield path


def file_fault(path: str, facts: DatasetFacts, file: FileFacts) -> str | None:
    """What is wrong with a file that should be a known one; None where its content is right.

    It is right as it was published, and as well when the decompressed content is.
    """
    if file_fits(path, file.published):
        return None
    source = open_source(path, mmap=False)
    try:
        header, problems = make_out(source, source.size)
        alike = header is not None and header.shape == file.shape
        if header is not None and alike:
            # All of it is read in any case: that shows damage too.
            algorithm, digest = file.raw.strongest or ("sha256", None)
            content = _bounded(pieces(source), header.file_nbytes)
            found = digests(content, header.file_nbytes, [algorithm])[algorithm]
            if found == digest and not source.problems:
                return None
    finally:
        source.close()
    errors = [problem for problem in problems if problem.level == "error"]
    fault = next(iter([*errors, *source.problems]), None)
    if fault is not None and alike:
        return f"it is damaged: {fault.message}"
    identity = identify(path)
    if identity.dataset is not None or not alike:
        return f"found: {identity.what}"
    if file.raw.strongest is None and not source.codecs:
        return "no checksum is known of the decompressed file"
    earlier = [release.what for release in facts.releases if not release.same_content]
    perhaps = f" (is it of {earlier[0]}?)" if earlier else ""
    return f"its checksum is not the published one{perhaps}"


def _bounded(content: Iterable[memoryview], nbytes: int) -> Iterator[memoryview]:
    """Pieces until there are more bytes than these: enough to know."""
    for piece in content:
        yield piece
        nbytes -= len(piece)
        if nbytes < 0:
            return


def archive_fault(path: str, archive: Archive) -> str | None:
    """What is wrong with the archive of a family; None where its checksum is right."""
    if file_fits(path, archive.published):
        return None
    with open(path, "rb") as opened:
        what = describe(opened.read(1024))
    if what and not zipfile.is_zipfile(path):
        return f"found: {what}"
    return "its checksum is not the published one"


def unpack(archive: str, facts: DatasetFacts, file: FileFacts, target: str) -> str | None:
    """Take a file out of an archive, and give it its name if it is right.

    Returns:
        What is wrong, or None.
    """
    part = part_name(target)
    try:
        with zipfile.ZipFile(archive) as opened:
            members = [m for m in opened.namelist() if os.path.basename(m) == file.name]
            if not members:
                return f"it has no member {file.name}"
            with opened.open(members[0]) as member, open(part, "wb") as out:
                while piece := member.read(1 << 20):
                    out.write(piece)
        fault = file_fault(part, facts, file)
        if fault is None:
            put_in_place(part, target)
        return fault and f"member {file.name}: {fault}"
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as error:
        return f"member {file.name} cannot be read: {error}"
    finally:
        discard(part)


def part_name(target: str) -> str:
    """The name of a file that is not complete yet, beside its final one."""
    folder, name = os.path.split(target)
    return os.path.join(folder, f".{name}.part")


def discard(part: str) -> None:
    """Remove an incomplete file, if it is there."""
    with contextlib.suppress(FileNotFoundError):
        os.unlink(part)
