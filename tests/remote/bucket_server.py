"""S3 on this machine, by moto, with a log of what was asked for."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import WSGIRequestHandler, make_server
from werkzeug.wrappers import Response


class BucketServer:
    """A bucket `shelf` behind HTTP; `requests` is the log: method, path with query, range."""

    def __init__(self) -> None:
        self._app = DomainDispatcherApplication(create_backend_app)
        self._server = make_server(
            "127.0.0.1", 0, self._logged, threaded=True, request_handler=_Quiet
        )
        self.endpoint = f"http://127.0.0.1:{self._server.server_port}"
        self.requests: list[tuple[str, str, str | None]] = []
        self.client: Any = None
        """A client of boto3, which sees what is really there."""
        self.package = ""
        """What reads and writes: obstore or fsspec."""
        self.before: Callable[[str, str], int | None] = lambda method, path: None
        """Called with method and path of each request; a status that it returns is the answer."""
        self.spoil: Callable[[dict[str, Any], Response], None] | None = None
        """Called with each request and its answer, which it may change; `cut` breaks it off."""

    def _logged(self, environ: dict[str, Any], start: Any) -> Iterable[bytes]:
        method, path = environ["REQUEST_METHOD"], environ["PATH_INFO"]
        query = environ.get("QUERY_STRING")
        self.requests.append(
            (method, f"{path}?{query}" if query else path, environ.get("HTTP_RANGE"))
        )
        status = self.before(method, path)
        if status is not None:
            start(f"{status} Made up", [("Content-Length", "0")])
            return [b""]
        if self.spoil is None:
            answer: Iterable[bytes] = self._app(environ, start)
            return answer
        response = Response.from_app(self._app, environ, buffered=True)
        self.spoil(environ, response)
        return response(environ, start)

    def asked(self, method: str = "GET") -> list[tuple[str, str | None]]:
        """Path and range of the requests of a kind."""
        return [(path, wanted) for kind, path, wanted in self.requests if kind == method]

    def objects(self) -> dict[str, bytes]:
        """What is in the bucket."""
        found = self.client.list_objects_v2(Bucket="shelf").get("Contents", [])
        keys = [each["Key"] for each in found]
        return {k: self.client.get_object(Bucket="shelf", Key=k)["Body"].read() for k in keys}

    def unfinished(self) -> list[str]:
        """What was begun to be written, and neither finished nor given up."""
        found = self.client.list_multipart_uploads(Bucket="shelf").get("Uploads", [])
        return [each["Key"] for each in found]

    def __enter__(self) -> BucketServer:
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


def cut(response: Response, kept: float = 0.5) -> None:
    """Announce the whole of a body, and break off in the middle."""
    data = response.get_data()

    def pieces() -> Iterator[bytes]:
        yield data[: int(len(data) * kept)]
        raise ConnectionError("as if the machine had died")

    response.response = pieces()


class _Quiet(WSGIRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log(self, *_: object) -> None:
        """The log is a list."""
