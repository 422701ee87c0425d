"""Objects behind plain HTTP.

The first request asks for the first kilobyte: the answer says how long the object is, and whether
ranges are understood. No answer is believed: its status, its range, its length and its version are
held against what was asked, and a connection that breaks is taken up where it broke.
"""

from __future__ import annotations

import contextlib
import html
import re
from typing import Any
from urllib.parse import urljoin, urlsplit

from ...errors import FetchError
from ...header import MAX_HEADER_NBYTES
from ..places import public
from .client import Answer, Client
from .faults import changed, pause, status_error
from .object import RemoteIdentity

__all__ = ["HttpObject", "HttpStream", "list_folder", "open_object"]

WRITES = False

_CONTENT_RANGE = re.compile(r"bytes (?:(\d+)-(\d+)|\*)/(\d+|\*)\Z")
_PIECE_NBYTES = 1 << 16
_LONGEST_PAGE = 1 << 20
_LINK = re.compile(r"""<a\s[^>]*href=["']([^"'#]+)["']""", re.IGNORECASE)


def open_object(url: str) -> tuple[HttpObject, bytes] | HttpStream:
    """Ask for the first kilobyte of an object, which tells all about it.

    Returns:
        The object and its first bytes where ranges are understood; else all of it as a stream.

    Raises:
        FetchError: where it cannot be had; also a FileNotFoundError, PermissionError …
    """
    client = Client(url)
    try:
        answer = client.ask(0, MAX_HEADER_NBYTES)
        total = _first_range(answer)
        if total is None:
            return _whole(client, answer)
        remote = HttpObject(client, RemoteIdentity(total, answer.identity.version))
        head = bytearray(min(MAX_HEADER_NBYTES, total))
        with answer:
            count = answer.readinto(memoryview(head)) if head else 0
        if count < len(head):
            remote.fill(count, memoryview(head)[count:])
        return remote, bytes(head)
    except BaseException:
        client.close()
        raise


def _whole(client: Client, answer: Answer) -> HttpStream:
    """An object whose server gives no ranges, or none that can be believed."""
    if answer.status != 200:
        answer.close()
        answer = client.ask()
        if answer.status != 200:
            answer.close()
            raise status_error(client.name, answer.status, answer.reason)
    return HttpStream(client, answer)


def _first_range(answer: Answer) -> int | None:
    """How long the object is, of which the first range came; None where it did not."""
    match = _CONTENT_RANGE.match(answer.header("Content-Range") or "")
    if match is None or match[3] == "*":
        return None
    total = int(match[3])
    if answer.status == 416 and match[1] is None and total == 0:
        return 0
    if answer.status != 206 or match[1] is None or int(match[1]) != 0:
        return None
    return total if int(match[2]) + 1 == min(MAX_HEADER_NBYTES, total) else None


class HttpObject:
    """An object whose server understands ranges."""

    def __init__(self, client: Client, identity: RemoteIdentity) -> None:
        assert identity.size is not None  # Content-Range has said it
        self.name = client.name
        self.size = identity.size
        self.identity = identity
        self._client = client

    def fill(self, start: int, view: memoryview) -> None:
        """Fill `view` with the bytes from `start` on, or raise."""
        done, attempt = 0, 0
        while done < len(view):
            before = done
            with self._client.ask(start + done, start + len(view), self.identity) as answer:
                self.judge(answer, start + done, start + len(view))
                done += answer.readinto(view[done:])
            if done == len(view):
                return
            attempt = 1 if done > before else attempt + 1
            if not pause(attempt):
                raise _cut(self.name, done, len(view))

    def judge(self, answer: Answer, start: int, stop: int) -> None:
        """Make sure that an answer is the range that was asked for, of the same object."""
        version = answer.identity.version
        if answer.status == 412:
            raise changed(self.name, version or "another version", self.identity.version)
        if version != self.identity.version:
            raise changed(self.name, version or "no version", self.identity.version)
        match = _CONTENT_RANGE.match(answer.header("Content-Range") or "")
        said = answer.header("Content-Range") or f"{answer.status} {answer.reason}, the whole of it"
        if match is not None and match[3] not in ("*", str(self.size)):
            raise changed(self.name, f"{match[3]} bytes", f"{self.size} bytes")
        if answer.status != 206 or match is None or match[1] != str(start):
            raise _lies(self.name, start, stop, said)
        length = answer.header("Content-Length")
        if match[2] != str(stop - 1) or (length is not None and length != str(stop - start)):
            raise _lies(self.name, start, stop, f"{said}, {length} bytes long")

    def verify(self) -> None:
        """Every answer was held against its version."""

    def close(self) -> None:
        """Drop the connections."""
        self._client.close()


