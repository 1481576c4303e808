"""Plans the nodes of a cluster as its objects describe it: first the scheduler decides, then what is left is planned.

Pods that the scheduler can place on present nodes cause nothing; pods that a queue or a gate holds cause nothing
either. For the others nodes are planned, a gang as a whole with the pods that it will have. The planned nodes are then
rows of the scheduler's facts: what it would not place on them is no reason to provision, and is taken out of the plan.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import replace as replace_options

from msgspec.structs import replace

from shoal.api.decode import Document
from shoal.api.node import Node
from shoal.api.pod import Pod
from shoal.api.topology import HOSTNAME_LABEL
from shoal.autoscale.capacity_buffers.room import room_for_buffers
from shoal.autoscale.nodes.bookings import on_present_nodes, with_bookings
from shoal.autoscale.nodes.catalog import node_of_type
from shoal.autoscale.nodes.existing_nodes import ExistingNode
from shoal.autoscale.nodes.plan import NewNode, NodePlan, PodRefusal
from shoal.autoscale.nodes.planned_devices import row_name
from shoal.autoscale.nodes.planner import NodePlanner
from shoal.autoscale.nodes.planning_input import PlanningInput, pod_key
from shoal.autoscale.nodes.pools import NodePool
from shoal.autoscale.provisioning_requests.progress import found_condition
from shoal.autoscale.provisioning_requests.request import PROVISIONED
from shoal.autoscale.requirements.labels import CAPACITY_TYPE_LABEL, ZONE_LABEL
from shoal.engine.events import NodeSeen
from shoal.engine.from_api import node_facts_of
from shoal.sim.queue_rounds import QueueRecord
from shoal.sim.rounds import Rounds
from shoal.store.freed_capacity import freed_capacity
from shoal.store.inventory import Inventory
from shoal.store.kept_capacity import KeptCapacity, kept_capacity
from shoal.store.node_planning import EXPECTED, NodeScaling, ScalingOptions, search_removal, undecided_scaling
from shoal.store.node_scaling import ScalingObjects


def decided_scaling(
    documents: Sequence[Document],
    rounds: Rounds,
    waiting: Mapping[str, Pod],
    held: Mapping[str, str],
    options: ScalingOptions,
) -> NodeScaling:
    """`waiting`: the pods that the scheduler decides about; `held`: the pods that something holds back, and why."""
    records = rounds.run()
    inventory = Inventory(documents)
    scaling, given = undecided_scaling(inventory, rounds.cluster, waiting, held, options)
    kept = kept_capacity(inventory, options.now)
    given, _ = with_bookings(given, [pod for each in kept.demand.booked for pod in each.pods])
    freed = freed_capacity(rounds.cluster, given, options.freeing, options.now)
    given = kept.demand.added_to(freed.added_to(given))
    last = records[-1] if records else None
    if isinstance(last, QueueRecord):
        scaling.workloads_held = len(last.waiting)
    if given.pods or held:
        scaling.plan = _confirmed(NodePlanner(given).plan(), scaling.objects, rounds, given, kept.owners)
    room = _with_capacity(scaling, given, kept)
    # Nodes are not removed while others are provisioned: the next decision would provision them again.
    if options.removes and not scaling.plan.new_nodes and not freed.is_holding:
        homes = {node.name: kept.owners[key] for node in room.nodes for key in _kept_on(node, kept)}
        needed = frozenset({*options.protected, *scaling.plan.placed.values(), *homes})
        search_removal(scaling, room, inventory, rounds.cluster, replace_options(options, protected=needed))
        scaling.kept = {**scaling.kept, **{name: f"capacity is kept on it for {who}" for name, who in homes.items()}}
    return scaling


def _kept_on(node: ExistingNode, kept: KeptCapacity) -> list[str]:
    return [key for pod in node.pods if (key := pod_key(pod)) in kept.owners]


def _with_capacity(scaling: NodeScaling, given: PlanningInput, kept: KeptCapacity) -> PlanningInput:
    """Adds to the plan the capacity for requests and buffers, as the controller provides it: after that for pods.
    Returns the input with the capacity that is kept on present nodes.
    """
    plan = scaling.plan
    room, _ = with_bookings(given, [pod for pod in given.pods if pod_key(pod) in plan.placed])
    lines = list(kept.faults)
    checked: list[Pod] = []
    for each in kept.demand.to_check:
        gang = dict.fromkeys(each.keys, each.request.gang)
        found = on_present_nodes(replace(room, gangs=gang, together={}), each.pods)
        condition = found_condition(each.request, each.keys, found, {node.name for node in given.nodes})
        if condition is not None:
            lines.append(f"{each.request.gang}: {condition.message}.")
            if condition.type == PROVISIONED and condition.is_true:
                room, _ = with_bookings(room, each.pods)
                checked += each.pods
    given, _ = with_bookings(given, checked)
    room, headroom = room_for_buffers(given, plan, kept.buffered)
    if not plan.new_nodes:
        scaling.plan = replace(
            plan,
            new_nodes=headroom.new_nodes,
            placed={**plan.placed, **headroom.placed},
            pending=(*plan.pending, *headroom.pending),
        )
    elif headroom.new_nodes:
        lines.append("Nodes for CapacityBuffers are provisioned after these.")
    scaling.capacity = lines
    return room


def _confirmed(
    plan: NodePlan, objects: ScalingObjects, rounds: Rounds, given: PlanningInput, imagined: Container[str]
) -> NodePlan:
    """The plan, without nodes on which the scheduler would place nothing.

    The scheduler does not place a gang some of whose pods are not created yet; these gangs are taken as planned, and
    so are `imagined` pods, for which capacity is only kept.
    """
    gangs = given.gangs
    pools = {pool.name: pool for pool in objects.pools}
    names = {f"{node.pool}-planned-{number}": node for number, node in enumerate(plan.new_nodes)}
    rows = {name: row_name(node.pool, node.launch.name) for name, node in names.items()}
    for event in given.devices.of_planned(rows):
        rounds.apply(event)
    for name, node in names.items():
        rounds.apply(NodeSeen(replace(node_facts_of(_as_node(name, node, pools[node.pool])), rank=None)))
    if not names:
        return plan
    rounds.run()
    cluster = rounds.cluster
    on_node: dict[str, list[str]] = {}
    for key, allocation in cluster.pods.items():
        on_node.setdefault(cluster.names[allocation.row], []).append(key)
    every = [pod for node in plan.new_nodes for pod in node.pods]
    incomplete = {gangs[pod] for pod in every if EXPECTED in pod}
    expected = {pod for pod in every if gangs.get(pod) in incomplete or pod in imagined}
    kept, refused = [], []
    for name, node in names.items():
        placed = tuple(sorted({*on_node.get(name, ()), *(pod for pod in node.pods if pod in expected)}))
        if placed:
            kept.append(replace(node, pods=placed))
        else:
            refused += [
                PodRefusal(pod, reason="the scheduler would not place it on the node")
                for pod in node.pods
                if pod in cluster.pending
            ]
    return replace(plan, new_nodes=tuple(kept), pending=(*plan.pending, *refused))


def _as_node(name: str, node: NewNode, pool: NodePool) -> Node:
    made = node_of_type(name, pool, node.launch)
    single = {
        key: next(iter(admitted.values))
        for key, admitted in node.requirements.items()
        if not admitted.is_open and len(admitted.values) == 1
    }
    labels = {
        **single,
        **made.metadata.labels,
        ZONE_LABEL: node.offering.zone,
        CAPACITY_TYPE_LABEL: node.offering.capacity_type,
        HOSTNAME_LABEL: name,
    }
    return replace(made, metadata=replace(made.metadata, labels=labels))
