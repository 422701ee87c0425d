"""The conformance corpus: idxfile passes all of it, the worked readers pass its core, and the
runner tells a reader that lies from one that crashes and one that hangs."""

from __future__ import annotations

import ast
import bz2
import gzip
import hashlib
import json
import lzma
import math
import os
import re
import shutil
import struct
import subprocess
import sys
import warnings
import zlib
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import idxfile
from idxfile.conformance import main, run
from idxfile.conformance.corpus import chosen, load
from idxfile.conformance.judging import answer_line, judge, right_line
from idxfile.conformance.own import respond
from idxfile.conformance.running import END
from idxfile.header import MAX_ARRAY_NDIM, MAX_HEADER_NBYTES

try:
    from compression import zstd  # Python 3.14
except ImportError:
    from backports import zstd

CORPUS = Path(__file__).parent.parent / "conformance"
MANIFEST = load(str(CORPUS))
ROWS = MANIFEST["files"]
GOOD = [row for row in ROWS if "answer" in row]
BAD = [row for row in ROWS if "answer" not in row]
CORE = chosen(MANIFEST, "core")
CODES = {"uint8": 8, "int8": 9, "int16": 11, "int32": 12, "float32": 13, "float64": 14}
LETTERS = dict(zip(CODES, "BbhifdIQq", strict=False)) | {"uint32": "I", "uint64": "Q", "int64": "q"}


def rows(selected):
    return pytest.mark.parametrize("row", selected, ids=[row["name"] for row in selected])


def place(row):
    return str(CORPUS / row["file"])


def needed(program, package):
    found = shutil.which(program)
    assert found, f"{program} is needed for this test: install it (apt-get install {package})"
    return found


# The corpus itself


def test_manifest_agrees_with_the_files():
    assert len(ROWS) >= 120
    assert len({row["name"] for row in ROWS}) == len(ROWS)
    there = {f"files/{path.name}" for path in (CORPUS / "files").iterdir()}
    assert there == {row["file"] for row in ROWS if "nbytes" in row}
    assert sum(os.path.getsize(CORPUS / file) for file in there) < 1 << 20
    for row in ROWS:
        assert row["why"].endswith((".", "there."))
        assert set(row["tags"]) <= set(MANIFEST["tags"])
        assert "answer" in row or "refusals" in row
        assert bool(row.get("origin")) == bool(row.get("licence"))
        if "nbytes" in row:
            data = Path(place(row)).read_bytes()
            assert len(data) == row["nbytes"]
            assert hashlib.sha256(data).hexdigest() == row["sha256"]
            assert ("hex" in row) == (len(data) <= 200)
            assert bytes.fromhex(row.get("hex", data.hex())) == data


def test_vocabulary_is_known():
    for row in ROWS:
        for refusal in row.get("refusals", []):
            assert refusal["class"] in MANIFEST["classes"]
            assert refusal.get("kind", "empty") in idxfile.PROBLEMS
        for warning in row.get("warnings", []):
            assert idxfile.PROBLEMS[warning["kind"]].level == "warning"
    named = {tag for tags in MANIFEST["groups"].values() for tag in tags}
    assert named <= set(MANIFEST["tags"])


def test_page_tells_the_right_numbers():
    text = (CORPUS / "README.md").read_text()
    assert f"Here are {len(ROWS)} small files" in text
    assert f"**`core`** ({len(CORE)} files)" in text
    assert all(f"`{name}`" in text for name in (*MANIFEST["classes"], *MANIFEST["tags"]))
    for name in ("ndim-2", "images-28x28", "cut-data-last"):
        assert right_line(next(row for row in ROWS if row["name"] == name)) in text


def _packed(value, letter):
    """The element whose value this is, as it stands in a file."""
    if isinstance(value, str) and value.startswith("nan:"):
        return bytes.fromhex(value[4:])
    number = float(value) if letter in "fd" else int(value)
    return struct.pack(">" + letter, number)


def test_answers_agree_with_themselves():
    for row in GOOD:
        answer = row["answer"]
        letter = LETTERS[answer["type"]]
        size = math.prod(answer["shape"])
        assert answer["nbytes"] == size * struct.calcsize(letter)
        assert ("elements" in answer) == (answer["nbytes"] <= 200)
        assert ("values" in answer) == (size <= 64)
        if "values" in answer:
            data = b"".join(_packed(value, letter) for value in answer["values"])
            assert len(answer["values"]) == size
            assert f"{zlib.crc32(data):08x}" == answer["crc32"]
            assert hashlib.sha256(data).hexdigest() == answer["sha256"]
            assert data.hex() == answer.get("elements", data.hex())


