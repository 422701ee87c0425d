"""Objects behind HTTP: what comes, by how many requests, and what is said of every fault."""

from __future__ import annotations

import functools
import http.server
import pickle
import struct
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from range_server import RangeServer

import idxfile
from conftest import H, idx_bytes
from idxfile import FetchError, FormatError, TruncatedError
from idxfile.cli import main
from idxfile.source import ahead
from idxfile.source.remote import faults

IMAGES = np.random.default_rng(7).integers(0, 256, (300, 28, 28), np.uint8)
LABELS = np.arange(300, dtype=np.uint8) % 10
WIDE = np.random.default_rng(8).integers(-(2**31), 2**31, (3000, 100), np.int32)
FILES = {
    "images.idx": idx_bytes(IMAGES),
    "wide.idx": idx_bytes(WIDE),
    "images.idx.gz": idxfile.encode(IMAGES, codec="gz"),
    "zeros.idx.gz": idxfile.encode(np.zeros((9, 1000), np.uint8), codec="gz"),
    "small.idx": idx_bytes(LABELS),
    "empty.idx": b"",
    "mnist/train-images-idx3-ubyte": idx_bytes(IMAGES),
    "mnist/train-labels-idx1-ubyte.gz": idxfile.encode(LABELS, codec="gz"),
    "mnist/classes.txt": "".join(f"class {n}\n" for n in range(10)).encode(),
}


@pytest.fixture(autouse=True)
def _short_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    limits = faults.Limits(connect_seconds=2, stall_seconds=1, attempts=3, first_pause_seconds=0.01)
    monkeypatch.setattr(faults, "LIMITS", limits)


@pytest.fixture
def server() -> Iterator[RangeServer]:
    with RangeServer(FILES) as server:
        yield server


# What comes


@pytest.mark.parametrize("name", ["images.idx", "wide.idx", "images.idx.gz", "small.idx"])
@pytest.mark.parametrize("behaviour", ["ok", "no ranges", "chunked", "no tag"])
def test_everything_is_read(server: RangeServer, behaviour: str, name: str) -> None:
    url = server.at(behaviour, name)
    expected = {"w": WIDE, "s": LABELS}.get(name[0], IMAGES)
    assert np.array_equal(idxfile.read(url), expected)
    assert np.array_equal(idxfile.read(url, items=[5, 1, 1]), expected[[5, 1, 1]])
    with idxfile.open(url) as x:
        assert x.shape == expected.shape
        assert np.array_equal(x[7], expected[7])
        assert np.array_equal(x[::-3], expected[::-3])
        assert np.array_equal(x.take([9, 250, 9]), expected[[9, 250, 9]])
        assert np.array_equal(np.concatenate(list(x.blocks(block_nbytes=5000))), expected)
    assert idxfile.check(url).ok
    assert idxfile.info(url).header.shape == expected.shape
    assert idxfile.diff(url, FILES[name]).equal


def test_a_header_costs_one_small_request(server: RangeServer) -> None:
    for name in ("wide.idx", "zeros.idx.gz"):
        server.requests.clear()
        facts = idxfile.info(server.at("ok", name))
        assert facts.file_nbytes == len(FILES[name])
        assert server.requests == [(f"/ok/{name}", "bytes=0-1023")]
    server.requests.clear()
    with idxfile.open(server.at("ok", "wide.idx")) as x:
        assert x.shape == WIDE.shape
    assert len(server.requests) == 1


def test_scattered_items_cost_few_requests() -> None:
    big = np.random.default_rng(1).integers(0, 256, (60_000, 28, 28), np.uint8)
    items = np.random.default_rng(2).integers(0, 60_000, 100)
    with (
        RangeServer({"big.idx": idx_bytes(big)}) as server,
        idxfile.open(server.at("ok", "big.idx")) as x,
    ):
        server.requests.clear()
        assert np.array_equal(x[items], big[items])
        assert 1 < len(server.requests) <= 10
        server.requests.clear()
        assert np.array_equal(x[:100], big[:100])
        assert len(server.requests) == 1
        server.requests.clear()
        assert np.array_equal(x[...], big)
        assert len(server.requests) == 6


# Faults: behaviour → what comes of it, and a word of what is said

