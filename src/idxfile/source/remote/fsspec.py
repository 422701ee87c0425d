"""Objects of everything that fsspec knows: `hf://`, `sftp://`, `memory://`, and many more.

A file system of fsspec takes no version with a request, so the version is asked for again after
each batch of reads: what was read before it is of the version that was opened.
"""

from __future__ import annotations

import contextlib
import errno
import io
import logging
from functools import cache
from importlib import import_module
from typing import Any

from ...errors import FetchError, MissingExtraError, UnsupportedError
from ...header import MAX_HEADER_NBYTES
from ..places import public
from . import faults, settings
from .faults import (
    DeniedError,
    FolderError,
    SilentStoreError,
    changed,
    missing_error,
    pause,
)
from .object import UPLOAD_PIECE_NBYTES, RemoteIdentity
from .stores import known_store, scheme_of, spelled

__all__ = [
    "FsspecObject",
    "list_folder",
    "open_object",
    "open_upload",
    "remove_object",
]

WRITES = True

_VERSIONS = ("ETag", "etag", "e_tag", "checksum", "md5Hash", "version_id", "sha", "blob_id")
_UNREACHED = {
    "ClientConnectorError",  # aiohttp
    "EndpointConnectionError",  # botocore
    "ServiceRequestError",  # azure
}
_TIMES = ("LastModified", "last_modified", "last_commit", "mtime", "modified", "updated", "created")


def open_object(url: str) -> tuple[FsspecObject, bytes] | WholeStream:
    """Ask what an object is, and for its first kilobyte.

    Returns:
        The object and its first bytes; or all of it as a stream, where its length is not known
        or ranges are not understood.

    Raises:
        FetchError: where it cannot be had.
    """
    fs, path = file_system(url)
    name = public(url)
    facts = _facts(name, fs, path)
    if facts.get("type") == "directory":
        raise FolderError(name)
    identity = _identity(facts)
    if identity.size is None:
        return WholeStream(asked(name, lambda: fs.open(path, "rb")), name, identity)
    wanted = min(MAX_HEADER_NBYTES, identity.size)
    head = asked(name, lambda: _range(fs, path, 0, wanted)) if wanted else b""
    if len(head) == identity.size:  # a small one; or all came where a little was asked for
        if len(head) > wanted:
            return WholeStream(io.BytesIO(head), name, identity)
    elif len(head) != wanted:
        raise _lies(name, 0, wanted, len(head))
    return FsspecObject(fs, path, name, identity), bytes(head)


def file_system(url: str) -> tuple[Any, str]:
    """The file system of an address, and the path in it.

    Raises:
        UnsupportedError: for a scheme that fsspec does not know.
        MissingExtraError: where it, or what it needs for that scheme, is not installed.
    """
    name, store, url = public(url), known_store(url), spelled(url)
    scheme = scheme_of(url)
    try:
        fsspec = import_module("fsspec")
    except ImportError:
        raise MissingExtraError(
            f"{scheme}:// needs the package fsspec", hint="pip install 'idxfile[remote]'"
        ) from None
    try:
        if store is not None:
            _hush(store.package)
        fs, path = fsspec.core.url_to_fs(url, **{scheme: settings.for_fsspec(scheme)})
    except ValueError as error:
        if "rotocol not known" not in str(error):
            raise _translated(name, error) from error
        raise UnsupportedError(
            f"{scheme}:// is not among the places that can be opened",
            file=name,
            hint="download the file, or pass an open binary file object",
        ) from None
    except ImportError as error:
        package = store.package if store else getattr(error, "name", None) or scheme
        raise MissingExtraError(
            f"{scheme}:// needs the package {package}", hint=f"pip install {package}"
        ) from None
    except FetchError:
        raise
    except Exception as error:  # whatever a file system says of what it is told
        raise _translated(name, error) from error
    return fs, path


@cache
def _hush(package: str) -> None:
    """What a package logs goes to whoever listens, and not past nobody to the terminal."""
    for name in (package, "azure") if package == "adlfs" else (package,):
        logging.getLogger(name).addHandler(logging.NullHandler())


def list_folder(url: str) -> list[str] | None:
    """The addresses of the files in a folder; None where the place cannot tell."""
    fs, path = file_system(url)
    with contextlib.suppress(Exception):  # what it remembers may be of before
        fs.invalidate_cache(path)
    try:
        found = asked(public(url), lambda: fs.ls(path, detail=True))
    except NotImplementedError:
        return None
    folder = url.rstrip("/")
    files = (each["name"] for each in found if each["type"] == "file")
    # Of a file some list the file itself.
    return sorted(f"{folder}/{name.rpartition('/')[2]}" for name in files if name != path)


class FsspecObject:
    """A file of an fsspec file system."""

    def __init__(self, fs: Any, path: str, name: str, identity: RemoteIdentity) -> None:
        assert identity.size is not None  # whoever makes one has looked
        self.name = name
        self.size = identity.size
        self.identity = identity
        self._fs = fs
        self._path = path

    def fill(self, start: int, view: memoryview) -> None:
        """Fill `view` with the bytes from `start` on, or raise."""
        stop = start + len(view)
        data = asked(self.name, lambda: _range(self._fs, self._path, start, stop))
        if len(data) != len(view):
            self.verify()
            raise _lies(self.name, start, len(view), len(data))
        view[:] = data

    def verify(self) -> None:
        """Make sure that what was read is of the version that was opened."""
        now = _identity(_facts(self.name, self._fs, self._path))
        if now != self.identity:
            raise changed(self.name, now.version, self.identity.version)

    def close(self) -> None:
        """Connections belong to the file system."""


