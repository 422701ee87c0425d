"""Judging whole files: what one is, whether it is right, what can be mended, how two differ."""
