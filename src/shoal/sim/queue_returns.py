"""Workloads that had to stop, as they wait again, and what their end leaves of disruption budgets.

A stop keeps a workload's age and what it has used of the time that it may run; everything that came with the admission
is gone. Its pods are missing to their budgets until it is admitted again: rounds that follow one another must not take
together what a budget forbids at once.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import structs

from shoal.engine.queues.decisions import Stopped
from shoal.engine.queues.facts import BudgetUse, WorkloadFacts
from shoal.engine.queues.state import Queues


def as_waiting(facts: WorkloadFacts, stopped: Stopped | None) -> WorkloadFacts:
    """`stopped` is None for a preempted workload."""
    has_run = facts.admitted and facts.evicted_s is not None
    ran_s = max(0.0, (facts.evicted_s or 0.0) - facts.admitted_s) if has_run else 0.0
    facts = structs.replace(
        facts,
        admission=None,
        admitted=False,
        reserved_s=0.0,
        admitted_s=0.0,
        checks=dict.fromkeys(facts.checks, "Pending"),
        unhealthy_nodes=(),
        ready_lost_s=None,
        ran_before_s=facts.ran_before_s + ran_s,
        saved_s=None,
    )
    if stopped is None:
        return facts
    return structs.replace(
        facts,
        active=facts.active and not stopped.deactivate,
        requeue_at_s=stopped.requeue_at_s,
        requeues=max(facts.requeues, stopped.requeues),
    )


class BudgetsLeft:
    """What budgets allow after those who ended."""

    def __init__(self, queues: Queues, found: Mapping[str, WorkloadFacts]) -> None:
        """`found`: the workloads with their budgets as they were before any workload ended."""
        self._queues = queues
        self._found = found
        self._missing: dict[str, int] = {}
        """Budget -> pods that ended and are not back."""
        self._gone: set[str] = set()

    def ended(self, workload: str) -> None:
        if workload not in self._gone and self._count(workload, 1):
            self._gone.add(workload)

    def is_back(self, workload: str) -> None:
        if workload in self._gone:
            self._gone.remove(workload)
            self._count(workload, -1)

    def _count(self, workload: str, sign: int) -> bool:
        """Whether it has any budgets; those who run are told what these allow now."""
        found = self._found.get(workload)
        if found is None or not found.budgets:
            return False
        for use in found.budgets:
            self._missing[use.name] = self._missing.get(use.name, 0) + sign * use.pods
        for held in self._queues.held.values():
            if held.facts.budgets and held.key in self._found:
                held.facts = structs.replace(held.facts, budgets=self._as_left(held.key))
        return True

    def _as_left(self, workload: str) -> tuple[BudgetUse, ...]:
        return tuple(
            structs.replace(use, allowed=use.allowed - self._missing.get(use.name, 0))
            for use in self._found[workload].budgets
        )
