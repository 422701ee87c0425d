"""How fast idxfile is, as ratios: run `python -m benchmarks`; docs/benchmarks.md explains it."""
