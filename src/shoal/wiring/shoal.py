"""Composes Shoal's own controllers: the scheduling loop with its plan executors and admission disciplines, and the
controllers beside it. `shoal run` uses it with any API server, `shoal up` with the embedded one.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import partial
from time import thread_time

from shoal.autoscale.placeholders.placeholder import WAITS_FOR_NODES
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
from shoal.engine.placement import Placement
from shoal.engine.pod_mix import PodMix
from shoal.store.watched.cluster import WatchSettings
from shoal.store.watched.profiles import PodProfile
from shoal.wiring.disciplines import add_disciplines
from shoal.wiring.missing_kinds import MissingKinds
from shoal.wiring.process_tasks import ProcessTasks
from shoal.wiring.queue_rules import QueueRules
from shoal.wiring.run_choice import (
    HISTORY,
    KAI,
    NODE_SCALING,
    OPERATOR,
    PLACEHOLDER_PODS,
    POD_AUTOSCALING,
    QUEUES,
    SCHEDULER,
    VOLCANO,
    RunChoice,
)
from shoal.wiring.scheduling_loop import new_scheduling_loop
from shoal.wiring.telemetry import Telemetry

ClientFactory = Callable[[str], Api]
"""Makes the client of a controller; its writes carry the name of the controller as the field manager."""

_AGAIN_S = 30.0
"""How often a cycle is made for pods that wait, where time alone can make a difference."""
BESIDE = ("jobs", "pods", "gatekeeper", "advisor", "tenants")
"""The controllers beside the scheduling loop, by the names of `--controllers`."""
_UPGRADES = "driver-upgrades"
NAMED = (OPERATOR, _UPGRADES, POD_AUTOSCALING, NODE_SCALING, PLACEHOLDER_PODS, HISTORY)
"""Controllers that run only if `--controllers` names them."""
_UNSCHEDULABLE = "Unschedulable"
_KUBERNETES = "default-scheduler"
"""Under this name, replicas are spread as kube-scheduler does."""
PARTS = (SCHEDULER, QUEUES, *BESIDE, VOLCANO, KAI)


async def start_shoal(
    tasks: ProcessTasks, client_for: ClientFactory, choice: RunChoice, telemetry: Telemetry | None = None
) -> Served:
    """Start the chosen controllers and return the kinds that the server serves. The caller starts the caches
    afterwards."""
    own = tasks.context("shoal", client_for("shoal"))
    served, rules = Served(own), QueueRules(own, choice)
    await rules.begin(tasks, choice.controllers)

    def context_of(part: str) -> Context:
        return tasks.context(f"shoal-{part}", client_for(f"shoal-{part}"))

    volcano = _start_volcano(tasks, context_of, served, choice) if VOLCANO in choice.controllers else None
    if {SCHEDULER, QUEUES, VOLCANO, KAI} & {*choice.controllers}:
        scheduling = _scheduling(tasks, client_for, served, choice, telemetry, rules.presence)
        rules.on_presence_change = scheduling.wake
        queues = add_disciplines(scheduling, context_of, served, choice, rules.presence, volcano)
        if telemetry is not None:
            _measure(telemetry, tasks, scheduling, choice, served)
            if queues is not None:
                telemetry.follow_queues(*queues)
        tasks.start("scheduling loop", scheduling.run)
    if QUEUES in choice.controllers:
        from shoal.controllers.provisioning_checks.controller import ProvisioningChecks

        checks_context = tasks.context("shoal-provisioning-checks", client_for(f"shoal-{QUEUES}"))
        checks = ProvisioningChecks(checks_context, served, lambda: rules.presence.is_there)
        tasks.start("provisioning checks", checks.run)
    if SCHEDULER in choice.controllers:
        from shoal.controllers.kubernetes_groups.controller import KubernetesGroups
        from shoal.controllers.light_groups.controller import light_groups_controller

        groups_context = tasks.context("shoal-groups", client_for("shoal-scheduler"))
        namespaces = choice.own.namespaces
        groups = KubernetesGroups(groups_context, served, frozenset(choice.scheduler_names))
        tasks.start("pod groups of Kubernetes", groups.run)
        tasks.start("pod groups", light_groups_controller(groups_context, served, namespaces.scheduler_plugins).run)
    for name in BESIDE:
        if name in choice.controllers:
            # Imported here: a process imports the controllers that it runs, and no others.
            from shoal.wiring.shoal_makers import make

            tasks.start(name, make(name, context_of(name), served, rules, choice.rule_modes()).run)
    _start_named(tasks, context_of, served, choice, telemetry)
    if choice.history is not None:
        from shoal.wiring.history import start_history

        start_history(tasks, context_of("history"), served, choice, telemetry)
    if telemetry is not None:
        telemetry.follow_process(tasks, choice)
    missing = MissingKinds(served, choice.controllers, tasks.clock)
    await served.look()
    tasks.start("served kinds", served.run)
    tasks.start("missing kinds", missing.run)
    return served


def _start_named(
    tasks: ProcessTasks,
    context_of: Callable[[str], Context],
    served: Served,
    choice: RunChoice,
    telemetry: Telemetry | None,
) -> None:
    """The controllers that run only if they are named."""
    if _UPGRADES in choice.controllers:
        from shoal.controllers.driver_upgrades.controller import DriverUpgrades

        upgrades = DriverUpgrades(context_of(_UPGRADES), served)
        if telemetry is not None:
            telemetry.follow_driver_upgrades(lambda: upgrades.figures)
        tasks.start(_UPGRADES, upgrades.run)
    if OPERATOR in choice.controllers:
        from shoal.controllers.operator.controller import operator_controller

        operator = operator_controller(context_of(OPERATOR), served, choice.operator)
        tasks.start(OPERATOR, operator.run)
        if telemetry is not None:
            telemetry.follow_operator(operator.figures)
    if NODE_SCALING in choice.controllers and choice.cloud is not None:
        from shoal.wiring.node_scaling import start_node_scaling

        start_node_scaling(tasks, context_of(NODE_SCALING), served, choice, telemetry)
    if PLACEHOLDER_PODS in choice.controllers:
        from shoal.wiring.node_scaling import start_placeholder_pods

        start_placeholder_pods(tasks, context_of(PLACEHOLDER_PODS), served, choice)


def load_parts(parts: Collection[str]) -> None:
    """Import what `start_shoal` imports only when it needs it, so that a standby process takes over sooner."""
    if OPERATOR in parts:
        import shoal.controllers.operator.controller
    if not set(parts) - set(NAMED):
        return
    import shoal.controllers.kai.admission
    import shoal.controllers.light_groups.controller
    import shoal.controllers.queues.admission_loop
    import shoal.controllers.scheduler.executor
    import shoal.controllers.volcano.admission
    import shoal.controllers.volcano.controller
    import shoal.wiring.shoal_makers  # noqa: F401 - imported for its effect on later imports


def _start_volcano(
    tasks: ProcessTasks, context_of: Callable[[str], Context], served: Served, choice: RunChoice
) -> Presence:
    """Start the controllers of Volcano's objects. They pause while Volcano itself runs, which the result says."""
    from shoal.controllers.volcano.controller import volcano_controller

    context = context_of(VOLCANO)
    found = Presence(context, presence.VOLCANO, choice.own.namespaces.volcano)
    tasks.start(VOLCANO, volcano_controller(context, served, found).run)
    return found


