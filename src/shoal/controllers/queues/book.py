"""What the desk knows from round to round: the discipline with its facts, and the Workloads as they were seen last.

Its parts share this and nothing else: who hears changes it, who decides reads it.
"""

from __future__ import annotations

from shoal.controllers.queues.pen import Pen
from shoal.engine.queues.held import Held
from shoal.engine.queues.kueue import Kueue
from shoal.engine.queues.settings import Settings
from shoal.engine.queues.state import Queues
from shoal.store.watched.queue_news import WorkloadSight


class Book:
    def __init__(self, settings: Settings, pen: Pen) -> None:
        self.pen = pen
        self.kueue = Kueue(Queues(settings))
        self.sights: dict[str, WorkloadSight] = {}
        self.untold: dict[str, None] = {}
        """Workloads that wait, and of whom nobody said why since something changed."""
        self.is_upkeep_due = True
        self.is_cycle_due = True
        """Facts of queues changed since the last cycle, which the discipline notices in a cycle only."""

    @property
    def queues(self) -> Queues:
        return self.kueue.queues

    def begin_anew(self, settings: Settings) -> None:
        """By other rules; nobody stands in line yet."""
        self.kueue = Kueue(Queues(settings))

    def held(self, workload: str) -> Held | None:
        return self.kueue.queues.held.get(workload)

    def is_deciding(self, workload: str) -> bool:
        """Whether what caches say of it is older than what was decided."""
        return self.pen.is_deciding(workload)
