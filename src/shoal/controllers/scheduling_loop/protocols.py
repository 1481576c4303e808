"""Protocols between the scheduling loop, the executors of its decisions and the admission disciplines.

None of them waits inside a round: they note what is to be written and write it beside.
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
    """Binds, ends and tells pods."""

    def carry_out(self, plan: Plan) -> None:
        """Take on what a round decided. Called once a round, also for an empty plan."""
        ...

    def outcomes(self) -> Sequence[Event]:
        """What became of it since the last call, as far as the caches do not tell: PodRejected, PodStays."""
        ...

    async def run(self) -> None:
        """Write until cancelled."""
        ...


class AdmissionDiscipline(Protocol):
    """Decides who is admitted, over the brain's facts."""

    async def synced(self) -> None:
        """Returns when all that it decides by is known, while it runs."""
        ...

    def hear(self, event: Event) -> bool:
        """Whether the desk keeps this event to itself (a pod that is to take a place kept for it); else the facts
        take it at once."""
        ...

    def round(self, now_s: float) -> Sequence[Place | Evict]:
        """Decide; the pods that take places which were kept for them, and those that have to yield."""
        ...

    def next_s(self) -> float | None:
        """When time alone may change something."""
        ...

    @property
    def is_idle(self) -> bool:
        """Whether another round would change nothing before something happens."""
        ...

    async def run(self) -> None:
        """Write until cancelled."""
        ...


class PodViews(Protocol):
    """Pods as they were seen last."""

    def view(self, key: str, /) -> PodView | None: ...

    def reported(self) -> Sequence[PodArrived | PodBound]:
        """What is said of each pod that is there, as it stands: for who has to begin anew."""
        ...


class SchedulerState(Protocol):
    """The brain, as a desk knows it."""

    @property
    def cluster(self) -> Cluster: ...
    @property
    def intake(self) -> Intake: ...
    @property
    def placement(self) -> Placement: ...
    @property
    def watched(self) -> PodViews: ...

    def wake(self) -> None:
        """A round is due."""
        ...
