"""The rules of the house: imports go down only, the door shows what the rooms hold, doors agree."""

from __future__ import annotations

import ast
import inspect
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import idxfile
from conftest import SOURCE

FLOORS: tuple[tuple[str, ...], ...] = (
    # from the cellar up; rooms of one floor do not import each other
    ("errors",),
    ("problems",),
    ("signatures",),
    ("header",),
    ("codecs",),
    ("shards",),
    ("names",),
    ("source",),
    ("sending",),
    ("sink",),
    ("staging",),
    ("placing",),
    ("cutting",),
    ("classes",),
    # from here on with NumPy
    ("elements", "selection"),
    ("png",),
    ("sheets",),
    ("opening", "gathering", "spooled"),
    ("lazyarray",),
    ("array",),
    ("writer", "items"),
    ("growing",),
    ("slabs", "batching"),
    ("saving",),
    ("report", "summary"),
    ("dataset",),
    ("pairs",),
    ("viewer", "formats", "catalog", "adapters"),
    ("cli", "conformance"),
    ("__main__",),
)
FLOOR_OF = {room: number for number, rooms in enumerate(FLOORS) for room in rooms}
WITHOUT_NUMPY = [room for rooms in FLOORS[: FLOOR_OF["elements"]] for room in rooms]
DOOR = "idxfile"
MAY_USE_THE_DOOR = ("cli", "conformance", "__main__")

FILES = sorted(path for path in SOURCE.rglob("*.py") if "__pycache__" not in path.parts)
ROOMS = sorted({path.relative_to(SOURCE).parts[0].removesuffix(".py") for path in FILES})
ROOMS.remove("__init__")
BASE = {"numpy", "click", "isal", "backports", "compression", "idxfile"} | sys.stdlib_module_names


