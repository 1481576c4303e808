"""Runs `shoal observe`: reads a cluster again and again, and serves why pods and workloads wait, without a write.

Guarantee: rows with names of pods and workloads are served on a loopback address alone, because no token is asked for.
`kubectl port-forward`, which needs a right, leads there; other pods of the cluster get the totals.

It decides nothing, so several may run and none needs a Lease. A reading lists the cluster once. The pause after it is
at least ten times as long, so that a large cluster is not listed all the time.

Rejected: the caches of `shoal run`. They watch every kind, and the answers would need the scheduling loop beside them.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable
from functools import partial

import msgspec

from shoal.client.clock import Clock
from shoal.client.http.access import Access
from shoal.client.http.settings import KubeSettings
from shoal.client.leased import LeasedApi
from shoal.client.port import Api
from shoal.prometheus.registry import Registry
from shoal.telemetry.health import HealthChecks
from shoal.telemetry.metrics_endpoint import MetricsEndpoint, MetricsEndpointSettings
from shoal.telemetry.process import measure_process
from shoal.units.errors import ShoalError, one_line
from shoal.units.listening import LOOPBACK_HOSTS
from shoal.wiring.observed_waits import ObservedObjects, ObservedWaits
from shoal.wiring.process import Pacing, client_for, live
from shoal.wiring.process_tasks import ProcessTasks

_log = logging.getLogger("shoal.observe")
Look = Callable[[Api], Awaitable[ObservedObjects]]
WAITS_PATH = "/waits"
_LAST_PORT = 65_535
_REST = 10.0
"""The pause after a reading is at least so many times its duration."""
_RETRY_S = 5.0


class Observing(msgspec.Struct, frozen=True):
    interval_s: float = 60.0
    endpoint: MetricsEndpointSettings | None = MetricsEndpointSettings()
    version: str = ""


class Observer:
    def __init__(self, api: Api, clock: Clock, look: Look, waits: ObservedWaits, interval_s: float) -> None:
        self._api = LeasedApi(api, _never)
        self._clock = clock
        self._look = look
        self._waits = waits
        self._interval_s = interval_s

    async def read_once(self) -> float:
        """Returns the pause until the next reading, in seconds."""
        began_s = self._clock.seconds()
        try:
            found = await self._look(self._api)
        except ShoalError as error:
            _log.warning("the cluster cannot be read: %s", error)
            self._waits.failed(one_line(str(error)))
            return _RETRY_S
        took_s = self._clock.seconds() - began_s
        self._waits.publish(found, self._clock.now().timestamp(), took_s)
        return max(self._interval_s, took_s * _REST)

    async def run(self) -> None:
        while True:
            await self._clock.sleep(await self.read_once())


def observe(
    access: Access,
    observing: Observing,
    look: Look,
    ready: Callable[[str, str], None],
    unanswered: Callable[[str], None],
) -> None:
    """Blocks until SIGINT or SIGTERM. `ready` is called with the address of the metrics, and that of the rows."""
    settings = KubeSettings(keeps_managed_fields=False)

    async def begin(tasks: ProcessTasks) -> None:
        registry = Registry()
        measure_process(registry, observing.version, time.time())
        waits = ObservedWaits(registry)
        if observing.endpoint is not None:
            health = HealthChecks({}, {"reading": lambda: waits.fault})
            opened = endpoints(registry, health, observing.endpoint, waits)
            for endpoint in opened:
                await endpoint.start()
                tasks.at_end(endpoint.close)
            ready(opened[0].address, opened[-1].address)
        else:
            ready("", "")
        observer = Observer(client_for(tasks, access, settings, _never), tasks.clock, look, waits, observing.interval_s)
        tasks.start("observing", observer.run)

    live(access, Pacing(), partial(begin), settings, unanswered=unanswered)


def endpoints(
    registry: Registry, health: HealthChecks, settings: MetricsEndpointSettings, waits: ObservedWaits
) -> list[MetricsEndpoint]:
    """That of the metrics, which has the rows too if only this machine reaches it; else one more for them, at the next
    port of loopback."""
    if settings.host in LOOPBACK_HOSTS:
        return [MetricsEndpoint(registry, health, settings, documents={WAITS_PATH: waits.document})]
    own = MetricsEndpointSettings(port=settings.port + 1 if 0 < settings.port < _LAST_PORT else 0)
    return [
        MetricsEndpoint(registry, health, settings, documents={WAITS_PATH: waits.totals}),
        MetricsEndpoint(registry, health, own, documents={WAITS_PATH: waits.document}),
    ]


def _never() -> bool:
    return False
