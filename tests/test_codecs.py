"""Compressions: other programs read what is written here, every variant of theirs is read."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import random
import zlib
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conftest import COMPRESS, PACKINGS, blocked_gz, named_gz, zstd
from idxfile import UnsupportedError
from idxfile.codecs import (
    BLOCK_NBYTES,
    CODECS,
    Inflater,
    blocked_member,
    codec_named,
    codec_of_content,
    codec_of_name,
)
from idxfile.codecs import gzip as gzip_codec
from idxfile.codecs.gzip import GzipDecoder

DECOMPRESS: dict[str, Callable[[bytes], bytes]] = {
    "gz": gzip.decompress,
    "bz2": bz2.decompress,
    "xz": lzma.decompress,
    "zst": zstd.decompress,
}
NAMES = tuple(COMPRESS)
SINGLE = {name: pack for name, pack in PACKINGS.items() if " in " not in name}

NOISE = random.Random(1).randbytes(3000)
CONTENTS = {
    "nothing": b"",
    "one byte": b"7",
    "noise": NOISE,
    "larger than a chunk": NOISE * 200,
    "zeros": bytes(3_000_000),
}


def inflater(codec: str, data: bytes, limit: int | None = None) -> Inflater:
    """An inflater over bytes, fed with at most `limit` bytes at once."""
    file = io.BytesIO(data)
    return Inflater(codec_named(codec), lambda count: file.read(min(count, limit or count)))


def inflate(codec: str, data: bytes, limit: int | None = None) -> tuple[bytes, Inflater]:
    """All the content of a stream, and the inflater that has read it."""
    stream = inflater(codec, data, limit)
    buffer = bytearray(4_000_000)
    count = stream.readinto(buffer)
    return bytes(buffer[:count]), stream


@pytest.fixture(params=["isal", "zlib"])
def deflater(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """ISA-L, and the standard library that stands behind it."""
    if request.param == "zlib":
        monkeypatch.setattr(gzip_codec, "igzip_lib", None)
        monkeypatch.setattr(gzip_codec, "crc32", zlib.crc32)
    return request.param


# The table


def test_the_table() -> None:
    assert tuple(row.name for row in CODECS) == NAMES
    for row in CODECS:
        assert codec_named(row.name) is row
        assert row.suffixes[0] == f".{row.name}"
        assert codec_of_content(COMPRESS[row.name](b"x")) is row
        for suffix in row.suffixes:
            assert codec_of_name(f"TRAIN-IMAGES{suffix.upper()}") is row


@pytest.mark.parametrize("name", ["train-images-idx3-ubyte", "a.gz.idx", "gz", "a.zip", ""])
def test_a_name_without_a_known_suffix_promises_nothing(name: str) -> None:
    assert codec_of_name(name) is None


@pytest.mark.parametrize("prefix", [b"", b"\x1f", b"\0\0\x08\1", b"BZ", b"\xfd7zXZ", b"\x4f*M\x18"])
def test_content_that_begins_no_stream_is_raw(prefix: bytes) -> None:
    assert codec_of_content(prefix) is None


def test_an_unknown_codec_is_refused() -> None:
    with pytest.raises(ValueError, match="codec must be one of gz, bz2, xz, zst, not 'rar'"):
        codec_named("rar")


# Reading


@pytest.mark.usefixtures("deflater")
@pytest.mark.parametrize("content", CONTENTS)
@pytest.mark.parametrize("packing", SINGLE)
def test_every_packing_gives_its_content(packing: str, content: str) -> None:
    data = CONTENTS[content]
    if packing == "gz blocked":
        data = data[:5000]
    found, stream = inflate(packing.split()[0], SINGLE[packing](data))
    assert found == data
    assert stream.problems == []
    assert stream.ended
    assert stream.nbytes == len(data)
    assert stream.members == SINGLE[packing](data).count(b"\x1f\x8b\x08") or packing[:2] != "gz"


@pytest.mark.usefixtures("deflater")
@pytest.mark.parametrize("limit", [1, 2, 7, 100])
@pytest.mark.parametrize("packing", SINGLE)
def test_a_stream_may_come_in_the_smallest_pieces(packing: str, limit: int) -> None:
    data = NOISE[:200] + bytes(2000)
    found, stream = inflate(packing.split()[0], SINGLE[packing](data), limit)
    assert found == data
    assert stream.problems == []


@pytest.mark.usefixtures("deflater")
@pytest.mark.parametrize("name", NAMES)
@given(sizes=st.lists(st.integers(0, 400_000), max_size=8))
def test_the_content_may_be_asked_for_in_any_pieces(name: str, sizes: list[int]) -> None:
    data = NOISE + bytes(700_000) + NOISE
    stream = inflater(name, PACKED[name])
    position = 0
    for size in sizes:
        buffer = bytearray(size)
        count = stream.readinto(buffer)
        assert count == min(size, len(data) - position)
        assert buffer[:count] == data[position : position + count]
        position += count
    assert stream.problems == []


PACKED = {name: pack(NOISE + bytes(700_000) + NOISE) for name, pack in COMPRESS.items()}


def test_the_name_inside_a_gzip_is_kept() -> None:
    assert inflate("gz", named_gz(b"x"))[1].stored_name == "train.idx"
    assert inflate("gz", gzip.compress(b"x"))[1].stored_name is None


def test_the_extra_field_of_a_member_is_kept() -> None:
    decoder = GzipDecoder()
    decoder.decompress(blocked_member(b"abc"))
    assert decoder.extra[:4] == b"BC\2\0"


# Wrong streams


def codes(stream: Inflater) -> list[str]:
    return [problem.code for problem in stream.problems]


@pytest.mark.usefixtures("deflater")
@pytest.mark.parametrize("name", NAMES)
def test_a_stream_cut_at_any_byte_is_called_cut(name: str) -> None:
    data = NOISE[:60]
    packed = COMPRESS[name](data)
    for length in range(1, len(packed)):
        stream = inflater(name, packed[:length])
        stream.expected_nbytes = len(data)
        buffer = bytearray(100)
        count = stream.readinto(buffer)
        assert buffer[:count] == data[:count]
        if not codec_named(name).begins(packed[:length]):
            assert codes(stream) == ["stream-junk"]
            continue
        assert codes(stream) == ["stream-truncated"]
        problem = stream.problems[0]
        assert problem.message == f"the {name} stream is cut: {count} of 60 bytes inflated"
        assert (problem.found, problem.expected) == (count, 60)
        assert problem.offset == length


def beyond(kind: str) -> tuple[str, bytes]:
    """A right stream, and what it needs that it is not given."""
    content = b"".join(b"%07d," % number for number in range(20_000))
    if kind == "xz":
        filters = [{"id": lzma.FILTER_LZMA2, "preset": 0, "dict_size": 1 << 29}]
        return kind, lzma.compress(content, filters=filters)
    if kind == "window":
        packer = zstd.ZstdCompressor(options={zstd.CompressionParameter.window_log: 30})
        return "zst", packer.compress(content) + packer.flush()
    samples = [content[at : at + 800] for at in range(0, len(content), 800)]
    return "zst", zstd.compress(content, zstd_dict=zstd.train_dict(samples, 4000))


@pytest.mark.parametrize("kind", ["dictionary", "window", "xz"])
def test_a_stream_that_asks_for_more_than_it_is_given_is_not_called_damaged(kind: str) -> None:
    name, packed = beyond(kind)
    content, stream = inflate(name, packed)
    assert (content, codes(stream)) == (b"", ["stream-unsupported"])
    problem = stream.problems[0]
    assert "needs" in problem.message
    assert problem.hint
    assert problem.hint.startswith("decompress it with")
    with pytest.raises(UnsupportedError):
        raise problem.error()


@pytest.mark.usefixtures("deflater")
@pytest.mark.parametrize("name", NAMES)
def test_no_flipped_byte_gives_wrong_content_unnoticed(name: str) -> None:
    data = NOISE[:40] + bytes(40)
    packed = COMPRESS[name](data)
    for at in range(len(packed)):
        flipped = bytearray(packed)
        flipped[at] ^= 0x55
        found, stream = inflate(name, bytes(flipped))
        assert found == data or stream.problems
        assert all(code.startswith("stream-") for code in codes(stream))


@pytest.mark.usefixtures("deflater")
def test_a_wrong_checksum_is_told_with_both_values_and_the_content_is_kept() -> None:
    packed = bytearray(gzip.compress(b"seven", mtime=0))
    packed[-8:-4] = b"\x01\x02\x03\x04"
    found, stream = inflate("gz", bytes(packed))
    assert found == b"seven"
    assert codes(stream) == ["stream-checksum"]
    computed = f"{zlib.crc32(b'seven'):08x}"
    assert stream.problems[0].message == (
        f"the gz stream stores CRC-32 04030201, its content gives {computed} (5 bytes inflated)"
    )
    assert stream.problems[0].found == computed
    assert stream.problems[0].expected == "CRC-32 04030201"


def test_a_wrong_length_is_told_too() -> None:
    packed = gzip.compress(b"seven", mtime=0)[:-4] + b"\x06\0\0\0"
    found, stream = inflate("gz", packed)
    assert found == b"seven"
    assert "stores length 6, its content gives 5" in stream.problems[0].message


@pytest.mark.parametrize(
    ("at", "value", "message"),
    [
        (2, 7, "compression method 7, expected 8 (DEFLATE)"),
        (3, 0x80, "reserved flags are set"),
    ],
)
def test_a_gzip_header_that_means_nothing_is_refused(at: int, value: int, message: str) -> None:
    packed = bytearray(gzip.compress(b"x"))
    packed[at] = value
    _, stream = inflate("gz", bytes(packed))
    assert codes(stream) == ["stream-damaged"]
    assert message in stream.problems[0].message


def test_a_gzip_name_that_never_ends_is_refused() -> None:
    _, stream = inflate("gz", b"\x1f\x8b\x08\x08" + bytes(6) + b"x" * 300_000)
    assert codes(stream) == ["stream-damaged"]
    assert "header of more than 128 KiB" in stream.problems[0].message


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    ("junk", "count"), [(b"x", 1), (b"junk", 4), (b"\0\0\0junk\0", 5), (b"j" * 600_000, 600_000)]
)
def test_junk_behind_a_stream_is_counted(name: str, junk: bytes, count: int) -> None:
    packed = COMPRESS[name](b"seven")
    found, stream = inflate(name, packed + junk)
    assert found == b"seven"
    assert codes(stream) == ["stream-junk"]
    problem = stream.problems[0]
    plural = "s" if count > 1 else ""
    assert problem.message == f"{count:,} byte{plural} of junk after the {name} stream, ignored"
    assert problem.found == count
    assert problem.offset == len(packed) + len(junk) - len(junk.lstrip(b"\0"))


@pytest.mark.parametrize("name", NAMES)
def test_a_damaged_second_member_keeps_the_first(name: str) -> None:
    second = COMPRESS[name](NOISE)
    found, stream = inflate(name, COMPRESS[name](b"seven") + second[: len(second) // 2])
    assert found.startswith(b"seven")
    assert NOISE.startswith(found[5:])
    assert codes(stream) == ["stream-truncated"]


def test_an_error_of_the_source_passes_through() -> None:
    def read(count: int) -> bytes:
        raise PermissionError("not yours")

    with pytest.raises(PermissionError):
        Inflater(codec_named("gz"), read).readinto(bytearray(1))


@pytest.mark.parametrize("name", NAMES)
@given(data=st.binary(max_size=60))
def test_no_bytes_break_an_inflater(name: str, data: bytes) -> None:
    stream = inflater(name, COMPRESS[name](b"x")[:6] + data)
    stream.readinto(bytearray(1000))
    assert all(code.startswith("stream-") for code in codes(stream))


# Writing


@pytest.mark.usefixtures("deflater")
@pytest.mark.parametrize("content", CONTENTS)
@pytest.mark.parametrize("name", NAMES)
def test_other_programs_read_what_is_written(name: str, content: str) -> None:
    data = CONTENTS[content]
    encoder = codec_named(name).encoder()
    packed = encoder.compress(data[:1000]) + encoder.compress(data[1000:]) + encoder.flush()
    assert DECOMPRESS[name](packed) == data
    assert inflate(name, packed)[0] == data


@pytest.mark.usefixtures("deflater")
@pytest.mark.parametrize("name", NAMES)
def test_what_is_written_is_always_the_same(name: str) -> None:
    def packed() -> bytes:
        encoder = codec_named(name).encoder()
        return encoder.compress(NOISE) + encoder.flush()

    assert packed() == packed()


@pytest.mark.usefixtures("deflater")
def test_a_written_gzip_has_no_time_and_no_name() -> None:
    encoder = codec_named("gz").encoder()
    packed = encoder.compress(b"x") + encoder.flush()
    assert packed[:4] == b"\x1f\x8b\x08\0"
    assert packed[4:8] == b"\0\0\0\0"


def test_a_written_zstandard_frame_has_a_checksum() -> None:
    encoder = codec_named("zst").encoder()
    packed = bytearray(encoder.compress(b"seven") + encoder.flush())
    packed[-1] ^= 1
    assert codes(inflate("zst", bytes(packed))[1]) == ["stream-damaged"]


@pytest.mark.usefixtures("deflater")
@pytest.mark.parametrize(
    "data", [b"", b"7", bytes(BLOCK_NBYTES), random.Random(2).randbytes(BLOCK_NBYTES)]
)
def test_a_blocked_member_says_its_own_length(data: bytes) -> None:
    member = blocked_member(data)
    assert member[:18] == bytes.fromhex("1f8b0804 00000000 00ff 0600 4243 0200") + member[16:18]
    assert int.from_bytes(member[16:18], "little") == len(member) - 1 < 1 << 16
    assert gzip.decompress(member) == data


@pytest.mark.usefixtures("deflater")
def test_the_empty_member_that_ends_a_blocked_file_is_that_of_the_specification() -> None:
    assert blocked_member(b"") == bytes.fromhex(
        "1f8b08040000000000ff0600424302001b0003000000000000000000"
    )


def test_the_hand_made_blocked_file_says_its_lengths_too() -> None:
    data, at = blocked_gz(NOISE), 0
    while at < len(data):
        at += int.from_bytes(data[at + 16 : at + 18], "little") + 1
    assert at == len(data)


def test_zstandard_without_its_package_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    from idxfile.errors import MissingExtraError

    def absent(name: str, *args: Any) -> Any:
        if "zstd" in name or name in ("compression", "backports"):
            raise ImportError(name)
        return real(name, *args)

    import builtins

    real, packed = builtins.__import__, COMPRESS["zst"](b"x")
    monkeypatch.setattr(builtins, "__import__", absent)
    with pytest.raises(MissingExtraError, match=r"hint: pip install backports\.zstd"):
        inflate("zst", packed)
    assert inflate("gz", gzip.compress(b"x"))[0] == b"x"
