"""Splits groups into units that get quota at once: a group up to its minimum, and each pod beyond the minimum.

The units are computed anew in every round from the held pods and the pods in the facts, so there is no state to keep
consistent.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from shoal.engine.queues.disciplines.volcano.amounts import add
from shoal.engine.queues.disciplines.volcano.group_usage import required_pods_first
from shoal.engine.queues.disciplines.volcano.objects import GroupPod, QueuedPodGroup
from shoal.engine.queues.disciplines.volcano.queue_quotas import FLAVOR, QueueQuotas, local_queue_key
from shoal.engine.queues.facts import BudgetUse, PodSet, PodSetAdmission, QuotaAssignment, WorkloadFacts

_NEVER_PREEMPTED = (BudgetUse("never-preempted", 1, 0),)
_SURPLUS = "+"
_REQUEUE_PENALTY_S = 1e9
"""Longer than any unit has waited."""
_TIE_BREAK_S = 1e-4
Amounts = dict[str, int]


class AdmissionUnit(msgspec.Struct, frozen=True):
    key: str
    group: str
    queue: str
    amounts: Amounts
    waiting: tuple[str, ...] = ()
    """Held pods."""
    active: tuple[str, ...] = ()
    """Pods in the facts, with or without a node."""
    priority: int = 0
    created_s: float = 0.0

    def facts(self, quotas: QueueQuotas, evicted_s: float | None, *, is_preemptible: bool) -> WorkloadFacts:
        usage = quotas.usage_of(self.amounts)
        admission = None
        if self.active:
            flavors = dict.fromkeys(quotas.resources, FLAVOR)
            admission = QuotaAssignment(self.queue, (PodSetAdmission("main", 1, flavors, usage),))
        return WorkloadFacts(
            key=self.key,
            queue=local_queue_key(self.queue),
            priority=self.priority,
            created_s=self.created_s,
            uid=self.key,
            pod_sets=(PodSet("main", 1, requests=usage),),
            admission=admission,
            admitted=bool(self.active),
            admitted_s=self.created_s,
            reserved_s=self.created_s,
            evicted_s=evicted_s if self.active else None,
            evicted_why="Preempted" if self.active and evicted_s is not None else "",
            budgets=() if is_preemptible else _NEVER_PREEMPTED,
        )


class UnitOrder(msgspec.Struct, frozen=True):
    """What orders the units of a group among others."""

    queue: str
    priority: int = 0
    requeues: int = 0
    """How often the group had quota and found no nodes: groups with fewer requeues come first."""


def units_of_group(
    name: str,
    group: QueuedPodGroup | None,
    waiting: Sequence[GroupPod],
    active: Mapping[str, Amounts],
    order: UnitOrder,
) -> Iterator[AdmissionUnit]:
    """The units of one group. `active`: the requests of its pods in the facts; `group` is None once it is deleted."""
    minimum = max(group.spec.min_member if group is not None else 0, 1)
    queue, priority, penalty_s = order.queue, order.priority, order.requeues * _REQUEUE_PENALTY_S
    created_s = group.metadata.created_s if group is not None else 0.0
    if active:
        inside = sorted(active)
        core, others = tuple(inside[:minimum]), inside[minimum:]
        yield AdmissionUnit(name, name, queue, _sum(active[pod] for pod in core), (), core, priority, created_s)
        for at, pod in enumerate(others, 1):
            # A later creation time, so that the pod is preempted before the gang.
            later_s = created_s + at * _TIE_BREAK_S
            yield AdmissionUnit(_surplus_key(name, pod), name, queue, active[pod], (), (pod,), priority, later_s)
    if group is None:
        return
    ordered = required_pods_first(group, waiting)
    if not active:
        if len(ordered) < minimum:
            return
        required = ordered[:minimum]
        since_s = created_s + penalty_s
        keys = tuple("/".join(pod.metadata.key) for pod in required)
        yield AdmissionUnit(name, name, queue, _sum(pod.requests() for pod in required), keys, (), priority, since_s)
        # The pods beyond the minimum follow once the minimum is admitted.
        return
    for one in ordered:
        key = "/".join(one.metadata.key)
        yield AdmissionUnit(
            _surplus_key(name, key),
            name,
            queue,
            one.requests(),
            (key,),
            (),
            priority,
            one.metadata.created_s + penalty_s,
        )


def split_by_own_quota(
    quotas: QueueQuotas, units: Iterable[AdmissionUnit]
) -> tuple[list[AdmissionUnit], list[AdmissionUnit]]:
    """Splits the waiting units, in order, into those within their queue's own quota and those that borrow."""
    used_by_queue: dict[str, dict[str, int]] = {}
    waiting: list[AdmissionUnit] = []
    for unit in units:
        if unit.active:
            add(used_by_queue.setdefault(unit.queue, {}), unit.amounts)
        else:
            waiting.append(unit)
    split: tuple[list[AdmissionUnit], list[AdmissionUnit]] = ([], [])
    for unit in sorted(waiting, key=lambda one: (-one.priority, one.created_s, one.key)):
        used = used_by_queue.setdefault(unit.queue, {})
        add(used, unit.amounts)
        split[not quotas.is_within_own(unit.queue, used, unit.amounts)].append(unit)
    return split


def _surplus_key(group: str, pod: str) -> str:
    return f"{group}{_SURPLUS}{pod.partition('/')[2]}"


def _sum(amounts: Iterator[Amounts]) -> Amounts:
    total: Amounts = {}
    for one in amounts:
        add(total, one)
    return total
