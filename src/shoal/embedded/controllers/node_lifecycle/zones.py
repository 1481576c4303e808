"""Limits the eviction rate of each zone: a zone in which all nodes are silent is probably disconnected.

A zone is *normal*, *partly* disrupted (more than two nodes and at least 55 % of them not ready) or *fully* (none is
ready). Nodes are tainted one per ten seconds in a zone; one per hundred in a partly disrupted zone of more than fifty
nodes, none at all in a smaller one. When every zone is fully disrupted no pod is evicted.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from enum import Enum

import msgspec

from shoal.embedded.controllers.node_lifecycle.heartbeats import Beat

_RATE, _SECONDARY_RATE = 0.1, 0.01
_LARGE_ZONE = 50
_UNHEALTHY = 0.55
_LOOK_AGAIN_S = 5.0


class ZoneHealth(Enum):
    NORMAL = "normal"
    PARTLY = "partly"
    FULLY = "fully"


class _Zone(msgspec.Struct, gc=False):
    rate: float = _RATE
    last_s: float = -math.inf
    """When a node of the zone was last tainted."""


def health(ready: int, not_ready: int) -> ZoneHealth:
    if not ready and not_ready:
        return ZoneHealth.FULLY
    if not_ready > 2 and not_ready / (ready + not_ready) >= _UNHEALTHY:
        return ZoneHealth.PARTLY
    return ZoneHealth.NORMAL


class Zones:
    def __init__(self) -> None:
        self._zones: dict[str, _Zone] = {}
        self.all_disrupted = False

    def look(self, beats: Iterable[Beat]) -> bool:
        """Read the state of all nodes; returns whether a disruption of all zones has just begun or ended."""
        counts: dict[str, list[int]] = {}
        for beat in beats:
            counts.setdefault(beat.zone, [0, 0])[beat.ready != "True"] += 1
        found = {name: health(*count) for name, count in counts.items()}
        for name, state in found.items():
            zone = self._zones.setdefault(name, _Zone())
            zone.rate = _RATE
            if state is ZoneHealth.PARTLY:
                zone.rate = _SECONDARY_RATE if sum(counts[name]) > _LARGE_ZONE else 0.0
        was = self.all_disrupted
        self.all_disrupted = bool(found) and all(state is ZoneHealth.FULLY for state in found.values())
        return was != self.all_disrupted

    def wait_s(self, name: str, now_s: float) -> float:
        """The time until another node of the zone may be tainted; 0 means now, which counts as a taint."""
        zone = self._zones.setdefault(name, _Zone())
        if self.all_disrupted or not zone.rate:
            return _LOOK_AGAIN_S
        wait_s = zone.last_s + 1 / zone.rate - now_s
        if wait_s <= 0:
            zone.last_s = now_s
            return 0.0
        return wait_s
