"""`shoal cluster status` and `shoal cluster reset`: how the embedded control plane is, and starting it over."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Annotated

import typer

from shoal.cli import cluster_parts
from shoal.cli.cluster_faults import add_faults
from shoal.cli.cluster_folder import StateFolder, cluster_folder
from shoal.cli.command_help import HelpCommand, HelpGroup
from shoal.cli.formats import TEXTS, TextOutput, checked
from shoal.units.errors import UserError, Where

app = typer.Typer(
    rich_markup_mode=None,
    add_completion=False,
    cls=HelpGroup,
    help="The embedded cluster that `shoal up` starts, and what breaks in it on demand.",
)
app.command("nodes", cls=HelpCommand)(cluster_parts.nodes)
app.command("controllers", cls=HelpCommand)(cluster_parts.controllers)
add_faults(app)


@app.command(cls=HelpCommand)
def status(state: StateFolder = None, output: TextOutput = TEXTS[0]) -> None:
    """Say whether the cluster runs, where, and what is in it; exit code 1 when it does not."""
    checked(output, TEXTS)
    from shoal.embedded.apiserver.security.state_folder import check_form, running

    folder = cluster_folder(state)
    check_form(folder)
    found = running(folder)
    lines = [("state", str(folder)), ("server", "not running")]
    if found is not None:
        from shoal.cli.cluster_facts import facts

        lines = [("state", str(folder)), *facts(found)]
    if output != TEXTS[0]:
        from shoal.cli.formats import write

        write({"running": found is not None, **dict(lines)}, output)
    else:
        width = max(len(name) for name, _ in lines) + 1
        typer.echo("\n".join(f"{name:<{width}}{value}" for name, value in lines))
    if found is None:
        raise typer.Exit(1)


@app.command(cls=HelpCommand)
def reset(
    state: StateFolder = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> None:
    """Delete everything the cluster keeps: objects, keys, kubeconfig. It must not be running."""
    folder = cluster_folder(state)
    if not folder.exists():
        typer.echo(f"nothing is kept in {folder}", err=True)
        return
    _refuse_strangers(folder)
    from shoal.agent.kubelet.mounts import mounted_below

    if mounted := mounted_below(folder.resolve()):
        fix = "start the cluster again and delete its pods, or unmount it"
        raise UserError(f"{mounted[0]} is mounted for a pod of this cluster", where=Where(str(folder)), fix=fix)
    if not yes:
        _ask(f"Delete all objects and keys in {folder}?")
    shutil.rmtree(folder)
    typer.echo(f"{folder} is gone; `shoal up` starts anew", err=True)


def _ask(question: str) -> None:
    """Aborts unless the answer is yes. Where standard input has ended, the line of the question ends too."""
    try:
        is_yes = typer.confirm(question, err=True)
    except typer.Abort:
        typer.echo(err=True)
        raise
    if not is_yes:
        raise typer.Abort


def _refuse_strangers(folder: Path) -> None:
    """A broken folder may be deleted; that is what reset is for. One that never was ours may not."""
    from shoal.embedded.apiserver.security.state_folder import LOCK, LOG, MARKER, is_claimed

    names = {entry.name for entry in folder.iterdir()} if folder.is_dir() else {folder.name}
    if names - {LOCK, LOG} and MARKER not in names:
        raise UserError("this is not a folder of Shoal", where=Where(str(folder)), fix="nothing was deleted")
    if is_claimed(folder):
        raise UserError("a cluster is running here", where=Where(str(folder)), fix="end it with `shoal down` first")
