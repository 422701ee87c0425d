"""The room `sheets/` as a whole: its parts are small and share the decoder."""

import numpy as np
import pytest

import idxfile
from idxfile import png, sheet, show
from idxfile.errors import PairError, UnsupportedError
from idxfile.header import ELEMENT_TYPES, IDX_TYPE_NAMES
from idxfile.sheets import font
from idxfile.sheets.pixels import area_mean, as_pixels, spread, window_of
from sight import decoded, digits

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
