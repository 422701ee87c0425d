"""The runner of the conformance corpus: it drives any reader of IDX files, in any language.

    python -m idxfile.conformance [--corpus DIR] [--tags core,codec] COMMAND [ARGUMENTS...]

COMMAND is started once. It reads one path a line from its standard input, and answers each with
one line on its standard output, at once (flush it):

    ok TYPE NDIM D0 D1 ... hex HEX         the elements as big-endian bytes in hexadecimal
    ok TYPE NDIM D0 D1 ... crc NBYTES CRC  or, beyond 4096 bytes, their number and their CRC-32
    error KIND [OFFSET]                    refused: a class or a kind of problem, and the byte

The corpus lies in the repository, not in the package; its page `conformance/README.md` tells more.
Exit codes: 0 all passed, 1 something did not, 2 wrong usage. (One file of over 400 lines: runner,
idxfile's own reader and command line are one thing with one door, `python -m`.)
"""

from __future__ import annotations

import contextlib
import fnmatch
import json
import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading
import warnings
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import IO, Any, Literal, NamedTuple

import click

from .errors import IdxError, printable
from .problems import Problem

__all__ = ["Outcome", "main", "run"]

MOST_HEX_NBYTES = 4096
MOST_LINE_NBYTES = 1 << 18
END = "(the end of its input)"

Result = Literal["pass", "fail", "wrong-kind", "crash", "hang"]
Row = dict[str, Any]
"""A file of the manifest."""


class Outcome(NamedTuple):
    """How a reader did on one file."""

    name: str
    """The file's name in the manifest."""
    result: Result
    """wrong-kind: rightly refused, but not for this reason or not at this byte."""
    expected: str
    """The line that would have been right, or the first of them."""
    got: str
    """What the reader said, or how it ended."""


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


def judge(row: Row, line: str) -> Result:
    """Whether a line answers a file rightly."""
    words = line.lower().split()
    if words[:1] == ["ok"] and "answer" in row:
        return "pass" if _agrees(row["answer"], words[1:]) else "fail"
    if words[:1] == ["error"] and len(words) in (2, 3) and "refusals" in row:
        kind, offset = words[1], words[2] if len(words) == 3 else "-"
        return "pass" if _any_fits(row["refusals"], kind, offset) else "wrong-kind"
    return "fail"


def _agrees(answer: dict[str, Any], words: list[str]) -> bool:
    """Whether type, shape and elements are right, in whichever form the elements come."""
    if "hex" in words:
        at = words.index("hex")
        with contextlib.suppress(ValueError):
            elements = bytes.fromhex("".join(words[at + 1 :]))
            words = [*words[:at], "crc", str(len(elements)), f"{zlib.crc32(elements):08x}"]
    facts = [answer["type"], len(answer["shape"]), *answer["shape"]]
    return words == [str(fact) for fact in (*facts, "crc", answer["nbytes"], answer["crc32"])]


def _any_fits(refusals: list[dict[str, Any]], kind: str, offset: str) -> bool:
    """Whether one of the refusals has this class or kind, and this byte where both tell one."""
    return any(
        kind in (refusal["class"], refusal.get("kind"))
        and (offset == "-" or str(refusal.get("offset", offset)) == offset)
        for refusal in refusals
    )


def right_line(row: Row) -> str:
    """A line that would be right: the answer, or else the first refusal."""
    if "answer" not in row:
        refusal = row["refusals"][0]
        kind = refusal.get("kind", refusal["class"])
        return f"error {kind} {refusal.get('offset', '-')}"
    answer = row["answer"]
    data = f"crc {answer['nbytes']} {answer['crc32']}"
    if "elements" in answer:
        data = f"hex {answer['elements']}"
    return answer_line(answer["type"], answer["shape"], data)


def answer_line(type_: str, shape: Sequence[int], data: str) -> str:
    """The line that says what was read."""
    return " ".join(["ok", type_, str(len(shape)), *map(str, shape), data])


def run(
    command: list[str], corpus: str, rows: Iterable[Row], *, timeout: float = 10
) -> Iterator[Outcome]:
    """Ask a reader for each of these files, then end its input.

    Args:
        command: the reader and its arguments.
        corpus: the folder of the corpus.
        rows: the files of the manifest to ask for.
        timeout: the seconds that one answer may take.

    Yields:
        An outcome for each file, and one for the end where that went wrong.

    Raises:
        OSError: when the reader cannot be started.
    """
    reader = Reader(command, timeout)
    try:
        for row in rows:
            path = os.path.join(os.path.abspath(corpus), row["file"])
            result: Result
            try:
                got = reader.ask(path)
                result = judge(row, got)
            except NoAnswerError as silence:
                got, result = str(silence), silence.result
            yield Outcome(row["name"], result, right_line(row), got)
        try:
            reader.close()
        except NoAnswerError as silence:
            yield Outcome(END, silence.result, "exit code 0", str(silence))
    finally:
        reader.kill()


# The reader of idxfile itself


def respond(path: str) -> str:
    """The line that idxfile answers for a path; what is no error of its own passes through."""
    from .array import read
    from .report.judgement import check

    problems: list[Problem] = []
    try:
        problems = check(path).problems
        for problem in problems:
            if problem.level == "error":
                offset = "-" if problem.offset is None else problem.offset
                return f"error {problem.code} {offset}"
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            array = read(path)
    except OSError:
        return "error open"
    except IdxError:
        noted = next((p for p in problems if p.code == "many-dimensions"), None)
        return f"error {noted.code} {noted.offset}" if noted else "error dimension"
    elements = array.astype(array.dtype.newbyteorder(">")).tobytes()
    data = f"crc {len(elements)} {zlib.crc32(elements):08x}"
    if len(elements) <= MOST_HEX_NBYTES:
        data = f"hex {elements.hex()}"
    return answer_line(array.dtype.name, array.shape, data)


