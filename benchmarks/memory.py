"""The peak memory of loading a file, each time in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass

from .files import Files
from .harness import NotMeasuredError, Row

_ROUNDS = 3
_MIB = 1 << 20

# The high-water mark that the kernel keeps for this process alone: `ru_maxrss` would start from
# that of the process that started it.
_CHILD = """
import sys
from importlib import import_module
module, _, function = sys.argv[1].rpartition(".")
result = getattr(import_module(module), function)(sys.argv[2])
with open("/proc/self/status") as status:
    print(next(line.split()[1] for line in status if line.startswith("VmHWM")))
"""


def peak(function: str, path: str) -> int:
    """The most bytes that a process ever holds that calls `function(path)` and nothing else."""
    command = (sys.executable, "-c", _CHILD, function, path)
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return int(done.stdout) * 1024


def growth(function: str, path: str, tiny: str) -> list[float]:
    """What a file takes beyond a tiny file of the same kind, a few times."""
    return [float(peak(function, path) - peak(function, tiny)) for _ in range(_ROUNDS)]


@dataclass(frozen=True)
class MemoryCase:
    """Two rows: what `idxfile.read` takes against what it may take, and against another."""

    work: str
    kind: str
    dtype: str
    slack: int
    """The bytes allowed beyond the data, and beyond the compressed file where it is one."""
    rival: str
    function: str
    """The rival as `module.function`."""
    rival_kind: str
    group: str = "memory"

    def measure(self, files: Files) -> list[Row]:
        """Run the processes."""
        if not os.path.exists("/proc/self/status"):
            raise NotMeasuredError("the peak of a process is read from /proc")
        path, tiny = files(self.kind, self.dtype), files("tiny", self.kind)
        ours = growth("idxfile.read", path, tiny)
        rival_path, rival_tiny = files(self.rival_kind, self.dtype), files("tiny", self.rival_kind)
        theirs = growth(self.function, rival_path, rival_tiny)
        packed = os.path.getsize(path) if self.kind == "gz" else 0
        allowed = [float(files.values(self.dtype).nbytes + packed + self.slack)] * _ROUNDS
        terms = f"data {'+ compressed ' if packed else ''}+ {self.slack // _MIB} MiB"
        return [
            Row(self.group, self.work, terms, ours, allowed, 1.0, unit="bytes"),
            Row(self.group, self.work, self.rival, ours, theirs, unit="bytes"),
        ]


MEMORY_CASES: tuple[MemoryCase, ...] = (
    MemoryCase("peak of loading uint8", "idx", "uint8", 8 * _MIB, "np.load", "numpy.load", "npy"),
    MemoryCase("peak of loading int32", "idx", "int32", 8 * _MIB, "np.load", "numpy.load", "npy"),
    MemoryCase(
        "peak of loading the .gz",
        "gz",
        "uint8",
        16 * _MIB,
        "gzip and np.frombuffer",
        "benchmarks.rivals.load_gzip",
        "gz",
    ),
)
