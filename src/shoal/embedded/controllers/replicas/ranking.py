"""Orders surplus pods for deletion, the least useful first.

The order is that of Kubernetes: unassigned before assigned; pending before running; not ready before ready; lower
`pod-deletion-cost` first; more pods on the node first; ready for a shorter time first; more restarts first; younger
first. Ages are compared by their logarithm, so that the uid decides among pods of about the same age.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from functools import cmp_to_key

from shoal.client.owned_pods.pod_view import PodView
from shoal.units.numbers import whole_of

_PHASES = {"Pending": 0, "": 0, "Unknown": 1, "Running": 2}


def first_to_go(pods: Iterable[PodView], node_counts: Mapping[str, int], now_s: float) -> list[PodView]:
    """`node_counts`: the number of pods per node, of this owner and its siblings."""

    def compare(one: PodView, other: PodView) -> int:
        by_state = _state(one, node_counts), _state(other, node_counts)
        if by_state[0] != by_state[1]:
            return -1 if by_state[0] < by_state[1] else 1
        since = one.ready_since_s(), other.ready_since_s()
        if since[0] is not None and since[1] is not None and since[0] != since[1]:
            return _younger_first(now_s - since[0], now_s - since[1], one, other)
        if one.most_restarts() != other.most_restarts():
            return other.most_restarts() - one.most_restarts()
        created = one.metadata.created_s(), other.metadata.created_s()
        if created[0] != created[1]:
            return _younger_first(now_s - created[0], now_s - created[1], one, other)
        return _by_uid(one, other)

    return sorted(pods, key=cmp_to_key(compare))


def deletion_cost(pod: PodView) -> int:
    written = pod.metadata.annotations.deletion_cost
    cost = whole_of(written.removeprefix("-")) or 0
    if cost >= 2**31:
        return 0
    return -cost if written.startswith("-") else cost


def _state(pod: PodView, node_counts: Mapping[str, int]) -> tuple[bool, int, bool, int, int]:
    node = pod.spec.node_name
    return (bool(node), _PHASES.get(pod.status.phase, 0), pod.is_ready(), deletion_cost(pod), -node_counts.get(node, 0))


def _younger_first(age_s: float, other_age_s: float, one: PodView, other: PodView) -> int:
    return _magnitude(age_s) - _magnitude(other_age_s) or _by_uid(one, other)


def _magnitude(age_s: float) -> int:
    return int(math.log2(age_s * 1e9)) if age_s > 0 else -1


def _by_uid(one: PodView, other: PodView) -> int:
    return -1 if one.metadata.uid < other.metadata.uid else 1
