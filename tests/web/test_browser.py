"""The page in a real browser, on the real MNIST and on everything that is unlike it."""

from __future__ import annotations

import functools
import gzip
import http.server
import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from page_server import Client, Serve, serve

import idxfile
from conftest import MNIST, H, idx_bytes

__all__ = ["serve"]

Page = Any
pytestmark = pytest.mark.slow

PAINTED = "#grid[data-painted=all]"
OURS = (
    "Canvas2D: Multiple readback",
    "Failed to load resource: the server responded with a status of 400",
)
"""What the browser says of this test's own looking, and of a condition that is meant to be none."""


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright  # here: the quick tests do without

    with sync_playwright() as play:
        chromium = play.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
        yield chromium
        chromium.close()


@pytest.fixture
def page(browser: Any, serve: Serve) -> Iterator[Page]:
    """A page that must not complain of anything; it is closed before its server."""
    context = browser.new_context(viewport={"width": 1280, "height": 800})
    page = context.new_page()
    faults: list[str] = []
    page.on("console", lambda message: faults.append(message.text))
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.set_default_timeout(20_000)
    yield page
    context.close()
    assert [fault for fault in faults if not fault.startswith(OURS)] == []


@pytest.fixture(scope="module")
def mnist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The raw training set: 60,000 items, and labels of which some were changed."""
    folder = tmp_path_factory.mktemp("mnist")
    for role in ("images-idx3", "labels-idx1"):
        packed = (MNIST / f"train-{role}-ubyte.gz").read_bytes()
        (folder / f"train-{role}-ubyte").write_bytes(gzip.decompress(packed))
    return folder


def opened(page: Page, client: Client, words: str = "") -> None:
    page.goto(client.serving.address + words)
    page.wait_for_selector(PAINTED)


def status(page: Page) -> str:
    return str(page.inner_text("#status"))


def tally(page: Page) -> str:
    return str(page.inner_text("#tally"))


def until(page: Page, expression: str, argument: Any = None) -> None:
    """Wait until an expression is true; the page's own policy allows no other way."""
    end = time.monotonic() + 30
    while not page.evaluate(expression, argument):
        assert time.monotonic() < end, expression
        page.wait_for_timeout(25)


def wait_for(page: Page, selector: str, text: str) -> None:
    """Wait until a text stands somewhere."""
    try:
        until(
            page,
            "([s, text]) => document.querySelector(s)?.textContent.includes(text)",
            [selector, text],
        )
    except AssertionError:
        found = page.locator(selector).first.text_content()
        raise AssertionError(f"{text!r} is not in {selector}: {found!r}") from None


def picture(page: Page) -> list[int]:
    """The grey values of the picture of the item, as they were painted."""
    until(page, "document.querySelector('.picture').ariaLabel !== null")
    values = page.evaluate(
        """() => { const c = document.querySelector('.picture');
        return [...c.getContext('2d').getImageData(0, 0, c.width, c.height).data]; }"""
    )
    return list(values[::4])


# The real MNIST


