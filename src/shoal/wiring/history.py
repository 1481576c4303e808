"""Runs the recorder of the history of devices, with its storage in a folder."""

from __future__ import annotations

from pathlib import Path

from shoal.client.context import Context
from shoal.client.kind import NAMESPACES, NODES, PODS
from shoal.wiring.process_tasks import ProcessTasks


def start_history(tasks: ProcessTasks, context: Context, folder: Path) -> None:
    """The caller starts the caches afterwards. While another process writes the history, this one tries again."""
    for kind in (NODES, PODS, NAMESPACES):
        context.informers.of(kind)

    async def run() -> None:
        # Imported here: a process without a history imports nothing of it.
        from shoal.controllers.history.recorder import HistoryRecorder
        from shoal.store.history.history import open_history

        history = open_history(folder)
        try:
            await HistoryRecorder(context, history).run()
        finally:
            history.close()

    tasks.start("history", run)
