"""Protocols between the scheduling loop, the executors of its decisions and the admission disciplines.

Guarantees: none of them waits inside a cycle; they record what is to be written, and write it concurrently.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from shoal.engine.cluster import Cluster
from shoal.engine.events import Event, PodArrived, PodBound
from shoal.engine.intake import Intake
from shoal.engine.placement import Placement
from shoal.engine.plan import Evict, Place, Plan
from shoal.store.watched.pod_views import PodView


class PlanExecutor(Protocol):
    """Binds and evicts pods, and writes their conditions."""

    def carry_out(self, plan: Plan) -> None:
        """Take on the decisions of a cycle. Called once per cycle, also for an empty plan."""
        ...

    def outcomes(self) -> Sequence[Event]:
        """The outcomes since the last call that the caches do not show: PodRejected, PodStays."""
        ...

    async def run(self) -> None:
        """Write until cancelled."""
        ...


class AdmissionDiscipline(Protocol):
    """Decides which workloads are admitted, over the facts of the scheduling loop."""

    async def synced(self) -> None:
        """Returns when all input of its decisions is known, while it runs."""
        ...

    def hear(self, event: Event) -> bool:
        """Whether the discipline keeps this event to itself (a pod that is to take a place reserved for it); else the
        facts take it at once."""
        ...

    def round(self, now_s: float) -> Sequence[Place | Evict]:
        """Decide; returns the pods that take places reserved for them, and those to evict."""
        ...

    def next_s(self) -> float | None:
        """The next time at which a decision may change without an event."""
        ...

    @property
    def is_idle(self) -> bool:
        """Whether another cycle would change nothing before the next event."""
        ...

    async def run(self) -> None:
        """Write until cancelled."""
        ...


class PodViews(Protocol):
    """The last known state of pods."""

    def view(self, key: str, /) -> PodView | None: ...

    def reported(self) -> Sequence[PodArrived | PodBound]:
        """The current events of all pods, for a reader that starts again."""
        ...


class SchedulerState(Protocol):
    """The scheduling loop, as a discipline uses it."""

    @property
    def cluster(self) -> Cluster: ...
    @property
    def intake(self) -> Intake: ...
    @property
    def placement(self) -> Placement: ...
    @property
    def watched(self) -> PodViews: ...

    def wake(self) -> None:
        """Request a cycle."""
        ...