def test_the_whole_way_through_mnist(page: Page, mnist: Path, tmp_path: Path, serve: Serve) -> None:
    images = idxfile.read(mnist / "train-images-idx3-ubyte")
    labels = idxfile.read(mnist / "train-labels-idx1-ubyte")
    other = labels.copy()
    fours = np.flatnonzero(labels == 4)[:25]
    other[fours] = 9
    client = serve(mnist, compare=idx_bytes(other))
    opened(page, client)
    assert "token" not in page.url
    assert page.title() == "train-images-idx3-ubyte – idx view"
    wait_for(page, "#status", "Item 0, label 5")
    assert picture(page) == images[0].reshape(-1).tolist()
    # Scroll to the end.
    page.focus("#grid")
    page.keyboard.press("End")
    wait_for(page, "#status", "Item 59,999, label 8")
    page.wait_for_selector(PAINTED)
    page.evaluate("document.querySelector('#scroller').scrollTop = 0")
    page.wait_for_selector(PAINTED)
    # Jump.
    page.keyboard.press("/")
    page.keyboard.type("31,337")
    page.keyboard.press("Enter")
    wait_for(page, "#status", f"Item 31,337, label {labels[31337]}")
    until(page, "document.querySelector('.picture').ariaLabel?.includes('31337')")
    assert picture(page) == images[31337].reshape(-1).tolist()
    # Filter by class, by digit and by button.
    page.keyboard.press("3")
    wait_for(page, "#tally", "6,131 of 60,000 items")
    page.keyboard.press("Shift+Digit7")
    wait_for(page, "#tally", f"{6131 + 6265:,} of 60,000 items")
    page.click("#classes button:has-text('1')")
    wait_for(page, "#tally", "6,742 of 60,000 items")
    page.click("#classes-clear")
    wait_for(page, "#tally", "60,000 items")
    # A condition, once all is counted.
    page.fill("#where", "label == 1 and ink > 0.2")
    page.keyboard.press("Enter")
    client.counted()
    ink = (images.reshape(60_000, -1) > 127.5).mean(1)
    fitting = np.flatnonzero((labels == 1) & (ink > 0.2))
    wait_for(page, "#tally", f"{len(fitting):,} of 60,000 items")
    wait_for(page, "#status", f"Item {fitting[0]:,}, label 1")
    page.fill("#where", "label ==")
    page.keyboard.press("Enter")
    wait_for(page, "#query-fault", "this is no condition")
    page.click("#query button[type=reset]")
    # The confusion matrix, whose cells open their items.
    page.click("#tab-compare")
    wait_for(page, "#panel-compare", "25 differ")  # given with --compare: compared at once
    page.click("#panel-compare td button[aria-label*='label 4 and 9 ']")
    wait_for(page, "#tally", "25 of 60,000 items")
    wait_for(page, "#status", "4 → 9")
    # Select and save.
    page.keyboard.press("Control+a")
    wait_for(page, "#chosen-count", "25")
    page.click("#tab-chosen")
    page.fill("#save-name", "fours")
    page.click("#panel-chosen button:has-text('Save')")
    wait_for(page, ".outcome", "25 items saved")
    saved = idxfile.open_dataset(tmp_path / "out" / "fours")
    assert (saved.images[...] == images[fours]).all()
    assert saved.labels.tolist() == [4] * 25
    # Relabel, undo, relabel, save as.
    for _ in range(2):
        page.fill("#new-label", "9")
        page.keyboard.press("Enter")
        wait_for(page, ".outcome", "25 items: 9")
        wait_for(page, "#classes", f"{5949 + 25:,}")
        page.click("#panel-chosen button:has-text('Undo')")
        wait_for(page, ".outcome", "25 items as before")
        wait_for(page, "#classes", "5,949")
    page.fill("#new-label", "9")
    page.keyboard.press("Enter")
    wait_for(page, ".outcome", "25 items: 9")
    page.fill("#save-name", "nines")
    page.click("#panel-chosen button:has-text('Save')")
    wait_for(page, ".outcome", "25 items saved")
    assert idxfile.open_dataset(tmp_path / "out" / "nines").labels.tolist() == [9] * 25
    assert (idxfile.read(mnist / "train-labels-idx1-ubyte") == labels).all()
    # The link shows the same view, in another tab too.
    until(page, "location.hash.includes('where=')")
    page.reload()
    page.wait_for_selector("#grid")
    wait_for(page, "#tally", "of 60,000 items")
    tab = page.context.new_page()
    tab.goto(page.url)
    wait_for(tab, "#tally", "of 60,000 items")
    assert tab.input_value("#where") == "label == 4 and other == 9"
    (mnist / "train-labels-idx1-ubyte.journal.jsonl").unlink()


def test_classes_show_their_mean_and_their_most_unusual_items(
    page: Page, mnist: Path, serve: Serve
) -> None:
    client = serve(mnist)
    client.counted()
    opened(page, client)
    page.wait_for_selector("#classes .mean.there")
    assert page.locator("#classes .mean.there").count() == 10
    page.click("#panel-item button:has-text('Most unusual of 5')")
    wait_for(page, "#tally", "5,421 of 60,000 items")
    first = client.order(classes="5", sort="-unusual")[0]
    wait_for(page, "#status", f"Item {first:,}, label 5")


