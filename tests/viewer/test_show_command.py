"""`idx show`: which items, drawn how, on real terminals that answer, and that do not."""

from __future__ import annotations

import contextlib
import fcntl
import gzip
import os
import re
import select
import signal
import struct
import subprocess
import sysconfig
import termios
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import idxfile
from conftest import MNIST, H, idx_bytes
from idxfile.cli import main
from idxfile.cli.asking import abilities
from idxfile.cli.choosing import items_of
from sight import bare, decoded, digits

SCRIPT = Path(sysconfig.get_path("scripts")) / "idx"
IMAGES, LABELS = (str(MNIST / f"t10k-{name}-ubyte.gz") for name in ("images-idx3", "labels-idx1"))
KNOWN_LABELS = [7, 2, 1, 0, 4, 1, 4, 9, 5, 9]

ATTRIBUTES = b"\x1b[c"
KITTY = b"\x1b_Gi=31,s=1,v=1,a=q,t=d,f=24;AAAA\x1b\\"


class Terminal:
    """A terminal with a process in it, which it answers as real ones do."""

    def __init__(
        self, *words: str, size: tuple[int, int] = (24, 80), answers: Any = None, **environ: str
    ) -> None:
        self._near, far = os.openpty()
        fcntl.ioctl(far, termios.TIOCSWINSZ, struct.pack("4H", *size, size[1] * 8, size[0] * 16))
        self.before = termios.tcgetattr(far)
        self._far = far
        self._answers = answers or {}
        self.seen = b""
        self._more = threading.Condition()
        base = {"TERM": "xterm-256color", "LANG": "C.UTF-8", "PATH": os.environ["PATH"]}
        self.process = subprocess.Popen(
            [SCRIPT, *words],
            stdin=far,
            stdout=far,
            stderr=far,
            env={**base, **environ},
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        while True:
            if not select.select([self._near], [], [], 0.05)[0]:
                if self.process.poll() is not None:
                    return
                continue
            with contextlib.suppress(OSError):
                piece = os.read(self._near, 1 << 16)
                with self._more:
                    self.seen += piece
                    self._more.notify_all()
                for question, answer in list(self._answers.items()):
                    if question in self.seen:
                        del self._answers[question]
                        os.write(self._near, answer)

    def wait_for(self, sign: bytes, count: int = 1) -> None:
        with self._more:
            found = self._more.wait_for(lambda: self.seen.count(sign) >= count, 20)
        if not found:
            self.process.kill()
        assert found, self.seen[-2000:]

    def press(self, keys: bytes) -> None:
        os.write(self._near, keys)

    def end(self) -> tuple[int, str]:
        """The exit code, and everything that was written, as the terminal got it."""
        code = self.process.wait(60)
        self._reader.join()
        left = termios.tcgetattr(self._far)
        assert left == self.before  # echo and lines are as they were
        assert not select.select([self._far], [], [], 0)[0]  # no answer is left to be read
        os.close(self._near)
        os.close(self._far)
        return code, self.seen.decode().replace("\r\n", "\n")


@pytest.fixture
def idx(capfd: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("LANG", "C.UTF-8")
    monkeypatch.setenv("COLUMNS", "80")

    def run(*words: str) -> tuple[int, str, str]:
        code = main([*map(str, words)])
        out, err = capfd.readouterr()
        return code, out, err

    return run


def numbers(out: str) -> list[tuple[int, str]]:
    """The numbers and labels over the pictures, whatever these are drawn with."""
    words = bare(PICTURES.sub("", out))
    return [(int(n), label) for n, label in re.findall(r"(\d+): ([^\s,]+(?:, said \S+)?)", words)]


PICTURES = re.compile(r"\x1b[P_].*?\x1b\\|\x1b[78]|\x1b\[\d*[A-HJK]|\r", re.DOTALL)


# Which items


def test_the_first_ones_with_their_labels(idx: Any) -> None:
    code, out, err = idx("show", IMAGES)
    assert (code, err) == (0, "")
    assert [int(label) for _, label in numbers(out)] == KNOWN_LABELS[: len(numbers(out))]
    assert out.endswith(" more\n")
    assert all(len(line) <= 80 for line in out.splitlines())


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["-1"], [9999]),
        (["-2:"], [9998, 9999]),
        (["-10000:-9998"], [0, 1]),
        (["5", "-1", "0"], [5, 9999, 0]),
        (["--", "-1"], [9999]),
        (["3:0:-1"], [3, 2, 1]),
        (["::2500"], [0, 2500, 5000, 7500]),
        (["2:2"], []),
        (["--scale", "1", "-3", "--invert"], [9997]),
    ],
)
def test_numbers_and_slices_also_negative(idx: Any, words: list[str], expected: list[int]) -> None:
    code, out, err = idx("show", IMAGES, *words)
    assert (code, err) == (0, "")
    assert [number for number, _ in numbers(out)] == expected


