"""`shoal cost backfill -f FILE`: fill a history from what kubectl showed of a cluster at some moments."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from shoal.cli.cluster_folder import cluster_folder, history_folder
from shoal.cli.formats import TEXTS, TextOutput, checked
from shoal.units.errors import UserError, Where

if TYPE_CHECKING:
    from shoal.store.history.backfill import Filled


def backfill(
    files: Annotated[
        list[Path],
        typer.Option(
            "-f",
            "--filename",
            metavar="FILE",
            help="What kubectl get pods,nodes,events,namespaces -A -o json wrote, or a folder of such; repeatable.",
        ),
    ],
    history: Annotated[
        Path | None,
        typer.Option("--history", metavar="DIR", help="Folder of the history; by default that of shoal up."),
    ] = None,
    all_namespaces: Annotated[
        bool,
        typer.Option("-A", "--all-namespaces", help="The files have all pods, also where these are of one namespace."),
    ] = False,
    output: TextOutput = TEXTS[0],
) -> None:
    """Fill a history from files of kubectl; time that they do not cover stays unknown."""
    from shoal.cli.formats import write
    from shoal.client.clock import WallClock
    from shoal.store.history.backfill import fill
    from shoal.store.history.history import open_history
    from shoal.store.history.snapshot_files import read_snapshot

    checked(output, TEXTS)
    now_ms = round(WallClock().seconds() * 1000)
    snapshots = [read_snapshot(path, now_ms, is_complete=all_namespaces) for path in _paths(files)]
    folder = history_folder(cluster_folder(None)) if history is None else history.expanduser().absolute()
    found = open_history(folder)
    try:
        filled = fill(found, snapshots)
    finally:
        found.close()
    if output == "text":
        typer.echo("\n".join(_lines(filled)))
    else:
        write(filled, output)


def _paths(files: Sequence[Path]) -> Iterator[Path]:
    for path in files:
        if not path.is_dir():
            yield path
            continue
        found = sorted(path.glob("*.json"))
        if not found:
            raise UserError("has no file *.json", where=Where(file=str(path)))
        yield from found


def _lines(filled: Filled) -> Iterator[str]:
    from shoal.units.calendar_windows import HOUR_MS, rfc3339

    length = filled.until_ms - filled.from_ms
    yield (
        f"{filled.snapshots:,} files, from {rfc3339(filled.from_ms)} to {rfc3339(filled.until_ms)}: "
        f"{filled.holdings:,} pods and {filled.machines:,} nodes are new or changed in the history"
    )
    yield f"{filled.known_ms / HOUR_MS:,.2f} of {length / HOUR_MS:,.2f} hours are known; the others stay unknown"
    if filled.unseen_pods:
        yield f"{filled.unseen_pods:,} pods are named by Events alone: what they held is unknown"
    if filled.lost_pods:
        yield f"{filled.lost_pods:,} pods ended, and no Event says when"
    if filled.partial:
        yield (
            f"{filled.partial:,} files have the pods of one namespace alone: what others held then is unknown; "
            "write --all-namespaces if there were no others"
        )
