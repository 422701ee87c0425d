"""Fuzzing: `python -m fuzz`."""
