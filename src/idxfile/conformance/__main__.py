"""`python -m idxfile.conformance`."""

from .command import main

main(prog_name="python -m idxfile.conformance")
