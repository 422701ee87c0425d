"""Options of formats: what the signatures of the readers and writers say, held against the values.

The annotation of an option is its grammar on the command line: `bool` (yes, no), `int`, `str`,
`tuple[int, ...]` (28x28), `Literal[...]`, and `None` for what is not given.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from types import NoneType
from typing import Any, Literal, get_args, get_origin, get_type_hints

__all__: list[str] = []

_BOOLEANS = {"yes": True, "true": True, "1": True, "no": False, "false": False, "0": False}


def options_of(function: Callable[..., Any]) -> dict[str, Any]:
    """Name → annotation of the keyword-only parameters of a reader or a writer."""
    hints = get_type_hints(function)
    parameters = inspect.signature(function).parameters.values()
    return {p.name: hints[p.name] for p in parameters if p.kind is p.KEYWORD_ONLY}


def explained(function: Callable[..., Any]) -> list[tuple[str, str, str, str]]:
    """Name, values, default and meaning of each option, as its docstring tells them."""
    text = inspect.getdoc(function) or ""
    entries = re.findall(r"^    (\w+(?:, \w+)*): (.*(?:\n {8}.*)*)", text, re.MULTILINE)
    told = ((names.split(", "), " ".join(meaning.split())) for names, meaning in entries)
    meanings = {name: meaning for names, meaning in told for name in names}
    parameters = inspect.signature(function).parameters
    return [
        (name, described(annotation), _shown(parameters[name].default), meanings.get(name, ""))
        for name, annotation in options_of(function).items()
    ]


def _shown(value: Any) -> str:
    """A value as it is given on the command line."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, tuple):
        return "x".join(map(str, value))
    return str(value).lower() if value is None else str(value)


def with_options(
    function: Callable[..., Any], options: Mapping[str, Any], name: str
) -> Callable[..., Any]:
    """A reader or a writer with its options filled in.

    Args:
        function: the reader or writer.
        options: name → value.
        name: what errors call the format.

    Raises:
        TypeError: for an option that it does not have.
        ValueError: for a value that is none of those that the option can have.
    """
    known = options_of(function)
    for option, value in options.items():
        if option not in known:
            there = ", ".join(known) or "none"
            raise TypeError(f"{name} has no option {option!r}; it has {there}")
        choices = _choices(known[option])
        if choices and value not in choices:
            raise ValueError(
                f"{option} of {name} must be one of {', '.join(map(str, choices))}, not {value!r}"
            )
    return lambda *args: function(*args, **options)


def parsed(text: str, annotation: Any) -> Any:
    """The value that a text on the command line means.

    Raises:
        ValueError: for a text that means none.
    """
    kinds = [kind for kind in _alternatives(annotation) if kind is not NoneType]
    if len(kinds) < len(_alternatives(annotation)) and text == "none":
        return None
    for kind in kinds:
        if kind is bool and text.lower() in _BOOLEANS:
            return _BOOLEANS[text.lower()]
        if kind is int and re.fullmatch(r"-?\d+", text):
            return int(text)
        if get_origin(kind) is tuple and re.fullmatch(r"\d+(x\d+)*", text):
            return tuple(map(int, text.split("x")))
        if kind is str or (get_origin(kind) is Literal and text in get_args(kind)):
            return text
    raise ValueError(f"{text!r} is not {described(annotation)}")


def described(annotation: Any) -> str:
    """What values an option takes, for people."""
    words: list[str] = []
    for kind in _alternatives(annotation):
        if get_origin(kind) is Literal:
            words += map(str, get_args(kind))
        elif get_origin(kind) is tuple:
            words.append("a shape like 28x28")
        else:
            words.append(
                {bool: "yes or no", int: "a whole number", str: "a text", NoneType: "none"}[kind]
            )
    return " or ".join(words)


def _alternatives(annotation: Any) -> tuple[Any, ...]:
    if get_origin(annotation) in (Literal, tuple, None):
        return (annotation,)
    return get_args(annotation)


def _choices(annotation: Any) -> tuple[Any, ...]:
    """All values that an option can have, where the annotation lists them."""
    found: tuple[Any, ...] = ()
    for kind in _alternatives(annotation):
        if kind is NoneType:
            found = (*found, None)
        elif get_origin(kind) is Literal:
            found = (*found, *get_args(kind))
        else:
            return ()
    return found
