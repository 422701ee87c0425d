"""Credentials by the usual environment: one does for both packages of a cloud."""

from __future__ import annotations

import datetime
import itertools
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from azure_server import ACCOUNT, KEY
from clouds import READERS, Cloud, cloud_fixture, fill, servers_fixture  # noqa: F401
from shelf import IMAGES

import idxfile
from conftest import idx_bytes
from idxfile import FetchError
from idxfile.source.remote import faults

pytestmark = pytest.mark.slow

WAYS = ("name and key", "short names", "shared access", "anonymous")


@pytest.mark.parametrize(
    ("cloud", "way"),
    # adlfs looks for an emulator at one port alone: see test_settings.
    [*itertools.product(READERS[:2], WAYS), (READERS[0], "emulator")],
    indirect=["cloud"],
    ids=lambda value: value if isinstance(value, str) else "-".join(value),
)
def test_azure_takes_the_usual_environment(
    cloud: Cloud, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    from azure.storage.blob import ContainerSasPermissions, generate_container_sas

    fill(cloud, {"images.idx": idx_bytes(IMAGES)})
    monkeypatch.delenv("AZURE_STORAGE_CONNECTION_STRING")
    endpoint = f"{cloud.server.endpoint}/{ACCOUNT}"
    named = {"AZURE_STORAGE_ACCOUNT_NAME": ACCOUNT, "AZURE_STORAGE_ENDPOINT": endpoint}
    if way == "name and key":
        environment = {**named, "AZURE_STORAGE_ACCOUNT_KEY": KEY}
    elif way == "short names":
        environment = {
            "AZURE_STORAGE_ACCOUNT": ACCOUNT,
            "AZURE_STORAGE_KEY": KEY,
            "AZURE_STORAGE_ENDPOINT": endpoint,
        }
    elif way == "shared access":
        until = datetime.datetime.now(datetime.UTC) + datetime.timedelta(hours=1)
        reading = ContainerSasPermissions(read=True, list=True)
        token = generate_container_sas(
            ACCOUNT, "shelf", account_key=KEY, permission=reading, expiry=until
        )
        environment = {**named, "AZURE_STORAGE_SAS_TOKEN": token}
    elif way == "anonymous":
        cloud.server.container.set_container_access_policy({}, public_access="container")
        environment = {**named, "AZURE_SKIP_SIGNATURE": "true"}
    else:
        where = {"AZURITE_BLOB_STORAGE_URL": cloud.server.endpoint}
        environment = {"AZURE_STORAGE_USE_EMULATOR": "true", **where}
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    cloud.forget()
    assert np.array_equal(idxfile.read(cloud.at("images.idx")), IMAGES)
    with pytest.raises(FileNotFoundError):
        idxfile.open(cloud.at("none.idx"))
    if way == "shared access":  # it may read, and no more
        with pytest.raises(PermissionError) as caught:
            idxfile.write(cloud.at("new.idx"), IMAGES)
        assert "sig=" not in str(caught.value)
        assert token.rpartition("sig=")[2] not in str(caught.value)


@pytest.mark.parametrize("cloud", READERS[:1], ids="-".join, indirect=True)
def test_an_account_that_is_not_named_is_told(
    cloud: Cloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("AZURE_STORAGE_CONNECTION_STRING")
    for package, url in (
        ("obstore", cloud.at("images.idx")),
        ("fsspec", cloud.at("images.idx")),
        ("fsspec", "adl://shelf/images.idx"),  # of the first generation, which is no more
    ):
        monkeypatch.setenv("IDXFILE_REMOTE", package)
        with pytest.raises(FetchError) as caught:
            idxfile.open(url)
        assert "hint: " in str(caught.value)


@pytest.mark.parametrize("cloud", READERS[2:], ids="-".join, indirect=True)
def test_google_takes_a_key_file(
    cloud: Cloud, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A service account: by a token that it signs, or by one that it is given for that."""
    fill(cloud, {"images.idx": idx_bytes(IMAGES)})
    cloud.server.tokens = {"reader@here.example", "token-of-the-key"}
    monkeypatch.delenv("STORAGE_EMULATOR_HOST")
    monkeypatch.setenv("GOOGLE_BASE_URL", cloud.server.endpoint)
    secret = key_file(tmp_path / "key.json", f"{cloud.server.endpoint}/token")
    for name in ("GOOGLE_APPLICATION_CREDENTIALS", "GOOGLE_SERVICE_ACCOUNT"):
        monkeypatch.setenv(name, str(tmp_path / "key.json"))
        cloud.forget()
        assert np.array_equal(idxfile.read(cloud.at("images.idx")), IMAGES)
        idxfile.write(cloud.at("new.idx"), IMAGES)
        assert cloud.server.objects()["new.idx"] == idx_bytes(IMAGES)
        monkeypatch.delenv(name)
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(tmp_path / "key.json"))
    cloud.server.tokens = {"somebody else"}
    cloud.forget()
    with pytest.raises(PermissionError) as caught:
        idxfile.open(cloud.at("images.idx"))
    assert secret not in str(caught.value)


@pytest.mark.parametrize("cloud", READERS[2:], ids="-".join, indirect=True)
def test_a_public_bucket_is_read_without_a_word(
    cloud: Cloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(cloud, {"images.idx": idx_bytes(IMAGES)})
    monkeypatch.delenv("STORAGE_EMULATOR_HOST")
    monkeypatch.setenv("GOOGLE_BASE_URL", cloud.server.endpoint)
    monkeypatch.setenv("GOOGLE_SKIP_SIGNATURE", "true")
    cloud.forget()
    assert np.array_equal(idxfile.read(cloud.at("images.idx")), IMAGES)
    assert not any("authorization" in r.headers for r in cloud.server.requests)


@pytest.mark.parametrize("cloud", [("hf", "fsspec")], ids="-".join, indirect=True)
def test_the_hub_takes_a_token(cloud: Cloud, monkeypatch: pytest.MonkeyPatch) -> None:
    """It goes to the Hub, and not to where the Hub leads: the server of the tests minds that."""
    fill(cloud, {"images.idx": idx_bytes(IMAGES)})
    cloud.server.tokens = {"right-word"}
    monkeypatch.setenv("HF_TOKEN", "right-word")
    cloud.forget()
    assert np.array_equal(idxfile.read(cloud.at("images.idx")), IMAGES)
    branch = cloud.at("images.idx").replace("shelf/", "shelf@main/")
    assert np.array_equal(idxfile.read(branch), IMAGES)
    monkeypatch.setenv("HF_TOKEN", "secret-word")
    cloud.server.gated = True
    cloud.forget()
    with pytest.raises(PermissionError, match="the store refuses it") as caught:
        idxfile.open(cloud.at("images.idx"))
    assert "secret-word" not in str(caught.value)


@pytest.mark.parametrize("scheme", ["s3", "gs", "az"])
def test_no_credentials_at_all_are_told_as_such(
    monkeypatch: pytest.MonkeyPatch, scheme: str
) -> None:
    """obstore asks the machine for them at last, as if it stood in that cloud."""
    for name in [n for n in os.environ if n.startswith(("AWS_", "GOOGLE_", "AZURE_", "STORAGE_"))]:
        monkeypatch.delenv(name)
    nowhere = "127.0.0.1:9"
    for name in ("AWS_METADATA_ENDPOINT", "AZURE_MSI_ENDPOINT", "IDENTITY_ENDPOINT"):
        monkeypatch.setenv(name, f"http://{nowhere}")
    for name in ("GCE_METADATA_HOST", "GCE_METADATA_ROOT", "GCE_METADATA_IP"):
        monkeypatch.setenv(name, nowhere)
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_NAME", "me")
    monkeypatch.setenv("HOME", "/nowhere")
    monkeypatch.setenv("IDXFILE_REMOTE", "obstore")
    limits = faults.Limits(connect_seconds=2, stall_seconds=2, attempts=2, first_pause_seconds=0.01)
    monkeypatch.setattr(faults, "LIMITS", limits)
    with pytest.raises(PermissionError, match="there are no credentials") as caught:
        idxfile.open(f"{scheme}://shelf/images.idx")
    assert "SKIP_SIGNATURE=true" in str(caught.value)


@pytest.mark.parametrize(
    ("cloud", "logger"),
    [(READERS[1], "azure.identity"), (READERS[3], "gcsfs")],
    indirect=["cloud"],
    ids=lambda value: value if isinstance(value, str) else "-".join(value),
)
def test_what_a_package_logs_is_not_shown(cloud: Cloud, logger: str) -> None:
    """As the tracebacks of connections that cannot be made: what there is to say, we say."""
    code = (
        "import logging, sys; from idxfile.cli import main; code = main(sys.argv[1:-1]);"
        "logging.getLogger(sys.argv[-1]).error('noise'); sys.exit(code)"
    )
    words = [sys.executable, "-c", code, "info", cloud.at("none.idx"), logger]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60)
    assert done.returncode == 5
    assert done.stderr.startswith(f"error: {cloud.at('none.idx')}: there is no such object\n")
    assert "noise" not in done.stderr


def key_file(path: Path, token_uri: str) -> str:
    """Write the key of a service account; a line of the secret in it is returned."""
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import rsa

    private = rsa.generate_private_key(65537, 2048).private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    key = {
        "type": "service_account",
        "project_id": "here",
        "private_key_id": "1",
        "private_key": private.decode(),
        "client_email": "reader@here.example",
        "client_id": "1",
        "token_uri": token_uri,
    }
    path.write_text(json.dumps(key))
    return private.decode().splitlines()[1]
