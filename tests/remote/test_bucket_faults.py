"""What a bucket can do wrong, and what comes of it: the items are right, or there is an error.

By obstore and by fsspec, which see different parts of an answer: a table of fault × answer.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import s3fs
from bucket_server import BucketServer, cut
from buckets import bucket_fixture, shared_fixture  # noqa: F401
from werkzeug.wrappers import Response

import idxfile
from conftest import idx_bytes
from idxfile import FetchError, FormatError
from idxfile.cli import main
from idxfile.source.remote import faults

pytestmark = pytest.mark.slow

IMAGES = np.random.default_rng(7).integers(0, 256, (300, 28, 28), np.uint8)
DATA = idx_bytes(IMAGES)
ITEMS = [200, 3, 150]
PAGE = b"<!doctype html><title>a login</title>"


class Request:
    """A request for bytes of the object, as a fault sees it."""

    def __init__(self, environ: dict[str, Any], turn: int) -> None:
        self.wanted = environ.get("HTTP_RANGE")
        self.first = self.wanted == "bytes=0-1023"
        self.turn = turn
        """The number of this request, from 1."""
        self.socket: socket.socket = environ["werkzeug.socket"]

    @property
    def bounds(self) -> tuple[int, int]:
        start, _, last = (self.wanted or "").removeprefix("bytes=").partition("-")
        return int(start or 0), min(int(last or len(DATA)) + 1, len(DATA))


Fault = Callable[[Request, Response], None]


def refused(status: int, code: str) -> Fault:
    """An error as S3 words it."""

    def fault(request: Request, response: Response) -> None:
        response.status_code = status
        response.set_data(f"<?xml version='1.0'?><Error><Code>{code}</Code></Error>")

    return fault


def for_now(fault: Fault, turns: int = 1) -> Fault:
    return lambda request, response: fault(request, response) if request.turn <= turns else None


def later(fault: Fault) -> Fault:
    """What begins when the object has been opened."""
    return lambda request, response: None if request.first else fault(request, response)


def reset(request: Request, response: Response) -> None:
    linger = b"\1\0\0\0\0\0\0\0"
    request.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
    request.socket.shutdown(socket.SHUT_RDWR)


def whole(request: Request, response: Response) -> None:
    response.status_code = 200
    response.headers.pop("Content-Range", None)
    response.set_data(DATA)


def said(request: Request, response: Response) -> None:
    """A Content-Range that is not what was asked for, and bytes to go with it."""
    start, stop = request.bounds
    response.headers["Content-Range"] = f"bytes {start + 7}-{stop + 6}/{len(DATA)}"
    response.set_data(DATA[start + 7 : stop + 7])


def short(request: Request, response: Response) -> None:
    start, _ = request.bounds
    response.headers["Content-Range"] = f"bytes {start}-{start + 1}/{len(DATA)}"
    response.set_data(DATA[start : start + 2])


def other(request: Request, response: Response) -> None:
    """Another object, by a store that minds no If-Match."""
    start, stop = request.bounds
    response.status_code = 206
    response.headers["ETag"] = '"another"'
    response.set_data(bytes(255 - byte for byte in DATA[start:stop]))


def longer(request: Request, response: Response) -> None:
    start, stop = request.bounds
    response.headers["Content-Range"] = f"bytes {start}-{stop - 1}/{len(DATA) + 1}"


def page(request: Request, response: Response) -> None:
    response.status_code = 200
    response.headers.pop("Content-Range", None)
    response.set_data(PAGE)


def half(request: Request, response: Response) -> None:
    cut(response)


RIGHT = "right"
UNSEEN = None
"""Of an answer fsspec's packages give the body alone: what only its headers tell is not known."""
FAULTS: dict[str, tuple[Fault, Any, Any]] = {
    # what goes wrong, and what comes of it by obstore and by fsspec
    "slow down, for now": (for_now(refused(503, "SlowDown")), RIGHT, RIGHT),
    "slow down": (refused(503, "SlowDown"), FetchError, FetchError),
    "internal error, for now": (for_now(refused(500, "InternalError")), RIGHT, RIGHT),
    "too many requests, for now": (for_now(refused(429, "TooManyRequests")), RIGHT, RIGHT),
    "timeout of the store": (for_now(refused(408, "RequestTimeout")), RIGHT, RIGHT),
    "access denied": (refused(403, "AccessDenied"), PermissionError, PermissionError),
    "expired": (refused(403, "ExpiredToken"), PermissionError, PermissionError),
    "expired, as S3 says": (refused(400, "ExpiredToken"), PermissionError, PermissionError),
    "expired on the way": (later(refused(400, "ExpiredToken")), PermissionError, PermissionError),
    "bad signature": (
        refused(403, "SignatureDoesNotMatch"),
        PermissionError,
        PermissionError,
    ),
    "removed on the way": (
        later(refused(404, "NoSuchKey")),
        FileNotFoundError,
        FileNotFoundError,
    ),
    "cut": (for_now(half), RIGHT, RIGHT),
    "cut on the way": (later(for_now(half, 3)), RIGHT, RIGHT),
    "always cut": (later(half), FetchError, FetchError),
    "reset, for now": (for_now(reset), RIGHT, RIGHT),
    "always reset": (reset, FetchError, FetchError),
    "no ranges": (whole, FetchError, RIGHT),
    "no ranges on the way": (later(whole), FetchError, FetchError),
    "another range": (later(said), FetchError, UNSEEN),
    "short range": (later(short), FetchError, FetchError),
    "another object": (later(other), FormatError, UNSEEN),
    "a longer object": (later(longer), FormatError, UNSEEN),
    "page": (page, FetchError, FetchError),
}


