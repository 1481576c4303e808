"""`shoal cluster status` and `shoal cluster reset`: how the embedded control plane is, and starting it over."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Annotated

import typer

from shoal.cli import cluster_parts
from shoal.cli.cluster_faults import add_faults
from shoal.cli.cluster_folder import StateFolder, cluster_folder

app = typer.Typer(help="The embedded cluster that `shoal up` starts, and what breaks in it on demand.")
app.command("nodes")(cluster_parts.nodes)
app.command("controllers")(cluster_parts.controllers)
add_faults(app)


@app.command()
def status(state: StateFolder = None) -> None:
    """Say whether the cluster runs, where, and what is in it; exit code 1 when it does not."""
    from shoal.embedded.apiserver.security.state_folder import check_form, running

    folder = cluster_folder(state)
    check_form(folder)
    found = running(folder)
    if found is None:
        typer.echo(f"state    {folder}\nserver   not running")
        raise typer.Exit(1)

    from shoal.cli.cluster_facts import facts

    for name, value in (("state", str(folder)), *facts(found)):
        typer.echo(f"{name:<11}{value}")


@app.command()
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
    if not yes:
        typer.confirm(f"Delete all objects and keys in {folder}?", abort=True, err=True)
    shutil.rmtree(folder)
    typer.echo(f"{folder} is gone; `shoal up` starts anew", err=True)


def _refuse_strangers(folder: Path) -> None:
    """A broken folder may be deleted; that is what reset is for. One that never was ours may not."""
    from shoal.embedded.apiserver.security.state_folder import LOCK, LOG, MARKER, is_claimed
    from shoal.units.errors import UserError, Where

    names = {entry.name for entry in folder.iterdir()} if folder.is_dir() else {folder.name}
    if names - {LOCK, LOG} and MARKER not in names:
        raise UserError("this is not a folder of Shoal", where=Where(str(folder)), fix="nothing was deleted")
    if is_claimed(folder):
        raise UserError("a cluster is running here", where=Where(str(folder)), fix="end it with `shoal down` first")
