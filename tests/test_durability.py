"""What is left of a file when writing is killed, fails, or meets another process.

The kill tests run `durability/operations.py` under strace. A rehearsal shows which system calls an
operation makes that change the disk; then it runs once more for each of them, and strace kills the
process there, or lets that call fail (and perhaps all after it). Nothing is left to chance.
"""

import contextlib
import errno
import functools
import gc
import itertools
import json
import os
import re
import resource
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

import idxfile
from durability import operations
from durability.operations import BEGIN, END, MORE, OLD, ROUNDS

CHANGES_OF_THE_DISK = "/^(p?write|f(data)?sync|rename|f?truncate)"
CHILD = [sys.executable, "-B", operations.__file__]
ENVIRONMENT = os.environ | {"OPENBLAS_NUM_THREADS": "1"}  # BLAS threads only slow the start


@dataclass(frozen=True, eq=False)
class Case:
    """An operation, what the file holds before and after it, and the calls that lead there."""

    operation: str
    name: str
    before: np.ndarray | None
    after: np.ndarray
    calls: list[str]

    @property
    def in_place(self):
        return self.calls == IN_PLACE

    def lay(self, folder):
        """Put the file as it is before into a folder; the path."""
        path = Path(folder, self.name)
        if self.before is not None:
            idxfile.write(path, self.before)
        return path

    def run(self, path):
        """The operation, in this process."""
        getattr(operations, self.operation)(path)


WRITTEN = "pwrite TEMPORARY"
COUNTED = "set count in TEMPORARY"
RENAMED = ["fsync TEMPORARY", "rename TEMPORARY FILE", "fsync FOLDER"]
IN_PLACE = ["pwrite FILE", "fsync FILE", "set count in FILE", "fsync FILE"]

GROWN = np.concatenate([OLD, MORE])
CASES = {
    "write": Case("write", "a.idx", OLD, MORE, [WRITTEN, *RENAMED]),
    "write-new": Case("write", "a.idx", None, MORE, [WRITTEN, *RENAMED]),
    "write-gz": Case("write", "a.idx.gz", OLD, MORE, [WRITTEN, *RENAMED]),
    "create": Case("create", "a.idx", OLD, MORE, [WRITTEN, COUNTED, *RENAMED]),
    "create-new": Case("create", "a.idx", None, MORE, [WRITTEN, COUNTED, *RENAMED]),
    "append": Case("append", "a.idx", OLD, GROWN, IN_PLACE),
    "append-gz": Case("append", "a.idx.gz", OLD, GROWN, [WRITTEN, *RENAMED]),
}
OVER_OLD = {name: case for name, case in CASES.items() if case.before is not None}
each_case = pytest.mark.parametrize("case", CASES.values(), ids=CASES)
each_case_over_an_old_file = pytest.mark.parametrize("case", OVER_OLD.values(), ids=OVER_OLD)


def contents(folder):
    """All that is in a folder: bytes by name."""
    return {path.name: path.read_bytes() for path in folder.iterdir()}


# Traces


@dataclass(frozen=True)
class Call:
    """A system call out of a trace."""

    name: str
    arguments: str

    @classmethod
    def of_line(cls, line):
        found = re.match(r"(?:\d+ +)?(\w+)\((.*)\) += \S", line)
        return found and cls(*found.groups())

    @property
    def sets_count(self):
        """Whether it writes the four bytes of dimension 0."""
        return self.name == "pwrite64" and self.arguments.endswith(", 4, 4")

    @property
    def offset(self):
        return int(self.arguments.rpartition(", ")[2])

    def told(self, path):
        """In words, the same for every run and machine: `fsync TEMPORARY`."""
        name = "set count in" if self.sets_count else re.sub(r"(at2?|64)$", "", self.name)
        places = re.findall(r'[<"](/.*?)[>"]', self.arguments)
        return " ".join([name, *(place_told(place, path) for place in places)])


def place_told(place, path):
    """What a place is to the file that is being written."""
    if place == str(path.parent):
        return "FOLDER"
    if re.fullmatch(hidden(path), place):
        return "TEMPORARY"
    return "FILE" if place == str(path) else place


