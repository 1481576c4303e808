"""Assigns pods to domains: finds the level at which they fit, chooses domains there, and descends level by level.

Down to the slices' level the pods are handed out anew over all children of the chosen domains, whichever parent they
have: that takes the fewest domains. From there on each domain's pods stay its own.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from shoal.engine.queues.tas.balanced import balance
from shoal.engine.queues.tas.order import Domains, PodSetPart, hand_out, in_order, leader_first, tightest
from shoal.engine.queues.tas.pod_counts import DomainPodCounts, TopologyLevel


class TooSmall(NamedTuple):
    """It does not fit: how many slices (or pods) would."""

    fits: int


def search(pod_counts: DomainPodCounts, need: int, leaders: int) -> list[PodSetPart] | TooSmall:
    """Leaves with their pods, of a forest that has any; `need` is in slices."""
    ask = pod_counts.ask
    if ask.balanced and not leaders:
        spread = balance(pod_counts, need)
        if spread is not None:
            return _descend(pod_counts, *spread, need, leaders, balanced=True)
    depth = ask.depth
    while True:
        chosen = _choose(pod_counts, depth, need, leaders)
        if not isinstance(chosen, TooSmall):
            return _descend(pod_counts, depth, chosen, need, leaders)
        if not ask.climbs or ask.required or depth == 0:
            return chosen
        depth -= 1


def _choose(pod_counts: DomainPodCounts, depth: int, need: int, leaders: int) -> list[PodSetPart] | TooSmall:
    """One domain if one will do; several where the pods may be spread at this level."""
    ask, level = pod_counts.ask, pod_counts.level(depth)
    order = in_order(level, None, ask.least, leaders)
    if not len(order):
        return TooSmall(0)
    if ask.least:
        holding = level.units_led[order] >= need
        if leaders and level.leader is not None:
            holding &= level.leader[order] > 0
        if holding.any():
            return [PodSetPart(int(order[holding.argmax()]), need, leaders)]
    elif _holds(level, int(order[0]), need, leaders):
        return [PodSetPart(tightest(level, order, need, leaders), need, leaders)]
    if ask.required:
        return TooSmall(int(level.units[order[0]]))
    if ask.climbs and depth > 0:
        return TooSmall(0)
    return _spread(level, order, need, leaders, ask.least)


def _spread(level: TopologyLevel, order: Domains, need: int, leaders: int, least: bool) -> list[PodSetPart] | TooSmall:
    parts: list[PodSetPart] = []
    left = need
    if leaders:
        order = leader_first(level, order, need)
        first = int(order[0])
        if level.leader is None or not level.leader[first]:
            return TooSmall(0)
        taken = min(left, int(level.units_led[first]))
        parts.append(PodSetPart(first, taken, leaders))
        left -= taken
        order = in_order(level, np.sort(order[1:]), least, 0)
    more = hand_out(level, order, left, least, 0)
    return TooSmall(need - more) if isinstance(more, int) else parts + more


def _holds(level: TopologyLevel, domain: int, need: int, leaders: int) -> bool:
    if leaders and (level.leader is None or not level.leader[domain]):
        return False
    return bool(level.units_led[domain] >= need)


def _descend(
    pod_counts: DomainPodCounts, depth: int, chosen: list[PodSetPart], need: int, leaders: int, balanced: bool = False
) -> list[PodSetPart] | TooSmall:
    ask, units = pod_counts.ask, pod_counts.ask.units
    for at in range(depth, len(units) - 1):
        below = pod_counts.level(at + 1)
        if at < ask.slice_depth and not balanced:
            shares = [(_children(pod_counts, at, chosen), need, leaders)]
        else:
            shares = [(_children(pod_counts, at, [p]), p.units * units[at] // units[at + 1], p.leaders) for p in chosen]
        chosen = []
        for children, share, led in shares:
            parts = _share(below, children, share, ask.least, led)
            if isinstance(parts, int):
                return TooSmall(need - parts)
            chosen += parts
    return chosen


def _share(level: TopologyLevel, children: Domains, need: int, least: bool, leaders: int) -> list[PodSetPart] | int:
    order = in_order(level, children, least, leaders)
    if leaders:
        order = leader_first(level, order, need)
    return hand_out(level, order, need, least, leaders)


def _children(pod_counts: DomainPodCounts, depth: int, parts: list[PodSetPart]) -> Domains:
    bounds = pod_counts.forest.bounds[depth]
    ranges = [np.arange(bounds[domain], bounds[domain + 1]) for domain in sorted(part.domain for part in parts)]
    return ranges[0] if len(ranges) == 1 else np.concatenate(ranges)
