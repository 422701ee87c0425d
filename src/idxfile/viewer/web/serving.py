"""A place in the browser: the server, from its first socket to its end."""

from __future__ import annotations

import contextlib
import os
import secrets
import socket
import threading
from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np

from ...errors import MissingExtraError
from ...staging import write_whole
from .exhibit import Exhibit
from .guard import Guard
from .page import export_page
from .places import Place, find_places, look_for

__all__ = ["Serving", "view"]

LOOPBACK = "127.0.0.1"
FIRST_EXPORTED = 1000
"""The items of an exported page where nothing is said."""


def view(
    place: Any,
    labels: Any = None,
    *,
    compare: Any = None,
    items: Any = None,
    export: str | os.PathLike[str] | None = None,
    out: str | os.PathLike[str] = ".",
    host: str = LOOPBACK,
    port: int = 0,
    browser: bool = True,
    ready: Callable[[str], None] | None = None,
) -> None:
    """Look through a place in the browser, until Ctrl-C; or write one page that needs no server.

    Args:
        place: a folder, a file (raw or compressed), a URL, a pair `(images, labels)`, a zip
            archive, bytes, an array, or a `Dataset`.
        labels: the labels, where the names do not say so.
        compare: other labels for the same items (predictions, say), as anything that `open` takes.
        items: with `export`, the items of the page: a slice, integers or a mask; None is the
            first 1,000.
        export: the path of a page to write; then nothing is served.
        out: the folder where the page saves what was selected, under names given there.
        host: the address to listen at. Whoever can reach it and has the token sees the data.
        port: the port to listen at; 0 takes a free one.
        browser: whether to open the browser.
        ready: called with the address, which holds the token, once the page can be opened; None
            prints it.

    Raises:
        FileNotFoundError: when nothing is there.
        MissingExtraError: when starlette or uvicorn is not installed.
        UnsupportedError: when the items are too many for one page.

    Example:
        >>> import idxfile, numpy as np
        >>> digits = idxfile.encode(np.zeros((3, 28, 28), "uint8"))
        >>> idxfile.view(digits, export="digits.html")
        >>> with open("digits.html") as page:
        ...     page.read(15)
        '<!doctype html>'
    """
    places = find_places(place, labels)
    rivals = [] if compare is None else [_rival(compare)]
    if export is not None:
        _export(Exhibit(places[0]), items, os.fsdecode(export))
        return
    with Serving(places, rivals, out=out, host=host, port=port) as serving:
        tell = ready or print
        tell(serving.address)
        if browser:
            import webbrowser

            threading.Thread(target=webbrowser.open, args=(serving.address,), daemon=True).start()
        serving.run()


def _rival(compare: Any) -> Place:
    look_for(compare)
    name = os.path.basename(os.fsdecode(compare)) if _is_path(compare) else "given"
    return Place(name, lambda: compare)


def _is_path(file: Any) -> bool:
    return isinstance(file, (str, os.PathLike))


def _export(exhibit: Exhibit, items: Any, path: str) -> None:
    try:
        everything = np.arange(len(exhibit.items))
        chosen = everything[slice(FIRST_EXPORTED) if items is None else items]
        write_whole(path, export_page(exhibit, np.atleast_1d(chosen)))
    finally:
        exhibit.close()


class Serving:
    """A server for some places. It listens from the start, and answers while `run` runs."""

    def __init__(
        self,
        places: list[Place],
        rivals: list[Place] | None = None,
        *,
        out: str | os.PathLike[str] = ".",
        host: str = LOOPBACK,
        port: int = 0,
    ) -> None:
        try:
            uvicorn: Any = import_module("uvicorn")
            application = import_module(f"{__package__}.routes").application
        except ImportError as error:
            raise MissingExtraError(
                f"the page needs the package {error.name}", hint="pip install 'idxfile[view]'"
            ) from error
        others = [place for place in places if place.labels is None]
        self.exhibits = [
            Exhibit(place, [*(rivals or ()), *(o for o in others if o is not place)])
            for place in places
        ]
        self.token = secrets.token_urlsafe(24)
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._socket = socket.create_server((host, port), family=family)
        self.port: int = self._socket.getsockname()[1]
        self._host = host
        self._compared = bool(rivals)
        app = application(self.exhibits, os.path.realpath(out))
        config = uvicorn.Config(
            Guard(app, self.token, host, self.port),
            http="h11",
            loop="asyncio",
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            timeout_graceful_shutdown=1,
        )
        self._server = uvicorn.Server(config)

    @property
    def address(self) -> str:
        """Where the page is, with the token behind the `#`, which no browser sends anywhere."""
        host = {"0.0.0.0": LOOPBACK, "::": "::1"}.get(self._host, self._host)  # noqa: S104
        first = "&rival=0" if self._compared else ""  # what was given is compared at once
        base = f"http://{f'[{host}]' if ':' in host else host}:{self.port}"
        return f"{base}/#token={self.token}{first}"

    def run(self) -> None:
        """Answer, until Ctrl-C or `stop`."""
        # The first data set is opened meanwhile: when the browser asks, it is there.
        threading.Thread(target=self._warm, daemon=True).start()
        self._server.run(sockets=[self._socket])

    def stop(self) -> None:
        """Let `run` return soon."""
        self._server.should_exit = True

    def close(self) -> None:
        """Drop the files."""
        self._socket.close()
        for exhibit in self.exhibits:
            exhibit.close()

    def __enter__(self) -> Serving:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def _warm(self) -> None:
        with contextlib.suppress(Exception):  # whoever asks for it is told
            self.exhibits[0].file  # noqa: B018 - opens it