def hidden(path):
    """The pattern of the temporary file's path."""
    return re.escape(f"{path.parent}/.{path.name}.") + r"\w+\.tmp"


@dataclass(frozen=True)
class Run:
    """What a traced run left: the process's report, its calls, the file and what is beside it."""

    returncode: int
    report: dict | None
    path: Path
    content: bytes | None
    beside: list[str]  # paths
    before: Counter
    """Calls by name until the operation began."""
    calls: list[Call]


def traced(case, folder, *options):
    """Run the operation in a child under strace, in a folder of its own."""
    strace = shutil.which("strace")
    if strace is None:
        pytest.fail("the kill tests need strace, and it is missing: apt-get install strace")
    log, place = folder / "trace", folder / "place"
    place.mkdir(parents=True)
    path = case.lay(place)
    options = ["-f", "-y", "-s0", "-o", log, *options, f"--trace={CHANGES_OF_THE_DISK}|^f?access"]
    child = subprocess.run(
        [strace, *options, *CHILD, case.operation, path],
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        timeout=60,
    )
    lines = log.read_text().splitlines() if log.exists() else []
    marks = [n for n, line in enumerate(lines) if BEGIN in line or END in line]
    assert marks, f"strace does not work here: {child.stderr}"
    begin, end = marks[0], marks[1] if len(marks) > 1 else len(lines)
    return Run(
        returncode=child.returncode,
        report=json.loads(child.stdout or "null"),
        path=path,
        content=path.read_bytes() if path.exists() else None,
        beside=[str(entry) for entry in place.iterdir() if entry != path],
        before=Counter(call.name for call in map(Call.of_line, lines[:begin]) if call),
        calls=[call for call in map(Call.of_line, lines[begin + 1 : end]) if call],
    )


@dataclass(frozen=True)
class Rehearsal:
    """An undisturbed run: what an interrupted one is compared with."""

    old: bytes | None
    new: bytes
    path: Path
    before: Counter
    calls: list[Call]

    @property
    def settling(self):
        """The call by which the new file comes to be: before it the old one stands, then it."""
        settles = [c.name.startswith("rename") or c.sets_count for c in self.calls]
        return max(n for n, settling in enumerate(settles) if settling)


@functools.cache
def rehearse(case):
    with tempfile.TemporaryDirectory() as folder:
        old_path = case.lay(folder)
        old = old_path.read_bytes() if case.before is not None else None
        run = traced(case, Path(folder, "rehearsal"), "--seccomp-bpf")
        assert (run.returncode, run.report, run.beside) == (0, None, [])
        np.testing.assert_array_equal(idxfile.read(run.path), case.after)
        return Rehearsal(old, run.content, run.path, run.before, run.calls)


@each_case
def test_order_of_system_calls(case):
    rehearsal = rehearse(case)
    told = [call.told(rehearsal.path) for call in rehearsal.calls]
    assert [text for text, _repeats in itertools.groupby(told)] == case.calls


def test_append_touches_no_old_byte_but_the_count():
    rehearsal = rehearse(CASES["append"])
    data = [c for c in rehearsal.calls if c.name == "pwrite64" and not c.sets_count]
    assert len(data) > 1
    assert min(call.offset for call in data) == len(rehearsal.old)


# Kills and faults


@dataclass(frozen=True)
class Fault:
    """What happens at a system call: an error, for once or from then on, or the end."""

    error: str | None
    lasting: bool = False

    @property
    def passes(self):
        """Whether the process lives on with a system that works again: it can tidy up."""
        return self.error is not None and not self.lasting

    def options(self, rehearsal, index):
        """strace's options that bring it about at the call of that index."""
        passed = rehearsal.before + Counter(c.name for c in rehearsal.calls[:index])
        struck = rehearsal.calls[index].name
        if self.error is None:
            # Not with --seccomp-bpf, under which strace 6.1 forgets to send the signal.
            return [f"--inject={struck}:signal=KILL:when={passed[struck] + 1}"]
        if not self.lasting:
            names, until = [struck], ""
        else:
            names, until = {*(c.name for c in rehearsal.calls), "ftruncate"}, "+"
        inject = [f"--inject={n}:error={self.error}:when={passed[n] + 1}{until}" for n in names]
        return ["--seccomp-bpf", *inject]


