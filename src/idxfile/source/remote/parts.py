"""An object of S3 that many write at once, each parts of its own: a multipart upload.

One begins it, many send parts, in any order and as often as they like (the last of a number
counts), and one completes it: then there is an object, and before there was none, or the old one.
It goes through s3fs, since obstore tells nobody of its parts.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ...errors import IdxError, UnsupportedError
from ..places import public
from .faults import MissingObjectError, pause
from .fsspec import asked, file_system
from .stores import known_store

__all__ = ["PartedUpload", "check_parts", "open_parts"]


def check_parts(url: str) -> None:
    """Make sure that many may write an object.

    Raises:
        UnsupportedError: for a store whose parts are not known to others than who sends them.
    """
    store = known_store(url)
    if store is None or not store.parts:
        raise UnsupportedError(
            "an object of this store cannot be written by many at once",
            file=public(url),
            hint="write shards, each of which is an object; or into s3://",
        )


def open_parts(url: str) -> PartedUpload:
    """Begin an object that many write, in a store that takes it from them.

    Raises:
        MissingExtraError: without s3fs.
        FetchError: where it cannot be written.
    """
    begun = _call(url, "create_multipart_upload")
    return PartedUpload(url, begun["UploadId"])


@dataclass(frozen=True)
class PartedUpload:
    """An object that is being written by many. It pickles small; credentials are each one's own."""

    url: str
    key: str
    """What the store calls it, until it has a name."""

    def send(self, number: int, data: bytes) -> None:
        """Send a part, in place of what was sent as this one before; the first is number 1."""
        self._ask("upload_part", PartNumber=number, Body=data)

    def complete(self, sizes: Sequence[int]) -> None:
        """Make an object of the parts.

        Args:
            sizes: how long each was to be. The store is asked what it has.

        Raises:
            IdxError: where one is missing, or not as long as that.
        """
        parts = self._parts()
        found = {part["PartNumber"]: part["Size"] for part in parts}
        right = sum(found.get(number) == size for number, size in enumerate(sizes, 1))
        if right != len(sizes) or len(found) != right:
            raise IdxError(
                f"{right:,} of {len(sizes):,} parts were sent",
                file=public(self.url),
                found=right,
                expected=len(sizes),
            )
        told = [
            {key: part[key] for key in part if key in ("PartNumber", "ETag") or _is_checksum(key)}
            for part in parts
        ]
        self._ask("complete_multipart_upload", MultipartUpload={"Parts": told})

    def cancel(self) -> None:
        """Leave nothing of it, nor of a part that somebody was sending meanwhile."""
        attempt = 0
        with contextlib.suppress(MissingObjectError):  # it is gone
            while True:
                attempt += 1
                self._ask("abort_multipart_upload")
                if not self._parts() or not pause(attempt):
                    return

    def _parts(self) -> list[Any]:
        """The parts that the store has, by number."""
        parts: list[Any] = []
        more: dict[str, int] = {}
        while True:
            answer = self._ask("list_parts", **more)
            parts += answer.get("Parts", [])
            if not answer.get("IsTruncated"):
                return parts
            more = {"PartNumberMarker": answer["NextPartNumberMarker"]}

    def _ask(self, method: str, **options: Any) -> Any:
        try:
            return _call(self.url, method, UploadId=self.key, **options)
        except MissingObjectError as error:
            raise MissingObjectError(
                "it is not being written any more",
                file=public(self.url),
                hint="whoever began it has completed it, or has given it up",
            ) from error


def _is_checksum(key: str) -> bool:
    return key.startswith("Checksum")


def _call(url: str, method: str, **options: Any) -> Any:
    """Ask S3 for something about an object, by s3fs."""
    fs, path = file_system(url)
    bucket, key, _ = fs.split_path(path)
    call: Callable[..., Any] = fs.call_s3
    return asked(public(url), lambda: call(method, Bucket=bucket, Key=key, **options))
