"""Asking for room: who holds what, who wants what, and who would have to yield.

Every question also checks that the search left the state as it found it, down to the order of the holders.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from msgspec.structs import replace

from build.queues import DEFAULT, Amount, admitted, amounts, workload
from shoal.engine.queues.facts import FlavorResource, PodSet, PreemptionRules, Usage, WorkloadFacts
from shoal.engine.queues.state import Queues
from shoal.engine.queues.victims.search import PreemptionRequest, Victim, find_victims

NEVER = PreemptionRules()
LOWER_HERE = PreemptionRules(within="LowerPriority")
RECLAIM_ANY = PreemptionRules(reclaim="Any")
RECLAIM_LOWER = PreemptionRules(reclaim="LowerPriority")
LOWER_HERE_RECLAIM_ANY = PreemptionRules(within="LowerPriority", reclaim="Any")
HERE = "InClusterQueue"
RECLAIMED = "InCohortReclamation"
WHILE_BORROWING = "InCohortReclaimWhileBorrowing"
FAIR = "InCohortFairSharing"


def holder(
    name: str,
    queue: str,
    resources: Mapping[str, Amount],
    flavor: str = DEFAULT,
    *,
    priority: int = 0,
    at: float = 0.0,
    created: float = 0.0,
    evicted: bool = False,
) -> WorkloadFacts:
    """A workload that holds quota since `at`, and perhaps was told to stop."""
    facts = workload(name, queue, PodSet(requests=amounts(resources)), priority=priority, created=created)
    return replace(admitted(facts, queue, flavor, at), evicted_s=1.0 if evicted else None)


def runs(
    name: str,
    queue: str,
    flavor: str = DEFAULT,
    *,
    priority: int = 0,
    at: float = 0.0,
    created: float = 0.0,
    evicted: bool = False,
    **resources: Amount,
) -> WorkloadFacts:
    """The same, with what it holds in words."""
    return holder(name, queue, resources, flavor, priority=priority, at=at, created=created, evicted=evicted)


def state_of(world: Queues) -> object:
    """All that a search could leave changed."""
    nodes = [*world.cluster_queues.values(), *world.cohorts.values()]
    return [(node.name, dict(node.usage)) for node in nodes], [
        (queue.name, list(queue.held.values())) for queue in world.cluster_queues.values()
    ]


def want_of(
    world: Queues,
    queue: str,
    usage: Usage,
    *,
    priority: int = 0,
    needs: frozenset[FlavorResource] | None = None,
    stamp_s: float = 0.0,
    fits: Callable[[], bool] | None = None,
    local_usage: Callable[[str], float] | None = None,
) -> PreemptionRequest:
    facts = workload("incoming", queue, priority=priority)
    short = frozenset(usage) if needs is None else needs
    return PreemptionRequest(world.cluster_queues[queue], facts, usage, short, stamp_s, fits, local_usage)


def search(world: Queues, want: PreemptionRequest) -> list[Victim]:
    before = state_of(world)
    found = find_victims(world, want)
    assert state_of(world) == before, "a search leaves the state as it was"
    return found


def yielding(
    world: Queues,
    queue: str,
    *,
    priority: int = 0,
    stamp_s: float = 0.0,
    flavor: str = DEFAULT,
    fits: Callable[[], bool] | None = None,
    **resources: Amount,
) -> dict[str, str]:
    """Who yields to a workload that is short of all it asks for, and why."""
    usage = {(flavor, name): amount for name, amount in amounts(resources).items()}
    return named(search(world, want_of(world, queue, usage, priority=priority, stamp_s=stamp_s, fits=fits)))


def named(victims: list[Victim]) -> dict[str, str]:
    return {victim.held.key.partition("/")[2]: str(victim.reason) for victim in victims}
