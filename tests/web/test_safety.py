"""Attacks on the page's server, each by a real client over a real socket."""

from __future__ import annotations

import json
import os
import re
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from page_server import Client, Serve, serve, serving_places, write_pair

from idxfile.viewer.web.guard import MOST_BODY_NBYTES, Guard
from idxfile.viewer.web.page import FILES

__all__ = ["serve"]

READS = (
    "facts",
    "raw",
    "items?from=0&to=1",
    "labels",
    "order",
    "figures",
    "means",
    "item?item=0",
    "journal",
)
WRITES: dict[str, Any] = {
    "relabel": {"items": [[0, 1]], "label": 7},
    "undo": {},
    "save": {"items": [[0, 2]], "name": "stolen"},
    "sheet": {"items": [[0, 2]]},
    "figures": {},
    "items": b"\0\0\0\0",
}


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_pair(tmp_path_factory.mktemp("attacked") / "pair")


@pytest.fixture(scope="module")
def client(pair: Path) -> Iterator[Client]:
    """One server for all attacks: none of them may change anything."""
    with serving_places(pair.parent / "out") as start:
        yield start(pair)


def untouched(client: Client, pair: Path) -> bool:
    """Whether nothing was written anywhere."""
    written = [*pair.parent.joinpath("out").iterdir(), *pair.glob("*.jsonl")]
    return not written


def raw_request(client: Client, text: str) -> str:
    """The first line of the answer to bytes that no well-behaved client would send."""
    with socket.create_connection(("127.0.0.1", client.serving.port), timeout=10) as wire:
        wire.sendall(text.encode("latin-1"))
        return wire.makefile("rb").readline().decode("latin-1").strip()


# Loopback only


def test_it_listens_on_loopback_alone(client: Client) -> None:
    assert client.serving._socket.getsockname()[0] == "127.0.0.1"
    for address in {info[4][0] for info in socket.getaddrinfo(socket.gethostname(), None)}:
        if not str(address).startswith("127.") and address != "::1":
            with pytest.raises(OSError):
                socket.create_connection((address, client.serving.port), timeout=2)


# The token


@pytest.mark.parametrize("path", READS)
@pytest.mark.parametrize("token", [None, "", "x", "almost"])
def test_no_data_without_the_token(client: Client, path: str, token: str | None) -> None:
    if token == "almost":
        token = client.serving.token[:-1]
    headers = {} if token is None else {"X-Idx-Token": token}
    answer = client.http.get(f"/api/{path}", headers=headers)
    assert answer.status_code == 403
    assert client.serving.token not in answer.text


@pytest.mark.parametrize("path", WRITES)
def test_no_write_without_the_token(client: Client, pair: Path, path: str) -> None:
    answer = client.http.post(f"/api/{path}", headers={"Origin": client.base}, json={})
    assert answer.status_code == 403
    # Not in the address, not as a cookie: what a browser sends by itself opens nothing.
    query = client.http.post(
        f"/api/{path}?token={client.serving.token}",
        headers={"Origin": client.base, "Cookie": f"idx-token={client.serving.token}"},
        json={},
    )
    assert query.status_code == 403
    assert untouched(client, pair)


def test_the_token_is_long_and_new_each_time(serve: Serve, pair: Path) -> None:
    tokens = {serve(pair).serving.token for _ in range(3)}
    assert len(tokens) == 3
    assert all(len(token) >= 32 for token in tokens)


def test_the_token_stands_where_no_browser_sends_it(client: Client) -> None:
    before, _, after = client.serving.address.partition("#")
    assert client.serving.token in after
    assert client.serving.token not in before
    assert client.http.get("/").headers["referrer-policy"] == "no-referrer"


def test_the_page_itself_holds_no_data_and_no_token(client: Client, pair: Path) -> None:
    for path in FILES:
        answer = client.http.get(path)
        assert answer.status_code == 200
        assert client.serving.token not in answer.text
        assert str(pair) not in answer.text
        assert "train-images" not in answer.text


