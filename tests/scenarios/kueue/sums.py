"""The arithmetic of the quota tree: what is available where, and who uses how much of it."""

from __future__ import annotations

from shoal.engine.queues.facts import Usage
from shoal.engine.queues.quota_tree import Cohort, CohortNode
from shoal.engine.queues.shares import share_of
from shoal.engine.queues.state import Queues

from .answers import Answer
from .case import Case
from .facts import amount, queues_of
from .workloads import hold_all


def decide(case: Case) -> Answer:
    queues = queues_of(case)
    hold_all(case, queues)
    extra: Usage = {}
    for each in case.extra_request:
        fr = (each.flavor, each.resource)
        extra[fr] = extra.get(fr, 0) + amount(each.resource, each.quantity)
    nodes: dict[str, CohortNode] = {**queues.cohorts, **queues.cluster_queues}
    known = _flavor_resources(queues)
    return {
        "available": {name: {fr: node.available(fr) for fr in known} for name, node in nodes.items()},
        "potentiallyAvailable": {name: {fr: node.potential(fr) for fr in known} for name, node in nodes.items()},
        "shares": [_share(node, extra) for node in (*queues.cluster_queues.values(), *queues.cohorts.values())],
    }


def _flavor_resources(queues: Queues) -> set[tuple[str, str]]:
    nodes: list[CohortNode] = [*queues.cluster_queues.values(), *queues.cohorts.values()]
    return {fr for node in nodes for fr in (*node.subtree, *node.usage)}


def _share(node: CohortNode, extra: Usage) -> Answer:
    share = share_of(node, extra)
    return {
        "name": node.name,
        "kind": "Cohort" if isinstance(node, Cohort) else "ClusterQueue",
        "weightedShare": share.weighted,
        "dominantResource": share.dominant,
        "borrowing": share.borrows,
    }
