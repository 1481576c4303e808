"""Counts the pods that a rule selects in each domain of one topology key, kept up to date pod by pod.

Counted twice, per node and per domain. The count per domain is the answer to every rule; only the count per node is
still valid when a node's labels change and its pods move to another domain at once. Rejected: counting when asked, as
kube-scheduler does, which walks all pods for each pod to be placed.
"""

from __future__ import annotations

import msgspec
import numpy as np
from numpy.typing import NDArray

from shoal.api.node_affinity import NodeRule
from shoal.api.taints import Toleration

OUTSIDE = 0
"""The domain of a node that is in none: it lacks the key, or the scope leaves it out."""


class Scope(msgspec.Struct, frozen=True, cache_hash=True):
    """Which nodes are divided into domains, and by what."""

    key: str
    also: tuple[str, ...] = ()
    """Keys that a node must have as well to be counted."""
    nodes: NodeRule = NodeRule()
    """What a node must fulfil to be counted."""
    tolerations: tuple[Toleration, ...] | None = None
    """Where given, nodes with taints beyond these are not counted."""


class Zones:
    """The domain of every row, as last looked at (see `zoning`)."""

    __slots__ = ("codes", "cursor", "domain_counts", "epoch", "nodes", "scope", "version")

    def __init__(self, scope: Scope) -> None:
        self.scope = scope
        self.codes: NDArray[np.intp] = np.zeros(0, np.intp)
        self.nodes: NDArray[np.int64] = np.zeros(1, np.int64)
        """Nodes in each domain."""
        self.cursor = -1
        self.epoch = 0
        """Of the label's codes."""
        self.version = 0
        self.domain_counts: list[DomainCount] = []

    def divide(self, codes: NDArray[np.intp], domains: int) -> None:
        """Take over the domain of every row; counts follow."""
        self.codes = codes
        self.nodes = np.bincount(codes, minlength=domains)
        self.nodes[OUTSIDE] = 0
        self.version += 1
        for domain_count in self.domain_counts:
            domain_count.recount()

    def code(self, row: int) -> int:
        """The domain of a row; a row not looked at yet is outside until it is."""
        return self.codes.item(row) if row < len(self.codes) else OUTSIDE


class DomainCount:
    """Counts per domain. Amounts are pods, or for preferences the sum of their weights."""

    __slots__ = ("by_domain", "by_row", "inside", "version", "zones")

    def __init__(self, zones: Zones) -> None:
        self.zones = zones
        self.by_row: dict[int, int] = {}
        """Rows with anything on them."""
        self.by_domain: NDArray[np.int64] = np.zeros(len(zones.nodes), np.int64)
        self.inside = 0
        """The sum over all domains."""
        self.version = 0
        zones.domain_counts.append(self)

    def add(self, row: int, amount: int) -> None:
        left = self.by_row.get(row, 0) + amount
        if left:
            self.by_row[row] = left
        else:
            self.by_row.pop(row, None)
        code = self.zones.code(row)
        if code != OUTSIDE:
            self.by_domain[code] += amount
            self.inside += amount
            self.version += 1

    def recount(self) -> None:
        """Build the counts per domain from those per row."""
        self.by_domain = np.zeros(len(self.zones.nodes), np.int64)
        codes = self.zones.codes
        rows = np.fromiter(self.by_row.keys(), np.intp, len(self.by_row))
        amounts = np.fromiter(self.by_row.values(), np.int64, len(self.by_row))
        seen = rows < len(codes)
        np.add.at(self.by_domain, codes.take(rows[seen]), amounts[seen])
        self.by_domain[OUTSIDE] = 0
        self.inside = int(self.by_domain.sum())
        self.version += 1

    def in_domain_of(self, rows: int) -> NDArray[np.int64]:
        """The count in the domain of each of the first rows."""
        counts: NDArray[np.int64] = self.by_domain.take(self.zones.codes[:rows])
        return counts