# The Host header: a foreign name that was made to point here


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "evil.example:{port}",
        "127.0.0.1.evil.example:{port}",
        "127.0.0.1",
        "localhost:1",
        "10.0.0.1:{port}",
        "",
    ],
)
@pytest.mark.parametrize("path", ["/", "/page.js", "/api/facts"])
def test_a_foreign_host_is_refused(client: Client, host: str, path: str) -> None:
    named = host.format(port=client.serving.port)
    answer = client.http.get(path, headers={**client.headers, "Host": named})
    assert answer.status_code == 421


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "127.0.0.2", "[::1]"])
def test_names_of_loopback_are_ours(client: Client, host: str) -> None:
    named = f"{host}:{client.serving.port}"
    answer = client.http.get("/api/facts", headers={**client.headers, "Host": named})
    assert answer.status_code == 200


def test_two_hosts_or_none_are_refused(client: Client) -> None:
    port = client.serving.port
    twice = f"GET / HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nHost: evil.example\r\n\r\n"
    assert " 400 " in f"{raw_request(client, twice)} "
    none = "GET / HTTP/1.0\r\n\r\n"
    assert " 400 " in f"{raw_request(client, none)} "


def test_a_wide_server_takes_addresses_and_no_foreign_names(serve: Serve, pair: Path) -> None:
    client = serve(pair, host="0.0.0.0")
    port = client.serving.port
    for host, status in (
        (f"192.168.1.7:{port}", 200),
        (f"{socket.gethostname()}:{port}", 200),
        (f"evil.example:{port}", 421),
    ):
        answer = client.http.get("/api/facts", headers={**client.headers, "Host": host})
        assert answer.status_code == status, host


# Where a request comes from


@pytest.mark.parametrize("path", WRITES)
@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Origin": ""},
        {"Origin": "http://127.0.0.1:1"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ],
    ids=str,
)
def test_no_write_for_another_page(
    client: Client, pair: Path, path: str, headers: dict[str, str]
) -> None:
    assert client.post(path, WRITES[path], **headers).status_code == 403
    assert untouched(client, pair)


def test_no_write_without_an_origin(client: Client, pair: Path) -> None:
    answer = client.http.post("/api/relabel", headers=client.headers, json=WRITES["relabel"])
    assert answer.status_code == 403
    assert untouched(client, pair)


@pytest.mark.parametrize("path", READS)
def test_no_data_for_another_page(client: Client, path: str) -> None:
    headers = {**client.headers, "Sec-Fetch-Site": "cross-site"}
    answer = client.http.get(f"/api/{path}", headers=headers)
    assert answer.status_code == 403


def test_nothing_lets_another_page_ask_first(client: Client) -> None:
    headers = {"Origin": "https://evil.example", "Access-Control-Request-Method": "POST"}
    answer = client.http.options("/api/relabel", headers=headers)
    assert answer.status_code == 405
    assert not [name for name in answer.headers if name.startswith("access-control")]


@pytest.mark.parametrize("path", [path for path in WRITES if path not in ("figures", "items")])
def test_nothing_is_written_by_reading(client: Client, pair: Path, path: str) -> None:
    assert client.get(path).status_code in (404, 405)
    assert untouched(client, pair)


# Paths


@pytest.mark.parametrize(
    "path",
    [
        "/../../../../etc/passwd",
        "/..%2f..%2f..%2fetc%2fpasswd",
        "/%2e%2e/%2e%2e/etc/passwd",
        "/static/../exhibit.py",
        "//etc/passwd",
        "/page.js/../../exhibit.py",
        "/etc/passwd\0.js",
        "/main.js",
        "/index.html",
        "/api/../../serving.py",
    ],
)
def test_no_path_reaches_the_disk(client: Client, path: str) -> None:
    text = path.replace("\0", "%00")
    line = raw_request(
        client,
        f"GET {text} HTTP/1.1\r\nHost: 127.0.0.1:{client.serving.port}\r\n"
        f"X-Idx-Token: {client.serving.token}\r\nConnection: close\r\n\r\n",
    )
    assert re.match(r"HTTP/1.1 (404|400)", line), line


