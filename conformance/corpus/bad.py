"""Wrong files of the format itself: cut, too long, another type, another order, another format."""

from __future__ import annotations

import zlib

from .row import Problem, Row, bad, header, pattern, problem

CUBE = header("uint8", 2, 2, 2) + bytes(range(1, 9))
"""The smallest thing that looks like MNIST: 16 bytes of header, 8 of data."""


def short_header(nbytes: int) -> tuple[Problem, ...]:
    """The file ends inside its header; among the dimensions that may be what is told."""
    found = problem("short-header", nbytes)
    return (found, Problem("dimension", offset=nbytes)) if nbytes >= 4 else (found,)


def truncated(nbytes: int) -> Problem:
    """The first byte that is missing is at the length of the file."""
    return problem("truncated", nbytes)


def trailing(offset: int) -> Problem:
    """The first byte too many."""
    return problem("trailing-data", offset)


def bomb(nbytes: int) -> tuple[Problem, ...]:
    """Too few bytes, if the reader can say how many there should be; else too large."""
    return truncated(nbytes), Problem("dimension")


UNOPENED = (
    Row("no-such-file", "There is no such file.", None, ("core",), path="files/no-such-file.idx",
        refusals=(problem("unreadable"),)),
    Row("folder", "It is a folder: it opens, and cannot be read.", None, ("core",), path="files",
        refusals=(problem("unreadable"),)),
)  # fmt: skip

CUT_HEADERS = (
    bad("cut-00", "Nothing was written, or nothing was downloaded.", b"", problem("empty", 0),
        problem("short-header", 0)),
    *(
        bad(f"cut-{n:02d}", f"{n} of the 16 bytes of the header.", CUBE[:n], *short_header(n))
        for n in range(1, 16)
    ),
    bad("cut-header-255", "255 dimensions declared, and one byte of them missing: 1,023 bytes.",
        (header("uint8", *[1] * 255))[:-1], *short_header(1023)),
    bad("cut-header-255-all", "255 dimensions declared and none there.", "000008ff",
        *short_header(4)),
)  # fmt: skip

CUT_DATA = (
    bad("cut-data-all", "A whole header and no data.", CUBE[:16], truncated(16)),
    bad("cut-data-one", "One byte of data of 8.", CUBE[:17], truncated(17)),
    bad("cut-data-item", "The first of two items is whole, the second is not there.", CUBE[:20],
        truncated(20)),
    bad("cut-data-last", "The last byte is missing: nothing may be put in its place.", CUBE[:23],
        truncated(23)),
    bad("cut-scalar-uint8", "A scalar without its value.", "00000800", truncated(4)),
    bad("cut-scalar-float64", "A scalar of seven bytes of eight.", "00000e00 3ff00000000000",
        truncated(11)),
    bad("cut-int16", "Half an element: the last one has one byte of two.", "00000b01 00000002 0001"
        "00", truncated(11)),
    bad("cut-int32", "Half an element: the last one has three bytes of four.",
        "00000c01 00000002 00000001 000000", truncated(15)),
    bad("cut-float32", "One whole element of two.", "00000d01 00000002 3f800000", truncated(12)),
    bad("cut-images", "Ten images of 28 x 28 but for the last byte.",
        header("uint8", 10, 28, 28) + pattern(7839), truncated(7855)),
    bad("cut-images-half", "Ten images declared, five and a half there.",
        header("uint8", 10, 28, 28) + pattern(4312), truncated(4328)),
    bad("cut-sparse", "The file was laid out and never filled: fewer zeros than declared.",
        header("uint8", 100, 28, 28) + bytes(496), truncated(512)),
)  # fmt: skip

