"""The wing that looks: pure renderers, from an array to text or to the bytes of a picture.

    pixels      any item of the element types → grey or colour, 8 bits
    tiles       what of an array is drawn, in which order, with which captions
    terminal    tiles → text of half blocks, numbers, sparklines: `show`
    contact     tiles → a PNG contact sheet: `sheet`
    font, png   what `contact` writes its captions with, and the file it makes

Nothing here opens a file or prints.
"""

from .contact import sheet
from .terminal import show

__all__ = ["sheet", "show"]
