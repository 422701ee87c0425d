"""The colour maps: a few colours each, with even steps between their places.

viridis, magma, inferno and cividis look even to the eye and in grey; their colours are those of
matplotlib, which gave them to the public domain. coolwarm, of Kenneth Moreland, is for values on
two sides of a middle. The table stands alone, so that its names are known without NumPy.
"""

from __future__ import annotations

__all__ = ["COLOUR_MAPS"]

COLOUR_MAPS = {
    "grey": "000000 ffffff",
    "viridis": "440154 482878 3e4989 31688e 26828e 1f9e89 35b779 6ece58 b5de2b fde725",
    "magma": "000004 180f3d 440f76 721f81 9e2f7f cd4071 f1605d fd9668 feca8d fcfdbf",
    "inferno": "000004 1b0c41 4a0c6b 781c6d a52c60 cf4446 ed6925 fb9b06 f7d13d fcffa4",
    "cividis": "00224e 123570 3b496c 575d6d 707173 8a8678 a59c74 c3b369 e1cc55 fee838",
    "coolwarm": "3b4cc0 6788ee 9abbff c9d7f0 edd1c2 f7a889 e26952 b40426",
}
"""What `colours` may say: name → colours from the low to the high end."""

GREY = "grey"
