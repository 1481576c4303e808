"""Runs the recorder of the history of devices, with its storage in a folder."""

from __future__ import annotations

import asyncio
from functools import partial
from pathlib import Path

from shoal.client.context import Context
from shoal.client.fetched_text import fetched_text
from shoal.client.kind import NAMESPACES, NODES, PODS
from shoal.client.served import Served
from shoal.wiring.process_tasks import ProcessTasks

_PATIENCE_S = 5.0


def start_history(tasks: ProcessTasks, context: Context, served: Served, folder: Path) -> None:
    """The caller starts the caches afterwards. While another process writes the history, this one tries again."""
    for kind in (NODES, PODS, NAMESPACES):
        context.informers.of(kind)

    async def run() -> None:
        # Imported here: a process without a history imports nothing of it.
        import aiohttp

        from shoal.controllers.history.recorder import HistoryRecorder
        from shoal.controllers.history.sampler import Sampler
        from shoal.store.history.history import open_history

        history = open_history(folder)
        try:
            async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=_PATIENCE_S)) as session:
                recorder = HistoryRecorder(context, history, served)
                sampler = Sampler(context, partial(fetched_text, session), recorder.store_samples, recorder.part_of)
                async with asyncio.TaskGroup() as group:
                    group.create_task(recorder.run())
                    group.create_task(sampler.run())
        finally:
            history.close()

    tasks.start("history", run)
