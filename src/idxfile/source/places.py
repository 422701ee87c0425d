"""Places as they are written: paths, addresses, and what lies beside a file.

A folder of this machine and one in a store are asked the same questions.
"""

from __future__ import annotations

import errno
import os
import re
import sys
from typing import Any, NamedTuple
from urllib.parse import unquote, urlsplit

from ..codecs import CODECS, codec_of_name
from ..errors import PairError, printable
from ..names import FileName, file_name
from ..shards import MANIFEST_SUFFIX, folded, shard_name, without_number

__all__ = ["beside", "file_of", "find_partner", "is_url", "names_in", "partners_of", "public"]

_URL = re.compile(r"(?:[a-z][a-z0-9+.-]+::)*([a-z][a-z0-9+.-]+)://", re.IGNORECASE)


_ESCAPED = re.compile(r"\[([*?[])\]")
"""What `glob.escape` makes of a character of a name."""

_NUMBERS = re.compile(r"-\?{5,}(?=-of-[0-9])")
"""The numbers of shards in a pattern; in an address, where `?` is no sign of one, `*` stands."""


def unescaped(pattern: str) -> str:
    """A pattern that stands for itself alone, as the name that it is."""
    return _ESCAPED.sub(r"\1", pattern)


class Address(NamedTuple):
    """The parts of an address, as they are written."""

    scheme: str
    host: str
    """Of a store: the bucket."""
    path: str
    tail: str = ""
    """Query and fragment of a web page. In a store both are characters of a name."""

    def __str__(self) -> str:
        return f"{self.scheme}://{self.host}{self.path}{self.tail}"


def parts_of(url: str) -> Address:
    """The parts of an address, which may be the pattern of a set of shards."""
    return address_of(unescaped(_NUMBERS.sub("-*", url)))


def address_of(url: str) -> Address:
    """The parts of an address that is meant as it is written."""
    scheme, _, rest = url.partition("://")
    tail = ""
    if scheme.lower().endswith(("http", "https")):
        page = re.split("(?=[?#])", rest, maxsplit=1)[0]
        rest, tail = page, rest[len(page) :]
    host, slash, path = rest.partition("/")
    return Address(scheme.lower(), host, slash + path, tail)


def is_url(place: Any) -> bool:
    """Whether a place is an address, as `https://…` or `s3://…`, and no path."""
    return isinstance(place, str) and _URL.match(place) is not None


def is_pattern(place: str) -> bool:
    """Whether a path has characters that stand for others, as `x-*.idx`."""
    return any(character in place for character in "*?[")


def may_be_several(place: str) -> bool:
    """Whether what is no folder may stand for several files: a pattern, a manifest, an address."""
    return is_pattern(place) or file_of(place).endswith((MANIFEST_SUFFIX, "/"))


def is_folder(place: str) -> bool:
    """Whether a place is a folder: one that is here, or an address that ends in `/`."""
    return file_of(place).endswith("/") if is_url(place) else os.path.isdir(place)


def refuse_folder(place: str) -> None:
    """Make sure that a place where a file is to be written has the name of one.

    Raises:
        IsADirectoryError: for what ends in `/`, here or in a store, whether it is there or not.
    """
    if file_of(place).endswith("/"):
        raise IsADirectoryError(errno.EISDIR, "Is a folder; give a file name in it", public(place))


def local_path(place: str) -> str:
    """The path that a place means; `file://` is another way of writing one."""
    if place[:7].lower() != "file://":
        return place
    return unquote(urlsplit(place).path)


def is_archive(place: str) -> bool:
    """Whether a place is a member of an archive: `zip://MEMBER::ARCHIVE`."""
    return place[:6].lower() == "zip://" and "::" in place


def split_archive(place: str) -> tuple[str, str]:
    """The member, and the archive that it lies in."""
    member, _, archive = place[6:].partition("::")
    return member.lstrip("/"), archive


def absolute(place: str) -> str:
    """A place that means the same in every folder."""
    if is_archive(place):
        member, archive = split_archive(place)
        return f"zip://{member}::{absolute(archive)}"
    place = local_path(place)
    return place if is_url(place) else os.path.join(os.getcwd(), place)


def is_far(place: str) -> bool:
    """Whether the bytes of a place come over a network: a member lies where its archive does."""
    return is_url(split_archive(place)[1] if is_archive(place) else place)


def from_anywhere(place: str) -> str:
    """A place as a process finds it that stands in another folder."""
    return place if is_url(place) else os.path.abspath(place)


def public(place: str) -> str:
    """A place as it may be shown: an address without user, password, query and fragment.

    What stands before the host of Azure's own addresses is no user: it is the container. In a store
    `?` is a character of a name; what reads as a query all the same may be a signature.
    """
    if is_archive(place):
        member, archive = split_archive(place)
        return f"zip://{member}::{public(archive)}"
    if not is_url(place):
        return place
    parts = parts_of(place)
    user, at, host = parts.host.rpartition("@")
    if parts.scheme in ("abfs", "abfss"):
        host = f"{user.partition(':')[0]}{at}{host}"
    path = re.sub(r"\?[^?/]*=.*", "?…", parts.path, flags=re.DOTALL)
    return str(Address(parts.scheme, host, path))


