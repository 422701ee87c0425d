"""A short run of the fuzzer, seeded with the conformance corpus: nothing may come out."""

import os
import resource
import subprocess
import sys
from pathlib import Path

HOUSE = Path(__file__).parent.parent
SECONDS = 30


def test_half_a_minute_of_any_bytes(tmp_path):
    # The system counts the memory of who starts a program as its own, until it has more.
    inherited = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
    corpus, crashes = tmp_path / "corpus", tmp_path / "crashes"
    corpus.mkdir()
    crashes.mkdir()
    command = [
        sys.executable,
        "-m",
        "fuzz",
        f"-max_total_time={SECONDS}",
        "-max_len=4096",
        f"-rss_limit_mb={inherited + 1500}",
        "-timeout=20",
        f"-artifact_prefix={crashes}/",
        str(corpus),
        str(HOUSE / "conformance" / "files"),
    ]
    run = subprocess.run(
        command, cwd=HOUSE, env=dict(os.environ), capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr[-4000:]
    assert not list(crashes.iterdir())
    assert "Done" in run.stderr  # it ran to its end, and did try something
