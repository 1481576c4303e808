"""`shoal cost forget NAMESPACE`: remove the names, labels and waits of a namespace from the history."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from shoal.cli.cluster_folder import cluster_folder, history_folder
from shoal.units.errors import UserError, Where, excerpt


def forget(
    namespace: Annotated[str, typer.Argument(metavar="NAMESPACE", help="The namespace whose data is removed.")],
    history: Annotated[
        Path | None,
        typer.Option("--history", metavar="DIR", help="Folder of the history; by default that of shoal up."),
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Remove it; without this nothing is changed.")] = False,
) -> None:
    """Remove the data of a namespace from the history; the time of its pods stays, without their names."""
    from shoal.store.history.file_tables import FILE
    from shoal.store.history.history import open_history

    folder = history_folder(cluster_folder(None)) if history is None else history.expanduser().absolute()
    if not (folder / FILE).is_file():
        raise UserError("has no history", where=Where(file=str(folder)), fix="name its folder with --history")
    if not yes:
        raise UserError("nothing was removed", where=Where(path="shoal cost forget"), fix="add --yes to remove it")
    found = open_history(folder)
    try:
        count = found.forget(namespace)
    finally:
        found.close()
    if not count:
        raise UserError(f"the history has nothing of the namespace {excerpt(namespace)}", where=Where(file=str(folder)))
    typer.echo(f"{count:,} records of the namespace {namespace} have no names, labels and waits any more")
