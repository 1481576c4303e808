"""Defines the `shoal` command: its own options, and the entry point. `commands.py` lists its commands.

Guarantees: a command is imported when it runs, so `shoal --help` stays quick however much is behind it.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Sequence

import typer

from shoal.cli.commands import Commands
from shoal.cli.completion_variable import VARIABLE
from shoal.cli.exit_codes import exit_code

app = typer.Typer(
    name="shoal",
    cls=Commands,
    help="GPU scheduling for Kubernetes: placement, quota and queues, and a cluster with GPUs on your machine.",
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


_MOST_DIGITS = 6


@app.callback(invoke_without_command=True)
def shoal(context: typer.Context) -> None:
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


def _show_version() -> None:
    from shoal import __version__

    sys.stdout.write(f"shoal {__version__}\n")


def _open_streams() -> None:
    """A stream that was closed before the start (`>&-`) is None in Python: what is written to it is discarded."""
    for name in ("stdin", "stdout", "stderr"):
        if getattr(sys, name) is None:
            mode = "r" if name == "stdin" else "w"
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115, PTH123 - kept for the process


def _check_size() -> None:
    """A terminal size in the environment that is no positive number is ignored: tables of width 0 would be empty."""
    for name in ("COLUMNS", "LINES"):
        value = os.environ.get(name, "")
        if value and not (value.isascii() and value.isdigit() and len(value) < _MOST_DIGITS and int(value)):
            del os.environ[name]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command line and return its exit code."""
    _open_streams()
    _check_size()
    if isinstance(sys.stdout, io.TextIOWrapper):
        # A path or a terminal with an odd encoding must not turn a result into a failure.
        sys.stdout.reconfigure(errors="backslashreplace")
    given = list(sys.argv[1:] if arguments is None else arguments)
    debug = "--debug" in given
    # Accepted at any position: users append it to the command line that just failed.
    given = [argument for argument in given if argument != "--debug"]
    if given[:1] == ["--version"]:
        return exit_code(_show_version, debug)
    if VARIABLE in os.environ:
        from shoal.cli.completion import prepare

        prepare()
    command = typer.main.get_command(app)
    return exit_code(lambda: command.main(args=given, prog_name="shoal", standalone_mode=False), debug)
