"""What lies on the shelf: arrays that the tests of every store read and write."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from typing import Any

import numpy as np
import pytest
from bucket_server import BucketServer

IMAGES = np.random.default_rng(7).integers(0, 256, (300, 28, 28), np.uint8)
LABELS = np.arange(300, dtype=np.uint8) % 10
WIDE = np.random.default_rng(8).integers(-(2**31), 2**31, (3000, 100), np.int32)
BIG = np.random.default_rng(1).integers(0, 256, (60_000, 28, 28), np.uint8)

WAYS = ["exception", "too few", "forgotten"]


def give_up(way: str, create: Callable[[], Any]) -> None:
    """Begin to write, and end it in one of the ways that lead to no object."""
    writer = create()
    writer.append(BIG[:15_000])
    if way == "exception":
        with pytest.raises(ZeroDivisionError), writer:
            raise ZeroDivisionError
    elif way == "too few":
        with pytest.raises(ValueError, match="were promised: nothing was written"):
            writer.close()
    else:
        del writer
        gc.collect()


def executor_of(made: dict[str, Callable[[], Executor] | None]) -> Any:
    """A fixture: each executor of a table, which ends with the test; None where nobody helps."""

    @pytest.fixture(params=made, name="executor")
    def executor(request: pytest.FixtureRequest, bucket: BucketServer) -> Iterator[Any]:
        make = made[request.param]
        if make is None:
            yield None
            return
        with make() as one:
            yield one

    return executor
