"""`idx check` of a gigabyte, as whole processes: against `cat`, and against inflating it alone.

    python -m benchmarks.check [--folder FOLDER]

It writes 1 GB raw and its .gz, and prints the two ratios and the peak memory of each check.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile

import idxfile

from .harness import Row, heading, interleave, render
from .memory import peak

NBYTES = 1_000_000_000
ITEM = (28, 28)
MEMORY_NBYTES = 64 << 20

_INFLATE = """
import sys
from isal import igzip_lib
decoder = igzip_lib.IgzipDecompressor(flag=igzip_lib.DECOMP_GZIP)
with open(sys.argv[1], "rb") as file:
    while not decoder.eof:
        decoder.decompress(file.read(1 << 18) if decoder.needs_input else b"", 1 << 18)
"""
"""Inflating by the same library, and nothing else: no header, no judgement."""


def make(folder: str) -> tuple[str, str]:
    """A gigabyte of digits, raw and compressed: the MNIST training images again and again."""
    images = idxfile.read("tests/data/mnist/train-images-idx3-ubyte.gz")
    count = NBYTES // images[0].nbytes
    paths = os.path.join(folder, "big.idx"), os.path.join(folder, "big.idx.gz")
    for path in paths:
        with idxfile.create(path, dtype="uint8", item_shape=ITEM, count=count) as writer:
            while len(writer) < count:
                writer.append(images[: count - len(writer)])
    return paths


def process(*command: str) -> None:
    """Run a command to its end."""
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def main() -> None:
    """Make the files, measure, and print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.check")
    parser.add_argument("--folder", help="where 1.3 GB are made for the while")
    options = parser.parse_args()
    idx = (sys.executable, "-m", "idxfile", "check")
    with tempfile.TemporaryDirectory(prefix="idxfile-bench-", dir=options.folder) as folder:
        raw, packed = make(folder)
        print(heading())
        for work, path, rival, other, target in (
            ("check 1 GB raw", raw, "cat FILE > /dev/null", ("cat", raw), 1.5),
            (
                "check 1 GB .gz",
                packed,
                "inflating it alone",
                (sys.executable, "-c", _INFLATE, packed),
                1.1,
            ),
        ):
            runs = (lambda path=path: process(*idx, path), lambda other=other: process(*other))
            ours, theirs = interleave(runs, seconds=15)
            print(render(Row("check", work, rival, ours, theirs, target)))
            used = [float(peak("idxfile.check", path))] * 2
            allowed = [float(MEMORY_NBYTES)] * 2
            print(render(Row("check", f"peak of {work}", "64 MiB", used, allowed, 1.0, "bytes")))


if __name__ == "__main__":
    main()
