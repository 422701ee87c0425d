"""`--engine`: where the slabs of a heavy command are run.

A command takes `engine_option`, and hands what `started` gives to the library's `executor=`.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from concurrent.futures import BrokenExecutor, Executor
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from importlib import import_module
from typing import Any

import click
from click.shell_completion import CompletionItem

from ..errors import MissingExtraError
from ..slabs.running import Engine
from ..source.pool import Pool
from .offering import beginning
from .terms import slabs_bar

__all__ = ["ENGINES", "engine_option", "started"]


@contextmanager
def _workers(kind: Callable[[int | None], Executor], words: str | None) -> Iterator[Executor]:
    """Workers of this machine: `words` of them, or one for each processor."""
    executor = kind(_count(words))
    try:
        yield executor
    finally:
        executor.shutdown(cancel_futures=True)


def _count(words: str | None) -> int | None:
    if words is None:
        return None
    if not words.isdecimal() or not int(words):
        raise click.UsageError(f"--engine: {words!r} is no number of workers")
    return int(words)


def _processes(words: str | None) -> AbstractContextManager[Executor]:
    from multiprocessing import forkserver

    from ..slabs.interrupts import deaf_children
    from ..slabs.running import Processes

    with deaf_children():
        forkserver.ensure_running()
    return _workers(Processes, words)


def _threads(words: str | None) -> AbstractContextManager[Executor]:
    return _workers(Pool, words)


def _adapter(name: str) -> Callable[[str | None], AbstractContextManager[Executor]]:
    """The executor of an adapter: `words` is the address of a cluster, none starts one here."""

    def start(words: str | None) -> AbstractContextManager[Executor]:
        adapter: Any = import_module(f"idxfile.adapters.{name}")
        manager: AbstractContextManager[Executor] = adapter.executor(words)
        return manager

    return start


ENGINES: dict[str, Callable[[str | None], AbstractContextManager[Executor]]] = {
    "processes": _processes,
    "threads": _threads,
    "dask": _adapter("dask"),
    "ray": _adapter("ray"),
}
"""Name → what starts it, given the words behind `=`."""


class _EngineType(click.ParamType[str]):
    """An engine, and behind `=` how many workers, or where its cluster is."""

    name = "engine"

    def convert(self, value: str, param: click.Parameter | None, context: Any) -> str:
        if value.partition("=")[0] not in ENGINES:
            self.fail(f"{value!r} is none of {', '.join(ENGINES)}", param, context)
        return value

    def shell_complete(self, context: Any, param: Any, incomplete: str) -> list[CompletionItem]:
        return beginning(incomplete, ((name, "") for name in ENGINES))


@contextmanager
def _begun(name: str, words: str | None) -> Iterator[Executor]:
    """An engine; what is wrong with beginning it names the option."""
    with ExitStack() as stack:
        try:
            executor = stack.enter_context(ENGINES[name](words))
        except MissingExtraError as error:
            raise MissingExtraError(f"--engine {name}: {error.args[0]}", hint=error.hint) from error
        except OSError as error:
            raise ConnectionError(f"--engine {name}: {error}") from error
        yield executor


engine_option = click.option(
    "--engine",
    type=_EngineType(),
    metavar="ENGINE",
    help="Where the work is done: processes[=N], threads[=N], dask[=tcp://HOST:PORT] or "
    "ray[=ADDRESS]. Without it, here.",
)


@contextmanager
def started(engine: str | None, label: str | None = "work") -> Iterator[Any]:
    """An engine, running as long as the `with` block does. What is queued behind it is cancelled.

    Args:
        engine: the words of `--engine`; None is no engine, and gives None.
        label: what a terminal is told to be going on, beside how much of it is done; None tells
            nothing.

    Yields:
        An executor.

    Raises:
        click.UsageError: for a number of workers that is none.
        MissingExtraError: when the engine is not installed.
        ConnectionError: when nobody answers at its address, or that is none.
        FileNotFoundError: for a file that is here, and not where the workers are.
        ChildProcessError: when workers were lost again and again.
    """
    if engine is None:
        yield None
        return
    name, _, words = engine.partition("=")
    try:
        bar = slabs_bar(label) if label else nullcontext()
        with _begun(name, words or None) as executor, bar as progress:
            yield Engine(executor, progress=progress)
    except FileNotFoundError as error:
        if error.filename is None or not os.path.exists(error.filename):
            raise
        raise FileNotFoundError(
            errno.ENOENT,
            f"It is here, and the workers of {name} do not find it: they need a disk that all "
            "share, or an address",
            error.filename,
        ) from error
    except BrokenExecutor as error:
        raise ChildProcessError(
            f"a worker was lost again and again ({error}): is there too little memory?"
        ) from error
