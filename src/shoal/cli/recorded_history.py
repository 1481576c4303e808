"""Finds the history that is recorded of a cluster: in a folder that the user names, or in that of `shoal up`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from shoal.cli.cluster_folder import cluster_folder, history_folder
from shoal.units.errors import UserError

if TYPE_CHECKING:
    from shoal.client.http.access import Access
    from shoal.policy.readiness.outcomes import RecordedHistory


def recorded_history(chosen: Path | None, cluster: Access | None) -> RecordedHistory | None:
    """None where none is known. Raises UserError for a chosen folder without a history."""
    if chosen is not None:
        return _read(chosen.expanduser().absolute())
    folder = cluster_folder(None)
    if cluster is None or not _serves(folder, cluster):
        return None
    try:
        return _read(history_folder(folder))
    except UserError:
        # A cluster without a scheduler of Shoal has none.
        return None


def _serves(folder: Path, cluster: Access) -> bool:
    """Whether the server of this folder is the cluster."""
    from shoal.embedded.apiserver.security.state_folder import running

    found = running(folder)
    return found is not None and found.url.rstrip("/") == cluster.server.rstrip("/")


def _read(folder: Path) -> RecordedHistory:
    from shoal.client.clock import WallClock
    from shoal.policy.readiness.outcomes import RecordedHistory
    from shoal.store.history.history import read_history

    history = read_history(folder)
    try:
        since, until = history.ledger.since_ms(), history.ledger.recorded_ms()
    finally:
        history.close()
    return RecordedHistory(str(folder), since, until, round(WallClock().seconds() * 1000))
