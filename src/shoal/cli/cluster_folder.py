"""Chooses the default folder of the commands about the embedded cluster."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from shoal.units.errors import UserError, Where, excerpt

StateFolder = Annotated[
    Path | None,
    typer.Option(
        "--state",
        metavar="DIR",
        help="Folder of the cluster's objects, keys and kubeconfig; by default ~/.local/state/shoal.",
    ),
]


def cluster_folder(chosen: Path | None) -> Path:
    """Absolute, because a server outlives the directory it was started in."""
    if chosen is not None:
        if not str(chosen).isprintable():
            raise UserError("holds a control character", where=Where(f"--state {excerpt(str(chosen))}"))
        return chosen.expanduser().absolute()
    home = os.environ.get("XDG_STATE_HOME", "")
    # The XDG rules ignore a relative path.
    return Path(home, "shoal") if home.startswith("/") else Path.home() / ".local" / "state" / "shoal"


def history_folder(folder: Path) -> Path:
    """Where the history of the cluster in this folder is."""
    return folder / "history"
