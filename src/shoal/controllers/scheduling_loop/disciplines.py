"""Combines the admission disciplines of several projects: a pod may be held by one after the other.

An event goes to each discipline in turn until one holds it back. A pod that a discipline releases is offered to those
after it, and then applied to the facts. A discipline that holds back nothing receives all events. The last one has no
successor and applies released pods to the facts itself.

A failure of one discipline is logged, and the discipline is called again a moment later; the decisions of the others
remain valid.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence

from shoal.client.clock import Clock
from shoal.client.supervise import supervised
from shoal.controllers.scheduling_loop.protocols import AdmissionDiscipline
from shoal.engine.events import Event
from shoal.engine.intake import Intake
from shoal.engine.plan import Evict, Place

_log = logging.getLogger("shoal.scheduling")
_AGAIN_S = 1.0
Onward = Callable[[Event], None]
"""Receives the pods that a discipline releases."""


class Disciplines:
    def __init__(self, intake: Intake, clock: Clock) -> None:
        self._intake = intake
        self._clock = clock
        self._disciplines: list[AdmissionDiscipline] = []
        self._again_s: dict[AdmissionDiscipline, float] = {}
        """Disciplines that failed in the last cycle, and when to call them again."""

    def add(self, make: Callable[[Onward], AdmissionDiscipline]) -> None:
        """Add a discipline after the existing ones."""
        after = len(self._disciplines) + 1
        self._disciplines.append(make(lambda event: self._pass_on(event, after)))

    async def synced(self) -> None:
        for discipline in self._disciplines:
            await discipline.synced()

    def hear(self, event: Event) -> bool:
        return self._offer(event, 0)

    def round(self, now_s: float) -> Sequence[Place | Evict]:
        return [decided for discipline in self._disciplines for decided in self._round_of(discipline, now_s)]

    def next_s(self) -> float | None:
        moments = [*self._again_s.values(), *(discipline.next_s() for discipline in self._disciplines)]
        return min((due_s for due_s in moments if due_s is not None), default=None)

    @property
    def is_idle(self) -> bool:
        return all(discipline in self._again_s or discipline.is_idle for discipline in self._disciplines)

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            for discipline in self._disciplines:
                group.create_task(supervised(self._clock, type(discipline).__name__, discipline.run))

    # Inside

    def _round_of(self, discipline: AdmissionDiscipline, now_s: float) -> Sequence[Place | Evict]:
        try:
            decided = discipline.round(now_s)
        except Exception:  # noqa: BLE001 - the decisions of the other disciplines are in the facts and must be executed
            _log.exception("admission cycle of %s failed", type(discipline).__name__)
            self._again_s[discipline] = now_s + _AGAIN_S
            return ()
        self._again_s.pop(discipline, None)
        return decided

    def _offer(self, event: Event, first: int) -> bool:
        for discipline in self._disciplines[first:]:
            try:
                if discipline.hear(event):
                    return True
            except Exception:  # noqa: BLE001 - the other disciplines and the facts must receive the event all the same
                _log.exception("%s could not take in a %s", type(discipline).__name__, type(event).__name__)
        return False

    def _pass_on(self, event: Event, first: int) -> None:
        if not self._offer(event, first):
            self._intake.apply(event)
