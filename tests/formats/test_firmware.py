"""What firmware and FPGA benches read: a C header by a C compiler, a memory file by Verilog."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import idxfile
from conftest import MNIST, TYPES, bits
from idxfile.errors import UnsupportedError
from idxfile.formats import cheader, readmemh
from idxfile.formats.columns import Columns, Sliced
from idxfile.formats.conversion import convert

IMAGES = np.arange(12, dtype=np.uint8).reshape(2, 2, 3) * 20
LABELS = np.array([7, -3], np.int16)

STRICT = ("-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic")


def header(path: Path, classes: Any = None, **arrays: Any) -> str:
    options = {"prefix": arrays.pop("prefix")} if "prefix" in arrays else {}
    columns = Columns({name: Sliced(array) for name, array in arrays.items()}, classes)
    cheader.write_columns(str(path), columns, **options)
    return path.read_text()


def compiled(folder: Path, body: str, *headers: str) -> str:
    """What a program prints that includes headers, twice."""
    includes = "".join(f'#include "{name}"\n' * 2 for name in headers)
    (folder / "main.c").write_text(
        f"#include <stdio.h>\n#include <string.h>\n{includes}"
        f"int main(void) {{\n{body}\nreturn 0; }}\n"
    )
    (folder / "other.c").write_text(f"{includes}extern int other;\nint other;\n")
    command = ("gcc", *STRICT, "main.c", "other.c", "-o", "main")
    subprocess.run(command, check=True, cwd=folder)
    return subprocess.run(
        ("./main",), check=True, cwd=folder, capture_output=True, text=True
    ).stdout


def test_a_header_as_it_stands(tmp_path: Path) -> None:
    text = header(tmp_path / "x.h", ("a", None, 'b"\\'), images=IMAGES, labels=LABELS)
    assert text == (
        "#ifndef IDX_IMAGES_H\n#define IDX_IMAGES_H\n\n#include <stdint.h>\n"
        "\n/* images: uint8, 2 x 2 x 3 */\n"
        "#define IMAGES_ITEMS 2\n#define IMAGES_ROWS 2\n#define IMAGES_COLUMNS 3\n"
        "static const uint8_t images[2][2][3] = {\n"
        "  {\n    {0, 20, 40},\n    {60, 80, 100},\n  },\n"
        "  {\n    {120, 140, 160},\n    {180, 200, 220},\n  },\n};\n"
        "\n/* labels: int16, 2 */\n#define LABELS_ITEMS 2\n"
        "static const int16_t labels[2] = {\n  7, -3,\n};\n"
        "\n#define CLASSES_ITEMS 3\nstatic const char *const classes[3] = {\n"
        '  "a",\n  "",\n  "b\\042\\134",\n};\n'
        "\n#endif /* IDX_IMAGES_H */\n"
    )


def test_a_program_sums_what_it_includes(tmp_path: Path) -> None:
    images = np.random.default_rng(0).integers(0, 256, (5, 7, 40), np.uint8)
    header(tmp_path / "x.h", ("zéro", "one?"), images=images, labels=np.arange(5), prefix="digits")
    body = """
    long sum = 0;
    for (int i = 0; i < DIGITS_IMAGES_ITEMS; i++)
        for (int r = 0; r < DIGITS_IMAGES_ROWS; r++)
            for (int c = 0; c < DIGITS_IMAGES_COLUMNS; c++)
                sum += (long)digits_images[i][r][c] * (i + 2 * r + 3 * c + 1);
    for (int i = 0; i < DIGITS_LABELS_ITEMS; i++) sum += digits_labels[i];
    printf("%ld %s %s", sum, digits_classes[0], digits_classes[1]);
    """
    i, r, c = np.indices(images.shape)
    expected = int((images.astype(int) * (i + 2 * r + 3 * c + 1)).sum()) + 10
    assert compiled(tmp_path, body, "x.h") == f"{expected} zéro one?"


EXTREMES = {
    **{f"{k}{b}": np.iinfo(f"{k}{b}") for k in ("int", "uint") for b in (8, 16, 32, 64)},
    "float32": np.finfo(np.float32),
    "float64": np.finfo(np.float64),
}


@pytest.mark.parametrize("dtype", EXTREMES)
@pytest.mark.parametrize("shape", [(), (6,), (3, 2), (1, 3, 1, 2), (1, 1, 6)])
def test_every_type_and_shape_keeps_its_bits(dtype: str, shape: Any, tmp_path: Path) -> None:
    limits = EXTREMES[dtype]
    values = [limits.min, limits.max, 0, 1, limits.max // 3, limits.min // 7]
    if dtype.startswith("float"):
        values = [limits.min, limits.max, -0.0, limits.smallest_subnormal, 1 / 3, limits.tiny]
    array = np.array(values, dtype)
    array = array[0].reshape(()) if shape == () else array.reshape(shape)
    header(tmp_path / "x.h", images=array)
    address = "&images" if shape == () else "images"
    body = f"""
    unsigned char bytes[sizeof images];
    memcpy(bytes, {address}, sizeof images);
    for (unsigned i = 0; i < sizeof images; i++) printf("%02x", bytes[i]);
    """
    assert (
        compiled(tmp_path, body, "x.h")
        == array.astype(array.dtype.newbyteorder("<")).tobytes().hex()
    )


def test_mnist_as_a_header(tmp_path: Path) -> None:
    images = idxfile.read(MNIST / "t10k-images-idx3-ubyte.gz")[:300]
    pair = tmp_path / "mnist"
    pair.mkdir()
    idxfile.write(pair / "t10k-images-idx3-ubyte", images)
    labels = idxfile.read(MNIST / "t10k-labels-idx1-ubyte.gz")[:300]
    idxfile.write(pair / "t10k-labels-idx1-ubyte", labels)
    done = convert(pair, tmp_path / "mnist.h", target_options={"prefix": "mnist"})
    assert done.target_format == "c"
    body = """
    long sum = 0;
    const uint8_t *p = &mnist_images[0][0][0];
    for (unsigned i = 0; i < sizeof mnist_images; i++) sum += p[i];
    for (unsigned i = 0; i < MNIST_LABELS_ITEMS; i++) sum += 1000 * mnist_labels[i];
    printf("%ld", sum);
    """
    assert compiled(tmp_path, body, "mnist.h") == str(
        images.sum(dtype=int) + 1000 * labels.sum(dtype=int)
    )


def test_two_headers_in_one_program(tmp_path: Path) -> None:
    header(tmp_path / "a.h", images=IMAGES, prefix="a")
    header(tmp_path / "b.h", images=IMAGES[:1], **{"odd name-1": LABELS[:1]}, prefix="b")
    body = 'printf("%d %d %d", A_IMAGES_ITEMS, B_IMAGES_ITEMS, b_odd_name_1[0]);'
    assert compiled(tmp_path, body, "a.h", "b.h") == "2 1 7"


def test_what_c_does_not_have(tmp_path: Path) -> None:
    for array in (np.zeros((0, 3), np.uint8), np.zeros((2, 0), np.uint8)):
        with pytest.raises(UnsupportedError, match="no elements"):
            header(tmp_path / "x.h", images=array)
    for value in (np.nan, np.inf, -np.inf):
        with pytest.raises(UnsupportedError, match="finite"):
            header(tmp_path / "x.h", images=np.array([[1, value]], np.float32))
    for prefix in ("1st", "a b", "", "ä"):
        with pytest.raises(ValueError, match="prefix must begin a name"):
            header(tmp_path / "x.h", images=IMAGES, prefix=prefix)


# Verilog


def memory(path: Path, array: np.ndarray, **options: Any) -> list[str]:
    readmemh.write_columns(str(path), Columns({"images": Sliced(array)}), **options)
    return path.read_text().splitlines()


def words(lines: list[str]) -> list[int]:
    """The memory, as the standard says: comments are left out, words stand between spaces."""
    return [int(word, 16) for line in lines for word in line.partition("//")[0].split()]


def test_a_memory_file_as_it_stands(tmp_path: Path) -> None:
    assert memory(tmp_path / "x.mem", IMAGES[:, :1]) == [
        "// images: uint8, 2 x 1 x 3; one element a word of 8 bits",
        "// reg [7:0] images [0:5];",
        *("00", "14", "28", "78", "8c", "a0"),
    ]
    assert memory(tmp_path / "x.mem", IMAGES, word="row")[1:] == [
        "// reg [23:0] images [0:3];",
        *("001428", "3c5064", "788ca0", "b4c8dc"),
    ]
    assert memory(tmp_path / "x.mem", IMAGES, word="item")[1:] == [
        "// reg [47:0] images [0:1];",
        *("0014283c5064", "788ca0b4c8dc"),
    ]


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("shape", [(), (5,), (3, 4), (2, 3, 4), (0, 3), (2, 0)])
@pytest.mark.parametrize("word", ["element", "row", "item"])
def test_every_type_keeps_its_bits(dtype: str, shape: Any, word: Any, tmp_path: Path) -> None:
    array = bits(dtype, *shape) if shape else bits(dtype, 1).reshape(())
    lines = memory(tmp_path / "x.hex", array, word=word)
    parts = {"element": 1, "row": (shape or (1,))[-1] if len(shape) > 1 else 1}
    parts["item"] = int(np.prod(shape[1:]))
    big = array.astype(array.dtype.newbyteorder(">")).tobytes()
    size = parts[word] * array.itemsize
    expected = [int.from_bytes(big[n : n + size], "big") for n in range(0, len(big), size or 1)]
    assert words(lines) == expected
    assert len(lines) == 2 + len(expected)


def test_a_conversion_takes_one_column(tmp_path: Path) -> None:
    pair = tmp_path / "pair"
    pair.mkdir()
    idxfile.write(pair / "train-images-idx3-ubyte", IMAGES)
    idxfile.write(pair / "train-labels-idx1-ubyte", np.array([10, 11], np.uint8))
    done = convert(pair, tmp_path / "x.mem")
    assert done.target_format == "readmemh"
    assert words((tmp_path / "x.mem").read_text().splitlines()) == IMAGES.reshape(-1).tolist()
    assert "left out labels" in done.notes[0]
    convert(pair, tmp_path / "y.hex", column="labels")
    assert words((tmp_path / "y.hex").read_text().splitlines()) == [10, 11]
    convert(pair, tmp_path / "z.hex", target_options={"word": "item"})
    assert len((tmp_path / "z.hex").read_text().splitlines()) == 4


@pytest.mark.parametrize("word", ["element", "row", "item"])
def test_a_simulator_reads_it(word: Any, tmp_path: Path) -> None:
    lines = memory(tmp_path / "x.mem", IMAGES, word=word)
    count = len(lines) - 2
    declared = lines[1].removeprefix("// ")
    (tmp_path / "x.v").write_text(
        f'module x; {declared} integer i; initial begin $readmemh("x.mem", images);\n'
        f'for (i = 0; i < {count}; i = i + 1) $display("%h", images[i]); end endmodule\n'
    )
    subprocess.run(("iverilog", "-Wall", "-o", "x", "x.v"), check=True, cwd=tmp_path)
    run = subprocess.run(
        ("vvp", "-n", "x"), check=True, cwd=tmp_path, capture_output=True, text=True
    )
    assert run.stdout.splitlines() == lines[2:]
