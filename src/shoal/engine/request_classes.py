"""Computes keys per request: for every node one integer (score, then stable rank), and the best key of every block of
nodes.

All pods that ask the same share one shape. A shape remembers how far it has read the change log; before it answers it
recomputes the keys of the rows changed since. In a large fleet it folds the touched blocks, and the best node is the
best of the blocks; in a small one a scan of the keys costs less than the folding. So the cost of an answer is the
number of changes since the last one, not the number of nodes.

Ties are broken by rank, inside the key itself: no second pass, and no draw that would scatter equal choices.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import ge
from typing import Final

import numpy as np
from numpy.typing import NDArray

from shoal.engine.asks import Ask
from shoal.engine.charges import Charge
from shoal.engine.cluster import LAST_RANK, RANK_BITS, Cluster
from shoal.engine.facts import fits
from shoal.engine.filters import NODE_FILTERS
from shoal.engine.filters.rule import Verdicts
from shoal.engine.growth import BLOCK, BLOCK_BITS
from shoal.engine.profile import Profile
from shoal.engine.scores.rule import NodeRule, RecordRule, RecordScore
from shoal.engine.suitability import suits
from shoal.engine.window import Window

_INFEASIBLE: Final = -(1 << 62)
_FEASIBLE_ABOVE: Final = -(1 << 61)

# The same and the shifts as arrays: numpy converts a Python number anew at every call, which on a hundred rows costs
# as much as the operation itself.
_INFEASIBLE_KEY: Final = np.array(_INFEASIBLE)
_FEASIBLE_KEY_ABOVE: Final = np.array(_FEASIBLE_ABOVE)
_RANK_SHIFT: Final = np.array(RANK_BITS)
_BLOCK_SHIFT: Final = np.array(BLOCK_BITS)

_REPEATS_WORTH_SORTING: Final = 512

_MOST_NEEDS: Final = 256
"""Rows for which an ask's needs are kept ready line by line; twice as many changes as an answer has to look at."""

_MOST_KEYS_SCANNED: Final = 16_384
"""Up to here one scan over all keys is quicker than folding what changed."""


_FEW: Final = 16
"""Changed rows that are looked at one by one."""
_MOST_EXACT: Final = 1 << 49
"""The points of larger amounts overflow 64 bits, and are always those of numpy."""


