"""What every test may ask for: real files, arrays of every kind, and every kind of `file`."""

from __future__ import annotations

import bz2
import contextlib
import gzip
import io
import lzma
import os
import random
import signal
import socket
import struct
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays, basic_indices

try:
    from compression import zstd  # Python 3.14
except ImportError:
    from backports import zstd

settings.register_profile("quick", deadline=None, print_blob=True)
settings.register_profile("thorough", settings.get_profile("quick"), max_examples=3000)
settings.load_profile("quick")  # or --hypothesis-profile=thorough

# What is run in the background of a shell ignores Ctrl-C, and so would all that the tests start.
if threading.current_thread() is threading.main_thread():
    signal.signal(signal.SIGINT, signal.default_int_handler)

DATA = Path(__file__).parent / "data"
MNIST = DATA / "mnist"
SOURCE = Path(__file__).parent.parent / "src" / "idxfile"

# The format once more, written by hand: what the library is compared with.

CODES = {"uint8": 8, "int8": 9, "int16": 11, "int32": 12, "float32": 13, "float64": 14}
TYPES = tuple(CODES)


def H(code: int, *dimensions: int) -> bytes:
    """A header: H(0x08, 2, 2, 2)."""
    return struct.pack(f">HBB{len(dimensions)}I", 0, code, len(dimensions), *dimensions)


def idx_bytes(array: Any) -> bytes:
    """The IDX file of an array."""
    array = np.asarray(array)
    elements = array.astype(array.dtype.newbyteorder(">")).tobytes(order="C")
    return H(CODES[array.dtype.name], *array.shape) + elements


def assert_same(found: Any, expected: Any) -> None:
    """The same type, shape, dtype in native byte order, and bits: NaN payloads too."""
    assert type(found) is type(expected)
    assert found.shape == expected.shape
    assert found.dtype == expected.dtype.newbyteorder("=")
    assert found.dtype.isnative
    native = np.asarray(expected).astype(found.dtype)
    assert found.tobytes() == native.tobytes()


# Known answers

KNOWN = {
    "uint8": ("00 01 7f 80 ff", [0, 1, 127, 128, 255]),
    "int8": ("00 01 7f 80 ff", [0, 1, 127, -128, -1]),
    "int16": ("0000 0100 7fff 8000 ffff", [0, 256, 32767, -32768, -1]),
    "int32": (
        "00000100 00011170 7fffffff 80000000 ffffffff",
        [256, 70000, 2**31 - 1, -(2**31), -1],
    ),
    "float32": ("00000000 80000000 3fc00000 c3800000 7f800000", [0.0, -0.0, 1.5, -256.0, np.inf]),
    "float64": (
        "0000000000000000 8000000000000000 3ff8000000000000 40f1170000000000 fff0000000000000",
        [0.0, -0.0, 1.5, 70000.0, -np.inf],
    ),
}
"""Type → elements as they stand in a file, and their values."""

NANS = {
    "float32": "7fc00000 7f800001 ffc0beef ffbfffff",
    "float64": "7ff8000000000000 7ff0000000000001 fff800000000beef fff7ffffffffffff",
}
"""Quiet and signalling NaNs, of both signs, with payloads."""


# Arrays of every kind


def bits(dtype: str, *shape: int) -> np.ndarray:
    """An array of random bits: every value of the type, NaNs too."""
    nbytes = int(np.prod(shape, dtype=np.int64)) * np.dtype(dtype).itemsize
    random_bytes = np.random.default_rng(nbytes).bytes(nbytes)
    return np.frombuffer(bytearray(random_bytes), dtype).reshape(shape)


LAYOUTS: dict[str, Callable[[str], np.ndarray]] = {
    "scalar": lambda t: bits(t, 1).reshape(()),
    "empty": lambda t: bits(t, 0),
    "no items": lambda t: bits(t, 0, 3, 2),
    "empty items": lambda t: bits(t, 3, 0, 2),
    "1-D": lambda t: bits(t, 7),
    "3-D": lambda t: bits(t, 4, 3, 5),
    "64-D": lambda t: bits(t, *(1,) * 61, 3, 2, 2),
    "Fortran": lambda t: np.asfortranarray(bits(t, 4, 3, 5)),
    "transposed": lambda t: bits(t, 5, 4, 3).transpose(1, 2, 0),
    "strided": lambda t: bits(t, 9, 8, 7)[::2, 1::3, ::-2],
    "reversed": lambda t: bits(t, 4, 3, 5)[::-1, ::-1, ::-1],
    "step": lambda t: bits(t, 30)[::3],
    "broadcast": lambda t: np.broadcast_to(bits(t, 3, 1), (4, 3, 5)),
    "read-only": lambda t: np.frombuffer(bits(t, 6).tobytes(), t),
    "unaligned": lambda t: np.frombuffer(b"." + bits(t, 6).tobytes(), t, offset=1),
}


