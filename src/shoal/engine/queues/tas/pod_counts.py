"""Counts how many pods each domain of a topology could take, with and without the leader of their group, from the
leaves up.

Levels are summed up on request: what fits at its own level never sums the levels above. Below the slices' level,
domains count pods and are in the order of least capacity first; that is Kueue's order, and it keeps larger domains
whole.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from shoal.engine.queues.tas.flavor_topology import Column, FlavorTopology, TopologyLevelsRequest

NEVER = np.iinfo(np.int64).max


@dataclass(slots=True, eq=False)
class TopologyLevel:
    """Every domain of one depth."""

    pods: Column
    units: Column
    """What is handed out here: slices, or pods below the slices' level."""
    slices: bool
    """Whether it is at or above the slices' level (then the most slices come first). Below, in inner layers too, the
    fewest pods come first."""
    pods_led: Column
    """With the leader in the same domain; 0 where it cannot be. The same as `pods` without a leader."""
    units_led: Column
    leader: Column | None
    """1 where the leader could be; None without a leader."""
    liking: Column | None


@dataclass(slots=True, eq=False)
class DomainPodCounts:
    forest: FlavorTopology
    ask: TopologyLevelsRequest
    pods: Column
    """By leaf."""
    pods_led: Column | None = None
    leader: Column | None = None
    liking: Column | None = None
    _levels: dict[int, TopologyLevel] = field(default_factory=dict)

    def level(self, depth: int) -> TopologyLevel:
        found = self._levels.get(depth)
        if found is None:
            lowest = depth == len(self.forest.levels) - 1
            found = self._levels[depth] = self._leaves() if lowest else self._fold(depth)
        return found

    def _leaves(self) -> TopologyLevel:
        led = self.pods if self.pods_led is None else self.pods_led
        return self._counted(len(self.forest.levels) - 1, self.pods, led, self.leader, self.liking)

    def _fold(self, depth: int) -> TopologyLevel:
        below, starts = self.level(depth + 1), self.forest.starts[depth]
        pods = np.add.reduceat(below.pods, starts)
        liking = None if below.liking is None else np.add.reduceat(below.liking, starts)
        if below.leader is None:
            if depth >= self.ask.slice_depth:
                return self._counted(depth, pods, pods, None, liking)
            units = np.add.reduceat(below.units, starts)
            return TopologyLevel(pods, units, True, pods, units, None, liking)
        leader = np.maximum.reduceat(below.leader, starts)
        pods_led = _with_leader(pods, below.pods - below.pods_led, below.leader, starts)
        if depth >= self.ask.slice_depth:
            return self._counted(depth, pods, pods_led, leader, liking)
        units = np.add.reduceat(below.units, starts)
        units_led = _with_leader(units, below.units - below.units_led, below.leader, starts)
        return TopologyLevel(pods, units, True, pods_led, units_led, leader, liking)

    def _counted(
        self, depth: int, pods: Column, led: Column, leader: Column | None, liking: Column | None
    ) -> TopologyLevel:
        """At the slices' level or below. An inner layer's domain takes whole slices of that layer only."""
        unit = self.ask.units[depth]
        if unit == 1:
            return TopologyLevel(pods, pods, depth <= self.ask.slice_depth, led, led, leader, liking)
        units, units_led = pods // unit, led // unit
        inner = depth > self.ask.slice_depth and (depth + 1 == len(self.ask.units) or self.ask.units[depth + 1] != unit)
        if inner:
            pods, led = units * unit, units_led * unit
        return TopologyLevel(pods, units, depth <= self.ask.slice_depth, led, units_led, leader, liking)


def _with_leader(total: Column, cost: Column, leader: Column, starts: np.ndarray) -> Column:
    """The leader goes where it costs the least capacity."""
    least = np.minimum.reduceat(np.where(leader > 0, cost, NEVER), starts)
    return np.where(least == NEVER, 0, total - np.where(least == NEVER, 0, least))
