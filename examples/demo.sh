#!/bin/sh
# The main job on real MNIST: every step prints the command that it runs.
set -eu
mnist=tests/data/mnist
rm -rf demo && mkdir demo

step() { printf '\n\033[1m# %s\033[0m\n' "$1"; }
run() { printf '$ %s\n' "$*"; "$@"; }
python_code() { printf '$ python -c\n%s\n' "$1" | sed 's/^/  /;1s/^  //'; python -c "$1"; }

step "What are these files?"
run idx info $mnist/t10k-images-idx3-ubyte.gz
run idx info $mnist/train-images-idx3-ubyte.gz $mnist/train-labels-idx1-ubyte.gz \
  $mnist/t10k-images-idx3-ubyte.gz $mnist/t10k-labels-idx1-ubyte.gz

step "Are they whole and right? (reads them to the end, checks every checksum)"
run idx check $mnist/train-images-idx3-ubyte.gz $mnist/train-labels-idx1-ubyte.gz \
  $mnist/t10k-images-idx3-ubyte.gz $mnist/t10k-labels-idx1-ubyte.gz

step "Digits with their labels, in the terminal"
run idx show $mnist/train-images-idx3-ubyte.gz 0:10 --columns 5 --width 80

step "A contact sheet"
run idx show $mnist/train-images-idx3-ubyte.gz 0:100 --png demo/digits.png

step "An array in Python"
python_code 'import idxfile
images = idxfile.read("tests/data/mnist/train-images-idx3-ubyte.gz")
labels = idxfile.read("tests/data/mnist/train-labels-idx1-ubyte.gz")
print(images.shape, images.dtype, "sum of all pixels", f"{images.sum(dtype=int):,}")
print("first ten labels", *labels[:10])'

step "Write it, read it back: equal bytes"
python_code 'import gzip, idxfile
source = "tests/data/mnist/train-images-idx3-ubyte.gz"
idxfile.write("demo/train-images-idx3-ubyte", idxfile.read(source))
written = open("demo/train-images-idx3-ubyte", "rb").read()
print("equal to the published file:", written == gzip.open(source).read(), f"({len(written):,} bytes)")'

step "Random access to the raw file, mapped"
python_code 'import idxfile
with idxfile.open("demo/train-images-idx3-ubyte") as images:
    print(images)
    print("item 59,999 has ink", int(images[59_999].sum()), "- three items", images[[5, 1, 3]].shape)'

printf '\nLook at demo/digits.png. Next: README.md.\n'
