"""`--shards` and `--shard-nbytes`: a set of files instead of one, so many or so large."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

import click

__all__ = ["shards_options"]

Result = TypeVar("Result")

_UNITS = "KMGT"


class SizeType(click.ParamType[int]):
    """A number of bytes: 256M and 256MiB count by 1,024, as 256MB does by 1,000."""

    name = "size"

    def convert(self, value: Any, parameter: Any, context: Any) -> int:
        found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([KMGT]?)(I?B)?", str(value).strip().upper())
        if found is None:
            self.fail(f"{value!r} is no number of bytes such as 256M or 1G", parameter, context)
        number, unit, rest = found.groups()
        base = 1000 if rest == "B" else 1024
        nbytes = int(float(number) * base ** (_UNITS.index(unit) + 1 if unit else 0))
        if not nbytes:
            self.fail(f"{value!r} is less than a byte", parameter, context)
        return nbytes


def shards_options(command: Callable[..., Result]) -> Callable[..., Result]:
    """Both options, of which one may be given: the command gets `cut`, for the library's own."""

    @wraps(command)
    def with_one(
        *words: Any, shards: int | None, shard_nbytes: int | None, **options: Any
    ) -> Result:
        if shards is not None and shard_nbytes is not None:
            raise click.UsageError("--shards and --shard-nbytes: give one of them, not both")
        both = {"shards": shards, "shard_nbytes": shard_nbytes}
        given = {name: number for name, number in both.items() if number is not None}
        return command(*words, cut=given, **options)

    number = click.option(
        "--shards", metavar="N", type=click.IntRange(1, 99_999),
        help="So many files instead of one: NAME-00000-of-00042 …",
    )  # fmt: skip
    size = click.option(
        "--shard-nbytes", metavar="SIZE", type=SizeType(),
        help="Likewise, each of about so many bytes before it is compressed: 256M, 1G.",
    )  # fmt: skip
    return number(size(with_one))
