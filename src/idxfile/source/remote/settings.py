"""What the environment says about a cloud, as each package takes it.

obstore and the packages of fsspec know most of the usual names by themselves. Here are those that
only one of the two knows, so that one environment does for both.
"""

from __future__ import annotations

import json
import os
from typing import Any

from ..places import public
from .faults import DeniedError
from .stores import AMAZON, AZURE, GOOGLE, known_store

__all__ = ["credentials_hint", "for_fsspec", "for_obstore", "is_plain", "reach_hint"]


def credentials_hint(url: str) -> str:
    """Where the credentials for an address come from."""
    store = known_store(url)
    names = store.credentials if store else ""
    return f"credentials are taken from the environment{f': {names}' if names else ''}"


def for_obstore(scheme: str) -> dict[str, Any]:
    """The options of a store of obstore that it would not find by itself."""
    store = known_store(scheme)
    if store is AZURE:
        found = _azure_of(_first("AZURE_STORAGE_CONNECTION_STRING"))
        named = {
            "account_name": _first("AZURE_STORAGE_ACCOUNT"),
            "account_key": _first("AZURE_STORAGE_KEY"),
            "skip_signature": _is_set("AZURE_STORAGE_ANON"),
        }
        return {**{key: value for key, value in named.items() if value}, **found}
    if store is GOOGLE and (emulator := _google_emulator()):
        # To be let off signing would not hold for uploads.
        return {"base_url": emulator, "bearer_token": "none"}
    if store is GOOGLE:
        _google_key()  # what obstore says of one that is damaged does not name the variable
    return {}


def for_fsspec(scheme: str) -> dict[str, Any]:
    """The options of a file system of fsspec that it would not find by itself."""
    store = known_store(scheme)
    if store is AZURE:
        return _for_adlfs()
    if store is GOOGLE:
        return _for_gcsfs()
    if store is AMAZON and _is_set("AWS_SKIP_SIGNATURE"):
        return {"anon": True}
    return {}


def is_plain(scheme: str) -> bool:
    """Whether a cloud is to be spoken to without encryption, as an emulator on this machine is."""
    return _endpoint(scheme)[1].startswith("http://")


def reach_hint(url: str) -> str:
    """Where to look when a store cannot be reached, or does not answer as it should."""
    name, endpoint = _endpoint(url)
    if not endpoint:
        return "look at the address, the region and the credentials"
    return f"look at {name}, which is {public(endpoint)}; else at the address and the credentials"


_ENDPOINTS = {
    AMAZON: ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"),
    AZURE: ("AZURE_STORAGE_ENDPOINT", "AZURE_ENDPOINT"),
    GOOGLE: ("STORAGE_EMULATOR_HOST", "GOOGLE_BASE_URL"),
}


def _endpoint(url: str) -> tuple[str, str]:
    """Where a cloud is to be found, if that is said, and the variable that says so."""
    store = known_store(url)
    if store is AZURE:
        name = "AZURE_STORAGE_CONNECTION_STRING"
        if endpoint := _azure_of(_first(name)).get("endpoint"):
            return name, endpoint
    names = _ENDPOINTS.get(store, ()) if store else ()
    name = next(filter(os.environ.get, names), "")
    endpoint = _google_emulator() if name == "STORAGE_EMULATOR_HOST" else _first(name)
    return name, endpoint or ""


def _azure_of(connection: str | None) -> dict[str, Any]:
    """A connection string of Azure, taken apart."""
    if connection is None:
        return {}
    pairs = (each.partition("=") for each in connection.split(";"))
    said = {key.strip().lower(): value for key, _, value in pairs}
    if said.get("usedevelopmentstorage") == "true":
        return {"use_emulator": True}
    account = said.get("accountname")
    endpoint = said.get("blobendpoint")
    if endpoint is None and account and "endpointsuffix" in said:
        protocol = said.get("defaultendpointsprotocol", "https")
        endpoint = f"{protocol}://{account}.blob.{said['endpointsuffix']}"
    found = {
        "account_name": account,
        "account_key": said.get("accountkey"),
        "sas_key": said.get("sharedaccesssignature"),
        "endpoint": endpoint and endpoint.rstrip("/"),
    }
    return {key: value for key, value in found.items() if value}


def _for_adlfs() -> dict[str, Any]:
    if _first("AZURE_STORAGE_CONNECTION_STRING"):
        return {}
    if _is_set("AZURE_STORAGE_USE_EMULATOR"):
        return {"connection_string": "UseDevelopmentStorage=true"}
    account = _first("AZURE_STORAGE_ACCOUNT_NAME", "AZURE_STORAGE_ACCOUNT")
    key = _first(
        "AZURE_STORAGE_ACCOUNT_KEY",
        "AZURE_STORAGE_ACCESS_KEY",
        "AZURE_STORAGE_MASTER_KEY",
        "AZURE_STORAGE_KEY",
    )
    token = _first("AZURE_STORAGE_SAS_TOKEN", "AZURE_STORAGE_SAS_KEY")
    anonymous = _is_set("AZURE_SKIP_SIGNATURE")
    endpoint = _first("AZURE_STORAGE_ENDPOINT", "AZURE_ENDPOINT")
    if endpoint and (key or token or anonymous):  # adlfs takes an endpoint in no other way
        said = {
            "BlobEndpoint": endpoint,
            "AccountName": account,
            "AccountKey": None if anonymous else key,
            "SharedAccessSignature": None if anonymous else token,
        }
        return {"connection_string": ";".join(f"{k}={v}" for k, v in said.items() if v)}
    if anonymous:
        return {"account_name": account, "anon": True}
    found = {"account_name": account, "account_key": key, "sas_token": token}
    return {name: value for name, value in found.items() if value}


def _for_gcsfs() -> dict[str, Any]:
    if _google_emulator():
        return {"token": "anon"}
    found: dict[str, Any] = {}
    if endpoint := _first("GOOGLE_BASE_URL"):
        found["endpoint_url"] = endpoint
    if _is_set("GOOGLE_SKIP_SIGNATURE"):
        found["token"] = "anon"  # noqa: S105
    elif path := _first("GOOGLE_SERVICE_ACCOUNT", "GOOGLE_SERVICE_ACCOUNT_PATH"):
        found["token"] = path
    elif key := _google_key():
        found["token"] = key
    return found


def _google_key() -> Any:
    """The key of a service account that stands in the environment itself; None for none."""
    name = "GOOGLE_SERVICE_ACCOUNT_KEY"
    try:
        return json.loads(_first(name) or "null")
    except ValueError as error:  # what stands there is secret
        raise DeniedError(
            f"the variable {name} holds no JSON: {error.args[0]}",
            hint=f"set {name} to the content of a key file, or GOOGLE_SERVICE_ACCOUNT to its path",
        ) from None


def _google_emulator() -> str | None:
    """Where Google's own clients look for an emulator, which asks for no credentials."""
    place = _first("STORAGE_EMULATOR_HOST")
    return place if place is None or "://" in place else f"http://{place}"


def _first(*names: str) -> str | None:
    """The first of these variables that is set to something."""
    return next((os.environ[name] for name in names if os.environ.get(name)), None)


def _is_set(name: str) -> bool:
    return os.environ.get(name, "").lower() in ("1", "true", "t", "yes", "y", "on")
