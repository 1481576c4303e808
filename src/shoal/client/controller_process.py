"""Runs controllers in a process of their own against any API server, optionally as one of several replicas.

For operators that are built with this package. Shoal's own processes compose the same parts in `wiring`, with options
and metrics of their own.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Mapping

from shoal.client.clock import WallClock
from shoal.client.context import Context, Controller
from shoal.client.election import LeaderElection
from shoal.client.http.access import Access
from shoal.client.http.api import KubeApi
from shoal.client.http.settings import KubeSettings
from shoal.client.informers import Informers
from shoal.client.lease_lock import Lock
from shoal.client.leased import LeasedApi
from shoal.client.port import Api
from shoal.client.recorder import Recorder
from shoal.client.supervise import supervised
from shoal.client.write_through import WriteThroughApi

MakeController = Callable[[Context], Controller]


async def run_controllers(access: Access, controllers: Mapping[str, MakeController], lock: Lock | None = None) -> None:
    """Run controllers by name until cancelled. The name is the field manager of a controller's writes.

    They share one cache for each kind. A controller that fails is logged and restarted. With `lock` only the replica
    that holds the Lease runs them, and a write is sent only while it holds the Lease.
    """
    draw = random.Random()
    clock = WallClock()
    caches = KubeApi(access, draw, KubeSettings(keeps_managed_fields=False))
    if lock is None:
        try:
            await _run(access, caches, controllers, clock, draw, lambda: True)
        finally:
            await caches.close()
        return
    leases = KubeApi(access, draw, KubeSettings(manager="leader-election"))
    election = LeaderElection(leases, clock, draw, lock)
    try:
        await election.run(lambda: _run(access, caches, controllers, clock, draw, lambda: election.is_leading))
    finally:
        await leases.close()
        await caches.close()


async def _run(
    access: Access,
    caches: Api,
    controllers: Mapping[str, MakeController],
    clock: WallClock,
    draw: random.Random,
    may_write: Callable[[], bool],
) -> None:
    informers = Informers(caches, clock, draw)
    clients = {name: KubeApi(access, draw, KubeSettings(manager=name), may_write) for name in controllers}
    try:
        async with asyncio.TaskGroup() as group:
            for name, make in controllers.items():
                api = LeasedApi(clients[name], may_write)
                events = Recorder(api, clock, name)
                context = Context(name, WriteThroughApi(api, informers), informers, clock, draw, events)
                group.create_task(supervised(clock, f"events of {name}", events.run))
                group.create_task(supervised(clock, name, make(context).run))
            group.create_task(informers.run())
    finally:
        for client in clients.values():
            await client.close()
