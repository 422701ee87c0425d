"""`idx convert`: what it prints where, and with which code it ends."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from collections.abc import Callable
from dataclasses import fields
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from PIL import Image
from trials import FORMATS, mnist

import idxfile
from conftest import idx_bytes
from idxfile.cli import main
from idxfile.cli.conversion import _PICTURES
from idxfile.formats.options import explained
from idxfile.formats.pictures import Choices


class Result(NamedTuple):
    code: int
    out: str
    err: str


Run = Callable[..., Result]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a pair of 20 and other files, which is the current one."""
    monkeypatch.chdir(tmp_path)
    mnist(tmp_path, 20)
    np.save("int64.npy", np.arange(6).reshape(2, 3))
    np.save("unit.npy", np.array([[0.0, 0.5], [0.25, 1.0]]))
    Path("bad.idx").write_bytes(idx_bytes(np.zeros(9, "uint8"))[:-1])
    Path("train.csv").write_text("label,pixel0,pixel1\n7,1,2\n5,3,4\n")
    Path("old.npy").write_bytes(b"old")
    picture("pictures/0/0.png", [[0]])
    return tmp_path


@pytest.fixture
def idx(folder: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs `idx convert` with these words."""

    def run(*words: str) -> Result:
        code = main(["convert", *words])
        return Result(code, *capsys.readouterr())

    return run


def test_it_tells_what_it_wrote(idx: Run) -> None:
    assert idx("t10k-images-idx3-ubyte", "out.npz") == Result(
        0, "", "out.npz: images uint8 20 × 28 × 28\nout.npz: labels uint8 20\n"
    )
    assert idx("train.csv", "out.npy") == Result(
        0,
        "",
        "out.npy: images uint8 2 × 2\nnote: the first row is a header\n"
        "note: images are read as uint8, the smallest for whole numbers from 1 to 4\n"
        "note: labels are read as uint8, the smallest for whole numbers from 5 to 7\n"
        "note: left out labels: NumPy array holds one array (column= chooses another)\n",
    )


def test_json_is_the_report(idx: Run) -> None:
    code, out, err = idx("train.csv", "out/", "--json", "--split", "test")
    assert (code, err) == (0, "")
    assert json.loads(out) == {
        "source": "train.csv",
        "target": "out/",
        "source_format": "csv",
        "target_format": "idx",
        "columns": {
            "images": {"dtype": "uint8", "shape": [2, 2]},
            "labels": {"dtype": "uint8", "shape": [2]},
        },
        "classes": None,
        "notes": [
            "the first row is a header",
            "images are read as uint8, the smallest for whole numbers from 1 to 4",
            "labels are read as uint8, the smallest for whole numbers from 5 to 7",
        ],
    }
    assert sorted(os.listdir("out")) == ["test-images-idx2-ubyte", "test-labels-idx1-ubyte"]


@pytest.mark.parametrize(
    ("words", "array"),
    [
        ("int64.npy a.idx --dtype auto", np.arange(6, dtype="uint8").reshape(2, 3)),
        ("int64.npy a.idx --dtype int32", np.arange(6, dtype="int32").reshape(2, 3)),
        ("unit.npy a.idx --scale 0:1", np.array([[0, 128], [64, 255]], "uint8")),
        ("unit.npy a.idx --dtype int8 --scale 0:1", np.array([[-128, 0], [-64, 127]], "int8")),
        ("unit.npy a.idx --items 1:", np.array([[0.25, 1.0]])),
        ("unit.npy a.idx --items ::-1", np.array([[0.25, 1.0], [0.0, 0.5]])),
        ("unit.npy a.idx --items -1:", np.array([[0.25, 1.0]])),
        ("train.csv a.idx --column labels", np.array([7, 5], "uint8")),
        ("train.csv a.idx -O label=pixel1 --column labels", np.array([2, 4], "uint8")),
        ("train.csv a.idx -O shape=1x2", np.array([[[1, 2]], [[3, 4]]], "uint8")),
        ("int64.npy a.idx.gz --dtype uint8", np.arange(6, dtype="uint8").reshape(2, 3)),
        (
            "train.csv a.idx --from csv --to idx -O from.header=yes",
            np.array([[1, 2], [3, 4]], "uint8"),
        ),
    ],
)
def test_options_do_what_they_say(words: str, array: np.ndarray, idx: Run) -> None:
    code, _, err = idx(*words.split())
    assert code == 0, err
    found = idxfile.read(words.split()[1])
    assert found.dtype == array.dtype
    assert (found == array).all()


def picture(name: str, pixels: object) -> None:
    """Save a picture."""
    os.makedirs(os.path.dirname(name), exist_ok=True)
    Image.fromarray(np.array(pixels, "uint8")).save(name)


def test_pictures_have_flags_of_their_own(idx: Run) -> None:
    picture("tree/b/0.png", [[0, 10], [20, 30]])
    picture("tree/a/0.png", [[[200, 200, 200]]])
    Path("tree/a/1.png").write_bytes(b"nothing")
    code, _, err = idx("tree", "out/", "--pad", "2x2")
    assert (code, err.splitlines()[1]) == (
        4,
        "hint: --grey (grey=True) makes it grey, --rgb (rgb=True) keeps the colours",
    )
    words = "--grey --skip-bad --pad 2x2 --invert --threshold 240 --classes b,a"
    code, _, err = idx("tree", "out/", *words.split())
    assert code == 0, err
    assert "note: left out 1 of 3 pictures, which cannot be read: tree/a/1.png" in err
    ds = idxfile.open_dataset("out")
    assert ds.images[:].tolist() == [[[255, 255], [0, 0]], [[0, 0], [0, 0]]]
    assert (ds.labels.tolist(), ds.classes) == ([0, 1], ("b", "a"))
    assert idx("tree", "rgb/", "--rgb", "--skip-bad", "--resize", "4x3").code == 0
    assert idxfile.open_dataset("rgb").images.shape == (2, 3, 4, 3)


def test_every_choice_about_pictures_has_a_flag() -> None:
    assert set(_PICTURES) == {*(field.name for field in fields(Choices)), "classes"}


def test_labels_come_from_a_file(idx: Run) -> None:
    assert idx("int64.npy", "out/", "--dtype", "auto", "--labels", "train.csv").code == 0
    assert idxfile.open_dataset("out").labels.tolist() == [7, 5]


CODES: dict[str, tuple[int, str]] = {
    "int64.npy a.idx": (
        4,
        "error: int64.npy: IDX file cannot hold int64\n"
        'hint: uint8 would hold every value: dtype="uint8", or "auto"\n',
    ),
    "unit.npy a.idx --dtype uint8": (
        4,
        "error: unit.npy: 0.5 at index (0, 1) does not survive as uint8\n",
    ),
    "unit.npy a.idx --scale 0:0.5": (4, "error: unit.npy: 1.0 lies outside the scale 0:0.5\n"),
    "unit.npy a.foo": (4, "error: a.foo: the name does not say what format to write\n"),
    "unit.npy a.npy.gz": (4, "error: a.npy.gz: NumPy array is not compressed with gz here\n"),
    "train.csv a.idx -O shape=3x3": (
        4,
        "error: train.csv: items of 2 values do not have the shape 3x3\n",
    ),
    "unit.npy a.csv --point": (4, "error: CSV table is not used to point here\n"),
    "bad.idx a.npy": (3, "error: bad.idx: needs 17 bytes, has 16: 1 missing"),
    "old.npy a.idx": (3, "error: old.npy: "),
    "nix a.idx": (5, "error: nix: No such file or directory\n"),
    "int64.npy nix/a.npy": (5, "error: nix/a.npy: there is no folder nix\n"),
    "int64.npy old.npy": (2, "error: old.npy exists; --force writes over it\n"),
    "int64.npy - --to npy": (
        2,
        "error: formats are read and written by position: `-` cannot be it\n",
    ),
    "- a.npy": (2, "error: formats are read and written by position: `-` cannot be it\n"),
    "int64.npy a.idx --dtype nix": (2, "error: dtype must be auto or one of bool, uint8, "),
    "int64.npy a.idx --items 1": (2, "error: --items '1' is no slice like 100:200\n"),
    "int64.npy a.idx --items 1:2:0": (2, "error: --items '1:2:0' is no slice like 100:200\n"),
    "int64.npy a.idx --scale 1": (2, "error: --scale '1' is not LOW:HIGH\n"),
    "int64.npy a.idx --scale a:b": (2, "error: --scale 'a:b' is not LOW:HIGH\n"),
    "int64.npy a.idx --scale 5:1": (2, "error: scale is a lower and a higher value, not 5:1\n"),
    "int64.npy a.idx --from nix": (
        2,
        "error: Invalid value for '--from': 'nix' is none of idx, npy",
    ),
    "train.csv a.npy --resize 28x28": (
        2,
        "error: --resize 28x28: there is no such option; there are byteorder, delimiter, ",
    ),
    "pictures a.npy --resize 28": (
        2,
        "error: resize must be columns and rows (28x28), not (28,)\n",
    ),
    "pictures a.npy --alpha grey": (2, "error: --alpha grey: drop or white or black or none\n"),
    "int64.npy a.npy -O nix=3": (
        2,
        "error: -O nix=3: there is no such option; there are byteorder\n",
    ),
    "int64.npy a.npy -O byteorder": (2, "error: -O byteorder: it is no KEY=VALUE\n"),
    "int64.npy a.npy -O byteorder=up": (2, "error: -O byteorder=up: native or big\n"),
    "int64.npy a.npy -O from.byteorder=big": (2, "error: -O from.byteorder=big: there is no such"),
    "train.csv a.csv -O delimiter=tab": (
        2,
        "error: -O delimiter=tab: both formats have it: say from.delimiter or to.delimiter\n",
    ),
}


@pytest.mark.parametrize("words", CODES)
def test_what_goes_wrong_is_told_and_leaves_nothing(words: str, idx: Run, folder: Path) -> None:
    before = {path.name: path.stat().st_size for path in folder.iterdir()}
    code, out, err = idx(*words.split())
    assert (code, out) == (CODES[words][0], ""), err
    assert err.startswith(CODES[words][1])
    assert {path.name: path.stat().st_size for path in folder.iterdir()} == before


def test_a_missing_package_is_wrong_usage(idx: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "h5py", None)
    monkeypatch.delitem(sys.modules, "idxfile.formats.hdf5", raising=False)
    assert idx("int64.npy", "a.h5") == Result(
        2, "", "error: this needs the package h5py\nhint: pip install 'idxfile[hdf5]'\n"
    )


def test_force_replaces(idx: Run) -> None:
    assert idx("int64.npy", "old.npy", "--force").code == 0
    assert np.load("old.npy").shape == (2, 3)
    assert idx("int64.npy", "out/", "--dtype", "auto").code == 0
    assert idx("int64.npy", "out/", "--dtype", "auto", "--items", "1:").err == (
        "error: out/train-images-idx2-ubyte exists; --force writes over it\n"
        "hint: `idx convert --help` tells more\n"
    )
    assert idx("int64.npy", "out/", "--dtype", "auto", "--items", "1:", "--force").code == 0
    assert idxfile.read("out/train-images-idx2-ubyte").tolist() == [[3, 4, 5]]


def test_a_folder_is_replaced_by_force_alone(idx: Run, folder: Path) -> None:
    import_module("zarr")
    (folder / "a.zarr").mkdir()
    (folder / "a.zarr" / "old").write_bytes(b"old")
    done = idx("int64.npy", "a.zarr")
    assert done.code == 2
    assert done.err.startswith("error: a.zarr exists; --force writes over it\n")
    assert idx("int64.npy", "a.zarr", "--force").code == 0
    assert not (folder / "a.zarr" / "old").exists()


def test_pointing(idx: Run) -> None:
    import_module("h5py")
    assert idx("--point", "t10k-images-idx3-ubyte", "a.h5", "--column", "images").code == 0
    assert os.path.getsize("a.h5") < 10_000
    assert idx("t10k-images-idx3-ubyte", "a.json", "--column", "images", "-O", "url=u").code == 0
    references = json.loads(Path("a.json").read_text())["refs"]
    assert references["images/c/0/0/0"] == ["u", 16, 20 * 784]


@pytest.mark.parametrize("name", FORMATS)
def test_every_option_is_listed_with_its_meaning(idx: Run, name: str) -> None:
    code, out, err = idx("--options", name)
    assert (code, err) == (0, "")
    row = FORMATS[name]
    verbs = [verb for verb in ("read", "write", "point") if getattr(row, f"{verb}s")]
    for verb in verbs[:2]:
        for option, _, _, meaning in explained(getattr(row.load(), f"{verb}_columns")):
            assert meaning, option
            assert f"-O {option}=…" in out


def test_options_of_no_format(idx: Run) -> None:
    code, _, err = idx("--options", "nix")
    assert code == 2
    assert "'nix' is none of idx, npy" in err


def test_the_formats_are_listed(idx: Run) -> None:
    code, out, err = idx("--formats")
    assert (code, err) == (0, "`idx convert --options FORMAT` lists what -O can say of one\n")
    lines = out.splitlines()
    assert [line.split()[0] for line in lines] == ["format", *FORMATS]
    assert lines[2].split() == ["npy", ".npy", "yes", "yes", "NumPy", "array"]


WHEEL = {
    "inverse.py": """
from idxfile.formats.columns import Columns, Sliced
from idxfile.formats.row import Format
import numpy as np

ROW = Format("inverse", (".inv",), "inverse", "Bytes, inverted", types=("uint8",), ndim=(1, 1))

def read_columns(path):
    return Columns({"images": Sliced(255 - np.fromfile(path, "uint8"))})

def write_columns(path, columns):
    with open(path, "wb") as file:
        for block in columns.first.blocks():
            file.write((255 - block).tobytes())
""",
    "inverse-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: inverse\nVersion: 1.0\n",
    "inverse-1.0.dist-info/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    "inverse-1.0.dist-info/entry_points.txt": "[idxfile.formats]\ninverse = inverse:ROW\n",
    "inverse-1.0.dist-info/RECORD": "",
}


def test_an_installed_package_adds_a_format(folder: Path) -> None:
    with zipfile.ZipFile("inverse-1.0-py3-none-any.whl", "w") as wheel:
        for name, text in WHEEL.items():
            wheel.writestr(name, text)
    pip = ("-m", "pip", "install", "-q", "--no-index", "--no-deps", "--target", "site")
    subprocess.run([sys.executable, *pip, "inverse-1.0-py3-none-any.whl"], check=True)
    environment = os.environ | {"PYTHONPATH": str(folder / "site")}

    def run(*words: str) -> str:
        command = [sys.executable, "-m", "idxfile", "convert", *words]
        done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
        return done.stdout + done.stderr

    np.save("bytes.npy", np.arange(5, dtype="uint8"))
    assert "inverse" in run("--formats")
    assert run("bytes.npy", "bytes.inv") == "bytes.inv: images uint8 5\n"
    assert Path("bytes.inv").read_bytes() == bytes([255, 254, 253, 252, 251])
    run("bytes.inv", "bytes.idx", "--from", "inverse")
    assert idxfile.read("bytes.idx").tolist() == [0, 1, 2, 3, 4]


def test_help_costs_no_library(folder: Path) -> None:
    code = (
        "import sys; from idxfile.cli import main; main(['convert', '--help'])\n"
        "print(*{name.partition('.')[0] for name in sys.modules}, file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    heavy = {"pyarrow", "h5py", "zarr", "scipy", "pandas", "xarray", "PIL"}
    assert not heavy & set(done.stderr.split())
    assert "--scale LOW:HIGH" in done.stdout


@pytest.mark.parametrize("words", [["--force"], []])
def test_a_progress_bar_is_shown_on_long_work_at_a_terminal(
    words: list[str], folder: Path, tmp_path: Path
) -> None:
    np.save("long.npy", np.zeros(1 << 27, "uint8"))
    pty = import_module("pty")
    near, far = pty.openpty()
    command = [sys.executable, "-m", "idxfile", "convert", "long.npy", "long.idx", *words]
    done: Any = subprocess.run(command, stderr=far, stdout=subprocess.PIPE)
    os.close(far)
    shown = os.read(near, 1 << 16).decode()
    os.close(near)
    assert done.returncode == 0
    assert "convert long.npy" in shown
    assert "%" in shown
