"""What the options of drawing may say, known without NumPy."""

from __future__ import annotations

__all__ = ["GRAPHICS", "STYLES"]

GRAPHICS = ("kitty", "sixel", "truecolour", "256", "unicode", "ascii")
"""What `graphics` may say, the best first: the keys of MODES."""
STYLES = ("auto", "histogram", "heatmap")
"""What `style` may say."""
