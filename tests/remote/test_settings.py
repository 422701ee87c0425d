"""One environment for both packages of a cloud: what each is told of what the other one reads."""

from __future__ import annotations

import os
from typing import Any

import fsspec
import pytest
from obstore.store import from_url

import idxfile
from idxfile import FetchError
from idxfile.source import remote
from idxfile.source.remote import obstore, settings
from idxfile.source.remote.stores import AZURE, STORES, Store, known_store, spelled

STRING = "DefaultEndpointsProtocol=https;AccountName=me;AccountKey=a2V5==;EndpointSuffix=core.cn"
NAMED = {"AZURE_STORAGE_ACCOUNT": "me", "AZURE_STORAGE_KEY": "a2V5"}
ENDPOINT = "http://127.0.0.1:1/me"
CASES: list[tuple[str, dict[str, str], dict[str, Any], dict[str, Any]]] = [
    # scheme, environment, for obstore, for fsspec: what each does not read by itself
    ("az", {}, {}, {}),
    (
        "az",
        {"AZURE_STORAGE_CONNECTION_STRING": STRING},
        {"account_name": "me", "account_key": "a2V5==", "endpoint": "https://me.blob.core.cn"},
        {},
    ),
    (
        "abfs",
        {"AZURE_STORAGE_CONNECTION_STRING": f"BlobEndpoint={ENDPOINT}/;SharedAccessSignature=s=1"},
        {"endpoint": ENDPOINT, "sas_key": "s=1"},
        {},
    ),
    (
        "az",
        {"AZURE_STORAGE_CONNECTION_STRING": "UseDevelopmentStorage=true"},
        {"use_emulator": True},
        {},
    ),
    (
        "az",
        {"AZURE_STORAGE_USE_EMULATOR": "true"},
        {},
        {"connection_string": "UseDevelopmentStorage=true"},
    ),
    (
        "az",
        NAMED,
        {"account_name": "me", "account_key": "a2V5"},
        {"account_name": "me", "account_key": "a2V5"},
    ),
    (
        "az",
        {"AZURE_STORAGE_ACCOUNT_NAME": "me", "AZURE_STORAGE_SAS_KEY": "s=1"},
        {},
        {"account_name": "me", "sas_token": "s=1"},
    ),
    (
        "az",
        {**NAMED, "AZURE_ENDPOINT": ENDPOINT},
        {"account_name": "me", "account_key": "a2V5"},
        {"connection_string": f"BlobEndpoint={ENDPOINT};AccountName=me;AccountKey=a2V5"},
    ),
    (
        "az",
        {"AZURE_STORAGE_ACCOUNT_NAME": "me", "AZURE_SKIP_SIGNATURE": "true"},
        {},
        {"account_name": "me", "anon": True},
    ),
    (
        "az",
        {"AZURE_STORAGE_ACCOUNT": "me", "AZURE_STORAGE_ANON": "1"},
        {"account_name": "me", "skip_signature": True},
        {"account_name": "me"},
    ),
    ("gs", {}, {}, {}),
    (
        "gs",
        {"STORAGE_EMULATOR_HOST": "127.0.0.1:1"},
        {"base_url": "http://127.0.0.1:1", "bearer_token": "none"},
        {"token": "anon"},
    ),
    ("gs", {"GOOGLE_SKIP_SIGNATURE": "true"}, {}, {"token": "anon"}),
    ("gcs", {"GOOGLE_SKIP_SIGNATURE": "true"}, {}, {"token": "anon"}),
    ("azure", {"AZURE_SKIP_SIGNATURE": "true"}, {}, {"account_name": None, "anon": True}),
    (
        "gs",
        {"GOOGLE_BASE_URL": "http://127.0.0.1:1", "GOOGLE_SERVICE_ACCOUNT": "/key.json"},
        {},
        {"endpoint_url": "http://127.0.0.1:1", "token": "/key.json"},
    ),
    ("gs", {"GOOGLE_SERVICE_ACCOUNT_KEY": '{"type": "x"}'}, {}, {"token": {"type": "x"}}),
    ("s3", {"AWS_SKIP_SIGNATURE": "true"}, {}, {"anon": True}),
    ("s3", {"AWS_SKIP_SIGNATURE": "false"}, {}, {}),
    ("hf", {"HF_TOKEN": "t"}, {}, {}),
]