def serve() -> None:
    """Answer the paths on standard input, as every reader does."""
    for line in sys.stdin.buffer:
        print(respond(os.fsdecode(line.rstrip(b"\n"))), flush=True)


OWN = [sys.executable, "-m", "idxfile.conformance", "--serve"]
"""idxfile as a reader."""


# The command line


def load(corpus: str) -> dict[str, Any]:
    """The manifest of a corpus.

    Raises:
        click.UsageError: where there is none, or one of another format.
    """
    path = os.path.join(corpus, "manifest.json")
    try:
        with open(path, encoding="utf-8") as file:
            manifest = json.load(file)
    except OSError:
        raise click.UsageError(
            f"there is no corpus in {corpus!r}: {path} cannot be read\n"
            "hint: the corpus is the folder `conformance` of idxfile's repository; "
            "give it with --corpus DIR"
        ) from None
    except ValueError as error:
        raise click.UsageError(f"{path} is no manifest: {error}") from None
    if not isinstance(manifest, dict) or manifest.get("format") != 1:
        raise click.UsageError(f"{path} is no manifest of format 1")
    return manifest


def chosen(manifest: dict[str, Any], tags: str, pattern: str | None = None) -> list[Row]:
    """The files all of whose tags are asked for.

    Args:
        manifest: the manifest.
        tags: tags or groups of tags, with commas between; "all" for all of them.
        pattern: only files whose name fits this, as `cut-*`.

    Raises:
        click.UsageError: for a tag that is not in the manifest, or when nothing is left.
    """
    known: dict[str, list[str]] = {tag: [tag] for tag in manifest["tags"]}
    known |= {**manifest["groups"], "all": list(manifest["tags"])}
    asked = [tag.strip() for tag in tags.split(",")]
    if unknown := [tag for tag in asked if tag not in known]:
        raise click.UsageError(f"no tag {', '.join(unknown)}; there are {', '.join(known)}")
    wanted = {tag for name in asked for tag in known[name]}
    rows = [row for row in manifest["files"] if wanted.issuperset(row["tags"])]
    rows = [row for row in rows if fnmatch.fnmatchcase(row["name"], pattern or "*")]
    if not rows:
        raise click.UsageError("no file has these tags and this name")
    return rows


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("command", nargs=-1)
@click.option("--corpus", default="conformance", metavar="DIR", show_default=True)
@click.option("--tags", metavar="TAGS", help="core (the default), gz, bz2, xz, zst, lush … or all.")
@click.option("--only", metavar="PATTERN", help="Only files whose name fits, as 'cut-*'.")
@click.option("--timeout", default=10.0, show_default=True, help="Seconds for an answer.")
@click.option("--json", "as_json", is_flag=True, help="Print all outcomes as JSON.")
@click.option("--self", "own", is_flag=True, help="Try idxfile's own reader, on all tags.")
@click.option("--serve", "served", is_flag=True, help="Be idxfile's own reader.")
@click.pass_context
def main(
    context: click.Context,
    command: tuple[str, ...],
    corpus: str,
    tags: str | None,
    only: str | None,
    timeout: float,
    as_json: bool,
    own: bool,
    served: bool,
) -> None:
    """Try a reader of IDX files on the conformance corpus.

    COMMAND reads a path a line and answers each with a line: `ok TYPE NDIM D0 … hex HEX`, or
    `error KIND OFFSET`. Put -- before it if it has options of its own. Exit code 0 if all passed.
    """
    if served:
        serve()
        return
    if own == bool(command):
        raise click.UsageError("give the command of a reader, or --self")
    manifest = load(corpus)
    rows = chosen(manifest, tags or ("all" if own else "core"), only)
    words = OWN if own else list(command)
    outcomes = []
    try:
        for outcome in run(words, corpus, rows, timeout=timeout):
            outcomes.append(outcome)
            if outcome.result != "pass" and not as_json:
                name, result, expected, got = (_short(text) for text in outcome)
                click.echo(f"{result:10} {name}\n  expected {expected}\n  got      {got}")
    except OSError as error:
        raise click.UsageError(f"{words[0]} cannot be started: {error.strerror}") from None
    counts = Counter[str](outcome.result for outcome in outcomes)
    if as_json:
        facts = {
            "command": words,
            "counts": dict(counts),
            "left_out": len(manifest["files"]) - len(rows),
            "files": [outcome._asdict() for outcome in outcomes],
        }
        click.echo(json.dumps(facts, indent=1))
    else:
        results = ("pass", "fail", "wrong-kind", "crash", "hang")
        text = ", ".join(f"{counts[r]} {r}" for r in results if counts[r] or r == "pass")
        click.echo(f"{len(rows)} files: {text} ({len(manifest['files']) - len(rows)} left out)")
    context.exit(0 if set(counts) == {"pass"} else 1)


def _short(text: str) -> str:
    text = printable(text)
    return text if len(text) <= 400 else f"{text[:397]}..."


if __name__ == "__main__":
    main(prog_name="python -m idxfile.conformance")
