"""Checks whether a node still has capacity for a placed pod, after changes of the node since the decision.

This is looked at right before a pod is bound: other schedulers bind pods to the same node meanwhile. The sums are those
by which a kubelet admits pods: each resource that the pod asks for, and all devices of the node together, whichever of
them each pod uses. Pods that end still count, and capacity that is promised to pods that wait does not.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from shoal.engine import facts
from shoal.engine.asks import Ask
from shoal.engine.cluster import Cluster
from shoal.engine.devices.kinds import grant_there
from shoal.engine.facts import NEVER_LACKING
from shoal.engine.pods import PodAllocation

_OF_DEVICES = [facts.GPU_WHOLE, facts.GPU_BEST, facts.GPU_MILLI]
"""Columns that follow from the devices, which are looked at themselves."""


def is_overcommitted(cluster: Cluster, allocation: PodAllocation, unheard: Sequence[Ask] = ()) -> bool:
    """`allocation` is the pod's, and in the facts. `unheard`: of pods on the node that the facts do not have yet."""
    row = allocation.row
    if not unheard and not cluster.nominated and cluster.free[row].min() >= 0:
        # Almost all pods, at a fifth of the time.
        return allocation.ask.devices is not None and cluster.devices.lacks(row)
    charges = [cluster.charge(ask) for ask in unheard]
    need = allocation.charge.need
    left = cluster.free[row].copy()
    for charge in charges:
        left -= charge.taken
    if cluster.nominated:
        for key in cluster.pods_on(row):
            if cluster.pods[key].is_nominated:
                left += cluster.pods[key].charge.taken
    lacking = left[: len(need)] < np.where(need == NEVER_LACKING, NEVER_LACKING, 0)
    lacking[_OF_DEVICES] = False
    return bool(lacking.any()) or (allocation.ask.devices is not None and _lacks_devices(cluster, row, unheard))


def _lacks_devices(cluster: Cluster, row: int, unheard: Sequence[Ask]) -> bool:
    devices = cluster.devices
    taken = []
    for ask in unheard:
        if ask.devices is not None:
            taken.append(grant_there(devices, row, ask.devices))
            devices.take_any(row, taken[-1])
    lacks = devices.lacks(row)
    for grant in reversed(taken):
        devices.give_any(row, grant)
    return lacks
