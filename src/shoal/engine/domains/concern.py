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
from shoal.engine.domains.census import Census, Kin
from shoal.engine.domains.rules import PodRules, Spread
from shoal.engine.domains.soft import Soft
from shoal.engine.domains.tally import Scope, Tally, Zones
from shoal.engine.who import Traits, Who

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
    tally: Tally
    itself: int
    """1 if the pod is one of those to be spread."""


@dataclass(slots=True)
class Concern:
    """The counts that matter to pods of one ask and kin."""

    affinity: list[Tally] = field(default_factory=list)
    may_begin: bool = False
    """It is itself what its affinity looks for."""
    anti: list[Tally] = field(default_factory=list)
    kept_away: list[Tally] = field(default_factory=list)
    hard: list[SpreadCount] = field(default_factory=list)
    soft: list[SpreadCount] = field(default_factory=list)
    wishes: list[tuple[Tally, int]] = field(default_factory=list)
    zones: list[Zones] = field(default_factory=list)
    tallies: list[Tally] = field(default_factory=list)
    stamp: tuple[int, int] = (-1, -1)
    verdict: Verdict | None = None


class Concerns:
    """All of one cluster, for a profile's weights."""

    def __init__(self, cluster: Cluster, soft: Soft, census: Census) -> None:
        self._cluster = cluster
        self._soft = soft
        self._census = census
        self._known: dict[tuple[Ask | PodRules, Kin], Concern | None] = {}
        self._version = -1

    def of(self, ask: Ask, who: Who) -> Concern | None:
        """The counts that matter to the pod, looked up once for all its like."""
        census = self._census
        if not census.active:
            return None
        kin = census.kin(who.traits)
        key = (ask if ask.near.spread else ask.near), kin
        if self._version == census.version and key in self._known:
            return self._known[key]
        census.make_room()
        if self._version != census.version or len(self._known) >= _MOST_CONCERNS:
            self._known.clear()
            self._version = census.version
        concern = self._looked_up(ask, kin)
        self._known[key] = concern
        return concern

    def _looked_up(self, ask: Ask, kin: Kin) -> Concern | None:
        census, soft, rules = self._census, self._soft, ask.near
        concern = Concern(kept_away=census.keeping_away(kin))
        all_meant = tuple(term.meant for term in rules.affinity)
        concern.affinity = [
            census.meaning(all_meant, Scope(term.key), self._standing, only_staying=False) for term in rules.affinity
        ]
        concern.may_begin = all(census.is_meant(meant, kin) for meant in all_meant)
        concern.anti = [
            census.meaning((term.meant,), Scope(term.key), self._standing, only_staying=False) for term in rules.anti
        ]
        concern.hard = self._spreads(ask, kin, hard=True)
        if soft.spread:
            concern.soft = self._spreads(ask, kin, hard=False)
        if soft.affinity:
            concern.wishes = self._wishes(rules, kin)
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

    def _wishes(self, rules: PodRules, kin: Kin) -> list[tuple[Tally, int]]:
        census, soft = self._census, self._soft
        wishes = []
        for wished in rules.wished:
            scope = Scope(wished.term.key)
            meaning = census.meaning((wished.term.meant,), scope, self._standing, only_staying=False)
            wishes.append((meaning, wished.weight))
        if soft.others_too or rules.wished:
            wishes += census.wishing(kin)
            if soft.required_too:
                wishes += [(tally, soft.required_too) for tally in census.attached(kin)]
        return wishes

    def _spreads(self, ask: Ask, kin: Kin, *, hard: bool) -> list[SpreadCount]:
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
            tally = self._census.meaning((rule.meant,), scope, self._standing, only_staying=True)
            counts.append(SpreadCount(rule, tally, int(self._census.is_meant(rule.meant, kin))))
        return counts

    def _standing(self) -> Iterator[tuple[int, Traits, bool]]:
        return standing(self._cluster)


def standing(cluster: Cluster) -> Iterator[tuple[int, Traits, bool]]:
    """All pods on nodes, as a census counts them."""
    for holding in cluster.pods.values():
        yield holding.row, holding.who.traits, holding.leaving


def census_of(cluster: Cluster, ask: Ask) -> Census:
    """All counts made anew for a newcomer, as if they had never been kept."""
    census = Census(cluster.namespaces)
    census.read(ask.near)
    holdings = list(cluster.pods.values())
    for holding in holdings:
        census.read(holding.ask.near)
    if census.active:
        for holding in holdings:
            census.comes(holding.row, holding.ask, holding.who.traits, holding.leaving)
    return census
