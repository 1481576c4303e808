"""The scheduler as a controller among others: a brain of its own that places pods and decides about no queues."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from shoal.controllers.binding.writer import Writer
from shoal.controllers.brain.brain import Brain, BrainSettings
from shoal.controllers.scheduler.hands import SchedulerHands
from shoal.engine.cluster import Cluster
from shoal.engine.mix import Mix
from shoal.engine.placement import Placement
from shoal.engine.profile import DEFAULT_POLICY, profile_named
from shoal.store.live.context import Context, Controller
from shoal.store.live.served import Served
from shoal.store.watched.devices import WatchedDevices
from shoal.store.watched.volumes import WatchedVolumes
from shoal.store.watched.world import WatchedWorld, WatchSettings


class SchedulerAlone:
    def __init__(self, context: Context, watch: WatchSettings, settings: BrainSettings, policy: str) -> None:
        self.name = context.name
        self.served = Served(context)
        self.brain = Brain(
            context.clock,
            lambda wake: world_of(context, self.served, watch, wake),
            lambda cluster: placement_of(cluster, policy),
            settings,
        )
        self.hands = hands_of(context, self.brain)
        self.brain.hands = (self.hands,)

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self.served.run())
            group.create_task(self.brain.run())


def world_of(context: Context, served: Served, watch: WatchSettings, wake: Callable[[], None]) -> WatchedWorld:
    """With devices and volumes."""
    devices, volumes = WatchedDevices(context, served, wake), WatchedVolumes(context, wake)
    return WatchedWorld(context, served, watch, wake, devices, volumes)


def hands_of(context: Context, brain: Brain) -> SchedulerHands:
    """Hands that also make devices and volumes ready, where the brain's world has them."""
    world, writer = brain.world, None
    if isinstance(world.devices, WatchedDevices) and isinstance(world.volumes, WatchedVolumes):
        writer = Writer(context, world.devices, world.volumes)
    return SchedulerHands(context, brain, world, writer)


def placement_of(cluster: Cluster, policy: str = DEFAULT_POLICY) -> Placement:
    """A living cluster's mix of pods is not known beforehand."""
    return Placement(cluster, profile_named(policy, cluster, Mix()))


def shoal_scheduler(
    context: Context,
    watch: WatchSettings | None = None,
    settings: BrainSettings | None = None,
    policy: str = DEFAULT_POLICY,
) -> Controller:
    return SchedulerAlone(context, watch or WatchSettings(), settings or BrainSettings(), policy)
