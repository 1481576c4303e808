"""A brain with everything that it sees by and acts through: one way to put it together, for every process and test.

Devices and volumes are shared: the world reads what pods ask of them, and the writer makes ready what was decided.
"""

from __future__ import annotations

from collections.abc import Callable

from shoal.client.context import Context
from shoal.client.served import Served
from shoal.controllers.brain.brain import Brain, BrainSettings
from shoal.controllers.brain.parts import Hands
from shoal.engine.cluster import Cluster
from shoal.engine.placement import Placement
from shoal.store.watched.devices import WatchedDevices
from shoal.store.watched.volumes import WatchedVolumes
from shoal.store.watched.world import WatchedWorld, WatchSettings


def brain_of(
    context: Context,
    served: Served,
    watch: WatchSettings,
    placement: Callable[[Cluster], Placement],
    settings: BrainSettings,
    rolled_back: Callable[[], None] = lambda: None,
) -> Brain:
    """It has hands if it places pods; desks are given to it. `rolled_back`: called for each half gang that is."""
    parts: list[tuple[WatchedDevices, WatchedVolumes]] = []

    def make_world(wake: Callable[[], None]) -> WatchedWorld:
        parts.append((WatchedDevices(context, served, wake), WatchedVolumes(context, wake)))
        return WatchedWorld(context, served, watch, wake, *parts[0])

    brain = Brain(context.clock, make_world, placement, settings)
    if settings.places:
        brain.hands = (_hands(brain, context, *parts[0], rolled_back),)
    return brain


def _hands(
    brain: Brain, context: Context, devices: WatchedDevices, volumes: WatchedVolumes, rolled_back: Callable[[], None]
) -> Hands:
    # Imported here: what writes costs memory that a process which only decides about queues need not spend.
    from shoal.controllers.binding.writer import Writer
    from shoal.controllers.scheduler.hands import SchedulerHands

    return SchedulerHands(context, brain, brain.world, Writer(context, devices, volumes), rolled_back)
