"""Runs a process that is a client of an API server, from its first request to its last; `join` and `run` use it."""

from __future__ import annotations

import asyncio
import gc
import random
import signal
import sys
from collections.abc import Awaitable, Callable

import msgspec

from shoal.client.broken_connections import log_in_one_line
from shoal.client.http.access import Access
from shoal.client.http.api import KubeApi
from shoal.client.http.connection_pool import always
from shoal.client.http.settings import KubeSettings
from shoal.wiring.cluster_clock import ClockReading, clock_of
from shoal.wiring.first_answer import Notify, first_answer
from shoal.wiring.process_tasks import ProcessTasks

Begin = Callable[[ProcessTasks], Awaitable[None]]
_OURS = KubeSettings()


class Pacing(msgspec.Struct, frozen=True):
    """The clock of a process, and whether it ends with its parent."""

    speed: float = 1.0
    since: ClockReading | None = None
    is_child: bool = False


def live(
    access: Access, pacing: Pacing, begin: Begin, settings: KubeSettings = _OURS, *, unanswered: Notify | None = None
) -> None:
    """Blocks until SIGINT or SIGTERM. Raises what `begin` raises. `unanswered` is called while the server does not
    answer yet; None: the server has to answer at once."""
    try:
        import uvloop
    except ImportError:
        asyncio.run(_live(access, pacing, begin, settings, unanswered))
    else:
        uvloop.run(_live(access, pacing, begin, settings, unanswered))


def client_for(
    tasks: ProcessTasks, access: Access, settings: KubeSettings, may_write: Callable[[], bool] = always
) -> KubeApi:
    """A new client, which is closed with the tasks."""
    api = KubeApi(access, random.Random(), settings, may_write)
    tasks.at_end(api.close)
    return api


async def _live(
    access: Access, pacing: Pacing, begin: Begin, settings: KubeSettings, unanswered: Notify | None
) -> None:
    # The caches are never garbage: frequent collections would walk them in vain.
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)
    log_in_one_line(asyncio.get_running_loop())
    stop = asyncio.Event()
    for name in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(name, stop.set)
    api = KubeApi(access, random.Random(), settings)
    tasks = ProcessTasks(api, api, clock_of(pacing.speed, pacing.since))
    if pacing.is_child:
        _end_with_parent(stop)

    async def started() -> None:
        # Faults of the server or of the connection are reported now, not in a log later.
        await first_answer(api, tasks.clock, unanswered)
        await begin(tasks)

    try:
        beginning = asyncio.ensure_future(started())
        ended = asyncio.ensure_future(stop.wait())
        await asyncio.wait((beginning, ended), return_when=asyncio.FIRST_COMPLETED)
        if beginning.done():
            beginning.result()
            await ended
        beginning.cancel()
    finally:
        await tasks.end()
        await api.close()


def _end_with_parent(stop: asyncio.Event) -> None:
    """The parent writes nothing to our standard input; it becomes readable when the parent has ended."""
    loop = asyncio.get_running_loop()

    def gone() -> None:
        loop.remove_reader(sys.stdin)
        stop.set()

    loop.add_reader(sys.stdin, gone)
