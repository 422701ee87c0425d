"""The wing `viewer/` as a whole: its rooms are small and share the decoder and widths below."""

import re
import struct
import unicodedata
import zlib

import numpy as np
import pytest

import idxfile
from idxfile.errors import PairError, UnsupportedError
from idxfile.header import ELEMENT_TYPES, IDX_TYPE_NAMES
from idxfile.viewer import font, png, sheet, show
from idxfile.viewer.cells import MODES
from idxfile.viewer.pixels import area_mean, as_pixels, spread, window_of
from idxfile.viewer.terminal import colour_mode

ESC = "\x1b["


def decoded(data):
    """The pixels of a PNG, by a decoder that shares nothing with the encoder."""
    assert data[:8] == bytes((137, 80, 78, 71, 13, 10, 26, 10))
    chunks, at = {}, 8
    while at < len(data):
        (length,) = struct.unpack_from(">I", data, at)
        name, body = data[at + 4 : at + 8], data[at + 8 : at + 8 + length]
        (crc,) = struct.unpack_from(">I", data, at + 8 + length)
        assert crc == zlib.crc32(data[at + 4 : at + 8 + length])
        assert name not in chunks
        chunks[name] = body
        at += 12 + length
    assert list(chunks) == [b"IHDR", b"IDAT", b"IEND"]
    assert chunks[b"IEND"] == b""
    columns, rows, depth, colour, *zeros = struct.unpack(">IIBBBBB", chunks[b"IHDR"])
    assert depth == 8
    assert zeros == [0, 0, 0]
    shape = {0: (rows, columns), 2: (rows, columns, 3)}[colour]
    stream = zlib.decompressobj()
    lines = np.frombuffer(stream.decompress(chunks[b"IDAT"]), np.uint8).reshape(rows, -1)
    assert stream.eof
    assert not stream.unused_data
    assert not lines[:, 0].any()
    return lines[:, 1:].reshape(shape)


def bare(text):
    """Text without its escape sequences, which are all colours and styles."""
    without = re.sub(r"\x1b\[[0-9;]*m", "", text)
    assert without.replace("\n", "").isprintable()
    return without


def width_of(line):
    wide = sum(unicodedata.east_asian_width(c) in "WF" for c in bare(line))
    return len(bare(line)) + wide - sum(bool(unicodedata.combining(c)) for c in line)


def digits(count=3, shape=(28, 28), dtype="uint8", seed=0):
    return np.random.default_rng(seed).integers(0, 128, (count, *shape)).astype(dtype)


# Pixels


@pytest.mark.parametrize("name", IDX_TYPE_NAMES)
def test_every_type_becomes_grey(name):
    values = np.array([[0, 50], [100, 127]], name)
    expected = [[0, 50], [100, 127]] if name == "uint8" else [[0, 100], [201, 255]]
    assert as_pixels(values, window_of([values])).tolist() == expected
    stored = values.astype(values.dtype.newbyteorder())
    assert as_pixels(stored, window_of([stored])).tolist() == expected


@pytest.mark.parametrize("name", [row.name for row in ELEMENT_TYPES if row.name[0] != "f"])
def test_the_whole_range_of_every_integer_type(name):
    values = np.array([np.iinfo(name).min, np.iinfo(name).max], name)
    assert as_pixels(values, window_of([values])).tolist() == [0, 255]


@pytest.mark.parametrize("name", ["float32", "float64"])
def test_floats_with_their_whole_range_and_none(name):
    top = np.finfo(name).max
    values = np.array([-top, 0, top, np.nan, np.inf, -np.inf], name)
    assert as_pixels(values, window_of([values])).tolist() == [0, 128, 255, 0, 255, 0]
    none = np.array([np.nan, np.inf, -np.inf], name)
    assert spread([none]) == (0, 0)
    assert as_pixels(none, spread([none])).tolist() == [0, 255, 0]
    tiny = float(np.finfo(name).tiny)
    assert as_pixels(np.array([0, tiny, top], name), (0, tiny)).tolist() == [0, 255, 255]


def test_a_window_cuts_inverts_and_may_be_of_one_value():
    values = np.array([0, 10, 20], np.uint8)
    assert as_pixels(values, (5, 15)).tolist() == [0, 128, 255]
    assert as_pixels(values, (255, 0)).tolist() == [255, 245, 235]
    constant = np.full(3, 7.0)
    assert as_pixels(constant, window_of([constant])).tolist() == [0, 0, 0]
    assert as_pixels(values, (0, 255)) is values
    assert window_of([]) == (0, 255)