def _measure(
    telemetry: Telemetry, tasks: ProcessTasks, scheduling: SchedulingLoop, choice: RunChoice, served: Served
) -> None:
    """The observer times the cycles, and so comes before the other executors."""
    observer = telemetry.follow_scheduler(scheduling, tasks.informers.of(PODS), choice.scheduler_names)
    scheduling.executors = (observer, *scheduling.executors)
    if KAI in choice.controllers:
        from shoal.controllers.kai.admission import KaiAdmission

        for discipline in scheduling.queue_steps:
            if isinstance(discipline, KaiAdmission):
                telemetry.follow_kai(discipline)
    if VOLCANO in choice.controllers:
        from shoal.controllers.volcano.admission import VolcanoAdmission

        for discipline in scheduling.queue_steps:
            if isinstance(discipline, VolcanoAdmission):
                telemetry.follow_volcano(discipline)
    if QUEUES in choice.controllers:
        served.when_there(
            WORKLOADS,
            lambda kind: telemetry.follow_workloads(tasks.informers.of(kind)),
            WORKLOADS._replace(version="v1beta1"),
        )


def _scheduling(
    tasks: ProcessTasks,
    client_for: ClientFactory,
    served: Served,
    choice: RunChoice,
    telemetry: Telemetry | None,
    kueue: Presence,
) -> SchedulingLoop:
    context = tasks.context("shoal-scheduler", client_for("shoal-scheduler"))
    names = frozenset(choice.scheduler_names)
    watched = WatchSettings(
        names, _profiles(choice), spreading=names & {_KUBERNETES}, kueue_admits=lambda: kueue.is_there
    )
    # In virtual time each run must take the same decisions.
    stopwatch = thread_time if isinstance(context.clock, WallClock) else None
    settings = SchedulingLoopSettings(
        steps=choice.steps,
        stopwatch=stopwatch,
        places=SCHEDULER in choice.controllers,
        again_s=_AGAIN_S if choice.is_timed else None,
        waiting_reason=WAITS_FOR_NODES if PLACEHOLDER_PODS in choice.controllers else _UNSCHEDULABLE,
    )
    place = partial(_placement, choice)
    if telemetry is None:
        return new_scheduling_loop(context, served, watched, place, settings)
    return new_scheduling_loop(context, served, watched, place, settings, telemetry.gang_rolled_back)


def _profiles(choice: RunChoice) -> dict[str, PodProfile]:
    """Profiles by scheduler name; a name without a profile uses the first."""
    if not choice.profiles:
        return {}
    first = choice.profiles[0]
    found = dict.fromkeys(choice.scheduler_names, PodProfile("", first.added))
    return found | {one.scheduler_name: PodProfile(one.scheduler_name, one.added) for one in choice.profiles[1:]}


def _placement(choice: RunChoice, cluster: Cluster) -> Placement:
    mix = PodMix()
    others = {one.scheduler_name: one.builder(cluster, mix) for one in choice.profiles[1:]}
    return Placement(cluster, choice.builder(cluster, mix), others)
