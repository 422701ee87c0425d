"""Remote objects and compressed files by range, against what one would take otherwise.

    python benchmarks/remote.py

A bucket of moto on this machine: it reads the whole object for every range, 30 ms of 47 MB, so that
what is seen there is how many requests are made. A store that sends what is asked for and nothing
else is the other one, near by and far away: 50 ms for each request, 20 MB/s for each connection.
Medians of five runs, whole path from the public function.
"""

from __future__ import annotations

import gzip
import multiprocessing
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

TESTS = Path(__file__).parent.parent / "tests"
sys.path[:0] = [str(TESTS / "remote"), str(TESTS)]

import boto3  # noqa: E402
import fsspec  # noqa: E402
import obstore  # noqa: E402
from bucket_server import BucketServer  # noqa: E402
from obstore.store import from_url  # noqa: E402
from range_server import Handler, RangeServer  # noqa: E402

import idxfile  # noqa: E402
from idxfile.source import threads  # noqa: E402

SHAPE = (60_000, 28, 28)
ITEM, HEADER = 784, 16
KEYS = {
    "AWS_ACCESS_KEY_ID": "key",
    "AWS_SECRET_ACCESS_KEY": "word",
    "AWS_REGION": "us-east-1",
    "AWS_DEFAULT_REGION": "us-east-1",
}


def median(work: Callable[[], Any], runs: int = 5) -> float:
    seconds = []
    for _ in range(runs):
        start = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - start)
    return statistics.median(seconds)


def tell(what: str, seconds: float, note: str = "") -> None:
    print(f"{what:<58} {seconds * 1000:>9.1f} ms  {note}")


def remote() -> None:
    pixels = np.random.default_rng(0).integers(0, 256, SHAPE, np.uint8)
    items = np.sort(np.random.default_rng(1).choice(SHAPE[0], 256, replace=False))
    url = "s3://shelf/images.idx"
    with BucketServer() as server:
        os.environ.update({**KEYS, "AWS_ENDPOINT_URL": server.endpoint})
        client = boto3.client("s3")
        client.create_bucket(Bucket="shelf")
        client.put_object(Bucket="shelf", Key="images.idx", Body=idxfile.encode(pixels))

        def counted(work: Callable[[], Any]) -> tuple[float, str]:
            seconds = median(work)
            server.requests.clear()
            work()
            return seconds, f"{len(server.requests)} requests"

        def header() -> None:
            idxfile.open(url).close()

        tell("open: the header", *counted(header))
        with idxfile.open(url) as x:
            tell("256 scattered items, idxfile", *counted(lambda: x.take(items)))
            assert np.array_equal(x.take(items), pixels[items])
        fs, path = fsspec.core.url_to_fs(url)
        starts = [HEADER + ITEM * int(n) for n in items]
        ends = [start + ITEM for start in starts]
        paths = [path] * len(starts)
        tell(
            "256 scattered items, s3fs cat_ranges",
            *counted(lambda: fs.cat_ranges(paths, starts, ends)),
        )
        tell("the whole object, idxfile.read", *counted(lambda: idxfile.read(url)))
        bare = from_url("s3://shelf", client_options={"allow_http": True})
        tell(
            "the whole object, obstore alone",
            *counted(lambda: obstore.get(bare, "images.idx").bytes()),
        )
        tell(
            "a kilobyte of it, obstore alone",
            *counted(lambda: obstore.get(bare, "images.idx", options={"range": (0, 1024)}).bytes()),
        )


def store(pipe: Any, seconds: float, rate: float) -> None:
    """Serve an object as S3 does: `seconds` later, at `rate` bytes per second, to each who asks."""

    class Paced(Handler):
        def do_GET(self, body: bool = True) -> None:  # noqa: N802  as http.server calls it
            data = self.server.files["images.idx"]
            asked = self.asked(len(data))
            start, stop = asked or (0, len(data))
            time.sleep(seconds)
            self.send_response(206 if asked else 200)
            if asked:
                self.send_header("Content-Range", f"bytes {start}-{stop - 1}/{len(data)}")
            self.send_header("ETag", '"v1"')
            self.send_header("Last-Modified", "Sun, 09 Sep 2001 01:46:40 GMT")
            self.send_header("Content-Length", str(stop - start))
            self.end_headers()
            begun, view = time.perf_counter(), memoryview(data)
            for at in range(start, stop if body else start, 1 << 18):
                self.wfile.write(view[at : min(at + (1 << 18), stop)])
                time.sleep(max(0, begun + (at - start) / rate - time.perf_counter()))

        def do_HEAD(self) -> None:  # noqa: N802
            self.do_GET(body=False)

    pixels = np.random.default_rng(0).integers(0, 256, SHAPE, np.uint8)
    with RangeServer({"images.idx": idxfile.encode(pixels)}) as server:
        server.RequestHandlerClass = Paced
        pipe.send(server.server_port)
        pipe.recv()


