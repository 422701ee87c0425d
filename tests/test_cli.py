"""The command line: what each command prints where, and with which code it ends.

Long because it is tables: a row is a command, and what it must print, exactly.
"""

from __future__ import annotations

import contextlib
import gzip
import inspect
import io
import json
import os
import pty
import re
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple

import click
import numpy as np
import pytest

import idxfile
from conftest import COMPRESS, DATA, MNIST, H, idx_bytes
from idxfile import cli
from idxfile.cli import COMMANDS, main
from idxfile.sheets.palettes import COLOUR_MAPS
from idxfile.viewer.cells import MODES

IMAGES = H(8, 2, 2, 3) + bytes([0, 1, 2, 10, 20, 255, 7, 7, 7, 8, 8, 8])
LABELS = H(8, 2) + b"\x05\x00"
SHORT = IMAGES[:-1]
LONG = LABELS + b"x"
LITTLE = bytes.fromhex("03080000 01000000 02000000 01000000 0708")
PAGE = b"<html><title>404</title>"
SCRIPT = str(Path(sys.executable).with_name("idx"))
IMAGES_GZ = str(MNIST / "t10k-images-idx3-ubyte.gz")
LABELS_GZ = str(MNIST / "t10k-labels-idx1-ubyte.gz")


class Stdin(io.BytesIO):
    name = "<stdin>"


class Result(NamedTuple):
    code: int
    out: str
    err: str


Run = Callable[..., Result]


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a few files, which is the current one."""
    monkeypatch.chdir(tmp_path)
    for name, data in {
        "images.idx": IMAGES,
        "labels.idx": LABELS,
        "packed.idx.gz": gzip.compress(IMAGES, mtime=0),
        "junk.idx.gz": gzip.compress(LABELS) + b"junk",
        "raw-idx1-ubyte.gz": LABELS,
        "norb.idx": bytes.fromhex("554c3d1e 01000000 02000000 01000000 01000000 0708"),
        "long-norb.idx": bytes.fromhex("584c3d1e 01000000 02000000 01000000 01000000 0708"),
        "short.idx": SHORT,
        "long.idx": LONG,
        "little.idx": LITTLE,
        "page.idx": PAGE,
        "empty.idx": b"",
        "scalar.idx": H(14) + bytes(8),
        "floats.idx": idx_bytes(np.array([[1.5, -0.25], [np.nan, np.inf]], "float32")),
        "many.idx": H(8, *[1] * 65) + b"\x07",
        "other.idx": idx_bytes(np.array([5, -300, 7], "int16")),
        "same.idx": idx_bytes(np.array([5.0, 0.0])),
    }.items():
        (tmp_path / name).write_bytes(data)
    return tmp_path


@pytest.fixture
def idx(files: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs a command in that folder, in this process."""

    def run(*words: str, stdin: bytes | None = None) -> Result:
        if stdin is not None:
            monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(Stdin(stdin)))
        capsys.readouterr()
        code = main(list(words))
        out, err = capsys.readouterr()
        assert "Traceback" not in err
        return Result(code, out, err)

    return run


