"""A server of files on this machine that misbehaves on demand, for as long as a test runs.

The first part of a path says how: `/404/mnist/FILE` is never found, `/cut/mnist/FILE` ends early.
"""

from __future__ import annotations

import gzip
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

PAGE = b"<!DOCTYPE html>\n<html><head><title>Moved away</title></head><body>Sorry.</body></html>"


class FaultyServer(ThreadingHTTPServer):
    """Serves `files` (`mnist/FILE` → bytes) from a free port; keeps a log of what was asked."""

    daemon_threads = True
    block_on_close = False

    def __init__(self, files: dict[str, bytes]) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.files = files
        self.log: list[str] = []
        self.ended = threading.Event()

    def url(self, behaviour: str, folder: str = "") -> str:
        """The address of a mirror that behaves like that."""
        return f"http://127.0.0.1:{self.server_port}/{behaviour}/{folder}{'/' if folder else ''}"

    def asked(self, behaviour: str = "") -> list[str]:
        """The files that were asked for, of mirrors that behave like that."""
        return [path.rpartition("/")[2] for path in self.log if path.startswith(f"/{behaviour}")]

    def __enter__(self) -> FaultyServer:
        threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True).start()
        return self

    def __exit__(self, *exception: object) -> None:
        self.ended.set()
        self.shutdown()
        self.server_close()

    def handle_error(self, *_: object) -> None:
        """A client that goes away is what some tests are about."""


class _Handler(BaseHTTPRequestHandler):
    server: FaultyServer
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        _, behaviour, name = self.path.split("/", 2)
        self.server.log.append(self.path)
        data = self.server.files.get(name)
        if behaviour.isdigit():
            self.send_error(int(behaviour))
        elif data is None:
            self.send_error(404)
        else:
            _BEHAVIOURS[behaviour](self, data)

    def answer(self, body: bytes, length: int | None = None, kind: str = "gzip") -> None:
        """A whole body, announced as so many bytes."""
        self.send_response(200)
        self.send_header("Content-Type", f"application/{kind}")
        self.send_header("Content-Length", str(len(body) if length is None else length))
        self.end_headers()
        self.wfile.write(body)
        self.close_connection = len(body) != length

    def log_message(self, *_: object) -> None:
        """The log is a list."""


def _stall(handler: _Handler, data: bytes) -> None:
    handler.answer(data[: len(data) // 2], len(data))
    handler.server.ended.wait(20)


def _silent(handler: _Handler, data: bytes) -> None:
    handler.server.ended.wait(20)


def _slow(handler: _Handler, data: bytes) -> None:
    half = len(data) // 2
    handler.answer(data[:half], len(data))
    handler.wfile.flush()
    time.sleep(0.7)
    handler.wfile.write(data[half:])


def _unannounced(handler: _Handler, data: bytes) -> None:
    """Cut, and nothing was said of the length."""
    handler.send_response(200)
    handler.end_headers()
    handler.wfile.write(data[: len(data) // 2])
    handler.close_connection = True


def _redirect(handler: _Handler, data: bytes) -> None:
    handler.send_response(302)
    handler.send_header("Location", handler.path.replace("/redirect/", "/ok/", 1))
    handler.send_header("Content-Length", "0")
    handler.end_headers()


def _agent(handler: _Handler, data: bytes) -> None:
    """As NIST's: whoever calls himself Python is refused."""
    agent = handler.headers.get("User-Agent", "")
    if agent.startswith("idxfile/"):
        handler.answer(data)
    else:
        handler.send_error(403)


def _encoded(handler: _Handler, data: bytes) -> None:
    """Compressed once more on the way, to those who take that."""
    if "gzip" not in handler.headers.get("Accept-Encoding", ""):
        handler.answer(data)
        return
    handler.send_response(200)
    handler.send_header("Content-Encoding", "gzip")
    handler.end_headers()
    handler.wfile.write(data)
    handler.close_connection = True


def _wrong(handler: _Handler, data: bytes) -> None:
    handler.answer(bytes([*data[:-9], data[-9] ^ 1, *data[-8:]]))


_BEHAVIOURS: dict[str, Callable[[_Handler, bytes], None]] = {
    "ok": lambda handler, data: handler.answer(data),
    "html": lambda handler, data: handler.answer(PAGE, kind="html"),
    "cut": lambda handler, data: handler.answer(data[: len(data) // 2], len(data)),
    "wrong": _wrong,
    "other": lambda handler, data: handler.answer(gzip.compress(b"no such data")),
    "text": lambda handler, data: handler.answer(b"see the new address in the readme"),
    "empty": lambda handler, data: handler.answer(b""),
    "long": lambda handler, data: handler.answer(data + bytes(99)),
    "stall": _stall,
    "silent": _silent,
    "slow": _slow,
    "unannounced": _unannounced,
    "redirect": _redirect,
    "agent": _agent,
    "encoded": _encoded,
}
