"""Scores preferences about pods: points from 0 to 100 by the distance to the best domain.

A node in the best domain of all has 100 points, and every doubling of (1 + distance) costs 8: a distance of 1 leaves
92, of 3 leaves 84, of 100 leaves 47; from 5,792 on nothing is left. For affinity the distance is in units of weight
(one pod meant by a term of weight 100 is 100); for spread it is in pods, weighted by how many domains a key has, as
kube-scheduler weighs them.

kube-scheduler scales both linearly over the candidates. Here the best is taken over all nodes, room or not, so a
change of free capacity never changes these points; and the scale is a curve, so that near the best one pod more or less
tells nodes apart whether the domains hold ten pods or ten thousand.
"""

from __future__ import annotations

from math import log

import msgspec
import numpy as np
from numpy.typing import NDArray

from shoal.engine.scores.rule import BEST

PER_DOUBLING = 8


class Soft(msgspec.Struct, frozen=True):
    """How much preferences about pods weigh in a profile."""

    affinity: int = 0
    spread: int = 0
    required_too: int = 1
    """What the *required* affinity of pods on nodes to a newcomer counts among preferences."""
    others_too: bool = True
    """Whether preferences of pods on nodes count for a newcomer that has none itself."""


NO_SOFT = Soft()

_PARTS = 16


def points_of(distance: NDArray[np.int64]) -> NDArray[np.int64]:
    """Points by distance from the best, distances being 0 or more."""
    points: NDArray[np.int64] = _POINTS.take(np.minimum(distance, len(_POINTS) - 1))
    return points


def spread_weight(domains: int) -> int:
    """How much a pod too many counts, by the number of domains it could have gone to; only ratios matter."""
    return round(_PARTS * log(domains + 2))


def _curve() -> NDArray[np.int64]:
    # 8 log2(1 + d), rounded down, in whole numbers: the length of (1 + d)^8 in bits.
    left: list[int] = []
    while not left or left[-1] > 0:
        left.append(max(BEST - ((1 + len(left)) ** PER_DOUBLING).bit_length() + 1, 0))
    return np.array(left, np.int64)


_POINTS = _curve()