TOO_LONG = (
    bad("trailing-newline", "A line feed behind the data: an editor was here.",
        "00000801 00000001 07 0a", trailing(9)),
    bad("trailing-zero", "One zero behind the data: there is no padding in IDX.",
        "00000801 00000001 07 00", trailing(9)),
    bad("trailing-padding", "Zeros up to 512 bytes: there is no padding in IDX.",
        CUBE + bytes(488), trailing(24)),
    bad("trailing-item", "One item more than the count says: an append that was cut off.",
        CUBE + bytes(range(9, 13)), trailing(24)),
    bad("trailing-file", "Two files, one behind the other.", CUBE + CUBE, trailing(24)),
    bad("trailing-scalar", "A scalar with two values.", "00000800 07 08", trailing(5)),
    bad("trailing-empty", "No items declared, and one byte of data.", "00000801 00000000 07",
        trailing(8)),
    bad("trailing-empty-images", "No images declared, and one there: the count was never set.",
        header("uint8", 0, 2, 2) + bytes(4), trailing(16)),
    bad("trailing-int32", "Not a whole element behind the data.",
        "00000c01 00000001 00000001 0000", trailing(12)),
    bad("trailing-many", "More behind the data than there is data.",
        header("uint8", 2, 2) + pattern(1000), trailing(16)),
    bad("trailing-empty-many", "0 times anything is 0, and there is one byte of data.",
        header("uint8", 0, 2**32 - 1, 2**32 - 1) + b"\7", trailing(16), Problem("dimension")),
)  # fmt: skip

NOT_ZERO = problem("bad-magic", 0)

PREFIXES = (
    bad("prefix-ffff", "The first two bytes are not zero.", "ffff0801 00000001 07", NOT_ZERO),
    bad("prefix-01", "The first byte is not zero.", "01000801 00000001 07", NOT_ZERO),
    bad("prefix-0001", "The second byte is not zero.", "00010801 00000001 07", NOT_ZERO),
    bad("prefix-80", "The first byte is negative, if bytes have a sign.", "80000801 00000001 07",
        NOT_ZERO),
    bad("prefix-a", "A letter, then as usual.", "61000801 00000001 07", NOT_ZERO),
    bad("prefix-one-byte", "One byte, which is not zero.", "ff", NOT_ZERO,
        problem("short-header", 1)),
    bad("prefix-three-bytes", "Three bytes, and the first is not zero.", "610008", NOT_ZERO,
        problem("short-header", 3)),
    bad("prefix-utf8-mark", "A byte order mark of UTF-8 before the header.",
        "efbbbf 00000801 00000001 07", NOT_ZERO),
    bad("prefix-only-dimensions", "The header without its first four bytes.", CUBE[7:], NOT_ZERO),
)  # fmt: skip


def _type(code: int, why: str) -> Row:
    file = bytes((0, 0, code, 1, 0, 0, 0, 1)) + bytes(8)
    return bad(f"type-{code:02x}", why, file, problem("unknown-type", 2))


TYPES = (
    _type(0x00, "Element type 00."),
    _type(0x01, "Element type 01."),
    _type(0x07, "Element type 07: one below the first."),
    _type(0x0A, "Element type 0A: the gap in the table."),
    _type(0x0F, "Element type 0F: one beyond the last."),
    _type(0x10, "Element type 10."),
    _type(0x88, "Element type 88: 08 with its highest bit set."),
    _type(0xFF, "Element type FF."),
    bad("type-0a-two", "Never the value 1 and 2.", "00000a01 00000002 0102",
        problem("unknown-type", 2)),
    bad("type-three-bytes", "The file ends with the unknown type.", "00000a",
        problem("unknown-type", 2), problem("short-header", 3)),
    bad("type-shifted", "A zero too many at the front: all is shifted by one.",
        b"\0" + CUBE, problem("unknown-type", 2)),
    bad("type-and-ndim", "Type and number of dimensions are exchanged: 03 08.",
        "00000308 00000002 00000002 00000002 0102030405060708", problem("unknown-type", 2)),
)  # fmt: skip


def swapped(offset: int, nbytes: int = 0) -> tuple[Problem, ...]:
    """A little-endian header: a careful reader says so, any other sees its first consequence."""
    if offset == 0:
        return problem("swapped-header", 0), NOT_ZERO
    return problem("swapped-header", 4, "dimension"), *bomb(nbytes)


