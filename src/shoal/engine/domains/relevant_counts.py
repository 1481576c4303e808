"""Selects the counts that matter to a pod: of its own rules about others, and of the rules of others about it.

Looked up once for all pods of one ask and kin, and again when new rules appear.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from shoal.api.node_affinity import NodeRule
from shoal.engine.asks import Ask
from shoal.engine.cluster import Cluster
from shoal.engine.domain_counts.all_counts import DomainCounts, LabelKey
from shoal.engine.domain_counts.domain_count import DomainCount, Scope, Zones
from shoal.engine.domains.soft import Soft
from shoal.engine.pod_identity import PodIdentity, PodLabels
from shoal.engine.pod_rules import PodRules, Spread

Mask = NDArray[np.bool_]
Points = NDArray[np.int64]

_MOST_CONCERNS = 20_000
_ANYWHERE = NodeRule()


@dataclass(slots=True)
class DomainVerdict:
    """Over the rows from 0 on. None: all may be used; all are as good."""

    allowed: Mask | None
    extra: Points | None
    """To be added to keys: weighted points, above the ranks."""


@dataclass(slots=True)
class SpreadCount:
    """A constraint and its count."""

    rule: Spread
    domain_count: DomainCount
    itself: int
    """1 if the pod is one of those to be spread."""


@dataclass(slots=True)
class RelevantCounts:
    """The counts that matter to pods of one ask and kin."""

    affinity: list[DomainCount] = field(default_factory=list)
    may_begin: bool = False
    """It is itself what its affinity looks for."""
    anti: list[DomainCount] = field(default_factory=list)
    kept_away: list[DomainCount] = field(default_factory=list)
    hard: list[SpreadCount] = field(default_factory=list)
    soft: list[SpreadCount] = field(default_factory=list)
    preferences: list[tuple[DomainCount, int]] = field(default_factory=list)
    zones: list[Zones] = field(default_factory=list)
    domain_counts: list[DomainCount] = field(default_factory=list)
    stamp: tuple[int, int] = (-1, -1)
    verdict: DomainVerdict | None = None


class AllRelevantCounts:
    """All of one cluster, for a profile's weights."""

    def __init__(self, cluster: Cluster, soft: Soft, counts: DomainCounts) -> None:
        self._cluster = cluster
        self._soft = soft
        self._counts = counts
        self._known: dict[tuple[Ask | PodRules, LabelKey], RelevantCounts | None] = {}
        self._version = -1

    def of(self, ask: Ask, who: PodIdentity) -> RelevantCounts | None:
        """The counts that matter to the pod, looked up once for all its like."""
        counts = self._counts
        if not counts.active:
            return None
        label_key = counts.label_key(who.traits)
        key = (ask if ask.near.spread else ask.near), label_key
        if self._version == counts.version and key in self._known:
            return self._known[key]
        counts.free_capacity()
        if self._version != counts.version or len(self._known) >= _MOST_CONCERNS:
            self._known.clear()
            self._version = counts.version
        relevant = self._looked_up(ask, label_key)
        self._known[key] = relevant
        return relevant

    def _looked_up(self, ask: Ask, label_key: LabelKey) -> RelevantCounts | None:
        counts, soft, rules = self._counts, self._soft, ask.near
        relevant = RelevantCounts(kept_away=counts.keeping_away(label_key))
        all_meant = tuple(term.selected for term in rules.affinity)
        relevant.affinity = [
            counts.meaning(all_meant, Scope(term.key), self._placed_pods, only_staying=False) for term in rules.affinity
        ]
        relevant.may_begin = all(counts.is_selected(selected, label_key) for selected in all_meant)
        relevant.anti = [
            counts.meaning((term.selected,), Scope(term.key), self._placed_pods, only_staying=False)
            for term in rules.anti
        ]
        relevant.hard = self._spreads(ask, label_key, hard=True)
        if soft.spread:
            relevant.soft = self._spreads(ask, label_key, hard=False)
        if soft.affinity:
            relevant.preferences = self._preferences(rules, label_key)
        spreads = [*relevant.hard, *relevant.soft]
        relevant.domain_counts = [
            *relevant.affinity,
            *relevant.anti,
            *relevant.kept_away,
            *(spread.domain_count for spread in spreads),
            *(domain_count for domain_count, _ in relevant.preferences),
        ]
        relevant.zones = list(
            {id(domain_count.zones): domain_count.zones for domain_count in relevant.domain_counts}.values()
        )
        return relevant if relevant.domain_counts else None

    def _preferences(self, rules: PodRules, label_key: LabelKey) -> list[tuple[DomainCount, int]]:
        counts, soft = self._counts, self._soft
        preferences = []
        for weighted in rules.weighted:
            scope = Scope(weighted.term.key)
            meaning = counts.meaning((weighted.term.selected,), scope, self._placed_pods, only_staying=False)
            preferences.append((meaning, weighted.weight))
        if soft.others_too or rules.weighted:
            preferences += counts.weighted_terms(label_key)
            if soft.required_too:
                preferences += [(domain_count, soft.required_too) for domain_count in counts.attached(label_key)]
        return preferences

    def _spreads(self, ask: Ask, label_key: LabelKey, *, hard: bool) -> list[SpreadCount]:
        rules = [spread for spread in ask.near.spread if spread.hard == hard]
        keys = tuple(sorted({spread.key for spread in rules}))
        counts = []
        for rule in rules:
            scope = Scope(
                rule.key,
                tuple(key for key in keys if key != rule.key),
                ask.nodes if rule.honors_affinity else _ANYWHERE,
                ask.tolerations if rule.honors_taints else None,
            )
            domain_count = self._counts.meaning((rule.selected,), scope, self._placed_pods, only_staying=True)
            counts.append(SpreadCount(rule, domain_count, int(self._counts.is_selected(rule.selected, label_key))))
        return counts

    def _placed_pods(self) -> Iterator[tuple[int, PodLabels, bool]]:
        return placed_pods(self._cluster)


def placed_pods(cluster: Cluster) -> Iterator[tuple[int, PodLabels, bool]]:
    """All pods on nodes, as a census counts them."""
    for allocation in cluster.pods.values():
        yield allocation.row, allocation.who.traits, allocation.is_terminating


def counts_for(cluster: Cluster, ask: Ask) -> DomainCounts:
    """All counts made anew for a newcomer, as if they had never been kept."""
    counts = DomainCounts(cluster.namespaces)
    counts.read(ask.near)
    allocations = list(cluster.pods.values())
    for allocation in allocations:
        counts.read(allocation.ask.near)
    if counts.active:
        for allocation in allocations:
            counts.add_pod(allocation.row, allocation.ask, allocation.who.traits, allocation.is_terminating)
    return counts
