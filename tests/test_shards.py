"""Shards: many files as one array, written, read, checked and attacked."""

from __future__ import annotations

import contextlib
import gzip
import io
import json
import os
import pickle
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import idxfile
from conftest import H, assert_same_outcome, keys, outcome
from idxfile.cli import main
from idxfile.shards import folded, named_shards, shard_name

ITEMS = np.arange(60, dtype="int16").reshape(20, 3)


def make(folder: Path, array: Any = ITEMS, cuts: int = 4, name: str = "x.idx") -> list[Path]:
    """A set without a manifest."""
    names = named_shards(name, cuts)
    paths = [folder / names.numbered(number) for number in range(cuts)]
    for path, part in zip(paths, np.array_split(array, cuts), strict=True):
        idxfile.write(path, part)
    return paths


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_any_cut_of_an_array_takes_every_key_as_numpy_does(data: st.DataObject) -> None:
    shape = data.draw(st.sampled_from([(7,), (5, 3), (4, 2, 2)]))
    dtype = data.draw(st.sampled_from(["uint8", "int16", "float64"]))
    array = np.arange(np.prod(shape)).astype(dtype).reshape(shape)
    bounds = sorted(data.draw(st.lists(st.integers(0, shape[0]), max_size=4)))
    key = data.draw(keys(shape))
    suffix = data.draw(st.sampled_from(["", ".gz"]))
    with tempfile.TemporaryDirectory() as folder:
        parts = np.split(array, bounds)
        names = named_shards(f"x.idx{suffix}", len(parts))
        for number, part in enumerate(parts):
            idxfile.write(os.path.join(folder, names.numbered(number)), part)
        mapped = data.draw(st.booleans())
        with idxfile.open(folder, mmap=mapped) as x:
            found, expected = outcome(lambda: x[key]), outcome(lambda: array[key])
            assert_same_outcome(found, expected, key)


@pytest.mark.parametrize(
    ("name", "first"),
    [
        ("x.idx", "x-00000-of-00002.idx"),
        ("train-images-idx3-ubyte.gz", "train-images-idx3-ubyte-00000-of-00002.gz"),
        ("train-images.idx3-ubyte", "train-images-00000-of-00002.idx3-ubyte"),
        ("[odd] *?\n.idx", "[odd] *?\n-00000-of-00002.idx"),
    ],
)
def test_a_set_is_written_and_read_under_every_name(tmp_path: Path, name: str, first: str) -> None:
    with idxfile.create(
        tmp_path / name, dtype="int16", item_shape=(3,), count=20, shards=2
    ) as writer:
        writer.append(ITEMS)
        assert not any(shard_name(entry) for entry in os.listdir(tmp_path))
    assert (tmp_path / first).is_file()
    assert idxfile.read(tmp_path).tolist() == ITEMS.tolist()
    (pattern,) = folded(str(path) for path in tmp_path.iterdir() if path.suffix != ".json")
    with idxfile.open(pattern) as x:
        assert [shard.items for shard in x.shards] == [10, 10]
        assert len(pickle.dumps(x)) < 1000
        with pickle.loads(pickle.dumps(x)) as again:
            assert again[-1].tolist() == ITEMS[-1].tolist()
    assert idxfile.check(tmp_path).ok


@pytest.mark.parametrize("codec", [None, "gz"])
def test_shards_are_cut_by_size(tmp_path: Path, codec: str | None) -> None:
    with idxfile.create(
        tmp_path / "x.idx", dtype="int16", item_shape=(3,), codec=codec, shard_nbytes=12 + 6 * 6
    ) as writer:
        for item in ITEMS:
            writer.append(item[None])
    with idxfile.open(tmp_path) as x:
        assert [shard.items for shard in x.shards] == [6, 6, 6, 2]
        assert x[...].tolist() == ITEMS.tolist()
    assert idxfile.check(tmp_path).ok


