"""Right files in every compression, and right files that bring something along."""

from __future__ import annotations

from typing import Any

from .bad import CUBE
from .containers import BGZF_END, bgzf, fixed, gz, xz, zst, zst_block, zst_skippable
from .row import Answer, Problem, Row, header, pattern, problem

CUBE_ANSWER = Answer("uint8", (2, 2, 2), bytes(range(1, 9)))

INT32 = header("int32", 2) + bytes.fromhex("ffffffff 00011170")
INT32_ANSWER = Answer("int32", (2,), bytes.fromhex("ffffffff 00011170"))


def _classes() -> bytes:
    """200 labels of four classes in no order: enough for a code of its own to pay."""
    state, labels = 1, []
    for _ in range(200):
        state = (state * 75 + 74) % 65537
        labels.append(state >> 8 & 3 if state >> 15 else 0)
    return bytes(labels)


CLASSES = _classes()
CLASSES_ANSWER = Answer("uint8", (200,), CLASSES)

# Made by the reference programs at their highest level, and kept as they came out: 200 labels.
DEFLATED = bytes.fromhex(
    "454ec901c03008e2f864ffa93a56456d9a870a22043804f00046867adbc2a86985722f38ac086b557f57c62e05bc"
    "f2ebd5c01c5df68552a89cec416ddad8e3cb4d2e11b99fd39756600c4cdf9c17"
)
BZIPPED = bytes.fromhex(
    "425a68393141592653594760ecca00001d40047e40004020008818caa69824d144d030133863742247521312aaba"
    "13755b7f7a8aee699867636cc562b1195016a79937386854ad1b6d716e64c99aae1ea4f2713a9587e2ee48a70a12"
    "08ec1d9940"
)
XZIPPED = bytes.fromhex(
    "fd377a585a000004e6d6b4460200210116000000742fe5a3e000cf00585d0000601e8210481883e631132899c875"
    "197bbcffaf681a75bb67babfca0e0450378e2ed40201071adcbb4f80ceacda3731726f0f331cb856da97d4935666"
    "e38fbf5ad451c25a1457f03221afa11716ba0e9dc33620abcb976300daa48b907eeb1ff3000174d0010000003683"
    "af62b1c467fb020000000004595a"
)
ZSTD = bytes.fromhex(
    "28b52ffd24d02d0200428b0d0be0190e000000ae1f5bee1401018f80db2f7c80e0318477bc68153ce2b1b51087e3"
    "3f0c635faf7f11da188663188c1bfff0c3780e720300b8860295aa02c2ed9e0168a01a3c"
)

CUBE_BZIPPED = bytes.fromhex(
    "425a6839314159265359abea8ace00000340007fc0200031064c40d34c86890ba840b34d279bd278bb9229c28485"
    "5f545670"
)
"""The 24 bytes of the cube, by bzip2: its block's CRC stands at byte 10."""

TWICE = ({"kind": "compressed-twice"},)


def packed(
    name: str,
    why: str,
    data: bytes,
    answer: Answer = CUBE_ANSWER,
    *refusals: Problem,
    more_tags: tuple[str, ...] = (),
    warnings: tuple[dict[str, Any], ...] = (),
    suffix: str | None = None,
) -> Row:
    """A right file in a compression, which is the first word of its name."""
    codec = name.partition("-")[0]
    suffix = f".idx.{codec}" if suffix is None else suffix
    tags = (codec, *more_tags)
    return Row(name, why, data, tags, answer, refusals, warnings, suffix=suffix)


def junk(name: str, why: str, stream: bytes, rest: bytes) -> Row:
    """A right stream and something else behind it: read, with a warning, or refused."""
    found = problem("stream-junk", len(stream))
    warning = {"kind": "stream-junk", "offset": len(stream)}
    return packed(name, why, stream + rest, CUBE_ANSWER, found, warnings=(warning,))


WRONG_HEADER_CRC = (problem("stream-checksum", 10), problem("stream-damaged"))
"""RFC 1952 leaves it open whether a reader looks at it."""