@pytest.mark.parametrize("word", ["../x", "/etc/passwd", "-1", "1e3", "0x0", "9" * 40, "0;1", "١"])
@pytest.mark.parametrize("name", ["set", "rival"])
def test_data_sets_are_named_by_number_alone(client: Client, name: str, word: str) -> None:
    answer = client.get("labels", **{name: word})
    assert answer.status_code == 400


@pytest.mark.parametrize(
    "name",
    [
        "../escaped",
        "..",
        ".",
        "",
        " ",
        "a/b",
        "/tmp/absolute",
        "a\\b",
        ".hidden",
        "a\0b",
        "a\nb",
        "con:stream",
        "a" * 200,
        "trailing.",
        "trailing ",
        "~",
        "$HOME",
        "é",
        None,
        7,
        ["a"],
    ],
    ids=repr,
)
def test_a_name_to_save_under_is_a_plain_name(client: Client, pair: Path, name: Any) -> None:
    answer = client.post("save", {"items": [[0, 2]], "name": name})
    assert answer.status_code == 400
    assert untouched(client, pair)


def test_nothing_is_saved_through_a_link_or_over_anything(serve: Serve, tmp_path: Path) -> None:
    pair = write_pair(tmp_path / "pair")
    client = serve(pair)
    out, elsewhere = pair.parent / "out", pair.parent / "elsewhere"
    elsewhere.mkdir()
    (out / "link").symlink_to(elsewhere)
    (out / "dangling").symlink_to(pair.parent / "nowhere")
    (out / "file").write_text("mine")
    (out / "folder").mkdir()
    for name in ("link", "dangling", "file", "folder"):
        answer = client.post("save", {"items": [[0, 2]], "name": name})
        assert answer.status_code == 400
        assert "there already" in answer.json()["error"]
    assert (out / "file").read_text() == "mine"
    assert [*elsewhere.iterdir(), *(out / "folder").iterdir()] == []
    assert not (pair.parent / "nowhere").exists()


# Markup, and what a browser may do with an answer


def test_labels_and_names_are_sent_as_text(serve: Serve, tmp_path: Path) -> None:
    evil = "<img src=x onerror=alert(1)>"
    images = tmp_path / f"{evil.replace('/', '')}.idx"
    images.write_bytes(bytes.fromhex("00000801 00000002 0102"))
    client = serve(str(images))
    answer = client.get("facts")
    assert answer.headers["content-type"] == "application/json"
    assert answer.json()["name"] == images.name


@pytest.mark.parametrize("path", ["/", "/page.js", "/page.css", "/api/facts", "/nothing"])
def test_every_answer_says_what_a_browser_may_do(client: Client, path: str) -> None:
    headers = client.http.get(path, headers=client.headers).headers
    policy = dict(
        part.strip().partition(" ")[::2] for part in headers["content-security-policy"].split(";")
    )
    assert policy["default-src"] == "'none'"
    assert policy["script-src"] == policy["style-src"] == policy["connect-src"] == "'self'"
    assert policy["frame-ancestors"] == policy["base-uri"] == policy["form-action"] == "'none'"
    assert "unsafe" not in headers["content-security-policy"]
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["cross-origin-resource-policy"] == "same-origin"
    assert headers["cache-control"] == (
        "no-store" if "/api" in path or path == "/nothing" else "no-cache"
    )
    assert "server" not in headers


def test_refusals_say_so_too(client: Client) -> None:
    answer = client.http.get("/api/facts")
    assert answer.status_code == 403
    assert "default-src 'none'" in answer.headers["content-security-policy"]


