"""A web server of objects on this machine that understands ranges, and misbehaves on demand.

The first part of a path says how: `/ok/NAME` is served rightly, `/cut/NAME` breaks off.
"""

from __future__ import annotations

import re
import socket
from collections.abc import Callable
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler
from urllib.parse import unquote

from faulty_server import PAGE, FaultyServer


class RangeServer(FaultyServer):
    """Serves `files` (name → bytes); `requests` is the log: path, and the range asked for."""

    def __init__(self, files: dict[str, bytes]) -> None:
        super().__init__(files)
        self.RequestHandlerClass = Handler
        self.requests: list[tuple[str, str | None]] = []
        self.headers: list[dict[str, str]] = []
        self.instead: dict[str, str] = {}
        """Another behaviour for single paths."""
        self.gate: Callable[[int], None] = lambda start: None
        """Called with the first byte of each range of `/gated/NAME` before it is answered."""

    def at(self, behaviour: str, name: str = "images.idx") -> str:
        """The address of an object that is served like that."""
        return f"http://127.0.0.1:{self.server_port}/{behaviour}/{name}"


class Handler(BaseHTTPRequestHandler):
    server: RangeServer
    protocol_version = "HTTP/1.1"
    timeout = 30
    disable_nagle_algorithm = True  # else each answer waits for the client's acknowledgement

    def do_GET(self) -> None:
        server = self.server
        server.requests.append((unquote(self.path), self.headers.get("Range")))
        server.headers.append(dict(self.headers))
        _, behaviour, name = unquote(self.path).partition("?")[0].split("/", 2)
        behaviour = server.instead.get(unquote(self.path), behaviour)
        self.turn = sum(path == unquote(self.path) for path, _ in server.requests)
        """The number of this request among those for the same path, from 1."""
        self.again = server.requests.count((unquote(self.path), self.headers.get("Range")))
        """The number of this request among those for the same range of it, from 1."""
        data = server.files.get(name)
        if behaviour.isdigit():
            self.send_error(int(behaviour))
        elif data is None:
            self.send_error(404)
        else:
            BEHAVIOURS[behaviour](self, data)

    @property
    def first(self) -> bool:
        return self.headers.get("Range") == "bytes=0-1023"

    def asked(self, size: int) -> tuple[int, int] | None:
        """The range that is wanted: the first byte, and the one behind the last."""
        match = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", ""))
        if match is None:
            return None
        return int(match[1]), min(size, int(match[2]) + 1 if match[2] else size)

    def serve(
        self,
        data: bytes,
        *,
        ranges: bool = True,
        tag: str | None = '"v1"',
        modified: float | None = None,
        said: str | None = None,
        send: slice = slice(None),
        chunked: bool = False,
        more: dict[str, str] | None = None,
    ) -> None:
        """Answer rightly, but for what is given.

        Args:
            data: the object.
            ranges: whether ranges are understood.
            tag: the entity tag.
            modified: the time of its last change.
            said: another Content-Range than the right one.
            send: which bytes of the body are sent; fewer than announced break it off.
            chunked: in chunks, without a length.
            more: further headers.
        """
        asked = self.asked(len(data)) if ranges else None
        if asked and asked[0] >= len(data):
            self.send_response(416)
            self.send_header("Content-Range", f"bytes */{len(data)}")
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        start, stop = asked or (0, len(data))
        body = data[start:stop]
        self.send_response(206 if asked else 200)
        if asked:
            self.send_header("Content-Range", said or f"bytes {start}-{stop - 1}/{len(data)}")
        if tag:
            self.send_header("ETag", tag)
        if modified is not None:
            self.send_header("Last-Modified", formatdate(modified, usegmt=True))
        for name, value in (more or {}).items():
            self.send_header(name, value)
        if chunked:
            self.send_header("Transfer-Encoding", "chunked")
        else:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        sent = body[send]
        if chunked:
            for at in range(0, len(sent), 1000):
                piece = sent[at : at + 1000]
                self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
            self.wfile.write(b"0\r\n\r\n")
        else:
            self.wfile.write(sent)
        self.close_connection = len(sent) != len(body)

    def busy(self, status: int, retry_after: str | None = None) -> None:
        self.send_response(status)
        if retry_after is not None:
            self.send_header("Retry-After", retry_after)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def reset(self) -> None:
        """End the connection as a crash does."""
        linger = b"\1\0\0\0\0\0\0\0"
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        self.close_connection = True
        self.connection.close()

    def log_message(self, *_: object) -> None:
        """The log is a list."""


