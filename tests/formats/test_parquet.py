"""Parquet and Arrow files: what pyarrow, pandas, polars, DuckDB and Hugging Face read and wrote."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from trials import TYPES, mnist, values

import idxfile
from idxfile import FormatError, UnsupportedError, convert

pa = import_module("pyarrow")
pq = import_module("pyarrow.parquet")
feather = import_module("pyarrow.feather")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = mnist(tmp_path, 300)
    (folder / "classes.txt").write_text("".join(f"digit {n}\n" for n in range(10)))
    return folder


def read_table(path: Path) -> Any:
    if path.suffix == ".parquet":
        return pq.read_table(path)
    with pa.ipc.open_file(path) as reader:
        return reader.read_all()


@pytest.mark.parametrize("suffix", ["parquet", "arrow"])
@pytest.mark.parametrize("encoding", ["tensor", "binary", "png"])
def test_pyarrow_reads_every_encoding_and_so_do_we(
    suffix: str, encoding: str, folder: Path
) -> None:
    ds = idxfile.open_dataset(folder)
    path = folder / f"a.{suffix}"
    done = convert(folder, path, target_options={"encoding": encoding})
    assert done.classes == ds.classes
    table = read_table(path)
    assert table.column_names == ["image", "label"]
    assert table["label"].to_numpy().tolist() == ds.labels.tolist()
    column = table["image"].combine_chunks()
    if encoding == "tensor":
        assert column.type == pa.fixed_shape_tensor(pa.uint8(), (28, 28))
        found = column.to_numpy_ndarray()
    elif encoding == "binary":
        assert column.type == pa.binary(784)
        assert table.schema.field("image").metadata == {b"shape": b"[28, 28]", b"dtype": b"uint8"}
        found = np.frombuffer(b"".join(column.to_pylist()), "uint8").reshape(-1, 28, 28)
    else:
        import_module("PIL")
        from PIL import Image

        pictures = [row["bytes"] for row in column.to_pylist()]
        found = np.stack([np.asarray(Image.open(io.BytesIO(data))) for data in pictures])
    assert (found == ds.images[...]).all()
    back = convert(path, f"{folder}/back/", split="t10k")
    assert back.classes == ds.classes
    for name in ("t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"):
        assert (folder / "back" / name).read_bytes() == (folder / name).read_bytes()


@pytest.mark.parametrize("suffix", ["parquet", "arrow"])
@pytest.mark.parametrize("dtype", TYPES)
def test_bytes_hold_every_type(suffix: str, dtype: str, tmp_path: Path) -> None:
    array = values(dtype, (5, 2, 3), finite=False)
    idxfile.write(tmp_path / "a.idx", array)
    convert(tmp_path / "a.idx", tmp_path / f"a.{suffix}", target_options={"encoding": "binary"})
    convert(tmp_path / f"a.{suffix}", tmp_path / "b.idx")
    assert (tmp_path / "b.idx").read_bytes() == (tmp_path / "a.idx").read_bytes()


def test_what_is_no_picture_is_no_png(tmp_path: Path) -> None:
    for array in (
        np.zeros((2, 3, 4), "int16"),
        np.zeros((2, 3), "uint8"),
        np.zeros((2, 3, 4, 4), "uint8"),
    ):
        idxfile.write(tmp_path / "a.idx", array)
        with pytest.raises(UnsupportedError, match="are no pictures"):
            convert(tmp_path / "a.idx", tmp_path / "a.parquet", target_options={"encoding": "png"})
    assert os.listdir(tmp_path) == ["a.idx"]


@pytest.mark.parametrize("compression", ["snappy", "zstd", "gzip", "lz4", "none"])
def test_pages_are_compressed_as_chosen(compression: str, folder: Path) -> None:
    convert(folder, folder / "a.parquet", target_options={"compression": compression})
    found = pq.ParquetFile(folder / "a.parquet").metadata.row_group(0).column(0).compression
    assert found == {"none": "UNCOMPRESSED"}.get(compression, compression.upper())


def test_rows_are_written_in_groups(tmp_path: Path) -> None:
    idxfile.write(tmp_path / "a.idx", np.zeros((30_000, 28, 28), "uint8"))
    convert(tmp_path / "a.idx", tmp_path / "a.parquet", target_options={"encoding": "binary"})
    facts = pq.ParquetFile(tmp_path / "a.parquet").metadata
    assert facts.num_rows == 30_000
    assert facts.num_row_groups == 12


# What others wrote


def hugging_face(pictures: list[bytes], labels: list[int], **more: Any) -> Any:
    """The layout of `ylecun/mnist` on Hugging Face."""
    images = [{"bytes": data, "path": f"{n}.png"} for n, data in enumerate(pictures)]
    features = {
        "image": {"_type": "Image"},
        "label": {"names": list("0123456789"), "_type": "ClassLabel"},
    }
    metadata = {"huggingface": json.dumps({"info": {"features": features}})}
    table = pa.table({"image": images, "label": labels, **more})
    return table.replace_schema_metadata(metadata)


def png_of(array: np.ndarray) -> bytes:
    image = import_module("PIL.Image")
    file = io.BytesIO()
    image.fromarray(array).save(file, "PNG")
    return file.getvalue()


def test_hugging_faces_layout_is_read(folder: Path) -> None:
    ds = idxfile.open_dataset(folder)
    pictures = [png_of(image) for image in ds.images]
    table = hugging_face(pictures, ds.labels.tolist())
    pq.write_table(table, folder / "a.parquet", row_group_size=70)
    with (
        pa.OSFile(str(folder / "a.arrow"), "wb") as file,  # as `datasets` keeps it: a stream
        pa.ipc.new_stream(file, table.schema) as writer,
    ):
        writer.write_table(table, max_chunksize=70)
    for name in ("a.parquet", "a.arrow"):
        done = convert(folder / name, f"{folder}/{name}-out/", split="t10k")
        assert done.classes == tuple("0123456789")
        for file in ("t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"):
            assert (folder / f"{name}-out" / file).read_bytes() == (folder / file).read_bytes()


def test_pictures_of_colours_ask_for_a_choice(tmp_path: Path) -> None:
    colours = values("uint8", (3, 4, 5, 3), finite=True)
    pq.write_table(hugging_face([png_of(c) for c in colours], [0, 1, 2]), tmp_path / "a.parquet")
    with pytest.raises(UnsupportedError, match="choose"):
        convert(tmp_path / "a.parquet", tmp_path / "a.idx")
    convert(tmp_path / "a.parquet", tmp_path / "a.idx", source_options={"rgb": True})
    assert (idxfile.read(tmp_path / "a.idx") == colours).all()
    convert(tmp_path / "a.parquet", tmp_path / "a.idx", source_options={"grey": True})
    assert idxfile.read(tmp_path / "a.idx").shape == (3, 4, 5)


def test_pictures_of_several_sizes_are_no_array(tmp_path: Path) -> None:
    pictures = [png_of(np.zeros(shape, "uint8")) for shape in ((4, 5), (4, 5), (5, 4))]
    pq.write_table(hugging_face(pictures, [0, 1, 2]), tmp_path / "a.parquet")
    with pytest.raises(UnsupportedError, match="different shapes"):
        convert(tmp_path / "a.parquet", tmp_path / "a.idx")
    assert os.listdir(tmp_path) == ["a.parquet"]


def test_what_is_no_picture_is_told_with_its_row(tmp_path: Path) -> None:
    pictures = [png_of(np.zeros((4, 5), "uint8")), b"nothing"]
    pq.write_table(hugging_face(pictures, [0, 1]), tmp_path / "a.parquet")
    with pytest.raises(FormatError, match="image 1"):
        convert(tmp_path / "a.parquet", tmp_path / "a.idx")


@pytest.mark.parametrize(
    "kind",
    [
        pa.list_(pa.list_(pa.uint8())),
        pa.large_list(pa.list_(pa.uint8(), 3)),
        pa.list_(pa.list_(pa.uint8(), 3), 2),
    ],
    ids=str,
)
def test_lists_of_lists_are_items(kind: Any, tmp_path: Path) -> None:
    array = np.arange(60, dtype="uint8").reshape(10, 2, 3)
    table = pa.table({"image": pa.array(array.tolist(), kind), "label": list(range(10))})
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=4)
    done = convert(tmp_path / "a.parquet", tmp_path / "a.npz")
    assert done.columns["images"] == ("uint8", (10, 2, 3))
    assert (np.load(tmp_path / "a.npz")["images"] == array).all()


@pytest.mark.parametrize(
    ("columns", "kind", "message"),
    [
        ({"image": [[1, 2], [3]]}, UnsupportedError, "lists of 1 and 2 values|items of shape"),
        ({"image": [[1, 2], None]}, UnsupportedError, "missing"),
        ({"image": [[1, None]]}, UnsupportedError, "missing"),
        ({"label": [1, None]}, UnsupportedError, "missing"),
        ({"image": [[["a"]]]}, UnsupportedError, "no columns of numbers|holds no"),
        ({"x": [{"a": 1}]}, UnsupportedError, "no columns of numbers|holds no"),
        ({"a": ["x"]}, UnsupportedError, "no columns of numbers"),
        ({"when": pa.array([0], pa.timestamp("s"))}, UnsupportedError, "no|cannot hold"),
    ],
)
def test_what_is_no_array_is_refused(
    columns: dict[str, Any], kind: type[Exception], message: str, tmp_path: Path
) -> None:
    pq.write_table(pa.table(columns), tmp_path / "a.parquet")
    with pytest.raises(kind, match=message) as caught:
        convert(tmp_path / "a.parquet", tmp_path / "a.idx")
    assert caught.value.file is not None
    assert caught.value.file.startswith(str(tmp_path / "a.parquet"))
    assert os.listdir(tmp_path) == ["a.parquet"]


def test_class_names_are_numbered(tmp_path: Path) -> None:
    names = pa.array(["dog", "cat", "dog"])
    for labels in (names, names.dictionary_encode(), names.cast(pa.large_string())):
        table = pa.table({"image": [[1, 2], [3, 4], [5, 6]], "class": labels})
        pq.write_table(table, tmp_path / "a.parquet")
        done = convert(tmp_path / "a.parquet", f"{tmp_path}/out/", dtype="uint8")
        assert done.classes == ("cat", "dog")
        assert idxfile.open_dataset(tmp_path / "out").labels.tolist() == [1, 0, 1]


def test_a_column_for_every_pixel_is_a_table(tmp_path: Path) -> None:
    pixels = np.arange(40, dtype="uint8").reshape(10, 4)
    columns = {f"pixel{n + 1}": pixels[:, n] for n in range(4)}
    table = pa.table(
        {"id": list("abcdefghij"), **columns, "class": pa.array(range(10), pa.int64())}
    )
    for suffix, write in (("parquet", pq.write_table), ("arrow", feather.write_feather)):
        write(table, tmp_path / f"a.{suffix}")
        done = convert(
            tmp_path / f"a.{suffix}", tmp_path / "a.npz", source_options={"shape": (2, 2)}
        )
        found = np.load(tmp_path / "a.npz")
        assert (found["images"] == pixels.reshape(10, 2, 2)).all()
        assert found["images"].dtype == "uint8"
        assert found["labels"].tolist() == list(range(10))
        assert done.notes[0].startswith("left out id")


@pytest.mark.parametrize("name", ["a.parquet", "a.arrow"])
def test_damaged_files_are_told(name: str, folder: Path) -> None:
    path = folder / name
    convert(folder, path, target_options={"encoding": "binary"})
    whole = path.read_bytes()
    for data in (whole[: len(whole) // 2], whole[:20], whole[:-4] + b"nope"):
        path.write_bytes(data)
        with pytest.raises(FormatError, match="cannot be read") as caught:
            convert(path, folder / "out.npz")
        assert caught.value.file == str(path)
        assert not (folder / "out.npz").exists()


# What others read


def test_pandas_reads_and_writes(folder: Path) -> None:
    pd = import_module("pandas")
    ds = idxfile.open_dataset(folder)
    convert(folder, folder / "a.parquet", target_options={"encoding": "binary"})
    frame = pd.read_parquet(folder / "a.parquet")
    assert frame["label"].tolist() == ds.labels.tolist()
    found = np.frombuffer(b"".join(frame["image"]), "uint8").reshape(-1, 28, 28)
    assert (found == ds.images[...]).all()
    frame["image"] = [image.reshape(-1).tolist() for image in ds.images]
    frame.to_parquet(folder / "b.parquet")
    convert(folder / "b.parquet", folder / "b.npz", dtype="auto")
    assert (np.load(folder / "b.npz")["images"] == ds.images[...].reshape(300, 784)).all()


def test_polars_reads_and_writes(folder: Path) -> None:
    pl = import_module("polars")
    ds = idxfile.open_dataset(folder)
    convert(folder, folder / "a.parquet")
    frame = pl.read_parquet(folder / "a.parquet")
    assert frame["label"].to_list() == ds.labels.tolist()
    pl.DataFrame({"image": ds.images[...], "label": ds.labels}).write_parquet(folder / "b.parquet")
    done = convert(folder / "b.parquet", folder / "b.npz")
    assert done.columns["images"] == ("uint8", (300, 28, 28))
    assert (np.load(folder / "b.npz")["images"] == ds.images[...]).all()


def test_duckdb_queries(folder: Path) -> None:
    duckdb = import_module("duckdb")
    ds = idxfile.open_dataset(folder)
    convert(folder, folder / "a.parquet")
    query = f"select label, count(*) from '{folder / 'a.parquet'}' group by label order by label"
    assert dict(duckdb.sql(query).fetchall()) == ds.class_counts()
    (row,) = duckdb.sql(f"select image from '{folder / 'a.parquet'}' limit 1").fetchall()
    assert (np.array(row[0]).reshape(28, 28) == ds.images[0]).all()


HUGGING_FACE = """
import sys, json, numpy as np, datasets
for name in sys.argv[1:]:
    ds = datasets.load_dataset("parquet", data_files=name, split="train", cache_dir=name + "-cache")
    print(json.dumps([str(ds.features["image"]), ds.features["label"].names,
                      ds["label"][:], np.stack([np.asarray(i) for i in ds["image"]]).sum().item()]))
