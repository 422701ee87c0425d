"""Right files of the format itself: types, values, shapes."""

from __future__ import annotations

from .row import Problem, good, pattern, problem

CANNOT_HOLD = Problem("dimension")
"""An empty array whose other dimensions multiply to more than a reader's sizes hold."""

TOO_MANY = problem("many-dimensions", 3)
"""More than 32 dimensions: a reader may say that its arrays do not have so many."""

# The order of the bytes, the sign, the extremes.
VALUES = (
    good("uint8-values", "All of uint8's range; 128 and 255 are not negative.", "uint8", (6,),
         [0, 1, 127, 128, 254, 255]),
    good("int8-values", "All of int8's range; ff is -1 and not 255.", "int8", (5,),
         [-128, -1, 0, 1, 127]),
    good("int16-values", "The extremes, and 256, which swapped would be 1.", "int16", (8,),
         [-32768, -256, -1, 0, 1, 255, 256, 32767]),
    good("int32-values", "The extremes, and 70000, which needs a third byte.", "int32", (8,),
         [-(2**31), -70000, -1, 0, 1, 256, 70000, 2**31 - 1]),
    good("float32-values", "The largest, the smallest normal and subnormal, 0.1, pi.", "float32",
         (10,), "7f7fffff ff7fffff 00800000 80800000 007fffff 00000001 80000001"
         "3f800000 3dcccccd 40490fdb"),
    good("float64-values", "The largest, the smallest normal and subnormal, 0.1, pi, and 2^24 + 1, "
         "which a float32 does not hold.", "float64", (9,),
         "7fefffffffffffff ffefffffffffffff 0010000000000000 000fffffffffffff 0000000000000001"
         "3ff0000000000000 3fb999999999999a 400921fb54442d18 4170000010000000"),
    good("float32-zeros", "Zero has a sign, and it is kept.", "float32", (2,), "00000000 80000000"),
    good("float64-zeros", "Zero has a sign, and it is kept.", "float64", (2,),
         "0000000000000000 8000000000000000"),
    good("float32-infinities", "Both infinities.", "float32", (2,), "7f800000 ff800000"),
    good("float64-infinities", "Both infinities.", "float64", (2,),
         "7ff0000000000000 fff0000000000000"),
    good("float32-nans", "The payloads of NaNs are kept, quiet and signalling, and their sign: a "
         "reader that moves them as numbers may change them.", "float32", (6,),
         "7fc00000 ffc00000 7fc12345 7f800001 ff812345 7fffffff"),
    good("float64-nans", "The payloads of NaNs are kept, quiet and signalling, and their sign.",
         "float64", (5,), "7ff8000000000000 fff8000000000000 7ff8000123456789 7ff0000000000001"
         "ffffffffffffffff"),
    good("int16-order", "Each value is a likely one in either byte order: only 1, 2, 3 is right.",
         "int16", (3,), [1, 2, 3]),
    good("int32-order", "Each value is a likely one in either byte order: only 1, 2, 3 is right.",
         "int32", (3,), [1, 2, 3]),
    good("float64-order", "Eight different bytes, so that a half-done swap shows.", "float64", (1,),
         "3f01020304050607"),
)  # fmt: skip

