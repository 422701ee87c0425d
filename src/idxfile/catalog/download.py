"""Known data sets from the network, from the cache, or from where somebody put them: `fetch`.

Mirrors are tried in order. Nothing gets its final name before its checksum is right; one process
downloads, others wait for it. pooch carries a file over; filelock keeps processes apart.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Mapping
from importlib.metadata import version
from typing import Any, TypeVar

import numpy as np

from ..array import read
from ..codecs import codec_of_name
from ..dataset import Dataset
from ..errors import FetchError, IdxWarning
from ..lazyarray import Mode
from ..pairs import open_dataset
from ..signatures import describe
from ..sink import put_in_place
from .decoration import decorated
from .locking import extra_package, locked
from .storage import (
    Storage,
    archive_fault,
    discard,
    file_fault,
    part_name,
    unpack,
)
from .table import Archive, DatasetFacts, FileFacts, FileRole, Part, dataset_named

__all__ = ["fetch"]

Progress = Callable[[int, int], None]
Key = TypeVar("Key")

CONNECT_SECONDS = 10
STALL_SECONDS = 30
"""How long nothing may come before the next mirror is tried."""


def fetch(
    name: str,
    split: str = "train",
    *,
    folder: str | os.PathLike[str] | None = None,
    offline: bool = False,
    progress: Progress | None = None,
    mode: Mode = "r",
) -> Dataset:
    """Open a known data set, and download what is missing of it.

    The files are verified every time: by the published checksum, or by that of their decompressed
    content. They are kept as they are published, in a folder named after the data set, under
    `IDXFILE_HOME` or else `idxfile` in the user's cache folder; files that were put there by hand,
    and those that Keras keeps, are used as well. With `IDXFILE_MIRROR=URL` a mirror of your own is
    asked first, as `URL/NAME/FILE`: a web server over a copy of the cache folder is one.

    Args:
        name: `mnist`, `fashion-mnist`, `emnist-letters` … (`datasets()` lists them).
        split: train, test, or another that the data set has.
        folder: where files are looked for and downloaded to, instead of the cache: files in it, in
            a folder of the data set's name in it, or as torchvision lays them out (`MNIST/raw`).
        offline: open no socket.
        progress: called now and then with the bytes downloaded and the bytes to download.
        mode: "r", or "c" for images that tensors may be made of.

    Returns:
        A `Dataset` with its classes, upright; a matrix of labels has its columns named.

    Raises:
        ValueError: for a name or a split that is not known.
        FetchError: when a file is not to be had; it says what every mirror answered, or with
            `offline` what is missing and where it was looked for.
        MissingExtraError: when something must be downloaded without pooch or filelock.
    """
    facts = dataset_named(name)
    files = files_needed(facts, split)
    paths = obtain(facts, files, folder=folder, offline=offline, progress=progress)
    return _opened(facts, split, paths, mode)


def files_needed(facts: DatasetFacts, split: str) -> dict[FileRole, list[FileFacts]]:
    """The files that a split, or a named part of one, consists of.

    Raises:
        ValueError: for a split that is not known.
        FetchError: for a data set that cannot be verified, or has no mirrors.
    """
    if not facts.fetchable:
        raise FetchError(
            f"{facts.title} cannot be fetched: no direct download with a checksum is known",
            hint=f"open files of your own with open_dataset; see `idx datasets {facts.name}`",
        )
    part = _part(facts, split)
    if part is None and split not in facts.splits:
        known = ", ".join((*facts.splits, *(part.name for part in facts.parts)))
        raise ValueError(f"{facts.title} has no split {split!r}; there is {known}")
    return facts.files_of(part.split if part else split)


def _part(facts: DatasetFacts, split: str) -> Part | None:
    return next((part for part in facts.parts if part.name == split), None)


def _opened(
    facts: DatasetFacts, split: str, paths: dict[FileRole, list[str]], mode: Mode
) -> Dataset:
    """The files of a split as one data set, with all that is known of it."""
    pieces = []
    for number, pair in enumerate(zip(paths["images"], paths["labels"], strict=True)):
        ds = open_dataset(pair, split=split, name=facts.name, mode=mode)
        if paths["info"]:
            table = np.column_stack([ds.table, read(paths["info"][number])])
            ds = Dataset(ds.images, table)
        pieces.append(ds)
    ds = pieces[0] if len(pieces) == 1 else pieces[0].merge(*pieces[1:])
    part = _part(facts, split)
    if part is not None:
        ds = ds.select(items=slice(*part.items))
    return decorated(ds, facts, split)


# Files: at hand, or brought


def obtain(
    facts: DatasetFacts,
    files: Mapping[Key, list[FileFacts]],
    *,
    folder: str | os.PathLike[str] | None = None,
    offline: bool = False,
    progress: Progress | None = None,
) -> dict[Key, list[str]]:
    """The paths of files whose content is right; what is missing is downloaded.

    Args:
        facts: the data set.
        files: its files, under keys of the caller's choice.
        folder: see `fetch`, as the others.
        offline: open no socket.
        progress: called with the bytes downloaded and the bytes to download.

    Returns:
        The key → the paths of its files, in the same order.

    Raises:
        FetchError, MissingExtraError: see `fetch`.
    """
    storage = Storage.of(facts, folder)
    wanted = [file for some in files.values() for file in some]
    paths: dict[str, str] = {}
    faults: list[str] = []
    missing: list[FileFacts] = []
    for file in wanted:
        path, found = storage.find(file)
        faults += found
        if path is None:
            missing.append(file)
        else:
            paths[file.name] = path
    if missing:
        if offline and not (facts.archive and any(storage.find_archives(facts.archive))):
            raise _not_at_hand(storage, missing, faults)
        meter = Meter(progress, sum(file.published.size or 0 for file in missing))
        with locked(storage.folder):
            for file in missing:
                # Another process may have brought it while this one waited.
                path, found = storage.find(file)
                paths[file.name] = path or _bring(storage, file, found, offline, meter)
    return {key: [paths[file.name] for file in some] for key, some in files.items()}


def _not_at_hand(storage: Storage, missing: list[FileFacts], faults: list[str]) -> FetchError:
    names = ", ".join(file.name for file in missing)
    return FetchError(
        f"{storage.facts.title}: {names} not found in {', '.join(storage.places)}"
        + "".join(f"; {fault}" for fault in faults),
        found=faults,
        expected=[file.name for file in missing],
        hint="fetch it once without offline, or put the files into the first of these folders",
    )


def _bring(
    storage: Storage, file: FileFacts, faults: list[str], offline: bool, meter: Meter
) -> str:
    """Get a file out of an archive at hand, or from the first mirror that has it."""
    facts, archive = storage.facts, storage.facts.archive
    target = os.path.join(storage.folder, file.name)
    failures = []
    for path in storage.find_archives(archive) if archive else ():
        fault = unpack(path, facts, file, target)
        if fault is None:
            return target
        failures.append(f"{path}: {fault}")
    if offline:
        raise _not_at_hand(storage, [file], [*faults, *failures])
    for fault in faults:
        if fault.startswith(f"{target}: "):
            warnings.warn(f"{fault}; it is fetched once again", IdxWarning, stacklevel=4)

    def judge(part: str) -> str | None:
        return file_fault(part, facts, file)

    urls = [*_own_mirror(facts.name, file.name), *(base + file.name for base in facts.mirrors)]
    # The most that can come: deflate and xz add less than a hundredth to what they cannot shrink.
    most = file.published.size or int((file.raw.size or 0) * 1.01) + 1024
    if receive(urls, target, most, judge, meter, failures):
        return target
    if archive is not None:
        whole = _bring_archive(storage, archive, meter, failures)
        fault = unpack(whole, facts, file, target) if whole else None
        if whole and fault is None:
            return target
        failures += [f"{whole}: {fault}"] if fault else []
    raise FetchError(
        f"{file.name} of {facts.title} could not be had: {'; '.join(failures)}",
        found=failures,
        hint=f"bring it by hand into {storage.folder}, or set IDXFILE_MIRROR",
    )


def _bring_archive(
    storage: Storage, archive: Archive, meter: Meter, failures: list[str]
) -> str | None:
    """The path of a family's archive, downloaded if need be; None where no mirror has it."""

    def judge(path: str) -> str | None:
        return archive_fault(path, archive)

    path = os.path.join(storage.archive_folder(archive), archive.name)
    with locked(os.path.dirname(path)):
        if os.path.isfile(path) and judge(path) is None:
            return path
        urls = [*_own_mirror(archive.family, archive.name), *archive.mirrors]
        there = receive(urls, path, archive.published.size, judge, meter, failures)
    return path if there else None


