"""Digests of bytes that come in pieces."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable
from typing import Any

from .table import Fingerprint

__all__: list[str] = []

_PIECE_NBYTES = 1 << 18


def digests(pieces: Iterable[Any], size: int | None, algorithms: Iterable[str]) -> dict[str, str]:
    """Several digests of the same bytes, in one pass.

    Args:
        pieces: the bytes in order, bytes-like.
        size: how many there are, or should be; `git` needs to know it beforehand, and what goes
            on for longer has no right digest and is not read to its end.
        algorithms: of `sha256`, `git`, `sha1`, `md5`.

    Returns:
        The algorithm → the digest in hexadecimal.
    """
    states = {name: _begin(name, size) for name in algorithms}
    count = 0
    for piece in pieces if states else ():
        for state in states.values():
            state.update(piece)
        count += len(piece)
        if size is not None and count > size:
            break
    return {name: state.hexdigest() for name, state in states.items()}


def _begin(algorithm: str, size: int | None) -> Any:
    # These tell files apart; MD5 and SHA-1 stand where the publisher gives nothing else.
    if algorithm == "git":
        assert size is not None
        return hashlib.sha1(b"blob %d\0" % size, usedforsecurity=False)
    return hashlib.new(algorithm, usedforsecurity=False)


def file_pieces(path: str) -> Iterable[bytes]:
    """The bytes of a file as it lies on the disk, in pieces."""
    with open(path, "rb") as file:
        while piece := file.read(_PIECE_NBYTES):
            yield piece


def file_fits(path: str, known: Fingerprint) -> bool:
    """Whether a file, as it lies on the disk, is the known one.

    Nothing is read where its size tells, or where no digest is known.
    """
    size = os.path.getsize(path)
    if known.strongest is None or known.size not in (None, size):
        return False
    algorithm, digest = known.strongest
    return digests(file_pieces(path), size, [algorithm])[algorithm] == digest