FAULTS = {
    "SIGKILL": Fault(None),
    "ENOSPC": Fault("ENOSPC"),
    "EIO": Fault("EIO"),
    "EIO-from-then-on": Fault("EIO", lasting=True),
}


@each_case
@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
def test_every_system_call_in_turn(case, fault, tmp_path):
    rehearsal = rehearse(case)

    def interrupted(index):
        return traced(case, tmp_path / str(index), *fault.options(rehearsal, index))

    with ThreadPoolExecutor(2) as pool:
        runs = list(pool.map(interrupted, range(len(rehearsal.calls))))
    for index, (call, run) in enumerate(zip(rehearsal.calls, runs, strict=True)):
        where = f"at call {index + 1} of {len(runs)}, {call.told(rehearsal.path)}"
        if fault.error is None:
            assert_killed(run, where)
        else:
            assert_told(run, fault.error, where)
        rolled_back = case.in_place and fault.passes
        if index > rehearsal.settling and not rolled_back:
            assert run.content == rehearsal.new, f"not the new file {where}"
        elif case.in_place and not rolled_back:
            assert_old_items_readable(run, case, rehearsal, where)
        else:
            assert run.content == rehearsal.old, f"not the old file {where}"


def assert_killed(run, where):
    """Killed, and there is nothing but a hidden temporary file at most."""
    assert run.returncode == -signal.SIGKILL, where
    assert len(run.beside) <= 1, where
    assert all(re.fullmatch(hidden(run.path), place) for place in run.beside), where


def assert_told(run, error, where):
    """The error came out under the user's name of the file, and nothing is left behind."""
    number = getattr(errno, error)
    assert run.returncode == 0, where
    assert run.report == {
        "errno": number,
        "filename": str(run.path),
        "text": f"[Errno {number}] {os.strerror(number)}: {str(run.path)!r}",
    }, where
    assert run.beside == [], where


def assert_old_items_readable(run, case, rehearsal, where):
    """The old file is there, at most with bytes behind it: told by a strict read, and readable."""
    assert run.content.startswith(rehearsal.old), where
    if run.content == rehearsal.old:
        return
    with pytest.raises(idxfile.TrailingDataError, match="repair"):
        idxfile.read(run.path)
    with pytest.raises(idxfile.TrailingDataError, match="repair"):
        idxfile.append(run.path, OLD)
    with pytest.warns(idxfile.IdxWarning):
        np.testing.assert_array_equal(idxfile.read(run.path, problems="warn"), case.before)


def test_append_makes_the_old_count_durable_before_items_go(tmp_path):
    """Or a crash after a failed append could leave the new count without its items."""
    case = CASES["append"]
    rehearsal = rehearse(case)
    run = traced(case, tmp_path, *FAULTS["EIO"].options(rehearsal, len(rehearsal.calls) - 1))
    told = [call.told(run.path) for call in run.calls]
    assert told[-4:] == ["fsync FILE", "set count in FILE", "fsync FILE", "ftruncate FILE"]


# Real shortages


@contextlib.contextmanager
def limited_file_size(_folder):
    """No file of this process grows over 256 KiB. (Python ignores SIGXFSZ: writing fails.)"""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 18, hard))
    try:
        yield errno.EFBIG
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@contextlib.contextmanager
def small_disk(folder):
    """The folder is a disk of 256 KiB."""
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", folder], check=True)
    try:
        yield errno.ENOSPC
    finally:
        subprocess.run(["umount", folder], check=True)


def may_mount():
    """Whether this process has CAP_SYS_ADMIN, bit 21: root outside of a container."""
    status = Path("/proc/self/status").read_text()
    return bool(int(re.search(r"CapEff:\s*(\w+)", status)[1], 16) >> 21 & 1)