def test_area_mean_is_exact_where_sides_divide_and_keeps_the_mean_elsewhere():
    picture = digits(1)[0]
    halves = area_mean(picture, 14, 14)
    assert np.array_equal(halves, np.rint(picture.reshape(14, 2, 14, 2).mean(axis=(1, 3))))
    assert abs(area_mean(picture, 9, 13).mean() - picture.mean()) < 1
    assert area_mean(np.full((5, 7, 3), 200, np.uint8), 2, 3).tolist() == [[[200] * 3] * 3] * 2
    assert area_mean(np.zeros((0, 0), np.uint8), 0, 0).shape == (0, 0)


# PNG


@pytest.mark.parametrize("shape", [(1, 1), (3, 5), (28, 28), (1, 1, 3), (7, 2, 3)])
def test_png_decodes_to_its_pixels(shape):
    pixels = np.random.default_rng(1).integers(0, 256, shape).astype(np.uint8)
    assert np.array_equal(decoded(png.encode(pixels)), pixels)
    assert np.array_equal(decoded(png.encode(pixels.swapaxes(0, 1))), pixels.swapaxes(0, 1))


def test_png_of_nothing_is_refused():
    with pytest.raises(ValueError, match="at least one pixel"):
        png.encode(np.zeros((0, 5), np.uint8))


# The font


def test_glyphs_are_all_different_and_unknown_characters_are_a_box():
    glyphs = {font.drawn(chr(n)).tobytes() for n in range(32, 127)}
    assert len(glyphs) == 95
    assert font.drawn("é").tobytes() == font.drawn("あ").tobytes()
    assert font.drawn("\n").tobytes() == font.drawn("あ").tobytes()
    assert font.drawn("").shape == (8, 0)


# Sheets


def test_a_small_sheet_pixel_by_pixel():
    images = np.array([[[1, 2]], [[3, 4]], [[5, 6]]], np.uint8)
    page = decoded(sheet(images, columns=2, scale=1))
    expected = np.full((12 + 1 + 10 + 1 + 12, 12 + 2 + 10 + 2 + 12), 255)
    expected[12, 12:14], expected[12, 24:26], expected[23, 12:14] = (1, 2), (3, 4), (5, 6)
    assert np.array_equal(page, expected)


def test_labels_stand_above_their_pictures():
    page = decoded(sheet(digits(2), [3, "T-shirt"], columns=2, scale=2))
    assert page.shape == (12 + 8 + 3 + 56 + 12, 12 + 56 + 10 + 56 + 12)
    for left, caption in ((12, "3"), (78, "T-shirt")):
        ink = font.drawn(caption)
        assert np.array_equal(page[12:20, left : left + ink.shape[1]] == 64, ink)
    assert (page[12:20, 30:78] == 255).all()
    assert (page[20:23] == 255).all()


def test_a_sheet_grows_with_its_scale_and_takes_a_background():
    small = decoded(sheet(digits(1), [5], scale=2))
    large = decoded(sheet(digits(1), [5], scale=4))
    assert np.array_equal(small.repeat(2, 0).repeat(2, 1), large)
    dark = decoded(sheet(digits(1), [5], background=20))
    assert dark[0, 0] == 20
    assert (dark == 192).any()


def test_a_long_caption_is_cut():
    page = decoded(sheet(digits(1, (4, 4)), ["x" * 500], scale=1))
    assert page.shape[1] < 200


