"""A folder that one process at a time writes into, and that leaves nothing where nothing came."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from importlib import import_module
from typing import Any

from ..errors import MissingExtraError
from ..staging import absent

__all__: list[str] = []

_TRIES = 1000
"""How often a folder may vanish while it is made: others come and go."""


@contextlib.contextmanager
def locked(folder: str) -> Iterator[None]:
    """Hold the folder of a data set: no other process writes into it.

    Where nothing came into it, or all was given up, what was made for that goes: the file of the
    lock, and folders that are empty then.
    """
    filelock = extra_package("filelock")
    lock = os.path.join(folder, ".lock")
    held, tries = filelock.FileLock(lock), 0
    made: list[str] = []
    while not held.is_locked:
        made = [*absent(folder)] or made
        try:
            _hold(held, lock)
        except (FileNotFoundError, FileExistsError):  # removed meanwhile, by whoever held it
            tries += 1
            if tries > _TRIES:
                raise
    given_up = True
    try:
        yield
        given_up = False
    finally:
        with contextlib.suppress(OSError):
            if given_up or os.listdir(folder) == [os.path.basename(lock)]:
                os.unlink(lock)
                for path in made:
                    os.rmdir(path)
        held.release()


def _hold(held: Any, lock: str) -> None:
    """Take a lock, unless its file is removed by whoever held it before.

    Raises:
        FileNotFoundError: if it is.
    """
    os.makedirs(os.path.dirname(lock), exist_ok=True)
    with open(lock, "ab") as file:
        mine = os.fstat(file.fileno())
    held.acquire()
    with contextlib.ExitStack() as undo:
        undo.callback(held.release)
        if os.path.samestat(mine, os.stat(lock)):
            undo.pop_all()


def extra_package(name: str) -> Any:
    """A package that only downloading needs.

    Raises:
        MissingExtraError: where it is not installed.
    """
    try:
        return import_module(name)
    except ImportError:
        raise MissingExtraError(
            f"downloading needs the package {name}", hint="pip install 'idxfile[fetch]'"
        ) from None
