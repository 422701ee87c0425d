"""Text for terminals: half blocks, numbers, sparklines."""

import re

import numpy as np
import pytest

import idxfile
from idxfile import sheet, show
from idxfile.header import IDX_TYPE_NAMES
from idxfile.viewer.cells import MODES
from idxfile.viewer.screen import graphics_mode
from sight import ESC, bare, digits, width_of

TEXT = [name for name, mode in MODES.items() if not mode.graphic]


# The terminal


def test_truecolour_to_the_last_byte():
    picture = np.array([[[0, 255], [255, 255], [9, 9]]], np.uint8)
    assert show(picture, graphics="truecolour") == (
        f"{ESC}2m0{ESC}0m\n"
        f"{ESC}38;2;0;0;0;48;2;255;255;255m▀{ESC}38;2;255;255;255m▀{ESC}0m\n"
        f"{ESC}38;2;9;9;9;49m▀▀{ESC}0m"
    )


def test_256_colours_to_the_last_byte():
    picture = np.array([[[0, 8, 128, 255], [0, 8, 128, 255]]], np.uint8)
    assert show(picture, ["x"], graphics="256") == (
        f"{ESC}2m0:{ESC}0m{ESC}1m x{ESC}0m\n"
        f"{ESC}38;5;16;48;5;16m▀{ESC}38;5;232;48;5;232m▀"
        f"{ESC}38;5;244;48;5;244m▀{ESC}38;5;231;48;5;231m▀{ESC}0m"
    )


def test_256_colours_are_the_nearest_of_the_palette():
    levels = [0, 95, 135, 175, 215, 255]
    palette = [(r, g, b) for r in levels for g in levels for b in levels]
    palette = np.array(palette + [(8 + 10 * n,) * 3 for n in range(24)])
    colours = np.random.default_rng(3).integers(0, 256, (1, 40, 3)).astype(np.uint8)
    (names,) = MODES["256"].colours(colours)
    for colour, name in zip(colours[0].astype(int), names, strict=True):
        distances = ((palette - colour) ** 2).sum(axis=1)
        assert distances[int(name.removeprefix("8;5;")) - 16] == distances.min()


def test_colour_pictures():
    picture = np.array([[[[255, 0, 0]], [[0, 0, 255]]]], np.uint8)
    assert f"{ESC}38;2;255;0;0;48;2;0;0;255m▀{ESC}0m" in show(picture, graphics="truecolour")
    assert f"{ESC}38;5;196;48;5;21m▀{ESC}0m" in show(picture, graphics="256")
    assert show(picture, graphics="unicode") == "0\n░"


def test_without_colour_a_cell_is_what_looks_most_like_its_pixels():
    picture = np.array([[[0, 255, 0, 255, 64, 128, 190], [0, 0, 255, 255, 64, 128, 190]]], "u1")
    assert show(picture, graphics="unicode") == "0\n ▀▄█░▒▓"
    assert show(picture, graphics="ascii") == '0\n "_@:+#'
    assert show(picture[:, :1, :4], graphics="unicode") == "0\n ▀ ▀"


def test_captions_are_aligned_with_their_pictures():
    images = np.full((5, 2, 6), 255, np.uint8)
    assert show(images, [3, "cat", "ねこ", "a long name", ""], width=46, graphics="unicode") == (
        "0: 3            1: cat          2: ねこ\n"
        "██████          ██████          ██████\n"
        "\n"
        "3: a long name  4\n"
        "██████          ██████"
    )
    assert show(images[:3], [3, "cat", "ねこ"], width=14, columns=2, graphics="unicode") == (
        "0: 3    1: cat\n██████  ██████\n\n2: ね…\n██████"
    )


def test_class_names_stand_for_labels():
    def caption(labels, classes):
        images = np.zeros((len(labels), 0, 9))
        return show(images, labels, graphics="ascii", classes=classes)

    assert caption([1, 0, 2], ["zero", "one"]) == "0: one     1: zero    2: 2"
    assert caption(np.array([1, 4], "u1"), {4: "four"}) == "0: 1       1: four"
    assert caption([-1], ["zero", "one"]) == "0: -1"
    assert caption(["one", 1.5], ["zero"]) == "0: one     1: 1.5"


