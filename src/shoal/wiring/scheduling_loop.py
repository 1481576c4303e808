"""A brain with everything that it sees by and acts through: one way to put it together, for every process and test.

Devices and volumes are shared: the world reads what pods ask of them, and the writer makes ready what was decided.
"""

from __future__ import annotations

from collections.abc import Callable

from shoal.client.context import Context
from shoal.client.served import Served
from shoal.controllers.scheduling_loop.protocols import PlanExecutor
from shoal.controllers.scheduling_loop.scheduling_loop import SchedulingLoop, SchedulingLoopSettings
from shoal.engine.cluster import Cluster
from shoal.engine.placement import Placement
from shoal.store.watched.cluster import WatchedCluster, WatchSettings
from shoal.store.watched.devices import WatchedDevices
from shoal.store.watched.volumes import WatchedVolumes


def brain_of(
    context: Context,
    served: Served,
    watch: WatchSettings,
    placement: Callable[[Cluster], Placement],
    settings: SchedulingLoopSettings,
    rolled_back: Callable[[], None] = lambda: None,
) -> SchedulingLoop:
    """It has hands if it places pods; desks are given to it. `rolled_back`: called for each half gang that is."""
    parts: list[tuple[WatchedDevices, WatchedVolumes]] = []

    def make_world(wake: Callable[[], None]) -> WatchedCluster:
        parts.append((WatchedDevices(context, served, wake), WatchedVolumes(context, wake)))
        return WatchedCluster(context, served, watch, wake, *parts[0])

    scheduling = SchedulingLoop(context.clock, make_world, placement, settings)
    if settings.places:
        scheduling.executors = (_executors(scheduling, context, *parts[0], rolled_back),)
    return scheduling


def _executors(
    scheduling: SchedulingLoop,
    context: Context,
    devices: WatchedDevices,
    volumes: WatchedVolumes,
    rolled_back: Callable[[], None],
) -> PlanExecutor:
    # Imported here: what writes costs memory that a process which only decides about queues need not spend.
    from shoal.controllers.binding.writer import Writer
    from shoal.controllers.scheduler.executor import SchedulerExecutor

    return SchedulerExecutor(context, scheduling, scheduling.world, Writer(context, devices, volumes), rolled_back)
