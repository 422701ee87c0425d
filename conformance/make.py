"""Write the conformance corpus: `python conformance/make.py [FOLDER]`, here without a folder.

It needs Python 3.11 and nothing else, and writes the same bytes on every machine. A new file is a
row in one of the tables of `corpus/`.
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Any

from corpus import CLASSES, ROWS

TAGS = {
    "core": "The format itself. Every reader must pass these.",
    "gz": "gzip (RFC 1952).",
    "bz2": "bzip2.",
    "xz": "xz.",
    "zst": "Zstandard (RFC 8878).",
    "twice": "Compressed more than once.",
    "lush": "Lush / EBLearn binary matrices, as the NORB files are.",
}

GROUPS = {"codec": ["gz", "bz2", "xz", "zst", "twice"]}


def manifest() -> dict[str, Any]:
    """The manifest as plain values."""
    return {
        "format": 1,
        "about": "Files in the IDX format, good and bad, and what a reader must answer; README.md",
        "tags": TAGS,
        "groups": GROUPS,
        "classes": CLASSES,
        "files": [row.as_dict() for row in ROWS],
    }


def as_text(facts: dict[str, Any]) -> str:
    """JSON with a line for each fact of a file: easy to read, and to compare."""
    parts = [f" {json.dumps(k)}: {json.dumps(v)}" for k, v in facts.items() if k != "files"]
    rows = (
        ",\n".join(f"   {json.dumps(key)}: {json.dumps(value)}" for key, value in file.items())
        for file in facts["files"]
    )
    files = ",\n".join(f"  {{\n{row}\n  }}" for row in rows)
    return "{\n" + ",\n".join(parts) + f',\n "files": [\n{files}\n ]\n}}\n'


def write(folder: Path) -> None:
    """Write all files and the manifest; files that belong to no row any more are removed."""
    assert len({row.file for row in ROWS}) == len(ROWS), "two rows of one name"
    shutil.rmtree(folder / "files", ignore_errors=True)
    (folder / "files").mkdir(parents=True)
    for row in ROWS:
        if row.data is not None:
            (folder / row.file).write_bytes(row.data)
    (folder / "manifest.json").write_text(as_text(manifest()), encoding="ascii", newline="\n")


if __name__ == "__main__":
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent
    write(target)
    print(f"{len(ROWS)} files written to {target}")