def beside(url: str, name: str) -> str:
    """The address of another name in the folder of this one."""
    if is_archive(url):
        member, archive = split_archive(url)
        return f"zip://{os.path.join(os.path.dirname(member), name)}::{archive}"
    parts = parts_of(url)
    return str(parts._replace(path=os.path.join(os.path.dirname(parts.path or "/"), name)))


def file_of(place: str) -> str:
    """What of a place is the name of the file: an address without its query."""
    if is_archive(place):
        return split_archive(place)[0]
    return parts_of(place).path if is_url(place) else place


def home() -> str:
    """The folder of what is kept: IDXFILE_HOME, or `idxfile` in the user's cache folder."""
    chosen = os.environ.get("IDXFILE_HOME")
    if chosen:
        return os.path.abspath(os.path.expanduser(chosen))
    caches = os.path.join("~", "Library", "Caches") if sys.platform == "darwin" else "~/.cache"
    if sys.platform != "darwin" and os.path.isabs(os.environ.get("XDG_CACHE_HOME", "")):
        caches = os.environ["XDG_CACHE_HOME"]
    return os.path.join(os.path.expanduser(caches), "idxfile")


def names_in(folder: str) -> list[str] | None:
    """The files of a folder, sorted; None where a store cannot tell.

    Raises:
        OSError: as the system gives it.
    """
    if is_url(folder):
        from .remote import list_folder

        return list_folder(folder)
    return sorted(entry.path for entry in os.scandir(folder) if os.path.isfile(entry.path))


def exists(place: str) -> bool:
    """Whether there is a file at a place, here or in a store.

    Raises:
        PermissionError: where a store does not tell whoever asks, a FetchError as well.
        FetchError: where a store does not tell.
    """
    if not is_url(place):
        return os.path.isfile(local_path(place))
    from .remote import exists as is_object

    return is_object(place)


def download(url: str, file: Any) -> None:
    """Write an object as it lies in its store into a file object, in constant memory."""
    from .remote import open_remote

    source = open_remote(url, 1 << 20)
    try:
        stream = source.in_order()
        while piece := stream.read(1 << 18):
            file.write(piece)
    finally:
        source.close()


def partners_of(place: str) -> list[str]:
    """The files beside one that could be the other half of its pair."""
    mine = file_name(file_of(place))
    if mine is None:
        return []
    wanted = FileName("labels" if mine.role == "images" else "images", mine.shared)
    if is_url(place):
        asked = _asked_for([beside(place, name) for name in _likely_names(place)])
        if asked:
            return asked
        folder = beside(place, "")
    else:
        folder = os.path.dirname(place) or os.curdir
        if is_pattern(folder) and not os.path.isdir(folder):
            folder = unescaped(folder)
    fitting = (path for path in names_in(folder) or () if file_name(file_of(path)) == wanted)
    return folded(fitting)


def find_partner(place: str) -> str | None:
    """The other file of a pair, in the same folder, under any usual name; None where it is not.

    Raises:
        PairError: when several files could be it.
    """
    found = partners_of(place)
    if len(found) > 1:
        # The one that is written as ours is ours: compressed or not, with the same decoration.
        packed = codec_of_name(place) is not None
        same = [p for p in found if (codec_of_name(p) is not None) == packed]
        if len(same) != 1:
            names = " and ".join(printable(os.path.basename(p)) for p in found)
            role = file_name(file_of(found[0]))
            raise PairError(
                f"{names} could both be its {role.role if role else 'partner'}",
                file=place,
                found=found,
                hint="name the one that is meant",
            )
        found = same
    return found[0] if found else None


_TURNED = {"images": "labels", "labels": "images", "idx3": "idx1", "idx1": "idx3"}
_TURNED_WORDS = re.compile("|".join(_TURNED))


def _likely_names(place: str) -> list[str]:
    """What the other half is probably called: in the words of this one, packed as it or not.

    Beside shards, the other half may be as many, or one file.
    """
    base = os.path.basename(file_of(place))
    turned = _TURNED_WORDS.sub(lambda word: _TURNED[word[0]], base)
    if turned == base:
        return []
    single = without_number(turned)
    bare = single[: single.rindex(".")] if codec_of_name(single) else single
    packed = [bare + row.suffixes[0] for row in CODECS if row.name in ("gz", "zst")]
    return list(dict.fromkeys([turned, single, bare, *packed]))


def _asked_for(candidates: list[str]) -> list[str]:
    """The first of these addresses where something is, as a list of one, or of none."""
    return next(([url] for url in candidates if _is_shown(_first_of(url))), [])


def _is_shown(place: str) -> bool:
    """Whether there is a file that may be read: a store that hides what it has not, refuses."""
    try:
        return exists(place)
    except PermissionError:
        return False


def _first_of(url: str) -> str:
    """The first shard of a pattern that counts them; any other address as it is."""
    parts = shard_name(os.path.basename(file_of(url)))
    return url if parts is None or parts.number is not None else beside(url, parts.numbered(0))
