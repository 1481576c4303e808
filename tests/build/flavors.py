"""Asking for flavors: one queue of a world, some pods, and an oracle that knows its answers by heart."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from build.queues import Amount, Limited, amounts, cluster_queue, hold_usage, queues, quotas
from shoal.engine.queues.clusterqueue import ClusterQueue
from shoal.engine.queues.facts import FlavorResource, Fungibility, PodSet, PreemptionRules, WorkloadFacts
from shoal.engine.queues.flavors.assigner import assign
from shoal.engine.queues.flavors.assignment import Assignment
from shoal.engine.queues.flavors.modes import Mode, PreemptionPossibility
from shoal.engine.queues.settings import Settings
from shoal.engine.queues.state import Queues
from shoal.engine.queues.workloads import FlavorSearchProgress, totals_of

PREEMPT, RECLAIM, NO_CANDIDATES = (
    PreemptionPossibility(mode, 0) for mode in (Mode.PREEMPT, Mode.RECLAIM, Mode.NO_CANDIDATES)
)


@dataclass
class Oracle:
    """Says of each flavor what preemption would give, and remembers what it was asked."""

    answers: Mapping[str, PreemptionPossibility] = field(default_factory=dict)
    """By flavor; in others preemption helps."""
    asked: list[tuple[str, str, int]] = field(default_factory=list)

    def __call__(
        self, queue: ClusterQueue, facts: WorkloadFacts, fr: FlavorResource, amount: int
    ) -> PreemptionPossibility:
        self.asked.append((*fr, amount))
        return self.answers.get(fr[0], PREEMPT)


def shared(
    *flavors: tuple[int | Limited, int, int],
    fungibility: Fungibility | None = None,
    rules: PreemptionRules | None = None,
    settings: Settings | None = None,
) -> Queues:
    """A queue and a neighbour: per flavor f0, f1, ... (quota of the queue, that of the neighbour, use of the queue)."""
    world = queues(
        cluster_queue(
            "q",
            *(quotas(f"f{index}", cpu=own) for index, (own, _, _) in enumerate(flavors)),
            cohort="all",
            fungibility=fungibility,
            rules=rules,
        ),
        cluster_queue("n", *(quotas(f"f{index}", cpu=own) for index, (_, own, _) in enumerate(flavors)), cohort="all"),
        settings=settings,
    )
    for index, (_, _, used) in enumerate(flavors):
        if used:
            hold_usage(world, "q", f"f{index}", cpu=used)
    return world


def pods(count: int = 1, **resources: Amount) -> PodSet:
    return PodSet("main", count, requests=amounts(resources))


def choose(
    world: Queues,
    queue: str,
    *pod_sets: PodSet,
    oracle: Oracle | None = None,
    tried: FlavorSearchProgress | None = None,
    barred: frozenset[str] = frozenset(),
    reclaimable: Mapping[str, int] | None = None,
) -> Assignment:
    """Flavors for a workload of these pod sets."""
    facts = WorkloadFacts("default/wanted", pod_sets=pod_sets, reclaimable=dict(reclaimable or {}))
    place = world.cluster_queues[queue]
    return assign(world, place, facts, totals_of(facts), oracle or Oracle(), tried, barred)


def flavors_of(assignment: Assignment) -> dict[str, dict[str, str]]:
    """Pod set -> resource -> flavor."""
    return {
        each.total.pod_set.name: {resource: choice.flavor for resource, choice in each.flavors.items()}
        for each in assignment.pod_sets
    }


def only_flavor(assignment: Assignment) -> str | None:
    """The flavor of a workload that has one for everything."""
    names = {choice.flavor for each in assignment.pod_sets for choice in each.flavors.values()}
    assert len(names) <= 1, names
    return names.pop() if names else None
