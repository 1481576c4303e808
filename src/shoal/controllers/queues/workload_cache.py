"""Holds the state of admission between rounds: the discipline with its facts, and the Workloads as read last.

The event handlers change it; the admission cycles read it. The parts of admission share no other state.
"""

from __future__ import annotations

from msgspec import structs

from shoal.controllers.queues.workload_status.status_writer import StatusWriter
from shoal.engine.queues.clusterqueue import AdmittedWorkload
from shoal.engine.queues.facts import QuotaAssignment, WorkloadFacts
from shoal.engine.queues.kueue import Kueue
from shoal.engine.queues.settings import Settings
from shoal.engine.queues.state import Queues
from shoal.store.watched.queue_changes import WorkloadView


class WorkloadCache:
    def __init__(self, settings: Settings, writer: StatusWriter) -> None:
        self.writer = writer
        self.kueue = Kueue(Queues(settings))
        self.views: dict[str, WorkloadView] = {}
        """Each Workload as it was read last."""
        self.unreported: dict[str, None] = {}
        """Pending Workloads whose condition has not been brought up to date since something changed."""
        self.is_upkeep_due = True
        self.is_cycle_due = True
        """Facts of queues changed since the last cycle; the discipline notices that only in a cycle."""

    @property
    def queues(self) -> Queues:
        return self.kueue.queues

    def reset(self, settings: Settings) -> None:
        """Begin with empty queues under another configuration."""
        budgets = self.queues.cost_budgets
        self.kueue = Kueue(Queues(settings))
        self.queues.put_cost_budgets(budgets)

    def held(self, workload: str) -> AdmittedWorkload | None:
        return self.kueue.queues.held.get(workload)

    def is_outdated(self, workload: str) -> bool:
        """Whether the watch caches are older than the last decision about the Workload."""
        return self.writer.is_outdated(workload)


def is_quota_unchanged(held: AdmittedWorkload, facts: WorkloadFacts) -> bool:
    """Whether the Workload as it is read now holds the same quota, and no other field that matters to others changed.

    Most updates of a Workload change only conditions; these need no new cycle.
    """
    admission, known = facts.admission, held.facts
    if admission is None or held.evicted != (facts.evicted_s is not None):
        return False
    if facts.unhealthy_nodes != known.unhealthy_nodes:
        return False
    if facts.checks != known.checks and any(each.delayed for each in held.admission.pod_sets):
        return False
    same = (facts.priority, facts.queue, facts.pod_sets, facts.reclaimable)
    if same != (known.priority, known.queue, known.pod_sets, known.reclaimable):
        return False
    return _with_sorted_domains(admission) == _with_sorted_domains(held.admission)


def _with_sorted_domains(admission: QuotaAssignment) -> QuotaAssignment:
    """The same admission, independent of the order in which its domains were written."""
    pod_sets = tuple(
        each
        if each.topology is None
        else structs.replace(
            each, topology=structs.replace(each.topology, domains=tuple(sorted(each.topology.domains)))
        )
        for each in admission.pod_sets
    )
    return structs.replace(admission, pod_sets=pod_sets)