def _own_mirror(folder: str, name: str) -> list[str]:
    base = os.environ.get("IDXFILE_MIRROR")
    return [f"{base.rstrip('/')}/{folder}/{name}"] if base else []


# Transfer


def receive(
    urls: list[str],
    target: str,
    most: int | None,
    judge: Callable[[str], str | None],
    meter: Meter,
    failures: list[str],
) -> bool:
    """Download a file from the first mirror whose bytes are right.

    Args:
        urls: the mirrors, in order.
        target: the final name, in a folder that is locked.
        most: more bytes than these are refused while they come.
        judge: says what is wrong with a complete download, or None.
        meter: told of the bytes that arrive.
        failures: what went wrong with each mirror is added to it.

    Returns:
        Whether the file is there.
    """
    part = part_name(target)
    try:
        for url in urls:
            fault = _transfer(url, part, os.path.basename(target), most, meter) or judge(part)
            if fault is None:
                put_in_place(part, target)
                meter.keep()
                return True
            failures.append(f"{url}: {fault}")
        return False
    finally:
        discard(part)


def _transfer(url: str, part: str, name: str, most: int | None, meter: Meter) -> str | None:
    """Download a file into `part`; what went wrong, or None."""
    pooch, requests = extra_package("pooch"), extra_package("requests")
    download = pooch.HTTPDownloader(
        chunk_size=1 << 16,
        timeout=(CONNECT_SECONDS, STALL_SECONDS),
        # Python's own agent is refused by NIST; the files are compressed as they are.
        headers={"User-Agent": f"idxfile/{version('idxfile')}", "Accept-Encoding": "identity"},
    )
    with open(part, "wb") as file:
        incoming = Incoming(file, name, most, meter)
        try:
            download(url, incoming, None)
        except RefusedError as refusal:
            return str(refusal)
        except requests.HTTPError as error:
            return f"{error.response.status_code} {error.response.reason}"
        except requests.RequestException as error:
            if isinstance(error, requests.Timeout) or "timed out" in str(error):
                return f"nothing came for {STALL_SECONDS} seconds, after {incoming.count:,} bytes"
            if isinstance(error, requests.exceptions.ChunkedEncodingError):
                return f"cut after {incoming.count:,} bytes"
            # What urllib3 says behind the name and address of its object.
            reason = getattr(error.args[0], "reason", error) if error.args else error
            return f"cannot be reached: {str(reason).rpartition(': ')[2]}"
    return None