def test_jumping_to_an_item_that_is_filtered_out_shows_all_again(
    page: Page, mnist: Path, serve: Serve
) -> None:
    opened(page, serve(mnist), "&classes=3")
    wait_for(page, "#tally", "of 60,000 items")
    page.fill("#jump-to", "59999")
    page.press("#jump-to", "Enter")
    until(page, "() => document.querySelector('#status').textContent.startsWith('Item 59,999')")
    assert "of 60,000" not in tally(page)


def test_zoom_goes_from_tiny_tiles_to_single_values(page: Page, mnist: Path, serve: Serve) -> None:
    opened(page, serve(mnist))
    page.focus("#grid")
    for _ in range(12):
        page.keyboard.press("-")
    page.wait_for_selector(PAINTED)
    until(page, "location.hash.includes('tile=12')")
    for _ in range(25):
        page.keyboard.press("+")
    page.wait_for_selector(PAINTED)
    page.keyboard.press("Enter")
    page.wait_for_selector("#closeup .values")
    cells = page.locator("#closeup td").all_inner_texts()
    first = idxfile.read(mnist / "train-images-idx3-ubyte", 0)
    assert [int(text) for text in cells] == first.reshape(-1).tolist()
    page.keyboard.press("ArrowRight")
    wait_for(page, "#closeup-name", "Item 1, label 0")
    page.keyboard.press("Escape")
    assert page.evaluate("document.activeElement.id") == "grid"


def test_numbers_are_explained_byte_by_byte(page: Page, mnist: Path, serve: Serve) -> None:
    client = serve(mnist)
    client.counted()
    opened(page, client)
    page.click("#tab-numbers")
    wait_for(page, "#panel-numbers", "None: every byte was read")
    told = []
    for byte in page.locator(".hex code").all():
        byte.hover()
        told.append(page.inner_text(".told"))
    assert len(told) == 16
    assert told[0] == "Byte 0: two zero bytes, as every IDX file begins"
    assert told[2] == "Byte 2: element type uint8"
    assert told[3] == "Byte 3: 3 dimensions follow"
    assert told[7] == "Byte 7: items: 60,000"
    assert told[15] == "Byte 15: dimension 2: 28"
    assert page.locator(".histogram rect").count() == 64
    assert "33.32" in page.inner_text("#panel-numbers")


def test_selecting_by_click_shift_and_box(page: Page, mnist: Path, serve: Serve) -> None:
    opened(page, serve(mnist))
    box = page.locator("#grid").bounding_box()

    page.mouse.click(box["x"] + 60, box["y"] + 40)
    wait_for(page, "#tally", "1 selected")
    page.keyboard.down("Shift")
    page.mouse.click(box["x"] + 60 + 3 * 47, box["y"] + 40)
    page.keyboard.up("Shift")
    wait_for(page, "#tally", "4 selected")
    page.keyboard.down("Control")
    page.mouse.click(box["x"] + 60 + 6 * 47, box["y"] + 40)
    page.keyboard.up("Control")
    wait_for(page, "#tally", "5 selected")
    page.mouse.move(box["x"] + 60, box["y"] + 40)
    page.mouse.down()
    page.mouse.move(box["x"] + 60 + 2 * 47, box["y"] + 40 + 63, steps=5)
    page.mouse.up()
    wait_for(page, "#tally", "6 selected")
    page.focus("#grid")
    page.keyboard.press("Escape")
    assert "selected" not in tally(page)
    page.keyboard.press("Home")
    for _ in range(2):
        page.keyboard.press("Shift+ArrowRight")
    wait_for(page, "#tally", "3 selected")
    page.click("#tab-chosen")
    with page.expect_download() as download:
        page.click("#panel-chosen button:has-text('List of numbers')")
    assert Path(download.value.path()).read_text() == "0\n1\n2\n"
    with page.expect_download() as download:
        page.click("#panel-chosen button:has-text('PNG sheet')")
    images = idxfile.read(mnist / "train-images-idx3-ubyte", slice(3))
    expected = idxfile.sheet(images, [5, 0, 4], window=(0, 255))
    assert Path(download.value.path()).read_bytes() == expected