LITTLE_ENDIAN = (
    bad("little-uint8", "Header little-endian, its four numbers: magic 50855936.",
        "03080000 02000000 02000000 02000000 0102030405060708", *swapped(0)),
    bad("little-int8", "Header little-endian.", "01090000 02000000 01ff", *swapped(0)),
    bad("little-int16", "Header and data little-endian.", "010b0000 02000000 0100 0002",
        *swapped(0)),
    bad("little-int32", "Header and data little-endian.", "010c0000 01000000 70110100",
        *swapped(0)),
    bad("little-float32", "Header and data little-endian.", "010d0000 01000000 0000803f",
        *swapped(0)),
    bad("little-float64", "Header and data little-endian.",
        "010e0000 01000000 000000000000f03f", *swapped(0)),
    bad("little-scalar", "A little-endian header without dimensions.", "00080000 07",
        *swapped(0)),
    bad("little-cut", "Header little-endian, and a byte of data missing.",
        "03080000 02000000 02000000 02000000 01020304050607", *swapped(0)),
    bad("little-magic", "The magic little-endian, the dimensions big-endian.",
        "01080000 00000002 0708", *swapped(0)),
    bad("little-dimensions", "The magic as it should be, the dimensions little-endian.",
        "00000803 02000000 02000000 02000000 0102030405060708", *swapped(4, 24)),
    bad("little-dimension", "The magic as it should be, the one dimension little-endian.",
        "00000801 05000000 0102030405", *swapped(4, 13)),
    bad("little-dimensions-int32", "The dimension and the data little-endian.",
        "00000c01 02000000 01000000 70110100", *swapped(4, 16)),
    bad("little-dimensions-60000", "60,000 as 60 ea 00 00, with three items there.",
        "00000801 60ea0000 010203", *bomb(11)),
    bad("middle-endian", "The bytes of each 16-bit half are exchanged.",
        "00000308 00000200 00000200 00000200 0201040306050807", problem("unknown-type", 2)),
)  # fmt: skip

M = 2**32 - 1

BOMBS = (
    bad("bomb-images", "2^32 - 1 images of 28 x 28 declared, 3,367,254,359,280 bytes, and none "
        "there.", header("uint8", M, 28, 28), *bomb(16)),
    bad("bomb-one", "4,294,967,295 items declared, one there.", header("uint8", M) + b"\7",
        *bomb(9)),
    bad("bomb-float64", "34,359,738,360 bytes declared, 8 there.", header("float64", M) + bytes(8),
        *bomb(16)),
    bad("bomb-negative", "2^31 items: no negative number, and no -2^31 bytes missing.",
        header("uint8", 2**31), *bomb(8)),
    bad("bomb-255", "255 dimensions of 2^32 - 1.", header("uint8", *[M] * 255), *bomb(1024)),
    bad("wrap-16-zero", "2^16 items: 0 where sizes have 16 bits.", header("uint8", 2**16),
        *bomb(8)),
    bad("wrap-16-one", "2^16 + 1 items: 1 where sizes have 16 bits.",
        header("uint8", 2**16 + 1) + b"\7", *bomb(9)),
    bad("wrap-31", "46341 x 46341 = 2^31 + 4633: negative where sizes are int.",
        header("uint8", 46341, 46341), *bomb(12)),
    bad("wrap-32-zero", "65536 x 65536 = 2^32: 0 where sizes have 32 bits.",
        header("uint8", 2**16, 2**16), *bomb(12)),
    bad("wrap-32-one", "641 x 6700417 = 2^32 + 1: 1 where sizes have 32 bits, and one byte there.",
        header("uint8", 641, 6700417) + b"\7", *bomb(13)),
    bad("wrap-32-int16", "3 x 715827883 elements of two bytes = 2^32 + 2: fits only multiplied in "
        "32 bits, and two bytes there.", header("int16", 3, 715827883) + b"\0\7", *bomb(14)),
    bad("wrap-32-square", "(2^32 - 1)^2: 1 where sizes have 32 bits, and one byte there.",
        header("uint8", M, M) + b"\7", *bomb(13)),
    bad("wrap-64-zero", "65536^4 = 2^64: 0 where sizes have 64 bits.",
        header("uint8", *[2**16] * 4), *bomb(20)),
    bad("wrap-64-zero-int32", "2^31 x 2^31 elements of four bytes = 2^64 bytes: the count fits in "
        "64 bits, the bytes do not.", header("int32", 2**31, 2**31), *bomb(12)),
    bad("wrap-64-zero-float64", "2^31 x 2^30 elements of eight bytes = 2^64 bytes.",
        header("float64", 2**31, 2**30), *bomb(12)),
    bad("wrap-63", "2^31 x 2^32 / 2 x 2 = 2^63: negative where sizes have 64 bits and a sign.",
        header("uint8", 2**31, 2**31, 2), *bomb(16)),
    bad("wrap-64-four", "968973220 x 49477 x 384773 = 2^64 + 4: wraps to the very length of the "
        "file.", header("uint8", 968973220, 49477, 384773) + bytes(4), *bomb(20)),
    bad("wrap-64-five", "609 x 36760123 x 823996703 = 2^64 + 5: wraps to the very length of the "
        "file.", header("uint8", 609, 36760123, 823996703) + bytes(5), *bomb(21)),
    bad("wrap-64-int32", "27905 x 8681 x 49477 x 384773 elements of four bytes = 2^64 + 4 bytes: "
        "wraps to the very length of the file.",
        header("int32", 27905, 8681, 49477, 384773) + bytes(4), *bomb(24)),
    bad("wrap-64-float64", "12 x 2833 x 37171 x 1824726041 elements of eight bytes = 2^64 + 32 "
        "bytes: wraps to the very length of the file.",
        header("float64", 12, 2833, 37171, 1824726041) + bytes(32), *bomb(52)),
    bad("wrap-item", "One item of 2^64 bytes.", header("uint8", 1, *[2**16] * 4), *bomb(24)),
)  # fmt: skip


