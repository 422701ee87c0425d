"""What a notebook shows of arrays and data sets: facts, pictures, bars, and never an error."""

import base64
import gzip
import os
import re
import subprocess
import sys
import time
from html.parser import HTMLParser

import numpy as np
import pytest

import idxfile
from conftest import COMPRESS, MNIST, H, idx_bytes
from idxfile import Dataset
from idxfile.header import IDX_TYPE_NAMES
from idxfile.sheets.notebook import page
from sight import decoded, digits

ELEMENTS = {"div", "strong", "table", "tbody", "tr", "th", "td", "p", "code", "img"}


class Reader(HTMLParser):
    """Takes a page apart as a browser would, and sees that every element is closed."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.tags, self.open, self.words, self.attributes = [], [], [], []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs
        if tag != "img":
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.words.append(data)

    @property
    def text(self):
        return "\n".join(self.words)

    def picture(self):
        """The pixels of the one picture, `(rows, columns, samples)`, or None."""
        sources = [value for name, value in self.attributes if name == "src"]
        assert len(sources) <= 1
        if not sources:
            return None
        head, data = sources[0].split(",")
        assert head == "data:image/png;base64"
        return decoded(base64.b64decode(data, validate=True))


def shown(thing):
    html = thing._repr_html_()
    assert len(html) < 400_000
    found = Reader(html)
    assert set(found.tags) <= ELEMENTS
    assert {name for name, _ in found.attributes} <= {"style", "src", "alt", "scope"}
    return found


def pictures_in(found, count, size):
    """How many opaque squares of this size the sheet holds, at least."""
    page = found.picture()
    opaque = page[..., -1] == 255
    return opaque.sum() >= count * size * size


# Real data


def test_mnist_shows_itself():
    with idxfile.open(MNIST / "t10k-images-idx3-ubyte.gz") as x:
        found = shown(x)
        assert x._stored is None  # it was not inflated for it
    for word in ("IdxArray", "t10k-images-idx3-ubyte.gz", "uint8", "10000 × 28 × 28", "gz"):
        assert word in found.text
    assert pictures_in(found, 24, 56)
    first = idxfile.read(MNIST / "t10k-images-idx3-ubyte.gz", 0).repeat(2, 0).repeat(2, 1)
    assert np.array_equal(found.picture()[24:80, 24:80, 0], first)


def test_a_data_set_shows_its_classes():
    with idxfile.open_dataset(MNIST, split="test") as ds:
        found = shown(ds)
        sevens = shown(ds.select(labels=[7]))
    for word in ("Dataset test", "10,000", "uint8 28 × 28", "1,135", "892"):
        assert word in found.text
    widths = [s for name, s in found.attributes if name == "style" and "currentColor" in s]
    assert len(widths) == 10
    assert "width:100.0%" in widths[1]  # there are most ones
    assert pictures_in(found, 24, 56)
    assert "1,028" in sevens.text


def test_class_names_stand_for_labels():
    ds = Dataset(digits(3), np.array([0, 1, 1]), classes=["T-shirt/top", "<b>&"], name="f & g")
    found = shown(ds)
    assert "T-shirt/top" in found.words
    assert "<b>&" in found.words
    assert "Dataset f & g" in found.words


# In the colours of the page around it


def test_it_is_right_on_light_and_on_dark():
    found = shown(Dataset(digits(9), np.arange(9)))
    styles = [value for name, value in found.attributes if name == "style"]
    for style in styles:
        named = re.findall(r"(?:^|[;-])(?:color|background):([^;]+)", style)
        assert set(named) <= {"inherit", "none", "currentColor"}
    page = found.picture()
    assert page[0, 0, -1] == 0  # transparent between the pictures
    captions = page[(page[..., -1] == 255)][:, 0]
    assert (captions == 128).any()  # seen on white and on black


# Every kind of array


@pytest.mark.parametrize("name", IDX_TYPE_NAMES)
def test_every_type_shows_itself(name):
    found = shown(idxfile.open(idx_bytes(digits(5, dtype=name))))
    assert name in found.text
    assert found.picture() is not None


@pytest.mark.parametrize(
    ("array", "words"),
    [
        (np.array(42, "i4"), ("scalar", "42")),
        (np.array([7, 2, 1], "u1"), ("7, 2, 1",)),
        (np.arange(9999, dtype="i4"), ("0, 1, 2",)),
        (np.array([np.nan, np.inf, 0.5]), ("nan, inf, 0.5",)),
        (np.zeros(0, "u1"), ("shape",)),
        (np.zeros((0, 28, 28), "u1"), ("0 × 28 × 28",)),
        (np.zeros((5, 0, 28), "u1"), ("5 × 0 × 28",)),
        (np.zeros((5, 0), "f4"), ("5 × 0",)),
        (np.zeros((1,) * 64, "u1"), ("1 × 1 × 1",)),
    ],
)
def test_every_shape_shows_itself(array, words):
    found = shown(idxfile.open(idx_bytes(array)))
    assert all(word in found.text for word in words)


@pytest.mark.parametrize(
    "shape",
    [
        *[(30, 500), (4, 40, 50, 3), (3, 2, 6, 7), (2, 3000, 5), (2, 5, 3000), (2, 1, 1)],
        *[(1, 30, 60, 70), (1, 300, 3, 3, 3), (2, 4, 4, 1)],
    ],
)
def test_items_of_every_shape_are_pictures(shape):
    for values in (np.full(shape, 9, "u1"), np.full(shape, np.nan)):
        assert shown(idxfile.open(idx_bytes(values))).picture() is not None


def test_more_dimensions_than_an_array_can_have_are_told():
    found = shown(idxfile.open(H(8, *[1] * 255) + b"\7"))
    assert "255 dimensions; NumPy holds 64" in found.text


def test_items_of_several_arrays_and_turned_ones_are_seen():
    plain = Dataset(digits(3, (5, 9)), np.arange(3))
    both = plain.merge(Dataset(digits(2, (5, 9), seed=1), np.arange(2)))
    assert shown(both.select(items=[4, 0, 3])).picture() is not None
    assert np.array_equal(both.images.peek(99), np.asarray(both.images))
    assert np.array_equal(both.transpose().images.peek(4), both.transpose().images[:4])
    assert np.array_equal(both.select(items=[4, 0, 3]).images.peek(2), both.images[[4, 0]])


# What may be read for it


def test_a_terabyte_shows_itself_at_once(tmp_path):
    with open(tmp_path / "huge-images-idx3-ubyte", "wb") as sparse:
        sparse.write(H(8, 1 << 30, 32, 32))
        sparse.truncate(16 + (1 << 40))
    with idxfile.open(tmp_path / "huge-images-idx3-ubyte") as x:
        start = time.perf_counter()
        found = shown(x)
        assert time.perf_counter() - start < 2
    assert "1,099,511,627,776 bytes" in found.text
    assert pictures_in(found, 24, 56)


@pytest.mark.parametrize("codec", COMPRESS)
def test_of_a_compressed_file_only_the_beginning_is_inflated(codec, tmp_path):
    items = np.arange(24, dtype="u1").repeat(784).reshape(24, 28, 28)
    file = tmp_path / "cut"
    data = COMPRESS[codec](H(8, 4_000_000, 28, 28) + items.tobytes() + bytes(5_000_000))
    file.write_bytes(data)  # who reads on finds that most is missing
    with idxfile.open(file) as x:
        found = shown(x)
        with pytest.raises(idxfile.TruncatedError):
            x[0]
    assert pictures_in(found, 24, 56)
    assert sorted(np.unique(found.picture()[..., 0])) == list(range(24))


def test_what_lies_far_behind_in_a_compressed_file_is_not_looked_for(tmp_path):
    with gzip.open(tmp_path / "train-images-idx3-ubyte.gz", "wb", 1) as file:
        file.write(H(8, 200_000, 28, 28) + bytes(2000))
    with idxfile.open(tmp_path / "train-images-idx3-ubyte.gz") as x:
        ds = Dataset(x, np.zeros(200_000, "u1")).select(items=[199_999])
        found = shown(ds)
    assert found.picture() is None
    assert "1 × " not in found.text


def test_nothing_is_taken_from_a_pipe(tmp_path):
    data = idx_bytes(digits(200))
    reader, writer = os.pipe()
    with open(reader, "rb", 0) as near, open(writer, "wb", 0) as far:
        far.write(data[:5000])
        with idxfile.open(near) as x:
            found = shown(x)  # would stand still if it wanted more than the first kilobyte
            assert found.picture() is None
            assert "200 × 28 × 28" in found.text
            far.write(data[5000:60_000])


# Nothing that it shows is an error


def test_a_broken_file_shows_its_facts(tmp_path):
    file = tmp_path / "broken.gz"
    file.write_bytes(gzip.compress(idx_bytes(digits(500)))[:9000])
    with idxfile.open(file) as x:
        assert "500 × 28 × 28" in shown(x).text
        file.write_bytes(b"another")
        assert "500 × 28 × 28" in shown(x).text
        file.unlink()
        assert "500 × 28 × 28" in shown(x).text


def test_a_closed_array_shows_its_facts():
    x = idxfile.open(idx_bytes(digits(2)))
    ds = Dataset(x, np.arange(2))
    x.close()
    found = shown(x)
    assert "r, closed" in found.words
    assert found.picture() is None
    assert "2" in shown(ds).text


def test_names_are_text(tmp_path):
    name = "a<script>alert(1)</script>&\"'\n\x1b[31m\u202e.idx"
    (tmp_path / name.replace("/", "∕")).write_bytes(idx_bytes(digits(1)))
    with idxfile.open(tmp_path / name.replace("/", "∕")) as x:
        html = x._repr_html_()
    assert "<script" not in html
    assert "\x1b" not in html
    assert "\\x1b[31m\\u202e" in html
    evil = ["<img src=x onerror=alert(1)>", "\"'&", "x" * 5000]
    html = Dataset(digits(3), np.arange(3), classes=evil, name="</div>")._repr_html_()
    assert "onerror=alert(1)&gt;" in html
    assert len(html) < 20_000
    Reader(html)


def test_a_page_of_many_classes_is_cut():
    ds = Dataset(digits(3000, (1, 1)), np.arange(3000))
    assert "2,960 more" in shown(ds).words


def test_facts_alone_are_a_page():
    assert Reader(page("T", {"a": "b"})).words == ["T", "a", "b"]


# In a real notebook

NOTEBOOK = """
import nbformat, sys
from nbclient import NotebookClient
from nbformat.v4 import new_code_cell, new_notebook
cells = [
    "import idxfile; x = idxfile.open(sys_path := r'{place}/t10k-images-idx3-ubyte.gz')",
    "x",
    "idxfile.open_dataset(r'{place}', split='test')",
]
book = new_notebook(cells=[new_code_cell(cell) for cell in cells])
NotebookClient(book, timeout=60, kernel_name="python3").execute()
for cell in book.cells[1:]:
    (output,) = cell.outputs
    assert output.output_type == "execute_result", output
    print("image/png;base64" in output.data["text/html"], "<" in output.data["text/plain"])
"""


@pytest.mark.slow
def test_a_notebook_shows_them(tmp_path):
    code = NOTEBOOK.format(place=MNIST)
    environment = {**os.environ, "HOME": str(tmp_path), "IPYTHONDIR": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environment
    )
    assert done.stdout.splitlines() == ["True True", "True True"], done.stderr