def test_two_tabs_see_each_others_labels(page: Page, mnist: Path, serve: Serve) -> None:
    client = serve(mnist)
    opened(page, client)
    other = page.context.new_page()
    other.goto(client.serving.address)
    other.wait_for_selector(PAINTED)
    wait_for(other, "#status", "Item 0, label 5")
    client.post("relabel", {"items": [[0, 1]], "label": 3})
    for tab in (page, other):
        tab.bring_to_front()
        until(tab, "document.querySelector('#classes').textContent.includes('5,420')")
    page.bring_to_front()
    wait_for(page, "#panel-item", "In the file")
    (mnist / "train-labels-idx1-ubyte.journal.jsonl").unlink()


# All that is not MNIST


def test_five_million_items(page: Page, tmp_path: Path, serve: Serve) -> None:
    path = tmp_path / "many-images.idx"
    last = bytes(range(1, 65))
    with path.open("wb") as file:
        file.write(H(8, 5_000_000, 8, 8))
        file.truncate(16 + 5_000_000 * 64)
        file.seek(-64, 2)
        file.write(last)
    opened(page, serve(str(path)))
    wait_for(page, "#tally", "5,000,000 items")
    page.focus("#grid")
    page.keyboard.press("End")
    wait_for(page, "#status", "Item 4,999,999")
    until(page, "document.querySelector('.picture').ariaLabel?.includes('4999999')")
    assert picture(page) == list(last)
    page.wait_for_selector(PAINTED)
    # Small steps of the wheel are small steps here too, although the bar stands for millions.
    page.keyboard.press("/")
    page.keyboard.type("2500000\n")
    wait_for(page, "#status", "Item 2,500,000")
    page.mouse.move(600, 400)
    for _ in range(3):
        page.mouse.wheel(0, 100)
        page.wait_for_timeout(60)
    page.wait_for_selector(PAINTED)
    page.mouse.click(600, 400)
    number = int(status(page).split()[1].replace(",", ""))
    assert 2_499_000 < number < 2_502_000
    # The bar itself goes anywhere.
    page.evaluate("s = document.querySelector('#scroller'); s.scrollTop = s.scrollHeight")
    page.wait_for_timeout(100)
    page.wait_for_selector(PAINTED)
    page.mouse.click(600, 400)
    number = int(status(page).split()[1].replace(",", ""))
    assert number > 4_990_000