def _arrays() -> list[Any]:
    return [
        pytest.param((dtype, order, layout), id=f"{dtype}-{order}-{layout}")
        for dtype in TYPES
        for order in ("big", "little")
        for layout in LAYOUTS
    ]


@pytest.fixture(params=_arrays())
def array(request: pytest.FixtureRequest) -> np.ndarray:
    """Every type × byte order × layout."""
    dtype, order, layout = request.param
    return LAYOUTS[layout](np.dtype(dtype).newbyteorder(order))


# Compressions, as other programs write them


def blocked_gz(data: bytes) -> bytes:
    """gzip as bgzip writes it: small members that say their own length, an empty one at the end."""
    members = []
    for start in range(0, len(data) + 50, 50):
        member = gzip.compress(data[start : start + 50], mtime=0)
        extra = b"BC\x02\x00" + struct.pack("<H", len(member) + 8 - 1)
        flags = member[3] | 4
        members.append(
            member[:3] + bytes([flags]) + member[4:10] + struct.pack("<H", 6) + extra + member[10:]
        )
    return b"".join(members)


def _halves(compress: Callable[[bytes], bytes], data: bytes) -> bytes:
    half = len(data) // 2
    return compress(data[:half]) + compress(data[half:])


def named_gz(data: bytes) -> bytes:
    """gzip with a name, a comment and a header checksum, as the command may write it."""
    plain = gzip.compress(data, mtime=0)
    header = plain[:3] + bytes([8 | 16 | 2]) + plain[4:10] + b"train.idx\0" + b"made by hand\0"
    return header + b"\0\0" + plain[10:]


def skippable_zst(data: bytes) -> bytes:
    """Zstandard with frames in front and behind that are to be skipped."""
    skip = b"\x50\x2a\x4d\x18" + struct.pack("<I", 5) + b"notes"
    return skip + zstd.compress(data) + skip


def checked_zst(data: bytes) -> bytes:
    """Zstandard with a checksum, as the command writes it."""
    return zstd.compress(data, options={zstd.CompressionParameter.checksum_flag: 1})


def seekable_zst(data: bytes, frame_nbytes: int = 50_000, checksums: bool = True) -> bytes:
    """Zstandard with a table of its frames at the end; in place of checksums zeros."""
    parts = [data[at : at + frame_nbytes] for at in range(0, len(data), frame_nbytes)]
    frames = [checked_zst(part) for part in parts]
    sizes = [(len(frame), len(part)) for frame, part in zip(frames, parts, strict=True)]
    return b"".join(frames) + zst_table([(*pair, 0) if checksums else pair for pair in sizes])


def zst_table(entries: list[tuple[int, ...]]) -> bytes:
    """The table of a seekable file: of each frame its length, its content, maybe a checksum."""
    checksums = any(len(entry) > 2 for entry in entries)
    listed = b"".join(struct.pack(f"<{len(entry)}I", *entry) for entry in entries)
    footer = struct.pack("<IBI", len(entries), 0x80 if checksums else 0, 0x8F92EAB1)
    return struct.pack("<II", 0x184D2A5E, len(listed) + len(footer)) + listed + footer


COMPRESS: dict[str, Callable[[bytes], bytes]] = {
    "gz": partial(gzip.compress, mtime=0),
    "bz2": bz2.compress,
    "xz": lzma.compress,
    "zst": checked_zst,
}
"""Codec → a compressor that is not ours."""

PACKINGS: dict[str, Callable[[bytes], bytes]] = {
    **COMPRESS,
    **{f"{n} members": partial(_halves, compress) for n, compress in COMPRESS.items()},
    **{f"{n} padded": lambda d, c=compress: c(d) + bytes(512) for n, compress in COMPRESS.items()},
    "gz stored": partial(gzip.compress, compresslevel=0, mtime=0),
    "gz blocked": blocked_gz,
    "gz named": named_gz,
    "zst skippable": skippable_zst,
    "gz in gz": lambda data: gzip.compress(gzip.compress(data)),
    "xz in gz": lambda data: gzip.compress(lzma.compress(data)),
    "zst in bz2": lambda data: bz2.compress(zstd.compress(data)),
}
"""Every way in which a file may have been compressed."""


# Every kind of `file`


class ShortReads(io.RawIOBase):
    """A raw file that answers with fewer bytes than it was asked for."""

    def __init__(self, data: bytes, seekable: bool) -> None:
        self._inner = io.BytesIO(data)
        self._seekable = seekable
        self._random = random.Random(len(data))

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return self._seekable

    def seek(self, offset: int, whence: int = 0) -> int:
        if not self._seekable:
            raise io.UnsupportedOperation("seek")
        return self._inner.seek(offset, whence)

    def tell(self) -> int:
        if not self._seekable:
            raise io.UnsupportedOperation("tell")
        return self._inner.tell()

    def readinto(self, buffer: Any) -> int:
        view = memoryview(buffer)
        return self._inner.readinto(view[: min(len(view), self._random.randint(1, 50))])


