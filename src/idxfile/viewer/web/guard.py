"""Who may ask, and what a browser may do with the answer.

A page on loopback can be reached by every other page that the browser has open, and by every
user of the machine. So each request must name this server as its host (a name that was made to
point here does not), and each request for data must bring the token as a header, which no other
page can know or send. What changes anything must besides come from this page itself.
"""

from __future__ import annotations

import ipaddress
import secrets
import socket
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

__all__ = ["Guard", "is_loopback"]

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

TOKEN_HEADER = b"x-idx-token"
MOST_BODY_NBYTES = 1 << 24

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cache-control": "no-store",
}


class RefusedError(Exception):
    """A request that is not answered."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status


class Guard:
    """An ASGI application in front of another.

    Args:
        app: what it guards.
        token: the secret of this server.
        host: where it listens, as the user gave it.
        port: its port.
    """

    def __init__(self, app: App, token: str, host: str, port: int) -> None:
        self._app, self._token = app, token.encode()
        self._port = port
        self._names = {"localhost", host.lower()}
        if not is_loopback(host):
            self._names.add(socket.gethostname().lower())
        self._wide = not is_loopback(host)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, or refuse."""
        if scope["type"] != "http":
            return
        headers = {name.lower(): value for name, value in scope["headers"]}
        try:
            self._judge(scope["method"], scope["path"], scope["headers"], headers)
            receive = await _whole_body(receive, headers.get(b"content-length"))
            await self._app(scope, receive, _with_headers(send))
        except RefusedError as refused:
            body = str(refused).encode()
            kind = (b"content-type", b"text/plain; charset=utf-8")
            send = _with_headers(send)
            await send({"type": "http.response.start", "status": refused.status, "headers": [kind]})
            await send({"type": "http.response.body", "body": body})

    def _judge(
        self, method: str, path: str, lines: list[tuple[bytes, bytes]], headers: dict[bytes, bytes]
    ) -> None:
        if sum(name.lower() == b"host" for name, _ in lines) != 1:
            raise RefusedError(400, "a request names one host")
        host = headers[b"host"].decode("latin-1").lower()
        if not self._is_mine(host):
            raise RefusedError(421, "this is another host's name")
        if method not in ("GET", "HEAD", "POST"):
            raise RefusedError(405, "there is nothing to be done so")
        if not path.startswith("/api/"):
            return  # the page itself holds no data
        if not secrets.compare_digest(headers.get(TOKEN_HEADER, b""), self._token):
            raise RefusedError(403, "open the address that `idx view` printed: it has the token")
        if headers.get(b"sec-fetch-site", b"same-origin") != b"same-origin":
            raise RefusedError(403, "another page asked for this")
        if method == "POST" and headers.get(b"origin", b"").decode("latin-1") != f"http://{host}":
            raise RefusedError(403, "only this page may change anything")

    def _is_mine(self, host: str) -> bool:
        """Whether a Host header means this server: a name of its own, or an address.

        A foreign name may point here; an address cannot be made to.
        """
        name, colon, port = host.rpartition(":")
        if not colon or port != str(self._port):
            if self._port != 80 or colon:
                return False
            name = host
        name = name.removeprefix("[").removesuffix("]")
        if name in self._names:
            return True
        try:
            address = ipaddress.ip_address(name)
        except ValueError:
            return False
        return self._wide or address.is_loopback


def is_loopback(host: str) -> bool:
    """Whether an address to listen at is reached from this machine alone."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


async def _whole_body(receive: Receive, length: bytes | None) -> Receive:
    """The body, read before anything is done with it; refused where the page sends none so long."""
    if length is not None and (not length.isdigit() or int(length) > MOST_BODY_NBYTES):
        raise RefusedError(413, "this is too much")
    body, more = bytearray(), True
    while more:
        message = await receive()
        if message["type"] != "http.request":
            raise RefusedError(400, "the body ended too soon")
        body += message.get("body", b"")
        more = message.get("more_body", False)
        if len(body) > MOST_BODY_NBYTES:
            raise RefusedError(413, "this is too much")
    parts: list[Message] = [{"type": "http.request", "body": bytes(body), "more_body": False}]

    async def again() -> Message:
        return parts.pop() if parts else await receive()

    return again


def _with_headers(send: Send) -> Send:
    async def sent(message: Message) -> None:
        if message["type"] == "http.response.start":
            given = {name.lower() for name, _ in message.get("headers", ())}
            more = [(n.encode(), v.encode()) for n, v in HEADERS.items() if n.encode() not in given]
            message = {**message, "headers": [*message.get("headers", ()), *more]}
        await send(message)

    return sent
