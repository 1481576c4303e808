"""A management cluster of Cluster API in the embedded one: its kinds, and a controller that makes and removes Machines.

Its machines are those of a provider that has them at once, or when a test lets it.
"""

from __future__ import annotations

from typing import Any

from build.foreign_kinds import established
from build.small_clusters import SmallCluster
from shoal.autoscale.node_claims.claim import PRICE
from shoal.client.item import Item, Obj
from shoal.client.kind import DEFINITIONS, Kind
from shoal.client.port import Patch

DEPLOYMENTS = Kind("cluster.x-k8s.io", "v1beta2", "machinedeployments", "MachineDeployment")
POOLS = Kind("cluster.x-k8s.io", "v1beta2", "machinepools", "MachinePool")
MACHINES = Kind("cluster.x-k8s.io", "v1beta2", "machines", "Machine")
_OWNER_LABEL = {
    "MachineDeployment": "cluster.x-k8s.io/deployment-name",
    "MachinePool": "cluster.x-k8s.io/pool-name",
}
_CAPACITY = "capacity.cluster-autoscaler.kubernetes.io/"


async def install_kinds(cluster: SmallCluster) -> None:
    for kind in (DEPLOYMENTS, POOLS, MACHINES):
        await cluster.create(DEFINITIONS, _definition(kind))
    await established(cluster)


class ClusterApiController:
    """Implements what Shoal uses of Cluster API. It is also the client of the tests: it acts after each change."""

    def __init__(self, cluster: SmallCluster) -> None:
        self._cluster = cluster
        self._inner = cluster.api
        self.acts_at_once = True
        self.has_infrastructure = True
        self.before_patch: Obj = {}
        """What somebody else changes in a group before the next change of Shoal."""
        self.removed: list[str] = []
        self._made = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    async def patch(self, kind: Kind, namespace: str, name: str, patch: Patch, subresource: str = "") -> Item:
        if kind in {DEPLOYMENTS, POOLS} and self.before_patch:
            await self._cluster.patch(kind, name, self.before_patch)
        item = await self._inner.patch(kind, namespace, name, patch, subresource)
        if self.acts_at_once and kind in {DEPLOYMENTS, POOLS}:
            await self.act()
        return item

    async def act(self) -> None:
        for kind in (DEPLOYMENTS, POOLS):
            for item in (await self._inner.list(kind)).items:
                await self._bring_to_size(kind, item.obj())
        for raw in await self._cluster.all(MACHINES):
            if self.has_infrastructure and not raw["spec"].get("providerID"):
                name = raw["metadata"]["name"]
                await self._cluster.patch(MACHINES, name, {"spec": {"providerID": f"test:///{name}"}})

    async def _bring_to_size(self, kind: Kind, group: Obj) -> None:
        labels = {
            _OWNER_LABEL[kind.name]: group["metadata"]["name"],
            "cluster.x-k8s.io/cluster-name": group["spec"]["clusterName"],
        }
        own = [
            each for each in await self._cluster.all(MACHINES) if labels.items() <= each["metadata"]["labels"].items()
        ]
        wanted = group["spec"].get("replicas", 0)
        for _ in range(wanted - len(own)):
            self._made += 1
            metadata = {"name": f"{group['metadata']['name']}-{self._made:03}", "labels": labels}
            await self._cluster.create(MACHINES, {"metadata": metadata, "spec": {}})
        marked = "cluster.x-k8s.io/delete-machine"
        # Those that are marked first, then, as with the policy Newest, the last ones.
        own.sort(key=lambda each: each["metadata"]["name"], reverse=True)
        own.sort(key=lambda each: marked not in (each["metadata"].get("annotations") or {}))
        for each in own[: max(len(own) - wanted, 0)]:
            self.removed.append(each["metadata"]["name"])
            await self._cluster.delete(MACHINES, each["metadata"]["name"])


def machine_deployment(
    name: str,
    *,
    instance_type: str = "p5.48xlarge",
    zone: str = "zone-a",
    replicas: int = 0,
    most: int = 10,
    annotations: dict[str, str] | None = None,
) -> Obj:
    described = {
        "cluster.x-k8s.io/cluster-api-autoscaler-node-group-min-size": "0",
        "cluster.x-k8s.io/cluster-api-autoscaler-node-group-max-size": str(most),
        f"{_CAPACITY}cpu": "192",
        f"{_CAPACITY}memory": "2Ti",
        f"{_CAPACITY}gpu-type": "nvidia.com/gpu",
        f"{_CAPACITY}gpu-count": "8",
        f"{_CAPACITY}labels": f"node.kubernetes.io/instance-type={instance_type}",
        PRICE: "98.32",
    }
    return {
        "metadata": {"name": name, "annotations": described | (annotations or {})},
        "spec": {
            "clusterName": "train",
            "replicas": replicas,
            "template": {"spec": {"clusterName": "train", "failureDomain": zone}},
        },
    }


def _definition(kind: Kind) -> Obj:
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": kind.version, "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    return {
        "metadata": {"name": f"{kind.plural}.{kind.group}"},
        "spec": {
            "group": kind.group,
            "scope": "Namespaced",
            "names": {"plural": kind.plural, "kind": kind.name},
            "versions": [version],
        },
    }
