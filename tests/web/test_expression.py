"""Conditions are understood by a table of what is allowed, and nothing is ever executed."""

from __future__ import annotations

import numpy as np
import pytest

from idxfile.viewer.web.expression import ExpressionError, matches, names_in

COLUMNS = {
    "item": np.arange(6),
    "label": np.array([3, 8, 3, 1, 0, 8]),
    "ink": np.array([0.1, 0.2, 0.3, 0.4, np.nan, 0.0]),
}


@pytest.mark.parametrize(
    ("text", "items"),
    [
        ("label == 3", [0, 2]),
        ("label != 3", [1, 3, 4, 5]),
        ("label == 3 and ink > 0.2", [2]),
        ("label == 3 or label == 8", [0, 1, 2, 5]),
        ("not label == 3", [1, 3, 4, 5]),
        ("0.1 < ink <= 0.3", [1, 2]),
        ("label % 2 == 0 and item >= 4", [4, 5]),
        ("-ink < -0.25", [2, 3]),
        ("abs(ink - 0.3) < 0.05", [2]),
        ("(label + 1) * 2 == 18", [1, 5]),
        ("label / 0 > 1", [0, 1, 2, 3, 5]),
        ("1", [0, 1, 2, 3, 4, 5]),
        ("False", []),
        ("  label==1  ", [3]),
        ("1e400 > label", [0, 1, 2, 3, 4, 5]),
    ],
)
def test_what_conditions_mean(text: str, items: list[int]) -> None:
    assert np.flatnonzero(matches(text, COLUMNS)).tolist() == items


@pytest.mark.parametrize(
    "text",
    [
        "",
        "label ==",
        "label = 3",
        "3 ** label",
        "label ** 9 ** 9 ** 9",
        "9" * 399,
        "1 << 99",
        "label is 3",
        "label in [3]",
        "'a' == label",
        "b'' == label",
        "None",
        "...",
        "1j",
        "label[0]",
        "label.dtype",
        "label.__class__.__mro__",
        "__import__('os').system('true')",
        "abs",
        "abs()",
        "abs(1, 2)",
        "abs(x=1)",
        "abs(*label)",
        "open('/etc/passwd')",
        "lambda: 1",
        "[n for n in label]",
        "{label}",
        "f'{label}'",
        "(yield)",
        "label if ink else item",
        "(label := 3)",
        "await label",
        "unknown == 1",
        "a; b",
        "label\nimport os",
        "\0",
        "(" * 399,
        "label == 1 or " * 29 + "label" * 10,
        "x" * 401,
    ],
    ids=lambda text: text[:24],
)
def test_what_is_no_condition(text: str) -> None:
    with pytest.raises(ExpressionError):
        matches(text, COLUMNS)


def test_the_longest_conditions_end() -> None:
    text = "label" + "+label" * 65
    assert len(text) <= 400
    assert matches(text, COLUMNS).tolist() == [True, True, True, True, False, True]
    assert matches("-" * 399 + "1", COLUMNS).all()


def test_the_names_of_a_condition() -> None:
    assert names_in("label == 3 and abs(ink) > mean") == {"label", "ink", "mean", "abs"}
