"""Work for engines: what is done with a set on a cluster, and what comes of it alone."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Any

import numpy as np

import idxfile
from idxfile import Slab


def files(folder: Path, count: int = 3000, dtype: str = "int16") -> tuple[str, str, Any, Any]:
    """A pair of files, and what is in them."""
    random = np.random.default_rng(11)
    images = random.integers(-300, 300, (count, 12, 10)).astype(dtype)
    labels = random.integers(0, 10, count).astype("uint8")
    folder.mkdir(parents=True, exist_ok=True)
    paths = [str(folder / name) for name in ("train-images-idx3-short", "train-labels-idx1-ubyte")]
    idxfile.write(paths[0], images)
    idxfile.write(paths[1], labels)
    return paths[0], paths[1], images, labels


def total(slab: Slab) -> int:
    """The sum of the values of a slab."""
    return int(slab.read().sum(dtype=np.int64))


def doubled(slab: Slab) -> Any:
    """The values of a slab, twice as large."""
    return slab.read() * 2


def end_once(flag: str) -> None:
    """End the process that calls this, as the system does when memory is short. Once."""
    try:
        os.close(os.open(flag, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return
    os.kill(os.getpid(), signal.SIGKILL)


def total_and_end(flag: str, slab: Slab) -> int:
    """As `total`; the worker that comes to the middle first is lost."""
    if slab.start <= len(slab.array) // 2 < slab.stop:
        end_once(flag)
    return total(slab)


def end_always(slab: Slab) -> int:
    """No worker survives this."""
    os.kill(os.getpid(), signal.SIGKILL)
    return total(slab)


def fail_in_the_middle(slab: Slab) -> int:
    """An error of ours in one slab."""
    if slab.first >= 1000:
        raise idxfile.FormatError("a wrong slab", file="here", hint="nothing")
    return total(slab)


def noted(folder: str, number: int) -> int:
    """Leave a note that this was run, and take some time for it."""
    Path(folder, str(number)).touch()
    time.sleep(0.1)
    return number


def nothing_left(folder: Path, *expected: str) -> None:
    """There is nothing in a folder but this: no temporary file either."""
    found = sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))
    assert found == sorted(expected), found


def contents(folder: Path) -> dict[str, bytes]:
    """Name and content of all files of a folder, hidden ones too."""
    return {name: (folder / name).read_bytes() for name in sorted(os.listdir(folder))}


LOOPBACK = {"127.0.0.1", "::1", "::ffff:127.0.0.1"}
"""What nobody reaches from another machine."""


def listening() -> list[str]:
    """Where this process and all that it started listen."""
    import psutil

    here = psutil.Process()
    connections = [
        each
        for process in (here, *here.children(recursive=True))
        for each in process.net_connections()
    ]
    return [each.laddr.ip for each in connections if each.status == psutil.CONN_LISTEN]
