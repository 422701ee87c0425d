"""New labels are kept beside the file, whoever writes them, and can be taken back."""

from __future__ import annotations

import json
import multiprocessing
import threading
from datetime import datetime
from pathlib import Path

import numpy as np
from page_server import LABELS, Serve, pair, serve

import idxfile
from idxfile.names import file_name
from idxfile.viewer.web.journal import Journal

__all__ = ["pair", "serve"]

NAME = "train-labels-idx1-ubyte.journal.jsonl"


def lines(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_a_line_is_item_old_new_and_when(tmp_path: Path) -> None:
    journal = Journal(str(tmp_path / "labels"), 10)
    journal.relabel([4, 5], [7, 8], 1)
    (first, second) = lines(tmp_path / "labels.journal.jsonl")
    assert {name: first[name] for name in ("item", "old", "new")} == {"item": 4, "old": 7, "new": 1}
    assert (second["item"], second["old"]) == (5, 8)
    assert datetime.fromisoformat(str(first["when"])).utcoffset() is not None


def test_what_stays_as_it_is_makes_no_line(tmp_path: Path) -> None:
    journal = Journal(str(tmp_path / "labels"), 10)
    assert journal.relabel([4], [7], 7) == []
    assert journal.undo() == []
    assert lines(tmp_path / "labels.journal.jsonl") == []


def test_old_is_what_the_journal_said_before(tmp_path: Path) -> None:
    journal = Journal(str(tmp_path / "labels"), 10)
    journal.relabel([4], [7], 1)
    journal.relabel([4], [7], 2)
    assert [(line["old"], line["new"]) for line in lines(tmp_path / "labels.journal.jsonl")] == [
        (7, 1),
        (1, 2),
    ]


def test_undo_goes_back_change_by_change(tmp_path: Path) -> None:
    journal = Journal(str(tmp_path / "labels"), 10)
    journal.relabel([1, 2], [0, 0], 5)
    journal.relabel([2, 3], [0, 0], 6)
    assert [(c.item, c.new) for c in journal.undo()] == [(2, 5), (3, 0)]
    assert [(c.item, c.new) for c in journal.undo()] == [(1, 0), (2, 0)]
    assert journal.undo() == []
    journal.relabel([1], [0], 9)  # after an undo, changes go on
    assert [(c.item, c.new) for c in journal.undo()] == [(1, 0)]


def test_a_torn_line_loses_no_other(tmp_path: Path) -> None:
    path = tmp_path / "labels.journal.jsonl"
    one = Journal(str(tmp_path / "labels"), 10)
    one.relabel([1], [0], 5)
    with path.open("a") as file:
        file.write('{"item": 2, "old": 0, "ne')  # a process died here
    assert [c.item for c in one.changes()] == [1]
    one.relabel([3], [0], 6)
    other = Journal(str(tmp_path / "labels"), 10)
    assert [c.item for c in other.changes()] == [c.item for c in one.changes()] == [1, 3]
    assert other.passed_over == one.passed_over == 1


def test_lines_that_are_none_are_passed_over_and_counted(tmp_path: Path) -> None:
    good = {"item": 1, "old": 0, "new": 5, "when": "2026-01-01T00:00:00+00:00"}
    bad = [
        {**good, "item": 10},
        {**good, "item": -1},
        {**good, "item": 1.5},
        {**good, "item": True},
        {**good, "new": 2**40},
        {**good, "when": 5},
        {**good, "undoes": 5},
        {"item": 1},
        [],
        None,
        7,
    ]
    text = "\n".join([*map(json.dumps, bad), "{", "\xff", "[" * 9999, "", json.dumps(good), ""])
    (tmp_path / "labels.journal.jsonl").write_text(text)
    journal = Journal(str(tmp_path / "labels"), 10)
    assert [(c.item, c.new) for c in journal.changes()] == [(1, 5)]
    assert journal.passed_over == len(bad) + 3


def test_a_journal_that_was_cleared_away_is_empty(tmp_path: Path) -> None:
    journal = Journal(str(tmp_path / "labels"), 10)
    journal.relabel([1], [0], 5)
    (tmp_path / "labels.journal.jsonl").unlink()
    assert journal.changes() == []
    journal.relabel([2], [0], 5)
    assert [c.item for c in journal.changes()] == [2]


def _write_many(path: str, first: int, gate: object) -> None:
    journal = Journal(path, 1000)
    gate.wait()  # type: ignore[attr-defined]
    for item in range(first, first + 100):
        journal.relabel([item, item], [0, 0], 1 + item % 9)


def test_many_views_lose_nothing_of_each_other(tmp_path: Path) -> None:
    path = str(tmp_path / "labels")
    context = multiprocessing.get_context("fork")
    gate = context.Barrier(4)
    works = [
        context.Process(target=_write_many, args=(path, first, gate)) for first in (0, 100, 200)
    ]
    for work in works:
        work.start()
    mine = threading.Thread(target=_write_many, args=(path, 300, gate))
    mine.start()
    for work in (*works, mine):
        work.join()
    found = lines(tmp_path / "labels.journal.jsonl")
    assert sorted(line["item"] for line in found if line["old"] == 0) == sorted([*range(400)] * 2)
    assert len({line["when"] for line in found}) == 400
    assert Journal(path, 1000).passed_over == 0


def test_a_journal_is_no_part_of_a_pair() -> None:
    assert file_name(NAME) is None


def test_two_servers_of_one_file_see_each_other(serve: Serve, pair: Path) -> None:
    one, other = serve(pair), serve(pair)
    one.post("relabel", {"items": [[0, 2]], "label": 7})
    other.post("relabel", {"items": [[1, 3]], "label": 8})
    for client in (one, other):
        journal = client.json("journal")
        assert journal["now"] == [[0, 7, 3], [1, 8, 1], [2, 8, 4]]
        assert np.frombuffer(client.get("labels").content, "u1").tolist()[:4] == [7, 8, 8, 1]
    undone = one.post("undo", {}).json()
    assert undone["undone"] == [1, 2]
    assert other.json("journal")["now"] == [[0, 7, 3], [1, 7, 1], [2, 4, 4]]
    assert idxfile.read(pair / "train-labels-idx1-ubyte").tolist() == LABELS.tolist()


def test_changes_to_another_file_of_the_same_name_are_not_taken(serve: Serve, pair: Path) -> None:
    client = serve(pair)
    client.post("relabel", {"items": [[0, 1]], "label": 7})
    idxfile.write(pair / "train-labels-idx1-ubyte", (LABELS + 1).astype("uint8"))
    assert np.frombuffer(serve(pair).get("labels").content, "u1").tolist() == (LABELS + 1).tolist()


def test_a_folder_that_may_not_be_written_is_told(serve: Serve, pair: Path) -> None:
    (pair / NAME).mkdir()
    client = serve(pair)
    answer = client.post("relabel", {"items": [[0, 1]], "label": 7})
    assert answer.status_code == 500
    assert answer.json()["error"]


def test_figures_and_filters_follow_the_journal(serve: Serve, pair: Path) -> None:
    client = serve(pair)
    client.post("relabel", {"items": [[0, 1]], "label": 300})
    assert client.order(classes="300") == [0]
    assert client.order(where="label == 3") == [9]
    labels = client.get("labels")
    assert labels.headers["x-type"] == "i4"
    assert np.frombuffer(labels.content, "<i4")[0] == 300