class HttpStream:
    """All of an object in order. A request that breaks is taken up where it broke.

    It is never taken up where nothing tells that the object is still the same one.
    """

    def __init__(self, client: Client, answer: Answer) -> None:
        self.name = client.name
        self.identity = answer.identity
        self._client = client
        self._position = 0
        self._answer: Answer | None = answer

    def readinto(self, buffer: Any) -> int:
        """Fill `buffer` with the next bytes; fewer only at the end."""
        view = memoryview(buffer).cast("B")
        done, attempt = 0, 0
        while done < len(view) and not self._ended():
            if self._answer is None:
                self._answer = self._begin()
            count = self._answer.readinto(view[done:])
            done += count
            self._position += count
            if done == len(view) or self._ended():
                break
            whole = self._answer.whole
            self.drop()
            if whole and self.identity.size is None:
                self.identity = RemoteIdentity(self._position, self.identity.version)
                break
            attempt = 1 if count else attempt + 1
            if self.identity.version is None or not pause(attempt):
                raise _cut(self.name, self._position, self.identity.size)
        if self._ended():
            self.close()
        return done

    def _ended(self) -> bool:
        return self.identity.size is not None and self._position >= self.identity.size

    def _begin(self) -> Answer:
        """Ask for the rest."""
        start = self._position
        answer = self._client.ask(start, None, self.identity)
        try:
            if answer.status == 412 or answer.identity.version != self.identity.version:
                now = answer.identity.version or "another version"
                raise changed(self.name, now, self.identity.version)
            match = _CONTENT_RANGE.match(answer.header("Content-Range") or "")
            if answer.status == 206:
                if match is None or match[1] != str(start):
                    raise _lies(self.name, start, None, answer.header("Content-Range") or "nothing")
                if self.identity.size is not None and match[3] not in (
                    "*",
                    str(self.identity.size),
                ):
                    raise changed(self.name, f"{match[3]} bytes", f"{self.identity.size} bytes")
            else:  # all of it: what came before is passed over
                skipped = bytearray(_PIECE_NBYTES)
                while start:
                    count = answer.readinto(memoryview(skipped)[: min(start, len(skipped))])
                    if not count:
                        raise _cut(self.name, self._position - start, self.identity.size)
                    start -= count
            return answer
        except BaseException:
            answer.close()
            raise

    def drop(self) -> None:
        """End the request; the next byte asked for begins another."""
        if self._answer is not None:
            self._answer.close()
            self._answer = None

    def close(self) -> None:
        """End the request, and drop the connections."""
        self.drop()
        self._client.close()

    def __del__(self) -> None:
        with contextlib.suppress(Exception):
            self.close()


def _cut(name: str, found: int, expected: int | None) -> FetchError:
    of = "" if expected is None else f" of {expected:,}"
    return FetchError(
        f"cut after {found:,}{of} bytes",
        file=name,
        found=found,
        expected=expected,
        hint="the connection is failing: try again, or download the file",
    )


def _lies(name: str, start: int, stop: int | None, said: str) -> FetchError:
    asked = f"bytes {start:,} to {'the end' if stop is None else f'{stop - 1:,}'}"
    return FetchError(
        f"asked for {asked}, the server answers {said}",
        file=name,
        offset=start,
        found=said,
        expected=asked,
        hint="its ranges cannot be trusted: download the file",
    )


def list_folder(url: str) -> list[str] | None:
    """The addresses that the page of a folder leads to; None where it is no such page."""
    folder = url if urlsplit(url).path.endswith("/") else f"{public(url)}/"
    client = Client(folder)
    try:
        answer = client.ask()
        if "html" not in (answer.header("Content-Type") or ""):
            answer.close()
            return None
        page = bytearray(_LONGEST_PAGE)
        stream = HttpStream(client, answer)
        text = page[: stream.readinto(page)].decode("utf-8", "replace")
        stream.close()
    except FetchError:
        return None
    finally:
        client.close()
    leads = (urljoin(folder, html.unescape(link)) for link in _LINK.findall(text))
    return sorted({link for link in leads if link.startswith(folder) and "?" not in link})
