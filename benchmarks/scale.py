"""What a hundred terabytes ask of the machine that plans, and what a second processor gives.

python -m benchmarks.scale             all, as they stand in docs/scale.md
python -m benchmarks.scale plan        100 TB in 2,000 shards: sparse files, and addresses
python -m benchmarks.scale threads     read, check and stats of one file, one thread against all
python -m benchmarks.scale processes   stats and check of .gz files, one process against two
"""

from __future__ import annotations

import os
import pickle
import resource
import sys
import tempfile
import tracemalloc
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, Future
from functools import partial
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np

import idxfile
from idxfile.slabs.planning import SLAB_NBYTES, Plan
from idxfile.source import threads
from idxfile.source.remote import ranges

SHARDS, WORKERS = 2_000, 200
ITEM = (224, 224, 3)
ITEMS = 50_000_000_000 // (224 * 224 * 3)
"""Of a shard, which has about 50 GB."""

Line = tuple[str, str]


class Instant(Executor):
    """Workers who have always done it already: what remains is the driver's own work."""

    def __init__(self, result: Any) -> None:
        self._result = result
        self.tasks = self.nbytes = self.longest = 0

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Pickle a call, as an engine would, and have its result."""
        task = len(pickle.dumps((fn, args, kwargs)))
        self.tasks += 1
        self.nbytes += task
        self.longest = max(self.longest, task)
        future: Future[Any] = Future()
        future.set_result(pickle.loads(self._result))
        return future


def peak_of(work: Callable[[], Any]) -> tuple[Any, float, int]:
    """What comes of it, the seconds, and the most memory that Python and NumPy held for it."""
    start = perf_counter()
    work()
    seconds = perf_counter() - start
    tracemalloc.start()
    result = work()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return result, seconds, peak


def planned(parts: Sequence[tuple[str, int]], step: int) -> Iterator[Line]:
    """What the planner needs for these shards."""
    plan, seconds, peak = peak_of(lambda: Plan(parts, step))
    yield "slabs of 64 MiB", f"{len(plan):,}"
    yield "the plan, beside the list of shards", f"{peak:,} bytes, {seconds * 1000:.1f} ms"
    start = perf_counter()
    for number in range(0, len(plan), 1000):
        plan[number]
    each = (perf_counter() - start) / (len(plan) / 1000)
    yield "one slab of it", f"{each * 1e6:.1f} µs"


def driven(plan: Plan) -> Iterator[Line]:
    """What the driver does for all of them, with results as `stats` has them."""
    partial_counts = pickle.dumps(np.zeros(256, np.int64))
    workers = Instant(partial_counts)
    start, total = perf_counter(), np.zeros(256, np.int64)
    for counts in idxfile.run(len, plan, executor=workers):
        total += counts
    seconds = perf_counter() - start
    yield "a task, pickled", f"{workers.longest:,} bytes at most"
    yield "all tasks", f"{workers.nbytes / 1e6:,.0f} MB through the driver, never at once"
    yield "the driver's time", f"{seconds:,.1f} s in all, {seconds / len(plan) * 1e6:.0f} µs a slab"
    few = plan[:20_000]
    _, _, peak = peak_of(
        lambda: sum(1 for _ in idxfile.run(len, few, executor=Instant(partial_counts)))
    )
    yield "the driver's memory while it runs", f"{peak / 1e3:,.0f} kB beside the plan"


def requests(plan: Plan) -> Iterator[Line]:
    """How often the store is asked, when every worker opens each shard that it gets slabs of."""
    slab = plan[0]
    nbytes = len(slab) * int(np.prod(ITEM))
    pieces = len(ranges.plan([(16, memoryview(bytearray(nbytes)))]))
    yield "requests for a slab", f"{pieces}, of {nbytes / pieces / (1 << 20):.1f} MiB each"
    reads = pieces * len(plan)
    headers = min(WORKERS, -(-len(plan) // SHARDS)) * SHARDS
    yield "requests for the items", f"{reads:,}"
    yield "requests for headers", f"{headers:,} at most: each of {WORKERS} workers, each shard"
    yield "requests in all", f"{reads + headers:,}, {(reads + headers) // WORKERS:,} for a worker"


def sparse(folder: str) -> Iterator[Line]:
    """The same set as files that take no room."""
    header = idxfile.Header.of("uint8", (ITEMS, *ITEM))
    for number in range(SHARDS):
        path = os.path.join(folder, f"train-{number:05d}-of-{SHARDS:05d}.idx")
        with open(path, "wb") as file:
            file.write(header.encode())
            file.truncate(header.file_nbytes)
    pattern = os.path.join(folder, "*.idx")

    def opened() -> Any:
        with idxfile.open(pattern) as array:
            return idxfile.plan(array), array.nbytes, len(pickle.dumps(array))

    (plan, nbytes, recipe), seconds, peak = peak_of(opened)
    yield (
        "opened and planned",
        f"{nbytes / 1e12:.0f} TB, {seconds * 1000:,.0f} ms, {peak / 1e6:.1f} MB",
    )
    yield "the whole array as a recipe", f"{recipe:,} bytes"
    start = perf_counter()
    slabs = [plan[number] for number in np.linspace(0, len(plan) - 1, 20).astype(int).tolist()]
    zeros = all(not slab.read().any() for slab in slabs)
    assert zeros
    each = (perf_counter() - start) / len(slabs)
    yield "a slab of it read, 20 all over the set", f"{each * 1000:.0f} ms each"
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    yield "memory of the process at most", f"{most / 1e6:,.0f} MB, two slabs among them"


def simulated() -> Iterator[Line]:
    """100 TB in 2,000 shards, planned as sparse files and as addresses."""
    with tempfile.TemporaryDirectory(prefix="idxfile-scale-") as folder:
        yield from sparse(folder)
    parts = [
        (f"s3://bucket/some/prefix/train-{number:05d}-of-{SHARDS:05d}.idx", ITEMS)
        for number in range(SHARDS)
    ]
    step = SLAB_NBYTES // int(np.prod(ITEM))
    yield from planned(parts, step)
    plan = Plan(parts, step)
    yield from driven(plan)
    yield from requests(plan)


def packed(folder: str, files: int = 8, items: int = 100_000) -> list[str]:
    """Some .gz files, half noise and half flat."""
    random = np.random.default_rng(3)
    paths = []
    for number in range(files):
        block = random.integers(0, 256, (items, 28, 28), dtype="uint8")
        block[:, ::2] = number
        paths.append(os.path.join(folder, f"train-{number:05d}-of-{files:05d}.idx.gz"))
        idxfile.write(paths[-1], block)
    return paths


def compared(rounds: int = 7) -> Iterator[Line]:
    """One process against two, in turn.

    The one has a single thread: what threads give by themselves is not asked here.
    """
    threads.WORKERS = 1
    with (
        tempfile.TemporaryDirectory(prefix="idxfile-scale-") as folder,
        idxfile.Processes(2) as two,
    ):
        paths = packed(folder)
        pattern = os.path.join(folder, "*.gz")
        works: dict[str, Callable[[Executor | None], Any]] = {
            "stats": lambda executor: idxfile.stats(pattern, executor=executor),
            "check": lambda executor: [
                report.ok for report in idxfile.run(idxfile.check, paths, executor=executor)
            ],
        }
        for name, work in works.items():
            assert work(two) == work(None)
            text = in_turn(partial(work, None), partial(work, two), rounds, paths)
            yield f"{name} of 8 .gz files, in one process and in two", text


def in_turn(
    one: Callable[[], Any], other: Callable[[], Any], rounds: int, paths: Sequence[str]
) -> str:
    """Two ways to do the same, in turn: the median of pairs, and the quickest run of each.

    Before each run the files are as if they had been replaced, so that nobody has kept anything of
    them. The quickest runs are those that nobody disturbed.
    """
    pairs = [(timed(one, paths), timed(other, paths)) for _ in range(rounds)]
    gain = median(before / after for before, after in pairs)
    before, after = (min(times) for times in zip(*pairs, strict=True))
    best = f"{before:.2f} s and {after:.2f} s: {before / after:.2f} times as fast"
    return f"{gain:.2f} times as fast (median of {rounds} pairs; at best {best})"


def timed(work: Callable[[], Any], paths: Sequence[str]) -> float:
    """The seconds that some work on files takes, of which nothing is kept from before."""
    for path in paths:
        os.utime(path)
    with tempfile.TemporaryDirectory(prefix="idxfile-scale-") as home:
        os.environ["IDXFILE_HOME"] = home  # where indexes are kept
        start = perf_counter()
        work()
        return perf_counter() - start


def threaded(rounds: int = 7) -> Iterator[Line]:
    """One file, by one thread and by as many as there are processors."""
    processors = threads.WORKERS
    with tempfile.TemporaryDirectory(prefix="idxfile-scale-") as folder:
        (gz,) = packed(folder, 1, 600_000)
        array = idxfile.read(gz)
        places = {
            "raw": os.path.join(folder, "x.idx"),
            "blocked .gz": os.path.join(folder, "x.idx.gz"),
            ".gz": gz,
        }
        idxfile.write(places["raw"], array)
        idxfile.write(places["blocked .gz"], array, blocked=True)
        for kind, path in places.items():
            for work in (idxfile.read, idxfile.check, idxfile.stats):

                def run(workers: int, work: Any = work, path: str = path) -> None:
                    threads.WORKERS = workers
                    work(path)

                text = in_turn(partial(run, 1), partial(run, processors), rounds, [path])
                yield f"{work.__name__} of a {kind} file, by one thread and by {processors}", text
    threads.WORKERS = processors


def main() -> None:
    """Print what was asked for as a table."""
    groups = {"plan": simulated, "threads": threaded, "processes": compared}
    for name in sys.argv[1:] or groups:
        print(f"\n| {name} | measured |\n|---|---|")
        for what, found in groups[name]():
            print(f"| {what} | {found} |", flush=True)


if __name__ == "__main__":
    main()
