"""The command line `idx`: parse, call the library, render.

COMMANDS lists every command with the public function it is bound to; the code of a command is
imported when it is called, so that `idx info` starts without NumPy. Data go to stdout, talk to
stderr. The exit codes:

    0   fine
    1   check, diff or another question came out negative
    2   wrong usage, or an optional package is missing
    3   the input is not valid
    4   it cannot be represented without loss
    5   file system or network
    70  a fault of ours
    130 interrupted
"""

from __future__ import annotations

import io
import os
import sys
import warnings
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from .. import __version__
from ..errors import IdxError, IdxWarning, MissingExtraError, UnsupportedError, printable
from .ending import Ending, ended_tidily

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

__all__ = ["COMMANDS", "main"]

NEGATIVE, USAGE, INVALID, LOSSY, SYSTEM, FAULT, INTERRUPTED = 1, 2, 3, 4, 5, 70, 130


class Command(NamedTuple):
    """A row of the table of commands."""

    name: str
    room: str
    """The module of `cli` that has it."""
    bound: str
    """The public function or method that does the work; its defaults are the command's."""
    help: str
    """One line for `idx --help`."""


COMMANDS: dict[str, Command] = {
    row.name: row
    for row in (
        Command("info", "facts", "info", "Show what files are: type, shape, codec, sizes."),
        Command("head", "values", "open", "Print the first items as numbers."),
        Command("show", "pictures", "show", "Draw items in the terminal, or as a sheet."),
        Command("view", "view", "view", "Look through all items in the browser."),
        Command("check", "judgement", "check", "Judge whole files; exit 1 where one is wrong."),
        Command("repair", "judgement", "repair", "Make a right file of a wrong one."),
        Command("diff", "judgement", "diff", "Compare two files by value; exit 1 if they differ."),
        Command("identify", "identity", "identify", "Say what files, or magic numbers, are."),
        Command(
            "stats", "selection", "stats", "Summarise data: counts by class, mean, std, range."
        ),
        Command(
            "select", "selection", "Dataset.select", "Write some items of a pair as a new one."
        ),
        Command(
            "split", "selection", "Dataset.random_split", "Split a pair at random into several."
        ),
        Command("merge", "merging", "Dataset.merge", "Write the items of several pairs as one."),
        Command("datasets", "datasets", "datasets", "List the known data sets, or tell of one."),
        Command("fetch", "datasets", "fetch", "Download a known data set, and verify it."),
        Command("convert", "conversion", "convert", "Convert from any format to any other."),
        Command("append", "joining", "append", "Add the items of files to the end of a file."),
        Command("concat", "joining", "concat", "Write the items of many files into one."),
    )
}


