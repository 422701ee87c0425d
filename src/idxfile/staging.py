"""Files and folders for writers that want a name: a temporary place, renamed at the end."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import stat
import tempfile
from collections.abc import Iterator

from .sending import committed, send_file
from .sink import errors_named, open_sink, put_in_place, sync_folder
from .source.places import file_of, is_url

__all__: list[str] = []


def write_whole(path: str, data: bytes) -> None:
    """Write a small file that is no IDX file, as atomically as any other."""
    with committed(open_sink(path, codec=None)) as sink:
        sink.write(data)


@contextlib.contextmanager
def atomic_file(path: str) -> Iterator[str]:
    """A temporary path beside `path`, for writers that want a name; renamed at the end.

    What stands there is made durable first, and gets the mode bits of a file that it replaces;
    nothing is left after an exception. The suffix of the temporary name is that of `path`, which
    may be an address: what is for a store is sent at the end.
    """
    if is_url(path):
        with _atomic_object(path) as temporary:
            yield temporary
        return
    final = os.path.realpath(path)
    temporary = _beside(final, "new")
    try:
        yield temporary
        with contextlib.suppress(FileNotFoundError):
            os.chmod(temporary, stat.S_IMODE(os.stat(final).st_mode))
        put_in_place(temporary, final)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise


@contextlib.contextmanager
def _atomic_object(url: str) -> Iterator[str]:
    from .source.remote import check_writes

    check_writes(url)
    with temporary_folder() as folder:
        temporary = os.path.join(folder, os.path.basename(file_of(url)))
        yield temporary
        send_file(temporary, url)


@contextlib.contextmanager
def atomic_folder(path: str) -> Iterator[str]:
    """An empty temporary folder beside `path`, to be filled; renamed at the end.

    What it holds is made durable before. A folder that stands there is moved aside, put back if the
    rename fails, and removed when it has succeeded.
    """
    final = os.path.realpath(path)
    parent = os.path.dirname(final)
    temporary, aside = _beside(final, "new"), _beside(final, "old")
    with errors_named(path):
        os.makedirs(temporary)
    try:
        yield temporary
        _sync_file_system(temporary)
        exists = os.path.lexists(final)
        if exists:
            os.rename(final, aside)
        try:
            os.rename(temporary, final)
        except BaseException:
            if exists:
                os.rename(aside, final)
            raise
        sync_folder(parent)
        if exists:
            shutil.rmtree(aside, ignore_errors=True)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise


@contextlib.contextmanager
def folder_made(folder: str) -> Iterator[None]:
    """A folder that is there; if it had to be made, an exception takes it away again, empty."""
    made = [] if is_url(folder) else list(absent(os.path.abspath(folder)))
    try:
        if made:
            os.makedirs(folder, exist_ok=True)
        yield
    except BaseException:
        with contextlib.suppress(OSError):  # it was not made, or somebody has put something there
            for path in made:
                os.rmdir(path)
        raise


def absent(folder: str) -> Iterator[str]:
    """The folders that are not there, from this one up."""
    while not os.path.isdir(folder):
        yield folder
        folder = os.path.dirname(folder)


@contextlib.contextmanager
def hidden_folder(folder: str) -> Iterator[str]:
    """A new folder in another one, for what nobody shall see; nothing of it is left."""
    path = os.path.join(folder, f".{secrets.token_hex(4)}.tmp")
    try:
        with errors_named(folder):
            os.mkdir(path)
        yield path
    finally:  # an interrupt may come when it has just been made
        remove_folder(path)


@contextlib.contextmanager
def temporary_folder() -> Iterator[str]:
    """A new folder where the system keeps what is temporary; nothing of it is left.

    A process that was forked meanwhile leaves it to its parent.
    """
    owner = os.getpid()
    path = tempfile.mkdtemp(prefix="idxfile-")
    try:
        yield path
    finally:
        if owner == os.getpid():
            remove_folder(path)


def remove_folder(path: str) -> None:
    """Remove a folder of ours, in which somebody who was told to stop may still be at work.

    It loses its name first, so that nobody makes another file in it meanwhile.
    """
    nameless = f"{path}.{secrets.token_hex(4)}"
    with contextlib.suppress(OSError):
        os.rename(path, nameless)
        path = nameless
    shutil.rmtree(path, ignore_errors=True)


def _beside(path: str, word: str) -> str:
    """A hidden name that nobody has, in the same folder and with the same suffix."""
    folder, base = os.path.split(path)
    # A name has 255 bytes at most, a character up to four.
    return os.path.join(folder, f".{secrets.token_hex(4)}.{word}.{base[-50:]}")


def _sync_file_system(path: str) -> None:
    """Make durable what was written to the file system of a folder.

    One call for all files: fsync of each of 20,000 pictures takes 14 s, and this 0.2 s. It waits
    for what other programs wrote there, too.
    """
    import ctypes

    syncfs = getattr(ctypes.CDLL(None, use_errno=True), "syncfs", None)
    if syncfs is None:  # it is Linux's own
        os.sync()
        return
    fd = os.open(path, os.O_RDONLY)
    try:
        if syncfs(fd):
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number), path)
    finally:
        os.close(fd)