def test_all_items_are_a_range_that_takes_no_memory() -> None:
    assert items_of([], 1 << 60) == range(1 << 60)
    assert items_of([":"], 1 << 60) == range(1 << 60)
    assert items_of(["-1"], 1 << 60) == range((1 << 60) - 1, 1 << 60)


def test_items_of_some_classes(idx: Any) -> None:
    _, out, _ = idx("show", IMAGES, "--labels", "3,7", "0:60")
    labels = idxfile.read(LABELS)[:60]
    expected = [(int(n), str(labels[n])) for n in np.flatnonzero(np.isin(labels, (3, 7)))]
    assert numbers(out) == expected
    _, first, _ = idx("show", IMAGES, "--labels", "3,7")
    assert numbers(first) == expected[: len(numbers(first))]
    assert re.search(r"\n2,0\d\d more\n$", first)  # 1,010 threes and 1,028 sevens
    assert idx("show", IMAGES, "--labels", "11")[1] == "nothing to show\n"


def test_random_items_come_from_the_seed(idx: Any) -> None:
    one, two, other = (
        numbers(idx("show", IMAGES, "--random", "6", "--seed", seed)[1]) for seed in ("1", "1", "2")
    )
    assert one == two != other
    assert len(dict(one)) == 6
    labels = idxfile.read(LABELS)
    assert all(str(labels[n]) == label for n, label in one)
    few = numbers(idx("show", IMAGES, "0:3", "--random", "99", "--seed", "0")[1])
    assert sorted(n for n, _ in few) == [0, 1, 2]


def test_wrong_items_show_both_labels(idx: Any, tmp_path: Path) -> None:
    said = idxfile.read(LABELS)
    said[[3, 500]] = (6, 8)
    idxfile.write(tmp_path / "said.idx", said)
    code, out, err = idx("show", IMAGES, "--wrong", tmp_path / "said.idx")
    assert (code, err) == (0, "2 of 10,000 items differ\n")
    assert numbers(out) == [(3, "0, said 6"), (500, "3, said 8")]
    _, out, err = idx("show", IMAGES, "--wrong", tmp_path / "said.idx", "--labels", "3")
    assert (numbers(out), err) == ([(500, "3, said 8")], "1 of 1,010 items differ\n")
    idxfile.write(tmp_path / "short.idx", said[:5])
    code, out, err = idx("show", IMAGES, "--wrong", tmp_path / "short.idx")
    assert (code, out) == (3, "")
    assert "10,000 labels, and 5 to compare them with" in err


def test_a_folder_is_a_data_set(idx: Any, tmp_path: Path) -> None:
    code, out, _ = idx("show", MNIST, "--split", "test", "0:3")
    assert (code, numbers(out)) == (0, [(0, "7"), (1, "2"), (2, "1")])
    code, _, err = idx("show", MNIST)
    assert code == 3
    assert "--split" in err
    ds = idxfile.Dataset(digits(4), np.array([0, 1, 1, 0]), classes=["cat", "dog"])
    ds.save(tmp_path)
    for place in (tmp_path, tmp_path / "train-images-idx3-ubyte"):
        assert [label for _, label in numbers(idx("show", place, ":")[1])] == [
            *("cat", "dog", "dog", "cat")
        ]
        assert numbers(idx("show", place, "--labels", "dog")[1]) == [(1, "dog"), (2, "dog")]
    code, _, err = idx("show", tmp_path, "--labels", "cow")
    assert (code, "no class is called 'cow'; there are cat, dog" in err) == (2, True)


