"""What the page asks for: facts, items in ranges and slabs, orders, figures, comparison."""

from __future__ import annotations

import gzip
import itertools
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from page_server import IMAGES, LABELS, Serve, pair, serve

import idxfile
from conftest import TYPES, H, idx_bytes
from idxfile.viewer.web.exhibit import Exhibit
from idxfile.viewer.web.figures import Figures
from idxfile.viewer.web.places import find_places

__all__ = ["pair", "serve"]


def items_of(answer: Any, dtype: str, *shape: int) -> np.ndarray:
    assert answer.status_code == 200, answer.text
    return np.frombuffer(answer.content, np.dtype(dtype).newbyteorder(">")).reshape(shape)


# Items


def test_a_raw_file_is_given_out_as_it_lies(serve: Serve, pair: Path) -> None:
    client = serve(pair)
    whole = (pair / "train-images-idx3-ubyte").read_bytes()
    assert client.json("facts")["raw"] is True
    for start, stop in ((0, 16), (16, 28), (100, 101), (len(whole) - 3, len(whole) + 99)):
        answer = client.get("raw", headers={"Range": f"bytes={start}-{stop - 1}"})
        assert answer.status_code == 206
        assert answer.content == whole[start:stop]
        end = min(stop, len(whole)) - 1
        assert answer.headers["content-range"] == f"bytes {start}-{end}/{len(whole)}"


@pytest.mark.parametrize("dtype", TYPES)
def test_slabs_of_every_type(serve: Serve, tmp_path: Path, dtype: str) -> None:
    array = np.arange(60).reshape(10, 3, 2).astype(dtype)
    (tmp_path / "q.idx.gz").write_bytes(gzip.compress(idx_bytes(array)))
    client = serve(tmp_path / "q.idx.gz")
    facts = client.json("facts")
    assert (facts["raw"], facts["codecs"], facts["dtype"]) == (False, ["gz"], dtype)
    assert (
        items_of(client.get("items", **{"from": 2, "to": 5}), dtype, 3, 3, 2) == array[2:5]
    ).all()
    chosen = np.array([9, 0, 0, 4], "<u4")
    answer = client.post("items", chosen.tobytes())
    assert (items_of(answer, dtype, 4, 3, 2) == array[chosen]).all()


def test_lush_matrices_come_as_the_others(serve: Serve, tmp_path: Path) -> None:
    path = tmp_path / "norb.idx"
    path.write_bytes(
        bytes.fromhex("544c3d1e 01000000 03000000 01000000 01000000 07000000 ffffffff 00010000")
    )
    client = serve(path)
    facts = client.json("facts")
    assert (facts["raw"], facts["dialect"], facts["byteorder"]) == (False, "lush", "little")
    assert items_of(client.get("items", **{"from": 0, "to": 3}), "int32", 3).tolist() == [
        7,
        -1,
        256,
    ]


@pytest.mark.parametrize(("start", "stop"), [(0, 13), (5, 4), (13, 13)])
def test_items_that_are_not_there(serve: Serve, pair: Path, start: int, stop: int) -> None:
    client = serve(pair)
    assert client.get("items", **{"from": start, "to": stop}).status_code == 400
    beyond = np.array([12], "<u4").tobytes()
    assert client.post("items", beyond).status_code == 400
    assert client.post("items", b"123").status_code == 400


def test_so_many_items_are_not_given_out_at_once(serve: Serve, tmp_path: Path) -> None:
    path = tmp_path / "sparse.idx"
    with path.open("wb") as file:
        file.write(H(8, 5_000_000, 28, 28))
        file.truncate(16 + 5_000_000 * 784)
    client = serve(path)
    assert client.json("facts")["count"] == 5_000_000
    assert client.get("items", **{"from": 0, "to": 5_000_000}).status_code == 400
    assert len(client.get("items", **{"from": 4_999_000, "to": 5_000_000}).content) == 784_000
    last = client.get("raw", headers={"Range": f"bytes={16 + 4_999_999 * 784}-99999999999"})
    assert len(last.content) == 784