RIGHT = "right"
FAULTS: dict[str, tuple[Any, str]] = {
    "busy": (RIGHT, ""),
    "too many": (RIGHT, ""),
    "much later": (FetchError, "503"),
    "503": (FetchError, "the store answers 503"),
    "cut": (RIGHT, ""),
    "no ranges, cut": (RIGHT, ""),
    "no ranges, no tag, cut": (FetchError, "cut after 117,608 of 235,216 bytes"),
    "always cut": (FetchError, "cut after 0 of"),
    "resets": (RIGHT, ""),
    "wrong range first": (RIGHT, ""),
    "wrong range": (FetchError, "the server answers bytes 5-1028/235216"),
    "short range": (FetchError, "the server answers bytes 1024-1025/"),
    "another range": (FetchError, "cannot be trusted"),
    "later all": (FetchError, "the whole of it"),
    "longer": (FormatError, "changed while it was being read: 235217 bytes now"),
    "replaced": (FormatError, 'changed while it was being read: "v2" now, "v1" before'),
    "replaced, matching": (FormatError, "changed while it was being read: another version"),
    "replaced, dated": (FormatError, "changed while it was being read: Sun, 09 Sep 2001"),
    "stall": (TimeoutError, "nothing came for 1 seconds, tried 3 times"),
    "redirect": (RIGHT, ""),
    "loop": (FetchError, "without end"),
    "leads away": (PermissionError, "no HTTP"),
    "chunked": (RIGHT, ""),
    "chunked ranges": (RIGHT, ""),
    "page": (FormatError, "HTML page"),
    "404": (FileNotFoundError, "no such object"),
    "410": (FileNotFoundError, "no such object"),
    "401": (PermissionError, "refuses"),
    "403": (PermissionError, "credentials"),
    "416": (FetchError, "416"),
    "500": (FetchError, "500"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_and_its_answer(server: RangeServer, fault: str) -> None:
    """The items are right, or there is an error that names the address."""
    outcome, word = FAULTS[fault]

    def items() -> Any:
        with idxfile.open(server.at(fault)) as x:
            return x[[200, 3, 150]]

    if outcome is RIGHT:
        assert np.array_equal(items(), IMAGES[[200, 3, 150]])
        assert np.array_equal(idxfile.read(server.at(fault)), IMAGES)
        return
    with pytest.raises(outcome, match=word.replace("/", "/")) as caught:
        items()
    assert str(caught.value).startswith(server.at(fault))
    assert "hint: " in str(caught.value) or fault == "page"


@pytest.mark.parametrize("fault", [f for f in FAULTS if f not in ("later all", "short range")])
def test_a_fault_on_the_way_from_front_to_back(
    server: RangeServer, fault: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither `check` nor blocks ever take something else for the object."""
    monkeypatch.setattr(ahead, "FIRST_NBYTES", 1 << 15)
    monkeypatch.setattr(ahead, "PIECE_NBYTES", 1 << 15)

    def blocks() -> Any:
        with idxfile.open(server.at(fault)) as x:
            return np.concatenate(list(x.blocks(block_nbytes=10_000)))

    outcome, word = FAULTS[fault]
    if outcome is RIGHT:
        assert idxfile.check(server.at(fault)).ok
        assert np.array_equal(blocks(), IMAGES)
        return
    with pytest.raises(outcome, match=word):
        blocks()
    try:
        report = idxfile.check(server.at(fault))
    except (FetchError, FormatError):
        return
    assert not report.ok


def test_only_what_may_pass_is_asked_again(server: RangeServer) -> None:
    for fault, attempts in (("503", 3), ("429", 3), ("404", 1), ("403", 1), ("much later", 1)):
        server.requests.clear()
        with pytest.raises(FetchError):
            idxfile.info(server.at(fault))
        assert len(server.requests) == attempts, fault


def test_an_object_that_is_stored_compressed_is_inflated_once(server: RangeServer) -> None:
    assert np.array_equal(idxfile.read(server.at("encoded", "images.idx.gz")), IMAGES)
    assert {headers["Accept-Encoding"] for headers in server.headers} == {"identity"}


def test_an_empty_object_is_told(server: RangeServer) -> None:
    with pytest.raises(TruncatedError, match="file is empty"):
        idxfile.open(server.at("ok", "empty.idx"))


def test_a_cut_object_is_told_by_its_length() -> None:
    with RangeServer({"cut.idx": FILES["images.idx"][:-1]}) as server:
        with pytest.raises(TruncatedError, match="1 missing"):
            idxfile.open(server.at("ok", "cut.idx"))
        assert len(server.requests) == 1


def test_a_redirect_is_followed_once(server: RangeServer) -> None:
    with idxfile.open(server.at("redirect")) as x:
        assert np.array_equal(x[299], IMAGES[299])
    paths = [path.split("/")[1] for path, _ in server.requests]
    assert paths == ["redirect", "ok", "ok"]


def test_a_server_that_is_not_there() -> None:
    with pytest.raises(FetchError, match="cannot be reached") as caught:
        idxfile.open("http://127.0.0.1:9/a.idx")
    assert isinstance(caught.value, OSError)


def test_secrets_are_not_shown(server: RangeServer) -> None:
    place = server.at("404").replace("http://", "http://me:word@") + "?X-Signature=deadbeef"
    with pytest.raises(FileNotFoundError) as caught:
        idxfile.open(place)
    assert "deadbeef" not in str(caught.value)
    assert "word" not in str(caught.value)
    assert server.requests[0][0].endswith("?X-Signature=deadbeef")
    assert server.headers[0]["Authorization"] == "Basic bWU6d29yZA=="
    good = server.at("ok") + "?X-Signature=deadbeef"
    with idxfile.open(good) as x:
        assert x.name == server.at("ok")
        assert "deadbeef" not in repr(x)


@pytest.mark.parametrize("fault", ["403", "404", "always cut", "page", "short range"])
def test_a_table_beside_that_is_not_had_does_no_harm(server: RangeServer, fault: str) -> None:
    """Beside a signed address another one is asked for, which the signature is not of."""
    many = np.arange(6_000_000, dtype=np.uint32).astype(np.uint8).reshape(60_000, 100)
    table = struct.pack("<Q", 99) + bytes(99 * 16)
    server.files = {
        "many.idx.gz": idxfile.encode(many, codec="gz", blocked=True),
        "many.idx.gz.gzi": table,
    }
    server.instead["/ok/many.idx.gz.gzi"] = fault
    with idxfile.open(server.at("ok", "many.idx.gz") + "?X-Amz-Signature=deadbeef") as x:
        assert np.array_equal(x[[7, 59_999]], many[[7, 59_999]])
    assert "/ok/many.idx.gz.gzi" in {path for path, _ in server.requests}


def test_the_command_line(server: RangeServer, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["info", server.at("ok")]) == 0
    assert "300 × 28 × 28" in capsys.readouterr().out
    assert main(["check", server.at("ok", "images.idx.gz")]) == 0
    capsys.readouterr()
    assert main(["head", server.at("404")]) == 5
    error = capsys.readouterr().err
    assert error.startswith(f"error: {server.at('404')}: there is no such object (404 Not Found)\n")
    assert main(["stats", server.at("ok", "mnist/train-images-idx3-ubyte")]) == 0


# Modes, pickles, closing


def test_a_pickle_is_a_recipe_that_is_verified(server: RangeServer) -> None:
    with idxfile.open(server.at("ok")) as x:
        travelling = pickle.dumps(x)
    assert len(travelling) < 1000
    with pickle.loads(travelling) as y:
        assert np.array_equal(y[5], IMAGES[5])
    server.files = {"images.idx": idx_bytes(IMAGES[:299])}
    with pytest.raises(FormatError, match="has changed since it was pickled"):
        pickle.loads(travelling)


def test_reading_after_close_is_an_error(server: RangeServer) -> None:
    x = idxfile.open(server.at("ok"))
    x.close()
    with pytest.raises(ValueError, match="closed"):
        x[0]


def test_many_threads_read_at_once(server: RangeServer) -> None:
    wrong: list[int] = []
    with idxfile.open(server.at("ok", "wide.idx")) as x:

        def read(start: int) -> None:
            items = range(start, len(WIDE), 397)
            wrong.extend(n for n in items if not np.array_equal(x[n], WIDE[n]))

        threads = [threading.Thread(target=read, args=(n,)) for n in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert wrong == []


# Pairs


def test_the_partner_is_found_beside(server: RangeServer) -> None:
    for name in ("train-images-idx3-ubyte", "train-labels-idx1-ubyte.gz"):
        with idxfile.open_dataset(server.at("ok", f"mnist/{name}")) as ds:
            assert np.array_equal(ds.labels, LABELS)
            assert np.array_equal(ds[7][0], IMAGES[7])
            assert ds.split == "train"
            assert ds.classes is not None
            assert ds.classes[3] == "class 3"
            with pickle.loads(pickle.dumps(ds)) as again:
                assert np.array_equal(again.labels, LABELS)


def test_a_partner_that_may_not_be_read_is_none(server: RangeServer) -> None:
    server.instead["/ok/mnist/train-labels-idx1-ubyte"] = "403"
    with idxfile.open_dataset(server.at("ok", "mnist/train-images-idx3-ubyte")) as ds:
        assert ds[3][1] == LABELS[3]


def test_a_folder_is_listed_where_a_page_leads_to_its_files(tmp_path: Path) -> None:
    for name, data in FILES.items():
        if name.startswith("mnist/"):
            (tmp_path / name.partition("/")[2]).write_bytes(data)
    handler = functools.partial(_Quiet, directory=str(tmp_path))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        try:
            with idxfile.open_dataset(f"http://127.0.0.1:{server.server_port}/") as ds:
                assert np.array_equal(ds.images[[299, 0]], IMAGES[[299, 0]])
                assert np.array_equal(ds.labels, LABELS)
        finally:
            server.shutdown()


class _Quiet(http.server.SimpleHTTPRequestHandler):
    """Python's own server: it does not know ranges."""

    def log_message(self, *_: object) -> None:
        pass


def test_a_folder_that_cannot_be_listed_is_told(server: RangeServer) -> None:
    with pytest.raises(idxfile.PairError, match="does not tell what lies in it"):
        idxfile.open_dataset(server.at("ok", "mnist/"))


def test_a_pair_without_a_partner_is_told(server: RangeServer) -> None:
    with pytest.raises(FileNotFoundError, match="labels"):
        idxfile.open_dataset(server.at("ok"))
    with pytest.raises(FileNotFoundError, match="no such object"):
        idxfile.open_dataset(server.at("404"))


def test_a_header_that_lies_costs_nothing() -> None:
    with RangeServer({"liar.idx": H(8, 2**32 - 1, 28, 28)}) as server:
        for behaviour in ("ok", "no ranges"):
            with pytest.raises(TruncatedError):
                idxfile.read(server.at(behaviour, "liar.idx"))
