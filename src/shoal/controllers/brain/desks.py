"""Several desks as one: each project's queues have their own, and a pod may be kept by one after the other.

An event goes to each in turn until one keeps it; what a desk lets go is offered to those after it before the facts
take it. Whoever keeps nothing hears everything.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from shoal.controllers.brain.parts import Desk
from shoal.engine.events import Event
from shoal.engine.intake import Intake
from shoal.engine.plan import Evict, Place

Onward = Callable[[Event], None]
"""Where a desk sends a pod that it keeps no longer."""


class Desks:
    def __init__(self, intake: Intake) -> None:
        self._intake = intake
        self._desks: list[Desk] = []

    def add(self, make: Callable[[Onward], Desk]) -> None:
        """After those that are there."""
        after = len(self._desks) + 1
        self._desks.append(make(lambda event: self._pass_on(event, after)))

    async def synced(self) -> None:
        for desk in self._desks:
            await desk.synced()

    def hear(self, event: Event) -> bool:
        return self._offer(event, 0)

    def round(self, now_s: float) -> Sequence[Place | Evict]:
        return [decided for desk in self._desks for decided in desk.round(now_s)]

    def next_s(self) -> float | None:
        return min((due_s for desk in self._desks if (due_s := desk.next_s()) is not None), default=None)

    @property
    def is_idle(self) -> bool:
        return all(desk.is_idle for desk in self._desks)

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            for desk in self._desks:
                group.create_task(desk.run())

    # Inside

    def _offer(self, event: Event, first: int) -> bool:
        return any(desk.hear(event) for desk in self._desks[first:])

    def _pass_on(self, event: Event, first: int) -> None:
        if not self._offer(event, first):
            self._intake.apply(event)