@pytest.mark.parametrize("mode", TEXT)
def test_labels_never_steer_the_terminal(mode):
    text = show(digits(1), ["\x1b[31m\rA\nB\x9b\u202e"], graphics=mode)
    assert bare(text).split("\n")[0].startswith("0: \\x1b[31m\\rA\\nB\\x9b")
    assert len(text.split("\n")) == 15


def test_ascii_is_ascii():
    text = show(digits(3), ["ねこ", "é", "x" * 90], graphics="ascii")
    assert text.isascii()
    assert show(digits(3, (50,)), graphics="ascii").isascii()


SHAPES = [
    *[(), (0,), (40,), (0, 9), (7, 0), (7, 5), (7, 300)],
    *[(0, 28, 28), (2, 0, 5), (2, 5, 0), (7, 28, 28), (2, 60, 90), (2, 1, 300), (2, 300, 1)],
    *[(2, 0, 3, 4), (3, 2, 5, 5), (3, 9, 8, 3)],
]


@pytest.mark.parametrize("mode", TEXT)
@pytest.mark.parametrize("shape", SHAPES)
def test_no_line_is_wider_than_asked_nor_bleeds(mode, shape):
    images = np.random.default_rng(0).normal(size=shape).astype("float32")
    names = ["ねこ" * 9, "a", "é" * 50, "", "T-shirt/top", "x y", "9"]
    labels = [names[n % 7] for n in range(shape[0])] if shape else None
    for width in (1, 3, 5, 17, 80, 200):
        for kwargs in ({}, {"columns": 3}, {"scale": 2}, {"items": slice(None)}):
            for line in show(images, labels, width=width, graphics=mode, **kwargs).split("\n"):
                assert width_of(line) <= width
                assert line == line.rstrip(" ")
                codes = re.findall(r"\x1b\[([0-9;]*)m", line)
                assert not codes or codes[-1] == "0"


@pytest.mark.parametrize("mode", TEXT)
@pytest.mark.parametrize("name", IDX_TYPE_NAMES)
def test_every_type_is_shown_alike(mode, name):
    images = np.arange(24).reshape(2, 3, 4).astype(name)
    window = (0, 23)
    grey = {"graphics": mode, "window": window, "colours": "grey"}
    assert show(images, **grey) == show(images.astype("float64"), **grey)


def test_columns_make_pictures_smaller():
    lines = show(np.full((7, 28, 28), 255, "u1"), columns=5, graphics="unicode").split("\n")
    assert lines[0].split() == ["0", "1", "2", "3", "4"]
    assert lines[1] == "  ".join(["█" * 14] * 5)
    assert len(lines) == 8 + 1 + 8


def test_scale_makes_pictures_larger():
    assert show([[[0, 1]]], scale=2, graphics="unicode") == "0\n  ██"


def test_items_wider_than_the_screen_are_made_smaller():
    picture = np.zeros((1, 8, 40), np.uint8)
    picture[:, :, 20:] = 255
    assert show(picture, width=10, graphics="unicode") == "0\n     █████"


def test_the_height_limits_only_what_was_not_asked_for():
    images = digits(100)
    text = show(images, width=80, height=50, graphics="unicode")
    assert len(text.split("\n")) <= 50
    assert text.endswith("\n\n94 more")
    assert show(images, height=1, graphics="unicode").endswith("\n\n96 more")
    assert len(show(images, items=range(100), width=80, graphics="unicode").split("\n")) == 799
    assert "more" not in show(images, items=slice(None), graphics="unicode")
    assert "more" not in show(images[:6], graphics="unicode")
    volumes = digits(9, (4, 5, 5))
    text = show(volumes, height=5, width=80, graphics="ascii")
    assert text.split()[:5] == ["0[0]", "0[1]", "0[2]", "0[3]", "1[0]"]
    assert text.endswith("\n\n7 more")


