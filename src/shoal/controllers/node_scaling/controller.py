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
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Final

import msgspec

from shoal.api.node import Node
from shoal.api.pod import Pod
from shoal.autoscale.node_claims.claim import NodeClaim, claim_of
from shoal.autoscale.node_claims.offering_failures import OfferingFailures
from shoal.autoscale.nodes.before_provisioning import FreeingPolicy
from shoal.autoscale.nodes.plan import NodePlan, PlanningSettings
from shoal.autoscale.nodes.planning_input import PlanningInput, pod_key
from shoal.autoscale.nodes.pools import NodePool
from shoal.autoscale.nodes.seen_machines import SeenMachines
from shoal.autoscale.nodes.static_pools import static_change
from shoal.client.context import Context
from shoal.client.ecosystem_kinds import CAPACITY_BUFFERS, NODE_CLAIMS, NODE_POOLS, PROVISIONING_REQUESTS
from shoal.client.item import Item, Key
from shoal.client.kind import NODES, PODS, Kind
from shoal.client.loop import Loop
from shoal.client.presence import Presence
from shoal.client.served import Served
from shoal.cloud.port import Cloud
from shoal.controllers.node_scaling.buffer_demand import BufferDemand
from shoal.controllers.node_scaling.capacity_buffers import CapacityBuffers
from shoal.controllers.node_scaling.claim_conditions import ClaimConditions
from shoal.controllers.node_scaling.claim_steps import ClaimSteps
from shoal.controllers.node_scaling.claim_writer import ClaimWriter
from shoal.controllers.node_scaling.cluster_state import ScalingState, unschedulable
from shoal.controllers.node_scaling.computations import Computations
from shoal.controllers.node_scaling.figures import NodeScalingFigures, NodeScalingObserver, costs, counted
from shoal.controllers.node_scaling.orphans import Orphans
from shoal.controllers.node_scaling.parts import ScalingParts
from shoal.controllers.node_scaling.pass_times import EVERY_S, GATHER_S, SEARCH_S, PassTimes
from shoal.controllers.node_scaling.pools import PoolStatuses, mode_of
from shoal.controllers.node_scaling.provisioning import Provisioning
from shoal.controllers.node_scaling.provisioning_requests import ProvisioningRequests
from shoal.controllers.node_scaling.relevant_changes import is_relevant_node, is_relevant_pod
from shoal.controllers.node_scaling.removals import Removals
from shoal.controllers.node_scaling.repartitioning import Repartitioning
from shoal.controllers.node_scaling.world import Situation, World, is_outdated
from shoal.store.inventory import Inventory
from shoal.store.node_planning import NodeScaling, ScalingOptions, removal_input, undecided_scaling
from shoal.store.node_scaling import scaling_objects
from shoal.store.planned_devices import KnownDevices

_log = logging.getLogger("shoal.nodes")
_PASS: Final[Key] = ("", "pass")


