"""Distributes equal pods over as few domains as possible.

Places already in use come first, because they cost nothing new; then the largest, until one place takes all that is
left, and of those the tightest. No way of sharing out uses fewer places, and the largest domains that need not be split
stay whole.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from shoal.engine.topology.tree import HOSTNAME, NO_DOMAIN, Rows, Tree

Counts = NDArray[np.int64]

Shares = list[tuple[int, int]]
"""(place, pods)."""


def fewest(pods: int, takes: Counts, order: Counts, used: NDArray[np.bool_], unit: int = 1) -> Shares:
    """Places by number, and how many each gets; fewer than asked when there is no more capacity. Ties go by `order`.

    Every place gets a multiple of the unit, as do the pods in all.
    """
    shares: Shares = []
    left = pods
    for group in (used, ~used):
        left -= _largest_first(left, takes, order, (group & (takes > 0)).nonzero()[0], unit, shares)
    return shares


def _largest_first(pods: int, takes: Counts, order: Counts, places: Rows, unit: int, shares: Shares) -> int:
    left = pods
    if left <= 0 or len(places) == 0:
        return 0
    sizes = takes.take(places) // unit * unit
    largest_first = np.lexsort((order.take(places), takes.take(places), -sizes))
    places, sizes = places[largest_first], sizes[largest_first]
    for at, size in enumerate(sizes.tolist()):
        if left <= 0 or size == 0:
            break
        if size >= left:
            # Sizes fall: the last that suffices is the tightest, and the first of its size the first in order.
            tightest = sizes[int(np.searchsorted(-sizes, -left, side="right")) - 1]
            shares.append((int(places[max(at, int(np.searchsorted(-sizes, -tightest)))]), left))
            return pods
        shares.append((int(places[at]), size))
        left -= size
    return pods - left


class Sharing:
    """Shares equal pods out over rows, level by level of one tree, over as few domains as possible at each."""

    __slots__ = ("_capacity", "_order", "_slice_level", "_slices", "_tree", "_unit", "_used")

    def __init__(self, tree: Tree, capacity: Counts, order: Counts, used: NDArray[np.bool_]) -> None:
        self._tree = tree
        self._capacity = capacity
        """Per row, how many pods it takes; nothing where they must not go."""
        self._order = order
        """Per row, lowest first among equals."""
        self._used = used
        """Per row, whether it is in use already."""
        self._unit = 1
        self._slice_level = -1
        self._slices = capacity

    def in_slices(self, size: int, level: int) -> Sharing:
        """Every `size` pods stay together in one domain of a level."""
        self._unit = size
        self._slice_level = level
        self._slices = whole_slices(self._tree, self._capacity, size, level)
        return self

    def over(self, pods: int, rows: Rows, level: int) -> Shares:
        """(row, pods), from this level inwards; fewer than asked when the capacity does not suffice."""
        tree = self._tree
        while level < len(tree.levels) and tree.levels[level] == HOSTNAME and level != self._slice_level:
            level += 1
        if level >= len(tree.levels):
            shares = fewest(pods, self._capacity.take(rows), self._order.take(rows), self._used.take(rows))
            return [(int(rows[at]), count) for at, count in shares]
        codes = tree.codes[level].take(rows)
        in_slices = level <= self._slice_level
        sums = tree.sums(level, self._slices if in_slices else self._capacity, rows)
        used = np.zeros(len(sums), np.bool_)
        used[codes[self._used.take(rows) & (codes != NO_DOMAIN)]] = True
        shares = []
        left = pods
        for domain, count in fewest(pods, sums, tree.first_rank[level], used, self._unit if in_slices else 1):
            shares += self.over(count, rows[codes == domain], level + 1)
            left -= count
        if left > 0 and not in_slices:
            # Nodes that belong nowhere at this level come last.
            shares += self.over(left, rows[codes == NO_DOMAIN], len(tree.levels))
        return shares


def whole_slices(tree: Tree, capacity: Counts, size: int, level: int) -> Counts:
    """Room that counts only in whole slices, noted on the first row of every domain of the slices' level."""
    sums = tree.sums(level, capacity) // size * size
    whole = np.zeros_like(capacity)
    for domain in sums.nonzero()[0].tolist():
        whole[tree.rows_of(level, domain)[0]] = sums[domain]
    return whole