KINDS: dict[str, np.ndarray] = {
    "float32": np.linspace(-1, 1, 40 * 6 * 5, dtype="float32").reshape(40, 6, 5),
    "float64": np.linspace(-1e300, 1e300, 40 * 6 * 5).reshape(40, 6, 5),
    "int16": (np.arange(40 * 6 * 5) * 20 - 12_000).astype("int16").reshape(40, 6, 5),
    "int32": (np.arange(40 * 6 * 5) * 20_000).astype("int32").reshape(40, 6, 5),
    "int8": (np.arange(40 * 6 * 5) % 251 - 125).astype("int8").reshape(40, 6, 5),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("packed", [False, True], ids=["raw", "gz"])
def test_every_type_is_seen_as_it_is(
    page: Page, tmp_path: Path, serve: Serve, kind: str, packed: bool
) -> None:
    array = KINDS[kind]
    data = idx_bytes(array)
    path = tmp_path / f"{kind}-images.idx"
    path.write_bytes(gzip.compress(data) if packed else data)
    opened(page, serve(str(path)))
    page.focus("#grid")
    page.keyboard.press("End")
    wait_for(page, "#status", "Item 39")
    until(page, "document.querySelector('.picture').ariaLabel?.includes('39')")
    low, high = array.min() / 2.0, array.max() / 2.0
    expected = np.rint((array[39] / 2.0 - low) / (high - low) * 255).reshape(-1)
    assert np.abs(np.array(picture(page)) - expected).max() <= 1
    page.keyboard.press("Enter")
    page.wait_for_selector("#closeup .values")
    cells = [float(text) for text in page.locator("#closeup td").all_inner_texts()]
    assert cells == pytest.approx(array[39].reshape(-1).tolist(), rel=2e-3)


def test_colour(page: Page, tmp_path: Path, serve: Serve) -> None:
    array = np.random.default_rng(0).integers(0, 256, (30, 5, 4, 3), dtype="uint8")
    (tmp_path / "colour-images.idx").write_bytes(idx_bytes(array))
    opened(page, serve(str(tmp_path / "colour-images.idx")))
    until(page, "document.querySelector('.picture').ariaLabel !== null")
    painted = page.evaluate(
        """() => { const c = document.querySelector('.picture');
        return [...c.getContext('2d').getImageData(0, 0, c.width, c.height).data]; }"""
    )
    assert (np.array(painted).reshape(5, 4, 4)[..., :3] == array[0]).all()


@pytest.mark.parametrize(
    "shape", [(9, 2, 3, 6, 5), (7, 40), (5, 300, 700), (8,), (6, 1, 1)], ids=str
)
def test_other_shapes_are_drawn(
    page: Page, tmp_path: Path, serve: Serve, shape: tuple[int, ...]
) -> None:
    array = np.random.default_rng(0).random(shape, dtype="float32")
    (tmp_path / "other-images.idx").write_bytes(idx_bytes(array))
    opened(page, serve(str(tmp_path / "other-images.idx")))
    wait_for(page, "#tally", f"{shape[0]} items")
    page.focus("#grid")
    page.keyboard.press("Enter")
    page.wait_for_selector("#closeup[open]")
    expected = array[0].size
    if expected <= 20_000:
        page.wait_for_selector("#closeup .values")
        assert page.locator("#closeup td").count() == expected


def test_labels_alone(page: Page, mnist: Path, tmp_path: Path, serve: Serve) -> None:
    path = tmp_path / "t-labels.idx"
    path.write_bytes((mnist / "train-labels-idx1-ubyte").read_bytes())
    client = serve(str(path))
    opened(page, client)
    wait_for(page, "#classes", "6,742")
    page.focus("#grid")
    page.keyboard.press("9")
    wait_for(page, "#tally", "5,949 of 60,000 items")
    page.keyboard.press("Control+a")
    page.keyboard.press("l")
    page.keyboard.type("4\n")
    wait_for(page, ".outcome", "5,949 items: 4")


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (b"<!DOCTYPE html><title>404</title>", "this is an HTML page titled “404”"),
        (b"", "file is empty"),
        (bytes.fromhex("03080000 01000000 02000000 01000000 0708"), "least significant byte first"),
    ],
    ids=["page", "empty", "turned"],
)
def test_a_file_that_is_none_shows_why(
    page: Page, tmp_path: Path, serve: Serve, data: bytes, told: str
) -> None:
    (tmp_path / "broken.idx").write_bytes(data)
    page.goto(serve(str(tmp_path / "broken.idx")).serving.address)
    wait_for(page, "#notice", told)
    wait_for(page, ".problems", told)
    if data:
        assert page.locator(".hex code").first.inner_text() == data[:1].hex()


def test_a_cut_file_shows_its_problem_and_the_items_that_are_there(
    page: Page, mnist: Path, tmp_path: Path, serve: Serve
) -> None:
    whole = (mnist / "train-images-idx3-ubyte").read_bytes()
    (tmp_path / "cut-images.idx").write_bytes(whole[: 16 + 784 * 500 + 3])
    opened(page, serve(str(tmp_path / "cut-images.idx")))
    wait_for(page, "#tally", "500 items · 60,000 declared")
    wait_for(page, "#problem-count", "1")
    page.click("#tab-numbers")
    wait_for(page, "#panel-numbers", "500 of 60,000 are whole")
    wait_for(page, "#panel-numbers", "truncated")


