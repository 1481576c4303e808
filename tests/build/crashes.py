"""Controllers that are killed again and again, at any step of theirs, each time followed by a successor that knows
nothing but what the server tells it.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Sequence

from build.small_clusters import Make, SmallCluster
from shoal.client.context import Context
from shoal.client.informers import Informers
from shoal.client.recorder import Recorder
from shoal.client.write_through import WriteThroughApi

Check = Callable[[], Awaitable[None]]
_LONGEST_STEPS = 400


async def crash_often(
    cluster: SmallCluster, makes: Sequence[Make], draw: random.Random, times: int, check: Check
) -> None:
    """`check` is called after each death, when what was being written is written."""
    for _ in range(times):
        tasks = _started(cluster, makes)
        for _ in range(draw.randrange(_LONGEST_STEPS)):
            # A step of the loop: time stands still, so that death comes in the middle of work and not between.
            await asyncio.sleep(0)
        if draw.random() < 0.5:
            await cluster.pass_time(draw.uniform(0, 2))
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await cluster.pass_time(0.001)
        await check()


def _started(cluster: SmallCluster, makes: Sequence[Make]) -> list[asyncio.Task[None]]:
    informers = Informers(cluster.api, cluster.clock, cluster.draw)
    api = WriteThroughApi(cluster.api, informers)
    tasks = [asyncio.ensure_future(informers.run())]
    for make in makes:
        recorder = Recorder(cluster.api, cluster.clock, "test")
        context = Context("test", api, informers, cluster.clock, cluster.draw, recorder)
        tasks += [asyncio.ensure_future(make(context).run()), asyncio.ensure_future(recorder.run())]
    return tasks