def foreign(name: str, why: str, data: bytes) -> Row:
    """Another format: a careful reader names it, any other sees that the prefix is not zero."""
    return bad(f"foreign-{name}", why, data, problem("foreign", 0), NOT_ZERO)


def _png() -> bytes:
    def chunk(name: bytes, data: bytes) -> bytes:
        crc = zlib.crc32(name + data).to_bytes(4, "big")
        return len(data).to_bytes(4, "big") + name + data + crc

    pixel = bytes.fromhex("7801 01 0200 fdff 0007 00090008")
    size = bytes.fromhex("00000001 00000001 08 00 00 00 00")
    parts = chunk(b"IHDR", size) + chunk(b"IDAT", pixel) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + parts


def _zip() -> bytes:
    name, data = b"labels-idx1-ubyte", bytes.fromhex("0000080100000001 07")
    crc = zlib.crc32(data).to_bytes(4, "little")
    size = len(data).to_bytes(4, "little")
    facts = bytes.fromhex("0a00 0000 0000 0000 2100") + crc + size + size
    facts += len(name).to_bytes(2, "little") + bytes(2)
    local = b"PK\3\4" + facts + name + data
    central = b"PK\1\2" + b"\x0a\0" + facts + bytes(14) + name
    end = b"PK\5\6" + bytes.fromhex("0000 0000 0100 0100") + len(central).to_bytes(4, "little")
    return local + central + end + len(local).to_bytes(4, "little") + bytes(2)


def _tar() -> bytes:
    name = b"labels-idx1-ubyte".ljust(100, b"\0")
    facts = b"0000644\0" + b"0000000\0" * 2 + b"00000000011\0" + b"00000000000\0"
    rest = b"0" + bytes(100) + b"ustar\x0000" + bytes(247)
    total = sum(name + facts + b" " * 8 + rest)
    entry = name + facts + f"{total:06o}\0 ".encode() + rest
    return entry + bytes.fromhex("0000080100000001 07").ljust(512, b"\0") + bytes(1024)


def _npy() -> bytes:
    text = b"{'descr': '|u1', 'fortran_order': False, 'shape': (1,), }"
    return b"\x93NUMPY\1\0v\0" + text.ljust(117) + b"\n" + b"\7"


HTML = b"""<!DOCTYPE html>
<html><head><title>404 Not Found</title></head>
<body><h1>Not Found</h1></body></html>
"""

XML = b"""<?xml version="1.0" encoding="UTF-8"?>
<Error><Code>AccessDenied</Code><Message>Access Denied</Message></Error>
"""

LFS = b"""version https://git-lfs.github.com/spec/v1
oid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393
size 12345
"""

