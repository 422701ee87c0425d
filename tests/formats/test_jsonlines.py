"""JSON lines: an object for every item, as everybody's readers of JSON lines take it."""

from __future__ import annotations

import json
import os
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from trials import mnist

import idxfile
from idxfile import FormatError, UnsupportedError, convert


def read(folder: Path, *lines: str) -> tuple[Any, Any]:
    (folder / "a.jsonl").write_text("".join(f"{line}\n" for line in lines))
    done = convert(folder / "a.jsonl", folder / "a.npz")
    return np.load(folder / "a.npz"), done


def test_a_line_is_an_object_with_nested_lists(tmp_path: Path) -> None:
    images = np.array([[[1, 2], [3, 4]], [[5, 6], [7, 255]]], "uint8")
    np.savez(tmp_path / "a.npz", images=images, labels=[3, 4])
    convert(tmp_path / "a.npz", tmp_path / "a.jsonl")
    assert (tmp_path / "a.jsonl").read_text() == (
        '{"image":[[1,2],[3,4]],"label":3}\n{"image":[[5,6],[7,255]],"label":4}\n'
    )


def test_fields_are_columns(tmp_path: Path) -> None:
    found, done = read(
        tmp_path,
        '{"label": "dog", "image": [[1, 2.5]], "file": "a.png"}',
        "",
        '{"label": "cat", "image": [[-1, 3]], "file": "b.png"}',
    )
    assert found["images"].tolist() == [[[1, 2.5]], [[-1, 3]]]
    assert found["images"].dtype == "float32"
    assert found["labels"].tolist() == [1, 0]
    assert done.classes == ("cat", "dog")
    assert "left out file: text" in done.notes


@pytest.mark.parametrize(
    ("lines", "values", "dtype"),
    [
        (["[1, 2]", "[3, 300]"], [[1, 2], [3, 300]], "int16"),
        (["1", "2"], [1, 2], "uint8"),
        (["[true]", "[false]"], [[1], [0]], "uint8"),
        (["[0.1]", "[1]"], [[0.1], [1]], "float64"),
        (["[NaN]", "[-Infinity]"], [[np.nan], [-np.inf]], "float32"),
        (["[9223372036854775807]"], [[2**63 - 1]], "int64"),
    ],
)
def test_lines_of_bare_values_are_items(
    lines: list[str], values: Any, dtype: str, tmp_path: Path
) -> None:
    found, _ = read(tmp_path, *lines)
    assert found["images"].dtype == dtype
    assert np.array_equal(found["images"], values, equal_nan=True)


@pytest.mark.parametrize(
    ("lines", "kind", "message"),
    [
        (['{"a": [1]}', '{"b": [1]}'], FormatError, "line 2 has no field 'a'"),
        (['{"a": [1]}', '{"a": [1'], FormatError, "line 2 is no JSON"),
        (['{"a": [1]}', '{"a": [1, 2]}'], UnsupportedError, "items of different shapes"),
        (['{"a": [[1], [2, 3]]}'], UnsupportedError, "items of different shapes"),
        (['{"a": [null]}'], UnsupportedError, "other things than numbers"),
        (['{"a": [1, "x"]}'], UnsupportedError, "texts and numbers"),
        (['{"a": {"b": 1}}'], UnsupportedError, "other things than numbers"),
        (['{"a": [99999999999999999999]}'], UnsupportedError, "other things|no type holds"),
        (['{"a": [0.5, 9007199254740993]}'], UnsupportedError, "no type holds"),
        (["[" * 100_000], FormatError, "is no JSON"),
    ],
)
def test_lines_that_do_not_fit_are_told(
    lines: list[str], kind: type[Exception], message: str, tmp_path: Path
) -> None:
    with pytest.raises(kind, match=message) as caught:
        read(tmp_path, *lines)
    assert str(tmp_path / "a.jsonl") in str(caught.value)
    assert os.listdir(tmp_path) == ["a.jsonl"]


def test_texts_here_and_numbers_there_are_no_column(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def line_by_line(path: str, _: int) -> Any:
        with open(path) as file:
            yield from file

    monkeypatch.setattr("idxfile.formats.jsonlines.line_blocks", line_by_line)
    with pytest.raises(UnsupportedError, match="texts and numbers"):
        read(tmp_path, '{"a": 1}', '{"a": "x"}')
    with pytest.raises(UnsupportedError, match=r"items of shape \[1\] and \[2\]"):
        read(tmp_path, '{"a": [1]}', '{"a": [1, 2]}')


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_json_has_no_nan(value: float, tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.array([[1.0], [value]]))
    with pytest.raises(UnsupportedError, match="JSON has no NaN and no infinities"):
        convert(tmp_path / "a.npy", tmp_path / "a.jsonl")
    assert os.listdir(tmp_path) == ["a.npy"]


@pytest.mark.parametrize("package", ["json", "pandas", "polars", "duckdb"])
def test_others_read_ours(package: str, tmp_path: Path) -> None:
    module = import_module(package)
    folder = mnist(tmp_path, 50)
    ds = idxfile.open_dataset(folder)
    path = tmp_path / "a.jsonl"
    convert(folder, path)
    if package == "json":
        rows = [json.loads(line) for line in path.read_text().splitlines()]
        images, labels = [row["image"] for row in rows], [row["label"] for row in rows]
    elif package == "pandas":
        frame = module.read_json(path, lines=True)
        images, labels = frame["image"].tolist(), frame["label"].tolist()
    elif package == "polars":
        frame = module.read_ndjson(path)
        images, labels = frame["image"].to_list(), frame["label"].to_list()
    else:
        rows = module.sql(f"select image, label from read_json('{path}')").fetchall()
        images, labels = [row[0] for row in rows], [row[1] for row in rows]
    assert (np.array(images) == ds.images[...]).all()
    assert labels == ds.labels.tolist()