def test_labels_beside_are_no_text_then_there_are_no_names(idx: Any, tmp_path: Path) -> None:
    idxfile.Dataset(digits(2), np.array([0, 1])).save(tmp_path)
    (tmp_path / "classes.txt").write_bytes(b"\xff\xfe")
    code, out, _ = idx("show", tmp_path / "train-images-idx3-ubyte")
    assert (code, numbers(out)) == (0, [(0, "0"), (1, "1")])


@pytest.mark.parametrize("words", ["--labels 3", "--wrong FILE", "--mean"])
def test_without_labels_there_is_nothing_to_choose_by(idx: Any, tmp_path: Path, words: str) -> None:
    (tmp_path / "x.idx").write_bytes(idx_bytes(digits(3)))
    file = str(tmp_path / "x.idx")
    code, out, err = idx("show", file, *words.replace("FILE", LABELS).split())
    assert (code, out) == (2, "")
    assert "--labels-file" in err


@pytest.mark.parametrize(
    ("word", "error"),
    [
        ("--nix", "No such option '--nix'"),
        ("-x", "No such option '-x'"),
        ("-1x", "No such option '-1x'"),
        ("-10001", "item -10001 is not there: the file has 10,000 items"),
        ("1:x", "'1:x' is no item number and no slice"),
    ],
)
def test_what_is_no_item_is_told(idx: Any, word: str, error: str) -> None:
    code, out, err = idx("show", IMAGES, word)
    assert (code, out) == (2, "")
    assert error in err


# Sheets


def test_a_sheet_has_the_same_bytes_each_time(idx: Any, tmp_path: Path) -> None:
    for name in "ab":
        code, out, err = idx("show", IMAGES, "--png", tmp_path / f"{name}.png")
        assert (code, out) == (0, "")
        assert "bytes, of uint8 10000 × 28 × 28" in err
    assert (tmp_path / "a.png").read_bytes() == (tmp_path / "b.png").read_bytes()
    page = decoded((tmp_path / "a.png").read_bytes())
    first = idxfile.read(IMAGES, 0).repeat(2, 0).repeat(2, 1)
    assert np.array_equal(page[23:79, 12:68], first)


def test_a_sheet_of_the_mean_item_of_each_class(idx: Any, tmp_path: Path) -> None:
    code, _, _ = idx("show", IMAGES, "--mean", "--png", tmp_path / "mean.png", "--scale", "1")
    assert code == 0
    page = decoded((tmp_path / "mean.png").read_bytes())
    images, labels = idxfile.read(IMAGES), idxfile.read(LABELS)
    zero = np.rint(images[labels == 0].mean(axis=0))
    assert np.array_equal(page[23:51, 12:40], zero)
    assert page.shape == (2 * 39 + 34, 5 * 38 + 14)


def test_a_sheet_takes_colours_and_what_is_wrong(idx: Any, tmp_path: Path) -> None:
    said = idxfile.read(LABELS)
    said[3] = 6
    idxfile.write(tmp_path / "said.idx", said)
    words = ["--wrong", tmp_path / "said.idx", "--colours", "magma", "--invert"]
    assert idx("show", IMAGES, *words, "--png", tmp_path / "s.png")[0] == 0
    page = decoded((tmp_path / "s.png").read_bytes())
    assert page[23, 12].tolist() == [252, 253, 191]  # black is the other end of magma
    for words in (["--png", tmp_path / "s.png"], ["--png", tmp_path]):
        assert idx("show", IMAGES, *words)[0] in (2, 5)


# Piped, and without colour


@pytest.mark.parametrize("graphics", ["kitty", "sixel", "truecolour", "256", "unicode", "ascii"])
def test_a_way_of_drawing_can_be_forced(idx: Any, graphics: str) -> None:
    code, out, _ = idx("show", IMAGES, "0:2", "--graphics", graphics)
    assert code == 0
    signs = {"kitty": "\x1b_G", "sixel": "\x1bP", "truecolour": "38;2;", "256": "38;5;"}
    assert {name for name, sign in signs.items() if sign in out} >= {graphics} & set(signs)
    assert out.isascii() == (graphics in ("ascii", "sixel", "kitty"))


