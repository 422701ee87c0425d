"""The table of problems, and what each way of handling makes of a finding."""

from __future__ import annotations

import json
import re
import warnings

import pytest

from idxfile.errors import FormatError, IdxError, IdxWarning
from idxfile.problems import PROBLEMS, Problem, settle

CODES = list(PROBLEMS)


@pytest.mark.parametrize("code", CODES)
def test_every_row_is_whole(code: str) -> None:
    row = PROBLEMS[code]
    assert row.code == code
    assert re.fullmatch(r"[a-z]+(-[a-z]+)*", code)
    assert row.level in ("error", "warning", "note")
    assert issubclass(row.error, IdxError)
    assert row.meaning.endswith(".")
    assert row.meaning[0].isupper()


@pytest.mark.parametrize("code", CODES)
def test_what_is_no_error_can_be_read(code: str) -> None:
    row = PROBLEMS[code]
    assert row.level == "error" or row.readable


def test_what_is_missing_is_never_read_over() -> None:
    missing = {"empty", "short-header", "truncated", "stream-truncated"}
    damaged = {"stream-damaged", "stream-checksum", "bad-magic", "unknown-type", "foreign"}
    assert not any(PROBLEMS[code].readable for code in missing | damaged)


def test_an_unknown_code_is_a_fault_of_ours() -> None:
    with pytest.raises(KeyError):
        Problem("no-such-code", "message")


@pytest.mark.parametrize("code", CODES)
def test_a_finding_becomes_the_error_of_its_row_with_all_facts(code: str) -> None:
    problem = Problem(code, "too much", offset=9, found=1, expected=0, hint="trim it")
    error = problem.error("a.idx")
    assert type(error) is PROBLEMS[code].error
    assert str(error) == "a.idx: too much\nhint: trim it"
    assert (error.code, error.offset, error.found, error.expected) == (code, 9, 1, 0)


@pytest.mark.parametrize("code", CODES)
def test_a_finding_is_plain_values_for_json(code: str) -> None:
    problem = Problem(code, "too much", offset=9, found=1, expected=0)
    facts = json.loads(json.dumps(problem.as_dict()))
    assert facts == {
        "code": code,
        "level": problem.level,
        "message": "too much",
        "offset": 9,
        "found": 1,
        "expected": 0,
        "hint": None,
        "mendable": PROBLEMS[code].repair == "idx repair",
        "repair": problem.repair,
    }


def test_a_finding_never_changes() -> None:
    with pytest.raises(AttributeError):
        Problem("empty", "nothing").code = "truncated"  # type: ignore[misc]


def _outcome(code: str, handling: str) -> str:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            settle([Problem(code, "something")], handling, "a.idx")  # type: ignore[arg-type]
        except PROBLEMS[code].error:
            return "raises"
    for warning in caught:
        assert warning.category is IdxWarning
        assert str(warning.message) == "a.idx: something"
    return "warns" if caught else "is silent"


@pytest.mark.parametrize(
    ("code", "handling", "outcome"),
    [
        ("truncated", "raise", "raises"),
        ("truncated", "warn", "raises"),
        ("truncated", "ignore", "raises"),
        ("trailing-data", "raise", "raises"),
        ("trailing-data", "warn", "warns"),
        ("trailing-data", "ignore", "is silent"),
        ("stream-junk", "raise", "warns"),
        ("stream-junk", "warn", "warns"),
        ("stream-junk", "ignore", "is silent"),
        ("many-dimensions", "raise", "is silent"),
        ("many-dimensions", "warn", "is silent"),
        ("many-dimensions", "ignore", "is silent"),
    ],
)
def test_handling(code: str, handling: str, outcome: str) -> None:
    assert _outcome(code, handling) == outcome


@pytest.mark.parametrize("handling", ["raise", "warn", "ignore"])
def test_nothing_found_nothing_said(handling: str) -> None:
    settle([], handling)  # type: ignore[arg-type]


def test_an_unknown_handling_is_refused_even_when_all_is_well() -> None:
    with pytest.raises(ValueError, match='"raise", "warn" or "ignore", not \'never\''):
        settle([], "never")  # type: ignore[arg-type]


def test_the_first_error_is_raised_and_nothing_else_said() -> None:
    found = [
        Problem("many-dimensions", "z"),
        Problem("stream-junk", "a"),
        Problem("truncated", "b"),
        Problem("empty", "c"),
    ]
    with pytest.raises(FormatError) as caught:
        settle(found, "raise")
    assert str(caught.value) == "b"


def test_a_name_in_a_warning_cannot_steer_the_terminal() -> None:
    with pytest.warns(IdxWarning, match=re.escape(r"a\x1b[2J.idx: junk")):
        settle([Problem("stream-junk", "junk")], "raise", "a\x1b[2J.idx")
