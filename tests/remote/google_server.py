"""Google's storage on this machine: of its two interfaces what the clients here speak.

No emulator that can be installed has both the JSON interface, which gcsfs speaks, and uploads in
parts by the XML interface, as obstore sends them. What stands here follows Google's reference.
"""

from __future__ import annotations

import base64
import hashlib
import itertools
import json
import re
from email.utils import formatdate
from typing import NamedTuple
from urllib.parse import parse_qs, quote, unquote, urlsplit
from xml.sax.saxutils import escape

from logged_server import LoggedServer, Request, Response

_XML = {"Content-Type": "application/xml; charset=UTF-8"}


class Object(NamedTuple):
    data: bytes
    generation: int

    @property
    def tag(self) -> str:
        return f'"{hashlib.md5(self.data).hexdigest()}"'


class GoogleServer(LoggedServer):
    """A bucket `shelf`."""

    def __init__(self) -> None:
        super().__init__()
        self.shelf: dict[str, Object] = {}
        self.uploads: dict[str, tuple[str, dict[int, bytes]]] = {}
        self.tokens: set[str] | None = None
        """Who may come in, by a token or as the signer of one; None is everybody."""
        self._numbers = itertools.count(1_700_000_000_000_001)

    def put(self, name: str, data: bytes) -> Object:
        self.shelf[name] = Object(data, next(self._numbers))
        return self.shelf[name]

    def objects(self) -> dict[str, bytes]:
        return {name: found.data for name, found in self.shelf.items()}

    def unfinished(self) -> list[str]:
        """What was begun to be written, and neither finished nor given up."""
        return [name for name, _ in self.uploads.values()]

    def clear(self) -> None:
        self.shelf.clear()
        self.uploads.clear()
        self.tokens = None

    def answer(self, request: Request) -> Response:
        parts = urlsplit(request.path)
        query = {k: v[0] for k, v in parse_qs(parts.query, keep_blank_values=True).items()}
        if parts.path == "/token":
            return _json({"access_token": "token-of-the-key", "expires_in": 3600})
        token = request.headers.get("authorization", "").removeprefix("Bearer ")
        if self.tokens is not None and not self.tokens & {token, _signer(token)}:
            # Who is unknown is asked who it is; who is known, and may not, is refused.
            return _refused(request, 403 if token else 401)
        if found := re.fullmatch(r"(?:/download)?/storage/v1/b/(\w+)/o/(.+)", parts.path):
            return self._json_object(request, found[1], unquote(found[2]), query)
        if found := re.fullmatch(r"/storage/v1/b/([^/]+)/o/?", parts.path):
            return self._json_listing(found[1], query)
        if found := re.fullmatch(r"/storage/v1/b/([^/]+)", parts.path):
            return _json({"name": found[1]}) if found[1] == "shelf" else _missing(request)
        if found := re.fullmatch(r"/upload/storage/v1/b/([^/]+)/o", parts.path):
            return self._json_upload(request, found[1], query)
        bucket, _, name = unquote(parts.path).lstrip("/").partition("/")
        if bucket != "shelf":
            return _missing(request)
        if not name:
            return self._xml_listing(query)
        return self._xml_object(request, name, query)

    # The JSON interface

    def _json_object(
        self, request: Request, bucket: str, name: str, query: dict[str, str]
    ) -> Response:
        found = self.shelf.get(name) if bucket == "shelf" else None
        if found is None:
            return _missing(request)
        if request.method == "DELETE":
            del self.shelf[name]
            return Response(204, {}, b"")
        if query.get("alt") == "media":
            return _content(request, found)
        return _json(self._resource(name, found))

    def _resource(self, name: str, found: Object) -> dict[str, str]:
        return {
            "kind": "storage#object",
            "id": f"shelf/{name}/{found.generation}",
            "name": name,
            "bucket": "shelf",
            "generation": str(found.generation),
            "metageneration": "1",
            "contentType": "application/octet-stream",
            "storageClass": "STANDARD",
            "size": str(len(found.data)),
            "md5Hash": base64.b64encode(hashlib.md5(found.data).digest()).decode(),
            "etag": base64.b64encode(str(found.generation).encode()).decode(),
            "timeCreated": "2026-01-02T03:04:05.000Z",
            "updated": "2026-01-02T03:04:05.000Z",
            "mediaLink": f"{self.endpoint}/download/storage/v1/b/shelf/o/"
            f"{quote(name, safe='')}?generation={found.generation}&alt=media",
        }

    def _json_listing(self, bucket: str, query: dict[str, str]) -> Response:
        if bucket != "shelf":
            return Response(404, {}, b'{"error": {"code": 404, "message": "no such bucket"}}')
        names, folders = self._listed(query)
        items = [self._resource(name, self.shelf[name]) for name in names]
        return _json({"kind": "storage#objects", "items": items, "prefixes": folders})

    def _json_upload(self, request: Request, bucket: str, query: dict[str, str]) -> Response:
        if bucket != "shelf":
            return _missing(request)
        if query.get("uploadType") == "multipart":
            boundary = request.headers["content-type"].partition("boundary=")[2].strip("\"'")
            pieces = request.body.split(b"--" + boundary.encode())
            said, data = (
                piece.partition(b"\n\n" if b"\r" not in piece[:40] else b"\r\n\r\n")[2]
                for piece in pieces[1:3]
            )
            name = json.loads(said)["name"]
            return _json(self._resource(name, self.put(name, re.sub(rb"\r?\n\Z", b"", data))))
        if "upload_id" not in query:  # a resumable one begins
            name = query.get("name") or json.loads(request.body)["name"]
            key = f"upload-{next(self._numbers)}"
            self.uploads[key] = (name, {0: b""})
            where = f"{self.endpoint}{request.path}&upload_id={key}"
            return Response(200, {"Location": where}, b"")
        if query["upload_id"] not in self.uploads:
            return _missing(request)
        if request.method == "DELETE":
            del self.uploads[query["upload_id"]]
            return Response(499, {}, b"")
        return self._resumed(request, query["upload_id"])

    def _resumed(self, request: Request, key: str) -> Response:
        name, parts = self.uploads[key]
        said = request.headers.get("content-range", "bytes */*")
        start, _, total = re.fullmatch(r"bytes (?:(\d+)-(\d+)|\*)/(\d+|\*)", said).groups()  # type: ignore[union-attr]
        if start is not None and int(start) != len(parts[0]):
            return Response(400, {}, b"a piece that does not follow the one before")
        if total == "*" and len(request.body) % (1 << 18):
            return Response(400, {}, b"all pieces but the last are multiples of 256 KiB")
        parts[0] += request.body
        if total == "*":
            reached = {"Range": f"bytes=0-{len(parts[0]) - 1}"} if parts[0] else {}
            return Response(308, reached, b"")
        if int(total) != len(parts[0]):
            return Response(400, {}, b"it is not as long as was said")
        del self.uploads[key]
        return _json(self._resource(name, self.put(name, parts[0])))

    # The XML interface

    def _xml_object(self, request: Request, name: str, query: dict[str, str]) -> Response:
        if request.method in ("GET", "HEAD"):
            return _content(request, self.shelf[name]) if name in self.shelf else _missing(request)
        if request.method == "DELETE" and "uploadId" in query:
            return Response(204 if self.uploads.pop(query["uploadId"], None) else 404, {}, b"")
        if request.method == "DELETE":
            return Response(204 if self.shelf.pop(name, None) else 404, {}, b"")
        if request.method == "POST" and "uploads" in query:
            key = f"upload-{next(self._numbers)}"
            self.uploads[key] = (name, {})
            return _xml(
                "InitiateMultipartUploadResult",
                f"<Bucket>shelf</Bucket><Key>{escape(name)}</Key><UploadId>{key}</UploadId>",
            )
        if "uploadId" in query and query["uploadId"] not in self.uploads:
            return _missing(request)
        if request.method == "PUT" and "uploadId" in query:
            self.uploads[query["uploadId"]][1][int(query["partNumber"])] = request.body
            return Response(200, {"ETag": f'"{hashlib.md5(request.body).hexdigest()}"'}, b"")
        if request.method == "POST":
            return self._xml_completed(request, name, query["uploadId"])
        return Response(200, {"ETag": self.put(name, request.body).tag}, b"")

    def _xml_completed(self, request: Request, name: str, key: str) -> Response:
        parts = self.uploads[key][1]
        wanted = [int(n) for n in re.findall(rb"<PartNumber>(\d+)</PartNumber>", request.body)]
        if any(len(parts[number]) < 5 << 20 for number in wanted[:-1]):
            return Response(400, _XML, b"<Error><Code>EntityTooSmall</Code></Error>")
        del self.uploads[key]
        tag = self.put(name, b"".join(parts[number] for number in wanted)).tag
        return _xml(
            "CompleteMultipartUploadResult",
            f"<Bucket>shelf</Bucket><Key>{escape(name)}</Key><ETag>{escape(tag)}</ETag>",
        )

    def _xml_listing(self, query: dict[str, str]) -> Response:
        names, folders = self._listed(query)
        lines = [
            f"<Contents><Key>{escape(name)}</Key><Generation>{self.shelf[name].generation}"
            "</Generation><LastModified>2026-01-02T03:04:05.000Z</LastModified>"
            f"<ETag>{escape(self.shelf[name].tag)}</ETag>"
            f"<Size>{len(self.shelf[name].data)}</Size></Contents>"
            for name in names
        ]
        lines += [
            f"<CommonPrefixes><Prefix>{escape(name)}</Prefix></CommonPrefixes>" for name in folders
        ]
        return _xml(
            "ListBucketResult",
            f"<Name>shelf</Name><IsTruncated>false</IsTruncated>{''.join(lines)}",
        )

    def _listed(self, query: dict[str, str]) -> tuple[list[str], list[str]]:
        prefix, delimiter = query.get("prefix", ""), query.get("delimiter")
        names, folders = [], {}
        for name in sorted(self.shelf):
            rest = name.removeprefix(prefix)
            if not name.startswith(prefix):
                continue
            if delimiter and delimiter in rest:
                folders[prefix + rest.partition(delimiter)[0] + delimiter] = None
            else:
                names.append(name)
        return names, list(folders)


