"""Finds nodes that have been broken for so long that they are replaced by force.

GPUs that are not healthy get ten minutes, everything else half an hour. Where more than a fifth of a pool is broken,
the cause is probably not in the nodes, and none of them is replaced.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from datetime import datetime
from typing import Final

import msgspec

from shoal.api.conditions import Condition
from shoal.devices.health_reports import CONDITION as GPU_CONDITION

_TOLERATED_S: Final = {GPU_CONDITION: 600.0, "AcceleratedHardwareReady": 600.0, "Ready": 1800.0}
_MOST_BROKEN: Final = 0.2


class NodeHealth(msgspec.Struct, frozen=True):
    name: str
    pool: str
    conditions: tuple[Condition, ...]


def unhealthy_nodes(nodes: Iterable[NodeHealth], now: datetime) -> dict[str, str]:
    """The nodes to replace, and why."""
    known = list(nodes)
    broken = {node.name: fault for node in known if (fault := _fault(node)) is not None}
    sizes = Counter(node.pool for node in known)
    by_pool = Counter(node.pool for node in known if node.name in broken)
    found = {}
    for node in known:
        fault = broken.get(node.name)
        # One broken node of a small pool is more than a fifth of it, and has to be replaced all the same.
        if fault is None or by_pool[node.pool] > max(sizes[node.pool] * _MOST_BROKEN, 1.0):
            continue
        lasts_s = 0.0 if fault.last_transition_time is None else (now - fault.last_transition_time).total_seconds()
        if lasts_s >= _TOLERATED_S[fault.type]:
            found[node.name] = f"condition {fault.type} has been {fault.status} for {lasts_s / 60:.0f} minutes"
    return found


def _fault(node: NodeHealth) -> Condition | None:
    for condition in node.conditions:
        if condition.type in _TOLERATED_S and condition.status != "True":
            if condition.type != "Ready" and condition.status == "Unknown":
                continue
            return condition
    return None
