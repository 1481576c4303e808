"""A process that is a client of some API server, from its first request to its last: what `join` and `run` share."""

from __future__ import annotations

import asyncio
import gc
import random
import signal
import sys
from collections.abc import Awaitable, Callable

import msgspec

from shoal.client.broken_connections import tell_in_a_line
from shoal.client.http.access import Access
from shoal.client.http.api import KubeApi
from shoal.client.http.connection_pool import always
from shoal.client.http.settings import KubeSettings
from shoal.wiring.cluster_clock import Moment, clock_of
from shoal.wiring.first_answer import Tell, first_answer
from shoal.wiring.process_tasks import ProcessTasks

Begin = Callable[[ProcessTasks], Awaitable[None]]
_OURS = KubeSettings()


class Pacing(msgspec.Struct, frozen=True):
    """The clock of a process, and whether it ends with its parent."""

    speed: float = 1.0
    since: Moment | None = None
    is_child: bool = False


def live(
    access: Access, pacing: Pacing, begin: Begin, settings: KubeSettings = _OURS, *, unanswered: Tell | None = None
) -> None:
    """Until SIGINT or SIGTERM. Raises what `begin` raises. `unanswered`: called when the server does not answer yet;
    None: it has to be there."""
    try:
        import uvloop
    except ImportError:
        asyncio.run(_live(access, pacing, begin, settings, unanswered))
    else:
        uvloop.run(_live(access, pacing, begin, settings, unanswered))


def way_in(
    life: ProcessTasks, access: Access, settings: KubeSettings, may_write: Callable[[], bool] = always
) -> KubeApi:
    """One of its own, closed with everything else."""
    api = KubeApi(access, random.Random(), settings, may_write)
    life.at_end(api.close)
    return api


async def _live(access: Access, pacing: Pacing, begin: Begin, settings: KubeSettings, unanswered: Tell | None) -> None:
    # Caches are trees that live as long as the process: walking them again and again finds nothing.
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)
    tell_in_a_line(asyncio.get_running_loop())
    stop = asyncio.Event()
    for name in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(name, stop.set)
    api = KubeApi(access, random.Random(), settings)
    life = ProcessTasks(api, api, clock_of(pacing.speed, pacing.since))
    if pacing.is_child:
        _end_with_parent(stop)

    async def started() -> None:
        # Whatever is wrong with the server or the way to it is said now, not in a log later.
        await first_answer(api, life.clock, unanswered)
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
