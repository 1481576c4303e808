"""Decides which workloads may be preempted under a policy, and orders them.

Workloads that are being evicted cost nothing more; borrowers come before the own queue; then lower
priority, then the shortest run. Between workloads of one queue that admits by usage, the local queue
that used most comes before priority.

Workloads of one standing are sorted only when their turn comes: most searches end among the first few.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from shoal.engine.queues.clusterqueue import AdmittedWorkload, ClusterQueue
from shoal.engine.queues.facts import FlavorResource, Reclaim, Within
from shoal.engine.queues.quota_tree import Cohort, CohortNode
from shoal.engine.queues.reasons import Yield
from shoal.engine.queues.victims.preemption_cost import PreemptionCost
from shoal.engine.queues.victims.preemption_request import PreemptionRequest

ADVANTAGE, PRIORITY, OWN = range(3)
"""Groups, in the order in which they are asked."""


class Source(NamedTuple):
    """Workloads of one queue that may be asked to yield, and on what ground."""

    holders: list[AdmittedWorkload]
    group: int
    reason: Yield
    common: Cohort | None = None
    """The lowest cohort above both sides; None within one queue."""
    in_quota_only: bool = False
    """They yield only to who ends up within the own quota."""


Asked = tuple[AdmittedWorkload, Source]


def willing(queue: ClusterQueue, policy: Within | Reclaim, want: PreemptionRequest) -> list[AdmittedWorkload]:
    """Who in a queue uses what is short and yields under the policy."""
    found = _by_policy(queue, policy, want)
    if want.fresh:
        found = [held for held in found if held.key not in want.fresh]
    preemption_cost = want.preemption_cost
    return (
        found if preemption_cost is None else [held for held in found if not preemption_cost.spares(held, want.queue)]
    )


def _by_policy(queue: ClusterQueue, policy: Within | Reclaim, want: PreemptionRequest) -> list[AdmittedWorkload]:
    needs, priority, stamp_s = want.needs, want.facts.priority, want.stamp_s
    holders = queue.held.values()
    match policy:
        case "Any":
            return [held for held in holders if not needs.isdisjoint(held.usage)]
        case "LowerPriority":
            return [held for held in holders if held.facts.priority < priority and not needs.isdisjoint(held.usage)]
        case "LowerOrNewerEqualPriority":
            return [
                held
                for held in holders
                if (held.facts.priority < priority or (held.facts.priority == priority and stamp_s < held.stamp_s))
                and not needs.isdisjoint(held.usage)
            ]
        case _:
            return []


def own_source(want: PreemptionRequest) -> list[Source]:
    holders = willing(want.queue, want.queue.facts.preemption.within, want)
    return [Source(holders, OWN, Yield.IN_CLUSTER_QUEUE)] if holders else []


def exceeds(node: CohortNode, needs: Iterable[FlavorResource]) -> bool:
    """Whether a node uses more than its quota of anything that is short; otherwise it does not borrow."""
    usage, subtree = node.usage, node.subtree
    for fr in needs:  # noqa: SIM110 - asked of every queue of a tree; a generator costs twice as much
        if usage.get(fr, 0) > subtree.get(fr, 0):
            return True
    return False


def in_order(sources: Iterable[Source], want: PreemptionRequest) -> Iterator[Asked]:
    by_rank: dict[tuple[bool, int, int], list[Asked]] = {}
    for source in sources:
        group = source.group
        for held in source.holders:
            rank = not held.evicted, group, held.facts.priority
            asked = by_rank.get(rank)
            if asked is None:
                by_rank[rank] = [(held, source)]
            else:
                asked.append((held, source))
    ordered = _sorted(by_rank, want.preemption_cost)
    return ordered if want.local_usage is None else iter(_by_usage(list(ordered), want.local_usage))


def _sorted(
    by_rank: dict[tuple[bool, int, int], list[Asked]], preemption_cost: PreemptionCost | None
) -> Iterator[Asked]:
    for rank in sorted(by_rank):
        if preemption_cost is None:
            yield from sorted(by_rank[rank], key=_latest)
        else:
            yield from sorted(by_rank[rank], key=lambda asked: (preemption_cost.loss(asked[0]), *_latest(asked)))


def _latest(asked: Asked) -> tuple[float, str, str]:
    facts = asked[0].facts
    return -facts.reserved_s, facts.uid, facts.key


def _by_usage(ordered: list[Asked], local_usage: Callable[[str], float]) -> list[Asked]:
    """Workloads of one queue change places among themselves: what a local queue used says nothing across queues."""
    places: dict[tuple[ClusterQueue, bool], list[int]] = {}
    for index, (held, _) in enumerate(ordered):
        if held.queue.facts.by_usage:
            places.setdefault((held.queue, held.evicted), []).append(index)
    for indices in places.values():
        # Sorting is stable: equal usage leaves the order as it was.
        again = sorted((ordered[index] for index in indices), key=lambda asked: -local_usage(asked[0].facts.queue))
        for index, asked in zip(indices, again, strict=True):
            ordered[index] = asked
    return ordered