@pytest.fixture(autouse=True)
def _object(bucket: BucketServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    limits = faults.Limits(connect_seconds=2, stall_seconds=2, attempts=3, first_pause_seconds=0.01)
    monkeypatch.setattr(faults, "LIMITS", limits)
    # s3fs and what lies below it have a patience of their own.
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "2")
    monkeypatch.setattr(s3fs.S3FileSystem, "retries", 2)
    bucket.client.put_object(Bucket="shelf", Key="images.idx", Body=DATA)
    yield
    bucket.spoil = None


def spoil(bucket: BucketServer, name: str) -> Any:
    """Let a fault begin; what is to come of it is returned."""
    fault, by_obstore, by_fsspec = FAULTS[name]
    turns = iter(range(1, 1000))

    def spoiled(environ: dict[str, Any], response: Response) -> None:
        if environ["REQUEST_METHOD"] == "GET" and environ["PATH_INFO"].endswith("images.idx"):
            fault(Request(environ, next(turns)), response)

    bucket.spoil = spoiled
    return by_obstore if bucket.package == "obstore" else by_fsspec


PACKAGES = ("obstore", "fsspec")
SEEN = pytest.mark.parametrize(
    ("bucket", "name"),
    [
        (package, name)
        for name, (_, *outcomes) in FAULTS.items()
        for package, outcome in zip(PACKAGES, outcomes, strict=True)
        if outcome is not UNSEEN
    ],
    indirect=["bucket"],
)


@SEEN
def test_a_fault_and_its_answer(bucket: BucketServer, name: str) -> None:
    outcome = spoil(bucket, name)

    def items() -> Any:
        with idxfile.open("s3://shelf/images.idx") as x:
            return x[ITEMS]

    if outcome is RIGHT:
        assert np.array_equal(items(), IMAGES[ITEMS])
        return
    with pytest.raises(outcome) as caught:
        items()
    text = str(caught.value)
    assert text.startswith("s3://shelf/images.idx")
    assert "secret-word" not in text
    assert "Signature=" not in text


@SEEN
def test_a_fault_on_the_way_of_a_stream(bucket: BucketServer, name: str) -> None:
    """`check` reads to the end: it never takes something else for the object."""
    if spoil(bucket, name) is RIGHT:
        assert idxfile.check("s3://shelf/images.idx").ok
        return
    try:
        report = idxfile.check("s3://shelf/images.idx")
    except (FetchError, FormatError):
        return
    assert not report.ok


def test_the_command_line_ends_as_told(
    bucket: BucketServer, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("slow down", "expired, as S3 says"):
        spoil(bucket, name)
        assert main(["info", "s3://shelf/images.idx"]) == 5
        error = capsys.readouterr().err
        assert error.startswith("error: s3://shelf/images.idx: ")
        assert "Traceback" not in error
