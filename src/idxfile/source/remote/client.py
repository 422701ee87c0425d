"""Plain HTTP by the standard library alone: connections that are kept, redirects, patience."""

from __future__ import annotations

import base64
import contextlib
import http.client
import os
import socket
import ssl
from typing import Any, NamedTuple
from urllib.parse import quote, unquote, urljoin, urlsplit
from urllib.request import getproxies, proxy_bypass

from ...errors import FetchError
from ..locking import Lock
from ..places import public
from . import faults
from .faults import DeniedError, SilentStoreError, pause, status_error
from .object import RemoteIdentity

__all__ = ["Answer", "Client"]

_REDIRECTS = (301, 302, 303, 307, 308)
_MOST_REDIRECTS = 5


class Answer:
    """A response, whose body may break off."""

    def __init__(
        self, client: Client, route: Route, connection: Any, response: http.client.HTTPResponse
    ) -> None:
        self.status = response.status
        self.reason = response.reason
        self.whole = False
        """Whether the body was read to an end that the server set."""
        self._client = client
        self._route = route
        self._connection = connection
        self._response = response
        length = self.header("Content-Length")
        size = int(length) if length and length.isdigit() and self.status == 200 else None
        tag = self.header("ETag")
        self.identity = RemoteIdentity(size, tag or self.header("Last-Modified"))

    def header(self, name: str) -> str | None:
        """A header of the answer, or None."""
        return self._response.headers.get(name)

    def readinto(self, view: memoryview) -> int:
        """Fill `view`; fewer bytes where the body ends or breaks off."""
        done = 0
        try:
            while done < len(view):
                count = self._response.readinto(view[done : done + (1 << 20)])
                if not count:
                    self.whole = self._response.length in (0, None)
                    break
                done += count
        except (OSError, http.client.HTTPException, ValueError):
            # What came is right; whoever asked tells whether it is enough.
            self.whole = False
        return done

    def close(self) -> None:
        """Give the connection back if the body was read to its end, else drop it."""
        if self._response.isclosed() and not self._response.will_close:
            self._client.give_back(self._route, self._connection)
        else:
            self._response.close()
            self._connection.close()

    def __enter__(self) -> Answer:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


class Route(NamedTuple):
    """Where a connection goes."""

    scheme: str
    host: str


