"""Conditions on items, as people type them: `label == 3 and 0.1 < ink < 0.3`.

The words are parsed by Python's own grammar and then walked by a table of what is allowed:
numbers, the names of columns, arithmetic, comparison, and, or, not. Nothing is ever executed.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ...elements import Array

__all__ = ["ExpressionError", "matches", "names_in"]

MOST_CHARACTERS = 400

_OPERATIONS: dict[type, Callable[..., Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Mod: operator.mod,
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
    ast.Not: np.logical_not,
    ast.And: np.logical_and,
    ast.Or: np.logical_or,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}


class ExpressionError(ValueError):
    """A condition that is none."""


def names_in(text: str) -> set[str]:
    """The columns that a condition asks for.

    Raises:
        ExpressionError: for what is no condition.
    """
    return {node.id for node in ast.walk(_parsed(text)) if isinstance(node, ast.Name)}


def matches(text: str, columns: Mapping[str, Array]) -> Array:
    """Which items fit a condition.

    Args:
        text: the condition.
        columns: what may be asked, by name; arrays with an element for each item.

    Returns:
        A mask.

    Raises:
        ExpressionError: for what is no condition, or a name that is not there.

    Example:
        >>> columns = {"label": np.array([3, 8, 3]), "ink": np.array([0.1, 0.2, 0.3])}
        >>> matches("label == 3 and not ink > 0.2", columns).tolist()
        [True, False, False]
    """
    shape = next(iter(columns.values())).shape
    with np.errstate(all="ignore"):
        mask = np.asarray(_value(_parsed(text), columns)) != 0
    return np.broadcast_to(mask, shape)


def _parsed(text: str) -> ast.expr:
    if len(text) > MOST_CHARACTERS:
        raise ExpressionError(f"a condition has at most {MOST_CHARACTERS} characters")
    try:
        return ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        raise ExpressionError(
            "this is no condition; one looks like: label == 3 and ink > 0.2"
        ) from None


def _value(node: ast.expr, columns: Mapping[str, Array]) -> Any:
    match node:
        case ast.Constant(value=bool() | int() | float() as number):
            return _number(number)
        case ast.Name(id=name) if name in columns:
            return columns[name]
        case ast.Name(id=name):
            raise ExpressionError(f"{name!r} is not known; there are {', '.join(columns)}")
        case ast.UnaryOp(op=op, operand=operand) if type(op) in _OPERATIONS:
            return _OPERATIONS[type(op)](_value(operand, columns))
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATIONS:
            return _OPERATIONS[type(op)](_value(left, columns), _value(right, columns))
        case ast.BoolOp(op=op, values=values):
            result = _value(values[0], columns)
            for other in values[1:]:
                result = _OPERATIONS[type(op)](result, _value(other, columns))
            return result
        case ast.Compare(left=left, ops=ops, comparators=others):
            parts = [_value(part, columns) for part in (left, *others)]
            result = np.True_
            for low, sign, high in zip(parts, ops, parts[1:], strict=False):
                if type(sign) not in _OPERATIONS:
                    raise ExpressionError("numbers are compared by == != < <= > >=")
                result = np.logical_and(result, _OPERATIONS[type(sign)](low, high))
            return result
        case ast.Call(func=ast.Name(id="abs"), args=[argument], keywords=[]):
            return np.abs(_value(argument, columns))
    raise ExpressionError(
        "a condition has numbers, names, + - * / %, comparisons, and, or, not, abs(…)"
    )


def _number(number: float) -> Any:
    try:
        return np.float64(number)
    except OverflowError:
        raise ExpressionError("this number is too large") from None
