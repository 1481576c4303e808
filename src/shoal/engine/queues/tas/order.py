"""Orders domains for filling, and computes how much each gets: Kueue's two ways, with its tie-breaking.

*Best fit* takes the domains with the most capacity first and, for the last one, the smallest that still holds the rest.
*Least free capacity* takes the smallest first. Equal slices: the domain with fewer pods to spare; equal again: label
values, which is the position.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from shoal.engine.queues.tas.pod_counts import NEVER, TopologyLevel

Domains = NDArray[np.intp]


class PodSetPart(NamedTuple):
    domain: int
    units: int
    leaders: int


def in_order(level: TopologyLevel, domains: Domains | None, least: bool, leaders: int) -> Domains:
    """Domains (None: all of the level), the one to fill first in front. Full ones, which would come first where the
    smallest room does, are left out."""
    with_leader = bool(leaders) and level.leader is not None
    units, pods = (level.units_led, level.pods_led) if with_leader else (level.units, level.pods)
    by_capacity = units if least else -units
    if level.slices:
        keys = [by_capacity] if units is pods else [by_capacity, pods]
    else:
        keys = [pods]
    if level.liking is not None:
        keys.insert(0, -level.liking)
    if with_leader and level.leader is not None:
        keys.insert(0, -level.leader)
    if domains is not None:
        keys = [key[domains] for key in keys]
    order: Domains = keys[0].argsort(kind="stable") if len(keys) == 1 else np.lexsort(keys[::-1])
    if domains is not None:
        order = domains[order]
    return order[units[order] > 0] if least and not with_leader else order


def leader_first(level: TopologyLevel, order: Domains, need: int) -> Domains:
    """In front comes the first domain where the leader costs no more capacity than there is to spare.

    What domains above promised counts on the cheapest place for the leader. Without this, the largest room would get
    it, and workers could be left over."""
    if level.leader is None:
        return order
    pod_counts = level.units[order]
    spare = pod_counts.sum() - need
    cheap = (level.leader[order] > 0) & (pod_counts - level.units_led[order] <= spare)
    first = int(cheap.argmax()) if cheap.any() else 0
    return np.concatenate((order[first : first + 1], order[:first], order[first + 1 :])) if first else order


def hand_out(level: TopologyLevel, order: Domains, need: int, least: bool, leaders: int) -> list[PodSetPart] | int:
    """Domains in that order until the need is met; else how much of it found no capacity."""
    parts: list[PodSetPart] = []
    at = 0
    if leaders:
        if level.leader is None or not len(order) or not level.leader[order[0]]:
            return need
        capacity = int(level.units_led[order[0]])
        if capacity >= need:
            return [PodSetPart(int(order[0]) if least else tightest(level, order, need, leaders), need, leaders)]
        parts.append(PodSetPart(int(order[0]), capacity, leaders))
        need -= capacity
        at = 1
    pod_counts = level.units[order]
    for capacity in pod_counts[at:].tolist() if need else ():
        if capacity >= need:
            parts.append(PodSetPart(int(order[at]) if least else tightest(level, order[at:], need, 0), need, 0))
            return parts
        if capacity:
            parts.append(PodSetPart(int(order[at]), capacity, 0))
            need -= capacity
        at += 1
    return need or parts


def tightest(level: TopologyLevel, order: Domains, need: int, leaders: int) -> int:
    """The first of the smallest domains that hold the need; the first of `order` holds it.

    Liking comes before tightness: only domains that are liked as well as the first are compared."""
    pod_counts = (level.units_led if leaders else level.units)[order]
    held = pod_counts >= need
    if leaders and level.leader is not None:
        held &= level.leader[order] > 0
    if level.liking is not None:
        liking = level.liking[order]
        held &= liking == liking[0]
    return int(order[np.where(held, pod_counts, NEVER).argmin()])
