"""Defines the `shoal` command: the list of its commands, and the entry point.

Guarantees: commands import what they need when they run, so `shoal --help` stays quick however much is behind it.

Rejected: one module per command found by scanning a folder. This module lists all commands.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from shoal.cli import (
    advise,
    bench,
    cluster,
    completion,
    crds,
    decide,
    demo,
    down,
    get,
    pack,
    permissions,
    queue,
    run,
    snapshot,
    top,
    up,
    why,
)
from shoal.cli.exit_codes import exit_code

app = typer.Typer(
    name="shoal",
    help="GPU scheduling for Kubernetes, whole: from the chip on the node to the cost report.",
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("decide")(decide.decide)
app.command("why")(why.why)
app.command("advise")(advise.advise)
app.add_typer(queue.app, name="queue")
app.command("top")(top.top)
app.add_typer(get.app, name="get")
app.command("snapshot")(snapshot.snapshot)
app.command("pack")(pack.pack)
app.command("demo")(demo.demo)
app.command("up")(up.up)
app.command("run")(run.run)
app.command("permissions")(permissions.permissions)
app.command("crds")(crds.crds)
app.command("down")(down.down)
app.add_typer(cluster.app, name="cluster")
app.add_typer(bench.app, name="bench")
app.command("completion")(completion.completion)


_MOST_DIGITS = 6


def _show_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import PackageNotFoundError, version

        try:
            number = version("shoal")
        except PackageNotFoundError:
            number = "(not installed: running from source)"
        typer.echo(f"shoal {number}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def shoal(
    context: typer.Context,
    _version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version and exit.")
    ] = False,
    _debug: Annotated[bool, typer.Option("--debug", help="Show the traceback when something fails.")] = False,
) -> None:
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


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
    completion.prepare()
    command = typer.main.get_command(app)
    return exit_code(lambda: command.main(args=given, prog_name="shoal", standalone_mode=False), debug)