def _unxz(data):
    """All streams, with zeros between and behind them, where `lzma.decompress` gives up."""
    content = b""
    while data := data.lstrip(b"\0"):
        decoder = lzma.LZMADecompressor()
        content += decoder.decompress(data)
        data = decoder.unused_data
    return content


def _inflated(row):
    """The file as the standard library inflates it, which idxfile's codecs have no part in."""
    data = Path(place(row)).read_bytes()
    if junk := [w["offset"] for w in row.get("warnings", []) if w["kind"] == "stream-junk"]:
        data = data[: junk[0]]
    while True:
        if data.startswith(b"\x1f\x8b"):
            data = gzip.decompress(data)
        elif data.startswith(b"BZh"):
            data = bz2.decompress(data)
        elif data.startswith(b"\xfd7zXZ"):
            data = _unxz(data)
        elif data.startswith(b"\x28\xb5\x2f\xfd") or data[1:4] == b"\x2a\x4d\x18":
            data = zstd.decompress(data)
        else:
            return data


@rows([row for row in GOOD if "lush" not in row["tags"]])
def test_good_files_are_as_the_format_says(row):
    answer = row["answer"]
    shape = answer["shape"]
    header = struct.pack(f">HBB{len(shape)}I", 0, CODES[answer["type"]], len(shape), *shape)
    data = _inflated(row)
    assert data.startswith(header)
    assert hashlib.sha256(data[len(header) :]).hexdigest() == answer["sha256"]


def test_generator_reproduces_every_byte(tmp_path):
    subprocess.run([sys.executable, str(CORPUS / "make.py"), str(tmp_path)], check=True)
    made = {p.relative_to(tmp_path): p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()}
    kept = [CORPUS / "manifest.json", *(CORPUS / "files").iterdir()]
    assert made == {path.relative_to(CORPUS): path.read_bytes() for path in kept}


def test_generator_knows_nothing_of_idxfile():
    """It is an oracle: it may import the standard library and itself, and no codec either."""
    allowed = {"__future__", "corpus", "dataclasses", "hashlib", "json", "math", "pathlib"}
    allowed |= {"shutil", "struct", "sys", "typing", "zlib"}
    for file in (CORPUS / "make.py", *(CORPUS / "corpus").glob("*.py")):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Import):
                assert {name.name for name in node.names} <= allowed
            elif isinstance(node, ast.ImportFrom) and not node.level:
                assert node.module in allowed


# idxfile


def assert_answer(array, answer):
    assert array.dtype == np.dtype(answer["type"])
    assert array.dtype.isnative
    assert array.shape == tuple(answer["shape"])
    elements = array.astype(array.dtype.newbyteorder(">")).tobytes()
    assert hashlib.sha256(elements).hexdigest() == answer["sha256"]


def numpy_holds(shape):
    """Whether NumPy has such an array: 64 dimensions, and 2^63 - 1 as if none of them were 0."""
    return len(shape) <= MAX_ARRAY_NDIM and math.prod(max(1, n) for n in shape) < 1 << 60


def fits(error, refusals):
    """Whether an exception is that of one of these refusals, and tells the same byte."""
    return any(
        type(error) is idxfile.PROBLEMS[refusal["kind"]].error
        and error.offset == refusal.get("offset", error.offset)
        for refusal in refusals
        if "kind" in refusal
    )


