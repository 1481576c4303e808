"""Stores which nodes are being provisioned and removed, by their NodeClaims, and tells it in a line for each kind."""

from __future__ import annotations

from collections import Counter

from shoal.autoscale.node_claims.claim import NodeClaim
from shoal.views.dashboard.reading import shown
from shoal.views.starting_nodes import is_starting, starting_lines

_MOST_LINES = 4


class NodeChanges:
    def __init__(self) -> None:
        self.changes = 0
        self._claims: dict[str, NodeClaim] = {}
        """Those that start or end."""

    def put(self, claim: NodeClaim) -> None:
        if is_starting(claim) or claim.is_deleting:
            if self._claims.get(claim.name) != claim:
                self._claims[claim.name] = claim
                self.changes += 1
        else:
            self.drop(claim.name)

    def drop(self, name: str) -> None:
        if self._claims.pop(name, None) is not None:
            self.changes += 1

    @property
    def starting(self) -> int:
        return sum(map(is_starting, self._claims.values()))

    @property
    def leaving(self) -> int:
        return sum(claim.is_deleting for claim in self._claims.values())

    def lines(self, now_s: float) -> list[str]:
        """The first ones."""
        leaving = Counter(claim.offering[0] for claim in self._claims.values() if claim.is_deleting)
        found = starting_lines(self._claims.values(), now_s)
        found += [f"removing {count:,} x {kind}" for kind, count in sorted(leaving.items())]
        return [shown(line) for line in found[:_MOST_LINES]]
