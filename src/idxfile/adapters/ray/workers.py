"""The workers of Ray as an executor: `executor`."""

from __future__ import annotations

import contextlib
import os
import pickle
import socket
from collections.abc import Iterator
from concurrent.futures import BrokenExecutor, Executor, Future
from functools import partial
from typing import Any

import ray
from ray.exceptions import RayError, RayTaskError

from ...slabs.running import AHEAD, Engine

__all__ = ["executor"]

_ANSWERED_WITHIN = 10.0
"""Seconds. Ray itself would ask again and again for a quarter of an hour."""

_HERE = "local"
"""What Ray calls one that is started here, whatever others there are."""

_LOOPBACK = ("127.0.0.1", "localhost", "::1")


@contextlib.contextmanager
def executor(address: str | None = None, *, workers: int | None = None) -> Iterator[Executor]:
    """The workers of Ray, as an executor for `idxfile.run` and every `executor=`.

    A Ray that is initialised already is used as it is, and stays. When a worker is lost its slabs
    go to another one, up to three times.

    Args:
        address: of a cluster, `HOST:PORT`, `ray://HOST:PORT` or "auto". None starts one here, and
            ends it.
        workers: how many processes to start; None for as many as there are processors.

    Yields:
        A `concurrent.futures.Executor`. What is queued is cancelled when the block is left by an
        exception.

    Raises:
        ConnectionError: when nobody answers at the address.
        BrokenExecutor: when the same slab was lost with every worker that ran it.
    """
    ours = not ray.is_initialized()
    if ours:
        address = _settled(address or os.environ.get("RAY_ADDRESS") or _HERE)
        options: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR"}
        if address == _HERE:
            options |= {"num_cpus": workers, "include_dashboard": False}
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # nobody is told of it
        with _found(address):
            ray.init(address, **options)
    pool = workers_at_hand()
    try:
        yield pool
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)
        raise
    finally:
        pool.shutdown(wait=False)
        if ours:
            ray.shutdown()


def _settled(address: str) -> str:
    """The address that "auto" stands for: of the Ray that was begun last on this machine.

    Raises:
        ConnectionError: when there is none.
    """
    if address != "auto":
        return address
    from ray._private.services import get_ray_address_from_environment

    found = get_ray_address_from_environment("auto", None)
    if found is None:
        raise ConnectionError("no Ray is found on this machine")
    return str(found)


@contextlib.contextmanager
def _found(address: str) -> Iterator[None]:
    """While a Ray is started or joined: it answers, and what is of this machine stays here.

    A Ray that is started here listens on all networks, and takes calls from everybody. On systems
    other than Linux it has this constant, and listens to its own machine alone; there is no option.

    Raises:
        ConnectionError: when nobody answers at the address.
    """
    from ray._private import ray_constants

    host, _, port = address.removeprefix("ray://").rpartition(":")
    host = host.strip("[]")
    if address != _HERE:
        if not port.isdecimal():
            raise ConnectionError(f"{address!r} is no address of a Ray, as HOST:PORT is")
        try:
            socket.create_connection((host, int(port)), _ANSWERED_WITHIN).close()
        except (OSError, OverflowError) as error:
            raise ConnectionError(f"no Ray answers at {address}: {error}") from error
    name = "ENABLE_RAY_CLUSTER"
    before = getattr(ray_constants, name)
    if address == _HERE or host in _LOOPBACK:
        setattr(ray_constants, name, False)
    try:
        yield
    finally:
        setattr(ray_constants, name, before)


def workers_at_hand() -> Engine:
    """The workers of the Ray that is initialised."""
    return Engine(_Workers(), ahead=max(AHEAD, 2 * int(ray.cluster_resources().get("CPU", 0))))


class _Workers(Executor):
    """Calls as tasks of Ray."""

    def __init__(self) -> None:
        self._task = ray.remote(max_retries=3)(_done)
        self._futures: set[Future[Any]] = set()
        self._closed = False

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Run a call in one of the workers; again in another one if that was lost."""
        if self._closed:
            raise RuntimeError("cannot schedule new futures after shutdown")
        result: Future[Any] = Future()
        reference = self._task.remote(fn, *args, **kwargs)
        self._futures.add(result)

        def left(done: Future[Any]) -> None:
            self._futures.discard(done)
            if done.cancelled():
                ray.cancel(reference)

        result.add_done_callback(left)
        reference.future().add_done_callback(partial(_arrived, result))
        return result

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Take no more calls."""
        self._closed = True
        for future in [*self._futures]:
            if cancel_futures:
                future.cancel()
            elif wait:
                future.exception()


def _done(fn: Any, *args: Any, **kwargs: Any) -> bytes:
    """The result of a call, pickled: what Ray itself unpickles cannot be written to."""
    return pickle.dumps(fn(*args, **kwargs), protocol=pickle.HIGHEST_PROTOCOL)


def _arrived(result: Future[Any], reply: Future[bytes]) -> None:
    if not result.set_running_or_notify_cancel():
        return
    error = reply.exception()
    if isinstance(error, RayTaskError):
        result.set_exception(error.cause)
    elif isinstance(error, RayError):
        result.set_exception(BrokenExecutor(str(error)))
    elif error is not None:
        result.set_exception(error)
    else:
        result.set_result(pickle.loads(reply.result()))  # noqa: S301  of our own making