def test_nothing_is_left_by_a_writer_that_fails(tmp_path: Path) -> None:
    before = {path: path.read_bytes() for path in make(tmp_path)}
    with (
        pytest.raises(RuntimeError, match="stop"),
        idxfile.create(
            tmp_path / "x.idx", dtype="int16", item_shape=(3,), count=20, shards=4
        ) as writer,
    ):
        writer.append(ITEMS[:15])
        raise RuntimeError("stop")
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_a_list_is_taken_as_it_is(tmp_path: Path) -> None:
    paths = make(tmp_path)
    with idxfile.open([paths[2], paths[0], paths[0]]) as x:
        assert x[...].tolist() == [*ITEMS[10:15].tolist(), *ITEMS[:5].tolist() * 2]
    with idxfile.open([idxfile.encode(ITEMS[:5]), idxfile.encode(ITEMS[5:])]) as x:
        assert x[[0, 19]].tolist() == ITEMS[[0, 19]].tolist()
    with pytest.raises(idxfile.FormatError, match="an empty list"):
        idxfile.open([])


def test_a_pattern_sorts_as_people_do_and_yields_to_a_real_name(tmp_path: Path) -> None:
    for number in (10, 9, 1):
        idxfile.write(tmp_path / f"y{number}.idx", np.array([number], "uint8"))
    assert idxfile.read(tmp_path / "y*.idx").tolist() == [1, 9, 10]
    idxfile.write(tmp_path / "y*.idx", np.array([77], "uint8"))
    assert idxfile.read(tmp_path / "y*.idx").tolist() == [77]
    with pytest.raises(FileNotFoundError, match="No file fits this pattern: look at what"):
        idxfile.open(tmp_path / "z*.idx")


def test_what_is_wrong_with_a_set_is_named(tmp_path: Path) -> None:
    paths = make(tmp_path)
    paths[1].rename(tmp_path / "aside")
    with pytest.raises(idxfile.FormatError, match=r"x-00001-of-00004\.idx: missing"):
        idxfile.open(tmp_path)
    assert [p.code for p in idxfile.check(tmp_path).problems] == ["shard-missing"]
    (tmp_path / "aside").rename(paths[1])
    idxfile.write(f"{paths[2]}.gz", ITEMS[10:15])
    with pytest.raises(idxfile.FormatError, match=r"x-00002-of-00004\.idx and .*\.gz are the same"):
        idxfile.open(tmp_path)
    os.unlink(f"{paths[2]}.gz")
    idxfile.write(paths[3], ITEMS[15:].astype("int32"))
    with pytest.raises(idxfile.FormatError, match=r"00003-of-00004.*int32 \(3,\).*int16 \(3,\)"):
        idxfile.open(tmp_path)
    idxfile.write(paths[3], ITEMS[15:])
    make(tmp_path, name="other.idx")
    with pytest.raises(idxfile.FormatError, match=r"other-.*-of-00004\.idx and x-.*-of-00004"):
        idxfile.open(tmp_path)


def test_a_shard_that_changed_after_opening_is_an_error(tmp_path: Path) -> None:
    paths = make(tmp_path)
    with idxfile.open(tmp_path) as x:
        recipe = pickle.dumps(x)
        idxfile.write(paths[2], np.zeros((5, 3), "int16"))
        os.utime(paths[2], ns=(1, 1))  # the clock of a file system is coarse
        with pytest.raises(idxfile.FormatError, match=r"00002-of-00004\.idx"):
            x[12]
    with pytest.raises(idxfile.FormatError, match="changed since it was pickled"):
        pickle.loads(recipe)


def test_check_holds_each_shard_against_the_manifest(tmp_path: Path) -> None:
    idxfile.concat(tmp_path / "x.idx", [idxfile.encode(ITEMS)], shards=4)
    one, other = tmp_path / "x-00001-of-00004.idx", tmp_path / "x-00002-of-00004.idx"
    first, second = one.read_bytes(), other.read_bytes()
    one.write_bytes(second)
    other.write_bytes(first)
    report = idxfile.check(tmp_path)
    assert not report.ok
    assert [(p.code, p.message.split(":")[0]) for p in report.problems] == [
        ("shard-changed", one.name),
        ("shard-changed", other.name),
    ]
    (tmp_path / "x.manifest.json").write_text("{")
    assert [p.code for p in idxfile.check(tmp_path).problems] == ["manifest-damaged"]


