"""Files that other programs wrote, or keep in their own tests."""

from __future__ import annotations

import zlib
from dataclasses import replace

from .row import Answer, Problem, Row, problem

LIBIDX = ("https://github.com/jspaaks/libidx", "Apache-2.0")
PYLEARN2 = ("https://github.com/lisa-lab/pylearn2", "BSD-3-Clause")
PHP_ML = ("https://github.com/jorgecasas/php-ml", "MIT")
IDX2NUMPY = ("https://github.com/ivanyu/idx2numpy", "MIT")
MORPHO = ("https://github.com/dccastro/Morpho-MNIST", "MIT")


def collected(
    name: str,
    why: str,
    source: tuple[str, str],
    data: str,
    answer: Answer | None,
    *refusals: Problem,
    tag: str = "core",
    suffix: str = ".idx",
) -> Row:
    """A file of another program, byte for byte."""
    row = Row(name, why, bytes.fromhex(data), (tag,), answer, refusals, suffix=suffix)
    return replace(row, origin=source[0], licence=source[1])


def _answer(type_: str, shape: tuple[int, ...], values: str, swapped: int = 1) -> Answer:
    """The elements in hex; `swapped` is the size of elements that are written little-endian."""
    data = bytes.fromhex(values)
    turned = (data[at : at + swapped][::-1] for at in range(0, len(data), swapped))
    return Answer(type_, shape, b"".join(turned))


def _of_libidx(name: str, code: str, type_: str, values: str, dims: str = "") -> Row:
    start = f"0000{code}02 00000003 00000002" if not dims else f"0000{code}01 {dims}"
    shape = (3, 2) if not dims else (6,)
    why = f"libidx: the extremes of {type_} in a matrix of three rows and two columns."
    return collected(f"libidx-{name}", why, LIBIDX, start + values, _answer(type_, shape, values))


OF_LIBIDX = (
    _of_libidx("uint8-1d", "08", "uint8", "00010f107fff", "00000006"),
    _of_libidx("uint8-2d", "08", "uint8", "00010f107fff"),
    _of_libidx("int8-2d", "09", "int8", "80ff0000017f"),
    _of_libidx("int16-2d", "0b", "int16", "8000 ffff 0000 0000 0001 7fff"),
    _of_libidx("int32-2d", "0c", "int32", "80000000 ffffffff 00000000 00000000 00000001 7fffffff"),
    _of_libidx("float-2d", "0d", "float32", "ff7fffff bf800000 80000000 00000000 3f800000"
               "7f7fffff"),
    _of_libidx("double-2d", "0e", "float64", "ffefffffffffffff bff0000000000000 8000000000000000"
               "0000000000000000 3ff0000000000000 7fefffffffffffff"),
)  # fmt: skip


def _of_pylearn2(
    name: str, head: str, values: str, type_: str, shape: tuple[int, ...], size: int = 1
) -> Row:
    why = f"pylearn2: a Lush matrix of {type_}, little-endian, as the NORB files are."
    answer = _answer(type_, shape, values, size)
    return collected(
        f"pylearn2-{name}", why, PYLEARN2, head + values, answer, tag="lush", suffix=".mat"
    )


OF_PYLEARN2 = (
    _of_pylearn2("ubyte-scalar", "554c3d1e 02000000 01000000 01000000 01000000", "0c", "uint8",
                 (1, 1)),
    _of_pylearn2("ubyte", "554c3d1e 03000000 02000000 03000000 04000000",
                 "101c2834 131f2b37 16222e3a 111d2935 14202c38 17232f3b", "uint8", (2, 3, 4)),
    _of_pylearn2("int", "544c3d1e 03000000 03000000 02000000 04000000",
                 "deb1ffff 449c0000 78c7feff 10710200 fe3d14f4 0484d717 f8f750d0 10105e5f"
                 "dcb1ffff 489c0000 70c7feff 20710200 fc3d14f4 0884d717 f0f750d0 20105e5f"
                 "dab1ffff 4c9c0000 68c7feff 30710200 fa3d14f4 0c84d717 e8f750d0 30105e5f",
                 "int32", (3, 2, 4), 4),
    _of_pylearn2("float", "514c3d1e 03000000 04000000 03000000 02000000",
                 "66668640 cdccbc40 6666b640 cdccec40 6666e640 66660e41 6666a640 cdccdc40"
                 "6666d640 66660641 33330341 66661e41 6666c640 cdccfc40 6666f640 66661641"
                 "33331341 66662e41 6666e640 66660e41 33330b41 66662641 33332341 66663e41",
                 "float32", (4, 3, 2), 4),
    _of_pylearn2("double", "534c3d1e 03000000 04000000 02000000 03000000",
                 "9a9999999999e93f 8fc2f5285c8f1540 e6fba9f1d24d03c0 6666666666660240"
                 "8fc2f5285c8f1b40 98efa7c64b37edbf cdccccccccccfc3f 8fc2f5285c8f1940"
                 "ccf753e3a59bf6bf 6666666666660a40 8fc2f5285c8f1f40 4083c0caa145b63f"
                 "6666666666660640 8fc2f5285c8f1d40 30df4f8d976edabf 3333333333331140"
                 "48e17a14aec72140 3408ac1c5a64f13f 6666666666660e40 48e17a14aec72040"
                 "68105839b4c8e23f 3333333333331540 48e17a14aec72340 1a04560e2db20040",
                 "float64", (4, 2, 3), 8),
)  # fmt: skip

MORPHO_LABELS = (
    "1f8b08085dca876702ff747261696e2d6c6162656c732d305f332d696478312d7562797465006360e06064606060"
    "666560010076bae60f0b000000"
)

OTHERS = (
    collected("idx2numpy-correct", "idx2numpy: three labels.", IDX2NUMPY,
              "00000801 00000003 0a0b0c", _answer("uint8", (3,), "0a0b0c")),
    collected("php-ml-labels", "php-ml: 10,000 labels declared, ten there: only the beginning of "
              "the published file was kept.", PHP_ML, "00000801 00002710 0702 0100 0401 0409 0509",
              None, problem("truncated", 18)),
    collected("php-ml-labels-11", "php-ml: 10,000 labels declared, eleven there.", PHP_ML,
              "00000801 00002710 0702 0100 0401 0409 0509 00", None, problem("truncated", 19)),
    collected("morpho-labels", "Morpho-MNIST: three labels, gzip with a stored name.", MORPHO,
              MORPHO_LABELS,
              Answer("uint8", (3,), zlib.decompress(bytes.fromhex(MORPHO_LABELS), 31)[8:]),
              tag="gz", suffix=".idx.gz"),
)  # fmt: skip

ROWS = (*OF_LIBIDX, *OF_PYLEARN2, *OTHERS)
