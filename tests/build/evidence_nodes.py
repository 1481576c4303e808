"""Nodes, asks and bound pods in few words, for tests of evidence."""

from __future__ import annotations

from shoal.api.node_affinity import NodeRule, node_rule
from shoal.api.taints import Taint, Toleration
from shoal.engine.asks import Ask, HostPort
from shoal.engine.cluster import Cluster
from shoal.engine.device_demand import Demand
from shoal.engine.events import NodeFacts, NodeSeen, PodBound
from shoal.engine.intake import Intake

DEDICATED = Taint("dedicated", "NoSchedule", "training")
CORDON = Toleration("node.kubernetes.io/unschedulable", "Exists")


def node(
    name: str,
    cpu: int = 8000,
    gpus: int = 0,
    model: str = "",
    pods: int = 10,
    taints: tuple[Taint, ...] = (),
    cordoned: bool = False,
    zone: str = "a",
    **extended: int,
) -> NodeFacts:
    amounts = {"cpu": cpu, "memory": 1000, "pods": pods, **extended}
    return NodeFacts(name, amounts, {"zone": zone}, taints, cordoned, gpus, model)


def ask(
    cpu: int = 0,
    devices: Demand | None = None,
    models: str = "",
    zone: str = "",
    node_name: str = "",
    ports: tuple[HostPort, ...] = (),
    tolerations: tuple[Toleration, ...] = (),
    **requests: int,
) -> Ask:
    amounts = {**requests, **({"cpu": cpu} if cpu else {})}
    return Ask(
        requests=tuple(sorted(amounts.items())),
        devices=devices,
        gpu_models=frozenset(models.split("|")) if models else frozenset(),
        nodes=node_rule({"zone": zone}, None) if zone else NodeRule(),
        tolerations=tolerations,
        host_ports=ports,
        node_name=node_name,
    )


def bound(node_name: str, ask: Ask, key: str = "") -> PodBound:
    return PodBound(key or node_name, ask, node_name)


def fleet(*nodes: NodeFacts, pods: tuple[PodBound, ...] = ()) -> Cluster:
    intake = Intake(Cluster())
    for each in nodes:
        intake.apply(NodeSeen(each))
    for pod in pods:
        intake.apply(pod)
    return intake.cluster
