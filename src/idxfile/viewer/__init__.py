"""The wing that looks: pure renderers, from an array to text or to the bytes of a picture.

    pixels      any item of the element types → grey or colour, 8 bits
    tiles       what of an array is drawn, in which order, with which captions
    terminal    tiles → text of half blocks, numbers, sparklines: `show`
    contact     tiles → a PNG contact sheet: `sheet`
    font        what `contact` writes its captions with
    png         the file that it makes, from the floor below

Nothing here opens a file or prints.
"""

from .. import png as png
from .contact import sheet
from .terminal import show

__all__ = ["sheet", "show"]
