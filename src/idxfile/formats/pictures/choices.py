"""What people choose about pictures, and where they have to.

A picture of 8-bit grey, upright, opaque and alone in its file is taken as it is. Everything else
can be meant in more than one way: each row of ASKS is a question, which is put to every picture
and must have been answered by an option.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, NamedTuple

from ...errors import UnsupportedError

__all__ = ["ASKS", "Choices", "Facts"]

_MAX_SIDE = 1 << 16


class Facts(NamedTuple):
    """What a picture file says about itself."""

    mode: str
    """What Pillow calls its colours."""
    white: int
    """The value that is white in the file; readers spread other whites to 255 or 65,535."""
    transparent: bool
    orientation: int
    """As EXIF counts: 1 is upright."""
    frames: int


@dataclass(frozen=True)
class Choices:
    """The options of reading pictures."""

    grey: bool = False
    """Colours become grey (ITU-R 601-2 luma)."""
    rgb: bool = False
    """Colours stay: items of `(rows, columns, 3)`. Grey pictures have three equal channels."""
    alpha: Literal["drop", "white", "black"] | None = None
    """Transparency is dropped, or the picture laid on a white or black ground."""
    depth: int | None = None
    """Of 16-bit pictures: 8 is the high byte; 16 keeps the values, as int32."""
    exif: Literal["apply", "ignore"] | None = None
    """Whether a picture is turned as its EXIF orientation says."""
    frames: Literal["first"] | None = None
    """Which frame is taken of a file with several."""
    crop: tuple[int, ...] | None = None
    """Columns and rows: what is larger is cut to its middle."""
    resize: tuple[int, ...] | None = None
    """Columns and rows: everything is scaled to this size (bicubic, the ratio is not kept)."""
    pad: tuple[int, ...] | None = None
    """Columns and rows: what is smaller is centred on a ground of zeros."""
    invert: bool = False
    """Black becomes white; before `pad`."""
    threshold: int | None = None
    """Values from here on become white, those below black; at the very end."""
    skip_bad: bool = False
    """Pictures that cannot be read are left out with their labels, and counted."""

    def __post_init__(self) -> None:
        for name in ("crop", "resize", "pad"):
            size = getattr(self, name)
            if size and not (len(size) == 2 and all(0 < side <= _MAX_SIDE for side in size)):
                raise ValueError(f"{name} must be columns and rows (28x28), not {size!r}")
        if self.depth not in (None, 8, 16):
            raise ValueError(f"depth must be 8 or 16, not {self.depth!r}")
        if self.threshold is not None and not 0 < self.threshold <= self.white:
            raise ValueError(f"threshold must be 1 to {self.white}, not {self.threshold!r}")
        if self.grey and self.rgb:
            raise ValueError("grey and rgb exclude each other")
        if self.rgb and self.depth == 16:
            raise ValueError("depth=16 goes with grey pictures: colours are read with 8 bits")

    @property
    def dtype(self) -> str:
        """The element type that pictures are read as."""
        return "int32" if self.depth == 16 else "uint8"

    @property
    def white(self) -> int:
        """The greatest value."""
        return 0xFFFF if self.depth == 16 else 0xFF


GREY_DEEP = ("I;16", "I;16B", "I;16L", "I")
_COLOURS = {
    "P": "the colours of a palette",
    "PA": "the colours of a palette",
    "RGB": "colours",
    "RGBA": "colours",
    "RGBa": "colours",
    "RGBX": "colours",
    "CMYK": "CMYK colours",
    "YCbCr": "YCbCr colours",
    "LAB": "L*a*b* colours",
    "HSV": "HSV colours",
}


@dataclass(frozen=True)
class Ask:
    """A row: what a picture can be that asks for a choice, and the option that makes it."""

    about: Callable[[Facts], str | None]
    """What the picture has that asks for a choice, or None."""
    chosen: Callable[[Choices], bool]
    """Whether it was made."""
    hint: str


ASKS: tuple[Ask, ...] = (
    Ask(
        lambda facts: _COLOURS.get(facts.mode),
        lambda choices: choices.grey or choices.rgb,
        "--grey (grey=True) makes it grey, --rgb (rgb=True) keeps the colours",
    ),
    Ask(
        lambda facts: f"a white of {facts.white}" if facts.white < 0xFF else None,
        lambda choices: choices.grey or choices.rgb,
        "--grey (grey=True) spreads its values over 0 to 255",
    ),
    Ask(
        lambda facts: "16 bits a sample" if facts.white > 0xFF else None,
        lambda choices: choices.depth is not None,
        "--depth 8 (depth=8) takes the high byte, --depth 16 keeps the values, as int32",
    ),
    Ask(
        lambda facts: "transparency" if facts.transparent else None,
        lambda choices: choices.alpha is not None,
        '--alpha drop (alpha="drop") leaves it out, white or black puts a ground behind it',
    ),
    Ask(
        lambda facts: f"EXIF orientation {facts.orientation}" if facts.orientation > 1 else None,
        lambda choices: choices.exif is not None,
        '--exif apply (exif="apply") turns it upright, ignore takes the pixels as they are stored',
    ),
    Ask(
        lambda facts: f"{facts.frames:,} frames" if facts.frames > 1 else None,
        lambda choices: choices.frames is not None,
        '--frames first (frames="first") takes the first',
    ),
    Ask(
        lambda facts: "8 bits a sample" if facts.white <= 0xFF else None,
        lambda choices: choices.depth != 16,
        "--depth 8 (depth=8) brings all pictures to 8 bits",
    ),
    Ask(
        lambda facts: "16-bit colours" if facts.white > 0xFF and facts.mode in _COLOURS else None,
        lambda choices: choices.depth == 8,
        "--depth 8 (depth=8): colours are read with 8 bits",
    ),
    Ask(
        lambda facts: f"a white of {facts.white:,}" if 0xFF < facts.white < 0xFFFF else None,
        lambda choices: choices.depth == 8,
        "--depth 8 (depth=8) spreads its values over 0 to 255",
    ),
)


def ask(facts: Facts, choices: Choices, name: str) -> None:
    """Put every question to a picture.

    Raises:
        UnsupportedError: for the first one that no option answers.
    """
    for row in ASKS:
        what = row.about(facts)
        if what is not None and not row.chosen(choices):
            raise UnsupportedError(
                f"a picture with {what}: choose what becomes of it",
                file=name,
                found=what,
                hint=row.hint,
            )