class RequestClass:
    """One ask's keys over all nodes."""

    __slots__ = (
        "_base",
        "_blocks",
        "_by_block",
        "_claims_epoch",
        "_cluster",
        "_cursor",
        "_filters",
        "_folded",
        "_keys",
        "_need_line",
        "_needs",
        "_profile",
        "_record_rules",
        "_scores",
        "_static_cursor",
        "_window",
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
        self._filters: list[Callable[[Window], Verdicts | None]] = [
            rule for rule in (filter_.compiled(cluster, ask) for filter_ in NODE_FILTERS) if rule is not None
        ]
        self._scores: list[tuple[NodeRule, int]] = [
            (rule, weight)
            for rule, weight in ((score.compiled(cluster, ask), weight) for score, weight in profile.node_scores)
            if rule is not None
        ]
        self._record_rules = _record_rules(cluster, profile, ask)
        self._need_line: list[int] = charge.need.tolist()
        self._window = Window(cluster, cluster.all_rows()[:0])
        self._needs: NDArray[np.int64]
        self._base: NDArray[np.int64]
        self._keys: NDArray[np.int64]
        self._by_block: NDArray[np.int64]
        self._blocks: NDArray[np.int64]
        self._folded: bool
        self._cursor = -1
        self._static_cursor = -1
        self._claims_epoch = -1
        self._forget()

    def best(self) -> int:
        """The row with the highest key, or -1 when the ask fits nowhere."""
        self.refresh()
        keys = self._keys
        rows = self._cluster.rows
        if rows == 0:
            return -1
        if not self._folded:
            row = int(keys[:rows].argmax())
            return row if keys.item(row) > _FEASIBLE_ABOVE else -1
        blocks = self._blocks
        block = int(blocks[: -(-rows // BLOCK)].argmax())
        if blocks.item(block) < _FEASIBLE_ABOVE:
            return -1
        start = block << BLOCK_BITS
        return start + int(keys[start : start + BLOCK].argmax())

    def best_of(self, rows: NDArray[np.int64]) -> int:
        """The row with the highest key among these, or -1."""
        self.refresh()
        if len(rows) == 0:
            return -1
        keys = self._keys.take(rows)
        best = int(keys.argmax())
        return int(rows[best]) if keys.item(best) > _FEASIBLE_ABOVE else -1

    def best_where(
        self,
        allowed: NDArray[np.bool_] | None,
        extra: NDArray[np.int64] | None,
        rows: NDArray[np.int64] | None = None,
    ) -> int:
        """As `best`, or `best_of` some rows, among the rows that are allowed and with something added to their keys."""
        self.refresh()
        keys = self._keys if rows is None else self._keys.take(rows)
        if rows is None:
            keys = keys[: self._cluster.rows]
        if len(keys) == 0:
            return -1
        if extra is not None:
            keys = keys + (extra if rows is None else extra.take(rows))
        if allowed is not None:
            keys = np.where(allowed if rows is None else allowed.take(rows), keys, _INFEASIBLE_KEY)
        best = int(keys.argmax())
        if keys.item(best) < _FEASIBLE_ABOVE:
            return -1
        return best if rows is None else int(rows[best])

    def by_preference(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Of these rows those that suit the ask, with capacity or without, in the order of their scores."""
        self.refresh()
        suitable = rows[self._base.take(rows) > _FEASIBLE_KEY_ABOVE]
        keys = self._base.take(suitable)
        window = Window(self._cluster, suitable)
        for rule, weight in self._scores:
            keys += (rule(window) * weight) << _RANK_SHIFT
        return suitable[np.argsort(-keys, kind="stable")]

    def feasible(self) -> NDArray[np.int64]:
        """All rows that fit."""
        self.refresh()
        return (self._keys > _FEASIBLE_ABOVE).nonzero()[0]

    def invalidate(self, *, static_too: bool = False) -> None:
        """The rules' tables changed: every key is to be made anew."""
        self._cursor = -1
        if static_too:
            self._static_cursor = -1

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
        if self.ask.claims and (epoch := cluster.dra.epoch(self.ask.claims)) != self._claims_epoch:
            # What a claim may get can change on rows where nothing else did.
            self._claims_epoch = epoch
            self._cursor = -1
        changes = cluster.changes
        end = changes.end
        cursor = self._cursor
        if cursor == end:
            return
        self._cursor = end
        rows = changes.since(cursor)
        if rows is not None and len(rows) <= _FEW and self._record_rules is not None:
            for row in rows.tolist():
                self._recompute_row(row, self._record_rules)
            return
        if rows is None or 2 * len(rows) > cluster.rows:
            rows = cluster.all_rows()
        elif len(rows) > _REPEATS_WORTH_SORTING:
            rows = np.unique(rows)
        self._recompute(rows)

    def _forget(self) -> None:
        capacity = self._cluster.capacity
        self._base = np.full(capacity, _INFEASIBLE, np.int64)
        self._keys = np.full(capacity, _INFEASIBLE, np.int64)
        self._by_block = self._keys.reshape(-1, BLOCK)
        self._blocks = np.full(capacity >> BLOCK_BITS, _INFEASIBLE, np.int64)
        # Half of what keys and base take together, at most.
        self._needs = np.tile(self.charge.need, (min(capacity // 8, _MOST_NEEDS), 1))
        self._folded = capacity > _MOST_KEYS_SCANNED
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
        self._base[rows] = np.where(suits(cluster, self.ask, rows), base, _INFEASIBLE)

    def _recompute(self, rows: NDArray[np.int64]) -> None:
        """Set the keys of rows, and what is folded over them."""
        keys = self._keys
        needs = self._needs
        count = len(rows)
        need = needs[:count] if count <= len(needs) else self.charge.need
        fit = fits(self._cluster.free.take(rows, 0), need)
        fitting = rows[fit]
        # In a full fleet most changed nodes had no room before and have none now: nothing to fold.
        touched = rows[fit | (keys[rows] > _FEASIBLE_KEY_ABOVE)] if self._folded else fitting
        keys[rows] = _INFEASIBLE_KEY
        if len(fitting):
            keys[fitting] = self._scored(fitting)
        if self._folded and len(touched):
            blocks = touched >> _BLOCK_SHIFT
            # The place of the largest, and the key there: numpy finds that sooner than the largest itself.
            best = self._by_block.take(blocks, 0).argmax(1)
            best += blocks << _BLOCK_SHIFT
            self._blocks[blocks] = keys[best]

    def _recompute_row(self, row: int, rules: list[tuple[RecordRule, int]]) -> None:
        """As `_recompute`, of one row."""
        cluster, keys, key = self._cluster, self._keys, _INFEASIBLE
        free = cluster.free[row].tolist()
        # Its needs may end before the record does.
        if all(map(ge, free, self._need_line)):
            total = cluster.total[row].tolist()
            if max(total) > _MOST_EXACT or min(free) < -_MOST_EXACT:
                self._recompute(np.array([row]))
                return
            key = self._base.item(row)
            for rule, weight in rules:
                key += (rule(free, total) * weight) << RANK_BITS
            if self._filters and not self._passes(row):
                key = _INFEASIBLE
        elif not self._folded or keys.item(row) < _FEASIBLE_ABOVE:
            keys[row] = key
            return
        keys[row] = key
        if self._folded:
            block = row >> BLOCK_BITS
            start = block << BLOCK_BITS
            self._blocks[block] = keys[start : start + BLOCK].max()

    def _passes(self, row: int) -> bool:
        window = self._window
        window.rows = np.array([row])
        for filter_ in self._filters:
            verdicts = filter_(window)
            if verdicts is not None and not verdicts[0]:
                return False
        return True

    def _scored(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Keys of rows that have enough capacity. A row ruled out by its labels stays far below any that is not."""
        window = self._window
        window.rows = rows
        keys = self._base[rows]
        for rule, weight in self._scores:
            points = rule(window)
            if weight != 1:
                points = points * weight
            keys += points << _RANK_SHIFT
        for filter_ in self._filters:
            verdicts = filter_(window)
            if verdicts is not None:
                keys[~verdicts] = _INFEASIBLE
        return keys


def _record_rules(cluster: Cluster, profile: Profile, ask: Ask) -> list[tuple[RecordRule, int]] | None:
    """The scores that tell nodes apart for this ask; None if one of them reads more than the records."""
    found = []
    for score, weight in profile.node_scores:
        if not isinstance(score, RecordScore):
            return None
        if (rule := score.of_record(cluster, ask)) is not None:
            found.append((rule, weight))
        elif score.compiled(cluster, ask) is not None:
            return None
    return found
