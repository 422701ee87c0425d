"""Images with their labels written into a folder, here or in a store: two files, or two sets."""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Any

from .classes import write_classes
from .cutting import shard_count
from .elements import Array
from .header import Header
from .items import Items
from .names import pair_names, refuse_rivals
from .placing import names_there, new_together
from .shards import named_shards
from .slabs.choosing import write_items
from .source.places import beside, file_of, is_url, public
from .staging import folder_made

__all__: list[str] = []


@dataclass(frozen=True)
class Pair:
    """What is written together; `Dataset.save` tells how."""

    images: Items
    labels: Array
    """As they are written: the type is settled."""
    split: str
    classes: Sequence[str | None] | None

    def shard_count(self, shards: int | None, shard_nbytes: int | None) -> int | None:
        """How many shards each of the two becomes; None for a file each."""
        header = Header.of(self.images.dtype.name, self.images.shape)
        return shard_count(header, shards, shard_nbytes)

    def names(self, folder: str, codec: str | None, shards: int | None) -> tuple[str, str]:
        """The paths or addresses of images and labels; of shards, their patterns."""
        images, labels = pair_names(
            self.split,
            (self.images.ndim, self.images.dtype.name),
            (self.labels.ndim, self.labels.dtype.name),
            codec,
        )
        if shards is not None:
            images, labels = (named_shards(name, shards).pattern for name in (images, labels))
        if is_url(folder):
            return beside(_slashed(folder), images), beside(_slashed(folder), labels)
        return os.path.join(folder, images), os.path.join(folder, labels)

    def write(
        self,
        folder: str,
        *,
        codec: str | None,
        blocked: bool,
        shards: int | None,
        executor: Executor | None,
    ) -> tuple[str, str]:
        """Write both, and the names of the classes beside them.

        Returns:
            Their names.

        Raises:
            PairError: for a folder with another pair of this split.
            FileExistsError: for shards in another number, or in a store.
            ValueError: for an executor together with a codec, and no shards.
        """
        if executor is not None and codec is not None and shards is None:
            raise ValueError(
                "a compressed file is written from front to back: with an executor, say how many "
                "shards"
            )
        images, labels = self.names(folder, codec, None)
        packing: dict[str, Any] = {"shards": shards, "codec": codec, "blocked": blocked}
        with folder_made(folder):
            self._refuse_rivals(folder, images, labels, shards)
            with new_together((images, labels), shards):
                write_items(self.images, images, executor=executor, **packing)
                write_items(Items([self.labels]), labels, **packing)
            if self.classes is not None:
                write_classes(folder, self.classes)
        return self.names(folder, codec, shards)

    def _refuse_rivals(self, folder: str, images: str, labels: str, shards: int | None) -> None:
        """Make sure that nobody could take another pair for this one."""
        mine = [os.path.basename(file_of(name)) for name in (images, labels)]
        if shards is not None:
            sets = [named_shards(name, shards) for name in mine]
            mine = [names.numbered(n) for names in sets for n in range(shards)]
        shown = public(folder)
        refuse_rivals(shown, names_there(_slashed(folder)), mine)


def _slashed(folder: str) -> str:
    """A folder as `beside` takes an address: with its slash at the end."""
    return f"{folder.rstrip('/')}/" if is_url(folder) else folder
