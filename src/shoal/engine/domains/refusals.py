"""Counts which rule about pods refused a node, as kube-scheduler does: the first that fails.

Its order is spread before affinity; of the constraints their own order, and of affinity what the pod needs, then what
it avoids, then what avoids it.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from shoal.engine.asks import Ask
from shoal.engine.cluster import Cluster
from shoal.engine.domain_counts.domain_count import OUTSIDE
from shoal.engine.domains.relevant_counts import Mask, RelevantCounts
from shoal.engine.domains.verdict import Domains, affinity_mask, free_of, most_in_domain
from shoal.engine.domains.zoning import follow
from shoal.engine.labels import ABSENT
from shoal.engine.pod_identity import PodIdentity
from shoal.engine.reasons import Code


def rule_refusals(cluster: Cluster, ask: Ask, who: PodIdentity, rows: NDArray[np.int64]) -> list[tuple[Code, Mask]]:
    """Of these rows, which each rule turns away that no rule before it did."""
    relevant = Domains(cluster).relevant(ask, who)
    if relevant is None:
        return []
    for zones in relevant.zones:
        follow(cluster, zones)
    left = np.ones(len(rows), np.bool_)
    found = []
    for code, passes in _rules(cluster, relevant, rows):
        refused = left & ~passes
        left &= passes
        found.append((code, refused))
    return found


def _rules(cluster: Cluster, relevant: RelevantCounts, rows: NDArray[np.int64]) -> Iterator[tuple[Code, Mask]]:
    for count in relevant.hard:
        # By the label itself: a node that lacks the key of another constraint is outside the count, not without label.
        codes = cluster.labels.column(count.rule.key).codes.take(rows)
        yield Code.SPREAD_LABEL, codes != ABSENT
        holds = count.domain_count.by_domain <= most_in_domain(count)
        holds[OUTSIDE] = True
        yield Code.SPREAD, holds.take(codes)
    if relevant.affinity:
        yield Code.POD_AFFINITY, affinity_mask(relevant, cluster.rows).take(rows)
    for tallies, code in ((relevant.anti, Code.POD_ANTI_AFFINITY), (relevant.kept_away, Code.KEPT_AWAY)):
        for domain_count in tallies:
            yield code, free_of(domain_count, cluster.rows).take(rows)
