"""Makes the documents of `shoal scale` of what was decided, and the inputs of the decision of what was read."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from datetime import UTC, datetime

from shoal.api.decode import Document
from shoal.api.pod import Pod
from shoal.api.resources import amounts
from shoal.api.run_configuration import RunConfiguration
from shoal.autoscale.disruption.budgets import UNBOUNDED
from shoal.autoscale.disruption.candidates import DisruptableNode
from shoal.autoscale.nodes.before_provisioning import FreeingPolicy
from shoal.autoscale.nodes.gpu_instances import types_for_pool
from shoal.autoscale.nodes.instance_types import InstanceType
from shoal.autoscale.nodes.plan import PlanningSettings
from shoal.autoscale.nodes.planner import NodePlanner
from shoal.autoscale.nodes.planning_input import PlanningInput
from shoal.autoscale.nodes.pool_limits import limits_fault
from shoal.autoscale.nodes.pools import SPEND_LIMIT, NodePool, by_precedence
from shoal.autoscale.requirements.labels import INSTANCE_TYPE_LABEL
from shoal.cli.manifests import Loaded
from shoal.cli.object_source import Source
from shoal.cli.preemption_options import rules_in_use
from shoal.data.instances import catalog
from shoal.store.held_pods import HeldPod
from shoal.store.inventory import Inventory
from shoal.store.node_planning import NodeScaling, ScalingOptions, TypesOf, price_per_hour
from shoal.units.near_texts import near_texts
from shoal.views.scale_plan import PoolView, ScalePlan, node_view, refusal_view, removal_view

_GPUS = ("nvidia.com/gpu", "amd.com/gpu")


def waiting_pods(documents: Sequence[Document], loaded: Loaded) -> dict[str, Pod]:
    """The pods that are on no node, by namespace and name."""
    written = (each.value for each in Inventory(documents).of(Pod))
    found = {pod.metadata.key: pod for pod in written if not pod.spec.node_name and not pod.is_finished()}
    return found | {placed.value.metadata.key: placed.value for placed in loaded.manifests.waiting}


def held_texts(loaded: Loaded) -> dict[str, str]:
    """Why pods are held back before any node is considered."""
    return {
        key: hold.message if isinstance(hold, HeldPod) else f"scheduling gates: {', '.join(hold)}"
        for key, hold in loaded.manifests.gated.items()
    }


def scaling_options(
    source: Source,
    loaded: Loaded,
    types_of: TypesOf | None,
    *,
    spot_to_spot: bool,
    removes: bool,
    ignores_preferences: bool,
) -> ScalingOptions:
    """Files are of the time of their latest object, a cluster is of now."""
    if source.access is None:
        now = datetime.fromtimestamp(loaded.now_s, UTC)
    else:
        from shoal.client.clock import WallClock

        now = WallClock().now()
    settings = PlanningSettings("Ignore" if ignores_preferences else "Respect", packing="LeastCost")
    own = rules_in_use(source.documents)
    # Where the configuration is not known, Shoal schedules all pods.
    names = (pod.spec.scheduler_name for pod in waiting_pods(source.documents, loaded).values()) if own is None else ()
    freeing = FreeingPolicy.of(own or RunConfiguration(), names)
    return ScalingOptions(types_of or types_for_pool, now, settings, spot_to_spot, removes, freeing=freeing)


def plan_document(scaling: NodeScaling) -> ScalePlan:
    """The answer of `shoal scale plan`."""
    plan, removal = scaling.plan, scaling.removal
    return ScalePlan(
        provision=tuple(node_view(node) for node in plan.new_nodes),
        on_existing=dict(plan.placed),
        pending=tuple(refusal_view(each) for each in plan.pending),
        remove=() if removal is None else (removal_view(removal),),
        kept=dict(scaling.kept),
        usd_per_hour=round(plan.price, 5),
        notes=_notes(scaling),
    )


def _notes(scaling: NodeScaling) -> list[str]:
    notes = []
    if not scaling.objects.pools:
        notes.append("There is no NodePool, so no node can be provisioned.")
    if scaling.workloads_held:
        are = "workload waits" if scaling.workloads_held == 1 else "workloads wait"
        notes.append(f"{scaling.workloads_held:,} {are} in queues and cause no nodes.")
    notes += scaling.capacity
    if scaling.unplanned:
        pods = "1 pod that does" if len(scaling.unplanned) == 1 else f"{len(scaling.unplanned):,} pods that do"
        notes.append(f"Nothing is planned for {pods} not exist yet.")
    lists = {one.prices for one in catalog().instances if one.type in _types_in_use(scaling) and one.prices}
    dates = [f"{name} of {catalog().price_lists[name].date}" for name in sorted(lists)]
    if dates:
        notes.append(f"Prices: price list {', '.join(dates)}; spot prices are estimates.")
    return notes


def _types_in_use(scaling: NodeScaling) -> set[str]:
    removal = scaling.removal
    new = (*scaling.plan.new_nodes, *(removal.replacements if removal is not None else ()))
    return {node.launch.name for node in new} | {node.existing.instance_type for node in scaling.nodes}


def pool_documents(scaling: NodeScaling) -> list[PoolView]:
    """One for each pool, in the order in which they are tried."""
    return [_pool(pool, scaling) for pool in by_precedence(scaling.objects.pools)]


def _pool(pool: NodePool, scaling: NodeScaling) -> PoolView:
    nodes = [node for node in scaling.nodes if node.existing.pool == pool.name]
    types = scaling.types[pool.name]
    planner = NodePlanner(
        PlanningInput(
            pools=(pool,),
            types={pool.name: types},
            nodes=tuple(node.existing for node in nodes),
            daemon_sets=scaling.objects.daemon_sets,
        )
    )
    by_name = {one.name: one for one in types}
    usable = planner.usable_types(pool.name)
    allowed = None if scaling.searches is None else scaling.searches.allowed(pool.name, "Underutilized")
    return PoolView(
        name=pool.name,
        weight=pool.weight,
        nodes=len(nodes),
        starting=sum(not node.existing.is_initialized for node in nodes),
        gpus=sum(_gpus(node, by_name, scaling.objects.published) for node in nodes),
        usd_per_hour=round(sum(price_per_hour(node, by_name) for node in nodes), 5),
        instance_types=len(usable),
        cheapest=usable[0] if usable else "",
        limits=_limits(pool, planner.limits_left(pool.name)),
        policy="static" if pool.is_static else pool.disruption.policy,
        disruptions_allowed=None if allowed is None or allowed > UNBOUNDED // 2 else allowed,
        fault=_fault(pool, planner),
    )


def _gpus(node: DisruptableNode, types: Mapping[str, InstanceType], published: Container[str]) -> int:
    """Of a node whose GPUs are devices of resource claims, those of its machine."""
    one = types.get(node.existing.instance_type)
    is_published = one is not None and node.name in published
    there = one.capacity if one is not None and is_published else amounts(node.existing.node.allocatable())
    return sum(there.get(name, 0) for name in _GPUS)


def _limits(pool: NodePool, left: Mapping[str, int]) -> dict[str, str]:
    milli = ("cpu", SPEND_LIMIT)
    return {
        name: f"{max(left.get(name, 0), 0) / (1000 if name in milli else 1):g} of "
        f"{limit / (1000 if name in milli else 1):g} left"
        for name, limit in pool.limits.items()
    }


def _fault(pool: NodePool, planner: NodePlanner) -> str:
    """Why no offering of any type satisfies the pool, or why its limits allow no node; empty if it can serve pods."""
    template = next(each for each in planner.templates if each.name == pool.name)
    if pool.is_static or template.usable.any():
        return "" if pool.is_static else limits_fault(template)
    types = [one.name for one in template.types]
    wanted = pool.requirements.get(INSTANCE_TYPE_LABEL)
    unknown = sorted(wanted.values - set(types)) if not wanted.is_open else []
    if unknown:
        near = near_texts(unknown[0], types)
        return f"instance type {unknown[0]} is not known" + (f"; did you mean {near[0]}?" if near else "")
    if not types:
        return "no instance types are known for its node class"
    return "no offering of any instance type satisfies its requirements"
