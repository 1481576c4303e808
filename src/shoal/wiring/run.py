"""`shoal run`: the scheduling loop and its controllers against any API server, one process of several that may stand
by.

A new leader starts everything again, caches included: a process that lost its lease may have been suspended, and its
caches may be old. Rejected: caches in standby processes. Each would cost the server a watch of every kind, and save two
seconds at a failover.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from shoal.client.election import LeaderElection
from shoal.client.http.access import Access
from shoal.client.http.settings import KubeSettings
from shoal.client.lease_lock import Lock, Timing
from shoal.client.leased import LeasedApi
from shoal.client.port import Api
from shoal.client.recorder import Recorder
from shoal.wiring.hooks import start_webhook
from shoal.wiring.metrics_server import open_door, telemetry_of
from shoal.wiring.policies_in_force import gates_stand
from shoal.wiring.process import Pacing, live, way_in
from shoal.wiring.process_tasks import ProcessTasks
from shoal.wiring.run_choice import RunChoice
from shoal.wiring.shoal import load_parts, start_shoal
from shoal.wiring.standing_by import check_alone, is_beside_up, work_in_turn
from shoal.wiring.telemetry import Telemetry

_log = logging.getLogger("shoal")


def run(access: Access, choice: RunChoice, ready: Callable[[str], None], unanswered: Callable[[str], None]) -> None:
    """Until SIGINT or SIGTERM. `ready` is called once everything that is followed is known, or, of several processes,
    once this one leads; `unanswered`, where the server is not there yet."""
    rules = choice.own.client
    settings = KubeSettings(
        requests_per_second=rules.requests_per_second,
        burst=rules.burst,
        connections=rules.connections,
        keeps_managed_fields=False,
    )

    async def begin(life: ProcessTasks) -> None:
        election = choice.own.leader_election
        lock = _lock(choice)
        events = Recorder(life.api, life.clock, "shoal")
        life.start("events of the process", events.run)
        telemetry = telemetry_of(choice, lock, life.clock, events)
        where = await open_door(telemetry, life, choice)
        elections: list[LeaderElection] = []

        def may_write() -> bool:
            return all(one.is_leading for one in elections)

        def enter(inner: ProcessTasks) -> Api:
            return LeasedApi(telemetry.observed(way_in(inner, access, settings, may_write)), may_write)

        async def work(inner: ProcessTasks) -> None:
            telemetry.begins()
            await _work(inner, enter, choice, telemetry)
            if hook is not None:
                await hook.stands()
            telemetry.works()
            metrics = f"; metrics at {where}" if where else ""
            ready(f"{', '.join(choice.controllers)} at {access.server}{metrics}")

        hook = start_webhook(life, way_in(life, access, settings), choice, is_beside=choice.is_child)

        async def at_once() -> None:
            inner = life.inner(enter)
            life.at_end(inner.end)
            await work(inner)

        async def lead() -> None:
            _log.info("%s leads", lock.identity)
            inner = life.inner(enter)
            try:
                await work(inner)
                await asyncio.Event().wait()
            finally:
                await inner.end()
                telemetry.stands_by()

        if choice.is_child:
            # The cluster's own.
            await work_in_turn(life, life.api, election, at_once, lead)
            return
        if not election.leader_elect or await is_beside_up(life.api, lock, choice.own.scheduler_names):
            await check_alone(life.api, lock)
            await at_once()
            return
        own = telemetry.observed(way_in(life, access, KubeSettings(connections=2)))
        telemetry.stands_by()
        load_parts()
        chosen = LeaderElection(own, life.clock, life.draw, lock, events)
        elections.append(chosen)
        life.start("election", lambda: chosen.run(lead))

    pacing = Pacing(choice.speed, choice.since, is_child=choice.is_child)
    # A parent that is the server has begun before.
    live(access, pacing, begin, settings, unanswered=None if choice.is_child else unanswered)


async def _work(
    life: ProcessTasks, enter: Callable[[ProcessTasks], Api], choice: RunChoice, telemetry: Telemetry
) -> None:
    served = await start_shoal(life, lambda _: enter(life), choice, telemetry)
    life.start("caches", life.informers.run)
    await life.informers.synced()
    await gates_stand(life, served, choice, are_at_once=choice.is_child)


def _lock(choice: RunChoice) -> Lock:
    rules = choice.own.leader_election
    return Lock(rules.resource_namespace, rules.resource_name, choice.identity, Timing(*rules.timing_s()))
