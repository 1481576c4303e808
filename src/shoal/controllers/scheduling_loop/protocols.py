"""Protocols between the scheduling loop, the executors of its decisions and the admission disciplines.

None of them waits inside a cycle: they queue their writes and send them concurrently.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from shoal.engine.cluster import Cluster
from shoal.engine.cycle_state import CycleState, Step
from shoal.engine.events import Event, PodArrived, PodBound
from shoal.engine.intake import Intake
from shoal.engine.placement import Placement
from shoal.engine.plan import Evict, Place, Plan
from shoal.store.pod_makers import Owner
from shoal.store.watched.pod_views import PodView


class PlanExecutor(Protocol):
    """Binds and evicts pods, and reports on them."""

    def carry_out(self, plan: Plan) -> None:
        """Start the execution of a cycle's decisions. Called once in each cycle, also for an empty plan."""
        ...

    def outcomes(self) -> Sequence[Event]:
        """The outcomes since the last call that the caches do not report: PodRejected, PodStays."""
        ...

    async def run(self) -> None:
        """Writes until cancelled."""
        ...


class AdmissionDiscipline(Protocol):
    """Decides which workloads are admitted, with the facts of the scheduling loop."""

    async def synced(self) -> None:
        """Returns when the caches for its decisions are filled, while `run` is active."""
        ...

    def hear(self, event: Event) -> bool:
        """Returns whether the discipline holds this event back (a pod that will take a place kept for it); otherwise
        the event is applied to the facts at once.
        """
        ...

    def round(self, now_s: float) -> Sequence[Place | Evict]:
        """Decide; returns the pods that take places kept for them, and the pods to evict."""
        ...

    def next_s(self) -> float | None:
        """The next time at which a decision may change without an event."""
        ...

    @property
    def is_idle(self) -> bool:
        """Whether another cycle without an event would change nothing."""
        ...

    async def run(self) -> None:
        """Writes until cancelled."""
        ...


class QueueDiscipline(Protocol):
    """Decides in the scheduling cycle about the pods of its queues, by steps that come before those of the loop."""

    def steps(self) -> Sequence[Step]:
        """The steps of the next cycle; none while the project that owns the queues decides itself. The first one only
        reads the jobs."""
        ...

    def keep(self, state: CycleState) -> None:
        """Leave the gangs of its queues to the next cycle. Takes the place of its steps after one of them failed."""
        ...

    def words_of(self, group: str) -> str:
        """Why a queue holds the group back; empty if none does."""
        ...


class PodViews(Protocol):
    """The last seen pods."""

    def view(self, key: str, /) -> PodView | None: ...

    def owners(self, key: str, /) -> Sequence[Owner]:
        """The controller of the pod and the controller of that one, as far as they are known."""
        ...

    def reported(self) -> Sequence[PodArrived | PodBound]:
        """The last event of each pod, for disciplines that rebuild their state."""
        ...


class SchedulerState(Protocol):
    """The scheduling loop as the disciplines use it."""

    @property
    def cluster(self) -> Cluster: ...
    @property
    def intake(self) -> Intake: ...
    @property
    def placement(self) -> Placement: ...
    @property
    def watched(self) -> PodViews: ...

    @property
    def held_pods(self) -> dict[str, tuple[str, str]]:
        """Pods that a discipline keeps out of the facts and that must be told why: reason and message."""
        ...

    def wake(self) -> None:
        """Request a cycle."""
        ...

    def queue_words(self, group: str) -> str:
        """Why a queue discipline holds the group back; empty if none does."""
        ...
