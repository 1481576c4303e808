"""Controllers or nodes in a process of their own, against any server: the same parts as in `up`, over HTTP."""

from __future__ import annotations

import asyncio
import random
import signal
import sys
from collections.abc import Awaitable, Callable

from shoal.store.kube.access import Access
from shoal.store.kube.api import KubeApi
from shoal.store.kube.settings import KubeSettings
from shoal.store.live.kind import CLUSTER_ROLES
from shoal.store.live.port import Api
from shoal.store.live.refusals import ForbiddenError, NotFoundError
from shoal.wiring.cast import Cast
from shoal.wiring.life import Life
from shoal.wiring.nodes import start_nodes
from shoal.wiring.pace import clock_of
from shoal.wiring.provided import has_metrics, provide_metrics
from shoal.wiring.tended import check_untended

_PATIENCE_S = 60.0
_OWN_ROLE = "system:shoal:fleet"
"""Among the roles that only Shoal's own server has from the start."""


def run_nodes(access: Access, cast: Cast, ready: Callable[[str], None]) -> None:
    """Until SIGINT or SIGTERM. `ready` is called with where metrics are."""

    async def begin(life: Life) -> None:
        await check_untended(life.api, [machine.name for machine in cast.machines])
        life.start("caches", life.informers.run)
        fleet, ports, ca = await start_nodes(life, _way_in(life, access, "kubelet"), cast)
        await life.nodes_ready(fleet.names(), _PATIENCE_S)
        if await _is_embedded(life.api) and not await has_metrics(life.api):
            # Only Shoal's own server finds doors on this machine by their annotation.
            await provide_metrics(life.api, ports, ca)
        ready(ports.metrics_url)

    _run(access, cast, begin)


def run_controllers(access: Access, cast: Cast, ready: Callable[[str], None]) -> None:
    """Until SIGINT or SIGTERM; all as the kubeconfig's user, each under its own name as a manager of fields."""

    async def begin(life: Life) -> None:
        life.start_controllers(cast.controllers, lambda _, name: _way_in(life, access, name))
        life.start("caches", life.informers.run)
        await life.informers.synced()
        ready(f"{len(cast.controllers)} controllers")

    _run(access, cast, begin)


def _run(access: Access, cast: Cast, begin: Callable[[Life], Awaitable[None]]) -> None:
    try:
        import uvloop
    except ImportError:
        asyncio.run(_live(access, cast, begin))
    else:
        uvloop.run(_live(access, cast, begin))


async def _live(access: Access, cast: Cast, begin: Callable[[Life], Awaitable[None]]) -> None:
    stop = asyncio.Event()
    for name in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(name, stop.set)
    api = _signing(access, "shoal")
    life = Life(api, api, clock_of(cast.speed, cast.since))
    if cast.is_child:
        _end_with_parent(stop)

    async def started() -> None:
        # Whatever is wrong with the server or the way to it is said now, not in a log later.
        await api.served()
        await begin(life)

    try:
        beginning = asyncio.ensure_future(started())
        ended = asyncio.ensure_future(stop.wait())
        await asyncio.wait((beginning, ended), return_when=asyncio.FIRST_COMPLETED)
        if beginning.done():
            beginning.result()
            await ended
        beginning.cancel()
    finally:
        await life.end()
        await api.close()


def _end_with_parent(stop: asyncio.Event) -> None:
    """The parent says nothing on our standard input; it is readable once the parent is gone."""
    loop = asyncio.get_running_loop()

    def gone() -> None:
        loop.remove_reader(sys.stdin)
        stop.set()

    loop.add_reader(sys.stdin, gone)


async def _is_embedded(api: Api) -> bool:
    try:
        await api.get(CLUSTER_ROLES, "", _OWN_ROLE)
    except (NotFoundError, ForbiddenError):
        return False
    return True


def _way_in(life: Life, access: Access, manager: str) -> KubeApi:
    api = _signing(access, manager)
    life.at_end(api.close)
    return api


def _signing(access: Access, manager: str) -> KubeApi:
    return KubeApi(access, random.Random(), KubeSettings(manager=manager))
