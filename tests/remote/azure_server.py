"""Azure's blobs on this machine, by its own emulator, with a log of what was asked for."""

from __future__ import annotations

import http.client
import os
import re
import subprocess
import sys
from typing import Any

from logged_server import LoggedServer, Request, Response

ACCOUNT = "devstoreaccount1"
KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
"""Of the emulator: Microsoft publishes both, and it takes no others."""

EMULATOR = os.path.join(
    sys.prefix, "node", "node_modules", "azurite", "dist", "src", "blob", "main.js"
)


OPTIONS = (
    *("--blobHost", "127.0.0.1", "--blobPort", "0", "--inMemoryPersistence"),
    *("--silent", "--skipApiVersionCheck", "--disableTelemetry"),
)


class AzureServer(LoggedServer):
    """A container `shelf` of an account, behind a door that writes down who passes."""

    def __init__(self) -> None:
        super().__init__()
        self._process: Any = None
        self._port = 0
        self.container: Any = None
        """A client of Azure's own package, which sees what is really there."""

    def answer(self, request: Request) -> Response:
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=30)
        dropped = ("transfer-encoding", "content-length", "connection", "expect")
        headers = {k: v for k, v in request.headers.items() if k not in dropped}
        if request.method in ("PUT", "POST"):
            headers["content-length"] = str(len(request.body))
        connection.putrequest(
            request.method, request.path, skip_host=True, skip_accept_encoding=True
        )
        for name, value in headers.items():
            connection.putheader(name, value)
        connection.endheaders(request.body or None)
        response = connection.getresponse()
        body = response.read()
        found = {k: v for k, v in response.getheaders() if k.lower() not in dropped}
        if request.method == "HEAD":
            found["Content-Length"] = response.getheader("Content-Length") or "0"
        connection.close()
        return Response(response.status, found, body)

    def __enter__(self) -> AzureServer:
        from azure.storage.blob import ContainerClient

        self._process = subprocess.Popen(
            ["node", EMULATOR, *OPTIONS],
            stdout=subprocess.PIPE,
            text=True,
        )
        for line in self._process.stdout:
            if found := re.search(r"listens on http://127\.0\.0\.1:(\d+)", line):
                self._port = int(found[1])
                break
        else:
            raise RuntimeError("the emulator of Azure did not start")
        self.container = ContainerClient(
            f"http://127.0.0.1:{self._port}/{ACCOUNT}", "shelf", credential=KEY
        )
        self.container.create_container()
        super().__enter__()
        return self

    def __exit__(self, *exception: object) -> None:
        super().__exit__()
        self.container.close()
        self._process.terminate()
        self._process.wait()
        self._process.stdout.close()

    def put(self, name: str, data: bytes) -> None:
        self.container.upload_blob(name, data, overwrite=True)

    def objects(self) -> dict[str, bytes]:
        names = [each.name for each in self.container.list_blobs()]
        return {name: self.container.download_blob(name).readall() for name in names}

    def unfinished(self) -> list[str]:
        """Blobs of which there are blocks, and nothing else."""
        found = self.container.list_blobs(include=["uncommittedblobs"])
        return sorted({each.name for each in found} - set(self.objects()))

    def clear(self) -> None:
        self.container.set_container_access_policy({}, public_access=None)
        for each in self.container.list_blobs():
            self.container.delete_blob(each.name)
