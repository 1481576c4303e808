"""Changes of queues and workloads, as values for the admission discipline."""

from __future__ import annotations

import msgspec

from shoal.api.cost_budgets import CostBudgets
from shoal.engine.queues.facts import WorkloadFacts
from shoal.engine.queues.settings import Settings
from shoal.engine.queues.state import Fact


class Mark(msgspec.Struct, frozen=True, gc=False):
    """The parts of a condition that decisions read."""

    is_true: bool
    reason: str = ""
    message: str = ""
    since_s: float = 0.0


ABSENT = Mark(False)


class WorkloadView(msgspec.Struct, frozen=True):
    """The last seen state of a Workload."""

    key: str
    """namespace/name"""
    uid: str
    version: int
    generation: int
    facts: WorkloadFacts | None = None
    """None where it has finished, or cannot be read."""
    fault: str = ""
    """Why it cannot be read."""
    queue: str = ""
    """Key of its local queue, known or not."""
    is_finished: bool = False
    is_terminating: bool = False
    ran_s: float | None = None
    """The duration of a finished Workload."""
    marks: dict[str, Mark] = {}
    """Conditions by type."""
    owner: tuple[str, str] = ("", "")
    """Kind and name of its controller."""

    def mark(self, name: str) -> Mark:
        return self.marks.get(name, ABSENT)


class QueueChanges(msgspec.Struct):
    """The changes since the last call. They are applied in this order: facts, namespaces, workloads."""

    settings: Settings | None = None
    """Whether the configuration changed: all decisions are made again with it."""
    cost_budgets: CostBudgets | None = None
    facts: list[Fact] = []
    dropped: list[tuple[type[Fact], str]] = []
    namespaces: list[tuple[str, dict[str, str]]] = []
    workloads: list[WorkloadView] = []
    gone: list[str] = []
    """Workloads that were deleted."""

    def __bool__(self) -> bool:
        return bool(
            self.settings is not None
            or self.cost_budgets is not None
            or self.facts
            or self.dropped
            or self.namespaces
            or self.workloads
            or self.gone
        )
