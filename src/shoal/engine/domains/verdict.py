"""Where a pod may stand as far as other pods are concerned, and how well: kube-scheduler's rules over counted domains.

- *Required affinity*: every term's domain holds a pod that all terms mean. If no such pod stands in any domain and the
  newcomer is one itself, it may begin a domain anywhere that has the keys; else the first of a group could never start.
- *Anti-affinity*: no pod that a term means stands in the term's domain; and the other way round, no pod whose term
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
from shoal.engine.domains.relevant_counts import AllRelevantCounts, Mask, Points, RelevantCounts, SpreadCount, Verdict
from shoal.engine.domains.soft import NO_SOFT, Soft, points_of, spread_weight
from shoal.engine.domains.zoning import follow
from shoal.engine.pod_identity import PodIdentity


class Domains:
    """Verdicts about pods over one cluster, for a profile's weights."""

    def __init__(self, cluster: Cluster, soft: Soft = NO_SOFT, census: DomainCounts | None = None) -> None:
        self._cluster = cluster
        self._soft = soft
        self._concerns = AllRelevantCounts(cluster, soft, cluster.census if census is None else census)

    def verdict(self, ask: Ask, who: PodIdentity) -> Verdict | None:
        """None when no rule concerns the pod."""
        concern = self._concerns.of(ask, who)
        if concern is None:
            return None
        cluster = self._cluster
        for zones in concern.zones:
            follow(cluster, zones)
        stamp = cluster.static_changes.end, sum([tally.version for tally in concern.tallies])
        if concern.stamp != stamp:
            concern.stamp = stamp
            allowed, points = self._allowed(concern), self._points(concern)
            nothing = allowed is None and points is None
            concern.verdict = None if nothing else Verdict(allowed, None if points is None else points << RANK_BITS)
        return concern.verdict

    def concern(self, ask: Ask, who: PodIdentity) -> RelevantCounts | None:
        """The counts behind the verdict."""
        return self._concerns.of(ask, who)

    def _allowed(self, concern: RelevantCounts) -> Mask | None:
        rows = self._cluster.rows
        allowed: Mask | None = None
        for mask in masks(concern, rows):
            if allowed is None:
                allowed = mask
            else:
                allowed &= mask
        return allowed

    def _points(self, concern: RelevantCounts) -> Points | None:
        """The sum over both preferences, weighted."""
        rows = self._cluster.rows
        points: Points | None = None
        if concern.wishes:
            points = self._affinity_points(concern, rows)
        if concern.soft:
            spread = self._soft.spread * spread_points(concern.soft, rows)
            points = spread if points is None else points + spread
        return points

    def _affinity_points(self, concern: RelevantCounts, rows: int) -> Points | None:
        felt = [(tally, weight) for tally, weight in concern.wishes if tally.inside]
        if not felt or rows == 0:
            return None
        zones = felt[0][0].zones
        if all(tally.zones is zones for tally, _ in felt):
            # All by one key, as most are: worked out per domain, of which there are few.
            by_domain = sum((weight * tally.by_domain for tally, weight in felt), np.zeros(1, np.int64))
            there = zones.nodes > 0
            there[OUTSIDE] = len(self._cluster.row_of) > int(zones.nodes.sum())
            best = int(by_domain[there].max(initial=int(by_domain.min())))
            points = self._soft.affinity * points_of(np.maximum(best - by_domain, 0))
            return points.take(zones.codes[:rows])
        sums = np.zeros(rows, np.int64)
        for tally, weight in felt:
            sums += weight * tally.in_domain_of(rows)
        alive = self._cluster.alive[:rows]
        best = np.maximum.reduce(sums, where=alive, initial=int(sums.min()))
        return self._soft.affinity * points_of(np.maximum(best - sums, 0))


def masks(concern: RelevantCounts, rows: int) -> Iterator[Mask]:
    """What each rule that has something to say says of the first rows."""
    for count in concern.hard:
        counted = count.tally.by_domain <= most_in_domain(count)
        counted[OUTSIDE] = False
        yield counted.take(count.tally.zones.codes[:rows])
    if concern.affinity:
        yield affinity_mask(concern, rows)
    for tally in (*concern.anti, *concern.kept_away):
        if tally.inside:
            yield free_of(tally, rows)


def affinity_mask(concern: RelevantCounts, rows: int) -> Mask:
    begins = concern.may_begin and not any(tally.inside for tally in concern.affinity)
    mask: Mask = np.ones(rows, np.bool_)
    for tally in concern.affinity:
        holds = np.ones(len(tally.by_domain), np.bool_) if begins else tally.by_domain > 0
        holds[OUTSIDE] = False
        mask &= holds.take(tally.zones.codes[:rows])
    return mask


def free_of(tally: DomainCount, rows: int) -> Mask:
    free = tally.by_domain == 0
    mask: Mask = free.take(tally.zones.codes[:rows])
    return mask


def most_in_domain(count: SpreadCount) -> int:
    """The most that a domain may hold before the newcomer comes."""
    return count.rule.max_skew - count.itself + emptiest(count)


def emptiest(count: SpreadCount) -> int:
    """What the emptiest domain holds; 0 when there are fewer domains than the constraint wants."""
    there = count.tally.zones.nodes > 0
    domains = int(np.count_nonzero(there))
    if domains < max(count.rule.min_domains, 1):
        return 0
    return int(count.tally.by_domain[there].min())


def spread_points(counts: Sequence[SpreadCount], rows: int) -> Points:
    """By how far the node's domains are above the emptiest; a node that lacks a key has none."""
    if len(counts) == 1:
        by_domain = points_of(np.maximum(counts[0].tally.by_domain - emptiest(counts[0]), 0))
        by_domain[OUTSIDE] = 0
        return by_domain.take(counts[0].tally.zones.codes[:rows])
    weights = [spread_weight(int(np.count_nonzero(count.tally.zones.nodes))) for count in counts]
    distance = np.zeros(rows, np.int64)
    outside = np.zeros(rows, np.bool_)
    for count, weight in zip(counts, weights, strict=True):
        distance += (count.tally.in_domain_of(rows) - emptiest(count)) * weight
        outside |= count.tally.zones.codes[:rows] == OUTSIDE
    points = points_of(np.maximum(distance // min(weights), 0))
    points[outside] = 0
    return points