# Facts


def test_the_facts_of_a_pair(serve: Serve, pair: Path) -> None:
    facts = serve(pair).json("facts")
    assert facts["name"] == "train-images-idx3-ubyte"
    assert (facts["count"], facts["item_shape"]) == (12, [4, 3])
    assert facts["head"] == H(8, 12, 4, 3).hex()
    assert facts["labelled"] is True
    assert facts["alone"] is False
    assert facts["problems"] == []
    assert facts["journal"]["lines"] == 0


def test_labels_alone_are_items_and_labels(serve: Serve, tmp_path: Path) -> None:
    (tmp_path / "labels.idx").write_bytes(idx_bytes(LABELS))
    client = serve(tmp_path / "labels.idx")
    facts = client.json("facts")
    assert (facts["alone"], facts["labelled"], facts["item_shape"]) == (True, True, [])
    assert client.order(classes="5") == [4, 8, 10]


def test_a_scalar_is_one_item(serve: Serve) -> None:
    client = serve(H(0x0E) + bytes.fromhex("3ff8000000000000"))
    assert client.json("facts")["count"] == 1
    assert items_of(client.get("items", **{"from": 0, "to": 1}), "float64", 1).tolist() == [1.5]


def test_an_empty_file_has_no_items_and_is_right(serve: Serve) -> None:
    client = serve(H(8, 0, 28, 28))
    facts = client.json("facts")
    assert (facts["count"], facts["problems"]) == (0, [])
    assert client.counted()["problems"] == []
    assert client.order() == []


def test_arrays_and_data_sets_in_memory(serve: Serve) -> None:
    ds = idxfile.Dataset(IMAGES, LABELS, classes=["zero", None], split="test")
    client = serve(ds.select(items=slice(3, 6)))
    facts = client.json("facts")
    assert (facts["count"], facts["classes"], facts["raw"]) == (3, ["zero", None], False)
    assert (
        items_of(client.get("items", **{"from": 0, "to": 3}), "uint8", 3, 4, 3) == IMAGES[3:6]
    ).all()
    assert serve(np.zeros((2, 3), "int16")).json("facts")["dtype"] == "int16"


def test_a_folder_of_several_sets(serve: Serve, tmp_path: Path) -> None:
    for split in ("train", "test"):
        idxfile.Dataset(IMAGES, LABELS, split=split).save(tmp_path)
    (tmp_path / "predictions.idx").write_bytes(idx_bytes(LABELS))
    (tmp_path / "notes.txt").write_text("nothing")
    client = serve(tmp_path)
    names = client.json("facts")["places"]
    assert names == ["test-images-idx3-ubyte", "train-images-idx3-ubyte", "predictions.idx"]
    assert client.json("facts", set=1)["rivals"] == ["predictions.idx"]
    assert client.json("facts", set=2)["alone"] is True
    assert client.get("facts", set=3).status_code == 400


def test_the_raw_one_of_two_equal_files_is_shown(serve: Serve, pair: Path) -> None:
    raw = (pair / "train-images-idx3-ubyte").read_bytes()
    (pair / "train-images-idx3-ubyte.gz").write_bytes(gzip.compress(raw))
    facts = serve(pair).json("facts")
    assert facts["places"] == ["train-images-idx3-ubyte", "train-images-idx3-ubyte.gz"]
    assert facts["raw"] is True


def test_an_archive(serve: Serve, pair: Path) -> None:
    import zipfile

    with zipfile.ZipFile(pair / "all.zip", "w") as archive:
        for name in ("train-images-idx3-ubyte", "train-labels-idx1-ubyte"):
            archive.write(pair / name, f"gzip/{name}")
    facts = serve(pair / "all.zip").json("facts")
    assert (facts["count"], facts["labelled"], facts["codecs"]) == (12, True, [])


# Broken files: what is wrong, and what is truly there

