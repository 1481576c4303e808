"""All that looks after Volcano's objects, begun as soon as their kinds are there.

Queues and groups are of one project and jobs of another group of kinds: a cluster may have the first and not the
second. Where Volcano itself runs, nothing of this does anything: two who let groups in would each promise what the
other gave away.
"""

from __future__ import annotations

import asyncio
import logging

from shoal.controllers.volcano.commands import Commands
from shoal.controllers.volcano.group_making import GroupMaking
from shoal.controllers.volcano.groups import Groups
from shoal.controllers.volcano.jobs import Jobs
from shoal.controllers.volcano.names import COMMANDS
from shoal.store.live.context import Context, Controller
from shoal.store.live.ecosystem_kinds import VOLCANO_JOBS, VOLCANO_POD_GROUPS, VOLCANO_QUEUES
from shoal.store.live.kind import Kind
from shoal.store.live.presence import Presence
from shoal.store.live.served import Served

_log = logging.getLogger("shoal.volcano")
Part = Groups | GroupMaking | Jobs | Commands


class VolcanoController:
    def __init__(self, context: Context, served: Served, presence: Presence | None = None) -> None:
        """`served` is run by whoever composes."""
        self.name = context.name
        self._context = context
        self._presence = presence
        self._parts: list[Part] = []
        self._there: dict[Kind, asyncio.Event] = {}
        for kind in (VOLCANO_QUEUES, VOLCANO_POD_GROUPS, VOLCANO_JOBS, COMMANDS):
            self._there[kind] = asyncio.Event()
            served.when_there(kind, self._came)

    def _came(self, kind: Kind) -> None:
        self._there[kind].set()

    async def run(self) -> None:
        """Until cancelled."""
        async with asyncio.TaskGroup() as group:
            if self._presence is not None:
                await self._presence.look()
                group.create_task(self._presence.run(self._moved))
            group.create_task(self._look_after_groups(group))

    async def _look_after_groups(self, group: asyncio.TaskGroup) -> None:
        await self._have(VOLCANO_QUEUES, VOLCANO_POD_GROUPS)
        self._begin(group, Groups(self._context, self._is_away), GroupMaking(self._context, self._is_away))
        group.create_task(self._look_after_jobs(group))

    async def _look_after_jobs(self, group: asyncio.TaskGroup) -> None:
        await self._have(VOLCANO_JOBS)
        jobs = Jobs(self._context, self._is_away)
        self._begin(group, jobs)
        await self._have(COMMANDS)
        self._begin(group, Commands(self._context, self._is_away, jobs))

    async def _have(self, *kinds: Kind) -> None:
        for kind in kinds:
            await self._there[kind].wait()

    def _begin(self, group: asyncio.TaskGroup, *parts: Part) -> None:
        for part in parts:
            self._parts.append(part)
            group.create_task(part.loop.run())

    def _is_away(self) -> bool:
        return self._presence is None or not self._presence.is_there

    def _moved(self) -> None:
        _log.info("volcano's objects are %s", "looked after here" if self._is_away() else "left to volcano")
        for part in self._parts:
            part.wake()


def volcano_controller(context: Context, served: Served, presence: Presence | None = None) -> Controller:
    return VolcanoController(context, served, presence)
