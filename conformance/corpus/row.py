"""A row of the corpus, and the short ways to write one."""

from __future__ import annotations

import hashlib
import math
import struct
import zlib
from dataclasses import dataclass
from typing import Any

CLASSES = {
    "open": "The file cannot be opened or read.",
    "header": "The file ends inside its header.",
    "prefix": "The first two bytes are not zero: it is no IDX file.",
    "type": "The third byte is none of the six element types.",
    "dimension": "The dimensions cannot be held, or cannot be meant.",
    "data": "The elements are fewer or more bytes than the header declares.",
    "stream": "The compressed stream is cut or damaged.",
}
"""The coarse classes of problems: one negative code each in the C reader (but `stream`)."""

CLASS_OF = {
    "unreadable": "open",
    "empty": "header",
    "short-header": "header",
    "foreign": "prefix",
    "bad-magic": "prefix",
    "swapped-header": "prefix",
    "unknown-type": "type",
    "unsupported-dialect": "type",
    "many-dimensions": "dimension",
    "truncated": "data",
    "trailing-data": "data",
    "stream-truncated": "stream",
    "stream-damaged": "stream",
    "stream-unsupported": "stream",
    "stream-checksum": "stream",
    "stream-junk": "stream",
}
"""The class of each kind of problem, unless a row says otherwise."""

CODES = {
    "uint8": (0x08, "B"),
    "int8": (0x09, "b"),
    "int16": (0x0B, "h"),
    "int32": (0x0C, "i"),
    "float32": (0x0D, "f"),
    "float64": (0x0E, "d"),
    "uint32": (None, "I"),
    "uint64": (None, "Q"),
    "int64": (None, "q"),
}
"""Element type → third byte of the header (None: Lush only), and the letter of `struct`."""

MOST_VALUES = 64
MOST_HEX_NBYTES = 200


@dataclass(frozen=True)
class Answer:
    """What a reader must find in a file: type, shape, and the elements as big-endian bytes."""

    type: str
    shape: tuple[int, ...]
    elements: bytes

    def as_dict(self) -> dict[str, Any]:
        """The answer as it stands in the manifest."""
        facts: dict[str, Any] = {
            "type": self.type,
            "shape": list(self.shape),
            "nbytes": len(self.elements),
            "crc32": f"{zlib.crc32(self.elements):08x}",
            "sha256": hashlib.sha256(self.elements).hexdigest(),
        }
        if len(self.elements) <= MOST_HEX_NBYTES:
            facts["elements"] = self.elements.hex()
        values = list(struct.iter_unpack(">" + CODES[self.type][1], self.elements))
        if len(values) <= MOST_VALUES:
            nbytes = len(self.elements) // max(1, len(values))
            parts = (self.elements[i * nbytes :][:nbytes] for i in range(len(values)))
            facts["values"] = [_plain(v, part) for (v,), part in zip(values, parts, strict=True)]
        return facts


def _plain(value: float, part: bytes) -> float | str:
    """A value as JSON holds it: a number where that is exact everywhere, else a string."""
    if isinstance(value, int):
        return value if abs(value) < 1 << 53 else str(value)
    if math.isnan(value):
        return f"nan:{part.hex()}"
    if math.isinf(value):
        return "inf" if value > 0 else "-inf"
    return "-0.0" if value == 0 and part[0] else value


@dataclass(frozen=True)
class Problem:
    """A class of problem, and where it is known its exact kind and its byte."""

    cls: str
    kind: str | None = None
    offset: int | None = None

    def as_dict(self) -> dict[str, Any]:
        """The problem as it stands in the manifest."""
        facts = {"class": self.cls, "kind": self.kind, "offset": self.offset}
        return {key: value for key, value in facts.items() if value is not None}


def problem(kind: str, offset: int | None = None, cls: str | None = None) -> Problem:
    """A problem by its kind; `cls` where it is another than the usual one."""
    return Problem(cls or CLASS_OF[kind], kind, offset)


@dataclass(frozen=True)
class Row:
    """A file of the corpus, and what a reader must answer.

    With an answer alone it must be read; with refusals alone it must be refused, for one of these
    reasons; with both, either is right.
    """

    name: str
    why: str
    data: bytes | None
    """The file; None where there is none to be written."""
    tags: tuple[str, ...]
    answer: Answer | None = None
    refusals: tuple[Problem, ...] = ()
    warnings: tuple[dict[str, Any], ...] = ()
    """What a thorough reader tells beside its answer."""
    suffix: str = ".idx"
    path: str | None = None
    """The place below the corpus, where it is not `files/NAME.SUFFIX`."""
    origin: str | None = None
    licence: str | None = None

    @property
    def file(self) -> str:
        """The place below the corpus."""
        return self.path or f"files/{self.name}{self.suffix}"

    def as_dict(self) -> dict[str, Any]:
        """The row as it stands in the manifest."""
        facts: dict[str, Any] = {"name": self.name, "file": self.file, "why": self.why}
        facts["tags"] = list(self.tags)
        if self.data is not None:
            facts["nbytes"] = len(self.data)
            facts["sha256"] = hashlib.sha256(self.data).hexdigest()
            if len(self.data) <= MOST_HEX_NBYTES:
                facts["hex"] = self.data.hex()
        if self.answer:
            facts["answer"] = self.answer.as_dict()
        if self.refusals:
            facts["refusals"] = [refusal.as_dict() for refusal in self.refusals]
        if self.warnings:
            facts["warnings"] = list(self.warnings)
        if self.origin:
            facts |= {"origin": self.origin, "licence": self.licence}
        return facts


def header(type_: str, *shape: int) -> bytes:
    """A header as the format has it."""
    code = CODES[type_][0]
    assert code is not None
    return bytes((0, 0, code, len(shape))) + b"".join(n.to_bytes(4, "big") for n in shape)


def elements(type_: str, values: str | bytes | list[int]) -> bytes:
    """Elements as big-endian bytes, from hex, from bytes, or from integers."""
    if isinstance(values, str):
        return bytes.fromhex(values)
    if isinstance(values, list):
        return struct.pack(f">{len(values)}{CODES[type_][1]}", *values)
    return values


def pattern(nbytes: int) -> bytes:
    """Bytes in which no row, item or block is like another."""
    return bytes((i * 37 + (i >> 8) * 11) & 0xFF for i in range(nbytes))


def good(
    name: str,
    why: str,
    type_: str,
    shape: tuple[int, ...],
    values: str | bytes | list[int] = b"",
    *refusals: Problem,
    suffix: str = ".idx",
) -> Row:
    """A right file; with refusals, one that a reader may also refuse."""
    data = elements(type_, values)
    answer = Answer(type_, shape, data)
    file = header(type_, *shape) + data
    return Row(name, why, file, ("core",), answer, refusals, suffix=suffix)


def bad(name: str, why: str, data: bytes | str, *refusals: Problem, suffix: str = ".idx") -> Row:
    """A wrong file; the first refusal is the most telling."""
    file = bytes.fromhex(data) if isinstance(data, str) else data
    return Row(name, why, file, ("core",), refusals=refusals, suffix=suffix)
