"""Ray: files as datasets of Ray Data, datasets as files, and its workers as an executor.

A row is an item: the columns `item` (its number), `image` (a tensor) and `label`. Ray promises no
order of rows; the column `item` keeps the one of the file. What travels to a worker is the place of
a file and some numbers: workers see the files under the same places.
"""

from __future__ import annotations

from ...errors import MissingExtraError

try:
    from .datasink import IdxDatasink
    from .reading import IdxDatasource, dataset, read_idx
    from .workers import executor
    from .writing import write_idx
except ImportError as error:
    raise MissingExtraError(
        f"this needs the package {error.name}", hint="pip install 'idxfile[ray]'"
    ) from error

__all__ = ["IdxDatasink", "IdxDatasource", "dataset", "executor", "read_idx", "write_idx"]
