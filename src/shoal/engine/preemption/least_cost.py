"""Computes the least cost of victims on a node without forced ones.

Eight equal pods, one of which has to go: none of them is forced, and a bound of nothing would have every node of the
fleet tried in vain. So count: how many must go at the very least, by the largest of them, and what would the cheapest
so many cost. Where a single one can do, the cheapest such is the answer itself, unless two cheaper ones might be.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


def at_least(
    place: Ints, amounts: Ints, short: Ints, own: Floats, alone: Floats, late: Floats
) -> tuple[Floats, Floats]:
    """Per row a lower bound of the weight, and of the running time, of those that make up for what it is short of.

    Candidates are at `place`, give `amounts` and weigh `own`, or `alone` with those evicted together.
    """
    count = len(short)
    largest = np.zeros(short.shape, np.int64)
    np.maximum.at(largest, place, amounts)
    many = -(-np.maximum(short, 0) // np.maximum(largest, 1))
    fewest = np.minimum(np.maximum(many.max(axis=1), 1), np.bincount(place, minlength=count))
    enough = (amounts >= short[place]).all(axis=1)
    one_weight, one_late = _cheapest(place[enough], alone[enough], late[enough], count)
    # Without a single sufficient victim there are at least two.
    several = np.where(np.isinf(one_weight), np.maximum(fewest, 2), fewest)
    weight, time = _sum_of_least(place, own, several), _sum_of_least(place, late, several)
    two = _sum_of_least(place, own, np.full(count, 2))
    is_exact = one_weight <= two
    weight = np.where(is_exact, one_weight, weight)
    return weight, np.where(is_exact, one_late, time)


def _cheapest(place: Ints, weight: Floats, late: Floats, count: int) -> tuple[Floats, Floats]:
    """Per row the least weight and, among equals in that, the least time."""
    best_weight, best_late = np.full(count, np.inf), np.full(count, np.inf)
    order = np.lexsort((late, weight, place))
    rows, first = np.unique(place[order], return_index=True)
    best_weight[rows], best_late[rows] = weight[order[first]], late[order[first]]
    return best_weight, best_late


def _sum_of_least(place: Ints, values: Floats, many: Ints) -> Floats:
    """Per row the sum of its so many least values, of all if there are no more."""
    order = np.lexsort((values, place))
    sums = np.concatenate((np.zeros(1), np.cumsum(values[order])))
    sizes = np.bincount(place, minlength=len(many))
    start = np.concatenate((np.zeros(1, np.int64), np.cumsum(sizes)[:-1]))
    result: Floats = sums[start + np.minimum(many, sizes)] - sums[start]
    return result