@pytest.mark.parametrize(
    ("count", "columns"), [(1, 1), (2, 2), (4, 2), (5, 3), (10, 5), (17, 6), (100, 10)]
)
def test_a_sheet_is_about_square(count, columns):
    page = decoded(sheet(np.zeros((count, 6, 6)), scale=1))
    assert page.shape[1] == 24 + 16 * columns - 10
    assert page.shape[0] == 24 + 16 * -(-count // columns) - 10


def test_sheet_draws_the_first_hundred_or_what_is_asked_for():
    images = np.arange(300, dtype=np.uint8)[:, None, None] + np.zeros((1, 1), np.uint8)
    assert set(np.unique(decoded(sheet(images, background=200)))) == {*range(100), 200}
    every = decoded(sheet(images[:256], items=slice(None), background=0))
    assert set(np.unique(every)) == set(range(256))
    for items in (7, [7], slice(7, 8), np.arange(300) == 7, -293):
        assert set(np.unique(decoded(sheet(images, items=items)))) == {7, 255}
    with pytest.raises(IndexError):
        sheet(images, items=[300])
    with pytest.raises(IndexError):
        sheet(images, items=[True, False])


def test_colour_stays_colour_and_slices_stay_together():
    colours = np.random.default_rng(2).integers(0, 256, (4, 5, 6, 3)).astype(np.uint8)
    page = decoded(sheet(colours, columns=4, scale=1))
    assert page.shape == (29, 78, 3)
    assert np.array_equal(page[12:17, 28:34], colours[1])
    pairs = decoded(sheet(digits(3, (2, 5, 6)), scale=1))
    assert pairs.shape == (12 + 5 * 3 + 2 * 10 + 12, 12 + 6 * 2 + 10 + 12)
    planes = decoded(sheet(digits(2, (5, 6, 1)), columns=2, scale=1))
    assert planes.shape == (29, 46)


@pytest.mark.parametrize("shape", [(0, 28, 28), (5, 0, 28), (5, 28, 0), (5, 0, 28, 28), (3, 0, 0)])
def test_nothing_makes_an_empty_page(shape):
    page = decoded(sheet(np.zeros(shape, np.uint8)))
    assert (page == 255).all()
    assert page.size


@pytest.mark.parametrize("shape", [(), (5,), (5, 784)])
def test_numbers_and_vectors_are_no_pictures(shape):
    with pytest.raises(UnsupportedError, match="a sheet shows pictures"):
        sheet(np.zeros(shape, np.uint8))


def test_the_mean_item_of_each_class():
    images = np.array([[[0, 0]], [[8, 8]], [[2, 4]], [[4, 8]]], np.uint8)
    page = decoded(
        sheet(images, [7, 3, 7, 7], mean=True, scale=1, window=(0, 255), classes={3: "a", 7: "b"})
    )
    assert page[23, 12:14].tolist() == [8, 8]
    right = 12 + font.drawn("a").shape[1] + 10
    assert page[23, right : right + 2].tolist() == [2, 4]
    ink = font.drawn("b")
    assert np.array_equal(page[12:20, right : right + ink.shape[1]] == 64, ink)
    with pytest.raises(ValueError, match="needs labels"):
        sheet(images, mean=True)


@pytest.mark.parametrize("name", IDX_TYPE_NAMES)
def test_sheets_have_deterministic_bytes(name):
    images = digits(12, dtype=name)
    data = sheet(images, np.arange(12))
    assert data == sheet(images.copy(order="F"), list(range(12)))
    assert data == sheet(images.astype(images.dtype.newbyteorder()), np.arange(12.0))
    assert data == sheet(idxfile.open(idxfile.encode(images)), [str(n) for n in range(12)])


@pytest.mark.parametrize("draw", [sheet, show])
def test_labels_must_be_as_many_as_items(draw):
    with pytest.raises(PairError, match="3 items and 2 labels") as caught:
        draw(digits(3), [1, 2])
    assert (caught.value.found, caught.value.expected) == (2, 3)


@pytest.mark.parametrize("draw", [sheet, show])
def test_only_what_is_drawn_is_read(draw):
    class Lazy:
        shape = (2**32 - 1, 4, 4)
        read = ()

        def __len__(self):
            return self.shape[0]

        def __getitem__(self, item):
            self.read = (*self.read, item)
            return np.zeros(self.shape[1:])

    images, labels = Lazy(), Lazy()
    labels.shape = (2**32 - 1,)
    draw(images, labels, [5, 2**32 - 2, -2])
    assert images.read == labels.read == (5, 2**32 - 2, 2**32 - 3)
    images.read = ()
    draw(images)
    assert images.read == tuple(range(len(images.read)))
    assert 1 <= len(images.read) <= 250


# The terminal


def test_truecolour_to_the_last_byte():
    assert show([[[0, 255], [255, 255], [9, 9]]], colour="truecolour", window=(0, 255)) == (
        f"{ESC}2m0{ESC}0m\n"
        f"{ESC}38;2;0;0;0;48;2;255;255;255m▀{ESC}38;2;255;255;255m▀{ESC}0m\n"
        f"{ESC}38;2;9;9;9;49m▀▀{ESC}0m"
    )


def test_256_colours_to_the_last_byte():
    picture = np.array([[[0, 8, 128, 255], [0, 8, 128, 255]]], np.uint8)
    assert show(picture, ["x"], colour="256") == (
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
    assert f"{ESC}38;2;255;0;0;48;2;0;0;255m▀{ESC}0m" in show(picture, colour="truecolour")
    assert f"{ESC}38;5;196;48;5;21m▀{ESC}0m" in show(picture, colour="256")
    assert show(picture, colour="unicode") == "0\n░"


def test_without_colour_a_cell_is_what_looks_most_like_its_pixels():
    picture = np.array([[[0, 255, 0, 255, 64, 128, 190], [0, 0, 255, 255, 64, 128, 190]]], "u1")
    assert show(picture, colour="unicode") == "0\n ▀▄█░▒▓"
    assert show(picture, colour="ascii") == '0\n "_@:+#'
    assert show(picture[:, :1, :4], colour="unicode") == "0\n ▀ ▀"


def test_captions_are_aligned_with_their_pictures():
    images = np.full((5, 2, 6), 255, np.uint8)
    assert show(images, [3, "cat", "ねこ", "a long name", ""], width=46, colour="unicode") == (
        "0: 3            1: cat          2: ねこ\n"
        "██████          ██████          ██████\n"
        "\n"
        "3: a long name  4\n"
        "██████          ██████"
    )
    assert show(images[:3], [3, "cat", "ねこ"], width=14, columns=2, colour="unicode") == (
        "0: 3    1: cat\n██████  ██████\n\n2: ね…\n██████"
    )


def test_class_names_stand_for_labels():
    def caption(labels, classes):
        images = np.zeros((len(labels), 0, 9))
        return show(images, labels, colour="ascii", classes=classes)

    assert caption([1, 0, 2], ["zero", "one"]) == "0: one     1: zero    2: 2"
    assert caption(np.array([1, 4], "u1"), {4: "four"}) == "0: 1       1: four"
    assert caption([-1], ["zero", "one"]) == "0: -1"
    assert caption(["one", 1.5], ["zero"]) == "0: one     1: 1.5"


@pytest.mark.parametrize("mode", MODES)
def test_labels_never_steer_the_terminal(mode):
    text = show(digits(1), ["\x1b[31m\rA\nB\x9b\u202e"], colour=mode)
    assert bare(text).split("\n")[0].startswith("0: \\x1b[31m\\rA\\nB\\x9b")
    assert len(text.split("\n")) == 15


def test_ascii_is_ascii():
    text = show(digits(3), ["ねこ", "é", "x" * 90], colour="ascii")
    assert text.isascii()
    assert show(digits(3, (50,)), colour="ascii").isascii()


SHAPES = [
    *[(), (0,), (40,), (0, 9), (7, 0), (7, 5), (7, 300)],
    *[(0, 28, 28), (2, 0, 5), (2, 5, 0), (7, 28, 28), (2, 60, 90), (2, 1, 300), (2, 300, 1)],
    *[(2, 0, 3, 4), (3, 2, 5, 5), (3, 9, 8, 3)],
]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("shape", SHAPES)
def test_no_line_is_wider_than_asked_nor_bleeds(mode, shape):
    images = np.random.default_rng(0).normal(size=shape).astype("float32")
    names = ["ねこ" * 9, "a", "é" * 50, "", "T-shirt/top", "x y", "9"]
    labels = [names[n % 7] for n in range(shape[0])] if shape else None
    for width in (1, 3, 5, 17, 80, 200):
        for kwargs in ({}, {"columns": 3}, {"scale": 2}, {"items": slice(None)}):
            for line in show(images, labels, width=width, colour=mode, **kwargs).split("\n"):
                assert width_of(line) <= width
                assert line == line.rstrip(" ")
                codes = re.findall(r"\x1b\[([0-9;]*)m", line)
                assert not codes or codes[-1] == "0"


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", IDX_TYPE_NAMES)
def test_every_type_is_shown_alike(mode, name):
    images = np.arange(24).reshape(2, 3, 4).astype(name)
    window = (0, 23)
    assert show(images, colour=mode, window=window) == show(
        images.astype("float64"), colour=mode, window=window
    )


def test_columns_make_pictures_smaller():
    lines = show(np.full((7, 28, 28), 255, "u1"), columns=5, colour="unicode").split("\n")
    assert lines[0].split() == ["0", "1", "2", "3", "4"]
    assert lines[1] == "  ".join(["█" * 14] * 5)
    assert len(lines) == 8 + 1 + 8


def test_scale_makes_pictures_larger():
    assert show([[[0, 1]]], scale=2, colour="unicode") == "0\n  ██"


def test_items_wider_than_the_screen_are_made_smaller():
    picture = np.zeros((1, 8, 40), np.uint8)
    picture[:, :, 20:] = 255
    assert show(picture, width=10, colour="unicode") == "0\n     █████"


def test_the_height_limits_only_what_was_not_asked_for():
    images = digits(100)
    text = show(images, width=80, height=50, colour="unicode")
    assert len(text.split("\n")) <= 50
    assert text.endswith("\n\n94 more")
    assert show(images, height=1, colour="unicode").endswith("\n\n98 more")
    assert len(show(images, items=range(100), width=80, colour="unicode").split("\n")) == 799
    assert "more" not in show(images, items=slice(None), colour="unicode")
    assert "more" not in show(images[:6], colour="unicode")
    volumes = digits(9, (4, 5, 5))
    text = show(volumes, height=5, width=80, colour="ascii")
    assert text.split()[:5] == ["0[0]", "0[1]", "0[2]", "0[3]", "1[0]"]
    assert text.endswith("\n\n7 more")


def test_numbers_stand_in_rows():
    text = show(np.arange(9, 15) * 7, width=20, colour="ascii")
    assert text == " 0   1   2   3   4\n63  70  77  84  91\n\n 5\n98"
    assert show(np.array([1.5, np.nan, -np.inf], "f4"), colour="ascii") == (
        "   0     1     2\n 1.5   nan  -inf"
    )
    assert show(np.array([5, 0], "u1"), colour="256") == (
        f"{ESC}2m0{ESC}0m  {ESC}2m1{ESC}0m\n{ESC}1m5{ESC}0m  {ESC}1m0{ESC}0m"
    )
    assert show(np.array(42, "i4")) == "42"
    assert show(idxfile.open(bytes.fromhex("0000080007"))) == "7"


def test_short_vectors_are_numbers_and_long_ones_sparklines():
    rows = np.array([[5, -2000, 3], [10, 4, 77]], "i2")
    assert show(rows, ["a", "bc"], colour="unicode") == (
        "0: a    5  -2000   3\n1: bc  10      4  77"
    )
    assert show(rows, width=9, colour="unicode") == "0  ▇▁▇\n1  ▇▇▇"
    line = np.arange(21.0)
    line[3:6] = np.nan
    assert show([line, line[::-1]], colour="unicode") == (
        "0  ▁▁▁   ▃▃▃▄▄▄▅▅▅▆▆▆▇▇▇\n1  ▇▇▇▆▆▆▅▅▅▄▄▄▃▃▃   ▁▁▁"
    )
    assert show([line], colour="ascii") == "0  ___   ---===+++***###"


def test_many_numbers_of_different_length_keep_their_captions_aligned():
    lines = show(digits(12, (20,)), [7] * 12, colour="ascii").split("\n")
    assert {line.index(":") for line in lines} == {2}


def test_nothing_to_show():
    for shape in ((0,), (0, 3), (0, 28, 28), (5, 0, 28, 28)):
        assert show(np.zeros(shape), colour="ascii") == "nothing to show"
    assert show(digits(3), items=[], colour="ascii") == "nothing to show"
    assert show(np.zeros((2, 0, 28)), colour="ascii").split() == ["0", "1"]


def test_wrong_arguments_are_told():
    for kwargs in ({"width": 0}, {"scale": 0}, {"columns": 0}, {"colour": "green"}):
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
    assert colour_mode(environ, isatty) == mode


def test_auto_asks_the_environment(monkeypatch):
    monkeypatch.setenv("LC_ALL", "C.UTF-8")
    assert show([[[0, 1]]]) == "0\n ▀"
    monkeypatch.setenv("LC_ALL", "C")
    assert show([[[0, 1]]]) == '0\n "'
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("COLORTERM", "truecolor")
    assert f"{ESC}38;2;255;255;255m" in show([[[0, 1]]])
    monkeypatch.setenv("NO_COLOR", "1")
    assert show([[[0, 1]]]) == '0\n "'
