"""One picture: from the bytes of its file to pixels, as the choices say.

Plain PNG files (8-bit grey or RGB and nothing else) are taken apart here; everything else goes the
whole way through Pillow.
"""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from functools import cache
from importlib import import_module
from typing import Any

import numpy as np

from ... import png, signatures
from ...elements import Array
from ...errors import FormatError, IdxError, MissingExtraError, UnsupportedError
from ...png import Plain
from .choices import GREY_DEEP, Choices, Facts, ask

__all__ = ["Plain", "decode", "decode_plain", "plain", "shaped"]

KINDS = ("PNG", "JPEG", "BMP", "WEBP", "TIFF", "PPM", "GIF")
"""What Pillow may take a file for."""

_PLUGINS = ("Png", "Jpeg", "Bmp", "WebP", "Tiff", "Ppm", "Gif")
_ORIENTATION = 0x0112
_TURNS = {2: 0, 3: 3, 4: 1, 5: 5, 6: 4, 7: 6, 8: 2}
"""EXIF orientation → number in Pillow's `Transpose` that makes it upright."""

_BACK = {1: 1, 2: 2, 3: 3, 4: 4, 5: 5, 6: 8, 7: 7, 8: 6}
"""EXIF orientation → the one that undoes it."""

_REFUSED = {"F": "floats", "I": "32-bit integers", "I;12": "12-bit integers"}
"""Modes of TIFF whose white nobody knows, or that have no byte to take."""

SKIP = "--skip-bad (skip_bad=True) leaves such pictures out, with their labels"


@cache
def pillow() -> Any:
    """Pillow's `Image`, with the readers of KINDS.

    Raises:
        MissingExtraError: when it is not installed.
    """
    try:
        for plugin in _PLUGINS:
            import_module(f"PIL.{plugin}ImagePlugin")
        return import_module("PIL.Image")
    except ImportError as error:
        raise MissingExtraError(
            "pictures are read with Pillow, which is not installed",
            hint='pip install "idxfile[images]"',
        ) from error


def decode(data: bytes, name: str, choices: Choices) -> Array:
    """The pixels of a picture file.

    Args:
        data: all bytes of the file.
        name: what errors call it.
        choices: what is to be made of it.

    Returns:
        uint8 (int32 for depth=16) of shape `(rows, columns)`, or `(rows, columns, 3)` for rgb.

    Raises:
        FormatError: for what is no picture, or a damaged one, or a decompression bomb.
        UnsupportedError: for a picture that asks for a choice which was not made.
        MissingExtraError: when Pillow is needed and not installed.
    """
    picture = plain(data, choices)
    pixels = decode_plain([picture])[0] if picture else _decode_any(data, name, choices)
    return shaped(pixels, choices)


def plain(data: bytes, choices: Choices) -> Plain | None:
    """A plain PNG whose colours are what was chosen; None for everything else."""
    if choices.depth == 16:
        return None
    picture = png.plain(data)
    return picture if picture and (len(picture.shape) == 3) == choices.rgb else None


def decode_plain(pictures: Sequence[Plain]) -> Array:
    """The pixels of plain pictures of one shape, `(pictures, *shape)`.

    Filters are taken off by Pillow's decoder, from all pictures as one: small ones one after the
    other take many times as long.
    """
    shape = pictures[0].shape
    joined = png.together(pictures)
    if isinstance(joined, np.ndarray):
        return joined
    rows, stream = joined
    mode = "RGB" if len(shape) == 3 else "L"
    image = pillow().frombytes(mode, (shape[1], rows), stream, "zip", mode, 0)
    pixels = np.frombuffer(image.tobytes(), np.uint8)
    return pixels.reshape(len(pictures), shape[0] + 1, *shape[1:])[:, :-1]


def _decode_any(data: bytes, name: str, choices: Choices) -> Array:
    try:
        image = pillow().open(io.BytesIO(data), formats=KINDS)
    except MissingExtraError:
        raise
    except Exception as error:  # readers of pictures raise whatever they stumble over
        raise _unknown(data, error, name) from error
    try:
        with image:
            _refuse_bomb(image.size, name)
            ask(facts := _facts(image, name), choices, name)
            image.load()
            if image.format == "PNG" and not png.is_whole(data):
                raise ValueError("rows are missing")
            return _converted(image, facts, choices)
    except (IdxError, MemoryError):
        raise
    except Exception as error:
        text = f"the picture cannot be read: {error}"
        raise FormatError(text, file=name, hint=SKIP) from error


def _unknown(data: bytes, error: Exception, name: str) -> FormatError:
    """What is said of a file in which no picture was found."""
    if type(error).__name__.startswith("DecompressionBomb"):
        return _bomb(str(error).split(",")[0], name)
    kind = signatures.describe(data[:1024])
    what = f"it is {kind}" if kind else "it is of no known format" if data else "the file is empty"
    if kind and kind.endswith(" picture"):
        what = f"{kind} whose header is damaged"
    return FormatError(f"the picture cannot be read: {what}", file=name, found=kind, hint=SKIP)