def module_name(path: Path) -> str:
    parts = ("idxfile", *path.relative_to(SOURCE).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imported(path: Path) -> Iterator[tuple[int, str]]:
    """Line and full name of every module that a file imports, wherever in it that stands."""
    package = (
        module_name(path) if path.name == "__init__.py" else module_name(path).rpartition(".")[0]
    )
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parts = package.split(".")
                above = ".".join(parts[: len(parts) - node.level + 1])
                base = f"{above}.{base}".rstrip(".")
            # What is imported from the package itself is a room, or a name of its door.
            names = [f"{base}.{alias.name}" for alias in node.names] if base == DOOR else [base]
            yield from ((node.lineno, name) for name in names)


def room_of(module: str) -> str | None:
    """The room that a module of idxfile lies in; the door for a name that is none."""
    first, _, rest = module.partition(".")
    if first != "idxfile":
        return None
    room = rest.partition(".")[0]
    return room if room in ROOMS else DOOR


# Imports


def test_every_room_has_its_floor() -> None:
    """A new room takes its place in FLOORS above."""
    assert [room for room in ROOMS if room not in FLOOR_OF] == []


INNER = [path for path in FILES if path != SOURCE / "__init__.py"]


@pytest.mark.parametrize("path", INNER, ids=lambda path: str(path.relative_to(SOURCE)))
def test_imports_go_down_only(path: Path) -> None:
    mine = path.relative_to(SOURCE).parts[0].removesuffix(".py")
    for line, module in imported(path):
        room = room_of(module)
        if room is None or room == mine:
            continue
        arrow = f"{path.relative_to(SOURCE)}:{line} imports {module}"
        if room == DOOR:
            assert mine in MAY_USE_THE_DOOR, arrow
        else:
            assert FLOOR_OF[room] < FLOOR_OF[mine], arrow


@pytest.mark.parametrize("path", FILES, ids=str)
def test_what_a_room_keeps_for_itself_is_not_imported(path: Path) -> None:
    nodes = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    names = [a.name for n in nodes if isinstance(n, ast.ImportFrom) and n.level for a in n.names]
    assert [name for name in names if name.startswith("_") and name != "__version__"] == []


def test_the_imports_are_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The test above would see an arrow that runs up."""
    monkeypatch.setitem(globals(), "SOURCE", tmp_path)
    path = tmp_path / "report" / "facts.py"
    path.parent.mkdir()
    path.write_text(
        "from ..cli import main\nfrom .. import viewer, read\nimport idxfile.writer\n"
        "from . import judgement\nfrom .mending import repair\n"
        "def f():\n    from ..array import open\n    import numpy as np\n"
    )
    assert sorted(imported(path)) == [
        (1, "idxfile.cli"),
        (2, "idxfile.read"),
        (2, "idxfile.viewer"),
        (3, "idxfile.writer"),
        (4, "idxfile.report"),
        (5, "idxfile.report.mending"),
        (7, "idxfile.array"),
        (8, "numpy"),
    ]
    assert [room_of(module) for _, module in sorted(imported(path))] == [
        *("cli", DOOR, "viewer", "writer", "report", "report", "array", None)
    ]


def in_a_fresh_process(code: str) -> list[str]:
    """What the code prints, line by line; `new()` in it are the modules loaded since its start."""
    prelude = "import sys; before = set(sys.modules)\nnew = lambda: set(sys.modules) - before\n"
    child = subprocess.run(
        [sys.executable, "-W", "error", "-c", prelude + code], capture_output=True, text=True
    )
    assert child.returncode == 0, child.stderr
    return child.stdout.split()


def test_the_lower_floors_do_without_numpy() -> None:
    modules = [
        module_name(path)
        for path in INNER
        if path.relative_to(SOURCE).parts[0].removesuffix(".py") in WITHOUT_NUMPY
    ]
    assert len(modules) > len(WITHOUT_NUMPY)
    imports = "".join(f"import {module}\n" for module in modules)
    loaded = in_a_fresh_process(f"{imports}print(*sorted(new()))")
    assert set(modules) <= set(loaded)
    assert [name for name in loaded if name.startswith("numpy")] == []


@pytest.mark.parametrize("room", WITHOUT_NUMPY)
def test_a_lower_floor_imports_nothing_beyond_the_base(room: str) -> None:
    for path in INNER:
        if path.relative_to(SOURCE).parts[0].removesuffix(".py") == room:
            roots = {module.partition(".")[0] for _, module in imported(path)}
            assert roots <= BASE - {"click"}


def test_importing_idxfile_loads_nothing() -> None:
    loaded = in_a_fresh_process("import idxfile\nprint(*new())")
    assert [m for m in loaded if m.partition(".")[0] not in sys.stdlib_module_names] == ["idxfile"]


def test_using_idxfile_loads_numpy_and_the_standard_library_only() -> None:
    loaded = in_a_fresh_process(
        """
import idxfile, io
for codec in (None, "gz", "bz2", "xz", "zst"):
    data = idxfile.encode([[1, 2], [3, 300]], cast="safe", codec=codec)
    assert idxfile.read(data).tolist() == [[1, 2], [3, 300]]
    with idxfile.open(data) as x:
        x[1], x.take([0]), list(x)
file = io.BytesIO()
with idxfile.create(file, dtype="uint8", cast="safe") as w:
    w.append([7])
print(*new())
"""
    )
    roots = {module.partition(".")[0] for module in loaded}
    assert {"idxfile", "numpy"} <= roots
    assert roots <= BASE - {"click"}


# The door


def test_the_door_shows_what_its_table_says() -> None:
    names = [name for names in idxfile._ROOMS.values() for name in names]
    assert sorted(names) == sorted(idxfile.__all__)
    assert len(set(names)) == len(names)
    assert set(dir(idxfile)) == {*idxfile.__all__, "__version__"}


@pytest.mark.parametrize("room", idxfile._ROOMS)
def test_a_room_and_the_door_agree_on_what_is_public(room: str) -> None:
    module = import_module(f"idxfile.{room}")
    assert sorted(module.__all__) == sorted(idxfile._ROOMS[room])
    for name in idxfile._ROOMS[room]:
        assert getattr(idxfile, name) is getattr(module, name)


def test_static_typing_sees_the_same_door() -> None:
    tree = ast.parse((SOURCE / "__init__.py").read_text(encoding="utf-8"))
    typed = {
        node.module: tuple(sorted(alias.name for alias in node.names))
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.level == 1
    }
    assert typed == {room: tuple(sorted(names)) for room, names in idxfile._ROOMS.items()}


def test_everything_comes_through_a_star() -> None:
    names = in_a_fresh_process("from idxfile import *\nprint(*(n for n in dir() if n[0] != '_'))")
    assert set(idxfile.__all__) <= set(names)


@pytest.mark.parametrize("name", ["no_such_name", "_no_such_name", "reed", "__wrapped__"])
def test_an_unknown_name_is_an_attribute_error(name: str) -> None:
    with pytest.raises(AttributeError, match=f"module 'idxfile' has no attribute '{name}'"):
        getattr(idxfile, name)


def test_no_room_bears_the_name_of_a_public_function() -> None:
    assert set(ROOMS) & set(idxfile.__all__) == set()
    # Importing every room must hide no name of the door.
    imports = "".join(f"import idxfile.{room}\n" for room in idxfile._ROOMS)
    shown = "print(*(name for name in idxfile.__all__ if 'module' in str(getattr(idxfile, name))))"
    assert in_a_fresh_process(f"{imports}{shown}".replace("'module'", '"<module"')) == []


@pytest.mark.parametrize("name", [name for name in idxfile.__all__ if not name.isupper()])
def test_every_public_name_is_documented(name: str) -> None:
    documentation = inspect.getdoc(getattr(idxfile, name))
    assert documentation
    assert documentation.splitlines()[0].endswith((".", "`"))


# Doors agree

VERBS = {name: getattr(idxfile, name) for name in idxfile.__all__ if name.islower()}
FAMILIES = [
    ("write", "encode", "create", "append", "concat", "IdxWriter"),
    ("read", "open", "open_source", "open_header", "IdxArray", "open_dataset"),
]
MEANT = {
    ("encode", "codec"): None,  # bytes have no name whose suffix could decide
}


def door(name: str) -> Any:
    if hasattr(idxfile, name):
        return getattr(idxfile, name)
    room = {"open_source": "source", "open_header": "opening"}[name]
    return getattr(import_module(f"idxfile.{room}"), name)


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family[0])
def test_doors_agree_on_their_defaults(family: tuple[str, ...]) -> None:
    defaults: dict[str, dict[str, Any]] = {}
    for name in family:
        for parameter in inspect.signature(door(name)).parameters.values():
            if parameter.default is not parameter.empty:
                if (name, parameter.name) in MEANT:
                    assert parameter.default == MEANT[name, parameter.name]
                else:
                    defaults.setdefault(parameter.name, {})[name] = parameter.default
    assert any(len(by_door) > 2 for by_door in defaults.values())
    differing = {name: by for name, by in defaults.items() if len(set(map(repr, by.values()))) > 1}
    assert differing == {}


ONE_FILE_VERBS = ("read", "open", "write", "create", "append", "concat", "check", "info")


@pytest.mark.parametrize("name", ONE_FILE_VERBS)
def test_file_comes_first_then_the_object_and_all_else_by_name(name: str) -> None:
    first, *others = inspect.signature(VERBS[name]).parameters.values()
    assert first.name == "file"
    assert first.default is first.empty
    positional = [p.name for p in others if p.kind is not p.KEYWORD_ONLY]
    assert len(positional) <= 1, positional


@pytest.mark.parametrize("name", sorted(VERBS))
def test_every_public_function_is_typed(name: str) -> None:
    signature = inspect.signature(VERBS[name])
    assert signature.return_annotation is not signature.empty
    for parameter in signature.parameters.values():
        assert parameter.annotation is not parameter.empty, parameter.name


# The law of size


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_a_long_file_says_why(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    documentation = ast.get_docstring(ast.parse(text)) or ""
    assert documentation, "every module says what it is"
    lines = text.count("\n")
    assert lines <= 400 or "over 400 lines" in " ".join(documentation.split()), (
        f"{lines} lines: split it, or say in its docstring why it is one file of over 400 lines"
    )


def test_there_is_no_room_for_everything_else() -> None:
    names = {part for path in FILES for part in path.relative_to(SOURCE).with_suffix("").parts}
    assert names & {"utils", "util", "helpers", "common", "misc", "base", "core"} == set()
