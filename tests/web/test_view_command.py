"""`idx view` as a user starts it: its address, its end, what it says, what it exports."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from page_server import IMAGES, pair

import idxfile
from idxfile.cli import main

__all__ = ["pair"]

SCRIPT = str(Path(sys.executable).with_name("idx"))


@contextmanager
def running(*words: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """The command in a process of its own, and the address that it printed."""
    process = subprocess.Popen(
        [SCRIPT, "view", *words, "--no-browser"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    try:
        yield process, process.stdout.readline().strip()
    finally:
        process.kill()
        process.communicate()


def ask(address: str, path: str) -> httpx.Response:
    base, _, token = address.partition("/#token=")
    return httpx.get(f"{base}/{path}", headers={"X-Idx-Token": token}, timeout=30)


@pytest.mark.parametrize(("stop", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, -15)])
def test_it_prints_its_address_serves_and_ends(pair: Path, stop: int, code: int) -> None:
    with running(str(pair)) as (process, address):
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+/#token=[\w-]{32}", address)
        assert ask(address, "").text.startswith("<!doctype html>")
        assert ask(address, "api/facts").json()["count"] == 12
        process.send_signal(stop)
        out, err = process.communicate(timeout=20)
        assert process.returncode == code
        assert out == ""
        assert "Traceback" not in err
        ended = "interrupted" if code == 130 else "terminated"
        assert [line for line in err.splitlines() if line] == ["Ctrl-C ends it", ended]


def test_a_host_that_others_reach_is_told(pair: Path) -> None:
    with running(str(pair), "--host", "0.0.0.0") as (process, address):
        assert address.startswith("http://127.0.0.1:")
        assert ask(address, "api/facts").status_code == 200
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=20)
        assert "warning: this listens at 0.0.0.0" in err


def test_a_port_that_is_taken_is_an_error_of_the_system(
    pair: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with running(str(pair)) as (_, address):
        port = address.split(":")[2].split("/")[0]
        assert main(["view", str(pair), "--no-browser", "--port", port]) == 5
        assert "Address already in use" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["nowhere"], 5, "error: nowhere: No such file or directory"),
        ([".", "--no-browser"], 5, "No file in this folder has a name like IDX"),
        (["pair", "--items", "0:5"], 2, "it needs --export"),
        (["pair", "--export", "taken.html"], 2, "taken.html exists; --force writes over it"),
        (["pair", "--export", "new.html", "--items", "99"], 2, "index 99 is out of bounds"),
        (["pair", "--export", "new.html", "--items", "a:b"], 2, "no slice"),
        (["page.idx", "--export", "new.html"], 3, "has no items"),
    ],
    ids=str,
)
def test_what_cannot_be_shown(
    pair: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    words: list[str],
    code: int,
    said: str,
) -> None:
    monkeypatch.chdir(pair.parent)
    Path("taken.html").write_text("mine")
    if words[0] == ".":
        os.mkdir("nothing")
        monkeypatch.chdir("nothing")
    if words[0] == "page.idx":
        Path("page.idx").write_text("<html>")
    assert main(["view", *words]) == code
    out, err = capsys.readouterr()
    assert said in err
    assert out == ""
    assert not Path("new.html").exists()


def test_an_export(pair: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "page.html"
    out.write_text("old")
    words = ["view", str(pair), "--export", str(out), "--items", "2:5"]
    assert main([*words, "--force"]) == 0
    text, err = capsys.readouterr()
    assert text == ""
    assert err == f"{out}: {out.stat().st_size:,} bytes\n"
    assert '"numbers":[2,3,4]' in out.read_text()


def test_without_its_packages_it_says_what_to_install(
    pair: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    assert main(["view", str(pair), "--no-browser"]) == 2
    assert "hint: pip install 'idxfile[view]'" in capsys.readouterr().err
    # The exported page needs neither.
    assert main(["view", str(pair), "--export", str(pair.parent / "page.html")]) == 0


def test_the_browser_is_opened_by_itself(pair: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from idxfile.viewer.web import serving

    opened: list[str] = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    monkeypatch.setattr(serving.Serving, "run", lambda self: None)
    monkeypatch.setattr(serving.threading, "Thread", _Now)
    told: list[str] = []
    idxfile.view(IMAGES, ready=told.append)
    assert opened == told
    idxfile.view(IMAGES, ready=told.append, browser=False)
    assert len(opened) == 1


class _Now:
    """A thread that has run when it is started."""

    def __init__(self, target: object, args: tuple[object, ...] = (), daemon: bool = False) -> None:
        self._work = lambda: target(*args)  # type: ignore[operator]

    def start(self) -> None:
        self._work()
