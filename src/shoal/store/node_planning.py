"""Brings the objects and the engine's facts of a cluster together to the input of a planning of nodes, and searches for
nodes to remove.

The commands and the controller use the same functions, so that a plan that a user reads is the one that is carried out.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from msgspec.structs import replace

from shoal.api.node import Node
from shoal.api.pod import Pod
from shoal.api.stated_capacity import with_stated_capacity
from shoal.autoscale.disruption.candidates import DisruptableNode, offering_of
from shoal.autoscale.disruption.decision import DisruptionDecision, DisruptionMethod
from shoal.autoscale.disruption.lost_work import LostWork
from shoal.autoscale.disruption.searches import DisruptionInput, NodeDisruption
from shoal.autoscale.nodes.before_provisioning import FreeingPolicy
from shoal.autoscale.nodes.instance_types import InstanceType
from shoal.autoscale.nodes.interruption_risk import RESTART_S, with_rates
from shoal.autoscale.nodes.plan import NodePlan, PlanningSettings
from shoal.autoscale.nodes.planning_input import PlanningInput
from shoal.autoscale.nodes.pools import NodePool
from shoal.autoscale.nodes.seen_machines import SeenMachines
from shoal.engine.cluster import Cluster
from shoal.store.inventory import Inventory
from shoal.store.node_scaling import (
    ScalingNodes,
    ScalingObjects,
    capacity_of_classes,
    limits_of,
    scaling_objects,
    zones_of,
)
from shoal.store.planned_devices import KnownDevices, planned_devices

METHODS: tuple[DisruptionMethod, ...] = ("expiry", "emptiness", "drift", "multi", "single")
"""The order in which nodes to remove are searched for; the first search that finds some ends it."""

EXPECTED: Final = "-expected-"
"""In the names of pods that are not created yet."""

TypesOf = Callable[[NodePool, Sequence[str]], tuple[InstanceType, ...]]
"""The instance types of a pool in the zones of the cluster."""


@dataclass(slots=True)
class NodeScaling:
    """What is decided about the nodes of a cluster."""

    objects: ScalingObjects
    types: Mapping[str, tuple[InstanceType, ...]]
    nodes: tuple[DisruptableNode, ...]
    plan: NodePlan = field(default_factory=NodePlan)
    removal: DisruptionDecision | None = None
    kept: Mapping[str, str] = field(default_factory=dict)
    """Nodes that stay, and why."""
    unplanned: Sequence[str] = ()
    """Pending pods without an object, for which nothing can be planned."""
    workloads_held: int = 0
    """Workloads that wait in queues for quota."""
    searches: NodeDisruption | None = None
    capacity: Sequence[str] = ()
    """What becomes of the requests that only check for capacity, and of the buffers."""


@dataclass(frozen=True, slots=True)
class ScalingOptions:
    """How nodes are planned."""

    types_of: TypesOf
    now: datetime
    settings: PlanningSettings = field(default_factory=PlanningSettings)
    spot_to_spot: bool = False
    removes: bool = True
    protected: Collection[str] = ()
    """Nodes that are not removed: pods that wait will be placed on them."""
    freeing: FreeingPolicy = field(default_factory=FreeingPolicy)
    """What comes before provisioning."""
    devices: KnownDevices = field(default_factory=KnownDevices)
    """Of the last planning, where there was one."""
    machines: SeenMachines = field(default_factory=SeenMachines)


def undecided_scaling(
    inventory: Inventory,
    cluster: Cluster,
    waiting: Mapping[str, Pod],
    held: Mapping[str, str],
    options: ScalingOptions,
) -> tuple[NodeScaling, PlanningInput]:
    """What a planning depends on after the scheduler has decided; nothing is planned yet."""
    objects = scaling_objects(inventory)
    zones = zones_of(inventory)
    options.machines.note((each.value for each in inventory.of(Node)), options.now.timestamp())
    types = {
        pool.name: options.machines.applied(pool, with_rates(pool, options.types_of(pool, zones)))
        for pool in objects.pools
    }
    classes = capacity_of_classes(inventory)
    waiting = {key: with_stated_capacity(pod, classes) for key, pod in waiting.items()}
    nodes = _nodes(inventory, objects, types, cluster, waiting, options.now)
    options.devices.begin(options.now.timestamp())
    devices, stripped = planned_devices(
        inventory, objects.pools, types, [node.existing for node in nodes], list(waiting.values()), options.devices
    )
    if stripped:
        waiting = {key: stripped.get(key, pod) for key, pod in waiting.items()}
        nodes = tuple(_with_pods(node, stripped) for node in nodes)
    given, unplanned = _planning_input(objects, types, nodes, cluster, waiting, held, options.settings)
    given = replace(given, devices=devices)
    return NodeScaling(objects, types, nodes, unplanned=unplanned), given


def _nodes(
    inventory: Inventory,
    objects: ScalingObjects,
    types: Mapping[str, tuple[InstanceType, ...]],
    cluster: Cluster,
    waiting: Mapping[str, Pod],
    now: datetime,
) -> tuple[DisruptableNode, ...]:
    by_name = {pool: {one.name: one for one in each} for pool, each in types.items()}
    reader = ScalingNodes(objects, by_name, now)
    classes = capacity_of_classes(inventory)
    present = (with_stated_capacity(each.value, classes) for each in inventory.of(Pod))
    known = {pod.metadata.key: pod for pod in present} | dict(waiting)
    on_node: dict[str, list[Pod]] = {}
    for key, allocation in cluster.pods.items():
        if key in known:
            on_node.setdefault(cluster.names[allocation.row], []).append(known[key])
    nodes = [reader.node(each.value, on_node.get(each.value.metadata.name, ())) for each in inventory.of(Node)]
    registered = frozenset(each.value.spec.provider_id for each in inventory.of(Node))
    return (*nodes, *reader.ordered(registered))


def _with_pods(node: DisruptableNode, changed: Mapping[str, Pod]) -> DisruptableNode:
    pods = tuple(changed.get(pod.metadata.key, pod) for pod in node.existing.pods)
    return replace(node, existing=replace(node.existing, pods=pods))


def _planning_input(
    objects: ScalingObjects,
    types: Mapping[str, tuple[InstanceType, ...]],
    nodes: Sequence[DisruptableNode],
    cluster: Cluster,
    waiting: Mapping[str, Pod],
    held: Mapping[str, str],
    settings: PlanningSettings,
) -> tuple[PlanningInput, list[str]]:
    pods = [waiting[key] for key in cluster.pending.in_order() if key in waiting]
    unplanned = [key for key in cluster.pending.in_order() if key not in waiting]
    gangs = {key: cluster.pending[key].who.group for key in cluster.pending.in_order()}
    gangs |= {key: allocation.who.group for key, allocation in cluster.pods.items()}
    gangs = {key: gang for key, gang in gangs.items() if gang}
    together: dict[str, str] = {}
    for gang in cluster.gangs:
        if gang.facts is None:
            continue
        if gang.facts.requirement.required:
            together[gang.name] = gang.facts.requirement.required
        members = [waiting[key] for key in gang.waiting if key in waiting]
        pods += _missing(members, gang.facts.minimum - len(gang.running), gang.name, gangs)
    given = PlanningInput(
        pools=objects.pools,
        types=types,
        nodes=tuple(node.existing for node in nodes),
        pods=tuple(pods),
        daemon_sets=objects.daemon_sets,
        volumes=objects.volumes,
        namespace_labels=objects.namespace_labels,
        gangs=gangs,
        together=together,
        forbidden=held,
        settings=settings,
    )
    return given, unplanned


def _missing(members: Sequence[Pod], needed: int, gang: str, gangs: dict[str, str]) -> list[Pod]:
    """Pods like its last one, for those that a gang needs and that are not created yet."""
    made: list[Pod] = []
    for number in range(max(needed - len(members), 0) if members else 0):
        meta = members[-1].metadata
        pod = replace(members[-1], metadata=replace(meta, name=f"{meta.name}{EXPECTED}{number}", uid=""))
        gangs[pod.metadata.key] = gang
        made.append(pod)
    return made


def _lost_work(cluster: Cluster, now_s: float) -> LostWork:
    """What pods with GPUs did since their last checkpoints, and the time to start again."""
    return LostWork(
        {
            key: allocation.who.lost_s(now_s) + RESTART_S
            for key, allocation in cluster.pods.items()
            if allocation.ask.asks_devices and allocation.who.since_s
        }
    )


@dataclass(frozen=True, slots=True)
class FoundRemoval:
    """What the searches for nodes to remove have found."""

    searches: NodeDisruption
    decision: DisruptionDecision | None
    kept: Mapping[str, str]
    """Nodes that stay, and why."""


def removal_input(
    scaling: NodeScaling, given: PlanningInput, inventory: Inventory, cluster: Cluster, options: ScalingOptions
) -> DisruptionInput:
    """What the searches for nodes to remove depend on."""
    pods = [each.value for each in inventory.of(Pod)]
    return DisruptionInput(
        # A replacement is one node, which has no cheaper division.
        planning=replace(given, settings=replace(given.settings, packing="Karpenter")),
        nodes=tuple(node for node in scaling.nodes if node.existing.is_managed and node.name not in options.protected),
        now=options.now,
        limits=limits_of(inventory, pods),
        lost_work=_lost_work(cluster, options.now.timestamp()),
        spot_to_spot=options.spot_to_spot,
    )


def found_removal(given: DisruptionInput) -> FoundRemoval:
    """Which nodes would be removed, and why the others stay."""
    searches = NodeDisruption(given)
    kept: dict[str, str] = {}
    for method in METHODS:
        decision = searches.decide(method)
        kept |= {name: why for name, why in decision.kept.items() if method != "drift"}
        if decision.action != "none":
            left = {name: why for name, why in kept.items() if name not in decision.nodes}
            return FoundRemoval(searches, decision, left)
    return FoundRemoval(searches, None, kept)


def search_removal(
    scaling: NodeScaling, given: PlanningInput, inventory: Inventory, cluster: Cluster, options: ScalingOptions
) -> None:
    """Adds to the scaling which nodes would be removed, and why the others stay."""
    found = found_removal(removal_input(scaling, given, inventory, cluster, options))
    scaling.searches, scaling.removal, scaling.kept = found.searches, found.decision, found.kept


def price_per_hour(node: DisruptableNode, types: Mapping[str, InstanceType]) -> float:
    """What a node that exists is billed; zero where it is not known."""
    offering = offering_of(node.existing, types.get(node.existing.instance_type))
    return 0.0 if offering is None else offering.price