def test_three_thousand_shards_need_few_files_at_once(tmp_path: Path) -> None:
    array = np.arange(3000, dtype="uint8")
    make(tmp_path, array, 3000)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (128, hard))
    try:
        with idxfile.open(tmp_path) as x:
            order = np.random.default_rng(0).permutation(3000)
            assert (x.take(order) == array[order]).all()
            assert (x[...] == array).all()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_compressed_shards_beyond_the_memory_go_to_one_file(tmp_path: Path) -> None:
    make(tmp_path, name="x.idx.gz")
    with idxfile.open(tmp_path, spool_nbytes=40) as x:
        assert x[[19, 0, 7]].tolist() == ITEMS[[19, 0, 7]].tolist()
        assert x[3:17].tolist() == ITEMS[3:17].tolist()


def test_shards_with_labels_are_one_data_set(tmp_path: Path) -> None:
    images = np.arange(80, dtype="uint8").reshape(20, 2, 2)
    make(tmp_path, images, name="train-images-idx3-ubyte")
    idxfile.write(tmp_path / "train-labels-idx1-ubyte", np.arange(20, dtype="uint8"))
    with idxfile.open_dataset(tmp_path) as ds:
        assert ds[17][1] == 17
        assert ds.images[...].tolist() == images.tolist()


def test_a_set_is_not_appended_to(tmp_path: Path) -> None:
    make(tmp_path)
    with pytest.raises(idxfile.UnsupportedError, match="not added to"):
        idxfile.append(tmp_path, ITEMS)


