"""Runs `shoal run`: the scheduling loop and its controllers against any API server, as one of several replicas.

A new leader starts everything again, caches included: a process that lost its lease may have been suspended, and its
caches may be old. Rejected: caches in standby processes. Each would cost the server a watch of every kind, and save two
seconds at a failover.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from functools import partial

from msgspec.structs import replace

from shoal.api.run_configuration import IN_USE, QUEUES_IN_USE
from shoal.api.wire import to_json
from shoal.client.election import LeaderElection
from shoal.client.http.access import Access
from shoal.client.http.settings import KubeSettings
from shoal.client.kind import NODES, PODS
from shoal.client.lease_lock import Lock, Timing
from shoal.client.leased import LeasedApi
from shoal.client.port import Api
from shoal.client.recorder import Recorder
from shoal.client.scaling import ScalingApi
from shoal.wiring.metrics_server import open_metrics, telemetry_of
from shoal.wiring.policies_in_force import wait_for_gates
from shoal.wiring.process import Pacing, client_for, live
from shoal.wiring.process_tasks import ProcessTasks
from shoal.wiring.run_choice import POD_AUTOSCALING, RunChoice
from shoal.wiring.shoal import load_parts, start_shoal
from shoal.wiring.standby import check_alone, is_beside_up, run_with_lease
from shoal.wiring.telemetry import Telemetry
from shoal.wiring.webhook import start_webhook

_log = logging.getLogger("shoal")
_OPERATOR = "shoal-operator"


def run(
    access: Access,
    choice: RunChoice,
    ready: Callable[[str], None],
    unanswered: Callable[[str], None],
    pages: Callable[[ProcessTasks], Awaitable[None]] | None = None,
) -> None:
    """Blocks until SIGINT or SIGTERM. `ready` is called once all caches are filled and, with leader election, once this
    process leads; `unanswered`, while the server does not answer yet. `pages` serves the web dashboard."""
    rules = choice.own.client
    settings = KubeSettings(
        requests_per_second=rules.requests_per_second,
        burst=rules.burst,
        connections=rules.connections,
        keeps_managed_fields=False,
    )

    async def begin(tasks: ProcessTasks) -> None:
        election = choice.own.leader_election
        lock = _lock(choice)
        events = Recorder(tasks.api, tasks.clock, "shoal")
        tasks.start("events of the process", events.run)
        telemetry = telemetry_of(choice, lock, tasks.clock, events)
        tasks.at_end(telemetry.close)
        where = await open_metrics(telemetry, tasks, choice)
        elections: list[LeaderElection] = []

        def may_write() -> bool:
            return all(one.is_leading for one in elections)

        def enter(inner: ProcessTasks, user: str = "") -> Api:
            # The fields of the components belong to the operator, so that other clients can tell whose they are.
            own = _operator_settings(settings) if user == _OPERATOR else settings
            return LeasedApi(telemetry.observed(client_for(inner, access, own, may_write)), may_write)

        def scaling(inner: ProcessTasks) -> ScalingApi:
            return client_for(inner, access, settings, may_write)

        async def work(inner: ProcessTasks) -> None:
            telemetry.begins()
            await _work(inner, enter, scaling, choice, telemetry)
            if pages is not None:
                inner.start("pages", partial(pages, inner))
            if hook is not None:
                await hook.ready()
            telemetry.works()
            metrics = f"; metrics at {where}" if where else ""
            ready(f"{', '.join(choice.controllers)} at {access.server}{metrics}")

        hook = start_webhook(tasks, client_for(tasks, access, settings), choice, is_beside=choice.is_child)

        async def at_once() -> None:
            inner = tasks.inner(enter)
            tasks.at_end(inner.end)
            await work(inner)

        async def lead() -> None:
            _log.info("%s leads", lock.identity)
            inner = tasks.inner(enter)
            try:
                await work(inner)
                await asyncio.Event().wait()
            finally:
                await inner.end()
                telemetry.stands_by()

        if choice.is_child:
            # A child process of an embedded cluster holds the lease for that cluster.
            await run_with_lease(tasks, tasks.api, choice.own, at_once, lead)
            return
        if not election.leader_elect or await is_beside_up(tasks.api, lock, choice.own.scheduler_names):
            await check_alone(tasks.api, lock, choice.controllers)
            await at_once()
            return
        own = telemetry.observed(client_for(tasks, access, KubeSettings(connections=2)))
        telemetry.stands_by()
        load_parts(choice.controllers)
        chosen = LeaderElection(own, tasks.clock, tasks.random, lock, events)
        chosen.outage = tasks.informers.outage
        elections.append(chosen)
        tasks.start("election", lambda: chosen.run(lead))

    pacing = Pacing(choice.speed, choice.since, is_child=choice.is_child)
    # The parent process is the server, and has started before.
    live(access, pacing, begin, settings, unanswered=None if choice.is_child else unanswered)


def _operator_settings(settings: KubeSettings) -> KubeSettings:
    from shoal.controllers.operator.views import CachedOperandPod, OperatedNode

    return replace(settings, manager=_OPERATOR, kept={PODS: CachedOperandPod, NODES: OperatedNode})


async def _work(
    tasks: ProcessTasks,
    enter: Callable[[ProcessTasks, str], Api],
    scaling: Callable[[ProcessTasks], ScalingApi],
    choice: RunChoice,
    telemetry: Telemetry,
) -> None:
    served = await start_shoal(tasks, lambda name: enter(tasks, name), choice, telemetry)
    if POD_AUTOSCALING in choice.controllers:
        from shoal.wiring.pod_autoscaling import start_pod_autoscaling

        context = tasks.context("shoal-pod-autoscaling", enter(tasks, "shoal-pod-autoscaling"))
        start_pod_autoscaling(tasks, context, scaling(tasks), served, choice)
    tasks.start("caches", tasks.informers.run)
    await tasks.informers.synced()
    await wait_for_gates(tasks, served, choice, are_at_once=choice.is_child)


def _lock(choice: RunChoice) -> Lock:
    rules = choice.own.leader_election
    queues = "" if choice.kueue is None else to_json(choice.kueue).decode()
    in_use = (IN_USE, to_json(choice.own.deciding()).decode()), (QUEUES_IN_USE, queues)
    timing = Timing(*rules.timing_s())
    return Lock(rules.resource_namespace, rules.resource_name, choice.identity, timing, annotations=in_use)
