"""A reader in a process of its own: asked, waited for, ended."""

from __future__ import annotations

import contextlib
import os
import queue
import signal
import subprocess
import tempfile
import threading
from typing import IO, Literal

from ..errors import printable

__all__: list[str] = []

MOST_LINE_NBYTES = 1 << 18


class NoAnswerError(Exception):
    """A reader that gave no answer: how it ended, and whether it had to be ended."""

    def __init__(self, how: str, result: Literal["crash", "hang"]) -> None:
        super().__init__(how)
        self.result: Literal["crash", "hang"] = result


class Reader:
    """A reader in a process of its own, asked one path at a time; started again when it dies."""

    def __init__(self, command: list[str], timeout: float) -> None:
        self.command = command
        self.timeout = timeout
        self._process: subprocess.Popen[bytes] | None = None
        self._lines: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._complaints: IO[bytes] | None = None

    def ask(self, path: str) -> str:
        """The line that it answers.

        Raises:
            NoAnswerError: when it dies, or says nothing in time.
            OSError: when it cannot be started.
        """
        fresh = self._process is None
        try:
            return self._exchange(path)
        except NoAnswerError as silence:
            if fresh or silence.result == "hang":
                raise
        return self._exchange(path)  # it may have died of what came before

    def close(self) -> None:
        """End its input.

        Raises:
            NoAnswerError: when it does not end, or not with exit code 0.
        """
        process = self._process
        if process is None:
            return
        assert process.stdin is not None
        with contextlib.suppress(OSError):
            process.stdin.close()
        try:
            process.wait(self.timeout)
        except subprocess.TimeoutExpired:
            self.kill()
            raise NoAnswerError(f"did not end in {self.timeout:g} s", "hang") from None
        how = self._ending()
        self.kill()
        if process.returncode:
            raise NoAnswerError(how, "crash")

    def kill(self) -> None:
        """End the process and all that it started."""
        process, self._process = self._process, None
        if process is None:
            return
        if process.poll() is None:
            with contextlib.suppress(OSError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        for stream in (process.stdin, process.stdout, self._complaints):
            assert stream is not None
            with contextlib.suppress(OSError):
                stream.close()

    def _start(self) -> subprocess.Popen[bytes]:
        self._complaints = tempfile.TemporaryFile(prefix="idxfile-")  # noqa: SIM115
        try:
            process = subprocess.Popen(  # noqa: S603 - the command is what the user asks for
                self.command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._complaints,
                start_new_session=True,
            )
        except OSError:
            self._complaints.close()
            raise
        self._lines = queue.SimpleQueue()
        threading.Thread(target=_pump, args=(process.stdout, self._lines), daemon=True).start()
        return process

    def _exchange(self, path: str) -> str:
        process = self._process = self._process or self._start()
        assert process.stdin is not None
        with contextlib.suppress(OSError):  # a dead one is told by its missing answer
            process.stdin.write(os.fsencode(path) + b"\n")
            process.stdin.flush()
        try:
            line = self._lines.get(timeout=self.timeout)
        except queue.Empty:
            self.kill()
            how = f"no answer in {self.timeout:g} s (are the answers flushed?)"
            raise NoAnswerError(how, "hang") from None
        if line is None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(self.timeout)
            how = self._ending()
            self.kill()
            raise NoAnswerError(how, "crash")
        if not line.endswith(b"\n"):
            self.kill()  # what follows would be taken for the next answer
        return line.decode(errors="replace").strip()

    def _ending(self) -> str:
        """How the process ended, and the last that it complained of."""
        assert self._process is not None
        assert self._complaints is not None
        code = self._process.poll()
        if code is None:
            how = "closed its output"
        elif code < 0:
            how = f"killed by {signal.Signals(-code).name}"
        else:
            how = f"ended with exit code {code}"
        size = self._complaints.seek(0, os.SEEK_END)
        self._complaints.seek(max(0, size - 2000))
        told = self._complaints.read().decode(errors="replace").strip()
        return f"{how}: {printable(told)}" if told else how


def _pump(stream: IO[bytes], lines: queue.SimpleQueue[bytes | None]) -> None:
    """Hand over the lines of a reader, and None at their end."""
    with contextlib.suppress(OSError, ValueError):
        while line := stream.readline(MOST_LINE_NBYTES):
            lines.put(line)
    lines.put(None)
