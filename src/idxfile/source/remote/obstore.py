"""Objects of S3, Google Cloud Storage and Azure, by obstore.

It takes credentials, region and endpoint from the environment (`AWS_…`, `GOOGLE_…`, `AZURE_…`).
Every request names the version that is meant, so that the store itself refuses another one.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator
from datetime import timedelta
from importlib import import_module
from queue import Empty, Full, Queue
from threading import Thread
from typing import Any

from ...errors import FetchError
from ...header import MAX_HEADER_NBYTES
from ..places import address_of, public
from . import faults, settings
from .faults import (
    DeniedError,
    MissingObjectError,
    changed,
    is_of_bucket,
    missing_error,
    pause,
    public_text,
)
from .object import UPLOAD_PIECE_NBYTES, RemoteIdentity
from .stores import spelled

__all__ = [
    "ObstoreObject",
    "is_folder",
    "list_folder",
    "open_object",
    "open_upload",
    "remove_object",
]

WRITES = True

_REFUSALS = (
    "<Code>ExpiredToken</Code>",
    "<Code>InvalidToken</Code>",
    "<Code>TokenRefreshRequired</Code>",
    "status code: 401 ",
    "status code: 403 ",
)
"""What S3 says, with the status of a bad request, of credentials that were good once; and what is
said of a folder that may not be listed."""

_NO_CREDENTIALS = ("token request", "/latest/api/token", "/computeMetadata/")
"""Where they are asked for at last: of the machine, which is none in that cloud."""


def open_object(url: str) -> tuple[ObstoreObject, bytes]:
    """Ask for the first kilobyte of an object, which tells all about it.

    Raises:
        FetchError: where it cannot be had.
    """
    store, path = store_of(url)
    obstore, name = import_module("obstore"), public(url)
    try:
        with translated(name):
            answer = obstore.get(store, path, options={"range": (0, MAX_HEADER_NBYTES)})
            head, meta = bytes(answer.bytes()), answer.meta
    except FetchError as error:
        if isinstance(error, (MissingObjectError, DeniedError)) or _is_tired(error.__cause__):
            raise
        with translated(name):  # of an empty object there is no range
            meta, head = obstore.head(store, path), b""
        if meta["size"]:
            raise
    return ObstoreObject(store, path, name, _identity(meta)), head


def _is_tired(cause: BaseException | None) -> bool:
    """Whether obstore has asked as often as it may."""
    return re.search(r"after [1-9]\d* retries", str(cause)) is not None


def store_of(url: str) -> tuple[Any, str]:
    """The bucket that an address lies in, and the path of the object in it."""
    scheme, bucket, slashed, _ = address_of(spelled(url))
    path = slashed.lstrip("/")
    _refuse_after_fork(public(url))
    if re.search(r"(?:^|/)\.{0,2}/|/\.{1,2}$|[\0-\x1f\x7f]", path):
        raise FetchError(
            "obstore takes no empty part of a name, none that is . or .., and no control character",
            file=public(url),
            hint="look at the address; IDXFILE_REMOTE=fsspec takes such names as they are",
        )
    limits = faults.LIMITS
    options: dict[str, Any] = {
        "timeout": timedelta(days=7),  # of a whole answer; what counts is that something comes
        "connect_timeout": timedelta(seconds=limits.connect_seconds),
        "read_timeout": timedelta(seconds=limits.stall_seconds),
    }
    if settings.is_plain(scheme):
        options["allow_http"] = True
    retries = {
        "max_retries": limits.attempts - 1,
        "retry_timeout": timedelta(seconds=limits.attempts * limits.longest_pause_seconds),
        "backoff": {
            "init_backoff": timedelta(seconds=limits.first_pause_seconds),
            "max_backoff": timedelta(seconds=limits.longest_pause_seconds),
            "base": 2,
        },
    }
    with translated(public(url)):
        from_url = import_module("obstore.store").from_url
        store = from_url(
            f"{scheme}://{bucket}",
            config=settings.for_obstore(scheme),
            client_options=options,
            retry_config=retries,
        )
    return store, path


_begun_in: int | None = None
"""The process in which obstore began its threads, which do not come along with a fork."""


def _refuse_after_fork(name: str) -> None:
    """Refuse what would wait for ever: obstore in a process forked from one that has used it."""
    global _begun_in
    _begun_in = _begun_in or os.getpid()
    if _begun_in != os.getpid():
        raise FetchError(
            "obstore was used before this process was forked, and would never answer here",
            file=name,
            hint='begin workers by "spawn" or "forkserver", or set IDXFILE_REMOTE=fsspec',
        )


def list_folder(url: str) -> list[str] | None:
    """The addresses of the objects in a folder."""
    top = address_of(url)._replace(path="/")
    return sorted(f"{top}{each['path']}" for each in _listed(url)["objects"])


def is_folder(url: str) -> bool:
    """Whether there are objects in it."""
    return any(_listed(url).values())


def _listed(url: str) -> Any:
    """What lies in a folder: its objects, and the folders in it."""
    store, path = store_of(url)
    with translated(public(url)):
        return import_module("obstore").list_with_delimiter(store, path.rstrip("/") or None)


class ObstoreObject:
    """An object of a bucket."""

    def __init__(self, store: Any, path: str, name: str, identity: RemoteIdentity) -> None:
        assert identity.size is not None  # stores know how long their objects are
        self.name = name
        self.size = identity.size
        self.identity = identity
        self._store = store
        self._path = path

    def fill(self, start: int, view: memoryview) -> None:
        """Fill `view` with the bytes from `start` on, or raise."""
        _refuse_after_fork(self.name)
        attempt = 0
        while True:
            attempt += 1
            try:
                with translated(self.name):
                    data = self.ask((start, start + len(view))).bytes()
                    break
            except (DeniedError, MissingObjectError):
                raise
            except FetchError:  # a body that broke off
                if not pause(attempt):
                    raise
        if len(data) != len(view):
            raise FetchError(
                f"asked for {len(view):,} bytes, the store answers {len(data):,}",
                file=self.name,
                offset=start,
                hint="its ranges cannot be trusted: download the file",
            )
        view[:] = memoryview(data)

    def ask(self, wanted: Any) -> Any:
        """Begin to get a range of this very version."""
        options = {"range": wanted}
        version = self.identity.version
        if version and version.startswith('"'):
            options["if_match"] = version
        answer = import_module("obstore").get(self._store, self._path, options=options)
        now = _identity(answer.meta)
        if now != self.identity:
            raise changed(self.name, now.version, version)
        return answer

    def verify(self) -> None:
        """Every answer was held against its version."""

    def close(self) -> None:
        """Connections belong to the store."""


def remove_object(url: str) -> None:
    """Remove an object."""
    store, path = store_of(url)
    with translated(public(url)):
        import_module("obstore").delete(store, path)


def open_upload(url: str, part_nbytes: int) -> ObstoreUpload:
    """Begin to write an object, in parts that are no object before the last one is there."""
    store, path = store_of(url)
    return ObstoreUpload(store, path, public(url), part_nbytes)


class ObstoreUpload:
    """An object that is being written by a thread of its own, which is fed."""

    def __init__(self, store: Any, path: str, name: str, part_nbytes: int) -> None:
        self.name = name
        self._store = store
        self._path = path
        self._part_nbytes = part_nbytes
        self._pieces: Queue[bytes | None] = Queue(2)
        self._error: BaseException | None = None
        self._cancelled = False
        self._thread = Thread(target=self._run, daemon=True)
        self._thread.start()

    def write(self, data: memoryview) -> None:
        """Take the next bytes."""
        for start in range(0, len(data), UPLOAD_PIECE_NBYTES):
            self._put(bytes(data[start : start + UPLOAD_PIECE_NBYTES]))

    def finish(self) -> None:
        """Make it an object."""
        self._put(None)
        self._thread.join()
        self._raise()

    def cancel(self) -> None:
        """Leave nothing of it."""
        self._cancelled = True
        self._thread.join()

    def _run(self) -> None:
        try:
            with translated(self.name):
                import_module("obstore").put(
                    self._store,
                    self._path,
                    self._given(),
                    use_multipart=True,
                    chunk_size=self._part_nbytes,
                    max_concurrency=4,
                )
        except BaseException as error:  # it is raised by whoever feeds
            self._error = error

    def _given(self) -> Iterator[bytes]:
        while True:
            try:
                piece = self._pieces.get(timeout=0.05)
            except Empty:
                if self._cancelled:
                    raise RuntimeError("given up") from None
                continue
            if piece is None:
                return
            yield piece

    def _put(self, piece: bytes | None) -> None:
        while True:
            self._raise()
            try:
                self._pieces.put(piece, timeout=0.05)
                return
            except Full:
                continue

    def _raise(self) -> None:
        if self._error is not None:
            raise self._error


def _identity(meta: Any) -> RemoteIdentity:
    return RemoteIdentity(meta["size"], meta["e_tag"] or str(meta["last_modified"]))


@contextlib.contextmanager
def translated(name: str) -> Iterator[None]:
    """Errors of obstore as ours; nothing of a request's query stands in them."""
    errors = import_module("obstore.exceptions")
    try:
        yield
    except (FileNotFoundError, errors.NotFoundError) as error:
        if isinstance(error, FetchError):
            raise
        raise missing_error(name, error) from error
    except errors.PreconditionError as error:
        raise changed(name, "another version", "one") from error
    except errors.BaseError as error:
        if is_of_bucket(error):  # of a listing this is told so
            raise missing_error(name, error) from error
        refused = isinstance(error, (errors.PermissionDeniedError, errors.UnauthenticatedError))
        if refused or any(word in str(error) for word in _REFUSALS):
            raise DeniedError(
                "the store refuses it", file=name, hint=settings.credentials_hint(name)
            ) from error
        if any(word in str(error) for word in _NO_CREDENTIALS):
            raise DeniedError(
                "there are no credentials", file=name, hint=settings.credentials_hint(name)
            ) from error
        unreached = "error sending request" in str(error)
        what = f"the store {'cannot be reached' if unreached else 'does not answer as it should'}"
        passing = re.search(r"status code: (?:429|5\d\d) ", str(error))
        hint = "try again later" if passing else settings.reach_hint(name)
        raise FetchError(f"{what}: {public_text(str(error))}", file=name, hint=hint) from error