class _LazyGroup(click.Group):
    """A group whose commands are imported when they are called."""

    def list_commands(self, context: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        row = COMMANDS.get(name)
        if row is None:
            return None
        command: click.Command = getattr(import_module(f".{row.room}", __name__), f"{name}_command")
        command.short_help = row.help
        return command

    def resolve_command(
        self, context: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command that the first word names; of one that is near, ask whether it is meant.

        Raises:
            click.UsageError: for a word that names none.
        """
        from difflib import get_close_matches

        if args and not args[0].startswith("-") and args[0] not in COMMANDS:
            near = get_close_matches(args[0], COMMANDS, 1)
            meant = f"; did you mean {near[0]!r}?" if near else ""
            raise click.UsageError(f"there is no command {args[0]!r}{meant}", context)
        return super().resolve_command(context, args)

    def invoke(self, context: click.Context) -> Any:
        """Run a command; end quietly when whoever reads the output has seen enough."""
        from .terms import waiting_bar

        try:
            with waiting_bar():
                return super().invoke(context)
        except BrokenPipeError:
            raise click.exceptions.Exit(0) from None

    def shell_complete(self, context: click.Context, incomplete: str) -> list[CompletionItem]:
        """Complete the commands from the table, without importing one."""
        from click.shell_completion import CompletionItem

        commands = [
            CompletionItem(row.name, help=row.help)
            for row in COMMANDS.values()
            if row.name.startswith(incomplete)
        ]
        return commands + click.Command.shell_complete(self, context, incomplete)

    def format_commands(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands from the table, without importing one."""
        with formatter.section("Commands"):
            formatter.write_dl([(row.name, row.help) for row in COMMANDS.values()])


@click.group(
    cls=_LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="`idx COMMAND --help` tells more. Exit codes: 0 fine, 1 a check was negative, 2 usage, "
    "3 invalid input, 4 not without loss, 5 file system or network, 130 interrupted.",
)
@click.version_option(__version__, message="idxfile %(version)s")
def cli() -> None:
    """Read, write, check and look at IDX files, the tensor format of MNIST."""


def _warnings_shown_once() -> Any:
    """A `warnings.showwarning` for people, that tells nothing twice."""
    told: set[str] = set()

    def show(message: Warning | str, *_: Any, **__: Any) -> None:
        if str(message) not in told:
            told.add(str(message))
            click.echo(f"warning: {message}", err=True)

    return show


def tell(error: BaseException) -> int:
    """Print an error for people, without a traceback, and return its exit code."""
    name: str | None = None
    hint: str | None = None
    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        error.show()
        return USAGE
    if isinstance(error, click.ClickException):
        text, code = error.format_message().removesuffix("."), USAGE
        if isinstance(error, click.UsageError) and error.ctx is not None:
            hint = f"`{error.ctx.command_path} --help` tells more"
    elif isinstance(error, IdxError):
        name, text, hint = error.file, str(error.args[0]), error.hint
        if isinstance(error, MissingExtraError):
            code = USAGE
        elif isinstance(error, UnsupportedError):
            code = LOSSY
        else:
            code = SYSTEM if isinstance(error, OSError) else INVALID
    elif isinstance(error, OSError):
        name = None if error.filename is None else os.fsdecode(error.filename)
        text, code = error.strerror or str(error), SYSTEM
        if isinstance(error, FileNotFoundError) and name is not None:
            folder = os.path.dirname(name)
            if folder and "://" not in name and not os.path.isdir(folder):
                text = f"there is no folder {printable(folder)}"
    elif isinstance(error, MemoryError):
        text, code = f"out of memory: {error}", SYSTEM
    else:
        text, code = f"{type(error).__name__}: {error}", FAULT
        hint = "this is a fault of idxfile; run it with IDX_DEBUG=1 for the whole story"
    place = "" if name is None else f"{printable(name) or repr(name)}: "
    click.echo(f"error: {place}{printable(text)}", err=True)
    if hint:
        click.echo(f"hint: {printable(hint)}", err=True)
    return code


def main(arguments: list[str] | None = None) -> int:
    """Run the command line.

    Args:
        arguments: the words after `idx`; None takes those of the process.

    Returns:
        The exit code.
    """
    streams = [s for s in (sys.stdout, sys.stderr) if isinstance(s, io.TextIOWrapper)]
    for stream in streams:  # a terminal that lacks a character gets its escape
        stream.reconfigure(errors="backslashreplace")
    with ended_tidily() as ending:
        try:
            return _run(arguments, ending)
        except BrokenPipeError:
            return 0  # whoever reads our output has seen enough
        finally:
            for stream in streams:
                try:
                    stream.flush()
                except OSError:  # Python must not complain about it once more, at its exit
                    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _run(arguments: list[str] | None, ending: Ending) -> int:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("always", IdxWarning)
            warnings.showwarning = _warnings_shown_once()
            result = cli.main(arguments, prog_name="idx", standalone_mode=False)
        if sys.stdout is not None:
            sys.stdout.flush()
        return result if isinstance(result, int) else 0
    except BrokenPipeError:
        raise
    except (KeyboardInterrupt, click.Abort):
        click.echo("interrupted" if ending.came is None else "terminated", err=True)
        return INTERRUPTED
    except click.exceptions.Exit as end:
        return end.exit_code
    except Exception as error:
        if os.environ.get("IDX_DEBUG"):
            raise
        return tell(error)