@pytest.fixture(autouse=True)
def _bare(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.startswith(("AZURE_", "GOOGLE_", "STORAGE_", "AWS_")):
            monkeypatch.delenv(name)


@pytest.mark.parametrize(("scheme", "environment", "for_obstore", "for_fsspec"), CASES)
def test_an_environment_and_what_each_is_told(
    monkeypatch: pytest.MonkeyPatch,
    scheme: str,
    environment: dict[str, str],
    for_obstore: dict[str, Any],
    for_fsspec: dict[str, Any],
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert settings.for_obstore(scheme) == for_obstore
    assert settings.for_fsspec(scheme) == for_fsspec


@pytest.mark.parametrize(
    ("scheme", "name", "value", "plain"),
    [
        ("s3", "AWS_ENDPOINT_URL", "http://127.0.0.1:1", True),
        ("s3", "AWS_ENDPOINT_URL_S3", "https://127.0.0.1:1", False),
        ("az", "AZURE_STORAGE_ENDPOINT", ENDPOINT, True),
        ("az", "AZURE_STORAGE_CONNECTION_STRING", f"BlobEndpoint={ENDPOINT}", True),
        ("az", "AZURE_STORAGE_CONNECTION_STRING", STRING, False),
        ("gs", "STORAGE_EMULATOR_HOST", "localhost:1", True),
        ("gs", "GOOGLE_BASE_URL", "https://127.0.0.1:1", False),
        ("az", "AWS_ENDPOINT_URL", "http://127.0.0.1:1", False),
    ],
)
def test_plain_http_is_spoken_only_where_it_is_asked_for(
    monkeypatch: pytest.MonkeyPatch, scheme: str, name: str, value: str, plain: bool
) -> None:
    monkeypatch.setenv(name, value)
    assert settings.is_plain(scheme) is plain


@pytest.mark.slow
@pytest.mark.parametrize("store", STORES, ids=lambda store: store.schemes[0])
def test_each_package_knows_the_words_of_its_stores(store: Store) -> None:
    """Whatever is written, an address of a store begins with what both of its packages know."""
    for scheme in (*store.schemes, *store.aliases):
        url = spelled(f"{scheme.upper()}://shelf/x.idx")
        assert known_store(url) is store
        assert url.partition("://")[0] in fsspec.available_protocols()
        assert url.partition("://")[2] == "shelf/x.idx"
        if store.obstore:
            config = {"account_name": "me"} if store is AZURE else {}
            assert from_url(url.rpartition("/")[0], config=config)


def test_an_alias_is_read_by_obstore(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("IDXFILE_REMOTE", raising=False)
    for url in ("gcs://shelf/x.idx", "azure://shelf/x.idx", "S3A://shelf/x.idx"):
        assert remote._store_of(url).__name__.endswith(".obstore")
    for url in ("hf://datasets/me/x.idx", "memory://x.idx"):
        assert remote._store_of(url).__name__.endswith(".fsspec")
    store, path = obstore.store_of("gcs://shelf/x.idx")
    assert (type(store).__name__, path) == ("GCSStore", "x.idx")


@pytest.mark.parametrize("package", ["obstore", "fsspec"])
def test_a_key_that_is_no_json_is_named(monkeypatch: pytest.MonkeyPatch, package: str) -> None:
    monkeypatch.setenv("IDXFILE_REMOTE", package)
    monkeypatch.setenv("GOOGLE_SERVICE_ACCOUNT_KEY", "{secret-word")
    with pytest.raises(FetchError) as caught:
        idxfile.open("gs://shelf/x.idx")
    text = str(caught.value)
    assert "GOOGLE_SERVICE_ACCOUNT_KEY holds no JSON" in text
    assert "set GOOGLE_SERVICE_ACCOUNT_KEY to" in text
    assert "address" not in text
    assert "secret-word" not in text


@pytest.mark.parametrize(
    ("url", "name", "value", "shown"),
    [
        ("s3://shelf/x.idx", "AWS_ENDPOINT_URL", "http://me:secret@h:1", "http://h:1"),
        ("gs://shelf/x.idx", "STORAGE_EMULATOR_HOST", "h:1", "http://h:1"),
        ("gs://shelf/x.idx", "GOOGLE_BASE_URL", "https://h", "https://h"),
        ("az://shelf/x.idx", "AZURE_STORAGE_ENDPOINT", "http://h:1/me", "http://h:1/me"),
        (
            "az://shelf/x.idx",
            "AZURE_STORAGE_CONNECTION_STRING",
            f"BlobEndpoint={ENDPOINT};SharedAccessSignature=secret",
            ENDPOINT,
        ),
    ],
)
def test_who_said_where_a_store_is_stands_in_the_hint(
    monkeypatch: pytest.MonkeyPatch, url: str, name: str, value: str, shown: str
) -> None:
    for variable in [key for key in os.environ if key.startswith(("AWS_", "AZURE_", "GOOGLE_"))]:
        monkeypatch.delenv(variable)
    plain = "look at the address, the region and the credentials"
    assert settings.reach_hint(url) == settings.reach_hint("hf://me/x.idx") == plain
    assert not settings.is_plain(url)
    monkeypatch.setenv(name, value)
    assert settings.reach_hint(url).startswith(f"look at {name}, which is {shown};")
    assert settings.is_plain(url) == shown.startswith("http:")