def test_a_gz_and_a_folder_of_splits(page: Page, serve: Serve) -> None:
    client = serve(MNIST)
    opened(page, client)
    names = page.locator("#places option").all_inner_texts()
    assert names == ["t10k-images-idx3-ubyte.gz", "train-images-idx3-ubyte.gz"]
    wait_for(page, "#what", "10,000 × 28 × 28 · uint8 · gz")
    page.select_option("#places", "1")
    wait_for(page, "#what", "60,000 × 28 × 28 · uint8 · gz")
    wait_for(page, "#status", "Item 0, label 5")
    until(page, "location.hash.includes('set=1')")
    page.reload()
    wait_for(page, "#what", "60,000 × 28 × 28 · uint8 · gz")


def test_names_and_labels_are_never_markup(page: Page, serve: Serve) -> None:
    evil = "<img src=x onerror=document.title='taken'>"
    ds = idxfile.Dataset(np.zeros((4, 5, 5), "uint8"), np.arange(4) % 2, classes=[evil, "<b>b</b>"])
    ds.name = evil
    opened(page, serve(ds))
    wait_for(page, "#classes", evil)
    page.click("#tab-numbers")
    page.click("#tab-item")
    wait_for(page, "#panel-item", evil)
    assert page.locator("img, #classes b").count() == 0
    assert page.title() != "taken"


def test_without_its_token_the_page_says_so(browser: Any, mnist: Path, serve: Serve) -> None:
    client = serve(mnist)
    page = browser.new_context().new_page()
    page.goto(client.base)
    wait_for(page, "#notice", "needs the address that idx view printed")
    page.context.close()


ATTACK = """async (base) => {
    const tell = (work) => work.then(() => 'got it', () => 'refused');
    const body = JSON.stringify({items: [[0, 1]], label: 3});
    const write = {method: 'POST', body};
    const frame = document.createElement('iframe');
    frame.src = base;
    document.body.append(frame);
    await new Promise((done) => { frame.onload = frame.onerror = done; });
    const script = document.createElement('script');
    script.src = `${base}/page.js`;
    const loaded = new Promise((yes, no) => { script.onload = yes; script.onerror = no; });
    document.body.append(script);
    await fetch(`${base}/api/relabel`, {...write, mode: 'no-cors'}).catch(() => null);
    return {
        read: await tell(fetch(`${base}/api/labels`)),
        write: await tell(fetch(`${base}/api/relabel`, write)),
        header: await tell(fetch(`${base}/api/labels`, {headers: {'X-Idx-Token': 'x'}})),
        script: await tell(loaded),
        token: localStorage.getItem('idx-token'),
    };
}"""


def test_another_page_gets_nothing(browser: Any, mnist: Path, tmp_path: Path, serve: Serve) -> None:
    """A page of another server on this machine, with everything that a browser lets it try."""
    client = serve(mnist)
    (tmp_path / "evil").mkdir()
    (tmp_path / "evil" / "index.html").write_text("<h1>evil</h1>")
    handler = functools.partial(_Quiet, directory=str(tmp_path / "evil"))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        context = browser.new_context()
        page = context.new_page()
        page.goto(client.serving.address)
        page.wait_for_selector(PAINTED)  # the token is in this browser's memory now
        page.goto(f"http://127.0.0.1:{server.server_port}/")
        tried = page.evaluate(
            ATTACK,
            client.base,
        )
        context.close()
        server.shutdown()
        thread.join()
    assert tried["read"] == tried["write"] == tried["header"] == tried["script"] == "refused"
    assert tried["token"] is None
    assert not (mnist / "train-labels-idx1-ubyte.journal.jsonl").exists()


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_: Any) -> None:
        pass


# Looks, and ways of reading


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_lies_beyond_the_edge(
    browser: Any, mnist: Path, serve: Serve, width: int, scheme: str
) -> None:
    context = browser.new_context(viewport={"width": width, "height": 800}, color_scheme=scheme)
    page = context.new_page()
    opened(page, serve(mnist))
    for tab in ("item", "numbers", "compare", "chosen"):
        page.click(f"#tab-{tab}")
        wide = page.evaluate("document.documentElement.scrollWidth")
        assert wide <= width
        inner = page.locator(f"#panel-{tab}").evaluate("(p) => p.scrollWidth - p.clientWidth")
        assert inner <= 0, tab
    ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (sum(map(int, ground[4:-1].split(","))) > 384) == (scheme == "light")
    page.focus("#grid")
    page.keyboard.press("t")
    turned = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (sum(map(int, turned[4:-1].split(","))) > 384) == (scheme == "dark")
    context.close()


