"""Provisions nodes for pods that wait, and removes nodes that are not needed, for the cluster's NodePools.

One pass looks at everything: it brings NodeClaims a step further, removes instances that belong to none, plans nodes
for the pods that a scheduler has refused, and only if none has to be provisioned searches for nodes to remove.
NodeClaims are written before instances are requested, so a process that is killed anywhere is continued by its
successor.

Nothing is done before there are NodePools, nor while Karpenter or Cluster Autoscaler runs in the cluster, nor for pools
whose annotation pauses them.

Rejected: a reconciler for each NodeClaim. Limits, gangs and the price of a plan depend on all of them.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

import msgspec

from shoal.api.node import Node
from shoal.api.pod import Pod
from shoal.autoscale.disruption.protection import is_rescheduled
from shoal.autoscale.node_claims.claim import PRICE, NodeClaim, claim_of
from shoal.autoscale.node_claims.offering_failures import OfferingFailures
from shoal.autoscale.nodes.instance_types import InstanceType
from shoal.autoscale.nodes.plan import NodePlan, PlanningSettings
from shoal.autoscale.nodes.planner import NodePlanner
from shoal.autoscale.nodes.planning_input import PlanningInput, pod_key
from shoal.autoscale.nodes.pool_modes import PoolMode
from shoal.autoscale.nodes.pools import NodePool
from shoal.client.context import Context
from shoal.client.ecosystem_kinds import NODE_CLAIMS, NODE_POOLS
from shoal.client.item import Item, Key
from shoal.client.kind import NODES, PODS, Kind
from shoal.client.loop import Loop
from shoal.client.presence import Presence
from shoal.client.served import Served
from shoal.cloud.port import GROUP_TAG, Cloud, CloudInstance
from shoal.controllers.node_scaling.claim_conditions import ClaimConditions
from shoal.controllers.node_scaling.claim_steps import ClaimSteps
from shoal.controllers.node_scaling.claim_writer import ClaimWriter
from shoal.controllers.node_scaling.cluster_state import ScalingState, unschedulable
from shoal.controllers.node_scaling.figures import NodeScalingFigures, NodeScalingObserver, counted
from shoal.controllers.node_scaling.pools import PoolStatuses, mode_of
from shoal.controllers.node_scaling.provisioning import Provisioning
from shoal.controllers.node_scaling.relevant_changes import is_relevant_node, is_relevant_pod
from shoal.controllers.node_scaling.removals import Removals
from shoal.store.inventory import Inventory
from shoal.store.node_planning import NodeScaling, ScalingOptions, search_removal, undecided_scaling
from shoal.store.node_scaling import scaling_objects

_log = logging.getLogger("shoal.nodes")
_PASS: Final[Key] = ("", "pass")
_GATHER_S: Final = 1.0
"""Pods are often created one after the other; they are planned together."""
_EVERY_S: Final = 10.0
_SEARCH_S: Final = 60.0
"""How often nodes to remove are searched for although nothing has changed."""
_ORPHAN_S: Final = 60.0
"""How old an instance without a NodeClaim must be before it is removed."""


class _World(msgspec.Struct, frozen=True):
    """What one pass works with."""

    claims: tuple[NodeClaim, ...]
    nodes: Mapping[str, Node]
    """By name."""
    instances: Mapping[str, CloudInstance]
    """By provider id."""
    pools: Mapping[str, Item]
    modes: Mapping[str, PoolMode]
    types: Mapping[str, Mapping[str, InstanceType]]
    """By pool and name."""

    def of_mode(self, *modes: PoolMode) -> frozenset[str]:
        return frozenset(name for name, mode in self.modes.items() if mode in modes)

    def active_by_node(self) -> dict[str, NodeClaim]:
        """The NodeClaims of pools that are not paused, by node."""
        active = self.of_mode("active")
        return {claim.node: claim for claim in self.claims if claim.node and claim.pool in active}


class NodeScalingController:
    def __init__(
        self,
        context: Context,
        served: Served,
        cloud: Cloud,
        schedulers: frozenset[str],
        others: Sequence[Presence] = (),
    ) -> None:
        """`schedulers`: the names whose pods cause nodes. `others`: projects that manage nodes themselves. Another part
        refreshes `served` at intervals."""
        self.name = context.name
        self._context = context
        self._served = served
        self._cloud = cloud
        self._schedulers = schedulers
        self._others = others
        self._loop = Loop(context, self._reconcile, workers=1)
        self._writer = ClaimWriter(context)
        self._failures = OfferingFailures()
        self.observer = NodeScalingObserver()
        self.figures = NodeScalingFigures()
        """Of the last pass."""
        self._provisioning = Provisioning(context, cloud, self._writer, self.observer)
        self._steps = ClaimSteps(context, cloud, self._writer, self._failures, self.observer)
        self._removals = Removals(context, self._writer, self._provisioning, self.observer)
        self._facts = ClaimConditions(context, self._writer)
        self._has_changed = True
        """Whether anything that a search for nodes to remove depends on has changed since the last one."""
        self._searched_s = float("-inf")
        self._last_plan: tuple[PlanningInput, NodePlan] | None = None
        self._found = asyncio.Event()
        self._pools: Kind | None = None
        self._state: ScalingState | None = None
        self._statuses: PoolStatuses | None = None
        served.when_there(NODE_POOLS, self._start, NODE_POOLS._replace(version="v1beta1"))

    async def run(self) -> None:
        """Until cancelled. Nothing is read before the server has NodePools."""
        await self._found.wait()
        assert self._pools is not None  # noqa: S101 - set before the event
        await self._context.informers.synced((self._pools, NODE_CLAIMS, NODES, PODS))
        watching = [asyncio.ensure_future(one.run(self._wake)) for one in self._others]
        try:
            for one in self._others:
                await one.look()
            await self._loop.run()
        finally:
            for task in watching:
                task.cancel()

    def _start(self, kind: Kind) -> None:
        self._pools = kind
        self._statuses = PoolStatuses(self._context, kind)
        self._loop.need(kind, NODE_CLAIMS, NODES, PODS)
        for each in (kind, NODE_CLAIMS):
            self._context.informers.of(each).on_change(lambda _before, _after: self._changed())
        self._found.set()
        self._wake()

    def _changed(self) -> None:
        self._has_changed = True
        self._wake()

    def _wake(self) -> None:
        self._loop.wake(_PASS, _GATHER_S)

    # -- one pass -----------------------------------------------------------------------------------------------------

    async def _reconcile(self, _: Key) -> float | None:
        pools = {item.name: item for item in self._context.informers.of(self._pools or NODE_POOLS)}
        claims = self._claims_now()
        if (not pools and not claims) or any(one.is_there for one in self._others):
            self.figures = NodeScalingFigures()
            return None
        state = await self._ready_state()
        state.refresh()
        inventory = state.inventory()
        world = await self._world(inventory, claims, pools)
        soonest = [
            await self._steps.advance(
                world.claims,
                {node.spec.provider_id: node for node in world.nodes.values() if node.spec.provider_id},
                world.instances,
                world.types,
                world.of_mode("paused", "dry-run"),
            )
        ]
        await self._remove_orphans(world)
        await self._remove_forced(world)
        # Decisions need the claims as they are now.
        soonest.append(await self._decide(state, await self._world(state.inventory(), self._claims_now(), pools)))
        return min((each for each in soonest if each is not None), default=_EVERY_S if claims else None)

    def _claims_now(self) -> list[NodeClaim]:
        """The NodeClaims that this controller wrote. Those of Karpenter have instances that it does not know: they
        count as nodes, and nothing is done to them."""
        claims = (claim_of(item.obj()) for item in self._context.informers.of(NODE_CLAIMS))
        return [claim for claim in claims if claim.is_own]

    async def _ready_state(self) -> ScalingState:
        if self._state is None:
            kind = self._pools or NODE_POOLS
            self._state = ScalingState(self._context, self._served, self._schedulers, kind, self._wake)
            await self._state.synced()
            # Without NodePools, the changes of pods are not even read.
            self._facts.follow_pods()
            for each, is_relevant in ((NODES, is_relevant_node), (PODS, is_relevant_pod)):
                self._context.informers.of(each).on_change(
                    lambda before, after, is_relevant=is_relevant: (  # type: ignore[misc]
                        self._changed() if is_relevant(before, after) else None
                    )
                )
        return self._state

    async def _world(self, inventory: Inventory, claims: Sequence[NodeClaim], pools: Mapping[str, Item]) -> _World:
        now_s = self._context.clock.seconds()
        found = scaling_objects(inventory)
        types = {
            pool.name: {one.name: one for one in self._failures.applied(await self._cloud.instance_types(pool), now_s)}
            for pool in found.pools
        }
        return _World(
            claims=tuple(sorted(claims, key=lambda each: each.name)),
            nodes={each.value.metadata.name: each.value for each in inventory.of(Node)},
            instances={each.provider_id or each.id: each for each in await self._cloud.instances()},
            pools=pools,
            modes={name: mode_of(item) for name, item in pools.items()},
            types=types,
        )

    async def _remove_orphans(self, world: _World) -> None:
        """Instances that belong to no NodeClaim, and that no launch in progress can still want."""
        now_s = self._context.clock.seconds()
        owned = {claim.provider_id for claim in world.claims if claim.provider_id}
        launching = {claim.group for claim in world.claims if not claim.provider_id}
        orphans = [
            instance
            for instance in world.instances.values()
            if GROUP_TAG in instance.tags
            and instance.provider_id not in owned
            and instance.tags[GROUP_TAG] not in launching
            and now_s - instance.created_s >= _ORPHAN_S
        ]
        if not orphans:
            return
        _log.warning("instances without a NodeClaim are removed: %s", ", ".join(each.id for each in orphans))
        await self._cloud.delete([each.id for each in orphans])
        for each in orphans:
            self.observer.removed(each.tags.get("karpenter.sh/nodepool", ""), "orphaned")

    async def _remove_forced(self, world: _World) -> None:
        """What the cloud takes back, what is broken, and what has been replaced."""
        await self._removals.interrupted(world.claims, world.instances)
        await self._removals.repair(world.active_by_node(), world.nodes)
        await self._removals.finish_replacements(world.claims, world.nodes)

    async def _decide(self, state: ScalingState, world: _World) -> float | None:
        """Which nodes to provision, which to take back, and which to remove."""
        state.refresh()
        inventory = state.inventory()
        options = ScalingOptions(
            lambda pool, _zones: tuple(world.types.get(pool.name, {}).values()),
            self._context.clock.now(),
            PlanningSettings(packing="LeastCost"),
        )
        waiting = unschedulable(inventory)
        scaling, given = undecided_scaling(inventory, state.cluster, waiting, {}, options)
        await self._write_facts(world, scaling)
        active = world.of_mode("active")
        given = msgspec.structs.replace(given, pools=_only(given.pools, active))
        plan = self._planned(given)
        soonest = [self._failures.next_s(options.now.timestamp()) if plan.pending else None]
        if soonest[0] is not None:
            soonest = [max(soonest[0] - options.now.timestamp(), _GATHER_S)]
        await self._provisioning.carry_out(plan, given.gangs, world.pools)
        self._provisioning.tell_pods(plan, given.gangs, waiting)
        self._tell_dry_run(world, given, scaling, plan)
        used = frozenset(node.name for node in scaling.nodes if any(is_rescheduled(pod) for pod in node.existing.pods))
        counted_claims = [claim for claim in world.claims if world.modes.get(claim.pool) == "active"]
        soonest.append(await self._provisioning.take_back(counted_claims, used, plan))
        if plan.new_nodes:
            # What was planned has to be launched, and nothing is removed meanwhile.
            soonest.append(0.0)
            await self._removals.consider(None, {}, {})
        elif self._is_search_due():
            soonest.append(await self._remove(state, world, scaling, given, plan, inventory, options))
        self._count(world, given, plan)
        return min((each for each in soonest if each is not None), default=None)

    def _planned(self, given: PlanningInput) -> NodePlan:
        """The plan; equal input has an equal plan, which is not computed again."""
        if not given.pods:
            return NodePlan()
        if self._last_plan is None or self._last_plan[0] != given:
            self._last_plan = given, NodePlanner(given).plan()
        return self._last_plan[1]

    def _is_search_due(self) -> bool:
        """Where nothing has changed, only time can make a difference."""
        now_s = self._context.clock.seconds()
        if not (self._has_changed or self._removals.is_undecided or now_s - self._searched_s >= _SEARCH_S):
            return False
        self._has_changed, self._searched_s = False, now_s
        return True

    async def _remove(
        self,
        state: ScalingState,
        world: _World,
        scaling: NodeScaling,
        given: PlanningInput,
        plan: NodePlan,
        inventory: Inventory,
        options: ScalingOptions,
    ) -> float | None:
        claims = world.active_by_node()
        replaced = {name for claim in world.claims for name in claim.replaces}
        protected = {*plan.placed.values(), *replaced, *(name for name in world.nodes if name not in claims)}
        options = replace(options, protected=frozenset(protected))
        search_removal(scaling, given, inventory, state.cluster, options)
        return await self._removals.consider(scaling.removal, claims, world.pools)

    async def _write_facts(self, world: _World, scaling: NodeScaling) -> None:
        pools = {pool.name: pool for pool in scaling.objects.pools}
        await self._facts.refresh(world.claims, world.nodes, pools, world.pools)
        if self._statuses is not None:
            await self._statuses.write(world.pools.values(), list(world.nodes.values()), scaling.objects.errors)

    def _tell_dry_run(self, world: _World, given: PlanningInput, scaling: NodeScaling, plan: NodePlan) -> None:
        trial = world.of_mode("dry-run")
        refused = {each.pod for each in plan.pending}
        pods: tuple[Pod, ...] = tuple(pod for pod in given.pods if pod_key(pod) in refused)
        if trial and pods:
            found = NodePlanner(
                msgspec.structs.replace(given, pools=_only(scaling.objects.pools, trial), pods=pods)
            ).plan()
            self._provisioning.tell_dry_run(found, world.pools)

    def _count(self, world: _World, given: PlanningInput, plan: NodePlan) -> None:
        cost: dict[tuple[str, str], float] = {}
        for claim in world.claims:
            if claim.provider_id:
                key = claim.pool, claim.offering[2]
                cost[key] = cost.get(key, 0.0) + _number(claim.annotations.get(PRICE, ""))
        self.figures = NodeScalingFigures(counted(list(world.claims)), cost, len(given.pods), len(plan.pending))


def _only(pools: Sequence[NodePool], names: frozenset[str]) -> tuple[NodePool, ...]:
    return tuple(pool for pool in pools if pool.name in names)


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return 0.0
