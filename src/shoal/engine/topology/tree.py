"""Stores which nodes belong together at each level of a topology.

A domain is named by the values of the labels from the outermost level down to its own, so rack 1 of one zone is not
rack 1 of another. A node that lacks the label of a level has no domain there nor below, and can host nothing that is
required to stay together at that level. Host names identify single nodes: a node without that label is its own host.

Codes of domains are numbers for look-ups only and change when nodes do; the choice among equal domains is made by the
rank of their first node. The tree is built again when labels or nodes change, which is rare, and never when pods come
and go. Rejected: objects with children, which cannot be summed over five thousand nodes at once.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from shoal.engine.cluster import Cluster

HOSTNAME = "kubernetes.io/hostname"
NO_DOMAIN = -1

Rows = NDArray[np.int64]


class Tree:
    """One topology over the nodes of one cluster. Levels are numbered from 0, the outermost."""

    __slots__ = ("_cluster", "_cursor", "_levels", "_starts", "codes", "first_rank", "levels")

    def __init__(self, cluster: Cluster, levels: tuple[str, ...]) -> None:
        self._cluster = cluster
        self.levels = levels
        self._cursor = -1
        self.codes: list[Rows] = []
        """Per level, the domain of every row."""
        self.first_rank: list[Rows] = []
        """Per level, the lowest rank in every domain."""
        self._levels: list[Rows] = []
        """Per level, all rows that have a domain, domain by domain."""
        self._starts: list[Rows] = []

    def level(self, key: str) -> int:
        """The number of a level, or -1."""
        return self.levels.index(key) if key in self.levels else -1

    def refresh(self) -> None:
        """Follow labels and nodes."""
        end = self._cluster.static_changes.end
        if self._cursor == end and (not self.codes or len(self.codes[0]) == self._cluster.capacity):
            return
        self._cursor = end
        self.codes, self.first_rank, self._levels, self._starts = [], [], [], []
        codes = np.where(self._cluster.alive, 0, NO_DOMAIN).astype(np.int64)
        for key in self.levels:
            codes = self._inner(codes, key)

    def rows_of(self, level: int, domain: int) -> Rows:
        """The rows of a domain, lowest first."""
        starts = self._starts[level]
        return self._levels[level][starts[domain] : starts[domain + 1]]

    def sums(self, level: int, amounts: Rows, rows: Rows | None = None) -> Rows:
        """Amounts per row added up per domain; only those of some rows, if given."""
        codes = self.codes[level]
        if rows is not None:
            codes, amounts = codes.take(rows), amounts.take(rows)
        # The first bin takes the rows without a domain. Sums stay far below 2^53, where doubles are whole numbers.
        added = np.bincount(codes + 1, weights=amounts, minlength=len(self.first_rank[level]) + 1)
        return added[1:].astype(np.int64)

    def name(self, level: int, domain: int) -> tuple[str, ...]:
        """The values of the labels that make the domain."""
        row = int(self.rows_of(level, domain)[0])
        labels = self._cluster.labels
        return tuple(labels.get(row, key) or self._cluster.names[row] for key in self.levels[: level + 1])

    def _inner(self, outer: Rows, key: str) -> Rows:
        """The domains one level further in."""
        cluster = self._cluster
        column = cluster.labels.column(key)
        values = column.codes.astype(np.int64)
        if key == HOSTNAME:
            values = np.where(values == 0, len(column.values) + np.arange(len(values)), values)
        there = ((outer != NO_DOMAIN) & (values != 0)).nonzero()[0]
        width = int(values.max(initial=0)) + 1
        domains, numbered = np.unique(outer.take(there) * width + values.take(there), return_inverse=True)
        codes = np.full(len(outer), NO_DOMAIN, np.int64)
        codes[there] = numbered
        order = np.argsort(numbered, kind="stable")
        starts = np.searchsorted(numbered.take(order), np.arange(len(domains) + 1))
        rows = there.take(order)
        ranks = cluster.rank.take(rows)
        self.codes.append(codes)
        self.first_rank.append(np.minimum.reduceat(ranks, starts[:-1]) if len(domains) else ranks)
        self._levels.append(rows)
        self._starts.append(starts)
        return codes
