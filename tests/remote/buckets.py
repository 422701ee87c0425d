"""A bucket for every test that asks for one, read and written by each of the two packages."""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import Executor, Future
from typing import Any

import boto3
import pytest
import s3fs
from bucket_server import BucketServer

from idxfile.source.remote import faults


@pytest.fixture(scope="module", name="shared")
def shared_fixture() -> Iterator[tuple[BucketServer, Any]]:
    with pytest.MonkeyPatch.context() as patch, BucketServer() as server:
        for name, value in {
            "AWS_ENDPOINT_URL": server.endpoint,
            "AWS_ACCESS_KEY_ID": "key",
            "AWS_SECRET_ACCESS_KEY": "secret-word",
            "AWS_REGION": "us-east-1",
            "AWS_DEFAULT_REGION": "us-east-1",
            "AWS_CONFIG_FILE": "/dev/null",
            "AWS_SHARED_CREDENTIALS_FILE": "/dev/null",
        }.items():
            patch.setenv(name, value)
        client = boto3.client("s3")
        client.create_bucket(Bucket="shelf")
        yield server, client
        client.close()


@pytest.fixture(params=["obstore", "fsspec"], name="bucket")
def bucket_fixture(
    request: pytest.FixtureRequest,
    shared: tuple[BucketServer, Any],
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[BucketServer]:
    """A bucket `shelf`, by one of the two packages."""
    server, client = shared
    monkeypatch.setenv("IDXFILE_REMOTE", request.param)
    limits = faults.Limits(connect_seconds=5, stall_seconds=5, attempts=3, first_pause_seconds=0.01)
    monkeypatch.setattr(faults, "LIMITS", limits)
    for found in client.list_objects_v2(Bucket="shelf").get("Contents", []):
        client.delete_object(Bucket="shelf", Key=found["Key"])
    for begun in client.list_multipart_uploads(Bucket="shelf").get("Uploads", []):
        client.abort_multipart_upload(Bucket="shelf", Key=begun["Key"], UploadId=begun["UploadId"])
    s3fs.S3FileSystem.clear_instance_cache()
    server.requests.clear()
    server.before = lambda method, path: None
    server.package = request.param
    server.client = client
    yield server
    server.before = lambda method, path: None


class There(Executor):
    """Workers that know the bucket of the test, whenever their processes were begun."""

    def __init__(self, inner: Executor) -> None:
        self._inner = inner
        names = [name for name in os.environ if name.startswith(("AWS_", "IDXFILE_"))]
        self._environment = {name: os.environ[name] for name in names}

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        return self._inner.submit(_there, self._environment, fn, *args, **kwargs)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        self._inner.shutdown(wait, cancel_futures=cancel_futures)


def _there(environment: dict[str, str], fn: Any, *args: Any, **kwargs: Any) -> Any:
    os.environ.update(environment)
    return fn(*args, **kwargs)
