"""Represents a node group as eksctl, gcloud or Cluster Autoscaler describe it, and writes it as a NodePool."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal

import msgspec

from shoal.autoscale.nodes.instance_types import ON_DEMAND, SPOT
from shoal.autoscale.requirements.labels import CAPACITY_TYPE_LABEL, INSTANCE_TYPE_LABEL, ZONE_LABEL
from shoal.data.instances import catalog
from shoal.units.near_texts import near_texts

Provider = Literal["", "aws", "gcp"]
_CLASSES: Final[Mapping[Provider, tuple[str, str]]] = {
    "aws": ("karpenter.k8s.aws", "EC2NodeClass"),
    "gcp": ("karpenter.k8s.gcp", "GCENodeClass"),
    "": ("karpenter.k8s.aws", "EC2NodeClass"),
}


class NodeGroup(msgspec.Struct, frozen=True):
    name: str
    provider: Provider = ""
    instance_types: tuple[str, ...] = ()
    zones: tuple[str, ...] = ()
    is_spot: bool | None = None
    """None: nothing says it."""
    least: int = 0
    most: int | None = None
    labels: Mapping[str, str] = {}
    taints: tuple[Mapping[str, str], ...] = ()
    consolidate_after: str = ""
    weight: int = 0


class ImportedPools(msgspec.Struct, frozen=True):
    """NodePools as objects, and what they do not have of the original."""

    pools: tuple[dict[str, Any], ...] = ()
    warnings: tuple[str, ...] = ()


def node_pool(group: NodeGroup) -> dict[str, Any]:
    requirements: list[dict[str, Any]] = []
    if group.instance_types:
        requirements.append(_in(INSTANCE_TYPE_LABEL, group.instance_types))
    if group.zones:
        requirements.append(_in(ZONE_LABEL, group.zones))
    if group.is_spot is not None:
        requirements.append(_in(CAPACITY_TYPE_LABEL, (SPOT if group.is_spot else ON_DEMAND,)))
    api_group, kind = _CLASSES[group.provider]
    template: dict[str, Any] = {
        "spec": {
            "requirements": requirements,
            "nodeClassRef": {"group": api_group, "kind": kind, "name": "default"},
            "expireAfter": "Never",
        }
    }
    if group.labels:
        template["metadata"] = {"labels": dict(group.labels)}
    if group.taints:
        template["spec"]["taints"] = [dict(taint) for taint in group.taints]
    spec: dict[str, Any] = {"template": template}
    if group.weight:
        spec["weight"] = group.weight
    if group.most is not None:
        spec["limits"] = {"nodes": str(group.most)}
    spec["disruption"] = {"consolidateAfter": group.consolidate_after or "10m"}
    return {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": {"name": group.name},
        "spec": spec,
    }


def warnings_of(group: NodeGroup) -> list[str]:
    """What the NodePool of the group cannot express, or what is missing for it."""
    found = []
    if not group.provider:
        found.append("its cloud is not known: change nodeClassRef to the node class of your cloud")
    if group.least:
        found.append(f"a NodePool has no minimum: the {group.least} nodes that are always there are not kept")
    if not group.instance_types:
        found.append(f"the instance type is not known: add {INSTANCE_TYPE_LABEL} to its requirements")
    known = {one.type for one in catalog().instances}
    for name in group.instance_types:
        near = () if name in known else near_texts(name, sorted(known))
        if name not in known:
            meant = f"; did you mean {near[0]}?" if near else ", so its price is not known to plans"
            found.append(f"instance type {name} is not in the table of machines with GPUs{meant}")
    return [f"node group {group.name}: {each}" for each in found]


def _in(key: str, values: tuple[str, ...]) -> dict[str, Any]:
    return {"key": key, "operator": "In", "values": list(values)}