def _moved(h: Handler, where: str) -> None:
    h.send_response(302)
    h.send_header("Location", where)
    h.send_header("Content-Length", "0")
    h.end_headers()


def _page(h: Handler) -> None:
    h.send_response(200)
    h.send_header("Content-Type", "text/html")
    h.send_header("Content-Length", str(len(PAGE)))
    h.end_headers()
    h.wfile.write(PAGE)


def _listed(h: Handler, data: bytes) -> None:
    """A folder is a file whose name ends in `/`: the page that leads to what is in it."""
    page = h.path.endswith("/")
    h.serve(data, ranges=not page, more={"Content-Type": "text/html"} if page else None)


def _stall(h: Handler, data: bytes) -> None:
    if h.first:
        h.serve(data)
    else:
        h.server.ended.wait(20)
        h.close_connection = True


def _other(data: bytes) -> bytes:
    return data[:1024] + bytes(b ^ 255 for b in data[1024:])


def _gated(h: Handler, data: bytes) -> None:
    if not h.first:
        _gated_at_once(h, data)
    else:
        h.serve(data)


def _gated_at_once(h: Handler, data: bytes) -> None:
    h.server.gate((h.asked(len(data)) or (0, 0))[0])
    h.serve(data)


def _half(h: Handler, data: bytes, **options: object) -> None:
    asked = h.asked(len(data)) or (0, len(data))
    h.serve(data, send=slice((asked[1] - asked[0] + 1) // 2), **options)


def _resets(h: Handler, data: bytes) -> None:
    if h.again % 2:
        h.reset()
    else:
        h.serve(data)


BEHAVIOURS: dict[str, Callable[[Handler, bytes], None]] = {
    "ok": lambda h, data: h.serve(data),
    "no ranges": lambda h, data: h.serve(data, ranges=False),
    "no ranges, cut": lambda h, data: (
        _half(h, data, ranges=False) if h.turn == 1 else h.serve(data)
    ),
    "no tag": lambda h, data: h.serve(data, tag=None),
    "no ranges, no tag, cut": lambda h, data: h.serve(
        data, ranges=False, tag=None, send=slice(len(data) // 2)
    ),
    "busy": lambda h, data: h.busy(503) if h.again % 3 else h.serve(data),
    "too many": lambda h, data: h.busy(429, "0") if h.again % 2 else h.serve(data),
    "much later": lambda h, data: h.busy(503, "3600"),
    "cut": _half,
    "always cut": lambda h, data: h.serve(data, send=slice(0 if not h.first else None)),
    "resets": _resets,
    "wrong range first": lambda h, data: h.serve(
        data, said=f"bytes 5-1028/{len(data)}" if h.first else None
    ),
    "wrong range": lambda h, data: h.serve(
        data, said=None if h.first else f"bytes 5-1028/{len(data)}"
    ),
    "short range": lambda h, data: (
        h.serve(data) if h.first else h.serve(data[:-1], said=f"bytes 1024-1025/{len(data)}")
    ),
    "another range": lambda h, data: (
        h.serve(data) if h.first else h.serve(data[7:], said=_said(h, data))
    ),
    "later all": lambda h, data: h.serve(data, ranges=h.first),
    "longer": lambda h, data: h.serve(data if h.first else data + b"\0"),
    "replaced": lambda h, data: h.serve(data) if h.first else h.serve(_other(data), tag='"v2"'),
    "replaced, matching": lambda h, data: h.serve(data) if h.first else h.busy(412),
    "replaced, dated": lambda h, data: (
        h.serve(data, tag=None, modified=1e9)
        if h.first
        else h.serve(_other(data), tag=None, modified=1e9 + 1)
    ),
    "stall": _stall,
    "redirect": lambda h, data: _moved(h, h.path.replace("/redirect/", "/ok/", 1)),
    "loop": lambda h, data: _moved(h, h.path),
    "leads away": lambda h, data: _moved(h, "file:///etc/hostname"),
    "chunked": lambda h, data: h.serve(data, ranges=False, chunked=True),
    "chunked ranges": lambda h, data: h.serve(data, chunked=True),
    "encoded": lambda h, data: h.serve(data, more={"Content-Encoding": "gzip"}),
    "gated": _gated,
    "gated at once": _gated_at_once,
    "page": lambda h, data: _page(h),
    "listed": _listed,
}


def _said(h: Handler, data: bytes) -> str:
    start, stop = h.asked(len(data)) or (0, 0)
    return f"bytes {start + 7}-{stop + 6}/{len(data)}"