NOISE = np.random.default_rng(0).bytes(800)
BROKEN: dict[str, tuple[bytes, str, int]] = {
    "cut": (H(8, 3, 2, 2) + bytes(9), "truncated", 2),
    "long": (H(8, 2, 2, 2) + bytes(9), "trailing-data", 2),
    "page": (b"<!DOCTYPE html><title>404</title>", "foreign", 0),
    "magic": (bytes.fromhex("ffff0801 00000001 07"), "bad-magic", 0),
    "turned": (bytes.fromhex("03080000 01000000 02000000 01000000 0708"), "swapped-header", 0),
    "empty": (b"", "empty", 0),
    "head": (bytes.fromhex("00000803 00000002 0000"), "short-header", 0),
    "cut.gz": (
        gzip.compress(H(8, 200, 4) + np.random.default_rng(0).bytes(800))[:-200],
        "stream-truncated",
        -1,
    ),
    "junk.gz": (gzip.compress(H(8, 2) + b"ab") + b"junk", "stream-junk", 2),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_file_shows_its_problems_and_what_is_there(
    serve: Serve, tmp_path: Path, name: str
) -> None:
    data, code, count = BROKEN[name]
    path = tmp_path / name
    path.write_bytes(data)
    client = serve(path)
    facts = client.json("facts")
    assert facts["count"] == count if count >= 0 else 0 < facts["count"] < 200
    problems = client.counted()["problems"]
    assert code in [problem["code"] for problem in problems]
    assert all(problem["message"] for problem in problems)
    if data and not name.endswith(".gz"):
        assert data[:4].hex() == facts["head"][:8]
    if facts["count"]:
        answer = client.get("items", **{"from": 0, "to": facts["count"]})
        assert answer.status_code == 200
    else:
        assert client.get("items", **{"from": 0, "to": 0}).status_code in (200, 400)


def test_fewer_labels_than_items_is_told_and_the_items_are_shown(serve: Serve, pair: Path) -> None:
    idxfile.write(pair / "train-labels-idx1-ubyte", LABELS[:7])
    facts = serve(pair).json("facts")
    assert (facts["count"], facts["labelled"]) == (12, False)
    assert [problem["code"] for problem in facts["problems"]] == ["pair-count"]


def test_a_cut_file_keeps_the_labels_of_the_items_that_are_there(serve: Serve, pair: Path) -> None:
    path = pair / "train-images-idx3-ubyte"
    path.write_bytes(path.read_bytes()[:-13])
    client = serve(pair)
    facts = client.json("facts")
    assert (facts["count"], facts["labelled"]) == (10, True)
    assert {problem["code"] for problem in facts["problems"]} == {"truncated", "pair-count"}
    assert len(client.get("labels").content) == 10


# Figures and orders


def figures_by_hand(array: np.ndarray, labels: np.ndarray) -> dict[str, np.ndarray]:
    flat = array.reshape(len(array), -1).astype(float)
    mirrored = array[..., ::-1].reshape(len(array), -1).astype(float)
    means = {label: flat[labels == label].mean(0) for label in np.unique(labels)}
    gaps = flat - np.stack([means[label] for label in labels])
    return {
        "mean": flat.mean(1),
        "ink": (flat > 127.5).mean(1),
        "asymmetry": np.abs(flat - mirrored).mean(1) / 255,
        "unusual": np.sqrt((gaps**2).mean(1)) / 255,
    }


def test_a_server_ends_while_its_figures_ask_for_the_file(
    monkeypatch: pytest.MonkeyPatch, pair: Path
) -> None:
    exhibit = Exhibit(find_places(pair)[0])
    joining = threading.Event()

    def first_pass(figures: Figures, labels: np.ndarray | None) -> None:
        joining.wait(60)
        assert exhibit.items is not None

    def stop(figures: Figures) -> None:
        joining.set()
        figures.wait(10)

    monkeypatch.setattr(Figures, "_first_pass", first_pass)
    monkeypatch.setattr(Figures, "stop", stop)
    exhibit.file  # noqa: B018 - opens it
    figures = exhibit.figures
    figures.start(asked=True)
    exhibit.close()
    assert figures.state != "running"


def test_figures_are_those_by_hand(serve: Serve, pair: Path) -> None:
    client = serve(pair)
    figures = client.counted()
    assert figures["state"] == "ready"
    expected = figures_by_hand(IMAGES, LABELS)
    for item in range(12):
        found = client.json("item", item=item)["figures"]
        assert found == pytest.approx({name: column[item] for name, column in expected.items()})
    assert figures["means"] == sorted(set(LABELS.tolist()))
    means = np.frombuffer(client.get("means").content, ">f4").reshape(-1, 4, 3)
    assert means[figures["means"].index(5)] == pytest.approx(IMAGES[LABELS == 5].mean(0))
    assert figures["summary"]["mean"] == pytest.approx(IMAGES.mean())
    assert figures["problems"] == []


@pytest.mark.parametrize("name", ["mean", "ink", "asymmetry", "unusual"])
def test_orders_by_figures(serve: Serve, pair: Path, name: str) -> None:
    client = serve(pair)
    column = figures_by_hand(IMAGES, LABELS)[name].astype("float32")
    assert client.order(sort=name) == np.argsort(column, kind="stable").tolist()
    assert client.order(sort=f"-{name}") == np.argsort(-column, kind="stable").tolist()
    chosen = np.flatnonzero(column > np.median(column)).tolist()
    where = client.order(where=f"{name} > {float(np.median(column))}")
    assert where == chosen


def test_orders_and_filters(serve: Serve, pair: Path) -> None:
    client = serve(pair)
    assert client.order() == list(range(12))
    assert client.order(classes="1,5") == [1, 3, 4, 8, 10]
    assert client.order(classes="1,5", **{"from": 2, "to": 9}) == [3, 4, 8]
    assert client.order(**{"from": -2}) == [10, 11]
    assert client.order(classes="77") == []
    assert client.order(sort="label")[:4] == [1, 3, 6, 0]
    assert client.order(sort="-label", where="item < 6") == [5, 4, 2, 0, 1, 3]
    assert client.order(sort="-item", classes="3") == [9, 0]
    shuffled = client.order(sort="shuffle", seed=5)
    assert sorted(shuffled) == list(range(12))
    assert shuffled == client.order(sort="shuffle", seed=5) != client.order(sort="shuffle", seed=6)
    assert shuffled == np.random.Generator(np.random.PCG64(5)).permutation(12).tolist()


@pytest.mark.parametrize(
    "words",
    [
        {"where": "lable == 3"},
        {"where": "other == 3"},
        {"where": "label =="},
        {"sort": "colour"},
        {"classes": "a"},
        {"from": "x"},
        {"rival": "9"},
        {"sort": "shuffle", "seed": "-1"},
    ],
    ids=str,
)
def test_queries_that_mean_nothing_are_told(
    serve: Serve, pair: Path, words: dict[str, str]
) -> None:
    client = serve(pair)
    if "rival" in words:
        words = {**words, "where": "other == 1"}
    answer = client.get("order", **words)
    assert answer.status_code == 400
    assert answer.json()["error"]


def test_of_a_file_without_labels_all_is_one_class(serve: Serve, tmp_path: Path) -> None:
    (tmp_path / "q.idx").write_bytes(idx_bytes(IMAGES))
    client = serve(tmp_path / "q.idx")
    assert client.counted()["means"] == [0]
    assert client.get("order", where="label == 1").status_code == 400
    assert client.get("labels").status_code == 400
    assert client.post("relabel", {"items": [[0, 1]], "label": 1}).status_code == 400


def test_figures_of_floats_with_nan(serve: Serve, tmp_path: Path) -> None:
    array = np.array([[1, -1], [np.nan, 0], [np.inf, 2], [0.5, 0.5]], "float32")
    (tmp_path / "q.idx").write_bytes(idx_bytes(array))
    client = serve(tmp_path / "q.idx")
    assert client.json("facts")["window"] == [-1, 2]
    assert client.counted()["state"] == "ready"
    assert client.json("item", item=1)["figures"]["mean"] is None
    assert client.order(sort="ink", where="mean < 0.6") == [3, 0]


def test_what_is_not_counted_yet_says_so(serve: Serve, pair: Path) -> None:
    client = serve(pair)
    exhibit = client.serving.exhibits[0]
    exhibit.file  # noqa: B018 - opens it
    exhibit.figures.start = lambda asked=False: None  # type: ignore[method-assign]
    answer = client.get("order", sort="ink")
    assert (answer.status_code, answer.json()) == (202, {"error": "still counting"})


def test_a_fault_of_ours_is_told_in_a_line(
    serve: Serve,
    pair: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    client = serve(pair)
    monkeypatch.setattr("idxfile.viewer.web.routes.facts_of", lambda _: 1 // 0)
    answer = client.get("facts")
    assert answer.status_code == 500
    assert answer.json()["error"].startswith("a fault of idxfile: ZeroDivisionError")
    assert "Traceback" not in capfd.readouterr().err


# Comparison


def test_a_confusion_matrix_is_that_by_hand(serve: Serve, pair: Path) -> None:
    other = LABELS.copy()
    other[[0, 5, 7]] = [9, 1, 7]
    client = serve(pair, compare=idx_bytes(other))
    found = client.json("confusion", rival=0)
    for (row, label), (column, name) in itertools.product(
        enumerate(found["labels"]), enumerate(found["labels"])
    ):
        expected = int(((label == LABELS) & (name == other)).sum())
        assert found["rows"][row][column] == expected
        if expected:
            where = f"label == {label} and other == {name}"
            items = client.order(where=where, rival=0)
            assert items == np.flatnonzero((label == LABELS) & (name == other)).tolist()
    assert (found["equal"], found["count"]) == (9, 12)
    assert client.order(where="label != other", rival=0) == [0, 5, 7]


def test_other_labels_that_do_not_fit_are_told(serve: Serve, pair: Path) -> None:
    client = serve(pair, compare=idx_bytes(LABELS[:5]))
    answer = client.get("confusion", rival=0)
    assert answer.status_code == 400
    assert "5 labels for 12 items" in answer.json()["error"]
    assert client.get("confusion", rival=7).status_code == 400


def test_a_journal_changes_the_comparison(serve: Serve, pair: Path) -> None:
    client = serve(pair, compare=idx_bytes(LABELS))
    assert client.json("confusion", rival=0)["equal"] == 12
    client.post("relabel", {"items": [[4, 6]], "label": 0})
    assert client.json("confusion", rival=0)["equal"] == 10


def test_new_labels_of_shards_are_kept_beside_them(serve: Serve, tmp_path: Path) -> None:
    folder = tmp_path / "with [brackets]"
    images, labels = np.zeros((9, 2, 2), "uint8"), np.arange(9) % 3
    idxfile.Dataset(images, labels).save(folder, shards=2)
    serve(folder).post("relabel", {"items": [[4, 6]], "label": 7})
    [journal] = folder.glob("*.jsonl")
    assert journal.name == "train-labels-idx1-ubyte.journal.jsonl"
    assert serve(folder).json("journal")["now"] == [[4, 7, 1], [5, 7, 2]]


def test_a_set_of_shards_is_one_place(tmp_path: Path) -> None:
    images, labels = np.zeros((9, 2, 2), "uint8"), np.arange(9) % 3
    idxfile.Dataset(images, labels).save(tmp_path, shards=2)
    (place,) = find_places(tmp_path)
    assert place.name == "train-images-idx3-ubyte-?????-of-00002"
    assert place.path == str(tmp_path / "train-labels-idx1-ubyte")  # the journal's, of both shards
    assert place.labels is not None
    assert idxfile.open(place.images()).shape == (9, 2, 2)
    assert idxfile.read(place.labels()).tolist() == labels.tolist()
    (alone,) = find_places(tmp_path / "train-images-idx3-ubyte-*-of-00002")
    assert idxfile.open(alone.images()).shape == (9, 2, 2)
