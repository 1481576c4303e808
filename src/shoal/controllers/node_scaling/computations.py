"""Computes plans, and searches for nodes to remove, in a thread beside the event loop.

A plan for many pods takes seconds. The input of a computation is a value, which nothing changes while it runs; that the
cluster has moved on by the end of it is for the caller to check.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import TypeVar

from shoal.api.pod import Pod
from shoal.autoscale.capacity_buffers.room import room_for_buffers
from shoal.autoscale.disruption.searches import DisruptionInput
from shoal.autoscale.nodes.before_provisioning import FreeingPolicy
from shoal.autoscale.nodes.bookings import on_present_nodes, with_bookings
from shoal.autoscale.nodes.confirmation import confirmed
from shoal.autoscale.nodes.plan import NodePlan
from shoal.autoscale.nodes.planner import NodePlanner
from shoal.autoscale.nodes.planning_input import PlanningInput
from shoal.autoscale.placeholders.changes import PlaceholderChanges, placeholder_changes
from shoal.autoscale.placeholders.placeholder import Placeholder
from shoal.client.daemon_thread import DaemonThread
from shoal.engine.cluster import Cluster
from shoal.store.freed_capacity import FreedCapacity, freed_capacity
from shoal.store.node_planning import FoundRemoval, found_removal
from shoal.store.node_scaling import MOST_START_S

T = TypeVar("T")


class Computations:
    def __init__(self) -> None:
        self._thread = DaemonThread("shoal-nodes")
        self._last_plan: tuple[PlanningInput, NodePlan] | None = None

    async def plan(self, given: PlanningInput) -> NodePlan:
        """The plan; equal input has an equal plan, which is not computed again."""
        if not given.pods:
            return NodePlan()
        if self._last_plan is None or self._last_plan[0] != given:
            self._last_plan = given, await self._run(lambda: NodePlanner(given).plan())
        return self._last_plan[1]

    async def trial_plan(self, given: PlanningInput) -> NodePlan:
        """A plan that is shown only, and not kept."""
        return await self._run(lambda: NodePlanner(given).plan())

    async def freed(
        self, cluster: Cluster, given: PlanningInput, policy: FreeingPolicy, now: datetime
    ) -> FreedCapacity:
        """What becomes free on present nodes. The facts must not change meanwhile."""
        if not given.pods or not given.pools:
            return FreedCapacity(policy)
        return await self._run(lambda: freed_capacity(cluster, given, policy, now))

    async def booked(self, given: PlanningInput, pods: Sequence[Pod]) -> tuple[PlanningInput, frozenset[str]]:
        """The input with capacity kept for these pods, and those of them that find no place."""
        return (await self._run(lambda: with_bookings(given, pods))) if pods else (given, frozenset())

    async def room(self, given: PlanningInput, plan: NodePlan, pods: Sequence[Pod]) -> tuple[PlanningInput, NodePlan]:
        """The input with room kept for these pods of buffers, and the plan of nodes for the others of them."""
        return (await self._run(lambda: room_for_buffers(given, plan, pods))) if pods else (given, NodePlan())

    async def on_present_nodes(self, given: PlanningInput, pods: Sequence[Pod]) -> NodePlan:
        """A plan in which no node is provisioned."""
        return await self._run(lambda: on_present_nodes(given, pods))

    async def confirmed(self, plan: NodePlan, given: PlanningInput, now: PlanningInput) -> NodePlan:
        """What of the plan is still right."""
        return await self._run(lambda: confirmed(plan, given, now))

    async def removal(self, given: DisruptionInput) -> FoundRemoval:
        return await self._run(lambda: found_removal(given))

    async def placeholders(
        self, given: PlanningInput, present: Sequence[Placeholder], now_s: float
    ) -> PlaceholderChanges:
        """Which placeholder pods to create and to delete."""
        return await self._run(lambda: placeholder_changes(given, present, now_s, MOST_START_S))

    def close(self) -> None:
        """A computation that still runs is not waited for."""
        self._thread.shutdown(wait=False)

    async def _run(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)
