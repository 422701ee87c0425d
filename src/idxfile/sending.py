"""Where bytes go that are for a store: an object that is there when it is complete."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator
from typing import Any, Protocol, TypeVar

from .source.places import public

__all__: list[str] = []

_PIECE_NBYTES = 1 << 20


class Committable(Protocol):
    """What is complete when it is committed."""

    def commit(self) -> None:
        """Make it complete."""

    def abort(self) -> None:
        """Leave nothing of it."""


S = TypeVar("S", bound=Committable)


def open_upload_sink(url: str, *, patched: bool, nbytes: int = 0) -> UploadSink | SpooledUploadSink:
    """Open an object to be written.

    Args:
        url: where to.
        patched: whether `patch` will be called.
        nbytes: how long it will be, at most; 0 where that is not known.

    Raises:
        UnsupportedError: for a store that is read only.
        OSError: where it cannot be written.
    """
    return SpooledUploadSink(url) if patched else UploadSink(url, nbytes)


class UploadSink:
    """An object in a store, sent in parts as it is written."""

    patchable = False

    def __init__(self, url: str, nbytes: int = 0) -> None:
        from .source.remote import open_upload

        self.name = public(url)
        self._upload = open_upload(url, nbytes)
        self._ended = False
        self._owner = os.getpid()

    def write(self, data: Any) -> None:
        """Write all of `data` behind what was written before."""
        self._upload.write(memoryview(data).cast("B"))

    def patch(self, offset: int, data: bytes) -> None:
        """Write over bytes that were written before."""
        raise ValueError(f"{self.name} is being sent: what was written cannot be changed")

    def commit(self) -> None:
        """Make it an object."""
        self._upload.finish()
        self._ended = True

    def abort(self) -> None:
        """Leave nothing of it. After `commit` this does nothing."""
        if not self._ended and self._owner == os.getpid():
            self._ended = True
            self._upload.cancel()


class SpooledUploadSink:
    """An object in a store, kept in a temporary file until it is complete, and then sent."""

    patchable = True

    def __init__(self, url: str) -> None:
        from .source.remote import check_writes

        check_writes(url)
        self.name = public(url)
        self._url = url
        self._file = tempfile.TemporaryFile(prefix="idxfile-")  # noqa: SIM115

    def write(self, data: Any) -> None:
        """Write all of `data` behind what was written before."""
        self._file.write(memoryview(data).cast("B"))

    def patch(self, offset: int, data: bytes) -> None:
        """Write over bytes that were written before."""
        end = self._file.tell()
        self._file.seek(offset)
        self._file.write(data)
        self._file.seek(end)

    def commit(self) -> None:
        """Make it an object."""
        send(self._file, self._url)
        self._file.close()

    def abort(self) -> None:
        """Leave nothing of it. After `commit` this does nothing."""
        self._file.close()


@contextlib.contextmanager
def committed(sink: S) -> Iterator[S]:
    """A sink of any kind that is committed at the end; aborted if an exception leaves the block."""
    try:
        yield sink
        sink.commit()
    except BaseException:
        sink.abort()
        raise


def send_file(path: str, url: str) -> None:
    """Send a file of this machine."""
    with open(path, "rb") as file:
        send(file, url)


def send(file: Any, url: str) -> None:
    """Send all of a file object, as an object that is there when it is complete."""
    nbytes = file.seek(0, os.SEEK_END)
    file.seek(0)
    with committed(UploadSink(url, nbytes)) as sink:
        while piece := file.read(_PIECE_NBYTES):
            sink.write(piece)
