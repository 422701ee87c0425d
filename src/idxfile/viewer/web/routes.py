"""The requests that the page makes, a function each. No path in one ever names a file."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from ...elements import Array
from ...errors import IdxError
from .exhibit import Exhibit
from .expression import ExpressionError
from .order import NotYetError, Query, confusion, ordered
from .page import FILES, facts_of
from .saving import SavingError, save_pair, save_sheet

__all__ = ["application"]

MOST_RAW_NBYTES = 1 << 24
MOST_SLAB_NBYTES = 1 << 25
_RANGE = re.compile(r"bytes=(\d{1,19})-(\d{1,19})")


class BadRequest(ValueError):  # noqa: N818 - HTTP's own name
    """Words that this server does not understand."""


def application(exhibits: Sequence[Exhibit], folder: str) -> Starlette:
    """The page and its requests.

    Args:
        exhibits: what can be looked at; requests name them by their numbers.
        folder: where new data sets are saved.
    """

    def read(answer: Callable[[Exhibit, Request], Response]) -> Callable[..., Any]:
        async def endpoint(request: Request) -> Response:
            return await run_in_threadpool(_answered, answer, exhibits, request)

        return endpoint

    def change(answer: Callable[[Exhibit, Request, Any], Response]) -> Callable[..., Any]:
        async def endpoint(request: Request) -> Response:
            body = await request.body()
            return await run_in_threadpool(
                _answered, lambda e, r: answer(e, r, _parsed(body)), exhibits, request
            )

        return endpoint

    async def slab_of(request: Request) -> Response:
        body = await request.body()
        return await run_in_threadpool(
            _answered, lambda e, r: _slab(e, np.frombuffer(body, "<u4")), exhibits, request
        )

    def facts(exhibit: Exhibit, _: Request) -> Response:
        names = [e.place.name for e in exhibits]
        return _json(
            {"places": names, "folder": folder, **facts_of(exhibit), "journal": _journal(exhibit)}
        )

    def save(exhibit: Exhibit, _: Request, body: Any) -> Response:
        items = _items(exhibit, body)
        name, codec = _text(body, "name"), body.get("codec") or None
        path = save_pair(exhibit, items, folder, name, codec)
        return _json({"path": path, "items": len(items)})

    return Starlette(
        routes=[
            *(Route(path, _static(*file)) for path, file in FILES.items()),
            Route("/api/facts", read(facts)),
            Route("/api/raw", read(_raw)),
            Route("/api/items", read(_run)),
            Route("/api/items", slab_of, methods=["POST"]),
            Route("/api/labels", read(_labels)),
            Route("/api/order", read(_order)),
            Route("/api/figures", read(_figures)),
            Route("/api/figures", change(_start), methods=["POST"]),
            Route("/api/means", read(_means)),
            Route("/api/item", read(_item)),
            Route("/api/confusion", read(_confusion)),
            Route("/api/journal", read(lambda exhibit, _: _json(_journal(exhibit)))),
            Route("/api/relabel", change(_relabel), methods=["POST"]),
            Route("/api/undo", change(_undo), methods=["POST"]),
            Route("/api/save", change(save), methods=["POST"]),
            Route("/api/sheet", change(_sheet), methods=["POST"]),
        ]
    )


def _answered(
    answer: Callable[[Exhibit, Request], Response], exhibits: Sequence[Exhibit], request: Request
) -> Response:
    """The answer of a function, or what went wrong, in words."""
    try:
        number = _number(request, "set", 0)
        if not 0 <= number < len(exhibits):
            raise BadRequest("there is no such data set")
        return answer(exhibits[number], request)
    except NotYetError:
        return _json({"error": "still counting"}, 202)
    except (ExpressionError, SavingError, BadRequest, IdxError) as error:
        hint = getattr(error, "hint", None)
        return _json({"error": str(error.args[0]), "hint": hint}, 400)
    except (IndexError, ValueError) as error:
        return _json({"error": str(error)}, 400)
    except OSError as error:
        return _json({"error": error.strerror or str(error)}, 500)
    except Exception as error:
        return _json({"error": f"a fault of idxfile: {type(error).__name__}: {error}"}, 500)


def _json(value: Any, status: int = 200) -> Response:
    data = json.dumps(_finite(value), separators=(",", ":"), allow_nan=False)
    return Response(data, status, media_type="application/json")


def _finite(value: Any) -> Any:
    """JSON has no NaN and no infinity: they are null."""
    if isinstance(value, dict):
        return {str(key): _finite(part) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _bytes(data: Any, status: int = 200, **headers: str) -> Response:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Response(data, status, named, media_type="application/octet-stream")


def _static(kind: str, data: bytes) -> Callable[..., Any]:
    async def endpoint(_: Request) -> Response:
        return Response(data, media_type=kind, headers={"cache-control": "no-cache"})

    return endpoint


def _number(request: Request, name: str, default: int | None = None) -> int:
    word = request.query_params.get(name)
    if word is None and default is not None:
        return default
    if word is None or not re.fullmatch(r"\d{1,15}", word):
        raise BadRequest(f"{name} is a whole number")
    return int(word)


def _parsed(body: bytes) -> Any:
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise BadRequest("the body is a JSON object")
    return value


def _text(body: Any, name: str) -> str:
    value = body.get(name)
    if not isinstance(value, str):
        raise BadRequest(f"{name} is a text")
    return value


def _items(exhibit: Exhibit, body: Any) -> Array:
    """The items that a body names: runs `[[start, stop], …]`, or the query of a view."""
    runs, query = body.get("items"), body.get("query")
    if isinstance(query, dict):
        return ordered(exhibit, Query.of(query)).astype(np.intp)
    try:
        pairs = np.array(runs, np.int64).reshape(-1, 2)
    except (ValueError, TypeError, OverflowError):
        raise BadRequest("items are runs of numbers") from None
    count = len(exhibit)
    if pairs.size and (pairs.min() < 0 or pairs.max() > count or (pairs[:, 0] > pairs[:, 1]).any()):
        raise BadRequest(f"there are {count:,} items")
    if int((pairs[:, 1] - pairs[:, 0]).sum()) > count:
        raise BadRequest("an item is named twice")
    return np.concatenate([np.arange(0), *(np.arange(a, b) for a, b in pairs)]).astype(np.intp)


def _raw(exhibit: Exhibit, request: Request) -> Response:
    """A range of the file as it lies there."""
    source = exhibit.file.raw
    if source is None:
        raise BadRequest("this file is not given out as it lies")
    asked = _RANGE.fullmatch(request.headers.get("range", ""))
    size = source.size
    if asked is None:
        return _bytes(b"", 416, content_range=f"bytes */{size}")
    start, stop = int(asked[1]), min(int(asked[2]) + 1, size)
    if start >= stop:
        return _bytes(b"", 416, content_range=f"bytes */{size}")
    data = source.read_at(start, min(stop, start + MOST_RAW_NBYTES))
    end = start + len(data) - 1
    return _bytes(data, 206, content_range=f"bytes {start}-{end}/{size}", accept_ranges="bytes")


def _run(exhibit: Exhibit, request: Request) -> Response:
    start, stop = _number(request, "from"), _number(request, "to")
    if not start <= stop <= len(exhibit):
        raise BadRequest(f"there are {len(exhibit):,} items")
    _refuse_too_many(exhibit, stop - start)
    return _slab(exhibit, np.arange(start, stop))


def _slab(exhibit: Exhibit, items: Array) -> Response:
    _refuse_too_many(exhibit, len(items))
    return _bytes(exhibit.slab(items))


def _refuse_too_many(exhibit: Exhibit, count: int) -> None:
    if count > 1 and count * exhibit.items.item_nbytes > MOST_SLAB_NBYTES:
        raise BadRequest("so many items are not given out at once")


def _labels(exhibit: Exhibit, request: Request) -> Response:
    """The label of each item as int32, or uint8 where all fit; least significant byte first."""
    rival = request.query_params.get("rival")
    labels = exhibit.labels if rival is None else exhibit.rival(_number(request, "rival"))
    if labels is None:
        raise BadRequest("there are no labels here")
    small = not labels.size or (labels.min() >= 0 and labels.max() < 256)
    return _bytes(labels.astype("u1" if small else "<i4").tobytes(), x_type="u1" if small else "i4")


def _order(exhibit: Exhibit, request: Request) -> Response:
    return _bytes(ordered(exhibit, Query.of(request.query_params)).tobytes())


def _figures(exhibit: Exhibit, _: Request) -> Response:
    exhibit.file  # noqa: B018 - opens it
    figures = exhibit.figures
    figures.start()
    return _json(
        {
            "state": figures.state,
            "done": round(figures.done, 3),
            "fault": figures.fault,
            "columns": list(figures.columns),
            "means": list(figures.means),
            "summary": figures.summary,
            "problems": None
            if figures.problems is None
            else [problem.as_dict() for problem in figures.problems],
        }
    )


def _start(exhibit: Exhibit, request: Request, _: Any) -> Response:
    exhibit.file  # noqa: B018 - opens it
    exhibit.figures.start(asked=True)
    return _figures(exhibit, request)


def _means(exhibit: Exhibit, _: Request) -> Response:
    """The mean item of every class, float32, most significant byte first."""
    means = exhibit.figures.means
    largest = np.finfo("f4").max  # a mean of float64 may lie beyond
    pictures = (mean.clip(-largest, largest).astype(">f4") for mean in means.values())
    return _bytes(b"".join(picture.tobytes() for picture in pictures))


def _item(exhibit: Exhibit, request: Request) -> Response:
    item = _number(request, "item")
    if item >= len(exhibit):
        raise BadRequest(f"there are {len(exhibit):,} items")
    table = exhibit.table
    stored = None if table is None else np.atleast_1d(table[item]).tolist()
    return _json({"item": item, "stored": stored, "figures": exhibit.figures.of_item(item)})


def _confusion(exhibit: Exhibit, request: Request) -> Response:
    return _json(confusion(exhibit, _number(request, "rival")))


def _journal(exhibit: Exhibit) -> dict[str, Any]:
    exhibit.file  # noqa: B018 - opens it
    changes = exhibit.journal.changes()
    labels, stored = exhibit.labels, exhibit.stored
    items = dict.fromkeys(change.item for change in changes)
    now = []
    if labels is not None and stored is not None:
        now = [[item, int(labels[item]), int(stored[item])] for item in items]
    return {
        "lines": len(changes),
        "file": exhibit.journal.path,
        "passed_over": exhibit.journal.passed_over,
        "now": now,
    }


def _relabel(exhibit: Exhibit, _: Request, body: Any) -> Response:
    items, label = _items(exhibit, body), body.get("label")
    stored = exhibit.stored
    if stored is None:
        raise BadRequest("there are no labels here")
    if type(label) is not int or abs(label) >= 1 << 31:
        raise BadRequest("a label is a whole number")
    exhibit.journal.relabel(items.tolist(), stored[items].tolist(), label)
    return _json(_journal(exhibit))


def _undo(exhibit: Exhibit, _: Request, body: Any) -> Response:
    exhibit.file  # noqa: B018 - opens it
    undone = exhibit.journal.undo()
    return _json({**_journal(exhibit), "undone": [change.item for change in undone]})


def _sheet(exhibit: Exhibit, _: Request, body: Any) -> Response:
    columns, scale = body.get("columns"), body.get("scale", 2)
    if not (columns is None or (type(columns) is int and 0 < columns <= 1000)):
        raise BadRequest("columns is a number from 1 to 1,000")
    if type(scale) is not int or not 0 < scale <= 16:
        raise BadRequest("scale is a number from 1 to 16")
    page = save_sheet(exhibit, _items(exhibit, body), columns, scale)
    return Response(page, media_type="image/png")