class OnlyRead:
    """The least that a stream can be: `read`, which gives fewer bytes than asked."""

    def __init__(self, data: bytes) -> None:
        self._raw = ShortReads(data, seekable=False)

    def read(self, count: int = -1) -> bytes:
        return self._raw.read(count)


class BytesPath:
    """A path that calls itself by bytes."""

    def __init__(self, path: str) -> None:
        self._path = os.fsencode(path)

    def __fspath__(self) -> bytes:
        return self._path


class Places:
    """Makes files of bytes, and takes them away again."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.stack = contextlib.ExitStack()
        self._count = 0

    def path(self, data: bytes | None = None, suffix: str = "idx") -> str:
        """A new path, with these bytes in it."""
        self._count += 1
        path = self.folder / f"{self._count}.{suffix}"
        if data is not None:
            path.write_bytes(data)
        return str(path)

    def opened(self, file: Any) -> Any:
        """A file object, closed at the end."""
        return self.stack.enter_context(file)

    def file(self, data: bytes, buffering: int = -1) -> Any:
        """A file of these bytes, open for reading."""
        return self.stack.enter_context(open(self.path(data), "rb", buffering))

    def fed(self, write: Callable[[], None]) -> None:
        """A thread that writes into something, and may be left standing."""

        def run() -> None:
            with contextlib.suppress(OSError):
                write()

        thread = threading.Thread(target=run)
        thread.start()
        self.stack.callback(thread.join)

    def pipe(self, data: bytes) -> Any:
        reader, writer = os.pipe()
        self.fed(lambda: _write_and_close(writer, data))
        return self.opened(open(reader, "rb", buffering=0))

    def fifo(self, data: bytes) -> str:
        path = self.path()
        os.mkfifo(path)
        self.fed(lambda: _write_and_close(os.open(path, os.O_WRONLY), data))

        def release() -> None:
            os.close(os.open(path, os.O_RDONLY | os.O_NONBLOCK))

        self.stack.callback(release)
        return path

    def socket(self, data: bytes) -> Any:
        near, far = socket.socketpair()
        self.opened(near)

        def send() -> None:
            with far:
                far.sendall(data)

        self.fed(send)
        return self.opened(near.makefile("rb", buffering=0))

    def at_position(self, data: bytes) -> Any:
        file = io.BytesIO(b"something before" + data)
        file.seek(len(b"something before"))
        return file


def _write_and_close(fd: int, data: bytes) -> None:
    try:
        view = memoryview(data)
        while view:
            view = view[os.write(fd, view) :]
    finally:
        os.close(fd)


Make = Callable[[Places, bytes], Any]

SEEKABLE: dict[str, Make] = {
    "str": Places.path,
    "Path": lambda places, data: Path(places.path(data)),
    "PathLike of bytes": lambda places, data: BytesPath(places.path(data)),
    "bytes": lambda places, data: data,
    "bytearray": lambda places, data: bytearray(data),
    "memoryview": lambda places, data: memoryview(data),
    "NumPy bytes": lambda places, data: np.frombuffer(data, "uint8"),
    "file": Places.file,
    "raw file": lambda places, data: places.file(data, buffering=0),
    "BytesIO": lambda places, data: io.BytesIO(data),
    "at a position": Places.at_position,
    "short reads": lambda places, data: ShortReads(data, seekable=True),
    "GzipFile": lambda p, d: p.opened(gzip.GzipFile(p.path(gzip.compress(d)))),
}
STREAMS: dict[str, Make] = {
    "stream of short reads": lambda places, data: ShortReads(data, seekable=False),
    "stream of only read": lambda places, data: OnlyRead(data),
    "pipe": Places.pipe,
    "fifo": Places.fifo,
    "socket": Places.socket,
}
KINDS: dict[str, Make] = {
    **SEEKABLE,
    **STREAMS,
    **{name: lambda p, d, pack=pack: p.path(pack(d)) for name, pack in PACKINGS.items()},
    **{f"{n} bytes": lambda p, d, pack=pack: pack(d) for n, pack in COMPRESS.items()},
    **{f"{n} pipe": lambda p, d, pack=pack: p.pipe(pack(d)) for n, pack in COMPRESS.items()},
    **{
        f"{n} short reads": lambda p, d, pack=pack: ShortReads(pack(d), seekable=True)
        for n, pack in COMPRESS.items()
    },
}
"""Every kind of `file`: its name → what makes one of bytes."""


@pytest.fixture
def places(tmp_path: Path) -> Any:
    """Makes files of every kind in this test's folder."""
    places = Places(tmp_path)
    with places.stack:
        yield places


