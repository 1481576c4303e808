"""Lets pods that stay on their nodes keep their devices: newcomers of the same trial take others.

A trial places the claimant first, on the best devices of a node, and among them may be those of a pod that turns out to
fit beside it. Whole GPUs of a node are alike, so the claimant takes as many others, and the pod does not restart.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from shoal.engine.cluster import Cluster
from shoal.engine.device_demand import COMPUTE, FULL_MILLI, DeviceGrant, compute_grant
from shoal.engine.ledger import Ledger
from shoal.engine.pods import PodAllocation


def keep_devices(
    ledger: Ledger, cluster: Cluster, newcomers: Sequence[str], before: Iterable[Mapping[str, PodAllocation]]
) -> None:
    """`before`: the pods that the trial took off their nodes, with what they had."""
    pods = cluster.pods
    stay: dict[int, dict[str, DeviceGrant]] = {}
    arrive = [*newcomers]
    for allocations in before:
        for pod, old in allocations.items():
            now = pods.get(pod)
            if now is None or now.row != old.row:
                arrive += [pod] if now is not None else []
            elif now.grant != old.grant and old.grant is not None and _is_whole(old.grant):
                stay.setdefault(old.row, {})[pod] = old.grant
    for row, grants in stay.items():
        if row not in cluster.devices.odd:
            _swap(ledger, cluster, row, grants, [pod for pod in arrive if pods[pod].row == row])


def _swap(ledger: Ledger, cluster: Cluster, row: int, grants: Mapping[str, DeviceGrant], arrived: list[str]) -> None:
    pods = cluster.pods
    numbers = {pod: grant.devices for pod in [*grants, *arrived] if (grant := pods[pod].grant) and _is_whole(grant)}
    if not grants.keys() <= numbers.keys():
        return
    wanted = {device for grant in grants.values() for device in grant.devices}
    held = {device for devices in numbers.values() for device in devices}
    compute = cluster.devices.compute[row]
    if any(compute.item(device) < FULL_MILLI for device in wanted - held):
        return
    left = sorted((held | wanted) - wanted)
    for pod in numbers:
        ledger.withdraw(pod)
    for pod, devices in numbers.items():
        grant = grants.get(pod)
        if grant is None:
            grant, left = compute_grant(tuple(left[: len(devices)]), FULL_MILLI), left[len(devices) :]
        ledger.place(pod, row, grant)


def _is_whole(grant: DeviceGrant) -> bool:
    """Whether it consists of whole devices only."""
    return not grant.claims and bool(grant.parts) and all(part[1:] == (COMPUTE, FULL_MILLI) for part in grant.parts)