SHORTAGES = [limited_file_size, small_disk] if may_mount() else [limited_file_size]


@each_case
@pytest.mark.parametrize("shortage", SHORTAGES)
def test_no_room(case, shortage, tmp_path):
    with shortage(tmp_path) as number:
        path = case.lay(tmp_path)
        before = contents(tmp_path)
        with pytest.raises(OSError, match=re.escape(repr(str(path)))) as raised:
            case.run(path)
        assert (raised.value.errno, raised.value.filename) == (number, str(path))
        assert contents(tmp_path) == before
        idxfile.write(path, OLD[:2])  # the room is free again
        np.testing.assert_array_equal(idxfile.read(path), OLD[:2])


@each_case
def test_a_system_that_writes_less_than_asked(case, tmp_path, monkeypatch):
    """`pwrite` may take a part, near a limit or after a signal: the rest is written behind it."""
    pwrite = os.pwrite
    path = case.lay(tmp_path)
    monkeypatch.setattr(os, "pwrite", lambda fd, data, at: pwrite(fd, data[:65_521], at))
    case.run(path)
    assert path.read_bytes() == rehearse(case).new


# Pipes and devices, which are written as they stand


def test_a_full_device_is_named():
    with pytest.raises(OSError, match="'/dev/full'") as raised:
        idxfile.write("/dev/full", OLD)
    assert raised.value.errno == errno.ENOSPC


def test_a_pipe_is_written_and_not_appended_to(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with ThreadPoolExecutor(1) as pool:
        reading = pool.submit(idxfile.read, pipe)
        idxfile.write(pipe, MORE)
        np.testing.assert_array_equal(reading.result(60), MORE)
    with pytest.raises(idxfile.UnsupportedError, match="pipe"):
        idxfile.append(pipe, MORE)


def test_a_pipe_that_does_not_block_loses_nothing_silently():
    reading, writing = os.pipe2(os.O_NONBLOCK)
    with open(reading, "rb", 0), open(writing, "wb", 0) as file, pytest.raises(BlockingIOError):
        idxfile.write(file, MORE)


# Several at once


@pytest.mark.parametrize("name", ["a.idx", "a.idx.gz"])
def test_two_processes_that_append_lose_nothing(name, tmp_path):
    path = tmp_path / name
    idxfile.write(path, np.zeros((1, 2), "int32"))
    command = [*CHILD, "append_rounds", path]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with contextlib.ExitStack() as stack:
        children = [
            stack.enter_context(subprocess.Popen(command, env=ENVIRONMENT, **pipes))
            for _ in range(2)
        ]
        assert [child.stdout.readline() for child in children] == ["ready\n"] * 2
        for stamp, child in enumerate(children, 1):
            child.stdin.write(f"{stamp}\n")
            child.stdin.flush()
        assert [child.communicate(timeout=60)[0] for child in children] == ["null\n"] * 2
    stamps, rounds = idxfile.read(path).T
    assert len(stamps) == 1 + 2 * ROUNDS
    for stamp in (1, 2):
        assert rounds[stamps == stamp].tolist() == list(range(ROUNDS))
    assert os.listdir(tmp_path) == [name]


def test_a_reader_never_meets_a_half_written_file(tmp_path):
    path = tmp_path / "a.idx"
    files = [np.full((n, 1000), n, "int32") for n in (1, 100)]
    idxfile.write(path, files[0])

    def replace_often():
        for n in range(50):
            idxfile.write(path, files[n % 2])

    with ThreadPoolExecutor(1) as pool:
        writing = pool.submit(replace_often)
        while not writing.done():
            met = idxfile.read(path)
            assert (met == len(met)).all()
        writing.result()


@each_case_over_an_old_file
def test_a_reader_keeps_the_file_it_opened(case, tmp_path):
    path = case.lay(tmp_path)
    with idxfile.open(path) as reader:
        first = reader[0]
        case.run(path)
        np.testing.assert_array_equal(first, OLD[0])
        np.testing.assert_array_equal(reader, OLD)
    np.testing.assert_array_equal(idxfile.read(path), case.after)


def test_write_onto_the_file_that_is_being_read(tmp_path):
    path = tmp_path / "a.idx"
    pixels = np.arange(10_000, dtype="uint8").reshape(100, 100)
    idxfile.write(path, pixels)
    with idxfile.open(path) as reader:
        idxfile.write(path, reader[::-1])
        np.testing.assert_array_equal(reader, pixels)
    np.testing.assert_array_equal(idxfile.read(path), pixels[::-1])


# Names, links and mode bits


@each_case
def test_a_link_stays_a_link(case, tmp_path):
    (tmp_path / "real").mkdir()
    path = case.lay(tmp_path / "real")
    link = tmp_path / case.name
    link.symlink_to(Path("real", case.name))
    case.run(link)
    assert link.readlink() == Path("real", case.name)
    np.testing.assert_array_equal(idxfile.read(path), case.after)
    assert os.listdir(tmp_path / "real") == [case.name]


@each_case_over_an_old_file
@pytest.mark.parametrize("mode", [0o600, 0o644, 0o666, 0o751])
def test_mode_bits_stay(case, mode, tmp_path):
    path = case.lay(tmp_path)
    path.chmod(mode)
    case.run(path)
    assert stat.S_IMODE(path.stat().st_mode) == mode


@pytest.mark.parametrize("mask", [0o022, 0o077])
def test_a_new_file_has_the_mode_that_any_new_file_has(mask, tmp_path):
    before = os.umask(mask)
    try:
        idxfile.write(tmp_path / "a.idx", OLD)
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "a.idx").stat().st_mode) == 0o666 & ~mask