FOREIGN = (
    foreign("html", "A page of a failed download, saved under the name of the file.", HTML),
    foreign("xml", "An error of a file store, saved under the name of the file.", XML),
    foreign("git-lfs", "A pointer of Git LFS instead of the file.", LFS),
    foreign("npy", "A NumPy file.", _npy()),
    foreign("zip", "A zip archive with an IDX file in it.", _zip()),
    foreign("tar", "A tar archive with an IDX file in it.", _tar()),
    foreign("png", "A picture.", _png()),
    foreign("jpeg", "The beginning of a JPEG picture.",
            bytes.fromhex("ffd8ffe0 0010 4a46494600 0101")),
    foreign("gif", "The beginning of a GIF picture.", b"GIF89a" + bytes.fromhex("01000100800000")),
    foreign("bmp", "The beginning of a BMP picture.", b"BM" + bytes.fromhex(
        "3a000000 00000000 36000000 28000000 01000000 01000000 0100 1800")),
    foreign("hdf5", "The beginning of an HDF5 file.", b"\x89HDF\r\n\x1a\n" + bytes(56)),
    foreign("matlab", "The beginning of a MATLAB 5 file.",
            b"MATLAB 5.0 MAT-file, Platform: GLNXA64".ljust(124) + b"\0\1IM"),
    foreign("parquet", "The beginning of a Parquet file.", b"PAR1\x15\x04\x15\x10\x15\x14"),
    foreign("arrow", "The beginning of an Arrow file.", b"ARROW1\0\0" + bytes(8)),
    foreign("pdf", "The beginning of a PDF document.", b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n"),
    foreign("sqlite", "The beginning of an SQLite database.", b"SQLite format 3\0" + bytes(16)),
    foreign("elf", "The beginning of a program.", b"\x7fELF\2\1\1" + bytes(9)),
    foreign("7z", "The beginning of a 7-zip archive.", bytes.fromhex("377abcaf271c0004")),
    foreign("pickle", "A pickle of the list [7].", bytes.fromhex("8004 5d 94 4b07 61 2e")),
    foreign("csv", "A table of numbers.", b"label,p0,p1\n7,0,255\n3,12,0\n"),
    foreign("json", "A list of lists.", b"[[0, 255], [12, 0]]\n"),
    foreign("git-pack-index", "The index of a Git pack ends in .idx too.",
            bytes.fromhex("ff744f63 00000002") + bytes(1024)),
    foreign("vobsub", "The index of subtitles ends in .idx too.",
            b"# VobSub index file, v7 (do not modify this line!)\n"),
    foreign("latex-index", "The index of a LaTeX document ends in .idx too.",
            b"\\indexentry{tensor}{7}\n"),
    bad("foreign-icon", "An icon: it begins with two zeros, and 01 is no type.",
        "00000100 01001010 00000100 2000", problem("unknown-type", 2),
        problem("foreign", 0)),
    bad("foreign-mp4", "A film: it begins with two zeros, and 00 is no type.",
        bytes.fromhex("00000018") + b"ftypmp42" + bytes(4) + b"mp42isom",
        problem("unknown-type", 2), problem("foreign", 0)),
)  # fmt: skip

MANGLED = (
    bad("mangled-crlf", "A transfer as text made CR LF of the line feed in the count.",
        bytes.fromhex("00000801 0000000d 0a") + pattern(10), truncated(19)),
    bad("mangled-utf8", "Bytes from 80 on were written as UTF-8.",
        "00000801 00000002 c280 c3bf", trailing(10)),
    bad("mangled-hex", "The bytes as text, in hexadecimal.", b"00000801000000010700",
        problem("foreign", 0), NOT_ZERO),
    bad("mangled-base64", "The bytes as text, in base 64.", b"AAAIAQAAAAEH\n",
        problem("foreign", 0), NOT_ZERO),
    bad("mangled-zeros", "A file of the right length and nothing in it.", bytes(24),
        problem("unknown-type", 2)),
)  # fmt: skip

ROWS = (
    *UNOPENED,
    *CUT_HEADERS,
    *CUT_DATA,
    *TOO_LONG,
    *PREFIXES,
    *TYPES,
    *LITTLE_ENDIAN,
    *BOMBS,
    *FOREIGN,
    *MANGLED,
)