def _bomb(what: str, name: str) -> FormatError:
    return FormatError(
        f"refused as a decompression bomb: {what}",
        file=name,
        hint=f"PIL.Image.MAX_IMAGE_PIXELS is the limit, if it is meant; or: {SKIP}",
    )


def _refuse_bomb(size: tuple[int, int], name: str) -> None:
    limit = pillow().MAX_IMAGE_PIXELS
    if limit is not None and size[0] * size[1] > limit:
        raise _bomb(f"{size[0]:,} × {size[1]:,} pixels exceed the limit of {limit:,}", name)


def _facts(image: Any, name: str) -> Facts:
    """What the picture is, seen before its pixels are loaded."""
    mode: str = image.mode
    decoder, _, _, arguments = image.tile[0] if image.tile else ("", None, 0, ())
    raw, *more = (arguments,) if isinstance(arguments, str) else arguments or ("",)
    sample = re.fullmatch(r"(?:L|LA|RGB|RGBA|RGBX|CMYK);(2|4|16)[A-Z]*", str(raw))
    refused = _REFUSED.get(str(raw)) or _REFUSED.get(mode)
    if refused and image.format not in ("PPM", "PNG"):
        raise UnsupportedError(
            f"a picture of {refused} is not read",
            file=name,
            found=refused,
            hint="make an array of it, and idxfile.write(file, array)",
        )
    if decoder.startswith("ppm") and more:
        white = more[0]
    elif mode in GREY_DEEP:
        white = 0xFFFF
    else:
        bits = int(sample[1]) if sample else 1 if mode == "1" else 8
        white = (1 << bits) - 1
    frames = getattr(image, "n_frames", 1)
    transparent = mode in ("LA", "La", "PA", "RGBA", "RGBa") or "transparency" in image.info
    return Facts(mode, white, transparent, _orientation(image), frames)


def _orientation(image: Any) -> int:
    if image.format == "PNG":
        image.load()  # the EXIF data may stand behind the pixels
    number = image.getexif().get(_ORIENTATION)
    return number if number in _TURNS else 1


def _converted(image: Any, facts: Facts, choices: Choices) -> Array:
    """The pixels of a loaded picture in the colours that were chosen."""
    deep = image.mode in GREY_DEEP
    turn = _TURNS.get(facts.orientation)
    if image.format == "TIFF":  # Pillow turns it by itself
        turn = None if choices.exif == "apply" else _TURNS.get(_BACK[facts.orientation])
    elif choices.exif != "apply":
        turn = None
    if turn is not None:
        image = image.transpose(turn)
    if deep:
        values = np.asarray(image).astype(np.int32)
        if facts.transparent and choices.alpha != "drop":
            ground = 0xFFFF if choices.alpha == "white" else 0
            values[values == image.info["transparency"]] = ground
        pixels = values if choices.depth == 16 else (values >> 8).astype(np.uint8)
        return np.repeat(pixels[:, :, None], 3, axis=2) if choices.rgb else pixels
    if facts.transparent and choices.alpha != "drop":
        ground = pillow().new("RGBA", image.size, choices.alpha)
        image = pillow().alpha_composite(ground, image.convert("RGBA"))
    else:
        image.info.pop("transparency", None)
    wanted = "RGB" if choices.rgb else "L"
    if image.mode != wanted:
        straight = choices.rgb or image.mode in ("1", "LA", "P", "RGB", "RGBA")
        image = (image if straight else image.convert("RGB")).convert(wanted)
    return np.asarray(image)


def shaped(pixels: Array, choices: Choices) -> Array:
    """Crop, resize, invert, pad, threshold: in this order."""
    if choices.crop:
        columns, rows = choices.crop
        top = max(0, (pixels.shape[0] - rows) // 2)
        left = max(0, (pixels.shape[1] - columns) // 2)
        pixels = pixels[top : top + rows, left : left + columns]
    if choices.resize and choices.resize != (pixels.shape[1], pixels.shape[0]):
        image = pillow().fromarray(np.ascontiguousarray(pixels))
        resized = np.asarray(image.resize(choices.resize, pillow().Resampling.BICUBIC))
        pixels = np.clip(resized, 0, choices.white)
    if choices.invert:
        pixels = choices.white - pixels
    if choices.pad:
        pixels = _padded(pixels, *choices.pad)
    if choices.threshold is not None:
        pixels = np.where(pixels >= choices.threshold, choices.white, 0)
    return pixels.astype(choices.dtype, copy=False)


def _padded(pixels: Array, columns: int, rows: int) -> Array:
    """The picture in the middle of zeros; one that is larger stays as it is."""
    height, width = pixels.shape[:2]
    if height >= rows and width >= columns:
        return pixels
    shape = (max(rows, height), max(columns, width), *pixels.shape[2:])
    padded = np.zeros(shape, pixels.dtype)
    top, left = (shape[0] - height) // 2, (shape[1] - width) // 2
    padded[top : top + height, left : left + width] = pixels
    return padded
