"""Decides where a pod may run under the rules about pods, and how well: kube-scheduler's rules over counted domains.

- *Required affinity*: every term's domain holds a pod that all terms mean. If no such pod is in any domain and the
  newcomer is one itself, it may begin a domain anywhere that has the keys; else the first of a group could never start.
- *Anti-affinity*: no pod that a term selects is in the term's domain; and the other way round, no pod whose term
  means the newcomer. A node without the key is in no domain and cannot offend.
- *Spread*: pods meant in the domain, with the newcomer if it is one, exceed the emptiest domain by `max_skew` at most.
  Domains are those of nodes with all the keys that the pod's hard constraints name, and that its own affinity and
  tolerations admit, as far as the constraint honors them. Pods that are being terminated do not count here; for
  affinity they do until they are gone.

Pods of one ask and kin share a `RelevantCounts`: which counts matter to them. Its verdict is kept until one of them
changes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from shoal.engine.asks import Ask
from shoal.engine.cluster import RANK_BITS, Cluster
from shoal.engine.domain_counts.all_counts import DomainCounts
from shoal.engine.domain_counts.domain_count import OUTSIDE, DomainCount
from shoal.engine.domains.relevant_counts import (
    AllRelevantCounts,
    DomainVerdict,
    Mask,
    Points,
    RelevantCounts,
    SpreadCount,
)
from shoal.engine.domains.soft import NO_SOFT, Soft, points_of, spread_weight
from shoal.engine.domains.zoning import follow
from shoal.engine.pod_identity import PodIdentity


class Domains:
    """Verdicts about pods over one cluster, for a profile's weights."""

    def __init__(self, cluster: Cluster, soft: Soft = NO_SOFT, counts: DomainCounts | None = None) -> None:
        self._cluster = cluster
        self._soft = soft
        self._concerns = AllRelevantCounts(cluster, soft, cluster.counts if counts is None else counts)

    def verdict(self, ask: Ask, who: PodIdentity) -> DomainVerdict | None:
        """None when no rule concerns the pod."""
        relevant = self._concerns.of(ask, who)
        if relevant is None:
            return None
        cluster = self._cluster
        for zones in relevant.zones:
            follow(cluster, zones)
        stamp = cluster.static_changes.end, sum([domain_count.version for domain_count in relevant.domain_counts])
        if relevant.stamp != stamp:
            relevant.stamp = stamp
            allowed, points = self._allowed(relevant), self._points(relevant)
            nothing = allowed is None and points is None
            relevant.verdict = (
                None if nothing else DomainVerdict(allowed, None if points is None else points << RANK_BITS)
            )
        return relevant.verdict

    def relevant(self, ask: Ask, who: PodIdentity) -> RelevantCounts | None:
        """The counts behind the verdict."""
        return self._concerns.of(ask, who)

    def _allowed(self, relevant: RelevantCounts) -> Mask | None:
        rows = self._cluster.rows
        allowed: Mask | None = None
        for mask in masks(relevant, rows):
            if allowed is None:
                allowed = mask
            else:
                allowed &= mask
        return allowed

    def _points(self, relevant: RelevantCounts) -> Points | None:
        """The sum over both preferences, weighted."""
        rows = self._cluster.rows
        points: Points | None = None
        if relevant.preferences:
            points = self._affinity_points(relevant, rows)
        if relevant.soft:
            spread = self._soft.spread * spread_points(relevant.soft, rows)
            points = spread if points is None else points + spread
        return points

    def _affinity_points(self, relevant: RelevantCounts, rows: int) -> Points | None:
        felt = [(domain_count, weight) for domain_count, weight in relevant.preferences if domain_count.inside]
        if not felt or rows == 0:
            return None
        zones = felt[0][0].zones
        if all(domain_count.zones is zones for domain_count, _ in felt):
            # All by one key, as most are: worked out per domain, of which there are few.
            by_domain = sum((weight * domain_count.by_domain for domain_count, weight in felt), np.zeros(1, np.int64))
            there = zones.nodes > 0
            there[OUTSIDE] = len(self._cluster.row_of) > int(zones.nodes.sum())
            best = int(by_domain[there].max(initial=int(by_domain.min())))
            points = self._soft.affinity * points_of(np.maximum(best - by_domain, 0))
            return points.take(zones.codes[:rows])
        sums = np.zeros(rows, np.int64)
        for domain_count, weight in felt:
            sums += weight * domain_count.in_domain_of(rows)
        alive = self._cluster.alive[:rows]
        best = np.maximum.reduce(sums, where=alive, initial=int(sums.min()))
        return self._soft.affinity * points_of(np.maximum(best - sums, 0))


def masks(relevant: RelevantCounts, rows: int) -> Iterator[Mask]:
    """What each rule that has something to say says of the first rows."""
    for count in relevant.hard:
        counted = count.domain_count.by_domain <= most_in_domain(count)
        counted[OUTSIDE] = False
        yield counted.take(count.domain_count.zones.codes[:rows])
    if relevant.affinity:
        yield affinity_mask(relevant, rows)
    for domain_count in (*relevant.anti, *relevant.kept_away):
        if domain_count.inside:
            yield free_of(domain_count, rows)


def affinity_mask(relevant: RelevantCounts, rows: int) -> Mask:
    begins = relevant.may_begin and not any(domain_count.inside for domain_count in relevant.affinity)
    mask: Mask = np.ones(rows, np.bool_)
    for domain_count in relevant.affinity:
        holds = np.ones(len(domain_count.by_domain), np.bool_) if begins else domain_count.by_domain > 0
        holds[OUTSIDE] = False
        mask &= holds.take(domain_count.zones.codes[:rows])
    return mask


def free_of(domain_count: DomainCount, rows: int) -> Mask:
    free = domain_count.by_domain == 0
    mask: Mask = free.take(domain_count.zones.codes[:rows])
    return mask


def most_in_domain(count: SpreadCount) -> int:
    """The most that a domain may hold before the newcomer comes."""
    return count.rule.max_skew - count.itself + emptiest(count)


def emptiest(count: SpreadCount) -> int:
    """What the emptiest domain holds; 0 when there are fewer domains than the constraint wants."""
    there = count.domain_count.zones.nodes > 0
    domains = int(np.count_nonzero(there))
    if domains < max(count.rule.min_domains, 1):
        return 0
    return int(count.domain_count.by_domain[there].min())


def spread_points(counts: Sequence[SpreadCount], rows: int) -> Points:
    """By how far the node's domains are above the emptiest; a node that lacks a key has none."""
    if len(counts) == 1:
        by_domain = points_of(np.maximum(counts[0].domain_count.by_domain - emptiest(counts[0]), 0))
        by_domain[OUTSIDE] = 0
        return by_domain.take(counts[0].domain_count.zones.codes[:rows])
    weights = [spread_weight(int(np.count_nonzero(count.domain_count.zones.nodes))) for count in counts]
    distance = np.zeros(rows, np.int64)
    outside = np.zeros(rows, np.bool_)
    for count, weight in zip(counts, weights, strict=True):
        distance += (count.domain_count.in_domain_of(rows) - emptiest(count)) * weight
        outside |= count.domain_count.zones.codes[:rows] == OUTSIDE
    points = points_of(np.maximum(distance // min(weights), 0))
    points[outside] = 0
    return points