def _signer(token: str) -> str | None:
    """The account that a signed token names."""
    parts = token.split(".")
    if len(parts) != 3:
        return None
    account: str | None = json.loads(base64.urlsafe_b64decode(parts[1] + "==")).get("iss")
    return account


def _content(request: Request, found: Object) -> Response:
    """The bytes of an object, or a range of them, if it is the one that is meant."""
    meant = request.headers.get("if-match")
    if meant is not None and meant != found.tag:
        return Response(412, _XML, b"<Error><Code>PreconditionFailed</Code></Error>")
    size = len(found.data)
    headers = {
        "ETag": found.tag,
        "Last-Modified": formatdate(1.7e9, usegmt=True),
        "x-goog-generation": str(found.generation),
        "x-goog-stored-content-length": str(size),
        "Content-Type": "application/octet-stream",
    }
    if request.method == "HEAD":
        return Response(200, {**headers, "Content-Length": str(size)}, b"")
    wanted = re.fullmatch(r"bytes=(\d+)-(\d*)", request.wanted or "")
    if wanted is None:
        return Response(200, headers, found.data)
    start, stop = int(wanted[1]), min(size, int(wanted[2]) + 1 if wanted[2] else size)
    if start >= size:
        return Response(416, _XML, b"<Error><Code>InvalidRange</Code></Error>")
    headers["Content-Range"] = f"bytes {start}-{stop - 1}/{size}"
    return Response(206, headers, found.data[start:stop])


def _json(content: object) -> Response:
    return Response(200, {"Content-Type": "application/json"}, json.dumps(content).encode())


def _xml(root: str, content: str) -> Response:
    text = f"<?xml version='1.0' encoding='UTF-8'?><{root}>{content}</{root}>"
    return Response(200, _XML, text.encode())


def _missing(request: Request) -> Response:
    if "/storage/v1/" in request.path:
        return Response(404, {}, b'{"error": {"code": 404, "message": "Not Found"}}')
    return Response(404, _XML, b"<Error><Code>NoSuchKey</Code></Error>")


def _refused(request: Request, status: int) -> Response:
    if "/storage/v1/" in request.path:
        said = {"code": status, "message": "the caller does not have storage.objects.get access"}
        return Response(status, {}, json.dumps({"error": said}).encode())
    return Response(status, _XML, b"<Error><Code>AccessDenied</Code></Error>")
