"""Starts the controllers for Volcano's objects as soon as the API server serves their kinds.

Queues and pod groups belong to one API group and jobs to another: a cluster may have the first without the second.
While Volcano itself runs in the cluster, these controllers do nothing: two programs would each make pods and groups.
"""

from __future__ import annotations

import asyncio
import logging

from shoal.client.context import Context, Controller
from shoal.client.ecosystem_kinds import VOLCANO_JOBS, VOLCANO_POD_GROUPS, VOLCANO_QUEUES
from shoal.client.kind import Kind
from shoal.client.presence import Presence
from shoal.client.served import Served
from shoal.controllers.volcano.command_controller import CommandController
from shoal.controllers.volcano.job_controller import JobController
from shoal.controllers.volcano.names import COMMANDS
from shoal.controllers.volcano.pod_group_controller import PodGroupController

_log = logging.getLogger("shoal.volcano")
VolcanoPart = PodGroupController | JobController | CommandController


class VolcanoController:
    def __init__(self, context: Context, served: Served, presence: Presence | None = None) -> None:
        """The caller runs `served`."""
        self.name = context.name
        self._context = context
        self._presence = presence
        self._parts: list[VolcanoPart] = []
        self._served: dict[Kind, asyncio.Event] = {}
        for kind in (VOLCANO_QUEUES, VOLCANO_POD_GROUPS, VOLCANO_JOBS, COMMANDS):
            self._served[kind] = asyncio.Event()
            served.when_there(kind, self._kind_served)

    def _kind_served(self, kind: Kind) -> None:
        self._served[kind].set()

    async def run(self) -> None:
        """Runs until cancelled."""
        async with asyncio.TaskGroup() as group:
            if self._presence is not None:
                await self._presence.look()
                group.create_task(self._presence.run(self._presence_changed))
            group.create_task(self._run_group_controllers(group))

    async def _run_group_controllers(self, group: asyncio.TaskGroup) -> None:
        await self._wait_for(VOLCANO_QUEUES, VOLCANO_POD_GROUPS)
        self._start(group, PodGroupController(self._context, self._is_volcano_absent))
        group.create_task(self._run_job_controllers(group))

    async def _run_job_controllers(self, group: asyncio.TaskGroup) -> None:
        await self._wait_for(VOLCANO_JOBS)
        jobs = JobController(self._context, self._is_volcano_absent)
        self._start(group, jobs)
        await self._wait_for(COMMANDS)
        self._start(group, CommandController(self._context, self._is_volcano_absent, jobs))

    async def _wait_for(self, *kinds: Kind) -> None:
        for kind in kinds:
            await self._served[kind].wait()

    def _start(self, group: asyncio.TaskGroup, *parts: VolcanoPart) -> None:
        for part in parts:
            self._parts.append(part)
            group.create_task(part.loop.run())

    def _is_volcano_absent(self) -> bool:
        return self._presence is None or not self._presence.is_there

    def _presence_changed(self) -> None:
        owner = "shoal" if self._is_volcano_absent() else "volcano"
        _log.info("Objects of Volcano are now reconciled by %s", owner)
        for part in self._parts:
            part.wake()


def volcano_controller(context: Context, served: Served, presence: Presence | None = None) -> Controller:
    return VolcanoController(context, served, presence)