# Scalars, one item, many dimensions.
SHAPES = (
    good("scalar-uint8", "No dimensions: one value, and a header of four bytes.", "uint8", (), [7]),
    good("scalar-int8", "No dimensions, one value.", "int8", (), [-7]),
    good("scalar-int16", "No dimensions, one value.", "int16", (), [-2]),
    good("scalar-int32", "No dimensions, one value.", "int32", (), [70000]),
    good("scalar-float32", "No dimensions, one value.", "float32", (), "bfc00000"),
    good("scalar-float64", "No dimensions, one value.", "float64", (), "bff8000000000000"),
    good("one-item", "A file of one item is one-dimensional, not a scalar.", "uint8", (1,), [7]),
    good("one-image", "A file of one image keeps its first dimension.", "uint8", (1, 2, 3),
         [1, 2, 3, 4, 5, 6]),
    good("ndim-2", "Rows before columns.", "int16", (2, 3), [1, 2, 3, 256, 512, -1]),
    good("ndim-3", "The smallest thing that looks like MNIST.", "uint8", (2, 2, 2),
         [1, 2, 3, 4, 5, 6, 7, 8]),
    good("ndim-4", "Four dimensions, one of them 1.", "int8", (2, 1, 3, 2),
         [1, -1, 2, -2, 3, -3, 4, -4, 5, -5, 6, -6]),
    good("ndim-5", "Five dimensions: more than images with channels need.", "int32",
         (1, 2, 1, 2, 2), [1, 2, 3, 4, 5, 6, 7, -8]),
    good("ndim-8", "Eight dimensions.", "uint8", (1, 2, 1, 2, 1, 2, 1, 2), pattern(16)),
    good("ndim-32", "32 dimensions: what NumPy 1 and .NET hold.", "uint8", (*[1] * 30, 2, 3),
         [1, 2, 3, 4, 5, 6]),
    good("ndim-33", "33 dimensions: one more than NumPy 1 and .NET hold.", "uint8",
         (*[1] * 32, 2), [1, 2], TOO_MANY),
    good("ndim-64", "64 dimensions: what NumPy 2 holds.", "uint8", (2, *[1] * 62, 2),
         [1, 2, 3, 4], TOO_MANY),
    good("ndim-65", "65 dimensions: a right file that no NumPy array holds.", "uint8", (1,) * 65,
         [7], TOO_MANY),
    good("ndim-128", "128 dimensions: the count is a byte without sign.", "int16", (1,) * 128,
         [-2], TOO_MANY),
    good("ndim-255", "255 dimensions, the most there can be: a header of 1,024 bytes.", "uint8",
         (*[1] * 254, 2), [7, 8], TOO_MANY),
    good("images-28x28", "Ten images of the usual size.", "uint8", (10, 28, 28), pattern(7840)),
    good("images-56x28", "Images are not always square, nor 28 x 28: 56 rows of 28.", "uint8",
         (2, 56, 28), pattern(3136)),
    good("images-1x3", "Rows and columns mixed up would be 3 x 1.", "uint8", (2, 1, 3),
         [1, 2, 3, 4, 5, 6]),
    good("images-rgb", "Colour as a fourth dimension.", "uint8", (2, 2, 2, 3), pattern(24)),
    good("labels-62", "62 classes: labels run beyond 9.", "uint8", (100,),
         [i % 62 for i in range(100)]),
    good("items-300", "More than 255 items: the count has a second byte.", "uint8", (300,),
         pattern(300)),
    good("items-65537", "More than 65,535 items: the count has a third byte.", "int8", (65537,),
         pattern(65537)),
    good("int16-block", "A few kilobytes of int16.", "int16", (7, 300), pattern(4200)),
    good("int32-block", "A few kilobytes of int32.", "int32", (50, 21), pattern(4200)),
    good("float32-block", "A few kilobytes of float32.", "float32", (3, 350), pattern(4200)),
    good("float64-block", "Elements that begin at a byte that is no multiple of 8.", "float64",
         (2, 263), pattern(4208)),
)  # fmt: skip

# Dimensions of zero, and what must not be multiplied.
EMPTY = (
    good("empty-1d", "No items: a right file of 8 bytes.", "uint8", (0,)),
    good("empty-images", "No images of 28 x 28, as a filter that matches nothing writes.", "uint8",
         (0, 28, 28)),
    good("empty-rows", "A dimension of 0 in the middle.", "uint8", (28, 0, 28)),
    good("empty-columns", "A dimension of 0 at the end.", "uint8", (28, 28, 0)),
    good("empty-all", "All dimensions are 0.", "int32", (0, 0)),
    good("empty-float64", "No items of 8 bytes each.", "float64", (0, 3)),
    good("empty-255", "255 dimensions, and one of them is 0.", "uint8", (*[1] * 254, 0), b"",
         TOO_MANY),
    good("empty-2-24", "A dimension whose first byte is used, and no data.", "uint8", (2**24, 0)),
    good("empty-2-31", "2^31 is not negative.", "uint8", (2**31, 0)),
    good("empty-most", "The largest dimension, 2^32 - 1, is not -1.", "int16", (2**32 - 1, 0)),
    good("empty-either-order", "Both byte orders fit the length, (33554432, 0) and (2, 0): the "
         "format says which.", "uint8", (2**25, 0)),
    good("empty-before-many", "0 times anything is 0, however large the rest.", "uint8",
         (0, 2**32 - 1, 2**32 - 1, 2**32 - 1), b"", CANNOT_HOLD),
    good("empty-after-many", "The 0 comes last, after a product beyond 2^64.", "float64",
         (2**32 - 1, 2**32 - 1, 2**32 - 1, 0), b"", CANNOT_HOLD),
)  # fmt: skip

# What goes wrong where a file is taken for text, or for another one.
TRAPS = (
    good("text-mode", "CR, LF, Ctrl-Z and 0 are bytes like others: a file opened as text loses "
         "them.", "uint8", (10,), "0d0a 0d 0a 1a 00 ff 0a0d 0a"),
    good("text-mode-header", "The count is a line feed.", "uint8", (10,), pattern(10)),
    good("data-like-gzip", "The elements look like a gzip header.", "uint8", (4,), "1f8b0808"),
    good("data-like-header", "The elements look like another header.", "uint8", (9,),
         "000008010000000107"),
    good("data-all-zero", "Nothing but zeros.", "uint8", (2, 3, 3), bytes(18)),
    good("named-gz", "The name promises gzip, the content is raw: the content decides.", "uint8",
         (1,), [7], suffix=".idx.gz"),
    good("named-idx3-ubyte", "The name promises three dimensions of uint8: the header decides.",
         "int32", (2,), [70000, -1], suffix="-idx3-ubyte"),
    good("named-csv", "The name says nothing about the content.", "uint8", (1,), [7],
         suffix=".csv"),
)  # fmt: skip

ROWS = (*VALUES, *SHAPES, *EMPTY, *TRAPS)
