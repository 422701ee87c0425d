"""Text read and written by lines, compressed or not, in constant memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from ..codecs import codec_of_name
from ..errors import FormatError
from ..problems import settle
from ..sink import open_sink
from ..source import open_source, pieces

__all__: list[str] = []

BLOCK_NBYTES = 1 << 20
"""Text is parsed in blocks of whole lines, about so long."""

_MAX_LINE_NBYTES = 1 << 28


def line_blocks(path: str, block_nbytes: int = BLOCK_NBYTES) -> Iterator[str]:
    """A text file as blocks of whole lines, decompressed by content; without a mark of its order.

    Raises:
        FormatError: for bytes that are no UTF-8, lines without end, or a damaged compression.
    """
    source = open_source(path, mmap=False)
    try:
        rest = b""
        first = True
        for piece in pieces(source, block_nbytes):
            block = rest + bytes(piece)
            cut = block.rfind(b"\n") + 1
            rest = block[cut:]
            if len(rest) > _MAX_LINE_NBYTES:
                raise FormatError(f"a line of over {_MAX_LINE_NBYTES:,} bytes", file=path)
            if cut:
                yield _decoded(block[:cut], path, first)
                first = False
        settle(source.problems, "raise", path)
        if rest:
            yield _decoded(rest, path, first)
    finally:
        source.close()


def _decoded(data: bytes, path: str, first: bool) -> str:
    try:
        return data.decode("utf-8-sig" if first else "utf-8")
    except UnicodeDecodeError as error:
        raise FormatError(
            f"byte {data[error.start]:#04x} is no UTF-8",
            file=path,
            hint="save the table as UTF-8",
        ) from None


@contextmanager
def text_sink(path: str) -> Iterator[Callable[[str], None]]:
    """A new file that takes text; compressed as the suffix of its name says."""
    codec = codec_of_name(path)
    with open(path, "wb") as file:
        sink = open_sink(file, codec=codec.name if codec else None)
        yield lambda text: sink.write(text.encode())
        sink.commit()
