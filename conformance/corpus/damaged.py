"""Wrong compressed files: cut, damaged, or right streams of something wrong."""

from __future__ import annotations

from .bad import CUBE, HTML
from .compressed import BZIPPED, CUBE_BZIPPED, XZIPPED, ZSTD
from .containers import fixed, gz, xz, zst, zst_block, zst_skippable
from .row import Problem, Row, problem

DAMAGED = problem("stream-damaged")
"""Where decoding stops is the decoder's own: the offset is not compared."""

FEW = Problem("data", "truncated")
"""Some decoders end without a word: then the elements are too few."""


def wrong(name: str, why: str, data: bytes, *refusals: Problem) -> Row:
    """A wrong file in a compression, which is the first word of its name."""
    codec = name.partition("-")[0]
    return Row(name, why, data, (codec,), refusals=refusals, suffix=f".idx.{codec}")


def cut(name: str, why: str, data: bytes, nbytes: int, whole: bool = False) -> Row:
    """The first `nbytes` of a stream; `whole` says that all of its content is in them."""
    found = problem("stream-truncated", nbytes)
    return wrong(name, why, data[:nbytes], found, DAMAGED, *(() if whole else (FEW,)))


def checksum(name: str, why: str, data: bytes, offset: int) -> Row:
    """A stored check that does not hold, and where it stands."""
    return wrong(name, why, data, problem("stream-checksum", offset), DAMAGED)


def flipped(data: bytes, offset: int, mask: int = 1) -> bytes:
    """The data with some bits of one byte turned."""
    return data[:offset] + bytes((data[offset] ^ mask,)) + data[offset + 1 :]


GZ = gz(CUBE)
"""10 bytes of header, 5 of block, 24 of content, CRC at 39, length at 43."""

GZIP = (
    cut("gz-cut-magic", "Only the two bytes of the magic.", GZ, 2),
    cut("gz-cut-header", "Cut inside the member's header.", GZ, 9),
    cut("gz-cut-after-header", "Cut right behind the member's header.", GZ, 10),
    cut("gz-cut-name", "Cut inside the stored name.", gz(CUBE, name=b"labels"), 13),
    cut("gz-cut-extra", "Cut inside the extra field.", gz(CUBE, extra=bytes(20)), 20),
    cut("gz-cut-block", "Cut inside the head of the block.", GZ, 13),
    cut("gz-cut-content-header", "Cut where the content is inside its header.", GZ, 21),
    cut("gz-cut-content", "Cut where one byte of the content is missing.", GZ, 38),
    cut("gz-cut-fixed", "Cut before the end mark of a Huffman block.",
        gz(CUBE, fixed(CUBE)), 9 + len(fixed(CUBE))),
    cut("gz-cut-trailer", "All content is there, the checksum and the length are not.", GZ, 39,
        whole=True),
    cut("gz-cut-crc", "Cut inside the checksum.", GZ, 41, whole=True),
    cut("gz-cut-last", "The last byte is missing.", GZ, 46, whole=True),
    cut("gz-cut-second", "Cut inside the second of two members.",
        gz(CUBE[:9]) + gz(CUBE[9:]), 50),
    cut("gz-cut-second-header", "Cut inside the header of the second member, and the first one "
        "has all content.", GZ + gz(b""), 52, whole=True),
    checksum("gz-crc", "The stored CRC is wrong.", flipped(GZ, 39, 0xFF), 39),
    checksum("gz-length", "The stored length is wrong.", flipped(GZ, 43), 43),
    checksum("gz-flipped", "One bit of the content turned on its way.", flipped(GZ, 35), 39),
    checksum("gz-flipped-header", "One bit of a dimension turned on its way: the checksum tells "
             "more than the length.", flipped(GZ, 22), 39),
    checksum("gz-crc-first", "The first of two members has a wrong CRC.",
             gz(CUBE[:9], crc=1) + gz(CUBE[9:]), 24),
    checksum("gz-crc-second", "The second of two members has a wrong CRC.",
             gz(CUBE[:9]) + gz(CUBE[9:], crc=1), 62),
    checksum("gz-crc-empty", "An empty member behind the file has a wrong CRC.",
             GZ + gz(b"", crc=1), 62),
    wrong("gz-method", "A compression method that gzip never had.",
          gz(CUBE, start=b"\x1f\x8b\7"), DAMAGED),
    wrong("gz-reserved", "A reserved flag is set: the RFC wants an error.",
          gz(CUBE, reserved=0x20), DAMAGED),
    wrong("gz-block-type", "Block type 3, which there is not.", gz(CUBE, b"\7" + bytes(8)),
          DAMAGED),
    wrong("gz-block-length", "The length of a stored block and its complement disagree.",
          flipped(GZ, 13), DAMAGED),
    wrong("gz-distance", "A copy from before the beginning.",
          gz(CUBE, fixed(b"\0", 1, distance_code=3)), DAMAGED, FEW),
    wrong("gz-bad-code", "A Huffman code that stands for nothing.",
          gz(CUBE, bytes.fromhex("1b03")), DAMAGED),
    wrong("gz-second-damaged", "The second of two members is damaged.",
          gz(CUBE[:9]) + gz(CUBE[9:], b"\7" + bytes(8)), DAMAGED, FEW),
    wrong("gz-empty-file", "An empty file, compressed.", gz(b""), problem("empty", 0),
          problem("short-header", 0)),
    wrong("gz-short-header", "A right stream of a header that is cut.", gz(CUBE[:10]),
          problem("short-header", 10), Problem("dimension", offset=10)),
    wrong("gz-truncated", "A right stream of a file that was cut before.", gz(CUBE[:-1]),
          problem("truncated", 23)),
    wrong("gz-trailing", "A right stream of a file with one byte too many.", gz(CUBE + b"\n"),
          problem("trailing-data", 24)),
    wrong("gz-unknown-type", "A right stream of an unknown type.",
          gz(bytes.fromhex("00000a0100000001 07")), problem("unknown-type", 2)),
    wrong("gz-html", "A right stream of a page.", gz(HTML), problem("foreign", 0),
          problem("bad-magic", 0)),
    wrong("gz-bomb", "24 bytes promised, a million zeros behind them: stop one byte after what the "
          "header promises.",
          gz(CUBE + bytes(1 + 258 * 4000), fixed(CUBE + b"\0", 4000)),
          problem("trailing-data", 24)),
    wrong("gz-little", "A right stream of a file with a little-endian header.",
          gz(bytes.fromhex("01080000020000000708")), problem("swapped-header", 0),
          problem("bad-magic", 0)),
)  # fmt: skip

