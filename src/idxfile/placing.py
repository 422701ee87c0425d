"""Where the shards of a set go: a folder of this machine, or a store.

In a folder they stay hidden until all are whole, and are renamed then. Nothing old stands beside
anything new under a final name: what is replaced is moved aside first, so that a set that was cut
short by a crash is never taken for a whole one.

A store renames nothing. There a shard has its final name as soon as it is complete, so that a set
must be new, and what was written of it is removed when the writing is given up. In both, the
manifest comes last.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import warnings
from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol

from .errors import IdxWarning, UnsupportedError
from .sending import send_file
from .shards import Manifest, ShardName, named_shards, sets_of, shard_name
from .sink import errors_named, sync_folder
from .source.places import beside, file_of, is_url, names_in, public
from .source.waiting import done_together
from .staging import hidden_folder, remove_folder, temporary_folder, write_whole

__all__: list[str] = []

_REMOVED_AT_ONCE = 16
_NOT_REPLACED = "a set in a store is not replaced"
_INTERRUPTED = ", of a writer that was interrupted (then --force removes them) or is at work still"


def refuse_other_sets(folder: str, names: ShardName) -> None:
    """Make sure that a new set will be the only one of its name in its folder.

    Args:
        folder: a path or an address. A set in a store is not replaced at once, so that there no
            file of the very same set may be, either.
        names: of the new set.

    Raises:
        FileExistsError: for a file of such a set.
        FetchError: where a store does not tell.
    """
    there = names_there(folder)
    within = os.path.join(folder, "")
    has_manifest = names.manifest_name in there
    for other in sets_of(there, any_kind=True):
        if (other.stem, other.kind) != (names.stem, names.kind):
            continue
        count = len({number for number, _ in other.members})
        is_whole = count >= other.total
        shards = f"{count:,} shards" if is_whole else f"{count:,} of {other.total:,} shards"
        if other.total != names.total:
            why = "of the same name, and two sets could not be told apart"
        elif not is_url(folder):
            continue
        elif has_manifest:
            why = f"of the same name, and {_NOT_REPLACED}"
        else:
            why = f"without a manifest{'' if is_whole else _INTERRUPTED}"
        raise _taken(within + other.pattern, f"are {shards} {why}")
    if is_url(folder) and has_manifest:
        place = beside(within, names.manifest_name)
        raise _taken(place, f"is a manifest of the same name, and {_NOT_REPLACED}")


def _taken(place: str, what: str) -> FileExistsError:
    text = f"There {what}: remove them, or choose another name"
    return FileExistsError(errno.EEXIST, text, public(place))


def clear_interrupted(folder: str, names: ShardName, sources: Iterable[str | None]) -> None:
    """Remove what an interrupted writer has left of a set in a store, so that it is written anew.

    A set that could be read is kept: one that has a manifest, and one that has all its shards.

    Args:
        folder: the address of the folder. On this machine an interrupted set was never seen.
        names: of the set.
        sources: the places that the new one is made of.

    Raises:
        UnsupportedError: where one of these would be removed.
        FetchError: where the store does not tell.
    """
    there = names_there(folder) if is_url(folder) else []
    mine = (names.stem, names.total, names.kind)
    named = ((name, shard_name(name)) for name in there)
    numbers = {name: s.number for name, s in named if s and (s.stem, s.total, s.kind) == mine}
    if names.manifest_name in there or len({*numbers.values()}) >= names.total:
        return
    for source in filter(None, sources):
        if is_url(source) and os.path.basename(file_of(source)) in numbers:
            raise UnsupportedError(
                "it is a shard of the set that would be removed, and is read",
                file=public(source),
                hint="choose another name",
            )
    remove([beside(folder, name) for name in numbers])


def names_there(folder: str) -> list[str]:
    """The names of what lies in a folder, here or in a store; none where there is no folder yet.

    Raises:
        UnsupportedError: for a store that never tells.
        FetchError: where a store does not tell now.
    """
    if not is_url(folder):
        return os.listdir(folder)
    try:
        found = names_in(folder)
    except FileNotFoundError:  # some stores have no folder before something lies in it
        return []
    if found is None:
        raise UnsupportedError(
            "this place does not tell what lies in it, and a set that is there is not replaced",
            file=public(folder),
            hint="write one file, or a set here, and copy it",
        )
    return [os.path.basename(file_of(url)) for url in found]


@contextlib.contextmanager
def new_in_store(folder: str, names: ShardName) -> Iterator[None]:
    """A block that writes a set to a store, by whatever means; an exception leaves nothing of it.

    Args:
        folder: the address of the folder.
        names: of the set.

    Raises:
        FileExistsError: for a set that is there.
        UnsupportedError: for a store that is read only.
        FetchError: where the store does not tell.
    """
    from .source.remote import check_writes

    check_writes(folder)
    refuse_other_sets(folder, names)
    try:
        yield
    except BaseException:
        mine = [*map(names.numbered, range(names.total)), names.manifest_name]
        with contextlib.suppress(OSError):  # else each is tried
            mine = sorted({*mine} & {*names_there(folder)})
        remove([beside(folder, name) for name in mine])
        raise


@contextlib.contextmanager
def new_together(files: Iterable[str], shards: int | None) -> Iterator[None]:
    """A block that writes a set for each of these files; in a store, all of them or none.

    Args:
        files: which the shards stand for.
        shards: how many for each; None for none, and nothing is done.

    Raises:
        FileExistsError: for a set that is in a store.
    """
    with contextlib.ExitStack() as stack:
        if shards is not None:
            for file in filter(is_url, files):
                names = named_shards(os.path.basename(file_of(file)), shards)
                stack.enter_context(new_in_store(beside(file, ""), names))
        yield


@contextlib.contextmanager
def hidden_place(file: str) -> Iterator[str]:
    """The name of a file in a new folder beside another one, here or in a store.

    Nobody sees it there, and nothing of the folder is left.
    """
    if not is_url(file):
        with hidden_folder(os.path.dirname(os.path.realpath(file))) as folder:
            yield os.path.join(folder, "x.idx")
        return
    hidden = beside(file, f".{secrets.token_hex(4)}.tmp/x.idx")
    try:
        yield hidden
    finally:
        folder = beside(hidden, "")
        try:
            remove([beside(hidden, name) for name in names_there(folder)])
        except OSError as error:  # another one may be on its way, and is what matters
            warn_of_rest([f"{public(folder)}: {error.args[0]}"])


def remove(urls: Iterable[str]) -> None:
    """Remove what was given up, side by side; a warning tells what may be left.

    It is no error: the one for which something is given up is what matters.
    """
    from .source.remote import remove_object

    def left(url: str) -> tuple[str, ...]:
        try:
            remove_object(url)
        except OSError as error:
            return (f"{public(url)}: {error.args[0]}",)
        return ()

    urls = list(urls)
    try:
        results = done_together(left, urls, _REMOVED_AT_ONCE)
    except RuntimeError:  # a program that ends begins no threads
        results = list(map(left, urls))
    warn_of_rest([text for texts in results for text in texts])


def warn_of_rest(found: Sequence[str]) -> None:
    """Warn of what was given up and could not be removed, if there is any."""
    if found:
        more = f", and {len(found) - 1:,} more" if found[1:] else ""
        text = f"{found[0]}{more}: what was given up may be left there"
        warnings.warn(text, IdxWarning, stacklevel=3)


class Place(Protocol):
    """Where the shards of one set are written."""

    def path_of(self, number: int) -> str:
        """Where a shard is written; a path or an address."""

    def settle(self, names: ShardName, manifest: Manifest) -> None:
        """All shards are whole: give them their names, and write the manifest."""

    def abandon(self) -> None:
        """Leave nothing."""


class InFolder:
    """Shards in a hidden folder beside their place."""

    def __init__(self, path: str) -> None:
        folder, base = os.path.split(path)
        self._name = path
        self._folder = os.path.realpath(folder or os.curdir)
        self._hidden = os.path.join(self._folder, f".{base[:50]}.{secrets.token_hex(4)}.tmp")
        try:
            with errors_named(path):
                os.mkdir(self._hidden)
        except BaseException:  # an interrupt comes when the folder is there
            remove_folder(self._hidden)
            raise

    def path_of(self, number: int) -> str:
        """Where a shard is written."""
        return os.path.join(self._hidden, str(number))

    def settle(self, names: ShardName, manifest: Manifest) -> None:
        """Give the shards their names, and write the manifest."""
        with errors_named(self._name):
            refuse_other_sets(self._folder, names)
            with self._old_ones_aside(names):
                for number in range(names.total):
                    os.rename(self.path_of(number), self._place(names.numbered(number)))
                sync_folder(self._folder)
                write_whole(self._place(names.manifest_name), manifest.encode())
            remove_folder(self._hidden)

    def abandon(self) -> None:
        """Leave nothing but what could not be put back."""
        kept = os.path.join(self._hidden, "old")
        if not (os.path.isdir(kept) and os.listdir(kept)):
            remove_folder(self._hidden)

    def _place(self, name: str) -> str:
        return os.path.join(self._folder, name)

    @contextlib.contextmanager
    def _old_ones_aside(self, names: ShardName) -> Iterator[None]:
        """Move what is to be replaced into the hidden folder; back again if anything fails."""
        there = [(name, shard_name(name)) for name in os.listdir(self._folder)]
        mine = (names.stem, names.total, names.kind)
        old = [self._place(n) for n, s in there if s and (s.stem, s.total, s.kind) == mine]
        old.append(self._place(names.manifest_name))
        aside = os.path.join(self._hidden, "old")
        os.mkdir(aside)
        moved: list[str] = []
        new: list[str] = []
        try:
            for path in filter(os.path.lexists, old):
                os.rename(path, os.path.join(aside, os.path.basename(path)))
                moved.append(path)
            new = [names.numbered(number) for number in range(names.total)]
            new.append(names.manifest_name)
            yield
        except BaseException:
            for name in new:  # none, as long as what stands there may be what is to be replaced
                with contextlib.suppress(OSError):
                    os.unlink(self._place(name))
            for path in moved:
                os.replace(os.path.join(aside, os.path.basename(path)), path)
            raise


class InStore:
    """Shards in a store, under their final names as soon as each is complete."""

    def __init__(self, url: str, names: ShardName) -> None:
        from .source.remote import check_writes

        check_writes(url)
        self._url = url
        self._names = names
        self._begun: set[str] = set()
        refuse_other_sets(beside(url, ""), names)

    def path_of(self, number: int) -> str:
        """The address of a shard."""
        url = beside(self._url, self._names.numbered(number))
        self._begun.add(url)
        return url

    def settle(self, names: ShardName, manifest: Manifest) -> None:
        """Write the manifest."""
        url = beside(self._url, names.manifest_name)
        self._begun.add(url)
        write_whole(url, manifest.encode())
        self._begun.clear()

    def abandon(self) -> None:
        """Remove what was written."""
        remove(sorted(self._begun))
        self._begun.clear()


class ForStore:
    """Shards of which nobody knows how many there will be: kept here, and sent at the end."""

    def __init__(self, url: str) -> None:
        from .source.remote import check_writes

        check_writes(url)
        self._url = url
        self._kept = contextlib.ExitStack()
        self._folder = self._kept.enter_context(temporary_folder())

    def path_of(self, number: int) -> str:
        """Where a shard is written."""
        return os.path.join(self._folder, str(number))

    def settle(self, names: ShardName, manifest: Manifest) -> None:
        """Send the shards, and then the manifest."""
        with new_in_store(beside(self._url, ""), names):
            for number in range(names.total):
                send_file(self.path_of(number), beside(self._url, names.numbered(number)))
            write_whole(beside(self._url, names.manifest_name), manifest.encode())
        self._kept.close()

    def abandon(self) -> None:
        """Leave nothing here; nothing is there."""
        self._kept.close()