def test_numbers_stand_in_rows():
    text = show(np.arange(9, 15) * 7, width=20, graphics="ascii")
    assert text == " 0   1   2   3   4\n63  70  77  84  91\n\n 5\n98"
    assert show(np.array([1.5, np.nan, -np.inf], "f4"), graphics="ascii") == (
        "   0     1     2\n 1.5   nan  -inf"
    )
    assert show(np.array([5, 0], "u1"), graphics="256") == (
        f"{ESC}2m0{ESC}0m  {ESC}2m1{ESC}0m\n{ESC}1m5{ESC}0m  {ESC}1m0{ESC}0m"
    )
    assert show(np.array(42, "i4")) == "42"
    assert show(idxfile.open(bytes.fromhex("0000080007"))) == "7"


def test_short_vectors_are_numbers_and_long_ones_sparklines():
    rows = np.array([[5, -2000, 3], [10, 4, 77]], "i2")
    assert show(rows, ["a", "bc"], graphics="unicode") == (
        "0: a    5  -2000   3\n1: bc  10      4  77"
    )
    assert show(rows, width=9, graphics="unicode") == "0  ▇▁▇\n1  ▇▇▇"
    line = np.arange(21.0)
    line[3:6] = np.nan
    assert show([line, line[::-1]], graphics="unicode") == (
        "0  ▁▁▁   ▃▃▃▄▄▄▅▅▅▆▆▆▇▇▇\n1  ▇▇▇▆▆▆▅▅▅▄▄▄▃▃▃   ▁▁▁"
    )
    assert show([line], graphics="ascii") == "0  ___   ---===+++***###"


def test_many_numbers_of_different_length_keep_their_captions_aligned():
    lines = show(digits(12, (20,)), [7] * 12, graphics="ascii").split("\n")
    assert {line.index(":") for line in lines} == {2}


def test_nothing_to_show():
    for shape in ((0,), (0, 3), (0, 28, 28), (5, 0, 28, 28)):
        assert show(np.zeros(shape), graphics="ascii") == "nothing to show"
    assert show(digits(3), items=[], graphics="ascii") == "nothing to show"
    assert show(np.zeros((2, 0, 28)), graphics="ascii").split() == ["0", "1"]


def test_wrong_arguments_are_told():
    for kwargs in ({"width": 0}, {"scale": 0}, {"columns": 0}, {"graphics": "green"}):
        with pytest.raises(ValueError, match=next(iter(kwargs))):
            show(digits(1), **kwargs)
    for kwargs in ({"scale": 0}, {"columns": 0}):
        with pytest.raises(ValueError, match="at least 1"):
            sheet(digits(1), **kwargs)


@pytest.mark.parametrize(
    ("environ", "isatty", "mode"),
    [
        ({"TERM": "xterm", "COLORTERM": "truecolor"}, True, "truecolour"),
        ({"TERM": "xterm", "COLORTERM": "24bit"}, True, "truecolour"),
        ({"TERM": "xterm-256color"}, True, "256"),
        ({"TERM": "xterm", "COLORTERM": "yes", "NO_COLOR": ""}, True, "256"),
        ({"TERM": "xterm", "COLORTERM": "truecolor", "NO_COLOR": "1"}, True, "ascii"),
        ({"TERM": "xterm", "NO_COLOR": "1", "LANG": "en_GB.UTF-8"}, True, "unicode"),
        ({"TERM": "xterm", "COLORTERM": "truecolor", "LANG": "C.utf8"}, False, "unicode"),
        ({"TERM": "dumb", "LANG": "C.UTF-8"}, True, "unicode"),
        ({"TERM": "dumb", "LANG": "C.UTF-8", "LC_ALL": "C"}, True, "ascii"),
        ({}, True, "ascii"),
        ({}, False, "ascii"),
    ],
)
def test_the_environment_says_how_to_draw(environ, isatty, mode):
    assert graphics_mode(environ, isatty) == mode


def test_auto_asks_the_environment(monkeypatch):
    monkeypatch.setenv("LC_ALL", "C.UTF-8")
    assert show([[[0, 1]]]) == "0\n ▀"
    monkeypatch.setenv("LC_ALL", "C")
    assert show([[[0, 1]]]) == '0\n "'
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("COLORTERM", "truecolor")
    assert f"{ESC}38;2;253;231;37m" in show([[[0, 1]]])
    monkeypatch.setenv("NO_COLOR", "1")
    assert show([[[0, 1]]]) == '0\n "'
