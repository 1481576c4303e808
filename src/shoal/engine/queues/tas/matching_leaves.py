"""Selects the leaves that match a pod, independent of capacity: taints, node selector, required node affinity, and the
score of preferred node affinity.

Only a topology that ends at the host name knows which node a pod gets; above that, nothing of this is asked. Answers
are kept per question, so that a thousand workloads of one template walk over the nodes once.
"""

from __future__ import annotations

import numpy as np

from shoal.api.taints import untolerated
from shoal.engine.queues.facts import PodSet
from shoal.engine.queues.tas.flavor_topology import FlavorTopology, MatchingLeaves
from shoal.engine.queues.topology_facts import QueueNode

MOST_KEPT = 512
"""Questions; beyond that all are asked anew."""


def suited(forest: FlavorTopology, pod_set: PodSet) -> MatchingLeaves:
    """Looked up, or worked out node by node."""
    asked = (pod_set.tolerations, tuple(sorted(pod_set.selector.items())), pod_set.affinity, pod_set.preferred)
    found = forest.suited.get(asked)
    if found is None:
        if len(forest.suited) >= MOST_KEPT:
            forest.suited.clear()
        found = forest.suited[asked] = _work_out(forest, pod_set)
    return found


def _work_out(forest: FlavorTopology, pod_set: PodSet) -> MatchingLeaves:
    answer = MatchingLeaves(forest.size)
    if not forest.by_host:
        return answer
    ok = np.ones(forest.size, np.bool_)
    for leaf, nodes in enumerate(forest.nodes):
        refusal = _refusal(forest, pod_set, nodes[0])
        if refusal is not None:
            ok[leaf] = False
            answer.refusals[refusal] = answer.refusals.get(refusal, 0) + 1
        elif pod_set.preferred:
            answer.liking[leaf] = sum(
                term.weight for term in pod_set.preferred if term.preference.matches(nodes[0].name, nodes[0].labels)
            )
    if answer.refusals:
        answer.ok = ok
    return answer


def _refusal(forest: FlavorTopology, pod_set: PodSet, node: QueueNode) -> str | None:
    taint = untolerated(node.taints, (*pod_set.tolerations, *forest.flavor.tolerations))
    if taint is not None:
        return f'taint "{taint}"'
    if not pod_set.selector.items() <= node.labels.items():
        return "nodeSelector"
    if pod_set.affinity is not None and not pod_set.affinity.matches(node.name, node.labels):
        return "affinity"
    return None
