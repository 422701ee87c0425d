"""What goes wrong between here and a store, and how long it is borne.

Every error bears the address without its secrets: a signature in a query, a password before the
host. Each is an `OSError`, and the built-in that the same fault of a local file would be.
"""

from __future__ import annotations

import email.utils
import random
import re
import time
from typing import NamedTuple

from ...errors import FetchError, IdxError
from ...problems import Problem

__all__: list[str] = []


class Limits(NamedTuple):
    """How long a store may take."""

    connect_seconds: float = 10
    stall_seconds: float = 30
    """So long without a single byte."""
    attempts: int = 5
    first_pause_seconds: float = 0.25
    """Doubled after every attempt, and varied, so that many clients do not come back at once."""
    longest_pause_seconds: float = 20
    """A store that asks for more (Retry-After) is not waited for."""


LIMITS = Limits()

RETRIED_STATUS = frozenset((408, 425, 429, 500, 502, 503, 504))


class MissingObjectError(FetchError, FileNotFoundError):
    """There is no such object."""


class FolderError(FetchError, IsADirectoryError):
    """There are objects whose names begin so, and none that is called so."""

    def __init__(self, url: str) -> None:
        super().__init__("is a folder", file=url, hint="give one of the files in it")


class DeniedError(FetchError, PermissionError):
    """The store does not give it to whoever asks so."""


class SilentStoreError(FetchError, TimeoutError):
    """The store did not answer in time."""


def status_error(url: str, status: int, reason: str) -> FetchError:
    """The error for an answer that is none."""
    text = f"{status} {reason}".strip()
    if status in (404, 410):
        return MissingObjectError(
            f"there is no such object ({text})", file=url, found=status, hint="look at the address"
        )
    if status in (401, 403, 407):
        return DeniedError(
            f"the store refuses it ({text})",
            file=url,
            found=status,
            hint="credentials are taken from the usual environment; a signed address may be over",
        )
    hint = "try again later" if status in RETRIED_STATUS else "look at the address"
    return FetchError(f"the store answers {text}", file=url, found=status, hint=hint)


_BUCKET = re.compile(
    r"NoSuchBucket|ContainerNotFound|(?:bucket|container) does not exist", re.IGNORECASE
)


def missing_error(url: str, told: BaseException) -> MissingObjectError:
    """The error for an object that is not there, as a package tells; or for its bucket."""
    what = "bucket" if is_of_bucket(told) else "object"
    return MissingObjectError(f"there is no such {what}", file=url, hint="look at the address")


def is_of_bucket(told: BaseException) -> bool:
    """Whether it is a bucket that is not there, as a package tells."""
    return _BUCKET.search(str(told)) is not None


def changed(url: str, found: object, expected: object) -> IdxError:
    """The error for an object that is another one than before."""
    problem = Problem(
        "changed",
        f"the object changed while it was being read: {found} now, {expected} before",
        found=found,
        expected=expected,
        hint="somebody is writing it: open it again when that has finished",
    )
    return problem.error(url)


def pause(attempt: int, retry_after: str | None = None) -> bool:
    """Wait before the next attempt.

    Args:
        attempt: the number of the one that failed, from 1.
        retry_after: what the store asks for: seconds, or a date.

    Returns:
        Whether there is a next one.
    """
    if attempt >= LIMITS.attempts:
        return False
    seconds = LIMITS.first_pause_seconds * 2 ** (attempt - 1) * random.uniform(0.75, 1.25)
    asked = _asked_seconds(retry_after)
    if asked is not None and asked > LIMITS.longest_pause_seconds:
        return False
    time.sleep(min(max(seconds, asked or 0), LIMITS.longest_pause_seconds))
    return True


def _asked_seconds(retry_after: str | None) -> float | None:
    if not retry_after:
        return None
    if retry_after.strip().isdigit():
        return float(retry_after)
    try:
        return email.utils.parsedate_to_datetime(retry_after).timestamp() - time.time()
    except (TypeError, ValueError):
        return None


def public_text(text: str) -> str:
    """A message of a library in one line, without the queries of the addresses in it."""
    first = text.strip().partition("\n")[0]
    words = (word.partition("?")[0] if "://" in word else word for word in first.split(" "))
    return " ".join(words)[:300]
