"""Pools, instance types, nodes and pods for tests of node planning, each in one short call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from shoal.api.decode import convert
from shoal.api.node import Node
from shoal.api.pod import Pod
from shoal.api.resources import amounts
from shoal.api.wire import to_quantity
from shoal.api.workloads import DaemonSet
from shoal.autoscale.nodes.existing_nodes import ExistingNode
from shoal.autoscale.nodes.instance_types import InstanceType, Offering
from shoal.autoscale.nodes.plan import NodePlan
from shoal.autoscale.nodes.planner import plan_nodes
from shoal.autoscale.nodes.planning_input import PlanningInput
from shoal.autoscale.nodes.pool_reading import pool_of
from shoal.autoscale.nodes.pools import NodePool
from shoal.units.errors import Where

ZONES = ("a", "b")


def machine(
    name: str,
    cpu: int,
    *,
    price: float,
    gpus: int = 0,
    spot: float | None = None,
    zones: Sequence[str] = ZONES,
    labels: Mapping[str, str] | None = None,
    interruptions: float = 0.0,
) -> InstanceType:
    """A type with so many cores, 4 GiB for each, on demand and, if it has a price, on spot with so many interruptions
    per hour.
    """
    capacity = {"cpu": cpu * 1000, "memory": cpu * 4 * 2**30, "pods": 110}
    if gpus:
        capacity["nvidia.com/gpu"] = gpus
    prices = {"on-demand": price} | ({} if spot is None else {"spot": spot})
    own = {"node.kubernetes.io/instance-type": name, "kubernetes.io/arch": "amd64", **(labels or {})}
    return InstanceType(
        name,
        capacity,
        labels={key: (value,) for key, value in own.items()},
        offerings=tuple(
            Offering(zone, kind, each, interruptions_per_hour=interruptions if kind == "spot" else 0.0)
            for zone in zones
            for kind, each in prices.items()
        ),
    )


def pool(name: str = "default", *requirements: tuple[str, str, Sequence[str]], **spec: Any) -> NodePool:
    """A pool of v1; keywords are fields of its spec, and `taints`, `startupTaints`, `labels` of its template."""
    template = {
        "metadata": {"labels": spec.pop("labels", {})},
        "spec": {
            "requirements": [{"key": key, "operator": op, "values": list(values)} for key, op, values in requirements],
            "taints": spec.pop("taints", []),
            "startupTaints": spec.pop("startupTaints", []),
        },
    }
    return pool_of({"metadata": {"name": name}, "spec": {"template": template, **spec}}, has_defaults=False)


def pod(name: str, cpu: str = "1", *, gpus: int = 0, labels: Mapping[str, str] | None = None, **spec: Any) -> Pod:
    """A pod; keywords are fields of its spec, but for `annotations`, `owner` and `start` (a time)."""
    requests = {"cpu": cpu} | ({"nvidia.com/gpu": str(gpus)} if gpus else {})
    owner = spec.pop("owner", "ReplicaSet")
    start = spec.pop("start", None)
    raw = {
        "metadata": {
            "name": name,
            "namespace": spec.pop("namespace", "default"),
            "labels": dict(labels or {}),
            "annotations": spec.pop("annotations", {}),
            "ownerReferences": [{"kind": owner, "name": "owner", "controller": True}],
        },
        "spec": {"containers": [{"name": "main", "resources": {"requests": requests, "limits": requests}}], **spec},
        "status": {} if start is None else {"phase": "Running", "startTime": start},
    }
    return convert(raw, Pod, Where(obj=name))


def standing(
    name: str,
    kind: InstanceType,
    *pods: Pod,
    zone: str = "a",
    capacity_type: str = "on-demand",
    pool: str = "default",
    labels: Mapping[str, str] | None = None,
    **changed: Any,
) -> ExistingNode:
    """A node of a pool with these pods; keywords are `taints`, `allocatable`, `annotations` and fields of the node."""
    allocatable = changed.pop("allocatable", None)
    written = {key: f"{amount}m" if key == "cpu" else str(amount) for key, amount in kind.allocatable().items()}
    node = {
        "metadata": {
            "name": name,
            "labels": {
                **{key: values[0] for key, values in kind.labels.items()},
                "kubernetes.io/hostname": name,
                "topology.kubernetes.io/zone": zone,
                "karpenter.sh/capacity-type": capacity_type,
                "karpenter.sh/nodepool": pool,
                **(labels or {}),
            },
            "annotations": changed.pop("annotations", {}),
        },
        "spec": {"taints": changed.pop("taints", [])},
        "status": {"capacity": written, "allocatable": written if allocatable is None else allocatable},
    }
    return ExistingNode(convert(node, Node, Where(obj=name)), tuple(pods), **changed)


def daemon_set(name: str, cpu: str, **spec: Any) -> DaemonSet:
    container = {"name": "main", "resources": {"requests": {"cpu": cpu}}}
    raw = {
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"template": {"spec": {"containers": [container], **spec}}},
    }
    return convert(raw, DaemonSet, Where(obj=name))


def world(
    types: Sequence[InstanceType],
    pods: Sequence[Pod] = (),
    *,
    pools: Sequence[NodePool] | None = None,
    nodes: Sequence[ExistingNode] = (),
    **other: Any,
) -> PlanningInput:
    """All pools may use all types."""
    chosen = tuple(pools) if pools is not None else (pool(),)
    return PlanningInput(
        pools=chosen,
        types={each.name: tuple(types) for each in chosen},
        nodes=tuple(nodes),
        pods=tuple(pods),
        **other,
    )


def planned(types: Sequence[InstanceType], pods: Sequence[Pod], **other: Any) -> NodePlan:
    return plan_nodes(world(types, pods, **other))


def homes(plan: NodePlan) -> list[tuple[str, tuple[str, ...]]]:
    """The types that are launched, with the names of their pods."""
    return sorted(
        (node.launch.name, tuple(sorted(key.partition("/")[2] for key in node.pods))) for node in plan.new_nodes
    )


def base(**quantities: str) -> dict[str, int]:
    return amounts({name: to_quantity(value) for name, value in quantities.items()})