def honest(seconds: float, rate: float) -> None:
    """A whole object of a store that costs nothing but the way to it."""
    mine, other = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(
        target=store, args=(other, seconds, rate), daemon=True
    )
    process.start()
    endpoint = f"http://127.0.0.1:{mine.recv()}"
    os.environ.update({**KEYS, "AWS_ENDPOINT_URL": endpoint})
    fsspec.get_filesystem_class("s3").clear_instance_cache()
    url = "s3://shelf/images.idx"
    print(f"a store {seconds * 1000:g} ms away, {rate / 1e6:g} MB/s for each connection")
    alone = from_url("s3://shelf", client_options={"allow_http": True})
    fs, path = fsspec.core.url_to_fs(url)

    def one_by_one() -> None:
        size = HEADER + ITEM * SHAPE[0]
        for start in range(0, size, 1 << 23):
            stop = min(start + (1 << 23), size)
            obstore.get(alone, path.partition("/")[2], options={"range": (start, stop)}).bytes()

    tell("obstore alone", median(lambda: obstore.get(alone, path.partition("/")[2]).bytes()))
    tell("obstore alone, 8 MiB after 8 MiB", median(one_by_one))
    tell("s3fs alone", median(lambda: fs.cat_file(path)))
    for package in ("obstore", "fsspec"):
        os.environ["IDXFILE_REMOTE"] = package
        for work in (idxfile.read, idxfile.stats, idxfile.check):
            tell(f"idxfile.{work.__name__}, by {package}", median(lambda work=work: work(url)))
    os.environ.pop("IDXFILE_REMOTE")
    mine.send("enough")
    process.join()


def compressed() -> None:
    mnist = Path(__file__).parent.parent / "tests" / "data" / "mnist" / "train-images-idx3-ubyte.gz"
    images = idxfile.read(mnist)
    repeats = int(os.environ.get("REPEATS", "23"))  # 1.08 GB of content; 92 make a .gz of 1 GB
    items = np.random.default_rng(2).integers(0, len(images) * repeats, 50)
    with tempfile.TemporaryDirectory() as folder:
        os.environ["IDXFILE_HOME"] = os.path.join(folder, "home")
        place = {kind: os.path.join(folder, f"{kind}.idx.gz") for kind in ("blocked", "foreign")}
        for kind, path in place.items():
            with idxfile.create(
                path,
                dtype="uint8",
                item_shape=images.shape[1:],
                count=len(images) * repeats,
                blocked=kind == "blocked",
            ) as writer:
                for _ in range(repeats):
                    writer.append(images)
            size = os.path.getsize(path)
            print(f"{kind}: {size:,} bytes of {images.nbytes * repeats:,}")

            def first(path: str = path) -> None:
                with idxfile.open(path) as x:
                    x[len(x) // 2]

            tell(f"{kind}: the first item, with what it takes once", median(first, 1))
            tell(f"{kind}: open, and the first item", median(first))
            with idxfile.open(path) as x:
                assert np.array_equal(x[-1], images[-1])
                seconds = [median(lambda n=n: x[int(n)], 1) for n in items]
                tell(
                    f"{kind}: one random item",
                    statistics.median(seconds),
                    f"at most {max(seconds) * 1000:.1f}",
                )
        out = np.empty((len(images) * repeats, *images.shape[1:]), np.uint8)
        for workers in (1, os.cpu_count() or 1):
            threads.WORKERS = workers
            tell(
                f"blocked: read, {workers} at work",
                median(lambda: idxfile.read(place["blocked"], out=out), 3),
            )
            tell(
                f"blocked: check, {workers} at work",
                median(lambda: idxfile.check(place["blocked"]), 3),
            )

        def plain() -> None:
            with gzip.open(place["foreign"]) as file:
                file.seek(HEADER + ITEM * (len(out) // 2))
                file.read(ITEM)

        tell("foreign: an item in the middle, gzip.open and seek", median(plain, 1))


if __name__ == "__main__":
    remote()
    honest(0, 1e12)
    honest(0.05, 2e7)
    compressed()