@pytest.mark.parametrize("name", ["a", "x" * 255, "像" * 85, "💾" * 63])
def test_every_name_that_the_system_takes(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    idxfile.write(name, OLD)
    idxfile.append(name, MORE)
    np.testing.assert_array_equal(idxfile.read(tmp_path / name), GROWN)
    assert os.listdir() == [name]


# Writers that do not come to their end


class Mishap(Exception):
    """Something that goes wrong in the caller's code."""


@pytest.mark.parametrize("options", [{}, {"count": 3}, {"count": 3, "codec": "gz"}], ids=str)
@pytest.mark.parametrize("before", [None, OLD], ids=["new", "old"])
@pytest.mark.parametrize("mishap", [Mishap, KeyboardInterrupt])
def test_a_with_block_that_raises_leaves_nothing(options, before, mishap, tmp_path):
    path = tmp_path / "a.idx"
    if before is not None:
        idxfile.write(path, before)
    listed = contents(tmp_path)

    def begin_and_fail():
        with idxfile.create(path, dtype="int16", item_shape=(64, 64), **options) as writer:
            writer.append(MORE[:2])
            raise mishap

    with pytest.raises(mishap):
        begin_and_fail()
    assert contents(tmp_path) == listed


def test_a_forgotten_writer_leaves_nothing(tmp_path):
    writer = operations.start_writer(tmp_path / "a.idx")
    assert len(os.listdir(tmp_path)) == 1
    del writer
    gc.collect()
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    ("ending", "returncode", "left"),
    [
        ("exit_with_open_writer", 3, r""),
        ("fail_with_open_writer", 1, r""),
        ("kill_with_open_writer", -signal.SIGKILL, r"\.a\.idx\.\w+\.tmp"),
        ("fork_with_open_writer", 0, r"a\.idx"),
    ],
)
def test_a_process_that_ends_with_an_open_writer(ending, returncode, left, tmp_path):
    path = tmp_path / "a.idx"
    child = subprocess.run([*CHILD, ending, path], env=ENVIRONMENT, capture_output=True, timeout=60)
    assert child.returncode == returncode, child.stderr
    assert re.fullmatch(left, " ".join(os.listdir(tmp_path)))
    if path.exists():
        np.testing.assert_array_equal(idxfile.read(path), MORE)
