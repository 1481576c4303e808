"""Keys per ask: for every node one integer (score, then stable rank), and the best key of every block of nodes.

All pods that ask the same share one shape. A shape remembers how far it has read the change log; before it answers it
recomputes the keys of the rows changed since, folds the touched blocks, and the best node is the best of the blocks. So
the cost of an answer is the number of changes since the last one, not the number of nodes.

Ties are broken by rank, inside the key itself: no second pass, and no draw that would scatter equal choices.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from shoal.engine.charges import Charge
from shoal.engine.cluster import LAST_RANK, RANK_BITS, Cluster
from shoal.engine.facts import fits
from shoal.engine.filters import NODE_FILTERS, STATIC_FILTERS
from shoal.engine.filters.rule import Verdicts
from shoal.engine.growth import BLOCK, BLOCK_BITS
from shoal.engine.profile import Profile
from shoal.engine.scores.rule import NodeRule
from shoal.engine.window import Window

_INFEASIBLE = -(1 << 62)
_FEASIBLE_ABOVE = -(1 << 61)

# The same and the shifts as arrays: numpy converts a Python number anew at every call, which on a hundred rows costs
# as much as the operation itself.
_INFEASIBLE_KEY = np.array(_INFEASIBLE)
_FEASIBLE_KEY_ABOVE = np.array(_FEASIBLE_ABOVE)
_RANK_SHIFT = np.array(RANK_BITS)
_BLOCK_SHIFT = np.array(BLOCK_BITS)

_REPEATS_WORTH_SORTING = 512


class Shape:
    """One ask's keys over all nodes."""

    __slots__ = (
        "_base",
        "_blocks",
        "_by_block",
        "_cluster",
        "_cursor",
        "_filters",
        "_keys",
        "_profile",
        "_scores",
        "_static_cursor",
        "ask",
        "charge",
        "last_used",
    )

    def __init__(self, cluster: Cluster, profile: Profile, charge: Charge) -> None:
        ask = charge.ask
        self.ask = ask
        self.charge = charge
        self.last_used = 0
        self._cluster = cluster
        self._profile = profile
        self._filters: list[Callable[[Window], Verdicts]] = [
            rule for rule in (filter_.compiled(cluster, ask) for filter_ in NODE_FILTERS) if rule is not None
        ]
        self._scores: list[tuple[NodeRule, int]] = [
            (rule, weight)
            for rule, weight in ((score.compiled(cluster, ask), weight) for score, weight in profile.node_scores)
            if rule is not None
        ]
        self._base: NDArray[np.int64]
        self._keys: NDArray[np.int64]
        self._by_block: NDArray[np.int64]
        self._blocks: NDArray[np.int64]
        self._cursor = -1
        self._static_cursor = -1
        self._forget()

    def best(self) -> int:
        """The row with the highest key, or -1 when the ask fits nowhere."""
        self.refresh()
        blocks = self._blocks
        if len(blocks) == 0:
            return -1
        block = int(blocks.argmax())
        if blocks.item(block) < _FEASIBLE_ABOVE:
            return -1
        start = block << BLOCK_BITS
        return start + int(self._keys[start : start + BLOCK].argmax())

    def best_of(self, rows: NDArray[np.int64]) -> int:
        """The row with the highest key among these, or -1."""
        self.refresh()
        if len(rows) == 0:
            return -1
        keys = self._keys.take(rows)
        best = int(keys.argmax())
        return int(rows[best]) if keys.item(best) > _FEASIBLE_ABOVE else -1

    def feasible(self) -> NDArray[np.int64]:
        """All rows that fit."""
        self.refresh()
        return (self._keys > _FEASIBLE_ABOVE).nonzero()[0]

    def invalidate(self) -> None:
        """The rules' tables changed: every key is to be made anew."""
        self._cursor = -1

    def keys(self) -> NDArray[np.int64]:
        """The key of every row, for tests that compare with a full recomputation."""
        self.refresh()
        return self._keys.copy()

    def refresh(self) -> None:
        """Bring keys and blocks up to date with the cluster."""
        cluster = self._cluster
        if len(self._keys) != cluster.capacity:
            self._forget()
        if self._static_cursor != cluster.static_changes.end:
            self._refresh_static()
        changes = cluster.changes
        end = changes.end
        if self._cursor == end:
            return
        rows = changes.since(self._cursor)
        self._cursor = end
        if rows is None or 2 * len(rows) > cluster.rows:
            self._recompute(cluster.all_rows())
            self._blocks = np.maximum.reduce(self._by_block, axis=1)
            return
        if len(rows) > _REPEATS_WORTH_SORTING:
            rows = np.unique(rows)
        rows = self._recompute(rows)
        if len(rows):
            blocks = rows >> _BLOCK_SHIFT
            self._blocks[blocks] = np.maximum.reduce(self._by_block.take(blocks, 0), axis=1)

    def _forget(self) -> None:
        capacity = self._cluster.capacity
        self._base = np.full(capacity, _INFEASIBLE, np.int64)
        self._keys = np.full(capacity, _INFEASIBLE, np.int64)
        self._by_block = self._keys.reshape(-1, BLOCK)
        self._blocks = np.full(capacity >> BLOCK_BITS, _INFEASIBLE, np.int64)
        self._cursor = -1
        self._static_cursor = -1

    def _refresh_static(self) -> None:
        cluster = self._cluster
        rows = cluster.static_changes.since(self._static_cursor)
        self._static_cursor = cluster.static_changes.end
        if rows is None:
            rows = cluster.all_rows()
            self._cursor = -1
        base = LAST_RANK - cluster.rank.take(rows)
        for score, weight in self._profile.static_scores:
            points = score.points(cluster, self.ask, rows)
            if points is not None:
                base += (points * weight) << RANK_BITS
        passes = cluster.alive.take(rows)
        for rule in STATIC_FILTERS:
            verdicts = rule.passes(cluster, self.ask, rows)
            if verdicts is not None:
                passes &= verdicts
        self._base[rows] = np.where(passes, base, _INFEASIBLE)

    def _recompute(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Set the keys of rows; returns those whose key may have changed."""
        fit = fits(self._cluster.free.take(rows, 0), self.charge.need)
        # In a full fleet most changed nodes had no room before and have none now.
        concerned = (fit | (self._keys.take(rows) > _FEASIBLE_KEY_ABOVE)).nonzero()[0]
        if len(concerned) < len(rows):
            rows = rows.take(concerned)
            if len(rows) == 0:
                return rows
            fit = fit.take(concerned)
        self._keys[rows] = np.where(fit, self._scored(rows), _INFEASIBLE_KEY)
        return rows

    def _scored(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Keys of rows that have enough room. A row ruled out by its labels stays far below any that is not."""
        window = Window(self._cluster, rows)
        keys = self._base.take(rows)
        for rule, weight in self._scores:
            points = rule(window)
            if weight != 1:
                points = points * weight
            keys += points << _RANK_SHIFT
        for filter_ in self._filters:
            keys[~filter_(window)] = _INFEASIBLE
        return keys
