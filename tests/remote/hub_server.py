"""A hub of data sets on this machine: of Hugging Face's interface what reading a file asks for."""

from __future__ import annotations

import hashlib
import json
import re
from urllib.parse import parse_qs, unquote, urlsplit

from logged_server import LoggedServer, Request, Response

REPOSITORY = "someone/shelf"


class HubServer(LoggedServer):
    """A repository of a data set, `datasets/someone/shelf`, with one branch."""

    def __init__(self) -> None:
        super().__init__()
        self.files: dict[str, bytes] = {}
        self.commit = 1
        self.tokens: set[str] | None = None
        """Who may come in; None is everybody."""
        self.gated = False
        """Whether it is known that there is something, and who is let in by name."""

    @property
    def sha(self) -> str:
        return f"{self.commit:040x}"

    def put(self, name: str, data: bytes) -> None:
        self.files[name] = data
        self.commit += 1

    def clear(self) -> None:
        self.files.clear()
        self.tokens, self.gated = None, False

    def answer(self, request: Request) -> Response:
        path = unquote(urlsplit(request.path).path)
        if found := re.fullmatch(r"/store/(\w+)/(.+)", path):
            # What it leads to lies elsewhere: nobody's token goes there.
            assert "authorization" not in request.headers
            return _content(request, self.files[found[2]])
        token = request.headers.get("authorization", "").removeprefix("Bearer ")
        if not path.startswith((f"/api/datasets/{REPOSITORY}", f"/datasets/{REPOSITORY}/")):
            return _error(404 if token else 401, "RepoNotFound", "Repository not found")
        if self.tokens is not None and token not in self.tokens:
            if self.gated:
                return _error(403, "GatedRepo", "Access to this data set is restricted")
            return _error(401, "RepoNotFound", "Invalid username or password.")
        rest = path.partition(REPOSITORY)[2]
        if path.startswith("/datasets/"):
            return self._resolve(rest.removeprefix("/resolve/").partition("/")[2])
        if rest.startswith("/revision/") or not rest:
            return _json({"id": REPOSITORY, "sha": self.sha, "siblings": [], "tags": []})
        expanded = parse_qs(urlsplit(request.path).query).get("expand", ["false"])[0]
        if rest.startswith("/tree/"):
            return self._tree(rest.removeprefix("/tree/").partition("/")[2], expanded)
        if rest.startswith("/paths-info/"):
            return self._paths_info(request.body)
        return _error(404, "EntryNotFound", "no such thing")

    def _tree(self, folder: str, expanded: str) -> Response:
        prefix = f"{folder}/" if folder else ""
        inside = {n.removeprefix(prefix) for n in self.files if n.startswith(prefix)}
        if folder and not inside:
            return _error(404, "EntryNotFound", f"{folder} does not exist on main")
        names = sorted({name.partition("/")[0] for name in inside})
        return _json([self._entry(prefix + name, expanded == "true") for name in names])

    def _paths_info(self, body: bytes) -> Response:
        if body.startswith(b"{"):
            asked = json.loads(body)
            paths, expanded = asked["paths"], bool(asked.get("expand"))
        else:
            form = parse_qs(body.decode())
            paths, expanded = form["paths"], form.get("expand") == ["True"]
        known = [n for n in paths if n in self.files or self._is_folder(n)]
        return _json([self._entry(name, expanded) for name in known])

    def _is_folder(self, name: str) -> bool:
        return any(each.startswith(f"{name}/") for each in self.files)

    def _entry(self, name: str, expanded: bool) -> dict[str, object]:
        commit = {"id": self.sha, "title": "t", "date": "2026-01-02T03:04:05.000Z"}
        more = {"lastCommit": commit} if expanded else {}
        if name not in self.files:
            return {"type": "directory", "path": name, "oid": self.sha, "size": 0, **more}
        data = self.files[name]
        return {
            "type": "file",
            "path": name,
            "oid": hashlib.sha1(data).hexdigest(),
            "size": len(data),
            "lfs": {
                "oid": hashlib.sha256(data).hexdigest(),
                "size": len(data),
                "pointerSize": 134,
            },
            **more,
        }

    def _resolve(self, name: str) -> Response:
        if name not in self.files:
            return _error(404, "EntryNotFound", "Entry not found")
        digest = hashlib.sha256(self.files[name]).hexdigest()
        where = {
            "Location": f"{self.endpoint.replace('127.0.0.1', 'localhost')}/store/{digest}/{name}",
            "X-Repo-Commit": self.sha,
            "X-Linked-Size": str(len(self.files[name])),
            "X-Linked-ETag": f'"{digest}"',
        }
        return Response(302, where, b"")


def _content(request: Request, data: bytes) -> Response:
    wanted = re.fullmatch(r"bytes=(\d+)-(\d*)", request.wanted or "")
    if wanted is None:
        return Response(200, {}, data)
    start, stop = int(wanted[1]), min(len(data), int(wanted[2] or len(data)) + 1)
    headers = {"Content-Range": f"bytes {start}-{stop - 1}/{len(data)}"}
    return Response(206, headers, data[start:stop])


def _json(content: object) -> Response:
    return Response(200, {"Content-Type": "application/json"}, json.dumps(content).encode())


def _error(status: int, code: str, text: str) -> Response:
    headers = {"X-Error-Code": code, "X-Error-Message": text}
    return Response(status, headers, json.dumps({"error": text}).encode())
