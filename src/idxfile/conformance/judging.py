"""What a reader has to answer for a file of the corpus, and whether it did."""

from __future__ import annotations

import contextlib
import zlib
from collections.abc import Sequence
from typing import Any, Literal

__all__: list[str] = []

Result = Literal["pass", "fail", "wrong-kind", "crash", "hang"]
Row = dict[str, Any]
"""A file of the manifest."""


def judge(row: Row, line: str) -> Result:
    """Whether a line answers a file rightly."""
    words = line.lower().split()
    if words[:1] == ["ok"] and "answer" in row:
        return "pass" if _agrees(row["answer"], words[1:]) else "fail"
    if words[:1] == ["error"] and len(words) in (2, 3) and "refusals" in row:
        kind, offset = words[1], words[2] if len(words) == 3 else "-"
        return "pass" if _any_fits(row["refusals"], kind, offset) else "wrong-kind"
    return "fail"


def _agrees(answer: dict[str, Any], words: list[str]) -> bool:
    """Whether type, shape and elements are right, in whichever form the elements come."""
    if "hex" in words:
        at = words.index("hex")
        with contextlib.suppress(ValueError):
            elements = bytes.fromhex("".join(words[at + 1 :]))
            words = [*words[:at], "crc", str(len(elements)), f"{zlib.crc32(elements):08x}"]
    facts = [answer["type"], len(answer["shape"]), *answer["shape"]]
    return words == [str(fact) for fact in (*facts, "crc", answer["nbytes"], answer["crc32"])]


def _any_fits(refusals: list[dict[str, Any]], kind: str, offset: str) -> bool:
    """Whether one of the refusals has this class or kind, and this byte where both tell one."""
    return any(
        kind in (refusal["class"], refusal.get("kind"))
        and (offset == "-" or str(refusal.get("offset", offset)) == offset)
        for refusal in refusals
    )


def right_line(row: Row) -> str:
    """A line that would be right: the answer, or else the first refusal."""
    if "answer" not in row:
        refusal = row["refusals"][0]
        kind = refusal.get("kind", refusal["class"])
        return f"error {kind} {refusal.get('offset', '-')}"
    answer = row["answer"]
    data = f"crc {answer['nbytes']} {answer['crc32']}"
    if "elements" in answer:
        data = f"hex {answer['elements']}"
    return answer_line(answer["type"], answer["shape"], data)


def answer_line(type_: str, shape: Sequence[int], data: str) -> str:
    """The line that says what was read."""
    return " ".join(["ok", type_, str(len(shape)), *map(str, shape), data])
