"""A real server on loopback, a real client, and small data sets for both."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

import idxfile
from idxfile.viewer.web.places import Place, find_places
from idxfile.viewer.web.serving import Serving

ORIGIN = "http://127.0.0.1"


class Client:
    """Asks as the page does: with the token, from its own origin."""

    def __init__(self, serving: Serving) -> None:
        self.serving = serving
        self.base = f"{ORIGIN}:{serving.port}"
        self.headers = {"X-Idx-Token": serving.token}
        self.http = httpx.Client(base_url=self.base, timeout=30)

    def get(self, path: str, headers: dict[str, str] | None = None, **words: Any) -> httpx.Response:
        given = {**self.headers, **(headers or {})}
        return self.http.get(f"/api/{path}", params=words, headers=given)

    def post(self, path: str, body: Any, number: int = 0, **headers: str) -> httpx.Response:
        given = {**self.headers, "Origin": self.base, **headers}
        kind = {"content": body} if isinstance(body, bytes) else {"json": body}
        return self.http.post(f"/api/{path}", params={"set": number}, headers=given, **kind)

    def json(self, path: str, **words: Any) -> Any:
        answer = self.get(path, **words)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def order(self, **words: Any) -> list[int]:
        """The items of a query, once everything has been counted."""
        self.counted(words.get("set", 0))
        answer = self.get("order", **words)
        assert answer.status_code == 200, answer.text
        return np.frombuffer(answer.content, "<u4").tolist()

    def counted(self, number: int = 0) -> Any:
        """The figures, complete."""
        exhibit = self.serving.exhibits[number]
        exhibit.file  # noqa: B018 - opens it
        exhibit.figures.start(asked=True)
        assert exhibit.figures.wait(60)
        return self.json("figures", set=number)


Serve = Callable[..., Client]


@contextmanager
def serving_places(out: Path) -> Iterator[Serve]:
    """Starts a server for a place at each call; they end with the block."""
    out.mkdir(exist_ok=True)
    with ExitStack() as stack:

        def start(place: Any, labels: Any = None, *, compare: Any = None, **options: Any) -> Client:
            rivals = [] if compare is None else [Place("compared", lambda: compare)]
            options.setdefault("out", out)
            serving = stack.enter_context(Serving(find_places(place, labels), rivals, **options))
            thread = threading.Thread(target=serving.run)
            thread.start()
            stack.callback(thread.join)
            stack.callback(serving.stop)
            client = Client(serving)
            stack.callback(client.http.close)
            return client

        yield start


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Serve]:
    """Starts a server for a place; it ends with the test."""
    with serving_places(tmp_path / "out") as start:
        yield start


IMAGES = (np.arange(12 * 4 * 3) % 251).astype("uint8").reshape(12, 4, 3)
LABELS = np.array([3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8], "uint8")


def write_pair(folder: Path) -> Path:
    """Twelve small pictures with their labels."""
    idxfile.Dataset(IMAGES, LABELS, split="train").save(folder)
    return folder


@pytest.fixture
def pair(tmp_path: Path) -> Path:
    """A folder with that pair."""
    return write_pair(tmp_path / "pair")
