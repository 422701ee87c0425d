"""Objects that lie elsewhere: what an address means, and how what is there is opened.

A store is a module here with the same functions, loaded when an address asks for it: `open_object`
and, where a store can tell what a folder holds, `list_folder`.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from ...errors import FetchError, UnsupportedError
from ..places import is_archive, public
from ..stream import Spool
from .faults import DeniedError, FolderError, MissingObjectError
from .object import (
    RemoteFile,
    RemoteIdentity,
    RemoteObject,
    RemoteStream,
    Upload,
    part_nbytes,
)
from .stores import known_store, scheme_of

__all__ = [
    "RemoteFile",
    "RemoteIdentity",
    "check_writes",
    "exists",
    "folder_told",
    "list_folder",
    "open_remote",
    "open_upload",
    "part_nbytes",
    "remove_object",
]


def _store_of(url: str) -> Any:
    """The module of the store that an address names.

    HTTP needs no package. For the clouds obstore comes first, which costs the fewest requests;
    IDXFILE_REMOTE=fsspec prefers the other, which also reads the configuration files of theirs.
    """
    if scheme_of(url) in ("http", "https"):
        return import_module(".http", __name__)
    if "?versionId=" in url:
        raise UnsupportedError(
            "an address in a store names no version: the object as it is now is what it stands for",
            file=public(url),
            hint="leave ?versionId=… away; or fetch that version by another program, and open it",
        )
    known = known_store(url)
    preferred = os.environ.get("IDXFILE_REMOTE") != "fsspec"
    if known is not None and known.obstore and preferred and find_spec("obstore"):
        return import_module(".obstore", __name__)
    return import_module(".fsspec", __name__)


def open_remote(url: str, spool_nbytes: int) -> RemoteFile | Spool:
    """Open an object: by ranges, or as a stream where its store gives none.

    Raises:
        FetchError: where it cannot be had.
    """
    opened: tuple[RemoteObject, bytes] | RemoteStream = _store_of(url).open_object(url)
    if isinstance(opened, tuple):
        return RemoteFile(*opened)
    spool = Spool.of_stream(opened, opened.name, spool_nbytes, owned=True)
    spool.identity = opened.identity
    return spool


@contextlib.contextmanager
def folder_told(url: str) -> Iterator[None]:
    """A block that opens an object; where there is none, and a folder is, the error tells so."""
    try:
        yield
    except MissingObjectError:
        is_folder = getattr(_store_of(url), "is_folder", None)  # others tell unasked, or never
        told = False
        with contextlib.suppress(FetchError):  # it may be hidden
            told = is_folder is not None and is_folder(url)
        if told:
            raise FolderError(public(url)) from None
        raise


def exists(url: str) -> bool:
    """Whether there is an object at an address, or a member in an archive.

    Raises:
        DeniedError: where whoever asks may not know.
        FetchError: where that cannot be told.
    """
    try:
        if is_archive(url):
            return url in (list_folder(url) or ())
        open_remote(url, 0).close()
    except (FileNotFoundError, IsADirectoryError):
        return False
    except DeniedError as error:
        text = f"it cannot be told whether it is there: {error.args[0]}"
        raise DeniedError(text, file=error.file, hint=error.hint) from error
    return True


def check_writes(url: str) -> None:
    """Make sure that a store is one that can be written.

    Raises:
        UnsupportedError: for a web server.
    """
    if not is_archive(url) and _store_of(url).WRITES:
        return
    kind = "an archive" if is_archive(url) else "a web server"
    raise UnsupportedError(
        f"{kind} is read, and never written",
        file=public(url),
        hint="write a file, or into a bucket: s3://, gs://, az://",
    )


def open_upload(url: str, nbytes: int = 0) -> Upload:
    """Begin to write an object.

    Args:
        url: its address.
        nbytes: how long it will be, at most; 0 where that is not known. Beyond 312 GiB its parts
            must be longer than they are else.

    Raises:
        UnsupportedError: for a store that is read only.
        FetchError: where it cannot be written.
    """
    check_writes(url)
    upload: Upload = _store_of(url).open_upload(url, part_nbytes(nbytes))
    return upload


def remove_object(url: str) -> None:
    """Remove an object; one that is not there is none that is left.

    Raises:
        FetchError: where it cannot be removed.
    """
    with contextlib.suppress(FileNotFoundError):
        _store_of(url).remove_object(url)


def list_folder(url: str) -> list[str] | None:
    """The addresses of what lies in a folder; None where the store cannot tell."""
    if is_archive(url):
        from .. import open_outer_source
        from ..archive import member_names

        return member_names(url, open_outer_source)
    found: list[str] | None = _store_of(url).list_folder(url)
    return found
