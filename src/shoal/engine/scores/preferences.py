"""Scores preferences that read only the node itself: preferred node affinity, and taints of effect PreferNoSchedule."""

from __future__ import annotations

import numpy as np

from shoal.api.taints import count_untolerated
from shoal.engine.asks import Ask
from shoal.engine.cluster import Cluster
from shoal.engine.filters.node_affinity import term_holds
from shoal.engine.scores.rule import BEST, Points, Rows

_PER_SOFT_TAINT = 25


class PreferredAffinity:
    """The share of the preferred weight that the node satisfies, of 100.

    kube-scheduler scales by the best candidate instead; on a fixed scale the order of nodes is the same.
    """

    def points(self, cluster: Cluster, ask: Ask, rows: Rows) -> Points | None:
        if not ask.preferred:
            return None
        points = np.zeros(len(rows), np.int64)
        for term in ask.preferred:
            points += term.weight * term_holds(cluster, term.preference, rows)
        reachable = sum(abs(term.weight) for term in ask.preferred)
        return points * BEST // max(reachable, 1)


class SoftTaints:
    """25 points less for each PreferNoSchedule taint that the pod does not tolerate; four are as bad as any number.

    A clean node has 0 points, not 100, so that keys made before the first soft taint stay right.
    """

    def points(self, cluster: Cluster, ask: Ask, rows: Rows) -> Points | None:
        counts = [count_untolerated(taints, ask.tolerations) for taints in cluster.taints.sets]
        if not any(counts):
            return None
        per_set = np.array([max(-_PER_SOFT_TAINT * count, -BEST) for count in counts], np.int64)
        return per_set.take(cluster.taints.code.take(rows))
