"""Decides without any cache: evaluates every rule over every node and takes the best. Nothing is remembered.

This is what the incremental keys are held against, for their answers in tests and for their cost in benchmarks.
"""

from __future__ import annotations

import numpy as np

from shoal.engine.charges import Charge
from shoal.engine.cluster import RANK_BITS, Cluster
from shoal.engine.domains.relevant_counts import counts_for
from shoal.engine.domains.verdict import Domains
from shoal.engine.facts import fits
from shoal.engine.filters import NODE_FILTERS
from shoal.engine.pod_identity import NO_IDENTITY, PodIdentity
from shoal.engine.profile import Profile
from shoal.engine.scores.rule import NodeRule
from shoal.engine.suitability import suits
from shoal.engine.window import Window

_INFEASIBLE = -(1 << 62)


class Rescan:
    """One profile's decisions over one cluster. Rules are compiled once per ask, as they are for shapes."""

    def __init__(self, cluster: Cluster, profile: Profile) -> None:
        self._cluster = cluster
        self._profile = profile
        self._rules: dict[Charge, list[tuple[NodeRule, int]]] = {}

    def best(self, charge: Charge, who: PodIdentity = NO_IDENTITY) -> int:
        """The row that a shape would choose, or -1."""
        cluster = self._cluster
        ask = charge.ask
        rows = cluster.all_rows()
        if len(rows) == 0:
            return -1
        verdicts = fits(cluster.free[: cluster.rows], charge.need) & suits(cluster, ask, rows)
        keys = -cluster.rank[: cluster.rows]
        for preference, weight in self._profile.static_scores:
            points = preference.points(cluster, ask, rows)
            if points is not None:
                keys += (points * weight) << RANK_BITS
        self._profile.forget()
        window = Window(cluster, rows)
        for node_filter in NODE_FILTERS:
            rule = node_filter.compiled(cluster, ask)
            if rule is not None:
                passing = rule(window)
                if passing is not None:
                    verdicts &= passing
        for score, weight in self._compiled(charge):
            keys += (score(window) * weight) << RANK_BITS
        if cluster.counts.active:
            pod_verdict = Domains(cluster, self._profile.soft, counts_for(cluster, ask)).verdict(ask, who)
            if pod_verdict is not None:
                verdicts = verdicts if pod_verdict.allowed is None else verdicts & pod_verdict.allowed
                keys = keys if pod_verdict.extra is None else keys + pod_verdict.extra
        keys = np.where(verdicts, keys, _INFEASIBLE)
        best = int(keys.argmax())
        return best if verdicts[best] else -1

    def _compiled(self, charge: Charge) -> list[tuple[NodeRule, int]]:
        rules = self._rules.get(charge)
        if rules is None:
            compiled = ((s.compiled(self._cluster, charge.ask), weight) for s, weight in self._profile.node_scores)
            rules = self._rules[charge] = [(rule, weight) for rule, weight in compiled if rule is not None]
        return rules
