"""What the clouds of the tests have in common: HTTP on this machine, with a log."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import NamedTuple
from urllib.parse import unquote


class Request(NamedTuple):
    method: str
    path: str
    """With its query."""
    wanted: str | None
    """The range that is asked for."""
    headers: dict[str, str]
    """Names in small letters."""
    body: bytes


class Response(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes


class LoggedServer(ThreadingHTTPServer):
    """Gives every request to `answer`; `requests` is the log."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.requests: list[Request] = []
        self.before: Callable[[Request], int | None] = lambda request: None
        """Called with each request; a status that it returns is the answer."""
        self.endpoint = f"http://127.0.0.1:{self.server_port}"

    def answer(self, request: Request) -> Response:
        raise NotImplementedError

    def reads(self, name: str) -> list[str | None]:
        """The ranges that were asked for of an object."""
        return [
            request.wanted
            for request in self.requests
            if request.method == "GET" and name in unquote(request.path)
        ]

    def __enter__(self) -> LoggedServer:
        self._thread = threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self.shutdown()
        self._thread.join()
        self.server_close()


class _Handler(BaseHTTPRequestHandler):
    server: LoggedServer
    protocol_version = "HTTP/1.1"
    timeout = 30
    disable_nagle_algorithm = True

    def _serve(self) -> None:
        headers = {name.lower(): value for name, value in self.headers.items()}
        if headers.get("expect"):
            self.send_response_only(100)
            self.end_headers()
        request = Request(
            self.command,
            self.path,
            headers.get("x-ms-range") or headers.get("range"),
            headers,
            self._body(headers),
        )
        self.server.requests.append(request)
        status = self.server.before(request)
        answer = self.server.answer(request) if status is None else Response(status, {}, b"")
        self.send_response_only(answer.status)
        length = str(len(answer.body))
        for name, value in {"Content-Length": length, **answer.headers}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                self.wfile.write(answer.body)

    def _body(self, headers: dict[str, str]) -> bytes:
        if headers.get("transfer-encoding", "").lower() != "chunked":
            return self.rfile.read(int(headers.get("content-length", 0)))
        pieces = []
        while length := int(self.rfile.readline().partition(b";")[0], 16):
            pieces.append(self.rfile.read(length))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(pieces)

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = do_PATCH = _serve

    def log_message(self, *_: object) -> None:
        """The log is a list."""