def test_the_page_has_nothing_inline_and_asks_nobody_else() -> None:
    page = FILES["/"][1].decode()
    assert not re.search(r"<script(?![^>]*\ssrc=)", page)
    assert not re.search(r"\s(style|on\w+)=", page)
    texts = "".join(data.decode() for _, data in FILES.values())
    addresses = set(re.findall(r"(?:https?:)?//[\w.-]+\.\w+[^\s\"')]*", texts))
    assert addresses <= {"http://www.w3.org/2000/svg"}
    for way in (
        "innerHTML",
        "outerHTML",
        "insertAdjacentHTML",
        "document.write",
        "eval(",
        "new Function",
    ):
        assert way not in texts


# Too much


def test_a_body_that_is_too_long_is_refused_by_its_length(client: Client) -> None:
    line = raw_request(
        client,
        f"POST /api/relabel HTTP/1.1\r\nHost: 127.0.0.1:{client.serving.port}\r\n"
        f"Origin: {client.base}\r\nX-Idx-Token: {client.serving.token}\r\n"
        f"Content-Length: {MOST_BODY_NBYTES + 1}\r\n\r\n",
    )
    assert " 413 " in line


def test_a_body_that_does_not_say_its_length_is_refused_when_it_grows(client: Client) -> None:
    piece = b" " * (1 << 20)
    pieces = (piece for _ in range(MOST_BODY_NBYTES // len(piece) + 2))
    headers = {**client.headers, "Origin": client.base}
    answer = client.http.post("/api/relabel", headers=headers, content=pieces)
    assert answer.status_code == 413


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"{",
        b"\xff",
        b"[" * 100_000,
        json.dumps({"items": [[0, 10**30]], "label": 1}).encode(),
        json.dumps({"items": [[-1, 2]], "label": 1}).encode(),
        json.dumps({"items": [[5, 2]], "label": 1}).encode(),
        json.dumps({"items": [[0, 13]], "label": 1}).encode(),
        json.dumps({"items": [[0, 12]] * 9, "label": 1}).encode(),
        json.dumps({"items": "all", "label": 1}).encode(),
        json.dumps({"items": [[0, 1]], "label": 2**40}).encode(),
        json.dumps({"items": [[0, 1]], "label": "7"}).encode(),
        json.dumps({"items": [[0, 1]], "label": True}).encode(),
    ],
    ids=lambda body: body[:40].decode("latin-1"),
)
def test_bodies_that_are_none_change_nothing(client: Client, pair: Path, body: bytes) -> None:
    answer = client.post("relabel", body)
    assert answer.status_code == 400
    assert untouched(client, pair)


@pytest.mark.parametrize(
    "asked",
    ["", "bytes=0-", "bytes=-5", "bytes=5-1", "bytes=999999-9999999", "bytes=0-1,5-6", "lines=0-1"],
)
def test_ranges_that_are_none(client: Client, asked: str) -> None:
    answer = client.get("raw", headers={"Range": asked})
    assert answer.status_code == 416
    assert answer.content == b""


def test_a_guard_judges_in_constant_time() -> None:
    import inspect

    assert "compare_digest" in inspect.getsource(Guard)


def test_it_answers_no_socket_of_the_web(client: Client) -> None:
    line = raw_request(
        client,
        f"GET /api/facts HTTP/1.1\r\nHost: 127.0.0.1:{client.serving.port}\r\n"
        "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
        "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n",
    )
    assert " 403 " in line


def test_the_journal_follows_no_link_out(serve: Serve, tmp_path: Path) -> None:
    pair = write_pair(tmp_path / "pair")
    client = serve(pair)
    target = pair.parent / "precious"
    target.write_text("")
    os.symlink(target, pair / "train-labels-idx1-ubyte.journal.jsonl")
    assert client.post("relabel", {"items": [[0, 1]], "label": 7}).status_code == 500
    assert target.read_text() == ""
