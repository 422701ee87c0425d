"""What a file that is not IDX may be instead, as one table.

The rows are tried in order against the first bytes of a file, and the first that fits names it.
An IDX file never fits a row: it begins with two zero bytes and a known element type, and no row
begins so.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

__all__ = ["SIGNATURES", "Signature"]


@dataclass(frozen=True, slots=True)
class Signature:
    """A row: how a format begins, and what to tell someone who took it for IDX."""

    name: str
    """The format, with its article, as it stands in a sentence."""
    fits: bytes | Callable[[bytes], bool]
    """The first bytes, or a test of the first kilobyte."""
    hint: str | None = None
    """What to do with such a file."""
    starts: tuple[bytes, ...] = ()
    """Four bytes that it usually begins with, where `fits` is a test."""

    def matches(self, prefix: bytes) -> bool:
        """Whether a file that begins with `prefix` is of this format."""
        if isinstance(self.fits, bytes):
            return prefix.startswith(self.fits)
        return self.fits(prefix)


def _text(prefix: bytes) -> bool:
    """Whether these bytes are printable text in UTF-8 (the last character may be cut)."""
    text = prefix.decode("utf-8", errors="ignore")
    return (
        len(prefix) - len(text.encode()) < 4
        and bool(text)
        and all(c.isprintable() or c in "\r\n\t\f" for c in text)
    )


def _begins(pattern: bytes, flags: int = 0) -> Callable[[bytes], bool]:
    compiled = re.compile(pattern, flags)
    return lambda prefix: compiled.match(prefix) is not None


def _tar(prefix: bytes) -> bool:
    # The mark stands far behind, where an IDX file has pixels; a member's name is never empty.
    return prefix[257:262] == b"ustar" and prefix[:1] != b"\0"


def _csv(prefix: bytes) -> bool:
    if not _text(prefix):
        return False
    lines = prefix.decode("utf-8", errors="ignore").splitlines()
    counts = {max(line.count(sep) for sep in ",;\t") for line in lines[: max(1, len(lines) - 1)]}
    return len(counts) == 1 and counts.pop() > 0


def _tfrecord(prefix: bytes) -> bool:
    # uint64 length, uint32 masked CRC of it, then a protobuf message (field 1, length-delimited)
    length = int.from_bytes(prefix[:8], "little")
    plausible = length < 1 << 31 and prefix[:2] != b"\0\0"  # two zero bytes begin an IDX file
    return len(prefix) > 13 and plausible and prefix[12] == 0x0A


CONVERT = "`idx convert` makes an IDX file of it"
WRITE = "read it with what wrote it, and give the array to `idxfile.write`"
DOWNLOAD = "a failed download? Fetch the file again, or open it in a browser to see what it says"

SIGNATURES: tuple[Signature, ...] = (
    Signature("a gzip file", b"\x1f\x8b"),
    Signature(
        "a bzip2 file",
        _begins(rb"BZh[1-9](1AY&SY|\x17rE8P\x90)"),
        starts=tuple(b"BZh%d" % level for level in range(1, 10)),
    ),
    Signature("an xz file", b"\xfd7zXZ\x00"),
    Signature("a Zstandard file", b"\x28\xb5\x2f\xfd"),
    Signature("a Zstandard file", _begins(rb"[\x50-\x5f]\x2a\x4d\x18", re.DOTALL)),
    Signature("an LZ4 file", b"\x04\x22\x4d\x18", "decompress it first (`lz4 -d`)"),
    Signature(
        "a zip archive",
        _begins(rb"PK(\x03\x04|\x05\x06|\x07\x08)"),
        "unpack it, and give one of its members (an .npz is a zip archive too: `idx convert`)",
        (b"PK\x03\x04",),
    ),
    Signature("a 7-zip archive", b"7z\xbc\xaf\x27\x1c", "unpack it, and give one of its files"),
    Signature("a RAR archive", b"Rar!\x1a\x07", "unpack it, and give one of its files"),
    Signature("a tar archive", _tar, "unpack it, and give one of its members"),
    Signature("a NumPy .npy file", b"\x93NUMPY", CONVERT),
    Signature("a MATLAB 7.3 (HDF5) file", b"MATLAB 7.3 MAT-file", CONVERT),
    Signature("a MATLAB 5 file", b"MATLAB 5.0 MAT-file", CONVERT),
    Signature("an HDF5 file", b"\x89HDF\r\n\x1a\n", CONVERT),
    Signature("a Parquet file", b"PAR1", CONVERT),
    Signature("an Arrow file", b"ARROW1", CONVERT),
    Signature("a Feather (version 1) file", b"FEA1", WRITE),
    Signature("a PNG picture", b"\x89PNG\r\n\x1a\n", CONVERT),
    Signature("a JPEG picture", b"\xff\xd8\xff", CONVERT),
    Signature("a GIF picture", b"GIF8", CONVERT),
    Signature("a TIFF picture", _begins(rb"II\*\x00|MM\x00\*"), CONVERT),
    Signature("a WebP picture", _begins(rb"RIFF....WEBP", re.DOTALL), CONVERT),
    Signature("a PGM or PPM picture", _begins(rb"P[1-6][\s#]"), CONVERT),
    Signature("a BMP picture", _begins(rb"BM.{4}\x00{4}", re.DOTALL), CONVERT),
    Signature("a PDF document", b"%PDF-"),
    Signature("an SQLite database", b"SQLite format 3\x00"),
    Signature("an ELF program", b"\x7fELF"),
    Signature("a Git pack index", b"\xfftOc", "it lists the objects of a Git pack, not a tensor"),
    Signature("a Git pack", b"PACK"),
    Signature("a Git LFS pointer", b"version https://git-lfs", "fetch the file: `git lfs pull`"),
    Signature(
        "a VobSub subtitle index", b"# VobSub index file", "it lists subtitles, not a tensor"
    ),
    Signature("an OpenVisus index", b"(version)", "read it with OpenVisus, then convert the array"),
    Signature("a LaTeX index", _begins(rb"\\indexentry"), "it lists index entries, not a tensor"),
    Signature("a Lush text matrix", b".MAT", "save it in Lush's binary form"),
    Signature("a pickle", _begins(rb"\x80[\x02-\x05][\x8c\x95c\]}(KX]", re.DOTALL), WRITE),
    Signature(
        "an HTML page",
        _begins(
            rb"(\xef\xbb\xbf)?\s*(<!--.*?-->\s*)?<(!doctype html|html|head|body)\b", re.I | re.S
        ),
        DOWNLOAD,
        (b"<!DO", b"<!do", b"<htm", b"<HTM", b"<hea", b"<HEA"),
    ),
    Signature("an XML document", _begins(rb"(\xef\xbb\xbf)?\s*<\?xml", re.I), DOWNLOAD, (b"<?xm",)),
    Signature("a TFRecord file", _tfrecord, WRITE),
    Signature(
        "a JSON document",
        lambda prefix: _begins(rb'\s*(\{\s*["}]|\[\s*[\[\]{"\d-])')(prefix) and _text(prefix),
        CONVERT,
    ),
    Signature("a CSV table", _csv, CONVERT),
    Signature("a text file", lambda prefix: len(prefix) > 7 and _text(prefix)),
)


PICTURE_KINDS = tuple(row.name for row in SIGNATURES if row.name.endswith(" picture"))
"""The rows that are pictures."""


def recognise(prefix: bytes) -> Signature | None:
    """The row that the first bytes of a file fit, or None."""
    return next((row for row in SIGNATURES if row.matches(prefix)), None)


def describe(prefix: bytes) -> str | None:
    """What a file is that begins with `prefix`, for a sentence; a page with its short title."""
    row = recognise(prefix)
    if row is None:
        return None
    title = re.search(rb"<title[^>]*>\s*([^<]{1,80}?)\s*</title", prefix, re.I)
    if row.hint is DOWNLOAD and title:
        text = " ".join(title[1].decode("utf-8", errors="replace").split())
        printed = "".join(c for c in text if c.isprintable())
        return f"{row.name} titled “{printed}”"
    return row.name


def beginning_with(first: bytes) -> Signature | None:
    """The row of which a file may begin with these four bytes, or None."""
    for row in SIGNATURES:
        starts = (row.fits[:4],) if isinstance(row.fits, bytes) else row.starts
        if first.startswith(starts):
            return row
    return None
