"""What a queue gives room to at once: a group up to its minimum, and each pod that it has beyond.

Made anew for every round from the pods that wait and those that are in the facts, so nothing has to be kept right.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from shoal.controllers.volcano.amounts import add
from shoal.controllers.volcano.group_room import minimum_first
from shoal.controllers.volcano.shares import FLAVOR, Shares, door_of
from shoal.controllers.volcano.sights import GroupPod, PodGroup
from shoal.engine.queues.facts import Admission, BudgetUse, PodSet, PodSetAdmission, WorkloadFacts

_NEVER = (BudgetUse("never-ended", 1, 0),)
_BEYOND = "+"
_BEHIND_S = 1e9
"""Longer than anybody has waited."""
_LITTLE_S = 1e-4
Amounts = dict[str, int]


class Unit(msgspec.Struct, frozen=True):
    key: str
    group: str
    queue: str
    amounts: Amounts
    waiting: tuple[str, ...] = ()
    """Pods that are kept from the facts."""
    there: tuple[str, ...] = ()
    """Pods that are in them, on nodes or on their way."""
    priority: int = 0
    created_s: float = 0.0

    def facts(self, shares: Shares, evicted_s: float | None, *, yields: bool) -> WorkloadFacts:
        usage = shares.charged(self.amounts)
        admission = None
        if self.there:
            flavors = dict.fromkeys(shares.resources, FLAVOR)
            admission = Admission(self.queue, (PodSetAdmission("main", 1, flavors, usage),))
        return WorkloadFacts(
            key=self.key,
            queue=door_of(self.queue),
            priority=self.priority,
            created_s=self.created_s,
            uid=self.key,
            pod_sets=(PodSet("main", 1, requests=usage),),
            admission=admission,
            admitted=bool(self.there),
            admitted_s=self.created_s,
            reserved_s=self.created_s,
            evicted_s=evicted_s if self.there else None,
            evicted_why="Preempted" if self.there and evicted_s is not None else "",
            budgets=() if yields else _NEVER,
        )


class Turn(msgspec.Struct, frozen=True):
    """Where a group stands among others."""

    queue: str
    priority: int = 0
    recalls: int = 0
    """How often it had room and found no nodes: those that had it less often come first."""


def units_of(
    name: str, group: PodGroup | None, waiting: Sequence[GroupPod], there: Mapping[str, Amounts], turn: Turn
) -> Iterator[Unit]:
    """Of one group. `there`: its pods in the facts, and what they ask for; `group` is None once it is gone."""
    least = max(group.spec.min_member if group is not None else 0, 1)
    queue, priority, behind_s = turn.queue, turn.priority, turn.recalls * _BEHIND_S
    created_s = group.metadata.created_s if group is not None else 0.0
    if there:
        inside = sorted(there)
        first, others = tuple(inside[:least]), inside[least:]
        yield Unit(name, name, queue, _sum(there[pod] for pod in first), (), first, priority, created_s)
        for at, pod in enumerate(others, 1):
            # As if it came a little later, and so it yields before the gang does.
            later_s = created_s + at * _LITTLE_S
            yield Unit(_beyond(name, pod), name, queue, there[pod], (), (pod,), priority, later_s)
    if group is None:
        return
    ordered = minimum_first(group, waiting)
    if not there:
        if len(ordered) < least:
            return
        least_pods = ordered[:least]
        since_s = created_s + behind_s
        keys = tuple("/".join(pod.metadata.key) for pod in least_pods)
        yield Unit(name, name, queue, _sum(pod.requests() for pod in least_pods), keys, (), priority, since_s)
        # What it has beyond comes once that is in.
        return
    for one in ordered:
        key = "/".join(one.metadata.key)
        yield Unit(
            _beyond(name, key), name, queue, one.requests(), (key,), (), priority, one.metadata.created_s + behind_s
        )


def by_right(shares: Shares, units: Iterable[Unit]) -> tuple[list[Unit], list[Unit]]:
    """Of those that are not there: who waits for what its queue owns, and who waits for more; in their order."""
    taken: dict[str, dict[str, int]] = {}
    waiting: list[Unit] = []
    for unit in units:
        if unit.there:
            add(taken.setdefault(unit.queue, {}), unit.amounts)
        else:
            waiting.append(unit)
    split: tuple[list[Unit], list[Unit]] = ([], [])
    for unit in sorted(waiting, key=lambda one: (-one.priority, one.created_s, one.key)):
        has = taken.setdefault(unit.queue, {})
        add(has, unit.amounts)
        split[not shares.owns(unit.queue, has, unit.amounts)].append(unit)
    return split


def _beyond(group: str, pod: str) -> str:
    return f"{group}{_BEYOND}{pod.partition('/')[2]}"


def _sum(amounts: Iterator[Amounts]) -> Amounts:
    total: Amounts = {}
    for one in amounts:
        add(total, one)
    return total
