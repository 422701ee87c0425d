"""Whether elements look as if their bytes were turned around.

A header can be proven wrong by the file's length; elements cannot, for every pattern of bits is a
number. But swapped numbers look odd: small integers become huge, and the exponents of floats
scatter. The evidence is shown, and nothing is mended unless somebody asks.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..header import Header
from ..problems import Problem

__all__: list[str] = []

_SAMPLE_NBYTES = 1 << 12
"""Looked at in each piece that is read."""
_MOST_SAMPLES = 1024
"""Of a long file every second, every fourth … piece is looked at: memory stays constant."""
_USUAL_EXPONENTS = (2.0**-60, 2.0**60)


class Sample:
    """Collects what elements are worth as stored, and what they would be with bytes swapped."""

    def __init__(self, header: Header) -> None:
        self._header = header
        self._stored = header.stored_dtype
        self._swapped = self._stored.newbyteorder()
        self._values: list[Any] = []
        self._pieces = 0
        self._stride = 1

    def take(self, piece: memoryview, position: int) -> None:
        """Look at the beginning of the piece that stands at byte `position` of the file."""
        self._pieces += 1
        if self._pieces % self._stride:
            return
        offset, nbytes = self._header.data_offset, self._stored.itemsize
        skip = offset - position if position < offset else (offset - position) % nbytes
        end = min(len(piece), self._header.file_nbytes - position, skip + _SAMPLE_NBYTES)
        count = max(0, end - skip) // nbytes
        if count:
            self._values.append(np.frombuffer(bytes(piece[skip : skip + count * nbytes]), np.uint8))
        if len(self._values) == _MOST_SAMPLES:
            self._values = self._values[::2]
            self._stride *= 2

    def suspicion(self) -> Problem | None:
        """The problem with its evidence, where the swapped values look far more usual."""
        if not self._values:
            return None
        data = np.concatenate(self._values)
        native = self._stored.newbyteorder("=")  # NumPy sorts no other quickly
        as_stored, swapped = (data.view(d).astype(native) for d in (self._stored, self._swapped))
        patterns = data.view(f"u{self._stored.itemsize}")
        if np.isin(patterns, (patterns.min(), patterns.max())).all():
            return None  # one value or two prove nothing
        judge = _judge_floats if self._stored.kind == "f" else _judge_integers
        evidence = judge(as_stored, swapped)
        if evidence is None:
            return None
        order = self._header.byteorder
        other = "little" if order == "big" else "big"
        reads = 'byteorder="little" reads them so, ' if order == "big" else ""
        return Problem(
            "swapped-data",
            f"the elements look {other}-endian: {evidence}",
            offset=self._header.data_offset,
            found=f"{other}-endian",
            expected=f"{order}-endian",
            hint=f"{reads}`idx repair --swap-data` writes them right; it cannot be proven, "
            "so look at the values",
        )


def _judge_integers(stored: Any, swapped: Any) -> str | None:
    """Swapped, the range of values must shrink by two bytes, or one where there are two."""
    here, there = _range(stored), _range(swapped)
    shrinks_by = _bits(here) - _bits(there)
    if shrinks_by < min(16, 8 * (stored.dtype.itemsize - 1)):
        return None
    return (
        f"{stored.size:,} of them run from {here[0]:,} to {here[1]:,}, "
        f"and with bytes swapped from {there[0]:,} to {there[1]:,}"
    )


def _range(values: Any) -> tuple[int, int]:
    return int(values.min()), int(values.max())


def _bits(values: tuple[int, int]) -> int:
    return max(abs(value) for value in values).bit_length()


def _judge_floats(stored: Any, swapped: Any) -> str | None:
    """Swapped, nearly all sizes must become usual, of which many are not so as stored.

    Of random patterns of float32 about half are, of float64 a sixteenth.
    """
    here, there = _usual(stored), _usual(swapped)
    if here > 0.7 or there < 0.99:
        return None
    return (
        f"{here:.0%} of {np.count_nonzero(stored):,} that are not zero lie between 1e-18 and 1e18, "
        f"and with bytes swapped {there:.0%}"
    )


def _usual(values: Any) -> float:
    with np.errstate(all="ignore"):
        sizes = np.abs(values.astype(np.float64))
    low, high = _USUAL_EXPONENTS
    nonzero = sizes != 0
    usual = np.isfinite(sizes) & (sizes >= low) & (sizes <= high)
    # Zeros are the same both ways: they say nothing.
    return float(usual[nonzero].mean()) if nonzero.any() else 1.0