class RefusedError(Exception):
    """What comes cannot be the file."""


class Incoming:
    """A file that refuses, while it is written, what it cannot become."""

    def __init__(self, file: Any, name: str, most: int | None, meter: Meter) -> None:
        self.count = 0
        self._file = file
        self._codec = codec_of_name(name)
        self._most = most
        self._meter = meter

    def write(self, chunk: bytes) -> None:
        """Take the next bytes.

        Raises:
            RefusedError: for a first chunk that is something else, or for too many bytes.
        """
        if not self.count and self._codec and len(chunk) >= 16 and not self._codec.begins(chunk):
            raise RefusedError(f"found: {describe(chunk[:1024]) or f'no {self._codec.name}'}")
        self.count += len(chunk)
        if self._most is not None and self.count > self._most:
            raise RefusedError(f"more than {self._most:,} bytes came")
        self._file.write(chunk)
        self._meter.at(self.count)

    def flush(self) -> None:
        """The bytes are made durable at the end, all at once."""


class Meter:
    """How far all downloads together have come."""

    def __init__(self, progress: Progress | None, total: int) -> None:
        self._progress = progress
        self._total = total
        self._before = self._now = 0

    def at(self, count: int) -> None:
        """So many bytes of the present file are there."""
        self._now = count
        if self._progress is not None:
            done = self._before + count
            self._progress(done, max(done, self._total))

    def keep(self) -> None:
        """The present file is complete."""
        self._before += self._now
        self._now = 0
