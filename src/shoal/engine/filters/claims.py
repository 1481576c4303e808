"""Filters nodes by device claims: whether each claim is usable at all, reachable from the node, and satisfiable there.
Only pods with claims pay.

Three rules, because they call for three different things: a missing claim has to be made, a claim that is allocated
elsewhere ties the pod to that place, and devices that are taken may become free.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from shoal.engine.asks import Ask
from shoal.engine.cluster import Cluster
from shoal.engine.filters.rule import Measure, Rows, Verdicts
from shoal.engine.reasons import Code
from shoal.engine.unmet_claims import devices_near, lack
from shoal.engine.window import Window


class ClaimsUsable:
    code = Code.CLAIM_UNUSABLE

    def compiled(self, cluster: Cluster, ask: Ask) -> Callable[[Window], Verdicts | None] | None:
        if not ask.claims:
            return None
        return lambda window: np.zeros(len(window), np.bool_) if cluster.dra.blocked(ask.claims) else None

    def detail(self, cluster: Cluster, ask: Ask, _row: int) -> str:
        return cluster.dra.blocked(ask.claims)


class ClaimsReached:
    code = Code.CLAIM_ELSEWHERE

    def compiled(self, cluster: Cluster, ask: Ask) -> Callable[[Window], Verdicts | None] | None:
        if not any(ref.shared for ref in ask.claims):
            return None
        dra = cluster.dra
        return lambda window: None if dra.blocked(ask.claims) else dra.reached(ask.claims, window.rows)

    def detail(self, _cluster: Cluster, ask: Ask, _row: int) -> str:
        return " or ".join(ref.shared for ref in ask.claims if ref.shared)


class ClaimsServed:
    code = Code.CLAIMS

    def compiled(self, cluster: Cluster, ask: Ask) -> Callable[[Window], Verdicts | None] | None:
        if not ask.claims:
            return None
        dra = cluster.dra
        return lambda window: None if dra.blocked(ask.claims) else dra.served(ask.claims, window.rows)

    def detail(self, cluster: Cluster, ask: Ask, row: int) -> str:
        return lack(cluster.dra, ask.claims, row)

    def measure(self, cluster: Cluster, ask: Ask, rows: Rows) -> Measure | None:
        asked, free, total = devices_near(cluster.dra, ask.claims, rows)
        return Measure("", asked, free, total) if asked else None
