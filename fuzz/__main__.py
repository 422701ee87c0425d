"""Coverage-guided fuzzing of everything that reads: `python -m fuzz [libFuzzer options] [CORPUS]`.

The seeds are the files of `conformance/`. A crash is written to `crash-…` and reproduced by
`python -m fuzz crash-…`.
"""

from __future__ import annotations

import sys

import atheris

with atheris.instrument_imports(include=["idxfile"]):
    import idxfile.array
    import idxfile.codecs
    import idxfile.elements
    import idxfile.header
    import idxfile.report.facts
    import idxfile.report.judgement
    import idxfile.report.mending
    import idxfile.report.suspicion
    import idxfile.selection
    import idxfile.signatures
    import idxfile.source.stream
    import idxfile.writer  # noqa: F401

    from .harness import judge


def main() -> None:
    """Let libFuzzer call the harness."""
    atheris.Setup(sys.argv, judge)
    atheris.Fuzz()


main()
