"""The manifest of a corpus, and which of its files are asked for."""

from __future__ import annotations

import fnmatch
import json
import os
from typing import Any

import click

from .judging import Row

__all__: list[str] = []


def load(corpus: str) -> dict[str, Any]:
    """The manifest of a corpus.

    Raises:
        click.UsageError: where there is none, or one of another format.
    """
    path = os.path.join(corpus, "manifest.json")
    try:
        with open(path, encoding="utf-8") as file:
            manifest = json.load(file)
    except OSError:
        raise click.UsageError(
            f"there is no corpus in {corpus!r}: {path} cannot be read\n"
            "hint: the corpus is the folder `conformance` of idxfile's repository; "
            "give it with --corpus DIR"
        ) from None
    except ValueError as error:
        raise click.UsageError(f"{path} is no manifest: {error}") from None
    if not isinstance(manifest, dict) or manifest.get("format") != 1:
        raise click.UsageError(f"{path} is no manifest of format 1")
    return manifest


def chosen(manifest: dict[str, Any], tags: str, pattern: str | None = None) -> list[Row]:
    """The files all of whose tags are asked for.

    Args:
        manifest: the manifest.
        tags: tags or groups of tags, with commas between; "all" for all of them.
        pattern: only files whose name fits this, as `cut-*`.

    Raises:
        click.UsageError: for a tag that is not in the manifest, or when nothing is left.
    """
    known: dict[str, list[str]] = {tag: [tag] for tag in manifest["tags"]}
    known |= {**manifest["groups"], "all": list(manifest["tags"])}
    asked = [tag.strip() for tag in tags.split(",")]
    if unknown := [tag for tag in asked if tag not in known]:
        raise click.UsageError(f"no tag {', '.join(unknown)}; there are {', '.join(known)}")
    wanted = {tag for name in asked for tag in known[name]}
    rows = [row for row in manifest["files"] if wanted.issuperset(row["tags"])]
    rows = [row for row in rows if fnmatch.fnmatchcase(row["name"], pattern or "*")]
    if not rows:
        raise click.UsageError("no file has these tags and this name")
    return rows
