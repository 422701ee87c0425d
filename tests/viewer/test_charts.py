"""Histograms, heat maps, means and comparisons in the terminal."""

import re

import numpy as np
import pytest

import idxfile
from idxfile import show
from idxfile.errors import PairError
from idxfile.viewer.cells import MODES
from sight import ESC, bare, digits, width_of

ASCII = {"graphics": "ascii"}


def test_the_histogram_of_labels_is_a_bar_for_each_class():
    labels = np.array([3] * 4 + [1] * 2 + [7], "u1")
    assert show(labels, style="histogram", width=20, **ASCII) == (
        "1  2  #######\n3  4  ##############\n7  1  ####"
    )
    named = show(labels, style="histogram", width=24, classes={1: "cat", 3: "ねこ"}, **ASCII)
    assert named.split("\n")[0].startswith(" ")
    assert "cat  2  " in named
    lazy = idxfile.open(idxfile.encode(labels))
    assert show(lazy, style="histogram", width=20, **ASCII).startswith("1  2  #")


def test_many_different_numbers_are_counted_in_ranges():
    lines = show(np.arange(2000), style="histogram", **ASCII).split("\n")
    assert len(lines) == 20
    assert lines[0].split()[:4] == ["0", "to", "99.95", "100"]
    counts = [int(line.split()[3].replace(",", "")) for line in lines]
    assert sum(counts) == 2000
    assert set(counts) == {100}
    floats = np.array([0.5, np.nan, np.inf, -np.inf, 0.5, 0.5])
    assert show(floats, style="histogram", **ASCII).split()[:2] == ["0.5", "3"]
    assert show(floats[1:4], style="histogram", **ASCII).split() == ["0", "0"]
    top = np.finfo(np.float64).max
    wide = show(np.array([-top, 0, top]), style="histogram", **ASCII).split("\n")
    assert len(wide) == 20
    assert wide[0].split()[:3] == ["-1.798e+308", "to", "-1.618e+308"]


def test_the_histogram_of_an_item_is_a_line():
    vectors = np.array([[0, 0, 0, 0, 9], [0, 3, 6, 9, 9]])
    one, two = (
        line.split("  ", 1)[1] for line in show(vectors, style="histogram", **ASCII).split("\n")
    )
    assert re.fullmatch(r"0 # +\. 9", one)
    assert re.fullmatch(r"0 - +- +- +# 9", two.replace("=", "-"))
    pictures = digits(3)
    for line in show(pictures, [1, 2, 3], style="histogram", **ASCII).split("\n"):
        assert re.match(r"\d: \d  0 .* 127$", line)


def test_vectors_are_the_rows_of_a_heat_map():
    matrix = np.arange(20.0).reshape(4, 5)
    text = show(matrix, style="heatmap", graphics="unicode")
    assert text.split("\n")[0] == "0 to 3"
    assert len(text.split("\n")) == 3
    coloured = show(matrix, style="heatmap", graphics="truecolour", width=30)
    assert f"{ESC}38;2;68;1;84" in coloured
    last = bare(coloured.split("\n")[-1])
    assert re.fullmatch("0 ▀{20,} 19", last)
    many = show(np.zeros((150, 3), "u1"), items=slice(None), style="heatmap", graphics="unicode")
    assert [line for line in many.split("\n") if " to " in line] == [
        "0 to 63",
        "64 to 127",
        "128 to 149",
    ]
    first = show(np.zeros((150, 3), "u1"), height=20, style="heatmap", graphics="unicode")
    assert first.split("\n")[0] == "0 to 27"
    assert first.endswith("122 more")


def test_matrices_of_measurements_are_heat_maps_and_bytes_are_pictures():
    values = np.linspace(-1, 1, 12).reshape(1, 3, 4)
    assert bare(show(values, graphics="truecolour")).endswith(" 1")
    assert bare(show(values, graphics="truecolour")).split("\n")[-1].startswith("-1 ▀")
    grey = show((values * 100).astype("u1"), graphics="truecolour")
    assert {
        red == green == blue for red, green, blue in re.findall(r"2;(\d+);(\d+);(\d+)", grey)
    } == {True}
    assert show(values, graphics="truecolour", colours="grey").count("\n") == 2
    heat = show((values * 100).astype("u1"), graphics="truecolour", style="heatmap")
    assert bare(heat.split("\n")[-1]).startswith("0 ▀")


def test_inverting_changes_the_ends():
    picture = np.array([[[0, 255]]], np.uint8)
    assert show(picture, graphics="unicode", invert=True) == "0\n▀"
    colours = np.zeros((1, 1, 1, 3), np.uint8)
    assert f"{ESC}38;2;255;255;255" in show(colours, graphics="truecolour", invert=True)


def test_both_labels_are_told_where_they_differ():
    images = digits(3, (2, 20))
    text = show(images, [1, 2, 3], against=[1, 5, 3], width=100, **ASCII)
    assert text.split("\n")[0].split("  ")[0] == "0: 1"
    assert "1: 2, said 5" in text
    assert "2: 3 " in text or "2: 3\n" in text
    named = show(images, [1, 2, 3], [1], against=[1, 5, 3], classes={2: "two", 5: "five"}, **ASCII)
    assert named.startswith("1: two, said five")
    with pytest.raises(PairError, match="3 items and 2 labels"):
        show(images, [1, 2, 3], against=[1, 2])


def test_the_mean_item_of_each_class_in_the_terminal():
    images = np.array([[[0, 0]], [[8, 8]], [[2, 4]], [[4, 8]]], np.uint8)
    text = show(images, [7, 3, 7, 7], mean=True, graphics="truecolour", classes={3: "a", 7: "b"})
    assert bare(text).split("\n")[0].split() == ["a", "b"]
    assert f"{ESC}38;2;8;8;8;49m" in text
    assert f"{ESC}38;2;2;2;2;49m▀{ESC}38;2;4;4;4m▀" in text
    with pytest.raises(ValueError, match="needs labels"):
        show(images, mean=True)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("style", ["histogram", "heatmap"])
@pytest.mark.parametrize(
    "shape", [(0,), (9,), (0, 4), (70, 4), (3, 0), (2, 5, 6), (2, 0, 3), (2, 3, 4, 3)]
)
def test_every_style_keeps_to_the_width(mode, style, shape):
    images = np.random.default_rng(0).normal(size=shape)
    images[images > 1.5] = np.nan
    for width in (1, 3, 10, 80):
        for given in (images, np.full(shape, 7, "i2")):
            text = show(given, width=width, graphics=mode, style=style)
            if MODES[mode].graphic is None:
                assert all(width_of(line) <= width for line in text.split("\n"))
            assert text


def test_wrong_styles_and_colours_are_told():
    with pytest.raises(ValueError, match="style must be auto, histogram, heatmap, not 'x'"):
        show(digits(1), style="x")
    with pytest.raises(ValueError, match="colours must be grey"):
        show(digits(1), colours="x", graphics="256")
    with pytest.raises(ValueError, match="graphics must be auto, kitty"):
        show(digits(1), graphics="x")
