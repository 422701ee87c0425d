""".npy and .npz: NumPy reads what we write, we read what NumPy writes, and nothing is unpickled."""

from __future__ import annotations

import errno
import io
import os
import pickle
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from trials import TYPES, mnist, values

import idxfile
from conftest import idx_bytes
from idxfile import FormatError, PairError, TruncatedError, UnsupportedError, convert
from idxfile.formats import stored

SHAPES = [(), (0,), (3,), (2, 0), (4, 3, 5)]


# .npy


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("byteorder", ["native", "big"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_numpy_loads_the_same_bits(
    dtype: str, byteorder: str, shape: tuple[int, ...], tmp_path: Path
) -> None:
    array = values(dtype, shape, finite=False)
    start, end = tmp_path / "a.idx", tmp_path / "a.npy"
    start.write_bytes(idx_bytes(array))
    convert(start, end, target_options={"byteorder": byteorder})
    found = np.load(end)
    assert found.shape == shape
    assert found.dtype == array.dtype.newbyteorder(">" if byteorder == "big" else "=")
    assert found.astype(dtype).tobytes() == array.tobytes()
    # The header is NumPy's own, to the byte.
    again = io.BytesIO()
    np.save(again, found)
    assert end.read_bytes() == again.getvalue()


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("layout", ["C", "F"])
@pytest.mark.parametrize("dtype", [*TYPES, "uint16", "int64", "uint64", "bool", "float16"])
def test_what_numpy_saved_is_read_in_any_order(
    dtype: str, order: str, layout: Any, tmp_path: Path
) -> None:
    array = np.arange(24).reshape(2, 3, 4).astype(np.dtype(dtype).newbyteorder(order), layout)
    np.save(tmp_path / "a.npy", array)
    held = dtype in TYPES
    done = convert(tmp_path / "a.npy", tmp_path / "a.idx", dtype=None if held else "auto")
    found = idxfile.read(tmp_path / "a.idx")
    assert (found == array).all()
    assert done.columns["images"] == (found.dtype.name, (2, 3, 4))
    assert found.dtype == (dtype if held else "uint8")


@pytest.fixture
def copied(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many bytes each call to the kernel copied."""
    counts: list[int] = []
    real = os.copy_file_range

    def count(*words: Any) -> int:
        counts.append(real(*words))
        return counts[-1]

    monkeypatch.setattr(os, "copy_file_range", count)
    monkeypatch.setattr(stored, "_is_kernel_faster", lambda *_: True)
    return counts


@pytest.mark.parametrize("dtype", TYPES)
def test_elements_that_lie_right_are_copied_by_the_kernel(
    dtype: str, copied: list[int], tmp_path: Path
) -> None:
    array = values(dtype, (50, 6, 7), finite=False)
    (tmp_path / "a.idx").write_bytes(idx_bytes(array))
    convert(tmp_path / "a.idx", tmp_path / "native.npy")
    assert sum(copied) == (array.nbytes if array.itemsize == 1 else 0)
    copied.clear()
    convert(tmp_path / "a.idx", tmp_path / "big.npy", target_options={"byteorder": "big"})
    convert(tmp_path / "big.npy", tmp_path / "b.idx", items=slice(10, 30))
    assert sum(copied) == array.nbytes + array[10:30].nbytes
    assert (tmp_path / "b.idx").read_bytes() == idx_bytes(array[10:30])
    copied.clear()
    convert(tmp_path / "big.npy", tmp_path / "c.idx", items=slice(40, None, -3))
    assert not copied
    assert (tmp_path / "c.idx").read_bytes() == idx_bytes(array[40::-3])


def test_the_kernel_copies_pages_that_lie_alike_and_what_has_no_disk(tmp_path: Path) -> None:
    with open(tmp_path / "a", "wb") as file:
        disk = os.major(os.fstat(file.fileno()).st_dev) != 0
        assert stored._is_kernel_faster(16, file.fileno(), 16 + 3 * 4096 * 16)
        assert stored._is_kernel_faster(16, file.fileno(), 128) is not disk


@pytest.mark.parametrize("size", [0, 1, 4095, 1 << 20, (1 << 20) + 4000, (3 << 20) + 1])
def test_a_copy_through_memory_is_whole(
    size: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stored, "_is_kernel_faster", lambda *_: False)
    array = values("uint8", (size,), finite=False)
    np.save(tmp_path / "a.npy", array)
    convert(tmp_path / "a.npy", tmp_path / "a.idx")
    assert (tmp_path / "a.idx").read_bytes() == idx_bytes(array)


@pytest.mark.parametrize("code", ["EXDEV", "ENOSYS", "EINVAL", "EOPNOTSUPP", "EPERM"])
def test_where_the_kernel_does_not_copy_we_do(
    code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any) -> int:
        raise OSError(getattr(errno, code), "no")

    monkeypatch.setattr(os, "copy_file_range", refuse)
    monkeypatch.setattr(stored, "_is_kernel_faster", lambda *_: True)
    array = values("uint8", (50, 6, 7), finite=False)
    np.save(tmp_path / "a.npy", array)
    convert(tmp_path / "a.npy", tmp_path / "a.idx")
    assert (tmp_path / "a.idx").read_bytes() == idx_bytes(array)


def test_a_full_disk_is_no_reason_to_copy_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "copy_file_range", full)
    monkeypatch.setattr(stored, "_is_kernel_faster", lambda *_: True)
    np.save(tmp_path / "a.npy", values("uint8", (9,), finite=False))
    with pytest.raises(OSError, match="No space left"):
        convert(tmp_path / "a.npy", tmp_path / "a.idx")
    assert os.listdir(tmp_path) == ["a.npy"]


@pytest.mark.parametrize("in_kernel", [True, False])
def test_a_source_that_shrinks_meanwhile_is_told(
    in_kernel: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = tmp_path / "a.npy"
    np.save(source, values("uint8", (1000,), finite=False))

    def shrink(*_: Any) -> bool:
        os.truncate(source, 600)
        return in_kernel

    monkeypatch.setattr(stored, "_is_kernel_faster", shrink)
    with pytest.raises(TruncatedError, match="472 of 1,000 bytes") as caught:
        convert(source, tmp_path / "a.idx")
    assert caught.value.file == str(source)
    assert os.listdir(tmp_path) == ["a.npy"]


@pytest.mark.parametrize("in_kernel", [True, False])
def test_progress_is_told_of_a_copy(
    in_kernel: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stored, "_is_kernel_faster", lambda *_: in_kernel)
    np.save(tmp_path / "a.npy", np.zeros((40_000_000,), "uint8"))
    told: list[tuple[int, int]] = []
    convert(tmp_path / "a.npy", tmp_path / "a.idx", progress=lambda *now: told.append(now))
    assert [total for _, total in told] == [40_000_000] * len(told)
    assert [done for done, _ in told] == sorted({done for done, _ in told})
    assert len(told) > 2
    assert told[-1][0] == 40_000_000


class Trap:
    """What a pickle would run."""

    def __reduce__(self) -> Any:
        return os.mkdir, ("trapped",)


def saved(array: Any, **options: Any) -> bytes:
    file = io.BytesIO()
    np.save(file, array, **options)
    return file.getvalue()


PLAIN = saved(np.arange(6, dtype="int16").reshape(2, 3))
BAD: dict[str, tuple[bytes, type[Exception], str]] = {
    "objects": (saved(np.array([Trap()]), allow_pickle=True), UnsupportedError, "Python objects"),
    "fields": (saved(np.zeros(2, "i4,f8")), UnsupportedError, "which is no number"),
    "complex": (saved(np.zeros(2, complex)), UnsupportedError, "complex128"),
    "times": (saved(np.zeros(2, "M8[s]")), UnsupportedError, "datetime64"),
    "cut data": (PLAIN[:-1], TruncatedError, "11 data bytes found, 12 expected"),
    "cut header": (PLAIN[:70], FormatError, "header cannot be read"),
    "more": (PLAIN + b"x", FormatError, "13 data bytes found, 12 expected"),
    "no dict": (PLAIN.replace(b"{", b"("), FormatError, "header cannot be read"),
    "negative": (PLAIN.replace(b"(2, 3)", b"(2,-3)"), FormatError, "expected"),
    "huge": (PLAIN.replace(b"(2, 3)", b"(9**9)"), FormatError, "header cannot be read"),
    "lying": (PLAIN.replace(b"(2, 3), }  ", b"(2, 30**1)"), FormatError, "header"),
    "version": (b"\x93NUMPY\x09\x00" + PLAIN[8:], FormatError, "header cannot be read"),
}


@pytest.mark.parametrize("name", BAD)
@pytest.mark.parametrize("packed", [False, True], ids=["npy", "npz"])
def test_bad_files_are_refused_and_leave_nothing(
    name: str, packed: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    data, kind, message = BAD[name]
    source = tmp_path / ("a.npz" if packed else "a.npy")
    if packed:
        with zipfile.ZipFile(source, "w") as archive:
            archive.writestr("arr_0.npy", data)
    else:
        source.write_bytes(data)
    with pytest.raises(kind, match=message) as caught:
        convert(source, tmp_path / "a.idx")
    assert str(source) in str(caught.value)
    assert os.listdir(tmp_path) == [source.name]


def test_a_declared_size_is_compared_before_anything_is_taken(tmp_path: Path) -> None:
    file = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        file, {"descr": "<f8", "fortran_order": True, "shape": (1 << 20, 1 << 20, 1 << 20)}
    )
    (tmp_path / "a.npy").write_bytes(file.getvalue() + bytes(100))
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        archive.writestr("a.npy", file.getvalue() + bytes(100))
    for name in ("a.npy", "a.npz"):
        with pytest.raises(TruncatedError, match="100 data bytes found, 9,223,372,036,854,775,808"):
            convert(tmp_path / name, tmp_path / "a.idx")


# .npz


def test_numpy_loads_an_archive_and_its_names(tmp_path: Path) -> None:
    folder = mnist(tmp_path, 200)
    (folder / "classes.txt").write_text("".join(f"digit {n}\n" for n in range(10)))
    ds = idxfile.open_dataset(folder)
    for options in ({}, {"compressed": True}):
        convert(folder, tmp_path / "a.npz", target_options=options)
        found = np.load(tmp_path / "a.npz")
        assert sorted(found) == ["classes", "images", "labels"]
        assert (found["images"] == ds.images[...]).all()
        assert found["labels"].tolist() == ds.labels.tolist()
        assert found["classes"][9] == "digit 9"
    one = (tmp_path / "a.npz").read_bytes()
    convert(folder, tmp_path / "a.npz", target_options=options)
    assert (tmp_path / "a.npz").read_bytes() == one


def test_keras_names_are_written_and_read(tmp_path: Path) -> None:
    folder = mnist(tmp_path, 20)
    images = folder / "t10k-images-idx3-ubyte"
    convert(images, tmp_path / "a.npz", target_options={"names": "keras"})
    assert sorted(np.load(tmp_path / "a.npz")) == ["x_test", "y_test"]
    done = convert(tmp_path / "a.npz", f"{tmp_path}/out/")
    names = ["test-images-idx3-ubyte", "test-labels-idx1-ubyte"]
    assert sorted(os.listdir(tmp_path / "out")) == names
    assert list(done.columns) == ["images", "labels"]


@pytest.mark.parametrize(
    "names",
    [
        ("x_train", "y_train", "x_test", "y_test"),
        ("train_images", "train_labels", "test_images", "test_labels"),
        ("X_training", "Y_training", "X_testing", "Y_testing"),
    ],
    ids="/".join,
)
def test_splits_are_chosen_and_never_guessed(names: tuple[str, ...], tmp_path: Path) -> None:
    lengths = (5, 5, 3, 3)
    arrays = [np.full((n, 2, 2) if k % 2 == 0 else n, k, "uint8") for k, n in enumerate(lengths)]
    np.savez(tmp_path / "a.npz", **dict(zip(names, arrays, strict=True)))
    with pytest.raises(PairError, match="several splits: train, test"):
        convert(tmp_path / "a.npz", f"{tmp_path}/out/")
    with pytest.raises(PairError, match="no split 'validation'"):
        convert(tmp_path / "a.npz", f"{tmp_path}/out/", split="validation")
    for split, count, value in (("train", 5, 0), ("test", 3, 2)):
        convert(tmp_path / "a.npz", f"{tmp_path}/out/", split=split)
        ds = idxfile.open_dataset(tmp_path / "out", split=split)
        assert len(ds) == count
        assert ds.images[0].tolist() == [[value] * 2] * 2
        assert ds.labels.tolist() == [value + 1] * count


def test_a_damaged_member_is_found_by_its_checksum(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", images=values("uint8", (100, 9), finite=False))
    data = bytearray((tmp_path / "a.npz").read_bytes())
    data[500] ^= 1
    (tmp_path / "a.npz").write_bytes(data)
    with pytest.raises(FormatError, match="CRC"):
        convert(tmp_path / "a.npz", tmp_path / "a.idx")
    assert os.listdir(tmp_path) == ["a.npz"]


def test_archives_that_are_none_and_members_that_lie(tmp_path: Path) -> None:
    np.savez_compressed(tmp_path / "a.npz", images=np.zeros((500, 99), "uint8"))
    whole = (tmp_path / "a.npz").read_bytes()
    assert len(whole) < 1000
    (tmp_path / "a.npz").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(FormatError, match="cannot be read"):
        convert(tmp_path / "a.npz", tmp_path / "a.idx", source_format="npz")
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        archive.writestr("readme.txt", "nothing")
    with pytest.raises(FormatError, match="holds no"):
        convert(tmp_path / "a.npz", tmp_path / "a.idx", source_format="npz")
    # The directory says less than the member holds.
    small = whole.replace((49_500 + 128).to_bytes(4, "little"), (600).to_bytes(4, "little"))
    assert small != whole
    (tmp_path / "a.npz").write_bytes(small)
    with pytest.raises(FormatError):
        convert(tmp_path / "a.npz", tmp_path / "a.idx")
    assert os.listdir(tmp_path) == ["a.npz"]


def test_arrays_in_fortran_order_and_scalars_in_an_archive(tmp_path: Path) -> None:
    array = np.asfortranarray(values("int32", (3, 4, 5), finite=True))
    np.savez(tmp_path / "a.npz", images=array)
    convert(tmp_path / "a.npz", tmp_path / "a.idx")
    assert (idxfile.read(tmp_path / "a.idx") == array).all()


def test_a_pickle_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "a.npy").write_bytes(pickle.dumps([1, 2, 3]))
    with pytest.raises(FormatError, match="a pickle, which cannot be converted from"):
        convert(tmp_path / "a.npy", tmp_path / "a.idx")
