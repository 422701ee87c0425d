"""What the page of `idx view` costs, in a real browser: `python -m benchmarks.view`.

It prints three figures over the 60,000 images of MNIST's training set: the time from the page to
its first picture, the median frame while it is scrolled, and the memory before and after a scroll
through everything. Needs playwright, and Chromium at /usr/bin/chromium.
"""

from __future__ import annotations

import gzip
import statistics
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any

from idxfile.viewer.web.places import find_places
from idxfile.viewer.web.serving import Serving

MNIST = Path(__file__).parent.parent / "tests" / "data" / "mnist"
CHROMIUM = "/usr/bin/chromium"
OPENINGS = 9
SCREENS_A_SECOND = 12
"""How fast it is scrolled: far faster than anybody reads."""

FIRST = """() => performance.getEntriesByName('first-tiles')[0].startTime
    - performance.getEntriesByType('navigation')[0].responseEnd"""
SCROLL = """async (step) => {
    const scroller = document.querySelector('#scroller'), grid = document.querySelector('#grid');
    const frames = [];
    let complete = 0, last = performance.now();
    while (scroller.scrollTop + scroller.clientHeight < scroller.scrollHeight - 1) {
        scroller.scrollTop += step;
        await new Promise(requestAnimationFrame);
        const now = performance.now();
        frames.push(now - last);
        last = now;
        complete += grid.dataset.painted === 'all';
    }
    return {frames, complete};
}"""


def main() -> None:
    """Measure, and print a line a figure."""
    from playwright.sync_api import sync_playwright

    with tempfile.TemporaryDirectory() as folder, sync_playwright() as play:
        for role in ("images-idx3", "labels-idx1"):
            packed = (MNIST / f"train-{role}-ubyte.gz").read_bytes()
            Path(folder, f"train-{role}-ubyte").write_bytes(gzip.decompress(packed))
        with Serving(find_places(folder)) as serving:
            thread = threading.Thread(target=serving.run)
            thread.start()
            browser = play.chromium.launch(
                executable_path=CHROMIUM,
                args=["--no-sandbox", "--enable-precise-memory-info", "--js-flags=--expose-gc"],
            )
            try:
                measure(browser, serving)
            finally:
                browser.close()
                serving.stop()
                thread.join()


def measure(browser: Any, serving: Serving) -> None:
    """The three figures of one server."""
    firsts = [first_picture(browser, serving.address) for _ in range(OPENINGS)]
    told("first picture after the page", f"{statistics.median(firsts):.0f} ms", firsts)
    serving.exhibits[0].figures.wait(300)
    page = opened(browser, serving.address)
    page.wait_for_timeout(1000)
    height = page.evaluate("document.querySelector('#scroller').clientHeight")
    before = memory(page)
    used = []
    for _ in range(6):
        page.evaluate("document.querySelector('#scroller').scrollTop = 0")
        page.wait_for_selector("#grid[data-painted=all]")
        run = page.evaluate(SCROLL, height * SCREENS_A_SECOND / 60)
        used.append(memory(page))
    frames = run["frames"]
    told(
        "median frame while scrolling",
        f"{statistics.median(frames):.1f} ms",
        [statistics.quantiles(frames, n=20)[-1]],
    )
    share = run["complete"] / len(frames)
    print(f"frames with every tile there       {share:.0%} of {len(frames)}")
    print(f"memory of the page before          {before / 2**20:.0f} MiB")
    after = ", ".join(f"{n / 2**20:.0f}" for n in used)
    print(f"after each of 6 scrolls through all {after} MiB")


def opened(browser: Any, address: str) -> Any:
    page = browser.new_page(viewport={"width": 1280, "height": 800})
    page.goto(address)
    page.wait_for_selector("#grid[data-painted=all]")
    return page


def first_picture(browser: Any, address: str) -> float:
    page = opened(browser, address)
    seconds = float(page.evaluate(FIRST))
    page.close()
    return seconds


def memory(page: Any) -> int:
    """The resident memory of the page's process: scripts, buffers and pictures."""
    page.evaluate("gc()")
    session = page.context.browser.new_browser_cdp_session()
    processes = session.send("SystemInfo.getProcessInfo")["processInfo"]
    session.detach()
    renderers = [process["id"] for process in processes if process["type"] == "renderer"]
    return max(resident(pid) for pid in renderers)


def resident(pid: int) -> int:
    """The resident bytes of a process."""
    status = Path(f"/proc/{pid}/status").read_text()
    lines = dict(line.split(":", 1) for line in status.splitlines())
    return int(lines["VmRSS"].split()[0]) * 1024


def told(what: str, figure: str, all_of_them: list[float]) -> None:
    others = ", ".join(f"{n:.0f}" for n in sorted(all_of_them))
    print(f"{what:<34} {figure}  ({others})")


if __name__ == "__main__":
    sys.exit(main())
