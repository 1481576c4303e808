"""The quota of a team: for pods as they are created, and for jobs as they are admitted.

Only requests of devices are counted: the API server accepts `limits.nvidia.com/gpu` and never counts it. A name that a
quota does not have is unlimited, so every other name under which nodes advertise accelerators has the amount 0.

A LimitRange has nothing about GPUs. A default would give every container a GPU; `max` of type Container becomes such a
default; `max` of type Pod refuses every pod without GPUs, because that pod has no limit.

Kueue admits no job that requests a resource of which the ClusterQueue has no quota. So the queue has one of everything
that pods may request beside GPUs. Where the team has no limit, it is larger than any cluster, and none of it is lent.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from shoal.devices.names import is_accelerator
from shoal.policy.advice import Obj
from shoal.policy.tenants.labels import QUOTA, labelled
from shoal.policy.tenants.priorities import PRIORITIES, SYSTEM_CLASSES
from shoal.policy.tenants.team import GPU, Team
from shoal.units.quantity import Quantity

SHARED_GPU = "nvidia.com/gpu.shared"
_DEVICE_CLASS = ".deviceclass.resource.k8s.io/devices"
_KUEUE = "kueue.x-k8s.io/v1beta2"
_BYTES = ("memory", "ephemeral-storage", "hugepages-")
_ALWAYS = ("cpu", "memory", "ephemeral-storage")
_UNREQUESTED = ("pods", "attachable-volumes-")
_UNLIMITED, _UNLIMITED_BYTES = "1000000", "8Pi"


def device_amounts(team: Team, advertised: Iterable[str], granted: Mapping[str, int]) -> dict[str, int]:
    """`advertised`: names of what nodes have. `granted`: amounts that replace those of the team for a time."""
    others = {name: 0 for name in sorted({SHARED_GPU, *advertised}) if is_accelerator(name)}
    return {**others, **team.spec.quota.devices(), **granted}


def other_resources(allocatable: Iterable[str], devices: Iterable[str]) -> list[str]:
    """What pods may request beside the team's devices, of the names that nodes have, such as network devices and huge
    pages. No accelerator is among them."""
    found = {name for name in allocatable if not name.startswith(_UNREQUESTED) and not is_accelerator(name)}
    return [*_ALWAYS, *sorted(found - {*_ALWAYS, *devices})]


def hard_items(team: Team, devices: Mapping[str, int], device_classes: Iterable[str]) -> dict[str, str]:
    quota = team.spec.quota
    unused = {f"{name}{_DEVICE_CLASS}": "0" for name in sorted(device_classes)}
    found = {**unused, **{quota_item(name): str(amount) for name, amount in devices.items()}}
    amounts = (
        ("requests.cpu", quota.cpu),
        ("requests.memory", quota.memory),
        ("requests.storage", quota.storage),
        ("persistentvolumeclaims", quota.claims),
        ("pods", quota.pods),
    )
    found |= {name: str(amount) for name, amount in amounts if amount is not None}
    # Services of these types open ports of nodes, or public addresses.
    return found | {"services.loadbalancers": "0", "services.nodeports": "0"}


def quota_item(device: str) -> str:
    """The item that counts a device. Devices of claims are counted by their class, under its own name."""
    return device if device.endswith(_DEVICE_CLASS) else f"requests.{device}"


def resource_quotas(team: Team, hard: Mapping[str, str]) -> list[Obj]:
    denied = [*(name for name in PRIORITIES if name not in team.spec.priorities), *SYSTEM_CLASSES]
    scope = {"matchExpressions": [{"scopeName": "PriorityClass", "operator": "In", "values": denied}]}
    return [
        labelled(team, "v1", "ResourceQuota", QUOTA, spec={"hard": dict(hard)}),
        labelled(
            team, "v1", "ResourceQuota", "team-denied-priorities", spec={"hard": {"pods": "0"}, "scopeSelector": scope}
        ),
    ]


def limit_range(team: Team) -> Obj:
    """Requests for containers without any, because the quota would refuse their pods."""
    defaults = team.spec.defaults
    requests = {"cpu": str(defaults.cpu), "memory": str(defaults.memory)}
    limits = [{"type": "Container", "defaultRequest": requests}]
    return labelled(team, "v1", "LimitRange", "team-defaults", spec={"limits": limits})


def queue_objects(team: Team, devices: Mapping[str, int], others: Iterable[str]) -> list[Obj]:
    """The team's ClusterQueue, to which only its namespace may submit, and its LocalQueue. `others`: what its pods may
    request beside GPUs."""
    queue, quota = team.spec.queue, team.spec.quota
    resources: list[Obj] = [{"name": name, "nominalQuota": str(amount)} for name, amount in devices.items() if amount]
    for resource in resources:
        if queue.borrow is not None and resource["name"] == GPU:
            resource["borrowingLimit"] = str(queue.borrow)
    limits = {"cpu": quota.cpu, "memory": quota.memory}
    if not resources and all(limit is None for limit in limits.values()):
        return []
    resources += [_other_quota(name, limits.get(name), queue.cohort) for name in others]
    group = {
        "coveredResources": [resource["name"] for resource in resources],
        "flavors": [{"name": queue.flavor, "resources": resources}],
    }
    spec: Obj = {
        "cohortName": queue.cohort,
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": team.namespace}},
        "preemption": {
            "reclaimWithinCohort": "Any",
            "withinClusterQueue": "LowerPriority",
            "borrowWithinCohort": {"policy": "Never"},
        },
        "resourceGroups": [group],
    }
    if queue.weight is not None:
        spec["fairSharing"] = {"weight": f"{queue.weight:g}"}
    local = labelled(team, _KUEUE, "LocalQueue", team.name, spec={"clusterQueue": team.name})
    return [labelled(team, _KUEUE, "ClusterQueue", team.name, is_namespaced=False, spec=spec), local]


def _other_quota(name: str, limit: Quantity | None, cohort: str) -> Obj:
    if limit is not None:
        return {"name": name, "nominalQuota": str(limit)}
    amount = _UNLIMITED_BYTES if name.startswith(_BYTES) else _UNLIMITED
    # The teams with a limit would borrow it. Kueue accepts the field in a cohort only.
    return {"name": name, "nominalQuota": amount} | ({"lendingLimit": "0"} if cohort else {})


def flavor(team: Team) -> Obj:
    return {"apiVersion": _KUEUE, "kind": "ResourceFlavor", "metadata": {"name": team.spec.queue.flavor}}
