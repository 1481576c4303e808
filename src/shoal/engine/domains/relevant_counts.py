"""Which counts matter to a pod: its own rules about others, and the rules of others about it.

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
class Verdict:
    """Over the rows from 0 on. None: all may be used; all are as good."""

    allowed: Mask | None
    extra: Points | None
    """To be added to keys: weighted points, above the ranks."""


@dataclass(slots=True)
class SpreadCount:
    """A constraint and its count."""

    rule: Spread
    tally: DomainCount
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
    wishes: list[tuple[DomainCount, int]] = field(default_factory=list)
    zones: list[Zones] = field(default_factory=list)
    tallies: list[DomainCount] = field(default_factory=list)
    stamp: tuple[int, int] = (-1, -1)
    verdict: Verdict | None = None


class AllRelevantCounts:
    """All of one cluster, for a profile's weights."""

    def __init__(self, cluster: Cluster, soft: Soft, census: DomainCounts) -> None:
        self._cluster = cluster
        self._soft = soft
        self._census = census
        self._known: dict[tuple[Ask | PodRules, LabelKey], RelevantCounts | None] = {}
        self._version = -1

    def of(self, ask: Ask, who: PodIdentity) -> RelevantCounts | None:
        """The counts that matter to the pod, looked up once for all its like."""
        census = self._census
        if not census.active:
            return None
        label_key = census.label_key(who.traits)
        key = (ask if ask.near.spread else ask.near), label_key
        if self._version == census.version and key in self._known:
            return self._known[key]
        census.make_room()
        if self._version != census.version or len(self._known) >= _MOST_CONCERNS:
            self._known.clear()
            self._version = census.version
        concern = self._looked_up(ask, label_key)
        self._known[key] = concern
        return concern

    def _looked_up(self, ask: Ask, label_key: LabelKey) -> RelevantCounts | None:
        census, soft, rules = self._census, self._soft, ask.near
        concern = RelevantCounts(kept_away=census.keeping_away(label_key))
        all_meant = tuple(term.selected for term in rules.affinity)
        concern.affinity = [
            census.meaning(all_meant, Scope(term.key), self._standing, only_staying=False) for term in rules.affinity
        ]
        concern.may_begin = all(census.is_selected(selected, label_key) for selected in all_meant)
        concern.anti = [
            census.meaning((term.selected,), Scope(term.key), self._standing, only_staying=False) for term in rules.anti
        ]
        concern.hard = self._spreads(ask, label_key, hard=True)
        if soft.spread:
            concern.soft = self._spreads(ask, label_key, hard=False)
        if soft.affinity:
            concern.wishes = self._wishes(rules, label_key)
        counts = [*concern.hard, *concern.soft]
        concern.tallies = [
            *concern.affinity,
            *concern.anti,
            *concern.kept_away,
            *(count.tally for count in counts),
            *(tally for tally, _ in concern.wishes),
        ]
        concern.zones = list({id(tally.zones): tally.zones for tally in concern.tallies}.values())
        return concern if concern.tallies else None

    def _wishes(self, rules: PodRules, label_key: LabelKey) -> list[tuple[DomainCount, int]]:
        census, soft = self._census, self._soft
        wishes = []
        for wished in rules.wished:
            scope = Scope(wished.term.key)
            meaning = census.meaning((wished.term.selected,), scope, self._standing, only_staying=False)
            wishes.append((meaning, wished.weight))
        if soft.others_too or rules.wished:
            wishes += census.weighted_terms(label_key)
            if soft.required_too:
                wishes += [(tally, soft.required_too) for tally in census.attached(label_key)]
        return wishes

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
            tally = self._census.meaning((rule.selected,), scope, self._standing, only_staying=True)
            counts.append(SpreadCount(rule, tally, int(self._census.is_selected(rule.selected, label_key))))
        return counts

    def _standing(self) -> Iterator[tuple[int, PodLabels, bool]]:
        return standing(self._cluster)


def standing(cluster: Cluster) -> Iterator[tuple[int, PodLabels, bool]]:
    """All pods on nodes, as a census counts them."""
    for holding in cluster.pods.values():
        yield holding.row, holding.who.traits, holding.leaving


def census_of(cluster: Cluster, ask: Ask) -> DomainCounts:
    """All counts made anew for a newcomer, as if they had never been kept."""
    census = DomainCounts(cluster.namespaces)
    census.read(ask.near)
    holdings = list(cluster.pods.values())
    for holding in holdings:
        census.read(holding.ask.near)
    if census.active:
        for holding in holdings:
            census.comes(holding.row, holding.ask, holding.who.traits, holding.leaving)
    return census