def test_a_shard_that_a_manifest_lists_is_not_appended_to(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("x.idx", "y.idx.gz"):
        idxfile.concat(tmp_path / name, [idxfile.encode(ITEMS)], shards=4)
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    for shard in ("x-00002-of-00004.idx", "y-00001-of-00004.idx.gz"):
        with pytest.raises(
            idxfile.UnsupportedError, match=rf"{shard}: {shard[0]}\.manifest\.json says how"
        ):
            idxfile.append(tmp_path / shard, ITEMS)
        assert main(["append", str(tmp_path / shard), str(tmp_path / "x-*")]) == 4
        assert "hint: write a new set of another name" in capsys.readouterr().err
    assert before == {path: path.read_bytes() for path in tmp_path.iterdir()}
    with (
        pytest.warns(idxfile.IdxWarning, match=r"x\.manifest\.json has its SHA-256"),
        idxfile.open(tmp_path / "x-00002-of-00004.idx", mode="r+") as x,
    ):
        x[0] = x[0]
    (tmp_path / "x.manifest.json").unlink()
    idxfile.open(tmp_path / "x-00002-of-00004.idx", mode="r+").close()
    idxfile.append(tmp_path / "x-00002-of-00004.idx", ITEMS)
    assert len(idxfile.read(tmp_path / "x-*")) == 2 * len(ITEMS)


@pytest.mark.parametrize("broken", range(1, 11))
def test_a_rename_that_fails_loses_no_shard(tmp_path, monkeypatch, broken):
    """Whichever it is: the old set stands there, whole, or the new one."""
    values = np.arange(100, dtype="int16")
    place = tmp_path / "x.idx"

    def write(array):
        with idxfile.create(place, dtype="int16", count=len(array), shards=4) as writer:
            writer.append(array)

    write(values)
    before = sorted(os.listdir(tmp_path))
    calls = iter(range(1, 100))
    rename = os.rename

    def fails(*paths):
        if next(calls) == broken:
            raise OSError(5, "broken")
        rename(*paths)

    monkeypatch.setattr(os, "rename", fails)
    if broken < 10:
        with pytest.raises(OSError, match="broken"):
            write(values + 1)
    else:
        write(values + 1)
    monkeypatch.undo()
    assert sorted(os.listdir(tmp_path)) == before
    wanted = values if broken < 10 else values + 1
    assert np.array_equal(idxfile.read(tmp_path / "x-*-of-00004.idx"), wanted)
    assert idxfile.check(tmp_path / "x-*-of-00004.idx").ok


def test_two_sets_of_one_name_are_refused(tmp_path):
    for shards in (4, 5):
        with contextlib.ExitStack() as stack:
            if shards == 5:
                stack.enter_context(
                    pytest.raises(FileExistsError, match="4 shards of the same name")
                )
            writer = idxfile.create(tmp_path / "x.idx", dtype="uint8", count=9, shards=shards)
            with writer:
                writer.append(np.zeros(9, "uint8"))
    assert len(os.listdir(tmp_path)) == 5
    assert idxfile.check(tmp_path / "x-*-of-00004.idx").ok


# What stands where a shard should be


@pytest.mark.parametrize("kind", ["folder", "pipe", "dangling link", "loop"])
def test_what_is_no_file_is_a_shard_that_is_missing(tmp_path: Path, kind: str) -> None:
    """Nobody waits for a pipe, and nobody takes the rest for the whole."""
    paths = make(tmp_path)
    paths[2].unlink()
    if kind == "folder":
        paths[2].mkdir()
    elif kind == "pipe":
        os.mkfifo(paths[2])
    else:
        paths[2].symlink_to(paths[2] if kind == "loop" else tmp_path / "nothing")
    for place in (tmp_path, tmp_path / "x-*-of-00004.idx", tmp_path / "x-*"):
        with pytest.raises(idxfile.FormatError, match=r"x-00002-of-00004\.idx: missing"):
            idxfile.open(place)
        assert [p.code for p in idxfile.check(place).problems] == ["shard-missing"]


@pytest.mark.parametrize("kind", ["folder", "dangling link", "loop"])
def test_what_is_no_file_is_told_where_it_is_named(tmp_path: Path, kind: str) -> None:
    idxfile.concat(tmp_path / "x.idx", [idxfile.encode(ITEMS)], shards=4)
    path = tmp_path / "x-00002-of-00004.idx"
    path.unlink()
    if kind == "folder":
        path.mkdir()
    else:
        path.symlink_to(path if kind == "loop" else tmp_path / "nothing")
    for place in (tmp_path / "x.manifest.json", [*sorted(tmp_path.glob("x-*"))]):
        with pytest.raises((OSError, idxfile.FormatError), match=r"x-00002-of-00004\.idx"):
            idxfile.open(place)
    assert not idxfile.check(tmp_path / "x.manifest.json").ok


def test_a_shard_that_may_not_be_read_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = make(tmp_path)
    opened = os.open

    def refuses(path: Any, *rest: Any, **options: Any) -> int:
        if os.fspath(path) == str(paths[2]):  # whoever runs this may be allowed everything
            raise PermissionError(13, "Permission denied", path)
        return opened(path, *rest, **options)

    monkeypatch.setattr(os, "open", refuses)
    with pytest.raises(PermissionError, match=r"x-00002-of-00004\.idx"):
        idxfile.open(tmp_path)
    report = idxfile.check(tmp_path)
    assert [(p.code, p.message) for p in report.problems] == [
        ("unreadable", f"{paths[2].name}: Permission denied")
    ]


@pytest.mark.parametrize("with_manifest", [True, False])
@pytest.mark.parametrize("left", [0, 3, 12, 13, 41])
def test_a_cut_shard_is_told_and_named(tmp_path: Path, left: int, with_manifest: bool) -> None:
    if with_manifest:
        idxfile.concat(tmp_path / "x.idx", [idxfile.encode(ITEMS)], shards=4)
    else:
        make(tmp_path)
    path = tmp_path / "x-00001-of-00004.idx"
    os.truncate(path, left)
    with pytest.raises(idxfile.FormatError, match=r"x-00001-of-00004\.idx"):
        idxfile.open(tmp_path)
    report = idxfile.check(tmp_path)
    codes = {p.code for p in report.problems}
    assert not report.ok
    assert ("shard-changed" in codes) == with_manifest
    assert codes - {"shard-changed"} <= {"truncated", "short-header", "empty"}
    assert all(p.message.startswith(f"{path.name}: ") for p in report.problems)


def test_a_cut_compressed_shard_gives_no_items(tmp_path: Path) -> None:
    paths = make(tmp_path, np.arange(4000, dtype="int32"), name="x.idx.gz")
    whole = paths[1].read_bytes()
    paths[1].write_bytes(whole[:-20])
    with idxfile.open(tmp_path) as x:
        assert x[10] == 10
        for key in (1500, slice(1000, 2000), [999, 1001]):
            with pytest.raises(idxfile.FormatError, match=r"x-00001-of-00004\.idx\.gz"):
                x[key]
        with pytest.raises(idxfile.FormatError, match=r"x-00001-of-00004\.idx\.gz"):
            list(x.blocks())
        assert x[3999] == 3999


@pytest.mark.parametrize("codec", [None, "gz"])
def test_more_shards_than_items_and_none_at_all(tmp_path: Path, codec: str | None) -> None:
    for count in (0, 3):
        folder = tmp_path / str(count)
        folder.mkdir()
        idxfile.concat(folder / "x.idx", [idxfile.encode(ITEMS[:count])], shards=7, codec=codec)
        with idxfile.open(folder) as x:
            assert x.shape == (count, 3)
            assert x[...].tolist() == ITEMS[:count].tolist()
            assert x[::-1].tolist() == ITEMS[:count][::-1].tolist()
            assert [block.tolist() for block in x.blocks()] == [ITEMS[:count].tolist()] * bool(
                count
            )
            with pytest.raises(IndexError):
                x[count]
        report = idxfile.check(folder)
        assert report.ok, report.problems
        assert idxfile.stats(folder).count == count * 3


def test_a_joined_array_has_a_limit(tmp_path: Path) -> None:
    """Its header holds 2^32 - 1 items: more files than that are opened in parts."""
    half = 2**31
    for number in range(2):
        with open(tmp_path / f"x-0000{number}-of-00002.idx", "wb") as file:
            file.write(H(8, half))
            file.truncate(8 + half)
    with pytest.raises(idxfile.UnsupportedError, match="one array holds 4,294,967,295") as caught:
        idxfile.open(tmp_path)
    assert caught.value.hint == "open some of them: a list of files"
    files = sorted(tmp_path.iterdir())
    with idxfile.open(files[:1]) as x:
        assert len(x) == half
    for options in ({}, {"shards": 3}, {"shard_nbytes": 1 << 30}):
        with pytest.raises(idxfile.UnsupportedError, match=r"4,294,967,296|4294967296"):
            idxfile.concat(tmp_path / "y.idx", files, **options)
    assert sorted(tmp_path.iterdir()) == files


# Manifests that are not right


def test_a_damaged_manifest_is_passed_over_with_a_warning(tmp_path: Path) -> None:
    idxfile.concat(tmp_path / "x.idx", [idxfile.encode(ITEMS)], shards=4)
    manifest = tmp_path / "x.manifest.json"
    for damaged in ("{", "[]", manifest.read_text().replace('"items": 20', '"items": 21')):
        manifest.write_text(damaged)
        with pytest.warns(idxfile.IdxWarning, match=r"x\.manifest\.json: this is no manifest"):
            assert idxfile.read(tmp_path).tolist() == ITEMS.tolist()
        with pytest.raises(idxfile.FormatError, match="this is no manifest"):
            idxfile.open(manifest)


def test_a_manifest_that_contradicts_the_files_is_an_error(tmp_path: Path) -> None:
    """Shards of an old set and of a new one may stand side by side: nobody takes them for one."""
    idxfile.concat(tmp_path / "x.idx", [idxfile.encode(ITEMS)], shards=4)
    path = tmp_path / "x-00003-of-00004.idx"
    whole = path.read_bytes()
    idxfile.write(path, ITEMS[:4])
    with pytest.raises(idxfile.FormatError, match=r"found 36 bytes, expected 42") as caught:
        idxfile.open(tmp_path)
    assert "without the manifest" in str(caught.value)
    idxfile.write(f"{path}.gz", ITEMS[15:])
    path.unlink()
    with pytest.raises(idxfile.FormatError, match=r"lacks x-00003-of-00004\.idx\.gz"):
        idxfile.open(tmp_path)
    assert [p.code for p in idxfile.check(tmp_path).problems] == ["manifest-damaged"]
    (tmp_path / "x.manifest.json").unlink()
    assert idxfile.read(tmp_path).tolist() == ITEMS.tolist()
    path.write_bytes(whole)


def test_a_missing_shard_is_no_fault_of_the_manifest(tmp_path: Path) -> None:
    idxfile.concat(tmp_path / "x.idx", [idxfile.encode(ITEMS)], shards=4)
    (tmp_path / "x-00002-of-00004.idx").unlink()
    for place in (tmp_path, tmp_path / "x-*", tmp_path / "x.manifest.json"):
        assert [(p.code, p.message) for p in idxfile.check(place).problems] == [
            ("shard-missing", "x-00002-of-00004.idx: missing of 4 shards")
        ]
        with pytest.raises(idxfile.FormatError, match=r"00002-of-00004\.idx: missing of") as caught:
            idxfile.open(place)
        assert caught.value.code == "shard-missing"


# Killed


_KILLED = """
import os, sys
import numpy as np
import idxfile

renames = iter(range(int(sys.argv[2])))
rename = os.rename

def dies(*paths):
    if next(renames, None) is None:
        os.kill(os.getpid(), 9)
    rename(*paths)

os.rename = dies
with idxfile.create(sys.argv[1], dtype="int16", count=40, shards=3) as writer:
    writer.append(np.arange(100, 140, dtype="int16"))
os.kill(os.getpid(), 9)
"""


@pytest.mark.parametrize("renames", range(8))
def test_a_kill_between_renames_mixes_nothing(tmp_path: Path, renames: int) -> None:
    """The set is the old one, the new one, or openly incomplete; the old shards are kept."""
    place = tmp_path / "x.idx"
    with idxfile.create(place, dtype="int16", count=30, shards=3) as writer:
        writer.append(np.arange(30, dtype="int16"))
    old = {path.name: path.read_bytes() for path in tmp_path.glob("x-*")}
    done = subprocess.run([sys.executable, "-c", _KILLED, str(place), str(renames)], check=False)
    assert done.returncode == -9
    pattern = tmp_path / "x-*-of-00003.idx"
    if renames in (0, 7):
        first = 100 if renames else 0
        assert idxfile.read(pattern)[[0, -1]].tolist() == [first, 139 if renames else 29]
        assert idxfile.check(pattern).ok
        return
    with pytest.raises((idxfile.FormatError, FileNotFoundError)):
        idxfile.open(pattern)
    there = {path.name: path.read_bytes() for path in tmp_path.glob("x-*")}
    aside = {path.name: path.read_bytes() for path in tmp_path.glob(".x.idx*/old/x-*")}
    assert {**there, **aside} == old, "nothing is lost: what is to be replaced lies aside"


# The command line


def test_the_commands_take_sets(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    images = np.arange(20 * 16, dtype="uint8").reshape(20, 4, 4)
    one, two = tmp_path / "one.idx", tmp_path / "two.idx"
    idxfile.write(one, images[:7])
    idxfile.write(two, images[7:])
    folder = tmp_path / "set"
    folder.mkdir()
    out = str(folder / "x.idx")
    pattern = str(folder / "x-?????-of-00003.idx")
    assert main(["concat", out, str(one), str(two), "--shards", "3"]) == 0
    assert capsys.readouterr().err == f"{pattern}: uint8 20 × 4 × 4\n"
    assert main(["concat", out, str(one), str(two), "--shards", "3"]) == 2
    assert "exists; --force writes over it" in capsys.readouterr().err
    assert main(["concat", out, str(two), str(one), "--shards", "3", "--force"]) == 0
    assert main(["concat", out, str(two), str(one), "--shards", "4"]) == 2
    assert "There are 3 shards of the same name" in capsys.readouterr().err
    assert main(["concat", "-", str(one), "--shards", "3"]) == 2
    capsys.readouterr()
    for place in (pattern, str(folder), str(folder / "x.manifest.json")):
        assert main(["info", "--json", place]) == 0
        (facts,) = json.loads(capsys.readouterr().out)
        assert facts["shape"] == [20, 4, 4]
        assert facts["file_nbytes"] == 3 * 16 + 320
        assert main(["head", place, "-n", "1"]) == 0
        first = capsys.readouterr().out.split()
        assert first[:16] == [str(value) for value in images[7].ravel()]
        assert main(["show", place, "19", "--graphics", "ascii"]) == 0
        assert capsys.readouterr().out.startswith("19\n")
    for place in (pattern, str(folder)):
        assert main(["check", place]) == 0
        assert capsys.readouterr().out == f"{pattern}: ok (uint8 20 × 4 × 4)\n"
    (folder / "x-00001-of-00003.idx").unlink()
    for place in (pattern, str(folder)):
        assert main(["check", place]) == 1
        out = capsys.readouterr().out
        assert "error shard-missing: x-00001-of-00003.idx: missing of 3 shards" in out
        assert "manifest" not in out
        for command in ("info", "head", "show"):
            assert main([command, place]) == 3
            assert "x-00001-of-00003.idx: missing of 3 shards" in capsys.readouterr().err


@pytest.mark.parametrize("spool_nbytes", [0, 1 << 20])
def test_a_forked_process_writes_into_no_file_of_its_parent(
    tmp_path: Path, spool_nbytes: int
) -> None:
    make(tmp_path, name="x.idx.gz")
    x = idxfile.open(tmp_path / "x-*-of-00004.idx.gz", spool_nbytes=spool_nbytes)
    assert (x[:3] == ITEMS[:3]).all()
    asked, answers = os.pipe(), os.pipe()
    child = os.fork()
    if not child:
        right = (x[6:8] == ITEMS[6:8]).all()
        os.write(answers[1], b".")
        os.read(asked[0], 1)
        os._exit(0 if right and (x[1:8] == ITEMS[1:8]).all() else 3)
    os.read(answers[0], 1)
    assert (x[11:13] == ITEMS[11:13]).all()  # as far behind in the file as the child has its own
    os.write(asked[1], b".")
    assert os.waitpid(child, 0)[1] == 0
    for end in (*asked, *answers):
        os.close(end)
    assert (x[...] == ITEMS).all()


@pytest.mark.parametrize("spool_nbytes", [0, 1 << 20])
def test_shards_in_memory_are_inflated_again_after_an_interruption(
    spool_nbytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    packed = gzip.compress(idxfile.encode(ITEMS))
    x = idxfile.open([packed, io.BytesIO(packed)], spool_nbytes=spool_nbytes)
    for item in (3, 23):
        with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
            patch.setattr("idxfile.source.shards.Elements.readinto", interrupt)
            x[[item]]
        assert (x[[item]] == ITEMS[3]).all()
    assert (x[...] == np.concatenate([ITEMS, ITEMS])).all()


def interrupt(*_: Any) -> Any:
    raise KeyboardInterrupt