@rows(GOOD)
def test_idxfile_reads(row):
    report = idxfile.check(place(row))
    told = [{"kind": p.code, "offset": p.offset} for p in report.problems if p.level != "note"]
    expected = [{"offset": None, **warning} for warning in row.get("warnings", [])]
    assert told == expected
    assert report.header is not None
    assert report.header.shape == tuple(row["answer"]["shape"])
    assert report.header.element.name == row["answer"]["type"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", idxfile.IdxWarning)
        for file in (place(row), Path(place(row)).read_bytes()):
            if not numpy_holds(row["answer"]["shape"]):
                assert row["refusals"]
                with pytest.raises(idxfile.UnsupportedError, match="NumPy"):
                    idxfile.read(file)
                with pytest.raises(idxfile.UnsupportedError, match="NumPy"):
                    idxfile.open(file)[...]
                continue
            assert_answer(idxfile.read(file), row["answer"])
            with idxfile.open(file) as opened:
                assert_answer(np.asarray(opened[...]), row["answer"])
            with idxfile.open(file, mmap=False) as opened:
                assert_answer(np.asarray(opened[...]), row["answer"])
    if any(warning["kind"] == "stream-junk" for warning in row.get("warnings", [])):
        with pytest.warns(idxfile.IdxWarning, match="junk"):
            idxfile.read(place(row))


@rows([row for row in CORE if "answer" in row])
def test_idxfile_writes_the_same_bytes(row):
    data = Path(place(row)).read_bytes()
    header, problems = idxfile.examine(data[:MAX_HEADER_NBYTES], len(data))
    assert all(problem.level == "note" for problem in problems)
    assert header is not None
    assert header.encode() == data[: header.data_offset]
    if numpy_holds(header.shape):
        assert idxfile.encode(idxfile.read(data)) == data


def known(problem, row):
    """Whether a finding of idxfile is among the refusals, with its byte."""
    return any(
        problem.code == refusal.get("kind")
        and refusal.get("offset", problem.offset) == problem.offset
        for refusal in row["refusals"]
    )


@rows([row for row in BAD if "nbytes" in row])
def test_idxfile_refuses(row):
    data = Path(place(row)).read_bytes()
    for file in (place(row), data):
        found = [p for p in idxfile.check(file).problems if p.level == "error"]
        assert found
        assert known(found[0], row), found[0]
        with pytest.raises(idxfile.IdxError) as caught:
            idxfile.read(file)
        assert fits(caught.value, row["refusals"]), repr(caught.value)
        with pytest.raises(idxfile.IdxError) as caught, idxfile.open(file) as opened:
            opened[...]
        assert fits(caught.value, row["refusals"]), repr(caught.value)
    if row["tags"] in (["core"], ["lush"]):
        found = idxfile.examine(data[:MAX_HEADER_NBYTES], len(data))[1]
        assert known(found[0], row)


@rows([row for row in BAD if "nbytes" not in row])
def test_idxfile_cannot_open(row):
    for verb in (idxfile.check, idxfile.read, idxfile.open):
        with pytest.raises(OSError, match=re.escape(row["file"])):
            verb(place(row))


def test_idxfile_passes_as_a_reader():
    result = CliRunner().invoke(main, ["--self", "--corpus", str(CORPUS)])
    assert result.exit_code == 0, result.output
    assert result.output == f"{len(ROWS)} files: {len(ROWS)} pass (0 left out)\n"


# The worked readers


@pytest.fixture(scope="module")
def c_reader(tmp_path_factory):
    """The C reader, built strictly and with sanitizers."""
    target = tmp_path_factory.mktemp("c") / "idx-reader"
    folder = CORPUS / "readers" / "c"
    strict = ["-std=c11", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-g", "-O1"]
    sanitizers = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
    sources = [str(folder / "main.c"), str(folder / "idx.c")]
    subprocess.run(
        [needed("gcc", "gcc"), *strict, *sanitizers, *sources, "-o", str(target)], check=True
    )
    return str(target)


def outcomes(command, selected=CORE, **options):
    return list(run(command, str(CORPUS), selected, **options))


def failures(command, selected=CORE):
    return [outcome for outcome in outcomes(command, selected) if outcome.result != "pass"]


@pytest.mark.parametrize("options", [[], ["--map"]])
def test_c_reader_passes_the_core(c_reader, options):
    assert failures([c_reader, *options]) == []


def test_c_reader_survives_the_rest(c_reader):
    results = {outcome.result for outcome in outcomes([c_reader], ROWS)}
    assert results == {"pass", "fail", "wrong-kind"}


def test_c_codes_are_distinct_and_negative():
    text = (CORPUS / "readers" / "c" / "idx.h").read_text()
    codes = dict(re.findall(r"IDX_E(\w+) = (-\d+)", text))
    wanted = {name.upper() for name in MANIFEST["classes"]} - {"STREAM"}
    assert wanted <= set(codes)
    assert len(set(codes.values())) == len(codes)


def test_c_bench_prints_its_numbers(tmp_path):
    folder = CORPUS / "readers" / "c"
    target, file = tmp_path / "bench", tmp_path / "images.idx"
    strict = ["-std=c11", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-O2"]
    sources = [str(folder / "bench.c"), str(folder / "idx.c")]
    subprocess.run([needed("gcc", "gcc"), *strict, *sources, "-o", str(target)], check=True)
    idxfile.write(file, np.zeros((100, 28, 28), np.uint8))
    done = subprocess.run([target, file], check=True, capture_output=True, text=True)
    numbers = json.loads(done.stdout)
    assert list(numbers) == ["load_ms", "map_ms", "random_us"]
    assert all(number > 0 for number in numbers.values())
    done = subprocess.run([target, place(CORE[5])], capture_output=True, text=True)
    assert done.returncode in (0, 1)


def test_javascript_reader_passes_the_core():
    node = needed("node", "nodejs")
    assert failures([node, str(CORPUS / "readers" / "js" / "main.mjs")]) == []


def test_javascript_module_runs_in_a_browser():
    text = (CORPUS / "readers" / "js" / "idx.mjs").read_text()
    code = re.sub(r"//.*", "", text)
    assert not re.search(r"\bimport\b|require\(|\bprocess\b|\bBuffer\b", code)


# The runner


def python_reader(tmp_path, body):
    """A reader that does for each path what `body` says, and then answers "error header"."""
    script = tmp_path / "reader.py"
    script.write_text(
        "import os, sys, time\n"
        "for path in sys.stdin:\n"
        f"    {body}\n"
        "    print('error header', flush=True)\n"
    )
    return [sys.executable, "-S", str(script)]


SOME = chosen(MANIFEST, "core", "cut-0*")
"""Files that are cut inside their header."""


def results(command, selected=SOME, **options):
    return {outcome.name: outcome.result for outcome in outcomes(command, selected, **options)}


def all_pass(but):
    return {row["name"]: "pass" for row in SOME} | but


def test_lying_reader_fails(tmp_path):
    lie = python_reader(tmp_path, "print('ok uint8 1 1 hex 07', flush=True); continue")
    found = results(lie, CORE)
    right = {"one-item", "named-gz", "named-csv"}
    assert {name for name, result in found.items() if result == "pass"} == right
    assert {result for name, result in found.items() if name not in right} == {"fail"}


def test_refusing_reader_fails(tmp_path):
    refuse = python_reader(tmp_path, "print('error data', flush=True); continue")
    found = outcomes(refuse, CORE)
    by_name = {row["name"]: row for row in CORE}
    for outcome in found:
        refusals = by_name[outcome.name].get("refusals", [])
        if any(refusal["class"] == "data" for refusal in refusals):
            assert outcome.result == "pass"
        else:
            assert outcome.result == ("wrong-kind" if refusals else "fail")


def test_crash_is_told_and_the_rest_goes_on(tmp_path):
    crash = python_reader(tmp_path, "'cut-04' in path and (sys.stderr.write('ouch'), os.abort())")
    found = outcomes(crash, SOME)
    assert {o.name: o.result for o in found} == all_pass({"cut-04": "crash"})
    told = next(o.got for o in found if o.name == "cut-04")
    assert "SIGABRT" in told or "exit code" in told


def test_complaint_of_a_crash_is_told(tmp_path):
    crash = python_reader(tmp_path, "'cut-04' in path and sys.exit('ouch, \\x1b[31m')")
    told = next(o for o in outcomes(crash, SOME) if o.name == "cut-04")
    assert told.result == "crash"
    assert told.got == "ended with exit code 1: ouch, \\x1b[31m"


def test_hang_is_told_and_the_rest_goes_on(tmp_path):
    hang = python_reader(tmp_path, "'cut-04' in path and time.sleep(1000)")
    assert results(hang, SOME, timeout=3) == all_pass({"cut-04": "hang"})


def test_reader_that_never_flushes_is_told():
    found = outcomes(["sleep", "1000"], SOME[:1], timeout=0.2)
    assert [o.result for o in found] == ["hang"]
    assert "flush" in found[0].got


def test_death_after_an_answer_is_not_blamed_on_the_next_file(tmp_path):
    once = python_reader(tmp_path, "print('error header', flush=True); break")
    assert results(once, SOME) == all_pass({})


def test_exit_code_at_the_end_counts(tmp_path):
    """Sanitizers tell of leaks so."""
    leaky = python_reader(tmp_path, "pass")
    with open(leaky[-1], "a") as script:
        script.write("sys.exit('leak')\n")
    found = outcomes(leaky, SOME)
    assert found[-1] == (END, "crash", "exit code 0", "ended with exit code 1: leak")


@pytest.mark.parametrize(
    "line",
    [
        "",
        "hello",
        "ok",
        "ok uint8 1 3",
        "ok uint8 1 3 hex",
        "ok uint8 1 3 hex zz",
        "ok uint8 1 3 hex 0a0b",
        "ok uint8 1 3 hex 0a0b0d",
        "ok uint8 1 4 hex 0a0b0c",
        "ok uint8 2 3 1 hex 0a0b0c",
        "ok int8 1 3 hex 0a0b0c",
        "ok uint8 1 3 crc 3",
        "ok uint8 1 3 crc 4 2c3c1d1f",
        "ok uint8 1 3 crc 3 00000000",
        "error data",
        "error",
    ],
)
def test_wrong_answers_to_a_good_file(line):
    row = next(row for row in ROWS if row["name"] == "idx2numpy-correct")
    assert judge(row, line) == "fail"


def test_right_answers_in_either_form():
    row = next(row for row in ROWS if row["name"] == "idx2numpy-correct")
    assert judge(row, "ok uint8 1 3 hex 0a0b0c") == "pass"
    assert judge(row, "ok uint8 1 3 hex 0A0B0C") == "pass"
    assert judge(row, f"ok uint8 1 3 crc 3 {zlib.crc32(bytes([10, 11, 12])):08x}") == "pass"
    assert judge(row, answer_line("uint8", (3,), "hex 0a0b0c")) == "pass"


@pytest.mark.parametrize(
    ("line", "result"),
    [
        ("error truncated 23", "pass"),
        ("error data 23", "pass"),
        ("error truncated -", "pass"),
        ("error truncated", "pass"),
        ("error data", "pass"),
        ("error truncated 24", "wrong-kind"),
        ("error data 16", "wrong-kind"),
        ("error trailing-data 23", "wrong-kind"),
        ("error header", "wrong-kind"),
        ("error nonsense", "wrong-kind"),
        ("error data 23 24", "fail"),
        ("ok uint8 3 2 2 2 hex 0102030405060700", "fail"),
    ],
)
def test_answers_to_a_cut_file(line, result):
    row = next(row for row in ROWS if row["name"] == "cut-data-last")
    assert judge(row, line) == result


def test_right_lines_are_right():
    assert {judge(row, right_line(row)) for row in ROWS} == {"pass"}


def invoke(*words):
    return CliRunner().invoke(main, list(words))


def test_where_there_is_no_corpus(tmp_path):
    result = invoke("--corpus", str(tmp_path), "cat")
    assert result.exit_code == 2
    assert "there is no corpus in" in result.output
    assert "--corpus DIR" in result.output
    (tmp_path / "manifest.json").write_text("[]")
    assert invoke("--corpus", str(tmp_path), "cat").exit_code == 2
    (tmp_path / "manifest.json").write_text("[")
    assert invoke("--corpus", str(tmp_path), "cat").exit_code == 2


@pytest.mark.parametrize(
    "words",
    [
        (),
        ("--self", "cat"),
        ("--tags", "zip", "cat"),
        ("--only", "nothing-*", "cat"),
        ("/no/such/reader",),
    ],
)
def test_wrong_usage(words):
    assert invoke("--corpus", str(CORPUS), *words).exit_code == 2


def test_negative_run_and_its_json():
    options = ["--corpus", str(CORPUS), "--only", "cut-0?"]
    result = invoke(*options, "cat")
    assert result.exit_code == 1
    assert "fail       cut-00\n  expected error empty 0\n  got      " in result.output
    assert result.output.endswith(f"10 files: 0 pass, 10 fail ({len(ROWS) - 10} left out)\n")
    facts = json.loads(invoke(*options, "--json", "cat").output)
    assert facts["counts"] == {"fail": 10}
    assert facts["left_out"] == len(ROWS) - 10
    assert facts["files"][0]["expected"] == "error empty 0"
    assert set(facts["files"][0]) == {"name", "result", "expected", "got"}


def test_tags():
    everything = {row["name"] for row in chosen(MANIFEST, "all")}
    assert len(everything) == len(ROWS)
    assert all(row["tags"] == ["core"] for row in CORE)
    assert {tag for row in chosen(MANIFEST, "codec") for tag in row["tags"]} == set(
        MANIFEST["groups"]["codec"]
    )
    names = {row["name"] for row in chosen(MANIFEST, "core,gz")}
    assert "gz-name" in names
    assert "gz-twice" not in names


def test_own_reader_answers_large_elements_by_their_digest():
    row = next(row for row in ROWS if row["name"] == "images-28x28")
    assert respond(place(row)) == right_line(row)


def test_serve():
    file = place(CORE[5])
    done = subprocess.run(
        [sys.executable, "-m", "idxfile.conformance", "--serve"],
        input=f"{file}\n{file}x\n", capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout == f"{right_line(CORE[5])}\nerror open\n"
    assert done.stderr == ""