@pytest.fixture(autouse=True, scope="module")
def _no_waiting_for_the_disk() -> Iterator[None]:
    """What reaches the disk when is tested elsewhere."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda _: None)
        yield


def spawn(*words: str, **options: Any) -> subprocess.CompletedProcess[bytes]:
    """Runs the real command."""
    done = subprocess.run([SCRIPT, *words], capture_output=True, timeout=60, **options)
    assert b"Traceback" not in done.stderr
    return done


def text(*lines: str) -> str:
    return "".join(f"{line}\n" for line in lines)


# What stands in the table of commands


@pytest.fixture(params=COMMANDS)
def row(request: pytest.FixtureRequest) -> cli.Command:
    return COMMANDS[request.param]


def command_of(row: cli.Command) -> click.Command:
    command = cli.cli.get_command(click.Context(cli.cli), row.name)
    assert command is not None
    return command


def test_every_command_is_bound_to_a_public_function(row: cli.Command) -> None:
    assert row.bound.partition(".")[0] in idxfile.__all__
    assert callable(attrgetter(row.bound)(idxfile))


def test_every_command_has_help(row: cli.Command) -> None:
    command = command_of(row)
    assert command.name == row.name
    assert (command.help or "").split("\n\n")[0].endswith(".")
    assert re.fullmatch(r"[A-Z].{20,70}\.", row.help)
    for parameter in command.params:
        if isinstance(parameter, click.Option):
            assert (parameter.help or "").endswith((".", "]", "…")), parameter.name


def test_every_command_stands_in_the_readme(row: cli.Command) -> None:
    readme = Path(__file__).parent.parent / "README.md"
    assert re.search(rf"\bidx {row.name}\b", readme.read_text())


def test_the_defaults_are_those_of_the_function(row: cli.Command) -> None:
    signature = inspect.signature(attrgetter(row.bound)(idxfile))
    context = click.Context(command_of(row))
    for parameter in context.command.params:
        bound = signature.parameters.get(parameter.name or "")
        default = parameter.get_default(context)
        if bound is None or bound.default is bound.empty:
            continue
        if isinstance(default, (bool, int, float, str)):  # else it is left to the function
            assert default == bound.default, parameter.name


# What is printed: words → code, stdout, stderr

DECLARED = (
    "the header declares uint8 2 × 2 × 3: 12 bytes from byte 16 on; fetch the file again, "
    "or keep its 1 whole item with `idx repair --salvage`"
)
TRAILING_HINT = (
    "the header declares uint8 2: 2 bytes from byte 8 on; "
    'problems="warn" passes over the rest, `idx repair` trims it off'
)
LITTLE_FOUND = (
    "the header is written with the least significant byte first: "
    "the dimensions read little-endian are 1,2,1 and fit the file's length"
)
LITTLE_HINT = "`idx repair` writes the standard file; its writer forgot to turn the byte order"
PAGE_FOUND = "this is an HTML page titled “404” of 24 bytes, not an IDX file"
PAGE_HINT = "a failed download? Fetch the file again, or open it in a browser to see what it says"

PRINTED: dict[str, Result] = {
    "info images.idx": Result(
        0,
        text(
            "file       images.idx",
            "format     IDX, most significant byte first",
            "type       uint8 (uint8_t in C, Byte in .NET)",
            "shape      2 × 2 × 3",
            "codec      none",
            "file size  28 bytes",
            "data       12 bytes from byte 16",
            "item       6 bytes each",
        ),
        "",
    ),
    "info scalar.idx": Result(
        0,
        text(
            "file       scalar.idx",
            "format     IDX, most significant byte first",
            "type       float64 (double in C, Double in .NET)",
            "shape      scalar",
            "codec      none",
            "file size  12 bytes",
            "data       8 bytes from byte 4",
        ),
        "",
    ),
    "info norb.idx": Result(
        0,
        text(
            "file       norb.idx",
            "format     Lush / EBLearn binary matrix, least significant byte first",
            "type       uint8 (uint8_t in C, Byte in .NET)",
            "shape      2",
            "codec      none",
            "file size  22 bytes",
            "data       2 bytes from byte 20",
            "item       1 byte each",
        ),
        "",
    ),
    "info raw-idx1-ubyte.gz norb.idx": Result(
        0,
        text(
            "file               type   shape  codec  data bytes",
            "raw-idx1-ubyte.gz  uint8      2  -               2",
            "norb.idx           uint8      2  -               2",
        ),
        "note: raw-idx1-ubyte.gz: the name suggests gz and the content is raw\n",
    ),
    "info labels.idx packed.idx.gz floats.idx": Result(
        0,
        text(
            "file           type         shape  codec  data bytes",
            "labels.idx     uint8            2  -               2",
            "packed.idx.gz  uint8    2 × 2 × 3  gz             12",
            "floats.idx     float32      2 × 2  -              16",
        ),
        "",
    ),
    "info labels.idx page.idx nix": Result(
        5,
        text(
            "file        type   shape  codec  data bytes",
            "labels.idx  uint8      2  -               2",
        ),
        text(
            f"error: page.idx: {PAGE_FOUND}",
            f"hint: {PAGE_HINT}",
            "error: nix: No such file or directory",
        ),
    ),
    "info little.idx": Result(
        3,
        text(
            "file       little.idx",
            "format     IDX, least significant byte first",
            "type       uint8 (uint8_t in C, Byte in .NET)",
            "shape      1 × 2 × 1",
            "codec      none",
            "file size  18 bytes",
            "data       2 bytes from byte 16",
            "item       2 bytes each",
        ),
        text(f"error: little.idx: {LITTLE_FOUND}", f"hint: {LITTLE_HINT}"),
    ),
    "info packed.idx.gz": Result(
        0,
        text(
            "file       packed.idx.gz",
            "format     IDX, most significant byte first",
            "type       uint8 (uint8_t in C, Byte in .NET)",
            "shape      2 × 2 × 3",
            "codec      gz",
            f"file size  {len(gzip.compress(IMAGES, mtime=0))} bytes",
            "data       12 bytes from byte 16",
            "item       6 bytes each",
            "one item   all is inflated for the first one, and kept",
        ),
        "",
    ),
    "head images.idx -n 1": Result(
        0,
        text("  0   1   2", " 10  20 255"),
        "uint8 2 × 2 × 3, the first 1\n",
    ),
    "head images.idx": Result(
        0,
        text("  0   1   2", " 10  20 255", "", "  7   7   7", "  8   8   8"),
        "uint8 2 × 2 × 3\n",
    ),
    "head labels.idx": Result(0, text("5", "0"), "uint8 2\n"),
    "head labels.idx -n 0": Result(0, "", "uint8 2, the first 0\n"),
    "head scalar.idx": Result(0, text("0.0"), "float64 scalar\n"),
    "head floats.idx": Result(0, text("  1.5 -0.25", "  nan   inf"), "float32 2 × 2\n"),
    "head short.idx --allow-partial": Result(
        0,
        text("  0   1   2", " 10  20 255"),
        text("warning: short.idx: 1 of 2 declared items are whole", "uint8 1 × 2 × 3"),
    ),
    "head junk.idx.gz": Result(
        0,
        text("5", "0"),
        text("warning: junk.idx.gz: 4 bytes of junk after the gz stream, ignored", "uint8 2"),
    ),
    "append junk.idx.gz labels.idx": Result(
        0,
        "",
        text(
            "warning: junk.idx.gz: 4 bytes of junk after the gz stream, ignored",
            "junk.idx.gz: 2 items before, 4 now",
        ),
    ),
    "info nosuch://x.org/a.idx": Result(
        4,
        "",
        text(
            "error: nosuch://x.org/a.idx: nosuch:// is not among the places that can be opened",
            "hint: download the file, or pass an open binary file object",
        ),
    ),
    "head many.idx": Result(
        4,
        "",
        text(
            "error: many.idx: 65 dimensions; NumPy holds 64",
            "hint: `idx info` and `idx check` work on it",
        ),
    ),
    "check images.idx packed.idx.gz": Result(
        0,
        text("images.idx: ok (uint8 2 × 2 × 3)", "packed.idx.gz: ok (uint8 2 × 2 × 3, gz)"),
        "",
    ),
    "check images.idx labels.idx": Result(
        0,
        text(
            "images.idx: ok (uint8 2 × 2 × 3)",
            "labels.idx: ok (uint8 2)",
            "images.idx + labels.idx: ok (a pair)",
            "  note label-range: labels run from 0 to 5",
        ),
        "",
    ),
    "check long.idx page.idx little.idx": Result(
        1,
        text(
            "long.idx: NOT OK (uint8 2)",
            "  error trailing-data: 1 byte after the data at offset 10",
            f"    hint: {TRAILING_HINT}",
            "page.idx: NOT OK (no header)",
            f"  error foreign: {PAGE_FOUND}",
            f"    hint: {PAGE_HINT}",
            "little.idx: NOT OK (uint8 1 × 2 × 1, little-endian)",
            f"  error swapped-header: {LITTLE_FOUND}",
            f"    hint: {LITTLE_HINT}",
        ),
        "",
    ),
    "check nix labels.idx": Result(
        5, "labels.idx: ok (uint8 2)\n", "error: nix: No such file or directory\n"
    ),
    "repair long.idx new.idx": Result(
        0,
        text("trimmed 1 byte after the data at offset 10", "new.idx: ok (uint8 2)"),
        "",
    ),
    "repair long.idx new.idx.gz": Result(
        0,
        text(
            "trimmed 1 byte after the data at offset 10",
            "compression: raw before, gz now",
            "new.idx.gz: ok (uint8 2, gz)",
        ),
        "",
    ),
    "repair long.idx --in-place": Result(
        0,
        text(
            "trimmed 1 byte after the data at offset 10",
            "the old file is long.idx.bak",
            "long.idx: ok (uint8 2)",
        ),
        "",
    ),
    "repair labels.idx --in-place": Result(
        0, text("nothing to mend: left as it is", "labels.idx: ok (uint8 2)"), ""
    ),
    "repair labels.idx new.idx": Result(
        0, text("nothing to mend: written as it is", "new.idx: ok (uint8 2)"), ""
    ),
    "repair short.idx new.idx": Result(
        3,
        "",
        text(
            "error: short.idx: needs 28 bytes, has 27: 1 missing (item 1 of 2 incomplete)",
            "hint: cannot be mended; --salvage (salvage=True) keeps its 1 whole item",
        ),
    ),
    "repair short.idx new.idx --salvage": Result(
        0,
        text(
            "set the count from 2 to 1, the whole items that are there",
            "dropped 5 bytes of an item that is cut",
            "new.idx: ok (uint8 1 × 2 × 3)",
        ),
        "",
    ),
    "repair little.idx new.idx --transpose": Result(
        0,
        text(
            "turned the byte order of the header",
            "exchanged the rows and columns of every item",
            "new.idx: ok (uint8 1 × 1 × 2)",
        ),
        "",
    ),
    "diff images.idx packed.idx.gz": Result(0, "equal\n", ""),
    "diff labels.idx scalar.idx": Result(
        1,
        text("different", "  type: uint8 and float64", "  header: uint8 2 and float64 scalar"),
        "",
    ),
    "diff labels.idx other.idx": Result(
        1,
        text(
            "different",
            "  type: uint8 and int16",
            "  header: uint8 2 and int16 3",
            "  1 element different, in 1 item",
            "  first at (1): 0 and -300",
            "  largest difference: 300",
            "  items (elements): 1 (1)",
        ),
        "",
    ),
    "diff labels.idx same.idx": Result(0, text("equal", "  type: uint8 and float64"), ""),
    "diff labels.idx same.idx --strict": Result(
        1, text("different", "  type: uint8 and float64"), ""
    ),
    "diff labels.idx short.idx": Result(
        3,
        "",
        text(
            "error: short.idx: needs 28 bytes, has 27: 1 missing (item 1 of 2 incomplete)",
            f"hint: {DECLARED}",
        ),
    ),
    "identify packed.idx.gz page.idx 2051 0x803 -1823582899": Result(
        0,
        text(
            "packed.idx.gz (gz): an IDX file: uint8 2 × 2 × 3",
            "page.idx: an HTML page titled “404”",
            f"  hint: {PAGE_HINT}",
            "2051: the magic number of IDX files of uint8, 3 dimensions",
            "2051: the magic number of IDX files of uint8, 3 dimensions",
            "-1823582899: the first four bytes of a NumPy .npy file (93 4e 55 4d)",
            "  hint: `idx convert` makes an IDX file of it",
        ),
        "",
    ),
    "append images.idx images.idx packed.idx.gz": Result(
        0, "", "images.idx: 2 items before, 6 now\n"
    ),
    "append packed.idx.gz images.idx": Result(0, "", "packed.idx.gz: 2 items before, 4 now\n"),
    "append labels.idx images.idx": Result(
        3,
        "",
        text(
            "error: images.idx: found uint8 2 × 2 × 3, expected items as those of labels.idx, "
            "uint8 2",
            "hint: only items of one type and shape fit into one file; nothing was appended",
        ),
    ),
    "append labels.idx labels.idx nix": Result(5, "", "error: nix: No such file or directory\n"),
    "append labels.idx scalar.idx": Result(
        4, "", "error: scalar.idx: a scalar has no items to append\n"
    ),
    "append scalar.idx labels.idx": Result(
        4, "", "error: scalar.idx: a scalar has no items to append to\n"
    ),
    "append long.idx labels.idx": Result(
        3,
        "",
        text(
            "error: long.idx: 1 byte after the data at offset 10",
            f"hint: {TRAILING_HINT}",
        ),
    ),
    "concat new.idx images.idx packed.idx.gz": Result(0, "", "new.idx: uint8 4 × 2 × 3\n"),
    "concat new.idx.xz labels.idx": Result(0, "", "new.idx.xz: uint8 2\n"),
    "concat new.idx labels.idx scalar.idx": Result(
        4, "", "error: scalar.idx: a scalar has no items to concatenate\n"
    ),
}


@pytest.mark.parametrize("words", PRINTED)
def test_what_is_printed(words: str, idx: Run, files: Path) -> None:
    assert idx(*words.split()) == PRINTED[words]


@pytest.mark.parametrize("words", PRINTED)
def test_what_is_told_reads_well(words: str) -> None:
    for line in (PRINTED[words].out + PRINTED[words].err).splitlines():
        assert not line.endswith((".", " ", ":"))
        assert not re.search(r"\b1 (bytes|items|elements|dimensions)\b", line), line


# Facts for programs


def test_info_for_programs(idx: Run) -> None:
    [one, other] = json.loads(idx("info", "--json", "labels.idx", "packed.idx.gz").out)
    assert one == {
        "file": "labels.idx",
        "codecs": [],
        "file_nbytes": 10,
        "stored_name": None,
        "access": "direct",
        "dialect": "idx",
        "dtype": "uint8",
        "shape": [2],
        "byteorder": "big",
        "data_offset": 8,
        "data_nbytes": 2,
        "problems": [],
    }
    assert (other["codecs"], other["shape"]) == (["gz"], [2, 2, 3])
    code, out, err = idx("info", "--json", "short.idx", "nix")
    [short] = json.loads(out)
    assert [problem["code"] for problem in short["problems"]] == ["truncated"]
    assert (code, err) == (5, "error: nix: No such file or directory\n")


def test_head_for_programs(idx: Run) -> None:
    assert json.loads(idx("head", "images.idx", "-n1", "--json").out) == {
        "dtype": "uint8",
        "shape": [2, 2, 3],
        "items": [[[0, 1, 2], [10, 20, 255]]],
    }
    facts = json.loads(idx("head", "floats.idx", "--json").out, parse_constant=pytest.fail)
    assert facts["items"] == [[1.5, -0.25], ["NaN", "Infinity"]]
    assert json.loads(idx("head", "scalar.idx", "--json").out)["items"] == 0.0


def test_check_for_programs(idx: Run) -> None:
    code, out, err = idx("check", "--json", "images.idx", "labels.idx", "short.idx", "nix", ".")
    facts = json.loads(out)
    assert list(facts) == ["files", "pairs"]
    keys = {"file", "ok", "codecs", "file_nbytes", "data_nbytes_found", "problems"}
    assert all(keys <= set(file) for file in facts["files"])
    [images, labels, short, nix, *_] = facts["files"]
    assert (images["ok"], labels["shape"]) == (True, [2])
    assert short["problems"] == [
        {
            "code": "truncated",
            "level": "error",
            "message": "needs 28 bytes, has 27: 1 missing (item 1 of 2 incomplete)",
            "offset": 27,
            "found": 11,
            "expected": 12,
            "hint": DECLARED,
            "mendable": False,
            "repair": "idx repair --salvage",
        }
    ]
    assert (nix["file"], nix["ok"], nix["problems"][0]["code"]) == ("nix", False, "unreadable")
    [pair, _] = facts["pairs"]
    assert (pair["images"], pair["labels"], pair["ok"]) == ("images.idx", "labels.idx", True)
    assert (code, err) == (5, "error: nix: No such file or directory\n")


def test_mending_and_comparing_for_programs(idx: Run) -> None:
    mended = json.loads(idx("repair", "long.idx", "new.idx", "--json").out)
    assert mended["done"] == ["trimmed 1 byte after the data at offset 10"]
    assert (mended["before"]["ok"], mended["after"]["ok"]) == (False, True)
    code, out, _ = idx("diff", "labels.idx", "scalar.idx", "--json")
    assert (code, json.loads(out)["compared"]) == (1, False)
    nothing = idx_bytes(np.array([np.nan, 0], "float32"))
    facts = json.loads(idx("diff", "labels.idx", "-", "--json", stdin=nothing).out)
    assert (facts["largest"], facts["first_values"]) == ("Infinity", [5, "NaN"])


def test_identify_for_programs(idx: Run) -> None:
    [file, number] = json.loads(idx("identify", "--json", "packed.idx.gz", "529205256").out)
    assert (file["is_idx"], file["codecs"]) == (True, ["gz"])
    assert number["what"] == "the first four bytes of a gzip file (1f 8b 08 08)"


# Pairs in one


@pytest.fixture
def pairs(files: Path) -> dict[str, idxfile.Dataset]:
    """Folders with a pair each; the last two do not fit."""
    made = {
        name: idxfile.Dataset(
            np.full((count, *shape), number, "uint8"), [0, 1] * (count // 2), classes=classes
        )
        for number, (name, count, shape, classes) in enumerate(
            [
                ("one", 4, (2, 2), ["cat", "dog"]),
                ("two", 6, (2, 2), None),
                ("three", 2, (2, 2), ["cat", "dog"]),
                ("larger", 2, (3, 2), None),
                ("birds", 2, (2, 2), ["cat", "bird"]),
            ]
        )
    }
    for name, ds in made.items():
        ds.save(name, codec="gz" if name == "two" else None)
    return made


@pytest.mark.parametrize(
    "options", [(), ("--codec", "zst"), ("--shards", "3"), ("--engine", "threads=2")]
)
def test_pairs_are_merged(
    options: tuple[str, ...], pairs: dict[str, idxfile.Dataset], idx: Run
) -> None:
    code, out, err = idx("merge", "all", "one", "two", "three", *options)
    assert (code, out) == (0, "")
    assert err.endswith(": 12 items\n")
    ds = idxfile.open_dataset("all")
    assert (ds.split, ds.classes) == ("train", ("cat", "dog"))
    assert ds.images[:, 0, 0].tolist() == [0] * 4 + [1] * 6 + [2] * 2
    assert ds.labels.tolist() == [0, 1] * 6
    assert idx("check", "all").code == 0
    again = idx("merge", "all", "one", *options)
    assert (again.code, "exists; --force" in again.err) == (2, True)


@pytest.mark.parametrize(
    ("place", "fault"),
    [
        (
            "larger",
            "its items are uint8 3 × 2; those of one/train-images-idx3-ubyte are uint8 2 × 2",
        ),
        ("birds", "its classes are cat, bird; those of one/train-images-idx3-ubyte are cat, dog"),
    ],
)
def test_pairs_that_do_not_fit_are_named(
    place: str, fault: str, pairs: dict[str, idxfile.Dataset], idx: Run
) -> None:
    code, out, err = idx("merge", "all", "one", "two", place)
    assert (code, out) == (3, "")
    assert err.startswith(f"error: {place}/train-images-idx3-ubyte: {fault}\nhint: ")
    assert not Path("all").exists()
    assert idx("merge", "all", "one", "nix").code == 5
    assert idx("concat", "all", "one", "two") == Result(
        2,
        "",
        text(
            "error: one is a folder: `idx merge` joins pairs",
            "hint: `idx concat --help` tells more",
        ),
    )


# Standard input and output

FROM_STDIN = {
    "info -": (0, "file       <stdin>\nformat     IDX"),
    "head - -n 1": (0, "  0   1   2\n"),
    "check -": (0, "<stdin>: ok (uint8 2 × 2 × 3"),
    "check - labels.idx": (0, "<stdin>: ok (uint8 2 × 2 × 3"),
    "diff - images.idx": (0, "equal\n"),
    "diff images.idx -": (0, "equal\n"),
    "identify -": (0, "<stdin>"),
    "append images.idx -": (0, ""),
    "concat new.idx - images.idx": (0, ""),
    "show -": (0, ""),
}


@pytest.mark.parametrize("pack", [bytes, *COMPRESS.values()], ids=["raw", *COMPRESS])
@pytest.mark.parametrize("words", FROM_STDIN)
def test_a_dash_is_standard_input(words: str, pack: Callable[[bytes], bytes], idx: Run) -> None:
    code, start = FROM_STDIN[words]
    result = idx(*words.split(), stdin=pack(IMAGES))
    assert result.code == code
    assert result.out.startswith(start)


@pytest.mark.parametrize(
    "words", ["check one.idx two.idx", "check --json one.idx", "diff a.idx b.idx"]
)
def test_the_exit_code_answers_also_when_nobody_reads_on(tmp_path: Path, words: str) -> None:
    for name in ("one.idx", "two.idx"):
        (tmp_path / name).write_bytes(b"wrong")
    idxfile.write(tmp_path / "a.idx", np.zeros(3, "uint8"))
    idxfile.write(tmp_path / "b.idx", np.ones(3, "uint8"))
    reading, writing = os.pipe()
    os.close(reading)
    try:
        done = subprocess.run(
            [SCRIPT, *words.split()], cwd=tmp_path, stdout=writing, stderr=subprocess.PIPE
        )
    finally:
        os.close(writing)
    assert (done.returncode, done.stderr) == (1, b"")


@pytest.mark.parametrize("words", ["info -", "check -", "diff images.idx -", "append images.idx -"])
def test_a_dash_is_a_real_pipe(words: str, files: Path) -> None:
    code, start = FROM_STDIN[words]
    done = spawn(*words.split(), input=gzip.compress(IMAGES), cwd=files)
    assert (done.returncode, done.stdout.decode().startswith(start)) == (code, True)


def test_a_file_may_stand_as_standard_input(files: Path) -> None:
    with open("images.idx", "rb") as file:
        done = spawn("check", "-", stdin=file)
    assert (done.returncode, done.stdout.decode()) == (0, "<stdin>: ok (uint8 2 × 2 × 3)\n")


def test_joined_files_go_to_standard_output(files: Path) -> None:
    done = spawn("concat", "-", "labels.idx", "labels.idx")
    assert (done.returncode, done.stdout, done.stderr) == (0, H(8, 4) + b"\5\0\5\0", b"")
    done = spawn("concat", "/dev/stdout", "labels.idx", "--codec", "gz")
    assert gzip.decompress(done.stdout) == LABELS
    assert sorted(p.name for p in files.iterdir() if p.name.startswith(("-", "new"))) == []


def test_mending_takes_no_stream(idx: Run) -> None:
    for words in (("-", "new.idx"), ("long.idx", "-")):
        code, out, err = idx("repair", *words)
        assert (code, out) == (2, "")
        assert err.startswith("error: mending reads a file twice and writes it whole")


def test_whoever_has_seen_enough_may_go(files: Path) -> None:
    images = str(MNIST / "train-images-idx3-ubyte.gz")
    for words in (["head", images, "-n", "2000"], ["check", *["images.idx"] * 5000], ["-h"]):
        with subprocess.Popen(
            [SCRIPT, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE
        ) as process:
            assert process.stdout is not None
            assert process.stderr is not None
            process.stdout.readline()
            process.stdout.close()
            err = process.stderr.read().decode()
            assert process.wait(60) == 0
        assert err in ("", "uint8 60000 × 28 × 28, the first 2,000\n")


def test_a_full_disk_is_told_once(files: Path) -> None:
    with open("/dev/full", "wb") as full:
        done = subprocess.run([SCRIPT, "info", "images.idx"], stdout=full, stderr=subprocess.PIPE)
    assert (done.returncode, done.stderr) == (5, b"error: No space left on device\n")


@pytest.mark.parametrize(
    ("closed", "words", "code", "err"),
    [
        (0, ["info", "images.idx"], 0, b""),
        (0, ["info", "-"], 2, b"error: standard input is closed\n"),
        (1, ["info", "images.idx"], 0, b""),
        (1, ["head", "nix"], 5, b"error: nix: No such file or directory\n"),
        (2, ["info", "nix"], 5, b""),
    ],
)
def test_streams_may_be_closed(
    closed: int, words: list[str], code: int, err: bytes, files: Path
) -> None:
    done = spawn(*words, preexec_fn=lambda: os.close(closed))
    assert (done.returncode, done.stderr.split(b"hint")[0]) == (code, err)


@pytest.mark.parametrize(
    ("encoding", "words"), [("ascii", "info images.idx"), ("latin-1", "show images.idx")]
)
def test_a_terminal_without_the_characters_gets_others(
    encoding: str, words: str, files: Path
) -> None:
    environment = {**os.environ, "PYTHONIOENCODING": encoding, "LANG": "C.UTF-8"}
    assert spawn(*words.split(), env=environment).returncode == 0


def test_nothing_is_coloured_where_nobody_looks(files: Path) -> None:
    for words in (["show", "images.idx"], ["info", "nix"]):
        done = spawn(*words, env={**os.environ, "TERM": "xterm-256color"})
        assert b"\x1b" not in done.stdout + done.stderr


@pytest.mark.parametrize("no_color", ["", "1"])
def test_a_terminal_gets_colour_unless_it_wants_none(no_color: str, files: Path) -> None:
    near, far = os.openpty()
    environment = {**os.environ, "TERM": "xterm-256color", "NO_COLOR": no_color, "LANG": "C.UTF-8"}
    subprocess.run([SCRIPT, "show", "images.idx"], stdout=far, check=True, env=environment)
    assert (b"\x1b" in os.read(near, 1 << 16)) == (not no_color)
    os.close(near)
    os.close(far)


def test_long_work_shows_its_progress_to_a_terminal_alone(files: Path) -> None:
    with open("long-name.idx", "wb") as sparse:
        sparse.write(H(8, 1 << 27))
        sparse.truncate((1 << 27) + 8)
    near, far = os.openpty()
    with subprocess.Popen([SCRIPT, "check", "long-name.idx"], stdout=-1, stderr=far) as process:
        os.close(far)
        shown = b""
        with contextlib.suppress(OSError):  # the end of a terminal
            while piece := os.read(near, 1 << 16):
                shown += piece
        assert process.stdout is not None
        assert process.stdout.read() == b"long-name.idx: ok (uint8 134217728)\n"
    os.close(near)
    assert b"check long-name.idx  [" in shown
    assert b"100%" in shown
    assert spawn("check", "long-name.idx").stderr == b""


# Names that could steer a terminal

NASTY = "a\n\x1b[31m\x9b31m\u202e\r-idx1-ubyte"
ESCAPED = r"a\n\x1b[31m\x9b31m\u202e\r-idx1-ubyte"
CONTROLS = re.compile(r"[^\n -~×█“”…à-ÿ]|\n\n")

NASTY_WORDS = [
    *(f"{name} NASTY" for name in ("info", "head", "check", "identify", "show", "stats")),
    *("info NASTY labels.idx", "info --json NASTY", "check --json NASTY", "identify --json NASTY"),
    *("diff NASTY labels.idx", "diff NASTY NASTY --json", "repair NASTY new.idx"),
    *("repair NASTY --in-place", "repair labels.idx NASTY", "repair long.idx NASTY --force"),
    *("append NASTY labels.idx", "append labels.idx NASTY", "concat NASTY labels.idx"),
    *(
        "concat NASTY labels.idx --force",
        "concat new.idx NASTY NASTY",
        "show images.idx --png NASTY",
    ),
    *("show images.idx NASTY", "diff labels.idx labels.idx NASTY", "NASTY", "info --NASTY"),
    *("head labels.idx -n NASTY", "concat new.idx labels.idx --codec NASTY", "check NASTY*"),
    *(
        "check NASTY/",
        "show images.idx --labels-file NASTY",
        "show images.idx --wrong NASTY",
        "NASTY NASTY",
    ),
]


@pytest.mark.parametrize("data", [LABELS, SHORT, PAGE, LITTLE, None], ids=lambda d: str(d)[:9])
@pytest.mark.parametrize("words", NASTY_WORDS)
def test_names_are_printed_escaped(words: str, data: bytes | None, idx: Run, files: Path) -> None:
    if data is not None:
        (files / NASTY).write_bytes(data)
    code, out, err = idx(*(word.replace("NASTY", NASTY) for word in words.split()))
    assert code != 70
    pictures = words.startswith("show") and not err
    for printed in (err,) if pictures else (out, err):
        assert not CONTROLS.search(printed.replace("\n\n", "\n", 1 if "head" in words else 0))
    if "--json" in words and out:
        json.loads(out)


def test_escaped_names_tell_which_file_it_is(idx: Run, files: Path) -> None:
    (files / NASTY).write_bytes(LABELS)
    assert idx("check", NASTY).out == f"{ESCAPED}: ok (uint8 2)\n"
    assert idx("check", ".").out.startswith(f"./{ESCAPED}: ok (uint8 2)\n")
    assert idx("info", "").err == "error: '': No such file or directory\n"
    assert idx("info", "nix\n").err == "error: nix\\n: No such file or directory\n"
    assert json.loads(idx("check", "--json", NASTY).out)["files"][0]["file"] == NASTY


def test_names_that_are_no_text_are_printed(idx: Run, files: Path) -> None:
    name = os.fsdecode(b"\xff-idx1-ubyte")
    Path(name).write_bytes(LABELS)
    assert idx("check", name).out == "\\udcff-idx1-ubyte: ok (uint8 2)\n"
    assert json.loads(idx("info", "--json", name).out)[0]["file"] == name
    assert spawn("info", name, "labels.idx").returncode == 0


def test_what_a_file_says_about_itself_is_printed_escaped(idx: Run, files: Path) -> None:
    evil = b"\x1b]0;evil\x07\n"
    member = gzip.compress(LABELS)
    named = member[:3] + b"\x08" + member[4:10] + evil + b"\0" + member[10:]
    (files / "named.gz").write_bytes(named)
    (files / "page.gz").write_bytes(b"<html><title>" + evil + b"</title>")
    for words in ("info named.gz", "check page.gz", "identify page.gz", "head page.gz"):
        _, out, err = idx(*words.split())
        assert not CONTROLS.search(out + err)
    assert r"stored name  \x1b]0;evil\x07\n" in idx("info", "named.gz").out


def test_a_label_that_no_item_has_is_told(idx: Run) -> None:
    code, _, err = idx("select", "images.idx", "chosen", "--labels", "99")
    assert (code, err.splitlines()[0]) == (0, "note: no item has the label 99")


def test_a_folder_that_is_not_there_is_told(idx: Run) -> None:
    code, _, err = idx("repair", "long.idx", os.path.join("nowhere", "new.idx"))
    assert (code, err) == (5, "error: nowhere/new.idx: there is no folder nowhere\n")


def test_a_cut_file_tells_how_its_whole_items_are_seen(idx: Run) -> None:
    code, _, err = idx("head", "short.idx")
    assert code == 3
    assert err.endswith("; --allow-partial shows the items that are whole\n")


# Exit codes

WRONG_USAGE = {
    "nix": "there is no command 'nix'",
    "chek labels.idx": "there is no command 'chek'; did you mean 'check'?",
    "--nix": "No such option '--nix'",
    "info": "Missing argument 'FILES...'",
    "info --nix labels.idx": "No such option '--nix'",
    "identify --nix": "No such option '--nix'",
    "identify -x": "No such option '-x'",
    "head labels.idx -n x": "Invalid value for '-n': 'x' is not a valid integer range",
    "head labels.idx -n -1": "Invalid value for '-n': -1 is not in the range x>=0",
    "diff labels.idx": "Missing argument 'B'",
    "repair labels.idx": "give the file to write, or --in-place",
    "repair labels.idx new.idx --in-place": "give the file to write, or --in-place",
    "repair labels.idx images.idx": "images.idx exists; --force writes over it",
    "concat images.idx labels.idx": "images.idx exists; --force writes over it",
    "show images.idx --png labels.idx": "labels.idx exists; --force writes over it",
    "concat new.idx labels.idx --blocked": (
        "--blocked is a way of writing gz: name OUT so, or add --codec gz"
    ),
    "concat new.gz labels.idx --blocked --codec raw": (
        "--blocked is a way of writing gz: name OUT so, or add --codec gz"
    ),
    "show images.idx 9": "item 9 is not there: the file has 2 items",
    "show images.idx x": "'x' is no item number and no slice",
    "show images.idx ::0": "'::0' is no item number and no slice",
    "check folder": "folder: no file there has a name like IDX: idx3-ubyte, .idx",
    "check *.nix": "*.nix: no file has such a name",
}


@pytest.mark.parametrize("words", WRONG_USAGE)
def test_wrong_usage_is_told_and_changes_nothing(words: str, idx: Run, files: Path) -> None:
    (files / "folder").mkdir()
    before = {p.name: p.read_bytes() for p in files.iterdir() if p.is_file()}
    code, out, err = idx(*words.split())
    command = f"idx {words.split()[0]}" if words.split()[0] in COMMANDS else "idx"
    assert (code, out) == (2, "")
    assert err == f"error: {WRONG_USAGE[words]}\nhint: `{command} --help` tells more\n"
    assert before == {p.name: p.read_bytes() for p in files.iterdir() if p.is_file()}


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ("repair labels.idx images.idx --force", 0),
        ("concat images.idx labels.idx --force", 0),
        ("concat new.gz labels.idx --blocked", 0),
        ("concat new.idx labels.idx --blocked --codec gz", 0),
        ("show images.idx --png labels.idx --force", 0),
        ("info .", 5),
        ("head nix/file", 5),
        ("repair nix new.idx", 5),
        ("repair long.idx nix/new.idx", 5),
        ("concat nix/new.idx labels.idx", 5),
        ("append . labels.idx", 5),
        ("diff labels.idx .", 5),
        ("info page.idx", 3),
        ("head short.idx", 3),
        ("diff empty.idx labels.idx", 3),
        ("append short.idx images.idx", 3),
        ("concat new.idx labels.idx images.idx", 3),
        ("show page.idx", 3),
        ("repair page.idx new.idx", 3),
        ("repair labels.idx new.idx --transpose", 4),
        ("head many.idx", 4),
        ("info long-norb.idx", 4),
        ("repair long-norb.idx new.idx", 4),
        ("check norb.idx", 0),
        ("append norb.idx norb.idx", 4),
        ("concat new.idx norb.idx norb.idx", 0),
        ("repair norb.idx new.idx", 0),
        ("diff many.idx many.idx", 0),
        ("info many.idx", 0),
        ("check many.idx", 0),
        ("repair many.idx new.idx", 0),
        ("identify page.idx empty.idx", 0),
        ("--version", 0),
        ("--help", 0),
        ("repair --help", 0),
    ],
)
def test_exit_codes(words: str, code: int, idx: Run, files: Path) -> None:
    result = idx(*words.split())
    assert result.code == code
    assert (len(re.findall("^error: ", result.err, re.M)) == 1) == (code != 0)
    if code:
        assert not (files / "new.idx").exists()
        assert result.out == ""


def test_a_fault_of_ours_is_no_traceback(idx: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    for error, code, told in (
        (RuntimeError("oops\n\x1b"), 70, r"error: RuntimeError: oops\n\x1b"),
        (ValueError("oops"), 70, "error: ValueError: oops"),
        (AssertionError(), 70, "error: AssertionError: "),
        (MemoryError("1 EiB"), 5, "error: out of memory: 1 EiB"),
        (
            idxfile.MissingExtraError("needs h5py", hint="pip install h5py"),
            2,
            "needs h5py",
        ),
        (idxfile.FetchError("no mirror answers"), 5, "error: no mirror answers"),
        (KeyboardInterrupt(), 130, "interrupted"),
        (OSError("odd"), 5, "error: odd"),
    ):

        def fail(*_: Any, error: BaseException = error, **__: Any) -> None:
            raise error

        monkeypatch.setattr("idxfile.cli.facts.info", fail)
        result = idx("info", "labels.idx")
        assert (result.code, result.out) == (code, "")
        assert told in result.err
        assert ("this is a fault of idxfile" in result.err) == (code == 70)


def test_the_whole_story_of_a_fault_can_be_seen(idx: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IDX_DEBUG", "1")
    with pytest.raises(FileNotFoundError):
        idx("head", "nix")


@pytest.mark.parametrize(
    ("number", "code", "told"),
    [(signal.SIGINT, 130, b"interrupted"), (signal.SIGTERM, -signal.SIGTERM, b"terminated")],
)
def test_an_interrupt_is_quiet(files: Path, number: int, code: int, told: bytes) -> None:
    os.mkfifo("pipe")
    with (
        subprocess.Popen(
            [SCRIPT, "check", "pipe"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
        ) as process,
        open("pipe", "wb", buffering=0) as pipe,
    ):  # waits until it is read
        pipe.write(H(8, 1000))
        process.send_signal(number)
        out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err) == (code, b"", b"\n" + told + b"\n")


@pytest.mark.parametrize("ignored", [(), (signal.SIGINT,)], ids=["", "in the background"])
def test_a_command_that_is_terminated_leaves_nothing(
    files: Path, ignored: tuple[signal.Signals, ...]
) -> None:
    os.mkfifo("pipe")
    before = sorted(os.listdir())
    with (
        subprocess.Popen(
            [SCRIPT, "concat", "new.idx", "pipe"],
            stderr=subprocess.PIPE,
            preexec_fn=lambda: [signal.signal(each, signal.SIG_IGN) for each in ignored],
        ) as process,
        open("pipe", "wb", buffering=0) as pipe,
    ):
        pipe.write(H(8, 10_000_000))
        pipe.write(bytes(5_000_000))
        while sorted(os.listdir()) == before:
            assert process.poll() is None
        process.send_signal(signal.SIGTERM)
        assert process.communicate(timeout=60)[1].strip() == b"terminated"
    assert process.returncode == -signal.SIGTERM
    assert sorted(os.listdir()) == before


def test_an_interrupted_mending_leaves_nothing(
    idx: Run, files: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: Any) -> Iterator[bytes]:
        yield b"begun"
        raise KeyboardInterrupt

    monkeypatch.setattr("idxfile.report.mending._blocks", interrupted)
    before = sorted(os.listdir())
    assert idx("repair", "long.idx", "new.idx").code == 130
    assert idx("repair", "long.idx", "--in-place").code == 130
    assert sorted(os.listdir()) == before
    assert Path("long.idx").read_bytes() == LONG


# Folders and patterns


def test_a_folder_stands_for_the_files_with_names_like_idx(idx: Run, files: Path) -> None:
    for path in files.iterdir():
        path.unlink()
    taken = [
        "a/train-images-idx3-ubyte",
        "a/train-labels-idx1-ubyte.gz",
        "a/b/t10k-images.idx3-ubyte",
        "a/b/labels-idx2-int.xz",
        "c/data.idx",
        "c/DATA.IDX3.GZ",
        "c/images-idx-ubyte",
        "c/float_3tensor.lushbin",
    ]
    passed = [
        "a/train-images-idx3-ubyte.bak",
        "a/train-images-idx3-ubyte.gz.md5",
        "a/.train-images-idx3-ubyte.1234.tmp",
        "a/._train-images-idx3-ubyte",
        "c/README.md",
        "c/index.html",
        "c/data.npy",
    ]
    for name in taken + passed:
        (files / name).parent.mkdir(parents=True, exist_ok=True)
        (files / name).write_bytes(LABELS)
    os.mkfifo(files / "c" / "pipe.idx")
    (files / "c" / "gone.idx").symlink_to("nowhere")
    (files / "c" / "folder.idx").mkdir()
    code, out, err = idx("check", "a", "c", "--json")
    assert {file["file"] for file in json.loads(out)["files"]} == {*taken, "c/gone.idx"}
    assert (code, err) == (5, "error: c/gone.idx: No such file or directory\n")


def test_a_quoted_pattern_stands_for_the_files_that_fit(idx: Run, files: Path) -> None:
    (files / "sub").mkdir()
    (files / "sub" / "deep.bin").write_bytes(LABELS)
    (files / "[a].bin").write_bytes(LABELS)
    (files / "a.bin").write_bytes(LABELS)
    assert idx("check", "**/*.bin").out.count("ok") == 3
    assert idx("check", "[a].bin").out == "[a].bin: ok (uint8 2)\n"  # a file of that very name
    assert idx("check", "[ab].bin").out == "a.bin: ok (uint8 2)\n"


def test_a_folder_is_checked_with_its_pairs(idx: Run, files: Path) -> None:
    shutil.copytree(MNIST, files / "mnist")
    code, out, err = idx("check", "mnist")
    assert (code, err) == (0, "")
    assert out.splitlines()[-4:] == [
        "mnist/t10k-images-idx3-ubyte.gz + t10k-labels-idx1-ubyte.gz: ok (a pair)",
        "  note label-range: labels run from 0 to 9",
        "mnist/train-images-idx3-ubyte.gz + train-labels-idx1-ubyte.gz: ok (a pair)",
        "  note label-range: labels run from 0 to 9",
    ]
    (files / "mnist" / "t10k-labels-idx1-ubyte.gz").write_bytes(LABELS)
    code, out, _ = idx("check", "mnist")
    assert code == 1
    assert "error pair-count: images: 10,000 items, labels: 2 items" in out


# Real files


def test_the_published_files(idx: Run) -> None:
    assert idx("info", IMAGES_GZ).out.splitlines()[1:] == [
        "format       IDX, most significant byte first",
        "type         uint8 (uint8_t in C, Byte in .NET)",
        "shape        10000 × 28 × 28",
        "codec        gz",
        "file size    1,648,877 bytes",
        "data         7,840,000 bytes from byte 16",
        "item         784 bytes each",
        "one item     all is inflated for the first one, and kept",
        "stored name  t10k-images.idx3-ubyte",
    ]
    assert idx("head", LABELS_GZ, "-n", "10").out.split() == list("7210414959")
    digit = idx("head", IMAGES_GZ, "-n", "1").out.splitlines()
    assert (len(digit), {len(line) for line in digit}) == (28, {28 * 4 - 1})
    assert "84 185 159 151" in digit[7]
    assert idx("diff", IMAGES_GZ, IMAGES_GZ).out == "equal\n"
    assert idx("identify", LABELS_GZ).out.startswith(f"{LABELS_GZ} (gz): ")


def test_every_real_file_goes_through_every_command(idx: Run) -> None:
    for path in sorted((DATA / "real").rglob("*")):
        if not path.is_file():
            continue
        wrong = path.name in ("empty.idx", "labels-idx-ubyte", "labels-11-idx-ubyte")
        assert idx("info", str(path)).code == (3 if wrong else 0)
        assert idx("head", str(path)).code == (3 if wrong else 0)
        assert idx("check", str(path)).code == (1 if wrong else 0)
        assert idx("diff", str(path), str(path)).code == (3 if wrong else 0)
        hopeless = path.name == "empty.idx"
        assert idx("repair", str(path), "new.idx", "--force").code == (3 if hopeless else 0)
        if not wrong:
            assert idx("diff", str(path), "new.idx").code == 0


# What is loaded

LOADED = """
import sys
from idxfile.cli import main
main(sys.argv[1:])
print(*sys.modules, file=sys.stderr)
"""
SLOW = {"numpy", "asyncio", "email", "http", "multiprocessing", "socket", "ssl", "unittest", "xml"}


@pytest.mark.parametrize(
    "words", [["info", IMAGES_GZ], ["info", "-h"], ["check", "images.idx"], ["identify", "2051"]]
)
def test_what_needs_no_numbers_starts_without_numpy(words: list[str], files: Path) -> None:
    done = subprocess.run([sys.executable, "-c", LOADED, *words], capture_output=True, text=True)
    assert done.returncode == 0
    assert not SLOW & set(done.stderr.split())


@pytest.mark.parametrize("words", [["--help"], ["-h"], ["--version"]])
def test_the_help_loads_no_command(words: list[str]) -> None:
    done = subprocess.run([sys.executable, "-c", LOADED, *words], capture_output=True, text=True)
    modules = set(done.stderr.split())
    assert not SLOW & modules
    assert {name for name in modules if name.startswith("idxfile.")} == {
        "idxfile.cli",
        "idxfile.cli.ending",
        "idxfile.errors",
    }


def test_the_help_names_every_command(idx: Run) -> None:
    out = idx("--help").out
    for row in COMMANDS.values():
        assert f"  {row.name} " in out
        assert " ".join(row.help.split()) in " ".join(out.split())


def test_the_module_is_the_command_too(files: Path) -> None:
    done = subprocess.run([sys.executable, "-m", "idxfile", "info", "nix"], capture_output=True)
    assert (done.returncode, done.stderr) == (5, b"error: nix: No such file or directory\n")


# Completion

EMNIST = ("byclass", "bymerge", "balanced", "letters", "digits", "mnist")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_completion_script_of_every_shell_names_the_command(shell: str) -> None:
    done = spawn(env={**os.environ, "_IDX_COMPLETE": f"{shell}_source"})
    assert done.returncode == 0
    assert f"_IDX_COMPLETE={shell}_complete" in done.stdout.decode()
    assert b"idx" in done.stdout


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("idx in", ["info"]),
        ("idx ", list(COMMANDS)),
        ("idx s", [name for name in COMMANDS if name.startswith("s")]),
        ("idx --v", ["--version"]),
        ("idx concat --b", ["--blocked"]),
        ("idx concat --codec z", ["zst"]),
        ("idx x", []),
        ("idx fetch emnist-", [f"emnist-{name}" for name in EMNIST]),
        ("idx datasets overhead", ["overhead-mnist"]),
        ("idx fetch overhead", []),  # it cannot be fetched
        ("idx fetch qmnist --split ", ["train", "test", "nist", "test10k", "test50k"]),
        ("idx fetch mnist --split=test-", ["test-first-half", "test-second-half"]),
        ("idx fetch nothing --split ", []),
        ("idx convert --from j", ["jsonl"]),
        ("idx convert --from c", ["csv"]),  # a C header cannot be read
        ("idx convert a b --to k", ["kerchunk"]),
        ("idx convert --options k", ["kerchunk"]),
        ("idx select --codec ", ["gz", "bz2", "xz", "zst"]),
        ("idx stats --engine r", ["ray"]),
        ("idx show x.idx --colours ", [*COLOUR_MAPS]),
        ("idx show --graphics ", ["auto", *MODES]),
        ("idx show --as h", ["histogram", "heatmap"]),
        ("idx stats pairs --split ", ["train", "validation"]),
        ("idx stats pairs/val-labels.idx --split ", ["train", "validation"]),
        ("idx show pairs --split v", ["validation"]),
        ("idx convert pairs x.npz --split v", ["validation"]),
        ("idx merge all pairs --split ", ["train", "validation"]),
        ("idx merge --split v", ["validation"]),
        ("idx show pairs/train-images.idx 0:20 --split ", ["train", "validation"]),
        ("idx select nix --split ", ["train", "test", "validation"]),
        ("idx select s3://bucket/x --split t", ["train", "test"]),
        ("idx split --split ", ["train", "test", "validation"]),
    ],
)
def test_completion_offers_what_fits(
    words: str,
    offered: list[str],
    idx: Run,
    monkeypatch: pytest.MonkeyPatch,
    capsys: Any,
    tmp_path: Path,
) -> None:
    for name in ("train-images.idx", "train-labels.idx", "val-images.idx", "README"):
        (tmp_path / "pairs").mkdir(exist_ok=True)
        (tmp_path / "pairs" / name).touch()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("_IDX_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_WORDS", words)
    monkeypatch.setenv("COMP_CWORD", str(len(words.split(" ")) - 1))
    with pytest.raises(SystemExit):
        idx()
    assert [line.removeprefix("plain,") for line in capsys.readouterr().out.split()] == offered


SHELLS = {
    "bash": (["--norc", "--noprofile", "-i"], ""),
    "zsh": (["-f", "-i"], "autoload -Uz compinit; compinit -u -D; "),
}
"""Those that complete at a terminal alone: how they are begun, and what they need first."""


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize(
    ("typed", "shown"),
    [
        ("idx fetch fash\t", "idx fetch fashion-mnist "),
        ("idx show --colours v\t", "idx show --colours viridis "),
        ("idx identify tra\t", "idx identify train.idx "),
    ],
)
def test_a_real_shell_completes_what_is_typed(
    shell: str, typed: str, shown: str, files: Path
) -> None:
    (files / "train.idx").touch()
    options, first = SHELLS[shell]
    pid, terminal = pty.fork()
    if not pid:
        path = f"{Path(SCRIPT).parent}{os.pathsep}{os.environ['PATH']}"
        os.environ |= {"PATH": path, "PS1": "> ", "TERM": "dumb"}
        os.execlp(shell, shell, *options)
    seen, end = "", time.monotonic() + 30
    try:
        source = f'{first}eval "$(_IDX_COMPLETE={shell}_source idx)"; echo re"ady"\n'
        os.write(terminal, source.encode())
        while shown not in seen and time.monotonic() < end:
            if select.select([terminal], [], [], 0.1)[0]:
                seen += os.read(terminal, 4096).decode()
            # Words wait for the prompt: what is typed before is no line to complete.
            if typed and re.search(r"[\r\n]ready[^>]*> (\x1b\[\?2004h)?\Z", seen):
                os.write(terminal, typed.encode())
                typed = ""
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        os.close(terminal)
    assert shown in seen


def test_a_real_fish_is_told_what_each_name_is(files: Path) -> None:
    script = (
        "_IDX_COMPLETE=fish_source idx | source; complete -C 'idx fetch fash'; "
        "complete -C 'idx show --colours v'; complete -C 'idx identify same'"
    )
    path = f"{Path(SCRIPT).parent}{os.pathsep}{os.environ['PATH']}"
    words = ["fish", "--no-config", "-c", script]
    done = subprocess.run(words, capture_output=True, text=True, env={**os.environ, "PATH": path})
    assert done.stdout == "fashion-mnist\tarticles of clothing\nviridis\nsame.idx\n"


@pytest.mark.parametrize("name", COMMANDS)
def test_completing_the_words_of_a_command_loads_nothing_slow(name: str) -> None:
    """NumPy by itself would take longer than a press of a key may."""
    asked = {"_IDX_COMPLETE": "bash_complete", "COMP_WORDS": f"idx {name} --", "COMP_CWORD": "2"}
    script = LOADED.replace("main(sys.argv[1:])", "try: main()\nexcept SystemExit: pass")
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, env={**os.environ, **asked}
    )
    loaded = set(done.stderr.split())
    assert "plain,--help" in done.stdout.split()
    assert f"idxfile.cli.{COMMANDS[name].room}" in loaded
    assert SLOW & loaded <= {"email", "socket"}  # of importlib.metadata, for formats of others


def test_completing_a_command_loads_none() -> None:
    environment = {
        **os.environ,
        "_IDX_COMPLETE": "bash_complete",
        "COMP_WORDS": "idx ",
        "COMP_CWORD": "1",
        "PYTHONPROFILEIMPORTTIME": "1",
    }
    done = spawn(env=environment)
    assert done.stdout.decode().split()[0] == "plain,info"
    assert "idxfile.cli" in done.stderr.decode()
    assert not re.search(r"numpy|idxfile\.cli\.(?!ending)\w", done.stderr.decode())