GZIP = (
    packed("gz-stored", "Not compressed, only wrapped.", gz(CUBE)),
    packed("gz-fixed", "The fixed Huffman code.", gz(CUBE, fixed(CUBE))),
    packed("gz-dynamic", "A Huffman code of its own, as nearly all files have.",
           gz(header("uint8", 200) + CLASSES, DEFLATED), CLASSES_ANSWER),
    packed("gz-matches", "Copies from one byte before: runs of zeros.",
           gz(header("uint8", 517) + bytes(517), fixed(header("uint8", 517) + b"\0", 2)),
           Answer("uint8", (517,), bytes(517))),
    packed("gz-int32", "Elements of four bytes: order is turned after inflating.", gz(INT32),
           INT32_ANSWER),
    packed("gz-blocks", "Several blocks in one member, an empty one among them.",
           gz(CUBE, b"\0\x06\0\xf9\xff" + CUBE[:6] + b"\0\0\0\xff\xff" + fixed(CUBE[6:]))),
    packed("gz-scalar", "The smallest right file, compressed.", gz(bytes.fromhex("0000080007")),
           Answer("uint8", (), b"\7")),
    packed("gz-empty-array", "No items, compressed.", gz(header("uint8", 0, 28, 28)),
           Answer("uint8", (0, 28, 28), b"")),
    packed("gz-big", "More bytes than one stored block of some writers.",
           gz(header("uint8", 40, 28, 28) + pattern(31360)),
           Answer("uint8", (40, 28, 28), pattern(31360))),
    packed("gz-name", "The member stores the name of the file.",
           gz(CUBE, name=b"train-images.idx3-ubyte", mtime=0x32C5D9BB)),
    packed("gz-comment", "The member stores a comment.", gz(CUBE, comment=b"made by hand")),
    packed("gz-extra", "The member has an extra field.", gz(CUBE, extra=b"Id\3\0abc")),
    packed("gz-extra-empty", "The extra field is there and empty.", gz(CUBE, extra=b"")),
    packed("gz-extra-long", "An extra field of 65,535 bytes, the most there can be, so that the "
           "data begin late.", gz(CUBE, extra=b"xx\xfb\xff" + bytes(65531))),
    packed("gz-text", "The flag that says it is text, which means nothing.", gz(CUBE, text=True)),
    packed("gz-header-crc", "The header has a checksum of its own.", gz(CUBE, header_crc=True)),
    packed("gz-all-fields", "All fields that a header can have.", gz(
        CUBE, text=True, extra=b"Id\1\0x", name=b"cube", comment=b"c", header_crc=True)),
    packed("gz-header-crc-wrong", "The checksum of the header is wrong; a reader may look at it.",
           gz(CUBE, header_crc=0x1234), CUBE_ANSWER, *WRONG_HEADER_CRC),
    packed("gz-members", "Two members, one behind the other: one file.",
           gz(CUBE[:20]) + gz(CUBE[20:])),
    packed("gz-members-header", "The first member ends inside the header.",
           gz(CUBE[:6]) + gz(CUBE[6:])),
    packed("gz-members-bytes", "A member for each byte.",
           b"".join(gz(bytes((byte,))) for byte in CUBE)),
    packed("gz-members-mixed", "Members with and without names, in different codes.",
           gz(CUBE[:3], name=b"a") + gz(CUBE[3:9], fixed(CUBE[3:9])) + gz(CUBE[9:], extra=b"")),
    packed("gz-empty-first", "The first member is empty.", gz(b"") + gz(CUBE)),
    packed("gz-empty-middle", "A member in the middle is empty.",
           gz(CUBE[:9]) + gz(b"") + gz(CUBE[9:])),
    packed("gz-empty-last", "The last member is empty.", gz(CUBE) + gz(b"")),
    packed("gz-blocked", "Blocked gzip (BGZF): small members that tell their length, and an empty "
           "one at the end.", bgzf(CUBE[:18]) + bgzf(CUBE[18:]) + BGZF_END),
    packed("gz-padding", "Zeros up to 512 bytes behind the member, as from a tape: read over.",
           gz(CUBE).ljust(512, b"\0")),
    packed("gz-padding-one", "One zero behind the member.", gz(CUBE) + b"\0"),
    junk("gz-junk", "Bytes behind the member that are no member.", gz(CUBE), b"junk"),
    junk("gz-junk-newline", "A line feed behind the member.", gz(CUBE), b"\n"),
    junk("gz-junk-idx", "A raw file behind the member.", gz(CUBE), b"\xff" + CUBE),
    packed("gz-named-idx", "The name promises a raw file, the content is gzip: the content "
           "decides.", gz(CUBE), suffix=".idx"),
    packed("gz-named-bz2", "The name promises bzip2, the content is gzip.", gz(CUBE),
           suffix=".idx.bz2"),
)  # fmt: skip

