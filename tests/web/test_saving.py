"""What the page saves: new pairs, sheets, and the page that needs no server."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from page_server import IMAGES, LABELS, Serve, pair, serve

import idxfile
from conftest import idx_bytes

__all__ = ["pair", "serve"]


def saved(answer: Any) -> Path:
    assert answer.status_code == 200, answer.text
    return Path(answer.json()["path"])


def test_a_selection_becomes_a_pair(serve: Serve, pair: Path) -> None:
    client = serve(pair)
    folder = saved(client.post("save", {"items": [[1, 3], [8, 9]], "name": "some"}))
    assert folder == pair.parent / "out" / "some"
    ds = idxfile.open_dataset(folder)
    assert (ds.images[...] == IMAGES[[1, 2, 8]]).all()
    assert ds.labels.tolist() == [1, 4, 5]
    assert sorted(path.name for path in folder.iterdir()) == [
        "train-images-idx3-ubyte",
        "train-labels-idx1-ubyte",
    ]


@pytest.mark.parametrize("codec", ["gz", "bz2", "xz", "zst"])
def test_a_selection_is_compressed(serve: Serve, pair: Path, codec: str) -> None:
    folder = saved(serve(pair).post("save", {"items": [[0, 12]], "name": "all", "codec": codec}))
    assert (folder / f"train-images-idx3-ubyte.{codec}").exists()
    assert idxfile.open_dataset(folder).labels.tolist() == LABELS.tolist()


def test_an_unknown_codec_is_told(serve: Serve, pair: Path) -> None:
    for codec in ("rar", 5, ["gz"]):
        answer = serve(pair).post("save", {"items": [[0, 1]], "name": "x", "codec": codec})
        assert answer.status_code == 400


def test_a_view_is_saved_in_its_order(serve: Serve, pair: Path) -> None:
    client = serve(pair)
    query = {"classes": "1,5", "sort": "-item"}
    folder = saved(client.post("save", {"query": query, "name": "view"}))
    assert (idxfile.open_dataset(folder).images[...] == IMAGES[[10, 8, 4, 3, 1]]).all()


def test_new_labels_are_applied_by_saving_alone(serve: Serve, pair: Path) -> None:
    before = {path.name: path.read_bytes() for path in pair.iterdir()}
    client = serve(pair)
    client.post("relabel", {"items": [[2, 4]], "label": 300})
    folder = saved(client.post("save", {"items": [[0, 5]], "name": "changed"}))
    ds = idxfile.open_dataset(folder)
    assert ds.labels.tolist() == [3, 1, 300, 300, 5]
    assert ds.table.dtype == "int16"
    assert {name: (pair / name).read_bytes() for name in before} == before
    # Saved beside the journal, it is a pair of its own.
    beside = serve(pair, out=pair)
    assert beside.post("save", {"items": [[0, 1]], "name": "inner"}).status_code == 200


def test_all_columns_of_a_matrix_of_labels_are_kept(serve: Serve, tmp_path: Path) -> None:
    table = np.stack([LABELS, np.arange(12) * 1000], 1).astype("int32")
    images, labels = tmp_path / "q-images.idx", tmp_path / "q-labels.idx"
    images.write_bytes(idx_bytes(IMAGES))
    labels.write_bytes(idx_bytes(table))
    client = serve(str(images))
    assert client.json("item", item=3)["stored"] == [1, 3000]
    client.post("relabel", {"items": [[3, 4]], "label": 7})
    ds = idxfile.open_dataset(saved(client.post("save", {"items": [[2, 4]], "name": "some"})))
    assert ds.table.tolist() == [[4, 2000], [7, 3000]]


def test_items_without_labels_and_labels_without_items(serve: Serve, tmp_path: Path) -> None:
    (tmp_path / "q.idx").write_bytes(idx_bytes(IMAGES.astype("float32")))
    folder = saved(serve(tmp_path / "q.idx").post("save", {"items": [[3, 5]], "name": "images"}))
    (only,) = folder.iterdir()
    assert only.name == "train-images-idx3-float"
    assert (idxfile.read(only) == IMAGES[3:5]).all()
    (tmp_path / "r.idx").write_bytes(idx_bytes(LABELS))
    client = serve(tmp_path / "r.idx")
    client.post("relabel", {"items": [[4, 5]], "label": 0})
    (only,) = saved(client.post("save", {"items": [[3, 6]], "name": "labels"})).iterdir()
    assert idxfile.read(only).tolist() == [1, 0, 9]


def test_class_names_go_with_it(serve: Serve, pair: Path) -> None:
    (pair / "classes.txt").write_text("null\none\n")
    client = serve(pair)
    assert client.json("facts")["classes"] == ["null", "one"]
    folder = saved(client.post("save", {"items": [[0, 2]], "name": "named"}))
    assert (folder / "classes.txt").read_text() == "null\none\n"


def test_nothing_half_written_is_seen(
    serve: Serve, pair: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("idxfile.writer.IdxWriter.append", full)
    answer = serve(pair).post("save", {"items": [[0, 2]], "name": "half"})
    assert (answer.status_code, answer.json()["error"]) == (500, "No space left on device")
    assert [*(pair.parent / "out").iterdir()] == []


def test_a_sheet_is_that_of_the_library(serve: Serve, pair: Path) -> None:
    client = serve(pair)
    client.post("relabel", {"items": [[5, 6]], "label": 2})
    answer = client.post("sheet", {"items": [[4, 7]], "columns": 3, "scale": 4})
    assert answer.headers["content-type"] == "image/png"
    labels = LABELS.astype(int)
    labels[5] = 2
    expected = idxfile.sheet(IMAGES, labels, slice(4, 7), columns=3, scale=4, window=(0, 255))
    assert answer.content == expected


@pytest.mark.parametrize("body", [{"columns": 0}, {"columns": "3"}, {"scale": 99}, {"scale": True}])
def test_a_sheet_of_no_size(serve: Serve, pair: Path, body: dict[str, Any]) -> None:
    assert serve(pair).post("sheet", {"items": [[0, 2]], **body}).status_code == 400


# The page that needs no server


def exported(path: Path) -> tuple[str, Any]:
    page = path.read_text()
    data = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)
    assert data is not None
    return page, json.loads(data[1])


def test_an_exported_page_holds_its_items(pair: Path, tmp_path: Path) -> None:
    import base64

    out = tmp_path / "page.html"
    idxfile.view(pair, export=out, items=[2, 3, 7])
    page, facts = exported(out)
    assert base64.b64decode(facts["items"]) == IMAGES[[2, 3, 7]].tobytes()
    assert facts["labels"] == [4, 1, 6]
    assert facts["numbers"] == [2, 3, 7]
    assert not re.search(r"<(script|link)[^>]*\s(src|href)=", page)
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page)
    assert policy is not None
    assert "default-src 'none'" in policy[1]
    assert "unsafe" not in policy[1]
    assert "connect-src" not in policy[1]  # and so: none


def test_an_exported_page_stays_one_page_whatever_the_names(tmp_path: Path) -> None:
    ds = idxfile.Dataset(IMAGES, LABELS % 2, classes=["</script><script>alert(1)</script>", "<!--"])
    ds.name = "</script>"
    idxfile.view(ds, export=tmp_path / "page.html")
    page, facts = exported(tmp_path / "page.html")
    assert facts["classes"] == list(ds.classes or ())
    assert page.count("</script>") == 2
    assert "<!--" not in page


def test_too_many_items_for_a_page(tmp_path: Path) -> None:
    with pytest.raises(idxfile.UnsupportedError, match="choose fewer"):
        idxfile.view(np.zeros((50_000, 28, 28), "uint8"), export=tmp_path / "x", items=slice(None))
    assert not (tmp_path / "x").exists()


def test_a_page_of_what_is_not_there(tmp_path: Path, pair: Path) -> None:
    with pytest.raises(IndexError):
        idxfile.view(pair, export=tmp_path / "x", items=[99])
    with pytest.raises(idxfile.FormatError):
        idxfile.view(b"<html>", export=tmp_path / "x")
