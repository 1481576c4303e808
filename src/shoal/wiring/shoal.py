"""Shoal's own controllers, put together from their parts: the brain with its hands and its desk, and who works beside.

The same in `shoal run` against any server and in `shoal up` beside the embedded one.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from time import thread_time

from shoal.client import presence
from shoal.client.clock import WallClock
from shoal.client.context import Context
from shoal.client.ecosystem_kinds import WORKLOADS
from shoal.client.kind import PODS
from shoal.client.port import Api
from shoal.client.presence import Presence
from shoal.client.served import Served
from shoal.controllers.scheduling_loop.scheduling_loop import SchedulingLoop, SchedulingLoopSettings
from shoal.engine.cluster import Cluster
from shoal.engine.mix import Mix
from shoal.engine.placement import Placement
from shoal.store.watched.cluster import WatchSettings
from shoal.store.watched.profiles import PodProfile
from shoal.wiring.disciplines import give_desks
from shoal.wiring.missing_kinds import MissingKinds
from shoal.wiring.process_tasks import ProcessTasks
from shoal.wiring.queue_ruling import QueueRuling
from shoal.wiring.run_choice import KAI, QUEUES, SCHEDULER, VOLCANO, RunChoice
from shoal.wiring.scheduling_loop import brain_of
from shoal.wiring.telemetry import Telemetry

WayIn = Callable[[str], Api]
"""The way in of a part, which signs its writes with its name."""

BESIDE = ("jobs", "pods", "gatekeeper", "advisor")
"""The controllers beside the scheduling loop, by the names of `--controllers`."""
_KUBERNETES = "default-scheduler"
"""Under this name, replicas are spread as kube-scheduler does."""
PARTS = (SCHEDULER, QUEUES, *BESIDE, VOLCANO, KAI)


async def start_shoal(
    life: ProcessTasks, way_in: WayIn, choice: RunChoice, telemetry: Telemetry | None = None
) -> Served:
    """Everything that was chosen, and what the server has. The caches are the caller's to start, afterwards."""
    own = life.context("shoal", way_in("shoal"))
    served, ruling = Served(own), QueueRuling(own, choice)
    await ruling.begin(life, choice.controllers)

    def context_of(part: str) -> Context:
        return life.context(f"shoal-{part}", way_in(f"shoal-{part}"))

    volcano = _start_volcano(life, context_of, served, choice) if VOLCANO in choice.controllers else None
    if {SCHEDULER, QUEUES, VOLCANO, KAI} & {*choice.controllers}:
        scheduling = _scheduling(life, way_in, served, choice, telemetry, ruling.presence)
        ruling.moved = scheduling.wake
        queues = give_desks(scheduling, context_of, served, choice, ruling.presence, volcano)
        if telemetry is not None:
            _measure(telemetry, life, scheduling, choice, served)
            if queues is not None:
                telemetry.follow_queues(*queues)
        life.start("brain", scheduling.run)
    if SCHEDULER in choice.controllers:
        from shoal.controllers.kubernetes_groups.controller import KubernetesGroups
        from shoal.controllers.light_groups.controller import light_groups_controller

        beside = life.context("shoal-groups", way_in("shoal-scheduler"))
        spaces = choice.own.namespaces
        groups = KubernetesGroups(beside, served, frozenset(choice.scheduler_names))
        life.start("pod groups of Kubernetes", groups.run)
        life.start("pod groups", light_groups_controller(beside, served, spaces.scheduler_plugins).run)
    for name in BESIDE:
        if name in choice.controllers:
            # Imported here: a process imports the controllers that it runs, and no others.
            from shoal.wiring.shoal_makers import made

            life.start(name, made(name, context_of(name), served, ruling).run)
    if telemetry is not None:
        telemetry.follow_lines(life.waiting)
    missing = MissingKinds(served, choice.controllers, life.clock)
    await served.look()
    life.start("served kinds", served.run)
    life.start("missing kinds", missing.run)
    return served


def load_parts() -> None:
    """Import what `start_shoal` imports only when it needs it, so that a standby process takes over sooner."""
    import shoal.controllers.kai.admission
    import shoal.controllers.light_groups.controller
    import shoal.controllers.queues.admission_loop
    import shoal.controllers.scheduler.executor
    import shoal.controllers.volcano.admission
    import shoal.controllers.volcano.controller
    import shoal.wiring.shoal_makers  # noqa: F401 - imported for its effect on later imports


def _start_volcano(
    life: ProcessTasks, context_of: Callable[[str], Context], served: Served, choice: RunChoice
) -> Presence:
    """Its objects are looked after; returned is whether Volcano does so itself."""
    from shoal.controllers.volcano.controller import volcano_controller

    context = context_of(VOLCANO)
    found = Presence(context, presence.VOLCANO, choice.own.namespaces.volcano)
    life.start(VOLCANO, volcano_controller(context, served, found).run)
    return found


def _measure(
    telemetry: Telemetry, life: ProcessTasks, scheduling: SchedulingLoop, choice: RunChoice, served: Served
) -> None:
    """Times rounds, and so comes before the other hands."""
    watching = telemetry.follow_scheduler(scheduling, life.informers.of(PODS), choice.scheduler_names)
    scheduling.executors = (watching, *scheduling.executors)
    if QUEUES in choice.controllers:
        served.when_there(
            WORKLOADS,
            lambda kind: telemetry.follow_workloads(life.informers.of(kind)),
            WORKLOADS._replace(version="v1beta1"),
        )


def _scheduling(
    life: ProcessTasks, way_in: WayIn, served: Served, choice: RunChoice, telemetry: Telemetry | None, kueue: Presence
) -> SchedulingLoop:
    context = life.context("shoal-scheduler", way_in("shoal-scheduler"))
    names = frozenset(choice.scheduler_names)
    watched = WatchSettings(
        names, _profiles(choice), spreading=names & {_KUBERNETES}, kueue_admits=lambda: kueue.is_there
    )
    # In virtual time the same is to happen each time.
    stopwatch = thread_time if isinstance(context.clock, WallClock) else None
    settings = SchedulingLoopSettings(steps=choice.steps, stopwatch=stopwatch, places=SCHEDULER in choice.controllers)
    place = partial(_placement, choice)
    if telemetry is None:
        return brain_of(context, served, watched, place, settings)
    return brain_of(context, served, watched, place, settings, telemetry.gang_rolled_back)


def _profiles(choice: RunChoice) -> dict[str, PodProfile]:
    """Profiles by scheduler name; a name without a profile uses the first."""
    if not choice.profiles:
        return {}
    first = choice.profiles[0]
    found = dict.fromkeys(choice.scheduler_names, PodProfile("", first.added))
    return found | {one.scheduler_name: PodProfile(one.scheduler_name, one.added) for one in choice.profiles[1:]}


def _placement(choice: RunChoice, cluster: Cluster) -> Placement:
    mix = Mix()
    others = {one.scheduler_name: one.builder(cluster, mix) for one in choice.profiles[1:]}
    return Placement(cluster, choice.builder(cluster, mix), others)
