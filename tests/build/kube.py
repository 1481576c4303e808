"""kube-scheduler's arithmetic for how full a node is, one node at a time, as NodeResourcesFit documents it.

A resource is (allocatable, used with the pod counted in, weight); resources that count for nothing are left out by the
caller. Every quotient is a whole number rounded down unless said otherwise.
"""

from __future__ import annotations

import math

Resource = tuple[int, int, int]
Curve = list[tuple[int, int]]


def least_allocated(resources: list[Resource]) -> int:
    return _weighted([(max(total - used, 0) * 100 // total, weight) for total, used, weight in resources])


def most_allocated(resources: list[Resource]) -> int:
    return _weighted([(min(used, total) * 100 // total, weight) for total, used, weight in resources])


def requested_to_capacity_ratio(resources: list[Resource], curve: Curve) -> int:
    """Resources with nothing to score do not weigh, and the mean is rounded to the nearest."""
    scores = [
        (on_curve(curve, 100 if used > total else used * 100 // total), weight) for total, used, weight in resources
    ]
    counted = [(score, weight) for score, weight in scores if score > 0]
    total_weight = sum(weight for _, weight in counted)
    return math.floor(sum(s * w for s, w in counted) / total_weight + 0.5) if counted else 0


def balanced(resources: list[Resource]) -> int:
    fractions = [min(used / total, 1.0) for total, used, _ in resources]
    if len(fractions) == 2:
        deviation = abs((fractions[0] - fractions[1]) / 2)
    elif len(fractions) > 2:
        mean = sum(fractions) / len(fractions)
        deviation = math.sqrt(sum((fraction - mean) ** 2 for fraction in fractions) / len(fractions))
    else:
        deviation = 0.0
    return int((1 - deviation) * 100)


def on_curve(curve: Curve, percent: int) -> int:
    before: tuple[int, int] | None = None
    for utilization, points in curve:
        if percent <= utilization:
            if before is None:
                return points
            return before[1] + int((points - before[1]) * (percent - before[0]) / (utilization - before[0]))
        before = utilization, points
    return curve[-1][1]


def _weighted(scores: list[tuple[int, int]]) -> int:
    weight = sum(weight for _, weight in scores)
    return sum(score * weight for score, weight in scores) // weight if weight else 0