"""


@pytest.mark.slow
def test_hugging_face_reads_ours(folder: Path) -> None:
    ds = idxfile.open_dataset(folder)
    path = folder / "a.parquet"
    convert(folder, path, target_options={"encoding": "png"})
    environment = {**os.environ, "HF_HUB_OFFLINE": "1"}
    done = subprocess.run(
        [sys.executable, "-c", HUGGING_FACE, str(path)],
        capture_output=True,
        text=True,
        env=environment,
    )
    assert done.returncode == 0, done.stderr
    feature, names, labels, total = json.loads(done.stdout.splitlines()[-1])
    assert feature.startswith("Image(")
    assert names == [f"digit {n}" for n in range(10)]
    assert labels == ds.labels.tolist()
    assert total == ds.images[...].sum()


def test_tensors_of_permuted_axes_and_missing_tensors(tmp_path: Path) -> None:
    array = np.arange(24, dtype="int16").reshape(4, 2, 3)
    kind = pa.fixed_shape_tensor(pa.int16(), (3, 2), permutation=[1, 0])
    turned = np.ascontiguousarray(array.transpose(0, 2, 1)).reshape(4, 6)
    storage = pa.array(turned.tolist(), pa.list_(pa.int16(), 6))
    for missing in (False, True):
        if missing:
            storage = pa.array([*turned.tolist()[:3], None], pa.list_(pa.int16(), 6))
        table = pa.table({"image": pa.ExtensionArray.from_storage(kind, storage)})
        pq.write_table(table, tmp_path / "a.parquet")
        if missing:
            with pytest.raises(UnsupportedError, match="missing"):
                convert(tmp_path / "a.parquet", tmp_path / "a.npy")
        else:
            convert(tmp_path / "a.parquet", tmp_path / "a.npy")
            assert (np.load(tmp_path / "a.npy") == array).all()
