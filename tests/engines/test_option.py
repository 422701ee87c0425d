"""`--engine`: its words, and what it starts."""

from __future__ import annotations

import io
import os
import sys
from concurrent.futures import BrokenExecutor, Executor, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from idxfile.cli import tell
from idxfile.cli.engines import ENGINES, engine_option, started
from idxfile.cli.terms import slabs_bar
from idxfile.errors import MissingExtraError
from idxfile.slabs.running import Engine, run


@click.command()
@engine_option
def where(engine: str | None) -> None:
    """Tell the process that works."""
    with started(engine) as executor:
        click.echo(executor.submit(os.getpid).result() if executor else os.getpid())


def asked(*words: str) -> Any:
    return CliRunner().invoke(where, words)


def test_without_it_the_work_is_done_here() -> None:
    assert asked().output == f"{os.getpid()}\n"


def test_threads_are_of_this_process() -> None:
    assert asked("--engine", "threads=2").output == f"{os.getpid()}\n"


def test_processes_are_others() -> None:
    answer = asked("--engine=processes=1")
    assert answer.exit_code == 0, answer.output
    assert int(answer.output) != os.getpid()


@pytest.mark.parametrize("words", ["spark", "", "Dask", "=2"])
def test_an_unknown_engine_is_an_error_of_usage(words: str) -> None:
    answer = asked("--engine", words)
    assert answer.exit_code == 2
    assert f"{words!r} is none of processes, threads, dask, ray" in answer.output


@pytest.mark.parametrize("words", ["processes=0", "threads=two", "threads=-1"])
def test_a_number_of_workers_is_one(words: str) -> None:
    answer = asked("--engine", words)
    assert answer.exit_code == 2
    assert "--engine: " in answer.output
    assert "is no number of workers" in answer.output


@pytest.mark.slow
@pytest.mark.parametrize(
    ("engine", "told"),
    {
        "dask=foo": "--engine dask: 'foo' is no address of a Dask scheduler",
        "ray=foo": "--engine ray: 'foo' is no address of a Ray",
        "ray=127.0.0.1:1": "--engine ray: no Ray answers at 127.0.0.1:1",
    }.items(),
)
def test_an_address_where_nobody_is_names_the_option(
    engine: str, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(ConnectionError) as caught, started(engine):
        pass
    assert tell(caught.value) == 5
    assert told in capsys.readouterr().err


def test_how_far_the_work_is_is_told_to_an_engine() -> None:
    told: list[tuple[int, int]] = []
    with ThreadPoolExecutor(1) as threads:
        inner = Engine(threads, ahead=100)
        engine = Engine(inner, progress=lambda done, total: told.append((done, total)))
        assert (engine.ahead, Engine(threads).ahead) == (100, 64)
        assert list(run(abs, [-1, -2], executor=engine)) == [1, 2]
    assert told == [(1, 2), (2, 2)]


@pytest.mark.parametrize("name", ["dask", "ray"])
def test_an_engine_that_is_not_installed_names_its_extra(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, name, None)
    for loaded in [module for module in sys.modules if f"idxfile.adapters.{name}" in module]:
        monkeypatch.delitem(sys.modules, loaded)
    with pytest.raises(MissingExtraError) as caught, started(name):
        pass
    assert caught.value.hint == f"pip install 'idxfile[{name}]'"
    assert str(caught.value).startswith(f"--engine {name}: ")


def test_what_is_queued_is_cancelled_when_the_block_is_left() -> None:
    with pytest.raises(KeyboardInterrupt), started("threads=1") as executor:
        assert isinstance(executor, Executor)
        futures = [executor.submit(sum, [n]) for n in range(1000)]
        raise KeyboardInterrupt
    assert all(future.done() for future in futures)


def test_workers_that_are_lost_for_good_are_told(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ChildProcessError) as caught, started("threads"):
        raise BrokenExecutor("all of them")
    assert tell(caught.value) == 5
    assert "error: a worker was lost again and again (all of them)" in capsys.readouterr().err


def test_a_file_that_workers_do_not_find_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "x.idx"
    for there in (False, True):
        if there:
            path.touch()
        with pytest.raises(FileNotFoundError) as caught, started("threads"):
            raise FileNotFoundError(2, "No such file or directory", str(path))
        assert tell(caught.value) == 5
        assert ("the workers of threads do not find it" in capsys.readouterr().err) == there


def test_names_are_completed() -> None:
    (option,) = (p for p in where.params if p.name == "engine")
    found = option.type.shell_complete(None, option, "pro")  # type: ignore[arg-type]
    assert [item.value for item in found] == ["processes"]
    assert len(option.type.shell_complete(None, option, "")) == len(ENGINES)  # type: ignore[arg-type]


def test_a_terminal_is_told_of_each_run_of_slabs(monkeypatch: pytest.MonkeyPatch) -> None:
    """A shuffle of more than memory has two."""
    terminal = io.StringIO()
    terminal.isatty = lambda: True  # type: ignore[method-assign]
    monkeypatch.setattr(sys, "stderr", terminal)
    with slabs_bar("write x") as progress:
        assert progress is not None
        for total in (2, 4):
            for done in range(1, total + 1):
                progress(done, total)
    told = terminal.getvalue()
    assert told.count("100%") >= 2
    assert "25%" in told.partition("100%")[2]
