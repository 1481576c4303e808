"""All objects of a team, in the order in which they are applied."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import msgspec

from shoal.policy.advice import Obj
from shoal.policy.tenants.access import access_objects
from shoal.policy.tenants.grants import QuotaGrant, encoded
from shoal.policy.tenants.labels import BUDGET, BUDGET_ENFORCED, GRANT, labels
from shoal.policy.tenants.network import network_policies
from shoal.policy.tenants.priorities import PRIORITIES, priority_class, workload_priority_class
from shoal.policy.tenants.queue_grants import nominal_quotas
from shoal.policy.tenants.quotas import (
    device_amounts,
    flavor,
    hard_items,
    limit_range,
    other_resources,
    queue_objects,
    quota_item,
    resource_quotas,
)
from shoal.policy.tenants.team import Team

_ADMISSION = "admission.shoal.dev/"
_ISOLATING = ("VisibleDevicesByHand", "GpuWithoutRequest", "PrivilegedContainer")
_PSA = "pod-security.kubernetes.io/"


class TeamSurroundings(msgspec.Struct, frozen=True):
    """What the objects of a team depend on in its cluster."""

    advertised: Collection[str] = ()
    """Names of the resources that nodes advertise."""
    device_classes: Collection[str] = ()
    granted: Mapping[str, int] = {}
    """Amounts of devices that replace those of the team for a time."""
    grant: QuotaGrant | None = None
    """What the ResourceQuota has, also if its time is over and it is not ended yet."""


def shared_objects(team: Team) -> list[Obj]:
    """Those that several teams use: created if they are missing, and never deleted with a team."""
    return [
        *(priority_class(name) for name in PRIORITIES),
        *(workload_priority_class(name) for name in PRIORITIES),
        flavor(team),
    ]


def team_objects(team: Team, around: TeamSurroundings) -> list[Obj]:
    devices = device_amounts(team, around.advertised, around.granted)
    quota, denied = resource_quotas(team, hard_items(team, devices, around.device_classes))
    if around.grant is not None:
        quota["metadata"]["annotations"] = {GRANT: encoded(_renewed(around.grant, team, around))}
    return [
        _namespace(team),
        quota,
        denied,
        limit_range(team),
        *network_policies(team),
        *access_objects(team),
        *_queue_objects(team, devices, around),
    ]


def _renewed(grant: QuotaGrant, team: Team, around: TeamSurroundings) -> QuotaGrant:
    """With what the team has now as what holds again at its end."""
    devices = device_amounts(team, around.advertised, {})
    items = hard_items(team, devices, around.device_classes)
    former = {item: items[item] for name in grant.devices if (item := quota_item(name)) in items}
    queue = next((obj for obj in _queue_objects(team, devices, around) if obj["kind"] == "ClusterQueue"), {})
    # The queue gets these during the grant only.
    only_granted = {name: "0" for name in grant.devices if not devices.get(name)}
    flavors = nominal_quotas(queue, grant.devices)
    flavors[team.spec.queue.flavor] = {**only_granted, **flavors.get(team.spec.queue.flavor, {})}
    return msgspec.structs.replace(grant, former=former, former_queue=flavors)


def _queue_objects(team: Team, devices: Mapping[str, int], around: TeamSurroundings) -> list[Obj]:
    return queue_objects(team, devices, other_resources(around.advertised, devices))


def _rules(team: Team) -> dict[str, str]:
    """The admission rules that the isolation needs. They hold where the policies of the rules are installed."""
    found = {f"{_ADMISSION}{rule}": "enforce" for rule in _ISOLATING}
    most = team.spec.quota.gpus_per_pod
    if most is not None:
        found |= {f"{_ADMISSION}OverNamespaceMaximum": "enforce", f"{_ADMISSION}max-gpus-per-pod": str(most)}
    return found


def _namespace(team: Team) -> Obj:
    level = team.spec.pod_security
    security = {f"{_PSA}{mode}": level for mode in ("enforce", "warn", "audit")}
    meta: Obj = {"name": team.namespace, "labels": {**labels(team.name), **security, **_rules(team)}}
    if team.spec.budget_per_month is not None:
        meta["annotations"] = {BUDGET: f"{team.spec.budget_per_month:f}"}
        if team.spec.budget_enforced:
            meta["annotations"][BUDGET_ENFORCED] = team.spec.budget_enforced
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": meta}
