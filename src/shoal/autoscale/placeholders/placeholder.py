"""Represents a placeholder pod: one planned node, described so that another autoscaler provisions this machine.

It selects pool, instance type, zone and capacity type, and asks for all GPUs of the machine and for what the planned
pods ask of cpu and memory. Two of them share no node. No scheduler serves its scheduler name, so it never runs, never
takes a GPU, and never competes with the pods that wait; therefore it needs no PriorityClass either.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime
from hashlib import blake2b
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from shoal.api.meta import ObjectMeta
from shoal.api.node import Node
from shoal.api.pod import Pod
from shoal.api.topology import HOSTNAME_LABEL
from shoal.autoscale.nodes.catalog import node_of_type, quantities_of
from shoal.autoscale.nodes.existing_nodes import ExistingNode
from shoal.autoscale.nodes.instance_types import InstanceType
from shoal.autoscale.nodes.plan import NewNode
from shoal.autoscale.nodes.planning_input import PlanningInput
from shoal.autoscale.requirements.labels import CAPACITY_TYPE_LABEL, INSTANCE_TYPE_LABEL, POOL_LABEL, ZONE_LABEL
from shoal.engine.from_api import ask_of_pod

PLACEHOLDER: Final = "shoal.dev/placeholder"
"""The label of placeholder pods."""
WORKLOADS: Final = "shoal.dev/placeholder-for"
"""The annotation with the workloads and how many of their pods the node will take."""
SCHEDULER: Final = "shoal-placeholder"
"""A scheduler name that no scheduler serves."""
WAITS_FOR_NODES: Final = "WaitsForNodes"
"""The reason in the condition `PodScheduled` of the pods that wait: other autoscalers act on `Unschedulable` pod by
pod, and would provision for them beside their placeholders."""
_OFFER: Final = (POOL_LABEL, INSTANCE_TYPE_LABEL, ZONE_LABEL, CAPACITY_TYPE_LABEL)
_IMAGE: Final = "registry.k8s.io/pause:3.10"
"""Is never pulled."""

Raw = Mapping[str, Any]


class Placeholder(msgspec.Struct, frozen=True):
    name: str
    labels: Mapping[str, str]
    """Of the node that it requests: pool, instance type, zone and capacity type."""
    workloads: Mapping[str, int]
    """How many pods the node will take, by gang or by the pod's namespace and name."""
    created_s: float
    uid: str = ""

    @property
    def offer(self) -> tuple[str, str, str]:
        """Instance type, zone and capacity type."""
        return self.labels[INSTANCE_TYPE_LABEL], self.labels[ZONE_LABEL], self.labels[CAPACITY_TYPE_LABEL]

    @property
    def pool(self) -> str:
        return self.labels[POOL_LABEL]


def placeholder_of(raw: Raw) -> Placeholder | None:
    """None if the pod was changed so that it describes no node."""
    meta, spec = raw["metadata"], raw.get("spec") or {}
    labels: dict[str, str] = spec.get("nodeSelector") or {}
    try:
        workloads = msgspec.json.decode((meta.get("annotations") or {}).get(WORKLOADS, ""), type=dict[str, int])
    except msgspec.DecodeError:
        return None
    if not workloads or not all(labels.get(key) for key in _OFFER):
        return None
    created_s = datetime.fromisoformat(meta["creationTimestamp"]).timestamp()
    return Placeholder(meta["name"], {key: labels[key] for key in _OFFER}, workloads, created_s, str(meta["uid"]))


def new_placeholder(node: NewNode, given: PlanningInput, now_s: float) -> Placeholder:
    """Equal plans have equal names, so a request whose answer was lost is not carried out twice."""
    labels = dict(
        zip(_OFFER, (node.pool, node.launch.name, node.offering.zone, node.offering.capacity_type), strict=True)
    )
    workloads = dict(Counter(given.gangs.get(key, key) for key in node.pods))
    digest = blake2b(msgspec.json.encode([labels, sorted(node.pods)]), digest_size=6).hexdigest()
    return Placeholder(f"{node.pool[:200]}-{digest}", labels, workloads, now_s)


def ordered_node(placeholder: Placeholder, given: PlanningInput) -> ExistingNode | None:
    """The node that the placeholder requests, as one that starts. None if its pool or type is not known any more."""
    pool = next((each for each in given.pools if each.name == placeholder.pool), None)
    name = placeholder.labels[INSTANCE_TYPE_LABEL]
    instance = next((each for each in given.types.get(placeholder.pool, ()) if each.name == name), None)
    if pool is None or instance is None:
        return None
    node = node_of_type(f"placeholder/{placeholder.name}", pool, instance)
    labels = {**node.metadata.labels, **placeholder.labels}
    meta: ObjectMeta = replace(node.metadata, labels=labels)
    made: Node = replace(node, metadata=meta)
    return ExistingNode(made, is_initialized=False)


def placeholder_object(
    placeholder: Placeholder, namespace: str, pool: Raw, instance: InstanceType, pods: Sequence[Pod]
) -> dict[str, Any]:
    """`pool`: the NodePool, which owns it. `pods`: those that the node will take."""
    wanted: Counter[str] = Counter()
    for pod in pods:
        wanted.update({name: amount for name, amount in ask_of_pod(pod).requests if name in ("cpu", "memory")})
    # The machine's own GPUs, which the other autoscaler knows, whatever the pool makes of them.
    wanted.update({name: amount for name, amount in instance.capacity.items() if name.endswith("/gpu") and amount})
    resources = {name: str(each) for name, each in quantities_of(wanted).items()}
    taints = ((pool.get("spec") or {}).get("template") or {}).get("spec", {}).get("taints") or ()
    alone = {"labelSelector": {"matchLabels": {PLACEHOLDER: "true"}}, "topologyKey": HOSTNAME_LABEL}
    return {
        "metadata": {
            "name": placeholder.name,
            "namespace": namespace,
            "labels": {PLACEHOLDER: "true", "app.kubernetes.io/managed-by": "shoal"},
            "annotations": {WORKLOADS: msgspec.json.encode(placeholder.workloads, order="sorted").decode()},
            "ownerReferences": [
                {
                    "apiVersion": str(pool.get("apiVersion") or "karpenter.sh/v1"),
                    "kind": "NodePool",
                    "name": placeholder.pool,
                    "uid": str(pool["metadata"]["uid"]),
                }
            ],
        },
        "spec": {
            "schedulerName": SCHEDULER,
            "nodeSelector": dict(placeholder.labels),
            "tolerations": [{"key": each["key"], "operator": "Exists", "effect": each["effect"]} for each in taints],
            "affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [alone]}},
            "terminationGracePeriodSeconds": 0,
            "automountServiceAccountToken": False,
            "enableServiceLinks": False,
            "securityContext": {"runAsNonRoot": True, "runAsUser": 65535, "seccompProfile": {"type": "RuntimeDefault"}},
            "containers": [
                {
                    "name": "placeholder",
                    "image": _IMAGE,
                    "resources": {"requests": resources, "limits": resources},
                    "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
                }
            ],
        },
    }
