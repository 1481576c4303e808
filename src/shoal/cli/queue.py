"""`shoal queue`: the quota tree as it stands, and what would change under other quotas.

Promises: with `-o json` stdout holds one document and nothing else; warnings go to stderr.
"""

from __future__ import annotations

import difflib
import os
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from shoal.cli.options import Seed
from shoal.units.errors import UserError, Where, excerpt

if TYPE_CHECKING:
    from rich.console import Console

app = typer.Typer(help="Look at quota: who has it, who uses it, who waits for it.")

FORMATS = ("table", "json")
_PIPE_WIDTH = 4000

_Files = Annotated[
    list[str] | None,
    typer.Option(
        "-f",
        "--filename",
        metavar="PATH",
        help="A file of manifests, a folder of them, or - for standard input; may be given several times.",
    ),
]
_Two = Annotated[
    list[str] | None,
    typer.Option(
        "-f",
        "--filename",
        metavar="PATH",
        help="Given twice, first for the manifests as they are, then as proposed: a file, a folder, or -.",
    ),
]
_Output = Annotated[str, typer.Option("-o", "--output", metavar="FORMAT", help="table or json.")]


@app.callback(invoke_without_command=True)
def queue(
    context: typer.Context,
    filename: _Files = None,
    output: _Output = "table",
    workloads: Annotated[
        bool, typer.Option("--workloads", help="Also who holds quota and who waits, and why.")
    ] = False,
) -> None:
    """Show the quota tree: nominal, used, borrowed, lent, waiting, share."""
    if context.invoked_subcommand is not None:
        if filename or workloads or output != FORMATS[0]:
            raise UserError("options of a command stand behind its name", where=Where(path="shoal queue"))
        return
    wants_json = is_json(output)
    from shoal.cli.queue_manifests import read_queues
    from shoal.sim.queue_outlook import outlook
    from shoal.sim.queued_world import kueue_of
    from shoal.views.queue_backlog import waiters_of
    from shoal.views.queue_tree import queue_tree
    from shoal.views.queue_workloads import workloads_of

    world = read_queues(filename or [])
    kueue = kueue_of(world, world.now_s)
    waiters = waiters_of(kueue, {facts.key: facts for facts in world.workloads})
    tree = queue_tree(kueue.queues, waiters)
    listed = None
    if workloads:
        reasons = outlook(kueue_of(world, world.now_s), world.now_s)
        listed = workloads_of(kueue.queues.held.values(), waiters, reasons)
    if wants_json:
        import msgspec

        document = msgspec.to_builtins(tree) | ({} if listed is None else {"workloads": msgspec.to_builtins(listed)})
        sys.stdout.write(msgspec.json.format(msgspec.json.encode(document), indent=1).decode() + "\n")
        return
    from shoal.views.queue_text import show_tree
    from shoal.views.queue_workloads import show_workloads

    console = _console()
    show_tree(console, tree)
    if listed is not None:
        show_workloads(console, listed)


@app.command("diff")
def diff(filename: _Two = None, output: _Output = "table", seed: Seed = 42) -> None:
    """Tell who would start, stop or wait longer: -f NOW -f PROPOSED, each a file or a folder.

    Where PROPOSED holds queues, flavors and their like alone, they replace those of NOW by kind and name.
    """
    wants_json = is_json(output)
    from shoal.cli.queue_manifests import futures_of
    from shoal.sim.queue_diff import compare

    (now, before), (proposed, after) = futures_of(filename or [], seed)
    comparison = compare(now, proposed, before, after)
    if wants_json:
        import msgspec

        sys.stdout.write(msgspec.json.format(msgspec.json.encode(comparison), indent=1).decode() + "\n")
        return
    from shoal.views.queue_diff import show_comparison

    show_comparison(_console(), comparison)


def _console() -> Console:
    """As wide as the terminal, or as asked for; lines of a pipe stay whole for whoever searches them."""
    from rich.console import Console

    is_narrow = sys.stdout.isatty() or "COLUMNS" in os.environ
    return Console(highlight=False, width=None if is_narrow else _PIPE_WIDTH)


def is_json(output: str) -> bool:
    """Whether programs read it."""
    if output not in FORMATS:
        near = difflib.get_close_matches(output, FORMATS, 1)
        fix = f"did you mean {near[0]}?" if near else f"choose one of {', '.join(FORMATS)}"
        raise UserError(f"no format is called {excerpt(output)}", where=Where(path="--output"), fix=fix)
    return output == "json"
