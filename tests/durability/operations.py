"""What the durability tests let a child process do: one operation on one file, between two marks.

Run as `python operations.py OPERATION FILE`. The marks are system calls that do nothing and that a
trace shows: only what lies between them is the library's doing. An OSError is told as JSON.
"""

import json
import os
import signal
import sys

import numpy as np

import idxfile

BEGIN, END = "/mark/begin", "/mark/end"
ROUNDS = 150


def items(start, stop):
    """Items 8 KiB each, which differ, compress badly, and are written with their bytes turned."""
    numbers = np.arange(start * 4096, stop * 4096, dtype="int64")
    return (numbers * 2654435761 >> 16).astype("int16").reshape(-1, 64, 64)


OLD = items(0, 3)
MORE = items(3, 150)  # over 1 MiB: written in more pieces than one


def write(path):
    idxfile.write(path, MORE)


def start_writer(path):
    """A writer with some items in it, which is not closed."""
    writer = idxfile.create(path, dtype=MORE.dtype, item_shape=MORE.shape[1:])
    writer.append(MORE[:100])
    return writer


def create(path):
    with start_writer(path) as writer:
        writer.append(MORE[100:])


def append(path):
    idxfile.append(path, MORE)


def append_rounds(path):
    """Once a line comes in, append item after item, each with this process's number in it."""
    print("ready", flush=True)
    stamp = int(sys.stdin.readline())
    for round_number in range(ROUNDS):
        idxfile.append(path, np.array([[stamp, round_number]], "int32"))


def exit_with_open_writer(path):
    _keep.append(start_writer(path))
    sys.exit(3)


def fail_with_open_writer(path):
    _keep.append(start_writer(path))
    raise RuntimeError("not an error of the writer")


def kill_with_open_writer(path):
    _keep.append(start_writer(path))
    os.kill(os.getpid(), signal.SIGKILL)


def fork_with_open_writer(path):
    """The writer is finished although a forked child, which has it too, ends before."""
    with start_writer(path) as writer:
        child = os.fork()
        if child == 0:
            sys.exit()
        os.waitpid(child, 0)
        writer.append(MORE[100:])


_keep = []  # nothing here is garbage before the process ends


def main(operation, path):
    report = None
    os.access(BEGIN, os.F_OK)
    try:
        globals()[operation](path)
    except OSError as error:
        report = {"errno": error.errno, "filename": error.filename, "text": str(error)}
    os.access(END, os.F_OK)
    print(json.dumps(report))


if __name__ == "__main__":
    main(*sys.argv[1:])
