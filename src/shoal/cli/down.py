"""Implements `shoal down`: stops the embedded control plane and keeps its objects."""

from __future__ import annotations

import os
import signal
import threading
from contextlib import suppress
from pathlib import Path

import typer

from shoal.cli.cluster_folder import StateFolder, cluster_folder
from shoal.cli.progress import long_work

_PATIENCE_S = 10.0
_GLANCE_S = 0.02


def down(state: StateFolder = None) -> None:
    """End the cluster that `shoal up` started; the next `shoal up` finds everything again."""
    folder = cluster_folder(state)
    typer.echo(end_server(folder), err=True)


def end_server(folder: Path, patience_s: float = _PATIENCE_S) -> str:
    """Returns what happened. The lock says when the server is gone, whatever its process id is reused for."""
    from shoal.embedded.apiserver.security.state_folder import holder
    from shoal.units.errors import TemporaryError

    pid = holder(folder)
    if pid is None:
        return f"no cluster is running in {folder}"
    for request in (signal.SIGTERM, signal.SIGKILL):
        # It may have ended by itself meanwhile; the lock tells.
        with suppress(ProcessLookupError):
            os.kill(pid, request)
        with long_work(f"waiting for the cluster in {folder} to end"):
            has_ended = _has_ended(folder, pid, patience_s)
        if has_ended:
            how = "" if request is signal.SIGTERM else " (it did not answer and was killed; nothing durable is lost)"
            return f"the cluster in {folder} has ended{how}"
    raise TemporaryError(f"the cluster in {folder} does not end (pid {pid})", delay_s=patience_s)


def _has_ended(folder: Path, pid: int, patience_s: float) -> bool:
    from shoal.embedded.apiserver.security.state_folder import holder

    glance = threading.Event()
    for _ in range(round(patience_s / _GLANCE_S)):
        if holder(folder) != pid:
            return True
        glance.wait(_GLANCE_S)
    return False
