"""The stores that are known by name: what their addresses begin with, and who serves them."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["AMAZON", "AZURE", "GOOGLE", "STORES", "Store", "known_store", "scheme_of", "spelled"]


class Store(NamedTuple):
    """A row of the table of stores."""

    schemes: tuple[str, ...]
    """What an address of it begins with."""
    package: str
    """What fsspec needs for it, beside itself."""
    credentials: str = ""
    """The variables that they are taken from, as a hint names them."""
    aliases: tuple[str, ...] = ()
    """Other words for its first scheme, which not each package knows."""
    obstore: bool = False
    """Whether obstore serves it, which costs the fewest requests."""
    parts: bool = False
    """Whether many may send the parts of one object."""


AMAZON = Store(
    ("s3", "s3a"),
    "s3fs",
    "AWS_ACCESS_KEY_ID, or AWS_SKIP_SIGNATURE=true for a public bucket",
    obstore=True,
    parts=True,
)
GOOGLE = Store(
    ("gs",),
    "gcsfs",
    "GOOGLE_APPLICATION_CREDENTIALS, or GOOGLE_SKIP_SIGNATURE=true for a public bucket",
    aliases=("gcs",),
    obstore=True,
)
AZURE = Store(
    ("az", "abfs", "abfss"),
    "adlfs",
    "AZURE_STORAGE_CONNECTION_STRING, or AZURE_SKIP_SIGNATURE=true for a public container",
    aliases=("azure", "adl"),
    obstore=True,
)
STORES = (
    AMAZON,
    GOOGLE,
    AZURE,
    Store(("hf",), "huggingface_hub", "HF_TOKEN"),
    Store(("sftp", "ssh"), "paramiko"),
    Store(("smb",), "smbprotocol"),
)

_BY_SCHEME = {scheme: store for store in STORES for scheme in (*store.schemes, *store.aliases)}


def scheme_of(url: str) -> str:
    """What an address begins with; the innermost of several."""
    return url.partition("://")[0].rpartition("::")[2].lower()


def known_store(url: str) -> Store | None:
    """The row of the store that an address is of; None for one that has none."""
    return _BY_SCHEME.get(scheme_of(url))


def spelled(url: str) -> str:
    """The same address in words that each package knows."""
    store, (schemes, _, rest) = known_store(url), url.partition("://")
    before, between, scheme = schemes.lower().rpartition("::")
    if store is not None and scheme in store.aliases:
        scheme = store.schemes[0]
    return f"{before}{between}{scheme}://{rest}"
