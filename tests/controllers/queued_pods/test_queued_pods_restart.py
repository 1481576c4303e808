"""The controller of queued pods is restarted after a fault and continues."""

from __future__ import annotations

import asyncio
from pathlib import Path

from build.queued_pod_scenarios import bare_scenario
from build.virtual_time import virtual
from shoal.client.context import Context, Controller
from shoal.client.served import Served
from shoal.controllers.queued_pods.controller import queued_pods_controller


class _BegunAgain:
    """After five seconds."""

    def __init__(self, context: Context) -> None:
        self.name = context.name
        self._clock = context.clock
        self._served = Served(context)
        self._controller = queued_pods_controller(context, self._served)

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self._served.run())
            first = group.create_task(self._controller.run())
            await self._clock.sleep(5)
            first.cancel()
            await asyncio.wait([first])
            group.create_task(self._controller.run())


def _begun_again(context: Context) -> Controller:
    return _BegunAgain(context)


@virtual
async def test_pods_created_after_a_restart_get_their_workload(tmp_path: Path) -> None:
    async with bare_scenario(tmp_path) as scenario:
        scenario.cluster.start(_begun_again)
        await scenario.pod("early")
        await scenario.cluster.pass_time(3)
        assert len(await scenario.workloads()) == 1
        await scenario.cluster.pass_time(5)
        await scenario.pod("late")
        await scenario.cluster.pass_time(3)
        assert len(await scenario.workloads()) == 2