class NodeScalingController:
    def __init__(
        self,
        context: Context,
        served: Served,
        cloud: Cloud,
        schedulers: frozenset[str],
        others: Sequence[Presence] = (),
        freeing: FreeingPolicy | None = None,
    ) -> None:
        """`schedulers`: the names whose pods cause nodes. `others`: projects that manage nodes themselves. `freeing`:
        what comes before provisioning. Another part refreshes `served` at intervals."""
        self.name = context.name
        self._context = context
        self._served = served
        self._cloud = cloud
        self._schedulers = schedulers
        self._others = others
        self._loop = Loop(context, self._reconcile, workers=1)
        self._failures = OfferingFailures()
        self.observer = NodeScalingObserver()
        self.figures = NodeScalingFigures()
        """Of the last pass."""
        parts = ScalingParts(context, cloud, ClaimWriter(context), self._failures, self.observer)
        self._parts = parts
        self._provisioning = Provisioning(parts)
        self._repartitioning = Repartitioning(parts)
        self._freeing = freeing or FreeingPolicy()
        self._steps = ClaimSteps(parts)
        self._removals = Removals(parts, self._provisioning)
        self._orphans = Orphans(context, cloud, self.observer)
        self._facts = ClaimConditions(context, parts.writer)
        self._times = PassTimes()
        self._computations = Computations()
        self._devices, self._machines = KnownDevices(), SeenMachines()
        self._found = asyncio.Event()
        self._pools = NODE_POOLS
        """In the version that is served, once there is one."""
        self._state: ScalingState | None = None
        self._statuses = PoolStatuses(context, NODE_POOLS, parts.refusals)
        self._requests = ProvisioningRequests(context)
        buffer_demand, quotas = BufferDemand(context, served), lambda: self._requests.quota_room
        self._buffers = CapacityBuffers(context, self._computations, buffer_demand, quotas)
        served.when_there(NODE_POOLS, self._start, NODE_POOLS._replace(version="v1beta1"))
        served.when_there(
            PROVISIONING_REQUESTS,
            lambda kind: self._requests.follow(kind, self._changed),
            PROVISIONING_REQUESTS._replace(version="v1beta1"),
        )
        served.when_there(
            CAPACITY_BUFFERS,
            lambda kind: self._buffers.follow(kind, self._changed),
            CAPACITY_BUFFERS._replace(version="v1alpha1"),
        )

    async def run(self) -> None:
        """Until cancelled. Nothing is read before the server has NodePools."""
        await self._found.wait()
        await self._context.informers.synced((self._pools, NODE_CLAIMS, NODES, PODS))
        watching = [asyncio.ensure_future(one.run(self._wake)) for one in self._others]
        try:
            for one in self._others:
                await one.look()
            await self._loop.run()
        finally:
            for task in watching:
                task.cancel()
            self._computations.close()

    def _start(self, kind: Kind) -> None:
        self._pools = kind
        self._statuses = PoolStatuses(self._context, kind, self._parts.refusals)
        self._loop.need(kind, NODE_CLAIMS, NODES, PODS)
        for each in (kind, NODE_CLAIMS):
            self._context.informers.of(each).on_change(lambda _before, _after: self._changed())
        self._found.set()
        self._wake()

    def _changed(self) -> None:
        self._times.note_change()
        self._wake()

    def _changed_if(
        self, is_relevant: Callable[[Item | None, Item | None], bool], before: Item | None, after: Item | None
    ) -> None:
        if is_relevant(before, after):
            self._changed()

    def _wake(self) -> None:
        self._times.note_stir()
        self._loop.wake(_PASS, GATHER_S)

    # -- one pass -----------------------------------------------------------------------------------------------------

    async def _reconcile(self, _: Key) -> float | None:
        clock, times = self._context.clock, self._times
        left_s = times.idle_s(clock.seconds())
        if left_s > 0 and await self._cloud.instances() == times.instances:
            return min(left_s, EVERY_S)
        times.begin()
        soonest_s = await self._pass()
        times.end(clock.seconds(), soonest_s, is_busy=self.figures.waiting_pods > 0)
        return None if soonest_s is None else min(soonest_s, EVERY_S)

    async def _pass(self) -> float | None:
        """Look at everything; returns the seconds after which that is due again, or None without nodes."""
        pools = {item.name: item for item in self._context.informers.of(self._pools)}
        claims = self._claims_now()
        is_left = any(one.is_there for one in self._others)
        if is_left or not (pools or claims or self._requests.is_needed or await self._orphans.are_there()):
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
                world.published,
            )
        ]
        soonest.append(await self._orphans.remove(world))
        await self._remove_forced(world)
        # Decisions need the claims as they are now.
        soonest.append(await self._decide(state, await self._world(state.inventory(), self._claims_now(), pools)))
        return min((each for each in soonest if each is not None), default=SEARCH_S if claims else None)

    def _claims_now(self) -> list[NodeClaim]:
        """The NodeClaims that this controller wrote. Those of Karpenter have instances that it does not know: they
        count as nodes, and nothing is done to them."""
        claims = (claim_of(item.obj()) for item in self._context.informers.of(NODE_CLAIMS))
        return [claim for claim in claims if claim.is_own]

    async def _ready_state(self) -> ScalingState:
        if self._state is None:
            self._state = ScalingState(self._context, self._served, self._schedulers, self._pools, self._wake)
            await self._state.synced()
            # Without NodePools, the changes of pods are not even read.
            self._facts.follow_pods()
            self._context.informers.of(NODES).on_change(partial(self._changed_if, is_relevant_node))
            self._context.informers.of(PODS).on_change(partial(self._changed_if, is_relevant_pod))
        return self._state

    async def _world(self, inventory: Inventory, claims: Sequence[NodeClaim], pools: Mapping[str, Item]) -> World:
        found = scaling_objects(inventory)
        types = {
            pool.name: self._parts.usable(pools[pool.name], await self._cloud.instance_types(pool))
            for pool in found.pools
            if pool.name in pools
        }
        self._times.instances = await self._cloud.instances()
        return World(
            claims=tuple(sorted(claims, key=lambda each: each.name)),
            nodes={each.value.metadata.name: each.value for each in inventory.of(Node)},
            instances={each.provider_id or each.id: each for each in self._times.instances},
            pools=pools,
            modes={name: mode_of(item) for name, item in pools.items()},
            types=types,
            published=found.published,
        )

    async def _remove_forced(self, world: World) -> None:
        """What the cloud takes back, what is broken, and what has been replaced."""
        await self._removals.interrupted(world.claims, world.instances)
        await self._removals.repair(world.active_by_node(), world.nodes)
        await self._removals.finish_replacements(world.claims, world.nodes)

    async def _situation(self, state: ScalingState, world: World) -> Situation:
        state.refresh()
        inventory = state.inventory()
        options = ScalingOptions(
            lambda pool, _zones: tuple(world.types.get(pool.name, {}).values()),
            self._context.clock.now(),
            PlanningSettings(packing="LeastCost"),
            devices=self._devices,
            machines=self._machines,
        )
        waiting = unschedulable(inventory)
        scaling, given = undecided_scaling(inventory, state.cluster, waiting, {}, options)
        active = [item.name for item in self._context.informers.of(self._pools) if mode_of(item) == "active"]
        given = msgspec.structs.replace(given, pools=_only(given.pools, frozenset(active)))
        demand = self._requests.demand([each.value for each in inventory.of(Pod)])
        kept = [pod for each in demand.booked for pod in each.pods]
        given, homeless = await self._computations.booked(given, kept)
        freed = await self._computations.freed(state.cluster, given, self._freeing, options.now)
        given = self._provisioning.repeated.applied(freed.added_to(given), options.now.timestamp())
        return Situation(inventory, options, waiting, scaling, demand.added_to(given), demand, homeless, freed)

    async def _decide(self, state: ScalingState, world: World) -> float | None:
        """Which nodes to provision, which to take back, and which to remove."""
        self._provisioning.note_started(world.claims)
        soonest = [await self._requests.advance()]
        found = await self._checked(world, await self._situation(state, world))
        if found is None:
            # Capacity was found for a request, and is kept from now on.
            return 0.0
        soonest.append(await self._write_facts(world, found.scaling))
        plan = await self._computations.plan(found.given)
        if plan.new_nodes:
            planned = plan
            found, plan = await self._confirmed(state, world, found, plan)
            if len(plan.new_nodes) < len(planned.new_nodes):
                soonest.append(GATHER_S)
        now_s = self._context.clock.seconds()
        soonest.append(found.freed.over_after_s(now_s))
        if plan.pending:
            parts = self._failures, self._parts.refusals, self._provisioning.repeated
            due = [each.next_s(now_s) for each in parts]
            soonest += [max(each - now_s, GATHER_S) for each in due if each is not None]
        await self._requests.conclude(found.demand.to_provision, plan, world.launched(), world.claims_by_home())
        await self._repartitioning.carry_out(found.freed, plan)
        await self._provisioning.carry_out(plan, found.given.gangs, world.pools)
        self._provisioning.tell_pods(plan, found.given, found.waiting)
        await self._tell_dry_run(world, found, plan)
        room, headroom = await self._buffers.plan(found.given, plan)
        if not plan.new_nodes:
            await self._provisioning.carry_out(headroom, {}, world.pools)
        static = static_change(found.given)
        await self._provisioning.carry_out(NodePlan(static.new_nodes), {}, world.pools)
        await self._removals.shrink(world.claims, static.removed)
        # Nodes on which there is room for buffers are needed, too.
        both = msgspec.structs.replace(plan, placed={**plan.placed, **headroom.placed})
        # The nodes of static pools need no pods.
        pools = {pool.name for pool in found.given.pools if not pool.is_static}
        counted_claims = [claim for claim in world.claims if claim.pool in pools]
        used = found.used() | state.homes_of_unread()
        soonest.append(await self._provisioning.take_back(counted_claims, used, both))
        if plan.new_nodes or headroom.new_nodes or static.new_nodes:
            # What was planned has to be launched, and nothing is removed meanwhile.
            soonest.append(0.0)
            await self._removals.consider(None, {}, {})
        elif not found.freed.is_holding and self._times.begins_search(
            self._context.clock.seconds(), is_undecided=self._removals.is_undecided
        ):
            soonest.append(await self._remove(state, world, found._replace(given=room), both))
        self._count(world, found.given, plan)
        return min((each for each in soonest if each is not None), default=None)

    async def _checked(self, world: World, found: Situation) -> Situation | None:
        """Decide the requests that only check capacity, and those whose capacity is gone. None if capacity was found
        for one.
        """
        demand = found.demand
        there = {claim.name for claim in world.claims if not claim.is_deleting}
        await self._requests.revoke(demand.booked, found.homeless, there)
        if not demand.to_check:
            return found
        # Pods that wait, and requests for nodes, have their places first.
        left, _ = await self._computations.booked(found.given, found.given.pods)
        for wanted in demand.to_check:
            given = msgspec.structs.replace(left, gangs=dict.fromkeys(wanted.keys, wanted.request.gang), together={})
            plan = await self._computations.on_present_nodes(given, wanted.pods)
            if await self._requests.conclude([wanted], plan, world.launched(), world.claims_by_home()):
                return None
        return found

    async def _confirmed(
        self, state: ScalingState, world: World, before: Situation, plan: NodePlan
    ) -> tuple[Situation, NodePlan]:
        """The last look before nodes are paid for: pods that got a place meanwhile, or that are gone, need none."""
        now = await self._situation(state, world)
        if now.given == before.given:
            return before, plan
        return now, await self._computations.confirmed(plan, before.given, now.given)

    async def _remove(self, state: ScalingState, world: World, found: Situation, plan: NodePlan) -> float | None:
        claims = world.active_by_node()
        replaced = {name for claim in world.claims for name in claim.replaces}
        protected = {
            *plan.placed.values(),
            *replaced,
            *found.booked(),
            *state.homes_of_unread(),
            *(name for name in world.nodes if name not in claims),
        }
        options = replace(found.options, protected=frozenset(protected))
        given = removal_input(found.scaling, found.given, found.inventory, state.cluster, options)
        decision = (await self._computations.removal(given)).decision
        if decision is not None and is_outdated(decision, found, state):
            self._times.note_change()
            return GATHER_S
        return await self._removals.consider(decision, claims, world.pools)

    async def _write_facts(self, world: World, scaling: NodeScaling) -> float | None:
        pools = {pool.name: pool for pool in scaling.objects.pools}
        await self._statuses.write(world.pools.values(), list(world.nodes.values()), scaling.objects.errors)
        return await self._facts.refresh(world.claims, world.nodes, pools, world.pools)

    async def _tell_dry_run(self, world: World, found: Situation, plan: NodePlan) -> None:
        trial = world.of_mode("dry-run")
        refused = {each.pod for each in plan.pending}
        pods = tuple(pod for pod in found.given.pods if pod_key(pod) in refused)
        if trial and pods:
            pools = _only(found.scaling.objects.pools, trial)
            wanted = msgspec.structs.replace(found.given, pools=pools, pods=pods)
            self._provisioning.tell_dry_run(await self._computations.trial_plan(wanted), world.pools)

    def _count(self, world: World, given: PlanningInput, plan: NodePlan) -> None:
        cost = costs(world.claims)
        refused = sum(each.pod not in given.forbidden for each in plan.pending)
        self.figures = NodeScalingFigures(counted(list(world.claims)), cost, len(given.pods), refused)


def _only(pools: Sequence[NodePool], names: frozenset[str]) -> tuple[NodePool, ...]:
    return tuple(pool for pool in pools if pool.name in names)