def test_everything_has_a_name_and_is_reached_by_the_keyboard(
    page: Page, mnist: Path, serve: Serve
) -> None:
    opened(page, serve(mnist))
    nameless = page.evaluate(
        """() => [...document.querySelectorAll('button, input, select, canvas[tabindex], dialog')]
        .filter((e) => !(e.ariaLabel || e.textContent.trim() || e.labels?.length
            || e.getAttribute('aria-labelledby'))).map((e) => e.outerHTML)"""
    )
    assert nameless == []
    seen = []
    page.keyboard.press("Tab")
    for _ in range(60):
        seen.append(page.evaluate("document.activeElement.id || document.activeElement.tagName"))
        page.keyboard.press("Tab")
    order = [seen.index(name) for name in ("skip", "jump-to", "zoom", "where", "grid", "tab-item")]
    assert order == sorted(order)
    page.evaluate("document.querySelector('#skip').focus()")
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "grid"
    page.keyboard.press("?")
    page.wait_for_selector("#help[open]")
    page.keyboard.press("Escape")
    assert page.locator("#help[open]").count() == 0
    assert page.get_attribute("#status", "aria-live") == "polite"


def test_text_can_be_selected(page: Page, mnist: Path, serve: Serve) -> None:
    opened(page, serve(mnist))
    page.click("#tab-numbers")
    wait_for(page, "#panel-numbers", "47,040,016")
    page.dblclick("#panel-numbers dd:has-text('47,040,016')")
    assert page.evaluate("getSelection().toString()").strip() != ""


# The page that needs no server


def test_an_exported_page_opens_from_disk(browser: Any, mnist: Path, tmp_path: Path) -> None:
    out = tmp_path / "page.html"
    idxfile.view(mnist, export=out, items=np.arange(100, 160))
    context = browser.new_context(viewport={"width": 1280, "height": 800}, offline=True)
    page = context.new_page()
    faults: list[str] = []
    page.on("console", lambda message: faults.append(message.text))
    page.on("pageerror", lambda error: faults.append(str(error)))
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(out.as_uri())
    page.wait_for_selector(PAINTED)
    labels = idxfile.read(mnist / "train-labels-idx1-ubyte", slice(100, 160))
    wait_for(page, "#status", f"Item 100, label {labels[0]}")
    images = idxfile.read(mnist / "train-images-idx3-ubyte", slice(100, 160))
    assert picture(page) == images[0].reshape(-1).tolist()
    page.focus("#grid")
    page.keyboard.press("1")
    wait_for(page, "#tally", f"{(labels == 1).sum()} of 60 items")
    page.keyboard.press("1")
    page.select_option("#sort", "shuffle")
    wait_for(page, "#tally", "60 of 60 items")
    assert page.locator(".server:visible").count() == 0
    assert faults == []
    assert [url for url in asked if not url.startswith(("file:", "data:", "blob:"))] == []
    context.close()


def test_the_address_is_all_that_is_kept(page: Page, mnist: Path, serve: Serve) -> None:
    client = serve(mnist)
    client.counted()
    opened(page, client, "&classes=3,7&sort=-ink&tile=60&panel=numbers&invert=1&low=20&high=200")
    wait_for(page, "#tally", f"{6131 + 6265:,} of 60,000 items")
    assert page.get_attribute("#invert", "aria-pressed") in ("true", "false")
    state = dict(part.split("=") for part in page.url.partition("#")[2].split("&"))
    assert "token" not in state
    until(page, "location.hash.includes('classes=3,7')")
    assert json.dumps(page.input_value("#sort")) == '"-ink"'
    assert page.locator("#tab-numbers[aria-selected=true]").count() == 1
    assert page.locator("#classes button[aria-pressed=true]").count() == 2