@pytest.fixture(params=KINDS)
def file_of(request: pytest.FixtureRequest, places: Places) -> Callable[[bytes], Any]:
    """Every kind of `file`, made of bytes."""
    return partial(KINDS[request.param], places)


# Every key that NumPy understands, and many that it does not


class Index:
    """An integer that is none, but for `__index__`."""

    def __init__(self, value: int) -> None:
        self._value = value

    def __index__(self) -> int:
        return self._value

    def __repr__(self) -> str:
        return f"Index({self._value})"


def _numbers(size: int) -> st.SearchStrategy[Any]:
    """One part of a key, for an axis of this size; now and then it is out of bounds."""
    inside = st.integers(-size, max(size - 1, 0))
    shapes = st.one_of(array_shapes(max_dims=2, min_side=0, max_side=3), st.just((2,)))
    as_array = arrays(st.sampled_from(("int64", "int8", ">i2")), shapes, elements=inside)
    return st.one_of(
        inside,
        st.integers(-size - 1, size),
        st.slices(size),
        as_array,
        as_array.map(lambda a: a.tolist()),
        inside.map(np.int32),
        inside.map(np.array),
        inside.map(Index),
        st.booleans().flatmap(lambda value: arrays(bool, (size,), fill=st.just(value))),
    )


_WITHOUT_AXIS = st.sampled_from(
    (None, ..., True, False, np.True_, np.array(False), np.array(True), [True])
)


@st.composite
def mixed_keys(draw: st.DrawFn, shape: tuple[int, ...]) -> Any:
    """A tuple of parts of every kind, in any order."""
    parts: list[Any] = []
    axis = 0
    while axis < len(shape) and draw(st.integers(0, 4)):
        if draw(st.integers(0, 3)) == 0:
            parts.append(draw(_WITHOUT_AXIS))
        elif axis + 1 < len(shape) and draw(st.integers(0, 5)) == 0:
            parts.append(draw(arrays(bool, shape[axis : axis + 2])))
            axis += 2
        else:
            parts.append(draw(_numbers(shape[axis])))
            axis += 1
    parts += draw(st.lists(_WITHOUT_AXIS, max_size=1))
    return tuple(parts)


_WILD = st.sampled_from(
    (
        *(1.0, "a", b"a", [0.5], [1.0], ["a"], np.array([1.5]), (..., ...), (0, "a"), 1j),
        *([[]], [[], []], ((),), np.array([]), np.zeros((2, 0), bool), [None], slice("a"), {}),
        *(2**70, -(2**70), np.uint64(2**63), slice(2**70), slice(None, None, 0), slice(0.5, 2)),
    )
)


def keys(shape: tuple[int, ...]) -> st.SearchStrategy[Any]:
    """Keys for an array of this shape: basic, integers, masks, mixed, and wrong ones."""
    masks = [arrays(bool, shape[:n]) for n in range(len(shape) + 1)]
    wrong = [arrays(bool, (*shape[:-1], shape[-1] + 1))] if shape else []
    return st.one_of(
        basic_indices(shape, allow_newaxis=True, allow_ellipsis=True, max_dims=8),
        *([_numbers(shape[0])] if shape else []),
        mixed_keys(shape),
        mixed_keys(shape),
        mixed_keys((*shape, 2)),
        *masks,
        *wrong,
        _WILD,
    )


REFUSALS = (IndexError, TypeError, ValueError, OverflowError, DeprecationWarning)
"""What NumPy answers to a key that it does not take (or not for much longer)."""


def outcome(work: Callable[[], Any]) -> Any:
    """What comes of it: the value, or the type of the error."""
    try:
        return work()
    except DeprecationWarning:
        return IndexError
    except REFUSALS as error:
        return type(error)


def assert_same_outcome(found: Any, expected: Any, key: Any) -> None:
    """The same as NumPy's. Where NumPy refuses, an IndexError always does."""
    if isinstance(expected, type):
        assert found in (expected, IndexError)
    elif found is IndexError:  # NumPy overlooks a wrong number beside an index that picks nothing
        assert expected.size == 0
        assert isinstance(key, tuple)
        assert len(key) > 1
    else:
        assert_same(found, expected)


# Measuring

MEASURE = """
import re
def status(key):
    with open("/proc/self/status") as file:
        return int(re.search(key + r":\\s+(\\d+)", file.read())[1]) * 1024
def peak_of(work):
    "How many bytes of memory `work` needs beyond what the process has already."
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")
    before = status("VmRSS")
    kept = work()
    return status("VmHWM") - before
"""
"""Source text for a child process: `peak_of(work)`."""
