"""Pixels for terminals that show them: what they are sent, taken apart as they take it apart."""

import base64
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from idxfile import show
from idxfile.sheets.colours import colour_table, look_at
from idxfile.sheets.palettes import COLOUR_MAPS
from idxfile.viewer.graphics import kitty, sixel
from idxfile.viewer.screen import graphics_mode, pixel_mode
from sight import ESC, decoded, digits

APC = re.compile(r"\x1b_G([^;]*);([^\x1b]*)\x1b\\")
DCS = re.compile(r'\x1bP0;1q"1;1;(\d+);(\d+)(.*?)\x1b\\', re.DOTALL)


def kitty_pictures(text):
    """The options and pixels `(rows, columns, samples)` of each picture in a text."""
    pictures, options, data = [], None, ""
    for keys, piece in APC.findall(text):
        found = dict(pair.split("=") for pair in keys.split(","))
        assert len(piece) <= 4096
        options = found if options is None else options
        data += piece
        if found["m"] == "0":
            assert options["a"] == "T"
            assert options["f"] == "100"
            pictures.append((options, decoded(base64.b64decode(data, validate=True))))
            options, data = None, ""
        else:
            assert len(piece) % 4 == 0
    assert options is None
    return pictures


def sixel_pictures(text):
    """The pixels `(rows, columns, 4)` of each picture: percents of red, green, blue, and ink."""
    pictures = []
    for wide, high, body in DCS.findall(text):
        page = np.zeros((-(-int(high) // 6) * 6, int(wide), 4), int)
        registers, colour, column, band = {}, None, 0, 0
        for token in re.findall(r"#\d+(?:;[\d;]+)?|!\d+[?-~]|[?-~]|[$-]|.", body):
            if token[0] == "#":
                number, *rest = map(int, token[1:].split(";"))
                if rest:
                    assert rest[0] == 2
                    assert all(0 <= part <= 100 for part in rest[1:])
                    registers[number] = rest[1:]
                colour = registers[number]
            elif token == "$":
                column = 0
            elif token == "-":
                column, band = 0, band + 1
            else:
                count, code = re.fullmatch(r"(?:!(\d+))?([?-~])", token).groups()
                bits = ord(code) - 63
                for _ in range(int(count or 1)):
                    for bit in range(6):
                        if bits >> bit & 1:
                            page[band * 6 + bit, column] = (*colour, 1)
                    column += 1
                assert column <= int(wide)
        assert len(registers) <= 256
        assert not page[int(high) :].any()
        pictures.append(page[: int(high)])
    return pictures


def percents(pixels):
    rgb = np.stack([pixels] * 3, axis=-1) if pixels.ndim == 2 else pixels
    return np.rint(rgb / 255 * 100)


@pytest.mark.parametrize("shape", [(1, 1), (6, 5), (7, 300), (28, 28), (13, 4, 3), (90, 90, 3)])
def test_kitty_gets_every_pixel(shape):
    pixels = np.random.default_rng(0).integers(0, 256, shape).astype(np.uint8)
    columns, lines = -(-shape[1] // 10), -(-shape[0] // 20)
    [(options, page)] = kitty_pictures(kitty(pixels, columns, lines, (10, 20)))
    assert (options["c"], options["r"]) == (str(columns), str(lines))
    assert page.shape[:2] == (lines * 20, columns * 10)  # the terminal stretches nothing
    rows, wide = shape[:2]
    assert np.array_equal(page[:rows, :wide, :-1].reshape(shape), pixels)
    assert (page[:rows, :wide, -1] == 255).all()
    assert page[..., -1].sum() == 255 * rows * wide


@given(arrays(np.uint8, st.tuples(st.integers(1, 14), st.integers(1, 9))))
def test_sixel_gets_every_pixel_of_grey(pixels):
    [page] = sixel_pictures(sixel(pixels))
    assert np.array_equal(page[..., :3], percents(pixels))
    assert page[..., 3].all()


def test_sixel_keeps_colours_where_they_are_few_and_comes_near_where_they_are_many():
    few = np.random.default_rng(1).integers(0, 2, (9, 40, 3)).astype(np.uint8) * 255
    assert np.array_equal(sixel_pictures(sixel(few))[0][..., :3], percents(few))
    many = np.random.default_rng(1).integers(0, 256, (40, 40, 3)).astype(np.uint8)
    [page] = sixel_pictures(sixel(many))
    assert np.abs(page[..., :3] - percents(many)).max() <= 11
    assert page[..., 3].all()


def test_runs_make_sixels_short():
    assert len(sixel(np.zeros((60, 1000), np.uint8))) < 150


def placed(text):
    """Where in cells from the left margin each picture begins, row by row."""
    return [
        [int(right or 0) for right in re.findall(r"\r(?:\x1b\[(\d+)C)?\x1b7", line)]
        for line in text.split("\n")
        if "\x1b7" in line
    ]


@pytest.mark.parametrize(("graphics", "pictures"), [("kitty", 5), ("sixel", 5)])
def test_pictures_stand_under_their_captions(graphics, pictures):
    text = show(digits(5), [1, 2, 3, 4, 5], range(5), width=40, graphics=graphics, cell=(10, 20))
    assert placed(text) == [[0, 11, 22], [0, 11]]  # 28 pixels by 3 are 9 cells, and a gap
    captions = re.sub(r"\x1b\[[0-9;]*m", "", text.split("\n")[0])
    assert captions == "0: 1       1: 2       2: 3"
    found = kitty_pictures(text) if graphics == "kitty" else sixel_pictures(text)
    assert len(found) == pictures
    first = found[0][1][..., 0] if graphics == "kitty" else found[0][..., 0]
    expected = digits(5)[0].repeat(3, 0).repeat(3, 1)
    expected = expected if graphics == "kitty" else percents(expected)[..., 0]
    assert np.array_equal(first[:84, :84], expected)


@pytest.mark.parametrize("graphics", ["kitty", "sixel"])
def test_room_is_made_before_a_picture_is_drawn(graphics):
    """So that nothing is drawn beyond the last line: feeds, up again, pictures, down again."""
    lines = show(digits(1), graphics=graphics, cell=(10, 20)).split("\n")
    assert len(lines) == 1 + 5  # the caption, and 84 pixels in lines of 20
    assert lines[1:5] == [""] * 4
    assert lines[5].startswith(f"{ESC}4A\r\x1b7")
    assert lines[5].endswith(f"\x1b8\r{ESC}4B")


@pytest.mark.parametrize("graphics", ["kitty", "sixel"])
@pytest.mark.parametrize("shape", [(1, 4, 4000), (1, 4000, 4), (1, 999, 999), (1, 1, 1)])
def test_no_picture_is_larger_than_the_screen(graphics, shape):
    images = np.full(shape, 255, np.uint8)
    text = show(images, [0], [0], width=30, height=12, graphics=graphics, cell=(8, 16))
    assert text.count("\n") <= 12
    for found in kitty_pictures(text) if graphics == "kitty" else ():
        assert int(found[0]["c"]) <= 30
        assert int(found[0]["r"]) <= 10
    for page in sixel_pictures(text):
        assert page.shape[1] <= 30 * 8
        assert page.shape[0] <= 10 * 16


@pytest.mark.parametrize("graphics", ["kitty", "sixel"])
@pytest.mark.parametrize("shape", [(2, 0, 5), (2, 5, 0), (0, 5, 5), (3,), (2, 300), ()])
def test_what_has_no_pixels_is_text(graphics, shape):
    text = show(np.zeros(shape, np.uint8), graphics=graphics)
    assert "\x1b_G" not in text
    assert "\x1bP" not in text


def test_graphics_at_the_height_of_the_screen_leave_room_for_the_last_word():
    text = show(digits(100), width=80, height=24, graphics="kitty", cell=(10, 20))
    assert text.count("\n") < 24
    assert text.endswith(f"{ESC}0m")
    assert " more" in text


# What the environment tells

KNOWN = [
    ({"TERM": "xterm-kitty"}, "kitty"),
    ({"TERM": "xterm-256color", "KITTY_WINDOW_ID": "1"}, "kitty"),
    ({"TERM": "xterm-ghostty"}, "kitty"),
    ({"TERM": "xterm-256color", "TERM_PROGRAM": "WezTerm"}, "kitty"),
    ({"TERM": "xterm-256color", "KONSOLE_VERSION": "230805"}, "kitty"),
    ({"TERM": "xterm-256color", "KONSOLE_VERSION": "210800"}, None),
    ({"TERM": "xterm-256color", "KONSOLE_VERSION": "¼"}, None),
    ({"TERM": "foot"}, "sixel"),
    ({"TERM": "foot-extra"}, "sixel"),
    ({"TERM": "xterm", "TERM_PROGRAM": "mintty"}, "sixel"),
    ({"TERM": "xterm-256color"}, None),
    ({"TERM": "xterm-kitty", "TMUX": "/tmp/tmux-0/default,1,0"}, None),
    ({"TERM": "screen", "KITTY_WINDOW_ID": "1"}, None),
    ({"TERM": "tmux-256color", "KITTY_WINDOW_ID": "1"}, None),
]


@pytest.mark.parametrize(("environ", "mode"), KNOWN)
def test_terminals_that_are_known(environ, mode):
    assert pixel_mode(environ) == mode
    assert graphics_mode(environ, isatty=True) == (mode or "256")
    assert graphics_mode(environ, isatty=False) == "ascii"
    assert graphics_mode({**environ, "NO_COLOR": "1"}, isatty=True) == "ascii"


# Colours


def test_colour_maps_begin_and_end_where_they_should():
    for name, words in COLOUR_MAPS.items():
        table = colour_table(name)
        ends = [bytes.fromhex(words.split()[n]) for n in (0, -1)]
        assert [bytes(table[0]), bytes(table[-1])] == ends
        assert np.abs(np.diff(table.astype(int), axis=0)).max() <= 8  # no steps that are seen
    assert np.array_equal(colour_table("grey"), np.arange(256).repeat(3).reshape(256, 3))
    with pytest.raises(ValueError, match="colours must be grey, viridis"):
        colour_table("pink")


@pytest.mark.parametrize("name", ["viridis", "magma", "inferno", "cividis", "grey"])
def test_a_map_of_one_direction_is_a_grey_of_one_direction(name):
    luma = colour_table(name) @ np.array([0.2126, 0.7152, 0.0722])
    assert (np.diff(luma) > -0.5).all()


def test_a_look_inverts_and_colours():
    picture = np.array([[0, 100, 255]], np.uint8)
    assert look_at([picture], None, "grey").pixels(picture) is picture
    assert look_at([picture], None, "grey", True).pixels(picture).tolist() == [[255, 155, 0]]
    table = colour_table("magma")
    assert np.array_equal(look_at([picture], None, "magma").pixels(picture), table[picture])
    rgb = np.zeros((1, 1, 3), np.uint8)
    assert look_at([rgb], None, "magma").pixels(rgb).tolist() == [[[0, 0, 0]]]
    floats = np.array([[-2.0, 0.0, 2.0, np.nan]])
    assert look_at([floats], None, "grey", True).pixels(floats).tolist() == [[255, 128, 0, 0]]
