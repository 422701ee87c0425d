"""The runner of the conformance corpus: it drives any reader of IDX files, in any language.

    python -m idxfile.conformance [--corpus DIR] [--tags core,codec] COMMAND [ARGUMENTS...]

COMMAND is started once. It reads one path a line from its standard input, and answers each with
one line on its standard output, at once (flush it):

    ok TYPE NDIM D0 D1 ... hex HEX         the elements as big-endian bytes in hexadecimal
    ok TYPE NDIM D0 D1 ... crc NBYTES CRC  or, beyond 4096 bytes, their number and their CRC-32
    error KIND [OFFSET]                    refused: a class or a kind of problem, and the byte

The corpus lies in the repository, not in the package; its page `conformance/README.md` tells more.
Exit codes: 0 all passed, 1 something did not, 2 wrong usage.

    process     a reader in a process of its own: asked, waited for, ended
    judging     whether a line answers a file rightly
    corpus      the manifest, and the files that are asked for
    running     a reader over the corpus: `run`
    own         idxfile itself as a reader
    command     the command line: `main`
"""

from .command import main
from .running import Outcome, run

__all__ = ["Outcome", "main", "run"]