BZIP2 = (
    cut("bz2-cut-magic", "Only the four bytes of the magic.", CUBE_BZIPPED, 4),
    cut("bz2-cut", "Cut in the middle of the block.", BZIPPED, 60),
    cut("bz2-cut-last", "The last byte is missing.", CUBE_BZIPPED, 49),
    cut("bz2-cut-second", "Cut inside the second of two streams.",
        CUBE_BZIPPED + bytes.fromhex("425a683917724538509000000000"), 60, whole=True),
    checksum("bz2-crc", "The CRC of the block is wrong.", flipped(CUBE_BZIPPED, 10), 10),
    wrong("bz2-damaged", "The mark of the block is wrong.", flipped(CUBE_BZIPPED, 5), DAMAGED),
    wrong("bz2-end", "The combined CRC at the end is wrong.", flipped(CUBE_BZIPPED, 47),
          problem("stream-checksum"), DAMAGED),
)  # fmt: skip

XZ_STREAM = xz(CUBE)
"""12 bytes of header, 12 of block header, 28 of chunk, check at 52, index at 60, end at 68."""

XZ = (
    cut("xz-cut-header", "Cut inside the stream's header.", XZ_STREAM, 9),
    cut("xz-cut-block", "Cut inside the block.", XZ_STREAM, 40),
    cut("xz-cut-check", "All content is there, its check is not.", XZ_STREAM, 52, whole=True),
    cut("xz-cut-index", "Cut inside the index.", XZ_STREAM, 62, whole=True),
    cut("xz-cut-last", "The last byte is missing.", XZ_STREAM, len(XZ_STREAM) - 1, whole=True),
    checksum("xz-check", "The CRC-64 of the block is wrong.", flipped(XZ_STREAM, 52), 52),
    checksum("xz-flipped", "One bit of the content turned on its way.", flipped(XZ_STREAM, 47),
             52),
    wrong("xz-index", "The index tells another length than the block has.",
          flipped(XZ_STREAM, 62), DAMAGED, problem("stream-checksum")),
    wrong("xz-end", "The last two letters of the stream are wrong.",
          flipped(XZ_STREAM, len(XZ_STREAM) - 1), DAMAGED),
    wrong("xz-damaged", "One byte of LZMA data is another.", flipped(XZIPPED, 60, 0xFF), DAMAGED,
          problem("stream-checksum")),
)  # fmt: skip

ZST = zst(CUBE)
"""6 bytes of header, 3 of block header, 24 of content, the checksum at 33."""

ZSTANDARD = (
    cut("zst-cut-header", "Cut inside the frame's header.", ZST, 5),
    cut("zst-cut-block", "Cut inside the block.", ZST, 20),
    cut("zst-cut-check", "All content is there, the checksum is not.", ZST, 33, whole=True),
    cut("zst-cut-last", "The last byte is missing.", ZST, 36, whole=True),
    cut("zst-cut-skippable", "Cut inside a frame to be skipped.", ZST + zst_skippable(bytes(9)),
        50, whole=True),
    checksum("zst-check", "The checksum is wrong.", flipped(ZST, 33), 33),
    checksum("zst-flipped", "One bit of the content turned on its way.", flipped(ZST, 30), 33),
    wrong("zst-block-type", "Block type 3, which is reserved.",
          zst(CUBE, zst_block(CUBE, kind=3)), DAMAGED),
    wrong("zst-size", "The frame tells another length than its content has.", flipped(ZST, 5),
          DAMAGED),
    wrong("zst-damaged", "One byte of compressed data is another.", flipped(ZSTD, 40, 0xFF),
          DAMAGED, problem("stream-checksum")),
    wrong("zst-nothing", "Only a frame to be skipped: an empty file.", zst_skippable(b"note"),
          problem("empty", 0), problem("short-header", 0)),
)  # fmt: skip

ROWS = (*GZIP, *BZIP2, *XZ, *ZSTANDARD)