BZIP2 = (
    packed("bz2-one", "One stream.", CUBE_BZIPPED),
    packed("bz2-classes", "One stream, 200 labels.", BZIPPED, CLASSES_ANSWER),
    packed("bz2-empty-first", "An empty stream before the file.",
           bytes.fromhex("425a683917724538509000000000") + CUBE_BZIPPED),
    packed("bz2-empty-last", "An empty stream behind the file.",
           CUBE_BZIPPED + bytes.fromhex("425a683917724538509000000000")),
    junk("bz2-junk", "Bytes behind the stream that are no stream.", CUBE_BZIPPED, b"junk"),
)  # fmt: skip

XZ = (
    packed("xz-crc64", "One stream, checked by CRC-64.", xz(CUBE)),
    packed("xz-crc32", "One stream, checked by CRC-32, as embedded readers want it.", xz(CUBE, 1)),
    packed("xz-sha256", "One stream, checked by SHA-256.", xz(CUBE, 10)),
    packed("xz-unchecked", "One stream without a check.", xz(CUBE, 0)),
    packed("xz-classes", "One stream by LZMA, 200 labels.", XZIPPED, CLASSES_ANSWER),
    packed("xz-streams", "Two streams, one behind the other.", xz(CUBE[:10]) + xz(CUBE[10:], 1)),
    packed("xz-padding", "Zeros behind the stream, a multiple of four.", xz(CUBE) + bytes(8)),
    packed("xz-padding-middle", "Zeros between two streams.",
           xz(CUBE[:10]) + bytes(4) + xz(CUBE[10:])),
    junk("xz-junk", "Bytes behind the stream that are no stream.", xz(CUBE), b"junkjunk"),
)  # fmt: skip

ZSTANDARD = (
    packed("zst-one", "One frame, raw.", zst(CUBE)),
    packed("zst-unsized", "One frame that does not tell its length.", zst(CUBE, sized=False)),
    packed("zst-blocks", "Two blocks, the first one a run.", zst(
        bytes(2) + CUBE[2:], zst_block(bytes(2), last=False, kind=1) + zst_block(CUBE[2:]))),
    packed("zst-classes", "One frame with a code of its own, 200 labels.", ZSTD, CLASSES_ANSWER),
    packed("zst-frames", "Two frames, one behind the other.", zst(CUBE[:6]) + zst(CUBE[6:])),
    packed("zst-frames-mixed", "Frames that tell their length and one that does not.",
           zst(CUBE[:6]) + zst(CUBE[6:9], sized=False) + zst(CUBE[9:])),
    packed("zst-empty-frame", "An empty frame before the file.", zst(b"") + zst(CUBE)),
    packed("zst-skippable", "A frame to be skipped stands before the file.",
           zst_skippable(b"note") + zst(CUBE)),
    packed("zst-skippable-middle", "A frame to be skipped stands in the middle.",
           zst(CUBE[:6]) + zst_skippable(b"", 5) + zst(CUBE[6:])),
    packed("zst-skippable-last", "A frame to be skipped stands at the end.",
           zst(CUBE) + zst_skippable(b"index", 15)),
    junk("zst-junk", "Bytes behind the frame that are no frame.", zst(CUBE), b"junk"),
)  # fmt: skip

DOUBLE = (
    packed("gz-twice", "Compressed twice, as servers do to a file that was compressed already.",
           gz(gz(CUBE)), more_tags=("twice",), warnings=TWICE, suffix=".idx.gz.gz"),
    packed("xz-around-gz", "gzip in xz.", xz(gz(CUBE)), more_tags=("gz", "twice"), warnings=TWICE),
    packed("gz-around-bz2", "bzip2 in gzip.", gz(CUBE_BZIPPED), more_tags=("bz2", "twice"),
           warnings=TWICE),
    packed("gz-around-zst", "Zstandard in gzip.", gz(zst(CUBE)), more_tags=("zst", "twice"),
           warnings=TWICE),
)  # fmt: skip

ROWS = (*GZIP, *BZIP2, *XZ, *ZSTANDARD, *DOUBLE)