class WholeStream:
    """All of an object in order, of a place that gives no ranges."""

    def __init__(self, file: Any, name: str, identity: RemoteIdentity) -> None:
        self.name = name
        self.identity = identity
        self._file = file

    def readinto(self, buffer: Any) -> int:
        """Fill `buffer` with the next bytes; fewer only at the end."""
        count = asked(self.name, lambda: self._file.readinto(buffer), attempts=1)
        return count or 0

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def remove_object(url: str) -> None:
    """Remove a file."""
    fs, path = file_system(url)
    asked(public(url), lambda: fs.rm_file(path))


def open_upload(url: str, part_nbytes: int) -> FsspecUpload:
    """Begin to write a file that is there when it is complete."""
    fs, path = file_system(url)
    name = public(url)
    options = {"autocommit": False, "block_size": part_nbytes}
    return FsspecUpload(asked(name, lambda: fs.open(path, "wb", **options)), name)


class FsspecUpload:
    """A file that is being written, and not there yet."""

    def __init__(self, file: Any, name: str) -> None:
        self.name = name
        self._file = file

    def write(self, data: memoryview) -> None:
        """Take the next bytes."""
        for start in range(0, len(data), UPLOAD_PIECE_NBYTES):
            piece = bytes(data[start : start + UPLOAD_PIECE_NBYTES])
            asked(self.name, lambda piece=piece: self._file.write(piece), attempts=1)

    def finish(self) -> None:
        """Give it its name."""
        asked(self.name, self._file.close, attempts=1)
        asked(self.name, self._file.commit, attempts=1)

    def cancel(self) -> None:
        """Leave nothing of it."""
        with contextlib.suppress(Exception):
            self._file.discard()
        self._file.closed = True  # else closing it, once it is forgotten, would write the rest


def _facts(name: str, fs: Any, path: str) -> Any:
    """What a file is now, whatever its file system remembers of before."""
    with contextlib.suppress(Exception):
        fs.invalidate_cache(fs._parent(path))
    return asked(name, lambda: fs.info(path))


def _range(fs: Any, path: str, start: int, stop: int) -> bytes:
    """These bytes of a file, and no more, which those that only open files would read ahead."""
    base = import_module("fsspec").AbstractFileSystem
    opens = type(fs).cat_file is base.cat_file and not fs.async_impl
    options = {"cache_type": "none"} if opens else {}
    data: bytes = fs.cat_file(path, start=start, end=stop, **options)
    return data


def _identity(facts: Any) -> RemoteIdentity:
    version = next((facts[key] for key in (*_VERSIONS, *_TIMES) if facts.get(key)), None)
    return RemoteIdentity(facts.get("size"), None if version is None else str(version))


def _lies(name: str, start: int, wanted: int, found: int) -> FetchError:
    return FetchError(
        f"asked for {wanted:,} bytes at byte {start:,}, {found:,} came",
        file=name,
        offset=start,
        found=found,
        expected=wanted,
        hint="its ranges cannot be trusted: download the file",
    )


def asked(name: str, work: Any, attempts: int | None = None) -> Any:
    """Do something with a file system, again and again as long as the fault may pass."""
    attempt = 0
    while True:
        attempt += 1
        try:
            return work()
        except (FetchError, UnsupportedError, MissingExtraError, NotImplementedError):
            raise
        except Exception as error:
            passing = isinstance(error, (ConnectionError, TimeoutError)) or _is_network(error)
            if passing and attempts != attempt and pause(attempt):
                continue
            raise _translated(name, error) from error


def _is_network(error: Exception) -> bool:
    """Whether an error is of a connection, as the libraries below fsspec call theirs."""
    names = _kinds(error)
    if "ClientConnectorError" in names:  # nobody is there
        return False
    return bool(names & {"ClientConnectionError", "ClientPayloadError", "HTTPClientError"})


def _kinds(error: Exception) -> set[str]:
    """What an error is, by the names of its classes: the packages of them may not be there."""
    return {kind.__name__ for kind in type(error).__mro__}


def _is_refusal(error: BaseException | None) -> bool:
    """Whether an error, or what it came from, says that whoever asks may not."""
    while error is not None:
        response = getattr(error, "response", None)
        status = {getattr(error, "status_code", None), getattr(response, "status_code", None)}
        status |= {getattr(error, "code", None), getattr(error, "status", None)}
        kind = type(error).__name__
        if isinstance(error, PermissionError) or "Credentials" in kind or kind == "RefreshError":
            return True
        if status & {401, 403, "401", "403"} or str(error).startswith("Forbidden: "):
            return True
        error = error.__cause__
    return False


def _translated(name: str, error: Exception) -> Exception:
    what = faults.public_text(str(error)) or type(error).__name__
    if _is_refusal(error):
        return DeniedError(
            f"the store refuses it ({what})", file=name, hint=settings.credentials_hint(name)
        )
    if isinstance(error, FileNotFoundError):
        return missing_error(name, error)
    if isinstance(error, TimeoutError):
        tried = f"tried {faults.LIMITS.attempts} times"
        return SilentStoreError(f"nothing came in time, {tried}", file=name, hint="try later")
    if isinstance(error, OSError) and error.errno == errno.EBUSY:  # as s3fs puts 503
        text = f"the store is busy ({error.strerror or what})"
        return FetchError(text, file=name, hint="try again later")
    if _kinds(error) & _UNREACHED or isinstance(error, ConnectionError):
        hint = settings.reach_hint(name)
        return FetchError(f"the store cannot be reached ({what})", file=name, hint=hint)
    kind = type(error).__name__
    return FetchError(f"it cannot be had ({kind}: {what})", file=name, hint="look at the address")