class Client:
    """Requests for one address, over connections that are kept; any number of threads may ask."""

    def __init__(self, url: str) -> None:
        self.name = public(url)
        self._url = self._where = url
        self._lock = Lock()
        self._idle: list[tuple[Route, Any]] = []
        self._process = os.getpid()

    def ask(
        self, start: int = 0, stop: int | None = None, identity: RemoteIdentity | None = None
    ) -> Answer:
        """Send a GET, again and again as long as the fault may pass.

        Args:
            start: the first byte wanted.
            stop: behind the last one; None is the end.
            identity: the version that is meant, once it is known.

        Returns:
            An answer of status 200, 206, 412 or 416.

        Raises:
            FetchError: for every other, and where there is none.
        """
        headers = {"Accept-Encoding": "identity", "Accept": "*/*", "User-Agent": "idxfile"}
        if start or stop is not None:
            headers["Range"] = f"bytes={start}-{'' if stop is None else stop - 1}"
        version = identity.version if identity else None
        if version and version.startswith('"'):  # a weak tag matches nothing
            headers["If-Match"] = version
        attempt = 0
        while True:
            attempt += 1
            try:
                answer = self._follow(headers)
            except FetchError:
                raise
            except ssl.SSLCertVerificationError as error:
                raise self._unreached(f"its certificate does not hold: {error}") from error
            except (ConnectionRefusedError, socket.gaierror) as error:
                raise self._unreached(error.strerror or str(error)) from error
            except (OSError, http.client.HTTPException) as error:
                if not pause(attempt):
                    raise self._given_up(error) from error
                continue
            if answer.status in (200, 206, 412, 416):
                return answer
            answer.close()
            if self._where != self._url and answer.status in (401, 403, 404, 410):
                self._where = self._url  # what it was led to is over: ask for the way again
                if attempt == 1:
                    continue
            passing = answer.status in faults.RETRIED_STATUS
            if not passing or not pause(attempt, answer.header("Retry-After")):
                raise status_error(self.name, answer.status, answer.reason)

    def _follow(self, headers: dict[str, str]) -> Answer:
        """Send a GET, and go where the answer leads."""
        url = self._where
        for _ in range(_MOST_REDIRECTS + 1):
            answer = self._get(url, headers)
            if answer.status not in _REDIRECTS:
                self._where = url
                return answer
            leads = answer.header("Location")
            answer.close()
            if not leads:
                break
            before, url = url, urljoin(url, leads)
            if urlsplit(url).scheme not in ("http", "https"):
                raise self._astray(f"it leads to {public(url)}, no HTTP")
            if before.startswith("https:") and url.startswith("http:"):
                raise self._astray("it leads from https to plain http")
        raise FetchError(
            "it leads from one place to another without end",
            file=self.name,
            hint="look at the address",
        )

    def _get(self, url: str, headers: dict[str, str]) -> Answer:
        parts = urlsplit(url)
        user, _, host = parts.netloc.rpartition("@")
        route = Route(parts.scheme, host)
        target = quote(parts.path or "/", safe="/%:@!$&'()*+,;=~-._")
        if parts.query:
            target = f"{target}?{quote(parts.query, safe='%/?:@!$&()*+,;=~-._')}"
        given = dict(headers)
        if user:
            pair = unquote(user).encode()
            given["Authorization"] = f"Basic {base64.b64encode(pair).decode()}"
        proxy = getproxies().get(route.scheme)
        if proxy and proxy_bypass(urlsplit(url).hostname or ""):
            proxy = None
        if proxy and route.scheme == "http":
            target = f"http://{host}{target}"
            given["Host"] = host
        while True:
            connection, used = self._connection(route, proxy)
            try:
                connection.request("GET", target, headers=given)
                return Answer(self, route, connection, connection.getresponse())
            except (ConnectionError, http.client.RemoteDisconnected):
                connection.close()
                if not used:  # one that was kept may have been dropped meanwhile
                    raise
            except BaseException:
                connection.close()
                raise

    def _connection(self, route: Route, proxy: str | None) -> tuple[Any, bool]:
        """A connection, and whether it was used before."""
        with self._lock:
            if self._process != os.getpid():  # they belong to the parent of this process
                self._idle, self._process = [], os.getpid()
            for place, (known, connection) in enumerate(self._idle):
                if known == route:
                    del self._idle[place]
                    return connection, True
        kind = (
            http.client.HTTPSConnection if route.scheme == "https" else http.client.HTTPConnection
        )
        through = urlsplit(proxy).netloc.rpartition("@")[2] if proxy else route.host
        connection = kind(through, timeout=faults.LIMITS.connect_seconds)
        if proxy and route.scheme == "https":
            host = urlsplit(f"//{route.host}")
            connection.set_tunnel(host.hostname or "", host.port or 443)
        connection.connect()
        connection.sock.settimeout(faults.LIMITS.stall_seconds)
        return connection, False

    def give_back(self, route: Route, connection: Any) -> None:
        """Keep a connection for the next request."""
        with self._lock:
            if self._process == os.getpid():
                self._idle.append((route, connection))

    def close(self) -> None:
        """Drop the connections that are kept."""
        with self._lock:
            idle, self._idle = self._idle, []
        for _, connection in idle:
            with contextlib.suppress(OSError):
                connection.close()

    def __del__(self) -> None:
        with contextlib.suppress(Exception):
            self.close()

    def _astray(self, what: str) -> FetchError:
        return DeniedError(what, file=self.name, hint="look at the address")

    def _unreached(self, reason: str) -> FetchError:
        return FetchError(
            f"the server cannot be reached: {reason}", file=self.name, hint="look at the address"
        )

    def _given_up(self, error: Exception) -> FetchError:
        tried = f"tried {faults.LIMITS.attempts} times"
        if isinstance(error, TimeoutError):
            seconds = faults.LIMITS.stall_seconds
            return SilentStoreError(
                f"nothing came for {seconds:g} seconds, {tried}", file=self.name, hint="try later"
            )
        what = str(error) or type(error).__name__
        return FetchError(
            f"the connection breaks ({what}), {tried}", file=self.name, hint="try again later"
        )
