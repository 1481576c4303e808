"""A recorder of a history beside a small cluster: it can be killed and followed by another, on one storage."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from build.small_clusters import SmallCluster
from shoal.client.context import Context
from shoal.client.informers import Informers
from shoal.client.recorder import Recorder
from shoal.client.served import Served
from shoal.client.write_through import WriteThroughApi
from shoal.controllers.history.recorder import HistoryRecorder
from shoal.controllers.history.sampler import Fetch, Sampler
from shoal.cost.prices.price_file import PriceFile
from shoal.cost.prices.recorded_prices import PriceRecorder
from shoal.store.history.history import UsageHistory
from shoal.store.history.memory_tables import MemoryTables


class RecorderRun:
    """One process: caches of its own."""

    def __init__(
        self,
        cluster: SmallCluster,
        tables: MemoryTables,
        fetch: Fetch | None = None,
        is_urgent: Callable[[], bool] = lambda: False,
        prices: PriceFile | None = None,
    ) -> None:
        informers = Informers(cluster.api, cluster.clock, cluster.draw)
        learning, events = WriteThroughApi(cluster.api, informers), Recorder(cluster.api, cluster.clock, "history")
        context = Context("history", learning, informers, cluster.clock, cluster.draw, events)
        self._cluster = cluster
        self.history = UsageHistory(tables)
        served = Served(context)
        self.recorder = HistoryRecorder(
            context, self.history, served, is_urgent, None if prices is None else PriceRecorder(prices)
        )
        self.tasks: list[asyncio.Task[Any]] = []
        runs = [informers.run(), served.run(), self.recorder.run()]
        if fetch is not None:
            runs.append(Sampler(context, fetch, self.recorder.store_samples, self.recorder.part_of).run())
        for run in runs:
            self.tasks.append(asyncio.ensure_future(run))
        cluster.tasks += self.tasks

    async def kill(self) -> None:
        """The recorder stores nothing more, as after SIGKILL."""
        broken = [task.exception() for task in self.tasks if task.done() and not task.cancelled()]
        self.recorder.record = lambda: True  # type: ignore[method-assign]
        for task in self.tasks:
            task.cancel()
            self._cluster.tasks.remove(task)
        await asyncio.gather(*self.tasks, return_exceptions=True)
        assert not broken, broken
