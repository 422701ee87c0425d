"""A life of a file as a state machine: whatever happens to it, its items are those of a list.

Created, appended to, extended in place, cut by a crash in the middle of an append, checked,
mended, changed item by item, concatenated: after every step the file reads as the model says, or
refuses as the model says.
"""

import os
import tempfile

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

import idxfile

MEMORY = "/dev/shm" if os.path.isdir("/dev/shm") else None
"""Every step asks for a sync, and a disk takes its time."""
TYPES = st.sampled_from(["uint8", "int8", "int16", "int32", "float32", "float64"])
SHAPES = npst.array_shapes(min_dims=0, max_dims=2, min_side=1, max_side=3)


class FileLife(RuleBasedStateMachine):
    """One file on disk beside the array that it should hold."""

    @initialize(dtype=TYPES, item_shape=SHAPES, codec=st.sampled_from(["", ".gz", ".zst"]))
    def create(self, dtype, item_shape, codec):
        self.folder = tempfile.mkdtemp(prefix="machine-", dir=MEMORY)
        self.path = os.path.join(self.folder, f"life.idx{codec}")
        self.model = np.empty((0, *item_shape), dtype)
        self.behind = b""
        idxfile.write(self.path, self.model)

    def block(self, data, most=4):
        shape = (data.draw(st.integers(0, most)), *self.model.shape[1:])
        return data.draw(npst.arrays(self.model.dtype, shape))

    @property
    def raw(self):
        return self.path.endswith(".idx")

    @precondition(lambda self: not self.behind)
    @rule(data=st.data())
    def append(self, data):
        block = self.block(data)
        idxfile.append(self.path, block)
        self.model = np.concatenate([self.model, block])

    @precondition(lambda self: self.behind)
    @rule(data=st.data())
    def append_is_refused_while_bytes_stand_behind(self, data):
        with pytest.raises(idxfile.TrailingDataError):
            idxfile.append(self.path, self.block(data))

    @rule(data=st.data(), known=st.booleans())
    def write_anew_block_by_block(self, data, known):
        blocks = [self.block(data) for _ in range(data.draw(st.integers(0, 3)))]
        count = sum(map(len, blocks)) if known or not self.raw else None
        with idxfile.create(
            self.path, dtype=self.model.dtype, item_shape=self.model.shape[1:], count=count
        ) as writer:
            for block in blocks:
                writer.append(block)
        self.model = np.concatenate([self.model[:0], *blocks])
        self.behind = b""

    @rule(data=st.data())
    def give_up_writing(self, data):
        block = self.block(data)
        writer = idxfile.create(
            self.path, dtype=self.model.dtype, item_shape=self.model.shape[1:], count=len(block)
        )
        writer.append(block)
        writer.abort()

    @precondition(lambda self: self.raw and not self.behind)
    @rule(data=st.data())
    def crash_in_the_middle_of_an_append(self, data):
        """The data came, or some of them, and the count did not."""
        bytes_there = idxfile.encode(self.block(data))[4 + 4 * self.model.ndim :]
        self.behind = bytes_there[: data.draw(st.integers(0, len(bytes_there)))]
        with open(self.path, "ab") as file:
            file.write(self.behind)

    @precondition(lambda self: self.raw)
    @rule(take=st.booleans())
    def repair(self, take):
        mending = idxfile.repair(self.path, take_trailing=take)
        if mending.backup:
            os.unlink(mending.backup)
        whole = len(self.behind) // max(1, self.model[:1].nbytes or _item_nbytes(self.model))
        if take and whole:
            stored = self.model.dtype.newbyteorder(">")
            count = whole * int(np.prod(self.model.shape[1:], dtype=int))
            more = np.frombuffer(self.behind, stored, count).reshape(whole, *self.model.shape[1:])
            self.model = np.concatenate([self.model, more.astype(self.model.dtype)])
        assert bool(mending.done) == bool(self.behind)
        self.behind = b""

    @precondition(lambda self: self.raw and not self.behind and len(self.model))
    @rule(data=st.data())
    def change_an_item_in_place(self, data):
        item = data.draw(st.integers(-len(self.model), len(self.model) - 1))
        value = data.draw(npst.arrays(self.model.dtype, self.model.shape[1:]))
        with idxfile.open(self.path, mode="r+") as array:
            array[item] = value
        self.model[item] = value

    @precondition(lambda self: not self.behind)
    @rule()
    def concatenate_with_itself(self):
        if len(self.model) < 16:
            other = self.path + ".both"
            idxfile.concat(other, [self.path, self.path], codec=None if self.raw else "gz")
            both = idxfile.read(other)
            os.unlink(other)
            assert both.tobytes() == np.concatenate([self.model, self.model]).tobytes()

    @invariant()
    def reads_as_the_model_says(self):
        if not hasattr(self, "model"):
            return
        report = idxfile.check(self.path)
        codes = {p.code for p in report.problems if p.level == "error"}
        assert codes == ({"trailing-data"} if self.behind else set())
        found = idxfile.read(self.path, problems="ignore")
        assert found.shape == self.model.shape
        assert found.tobytes() == self.model.tobytes()
        assert os.listdir(self.folder) == [os.path.basename(self.path)]

    def teardown(self):
        if hasattr(self, "path"):
            os.unlink(self.path)
            os.rmdir(self.folder)


def _item_nbytes(array):
    return int(np.prod(array.shape[1:], dtype=int)) * array.itemsize


FileLife.TestCase.settings = settings(max_examples=25, stateful_step_count=15, deadline=None)
TestFileLife = FileLife.TestCase
