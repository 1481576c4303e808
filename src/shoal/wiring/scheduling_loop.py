"""Composes a scheduling loop with its watched cluster and its plan executor, for every process and test.

The watched cluster reads which devices and volumes pods request, and the writer prepares them for bound pods: both use
the same devices and volumes.
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


def new_scheduling_loop(
    context: Context,
    served: Served,
    watch: WatchSettings,
    placement: Callable[[Cluster], Placement],
    settings: SchedulingLoopSettings,
    rolled_back: Callable[[], None] = lambda: None,
) -> SchedulingLoop:
    """It has a plan executor if it places pods; admission disciplines are added later. `rolled_back` is called for each
    partial gang that is rolled back."""
    parts: list[tuple[WatchedDevices, WatchedVolumes]] = []

    def make_cluster(wake: Callable[[], None]) -> WatchedCluster:
        parts.append((WatchedDevices(context, served, wake), WatchedVolumes(context, wake)))
        return WatchedCluster(context, served, watch, wake, *parts[0])

    scheduling = SchedulingLoop(context.clock, make_cluster, placement, settings)
    if settings.places:
        scheduling.executors = (_executors(scheduling, context, *parts[0], rolled_back, settings.waiting_reason),)
    return scheduling


def _executors(
    scheduling: SchedulingLoop,
    context: Context,
    devices: WatchedDevices,
    volumes: WatchedVolumes,
    rolled_back: Callable[[], None],
    waiting_reason: str,
) -> PlanExecutor:
    # Imported here: a process that decides only about queues saves the memory of the writer.
    from shoal.controllers.bind_preparation.writer import Writer
    from shoal.controllers.scheduler.executor import SchedulerExecutor

    writer = Writer(context, devices, volumes)
    return SchedulerExecutor(context, scheduling, scheduling.watched, writer, rolled_back, waiting_reason)
