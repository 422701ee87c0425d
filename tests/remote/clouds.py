"""A cloud for every test that asks for one: Azure, Google and the Hub, each by what reads it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import fsspec
import pytest
from azure_server import ACCOUNT, KEY, AzureServer
from fsspec.registry import _registry
from google_server import GoogleServer
from hub_server import REPOSITORY, HubServer

from idxfile.source.remote import faults

SERVERS: dict[str, Callable[[], Any]] = {"az": AzureServer, "gs": GoogleServer, "hf": HubServer}
SHELVES = {"az": "az://shelf", "gs": "gs://shelf", "hf": f"hf://datasets/{REPOSITORY}"}
READERS = [("az", "obstore"), ("az", "fsspec"), ("gs", "obstore"), ("gs", "fsspec")]


class Cloud:
    """A place `shelf` in a cloud, read and written by one package."""

    def __init__(self, scheme: str, package: str, server: Any, patch: pytest.MonkeyPatch) -> None:
        self.scheme = scheme
        self.package = package
        self.server = server
        self.patch = patch

    def at(self, name: str = "") -> str:
        return f"{SHELVES[self.scheme]}/{name}"

    def forget(self) -> None:
        """As if the process were a new one: file systems remember credentials and listings."""
        for name in ("az", "gs", "hf"):
            fsspec.get_filesystem_class(name).clear_instance_cache()

    def lock(self) -> None:
        """From here on nobody with the credentials that stand in the environment may come in."""
        if self.scheme == "az":
            self.patch.setenv("AZURE_STORAGE_CONNECTION_STRING", connection(self.server, WRONG_KEY))
        else:
            self.server.tokens = set()
            self.patch.setenv("HF_TOKEN", "secret-word")
        self.forget()


WRONG_KEY = "c2VjcmV0LXdvcmQ="


def connection(server: AzureServer, key: str = KEY) -> str:
    """What stands in AZURE_STORAGE_CONNECTION_STRING."""
    return f"AccountName={ACCOUNT};AccountKey={key};BlobEndpoint={server.endpoint}/{ACCOUNT};"


@pytest.fixture(scope="module", name="servers")
def servers_fixture() -> Iterator[Callable[[str], Any]]:
    """The servers, each begun when it is asked for."""
    running: dict[str, Any] = {}
    with contextlib.ExitStack() as stack:

        def server(scheme: str) -> Any:
            if scheme not in running:
                running[scheme] = stack.enter_context(SERVERS[scheme]())
            return running[scheme]

        yield server


@pytest.fixture(params=[*READERS, ("hf", "fsspec")], ids="-".join, name="cloud")
def cloud_fixture(
    request: pytest.FixtureRequest,
    servers: Callable[[str], Any],
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Cloud]:
    scheme, package = request.param
    cloud = Cloud(scheme, package, servers(scheme), monkeypatch)
    settle(cloud)
    yield cloud
    cloud.server.before = lambda request: None
    cloud.forget()


def settle(cloud: Cloud) -> None:
    """An empty shelf, and an environment that leads to it."""
    import gcsfs
    from huggingface_hub import constants

    patch, server = cloud.patch, cloud.server
    patch.setenv("IDXFILE_REMOTE", cloud.package)
    limits = faults.Limits(connect_seconds=5, stall_seconds=5, attempts=3, first_pause_seconds=0.01)
    patch.setattr(faults, "LIMITS", limits)
    if cloud.scheme == "az":
        patch.setenv("AZURE_STORAGE_CONNECTION_STRING", connection(server))
    elif cloud.scheme == "gs":
        # The class that asks each bucket for its layout does so by gRPC, over TLS alone.
        patch.setenv("GCSFS_EXPERIMENTAL_ZB_HNS_SUPPORT", "false")
        patch.setitem(_registry, "gs", gcsfs.core.GCSFileSystem)
        patch.setenv("STORAGE_EMULATOR_HOST", server.endpoint)
    else:
        patch.setenv("HF_ENDPOINT", server.endpoint)
        # It is read once, when the package is imported.
        template = server.endpoint + "/{repo_id}/resolve/{revision}/{filename}"
        patch.setattr(constants, "ENDPOINT", server.endpoint)
        patch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)
        patch.delenv("HF_TOKEN", raising=False)
    server.before = lambda request: None
    cloud.forget()
    server.clear()
    server.requests.clear()


def fill(cloud: Cloud, files: dict[str, bytes]) -> None:
    for name, data in files.items():
        cloud.server.put(name, data)
    cloud.server.requests.clear()
