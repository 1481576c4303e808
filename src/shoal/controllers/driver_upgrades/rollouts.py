"""Reads the upgrade policies: that of the ClusterPolicy, and those of NVIDIADrivers that have one of their own.

The nodes of an NVIDIADriver with a policy of its own are a rollout of their own: its limits hold among them, and a
failure among them stops the others of them alone. All other nodes follow the ClusterPolicy.

A node belongs to the NVIDIADriver that owns the DaemonSet of its driver pod. While that pod is replaced, the node
selectors of the DaemonSets say it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from shoal.client.cluster_policies import ranked_policies
from shoal.client.ecosystem_kinds import NVIDIA_DRIVERS
from shoal.client.informers import Informers
from shoal.client.item import Item
from shoal.client.kind import Kind
from shoal.controllers.driver_upgrades.reports import UpgradeReports
from shoal.operator.policy.nvidia_driver import read_nvidia_driver
from shoal.operator.policy.reading import read_cluster_policy
from shoal.operator.upgrades.nodes import UpgradeNode
from shoal.operator.upgrades.policy import UpgradePolicy, parse_upgrade_policy
from shoal.units.errors import UserError, Where


class Rollout(msgspec.Struct, frozen=True):
    policy: UpgradePolicy
    kind: Kind
    item: Item
    """The object that has the policy."""
    nodes: tuple[UpgradeNode, ...] = ()


class UpgradePolicies(msgspec.Struct, frozen=True):
    of_cluster: Rollout | None = None
    """None: no policy can be read."""
    of_drivers: Mapping[str, Rollout | None] = {}
    """By the name of the NVIDIADriver, of those with a policy of their own; None: it cannot be read."""

    @property
    def is_off(self) -> bool:
        found = (self.of_cluster, *self.of_drivers.values())
        return not any(one is not None and one.policy.is_automatic for one in found)

    def rollouts(self, nodes: Sequence[UpgradeNode], drivers: Mapping[str, str]) -> Iterator[Rollout]:
        """Those that upgrade drivers, with their nodes. `drivers`: the NVIDIADriver of each node that has one."""
        for name, found in {"": self.of_cluster, **self.of_drivers}.items():
            if found is not None and found.policy.is_automatic:
                own = [one for one in nodes if self._follows(drivers.get(one.name, "")) == name]
                yield msgspec.structs.replace(found, nodes=tuple(own))

    def _follows(self, driver: str) -> str:
        return driver if driver in self.of_drivers else ""


def read_upgrade_policies(informers: Informers, reports: UpgradeReports) -> UpgradePolicies:
    """Without those that are not to upgrade anything. What cannot be read is reported on its object."""
    ranked = ranked_policies(informers)
    if not ranked:
        return UpgradePolicies()
    kind, item = ranked[0]
    written = item.obj().get("spec")
    try:
        spec = read_cluster_policy(written, Where(obj=f"ClusterPolicy {item.name}")).spec
        # As it is written: without an upgrade policy, no driver is upgraded.
        place = Where(obj=f"ClusterPolicy {item.name}", path="spec.driver.upgradePolicy")
        policy = parse_upgrade_policy(((written or {}).get("driver") or {}).get("upgradePolicy"), place)
    except UserError as error:
        reports.refused(kind, item, str(error))
        return UpgradePolicies()
    reports.accepted(item)
    if not spec.driver.enabled or spec.sandbox_workloads.enabled:
        return UpgradePolicies()
    of_drivers = {}
    if spec.driver.use_nvidia_driver_crd:
        of_drivers = dict(_of_drivers(informers.known(NVIDIA_DRIVERS) or (), reports))
    return UpgradePolicies(Rollout(policy, kind, item), of_drivers)


def _of_drivers(items: Iterable[Item], reports: UpgradeReports) -> Iterator[tuple[str, Rollout | None]]:
    for item in items:
        obj = item.obj()
        try:
            found = read_nvidia_driver(item.name, obj["metadata"].get("creationTimestamp", ""), obj.get("spec"))
        except UserError as error:
            reports.refused(NVIDIA_DRIVERS, item, str(error))
            yield item.name, None
            continue
        reports.accepted(item)
        if found.upgrade_policy is not None:
            yield item.name, Rollout(found.upgrade_policy, NVIDIA_DRIVERS, item)
