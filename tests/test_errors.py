"""The error tree: what each error is, says, and keeps on its way to another process."""

from __future__ import annotations

import inspect
import pickle

import pytest

from idxfile import errors
from idxfile.errors import IdxError, printable

ALSO = {
    "FormatError": (ValueError,),
    "TruncatedError": (errors.FormatError, ValueError),
    "TrailingDataError": (errors.FormatError, ValueError),
    "ChecksumError": (errors.FormatError, ValueError),
    "UnsupportedError": (ValueError,),
    "PairError": (ValueError,),
    "FetchError": (OSError,),
    "MissingExtraError": (ImportError,),
}
TREE = [getattr(errors, name) for name in errors.__all__ if name != "IdxWarning"]


def test_the_table_above_is_the_whole_tree() -> None:
    assert {kind.__name__ for kind in TREE} == {"IdxError", *ALSO}
    classes = {
        name
        for name, value in vars(errors).items()
        if inspect.isclass(value) and issubclass(value, Warning | Exception)
    }
    assert classes == set(errors.__all__)


@pytest.mark.parametrize("name", ALSO)
def test_each_error_is_also_what_people_already_catch(name: str) -> None:
    assert issubclass(getattr(errors, name), (IdxError, *ALSO[name]))
    for other in ALSO[name]:
        assert issubclass(getattr(errors, name), other)


def test_the_docstring_draws_the_tree() -> None:
    assert errors.__doc__ is not None
    for name in errors.__all__:
        assert name in errors.__doc__


def test_a_warning_is_a_user_warning() -> None:
    assert issubclass(errors.IdxWarning, UserWarning)


@pytest.mark.parametrize("kind", TREE)
def test_an_error_says_name_message_and_hint_and_keeps_the_facts(kind: type[IdxError]) -> None:
    facts = {"file": "a.idx", "offset": 9, "found": 7, "expected": [8], "hint": "mend it"}
    facts["code"] = "truncated"
    error = kind("too short", **facts)
    for copy in (error, pickle.loads(pickle.dumps(error))):
        assert type(copy) is kind
        assert str(copy) == "a.idx: too short\nhint: mend it"
        assert copy.args == ("too short",)
        assert {name: getattr(copy, name) for name in facts} == facts


@pytest.mark.parametrize("kind", TREE)
def test_facts_are_optional(kind: type[IdxError]) -> None:
    error = kind("too short")
    assert str(error) == "too short"
    for fact in ("file", "offset", "found", "expected", "hint", "code"):
        assert getattr(error, fact) is None


def test_a_name_cannot_steer_the_terminal() -> None:
    error = IdxError("too short", file="a\x1b[31m\nb\u202e.idx")
    assert str(error) == "a\\x1b[31m\\nb\\u202e.idx: too short"


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("größe × 数.idx", "größe × 数.idx"),
        ("a b", "a b"),
        ("a\tb", "a\\tb"),
        ("\udcff.idx", "\\udcff.idx"),
        ("", ""),
    ],
)
def test_printable_keeps_every_printable_character(text: str, printed: str) -> None:
    assert printable(text) == printed