def test_piped_it_is_plain_text_of_any_length() -> None:
    command = [SCRIPT, "show", IMAGES, "0:300"]
    done = subprocess.run(command, capture_output=True, env={**os.environ, "LANG": "C.UTF-8"})
    assert b"\x1b" not in done.stdout
    assert len(numbers(done.stdout.decode())) == 300


def test_whoever_has_seen_enough_of_all_items_may_go() -> None:
    start = time.monotonic()
    with subprocess.Popen(
        [SCRIPT, "show", IMAGES, ":"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(60) == 0
    assert time.monotonic() - start < 20  # ten thousand items take a minute


def test_an_interrupt_ends_it_with_its_code() -> None:
    with subprocess.Popen(
        [SCRIPT, "show", IMAGES, ":"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.send_signal(signal.SIGINT)
        process.stdout.read()
        assert process.stderr.read() == b"\ninterrupted\n"
        assert process.wait(60) == 130


# On a terminal


def test_half_blocks_in_the_colours_that_there_are() -> None:
    answers = {ATTRIBUTES: b"\x1b[?64;1;2c"}
    for environ, sign in (({}, "38;5;"), ({"COLORTERM": "truecolor"}, "38;2;")):
        code, seen = Terminal("show", IMAGES, "0", answers=dict(answers), **environ).end()
        assert code == 0
        assert sign in seen
        assert "▀" in seen


def test_without_colour_nothing_is_asked_and_nothing_coloured() -> None:
    for environ in ({"NO_COLOR": "1"}, {"TERM": "dumb"}):
        code, seen = Terminal("show", IMAGES, "0", **environ).end()
        assert code == 0
        assert "\x1b" not in seen
        assert "█" in seen


@pytest.mark.parametrize(
    ("answers", "sign"),
    [
        ({KITTY: b"\x1b_Gi=31;OK\x1b\\", ATTRIBUTES: b"\x1b[?62;c"}, "\x1b_Ga=T"),
        ({KITTY: b"\x1b_Gi=31;ENOENT:no\x1b\\", ATTRIBUTES: b"\x1b[?62;4c"}, "\x1bP0;1q"),
        ({ATTRIBUTES: b"\x1b[?62;4;22c"}, "\x1bP0;1q"),
        ({ATTRIBUTES: b"\x1b[6;32;16t\x1b[?62;4;22c"}, "\x1bP0;1q"),
        ({ATTRIBUTES: b"\x1b[?4;6c"}, "38;5;"),  # a VT132
        ({ATTRIBUTES: b"\x1b[?6c"}, "38;5;"),
    ],
)
def test_a_terminal_that_is_not_known_is_asked(answers: dict[bytes, bytes], sign: str) -> None:
    code, seen = Terminal("show", IMAGES, "0", answers=dict(answers)).end()
    assert code == 0
    assert sign in seen
    for answer in answers.values():
        assert answer.decode()[1:] not in seen  # nothing was echoed
    if any(b"6;32;16t" in answer for answer in answers.values()):
        assert '"1;1;140;140' in seen  # 8 cells of 16 pixels, for 28: five times


def test_a_terminal_that_says_nothing_costs_half_a_second() -> None:
    start = time.monotonic()
    code, seen = Terminal("show", IMAGES, "0").end()
    assert code == 0
    assert "38;5;" in seen
    assert time.monotonic() - start < 5


def test_tmux_is_not_asked_for_pictures() -> None:
    answers = {ATTRIBUTES: b"\x1b[?1;2;4c"}
    _, seen = Terminal("show", IMAGES, "0", TMUX="/x,1,0", answers=answers).end()
    assert "\x1b_G" not in seen
    assert "\x1bP0;1q" in seen


def test_a_known_terminal_is_not_asked() -> None:
    code, seen = Terminal("show", IMAGES, "0", TERM="xterm-kitty").end()
    assert code == 0
    assert ATTRIBUTES.decode() not in seen
    assert "\x1b_Ga=T" in seen


def test_whoever_types_ahead_is_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal("show", IMAGES, "0", TERM="xterm-256color")
    terminal.press(b"ls\n")
    code = terminal.process.wait(60)
    terminal._reader.join()
    assert code == 0
    assert abilities({}, "256").graphics == "256"
    os.close(terminal._near)
    os.close(terminal._far)


# The pager


def pager_of(folder: Path, script: str) -> str:
    file = folder / "pager"
    file.write_text(f"#!/bin/sh\n{script}\n")
    file.chmod(0o755)
    return str(file)


def test_what_is_longer_than_the_screen_is_paged_in_colour(tmp_path: Path) -> None:
    environ = {"PAGER": pager_of(tmp_path, f"cat > {tmp_path}/read; echo PAGED")}
    answers = {ATTRIBUTES: b"\x1b[?6c"}
    code, seen = Terminal("show", IMAGES, "0:9", answers=answers, **environ).end()
    assert code == 0
    assert seen.endswith("PAGED\n")
    read = (tmp_path / "read").read_text()
    assert [n for n, _ in numbers(read)] == list(range(9))
    assert "\x1b[38;5;" in read
    for words in (["0"], ["0:9", "--no-pager"], []):
        _, seen = Terminal("show", IMAGES, *words, answers=dict(answers), **environ).end()
        assert "PAGED" not in seen


def test_a_pager_that_is_left_early_is_fine(tmp_path: Path) -> None:
    environ = {"PAGER": pager_of(tmp_path, "head -n 1 > /dev/null"), "COLORTERM": "truecolor"}
    start = time.monotonic()
    code, seen = Terminal("show", IMAGES, ":", answers={ATTRIBUTES: b"\x1b[?6c"}, **environ).end()
    assert code == 0
    assert "Traceback" not in seen
    assert time.monotonic() - start < 20


@pytest.mark.parametrize("pager", ["", "cat", "/nix/pager --x"])
def test_without_a_pager_all_is_printed(pager: str) -> None:
    answers = {ATTRIBUTES: b"\x1b[?6c"}
    code, seen = Terminal("show", IMAGES, "0:9", answers=answers, PAGER=pager).end()
    assert code == 0
    assert "8: \x1b[0m\x1b[1m" in seen or "8:" in seen


def test_an_interrupt_is_the_pagers(tmp_path: Path) -> None:
    script = "trap 'echo STILL HERE' INT; cat > /dev/null; echo READY; "
    script += "until read line < /dev/tty; do :; done"
    environ = {"PAGER": pager_of(tmp_path, script)}
    terminal = Terminal("show", IMAGES, "0:9", answers={ATTRIBUTES: b"\x1b[?6c"}, **environ)
    terminal.wait_for(b"READY")
    terminal.press(b"\x03")
    terminal.wait_for(b"STILL HERE")
    terminal.press(b"\n")
    code, seen = terminal.end()
    assert code == 0
    assert "Traceback" not in seen


PROMPT = b"space: go on, q: end"


@pytest.mark.parametrize("graphics", ["kitty", "sixel"])
def test_pixels_come_a_screen_at_a_time(graphics: str) -> None:
    words = ["show", IMAGES, "0:60", "--graphics", graphics]
    terminal = Terminal(*words, size=(20, 80))
    terminal.wait_for(PROMPT)
    first = len(numbers(terminal.seen.decode()))
    terminal.press(b" ")
    terminal.wait_for(PROMPT, 2)
    assert len(numbers(terminal.seen.decode())) > first > 0
    terminal.press(b"q")
    code, seen = terminal.end()
    assert code == 0
    assert len(numbers(seen)) < 60
    terminal = Terminal(*words, size=(20, 80))
    terminal.wait_for(PROMPT)
    terminal.press(b"\x03")
    code, seen = terminal.end()
    assert code == 130
    assert seen.endswith("interrupted\n")


# What is hostile


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def sparse(path: Path, header: bytes, nbytes: int) -> str:
    with path.open("wb") as file:
        file.write(header)
        file.truncate(len(header) + nbytes)
    return str(path)


def test_a_billion_items(idx: Any, folder: Path) -> None:
    count = 10**9
    images = sparse(folder / "big-images-idx3-ubyte", H(8, count, 28, 28), count * 784)
    sparse(folder / "big-labels-idx1-ubyte", H(8, count), count)
    start = time.monotonic()
    assert numbers(idx("show", images, "-1")[1]) == [(count - 1, "0")]
    assert len(numbers(idx("show", images, "--random", "5", "--seed", "1")[1])) == 5
    assert " more\n" in idx("show", images)[1]
    assert time.monotonic() - start < 10
    with subprocess.Popen([SCRIPT, "show", images, ":"], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith(b"0: 0")
        process.stdout.close()
        assert process.wait(60) == 0


@pytest.mark.parametrize(
    ("header", "nbytes"),
    [
        (H(8, 1, 20_000, 20_000), 4 * 10**8),
        (H(8, 1, 1, 10**8), 10**8),
        (H(8, 1, 10**8, 1), 10**8),
        (H(8, 1, 10**8), 10**8),
        (H(11, 1, 8000, 8000), 2 * 64 * 10**6),
    ],
)
@pytest.mark.parametrize("graphics", ["256", "sixel"])
def test_one_huge_item(idx: Any, folder: Path, header: bytes, nbytes: int, graphics: str) -> None:
    file = sparse(folder / "huge.idx", header, nbytes)
    code, out, _ = idx("show", file, "--graphics", graphics)
    assert code == 0
    assert out.count("\n") <= 24
    assert len(out) < 100_000


ODD = {
    "scalar": np.array(7, "u1"),
    "no items": np.zeros((0, 28, 28), "u1"),
    "no pixels": np.zeros((3, 0, 28), "u1"),
    "one pixel": np.arange(30, dtype="u1").reshape(30, 1, 1),
    "constant": np.full((4, 9, 9), 3.5, "f4"),
    "nan": np.full((4, 9, 9), np.nan, "f4"),
    "inf": np.array([[[np.inf, -np.inf], [0, np.nan]]], "f8"),
    "range": np.array([[[np.finfo("f8").max, np.finfo("f8").min]]]),
    "rgb": np.zeros((3, 4, 4, 3), "u1"),
    "slices": np.zeros((2, 3, 4, 5, 6), "i2"),
    "64 dimensions": np.zeros((1,) * 64, "u1"),
    "vectors": np.arange(40.0).reshape(2, 20),
    "numbers": np.arange(40, dtype="i4"),
}


@pytest.mark.parametrize("name", ODD)
def test_odd_arrays_in_ten_columns(idx: Any, folder: Path, name: str) -> None:
    idxfile.write(folder / "odd.idx", ODD[name])
    for style in ("auto", "histogram", "heatmap"):
        for graphics in ("kitty", "sixel", "truecolour", "ascii"):
            words = ["--width", "10", "--graphics", graphics, "--as", style]
            code, out, err = idx("show", "odd.idx", *words)
            assert (code, err) == (0, "")
            assert out
            if graphics == "ascii":
                assert max(map(len, out.splitlines())) <= 10


def test_more_dimensions_than_an_array_has(idx: Any, folder: Path) -> None:
    (folder / "many.idx").write_bytes(H(8, *[1] * 255) + b"\7")
    assert idx("show", "many.idx")[0] == 4


@pytest.mark.parametrize("graphics", ["kitty", "256", "ascii"])
def test_names_of_classes_never_steer_the_terminal(idx: Any, folder: Path, graphics: str) -> None:
    evil = ["\x1b]0;evil\x07", "\x9b31m\x1b_Ga=d\x1b\\", "a\rb"]
    idxfile.Dataset(digits(3), np.arange(3), classes=evil).save(folder)
    code, out, _ = idx("show", ".", "--graphics", graphics, "--columns", "2", ":")
    assert code == 0
    assert "\x1b]" not in out
    assert "\x9b" not in out
    assert "a=d\x1b" not in out
    assert "\\x1b]0;evil\\x07" in out


def test_a_broken_file_is_told(idx: Any, folder: Path) -> None:
    data = gzip.compress(idx_bytes(digits(500)))
    (folder / "cut.gz").write_bytes(data[: len(data) // 2])
    code, out, err = idx("show", "cut.gz")
    assert (code, out) == (3, "")
    assert "cut.gz" in err
