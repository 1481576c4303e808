"""Counts the GPUs that pods hold and wait for at this moment, as the rows of the history count them, so that a forecast
made of the history can be compared with it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime

import msgspec

from shoal.client.item import Item
from shoal.cost.records import FULL_SHARE, DeviceShare, Holder
from shoal.store.history.node_rows import NodeDeviceNames, read_node
from shoal.store.history.pod_rows import RecordedPod, holding_of, read_pod, wait_of

NodeOf = Callable[[str], Item | None]
SharesOf = Callable[[str, str], Sequence[DeviceShare]]
"""What a pod has of a ResourceClaim, by its namespace and name."""


def present_gpus(pods: Iterable[Item], node_of: NodeOf, shares_of: SharesOf, now: datetime) -> float:
    """Of those that are not finished; one that cannot be read counts as none, as in the history."""
    now_ms = round(now.timestamp() * 1000)
    names: dict[str, NodeDeviceNames] = {}
    shares = 0
    for item in pods:
        try:
            pod = read_pod(item)
        except (msgspec.DecodeError, ValueError):
            continue
        if pod.is_finished:
            continue
        node = pod.spec.node_name
        if node not in names:
            names[node] = _names(node_of(node), now_ms) if node else NodeDeviceNames()
        shares += _share(pod, names[node], shares_of, now_ms)
    return shares / FULL_SHARE


def _share(pod: RecordedPod, names: NodeDeviceNames, shares_of: SharesOf, now_ms: int) -> int:
    holder = Holder(pod.metadata.name, pod.metadata.namespace)
    held = holding_of(pod, holder, names, {}, now_ms)
    if held is None:
        wait = wait_of(pod, holder, now_ms)
        return 0 if wait is None else wait.gpus * FULL_SHARE + wait.share
    claimed = [one for name in pod.claims() for one in shares_of(pod.metadata.namespace, name)]
    return sum(one.share for one in (*held.devices, *claimed))


def _names(item: Item | None, now_ms: int) -> NodeDeviceNames:
    try:
        return NodeDeviceNames() if item is None else read_node(item, None, now_ms).names
    except (msgspec.DecodeError, ValueError):
        return NodeDeviceNames()
